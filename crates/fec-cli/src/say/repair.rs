//! The final report of `repair` for shard files and containers, as text and JSON.

use crate::say::mirrors::Fetched;
use crate::say::signed::SignedBy;
use fec_base::names::{hex, show};
use fec_core::format::seal::SealedKind;
use fecfile::{Archive, Repaired};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// Most files that are listed. Further files are only counted.
const LINES: usize = 20;

/// The files that were made anew.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) form: &'static str,
    pub(crate) root: String,
    /// The signer of the root, if that was asked for.
    signed_by: Option<SignedBy>,
    /// True if the container is that of a sealed sidecar, whose files were not looked at.
    sealed_sidecar: bool,
    /// True if the files were written; otherwise they only would be.
    written: bool,
    pub(crate) files: Vec<String>,
    of: usize,
    /// The part of copies elsewhere, if any were named.
    #[serde(skip_serializing_if = "Option::is_none")]
    fetched: Option<Fetched>,
    /// The path that a damaged container was moved to.
    #[serde(skip_serializing_if = "Option::is_none")]
    aside: Option<String>,
    seconds: f64,
}

impl Report {
    pub(crate) fn new(repaired: &Repaired, archive: &Archive, started: Instant) -> Report {
        Report {
            form: repaired.form.name(),
            root: hex(&repaired.root),
            signed_by: archive.signed().map(SignedBy::new),
            sealed_sidecar: archive.sealed_kind() == Some(SealedKind::Sidecar),
            written: repaired.written,
            files: repaired.files.iter().map(show).collect(),
            of: repaired.of,
            fetched: None,
            aside: None,
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    /// The report with what copies elsewhere gave.
    pub(crate) fn with(self, fetched: Fetched, aside: Option<&Path>) -> Report {
        let written = self.written || fetched.has_any();
        Report { fetched: Some(fetched), aside: aside.map(show), written, ..self }
    }

    /// Tells whether anything was made anew or fetched.
    pub(crate) fn has_work(&self) -> bool {
        !self.files.is_empty() || self.fetched.as_ref().is_some_and(Fetched::has_any)
    }

    /// The outcome in one line.
    pub(crate) fn what(&self) -> String {
        let what = match (self.form, self.of) {
            ("container", _) if self.sealed_sidecar => "the sidecar itself".to_owned(),
            ("container", _) => "the container".to_owned(),
            (_, of) => format!("{} of {of} shard files", self.files.len()),
        };
        match (self.files.is_empty(), self.written) {
            (true, _) if self.sealed_sidecar => {
                "the sidecar itself is intact; its files were not looked at".to_owned()
            }
            (true, _) if self.fetched.as_ref().is_some_and(Fetched::has_any) => {
                "all is whole again".to_owned()
            }
            (true, _) => "all is intact: nothing to repair".to_owned(),
            (false, true) => format!("made anew: {what}"),
            (false, false) => format!("would be made anew: {what}"),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = self.fetched.as_ref().map(Fetched::describe).unwrap_or_default();
        out.extend(self.aside.as_ref().map(|aside| format!("the damaged container is {aside} now\n")));
        out.push_str(&(self.what() + "\n"));
        self.files.iter().take(LINES).for_each(|file| out.push_str(&format!("  {file}\n")));
        if self.files.len() > LINES {
            out.push_str(&format!("  and {} more\n", self.files.len() - LINES));
        }
        if self.sealed_sidecar {
            out.push_str("it is a sealed sidecar: with -i the files that it protects are mended too\n");
        }
        out.push_str(&format!("root {}\n", self.root));
        self.signed_by.iter().for_each(|signed_by| out.push_str(&signed_by.describe()));
        out
    }
}
