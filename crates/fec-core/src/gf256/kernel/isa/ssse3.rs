//! 32 bytes at a time with SSSE3: two shuffles of 16 bytes per product, each table loaded once for two
//! vectors.
//!
//! Sixteen registers: eight sums (four outputs of two vectors), four vectors of nibbles, two tables, and the rest for
//! products.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi8,
    _mm_srli_epi64, _mm_storeu_si128, _mm_stream_si128, _mm_xor_si128,
};

use super::nibble::{self, EVEN_TABLES, TABLE_LEN, pack_table};
use super::x86::{fence, prefetch, prefetch as prefetch_tile, prefetch_past_l1, prefetch_write};
use crate::gf256::kernel::contract::{Feature, Kernel};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::each;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "ssse3",
    features: &[Feature { name: "ssse3", present: || is_x86_feature_detected!("ssse3") }],
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

loops::matrix! { #[target_feature(enable = "ssse3")] step: 32, table_len: TABLE_LEN, outputs: [1, 2, 3, 4] }

loops::runner! { #[target_feature(enable = "ssse3")] table_len: TABLE_LEN }

loops::passes! { #[target_feature(enable = "ssse3")] table_len: TABLE_LEN, sums: 4, tails: true }

loops::parts! { #[target_feature(enable = "ssse3")] part: 16 }

loops::two_layers! { #[target_feature(enable = "ssse3")] }

loops::tail! { #[target_feature(enable = "ssse3")] }

loops::stream_loops! { #[target_feature(enable = "ssse3")] width: 16, table_len: TABLE_LEN }

loops::area_passes! { #[target_feature(enable = "ssse3")] width: 16, vectors: [0, 1, 2, 3] }

loops::area_near! { #[target_feature(enable = "ssse3")] first: 2 }

loops::area_far! { #[target_feature(enable = "ssse3")] first: 2, planes: 2 }

loops::area_rows! { #[target_feature(enable = "ssse3")] width: 16 }

nibble::nibble! { #[target_feature(enable = "ssse3")] width: 16, vectors: [0, 1, 2, 3] }

type Vector = __m128i;

#[inline]
#[target_feature(enable = "ssse3")]
fn zero_vector() -> Vector {
    _mm_setzero_si128()
}

#[inline]
#[target_feature(enable = "ssse3")]
fn xor(a: Vector, b: Vector) -> Vector {
    _mm_xor_si128(a, b)
}

#[inline]
#[target_feature(enable = "ssse3")]
fn low(vector: Vector) -> Vector {
    _mm_and_si128(vector, _mm_set1_epi8(15))
}

#[inline]
#[target_feature(enable = "ssse3")]
fn high(vector: Vector) -> Vector {
    low(_mm_srli_epi64::<4>(vector))
}

#[inline]
#[target_feature(enable = "ssse3")]
fn look_up(table: Vector, indices: Vector) -> Vector {
    _mm_shuffle_epi8(table, indices)
}

use self::{
    Vector as Part, forward_few_planes as forward_planes, inverse_few_planes as inverse_planes,
    load_vector as load_part, load_vector as load_table, product_of_vector as product_of,
    store_vector as store_part, xor as xor_parts,
};

#[inline]
#[target_feature(enable = "ssse3")]
fn load_vector(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn store_vector(bytes: &mut [u8; 16], vector: __m128i, stream: bool) {
    let at: *mut __m128i = bytes.as_mut_ptr().cast();
    if stream && at.is_aligned() {
        // SAFETY: the reference vouches for 16 bytes that are ours to write, the test above for their
        // alignment. The fence at the end of `run` orders the store before whatever comes after.
        unsafe { _mm_stream_si128(at, vector) }
    } else {
        // SAFETY: the reference vouches for 16 bytes that are ours to write; the store needs no alignment.
        unsafe { _mm_storeu_si128(at, vector) }
    }
}
