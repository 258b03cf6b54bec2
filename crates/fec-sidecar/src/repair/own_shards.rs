//! The sidecar as a repair mends it: its recovery shards and its metadata, in their places or in a new file.

use crate::catalog::metadata::Sidecar;
use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::examine::recovery::{read_recovery, serving};
use fec_base::context::{Context, Settings};
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::{FileOut, Policy, check_room, set_mode_if_any};
use fec_base::io::read_only::{Access, MadeWritable, access_to, access_to_file, make_writable};
use fec_base::io::temporary::parent;
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The destination of recovery shards in the sidecar.
pub(crate) enum OwnShards {
    /// The sidecar is left as it is.
    Left,
    /// Each shard goes to its place.
    InPlace(File, PathBuf),
    /// The sidecar is written anew, because parts of it have moved, or its length is wrong. Shards that became
    /// unreadable, by group and number there, must be computed.
    Anew(FileOut, HashSet<(usize, u64)>),
}

/// The way a sidecar is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    InPlace,
    Anew,
}

impl Way {
    /// The way to mend a sidecar. It is made anew if parts of it have moved, its length is wrong, or its owner made it
    /// read-only.
    ///
    /// # Errors
    /// [`SidecarError::ReadOnly`], and that there is no room.
    pub(crate) fn of(sidecar: &Sidecar, found: &Examined) -> Result<Way> {
        let path = sidecar.path();
        let fail = |e| Error::io(Action::Write, path, e);
        let read_only = |path: &Path| Error::at(Action::Write, path, SidecarError::ReadOnly);
        let moved = found.recovery_displaced > 0 || !sidecar.shifts.is_empty();
        let is_anew = moved || sidecar.expected_len() != Some(sidecar.len);
        match access_to_file(path).map_err(fail)? {
            Access::Free if !is_anew => return Ok(Way::InPlace),
            Access::NotYours if !is_anew => return Err(read_only(path)),
            _ => {}
        }
        let folder = parent(path);
        match access_to(folder).map_err(fail)? {
            Access::NotYours => Err(read_only(folder)),
            _ => check_room(path, sidecar.expected_len().unwrap_or(sidecar.len)).map(|()| Way::Anew),
        }
    }
}

impl OwnShards {
    pub(crate) fn new(
        sidecar: &Sidecar,
        positions: &Positions,
        found: &mut Examined,
        way: Option<Way>,
        context: &Context<'_>,
    ) -> Result<OwnShards> {
        let Some(way) = way else { return Ok(OwnShards::Left) };
        if way == Way::Anew {
            let _made = writable_around(sidecar.path())?;
            let policy = Policy::new().with_force(true).with_sync(context.settings.sync);
            let out = FileOut::create(sidecar.path(), policy)?;
            let old = std::fs::metadata(sidecar.path()).map(|meta| meta.mode() & 0o7777);
            old.and_then(|old| set_mode_if_any(out.file(), old)).map_err(|e| out.failure(e))?;
            let mut first = 0;
            let mut owed = HashSet::new();
            let serves = serving(sidecar, positions);
            let block = u64::from(sidecar.catalog.block);
            for (nth, group) in sidecar.catalog.groups.iter().enumerate() {
                let extent = &sidecar.catalog.extents[group.extent as usize];
                for shard in 0..group.recovery() {
                    if found.recovery_erased.get(first + shard) {
                        continue;
                    }
                    match read_recovery(sidecar, nth, shard) {
                        Some(bytes) => out.put(extent.block(group.first + shard, block).0, &bytes)?,
                        None if !serves.get(first + shard) => {}
                        // The examination still found this shard intact.
                        None => {
                            found.recovery_erased.set(first + shard);
                            owed.insert((nth, shard));
                        }
                    }
                }
                first += group.recovery();
            }
            return Ok(OwnShards::Anew(out, owed));
        }
        Ok(OwnShards::InPlace(sidecar.open_to_write(Action::Repair)?, sidecar.path().to_path_buf()))
    }

    /// Takes a computed recovery shard.
    pub(crate) fn put_shard(
        &mut self,
        sidecar: &Sidecar,
        group: usize,
        shard: u64,
        bytes: &[u8],
    ) -> Result<()> {
        if let OwnShards::Anew(_, owed) = self {
            owed.remove(&(group, shard));
        }
        self.put(sidecar.recovery_place(group, shard), bytes)
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) => {
                file.write_all_at(bytes, at).map_err(|e| Error::io(Action::Write, path.as_path(), e))
            }
            OwnShards::Anew(out, _) => out.put(at, bytes),
        }
    }

    /// Leaves the sidecar as it is if it contradicts itself. A contradiction that shows only now goes to
    /// `contradiction`.
    pub(crate) fn unless_wrong(
        self,
        sidecar: &Sidecar,
        contradiction: &mut Option<SidecarError>,
        settings: &Settings,
    ) -> Result<OwnShards> {
        match self {
            OwnShards::Left => Ok(OwnShards::Left),
            // Coding its metadata gives other pieces, so the repair would write another sidecar.
            _ if !sidecar.is_coded_right(settings)? => {
                contradiction.get_or_insert(SidecarError::NotACodeword(None));
                Ok(OwnShards::Left)
            }
            // The old sidecar stays, since it has everything that the new one would have.
            OwnShards::Anew(..) if contradiction.is_some() => Ok(OwnShards::Left),
            own => Ok(own),
        }
    }

    /// Writes the pieces of the metadata, and syncs everything to the disk.
    pub(crate) fn finish(mut self, sidecar: &Sidecar, context: &Context<'_>) -> Result<()> {
        match &self {
            OwnShards::Left => return Ok(()),
            // The old sidecar stays, since it has the shards that could not be read just now.
            OwnShards::Anew(_, owed) if !owed.is_empty() => {
                return Err(Error::io(
                    Action::Read,
                    sidecar.path(),
                    std::io::Error::from_raw_os_error(libc::EIO),
                ));
            }
            _ => {}
        }
        // Earlier generations, whose extents a new file still has, can be opened by their roots.
        let all = matches!(self, OwnShards::Anew(..));
        sidecar.write_pieces(all, &context.settings, |at, piece| self.put(at, piece))?;
        match self {
            OwnShards::Left => Ok(()),
            OwnShards::InPlace(file, path) if context.settings.sync => {
                fec_base::io::system::sync(file).map_err(|e| Error::io(Action::Sync, path.as_path(), e))
            }
            OwnShards::InPlace(..) => Ok(()),
            OwnShards::Anew(out, _) => {
                let _made = writable_around(sidecar.path())?;
                out.commit(sidecar.expected_len().unwrap_or(sidecar.len))
            }
        }
    }
}

/// Makes the folder of a sidecar writable as long as the result lives, if it is the user's own and read-only.
fn writable_around(sidecar: &Path) -> Result<Option<MadeWritable>> {
    make_writable(parent(sidecar)).map_err(|e| Error::io(Action::Write, sidecar, e))
}
