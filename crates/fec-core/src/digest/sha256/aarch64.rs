//! Two rows in turn by the SHA-2 instructions of 64-bit ARM (Arm Architecture Reference Manual, `SHA256H` and its kin).
//!
//! Four rounds wait for the four before. Processors that run instructions in order (Cortex-A53, A55) stand still
//! meanwhile, so another row fills the time. The words of both fit the thirty-two registers.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use super::contract::Kernel;
use super::standard::{BLOCK, K, State};
use std::arch::aarch64::{
    uint32x4_t, vaddq_u32, vdupq_n_u32, vld1q_u8, vld1q_u32, vreinterpretq_u32_u8, vrev32q_u8,
    vsha256h2q_u32, vsha256hq_u32, vsha256su0q_u32, vsha256su1q_u32, vst1q_u32,
};
use std::arch::is_aarch64_feature_detected;

pub(super) static KERNEL: Kernel =
    Kernel { name: "arm-sha2", features: &[|| is_aarch64_feature_detected!("sha2")], lanes: 2, compress };

#[target_feature(enable = "neon,sha2")]
fn compress(states: &mut [State], rows: &[&[u8]]) {
    match (states, rows) {
        ([state], [row]) => streams([state], [row]),
        ([a, b], [row_a, row_b]) => streams([a, b], [row_a, row_b]),
        _ => panic!("one or two rows"),
    }
}

/// Four rounds of each of `N` rows.
#[inline]
#[target_feature(enable = "neon,sha2")]
fn four_rounds<const N: usize>(
    abcd: &mut [uint32x4_t; N],
    efgh: &mut [uint32x4_t; N],
    w: &[uint32x4_t; N],
    k: uint32x4_t,
) {
    for i in 0..N {
        let (before, sum) = (abcd[i], vaddq_u32(w[i], k));
        abcd[i] = vsha256hq_u32(before, efgh[i], sum);
        efgh[i] = vsha256h2q_u32(efgh[i], before, sum);
    }
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn streams<const N: usize>(states: [&mut State; N], rows: [&[u8]; N]) {
    let zero = vdupq_n_u32(0);
    let (mut abcd, mut efgh) = ([zero; N], [zero; N]);
    let mut blocks = [rows[0].as_chunks::<BLOCK>().0; N];
    for i in 0..N {
        blocks[i] = rows[i].as_chunks().0;
        [abcd[i], efgh[i]] = load_state(states[i]);
    }
    for nth in 0..blocks[0].len() {
        let mut now = [&blocks[0][nth]; N];
        for (now, blocks) in now.iter_mut().zip(&blocks) {
            *now = &blocks[nth];
        }
        let before = (abcd, efgh);
        let mut w = [[zero; N]; 4];
        for (quarter, w) in w.iter_mut().enumerate() {
            for i in 0..N {
                w[i] = load(&now[i].as_chunks().0[quarter]);
            }
            four_rounds(&mut abcd, &mut efgh, w, load_constants(0, quarter));
        }
        for sixteen in 1..4 {
            for quarter in 0..4 {
                let (w0, w1) = (w[quarter], w[(quarter + 1) % 4]);
                let (w2, w3) = (w[(quarter + 2) % 4], w[(quarter + 3) % 4]);
                for i in 0..N {
                    w[quarter][i] = vsha256su1q_u32(vsha256su0q_u32(w0[i], w1[i]), w2[i], w3[i]);
                }
                four_rounds(&mut abcd, &mut efgh, &w[quarter], load_constants(sixteen, quarter));
            }
        }
        for i in 0..N {
            abcd[i] = vaddq_u32(abcd[i], before.0[i]);
            efgh[i] = vaddq_u32(efgh[i], before.1[i]);
        }
    }
    for (i, state) in states.into_iter().enumerate() {
        store_state(state, [abcd[i], efgh[i]]);
    }
}

/// Four words, the upper byte of each first.
#[inline]
#[target_feature(enable = "neon,sha2")]
fn load(bytes: &[u8; 16]) -> uint32x4_t {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    let bytes = unsafe { vld1q_u8(bytes.as_ptr()) };
    vreinterpretq_u32_u8(vrev32q_u8(bytes))
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn load_words(words: &[u32; 4]) -> uint32x4_t {
    // SAFETY: the reference vouches for four readable words.
    unsafe { vld1q_u32(words.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn store_words(words: &mut [u32; 4], vector: uint32x4_t) {
    // SAFETY: the reference vouches for four words that are ours to write.
    unsafe { vst1q_u32(words.as_mut_ptr(), vector) }
}

/// The constants of four rounds.
#[inline]
#[target_feature(enable = "neon,sha2")]
fn load_constants(sixteen: usize, quarter: usize) -> uint32x4_t {
    load_words(&K[sixteen].as_chunks().0[quarter])
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn load_state(state: &State) -> [uint32x4_t; 2] {
    let [low, high] = state.as_chunks().0 else { unreachable!("a state is two times four words") };
    [load_words(low), load_words(high)]
}

#[inline]
#[target_feature(enable = "neon,sha2")]
fn store_state(state: &mut State, [abcd, efgh]: [uint32x4_t; 2]) {
    let [low, high] = state.as_chunks_mut().0 else { unreachable!("a state is two times four words") };
    store_words(low, abcd);
    store_words(high, efgh);
}
