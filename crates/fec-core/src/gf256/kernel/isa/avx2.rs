//! 64 bytes at a time with AVX2: two shuffles of 32 bytes per product, each table loaded once for two
//! vectors.
//!
//! Sixteen registers: eight sums (four outputs of two vectors), four vectors of nibbles, two tables, and the rest for
//! products.

// This file loads and stores through pointers: helpers at its end.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_stream_si256, _mm256_xor_si256,
};

use super::nibble::{self, EVEN_TABLES, TABLE_LEN, pack_table};
use super::x86::{fence, prefetch, prefetch as prefetch_tile, prefetch_past_l1, prefetch_write};
use crate::gf256::kernel::contract::{Feature, Kernel};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::each;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "avx2",
    features: &[Feature { name: "avx2", present: || is_x86_feature_detected!("avx2") }],
    max_outputs: MAX_OUTPUTS,
    table_len: TABLE_LEN,
    two_layers: TWO_LAYERS,
    program_costs: (15, 4),
    pack: nibble::pack,
    run,
    run_program,
    stream: STREAM_LOOPS,
    area: AREA_LOOPS,
};

loops::matrix! { #[target_feature(enable = "avx2")] step: 64, table_len: TABLE_LEN, outputs: [1, 2, 3, 4] }

loops::runner! { #[target_feature(enable = "avx2")] table_len: TABLE_LEN }

loops::passes! { #[target_feature(enable = "avx2")] table_len: TABLE_LEN, sums: 4, tails: true }

loops::parts! { #[target_feature(enable = "avx2")] part: 32 }

loops::two_layers! { #[target_feature(enable = "avx2")] }

loops::tail! { #[target_feature(enable = "avx2")] }

loops::stream_loops! { #[target_feature(enable = "avx2")] width: 32, table_len: TABLE_LEN }

loops::area_passes! { #[target_feature(enable = "avx2")] width: 32, vectors: [0, 1] }

loops::area_near! { #[target_feature(enable = "avx2")] first: 2 }

loops::area_far! { #[target_feature(enable = "avx2")] first: 2, planes: 2 }

loops::area_rows! { #[target_feature(enable = "avx2")] width: 32 }

nibble::nibble! { #[target_feature(enable = "avx2")] width: 32, vectors: [0, 1] }

type Vector = __m256i;

#[inline]
#[target_feature(enable = "avx2")]
fn zero_vector() -> Vector {
    _mm256_setzero_si256()
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(a: Vector, b: Vector) -> Vector {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn low(vector: Vector) -> Vector {
    _mm256_and_si256(vector, _mm256_set1_epi8(15))
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(vector: Vector) -> Vector {
    low(_mm256_srli_epi64::<4>(vector))
}

/// Looks up in both halves of the register.
#[inline]
#[target_feature(enable = "avx2")]
fn look_up(table: Vector, indices: Vector) -> Vector {
    _mm256_shuffle_epi8(table, indices)
}

use self::{
    Vector as Part, forward_few_planes as forward_planes, inverse_few_planes as inverse_planes,
    load_vector as load_part, product_of_vector as product_of, store_vector as store_part, xor as xor_parts,
};

#[inline]
#[target_feature(enable = "avx2")]
fn load_vector(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference vouches for 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_table(bytes: &[u8; 16]) -> Vector {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    let table = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(table)
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_vector(bytes: &mut [u8; 32], vector: __m256i, stream: bool) {
    let at: *mut __m256i = bytes.as_mut_ptr().cast();
    if stream && at.is_aligned() {
        // SAFETY: the reference vouches for 32 bytes that are ours to write, the test above for their
        // alignment. The fence at the end of `run` orders the store before whatever comes after.
        unsafe { _mm256_stream_si256(at, vector) }
    } else {
        // SAFETY: the reference vouches for 32 bytes that are ours to write; the store needs no alignment.
        unsafe { _mm256_storeu_si256(at, vector) }
    }
}
