//! The old groups that an updated sidecar keeps, and their positions in it.

use crate::Sidecar;
use fec_core::format::sidecar::catalog::ShortDigest;
use fec_core::format::sidecar::group::SidecarGroup;
use fec_core::format::sidecar::{Entry, EntryKind};
use std::ops::Range;

/// An old group that is kept.
pub(super) struct KeptGroup {
    /// Its number in the old sidecar.
    pub(super) nth: usize,
    /// Its positions in the old sidecar.
    pub(super) was: Range<u64>,
    /// Its first position in the updated one.
    start: u64,
}

/// The old groups that an updated sidecar keeps, in order.
pub(super) struct Kept {
    pub(super) groups: Vec<KeptGroup>,
    /// The positions of all old groups.
    old: u64,
}

impl Kept {
    /// All groups of a sidecar.
    pub(super) fn all(old: &Sidecar) -> Kept {
        Kept::living(old, |_| true)
    }

    /// Those groups of a sidecar whose numbers `lives` is true for.
    pub(super) fn living(old: &Sidecar, lives: impl Fn(usize) -> bool) -> Kept {
        let (mut groups, mut start) = (Vec::new(), 0);
        for (nth, was) in Kept::ranges(old).into_iter().enumerate().filter(|(nth, _)| lives(*nth)) {
            let len = was.end - was.start;
            groups.push(KeptGroup { nth, was, start });
            start += len;
        }
        Kept { groups, old: old.catalog.positions() }
    }

    /// The positions of all groups of a sidecar.
    pub(super) fn ranges(old: &Sidecar) -> Vec<Range<u64>> {
        let mut first = 0;
        let range = |group: &SidecarGroup| {
            let range = first..first + group.positions();
            first = range.end;
            range
        };
        old.catalog.groups.iter().map(range).collect()
    }

    /// The number of positions of these groups.
    pub(super) fn positions(&self) -> u64 {
        self.groups.last().map_or(0, |last| last.start + (last.was.end - last.was.start))
    }

    /// The number of an old position, or of a new one behind all old ones, in the updated sidecar; `None` if its group
    /// is not kept.
    pub(super) fn position(&self, old: u64) -> Option<u64> {
        if old >= self.old {
            return Some(self.positions() + (old - self.old));
        }
        let at = self.groups.partition_point(|group| group.was.end <= old);
        let group = self.groups.get(at).filter(|group| group.was.contains(&old))?;
        Some(group.start + (old - group.was.start))
    }

    /// Gives the bytes of all entries their positions in the updated sidecar.
    ///
    /// # Panics
    /// If a byte stands in a group that is not kept.
    pub(super) fn renumber(&self, old: &Sidecar, entries: &mut [Entry]) {
        let block = u64::from(old.catalog.block);
        let now = |position: u64| self.position(position).expect("groups with bytes are kept");
        for entry in entries {
            let EntryKind::File(file) = &mut entry.kind else { continue };
            file.runs.iter_mut().for_each(|run| run.start = now(run.start));
            if file.tail_len(block) > 0 {
                file.tail = now(file.tail / block) * block + file.tail % block;
            }
        }
    }

    /// Those of `digests`, which has all of the old sidecar, that belong to these groups.
    pub(super) fn digests(&self, old: &Sidecar, digests: &[ShortDigest]) -> Vec<ShortDigest> {
        let (mut first, mut kept) = (0, Vec::new());
        let mut groups = self.groups.iter().peekable();
        for (nth, group) in old.catalog.groups.iter().enumerate() {
            let end = first + (group.positions() + group.recovery()) as usize;
            if groups.next_if(|group| group.nth == nth).is_some() {
                kept.extend_from_slice(&digests[first..end]);
            }
            first = end;
        }
        kept
    }

    /// These groups, as they stand in an extent that begins with their recovery shards.
    pub(super) fn groups(&self, old: &Sidecar) -> Vec<SidecarGroup> {
        let mut first = 0;
        let group = |kept: &KeptGroup| {
            let group = SidecarGroup { extent: 0, first, ..old.catalog.groups[kept.nth] };
            first += group.recovery();
            group
        };
        self.groups.iter().map(group).collect()
    }
}
