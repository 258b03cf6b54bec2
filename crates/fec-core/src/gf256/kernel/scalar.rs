//! The readable kernel: one byte at a time, by table. It runs everywhere, and its matrix is the oracle of all
//! others and of all programs.

use super::contract::{Kernel, Matrix};
use super::each::looped as each;
use crate::gf256::products_of;

pub(super) static KERNEL: Kernel = Kernel {
    name: "scalar",
    features: &[],
    max_outputs: 1,
    table_len: 1,
    two_layers: TWO_LAYERS,
    program_costs: (12, 2),
    pack: |coefficient, table| table[0] = coefficient,
    run,
    run_program,
    stream: STREAM_LOOPS,
};

/// Rows are cut into chunks of this many bytes, so that sources are still in the nearest cache for the next
/// output.
pub(super) const CHUNK: usize = 512;

fn run(matrix: Matrix<'_>, sets: &mut [Rows<'_, '_, '_, '_>]) {
    for (src, dst) in sets {
        let row_len = src[0].len();
        for start in (0..row_len).step_by(CHUNK) {
            let end = row_len.min(start + CHUNK);
            for (coefficients, out) in matrix.tables.chunks_exact(matrix.k).zip(dst.iter_mut()) {
                let out = &mut out[start..end];
                out.fill(0);
                for (&coefficient, row) in coefficients.iter().zip(src.iter()) {
                    let product = products_of(coefficient);
                    for (sum, &byte) in out.iter_mut().zip(&row[start..end]) {
                        *sum ^= product[usize::from(byte)];
                    }
                }
            }
        }
    }
}

// This kernel needs no feature, but the macros take an attribute: `cfg(true)` has no effect.

super::runner::runner! { #[cfg(true)] table_len: 1 }

super::passes::passes! { #[cfg(true)] table_len: 1, sums: 16, tails: false }

super::parts::parts! { #[cfg(true)] part: 64 }

super::four_layers::four_layers! { #[cfg(true)] }

super::tail::tail! { #[cfg(true)] }

super::stream_loops::stream_loops! { #[cfg(true)] width: 64, table_len: 1 }

type Vector = [u8; 64];

/// The table of a coefficient is the coefficient.
type Loaded = [u8; 1];

use self::{
    Vector as Line, Vector as Part, load_vector as load_line, load_vector as load_part, product as multiply,
    store_vector as store_line, store_vector as store_part, xor as xor_lines, xor as xor_parts,
    zero_vector as zero_line,
};

fn load_vector(bytes: &[u8; 64]) -> [u8; 64] {
    *bytes
}

fn store_vector(bytes: &mut [u8; 64], vector: [u8; 64], _stream: bool) {
    *bytes = vector;
}

fn zero_vector() -> [u8; 64] {
    [0; 64]
}

fn xor(a: [u8; 64], b: [u8; 64]) -> [u8; 64] {
    std::array::from_fn(|i| a[i] ^ b[i])
}

// Beside NEON, this kernel is the oracle alone, and boards need small programs: the code stands once, not at each call.
#[cfg_attr(target_arch = "aarch64", inline(never))]
fn product(vector: [u8; 64], coefficient: &[u8; 1]) -> [u8; 64] {
    let product = products_of(coefficient[0]);
    vector.map(|byte| product[usize::from(byte)])
}

fn load_tables(table: &[u8; 1]) -> Loaded {
    *table
}

fn product_of(vector: [u8; 64], coefficient: Loaded) -> [u8; 64] {
    product(vector, &coefficient)
}

fn prefetch(_row: &[u8], _at: usize) {}

use self::prefetch as prefetch_tile;

fn prefetch_write(_row: &[u8], _at: usize) {}

/// Nothing to order: no store goes past the caches.
fn fence() {}
