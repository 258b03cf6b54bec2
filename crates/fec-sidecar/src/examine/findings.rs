//! The findings on files and their sidecar.

use crate::catalog::bits::Bits;
use crate::catalog::moved::Moved;
use fec_base::error::{Error, ErrorKind};
use fec_base::ranges::RangeList;
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

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The entry is unchanged.
    Intact,
    /// The bytes differ, though nobody wrote to the file: its size and time are unchanged.
    Rotten,
    /// Somebody changed the entry: its time, size or kind differs, and its content too.
    Edited,
    /// Bytes were inserted or removed, so that later bytes have moved within the file.
    Shifted,
    /// The path is empty, and a whole copy of the file is elsewhere.
    Moved,
    /// The path is empty.
    Missing,
    /// The entry cannot be read.
    Unreadable,
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
    /// The path, relative to the base, that the entry was moved to.
    pub moved_to: Option<Box<[u8]>>,
    /// True if all bytes are right and in place, whatever else is wrong with the entry.
    pub(crate) is_right: bool,
}

impl EntryReport {
    /// Tells whether the reader lacks permission, so that damage is unknown.
    pub fn is_denied(&self) -> bool {
        self.state == State::Unreadable && self.cause.is_some_and(Cause::is_denied)
    }
}

/// The recovery shards that losses have used, and the losses that could still be mended.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Recovery shards of the set that has used the greatest part of them.
    pub of: u64,
    /// Recovery shards of that set that are needed, or lost themselves.
    pub used: u64,
    /// Bytes that could additionally be lost in one piece, anywhere.
    pub one_piece: u64,
    /// Sets that have lost more than they can mend.
    pub lost_sets: u64,
    /// Lost bytes of files in those sets.
    pub lost_bytes: u64,
}

/// Unprotected items in the protected folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unprotected {
    /// Files, links and folders; the content of these folders is not counted.
    pub count: u64,
    /// The path of the first item, relative to the base.
    pub first: Option<Box<[u8]>>,
}

/// The findings on files and sidecar.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Examined {
    /// Entries that are not intact, in order.
    pub entries: Vec<EntryReport>,
    /// Entries that count as edited for lack of proof, though their size and time are as recorded: they may be rotten.
    pub unproved: u64,
    /// Entries with intact bytes and another time or other permissions.
    pub touched: u64,
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
    /// Positions of files that are missing or damaged.
    pub(crate) erased: Bits,
    /// Positions of files that the reader may not read, unless something else is wrong with them.
    pub(crate) denied: Bits,
    /// Bytes of files that were found in other places.
    pub(crate) moved: Moved,
    /// Recovery shards that are missing or damaged, over all groups.
    pub(crate) recovery_erased: Bits,
}

impl Examined {
    /// Tells whether everything is unchanged, the sidecar too.
    pub fn is_intact(&self) -> bool {
        self.entries.is_empty() && self.sidecar_is_intact()
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
        let at = self.entries.binary_search_by_key(&nth, |report| report.entry);
        at.map_or(true, |at| self.entries[at].is_right)
    }

    /// Tells whether all losses can be computed from the rest.
    pub fn is_mendable(&self) -> bool {
        self.margin.lost_sets == 0
    }

    /// The entries that the reader has no permission for.
    pub fn denied(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().filter(|report| report.is_denied()).map(|report| report.entry)
    }

    /// The state of an entry.
    pub fn state(&self, entry: usize) -> State {
        let at = self.entries.binary_search_by_key(&entry, |report| report.entry);
        at.map_or(State::Intact, |at| self.entries[at].state)
    }

    /// The number of entries in this state.
    pub fn count(&self, state: State) -> u64 {
        self.entries.iter().filter(|report| report.state == state).count() as u64
    }
}
