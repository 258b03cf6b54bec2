//! The generations that a sidecar holds.

use crate::Sidecar;
use fec_base::context::Settings;
use fec_base::error::Result;
use fec_core::digest::Digest;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::stat::Stats;

/// A generation of a sidecar: the files as one run of [`protect`](crate::protect::protect) or
/// [`update`](crate::update::update) recorded them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number; the first generation is 1.
    pub generation: u64,
    /// The root, by which it is opened and restored.
    pub root: Digest,
    /// Files, without further names of them.
    pub files: u64,
    /// Bytes of the files.
    pub len: u64,
    /// The latest time of modification of a file, in seconds since 1970; `None` without files.
    pub newest: Option<i64>,
}

impl Recorded {
    fn new(generation: u64, root: Digest, catalog: &Catalog, stats: &Stats) -> Recorded {
        let newest = catalog.files().map(|(nth, _)| stats.entries[nth].seconds).max();
        Recorded { generation, root, files: catalog.files().count() as u64, len: catalog.files_len(), newest }
    }
}

impl Sidecar {
    /// This generation, and those before that can still be read, the newest first. How much of their files can be
    /// restored, only a repair tells.
    ///
    /// # Errors
    /// Those of the file.
    pub fn generations(&self, settings: &Settings) -> Result<Vec<Recorded>> {
        let mut all = vec![Recorded::new(self.generation(), self.root(), &self.catalog, &self.stats)];
        for opened in self.opened_before(settings)? {
            let generation = opened.of.layout.generation;
            // A generation that breaks a rule is none.
            let Ok(parsed) = opened.parse() else { continue };
            all.push(Recorded::new(generation, parsed.root, &parsed.catalog, &parsed.stats));
        }
        all.sort_unstable_by_key(|of| std::cmp::Reverse(of.generation));
        Ok(all)
    }
}
