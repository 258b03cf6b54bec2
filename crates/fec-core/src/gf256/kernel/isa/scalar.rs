//! The readable kernel: one byte at a time, by table. It runs everywhere, and its matrix is the oracle of all
//! others and of all programs.

use crate::gf256::kernel::contract::{Kernel, Matrix};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::looped as each;
use crate::gf256::products_of;

pub(crate) static KERNEL: Kernel = Kernel {
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
    area: AREA_LOOPS,
};

/// Rows are cut into chunks of this many bytes, so that sources are still in the nearest cache for the next
/// output.
pub(crate) const CHUNK: usize = 512;

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

loops::runner! { #[cfg(true)] table_len: 1 }

loops::passes! { #[cfg(true)] table_len: 1, sums: 16, tails: false }

loops::parts! { #[cfg(true)] part: 64 }

loops::four_layers! { #[cfg(true)] }

loops::tail! { #[cfg(true)] }

loops::stream_loops! { #[cfg(true)] width: 64, table_len: 1 }

loops::area_passes! { #[cfg(true)] width: 64, vectors: [0] }

loops::area_near! { #[cfg(true)] first: 2 }

loops::area_far! { #[cfg(true)] first: 2, planes: 2 }

loops::area_rows! { #[cfg(true)] width: 64 }

/// Bytes of the table of a coefficient.
const TABLE_LEN: usize = 1;

/// The tables of [`EVEN_POINTS`](loops::area::EVEN_POINTS).
static EVEN_TABLES: [[u8; 1]; GROUP / 2] = {
    let mut tables = [[0]; GROUP / 2];
    let mut i = 0;
    while i < GROUP / 2 {
        tables[i] = [loops::area::EVEN_POINTS[i]];
        i += 1;
    }
    tables
};

fn pack_table(coefficient: u8) -> [u8; 1] {
    [coefficient]
}

fn add_symbol(x: Pair, y: Pair, [of_low, of_sum, of_high]: [&[u8; 1]; 3]) -> Pair {
    let low = product(y[0], of_low);
    let high = product(y[1], of_high);
    let sum = product(xor(y[0], y[1]), of_sum);
    [xor(x[0], xor(low, high)), xor(x[1], xor(low, sum))]
}

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

use self::{
    forward_few_planes as forward_planes, inverse_few_planes as inverse_planes, prefetch as prefetch_past_l1,
    prefetch as prefetch_tile, product_of as product_of_vector,
};

fn prefetch_write(_row: &[u8], _at: usize) {}

/// Nothing to order: no store goes past the caches.
fn fence() {}
