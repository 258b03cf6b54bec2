//! The metadata of a sidecar: written as pieces between recovery shards, and read back from the pieces that are left
//! (docs/FORMAT.md, sections 17.4 to 17.6).

mod open;

use crate::catalog::fingerprint::fingerprint_of;
use crate::catalog::generations::{FromWhole, Opened, PiecesFound, extent_of};
pub(crate) use crate::catalog::generations::{LOST, NOTHING};
use crate::catalog::proof::Proof;
use crate::catalog::reader::{Found, Reader, Shifts};
use crate::catalog::sealed::SealedBytes;
use crate::error::SidecarError;
use fec_base::context::Settings;
use fec_base::error::{Action, Error, Result};
use fec_base::io::ReadAt;
use fec_base::io::own::open_regular;
use fec_base::io::system::{lock_alone, unlock};
use fec_core::digest::Digest;
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::catalog::{Catalog, DIGEST_LEN, ShortDigest};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::parts::Exclusion;
use fec_core::format::sidecar::piece::{Generation, Layout, Piece};
use fec_core::format::sidecar::stat::Stats;
use fec_core::merkle::Tree;
use fec_core::params::GroupGeometry;
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::borrow::Cow;
use std::fs::{File, Metadata};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Codes metadata of exactly `geometry`'s length, and hands each piece with its offset to `put`.
pub(crate) fn write(
    metadata: Vec<u8>,
    geometry: GroupGeometry,
    layout: Layout,
    extent: &Extent,
    settings: &Settings,
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Generation> {
    let shape = *geometry.shape();
    let mut padded = metadata;
    padded.resize(shape.capacity() as usize, 0);
    let row =
        |set: u32, index: usize| &padded[geometry.shard_offset(set, index) as usize..][..shape.shard_len];
    let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
    let (mut roots, mut encoded) = (Vec::new(), Vec::new());
    for set in 0..shape.sets {
        let originals: Vec<&[u8]> = (0..shape.code.k()).map(|index| row(set, index)).collect();
        let mut recovery = EncodedSet::new(&shape);
        roots.push(encoder.encode(set, &originals, &mut recovery, Run::default()));
        encoded.push(recovery);
    }
    let mut tree = Tree::new();
    tree.leaves_mut().extend(roots);
    let of = Generation::new(geometry, layout, &tree.build(shape.hash));
    let mut bytes = vec![0; of.piece_len() as usize];
    for index in 0..shape.code.n() {
        for set in 0..shape.sets {
            let piece = Piece { set, index: index as u32, of };
            let (head, body) = bytes.split_at_mut(of.head_len());
            let (set_path, group_path) = piece.proof_mut(head).split_at_mut(shape.set_path_len());
            encoded[set as usize].write_path(index, set_path);
            tree.write_path(set as usize, group_path);
            piece.seal(head);
            body.copy_from_slice(match index.checked_sub(shape.code.k()) {
                None => row(set, index),
                Some(recovery) => encoded[set as usize].recovery().row(recovery),
            });
            put(extent.piece(of.ordinal(set, index as u32), layout.block.into()), &bytes)?;
        }
    }
    Ok(of)
}

/// An open sidecar: its record of the files, and its own state.
pub struct Sidecar {
    pub(crate) file: Arc<dyn ReadAt>,
    path: PathBuf,
    /// The container that the sidecar is sealed in, and the container's root.
    pub(crate) sealed: Option<(Arc<SealedBytes>, Digest)>,
    /// Bytes of the sidecar, and bytes that are stored.
    pub(crate) len: u64,
    stored: u64,
    pub(crate) catalog: Catalog,
    pub(crate) stats: Stats,
    /// The part of the catalog before the digests, if this writer would write it differently.
    odd_head: Option<Vec<u8>>,
    /// All digests and anchors, as they stand in the catalog.
    digests: Vec<u8>,
    /// For each group, its first position, and the number of that position's digest.
    starts: Vec<(u64, u64)>,
    /// The fingerprint of the file when it was opened.
    seen: u64,
    /// The system's time of the last change of the file.
    pub(crate) changed: (i64, i64),
    /// The proof that the given root or signature provides.
    pub(crate) proof: Proof,
    root: Digest,
    pub(crate) of: Generation,
    pub(crate) pieces: PiecesFound,
    /// The origin of the metadata, if the pieces of this generation code a difference.
    difference: Option<FromWhole>,
    pub(crate) shifts: Shifts,
    /// A greater generation with too few pieces left.
    pub(crate) newer: Option<Newer>,
    /// The root of the newest generation, if an older one was asked for.
    pub(crate) replaced_by: Option<Digest>,
    /// The earlier generations whose extents this one uses, as far as their pieces are left.
    older: Vec<Generation>,
    /// The first error of reading while searching for pieces.
    unread: Option<std::io::Error>,
}

impl std::fmt::Debug for Sidecar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sidecar").field("path", &self.path).field("root", &self.root).finish_non_exhaustive()
    }
}

