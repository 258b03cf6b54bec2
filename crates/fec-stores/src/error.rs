//! Errors of calls on stores, and their meaning for an operation.

use super::placement::Crowded;
use fec_base::class::Class;
use fec_base::error::{Cause, ErrorKind};
use fec_base::names::{counted, hex};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use std::collections::BTreeMap;

/// Why a call on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object, bucket or folder.
    #[error("it is not there")]
    NotFound,
    /// The place itself is missing: no such bucket, or a disk that is not mounted.
    #[error("the place is not there")]
    Absent,
    /// The user's description of the place is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The store refuses access.
    #[error("not allowed: {0}")]
    Denied(String),
    /// The store does not answer, or cannot serve now. Another attempt may help.
    #[error("{0}")]
    Unavailable(String),
    /// The store was silent for the whole timeout. Another attempt may help, but may take as long.
    #[error("{0}")]
    Silent(String),
    /// The object ends before the last byte that was asked for.
    #[error("the object ends before byte {0}")]
    Short(u64),
    /// The store answered with other bytes than requested.
    #[error("it answered with other bytes than it was asked for: {0}")]
    WrongRange(String),
    /// The store cannot do this.
    #[error("this place cannot {0}")]
    Unsupported(&'static str),
    /// The store failed so often that no more requests go to it.
    #[error("it does not answer, and is not asked any more")]
    GivenUp,
    /// Enough had arrived elsewhere, and this was still under way.
    #[error("it was too slow to wait for, and enough had arrived")]
    Slow,
    /// The caller has stopped the operation.
    #[error("stopped")]
    Cancelled,
    /// The receiver of the bytes failed.
    #[error("{0}")]
    Sink(String),
    /// Any other failure; another attempt does not help.
    #[error("{0}")]
    Failed(String),
}

impl StoreError {
    /// Tells whether another attempt may succeed.
    pub fn is_worth_retrying(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Silent(_) | StoreError::WrongRange(_))
    }

    /// Tells whether the object may still exist, because the place did not deny it.
    pub fn leaves_open(&self) -> bool {
        !matches!(self, StoreError::NotFound | StoreError::Cancelled)
    }

    /// Tells whether the error concerns the whole place, not a single object or the caller.
    pub fn is_of_place(&self) -> bool {
        matches!(
            self,
            StoreError::Unavailable(_)
                | StoreError::Silent(_)
                | StoreError::Denied(_)
                | StoreError::Absent
                | StoreError::GivenUp
        )
    }
}

/// Notes the latest cause why a place does not give an object, or not all of it. "Given up" and "not found" do not
/// replace another cause, and cancellation is not noted.
pub(super) fn note(failures: &mut BTreeMap<usize, StoreError>, place: usize, why: StoreError) {
    match why {
        StoreError::Cancelled => {}
        StoreError::GivenUp | StoreError::NotFound => drop(failures.entry(place).or_insert(why)),
        why => drop(failures.insert(place, why)),
    }
}

