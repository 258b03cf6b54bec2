//! A set of bits.

/// A bit for each of a number of things.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(count: u64) -> Bits {
        Bits(vec![0; count.div_ceil(64) as usize])
    }

    pub(crate) fn set(&mut self, nth: u64) {
        self.0[(nth / 64) as usize] |= 1 << (nth % 64);
    }

    pub(crate) fn get(&self, nth: u64) -> bool {
        self.0[(nth / 64) as usize] >> (nth % 64) & 1 == 1
    }

    /// Tells whether a bit is there and set.
    pub(crate) fn has(&self, nth: u64) -> bool {
        self.0.get((nth / 64) as usize).is_some_and(|word| word >> (nth % 64) & 1 == 1)
    }

    /// Sets every bit that is set in `other`, which has as many.
    pub(crate) fn absorb(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits |= other);
    }

    /// Clears every bit that is set in `other`, which has as many.
    pub(crate) fn subtract(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits &= !other);
    }

    /// The numbers of the bits that are set, in order.
    pub(crate) fn ones(&self) -> impl Iterator<Item = u64> {
        let words = (0..).step_by(64).zip(&self.0).filter(|(_, word)| **word != 0);
        words.flat_map(|(first, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }
}
