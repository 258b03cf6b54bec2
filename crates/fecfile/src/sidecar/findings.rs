//! What was found of files and of their sidecar.

use super::bits::Bits;
use super::moved::Moved;
use crate::error::{Error, ErrorKind};
use crate::ranges::RangeList;
use std::{fmt, io};

/// How much is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every byte of the files and of the sidecar.
    #[default]
    All,
    /// Whether files are there, and have their sizes and times; nothing of them is read, and nothing of the recovery shards.
    Quick,
    /// The sidecar alone.
    Sidecar,
    /// Whether files are there, and have their sizes and times; and some of the bytes of files and sidecar.
    Part,
}

/// What became of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// It is what it was.
    Intact,
    /// Its bytes are others, and nobody wrote to it: its size and time are those of old.
    Rotten,
    /// It was changed by somebody: its time, its size or its kind are others, and what is in it too.
    Edited,
    /// Bytes were inserted or taken away: what is behind stands at other places in it.
    Shifted,
    /// Nothing is there, and a file elsewhere is what it was.
    Moved,
    /// Nothing is there.
    Missing,
    /// It cannot be read.
    Unreadable,
}

/// Why something cannot be read: the number that the system gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause(i32);

impl Cause {
    /// The cause of an error, if the system gave this number.
    pub(super) fn of(error: &Error, code: i32) -> Option<Cause> {
        match &error.kind {
            ErrorKind::Io(error) if error.raw_os_error() == Some(code) => Some(Cause(code)),
            _ => None,
        }
    }

    /// Whether whoever asks is not allowed to: that says nothing of what is there.
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

/// An entry that is not what it was.
#[derive(Clone, Debug)]
pub struct EntryReport {
    /// The number of the entry in the catalog.
    pub entry: usize,
    /// What became of it.
    pub state: State,
    /// Bytes of it, as it was, that are not there any more.
    pub damage: RangeList,
    /// Why it cannot be opened or read.
    pub cause: Option<Cause>,
    /// Where it is, from the base, if it was moved.
    pub moved_to: Option<Box<[u8]>>,
    /// Whether all of its bytes are there and right, where they belong, whatever else is wrong with it.
    pub(super) is_right: bool,
}

impl EntryReport {
    /// Whether whoever asks may not look at it: nobody knows whether it is damaged.
    pub fn is_denied(&self) -> bool {
        self.state == State::Unreadable && self.cause.is_some_and(Cause::is_denied)
    }
}

/// How much of what was lost could be mended, and what more.
#[derive(Clone, Debug, Default)]
pub struct Margin {
    /// Recovery shards of the set of which the greatest part is needed, or lost itself.
    pub of: u64,
    /// Those that are used.
    pub used: u64,
    /// So many bytes more could be lost in one piece, wherever.
    pub one_piece: u64,
    /// Sets that have lost more than they can stand.
    pub lost_sets: u64,
    /// Bytes of files in them that are lost.
    pub lost_bytes: u64,
}

/// What stands in the folders that are protected, and is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unprotected {
    /// Files, links and folders; what is in these folders is not counted.
    pub count: u64,
    /// The path of one of them, from the base.
    pub first: Option<Box<[u8]>>,
}

/// What was found of files and sidecar.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Examined {
    /// Entries that are not intact, in order.
    pub entries: Vec<EntryReport>,
    /// Entries that are edited for all that is proved, and have the size and time that the sidecar records: they may as well be rotten.
    pub unproved: u64,
    /// Entries whose bytes are intact and whose time or permissions are others.
    pub touched: u64,
    /// What is new in folders that are protected, or was left out; nothing unless files were looked at.
    pub unprotected: Unprotected,
    /// Recovery shards.
    pub recovery: u64,
    /// Those of them that are not intact.
    pub recovery_damaged: u64,
    /// Those of them that are intact, and stand elsewhere than they should.
    pub recovery_displaced: u64,
    /// What can be mended.
    pub margin: Margin,
    /// Damage of the sidecar beside lost recovery shards and pieces.
    pub sidecar_damage: Vec<String>,
    /// The container that a sealed sidecar is in is damaged, as far as that was looked at.
    pub container_damaged: bool,
    /// Positions of the files that are not there, or not intact.
    pub(super) erased: Bits,
    /// Positions of files that whoever asks may not read, as far as nothing else is wrong with them.
    pub(super) denied: Bits,
    /// What stands elsewhere than it did.
    pub(super) moved: Moved,
    /// Recovery shards that are not there or not intact, over all groups.
    pub(super) recovery_erased: Bits,
}

impl Examined {
    /// Whether everything is as it was, the sidecar too.
    pub fn is_intact(&self) -> bool {
        self.entries.is_empty() && self.sidecar_is_intact()
    }

    /// Whether the sidecar itself is as it was.
    pub fn sidecar_is_intact(&self) -> bool {
        self.recovery_damaged == 0
            && self.recovery_displaced == 0
            && self.sidecar_damage.is_empty()
            && !self.container_damaged
    }

    /// Whether all bytes of an entry are there and right, where they belong, whatever else is wrong with it.
    pub(super) fn has_all_bytes(&self, nth: usize) -> bool {
        let at = self.entries.binary_search_by_key(&nth, |report| report.entry);
        at.map_or(true, |at| self.entries[at].is_right)
    }

    /// Whether all that is lost can be computed from what is left.
    pub fn is_mendable(&self) -> bool {
        self.margin.lost_sets == 0
    }

    /// The entries that whoever asks may not look at.
    pub fn denied(&self) -> impl Iterator<Item = usize> {
        self.entries.iter().filter(|report| report.is_denied()).map(|report| report.entry)
    }

    /// What became of an entry.
    pub fn state(&self, entry: usize) -> State {
        let at = self.entries.binary_search_by_key(&entry, |report| report.entry);
        at.map_or(State::Intact, |at| self.entries[at].state)
    }

    /// Entries in this state.
    pub fn count(&self, state: State) -> u64 {
        self.entries.iter().filter(|report| report.state == state).count() as u64
    }
}
