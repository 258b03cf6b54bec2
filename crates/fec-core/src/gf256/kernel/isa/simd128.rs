//! 32 bytes at a time with WebAssembly's vectors: two lookups (`swizzle`) of 16 bytes per product, each table loaded
//! once for two vectors.
//!
//! The engine that runs the module has as many registers as its machine: sixteen at least. An engine without these
//! instructions refuses the module, so nothing is detected: a build without `simd128` has the portable kernel alone.

// Loads and stores go through pointers: helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::wasm32::{
    u8x16_shr, u8x16_splat, u8x16_swizzle, v128, v128_and, v128_load, v128_store, v128_xor,
};

use super::nibble::{self, EVEN_TABLES, TABLE_LEN, pack_table};
use crate::gf256::kernel::contract::{Feature, Kernel};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::each;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "simd128",
    features: &[Feature { name: "simd128", present: || true }],
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

loops::matrix! { #[target_feature(enable = "simd128")] step: 32, table_len: TABLE_LEN, outputs: [1, 2, 3, 4] }

loops::runner! { #[target_feature(enable = "simd128")] table_len: TABLE_LEN }

loops::passes! { #[target_feature(enable = "simd128")] table_len: TABLE_LEN, sums: 4, tails: true }

loops::parts! { #[target_feature(enable = "simd128")] part: 16 }

loops::two_layers! { #[target_feature(enable = "simd128")] }

loops::tail! { #[target_feature(enable = "simd128")] }

loops::stream_loops! { #[target_feature(enable = "simd128")] width: 16, table_len: TABLE_LEN }

loops::area_passes! { #[target_feature(enable = "simd128")] width: 16, vectors: [0, 1, 2, 3] }

loops::area_near! { #[target_feature(enable = "simd128")] first: 2 }

loops::area_far! { #[target_feature(enable = "simd128")] first: 2, planes: 2 }

loops::area_rows! { #[target_feature(enable = "simd128")] width: 16 }

nibble::nibble! { #[target_feature(enable = "simd128")] width: 16, vectors: [0, 1, 2, 3] }

type Vector = v128;

#[inline]
#[target_feature(enable = "simd128")]
fn zero_vector() -> Vector {
    u8x16_splat(0)
}

#[inline]
#[target_feature(enable = "simd128")]
fn xor(a: Vector, b: Vector) -> Vector {
    v128_xor(a, b)
}

#[inline]
#[target_feature(enable = "simd128")]
fn low(vector: Vector) -> Vector {
    v128_and(vector, u8x16_splat(15))
}

#[inline]
#[target_feature(enable = "simd128")]
fn high(vector: Vector) -> Vector {
    u8x16_shr(vector, 4)
}

#[inline]
#[target_feature(enable = "simd128")]
fn look_up(table: Vector, indices: Vector) -> Vector {
    u8x16_swizzle(table, indices)
}

use self::{
    Vector as Part, forward_few_planes as forward_planes, inverse_few_planes as inverse_planes,
    load_vector as load_part, load_vector as load_table, product_of_vector as product_of,
    store_vector as store_part, xor as xor_parts,
};

/// Nothing to ask for: WebAssembly has no hints.
#[inline]
fn prefetch(_row: &[u8], _at: usize) {}

use self::{prefetch as prefetch_past_l1, prefetch as prefetch_tile, prefetch as prefetch_write};

/// Nothing to order: no store goes past the caches.
#[inline]
fn fence() {}

#[inline]
#[target_feature(enable = "simd128")]
fn load_vector(bytes: &[u8; 16]) -> v128 {
    // SAFETY: the reference vouches for 16 readable bytes; the load needs no alignment.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "simd128")]
fn store_vector(bytes: &mut [u8; 16], vector: v128, _stream: bool) {
    // SAFETY: the reference vouches for 16 bytes that are ours to write; the store needs no alignment.
    unsafe { v128_store(bytes.as_mut_ptr().cast(), vector) }
}
