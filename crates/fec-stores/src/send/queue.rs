//! The order in which the shards of a segment go out.

use crate::placement::Placement;
use std::collections::VecDeque;

/// The shards that wait, by place.
pub(super) struct Queue {
    waiting: Vec<VecDeque<u32>>,
    /// Shards of each place that are under way.
    busy: Vec<usize>,
}

impl Queue {
    /// All shards of a segment, for so many places.
    pub(super) fn new(placement: &Placement, segment: u32, n: usize, places: usize) -> Queue {
        let mut waiting = vec![VecDeque::new(); places];
        for index in 0..n {
            waiting[placement.target(segment.into(), index)].push_back(index as u32);
        }
        Queue { waiting, busy: vec![0; places] }
    }

    /// The next shard, and its place: the one with the fewest shards under way, so that a slow place does not hold the
    /// others up. Among several the one where the most wait.
    pub(super) fn take(&mut self) -> Option<(usize, u32)> {
        let open = (0..self.waiting.len()).filter(|place| !self.waiting[*place].is_empty());
        let place =
            open.min_by_key(|place| (self.busy[*place], std::cmp::Reverse(self.waiting[*place].len())))?;
        self.busy[place] += 1;
        self.waiting[place].pop_front().map(|index| (place, index))
    }

    /// Notes that a shard is no longer under way.
    pub(super) fn is_done(&mut self, place: usize) {
        self.busy[place] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use fec_core::block::Code;

    #[test]
    fn places_take_turns_and_a_slow_one_holds_nobody_up() {
        let targets: Vec<Target> =
            (0..3).map(|nth| Target::parse(&format!("/mnt/{nth}")).expect("a target")).collect();
        let placement = Placement::new(&targets, Code::new(6, 4).expect("a code"));
        let mut queue = Queue::new(&placement, 1, 10, 3);
        let first: Vec<(usize, u32)> = (0..3).filter_map(|_| queue.take()).collect();
        let mut places: Vec<usize> = first.iter().map(|(place, _)| *place).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2]);
        // Place 0 does not end; the next ones go to the others until nothing waits for these.
        let mut all: Vec<u32> = first.iter().map(|(_, index)| *index).collect();
        queue.is_done(1);
        queue.is_done(2);
        let mut slow = 0;
        while let Some((place, index)) = queue.take() {
            all.push(index);
            if place == 0 {
                slow += 1;
            } else {
                assert_eq!(slow, 0, "the slow place comes last");
                queue.is_done(place);
            }
        }
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<u32>>());
        assert!(slow >= 2);
    }
}
