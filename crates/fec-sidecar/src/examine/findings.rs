//! The findings on files and their sidecar.

use crate::catalog::bits::Bits;
use crate::catalog::moved::Moved;
use crate::examine::verdict::{State, Traces};
use fec_base::error::{Error, ErrorKind};
use fec_base::ranges::RangeList;
use fec_core::format::sidecar::parts::Omitted;
use std::collections::BTreeSet;
use std::ops::Range;
use std::{fmt, io};

/// How much is examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every byte of the files and of the sidecar.
    #[default]
    All,
    /// Existence, sizes and times of files; no byte of files or recovery shards is read.
    Quick,
    /// The sidecar alone.
    Sidecar,
    /// Existence, sizes and times of files, and some bytes of files and sidecar.
    Part,
}

/// Why something cannot be read: the error number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause(i32);

impl Cause {
    /// The cause of an error, if its error number is `code`.
    pub(crate) fn of(error: &Error, code: i32) -> Option<Cause> {
        match &error.kind {
            ErrorKind::Io(error) if error.raw_os_error() == Some(code) => Some(Cause(code)),
            _ => None,
        }
    }

    /// Tells whether the reader lacks permission, which tells nothing of the content.
    pub fn is_denied(self) -> bool {
        [libc::EACCES, libc::EPERM].contains(&self.0)
    }
}

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Cause {
        Cause(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<Cause> for io::Error {
    fn from(cause: Cause) -> io::Error {
        io::Error::from_raw_os_error(cause.0)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        io::Error::from(*self).fmt(f)
    }
}

/// An entry that is not intact.
#[derive(Clone, Debug)]
pub struct EntryReport {
    /// The number of the entry in the catalog.
    pub entry: usize,
    /// The state of the entry.
    pub state: State,
    /// Bytes of the recorded entry that are lost.
    pub damage: RangeList,
    /// Why the entry cannot be opened or read.
    pub cause: Option<Cause>,
    /// The path, relative to the base, that the entry was moved to, whole or damaged.
    pub moved_to: Option<Box<[u8]>>,
    /// True for an edited file that may be a damaged one: it has its size, and few of its blocks are others or no file
    /// has kept its time.
    pub may_be_damage: bool,
    /// True for an edited file of which nothing tells damage from an edit: no record is proved, or it is in a copy.
    pub is_unclear: bool,
    /// True for a rotten file whose time, size or mark would be those of an edit: the policy alone says that nobody
    /// writes to it.
    pub is_by_policy: bool,
    /// The fingerprint of the file when it was examined.
    pub(crate) seen: Option<u64>,
    /// Whole blocks without positions that are not zeros, by number.
    pub(crate) no_zeros: Vec<Range<u64>>,
    /// True if all bytes are right and in place, whatever else is wrong with the entry.
    pub(crate) is_right: bool,
}

impl EntryReport {
    /// Tells whether the reader lacks permission, so that damage is unknown.
    pub fn is_denied(&self) -> bool {
        self.state == State::Unreadable && self.cause.is_some_and(Cause::is_denied)
    }
}

/// Bytes that could be lost and mended. All are counted in whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spare {
    /// Bytes in one piece, anywhere.
    pub one_piece: u64,
    /// Bytes of blocks, whichever these are.
    pub anywhere: u64,
    /// Bytes of blocks that are lost at random, in 999 of 1,000 cases.
    pub scattered: u64,
    /// Bytes of all blocks that have anything in them.
    pub of: u64,
}

/// The recovery shards that losses have used, and the losses that could still be mended.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Recovery shards of the set that has used the greatest part of them.
    pub of: u64,
    /// Recovery shards of that set that are needed, or lost themselves.
    pub used: u64,
    /// The bytes that could additionally be lost.
    pub spare: Spare,
    /// Sets that have lost more than they can mend.
    pub lost_sets: u64,
    /// Lost bytes of files in those sets.
    pub lost_bytes: u64,
    /// Lost bytes of entries that are damaged or missing, without those that somebody edited.
    pub damaged_bytes: u64,
    /// The entries that these bytes are of.
    pub(crate) damaged_entries: BTreeSet<u32>,
}

/// Unprotected items in the protected folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unprotected {
    /// Files, links and folders; the content of these folders is not counted.
    pub count: u64,
    /// The path of the first item, relative to the base.
    pub first: Option<Box<[u8]>>,
    /// Items that the sidecar's patterns leave out, and that do not count.
    pub left_out: u64,
    /// Paths that are there, were named, and could not be protected; they do not count.
    pub omitted: Vec<Omitted>,
    /// A path that says that a program is at work, by the policy.
    pub busy: Option<Box<[u8]>>,
}

