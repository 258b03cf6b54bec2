//! The field GF(2^16) as pairs of bytes over [`gf256`], and its points in Cantor's order.
//!
//! An element is c + d·θ with bytes c and d and θ² = θ + λ; as a number it is c + 256·d. Points come from Cantor's
//! basis β_0 … β_15: β_0 = 1 and β_i² + β_i = β_(i-1) (Cantor, On arithmetical algorithms over finite fields, Journal
//! of Combinatorial Theory A 50, 1989). Its first eight span the bytes, λ is β_7 and θ is β_8.
//!
//! The subspace polynomials of this basis need no scaling: s_0 = x, s_(i+1) = s_i² + s_i, and s_i of the point of p is
//! the point of p >> i. A single function therefore gives the skews of all layers of a transform, and the skew of layer
//! i at position p is a byte exactly if p >> i is below 256.
//!
//! Set-up code computes here, an element at a time. Bytes in bulk go through a [`kernel`](crate::gf256::kernel).

use crate::gf256;
use std::sync::LazyLock;

/// λ, the constant of the polynomial of θ.
pub const LAMBDA: u8 = 0xE6;

/// Cantor's basis, of the two roots always the smaller number.
pub const BASIS: [u16; 16] = [
    0x0001, 0x00D6, 0x0098, 0x0092, 0x0056, 0x00C8, 0x0058, 0x00E6, 0x0100, 0xD6F8, 0x98B0, 0x92E8, 0x56EC,
    0xC830, 0x587C, 0xE6E6,
];

/// The smallest element that generates the multiplicative group.
const GENERATOR: u16 = 0x0102;

/// Elements but 0: the order of the multiplicative group.
pub(crate) const ORDER: u32 = 65_535;

/// The product a·b, by three products of bytes.
#[inline]
pub const fn mul(a: u16, b: u16) -> u16 {
    let ([a, b], [c, d]) = (a.to_le_bytes(), b.to_le_bytes());
    let low = gf256::mul(a, c);
    let high = gf256::mul(b, gf256::mul(d, LAMBDA));
    u16::from_le_bytes([low ^ high, low ^ gf256::mul(a ^ b, c ^ d)])
}

/// The inverse of `a`: `mul(a, inv(a))` is 1.
///
/// # Panics
///
/// When `a` is 0, which has no inverse.
pub fn inv(a: u16) -> u16 {
    exp(ORDER - u32::from(log(a)))
}

/// The point of a position: the sum of the β_j over the bits j of `position`.
#[inline]
pub const fn point(position: u16) -> u16 {
    let (mut sum, mut bit) = (0, 0);
    while bit < 16 {
        if position >> bit & 1 == 1 {
            sum ^= BASIS[bit];
        }
        bit += 1;
    }
    sum
}

/// The logarithm of `a` to the base of a fixed generator, below 65,535.
///
/// # Panics
///
/// When `a` is 0, which has none.
pub(crate) fn log(a: u16) -> u16 {
    assert!(a != 0, "0 has no logarithm");
    TABLES.log[usize::from(a)]
}

/// The power of that generator with an exponent of at most 65,535.
pub(crate) fn exp(exponent: u32) -> u16 {
    TABLES.exp[exponent as usize]
}

/// Powers and logarithms, 256 KiB. The first call computes them.
struct Tables {
    exp: Vec<u16>,
    log: Vec<u16>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| {
    let (mut exp, mut log) = (vec![1; ORDER as usize + 1], vec![0; ORDER as usize + 1]);
    let mut power = 1;
    for (exponent, place) in (0..ORDER as u16).zip(&mut exp) {
        *place = power;
        log[usize::from(power)] = exponent;
        power = mul(power, GENERATOR);
    }
    Tables { exp, log }
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    /// Products by the definition: θ² = θ + λ, and bytes bit by bit.
    fn product(x: u16, y: u16) -> u16 {
        let byte = |a: u8, b: u8| {
            (0..8).rev().fold(0u8, |sum, bit| {
                let doubled = sum << 1 ^ if sum >> 7 == 1 { 0x1D } else { 0 };
                doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
            })
        };
        let ([a, b], [c, d]) = (x.to_le_bytes(), y.to_le_bytes());
        let squares = byte(b, d);
        u16::from_le_bytes([byte(a, c) ^ byte(squares, 0xE6), byte(a, d) ^ byte(b, c) ^ squares])
    }

    fn elements() -> impl Iterator<Item = (u16, u16)> {
        let mut noise = SplitMix64::new(3);
        let edges = [0, 1, 2, 0xFF, 0x100, 0x101, 0xE6E6, 0xFFFF];
        let pairs: Vec<(u16, u16)> = edges.iter().flat_map(|&a| edges.map(|b| (a, b))).collect();
        pairs.into_iter().chain((0..if cfg!(miri) { 100 } else { 100_000 }).map(move |_| {
            let draw = noise.next();
            (draw as u16, (draw >> 16) as u16)
        }))
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (a, b) in elements() {
            assert_eq!(mul(a, b), product(a, b), "{a:04X} · {b:04X}");
        }
        assert_eq!(mul(0x1234, 0xABCD), 0xD2D3);
    }

    #[test]
    #[cfg_attr(miri, ignore = "the tables take too long")]
    fn every_element_but_0_is_a_power_and_has_an_inverse() {
        let mut seen = vec![false; 65_536];
        for exponent in 0..ORDER {
            let power = exp(exponent);
            assert!(!std::mem::replace(&mut seen[usize::from(power)], true), "{power:04X} comes twice");
            assert_eq!(u32::from(log(power)), exponent);
            assert_eq!(mul(power, inv(power)), 1, "{power:04X}");
        }
        assert!(!seen[0]);
        assert_eq!(exp(ORDER), 1);
    }

    #[test]
    fn the_basis_is_the_chain_of_smaller_roots() {
        for pair in BASIS.windows(2) {
            let root = pair[1];
            assert_eq!(mul(root, root) ^ root, pair[0]);
            // The other root is that plus 1.
            assert!(root & 1 == 0);
        }
        assert_eq!((BASIS[0], BASIS[7], BASIS[8]), (1, LAMBDA.into(), 0x100));
    }

    #[test]
    fn subspace_polynomials_shift_positions() {
        for position in (0..=u16::MAX).step_by(if cfg!(miri) { 7001 } else { 77 }) {
            let mut s = point(position);
            for layer in 0..16 {
                assert_eq!(s, point(position >> layer));
                assert_eq!(s < 256, position >> layer < 256);
                s = mul(s, s) ^ s;
            }
            assert_eq!(s, 0);
        }
    }

    #[test]
    #[should_panic(expected = "0 has no logarithm")]
    fn zero_has_no_inverse() {
        inv(0);
    }
}
