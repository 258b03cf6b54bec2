//! Repair code that all forms share: originals from the remaining shards, and new files that replace damaged or missing
//! ones.

use super::encode_job::SetSource;
use super::encoded::Records;
use crate::error::{Action, EncodingError, Error, ErrorKind, Place, Result};
use crate::forms::annexes;
use crate::groups::GroupEntry;
use crate::payload::Payload;
use fec_base::context::{Context, Settings};
use fec_base::io::output::{FileOut, Policy, check_absent};
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::io::{NewObjects, ReadAt, list};
use fec_base::threads::Threads;
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_keys::sign::{MOST_OF_ONE, Signatures};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A requested repair.
pub(crate) struct RepairJob<'a> {
    /// Destination of new files; `None`: in place.
    pub(crate) out: Option<&'a Path>,
    pub(crate) policy: Policy,
    /// A dry run writes nothing.
    pub(crate) dry_run: bool,
    pub(crate) decode: &'a DecodeSet<'a>,
    /// The payload, if `decode` takes the sets from it instead of from remaining shards.
    pub(crate) payload: Option<&'a dyn Payload>,
    pub(crate) context: &'a Context<'a>,
}

impl<'a> RepairJob<'a> {
    /// Refuses what cannot be done, before anything is written: new files in the place of others, and sets that need
    /// more memory than allowed. A set that is decoded and encoded again needs its memory twice.
    ///
    /// # Errors
    /// [`SetMemory`](ErrorKind::SetMemory); that a file exists and may not be replaced.
    pub(crate) fn check(&self, files: &[NewFile], set_bytes: u64) -> Result<()> {
        let check = |file: &NewFile| check_absent(&file.path, self.policy.with_force(file.replaces));
        files.iter().try_for_each(check)?;
        let rooms = if self.payload.is_some() { 1 } else { 2 };
        let (need, most) = (set_bytes.saturating_mul(rooms), self.context.settings.max_memory);
        if need > most {
            return Err(Error::new(Action::Repair, ErrorKind::SetMemory { need, most }));
        }
        Ok(())
    }

    /// The context of the encoder. Half of the memory is left to decoders, if there are any.
    pub(crate) fn of_encoder(&self) -> Context<'a> {
        let settings = self.context.settings;
        let max_memory = if self.payload.is_some() { settings.max_memory } else { settings.max_memory / 2 };
        self.context.with_settings(Settings { max_memory, ..settings })
    }

    /// Fails if the encoded shards have another root than `wanted`, before any new file gets its name.
    ///
    /// # Errors
    /// [`OtherRoot`](EncodingError::OtherRoot); [`Changed`](ErrorKind::Changed) if the sets come from a payload.
    pub(crate) fn check_root(&self, root: Digest, wanted: Digest) -> Result<()> {
        match self.payload {
            Some(payload) => {
                payload.check_unchanged()?;
                let changed = || Error::at(Action::Read, payload.place(), ErrorKind::Changed);
                (root == wanted).then_some(()).ok_or_else(changed)
            }
            None => (root == wanted)
                .then_some(())
                .ok_or_else(|| Error::new(Action::Repair, EncodingError::OtherRoot)),
        }
    }
}

/// Decodes a set of a group into rows of originals; returns its bytes of payload.
pub(crate) type DecodeSet<'a> =
    dyn Fn(&dyn Records, &GroupEntry, u32, &mut ShardBuf, Threads) -> Result<u64> + Sync + 'a;

/// The sets of a group, decoded from remaining shards.
pub(crate) struct DecodedSets<'a> {
    pub(crate) records: &'a dyn Records,
    pub(crate) group: GroupEntry,
    pub(crate) decode: &'a DecodeSet<'a>,
}

impl SetSource for DecodedSets<'_> {
    fn fill(&self, set: u32, rows: &mut ShardBuf, inner: Threads) -> Result<u64> {
        (self.decode)(self.records, &self.group, set, rows, inner)
    }
}

