//! An encoding whose parts were found, whatever its form.

use crate::context::Settings;
use crate::error::{Error, ErrorKind, Result};
use crate::groups::Groups;
use crate::ranges::joined;
use crate::seal::open::Extent;
use fec_core::digest::Digest;
use fec_core::format::meta::Meta;
use fec_core::params::{GroupGeometry, Shape};
use fec_core::set::Reading;
use std::io;
use std::ops::Range;

/// The state of one shard of one set.
#[derive(Debug)]
pub enum Load {
    /// It is in the decoder and passed its check.
    Intact,
    /// It is there and does not pass.
    Damaged,
    /// It is not there.
    Missing,
    /// It is there and cannot be read.
    Unreadable(io::Error),
}

/// Where shards come from. Called from several threads.
pub trait Records: Sync {
    /// Loads the shards `wanted` of set `set` of group number `group` into the decoder, which has begun that set, and
    /// checks them there. Returns the state of each, in the order of `wanted`. A whole batch is asked for at once, so
    /// that an implementation can fetch its shards in parallel.
    fn load(&self, group: u32, set: u32, wanted: &[u32], decoder: &mut Reading<'_>) -> Vec<Load>;

    /// Ranges of sets of a group of `sets` sets of which anything may be there, in order: nothing is loaded of the
    /// others, whatever number of them a header claims.
    fn present(&self, _group: u32, sets: u32) -> Vec<Range<u32>> {
        std::iter::once(0..sets).collect()
    }

    /// Ranges of originals of a group that can be had: those that are there, and those of sets of which k shards are. Originals
    /// are counted in the order of the payload, in which the sets take turns.
    fn obtainable(&self, group: &GroupGeometry) -> Vec<Range<u64>> {
        let shape = group.shape();
        std::iter::once(0..shape.code.k() as u64 * u64::from(shape.sets)).collect()
    }
}

/// An encoding whose parts were found.
pub struct Encoded<'a> {
    /// `None` for a container that was cut and lost its index.
    pub root: Option<Digest>,
    /// Its groups, or as many of those that follow one another as are known.
    pub groups: Groups<'a>,
    /// B; `None` when the end is not known.
    pub payload_len: Option<u64>,
    /// The meta; `None` when it is lost.
    pub meta: Option<&'a Meta>,
    /// Its shards.
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

    /// Whether it is sealed, and nothing is left that could open it.
    pub fn is_seal_lost(&self) -> bool {
        self.shape().is_sealed() && self.meta.is_none()
    }

    /// Refuses sets that do not fit the memory allowed.
    ///
    /// # Errors
    /// [`ErrorKind::SetMemory`].
    pub fn check_memory(&self, settings: &Settings) -> Result<()> {
        let (need, most) = (self.shape().set_bytes(), settings.max_memory);
        if need > most {
            return Err(Error::new("read", ErrorKind::SetMemory { need, most }));
        }
        Ok(())
    }

    /// The bytes of the payload that can be had, in order: no more ranges than there are shards, whatever headers claim.
    pub(crate) fn obtainable(&self) -> Vec<Range<u64>> {
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

    /// The end of what is known of the payload.
    pub fn known_len(&self) -> u64 {
        self.groups.end()
    }

    /// How much of it is known, if it is sealed.
    pub(crate) fn extent(&self) -> Extent {
        Extent { sealed_len: self.known_len(), is_cut: self.payload_len.is_none() }
    }
}
