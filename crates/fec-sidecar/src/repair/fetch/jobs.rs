//! The requests that bring the wanted blocks: ranges of files, and tails of files that share a block.

use super::tails::Tails;
use crate::catalog::bits::Bits;
use crate::catalog::positions::Positions;
use fec_core::random::SplitMix64;
use std::hash::{BuildHasher, RandomState};

/// Most bytes of a request, unless a block is longer.
const REQUEST: u64 = 2 << 20;
/// Most unwanted bytes between two wanted blocks of a request. They never outnumber the wanted ones before them.
const GAP: u64 = 64 << 10;

/// Blocks of a file that follow each other, at positions that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    pub(super) entry: u32,
    /// The offset in the file, in bytes.
    pub(super) offset: u64,
    /// The first position, and the number of blocks.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Blocks {
    /// Some of the blocks, by their numbers in it.
    pub(super) fn part(self, from: u64, count: u64, block: u64) -> Blocks {
        Blocks { offset: self.offset + from * block, first: self.first + from, count, ..self }
    }
}

/// The content of a job.
pub(super) enum Work {
    Blocks(Blocks),
    /// The tails at a position, which only prove each other.
    Tails(Tails),
}

impl Work {
    /// The same work, without anything that was found for it.
    pub(super) fn anew(&self) -> Work {
        match self {
            Work::Blocks(blocks) => Work::Blocks(*blocks),
            Work::Tails(tails) => Work::Tails(Tails::new(tails.position)),
        }
    }
}

/// Work for any mirror that has not tried it.
pub(super) struct Job {
    pub(super) work: Work,
    /// A bit for each mirror that has tried it in vain.
    pub(super) tried: u64,
}

/// The jobs of a round, made as they are taken. Round `n` asks for a block as one of file `n` of those that share it.
pub(super) struct Jobs {
    round: usize,
    /// The positions before this one are in jobs, or not wanted.
    next: u64,
    /// Positions in jobs.
    claimed: Bits,
    positions: u64,
    block: u64,
    random: SplitMix64,
}

/// The positions that jobs are made of.
#[derive(Clone, Copy)]
pub(super) struct Open<'a> {
    pub(super) positions: &'a Positions,
    pub(super) wanted: &'a Bits,
    pub(super) got: &'a Bits,
}

impl Jobs {
    pub(super) fn new(round: usize, positions: u64, block: u64) -> Jobs {
        // The order of probes is another one in each run.
        let random = SplitMix64::new(RandomState::new().hash_one(round));
        Jobs { round, next: 0, claimed: Bits::new(positions), positions, block, random }
    }

    /// Tells whether any job was made.
    pub(super) fn has_any(&self) -> bool {
        self.claimed.ones().next().is_some()
    }

    /// A number below `most`.
    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.random.next() % most.max(1)
    }

    /// The next job of positions that are wanted, and that nobody has got or is asked for.
    pub(super) fn next(&mut self, of: Open<'_>) -> Option<Job> {
        while self.next < self.positions {
            let first = self.next;
            self.next += 1;
            if let Some(job) = self.job_at(first, of) {
                return Some(job);
            }
        }
        None
    }

    /// A job from anywhere, for a mirror that nothing is known of: it may have some files and not others.
    pub(super) fn probe(&mut self, of: Open<'_>) -> Option<Job> {
        let start = self.below(self.positions);
        (start..self.positions).chain(self.next..start).find_map(|first| self.job_at(first, of))
    }

    /// The job that begins with a position.
    fn job_at(&mut self, first: u64, Open { positions, wanted, got }: Open<'_>) -> Option<Job> {
        let is_open =
            |position: u64| wanted.get(position) && !got.get(position) && !self.claimed.get(position);
        if !is_open(first) {
            return None;
        }
        let span = positions.within(first..first + 1).nth(self.round)?;
        let (work, count) = if span.is_packed {
            if self.round > 0 {
                return None;
            }
            (Work::Tails(Tails::new(first)), 1)
        } else {
            let most = (REQUEST / self.block).max(1).min(self.positions - first);
            let of_file = positions.within(first..first + most).find(|of| of.entry == span.entry);
            let room = of_file.map_or(1, |of| of.len / self.block).max(1);
            let count = joined(room, self.block, |nth| is_open(first + nth));
            (Work::Blocks(Blocks { entry: span.entry, offset: span.offset, first, count }), count)
        };
        (first..first + count).for_each(|position| self.claimed.set(position));
        Some(Job { work, tried: 0 })
    }
}

/// The number of blocks of a request that begins with a wanted one, out of `room`.
fn joined(room: u64, block: u64, is_wanted: impl Fn(u64) -> bool) -> u64 {
    let (mut count, mut wanted) = (1, 1);
    for nth in 1..room {
        if is_wanted(nth) {
            (count, wanted) = (nth + 1, wanted + 1);
        } else if nth + 1 - count > (GAP / block).min(wanted) {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn requests_join_what_is_near() {
        for (wanted, expected) in [
            (&[0u64][..], 1),
            (&[0, 1, 2], 3),
            // A gap of one block between two, and then of two behind three.
            (&[0, 2], 3),
            (&[0, 3], 1),
            (&[0, 2, 5], 6),
            (&[0, 1, 2, 3, 4, 5, 14], 6),
            (&[0, 1, 2, 3, 4, 5, 12], 13),
        ] {
            assert_eq!(joined(100, 4096, |nth| wanted.contains(&nth)), expected, "{wanted:?}");
        }
        assert_eq!(joined(4, 4096, |_| true), 4);
        // Large blocks are never fetched in vain.
        assert_eq!(joined(100, 1 << 20, |nth| nth == 2), 1);
    }
}
