//! Eight rows in the lanes of AVX2, for processors without instructions for SHA-256.
//!
//! Rotations are two shifts and a sum, and the words of a block do not fit the registers.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use super::contract::Kernel;
use super::standard::{BLOCK, K, State};
use super::vertical::vertical;
use crate::gf256::kernel::loops::each::each;
use crate::gf256::kernel::prefetch;
use std::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_add_epi32, _mm256_and_si256, _mm256_broadcastsi128_si256,
    _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_shuffle_epi8,
    _mm256_sllv_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_sub_epi32, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

pub(super) static KERNEL: Kernel =
    Kernel { name: "avx2", features: &[|| is_x86_feature_detected!("avx2")], lanes: LANES, compress };

vertical! { #[target_feature(enable = "avx2")] lanes: 8 }

type Vector = __m256i;

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u32) -> Vector {
    _mm256_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: Vector, b: Vector) -> Vector {
    _mm256_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn then_add(a: Vector, b: Vector) -> Vector {
    add(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn subtract(a: Vector, b: Vector) -> Vector {
    _mm256_sub_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate<const N: i32>(a: Vector) -> Vector {
    _mm256_or_si256(_mm256_srli_epi32::<N>(a), _mm256_sllv_epi32(a, splat(32 - N.cast_unsigned())))
}

#[inline]
#[target_feature(enable = "avx2")]
fn shift<const N: i32>(a: Vector) -> Vector {
    _mm256_srli_epi32::<N>(a)
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor3(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm256_xor_si256(_mm256_xor_si256(a, b), c)
}

#[inline]
#[target_feature(enable = "avx2")]
fn choose(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm256_xor_si256(_mm256_and_si256(a, _mm256_xor_si256(b, c)), c)
}

#[inline]
#[target_feature(enable = "avx2")]
fn majority(a: Vector, b: Vector, c: Vector) -> Vector {
    let differ = _mm256_and_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(b, c));
    _mm256_xor_si256(differ, b)
}

/// The transpose of eight rows of sixteen words.
#[inline]
#[target_feature(enable = "avx2")]
fn load_blocks(blocks: &[&[u8; BLOCK]; LANES]) -> [Vector; 16] {
    let swap = _mm256_broadcastsi128_si256(_mm_set_epi64x(0x0C0D_0E0F_0809_0A0B, 0x0405_0607_0001_0203));
    let mut w = [swap; 16];
    for (half, w) in w.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // Four rows at a time: a half of `w[i + c]` is word c of a quarter of the rows from i on.
        for i in [0, 4] {
            let mut rows = [swap; 4];
            for (row, block) in rows.iter_mut().zip(&blocks[i..]) {
                *row = _mm256_shuffle_epi8(load(&block.as_chunks().0[half]), swap);
            }
            w[i..i + 4].copy_from_slice(&transpose_halves(rows));
        }
        let [a, b, c, d, e, f, g, h] = *w;
        *w = join_halves([a, b, c, d], [e, f, g, h]);
    }
    w
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> Vector {
    // SAFETY: the reference vouches for 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// Rows in the order of the lanes.
const ORDER: [usize; LANES] = [0, 1, 2, 3, 4, 5, 6, 7];

/// The transpose of eight states.
#[inline]
#[target_feature(enable = "avx2")]
fn load_states(states: &[State; LANES]) -> [Vector; 8] {
    let mut rows = [splat(0); 8];
    for (row, state) in rows.iter_mut().zip(states) {
        *row = load_state(state);
    }
    let [a, b, c, d, e, f, g, h] = rows;
    let (left, right) = (transpose_halves([a, b, c, d]), transpose_halves([e, f, g, h]));
    join_halves(left, right)
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_states(states: &mut [State; LANES], [a, b, c, d, e, f, g, h]: [Vector; 8]) {
    let rows = join_halves(transpose_halves([a, b, c, d]), transpose_halves([e, f, g, h]));
    for (state, row) in states.iter_mut().zip(rows) {
        store_state(state, row);
    }
}

/// In each half, the transpose of four rows of four words.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_halves([a, b, c, d]: [Vector; 4]) -> [Vector; 4] {
    let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (low_next, high_next) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(low, low_next),
        _mm256_unpackhi_epi64(low, low_next),
        _mm256_unpacklo_epi64(high, high_next),
        _mm256_unpackhi_epi64(high, high_next),
    ]
}

/// The lower halves of both side by side, then the upper ones.
#[inline]
#[target_feature(enable = "avx2")]
fn join_halves(left: [Vector; 4], right: [Vector; 4]) -> [Vector; 8] {
    let mut joined = [splat(0); 8];
    for i in 0..4 {
        joined[i] = _mm256_permute2x128_si256::<0x20>(left[i], right[i]);
        joined[4 + i] = _mm256_permute2x128_si256::<0x31>(left[i], right[i]);
    }
    joined
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_state(state: &State) -> Vector {
    // SAFETY: the reference vouches for eight readable words, 32 bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(state.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_state(state: &mut State, vector: Vector) {
    // SAFETY: the reference vouches for eight words, 32 bytes, that are ours to write; the store needs no alignment.
    unsafe { _mm256_storeu_si256(state.as_mut_ptr().cast(), vector) }
}
