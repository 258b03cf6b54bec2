//! The action of a repair for each entry, and the owner of each file that it writes over. The stat of each target is
//! noted first, to detect concurrent writers.

use crate::Sidecar;
use fec_base::io::base::Base;
use fec_base::io::look::Look;
use rustix::fs::Stat;
use std::collections::HashMap;

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
