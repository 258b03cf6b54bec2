//! The states of source packets, by their number modulo the number of places.
//!
//! Ranges of numbers are walked as one or two slices: a packet may bring a whole window of unknown numbers, and a
//! division for each would be most of its work.

use std::ops::Range;

/// The state of a source packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketState {
    Lost,
    Received,
    Rebuilt,
}

/// The states of as many packets as there are places.
#[derive(Debug)]
pub(super) struct States {
    ring: Vec<PacketState>,
}

impl States {
    /// States of packets that are all lost.
    pub(super) fn new(places: u64) -> States {
        States { ring: vec![PacketState::Lost; places as usize] }
    }

    fn place(&self, seq: u64) -> usize {
        (seq % self.ring.len() as u64) as usize
    }

    /// The state in the place of packet `seq`.
    pub(super) fn get(&self, seq: u64) -> PacketState {
        self.ring[self.place(seq)]
    }

    /// Tells whether packet `seq` is lost.
    pub(super) fn is_lost(&self, seq: u64) -> bool {
        self.get(seq) == PacketState::Lost
    }

    pub(super) fn set(&mut self, seq: u64, state: PacketState) {
        let place = self.place(seq);
        self.ring[place] = state;
    }

    /// Marks all packets as lost.
    pub(super) fn clear(&mut self) {
        self.ring.fill(PacketState::Lost);
    }

    /// Marks these packets as lost. They are no more than there are places.
    pub(super) fn lose(&mut self, seqs: Range<u64>) {
        let [first, second] = self.parts(&seqs);
        self.ring[first].fill(PacketState::Lost);
        self.ring[second].fill(PacketState::Lost);
    }

    /// The lost packets among `seqs`, ascending; from behind, the newest first. The range is no longer than the number
    /// of places.
    pub(super) fn lost(&self, seqs: Range<u64>) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.of(seqs).filter(|&(_, state)| state == PacketState::Lost).map(|(seq, _)| seq)
    }

    /// The first packet in `seqs` that is not lost. The range is no longer than the number of places.
    pub(super) fn first_known(&self, seqs: Range<u64>) -> Option<u64> {
        self.of(seqs).find(|&(_, state)| state != PacketState::Lost).map(|(seq, _)| seq)
    }

    fn of(&self, seqs: Range<u64>) -> impl DoubleEndedIterator<Item = (u64, PacketState)> + '_ {
        let from = seqs.start;
        let [first, second] = self.parts(&seqs);
        let behind = from + first.len() as u64;
        numbered(&self.ring[first], from).chain(numbered(&self.ring[second], behind))
    }

    /// The places of these packets: up to the end of the ring, and from its beginning on.
    fn parts(&self, seqs: &Range<u64>) -> [Range<usize>; 2] {
        let len = seqs.end.saturating_sub(seqs.start);
        debug_assert!(len <= self.ring.len() as u64);
        let at = self.place(seqs.start);
        let first = (self.ring.len() - at).min(len as usize);
        [at..at + first, 0..len as usize - first]
    }
}

fn numbered(states: &[PacketState], from: u64) -> impl DoubleEndedIterator<Item = (u64, PacketState)> + '_ {
    states.iter().enumerate().map(move |(at, &state)| (from + at as u64, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_go_around_the_ring() {
        let mut states = States::new(10);
        for seq in 13..23 {
            states.set(seq, if seq % 3 == 0 { PacketState::Lost } else { PacketState::Received });
        }
        assert!(states.lost(13..23).eq([15, 18, 21]));
        assert!(states.lost(13..23).rev().eq([21, 18, 15]));
        assert!(states.lost(16..18).eq([]) && states.lost(18..18).eq([]));
        assert_eq!(states.first_known(18..23), Some(19));
        assert_eq!(states.first_known(21..22), None);
        states.lose(18..23);
        assert!(states.lost(13..23).eq([15, 18, 19, 20, 21, 22]));
        assert_eq!(states.get(17), PacketState::Received);
        states.clear();
        assert_eq!(states.lost(13..23).count(), 10);
    }
}
