//! Reed-Solomon in one call: the recovery shards of some originals, and missing shards from the others.
//!
//! ```
//! // Two recovery shards for three originals, each of five bytes.
//! let originals = ["alpha", "bravo", "delta"];
//! let recovery = fec_core::encode(3, 2, &originals)?;
//!
//! // Originals first, then recovery shards; any two of the five may be missing.
//! let mut shards: Vec<Option<Vec<u8>>> =
//!     originals.iter().map(|shard| shard.as_bytes().to_vec()).chain(recovery).map(Some).collect();
//! shards[0] = None;
//! shards[2] = None;
//! fec_core::decode(3, 2, &mut shards)?;
//! assert_eq!(shards[0].as_deref(), Some(&b"alpha"[..]));
//! assert_eq!(shards[2].as_deref(), Some(&b"delta"[..]));
//! # Ok::<(), fec_core::CodingError>(())
//! ```
//!
//! These functions know nothing of digests and proofs. An altered shard looks like any other, and shards computed from
//! it are silently wrong: shards that may be damaged must be `None`. [`set`](crate::set) tells by a root which shards
//! are intact, and [`block`](crate::block) codes many sets without making their plan and their memory anew each time.
//!
//! The bytes are those of the block code, and thus of `reed-solomon-erasure` and klauspost/reedsolomon with their
//! default matrices. Everything runs on the calling thread.

use crate::block::{Code, CodeError, Plan};
use crate::gf256::kernel::Backend;

/// The reason why shards cannot be encoded or decoded. An error changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodingError {
    /// There is no such code: k is 0, or k + m is more than 256.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Encoding takes exactly k shards, decoding k + m, present or not.
    #[error("{given} shards where {expected} are expected")]
    WrongCount {
        /// Shards given.
        given: usize,
        /// k, or k + m.
        expected: usize,
    },
    /// The shards differ in length.
    #[error("shard {index} has {len} bytes where those before have {expected}")]
    UnequalLengths {
        /// The first shard that differs from those before.
        index: usize,
        /// Its bytes.
        len: usize,
        /// Bytes of the shards before.
        expected: usize,
    },
    /// The shards have no bytes.
    #[error("the shards are empty")]
    Empty,
    /// Fewer than k shards are there.
    #[error("only {present} shards where {needed} are needed")]
    TooFew {
        /// Shards that are not `None`.
        present: usize,
        /// k.
        needed: usize,
    },
}

/// The m recovery shards of k originals.
///
/// `originals` are in order and of one length, which may be any but 0. The recovery shards have the same length, to the
/// byte. The kernels work on whole lines of 64 bytes, so the last few bytes of each shard are padded inside. Shard i of
/// the set is `originals[i]`, and shard k + j is recovery shard j.
///
/// ```
/// let recovery = fec_core::encode(2, 1, &[[1u8, 2, 3], [4, 5, 6]])?;
/// assert_eq!((recovery.len(), recovery[0].len()), (1, 3));
/// # Ok::<(), fec_core::CodingError>(())
/// ```
///
/// Cost: O(k · m) for the plan, then at most k · m multiplications for each column of bytes; large codes take a Fourier
/// transform, which needs far fewer.
///
/// # Errors
/// The first of [`CodingError::Code`], [`WrongCount`](CodingError::WrongCount),
/// [`UnequalLengths`](CodingError::UnequalLengths) and [`Empty`](CodingError::Empty) that applies.
pub fn encode<T: AsRef<[u8]>>(k: usize, m: usize, originals: &[T]) -> Result<Vec<Vec<u8>>, CodingError> {
    let code = Code::new(k, m)?;
    if originals.len() != k {
        return Err(CodingError::WrongCount { given: originals.len(), expected: k });
    }
    check_lengths(originals.iter().map(Some))?;
    let rows: Vec<&[u8]> = originals.iter().map(AsRef::as_ref).collect();
    Ok(run(&Plan::encode(code, Backend::best()), &rows))
}

