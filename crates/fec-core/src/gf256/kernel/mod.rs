//! Kernels: coefficients applied to rows of bytes, once for each instruction set.
//!
//! Every kernel computes the same two things. With the matrix C of `wanted` rows and `k` columns, it writes
//! `dst[w][x] = Σ_j C[w][j] · src[j][x]` for every column of bytes x. `scalar.rs` says it in the plainest way
//! and is the oracle of the others, which share one walk over tiles, groups of outputs and sets (`walk.rs`)
//! and differ only in how a vector is loaded, multiplied and stored. And a `Program` (`program.rs`) makes
//! destinations from sources in passes over blocks of rows, by one runner for all kernels (`runner.rs`). How
//! both cut and move rows is set for each processor (`tuning.rs`).
//! Adding an instruction set is one file and one line in `KERNELS`: tests, benches and the command line all
//! walk that list.
//!
//! A kernel knows nothing of codes, points or losses; it sees coefficients and rows.

// A kernel may only run on a CPU that has its features. This file holds the one call that depends on it.
#![allow(unsafe_code)]
// Where only the portable kernel is built, it leaves much of what the kernels share unused.
#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    allow(dead_code, unused_imports, unused_macros)
)]

use std::fmt;

mod aligned;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
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
pub(crate) mod trace;
mod tuning;
mod walk;
mod whole;
#[cfg(target_arch = "x86_64")]
mod x86;

use runner::Column;

pub(crate) use aligned::{AlignedBytes, LINE};
pub use gather::Walk;
pub use program::Operations;
pub(crate) use program::{BLOCK, FEW, Program, Skews, Sum, tail_layers};
pub use trace::{Access, AccessKind};
pub use tuning::{Store, Tuning, TuningError};

/// The kernels of this target architecture, fastest first. Scalar stands last and needs no feature.
static KERNELS: &[&Kernel] = &[
    #[cfg(target_arch = "x86_64")]
    &avx512_gfni::KERNEL,
    #[cfg(target_arch = "x86_64")]
    &avx2::KERNEL,
    #[cfg(target_arch = "x86_64")]
    &ssse3::KERNEL,
    #[cfg(target_arch = "aarch64")]
    &neon::KERNEL,
    &scalar::KERNEL,
];

/// The rows of one set: the sources, shared, and the destinations, exclusive, all of one length in bytes.
///
/// The caller owns both; a kernel reads the first and overwrites the second.
pub type Rows<'a, 's, 'b, 'd> = (&'a [&'s [u8]], &'b mut [&'d mut [u8]]);

/// What a kernel file offers.
struct Kernel {
    /// The backend's name.
    name: &'static str,
    /// The CPU features it needs.
    features: &'static [Feature],
    /// Most outputs it sums at once; see [`groups`].
    max_outputs: usize,
    /// Bytes of the packed table of one coefficient.
    table_len: usize,
    /// Bytes of each row that the shared walk takes at once; none for a kernel with a walk of its own.
    step: Option<usize>,
    /// Whether a pass of a program goes over its tile twice.
    halves: bool,
    /// What a multiplication and an addition of a program cost, loads and stores included, in tenths of a
    /// multiplication of a matrix with its addition. Measured.
    program_costs: (usize, usize),
    /// Writes the packed table of a coefficient, `table_len` bytes.
    pack: fn(u8, &mut [u8]),
    /// Computes all sets. Calling it is sound exactly when the CPU has all of `features`; nothing else is
    /// asked for the sake of memory safety. Rows that do not fit the matrix panic.
    run: unsafe fn(Matrix<'_>, &mut [Rows<'_, '_, '_, '_>]),
    /// Applies a program to all sets, with the tables of its coefficients and columns for its blocks and one
    /// more, as many for each. Sound under the same condition.
    run_program: unsafe fn(&Program, &[u8], &mut [Column], Tuning, &mut [Rows<'_, '_, '_, '_>]),
    /// The loops of the stream code.
    gather: gather::Functions,
}

/// A CPU feature that a kernel needs.
struct Feature {
    name: &'static str,
    /// The run-time test.
    present: fn() -> bool,
}

/// A packed matrix as a kernel reads it.
#[derive(Clone, Copy)]
struct Matrix<'a> {
    /// Number of source rows.
    k: usize,
    /// Number of destination rows.
    wanted: usize,
    /// For each group of outputs, for each source, the tables of the group's outputs.
    tables: &'a [u8],
    /// How rows are cut and moved.
    tuning: Tuning,
}

/// The groups into which a kernel that sums up to `max` outputs at once divides `wanted` outputs: as few as
/// possible, their sizes equal to within one.
fn groups(wanted: usize, max: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = wanted.div_ceil(max);
    (0..count).map(move |g| g * wanted / count..(g + 1) * wanted / count)
}

/// Bytes of output of all sets.
fn output_bytes(sets: &[Rows<'_, '_, '_, '_>]) -> usize {
    sets.iter().map(|(src, dst)| src[0].len() * dst.len()).sum()
}

/// Packs a matrix for `backend`. `coefficients` is row-major: `wanted` rows of `k`.
pub(crate) fn pack(backend: Backend, k: usize, coefficients: &[u8]) -> AlignedBytes {
    let kernel = backend.kernel;
    let wanted = coefficients.len() / k;
    let mut tables = AlignedBytes::zeroed(coefficients.len() * kernel.table_len);
    let mut table = tables.chunks_exact_mut(kernel.table_len);
    for group in groups(wanted, backend.sums()) {
        let rows = &coefficients[group.start * k..group.end * k];
        for source in 0..k {
            for (row, table) in rows.chunks_exact(k).zip(&mut table) {
                (kernel.pack)(row[source], table);
            }
        }
    }
    tables
}

