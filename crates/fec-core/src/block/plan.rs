//! Plans: from the shards that are known to those that are wanted.

use super::{Code, ShardBuf, fft, lagrange};
use crate::gf256::kernel::{self, AlignedBytes, Backend, LINE, Operations, Program, Rows};
#[cfg(feature = "trace")]
use crate::gf256::kernel::{Access, trace};

/// A computation of the wanted shards of a set from k known ones: a matrix or a Fourier transform, packed for one
/// backend.
///
/// A plan is immutable and can be shared by threads. Set-up costs O(k · (k + wanted)) field operations, a few
/// microseconds at 33 of 100; sets with the same losses should share one plan. The packed form belongs to the
/// backend and is not visible.
#[derive(Debug)]
pub struct Plan {
    code: Code,
    backend: Backend,
    known: Vec<u8>,
    wanted: Vec<u8>,
    tables: AlignedBytes,
    method: Method,
}

/// The two ways to compute the same bytes.
///
/// A matrix serves any known shards and costs k multiplications for each wanted one. A transform needs known shards
/// that are a shift of the first k: the points i ^ s for all i below k and a single s, in any order. All originals are
/// such a shift; so are, at k = 33, the shards 64..=96. It costs a few multiplications for each shard, known or wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A matrix of interpolation coefficients.
    Matrix,
    /// A truncated additive fast Fourier transform.
    Fft,
}

impl Engine {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Matrix => "matrix",
            Engine::Fft => "fft",
        }
    }
}

/// The data of an engine beside its tables.
#[derive(Debug)]
enum Method {
    Matrix,
    Fft(Program),
}

