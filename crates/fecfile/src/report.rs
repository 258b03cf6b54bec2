//! What operations found, as values; the words for them are the caller's.

use crate::leftovers::Leftovers;
use crate::losses::Losses;
use crate::ranges::{ByteRange, RangeList};
use fec_core::digest::Digest;
use fec_core::format::meta::Meta;
use fec_core::params::{self, Shape};
use fec_core::set::SetError;

/// What became of the sets that were walked over.
#[must_use = "sets may be lost"]
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sets of which all originals are proved, each by its own path or by the tree of the originals.
    pub proved_sets: u64,
    /// Of those, sets in which an original shard was missing or damaged.
    pub mended_sets: u64,
    /// Sets with too few shards. A set may hold no payload at all, so that nothing else tells.
    pub lost_sets: u64,
    /// Records that were read and passed, as far as they were needed.
    pub intact_records: u64,
    /// Records that were read and did not pass.
    pub damaged_records: u64,
    /// Payload of those sets.
    pub restored: u64,
    /// Payload that is intact in sets that cannot be decoded.
    pub by_path: RangeList,
    /// Payload that is lost.
    pub lost: RangeList,
    /// Sets that cannot be decoded, while the walk goes on.
    pub(crate) losses: Losses,
    /// The first set that the root binds and that breaks a rule.
    pub untrue: Option<(u32, u32, SetError)>,
    /// The first record that could not be read.
    pub unreadable: Option<String>,
}

impl Outcome {
    /// Whether every set was restored.
    pub fn is_whole(&self) -> bool {
        self.lost_sets == 0 && self.lost.is_empty() && self.untrue.is_none()
    }

    /// Adds what became of other sets.
    pub(crate) fn absorb(&mut self, other: Outcome) {
        self.proved_sets += other.proved_sets;
        self.mended_sets += other.mended_sets;
        self.lost_sets += other.lost_sets;
        self.intact_records += other.intact_records;
        self.damaged_records += other.damaged_records;
        self.restored += other.restored;
        self.by_path.absorb(&other.by_path);
        self.lost.absorb(&other.lost);
        self.losses.absorb(other.losses);
        self.untrue = self.untrue.take().or(other.untrue);
        self.unreadable = self.unreadable.take().or(other.unreadable);
    }
}

/// What `encode` wrote.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The geometry of the payload.
    pub geometry: params::FileGeometry,
    /// The root of the encoding.
    pub root: Digest,
    /// Bytes of all outputs.
    pub output_bytes: u64,
}

/// What `decode` restored.
#[must_use = "it may be a part of the payload, if that was asked for"]
#[derive(Debug)]
pub struct Restored {
    /// The root; `None` for a container that was cut.
    pub root: Option<Digest>,
    /// The meta; `None` when all copies of it are lost.
    pub meta: Option<Meta>,
    /// Whether the payload is ciphertext.
    pub is_sealed: bool,
    /// Bytes of the payload, if its end is known.
    pub payload_len: Option<u64>,
    /// Bytes that were opened, of a sealed payload.
    pub opened: Option<u64>,
    /// The part that was asked for, if not all of it.
    pub part: Option<ByteRange>,
    /// Sets of the encoding.
    pub sets: u64,
    /// What became of them.
    pub outcome: Outcome,
    /// What did not take part.
    pub leftovers: Leftovers,
    /// Roots of other encodings that were found.
    pub others: Vec<Digest>,
    /// Whether the output was written; with gaps of zeros, if the payload is not whole.
    pub written: bool,
}

impl Restored {
    /// Whether the payload was restored whole.
    pub fn is_whole(&self) -> bool {
        self.outcome.is_whole() && self.payload_len.is_some()
    }
}

/// The state of one shard over all sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardState {
    /// Every byte is as it was written.
    Intact,
    /// Something of it is not.
    Damaged,
    /// Nothing of it is there.
    Missing,
}

