//! Reasons why a reader rejects bytes, and the class that decides the caller's options.

use thiserror::Error;

/// The classes of the format specification, section 11, as far as one object alone can show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The bytes differ from what was written; the copy, record or shard does not count.
    Damaged,
    /// The root binds it and it breaks a rule: not canonical, not a codeword, padding not zero.
    Invalid,
    /// A limit, or a version, hash, form, flag or critical entry that this build does not know.
    Refused,
}

/// An object of a format that is not accepted, and the first rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The checksum, or a hash that the object carries of itself, does not match its bytes.
    #[error("{0} does not match its bytes")]
    Damaged(&'static str),
    /// The checksum of a header does not match, so its fields say nothing.
    #[error("the checksum of {0} does not match its bytes")]
    Checksum(&'static str),
    /// A format version other than 1.
    #[error("format version {0} is not known to this build (it knows 1)")]
    Version(u8),
    /// A hash number other than 1 or 2.
    #[error("hash number {0} is not known to this build")]
    Hash(u8),
    /// A form number that is unknown, reserved, or out of place here.
    #[error("form number {0} is not known here")]
    Form(u8),
    /// A reserved flag bit is set.
    #[error("flags {0:#04x} have a bit that this build does not know")]
    Flags(u8),
    /// A number is beyond what this build accepts.
    #[error("{what} is {value}, beyond the limit of {limit}")]
    Limit {
        /// The quantity.
        what: &'static str,
        /// The value read.
        value: u128,
        /// The most (or for k, the least) that is accepted.
        limit: u128,
    },
    /// Sets that a writer was asked for are smaller than the format allows.
    #[error("sets of this code have at least {least} bytes of payload")]
    SmallSet {
        /// The least.
        least: u64,
    },
    /// The geometry is not the only one allowed for its payload.
    #[error("the geometry is not canonical: {0}")]
    NotCanonical(&'static str),
    /// The shard or set number is outside the geometry.
    #[error("{what} {value} does not exist: there are {count}")]
    OutOfRange {
        /// `shard` or `set`.
        what: &'static str,
        /// The number read.
        value: u32,
        /// The number of shards or sets.
        count: usize,
    },
    /// An even meta type that this build does not know: it may change the meaning of the payload.
    #[error("meta entry of type {0} is critical and not known to this build")]
    CriticalMeta(u8),
    /// A part of a sidecar's catalog that this build does not know: it may change the meaning of the rest.
    #[error("the catalog has {what} {value}, which is not known to this build")]
    CriticalCatalog {
        /// The field.
        what: &'static str,
        /// The value read.
        value: u64,
    },
    /// The catalog of a sidecar, or the bytes behind it, break a rule.
    #[error("the catalog is not valid: {0}")]
    Catalog(&'static str),
    /// A manifest breaks a rule.
    #[error("the manifest is not valid: {0}")]
    Manifest(&'static str),
    /// The meta bytes break a rule.
    #[error("the meta is not valid: {0}")]
    Meta(&'static str),
}

impl FormatError {
    /// Tells whether the object has the magic, the version and the checksum of its kind, and breaks another rule: a
    /// writer made it so, damage did not.
    pub fn is_behind_checksum(&self) -> bool {
        !matches!(self, FormatError::Version(_) | FormatError::Checksum(_))
    }

    /// The class that decides the exit code and whether the object counts as an erasure.
    pub fn class(&self) -> Class {
        match self {
            FormatError::Damaged(_) | FormatError::Checksum(_) => Class::Damaged,
            FormatError::Version(_)
            | FormatError::Hash(_)
            | FormatError::Form(_)
            | FormatError::Flags(_)
            | FormatError::Limit { .. }
            | FormatError::SmallSet { .. }
            | FormatError::CriticalMeta(_)
            | FormatError::CriticalCatalog { .. } => Class::Refused,
            FormatError::NotCanonical(_)
            | FormatError::OutOfRange { .. }
            | FormatError::Meta(_)
            | FormatError::Manifest(_)
            | FormatError::Catalog(_) => Class::Invalid,
        }
    }
}
