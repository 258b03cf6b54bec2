//! The codec's reports to its caller: the phase it is in, and the bytes that went through.

/// A phase of the work on one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Recovery shards from the originals.
    Encode,
    /// Plain digests of shards.
    Digest,
    /// Leaves, nodes and roots.
    Tree,
    /// Digest and proof of one shard that was read.
    Check,
    /// Finding or making the plan for a loss pattern.
    Plan,
    /// Missing originals from k shards.
    Decode,
    /// The other missing shards, for the check of the codeword.
    Reencode,
}

/// Follows the work. Each thread calls `begin` and `end` of a phase in turn. Several threads may work at the same time,
/// so an observer that adds up times must keep them apart itself.
pub trait Observer: Sync {
    /// A phase begins on this thread.
    fn begin(&self, _phase: Phase) {}
    /// The phase ends, after `bytes` bytes of shards.
    fn end(&self, _phase: Phase, _bytes: u64) {}
}

/// An observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
