//! The words of `rekey`.

use super::stores::{Lacking, list};
use crate::run::target::quoted;
use fec_base::names::{bytes, counted, hex};
use fec_stores::places::Places;
use fec_stores::rekey::Rekeyed;
use fec_stores::stored::Stored;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// The outcome of `rekey`.
#[derive(Debug, Serialize)]
pub(crate) struct RekeyReport {
    /// The root from now on, and the one that was given.
    root: String,
    old_root: String,
    recipients: usize,
    manifest_bytes: u64,
    /// Places that have the new manifest.
    manifests: Vec<String>,
    missing: Vec<Lacking>,
    seconds: f64,
    /// The command that removes the old manifest.
    #[serde(skip)]
    forget: String,
}

impl RekeyReport {
    pub(crate) fn new(
        stored: &Stored<'_>,
        (done, recipients): (&Rekeyed, usize),
        places: &Places,
        from: &[String],
        started: Instant,
    ) -> RekeyReport {
        let from: String = from.iter().map(|place| format!(" --from {}", quoted(Path::new(place)))).collect();
        let old_root = hex(&stored.root());
        RekeyReport {
            root: hex(&done.root),
            forget: format!("fec forget --root {old_root}{from}"),
            old_root,
            recipients,
            manifest_bytes: done.manifest_bytes,
            manifests: done.manifests.iter().map(|place| places.get(*place).target.name()).collect(),
            missing: done.missing.iter().map(|missing| Lacking::new(missing, places)).collect(),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let mut out = format!(
            "sealed for {}: a manifest of {} at {}, and no shard sent\n",
            counted(self.recipients, "recipient"),
            bytes(self.manifest_bytes),
            counted(self.manifests.len(), "place"),
        );
        if !self.missing.is_empty() {
            out.push_str(
                "it did not arrive everywhere; fec repair --root ROOT --from … sends it to the others:\n",
            );
            list(self.missing.iter().map(Lacking::describe), &mut out);
        }
        let _ = writeln!(
            out,
            "whoever could open it before still can, while the old manifest is there; this removes it:\n  {}",
            self.forget
        );
        let _ = write!(out, "{:.2} s; keep the new root:", self.seconds);
        out
    }
}
