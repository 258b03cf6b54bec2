//! The list of kernels, and backends: kernels that this CPU can run.
//!
//! Tests, benches and the command line walk over the list, so a kernel in it needs no other mention.

// A kernel may only run on a CPU that has its features. This file holds the calls that depend on it.
#![allow(unsafe_code)]

use super::aligned::{AlignedBytes, LINE};
use super::contract::{Kernel, Matrix, Rows};
#[cfg(target_arch = "aarch64")]
use super::isa::neon;
use super::isa::scalar;
#[cfg(target_feature = "simd128")]
use super::isa::simd128;
#[cfg(target_arch = "x86_64")]
use super::isa::{avx2, avx512_gfni, ssse3};
use super::loops::matrix::groups;
use super::program::{Operations, Program};
use super::scratch;
use super::tuning::{Tuning, Walk};
use std::fmt;

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
    #[cfg(target_feature = "simd128")]
    &simd128::KERNEL,
    &scalar::KERNEL,
];

/// Packs a matrix for `backend`. `coefficients` is row-major: `wanted` rows of `k`.
pub(crate) fn pack(backend: Backend, k: usize, coefficients: &[u8]) -> AlignedBytes {
    let mut tables = AlignedBytes::zeroed(coefficients.len() * backend.kernel.table_len);
    pack_to(backend, k, coefficients, &mut tables);
    tables
}

/// As [`pack`], into tables that are long enough.
pub(super) fn pack_to(backend: Backend, k: usize, coefficients: &[u8], tables: &mut AlignedBytes) {
    let kernel = backend.kernel;
    let wanted = coefficients.len() / k;
    let mut table = tables.chunks_exact_mut(kernel.table_len);
    for group in groups(wanted, backend.sums()) {
        let rows = &coefficients[group.start * k..group.end * k];
        for source in 0..k {
            for (row, table) in rows.chunks_exact(k).zip(&mut table) {
                (kernel.pack)(row[source], table);
            }
        }
    }
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

/// Tells whether a program with these operations is faster than a matrix with so many multiplications.
pub(crate) fn transform_pays(backend: Backend, operations: Operations, multiplications: usize) -> bool {
    let (multiplication, addition) = backend.kernel.program_costs;
    let program = operations.multiplications * multiplication + operations.additions * addition;
    program < multiplications * 10
}

/// Packs the coefficients of a program for `backend`.
pub(crate) fn pack_program(backend: Backend, program: &Program) -> AlignedBytes {
    let kernel = backend.kernel;
    let mut tables = AlignedBytes::zeroed(program.coefficients.len() * kernel.table_len);
    for (&coefficient, table) in program.coefficients.iter().zip(tables.chunks_exact_mut(kernel.table_len)) {
        (kernel.pack)(coefficient, table);
    }
    tables
}

/// Applies a program to every set, with tables made by [`pack_program`] for the same backend.
///
/// # Panics
///
/// As [`run`] does.
pub(crate) fn run_program(
    backend: Backend,
    program: &Program,
    tables: &AlignedBytes,
    sets: &mut [Rows<'_, '_, '_, '_>],
) {
    let lines: usize = sets.iter().map(|(src, _)| src[0].len() / LINE).sum();
    let columns = backend.tuning.columns_of(program.blocks, lines, backend.kernel.two_layers);
    scratch::with_columns(columns * (program.blocks + 1), |scratch| {
        // SAFETY: as in `run`.
        unsafe { (backend.kernel.run_program)(program, tables, scratch, backend.tuning, sets) }
    });
}

/// A kernel that this CPU can run, with its settings.
///
/// Only detection makes one, so whoever holds a backend may use it. The value is small and carries the settings for a
/// processor; there is no global choice.
#[derive(Clone, Copy)]
pub struct Backend {
    pub(super) kernel: &'static Kernel,
    pub(super) tuning: Tuning,
}

impl Backend {
    /// The fastest backend of this CPU.
    pub fn best() -> Backend {
        // A module with simd128 loads only where that is: the linker need not keep the other kernels.
        #[cfg(target_feature = "simd128")]
        return Backend::detect(&simd128::KERNEL).expect("the module was loaded");
        #[cfg(not(target_feature = "simd128"))]
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

    /// The settings: at first those of this processor, as far as CPUID identifies it.
    pub fn tuning(self) -> Tuning {
        self.tuning
    }

    /// The same backend with other settings, which change its speed and nothing else.
    pub fn with_tuning(self, tuning: Tuning) -> Backend {
        Backend { tuning, ..self }
    }

    /// The walk of the stream code over its rows.
    pub(crate) fn walk(self) -> Walk {
        self.tuning.walk
    }

    /// Most outputs that a matrix sums at once.
    pub(super) fn sums(self) -> usize {
        self.tuning.sums.min(self.kernel.max_outputs)
    }

    /// Makes a `Backend`; no other function does.
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

/// The reason why a backend is not available.
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
