//! Sixteen rows in the lanes of AVX-512, which rotates in one instruction and combines three words by any function in
//! another. All sixteen words of a block and the eight of the state fit its thirty-two registers.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use super::contract::Kernel;
use super::standard::{BLOCK, K, State};
use super::vertical::vertical;
use crate::gf256::kernel::loops::each::each;
use crate::gf256::kernel::prefetch;
use std::arch::asm;
use std::arch::x86_64::{
    __m512i, _mm_set_epi64x, _mm512_add_epi32, _mm512_broadcast_i32x4, _mm512_loadu_si512,
    _mm512_permutex2var_epi64, _mm512_ror_epi32, _mm512_set1_epi32, _mm512_setr_epi64, _mm512_shuffle_epi8,
    _mm512_shuffle_i32x4, _mm512_srli_epi32, _mm512_storeu_si512, _mm512_sub_epi32,
    _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64,
};

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx512",
    features: &[|| is_x86_feature_detected!("avx512f"), || is_x86_feature_detected!("avx512bw")],
    lanes: LANES,
    compress,
};

vertical! { #[target_feature(enable = "avx512f,avx512bw")] lanes: 16 }

type Vector = __m512i;

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn splat(word: u32) -> Vector {
    _mm512_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add(a: Vector, b: Vector) -> Vector {
    _mm512_add_epi32(a, b)
}

/// Assembly, because the compiler reorders sums of several words, and a hash then takes a fifth longer.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn then_add(a: Vector, b: Vector) -> Vector {
    let sum;
    // SAFETY: the instruction is part of AVX512F, which this function has. It writes its output register, and touches
    // no memory and no flags.
    unsafe {
        asm!(
            "vpaddd {sum}, {a}, {b}",
            sum = lateout(zmm_reg) sum,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn subtract(a: Vector, b: Vector) -> Vector {
    _mm512_sub_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn rotate<const N: i32>(a: Vector) -> Vector {
    _mm512_ror_epi32::<N>(a)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn shift<const N: u32>(a: Vector) -> Vector {
    _mm512_srli_epi32::<N>(a)
}

// The numbers below are truth tables: bit 4a + 2b + c is the result for these bits.

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor3(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm512_ternarylogic_epi32::<0b1001_0110>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn choose(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm512_ternarylogic_epi32::<0b1100_1010>(a, b, c)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn majority(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm512_ternarylogic_epi32::<0b1110_1000>(a, b, c)
}

/// The transpose of sixteen rows of sixteen words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_blocks(blocks: &[&[u8; BLOCK]; LANES]) -> [Vector; 16] {
    let swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0C0D_0E0F_0809_0A0B, 0x0405_0607_0001_0203));
    let mut w = [swap; 16];
    // Quarters of four rows come first: a quarter of `w[4 * i + c]` is word c of a quarter of the rows from 4 · i on.
    for i in [0, 4, 8, 12] {
        let mut rows = [swap; 4];
        for (row, block) in rows.iter_mut().zip(&blocks[i..]) {
            *row = _mm512_shuffle_epi8(load(block), swap);
        }
        w[i..i + 4].copy_from_slice(&transpose_quarters(rows));
    }
    // The quarters follow.
    for c in 0..4 {
        let (a, b, d, e) = (w[c], w[4 + c], w[8 + c], w[12 + c]);
        let (low, high) = (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xEE>(a, b));
        let (low_next, high_next) = (_mm512_shuffle_i32x4::<0x44>(d, e), _mm512_shuffle_i32x4::<0xEE>(d, e));
        w[c] = _mm512_shuffle_i32x4::<0x88>(low, low_next);
        w[4 + c] = _mm512_shuffle_i32x4::<0xDD>(low, low_next);
        w[8 + c] = _mm512_shuffle_i32x4::<0x88>(high, high_next);
        w[12 + c] = _mm512_shuffle_i32x4::<0xDD>(high, high_next);
    }
    w
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(block: &[u8; BLOCK]) -> Vector {
    // SAFETY: the reference vouches for 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

/// Rows in the order of the lanes: the transpose of pairs of states leaves them so.
const ORDER: [usize; LANES] = [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15];

/// The transpose of sixteen states, two of which fill a vector.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_states(states: &[State; LANES]) -> [Vector; 8] {
    let mut pairs = [splat(0); 8];
    for (pair, states) in pairs.iter_mut().zip(states.as_chunks().0) {
        *pair = load_pair(states);
    }
    let [a, b, c, d, e, f, g, h] = pairs;
    // A quarter of each is a word of four states: word i or 4 + i of every other state.
    let (left, right) = (transpose_quarters([a, b, c, d]), transpose_quarters([e, f, g, h]));
    let mut words = pairs;
    for i in 0..4 {
        words[i] = _mm512_shuffle_i32x4::<0x88>(left[i], right[i]);
        words[4 + i] = _mm512_shuffle_i32x4::<0xDD>(left[i], right[i]);
    }
    words
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_states(states: &mut [State; LANES], [a, b, c, d, e, f, g, h]: [Vector; 8]) {
    let (low, high) = (transpose_quarters([a, b, c, d]), transpose_quarters([e, f, g, h]));
    let pairs = states.as_chunks_mut().0;
    for i in 0..4 {
        // The quarters of both are in turn the halves of two states.
        store_pair(
            &mut pairs[i],
            _mm512_permutex2var_epi64(low[i], eights([0, 1, 8, 9, 2, 3, 10, 11]), high[i]),
        );
        store_pair(
            &mut pairs[4 + i],
            _mm512_permutex2var_epi64(low[i], eights([4, 5, 12, 13, 6, 7, 14, 15]), high[i]),
        );
    }
}

/// In each quarter, the transpose of four rows of four words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn transpose_quarters([a, b, c, d]: [Vector; 4]) -> [Vector; 4] {
    let (low, high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (low_next, high_next) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(low, low_next),
        _mm512_unpackhi_epi64(low, low_next),
        _mm512_unpacklo_epi64(high, high_next),
        _mm512_unpackhi_epi64(high, high_next),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn eights([a, b, c, d, e, f, g, h]: [i64; 8]) -> Vector {
    _mm512_setr_epi64(a, b, c, d, e, f, g, h)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_pair(states: &[State; 2]) -> Vector {
    // SAFETY: the reference vouches for sixteen readable words, 64 bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(states.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_pair(states: &mut [State; 2], vector: Vector) {
    // SAFETY: the reference vouches for sixteen words, 64 bytes, that are ours to write; the store needs no alignment.
    unsafe { _mm512_storeu_si512(states.as_mut_ptr().cast(), vector) }
}