/// A generation that cannot be restored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Newer {
    pub(crate) generation: u64,
    /// True if it was never written whole, so that it never protected anything.
    pub(crate) is_unfinished: bool,
}

impl Sidecar {
    /// Checks that everything behind the sidecar's end may be cut off, since nobody can still need it. With `force`,
    /// that includes a newer generation that cannot be restored.
    ///
    /// # Errors
    /// [`SidecarError::NewerLost`]; that of the file, if some bytes there could not be read.
    pub(crate) fn check_end(&self, force: bool) -> Result<()> {
        let fail = |cause: SidecarError| Err(Error::at(Action::Write, self.path.as_path(), cause));
        match (&self.newer, &self.unread) {
            (Some(Newer { generation, is_unfinished: false }), _) if !force => {
                fail(SidecarError::NewerLost { newer: *generation, this: self.generation() })
            }
            (_, Some(e)) if self.expected_len().is_none_or(|end| end < self.len) => {
                let cause =
                    e.raw_os_error().map_or_else(|| e.kind().into(), std::io::Error::from_raw_os_error);
                Err(Error::io(Action::Read, self.path.as_path(), cause))
            }
            _ => Ok(()),
        }
    }

    /// The path of the sidecar.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tells whether it was opened from the file with this stat, and not from another that came to stand at its path.
    pub fn is_of(&self, stat: &Metadata) -> bool {
        self.seen == fingerprint_of(stat)
    }

    /// The root: the hash of its whole record of the files; for a sealed sidecar, the root of its container.
    pub fn root(&self) -> Digest {
        self.sealed.as_ref().map_or(self.root, |(_, root)| *root)
    }

    /// E of the metadata, which binds times and permissions too; `None` for a sealed sidecar, whose root binds them.
    pub fn metadata_root(&self) -> Option<Digest> {
        self.sealed.is_none().then_some(self.of.root)
    }

    /// The proof that the given root or signature provides.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Tells whether the sidecar is sealed.
    pub fn was_sealed(&self) -> bool {
        self.sealed.is_some()
    }

