//! Anchors: a hash of the first bytes of some blocks, which can be sought at every byte offset (section 17.2).

use crate::random::SplitMix64;

/// Bytes that an anchor is a hash of.
pub const WINDOW: usize = 64;

/// The hash of the last 64 bytes, byte by byte: each step shifts older bytes out.
#[derive(Debug)]
pub struct Gear([u64; 256]);

impl Default for Gear {
    fn default() -> Gear {
        Gear(std::array::from_fn(|byte| SplitMix64::new(byte as u64).next()))
    }
}

impl Gear {
    /// The hash after another byte.
    #[inline(always)]
    pub fn step(&self, hash: u64, byte: u8) -> u64 {
        (hash << 1).wrapping_add(self.0[usize::from(byte)])
    }

    /// The anchor of a block; 0 if its first bytes are all equal.
    ///
    /// # Panics
    /// If the block has fewer than [`WINDOW`] bytes.
    pub fn anchor(&self, block: &[u8]) -> u64 {
        let bytes = &block[..WINDOW];
        if bytes.iter().all(|byte| *byte == bytes[0]) {
            return 0;
        }
        bytes.iter().fold(0, |hash, byte| self.step(hash, *byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_bytes_count() {
        let gear = Gear::default();
        let bytes: Vec<u8> = (0..500u32).map(|i| ((i * i) >> 3) as u8).collect();
        let mut hash = 0;
        for (end, byte) in (1..).zip(&bytes) {
            hash = gear.step(hash, *byte);
            if end >= WINDOW {
                assert_eq!(hash, gear.anchor(&bytes[end - WINDOW..]), "{end}");
            }
        }
        assert_eq!(gear.anchor(&[7; 64]), 0);
    }
}
