//! Why calls on stores fail, and what that means for an operation.

use super::placement::Crowded;
use crate::error::Class;
use fec_core::error::FormatError;
use std::collections::BTreeMap;

/// Why a call on a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object, bucket or folder.
    #[error("it is not there")]
    NotFound,
    /// The place itself is not there: no such bucket, a disk that is not mounted.
    #[error("the place is not there")]
    Absent,
    /// What the user wrote of the place cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The store does not let us.
    #[error("not allowed: {0}")]
    Denied(String),
    /// It does not answer, or says that it cannot now: trying again may help.
    #[error("{0}")]
    Unavailable(String),
    /// It said nothing for as long as it may: trying again may help, but takes as long.
    #[error("{0}")]
    Silent(String),
    /// It answered with other bytes than it was asked for.
    #[error("it answered with other bytes than it was asked for: {0}")]
    WrongRange(String),
    /// It cannot do this.
    #[error("this place cannot {0}")]
    Unsupported(&'static str),
    /// It has failed so often that it is not asked any more.
    #[error("it does not answer, and is not asked any more")]
    GivenUp,
    /// The caller has stopped it.
    #[error("stopped")]
    Cancelled,
    /// Whoever takes the bytes has failed.
    #[error("{0}")]
    Sink(String),
    /// Anything else: trying again does not help.
    #[error("{0}")]
    Failed(String),
}

impl StoreError {
    /// Whether another attempt may succeed.
    pub fn is_worth_retrying(&self) -> bool {
        matches!(self, StoreError::Unavailable(_) | StoreError::Silent(_) | StoreError::WrongRange(_))
    }

    /// Whether the object may be there all the same: the place did not say that it is not.
    pub fn leaves_open(&self) -> bool {
        !matches!(self, StoreError::NotFound | StoreError::Cancelled)
    }

    /// Whether it speaks of the place, and not of one object or of the caller.
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

/// Notes why a place does not give something, or not all. That it is not asked any more, and that something else is not there,
/// says less than what was wrong before; that the caller has stopped it, nothing.
pub(super) fn note(failures: &mut BTreeMap<usize, StoreError>, place: usize, why: StoreError) {
    match why {
        StoreError::Cancelled => {}
        StoreError::GivenUp | StoreError::NotFound => drop(failures.entry(place).or_insert(why)),
        why => drop(failures.insert(place, why)),
    }
}

/// Why shards cannot be sent to stores, or be had from them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoresError {
    /// A call on a store failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// A domain would hold more shards than may be lost.
    #[error("{0}")]
    Crowded(Crowded),
    /// A place that is only for reading.
    #[error("this place is only for reading")]
    ReadOnly,
    /// No place.
    #[error("no place is named")]
    NoPlace,
    /// The same place twice.
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
        /// So many have to arrive.
        needed: u32,
        /// What went wrong, place by place.
        causes: Vec<String>,
    },
    /// The manifest arrived nowhere: nobody would find the segments.
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
        /// So many, at least.
        segments: u64,
        /// So many at most.
        most: u64,
    },
    /// More places than a manifest names.
    #[error("more than {0} places")]
    ManyPlaces(usize),
    /// Nothing was found under a root.
    #[error("nothing was found under this root at {places} places{}", Causes(.causes))]
    NotFound {
        /// Places that were asked.
        places: usize,
        /// What went wrong at some of them.
        causes: Vec<String>,
    },
    /// Too few shards of a segment can be had.
    #[error("of segment {segment} only {there} shards can be had, and {k} are needed{}", Causes(.causes))]
    FewLeft {
        /// The segment.
        segment: u32,
        /// Shards that were found intact, or as far as is known.
        there: u32,
        /// So many restore it.
        k: u32,
        /// What went wrong, place by place.
        causes: Vec<String>,
    },
    /// The root binds a manifest that breaks a rule.
    #[error("{0}")]
    Manifest(FormatError),
    /// A segment that is not of the payload that the manifest says.
    #[error("segment {0} is not what the manifest says")]
    OtherSegment(u32),
    /// The caller has stopped it.
    #[error("stopped")]
    Stopped,
}

impl StoresError {
    /// What it means for the caller.
    pub fn class(&self) -> Class {
        match self {
            StoresError::Store(StoreError::Unsupported(_) | StoreError::Invalid(_)) => Class::Usage,
            StoresError::Store(_)
            | StoresError::FewLanded { .. }
            | StoresError::NoManifestLanded(_)
            | StoresError::Stopped => Class::Io,
            StoresError::Crowded(_)
            | StoresError::ReadOnly
            | StoresError::NoPlace
            | StoresError::Twice
            | StoresError::Unrecordable
            | StoresError::ManySegments { .. }
            | StoresError::ManyPlaces(_) => Class::Usage,
            // What does not answer may have it.
            StoresError::NotFound { causes, .. } | StoresError::FewLeft { causes, .. } => {
                if causes.is_empty() { Class::Lost } else { Class::Io }
            }
            StoresError::Manifest(error) => crate::class::class_of(Some(error.class())),
            StoresError::OtherSegment(_) => Class::Untrue,
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
