//! Two rows in turn by the SHA extensions of x86 (S. Gulley and others, "Intel SHA Extensions", 2013).
//!
//! An instruction for two rounds takes four cycles and can begin every other cycle on most processors, so two rows fill
//! the time. A third would need more than the sixteen registers.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use super::contract::Kernel;
use super::standard::{BLOCK, K, State};
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x,
    _mm_setzero_si128, _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8,
    _mm_shuffle_epi32, _mm_storeu_si128,
};

pub(super) static KERNEL: Kernel = Kernel {
    name: "sha-ni",
    features: &[
        || is_x86_feature_detected!("sha"),
        || is_x86_feature_detected!("sse4.1"),
        || is_x86_feature_detected!("ssse3"),
    ],
    lanes: 2,
    compress,
};

#[target_feature(enable = "sha,sse4.1,ssse3")]
fn compress(states: &mut [State], rows: &[&[u8]]) {
    match (states, rows) {
        ([state], [row]) => streams([state], [row]),
        ([a, b], [row_a, row_b]) => streams([a, b], [row_a, row_b]),
        _ => panic!("one or two rows"),
    }
}

/// Four rounds of each of `N` rows.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn four_rounds<const N: usize>(
    abef: &mut [__m128i; N],
    cdgh: &mut [__m128i; N],
    w: &[__m128i; N],
    k: __m128i,
) {
    for i in 0..N {
        let sum = _mm_add_epi32(w[i], k);
        cdgh[i] = _mm_sha256rnds2_epu32(cdgh[i], abef[i], sum);
        abef[i] = _mm_sha256rnds2_epu32(abef[i], cdgh[i], _mm_shuffle_epi32::<0x0E>(sum));
    }
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn streams<const N: usize>(states: [&mut State; N], rows: [&[u8]; N]) {
    let zero = _mm_setzero_si128();
    let swap = _mm_set_epi64x(0x0C0D_0E0F_0809_0A0B, 0x0405_0607_0001_0203);
    let (mut abef, mut cdgh) = ([zero; N], [zero; N]);
    let mut blocks = [rows[0].as_chunks::<BLOCK>().0; N];
    for i in 0..N {
        blocks[i] = rows[i].as_chunks().0;
        let [dcba, hgfe] = load_state(states[i]);
        let (cdab, efgh) = (_mm_shuffle_epi32::<0xB1>(dcba), _mm_shuffle_epi32::<0x1B>(hgfe));
        abef[i] = _mm_alignr_epi8::<8>(cdab, efgh);
        cdgh[i] = _mm_blend_epi16::<0xF0>(efgh, cdab);
    }
    for nth in 0..blocks[0].len() {
        let mut now = [&blocks[0][nth]; N];
        for (now, blocks) in now.iter_mut().zip(&blocks) {
            *now = &blocks[nth];
        }
        let before = (abef, cdgh);
        let mut w = [[zero; N]; 4];
        for (quarter, w) in w.iter_mut().enumerate() {
            for i in 0..N {
                w[i] = _mm_shuffle_epi8(load(&now[i].as_chunks().0[quarter]), swap);
            }
            four_rounds(&mut abef, &mut cdgh, w, load_constants(0, quarter));
        }
        for sixteen in 1..4 {
            for quarter in 0..4 {
                let (w0, w1) = (w[quarter], w[(quarter + 1) % 4]);
                let (w2, w3) = (w[(quarter + 2) % 4], w[(quarter + 3) % 4]);
                for i in 0..N {
                    let sum =
                        _mm_add_epi32(_mm_sha256msg1_epu32(w0[i], w1[i]), _mm_alignr_epi8::<4>(w3[i], w2[i]));
                    w[quarter][i] = _mm_sha256msg2_epu32(sum, w3[i]);
                }
                four_rounds(&mut abef, &mut cdgh, &w[quarter], load_constants(sixteen, quarter));
            }
        }
        for i in 0..N {
            abef[i] = _mm_add_epi32(abef[i], before.0[i]);
            cdgh[i] = _mm_add_epi32(cdgh[i], before.1[i]);
        }
    }
    for (i, state) in states.into_iter().enumerate() {
        let (feba, dchg) = (_mm_shuffle_epi32::<0x1B>(abef[i]), _mm_shuffle_epi32::<0xB1>(cdgh[i]));
        store_state(state, [_mm_blend_epi16::<0xF0>(feba, dchg), _mm_alignr_epi8::<8>(dchg, feba)]);
    }
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn load_words(words: &[u32; 4]) -> __m128i {
    // SAFETY: the reference vouches for four readable words, 16 bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn store_words(words: &mut [u32; 4], vector: __m128i) {
    // SAFETY: the reference vouches for four words, 16 bytes, that are ours to write; the store needs no alignment.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), vector) }
}

/// The constants of four rounds.
#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn load_constants(sixteen: usize, quarter: usize) -> __m128i {
    load_words(&K[sixteen].as_chunks().0[quarter])
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn load_state(state: &State) -> [__m128i; 2] {
    let [low, high] = state.as_chunks().0 else { unreachable!("a state is two times four words") };
    [load_words(low), load_words(high)]
}

#[inline]
#[target_feature(enable = "sha,sse4.1,ssse3")]
fn store_state(state: &mut State, [dcba, hgfe]: [__m128i; 2]) {
    let [low, high] = state.as_chunks_mut().0 else { unreachable!("a state is two times four words") };
    store_words(low, dcba);
    store_words(high, hgfe);
}
