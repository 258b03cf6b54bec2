//! The parameters of an area, and its positions.

use crate::gf256::kernel::GROUP;
use std::ops::Range;

/// Most blocks of an area: the number of points of the field.
const MAX_BLOCKS: usize = 65_536;

/// Most recovery blocks: a decoder works on two cosets as long as what is lost.
const MAX_RECOVERY: usize = 32_768;

/// The parameters of the code of an area: k originals and m recovery blocks.
///
/// Positions 0 … m − 1 are the recovery blocks, positions m … m + k − 1 the originals. A *coset* is a stretch of
/// [`coset_len`](Self::coset_len) positions that begins at a multiple of that; the last one may be shorter.
///
/// Guaranteed: k ≥ 1, 1 ≤ m ≤ 32,768, k + m ≤ 65,536.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AreaCode {
    k: u16,
    m: u16,
}

impl AreaCode {
    /// A code of `k` originals and `m` recovery blocks.
    ///
    /// # Errors
    ///
    /// [`AreaCodeError`] when `k` or `m` is 0, `m` is more than 32,768 or `k + m` more than 65,536.
    pub fn new(k: usize, m: usize) -> Result<AreaCode, AreaCodeError> {
        let fits = k >= 1 && (1..=MAX_RECOVERY).contains(&m) && k <= MAX_BLOCKS - m;
        if fits { Ok(AreaCode { k: k as u16, m: m as u16 }) } else { Err(AreaCodeError { k, m }) }
    }

    /// Number of originals.
    pub fn k(self) -> usize {
        usize::from(self.k)
    }

    /// Number of recovery blocks.
    pub fn m(self) -> usize {
        usize::from(self.m)
    }

    /// Number of blocks, k + m.
    pub fn n(self) -> usize {
        self.k() + self.m()
    }

    /// Positions of a coset: the smallest power of two that is at least m, and 64 at least.
    pub fn coset_len(self) -> usize {
        self.m().next_power_of_two().max(GROUP)
    }

    /// Number of cosets.
    pub fn cosets(self) -> usize {
        self.n().div_ceil(self.coset_len())
    }

    /// The positions of a coset; none if there is no such coset.
    pub fn positions(self, coset: usize) -> Range<usize> {
        let end = |coset: usize| coset.saturating_mul(self.coset_len()).min(self.n());
        end(coset)..end(coset.saturating_add(1))
    }
}

/// Reason why two numbers are no code of an area.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{k} original and {m} recovery blocks are no area: it has 1 to 32,768 recovery blocks, and at most 65,536 in all"
)]
pub struct AreaCodeError {
    /// Originals asked for.
    pub k: usize,
    /// Recovery blocks asked for.
    pub m: usize,
}
