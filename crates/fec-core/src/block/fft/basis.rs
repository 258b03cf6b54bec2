//! The skews of the butterflies: normalised subspace polynomials over the basis 1, 2, 4, …, 128.
//!
//! The polynomial s_i has the 2^i points below 2^i as its roots and is scaled to s_i(2^i) = 1. It is linear
//! over bits, and constant on each coset of those points: on the 2^(i+1) points from `offset` on, a multiple of
//! 2^(i+1), it takes the value s_i(offset) on the first half and s_i(offset) + 1 on the second. The products
//! of different s_i are the basis in which polynomials are held (Lin, Chung, Han: Novel Polynomial Basis and
//! Its Application to Reed-Solomon Erasure Codes, FOCS 2014, there over another basis of the field).

use crate::gf256::kernel::{BLOCK, Skews, tail_layers};
use crate::gf256::{div, mul};

/// `SKEWS[i][j]` is s_i(2^j).
const SKEWS: [[u8; 8]; 8] = {
    let mut skews = [[0; 8]; 8];
    let mut i = 0;
    while i < 8 {
        let scale = vanishing(i, 1 << i);
        let mut j = 0;
        while j < 8 {
            skews[i][j] = div(vanishing(i, 1 << j), scale);
            j += 1;
        }
        i += 1;
    }
    skews
};

/// Π (x - p) over the 2^i points p below 2^i: v_i(x) = v_{i-1}(x) · (v_{i-1}(x) + v_{i-1}(2^(i-1))).
const fn vanishing(i: usize, x: u8) -> u8 {
    if i == 0 {
        return x;
    }
    let value = vanishing(i - 1, x);
    mul(value, value ^ vanishing(i - 1, 1 << (i - 1)))
}

/// s_i(`point`), where 2^i is `width`: the skew of butterflies of that width on the points from `point` on.
pub(super) fn skew(width: usize, point: usize) -> u8 {
    let row = &SKEWS[width.trailing_zeros() as usize];
    (0..8).filter(|j| point >> j & 1 == 1).fold(0, |sum, j| sum ^ row[j])
}

/// The skews of the four layers of the sixteen points from `offset` on.
pub(super) fn block_skews(offset: usize) -> Skews {
    let mut skews = [0; BLOCK - 1];
    let layers = [8, 4, 2, 1]
        .into_iter()
        .flat_map(|width| (offset..offset + BLOCK).step_by(2 * width).map(move |point| skew(width, point)));
    skews.iter_mut().zip(layers).for_each(|(place, skew)| *place = skew);
    skews
}

/// The skews of a tail on the sixteen points from `offset` on, the first `known` of them known.
pub(super) fn tail_skews(offset: usize, known: usize) -> Skews {
    let mut skews = Vec::with_capacity(BLOCK - 1);
    for (width, start) in tail_layers(known) {
        let half = offset + start..offset + start + width;
        skews.push(skew(width, half.start));
        for inner in [4, 2, 1].into_iter().filter(|&inner| inner < width) {
            skews.extend(half.clone().step_by(2 * inner).map(|point| skew(inner, point)));
        }
    }
    skews.try_into().expect("8 + 4 + 2 + 1 skews")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skews_are_normalised_and_constant_on_cosets() {
        for i in 0..8 {
            let width = 1 << i;
            assert_eq!(skew(width, width), 1);
            for point in 0..256 {
                assert_eq!(skew(width, point), skew(width, point / width * width));
                assert_eq!(skew(width, point) == 0, point < width, "s_{i}({point})");
            }
        }
    }
}
