//! What a form provides.

use super::encoded::Encoded;
use super::repair::RepairJob;
use crate::context::Context;
use crate::error::Result;
use crate::input::Input;
use crate::leftovers::Leftovers;
use crate::ranges::Ranges;
use crate::report::Examination;
use crate::sign::Signatures;
use fec_core::digest::Digest;
use fec_core::params;
use std::path::PathBuf;

/// A form of encodings.
pub(crate) trait Form: Sync {
    /// Its number.
    fn kind(&self) -> params::Form;

    /// Looks for encodings of this form. `seen` is what the forms before have found, and is added to.
    fn find(
        &self,
        input: &Input,
        seen: &mut Seen,
        wanted: Option<Digest>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Found>>;
}

/// What the forms before have found in an object that stands alone (docs/FORMAT.md, section 9.3).
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The form that a header which checks gives the object.
    pub(crate) form: Option<params::Form>,
    /// Such a header names the root that is wanted: nothing else has to be looked for.
    pub(crate) is_wanted: bool,
    /// Bytes that are proved: nothing in them is anything else.
    pub(crate) proved: Ranges,
}

/// An encoding that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// `None` when its end is not known.
    pub(crate) root: Option<Digest>,
    /// Whether it can be restored, if that is known without decoding.
    pub(crate) is_restorable: Option<bool>,
    /// Whether anything is there that it could be restored from; only `false` is sure before decoding.
    pub(crate) has_records: bool,
    /// All of it stands in annexes of something else, which is no damage there.
    pub(crate) is_in_annexes: bool,
}

/// Encodings of one form that were found.
pub(crate) trait Found: Send + Sync {
    /// The form's number.
    fn kind(&self) -> params::Form;
    /// All of them.
    fn candidates(&self) -> Vec<Candidate>;
    /// Number `nth` of them, to be restored.
    fn encoded(&self, nth: usize) -> Encoded<'_>;
    /// Checks every byte of number `nth`.
    fn examine(&self, nth: usize, context: &Context<'_>) -> Examination;
    /// Makes anew what is not intact of number `nth`, of which `found` tells; returns where that stands.
    fn repair(&self, nth: usize, found: &Examination, job: &RepairJob<'_>) -> Result<Vec<PathBuf>>;
    /// The signatures that stand in the input, none of them checked.
    fn signatures(&self) -> &Signatures;
    /// What belongs to none of them.
    fn leftovers(&self) -> &Leftovers;

    /// Of how many shards of an encoding there is a file, where shards are files.
    fn given(&self, _nth: usize) -> Option<usize> {
        None
    }

    /// The files that claim to be shards of number `nth`, where shards are files.
    fn files(&self, _nth: usize) -> Vec<PathBuf> {
        Vec::new()
    }
}
