//! A census of the records in a container, from which the chains of groups follow ([`chains`]).

pub(crate) mod chains;
mod loader;
mod seal;

use super::copies::{Copies, holds_seal};
use super::metas::Metas;
use super::scan::{ScanEvent, ScanInput, Taken, scan};
use super::tally::Tally;
use crate::error::{Action, EncodingError, Error, Result};
use crate::forms::annexes::OfOne;
use crate::leftovers::Leftovers;
use fec_base::context::Gauge;
use fec_base::io::ReadAt;
use fec_base::io::bad_blocks::{Readable, readable};
use fec_base::names::show;
use fec_base::ranges::Ranges;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, IndexHeader, MetaFrame, RecordHeader};
use fec_core::format::scan::MAX_INDEX_BODY;
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Most last groups without a wanted root; more are an error.
const MAX_LAST_GROUPS: usize = 65_536;
/// Most indexes kept without a wanted root, and the most bytes of their bodies together.
const MAX_INDEXES: usize = 64;
const MAX_INDEX_BYTES: u64 = 32 << 20;
/// Most index headers whose places are kept.
const MAX_PLACES: usize = 8;
/// Most hashes kept of refused or invalid meta.
pub(crate) const MAX_BAD_METAS: usize = 65_536;

/// All findings of a container's scan.
#[derive(Debug, Default)]
pub(crate) struct Census {
    tallies: Vec<Tally>,
    /// The position of each group's tally, by the group's root, which binds the whole group.
    by_root: HashMap<Digest, usize>,
    last_groups: usize,
    indexes: Vec<IndexedGroups>,
    metas: Metas<MetaFrame>,
    /// Hashes of metas that first groups name.
    named_metas: HashSet<Digest>,
    /// Kind, hash and place of the first meta frame.
    first_meta: Option<([u8; 4], Digest, u64)>,
    /// Places of the first [`MAX_FRAMES`] meta frames.
    frames: Vec<FramePlace>,
    /// Roots and places of the first [`MAX_PLACES`] valid index headers outside of annexes.
    index_places: Vec<(Digest, u64)>,
    /// Hashes of meta that a reader must neither use nor ignore.
    bad_metas: HashSet<Digest>,
    pub leftovers: Leftovers,
    /// Bytes that belong to nothing valid.
    pub gaps: Ranges,
    pub len: u64,
    /// Bytes of annexes.
    pub annexes: u64,
    /// Type and place of the last annex.
    last_annex: (u32, Range<u64>),
    /// Signatures in annexes.
    pub signatures: OfOne,
    /// Records found more than once.
    pub duplicates: u64,
    /// Records outside of annexes have another root than the wanted one.
    pub holds_others: bool,
    /// The wanted root, if one was asked for.
    wanted: Option<Digest>,
}

/// A copy of the meta.
#[derive(Clone, Copy, Debug)]
struct FramePlace {
    kind: [u8; 4],
    meta_hash: Digest,
    /// Start of its annex, if it fills an annex for copies of the meta.
    annex: Option<u64>,
}

/// An index, and for each of its groups the tally, if records of it were found.
#[derive(Debug)]
struct IndexedGroups {
    index: Index,
    tallies: Vec<Option<u32>>,
}

impl Census {
    /// Scans an object, except for bytes that are `proved` to be something else. Unreadable places cost only the
    /// records that they hit.
    pub(crate) fn of_object(
        (bytes, len): (&Arc<dyn ReadAt>, u64),
        path: &Path,
        proved: &Ranges,
        wanted: Option<Digest>,
        meter: &Gauge<'_>,
    ) -> Result<Census> {
        let mut input = readable(bytes.as_ref(), len);
        let unproved = Unproved { inner: &mut input, object: bytes.as_ref(), len, at: 0, proved };
        let mut census = Census::take(unproved, Some(bytes.as_ref()), path, wanted, meter)?;
        if input.lost > 0 {
            let note = format!("{}: {} bytes: input/output error", show(path), input.lost);
            census.leftovers.unreadable.push(note);
        }
        Ok(census)
    }

