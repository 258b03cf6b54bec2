//! 32 bytes at a time with NEON: two table lookups of 16 bytes per product, each table loaded once for two
//! vectors.
//!
//! Thirty-two registers: sixteen sums (eight outputs of two vectors), four vectors of nibbles, two tables,
//! and the rest for products. NEON has no store past the caches that an intrinsic could name; all stores are
//! ordinary ones.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vld1q_u8_x4, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};
use std::arch::{asm, is_aarch64_feature_detected};

use super::contract::{Feature, Kernel};
use super::layers::each;
use super::nibble::{self, TABLE_LEN};

pub(super) static KERNEL: Kernel = Kernel {
    name: "neon",
    features: &[Feature { name: "neon", present: || is_aarch64_feature_detected!("neon") }],
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

super::walk::walk! { features: "neon", step: 32, table_len: TABLE_LEN, outputs: 1 2 3 4 5 6 7 8 }

super::passes::passes! { #[target_feature(enable = "neon")] table_len: TABLE_LEN, sums: 4, tails: true }

super::halves::halves! { #[target_feature(enable = "neon")] }

super::gather::gather! { #[target_feature(enable = "neon")] width: 16, table_len: TABLE_LEN, four_loads: own }

type Vector = uint8x16_t;

#[inline]
#[target_feature(enable = "neon")]
fn zero_vector() -> Vector {
    vdupq_n_u8(0)
}

#[inline]
#[target_feature(enable = "neon")]
fn xor(a: Vector, b: Vector) -> Vector {
    veorq_u8(a, b)
}

#[inline]
#[target_feature(enable = "neon")]
fn product(vector: Vector, table: &[u8; TABLE_LEN]) -> Vector {
    split_product(vector, load_tables(table))
}

/// The tables of a coefficient: the products of low and of high halves of bytes.
type Loaded = [Vector; 2];

#[inline]
#[target_feature(enable = "neon")]
fn load_tables(table: &[u8; TABLE_LEN]) -> Loaded {
    let (halves, _) = table.as_chunks::<16>();
    [load_vector(&halves[0]), load_vector(&halves[1])]
}

#[inline]
#[target_feature(enable = "neon")]
fn split_product(vector: Vector, [low, high]: Loaded) -> Vector {
    let mask = vdupq_n_u8(15);
    xor(vqtbl1q_u8(low, vandq_u8(vector, mask)), vqtbl1q_u8(high, vshrq_n_u8::<4>(vector)))
}

// Four rows of whole lines and three pairs of tables fit the registers.
use self::{Line as Part, load_line as load_part, store_line as store_part, xor_lines as xor_parts};

/// A line.
type Line = [Vector; 4];

#[inline]
#[target_feature(enable = "neon")]
fn zero_line() -> Line {
    [zero_vector(); 4]
}

#[inline]
#[target_feature(enable = "neon")]
fn xor_lines(a: Line, b: Line) -> Line {
    [xor(a[0], b[0]), xor(a[1], b[1]), xor(a[2], b[2]), xor(a[3], b[3])]
}

#[inline]
#[target_feature(enable = "neon")]
fn multiply(line: Line, table: &[u8; TABLE_LEN]) -> Line {
    product_of(line, load_tables(table))
}

#[inline]
#[target_feature(enable = "neon")]
fn product_of(line: Line, tables: Loaded) -> Line {
    line.map(|vector| split_product(vector, tables))
}

/// Two vectors of bytes, split into nibbles.
#[derive(Clone, Copy)]
struct Source {
    low: [uint8x16_t; 2],
    high: [uint8x16_t; 2],
}

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 32]) -> Source {
    let (halves, _) = bytes.as_chunks::<16>();
    let mask = vdupq_n_u8(15);
    let (first, second) = (load_vector(&halves[0]), load_vector(&halves[1]));
    Source {
        low: [vandq_u8(first, mask), vandq_u8(second, mask)],
        high: [vshrq_n_u8::<4>(first), vshrq_n_u8::<4>(second)],
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn zero() -> [uint8x16_t; 2] {
    [vdupq_n_u8(0); 2]
}

#[inline]
#[target_feature(enable = "neon")]
fn add(sum: [uint8x16_t; 2], source: Source, table: &[u8; TABLE_LEN]) -> [uint8x16_t; 2] {
    let (halves, _) = table.as_chunks::<16>();
    let (low, high) = (load_vector(&halves[0]), load_vector(&halves[1]));
    let product = |v: usize| veorq_u8(vqtbl1q_u8(low, source.low[v]), vqtbl1q_u8(high, source.high[v]));
    [veorq_u8(sum[0], product(0)), veorq_u8(sum[1], product(1))]
}

#[inline]
#[target_feature(enable = "neon")]
fn store(bytes: &mut [u8; 32], sum: [uint8x16_t; 2], _stream: bool) {
    let (halves, _) = bytes.as_chunks_mut::<16>();
    for (half, vector) in halves.iter_mut().zip(sum) {
        store_vector(half, vector, false);
    }
}

/// Asks for the line that holds byte `at` of `row`, which need not lie within it.
#[inline]
fn prefetch(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).addr();
    // SAFETY: a prefetch reads nothing the program could see, never faults, whatever the address, and leaves
    // registers and flags alone. (It is assembly because its intrinsic is not stable.)
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags)) }
}

/// The same for a line that will be written.
#[inline]
fn prefetch_write(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).addr();
    // SAFETY: as above.
    unsafe { asm!("prfm pstl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags)) }
}

/// Nothing to order: no store goes past the caches.
#[inline]
fn fence() {}

#[inline]
#[target_feature(enable = "neon")]
fn load_line(bytes: &[u8; 64]) -> Line {
    let (quarters, _) = bytes.as_chunks::<16>();
    let load = |i: usize| load_vector(&quarters[i]);
    [load(0), load(1), load(2), load(3)]
}

#[inline]
#[target_feature(enable = "neon")]
fn store_line(bytes: &mut [u8; 64], line: Line, _stream: bool) {
    let (quarters, _) = bytes.as_chunks_mut::<16>();
    for (quarter, vector) in quarters.iter_mut().zip(line) {
        store_vector(quarter, vector, false);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_vector(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

#[inline]
#[target_feature(enable = "neon")]
fn store_vector(bytes: &mut [u8; 16], vector: uint8x16_t, _stream: bool) {
    // SAFETY: the reference vouches for 16 bytes that are ours to write; the store needs no alignment.
    unsafe { vst1q_u8(bytes.as_mut_ptr(), vector) }
}

/// Four vectors by one instruction.
#[inline]
#[target_feature(enable = "neon")]
fn load_four(bytes: &[[u8; 16]; 4]) -> [uint8x16_t; 4] {
    // SAFETY: the reference vouches for 64 readable bytes; the load needs no alignment.
    let four = unsafe { vld1q_u8_x4(bytes.as_ptr().cast()) };
    [four.0, four.1, four.2, four.3]
}
