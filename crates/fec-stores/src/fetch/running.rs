//! The objects of a fetch with the history of their transfers, and the transfers and questions under way.

use crate::find::Located;
use crate::transfer::{Active, Came};
use std::collections::BTreeMap;
use std::time::Duration;

/// Identifies an object: shard and place.
pub(crate) type Key = (u32, usize);

/// An object, and the history of its transfers.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(super) size: u64,
    /// How often a transfer of it failed.
    pub(super) failures: u32,
    /// How many of these ended in silence.
    pub(super) silences: u32,
    /// How often it came damaged.
    pub(super) damaged: u32,
    /// Bytes that came before its transfer was left.
    pub(crate) bytes: u64,
    /// Another transfer was begun in its place.
    pub(crate) is_late: bool,
    /// The object is given up.
    pub(super) is_out: bool,
}

/// Messages of the threads.
pub(crate) enum Told {
    Located(Located),
    Came(Key, Came),
}

/// Transfers and questions under way.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) active: BTreeMap<Key, Active>,
    /// Transfers that were told to stop and have not stopped yet.
    pub(super) leaving: BTreeMap<Key, Active>,
    /// Late transfers that go on beside their replacements.
    pub(crate) extra: usize,
    /// Places that are being asked.
    pub(super) asking: usize,
    pub(super) first_answer: Option<Duration>,
}

impl Running {
    /// Tells whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_empty() && self.leaving.is_empty() && self.asking == 0
    }

    /// Stops a transfer; its bytes stay.
    pub(crate) fn leave(&mut self, key: Key) {
        if let Some(active) = self.active.remove(&key) {
            self.extra -= usize::from(active.is_late);
            active.cancel.cancel();
            self.leaving.insert(key, active);
        }
    }
}
