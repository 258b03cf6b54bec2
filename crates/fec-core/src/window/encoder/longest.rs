//! The longest payload of a window that slides: how long the symbols of its rows are.

use std::collections::VecDeque;

/// Lengths of payloads, of which only those count that no later one of at least the same length follows.
#[derive(Debug, Default)]
pub(super) struct LongestPayload {
    /// Packets and their lengths: the lengths descend.
    lengths: VecDeque<(u64, u16)>,
}

impl LongestPayload {
    /// The next packet. Its work is in proportion to what it puts out, so that of all packets is in proportion to their number.
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
            // At the beginning of a window stands a payload of any length.
            let start = end - end % 61;
            longest.leave(start as u64);
            assert_eq!(Some(&longest.get()), lens[start..=end].iter().max());
        }
        longest.leave(500);
        assert_eq!(longest.get(), 0);
    }
}