/// Errors of sending shards to stores and of getting them back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoresError {
    /// A call on a store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A domain would hold more shards than may be lost.
    #[error("{0}")]
    Crowded(Crowded),
    /// The place is only for reading.
    #[error("this place is only for reading")]
    ReadOnly,
    /// No place is named.
    #[error("no place is named")]
    NoPlace,
    /// A place is named twice.
    #[error("this place is named twice")]
    Twice,
    /// Too few shards arrived: nothing can be promised.
    #[error("of segment {segment} only {landed} of {n} shards arrived, and {needed} are needed{}", Causes(.causes))]
    FewLanded {
        /// The segment.
        segment: u32,
        /// Shards that arrived.
        landed: u32,
        /// Shards of a set.
        n: u32,
        /// Shards that have to arrive.
        needed: u32,
        /// The cause at each place.
        causes: Vec<String>,
    },
    /// The manifest arrived nowhere, so nobody could find the segments.
    #[error("the manifest arrived nowhere{}", Causes(.0))]
    NoManifestLanded(Vec<String>),
    /// A place that a manifest cannot name.
    #[error(
        "the manifest cannot name it: place and domain have at most 2048 bytes each, and no control characters"
    )]
    Unrecordable,
    /// More segments than a manifest has room for.
    #[error("{segments} segments or more, and the manifest has room for {most}")]
    ManySegments {
        /// Segments, at least.
        segments: u64,
        /// Most segments.
        most: u64,
    },
    /// More places than a manifest names.
    #[error("more than {0} places")]
    ManyPlaces(usize),
    /// Nothing was found under a root.
    #[error("nothing was found under this root at {}{}", counted(*.places, "place"), Causes(.causes))]
    NotFound {
        /// Places that were asked.
        places: usize,
        /// The causes at those that failed.
        causes: Vec<String>,
    },
    /// A file is no list of when places were audited.
    #[error("it is something else than a list of what was audited when")]
    NotAState,
    /// A list of when places were audited is about another encoding.
    #[error("it is a list of what was audited when, of another root")]
    OtherState,
    /// Places gave no list, so nobody knows what they hold.
    #[error("these places could not be asked for what they hold, and nothing was removed{}", Causes(.0))]
    Unasked(Vec<String>),
    /// The root is a segment's of another encoding.
    #[error("it is a segment of {}, which needs it", hex(.0))]
    OfOther(Digest),
    /// Manifests of other encodings cannot be read, which may need the same objects.
    #[error(
        "{} of another encoding cannot be read: it may need the same objects, and nothing was removed{}",
        counted(.0.len(), "manifest"),
        Causes(.0)
    )]
    UnreadOthers(Vec<String>),
    /// Too few shards of a segment are available.
    #[error("of segment {segment} only {} can be had, and {k} are needed{}", counted(*.there, "shard"), Causes(.causes))]
    FewLeft {
        /// The segment.
        segment: u32,
        /// Shards that were found, intact as far as known.
        there: u32,
        /// Shards that restore it.
        k: u32,
        /// The cause at each place.
        causes: Vec<String>,
    },
    /// The root binds a manifest that breaks a rule.
    #[error("{0}")]
    Manifest(FormatError),
    /// A segment differs from the manifest's description.
    #[error("segment {0} is not what the manifest says")]
    OtherSegment(u32),
}

impl Cause for StoresError {
    fn class(&self) -> Class {
        match self {
            StoresError::Store(StoreError::Unsupported(_) | StoreError::Invalid(_)) => Class::Usage,
            StoresError::Store(_)
            | StoresError::FewLanded { .. }
            | StoresError::NoManifestLanded(_)
            | StoresError::Unasked(_)
            | StoresError::UnreadOthers(_) => Class::Io,
            StoresError::Crowded(_)
            | StoresError::OfOther(_)
            | StoresError::ReadOnly
            | StoresError::NoPlace
            | StoresError::NotAState
            | StoresError::OtherState
            | StoresError::Twice
            | StoresError::Unrecordable
            | StoresError::ManySegments { .. }
            | StoresError::ManyPlaces(_) => Class::Usage,
            // A place that does not answer may still have it.
            StoresError::NotFound { causes, .. } | StoresError::FewLeft { causes, .. } => {
                if causes.is_empty() { Class::Lost } else { Class::Io }
            }
            StoresError::Manifest(error) => fec_base::class::class_of(Some(error.class())),
            StoresError::OtherSegment(_) => Class::Untrue,
        }
    }
}

impl From<StoreError> for ErrorKind {
    fn from(error: StoreError) -> ErrorKind {
        match error {
            StoreError::Cancelled => ErrorKind::Cancelled,
            error => StoresError::from(error).into(),
        }
    }
}

/// A line for each cause.
struct Causes<'a>(&'a [String]);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|cause| write!(f, "\n  {cause}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The latest cause of a place is told. That it is not asked any more, or lacks an object, tells less.
    #[test]
    fn a_place_is_told_with_the_cause_that_says_most() {
        let denied = || StoreError::Denied("403".into());
        let failed = || StoreError::Failed("broken".into());
        for (causes, told) in [
            (vec![denied(), failed()], Some(failed())),
            (vec![denied(), StoreError::GivenUp], Some(denied())),
            (vec![denied(), StoreError::NotFound], Some(denied())),
            (vec![StoreError::GivenUp, failed()], Some(failed())),
            (vec![StoreError::NotFound, StoreError::GivenUp], Some(StoreError::NotFound)),
            (vec![StoreError::Cancelled], None),
            (vec![failed(), StoreError::Cancelled], Some(failed())),
        ] {
            let mut failures = BTreeMap::new();
            causes.iter().for_each(|why| note(&mut failures, 3, why.clone()));
            assert_eq!(failures.remove(&3), told, "{causes:?}");
            assert!(failures.is_empty());
        }
    }
}
