//! An encoding whose parts were found, whatever its form.

use crate::error::{Action, Error, ErrorKind, Result};
use crate::groups::{GroupEntry, Groups};
use crate::seal::open::Extent;
use fec_base::context::Settings;
use fec_base::ranges::joined;
use fec_core::digest::Digest;
use fec_core::format::meta::Meta;
use fec_core::params::{GroupGeometry, Shape};
use fec_core::set::Reading;
use std::io;
use std::ops::Range;

/// The state of one shard of one set.
#[derive(Debug)]
pub enum Load {
    /// The shard is in the decoder and passed its check.
    Intact,
    /// The shard exists and does not pass its check.
    Damaged,
    /// The shard does not exist.
    Missing,
    /// The shard exists and cannot be read.
    Unreadable(io::Error),
}

/// A source of shards. Several threads call it at once.
pub trait Records: Sync {
    /// Loads the shards `wanted` of set `set` of group number `group` into the decoder, which has begun that set, and
    /// checks them there. Returns the state of each, in the order of `wanted`. The call asks for a whole batch, so that
    /// an implementation can fetch shards in parallel.
    fn load(&self, group: u32, set: u32, wanted: &[u32], decoder: &mut Reading<'_>) -> Vec<Load>;

    /// Loads some bytes of shard `index` of a set alone: those of the leaves that hold them, which the shard's outline
    /// proves. `None` if that is not possible here, or failed: then the whole shard has to be loaded.
    fn load_part(
        &self,
        _group: &GroupEntry,
        _set: u32,
        _index: u32,
        _bytes: &Range<usize>,
    ) -> Option<Vec<u8>> {
        None
    }

    /// Ranges of sets, of `sets` sets of a group, that may have any shard, in order. Shards of other sets are not
    /// loaded, however many sets a header claims.
    fn present(&self, _group: u32, sets: u32) -> Vec<Range<u32>> {
        std::iter::once(0..sets).collect()
    }

    /// Ranges of available originals of a group: those found, and those of sets with k shards. Originals are counted in
    /// the order of the payload, in which the sets take turns.
    fn obtainable(&self, group: &GroupGeometry) -> Vec<Range<u64>> {
        let shape = group.shape();
        std::iter::once(0..shape.code.k() as u64 * u64::from(shape.sets)).collect()
    }
}

/// An encoding whose parts were found.
pub struct Encoded<'a> {
    /// `None` for a container that was cut and lost its index.
    pub root: Option<Digest>,
    /// All groups, or the known consecutive ones.
    pub groups: Groups<'a>,
    /// B; `None` when the end is unknown.
    pub payload_len: Option<u64>,
    /// The meta; `None` when it is lost.
    pub meta: Option<&'a Meta>,
    /// The source of its shards.
    pub records: Box<dyn Records + 'a>,
}

impl Encoded<'_> {
    /// The largest shape of its groups.
    pub fn shape(&self) -> &Shape {
        self.groups.largest()
    }

    /// The recorded name.
    pub fn name(&self) -> Option<&[u8]> {
        self.meta?.name.as_deref()
    }

    /// Tells whether it is sealed and its seal is lost.
    pub fn is_seal_lost(&self) -> bool {
        self.shape().is_sealed() && self.meta.is_none()
    }

    /// Refuses sets that need more memory than allowed.
    ///
    /// # Errors
    /// [`ErrorKind::SetMemory`].
    pub fn check_memory(&self, settings: &Settings) -> Result<()> {
        let (need, most) = (self.shape().set_bytes(), settings.max_memory);
        if need > most {
            return Err(Error::new(Action::Read, ErrorKind::SetMemory { need, most }));
        }
        Ok(())
    }

    /// Available ranges of the payload, in order. There are no more ranges than shards, whatever headers claim.
    pub fn obtainable(&self) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        for group in self.groups.iter() {
            let (len, end) = (group.geometry.shape().shard_len as u64, group.geometry.payload_len());
            let bytes = |originals: Range<u64>| {
                let at = |original: u64| group.start + original.saturating_mul(len).min(end);
                at(originals.start)..at(originals.end)
            };
            ranges.extend(self.records.obtainable(&group.geometry).into_iter().map(bytes));
        }
        joined(ranges)
    }

    /// End of the known part of the payload.
    pub fn known_len(&self) -> u64 {
        self.groups.end()
    }

    /// The known extent of the sealed payload.
    #[doc(hidden)]
    pub fn extent(&self) -> Extent {
        Extent { sealed_len: self.known_len(), is_cut: self.payload_len.is_none() }
    }
}
