//! The longest payload of a sliding window: the length of its rows' symbols.

use std::collections::VecDeque;

/// Lengths of payloads. A length counts only if no later one is at least as long.
#[derive(Debug, Default)]
pub(super) struct LongestPayload {
    /// Packets and their lengths, which descend.
    lengths: VecDeque<(u64, u16)>,
}

impl LongestPayload {
    /// Takes the next packet. The work is in proportion to the number of entries that it removes, and over all packets
    /// in proportion to their number.
    pub(super) fn push(&mut self, seq: u64, len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        while self.lengths.back().is_some_and(|&(_, other)| other <= len) {
            self.lengths.pop_back();
        }
        self.lengths.push_back((seq, len));
    }

    /// Forgets packets before `start`.
    pub(super) fn leave(&mut self, start: u64) {
        while self.lengths.front().is_some_and(|&(seq, _)| seq < start) {
            self.lengths.pop_front();
        }
    }

    /// The longest payload, in bytes; 0 if there is none.
    pub(super) fn get(&self) -> usize {
        self.lengths.front().map_or(0, |&(_, len)| len.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_longest_of_the_window() {
        let lens: Vec<usize> = (0..500).map(|i: usize| i * i * 7919 % 97 * (i % 5)).collect();
        let mut longest = LongestPayload::default();
        assert_eq!(longest.get(), 0);
        for (end, &len) in lens.iter().enumerate() {
            longest.push(end as u64, len);
            // The window begins with a payload of any length.
            let start = end - end % 61;
            longest.leave(start as u64);
            assert_eq!(Some(&longest.get()), lens[start..=end].iter().max());
        }
        longest.leave(500);
        assert_eq!(longest.get(), 0);
    }
}