/// Applies a matrix packed by [`pack`] for the same backend to every set.
///
/// # Panics
///
/// When rows are missing, differ in length, or are no multiple of 64 bytes long; sets may then be written in
/// part.
pub(crate) fn run(
    backend: Backend,
    k: usize,
    wanted: usize,
    tables: &AlignedBytes,
    sets: &mut [Rows<'_, '_, '_, '_>],
) {
    let mut tuning = backend.tuning;
    tuning.sums = backend.sums();
    let matrix = Matrix { k, wanted, tables, tuning };
    // SAFETY: a `Backend` is only made by `detect`, which has tested every feature this kernel needs.
    unsafe { (backend.kernel.run)(matrix, sets) }
}

/// Whether a program with these operations is faster than a matrix with so many multiplications.
pub(crate) fn transform_pays(backend: Backend, operations: Operations, multiplications: usize) -> bool {
    let (multiplication, addition) = backend.kernel.program_costs;
    let program = operations.multiplications * multiplication + operations.additions * addition;
    program < multiplications * 10
}

/// See [`Program::run`].
fn run_program(backend: Backend, program: &Program, tables: &[u8], sets: &mut [Rows<'_, '_, '_, '_>]) {
    let lines: usize = sets.iter().map(|(src, _)| src[0].len() / LINE).sum();
    let columns = backend.tuning.columns_of(program.blocks, lines, backend.kernel.halves);
    scratch::with_columns(columns * (program.blocks + 1), |scratch| {
        // SAFETY: a `Backend` is only made by `detect`, which has tested every feature this kernel needs.
        unsafe { (backend.kernel.run_program)(program, tables, scratch, backend.tuning, sets) }
    });
}

/// A kernel that this CPU can run.
///
/// Only detection makes one, so whoever holds a backend may use it. It is a small value, which carries the
/// settings for a processor; there is no global choice.
#[derive(Clone, Copy)]
pub struct Backend {
    kernel: &'static Kernel,
    tuning: Tuning,
}

impl Backend {
    /// The fastest backend of this CPU.
    pub fn best() -> Backend {
        Backend::available().next().expect("the scalar kernel needs no feature")
    }

    /// All backends of this CPU, fastest first; `scalar` is always there and always last.
    pub fn available() -> impl Iterator<Item = Backend> {
        KERNELS.iter().filter_map(|kernel| Backend::detect(kernel).ok())
    }

    /// The names of all backends of this target architecture, fastest first, whether this CPU has them or
    /// not.
    pub fn known_names() -> impl Iterator<Item = &'static str> {
        KERNELS.iter().map(|kernel| kernel.name)
    }

    /// The backend called `name`.
    ///
    /// # Errors
    ///
    /// [`BackendError::Unknown`] when this target architecture has no such backend,
    /// [`BackendError::Unavailable`] when this CPU lacks a feature that it needs.
    pub fn by_name(name: &str) -> Result<Backend, BackendError> {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name).ok_or_else(|| {
            BackendError::Unknown { name: name.to_owned(), known: Backend::known_names().collect() }
        })?;
        Backend::detect(kernel)
    }

    /// The name: `scalar`, `ssse3`, `avx2`, `avx512-gfni` or `neon`.
    pub fn name(self) -> &'static str {
        self.kernel.name
    }

    /// The settings: at first those of this processor, as far as it tells what it is.
    pub fn tuning(self) -> Tuning {
        self.tuning
    }

    /// The same backend with other settings, which change its speed and nothing else.
    pub fn with_tuning(self, tuning: Tuning) -> Backend {
        Backend { tuning, ..self }
    }

    /// How the stream code goes over its rows.
    pub(crate) fn walk(self) -> Walk {
        self.tuning.walk
    }

    /// Most outputs that a matrix sums at once.
    fn sums(self) -> usize {
        self.tuning.sums.min(self.kernel.max_outputs)
    }

    /// The only place that makes a `Backend`.
    fn detect(kernel: &'static Kernel) -> Result<Backend, BackendError> {
        let missing: Vec<_> = kernel
            .features
            .iter()
            .filter(|feature| !(feature.present)())
            .map(|feature| feature.name)
            .collect();
        if missing.is_empty() {
            Ok(Backend { kernel, tuning: Tuning::of_this_cpu() })
        } else {
            Err(BackendError::Unavailable { name: kernel.name, missing })
        }
    }
}

impl PartialEq for Backend {
    fn eq(&self, other: &Backend) -> bool {
        self.name() == other.name() && self.tuning == other.tuning
    }
}

impl Eq for Backend {}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Backend({} on {})", self.name(), self.tuning)
    }
}

/// Why a backend cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// This target architecture has no backend of that name.
    #[error("no backend is called {name:?}; this build has {}", known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// The backend exists, but this CPU cannot run it.
    #[error("backend {name} needs CPU features that are not there: {}", missing.join(", "))]
    Unavailable {
        /// The backend asked for.
        name: &'static str,
        /// The features this CPU lacks.
        missing: Vec<&'static str>,
    },
}