/// The findings on files and sidecar.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Examined {
    /// Entries that are not intact, in order.
    pub entries: Vec<EntryReport>,
    /// Entries that count as edited for lack of proof, though their size and time are as recorded: they may be rotten.
    pub unproved: u64,
    /// Files with intact bytes and another time, or another time of change or inode.
    pub touched: u64,
    /// Entries that [`leave_out`](Examined::leave_out) has forgotten.
    pub left_out: u64,
    /// New or left-out items in protected folders; empty unless files were examined.
    pub unprotected: Unprotected,
    /// All recovery shards.
    pub recovery: u64,
    /// Recovery shards that are not intact.
    pub recovery_damaged: u64,
    /// Recovery shards that are intact, but not in their places.
    pub recovery_displaced: u64,
    /// The margin for further losses.
    pub margin: Margin,
    /// Damage of the sidecar beside lost recovery shards and pieces.
    pub sidecar_damage: Vec<String>,
    /// True if the container of a sealed sidecar is damaged, as far as it was examined.
    pub container_damaged: bool,
    /// The worth of times and marks, by the files that are whole.
    pub(crate) traces: Traces,
    /// Positions of files that are missing or damaged, and whose bytes have to be computed.
    pub(crate) erased: Bits,
    /// Positions of such files whose bytes are zeros, or stand in other protected files too.
    pub(crate) known: Bits,
    /// Positions of files that the reader may not read, unless something else is wrong with them.
    pub(crate) denied: Bits,
    /// Bytes of files that were found in other places, and those of known positions.
    pub(crate) moved: Moved,
    /// Recovery shards that are missing or damaged, over all groups.
    pub(crate) recovery_erased: Bits,
}

impl Examined {
    /// Tells whether everything is unchanged, the sidecar too.
    pub fn is_intact(&self) -> bool {
        self.entries.iter().all(|report| report.state == State::Mode) && self.sidecar_is_intact()
    }

    /// Tells whether everything is unchanged but for entries in this state.
    pub fn is_intact_but(&self, state: State) -> bool {
        let is_so = |report: &EntryReport| report.state == State::Mode || report.state == state;
        self.entries.iter().all(is_so) && self.sidecar_is_intact()
    }

    /// Tells whether the sidecar itself is unchanged.
    pub fn sidecar_is_intact(&self) -> bool {
        self.recovery_damaged == 0
            && self.recovery_displaced == 0
            && self.sidecar_damage.is_empty()
            && !self.container_damaged
    }

    /// Tells whether all bytes of an entry are right and in place, whatever else is wrong with it.
    pub(crate) fn has_all_bytes(&self, nth: usize) -> bool {
        self.report(nth).is_none_or(|report| report.is_right)
    }

    /// Tells whether everything can be mended that is damaged or missing. Edits are not lost.
    pub fn is_mendable(&self) -> bool {
        self.margin.damaged_bytes == 0
    }

    /// Tells whether a partial repair would mend anything.
    pub fn is_partly_mendable(&self) -> bool {
        let is_lost = |report: &EntryReport| self.margin.damaged_entries.contains(&(report.entry as u32));
        !self.sidecar_is_intact()
            || self.entries.iter().any(|report| report.state.is_damage() && !is_lost(report))
    }

    /// Tells whether the files are a copy without its times: few files with intact bytes have kept their time, and none
    /// its time of change and inode. Nothing tells damage from edits then.
    pub fn is_copy(&self) -> bool {
        self.traces.is_copy
    }

    /// Tells whether all bytes can be computed from the rest, those of edited files too.
    pub fn is_revertible(&self) -> bool {
        self.margin.lost_sets == 0
    }

    /// Forgets entries in these states, but for those of which nothing tells damage from an edit, and with `is_new`
    /// what is not protected. Their lost blocks still count in the margin.
    pub fn leave_out<'a>(&mut self, states: impl Iterator<Item = &'a State>, is_new: bool) {
        let states: Vec<State> = states.copied().collect();
        let before = self.entries.len();
        self.entries.retain(|report| report.is_unclear || !states.contains(&report.state));
        self.left_out = (before - self.entries.len()) as u64;
        if is_new {
            self.unprotected = Unprotected::default();
        }
    }

    /// The entries that the reader has no permission for.
    pub fn denied(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().filter(|report| report.is_denied()).map(|report| report.entry)
    }

    /// The report of an entry that is not intact.
    pub(crate) fn report(&self, entry: usize) -> Option<&EntryReport> {
        let at = self.entries.binary_search_by_key(&entry, |report| report.entry).ok()?;
        Some(&self.entries[at])
    }

    /// The state of an entry.
    pub fn state(&self, entry: usize) -> State {
        self.report(entry).map_or(State::Intact, |report| report.state)
    }

    /// The number of entries in this state.
    pub fn count(&self, state: State) -> u64 {
        self.entries.iter().filter(|report| report.state == state).count() as u64
    }
}