/// A file to be rewritten.
pub(crate) struct NewFile {
    pub(crate) path: PathBuf,
    /// True if an existing file may be replaced.
    pub(crate) replaces: bool,
    /// The file that is replaced, if it is the one that was examined. Another one, put in its place since, stays.
    pub(crate) examined: Option<Arc<dyn ReadAt>>,
    /// The old file, whose annexes are kept.
    pub(crate) old: Option<Arc<dyn ReadAt>>,
}

/// Temporary files that get their names on commit.
pub(crate) struct NewFiles(Vec<FileOut>);

impl NewFiles {
    /// Starts all files, and removes leftovers of killed processes beside them. The [`NewFile`] alone says whether it
    /// may replace another.
    ///
    /// # Errors
    /// When a file exists and may not be replaced, or cannot be created.
    pub(crate) fn create(files: &[NewFile], job: &RepairJob<'_>) -> Result<NewFiles> {
        let folders: BTreeSet<&Path> = files.iter().map(|file| parent(&file.path)).collect();
        folders.into_iter().for_each(|folder| remove_stale(folder, job.context.progress));
        // A rewritten missing shard is readable for those who may read the other shards in its folder.
        let gone = files.iter().find(|file| file.old.is_none()).map(|file| parent(&file.path));
        let is_shard = |name: &OsString| name.as_encoded_bytes().ends_with(b".shard");
        let others = gone.into_iter().flat_map(|folder| {
            let names = list(folder).unwrap_or_default();
            names.into_iter().filter(is_shard).map(move |name| folder.join(name))
        });
        let others: Vec<PathBuf> = others.collect();
        let policy = job.policy.made_of_paths(others.iter().map(PathBuf::as_path));
        let create = |file: &NewFile| FileOut::create(&file.path, policy.with_force(file.replaces));
        files.iter().map(create).collect::<Result<_>>().map(NewFiles)
    }

    /// Appends the whole annexes of the old file to each new file, which has `len` bytes so far and those of `written`
    /// kinds already. Those of `signatures` that the old file lacked follow, because other files may have lost them.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn keep_annexes(
        &mut self,
        files: &[NewFile],
        (len, written): (u64, &[u32]),
        signatures: &Signatures,
    ) -> Result<()> {
        for (out, file) in self.0.iter_mut().zip(files) {
            // An annex that somebody appends after this look keeps the file from being replaced.
            let examined = file.examined.as_ref().map(|file| file.look());
            let look = examined.transpose().map_err(|e| Error::io(Action::Read, file.path.as_path(), e))?;
            look.flatten().into_iter().for_each(|look| out.replace_only(look));
            let mut end = len;
            let mut own = Signatures::default();
            if let Some(old) = &file.old {
                let fail = |e| Error::io(Action::Read, file.path.as_path(), e);
                let old_end = old.size().map_err(fail)?;
                let bare = annexes::stripped_by_headers(old.as_ref(), old_end).map_err(fail)?;
                own = bare.signatures;
                let mut at = bare.len;
                while let Some(annex) = annexes::annex_at(old.as_ref(), at, old_end).map_err(fail)? {
                    at = annex.place.end;
                    if let Some(whole) = annex.whole.filter(|_| !written.contains(&annex.kind)) {
                        out.put(end, &whole)?;
                        end += whole.len() as u64;
                    }
                }
            }
            let room = MOST_OF_ONE.saturating_sub(own.iter().count());
            for signature in signatures.iter().filter(|signature| !own.has(signature)).take(room) {
                let annex = annexes::of_signature(signature.text());
                out.put(end, &annex)?;
                end += annex.len() as u64;
            }
        }
        Ok(())
    }
}

impl NewObjects for NewFiles {
    fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.0[object].write_at(0, offset, parts)
    }

    fn place(&self) -> Place {
        self.0.first().map_or(Place::Nowhere, NewObjects::place)
    }

    fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0[object].read_back(0, offset, out)
    }

    /// Commits each file alone: after an interruption a second repair does the others.
    fn commit(self: Box<Self>) -> Result<()> {
        self.0.into_iter().try_for_each(|file| NewObjects::commit(Box::new(file)))
    }
}
