//! 64 bytes at a time with AVX-512 and GFNI: one affine transform per product.
//!
//! GFNI's own multiplication is fixed to another polynomial (0x11B), but multiplying by a constant is linear
//! over bits, and `vgf2p8affineqb` applies any 8×8 bit matrix to every byte. The matrices are read straight
//! from memory, eight bytes broadcast by the instruction itself, so 24 of the 32 registers hold sums.

// Loads and stores go through pointers: three helpers at the end of the file.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_stream_si512, _mm512_xor_si512,
};

use super::x86::{fence, prefetch, prefetch_past_l1, prefetch_past_l1 as prefetch_tile, prefetch_write};
use crate::gf256::kernel::contract::{Feature, Kernel};
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::each::each;
use crate::gf256::mul;

pub(crate) static KERNEL: Kernel = Kernel {
    name: "avx512-gfni",
    features: &[
        Feature { name: "avx512f", present: || is_x86_feature_detected!("avx512f") },
        Feature { name: "gfni", present: || is_x86_feature_detected!("gfni") },
    ],
    max_outputs: MAX_OUTPUTS,
    table_len: TABLE_LEN,
    two_layers: TWO_LAYERS,
    program_costs: (13, 13),
    pack: |coefficient, table| table.copy_from_slice(&MATRICES[usize::from(coefficient)]),
    run,
    run_program,
    stream: STREAM_LOOPS,
    area: AREA_LOOPS,
};

/// Bytes of one bit matrix.
const TABLE_LEN: usize = 8;

/// The bit matrix of each coefficient c: byte 7 - i is the row that gives bit i of the product, and its bit j
/// is bit i of c·2^j.
static MATRICES: [[u8; TABLE_LEN]; 256] = {
    let mut matrices = [[0; TABLE_LEN]; 256];
    let mut c = 0;
    while c < 256 {
        let mut j = 0;
        while j < 8 {
            let product = mul(c as u8, 1 << j);
            let mut i = 0;
            while i < 8 {
                matrices[c][7 - i] |= (product >> i & 1) << j;
                i += 1;
            }
            j += 1;
        }
        c += 1;
    }
    matrices
};

loops::matrix! {
    #[target_feature(enable = "avx512f,gfni")] step: 64, table_len: TABLE_LEN,
    outputs: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]
}

loops::runner! { #[target_feature(enable = "avx512f,gfni")] table_len: TABLE_LEN }

loops::passes! { #[target_feature(enable = "avx512f,gfni")] table_len: TABLE_LEN, sums: 16, tails: true }

loops::parts! { #[target_feature(enable = "avx512f,gfni")] part: 64 }

loops::four_layers! { #[target_feature(enable = "avx512f,gfni")] }

loops::tail! { #[target_feature(enable = "avx512f,gfni")] }

loops::stream_loops! { #[target_feature(enable = "avx512f,gfni")] width: 64, table_len: TABLE_LEN }

loops::area_passes! { #[target_feature(enable = "avx512f,gfni")] width: 64, vectors: [0] }

loops::area_near! { #[target_feature(enable = "avx512f,gfni")] first: 3 }

loops::area_planes! { #[target_feature(enable = "avx512f,gfni")] vectors: [0] }

loops::area_far! { #[target_feature(enable = "avx512f,gfni")] first: 3, planes: 4 }

loops::area_rows! { #[target_feature(enable = "avx512f,gfni")] width: 64 }

/// The tables of [`EVEN_POINTS`](loops::area::EVEN_POINTS).
static EVEN_TABLES: [[u8; TABLE_LEN]; GROUP / 2] = {
    let mut tables = [[0; TABLE_LEN]; GROUP / 2];
    let mut i = 0;
    while i < GROUP / 2 {
        tables[i] = MATRICES[loops::area::EVEN_POINTS[i] as usize];
        i += 1;
    }
    tables
};

fn pack_table(coefficient: u8) -> [u8; TABLE_LEN] {
    MATRICES[usize::from(coefficient)]
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn add_symbol(x: Pair, y: Pair, [of_low, of_sum, of_high]: [&[u8; TABLE_LEN]; 3]) -> Pair {
    let low = product(y[0], of_low);
    let high = product(y[1], of_high);
    let sum = product(xor(y[0], y[1]), of_sum);
    [xor(x[0], xor(low, high)), xor(x[1], xor(low, sum))]
}

type Vector = __m512i;

// A register holds a line; one of the rest holds the bit matrix of a coefficient, repeated.
use self::{
    Vector as Line, Vector as Loaded, Vector as Part, load_vector as load, load_vector as load_line,
    load_vector as load_part, product as multiply, product_of as product_of_vector, store_vector as store,
    store_vector as store_line, store_vector as store_part, xor as xor_lines, xor as xor_parts,
    zero_vector as zero_line,
};

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn zero_vector() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn xor(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn load_tables(table: &[u8; TABLE_LEN]) -> __m512i {
    _mm512_set1_epi64(i64::from_le_bytes(*table))
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn product_of(vector: __m512i, matrix: __m512i) -> __m512i {
    _mm512_gf2p8affine_epi64_epi8::<0>(vector, matrix)
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn product(vector: __m512i, table: &[u8; TABLE_LEN]) -> __m512i {
    product_of(vector, load_tables(table))
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn zero() -> __m512i {
    _mm512_setzero_si512()
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn add(sum: __m512i, source: __m512i, table: &[u8; TABLE_LEN]) -> __m512i {
    xor(sum, product(source, table))
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn load_vector(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the reference vouches for 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn store_vector(bytes: &mut [u8; 64], vector: __m512i, stream: bool) {
    let at: *mut __m512i = bytes.as_mut_ptr().cast();
    if stream && at.is_aligned() {
        // SAFETY: the reference vouches for 64 bytes that are ours to write, the test above for their
        // alignment. The fence at the end of `run` orders the store before whatever comes after.
        unsafe { _mm512_stream_si512(at, vector) }
    } else {
        // SAFETY: the reference vouches for 64 bytes that are ours to write; the store needs no alignment.
        unsafe { _mm512_storeu_si512(at, vector) }
    }
}
