//! The parameters of a code.

/// Most shards in a set: the number of points of the field.
const MAX_SHARDS: usize = 256;

/// The parameters of a code: k originals and m recovery shards.
///
/// Guaranteed: k ≥ 1 and n = k + m ≤ 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    k: u16,
    m: u16,
}

impl Code {
    /// A code of `k` originals and `m` recovery shards; `m` may be 0.
    ///
    /// # Errors
    ///
    /// [`CodeError::NoOriginals`] when `k` is 0, [`CodeError::TooManyShards`] when `k + m` is more than 256.
    pub fn new(k: usize, m: usize) -> Result<Code, CodeError> {
        if k == 0 {
            return Err(CodeError::NoOriginals);
        }
        if k > MAX_SHARDS || m > MAX_SHARDS - k {
            return Err(CodeError::TooManyShards { k, m });
        }
        Ok(Code { k: k as u16, m: m as u16 })
    }

    /// Number of originals.
    pub fn k(self) -> usize {
        usize::from(self.k)
    }

    /// Number of recovery shards.
    pub fn m(self) -> usize {
        usize::from(self.m)
    }

    /// Number of shards in a set, k + m.
    pub fn n(self) -> usize {
        self.k() + self.m()
    }
}

/// Reason why two numbers are no code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// k is 0.
    #[error("a code needs at least one original shard")]
    NoOriginals,
    /// k + m is more than the 256 points of the field.
    #[error("{k} original and {m} recovery shards are more than 256 together")]
    TooManyShards {
        /// Originals asked for.
        k: usize,
        /// Recovery shards asked for.
        m: usize,
    },
}
