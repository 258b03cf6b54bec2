//! The tracing kernels: the macros of the real ones, with an empty line type.
//!
//! A tracing kernel serves all kernels with the same tables and vectors. None is in the list of backends.

use super::access::AccessKind;
use super::recorder::tell;
use crate::gf256::kernel::aligned::LINE;
use crate::gf256::kernel::backend::Backend;
use crate::gf256::kernel::contract::Rows;
use crate::gf256::kernel::loops;
use crate::gf256::kernel::loops::matrix::RowMoves;
use crate::gf256::kernel::loops::runner::Tile;
use crate::gf256::kernel::program::{Column, Pass};
use crate::gf256::kernel::tuning::Walk;
use crate::gf256::products_of;
use std::ops::Range;
/// A tracing kernel: the loops of a kernel, which tell accesses and compute nothing. Tables are packed as for the
/// kernel.
#[allow(clippy::type_complexity)]
pub(super) struct TracingKernel {
    /// True if a pass of a program goes over its tile twice.
    pub(super) two_layers: bool,
    /// A pass of a program over a tile; arguments are those of `run_pass`, tables as bytes.
    pub(super) pass:
        fn(&Pass, &[u8], &[u8], &mut [Column], &mut [Column], &mut [Rows<'_, '_, '_, '_>], Tile<'_>),
    /// A group of outputs of a matrix; `None` where that is no loop of vectors.
    pub(super) columns: Option<fn(&[u8], &[&[u8]], &mut [&mut [u8]], Range<usize>, RowMoves)>,
    pub(super) sum: fn(&[&[&[u8]]], &[u8], &mut [u8], Walk) -> usize,
    pub(super) add: fn(&mut [u8], &[u8], Walk) -> usize,
    pub(super) spread: fn([&mut [u8]; 3], &[u8], [&[u8]; 2]) -> usize,
    pub(super) mix: fn([&mut [u8]; 4]) -> usize,
    pub(super) turn: fn([&mut [u8]; 3], &[u8]) -> usize,
}

/// The tracing kernel of a backend.
pub(super) fn of(backend: Backend) -> &'static TracingKernel {
    match (backend.kernel.table_len, backend.kernel.stream.width) {
        (1, _) => &bytes::KERNEL,
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
        (32, 16) => &vectors_16::KERNEL,
        #[cfg(target_arch = "x86_64")]
        (32, 32) => &vectors_32::KERNEL,
        #[cfg(target_arch = "x86_64")]
        (8, 64) => &vectors_64::KERNEL,
        other => unreachable!("no tracing kernel has tables and vectors of {other:?} bytes"),
    }
}

/// A vector or a line.
#[derive(Clone, Copy)]
struct Nothing;

fn zero() -> Nothing {
    Nothing
}

fn xor(_: Nothing, _: Nothing) -> Nothing {
    Nothing
}

fn load<const N: usize>(bytes: &[u8; N]) -> Nothing {
    tell(bytes, AccessKind::Read);
    Nothing
}

fn store<const N: usize>(bytes: &mut [u8; N], _: Nothing, stream: bool) {
    tell(bytes, if stream { AccessKind::Stream } else { AccessKind::Write });
}

fn load_line(bytes: &[u8; LINE]) -> Nothing {
    load(bytes)
}

fn store_line(bytes: &mut [u8; LINE], line: Nothing, stream: bool) {
    store(bytes, line, stream);
}

/// A table in registers: the coefficient, if the table is no more than that.
#[derive(Clone, Copy)]
struct Loaded(Option<u8>);

/// The content of a table, without another load.
fn loaded<const N: usize>(table: &[u8; N]) -> Loaded {
    Loaded(if let [coefficient] = table[..] { Some(coefficient) } else { None })
}

fn load_tables<const N: usize>(table: &[u8; N]) -> Loaded {
    load(table);
    loaded(table)
}

/// A product by a table in memory.
fn multiply<const N: usize>(line: Nothing, table: &[u8; N]) -> Nothing {
    product_of(line, load_tables(table))
}