    /// Believes the index at the end of an object about the places of all records, if it is the index of `wanted`. The
    /// records are checked when they are loaded. `None`: there is no such index, or the object's length does not follow
    /// from it.
    pub(crate) fn by_index(object: &dyn ReadAt, len: u64, wanted: Digest) -> Option<Census> {
        let tail = len.checked_sub(HEADER_LEN as u64)?;
        let mut bytes = [0; HEADER_LEN];
        object.read_exact_at(tail, &mut bytes).ok()?;
        let header = IndexHeader::parse(&bytes).ok().filter(|header| header.root == wanted)?;
        if header.body_len() > MAX_INDEX_BODY {
            return None;
        }
        let mut body = vec![0; header.body_len() as usize];
        object.read_exact_at(tail.checked_sub(header.body_len())?, &mut body).ok()?;
        let index = header.open(&body).ok()?;
        let mut census = Census { wanted: Some(wanted), len, ..Census::default() };
        let front = match header.meta_len {
            0 => 0,
            meta_len => MetaFrame::len_for(meta_len as usize),
        };
        let records = index.groups().try_fold(0u64, |sum, (id, _)| sum.checked_add(id.group_len()))?;
        let ends = front + 3 * HEADER_LEN as u64 + 2 * header.body_len();
        let rest = len.checked_sub(ends)?.checked_sub(records)?;
        let shape = *header.geometry.shape();
        let mut copies = match holds_seal(&shape, &index.meta) && rest > 0 {
            true => Copies::framed(shape.code, front),
            false => Copies::NONE,
        };
        if rest != copies.total() {
            return None;
        }
        let mut at = front;
        for (id, tree) in index.groups() {
            let mut tally = Tally::new(id, tree);
            tally.add_all(at, copies);
            at += id.group_len() + copies.total();
            copies = Copies::NONE;
            census.by_root.insert(id.root, census.tallies.len());
            census.tallies.push(tally);
        }
        census.indexes.push(IndexedGroups { index, tallies: Vec::new() });
        Some(census)
    }

    /// Scans `input`. If the input is an object, it can be passed as `object` too. Then index bodies in front of their
    /// only good header are found as well.
    pub(crate) fn take(
        input: impl ScanInput,
        object: Option<&dyn ReadAt>,
        path: &Path,
        wanted: Option<Digest>,
        meter: &Gauge<'_>,
    ) -> Result<Census> {
        let mut census = Census { wanted, ..Census::default() };
        let scanned = scan(input, path, wanted, meter, |at, found| census.on(at, found, object))?;
        census.gaps = scanned.gaps;
        census.len = scanned.len;
        Ok(census)
    }

    fn on(&mut self, at: u64, found: ScanEvent<'_>, object: Option<&dyn ReadAt>) -> Result<Taken> {
        match found {
            ScanEvent::Record { header, tree, .. } => self.add_record(&header, &tree, at)?,
            ScanEvent::Meta(frame) => self.add_meta(*frame, at),
            ScanEvent::BadMeta(meta_hash, error) => {
                self.leftovers.reject(|| format!("offset {at}"), error);
                self.add_bad_meta(meta_hash);
            }
            ScanEvent::Index(index) => {
                self.add_index_place(&index.header, at);
                self.add_index(*index);
            }
            ScanEvent::IndexHeader(header, may_look) => {
                return Ok(self.index_header(at, &header, object.filter(|_| may_look)));
            }
            ScanEvent::Annex(kind, data, len) => {
                self.annexes += len;
                self.last_annex = (kind, at..at + len);
                self.signatures.add(kind, data);
            }
            ScanEvent::Rejected(error) => self.leftovers.reject(|| format!("offset {at}"), error),
        }
        Ok(Taken::Yes)
    }

    /// Handles an index header without a good body behind it: the body may stand in front of it.
    fn index_header(&mut self, at: u64, header: &IndexHeader, object: Option<&dyn ReadAt>) -> Taken {
        self.leftovers.found_version_1();
        if self.indexes.iter().any(|listed| listed.index.header == *header) {
            self.add_index_place(header, at);
            return Taken::Yes;
        }
        let start = at.checked_sub(header.body_len()).filter(|_| header.body_len() <= MAX_INDEX_BODY);
        let mut looked_before = false;
        if let (Some(object), Some(start)) = (object, start) {
            let mut body = vec![0u8; header.body_len() as usize];
            if object.read_exact_at(start, &mut body).is_ok() {
                match header.open(&body) {
                    Ok(index) => {
                        self.add_index(index);
                        return Taken::Yes;
                    }
                    Err(FormatError::Damaged(_)) => {}
                    Err(error) => {
                        self.leftovers.reject(|| format!("offset {at}"), error);
                        self.add_bad_meta(header.meta_hash);
                    }
                }
                looked_before = true;
            }
        }
        self.leftovers.reject(|| format!("offset {at}"), FormatError::Damaged("the index body"));
        Taken::No { looked_before }
    }

