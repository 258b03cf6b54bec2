//! The choice of what is left out: the given patterns, and those that an updated sidecar remembers.

use crate::Sidecar;
use crate::catalog::patterns::{Patterns, normal};
use crate::catalog::proof::Proof;
use crate::error::SidecarError;
use fec_base::error::{Action, Error, Result};
use fec_core::format::sidecar::parts::Exclusion;
use fec_core::format::sidecar::policy::Rules;
use std::collections::BTreeSet;

/// The patterns, and what they left out.
#[derive(Clone, Debug, Default)]
pub struct Excluded {
    /// All patterns, and whether caches are left out.
    pub by: Exclusion,
    /// Paths that were left out; of a folder, only the folder counts.
    pub count: u64,
    /// Given patterns that matched nothing.
    pub unmatched: Vec<String>,
    /// The part that was not given, and that the updated sidecar remembers.
    pub remembered: Exclusion,
    /// The part that the updated sidecar remembers, and that was not used, since the root or signature that was asked
    /// for does not prove it.
    pub unproved: Exclusion,
}

impl Excluded {
    /// The given patterns, and those of an updated sidecar.
    ///
    /// # Errors
    /// [`SidecarError::Pattern`], [`SidecarError::ManyPatterns`].
    pub(super) fn new(
        (patterns, caches): (&[String], bool),
        anchor: Vec<u8>,
        old: Option<&Sidecar>,
    ) -> Result<Excluded> {
        let fail = |cause| Error::new(Action::Protect, cause);
        let given = patterns.iter().map(|typed| normal(typed)).collect::<std::result::Result<_, _>>();
        let given: BTreeSet<String> = given.map_err(fail)?;
        let more = old.map_or_else(Exclusion::default, |old| {
            let Exclusion { caches: had_caches, patterns, .. } = &old.stats.exclusion;
            let patterns = patterns.iter().filter(|pattern| !given.contains(*pattern)).cloned().collect();
            Exclusion { caches: *had_caches && !caches, anchor: Vec::new(), patterns }
        });
        let (remembered, unproved) = match old {
            Some(old) if old.proof() == Proof::Root => (Exclusion::default(), more),
            _ => (more, Exclusion::default()),
        };
        let patterns: BTreeSet<String> = given.iter().chain(&remembered.patterns).cloned().collect();
        let caches = caches || remembered.caches;
        // An anchor without anything that counts from it would only make two sidecars differ.
        let anchor = if caches || !patterns.is_empty() { anchor } else { Vec::new() };
        let by = Exclusion { caches, anchor, patterns: patterns.into_iter().collect() };
        if !by.is_valid() {
            return Err(fail(SidecarError::ManyPatterns));
        }
        Ok(Excluded { by, remembered, unproved, ..Excluded::default() })
    }

    /// Runs `work` with the patterns and what a policy leaves out, and notes what they have left out.
    pub(super) fn run<T>(&mut self, rules: &Rules, work: impl FnOnce(&Patterns<'_>) -> T) -> T {
        let by = self.by.clone();
        let patterns = Patterns::of(&by, rules);
        let done = work(&patterns);
        self.count = patterns.left_out();
        let is_given = |pattern: &String| !self.remembered.patterns.contains(pattern);
        self.unmatched = patterns.unmatched().map(str::to_owned).filter(is_given).collect();
        done
    }
}
