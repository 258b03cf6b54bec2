//! The living bytes in the groups of an old sidecar.

use super::leaving::Leaving;
use super::place::Placed;
use crate::catalog::bits::Bits;
use crate::catalog::metadata::{LOST, NOTHING, Sidecar};
use crate::catalog::positions::Positions;
use fec_core::format::sidecar::catalog::ShortDigest;
use std::ops::Range;

/// The living bytes in the old groups.
pub(crate) struct Lives {
    /// The positions that hold living bytes.
    pub(super) covered: Bits,
    /// Positions that hold any bytes, the new ones too.
    pub(crate) all: u64,
    /// Living positions in weak groups.
    pub(crate) in_weak: u64,
    /// Sets with living bytes that would have more than a quarter of their recovery shards used up by lost ones.
    pub(crate) weak_sets: u64,
    /// The positions of the groups of these sets.
    pub(crate) weak: Vec<Range<u64>>,
    /// The groups in order.
    pub(crate) groups: Vec<GroupLives>,
    /// New positions.
    pub(crate) new: u64,
}

/// The living bytes in a group.
pub(crate) struct GroupLives {
    /// Living positions.
    pub(crate) left: u64,
    /// True if a set of it is weak, and none of its bytes have to stay.
    pub(crate) is_weak: bool,
    /// True if bytes of it have to stay where they are.
    pub(crate) is_pinned: bool,
}

impl Lives {
    /// Counts them. Bytes in the positions `pinned` have to stay where they are, and what is `leaving` is not lost.
    pub(super) fn of(
        old: &Sidecar,
        placed: &Placed,
        pinned: &[Range<u64>],
        leaving: Option<&Leaving>,
    ) -> Lives {
        let total = old.catalog.positions() + placed.positions;
        let covered = Positions::of_entries(&placed.entries, old.catalog.block.into()).covered(total);
        let (all, new) = (covered.count(), placed.positions);
        let (weak, groups) = (Vec::new(), Vec::new());
        let mut lives = Lives { covered, all, in_weak: 0, weak_sets: 0, weak, groups, new };
        let mut first = 0;
        for (nth, group) in old.catalog.groups.iter().enumerate() {
            let mut sets = vec![(0u64, 0u64); group.sets as usize];
            for index in 0..group.positions() {
                let set = &mut sets[group.original(index).0 as usize];
                let leaves = || leaving.is_some_and(|leaving| leaving.has(first + index));
                match lives.covered.get(first + index) {
                    true => set.1 += 1,
                    false => set.0 += u64::from(old.position_digest(nth, index) != NOTHING && !leaves()),
                }
            }
            let m = group.code.m();
            let weak = sets.iter().filter(|(lost, left)| *left > 0 && 4 * lost > m).count() as u64;
            let left = sets.iter().map(|(_, left)| left).sum();
            let range = first..first + group.positions();
            first = range.end;
            let is_pinned = pinned.iter().any(|bytes| bytes.start < range.end && range.start < bytes.end);
            let is_weak = weak > 0 && !is_pinned;
            lives.groups.push(GroupLives { left, is_weak, is_pinned });
            if is_weak {
                lives.weak_sets += weak;
                lives.in_weak += left;
                lives.weak.push(range);
            }
        }
        lives
    }

    /// Marks the dead old positions in the digests of all old shards: those that are `leaving` as empty, and the others
    /// as lost.
    pub(super) fn mark_lost(&self, old: &Sidecar, leaving: Option<&Leaving>, digests: &mut [ShortDigest]) {
        let (mut first, mut first_digest) = (0, 0);
        for group in &old.catalog.groups {
            for index in 0..group.positions() {
                let digest = &mut digests[(first_digest + index) as usize];
                if !self.covered.get(first + index) && *digest != NOTHING {
                    let leaves = leaving.is_some_and(|leaving| leaving.has(first + index));
                    *digest = if leaves { NOTHING } else { LOST };
                }
            }
            first += group.positions();
            first_digest += group.positions() + group.recovery();
        }
    }
}
