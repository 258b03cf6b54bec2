//! The interface of a form of encodings.

use super::encoded::Encoded;
use super::repair::RepairJob;
use crate::error::Result;
use crate::input::Input;
use crate::leftovers::Leftovers;
use crate::report::Examination;
use fec_base::context::Context;
use fec_base::ranges::Ranges;
use fec_core::digest::Digest;
use fec_core::params;
use fec_keys::sign::Signatures;
use std::path::PathBuf;

/// A form of encodings.
pub(crate) trait Form: Sync {
    /// Number of the form.
    fn kind(&self) -> params::Form;

    /// Looks for encodings of this form. `seen` has the findings of the forms before, and takes those of this form.
    fn find(
        &self,
        input: &Input,
        seen: &mut Seen,
        wanted: Option<Digest>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Found>>;
}

/// Findings of the forms before in a single object (docs/FORMAT.md, section 9.3).
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The form that a header with a valid checksum gives the object.
    pub(crate) form: Option<params::Form>,
    /// Such a header names the wanted root, so the search is over.
    pub(crate) is_wanted: bool,
    /// Proved bytes, which cannot be anything else.
    pub(crate) proved: Ranges,
}

/// An encoding that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// `None` when its end is unknown.
    pub(crate) root: Option<Digest>,
    /// Tells whether it can be restored; `None` if only decoding can tell.
    pub(crate) is_restorable: Option<bool>,
    /// True if any record is there. Only `false` is certain before decoding.
    pub(crate) has_records: bool,
    /// All its records are in annexes of another object, where they are no damage.
    pub(crate) is_in_annexes: bool,
}

/// Found encodings of a form.
pub(crate) trait Found: Send + Sync {
    /// Number of the form.
    fn kind(&self) -> params::Form;
    /// All found encodings.
    fn candidates(&self) -> Vec<Candidate>;
    /// Encoding number `nth`, to restore from.
    fn encoded(&self, nth: usize) -> Encoded<'_>;
    /// Checks every byte of encoding number `nth`.
    fn examine(&self, nth: usize, context: &Context<'_>) -> Examination;
    /// Rewrites the damaged and missing files of encoding number `nth` according to `found`; returns their paths.
    fn repair(&self, nth: usize, found: &Examination, job: &RepairJob<'_>) -> Result<Vec<PathBuf>>;
    /// Signatures in the input, all of them unchecked.
    fn signatures(&self) -> &Signatures;
    /// Parts of the input that belong to no found encoding.
    fn leftovers(&self) -> &Leftovers;

    /// Number of shards of an encoding that have a file; `None` if shards are no files.
    fn given(&self, _nth: usize) -> Option<usize> {
        None
    }

    /// Files that claim to be shards of encoding number `nth`; none if shards are no files.
    fn files(&self, _nth: usize) -> Vec<PathBuf> {
        Vec::new()
    }
}
