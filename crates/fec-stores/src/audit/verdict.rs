//! The question of an audit, and its result.

use super::chance;
use crate::error::StoreError;
use fec_base::class::Class;
use std::collections::BTreeSet;

/// The question of an audit.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The probability that a place is found out that has lost more than `rot`: above 0, below 1.
    pub confidence: f64,
    /// The share of the bytes of a place: above 0, below 1.
    pub rot: f64,
    /// Most bytes that the looks fetch from all places together, but for requests that are repeated.
    pub budget: Option<u64>,
    /// Chooses the bytes. Whoever knows it beforehand can keep these and lose the others.
    pub seed: u64,
    /// Places that are not looked at; objects that their lists lack are told all the same.
    pub left_out: BTreeSet<usize>,
}

/// The result of an audit.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Audited {
    /// The places that were looked at, or lack objects, or failed; in order.
    pub places: Vec<AuditedPlace>,
    /// For each segment the shards that are there by name and length, beyond those that restore it.
    pub margins: Vec<i64>,
    /// Writable places that lack the manifest.
    pub lack_manifest: Vec<usize>,
    /// Bytes fetched, those of manifests included.
    pub fetched_bytes: u64,
    /// Why places did not tell what they hold, and the loss of the meta.
    pub trouble: Vec<String>,
    pub(super) is_cut_off: bool,
    pub(super) is_meta_lost: bool,
}

/// The findings at a place.
#[derive(Clone, Debug, Default)]
pub struct AuditedPlace {
    /// Its number.
    pub place: usize,
    /// Objects of the right length.
    pub objects: u64,
    /// The bytes of their shards.
    pub bytes: u64,
    /// Objects of a wrong length: segment and shard.
    pub damaged: Vec<(u32, u32)>,
    /// Shards that should be here and are nowhere: segment and shard.
    pub missing: Vec<(u32, u32)>,
    /// Bytes that were chosen.
    pub looks: u64,
    /// Those of them whose leaves or records were not proved.
    pub wrong: u64,
    /// The positions of these leaves or records: segment, shard, set, and the first byte in the shard.
    pub wrong_at: Vec<(u32, u32, u32, u64)>,
    /// Ranges that were requested.
    pub requests: u64,
    /// Bytes of these.
    pub fetched_bytes: u64,
    /// The place failed, so nothing is shown.
    pub failed: Option<StoreError>,
}

impl AuditedPlace {
    /// The probability with which the audit would have found out the loss of this share of its bytes; `None` if nothing
    /// is shown: the place failed, or something is lost.
    pub fn shown(&self, rot: f64) -> Option<f64> {
        let is_well = self.failed.is_none() && self.wrong == 0 && !self.lacks();
        is_well.then(|| chance::shown(self.looks, rot))
    }

    /// The share of the bytes of its objects that are lost at most, with this confidence.
    pub fn most_lost(&self, confidence: f64) -> f64 {
        if self.failed.is_some() || self.looks == 0 {
            return 1.0;
        }
        chance::most_lost(self.looks, self.wrong, confidence)
    }

    /// Tells whether objects are missing or have a wrong length.
    pub fn lacks(&self) -> bool {
        !self.damaged.is_empty() || !self.missing.is_empty()
    }
}

impl Audited {
    /// Class of the state; `None`: everything that was looked at is right.
    pub fn class(&self) -> Option<Class> {
        let has_failed = self.is_cut_off || self.places.iter().any(|place| place.failed.is_some());
        if self.margin() < 0 {
            return Some(if has_failed { Class::Io } else { Class::Lost });
        }
        let is_wrong = self.places.iter().any(|place| place.wrong > 0 || place.lacks())
            || !self.lack_manifest.is_empty()
            || self.is_meta_lost;
        match (is_wrong, has_failed) {
            (true, _) => Some(Class::Mendable),
            (false, true) => Some(Class::Io),
            (false, false) => None,
        }
    }

    /// The smallest margin of any segment, by names and lengths.
    pub fn margin(&self) -> i64 {
        self.margins.iter().copied().min().unwrap_or(0)
    }
}
