//! 64 bytes at a time with AVX2: two shuffles of 32 bytes per product, each table loaded once for two
//! vectors.
//!
//! Sixteen registers: eight sums (four outputs of two vectors), four vectors of nibbles, two tables, and what
//! is left for products.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256,
    _mm256_stream_si256, _mm256_xor_si256,
};

use super::contract::{Feature, Kernel};
use super::layers::each;
use super::nibble::{self, TABLE_LEN};
use super::x86::{fence, prefetch, prefetch_write};

pub(super) static KERNEL: Kernel = Kernel {
    name: "avx2",
    features: &[Feature { name: "avx2", present: || is_x86_feature_detected!("avx2") }],
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

super::walk::walk! { features: "avx2", step: 64, table_len: TABLE_LEN, outputs: 1 2 3 4 }

super::passes::passes! { #[target_feature(enable = "avx2")] table_len: TABLE_LEN, sums: 4, tails: true }

super::halves::halves! { #[target_feature(enable = "avx2")] }

super::gather::gather! { #[target_feature(enable = "avx2")] width: 32, table_len: TABLE_LEN }

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
fn product(vector: Vector, table: &[u8; TABLE_LEN]) -> Vector {
    product_of(vector, load_tables(table))
}

use self::{Vector as Part, load_vector as load_part, store_vector as store_part, xor as xor_parts};

/// The tables of a coefficient: the products of low and of high halves of bytes, both twice.
type Loaded = [__m256i; 2];

#[inline]
#[target_feature(enable = "avx2")]
fn load_tables(table: &[u8; TABLE_LEN]) -> Loaded {
    let (halves, _) = table.as_chunks::<16>();
    [_mm256_broadcastsi128_si256(load_table(&halves[0])), _mm256_broadcastsi128_si256(load_table(&halves[1]))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn product_of(vector: Vector, [low, high]: Loaded) -> Vector {
    let mask = _mm256_set1_epi8(15);
    xor(
        _mm256_shuffle_epi8(low, _mm256_and_si256(vector, mask)),
        _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(vector), mask)),
    )
}

/// A line.
type Line = [__m256i; 2];

use self::store_line as store;

#[inline]
#[target_feature(enable = "avx2")]
fn zero_line() -> Line {
    [_mm256_setzero_si256(); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor_lines(a: Line, b: Line) -> Line {
    [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply(line: Line, table: &[u8; TABLE_LEN]) -> Line {
    add(zero(), split(line), table)
}

/// Two vectors of bytes, split into nibbles.
#[derive(Clone, Copy)]
struct Source {
    low: [__m256i; 2],
    high: [__m256i; 2],
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 64]) -> Source {
    split(load_line(bytes))
}

#[inline]
#[target_feature(enable = "avx2")]
fn split(bytes: Line) -> Source {
    let mask = _mm256_set1_epi8(15);
    let high = |bytes| _mm256_and_si256(_mm256_srli_epi64::<4>(bytes), mask);
    Source {
        low: [_mm256_and_si256(bytes[0], mask), _mm256_and_si256(bytes[1], mask)],
        high: [high(bytes[0]), high(bytes[1])],
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn zero() -> [__m256i; 2] {
    [_mm256_setzero_si256(); 2]
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(sum: [__m256i; 2], source: Source, table: &[u8; TABLE_LEN]) -> [__m256i; 2] {
    let (halves, _) = table.as_chunks::<16>();
    let low = _mm256_broadcastsi128_si256(load_table(&halves[0]));
    let high = _mm256_broadcastsi128_si256(load_table(&halves[1]));
    let product = |v: usize| {
        _mm256_xor_si256(_mm256_shuffle_epi8(low, source.low[v]), _mm256_shuffle_epi8(high, source.high[v]))
    };
    [_mm256_xor_si256(sum[0], product(0)), _mm256_xor_si256(sum[1], product(1))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_line(bytes: &[u8; 64]) -> Line {
    let (halves, _) = bytes.as_chunks::<32>();
    [load_vector(&halves[0]), load_vector(&halves[1])]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_line(bytes: &mut [u8; 64], line: Line, stream: bool) {
    // Both halves of a line are written at once: the processor gathers them into one write.
    let (halves, _) = bytes.as_chunks_mut::<32>();
    for (half, vector) in halves.iter_mut().zip(line) {
        store_vector(half, vector, stream);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_vector(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the reference vouches for 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_table(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
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
