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

use super::contract::{Feature, Kernel};
use super::each::each;
use super::nibble::{self, TABLE_LEN};
use super::x86::{fence, prefetch, prefetch as prefetch_tile, prefetch_past_l1, prefetch_write};

pub(super) static KERNEL: Kernel = Kernel {
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
};

super::matrix::matrix! { #[target_feature(enable = "ssse3")] step: 32, table_len: TABLE_LEN, outputs: [1, 2, 3, 4] }

super::runner::runner! { #[target_feature(enable = "ssse3")] table_len: TABLE_LEN }

super::passes::passes! { #[target_feature(enable = "ssse3")] table_len: TABLE_LEN, sums: 4, tails: true }

super::parts::parts! { #[target_feature(enable = "ssse3")] part: 16 }

super::two_layers::two_layers! { #[target_feature(enable = "ssse3")] }

super::tail::tail! { #[target_feature(enable = "ssse3")] }

super::stream_loops::stream_loops! { #[target_feature(enable = "ssse3")] width: 16, table_len: TABLE_LEN }

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
    Vector as Part, load_vector as load_part, load_vector as load_table, product_of_vector as product_of,
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
