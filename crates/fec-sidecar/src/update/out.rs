//! The destination of an updated sidecar: the old file, or a new one with copies of what is kept of the old.

use super::layout::Extension;
use crate::Sidecar;
use crate::examine::recovery::read_recovery;
use crate::protect::Protect;
use crate::protect::outputs::{NewSidecar, UpdatedSidecar};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::Policy;
use fecfile::report::Written;
use std::path::Path;

/// The destination, and the path of the sidecar.
pub(super) struct Out<'a> {
    bytes: Bytes<'a>,
    path: &'a Path,
}

enum Bytes<'a> {
    /// The old sidecar: bytes behind its end are replaced.
    Old(UpdatedSidecar<'a>),
    /// The old sidecar stays until the new one is whole.
    New(NewSidecar<'a>),
}

impl<'a> Out<'a> {
    /// Takes over the old sidecar up to `end`, or copies of those of its recovery shards that are kept.
    ///
    /// # Errors
    /// Those of the files; [`SealError`](fecfile::seal::SealError).
    pub(super) fn new(
        new: &Extension,
        (old, end): (&Sidecar, u64),
        job: &Protect<'a>,
        policy: Policy,
    ) -> Result<Out<'a>> {
        let path = job.output;
        if !new.is_joined {
            let bytes = Bytes::Old(UpdatedSidecar::new(old, end, path, policy, job.sealing)?);
            return Ok(Out { bytes, path });
        }
        let out =
            Out { bytes: Bytes::New(NewSidecar::new(path, policy.with_force(true), job.sealing)?), path };
        let (extent, block) = (&new.catalog.extents[0], u64::from(new.catalog.block));
        let groups = new.kept.groups.iter().zip(&new.catalog.groups).zip(&new.summed);
        for ((kept, group), _) in groups.filter(|(_, is_summed)| !**is_summed) {
            for shard in 0..group.recovery() {
                // A shard that is not intact has its digest, and so stays known as lost.
                if let Some(bytes) = read_recovery(old, kept.nth, shard) {
                    out.put(extent.block(group.first + shard, block).0, &bytes)?;
                }
            }
        }
        Ok(out)
    }

    pub(super) fn put(&self, at: u64, bytes: &[u8]) -> Result<()> {
        match &self.bytes {
            Bytes::Old(out) => out.put(at, bytes, self.path),
            Bytes::New(out) => out.put(at, bytes),
        }
    }

    /// Brings all recovery shards to the disk, and gives the sidecar its length: so the pieces of an interrupted update
    /// are in their places.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn before_pieces(&self, len: u64, sync: bool) -> Result<()> {
        self.behind_pieces(sync)?;
        match &self.bytes {
            Bytes::Old(out) => out.set_len(len).map_err(|e| Error::io(Action::Write, self.path, e)),
            Bytes::New(_) => Ok(()),
        }
    }

    /// Brings what was written to the disk. A new file is when it takes its name.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn behind_pieces(&self, sync: bool) -> Result<()> {
        match &self.bytes {
            Bytes::Old(out) if sync => out.sync().map_err(|e| Error::io(Action::Write, self.path, e)),
            _ => Ok(()),
        }
    }

    /// Completes a sidecar of `len` bytes. Returns the container of a sealed one.
    ///
    /// # Errors
    /// Those of the file; [`SealError`](fecfile::seal::SealError).
    pub(super) fn finish(self, len: u64, policy: Policy, context: &Context<'_>) -> Result<Option<Written>> {
        match self.bytes {
            Bytes::Old(out) => out.finish(len, self.path, policy, context),
            Bytes::New(out) => out.finish(len, self.path, policy.with_force(true), context),
        }
    }
}
