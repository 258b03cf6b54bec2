//! An encoding whose parts were found, whatever its form.

use crate::context::Settings;
use crate::error::{Error, ErrorKind, Result};
use fec_core::digest::Digest;
use fec_core::params::{GroupGeometry, Shape};
use fec_core::set::Reading;
use std::io;

/// One group of an encoding.
#[derive(Clone, Copy, Debug)]
pub struct GroupEntry {
    /// Its geometry.
    pub geometry: GroupGeometry,
    /// Its root.
    pub root: Digest,
    /// Where its payload starts in the whole payload.
    pub start: u64,
}

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
}

/// An encoding whose parts were found.
pub struct Encoded<'a> {
    /// `None` for a container that was cut and lost its index.
    pub root: Option<Digest>,
    /// All groups from 0, or as many as are known.
    pub groups: Vec<GroupEntry>,
    /// B; `None` when the end is not known.
    pub payload_len: Option<u64>,
    /// The recorded name.
    pub name: Option<Vec<u8>>,
    /// Its shards.
    pub records: Box<dyn Records + 'a>,
}

impl Encoded<'_> {
    /// The shape of group 0, the largest.
    pub fn shape(&self) -> &Shape {
        self.groups[0].geometry.shape()
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

    /// Sets of all groups.
    pub fn sets(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.geometry.shape().sets)).sum()
    }

    /// The end of what is known of the payload.
    pub fn known_len(&self) -> u64 {
        self.groups.last().map_or(0, |g| g.start + g.geometry.payload_len())
    }
}
