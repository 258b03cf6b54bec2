//! What a repair does with each entry, and whose a file is that it writes over: what stood there is noted before, so that
//! whoever writes there meanwhile is noticed.

use super::Sidecar;
use crate::io::base::Base;
use rustix::fs::Stat;
use std::collections::HashMap;
use std::fs::File;
use std::io;

/// What is done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// It stays as it is.
    Leave,
    /// What is damaged of it is written where it is.
    Mend,
    /// It is made anew.
    Make {
        /// It takes the place of something that is there.
        replace: bool,
    },
}

/// What stood at a path, so that it shows when somebody else writes there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    place: (u64, u64),
    pub(super) size: u64,
    modified: (i64, i64),
}

impl Look {
    // The types of their numbers are others on other systems.
    #[allow(clippy::unnecessary_cast)]
    pub(super) fn of(stat: &Stat) -> Look {
        Look {
            place: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }

    pub(super) fn of_file(file: &File) -> io::Result<Look> {
        Ok(Look::of(&rustix::fs::fstat(file)?))
    }
}

/// Whose a file is that is written over.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// It looked so when it was examined, or when this repair wrote to it last.
    Repair(Look),
    /// Somebody else has written to it since it was examined: it is theirs.
    Other,
}

/// What stands where something is written over, and whose it is. Nothing of it is changed.
///
/// `is_left` says of a file that is rotten, or half mended by a repair that did not end, whether somebody has changed it since.
pub(super) fn owners(
    base: &Base,
    sidecar: &Sidecar,
    actions: &[Action],
    is_left: impl Fn(u32, &Stat) -> bool,
) -> HashMap<u32, Owner> {
    let written = |action: &Action| matches!(action, Action::Mend | Action::Make { replace: true });
    let mut owners = HashMap::new();
    for (entry, _) in (0..).zip(actions).filter(|(_, action)| written(action)) {
        if let Ok(stat) = base.stat(&sidecar.catalog.entries[entry as usize].path) {
            let owner = if is_left(entry, &stat) { Owner::Other } else { Owner::Repair(Look::of(&stat)) };
            owners.insert(entry, owner);
        }
    }
    owners
}
