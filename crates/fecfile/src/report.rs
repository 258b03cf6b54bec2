//! The results of operations as values; callers choose the words for them.

use crate::leftovers::Leftovers;
use crate::losses::Losses;
use fec_base::names::hex;
use fec_base::ranges::{ByteRange, RangeList};
use fec_core::digest::Digest;
use fec_core::format::meta::Meta;
use fec_core::params::{self, Shape};
use fec_core::set::SetError;
use std::fmt;

/// The end of a line of damage that counts the bytes of a container in damaged places, which have lines of their own.
pub const NO_RECORD: &str = "belong to no intact record";

/// The outcome of a walk over sets.
#[must_use = "sets may be lost"]
#[derive(Debug, Default)]
pub struct Outcome {
    /// Sets in which all originals are proved, each by its own path or by the tree of the originals.
    pub proved_sets: u64,
    /// Sets among them in which an original was missing or damaged.
    pub mended_sets: u64,
    /// Sets with too few shards. Such a set may hold no payload, so lost bytes alone do not show it.
    pub lost_sets: u64,
    /// Records that were read and passed the check; only as many as were needed are read.
    pub intact_records: u64,
    /// Records that were read and failed the check.
    pub damaged_records: u64,
    /// Bytes of payload in the proved sets.
    pub restored: u64,
    /// Intact payload in sets that cannot be decoded.
    pub by_path: RangeList,
    /// Lost payload.
    pub lost: RangeList,
    /// Losses of sets that cannot be decoded, until the walk ends.
    pub(crate) losses: Losses,
    /// The first set that the root binds and that breaks a rule.
    pub untrue: Option<(u32, u32, SetError)>,
    /// The first record that could not be read.
    pub unreadable: Option<String>,
}

impl Outcome {
    /// Tells whether every set was restored.
    pub fn is_whole(&self) -> bool {
        self.lost_sets == 0 && self.lost.is_empty() && self.untrue.is_none()
    }

    /// Adds the outcome of other sets.
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

/// The result of encoding.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    /// The geometry of the payload.
    pub geometry: params::FileGeometry,
    /// The root of the encoding.
    pub root: Digest,
    /// The number of bytes in all outputs.
    pub output_bytes: u64,
}

/// The result of decoding.
#[must_use = "it may be a part of the payload, if that was asked for"]
pub struct Restored {
    /// The root; `None` for a container that was cut.
    pub root: Option<Digest>,
    /// The meta; `None` when all copies of it are lost.
    pub meta: Option<Meta>,
    /// True if the payload is ciphertext.
    pub is_sealed: bool,
    /// Bytes of the payload, if its end is known.
    pub payload_len: Option<u64>,
    /// Bytes of plaintext, if the payload was sealed and opened.
    pub opened: Option<u64>,
    /// The restored part, if not the whole payload was wanted.
    pub part: Option<ByteRange>,
    /// The number of sets of the encoding.
    pub sets: u64,
    /// The outcome for the sets.
    pub outcome: Outcome,
    /// Findings that belong to no chosen encoding.
    pub leftovers: Leftovers,
    /// Roots of other encodings that were found.
    pub others: Vec<Digest>,
    /// True if the output was written, with zeros in place of lost payload.
    pub written: bool,
}

/// A few lines, whatever is lost.
impl fmt::Debug for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restored")
            .field("root", &self.root.as_ref().map(|root| hex(root)))
            .field("payload_len", &self.payload_len)
            .field("written", &self.written)
            .field("sets", &self.sets)
            .field("lost_sets", &self.outcome.lost_sets)
            .field("lost", &self.outcome.lost)
            .field("unreadable", &self.outcome.unreadable)
            .field("leftovers", &self.leftovers)
            .finish_non_exhaustive()
    }
}

impl Restored {
    /// Tells whether the payload was restored whole.
    pub fn is_whole(&self) -> bool {
        self.outcome.is_whole() && self.payload_len.is_some()
    }
}

/// The state of one shard over all sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardState {
    /// Every byte is as it was written.
    Intact,
    /// At least one byte is missing or wrong.
    Damaged,
    /// No byte is there.
    Missing,
}

/// The findings about one shard over all sets.
#[derive(Clone, Debug)]
pub struct ShardReport {
    /// The shard's number.
    pub index: u32,
    /// The shard's state.
    pub state: ShardState,
    /// The files that claim this shard.
    pub files: Vec<String>,
    /// The number of sets in which the shard is intact.
    pub intact_sets: u64,
    /// The number of sets of the encoding.
    pub sets: u64,
    /// The damage, by file.
    pub damage: Vec<Damage>,
}

