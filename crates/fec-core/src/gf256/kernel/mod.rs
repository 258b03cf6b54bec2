//! Kernels: coefficients applied to rows of bytes, once for each instruction set.
//!
//! Every kernel computes the same four things. A matrix C of `wanted` rows and `k` columns gives `dst[w][x] = Σ_j
//! C[w][j] · src[j][x]` for every column of bytes x (`loops/matrix.rs`). A program (`program.rs`) makes destinations
//! from sources in passes over blocks of rows (`loops/runner.rs`, `loops/passes.rs`). The loops of live streams add up
//! many rows (`loops/stream_loops.rs`). Transforms of areas work on symbols of two bytes (`loops/area.rs`).
//! `isa/scalar.rs` computes the matrix in the plainest way and is the oracle of the others. These share all loops and
//! differ only in how they load, multiply and store a vector. Each processor has settings for how rows are cut and
//! moved (`tuning.rs`).
//!
//! A kernel knows nothing of codes or losses; it sees coefficients and rows. Loops of areas get positions, and make the
//! coefficients of a group from its first one: tables of all groups would be megabytes.
//!
//! # A kernel file
//!
//! A new instruction set is one file in `isa/` and one line in `KERNELS` (`backend.rs`). If its tables or vectors have
//! a length that no other kernel has, `trace/kernels.rs` needs a few lines too. `contract.rs` says what `KERNEL` holds.
//!
//! The loops are macros, because a function with `#[target_feature]` is safe to call only from one with the same
//! features. Each file gets its own copy with that attribute, and needs `unsafe` for loads and stores alone. A macro
//! finds its parts by name in the file. Functions that need no feature are ordinary ones beside them.
//!
//! rustfmt formats the bodies of macros as long as nothing in them is repeated (`$(…)*`). For its sake there is exactly
//! one attribute, `#[cfg(true)]` where no feature is needed, and lists of numbers are passed on to `each!`, which looks
//! like a call.
//!
//! A pass must be compiled into one function, or registers go through the stack. A closure has the features of the
//! function around it; methods such as `Option::map` do not, and a call of one may remain a call where registers are
//! full. In passes, only functions of the macro call closures, and functions without features are `inline(always)`.
//!
//! | macro | defines | needs |
//! |---|---|---|
//! | `nibble!` | lines and steps of several vectors, `product`, `Loaded`, `load_tables` | vectors, lookups |
//! | `matrix!` | `run`, `MAX_OUTPUTS` | steps, hints |
//! | `runner!` | `run_program` | `run_pass`, hints |
//! | `passes!` | `run_pass`, sums of blocks, `get`, `put` | lines, hints, `inverse_pass`, `forward_pass`, `tail` |
//! | | `plus`, `prefetch_sources`, `prefetch_outputs` | |
//! | `parts!` | butterflies of four rows, `near` and `far`, `part`, the sums `put_…` and `keep_…` | parts |
//! | `four_layers!`, `two_layers!` | `inverse_pass`, `forward_pass`, `TWO_LAYERS` | lines, hints, `passes!`, `parts!` |
//! | `tail!` | `tail` | lines |
//! | `area_passes!` | passes over rows of areas, in registers | vectors, symbols |
//! | `area_planes!` | `inverse_planes`, `forward_planes` of up to sixteen rows, not four | `area_passes!` |
//! | `area_near!`, `area_far!` | the two steps of a transform of areas | `area_passes!`, planes, hints |
//! | `area_rows!` | `AREA_LOOPS` | all of these |
//! | `stream_loops!` | `STREAM_LOOPS` | vectors, `prefetch`; with `four_loads: own` also `load_four` |
//!
//! The names that must be in scope:
//!
//! - **vectors**, a register of W bytes each: `Vector`, `load_vector(&[u8; W]) -> Vector`,
//!   `store_vector(&mut [u8; W], Vector, stream: bool)`, `zero_vector() -> Vector`, `xor(Vector, Vector) -> Vector`,
//!   `product(Vector, &[u8; TABLE_LEN]) -> Vector`. `nibble!` defines `product`.
//! - **lookups**, a table of sixteen bytes, repeated as often as it fits, and the halves of each byte:
//!   `load_table(&[u8; 16]) -> Vector`, `look_up(table: Vector, indices: Vector) -> Vector`, `low(Vector) -> Vector`,
//!   `high(Vector) -> Vector`.
//! - **lines**, 64 bytes in one register or more: `Line`, `load_line(&[u8; 64]) -> Line`,
//!   `store_line(&mut [u8; 64], Line, stream: bool)`, `zero_line() -> Line`, `xor_lines(Line, Line) -> Line`,
//!   `multiply(Line, &[u8; TABLE_LEN]) -> Line`.
//! - **parts**, as much of a line as leaves registers for the tables of three coefficients, a vector or all of it:
//!   `Part`, `load_part(&[u8; PART]) -> Part`, `store_part(&mut [u8; PART], Part, stream: bool)`,
//!   `xor_parts(Part, Part) -> Part`, `Loaded`, `load_tables(&[u8; TABLE_LEN]) -> Loaded`,
//!   `product_of(Part, Loaded) -> Part`. `four_layers!` takes all of a line.
//! - **steps**, the part of a row that a matrix takes at once: `load(&[u8; STEP]) -> Source`, `zero() -> Sum`,
//!   `add(Sum, Source, &[u8; TABLE_LEN]) -> Sum`, `store(&mut [u8; STEP], Sum, stream: bool)`. `add` is the sum plus
//!   the product; STEP divides 64.
//! - **symbols**, products of two planes: `product_of_vector(Vector, Loaded) -> Vector`,
//!   `add_symbol([Vector; 2], [Vector; 2], [&[u8; TABLE_LEN]; 3]) -> [Vector; 2]`, `pack_table(u8) -> [u8; TABLE_LEN]`,
//!   and `EVEN_TABLES`, the tables of `EVEN_POINTS`. `nibble!` defines the first two.
//! - **hints**, safe anywhere: `prefetch(row: &[u8], at: usize)`, `prefetch_write(row: &[u8], at: usize)`, `fence()`,
//!   which orders stores past the caches before later ones. `prefetch_past_l1` is for matrices of many rows, and
//!   `prefetch_tile` for transforms: either hint, whichever is faster in this kernel.
//! - `each!` of `loops/each.rs`: `each!` itself where a line is in registers, `looped!` where it is in memory.
//!
//! All copy, and all but hints have the file's `#[target_feature]`. `stream` asks for a store past the caches.

// A build with the portable kernel alone leaves much of the shared code unused.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128")),
    allow(dead_code, unused_imports, unused_macros)
)]

mod aligned;
mod area;
mod backend;
mod contract;
mod isa;
pub(crate) mod loops;
mod program;
mod scratch;
mod streams;
#[cfg(feature = "trace")]
pub(crate) mod trace;
mod tuning;

pub(crate) use aligned::{AlignedBytes, LINE};
pub(crate) use area::Position;
pub use backend::{Backend, BackendError};
pub(crate) use backend::{pack, pack_program, run, run_program, transform_pays};
pub use contract::Rows;
#[cfg(target_arch = "x86_64")]
pub(crate) use isa::x86::prefetch;
pub(crate) use loops::area::{Columns, GROUP, MAX_UNITS, Sheet, Stretches, UNIT, Unit};
pub use program::Operations;
pub(crate) use program::{BLOCK, FEW, Program, Skews, Sum, tail_layers};
#[cfg(test)]
pub(crate) use streams::work;
#[cfg(feature = "trace")]
pub use trace::{Access, AccessKind};
pub use tuning::{Store, Tuning, TuningError, Walk};
