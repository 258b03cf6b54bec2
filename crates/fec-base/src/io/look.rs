//! The look of an entry, by which its later writers show.

use rustix::fs::Stat;
use std::fs::File;
use std::io;

/// The place, the length and the modification time of an entry. Whoever replaces the entry or writes to it changes its
/// look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Device and inode.
    place: (u64, u64),
    /// Length in bytes.
    pub size: u64,
    modified: (i64, i64),
}

impl Look {
    /// The look of the entry that has this stat.
    // The integer types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    pub fn of(stat: &Stat) -> Look {
        Look {
            place: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }

    /// The look of an open file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of_file(file: &File) -> io::Result<Look> {
        Ok(Look::of(&rustix::fs::fstat(file)?))
    }

    /// Tells whether both are looks of the same entry, whatever was written to it.
    pub(super) fn is_same_entry(&self, other: &Look) -> bool {
        self.place == other.place
    }
}
