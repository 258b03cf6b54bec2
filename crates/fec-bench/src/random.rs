//! Bytes without structure, so that no code or hash can take a short cut, and choices that follow from a seed.
//!
//! The generator is that of the golden vectors (Knuth's MMIX constants, the upper half of the state), not the generator
//! of `fec_core::random`: digests of another codec's shards were made with it.

/// The generator. All seeds are good for bytes.
#[derive(Clone, Debug)]
pub(crate) struct Mmix(pub(crate) u64);

impl Mmix {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((u64::from(self.next()) * limit as u64) >> 32) as usize
    }

    /// All numbers below `count`, in any order (Fisher and Yates).
    pub(crate) fn order(&mut self, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..count).collect();
        (1..count).rev().for_each(|last| all.swap(last, self.below(last + 1)));
        all
    }

    /// `count` different numbers below `limit`, ascending.
    pub(crate) fn some(&mut self, count: usize, limit: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..limit).collect();
        for i in 0..count {
            let other = i + self.below(limit - i);
            all.swap(i, other);
        }
        all.truncate(count);
        all.sort_unstable();
        all
    }

    /// Fills `bytes`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        bytes.iter_mut().for_each(|byte| *byte = (self.next() >> 24) as u8);
    }
}