/// Restores all missing shards of a set in place, from any k that are there.
///
/// `shards` holds the k originals and then the m recovery shards; missing shards are `None`. Present shards have one
/// length, which may be any but 0, and stay as they are. After `Ok`, every shard is `Some`, with that length.
///
/// **Damaged shards must be `None`.** An altered shard is taken as it is, and makes other shards silently wrong. See
/// [`set`](crate::set) for shards that prove themselves.
///
/// ```
/// use fec_core::CodingError;
///
/// let mut shards = [None, Some(vec![4, 5, 6]), None];
/// assert_eq!(fec_core::decode(2, 1, &mut shards), Err(CodingError::TooFew { present: 1, needed: 2 }));
/// ```
///
/// Cost: O(k · (k + missing)) for the plans, then at most k multiplications for each missing shard and column of bytes.
///
/// # Errors
/// The first of [`CodingError::Code`], [`WrongCount`](CodingError::WrongCount), [`TooFew`](CodingError::TooFew),
/// [`UnequalLengths`](CodingError::UnequalLengths) and [`Empty`](CodingError::Empty) that applies.
pub fn decode<T>(k: usize, m: usize, shards: &mut [Option<T>]) -> Result<(), CodingError>
where
    T: AsRef<[u8]> + From<Vec<u8>>,
{
    let code = Code::new(k, m)?;
    if shards.len() != code.n() {
        return Err(CodingError::WrongCount { given: shards.len(), expected: code.n() });
    }
    let (known, missing): (Vec<u8>, Vec<u8>) =
        (0..code.n()).map(|i| i as u8).partition(|i| shards[usize::from(*i)].is_some());
    if known.len() < k {
        return Err(CodingError::TooFew { present: known.len(), needed: k });
    }
    check_lengths(shards.iter().map(Option::as_ref))?;
    // The originals come first: with all of them, missing recovery shards are a matter of encoding.
    let (originals, recovery) = missing.split_at(missing.partition_point(|i| usize::from(*i) < k));
    restore(code, &known[..k], originals, shards);
    let all_originals: Vec<u8> = (0..k).map(|i| i as u8).collect();
    restore(code, &all_originals, recovery, shards);
    Ok(())
}

/// Refuses shards that differ in length or are empty.
fn check_lengths<'a, T: AsRef<[u8]> + 'a>(
    shards: impl Iterator<Item = Option<&'a T>>,
) -> Result<(), CodingError> {
    let mut lengths = shards.enumerate().filter_map(|(i, shard)| Some((i, shard?.as_ref().len())));
    let expected = lengths.next().map_or(0, |(_, len)| len);
    match lengths.find(|(_, len)| *len != expected) {
        Some((index, len)) => Err(CodingError::UnequalLengths { index, len, expected }),
        None if expected == 0 => Err(CodingError::Empty),
        None => Ok(()),
    }
}

/// Computes the shards `wanted` from the k shards `known`, which are present.
fn restore<T: AsRef<[u8]> + From<Vec<u8>>>(
    code: Code,
    known: &[u8],
    wanted: &[u8],
    shards: &mut [Option<T>],
) {
    if wanted.is_empty() {
        return;
    }
    let plan =
        Plan::new(code, Backend::best(), known, wanted).expect("k distinct shards of the set are known");
    let rows: Vec<&[u8]> = known
        .iter()
        .map(|i| shards[usize::from(*i)].as_ref().expect("a known shard is there").as_ref())
        .collect();
    let restored = run(&plan, &rows);
    wanted.iter().zip(restored).for_each(|(i, shard)| shards[usize::from(*i)] = Some(shard.into()));
}

/// The wanted rows of a plan, in memory of their own.
fn run(plan: &Plan, src: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut out = vec![vec![0; src[0].len()]; plan.wanted().len()];
    plan.run_uneven(src, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
    out
}
