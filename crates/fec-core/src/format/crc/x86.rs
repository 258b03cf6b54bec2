//! CRC32C with SSE4.2 and PCLMULQDQ, up to 8 bytes per cycle.
//!
//! The CRC instruction takes 8 bytes and gives its result three cycles later, but can start each cycle. The bytes are
//! therefore cut into three lanes of equal length, each with a sum of its own. A carry-less product with a constant
//! moves the sum in front of a lane over that lane. The method follows V. Gopal et al., "Fast CRC Computation for iSCSI
//! Polynomial Using CRC32 Instruction", Intel 2011; the lanes here have any length up to [`MAX_STEPS`], so a packet of
//! any usual length is cut once.

// This file holds the call that needs processor features, at its end.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u16, _mm_crc32_u32, _mm_crc32_u64, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_xor_si128,
};

/// The polynomial without x^32, reflected: bit 31 - i is the factor of x^i.
const POLYNOMIAL: u32 = 0x1EDC_6F41_u32.reverse_bits();

/// Steps of 8 bytes in the longest lanes: input longer than three such lanes is cut more than once.
const MAX_STEPS: usize = 192;

/// Fewest bytes for which lanes pay.
const MIN_LANES: usize = 160;

/// Constants that move sums over two lanes and over one, at index `steps - 1`. A cut reads one entry.
///
/// To move a sum over `n` bits is to multiply it by x^n. The entry is x^(n - 33): the product of two reflected
/// polynomials stands one bit low in 64 bits, a factor of x, and [`reduce`] multiplies by x^32.
static SHIFTS: [[u32; 2]; MAX_STEPS] = shifts();

const fn shifts() -> [[u32; 2]; MAX_STEPS] {
    let mut shifts = [[0; 2]; MAX_STEPS];
    // x^31 and x^95, reflected: bit 31 - i is the factor of x^i.
    let (mut one, mut two) = (1, times_x(1, 64));
    let mut i = 0;
    while i < MAX_STEPS {
        shifts[i] = [two, one];
        one = times_x(one, 64);
        two = times_x(two, 128);
        i += 1;
    }
    shifts
}

/// The reflected polynomial times x^`times`.
const fn times_x(mut polynomial: u32, times: u32) -> u32 {
    let mut i = 0;
    while i < times {
        polynomial = (polynomial >> 1) ^ ((polynomial & 1) * POLYNOMIAL);
        i += 1;
    }
    polynomial
}

/// The remainder of 64 bits times x^32.
#[inline]
#[target_feature(enable = "sse4.2")]
fn reduce(bits: i64) -> u64 {
    _mm_crc32_u64(0, bits as u64)
}

/// `sum`, continued by `bytes`.
#[inline]
#[target_feature(enable = "sse4.2,pclmulqdq")]
fn append(mut sum: u64, mut bytes: &[u8]) -> u64 {
    while bytes.len() >= MIN_LANES {
        let steps = (bytes.len() / 24).min(MAX_STEPS);
        let (first, rest) = bytes.split_at(8 * steps);
        let (second, rest) = rest.split_at(8 * steps);
        let (third, rest) = rest.split_at(8 * steps);
        let mut sums = [sum, 0, 0];
        for ((a, b), c) in first.as_chunks().0.iter().zip(second.as_chunks().0).zip(third.as_chunks().0) {
            sums[0] = _mm_crc32_u64(sums[0], u64::from_le_bytes(*a));
            sums[1] = _mm_crc32_u64(sums[1], u64::from_le_bytes(*b));
            sums[2] = _mm_crc32_u64(sums[2], u64::from_le_bytes(*c));
        }
        let product = |sum: u64, shift: u32| {
            _mm_clmulepi64_si128::<0>(_mm_cvtsi64_si128(sum as i64), _mm_cvtsi64_si128(i64::from(shift)))
        };
        let [over_two, over_one] = SHIFTS[steps - 1];
        let moved = _mm_xor_si128(product(sums[0], over_two), product(sums[1], over_one));
        sum = reduce(_mm_cvtsi128_si64(moved)) ^ sums[2];
        bytes = rest;
    }
    let (words, rest) = bytes.as_chunks();
    for word in words {
        sum = _mm_crc32_u64(sum, u64::from_le_bytes(*word));
    }
    let mut sum = sum as u32;
    let (words, rest) = rest.as_chunks();
    for word in words {
        sum = _mm_crc32_u32(sum, u32::from_le_bytes(*word));
    }
    let (words, rest) = rest.as_chunks();
    for word in words {
        sum = _mm_crc32_u16(sum, u16::from_le_bytes(*word));
    }
    for byte in rest {
        sum = _mm_crc32_u8(sum, *byte);
    }
    u64::from(sum)
}

#[target_feature(enable = "sse4.2,pclmulqdq")]
fn of_parts(parts: &[&[u8]]) -> u32 {
    !(parts.iter().fold(u64::from(!0u32), |sum, part| append(sum, part)) as u32)
}

/// CRC32C of some bytes, one slice after the other, if the processor has the instructions.
pub(super) fn crc32c(parts: &[&[u8]]) -> Option<u32> {
    if !(is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq")) {
        return None;
    }
    // SAFETY: the processor has both features that `of_parts` is compiled for.
    Some(unsafe { of_parts(parts) })
}
