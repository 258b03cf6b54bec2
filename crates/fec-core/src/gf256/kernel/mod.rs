//! Kernels: coefficients applied to rows of bytes, once for each instruction set.
//!
//! Every kernel computes the same two things. With the matrix C of `wanted` rows and `k` columns, it writes
//! `dst[w][x] = Σ_j C[w][j] · src[j][x]` for every column of bytes x. `scalar.rs` says it in the plainest way
//! and is the oracle of the others, which share one walk over tiles, groups of outputs and sets (`walk.rs`)
//! and differ only in how a vector is loaded, multiplied and stored. And a `Program` (`program.rs`) makes
//! destinations from sources in passes over blocks of rows, by one runner for all kernels (`butterfly.rs`).
//! Adding an instruction set is one file and one line in `KERNELS`: tests, benches and the command line all
//! walk that list.
//!
//! A kernel knows nothing of codes, points or losses; it sees coefficients and rows.

// A kernel may only run on a CPU that has its features. This file holds the one call that depends on it.
#![allow(unsafe_code)]

use std::fmt;

mod aligned;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512_gfni;
mod butterfly;
mod gather;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod nibble;
mod program;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod ssse3;
pub(crate) mod trace;
#[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(unused_imports, unused_macros))]
mod walk;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use aligned::{AlignedBytes, LINE};
pub use gather::Walk;
pub use program::Operations;
pub(crate) use program::{BLOCK, Program, Skews, tail_layers};
pub use trace::{Access, AccessKind};

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
    /// Bytes of the vectors that programs run on.
    vector: usize,
    /// What a multiplication and an addition of a program cost, loads and stores included, in tenths of a
    /// multiplication of a matrix with its addition. Measured.
    program_costs: (usize, usize),
    /// Writes the packed table of a coefficient, `table_len` bytes.
    pack: fn(u8, &mut [u8]),
    /// Computes all sets. Calling it is sound exactly when the CPU has all of `features`; nothing else is
    /// asked for the sake of memory safety. Rows that do not fit the matrix panic.
    run: unsafe fn(Matrix<'_>, &mut [Rows<'_, '_, '_, '_>]),
    /// Applies a program with the tables of its coefficients to all sets. Sound under the same condition.
    run_program: unsafe fn(&Program, &[u8], &mut [Rows<'_, '_, '_, '_>]),
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
}

/// The groups into which a kernel that sums up to `max` outputs at once divides `wanted` outputs: as few as
/// possible, their sizes equal to within one.
fn groups(wanted: usize, max: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let count = wanted.div_ceil(max);
    (0..count).map(move |g| g * wanted / count..(g + 1) * wanted / count)
}

/// A call with more bytes of output than this stores past the caches.
///
/// So much output has left the second cache before anybody reads it, and an ordinary store would first fetch
/// each line from memory: for 8.5 MB, past the caches took 0.73 of the time. Reading the outputs back undoes
/// most of that gain, and below this size more than all of it.
const STREAM_BYTES: usize = 4 << 20;

/// Whether a call that writes `wanted` rows of up to `row_len` bytes in each of `sets` sets stores them past
/// the caches.
fn past_caches(wanted: usize, sets: usize, row_len: usize) -> bool {
    wanted * row_len * sets > STREAM_BYTES
}

/// Packs a matrix for `backend`. `coefficients` is row-major: `wanted` rows of `k`.
pub(crate) fn pack(backend: Backend, k: usize, coefficients: &[u8]) -> AlignedBytes {
    let kernel = backend.0;
    let wanted = coefficients.len() / k;
    let mut tables = AlignedBytes::zeroed(coefficients.len() * kernel.table_len);
    let mut table = tables.chunks_exact_mut(kernel.table_len);
    for group in groups(wanted, kernel.max_outputs) {
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
    let matrix = Matrix { k, wanted, tables };
    // SAFETY: a `Backend` is only made by `detect`, which has tested every feature this kernel needs.
    unsafe { (backend.0.run)(matrix, sets) }
}

/// Whether a program with these operations is faster than a matrix with so many multiplications.
pub(crate) fn transform_pays(backend: Backend, operations: Operations, multiplications: usize) -> bool {
    let (multiplication, addition) = backend.0.program_costs;
    let program = operations.multiplications * multiplication + operations.additions * addition;
    program < multiplications * 10
}

/// See [`Program::run`].
fn run_program(backend: Backend, program: &Program, tables: &[u8], sets: &mut [Rows<'_, '_, '_, '_>]) {
    // SAFETY: a `Backend` is only made by `detect`, which has tested every feature this kernel needs.
    unsafe { (backend.0.run_program)(program, tables, sets) }
}

/// A kernel that this CPU can run.
///
/// Only detection makes one, so whoever holds a backend may use it. It is a value of one word; there is no
/// global choice.
#[derive(Clone, Copy)]
pub struct Backend(&'static Kernel);

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
        self.0.name
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
            Ok(Backend(kernel))
        } else {
            Err(BackendError::Unavailable { name: kernel.name, missing })
        }
    }
}

impl PartialEq for Backend {
    fn eq(&self, other: &Backend) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Backend {}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Backend").field(&self.name()).finish()
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