/// A product by a table that is already in registers.
fn product<const N: usize>(vector: Nothing, table: &[u8; N]) -> Nothing {
    product_of(vector, loaded(table))
}

/// A bare coefficient is looked up in the table of all products; the entry depends on the data.
fn product_of(part: Nothing, Loaded(coefficient): Loaded) -> Nothing {
    if let Some(coefficient) = coefficient {
        tell(products_of(coefficient), AccessKind::Read);
    }
    part
}

fn add<const N: usize>(sum: Nothing, _: Nothing, table: &[u8; N]) -> Nothing {
    multiply(sum, table)
}

fn prefetch(_: &[u8], _: usize) {}

use self::{prefetch as prefetch_tile, prefetch as prefetch_past_l1};

fn prefetch_write(_: &[u8], _: usize) {}

fn fence() {}

/// Defines a tracing kernel: the macros of a kernel with the same arguments.
macro_rules! tracing {
    (
        $name:ident: width: $width:literal, table_len: $table_len:literal, sums: $sums:literal,
        passes: { $($passes:tt)* }, columns: $columns:expr, { $($matrix:tt)* }
    ) => {
        #[allow(dead_code, unused_imports)]
        mod $name {
            use crate::gf256::kernel::loops::each::looped as each;
            use super::*;
            use super::{
                Nothing as Line, Nothing as Part, Nothing as Vector, load as load_vector, load as load_part,
                store as store_vector, store as store_part, xor as xor_lines, xor as xor_parts, zero as zero_line,
                zero as zero_vector,
            };

            pub(super) static KERNEL: TracingKernel = TracingKernel {
                two_layers: TWO_LAYERS,
                pass: |pass, sources, tables, blocks, stage, sets, tile| {
                    run_pass(pass, sources, tables.as_chunks().0, blocks, stage, sets, tile);
                },
                columns: $columns,
                sum: stream_sum,
                add: stream_add,
                spread: stream_spread,
                mix: stream_mix,
                turn: stream_turn,
            };

            /// A table in registers. A bare coefficient is all of it.
            fn pack_table(coefficient: u8) -> [u8; $table_len] {
                [coefficient; $table_len]
            }

            loops::passes! { #[cfg(true)] table_len: $table_len, sums: $sums, tails: false }

            loops::parts! { #[cfg(true)] part: 64 }

            $($passes)*

            loops::tail! { #[cfg(true)] }

            loops::stream_loops! { #[cfg(true)] width: $width, table_len: $table_len }

            $($matrix)*
        }
    };
}

tracing! {
    bytes: width: 64, table_len: 1, sums: 16,
    passes: { loops::four_layers! { #[cfg(true)] } }, columns: None, {}
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
tracing! {
    vectors_16: width: 16, table_len: 32, sums: 4, passes: { loops::two_layers! { #[cfg(true)] } },
    columns: Some(|tables, src, dst, tile, moves| group(tables.as_chunks().0, src, dst, tile, moves)),
    { loops::matrix! { #[cfg(true)] step: 32, table_len: 32, outputs: [1, 2, 3, 4, 5, 6, 7, 8] } }
}

#[cfg(target_arch = "x86_64")]
tracing! {
    vectors_32: width: 32, table_len: 32, sums: 4, passes: { loops::two_layers! { #[cfg(true)] } },
    columns: Some(|tables, src, dst, tile, moves| group(tables.as_chunks().0, src, dst, tile, moves)),
    { loops::matrix! { #[cfg(true)] step: 64, table_len: 32, outputs: [1, 2, 3, 4] } }
}

#[cfg(target_arch = "x86_64")]
tracing! {
    vectors_64: width: 64, table_len: 8, sums: 16, passes: { loops::four_layers! { #[cfg(true)] } },
    columns: Some(|tables, src, dst, tile, moves| group(tables.as_chunks().0, src, dst, tile, moves)),
    { loops::matrix! { #[cfg(true)]
        step: 64, table_len: 8,
        outputs: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24]
    } }
}
