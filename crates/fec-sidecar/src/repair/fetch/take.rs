//! The choice of the next job for a mirror.

use super::asked::Asked;
use super::jobs::{Job, Open, Work};
use super::queue::State;
use crate::catalog::bits::Bits;
use crate::catalog::positions::Positions;
use std::time::Duration;

/// An answer that takes longer than this, and several times the usual time, is asked for elsewhere too.
const SLOW: Duration = Duration::from_secs(2);
const TIMES_SLOWER: u32 = 4;

impl State<'_> {
    /// A job for a mirror: one that others tried in vain, a new one, or one that takes another mirror too long. A
    /// mirror without a right answer so far has one at a time, from anywhere.
    pub(super) fn take(&mut self, mirror: usize, (positions, wanted): (&Positions, &Bits)) -> Option<Job> {
        let bit = 1 << mirror;
        let State { asked, returned, jobs, got, flying, .. } = self;
        let open = Open { positions, wanted, got };
        let asked = &mut asked[mirror];
        let is_new = asked.right == 0;
        if asked.of.left.is_some() || is_new && asked.flying > 0 {
            return None;
        }
        if is_new {
            /// Returned jobs that are drawn before they are tried in order.
            const DRAWS: usize = 16;
            let is_for = |slot: &Option<Job>| {
                slot.as_ref().is_some_and(|job| job.tried & bit == 0 && !asked.lacks(job))
            };
            let mut drawn = (0..DRAWS).map(|_| jobs.below(returned.len() as u64) as usize);
            if let Some(nth) = drawn.find(|nth| returned.get(*nth).is_some_and(is_for)) {
                return returned[nth].take();
            }
        }
        while let Some(slot) = returned.get_mut(asked.cursor) {
            asked.cursor += 1;
            match slot {
                Some(job) if job.tried & bit == 0 && asked.lacks(job) => job.tried |= bit,
                Some(job) if job.tried & bit == 0 => return slot.take(),
                _ => {}
            }
        }
        while let Some(mut job) = if is_new { jobs.probe(open) } else { jobs.next(open) } {
            if !asked.lacks(&job) {
                return Some(job);
            }
            job.tried |= bit;
            returned.push(Some(job));
        }
        let slow = SLOW.max(asked.usual * TIMES_SLOWER);
        let late = flying.values_mut().find(|flight| {
            let is_free = flight.double.as_ref().is_some_and(|job| job.tried & bit == 0 && !asked.lacks(job));
            flight.mirror != mirror && is_free && flight.started.elapsed() > slow
        });
        late?.double.take()
    }
}

impl Asked {
    /// Tells whether the mirror is known not to have the file of a job, or not as far as that.
    fn lacks(&self, job: &Job) -> bool {
        match &job.work {
            Work::Blocks(blocks) => self.lacks.get(&blocks.entry).is_some_and(|from| blocks.offset >= *from),
            // Some of the files may be there.
            Work::Tails(_) => false,
        }
    }
}
