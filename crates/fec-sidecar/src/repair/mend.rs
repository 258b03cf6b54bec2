//! The options of a repair, and its result.

use crate::examine::{Examined, Selection};
use crate::mirrors::Mirrors;
use crate::repair::left_out::LeftOut;
use fec_base::error::Error;
use std::path::Path;

/// Options of a repair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mend<'a> {
    /// True if files that somebody changed are reverted too.
    pub revert: bool,
    /// True if a repair goes ahead even if not everything can be mended.
    pub partial: bool,
    /// The entries that are repaired, and with them what an interrupted repair has begun; the sidecar itself is left.
    /// `None` stands for everything.
    pub only: Option<&'a Selection>,
    /// The folder that all recorded files are written to. Nothing else is changed then.
    pub out: Option<&'a Path>,
    /// A new tar archive that keeps everything that is written over.
    pub undo: Option<&'a Path>,
    /// True if nothing is written at all.
    pub dry_run: bool,
    /// True if everything is on the disk before the repair ends.
    pub sync: bool,
    /// Copies of the files elsewhere, from which lost blocks are fetched that the recovery data cannot mend.
    pub mirrors: Option<&'a Mirrors<'a>>,
    /// The user and the group that restored files get, if root runs the repair: those of the folder around them, unless
    /// they are given.
    pub owner: Option<(u32, Option<u32>)>,
}

/// The result of a repair.
#[must_use = "files may be left as they are, or lost"]
#[derive(Debug)]
pub struct Mended {
    /// The findings before the repair.
    pub found: Examined,
    /// Entries that are as recorded again, or would be.
    pub mended: Vec<usize>,
    /// Entries that somebody changed, and that were left alone.
    pub left: Vec<usize>,
    /// Entries that could not be mended.
    pub failed: Vec<usize>,
    /// True if the caller lacks permission to read or write some of them, or the room.
    pub is_denied: bool,
    /// Entries, or parts of them, that the target cannot hold.
    pub left_out: Vec<LeftOut>,
    /// True if the sidecar was mended, or would be.
    pub sidecar: bool,
    /// Why a damaged sidecar was left alone.
    pub sidecar_left: Option<Error>,
    /// Why the first entry failed that the system would not let be written. Without `partial` it is an error.
    pub cause: Option<Error>,
    /// The contradiction of a sidecar whose recovery data does not mend. Without `partial` it is an error.
    pub contradiction: Option<Error>,
    /// Bytes of files that were written.
    pub written: u64,
}
