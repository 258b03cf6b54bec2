//! The cut of windows into Reed-Solomon sets (format specification, section 14.4). Packets are dealt out to the sets in
//! turn, so that all of them share a burst of losses; the repair packets are dealt in the same order.

/// The cut of a window of `count` packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    pub(super) count: u32,
    pub(super) sets: u32,
}

impl Deal {
    /// The cut into sets of at most `block` packets.
    pub(super) fn new(count: u32, block: u16) -> Deal {
        Deal { count, sets: count.div_ceil(u32::from(block)) }
    }

    /// Number of packets in a set.
    pub(super) fn packets(self, set: u32) -> u32 {
        (self.count - set).div_ceil(self.sets)
    }

    /// Number of packets in the largest set.
    pub(super) fn most_packets(self) -> u32 {
        self.packets(0)
    }
}
