//! The action of a repair for each entry, and the owner of each file that it writes over. The stat of each target is
//! noted first, to detect concurrent writers.

use crate::Sidecar;
use fec_base::io::base::Base;
use rustix::fs::Stat;
use std::collections::HashMap;
use std::fs::File;
use std::io;

/// The action for an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryAction {
    /// The entry stays as it is.
    Leave,
    /// The damaged bytes of the entry are written in place.
    Mend,
    /// The entry is made anew.
    Make {
        /// True if it replaces something that exists.
        replace: bool,
    },
}

/// The stat of a path, taken before it is written to, to detect concurrent writers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    place: (u64, u64),
    pub(crate) size: u64,
    modified: (i64, i64),
}

impl Look {
    // The integer types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    pub(crate) fn of(stat: &Stat) -> Look {
        Look {
            place: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }

    pub(crate) fn of_file(file: &File) -> io::Result<Look> {
        Ok(Look::of(&rustix::fs::fstat(file)?))
    }
}

/// The owner of a file that is written over.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// The repair: the file had this stat when it was examined, or when this repair last wrote to it.
    Repair(Look),
    /// Somebody else, who has written to the file since it was examined.
    Other,
}

/// The owner of each entry that is written over. Nothing is changed.
///
/// `is_left` tells of a rotten or half-mended file whether somebody has changed it since.
pub(crate) fn owners(
    base: &Base,
    sidecar: &Sidecar,
    actions: &[EntryAction],
    is_left: impl Fn(u32, &Stat) -> bool,
) -> HashMap<u32, Owner> {
    let written =
        |action: &EntryAction| matches!(action, EntryAction::Mend | EntryAction::Make { replace: true });
    let mut owners = HashMap::new();
    for (entry, _) in (0..).zip(actions).filter(|(_, action)| written(action)) {
        if let Ok(stat) = base.stat(&sidecar.catalog.entries[entry as usize].path) {
            let owner = if is_left(entry, &stat) { Owner::Other } else { Owner::Repair(Look::of(&stat)) };
            owners.insert(entry, owner);
        }
    }
    owners
}