    /// Counts a record found at `at`, whose proof leads to `tree`.
    pub(crate) fn add_record(&mut self, header: &RecordHeader, tree: &Digest, at: u64) -> Result<()> {
        self.leftovers.found_version_1();
        let GroupId { geometry, root, .. } = &header.group;
        let is_in_annex = self.is_in_annex(at);
        // The root of a last group is the root of its encoding.
        if geometry.is_last() && self.wanted.is_some_and(|wanted| wanted != *root) {
            self.leftovers.other_root(root);
            self.holds_others |= !is_in_annex;
            return Ok(());
        }
        let next = self.tallies.len();
        let place = *self.by_root.entry(*root).or_insert(next);
        if place == next {
            self.last_groups += usize::from(geometry.is_last());
            if self.last_groups > MAX_LAST_GROUPS {
                return Err(Error::new(Action::Read, EncodingError::TooManyEncodings(MAX_LAST_GROUPS)));
            }
            if geometry.number() == 0 {
                self.named_metas.insert(header.group.before);
            }
            self.tallies.push(Tally::new(header.group, *tree));
        }
        let tally = &mut self.tallies[place];
        tally.stands_by_itself |= !is_in_annex;
        if !tally.add(header.set, header.index, at) && !is_in_annex {
            self.duplicates += 1;
        }
        Ok(())
    }

    /// Tells whether a position is inside the last annex. Records in annexes count, and are no damage.
    fn is_in_annex(&self, at: u64) -> bool {
        self.last_annex.1.contains(&at)
    }

    /// Keeps an index once, although a container has several copies of it.
    pub(crate) fn add_index(&mut self, index: Index) {
        self.leftovers.found_version_1();
        let root = index.header.root;
        let bytes = |index: &Index| index.header.body_len();
        let held: u64 = self.indexes.iter().map(|listed| bytes(&listed.index)).sum();
        let has_room = self.indexes.len() < MAX_INDEXES && held + bytes(&index) <= MAX_INDEX_BYTES;
        let is_welcome = has_room || self.indexes.is_empty() || self.wanted == Some(root);
        if is_welcome && self.indexes.iter().all(|listed| listed.index.header.root != root) {
            self.indexes.push(IndexedGroups { index, tallies: Vec::new() });
        }
    }

    fn add_index_place(&mut self, header: &IndexHeader, at: u64) {
        if self.index_places.len() < MAX_PLACES && !self.is_in_annex(at) {
            self.index_places.push((header.root, at));
        }
    }

    pub(crate) fn add_meta(&mut self, frame: MetaFrame, at: u64) {
        self.leftovers.found_version_1();
        self.first_meta.get_or_insert((frame.kind, frame.meta_hash, at));
        self.note_frame(&frame, at);
        self.metas.add(frame.meta_hash, frame, |meta_hash| self.named_metas.contains(meta_hash));
    }

    pub(crate) fn add_bad_meta(&mut self, meta_hash: Digest) {
        if self.bad_metas.len() < MAX_BAD_METAS {
            self.bad_metas.insert(meta_hash);
        }
    }
}

/// An object whose proved shards read as zeros, so that no bytes inside them are taken for a record.
struct Unproved<'a, R> {
    inner: &'a mut Readable<R>,
    object: &'a dyn ReadAt,
    len: u64,
    at: u64,
    proved: &'a Ranges,
}

impl<R: FnMut(&mut [u8], u64) -> io::Result<usize>> io::Read for Unproved<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let done = self.inner.read(out)?;
        let start = self.at;
        self.at += done as u64;
        for (from, to) in self.proved.within(start, self.at) {
            out[(from - start) as usize..(to - start) as usize].fill(0);
        }
        Ok(done)
    }
}

impl<R: FnMut(&mut [u8], u64) -> io::Result<usize>> ScanInput for Unproved<'_, R> {
    fn skip_hole(&mut self) -> u64 {
        let data = self.object.next_data(self.at).map_or(self.len, |data| data.start.min(self.len));
        let hole = data.saturating_sub(self.at);
        self.inner.skip(hole);
        self.at += hole;
        hole
    }
}
