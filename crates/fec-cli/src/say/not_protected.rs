//! Entries of protected folders that are not protected: those that are new, those that patterns leave out, and those
//! that could not be read.

use crate::say::details::Details;
use crate::say::left_out;
use fec_base::names::{counted, show_bytes};
use fec_core::format::sidecar::parts::{Omitted, Reason};
use fec_sidecar::Sidecar;
use fec_sidecar::examine::Examined;
use serde::Serialize;

/// The entries that are not protected, for `verify`.
#[derive(Debug, Serialize)]
pub(crate) struct NotProtected {
    /// Entries that are new.
    unprotected: u64,
    #[serde(skip)]
    first: String,
    /// Entries that the sidecar's patterns leave out.
    excluded: u64,
    #[serde(skip)]
    excluded_by: String,
    /// Paths that were named and could not be protected.
    not_protected: Vec<Left>,
}

/// A path that could not be protected, and why.
#[derive(Debug, Serialize)]
pub(crate) struct Left {
    path: String,
    reason: &'static str,
}

impl Left {
    pub(crate) fn all(omitted: &[Omitted]) -> Vec<Left> {
        let word = |reason| match reason {
            Reason::Denied => "permission denied",
            Reason::Unreadable => "it could not be read",
            Reason::Changing => "it changed while it was read",
            Reason::TooLong => "its path is too long",
        };
        let left = |of: &Omitted| Left { path: show_bytes(&of.path), reason: word(of.reason) };
        omitted.iter().map(left).collect()
    }

    /// A few of the paths, or all, a line each.
    pub(crate) fn list(left: &[Left], is_all: bool) -> String {
        let mut details = Details::default();
        details.add(left.iter().map(|left| format!("{}: {}", left.path, left.reason)));
        details.describe(is_all)
    }
}

impl NotProtected {
    pub(crate) fn new(sidecar: &Sidecar, examined: &Examined) -> NotProtected {
        let unprotected = &examined.unprotected;
        NotProtected {
            unprotected: unprotected.count,
            first: unprotected.first.as_deref().map(show_bytes).unwrap_or_default(),
            excluded: unprotected.left_out,
            excluded_by: left_out::by_whom(&sidecar.stats().exclusion, &sidecar.stats().policy),
            not_protected: Left::all(&unprotected.omitted),
        }
    }

    /// The lines, with the command `update` that protects what is new.
    pub(crate) fn describe(&self, update: &str, is_all: bool) -> String {
        let mut out = String::new();
        if self.unprotected > 0 {
            let (new, first) = (counted(self.unprotected, "path"), &self.first);
            out.push_str(&format!(
                "not protected, because new: {new}, such as {first}; to add what is new:\n  {update}\n"
            ));
        }
        if self.excluded > 0 {
            let paths = counted(self.excluded, "path");
            out.push_str(&format!("left out by {}, as the sidecar remembers: {paths}\n", self.excluded_by));
        }
        if !self.not_protected.is_empty() {
            let count = self.count();
            out.push_str(&format!(
                "not protected, although named: {count}; to protect it when it can be read:\n"
            ));
            out.push_str(&format!("  {update}\n{}", Left::list(&self.not_protected, is_all)));
        }
        out
    }

    /// The paths that could not be protected, in a few words; empty if there are none.
    pub(crate) fn verdict(&self) -> Option<String> {
        (!self.not_protected.is_empty()).then(|| format!("{} not protected", self.count()))
    }

    fn count(&self) -> String {
        counted(self.not_protected.len(), "path")
    }
}