/// What is known of one shard over all sets.
#[derive(Clone, Debug)]
pub struct ShardReport {
    /// Its number.
    pub index: u32,
    /// Its state.
    pub state: ShardState,
    /// The files that claim this shard.
    pub files: Vec<String>,
    /// Sets in which it is intact.
    pub intact_sets: u64,
    /// Sets of the encoding.
    pub sets: u64,
    /// What is damaged, in which file.
    pub damage: Vec<Damage>,
}

/// Damage of one kind in one file.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// What is damaged.
    pub what: String,
    /// Where.
    pub bytes: Vec<ByteRange>,
}

/// What looking at every byte of an encoding found.
#[must_use = "something may be damaged or missing"]
#[derive(Debug)]
pub struct Examination {
    /// Every shard, in order; or one, if one was asked about.
    pub shards: Vec<ShardReport>,
    /// The fewest intact shards of any set.
    pub weakest: u32,
    /// Damage that belongs to no shard.
    pub damage: Vec<String>,
    /// Bytes that belong to nothing.
    pub gaps: Vec<ByteRange>,
    /// In how many places a copy of the seal is intact: between the records of a container, at its ends, in shard files. `None` for
    /// what is not sealed, or has its seal elsewhere.
    pub seal_places: Option<u32>,
}

impl Examination {
    /// Whether every byte is as it was written.
    pub fn is_intact(&self) -> bool {
        self.damage.is_empty() && self.intact() == self.shards.len()
    }

    /// How many shards are intact everywhere.
    pub fn intact(&self) -> usize {
        self.shards.iter().filter(|s| s.state == ShardState::Intact).count()
    }
}

/// What decoding every set found, if that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deep {
    /// It was not asked for.
    NotAsked,
    /// Every set is one codeword, padding and all.
    Proved,
    /// Not every set could be decoded.
    Failed,
}

/// What `verify` found.
#[must_use = "damage and losses are no errors"]
#[derive(Debug)]
pub struct Verified {
    /// The form of the encoding.
    pub form: params::Form,
    /// The root; `None` for a container that was cut.
    pub root: Option<Digest>,
    /// The meta; `None` when all copies of it are lost.
    pub meta: Option<Meta>,
    /// The shape of its sets.
    pub shape: Shape,
    /// Bytes of the payload, if its end is known.
    pub payload_len: Option<u64>,
    /// What looking at every byte found.
    pub found: Examination,
    /// Whether the payload can be restored; `None` when one shard alone was asked about.
    pub is_restorable: Option<bool>,
    /// What decoding found.
    pub deep: Deep,
    /// What did not take part.
    pub leftovers: Leftovers,
    /// Roots of other encodings that were found.
    pub others: Vec<Digest>,
}

impl Verified {
    /// Whether every byte is as it was written.
    pub fn is_intact(&self) -> bool {
        self.found.is_intact()
    }

    /// How many shards there is anything of.
    pub fn given(&self) -> usize {
        self.found.shards.iter().filter(|shard| shard.state != ShardState::Missing).count()
    }

    /// Whether all that is there is of this encoding and as it was written; what is missing does not count.
    pub fn is_given_intact(&self) -> bool {
        let is_damaged = |shard: &ShardReport| shard.state == ShardState::Damaged;
        let is_foreign = !self.others.is_empty() || self.leftovers.is_any();
        self.found.damage.is_empty() && !self.found.shards.iter().any(is_damaged) && !is_foreign
    }

    /// The fewest intact shards of any set.
    pub fn least(&self) -> u32 {
        match self.is_restorable {
            // One shard was asked about.
            None => self.found.intact() as u32,
            Some(_) => self.found.weakest,
        }
    }

    /// Shards that may still be lost, wherever, with what stands around them: the least over all sets, and of a sealed payload
    /// never all that have its seal.
    pub fn may_still_lose(&self) -> Option<u32> {
        let spare = self.found.weakest.checked_sub(self.shape.code.k() as u32)?;
        let seal = self.found.seal_places.map_or(spare, |places| places.saturating_sub(1));
        self.is_restorable.filter(|is| *is).map(|_| spare.min(seal))
    }

    /// Whether it is sealed, and nothing is left that could open it.
    pub fn is_seal_lost(&self) -> bool {
        self.found.seal_places == Some(0)
    }
}