/// Damage of one kind in one file.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file.
    pub file: String,
    /// The damaged thing, in words.
    pub what: String,
    /// The damaged bytes of the file.
    pub bytes: Vec<ByteRange>,
}

/// The result of checking every byte of an encoding.
#[must_use = "something may be damaged or missing"]
#[derive(Debug)]
pub struct Examination {
    /// Every shard, in order; a single one, if only that was asked about.
    pub shards: Vec<ShardReport>,
    /// The fewest intact shards in any set.
    pub weakest: u32,
    /// Damage that belongs to no shard.
    pub damage: Vec<String>,
    /// Bytes that belong to no record, index or annex.
    pub gaps: Vec<ByteRange>,
    /// The number of places with an intact copy of the seal: between the records of a container, at its ends, in shard
    /// files. `None` if the payload is not sealed, or its seal is kept elsewhere.
    pub seal_places: Option<u32>,
}

impl Examination {
    /// Tells whether every byte is as it was written.
    pub fn is_intact(&self) -> bool {
        self.damage.is_empty() && self.intact() == self.shards.len()
    }

    /// The number of shards that are intact everywhere.
    pub fn intact(&self) -> usize {
        self.shards.iter().filter(|s| s.state == ShardState::Intact).count()
    }
}

/// The result of decoding every set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deep {
    /// Decoding was not asked for.
    NotAsked,
    /// Every set is a codeword, padding included.
    Proved,
    /// Not every set could be decoded.
    Failed,
}

/// The result of verifying.
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
    /// The result of checking every byte.
    pub found: Examination,
    /// Tells whether the payload can be restored; `None` when only one shard was asked about.
    pub is_restorable: Option<bool>,
    /// The result of decoding.
    pub deep: Deep,
    /// Findings that belong to no chosen encoding.
    pub leftovers: Leftovers,
    /// Roots of other encodings that were found.
    pub others: Vec<Digest>,
}

impl Verified {
    /// Tells whether every byte is as it was written.
    pub fn is_intact(&self) -> bool {
        self.found.is_intact()
    }

    /// The number of shards of which anything is there.
    pub fn given(&self) -> usize {
        self.found.shards.iter().filter(|shard| shard.state != ShardState::Missing).count()
    }

    /// Tells whether everything that was found belongs to this encoding and is intact; missing shards do not count.
    pub fn is_given_intact(&self) -> bool {
        let is_damaged = |shard: &ShardReport| shard.state == ShardState::Damaged;
        let is_foreign = !self.others.is_empty() || self.leftovers.is_any();
        self.found.damage.is_empty() && !self.found.shards.iter().any(is_damaged) && !is_foreign
    }

    /// The fewest intact shards in any set.
    pub fn least(&self) -> u32 {
        match self.is_restorable {
            // Only one shard was asked about.
            None => self.found.intact() as u32,
            Some(_) => self.found.weakest,
        }
    }

    /// The number of shards, wherever they are, that may still be lost with everything that stands around them: the
    /// least over all sets. A sealed payload also has to keep one place with its seal.
    pub fn may_still_lose(&self) -> Option<u32> {
        let spare = self.found.weakest.checked_sub(self.shape.code.k() as u32)?;
        let seal = self.found.seal_places.map_or(spare, |places| places.saturating_sub(1));
        self.is_restorable.filter(|is| *is).map(|_| spare.min(seal))
    }

    /// Tells whether the payload is sealed and no copy of its seal is left.
    pub fn is_seal_lost(&self) -> bool {
        self.found.seal_places == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Action, EncodingError, Error};
    use fec_core::error::FormatError;

    /// An error that a program prints with `{:?}` may be of an encoding with thousands of losses.
    #[test]
    fn losses_are_short_in_debug() {
        let mut outcome = Outcome { lost_sets: 5_000, ..Outcome::default() };
        (0..5_000).for_each(|nth| outcome.lost.add(nth * 100, nth * 100 + 50));
        let mut leftovers = Leftovers::default();
        (0..5_000).for_each(|nth| leftovers.reject(|| format!("offset {nth}"), FormatError::Version(9)));
        let restored = Restored {
            root: Some([0xab; 32]),
            meta: None,
            is_sealed: false,
            payload_len: Some(500_000),
            opened: None,
            part: None,
            sets: 5_000,
            outcome,
            leftovers,
            others: Vec::new(),
            written: false,
        };
        let told = format!("{:#?}", Error::new(Action::Decode, EncodingError::Lost(Box::new(restored))));
        assert!(told.len() < 1_500 && told.contains("abab") && told.contains("250000 bytes"), "{told}");
    }
}
