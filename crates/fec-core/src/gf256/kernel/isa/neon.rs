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

use super::nibble::{self, EVEN_TABLES, TABLE_LEN, pack_table};
use crate::gf256::kernel::contract::{Feature, Kernel};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::each;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "neon",
    features: &[Feature { name: "neon", present: || is_aarch64_feature_detected!("neon") }],
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

loops::matrix! { #[target_feature(enable = "neon")] step: 32, table_len: TABLE_LEN, outputs: [1, 2, 3, 4, 5, 6, 7, 8] }

loops::runner! { #[target_feature(enable = "neon")] table_len: TABLE_LEN }

loops::passes! { #[target_feature(enable = "neon")] table_len: TABLE_LEN, sums: 4, tails: true }

loops::parts! { #[target_feature(enable = "neon")] part: 64 }

loops::two_layers! { #[target_feature(enable = "neon")] }

loops::tail! { #[target_feature(enable = "neon")] }

loops::stream_loops! { #[target_feature(enable = "neon")] width: 16, table_len: TABLE_LEN, four_loads: own }

loops::area_passes! { #[target_feature(enable = "neon")] width: 16, vectors: [0, 1, 2, 3] }

loops::area_near! { #[target_feature(enable = "neon")] first: 2 }

loops::area_far! { #[target_feature(enable = "neon")] first: 2, planes: 2 }

loops::area_rows! { #[target_feature(enable = "neon")] width: 16 }

nibble::nibble! { #[target_feature(enable = "neon")] width: 16, vectors: [0, 1, 2, 3] }

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
fn low(vector: Vector) -> Vector {
    vandq_u8(vector, vdupq_n_u8(15))
}

#[inline]
#[target_feature(enable = "neon")]
fn high(vector: Vector) -> Vector {
    vshrq_n_u8::<4>(vector)
}

#[inline]
#[target_feature(enable = "neon")]
fn look_up(table: Vector, indices: Vector) -> Vector {
    vqtbl1q_u8(table, indices)
}

// Four rows of whole lines and three pairs of tables fit the registers.
use self::{
    Line as Part, forward_few_planes as forward_planes, inverse_few_planes as inverse_planes,
    load_line as load_part, load_vector as load_table, product_of_line as product_of,
    store_line as store_part, xor_lines as xor_parts,
};

/// Asks for the line that holds byte `at` of `row`, which need not lie within it.
#[inline]
fn prefetch(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).addr();
    // SAFETY: a prefetch reads nothing the program could see, never faults, whatever the address, and leaves
    // registers and flags alone. (It is assembly because its intrinsic is not stable.)
    unsafe { asm!("prfm pldl1keep, [{}]", in(reg) address, options(nomem, nostack, preserves_flags)) }
}

use self::{prefetch as prefetch_tile, prefetch as prefetch_past_l1};

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

/// Loads four vectors by one instruction.
#[inline]
#[target_feature(enable = "neon")]
fn load_four(bytes: &[[u8; 16]; 4]) -> [uint8x16_t; 4] {
    // SAFETY: the reference vouches for 64 readable bytes; the load needs no alignment.
    let four = unsafe { vld1q_u8_x4(bytes.as_ptr().cast()) };
    [four.0, four.1, four.2, four.3]
}