impl Plan {
    /// The plan from the shards `known` to the shards `wanted`, both given by their indices in the set. The engine is
    /// the one that needs fewer operations, weighted by their cost on the backend.
    ///
    /// `known` holds exactly k distinct indices, any mix of originals and recovery shards. `wanted` holds any number of
    /// any indices; known ones among them are copied. Their order is that of the rows in [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// [`PlanError::WrongCount`], [`PlanError::OutOfRange`] or [`PlanError::Duplicate`] when the indices are
    /// not as said.
    pub fn new(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Result<Plan, PlanError> {
        check(code, known, wanted)?;
        let fast = Plan::fft(code, backend, known, wanted).filter(Plan::pays);
        Ok(fast.unwrap_or_else(|| Plan::matrix(code, backend, known, wanted)))
    }

    /// The same as [`new`](Self::new) with an engine of the caller's choice, for tests and comparisons. The
    /// bytes are the same, whatever the engine.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`PlanError::NoTransform`] when [`Engine::Fft`] cannot serve: the
    /// known shards are no shift of the first k, or a wanted one is known or given twice.
    pub fn with_engine(
        code: Code,
        backend: Backend,
        known: &[u8],
        wanted: &[u8],
        engine: Engine,
    ) -> Result<Plan, PlanError> {
        check(code, known, wanted)?;
        match engine {
            Engine::Matrix => Ok(Plan::matrix(code, backend, known, wanted)),
            Engine::Fft => Plan::fft(code, backend, known, wanted).ok_or(PlanError::NoTransform),
        }
    }

    fn matrix(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Plan {
        let coefficients = lagrange::coefficients(known, wanted);
        let tables = kernel::pack(backend, code.k(), &coefficients);
        let (known, wanted) = (known.to_vec(), wanted.to_vec());
        Plan { code, backend, known, wanted, tables, method: Method::Matrix }
    }

    /// The plan with a transform, where one serves.
    fn fft(code: Code, backend: Backend, known: &[u8], wanted: &[u8]) -> Option<Plan> {
        let mut taken = [false; 256];
        known.iter().for_each(|&index| taken[usize::from(index)] = true);
        if wanted.iter().any(|&index| std::mem::replace(&mut taken[usize::from(index)], true)) {
            return None;
        }
        let shift = fft::shift(known)?;
        let mut sources = vec![0; known.len()];
        (0..=u8::MAX).zip(known).for_each(|(row, &index)| sources[usize::from(index ^ shift)] = row);
        let positions: Vec<u8> = wanted.iter().map(|&index| index ^ shift).collect();
        let program = fft::program(sources, &positions);
        let tables = kernel::pack_program(backend, &program);
        let (known, wanted) = (known.to_vec(), wanted.to_vec());
        Some(Plan { code, backend, known, wanted, tables, method: Method::Fft(program) })
    }

    /// Tells whether this transform is faster than the matrix for the same shards.
    fn pays(&self) -> bool {
        kernel::transform_pays(self.backend, self.operations(), self.known.len() * self.wanted.len())
    }

    /// The plan that encodes: all recovery shards from all originals.
    pub fn encode(code: Code, backend: Backend) -> Plan {
        let indices: Vec<u8> = (0..code.n()).map(|index| index as u8).collect();
        let (known, wanted) = indices.split_at(code.k());
        Plan::new(code, backend, known, wanted).expect("the originals are k distinct shards of the set")
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The backend that [`run`](Self::run) uses.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Indices of the source rows, in their order.
    pub fn known(&self) -> &[u8] {
        &self.known
    }

    /// Indices of the destination rows, in their order.
    pub fn wanted(&self) -> &[u8] {
        &self.wanted
    }

    /// The engine in use.
    pub fn engine(&self) -> Engine {
        match self.method {
            Method::Matrix => Engine::Matrix,
            Method::Fft(_) => Engine::Fft,
        }
    }

    /// Field operations for each column of bytes. A matrix has k multiplications and k additions for each wanted shard.
    /// Factors 0 and 1 count too, since the kernels make no exception for them.
    pub fn operations(&self) -> Operations {
        match &self.method {
            Method::Matrix => Operations::of_matrix(self.known.len(), self.wanted.len()),
            Method::Fft(program) => program.operations(),
        }
    }

    /// Field multiplications for each column of bytes, as in [`operations`](Self::operations).
    pub fn multiplications(&self) -> usize {
        self.operations().multiplications
    }

    /// Computes the wanted shards of one set.
    ///
    /// `src` holds the k known shards in the order of [`known`](Self::known), `dst` room for the wanted ones
    /// in the order of [`wanted`](Self::wanted). Everything in `dst` is overwritten and nothing of it is
    /// read. All rows have one length, a multiple of 64 bytes, 0 included; they may begin at any address, but
    /// destinations that begin at one divisible by 64 are stored fastest.
    ///
    /// Each column of bytes depends on that column alone. A set can therefore be computed in pieces, at the same time
    /// or not: cut all rows at the same multiples of 64 bytes, and run each piece.
    ///
    /// The cost is [`operations`](Self::operations) for each column of bytes, without lock or allocation: a transform
    /// works in a few kilobytes that each thread keeps from its first call on. Outputs that are large together may be
    /// stored past the caches (see [`Tuning`](kernel::Tuning)), and are ordered before whatever the caller does next.
    ///
    /// # Panics
    ///
    /// When the number or the lengths of rows are not as said, before anything is written.
    pub fn run(&self, src: &[&[u8]], dst: &mut [&mut [u8]]) {
        self.run_batch(&mut [(src, dst)]);
    }

    /// Computes the wanted shards of many sets, each a pair of `src` and `dst` as in [`run`](Self::run).
    ///
    /// The result is the same as that of a `run` for each set; lengths may differ from set to set. Several sets with
    /// short rows go through each part of the tables while it is in the nearest cache. This gains speed only where the
    /// whole tables are larger than the second cache: the gain elsewhere comes from sharing the plan.
    ///
    /// # Panics
    ///
    /// When the number or the lengths of rows in any set are not as said, before anything is written.
    pub fn run_batch(&self, sets: &mut [Rows<'_, '_, '_, '_>]) {
        for (src, dst) in sets.iter() {
            self.assert_rows(src.iter().map(|row| row.len()), dst.iter().map(|row| row.len()));
        }
        match &self.method {
            Method::Matrix => kernel::run(self.backend, self.code.k(), self.wanted.len(), &self.tables, sets),
            Method::Fft(program) => kernel::run_program(self.backend, program, &self.tables, sets),
        }
    }

    /// Computes the wanted shards of one set whose rows have any length.
    ///
    /// Whole lines of 64 bytes are computed in place, as [`run`](Self::run) does. The rest of each row is computed in a
    /// line of its own, which takes a small allocation.
    ///
    /// ```
    /// use fec_core::block::{Code, Plan};
    /// use fec_core::gf256::kernel::Backend;
    ///
    /// let mut recovery = [0; 70];
    /// let plan = Plan::encode(Code::new(2, 1)?, Backend::best());
    /// plan.run_uneven(&[&[1; 70], &[2; 70]], &mut [&mut recovery]);
    /// # assert_eq!(recovery.to_vec(), fec_core::encode(2, 1, &[[1; 70], [2; 70]]).unwrap()[0]);
    /// # Ok::<(), fec_core::block::CodeError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// When the number of rows is not as said, or their lengths differ.
    pub fn run_uneven(&self, src: &[&[u8]], dst: &mut [&mut [u8]]) {
        assert_eq!(src.len(), self.known.len(), "number of source rows");
        assert_eq!(dst.len(), self.wanted.len(), "number of destination rows");
        let len = src[0].len();
        let mut lens = src.iter().map(|row| row.len()).chain(dst.iter().map(|row| row.len()));
        assert!(lens.all(|other| other == len), "all rows of a set have one length");
        let whole = len / LINE * LINE;
        let heads: Vec<&[u8]> = src.iter().map(|row| &row[..whole]).collect();
        self.run(&heads, &mut dst.iter_mut().map(|row| &mut row[..whole]).collect::<Vec<_>>());
        if whole < len {
            let mut lines = ShardBuf::new(src.len() + dst.len(), LINE);
            lines
                .iter_mut()
                .zip(src)
                .for_each(|(line, row)| line[..len - whole].copy_from_slice(&row[whole..]));
            let (known, mut computed) = lines.split_rows(|i| i >= src.len());
            self.run(&known, &mut computed);
            dst.iter_mut()
                .zip(computed)
                .for_each(|(row, line)| row[whole..].copy_from_slice(&line[..len - whole]));
        }
    }

    /// Tells `visit` which memory [`run`](Self::run) with these rows touches, in its order: for models of caches.
    /// Nothing is computed.
    ///
    /// Sources, destinations, tables, the blocks of a transform and some lines of the stack are told; registers and
    /// prefetches are not. The order is that of the backend's loops, the addresses are real. The call allocates as many
    /// bytes as the destinations have, without touching them.
    ///
    /// # Panics
    ///
    /// When the number or the lengths of rows are not as [`run`](Self::run) asks, or when `visit` runs a plan.
    #[cfg(feature = "trace")]
    pub fn trace(&self, src: &[&[u8]], dst: &[&[u8]], visit: &mut dyn FnMut(Access)) {
        self.assert_rows(src.iter().map(|row| row.len()), dst.iter().map(|row| row.len()));
        match &self.method {
            Method::Matrix => trace::matrix(self.backend, &self.tables, src, dst, visit),
            Method::Fft(program) => {
                trace::program(self.backend, program, &self.tables, src, dst, visit);
            }
        }
    }

    /// `src` and `dst` are the lengths of source and destination rows.
    fn assert_rows(
        &self,
        src: impl ExactSizeIterator<Item = usize>,
        dst: impl ExactSizeIterator<Item = usize>,
    ) {
        assert_eq!(src.len(), self.known.len(), "number of source rows");
        assert_eq!(dst.len(), self.wanted.len(), "number of destination rows");
        let mut lens = src.chain(dst);
        let row_len = lens.next().expect("a code has originals");
        assert!(row_len.is_multiple_of(LINE), "row length {row_len} is no multiple of {LINE}");
        assert!(lens.all(|len| len == row_len), "all rows of a set have one length");
    }
}

/// Refuses indices that make no plan.
fn check(code: Code, known: &[u8], wanted: &[u8]) -> Result<(), PlanError> {
    if known.len() != code.k() {
        return Err(PlanError::WrongCount { known: known.len(), k: code.k() });
    }
    if let Some(&index) = known.iter().chain(wanted).find(|&&index| usize::from(index) >= code.n()) {
        return Err(PlanError::OutOfRange { index, n: code.n() });
    }
    let mut seen = [false; 256];
    for &index in known {
        if std::mem::replace(&mut seen[usize::from(index)], true) {
            return Err(PlanError::Duplicate { index });
        }
    }
    Ok(())
}

/// Reason why indices make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The number of known shards is not k.
    #[error("{known} known shards where the code needs exactly {k}")]
    WrongCount {
        /// Known shards given.
        known: usize,
        /// Known shards needed.
        k: usize,
    },
    /// A known or wanted index is not below n.
    #[error("shard {index} of a set of {n}")]
    OutOfRange {
        /// The index.
        index: u8,
        /// Shards in a set.
        n: usize,
    },
    /// A shard is given twice among the known ones.
    #[error("shard {index} is given twice")]
    Duplicate {
        /// The index.
        index: u8,
    },
    /// A transform was asked for and cannot serve these indices.
    #[error(
        "no transform computes these shards: the known ones are no shift of the first, or a wanted one is not new"
    )]
    NoTransform,
}
