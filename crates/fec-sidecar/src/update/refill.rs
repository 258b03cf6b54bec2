//! Puts what is new into positions of old groups that nothing stands at: their recovery shards are computed anew
//! anyway where something leaves, and the sidecar does not grow.

use super::leaving::Leaving;
use super::lives::Lives;
use super::place::Placed;
use crate::Sidecar;
use crate::catalog::metadata::NOTHING;
use fec_core::format::sidecar::{EntryKind, Run};
use std::ops::Range;

/// The positions of old groups that hold nothing, or only what is `leaving`. Groups of which nothing is left are none.
pub(super) fn free(old: &Sidecar, lives: &Lives, leaving: &Leaving) -> Vec<Range<u64>> {
    let (mut free, mut first): (Vec<Range<u64>>, _) = (Vec::new(), 0);
    for (group, of) in old.catalog.groups.iter().zip(&lives.groups) {
        for position in (first..first + group.positions()).filter(|_| of.left > 0) {
            let is_empty = || leaving.has(position) || old.digest_of(position) == NOTHING;
            if lives.covered.get(position) || !is_empty() {
                continue;
            }
            match free.last_mut() {
                Some(last) if last.end == position => last.end += 1,
                _ => free.push(position..position + 1),
            }
        }
        first += group.positions();
    }
    free
}

/// Moves what is new to the positions `free`, as far as these go: whole blocks first, then tails, since new positions,
/// from `first` on, are in that order. Returns the positions that were used.
pub(super) fn refill(
    placed: &mut Placed,
    (first, block): (u64, u64),
    free: &[Range<u64>],
) -> Vec<Range<u64>> {
    let (mut left, mut used) = (placed.positions, Vec::new());
    for range in free {
        let count = left.min(range.end - range.start);
        used.extend((count > 0).then(|| range.start..range.start + count));
        left -= count;
    }
    for entry in &mut placed.entries {
        let EntryKind::File(file) = &mut entry.kind else { continue };
        file.runs = file.runs.iter().flat_map(|run| moved(*run, first, &used)).collect();
        if file.tail_len(block) > 0 {
            let of_tail = Run { block: 0, start: file.tail / block, count: 1 };
            file.tail = moved(of_tail, first, &used)[0].start * block + file.tail % block;
        }
    }
    placed.positions = left;
    used
}

/// The runs in place of one, if new positions from `first` on become those of `used`, and others follow each other.
fn moved(run: Run, first: u64, used: &[Range<u64>]) -> Vec<Run> {
    if run.start < first {
        return vec![run];
    }
    let mut runs = Vec::new();
    let (mut run, mut before) = (run, first);
    for range in used {
        let end = before + (range.end - range.start);
        if run.start < end && run.count > 0 {
            let count = run.count.min(end - run.start);
            runs.push(Run { block: run.block, start: range.start + (run.start - before), count });
            run = Run { block: run.block + count, start: run.start + count, count: run.count - count };
        }
        before = end;
    }
    if run.count > 0 {
        runs.push(Run { start: run.start - (before - first), ..run });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_to_free_positions_in_order() {
        let run = |block, start, count| Run { block, start, count };
        let used = [3..5, 9..10, 20..24];
        assert_eq!(moved(run(7, 80, 5), 100, &used), [run(7, 80, 5)]);
        assert_eq!(moved(run(0, 100, 2), 100, &used), [run(0, 3, 2)]);
        assert_eq!(moved(run(4, 101, 3), 100, &used), [run(4, 4, 1), run(5, 9, 1), run(6, 20, 1)]);
        assert_eq!(moved(run(4, 106, 4), 100, &used), [run(4, 23, 1), run(5, 100, 3)]);
        assert_eq!(moved(run(4, 110, 4), 100, &used), [run(4, 103, 4)]);
        assert_eq!(moved(run(4, 110, 4), 100, &[]), [run(4, 110, 4)]);
    }
}
