//! 32 bytes at a time with SSSE3: two shuffles of 16 bytes per product, each table loaded once for two
//! vectors.
//!
//! Sixteen registers: eight sums (four outputs of two vectors), four vectors of nibbles, two tables, and what
//! is left for products.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128, _mm_shuffle_epi8,
    _mm_srli_epi64, _mm_storeu_si128, _mm_stream_si128, _mm_xor_si128,
};

use super::contract::{Feature, Kernel};
use super::layers::each;
use super::nibble::{self, TABLE_LEN};
use super::x86::{fence, prefetch, prefetch_write};

pub(super) static KERNEL: Kernel = Kernel {
    name: "ssse3",
    features: &[Feature { name: "ssse3", present: || is_x86_feature_detected!("ssse3") }],
    max_outputs: MAX_OUTPUTS,
    table_len: TABLE_LEN,
    step: Some(STEP),
    halves: HALVES,
    program_costs: (15, 4),
    pack: nibble::pack,
    run,
    run_program,
    stream: GATHER,
};

super::walk::walk! { features: "ssse3", step: 32, table_len: TABLE_LEN, outputs: 1 2 3 4 }

super::passes::passes! { #[target_feature(enable = "ssse3")] table_len: TABLE_LEN, sums: 4, tails: true }

super::halves::halves! { #[target_feature(enable = "ssse3")] }

super::gather::gather! { #[target_feature(enable = "ssse3")] width: 16, table_len: TABLE_LEN }

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
fn product(vector: Vector, table: &[u8; TABLE_LEN]) -> Vector {
    product_of(vector, load_tables(table))
}

use self::{Vector as Part, load_vector as load_part, store_vector as store_part, xor as xor_parts};

/// The tables of a coefficient: the products of low and of high halves of bytes.
type Loaded = [Vector; 2];

#[inline]
#[target_feature(enable = "ssse3")]
fn load_tables(table: &[u8; TABLE_LEN]) -> Loaded {
    let (halves, _) = table.as_chunks::<16>();
    [load_vector(&halves[0]), load_vector(&halves[1])]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn product_of(vector: Vector, [low, high]: Loaded) -> Vector {
    let mask = _mm_set1_epi8(15);
    xor(
        _mm_shuffle_epi8(low, _mm_and_si128(vector, mask)),
        _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi64::<4>(vector), mask)),
    )
}

/// A line.
type Line = [Vector; 4];

#[inline]
#[target_feature(enable = "ssse3")]
fn zero_line() -> Line {
    [zero_vector(); 4]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn xor_lines(a: Line, b: Line) -> Line {
    [xor(a[0], b[0]), xor(a[1], b[1]), xor(a[2], b[2]), xor(a[3], b[3])]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn multiply(line: Line, table: &[u8; TABLE_LEN]) -> Line {
    let tables = load_tables(table);
    line.map(|vector| product_of(vector, tables))
}

/// Two vectors of bytes, split into nibbles.
#[derive(Clone, Copy)]
struct Source {
    low: [__m128i; 2],
    high: [__m128i; 2],
}

#[inline]
#[target_feature(enable = "ssse3")]
fn load(bytes: &[u8; 32]) -> Source {
    let (halves, _) = bytes.as_chunks::<16>();
    let mask = _mm_set1_epi8(15);
    let split = |half: &[u8; 16]| {
        let bytes = load_vector(half);
        (_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi64::<4>(bytes), mask))
    };
    let (first, second) = (split(&halves[0]), split(&halves[1]));
    Source { low: [first.0, second.0], high: [first.1, second.1] }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn zero() -> [__m128i; 2] {
    [_mm_setzero_si128(); 2]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn add(sum: [__m128i; 2], source: Source, table: &[u8; TABLE_LEN]) -> [__m128i; 2] {
    let (halves, _) = table.as_chunks::<16>();
    let (low, high) = (load_vector(&halves[0]), load_vector(&halves[1]));
    let product = |v: usize| {
        _mm_xor_si128(_mm_shuffle_epi8(low, source.low[v]), _mm_shuffle_epi8(high, source.high[v]))
    };
    [_mm_xor_si128(sum[0], product(0)), _mm_xor_si128(sum[1], product(1))]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn store(bytes: &mut [u8; 32], sum: [__m128i; 2], stream: bool) {
    // The walk's next step completes the line, so the processor gathers it into one write.
    let (halves, _) = bytes.as_chunks_mut::<16>();
    for (half, vector) in halves.iter_mut().zip(sum) {
        store_vector(half, vector, stream);
    }
}

#[inline]
#[target_feature(enable = "ssse3")]
fn load_line(bytes: &[u8; 64]) -> Line {
    let (quarters, _) = bytes.as_chunks::<16>();
    let load = |i: usize| load_vector(&quarters[i]);
    [load(0), load(1), load(2), load(3)]
}

#[inline]
#[target_feature(enable = "ssse3")]
fn store_line(bytes: &mut [u8; 64], line: Line, stream: bool) {
    // All parts of a line are written at once: the processor gathers them into one write.
    let (quarters, _) = bytes.as_chunks_mut::<16>();
    for (quarter, vector) in quarters.iter_mut().zip(line) {
        store_vector(quarter, vector, stream);
    }
}

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