    /// The catalog of the protected files.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Times and permissions, and the path to the base.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The exclusion of updates; nothing, where a root or a signature was asked for and does not prove it.
    pub(crate) fn believed_exclusion(&self) -> Cow<'_, Exclusion> {
        match self.proof {
            Proof::Root => Cow::Owned(Exclusion::default()),
            _ => Cow::Borrowed(&self.stats.exclusion),
        }
    }

    /// The pieces of its metadata that are left.
    pub fn pieces(&self) -> &PiecesFound {
        &self.pieces
    }

    /// The number of the generation, from 1: one more than the number of updates.
    pub fn generation(&self) -> u64 {
        self.of.layout.generation
    }

    fn digest(&self, nth: u64) -> ShortDigest {
        let at = nth as usize * DIGEST_LEN;
        *self.digests[at..].first_chunk().expect("each shard has a digest")
    }

    /// The digest of a position, over all groups.
    pub(crate) fn digest_of(&self, position: u64) -> ShortDigest {
        let (group, nth) = self.group_of(position);
        self.position_digest(group, nth)
    }

    /// The group of a position, and the position's number there.
    pub(crate) fn group_of(&self, position: u64) -> (usize, u64) {
        let group = self.starts.partition_point(|(first, _)| *first <= position) - 1;
        (group, position - self.starts[group].0)
    }

    /// The digest of a position of group `group`, counted in the group.
    pub(crate) fn position_digest(&self, group: usize, nth: u64) -> ShortDigest {
        self.digest(self.starts[group].1 + nth)
    }

    /// The digest of a recovery shard of group `group`, counted in the group.
    pub(crate) fn recovery_digest(&self, group: usize, nth: u64) -> ShortDigest {
        self.digest(self.starts[group].1 + self.catalog.groups[group].positions() + nth)
    }

    /// The digests of a file's whole blocks, from number `first` on; `None` for zeros without a position.
    pub(crate) fn digests_of_file<'a>(
        &'a self,
        file: &'a FileEntry,
        first: u64,
    ) -> impl Iterator<Item = Option<ShortDigest>> + 'a {
        let parts = file.parts(self.catalog.block.into()).skip_while(move |(blocks, _)| blocks.end <= first);
        parts.flat_map(move |(blocks, start)| {
            let numbers = first.max(blocks.start)..blocks.end;
            numbers.map(move |nth| start.map(|start| self.digest_of(start + (nth - blocks.start))))
        })
    }

    /// The stack that is recorded for a file.
    pub(crate) fn stack_of(&self, nth: u32) -> Option<&[Digest]> {
        let stacks = &self.stats.stacks;
        let at = stacks.binary_search_by_key(&nth, |stack| stack.entry).ok()?;
        Some(&stacks[at].values)
    }

    /// The digests of all shards, group by group, as they stand in the catalog.
    pub(crate) fn digests(&self) -> &[ShortDigest] {
        self.digests[..self.catalog.digests() as usize * DIGEST_LEN].as_chunks().0
    }

    /// The anchors of all files, in order.
    pub(crate) fn anchors(&self) -> impl Iterator<Item = u64> {
        let at = self.catalog.digests() as usize * DIGEST_LEN;
        let anchors = self.digests[at..].as_chunks().0;
        anchors.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The offset where a recovery shard belongs.
    pub(crate) fn recovery_place(&self, group: usize, shard: u64) -> u64 {
        let group = &self.catalog.groups[group];
        self.catalog.extents[group.extent as usize].block(group.first + shard, self.catalog.block.into()).0
    }

    /// The bytes that the sidecar should have.
    pub(crate) fn expected_len(&self) -> Option<u64> {
        let extent = self.catalog.extents.last()?;
        extent.start.checked_add(extent.len(self.catalog.block.into())?)
    }

    /// Keeps others from working on the sidecar, until the lock is dropped.
    ///
    /// # Errors
    /// [`SidecarError::Busy`] if somebody works on it already, or has since it was opened.
    pub(crate) fn lock(&self, action: Action) -> Result<Lock> {
        let (lock, now) = lock_file(&self.path, action)?;
        if fingerprint_of(&now) != self.seen {
            return Err(Error::at(action, self.path.as_path(), SidecarError::Busy));
        }
        Ok(lock)
    }

    /// Opens the sidecar for writing, and refuses a file that somebody has put in its place.
    ///
    /// # Errors
    /// [`SidecarError::Busy`] if it was changed since it was opened; those of the system.
    pub(crate) fn open_to_write(&self, action: Action) -> Result<File> {
        let fail = |e| Error::io(Action::Write, self.path.as_path(), e);
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file =
            File::options().read(true).write(true).custom_flags(flags).open(&self.path).map_err(fail)?;
        match fingerprint_of(&file.metadata().map_err(fail)?) == self.seen {
            true => Ok(file),
            false => Err(Error::at(action, self.path.as_path(), SidecarError::Busy)),
        }
    }

    /// The whole generation that an update's payload may differ from, with its metadata: this one, or that which its
    /// own payload differs from. `None` if that cannot be restored any more.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn whole(&self, settings: &Settings) -> Result<Option<(Generation, Vec<u8>)>> {
        let Some(FromWhole { whole, .. }) = &self.difference else {
            return Ok(Some((self.of, self.metadata())));
        };
        let opened = self.opened(&[*whole], settings)?.pop();
        Ok(opened.filter(|opened| opened.rule.is_none()).map(|opened| (opened.of, opened.metadata)))
    }

    /// The number of earlier generations that stand in the file, as far as their pieces are left.
    pub(crate) fn generations_before(&self) -> usize {
        self.older.len()
    }

    /// Writes the pieces of this generation, and those of the whole one that its payload differs from. `all` adds
    /// those of all earlier generations that can be restored.
    ///
    /// # Errors
    /// Those of the file and of `put`.
    pub(crate) fn write_pieces(
        &self,
        all: bool,
        settings: &Settings,
        mut put: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let needed = self.difference.as_ref().map(|of| of.whole);
        let mut payloads = vec![(self.of, self.payload())];
        if all || needed.is_some() {
            let before = self.opened_before(settings)?.into_iter();
            let before = before.filter(|opened| all || Some(opened.of) == needed);
            payloads.extend(before.map(|opened| (opened.of, opened.payload())));
        }
        for (of, payload) in payloads {
            if let Some(extent) = extent_of(&of) {
                write(payload, of.geometry, of.layout, &extent, settings, &mut put)?;
            }
        }
        Ok(())
    }

    /// The earlier generations that can still be restored.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn opened_before(&self, settings: &Settings) -> Result<Vec<Opened>> {
        self.opened(&self.older, settings)
    }

    /// Those of these generations that can be restored.
    fn opened(&self, generations: &[Generation], settings: &Settings) -> Result<Vec<Opened>> {
        if generations.is_empty() {
            return Ok(Vec::new());
        }
        let fail = |e| Error::io(Action::Read, self.path.as_path(), e);
        let reader = Reader::new(self.file.as_ref(), (self.len, self.stored), settings);
        let open = |found: &Found| -> Result<Vec<Opened>> {
            let opened = generations.iter().map(|of| reader.open(*of, found).map_err(fail));
            Ok(opened.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        };
        // A search reads the whole file: only for pieces that are not in their places.
        let (found, is_tidy) = reader.by_place(&mut None);
        let opened = if is_tidy { open(&found)? } else { Vec::new() };
        let is_whole = |opened: &Opened| opened.pieces.intact == opened.pieces.all;
        if opened.len() == generations.len() && opened.iter().all(is_whole) {
            return Ok(opened);
        }
        open(&reader.scan(&mut None).map_err(fail)?)
    }

    /// Tells whether coding its metadata once more, and that of the earlier generations, gives the written pieces. A
    /// piece that was not needed may hold something else.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn is_coded_right(&self, settings: &Settings) -> Result<bool> {
        let before = self.opened_before(settings)?.into_iter().map(|opened| (opened.of, opened.payload()));
        for (of, payload) in before.chain([(self.of, self.payload())]) {
            let Some(extent) = extent_of(&of) else { continue };
            let nowhere = |_, _: &[u8]| Ok(());
            if write(payload, of.geometry, of.layout, &extent, settings, nowhere)?.root != of.root {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes that the pieces of this generation code.
    fn payload(&self) -> Vec<u8> {
        self.difference.as_ref().map_or_else(|| self.metadata(), |of| of.payload.clone())
    }

    /// All of the metadata.
    fn metadata(&self) -> Vec<u8> {
        let head = self.odd_head.clone().unwrap_or_else(|| self.catalog.head_bytes());
        [head, self.digests.clone(), self.stats.to_bytes()].concat()
    }
}

/// A lock on a sidecar, which ends with a drop.
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

/// Keeps others from working on the sidecar at `path`, until the lock is dropped. Returns the stat of the file too.
///
/// # Errors
/// [`SidecarError::Busy`] if somebody works on it already.
pub(crate) fn lock_file(path: &Path, action: Action) -> Result<(Lock, Metadata)> {
    let fail = |e| Error::io(Action::Read, path, e);
    let none = || Error::at(action, path, SidecarError::NotASidecar);
    let file = open_regular(path).map_err(fail)?.ok_or_else(none)?;
    // A file system may lack locks.
    if lock_alone(&file).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock) {
        return Err(Error::at(action, path, SidecarError::Busy));
    }
    let lock = Lock(file);
    // The last holder of the lock may have put another file in its place.
    let now = std::fs::metadata(path).map_err(fail)?;
    let held = lock.0.metadata().map_err(fail)?;
    if (now.dev(), now.ino()) != (held.dev(), held.ino()) {
        return Err(Error::at(action, path, SidecarError::Busy));
    }
    Ok((lock, now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is being started has all open files of its parent, until its program begins.
    #[test]
    fn a_dropped_lock_is_off_although_the_file_is_open_elsewhere() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("d.fecp");
        std::fs::write(&path, b"a sidecar").expect("it is written");
        let (lock, _) = lock_file(&path, Action::Repair).expect("nobody has it");
        let inherited = lock.0.try_clone().expect("another one");
        assert!(lock_file(&path, Action::Repair).is_err(), "somebody has it");
        drop(lock);
        assert!(lock_file(&path, Action::Repair).is_ok(), "nobody has it any more");
        drop(inherited);
    }
}
