//! Kernels: coefficients applied to rows of bytes, once for each instruction set.
//!
//! Every kernel computes the same two things. With the matrix C of `wanted` rows and `k` columns, it writes
//! `dst[w][x] = Σ_j C[w][j] · src[j][x]` for every column of bytes x. `scalar.rs` says it in the plainest way
//! and is the oracle of the others, which share one walk over tiles, groups of outputs and sets (`walk.rs`)
//! and differ only in how a vector is loaded, multiplied and stored. And a `Program` (`program.rs`) makes
//! destinations from sources in passes over blocks of rows, by one runner for all kernels (`runner.rs`). How
//! both cut and move rows is set for each processor (`tuning.rs`).
//! Adding an instruction set is one file and one line in `KERNELS` (`backend.rs`): tests, benches and the command line all
//! walk that list.
//!
//! A kernel knows nothing of codes, points or losses; it sees coefficients and rows.

// Where only the portable kernel is built, it leaves much of what the kernels share unused.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_macros)
)]

mod aligned;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
mod backend;
mod contract;
mod gather;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod halves;
mod layers;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod nibble;
mod passes;
mod program;
mod runner;
mod scalar;
mod scratch;
#[cfg(target_arch = "x86_64")]
mod ssse3;
mod streams;
#[cfg(feature = "trace")]
pub(crate) mod trace;
mod tuning;
mod walk;
mod whole;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use aligned::{AlignedBytes, LINE};
pub use backend::{Backend, BackendError};
pub(crate) use backend::{pack, pack_program, run, run_program, transform_pays};
pub use contract::Rows;
pub use program::Operations;
pub(crate) use program::{BLOCK, FEW, Program, Skews, Sum, tail_layers};
#[cfg(feature = "trace")]
pub use trace::{Access, AccessKind};
pub use tuning::{Store, Tuning, TuningError, Walk};
