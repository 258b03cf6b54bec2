//! Many yes-or-no answers.

/// A bit for each of a number of things.
#[derive(Clone, Debug, Default)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(count: u64) -> Bits {
        Bits(vec![0; count.div_ceil(64) as usize])
    }

    pub(super) fn set(&mut self, nth: u64) {
        self.0[(nth / 64) as usize] |= 1 << (nth % 64);
    }

    pub(super) fn clear(&mut self, nth: u64) {
        self.0[(nth / 64) as usize] &= !(1 << (nth % 64));
    }

    pub(super) fn get(&self, nth: u64) -> bool {
        self.0[(nth / 64) as usize] >> (nth % 64) & 1 == 1
    }

    pub(super) fn count(&self) -> u64 {
        self.0.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// Those that are set, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let of_word = |(nth, bits): (u64, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| nth * 64 + bit)
        };
        (0..).zip(&self.0).filter(|(_, bits)| **bits != 0).flat_map(of_word)
    }
}
