//! A census of the records in a container, and the chains of groups that they form.
//!
//! Each group names the one before it, so a chain is followed from its last group to its first. An index makes a chain
//! of the groups that it lists, whose records may be lost.

mod seal;

use super::copies::{Copies, holds_seal};
use super::metas::Metas;
use super::scan::{ScanEvent, ScanInput, Taken, scan};
use super::tally::Tally;
use crate::context::Meter;
use crate::error::{Error, ErrorKind, Result};
use crate::forms::annexes::OfOne;
use crate::forms::encoded::{Encoded, Load, Records};
use crate::groups::Groups;
use crate::io::ReadAt;
use crate::io::bad_blocks::{Readable, readable};
use crate::leftovers::Leftovers;
use crate::names::show;
use crate::ranges::Ranges;
use crate::stages::{self, Observed, Stage};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{
    GroupId, HEADER_LEN, Index, IndexHeader, MetaFrame, RecordHeader, record_head_len,
};
use fec_core::format::meta::Meta;
use fec_core::format::scan::MAX_INDEX_BODY;
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::{Reading, Run};
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

/// Groups that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub root: Option<Digest>,
    pub geometry: Option<FileGeometry>,
    /// True if every set of every group has k intact shards, the end is known, and so is the meta of a sealed payload.
    pub is_restorable: bool,
    /// All its records are in annexes, so they do not count as damage of the object in front of the annexes.
    pub is_in_annexes: bool,
    members: Members,
}

#[derive(Clone, Copy, Debug)]
enum Members {
    /// The groups that index number `.0` lists.
    Listed(usize),
    /// The group with tally `tip` and all groups before it, `count` in all.
    Followed { tip: usize, count: usize },
}

/// A group's link to the groups before it.
#[derive(Clone, Copy, Default)]
struct Link {
    /// Tally of the group before it.
    before: Option<usize>,
    /// Tally of the first known group of its chain, and the number of groups from there up to this one.
    first: usize,
    count: usize,
    /// True if that is group 0 and all groups up to this one can be restored.
    is_whole: bool,
    /// Some record up to this group is outside of annexes.
    stands_by_itself: bool,
    is_followed: bool,
}

/// For each tally the one before it.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Option<usize>>);

impl Census {
    /// Scans an object, except for bytes that are `proved` to be something else. Unreadable places cost only the
    /// records that they hit.
    pub(crate) fn of_object(
        (bytes, len): (&Arc<dyn ReadAt>, u64),
        path: &Path,
        proved: &Ranges,
        wanted: Option<Digest>,
        meter: &dyn Meter,
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
        meter: &dyn Meter,
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
                return Err(Error::new("read", ErrorKind::TooManyEncodings(MAX_LAST_GROUPS)));
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

    /// The chains that the records form.
    pub(crate) fn chains(&mut self) -> (Vec<Chain>, Links) {
        let links = self.links();
        self.list_groups();
        let listed: HashSet<usize> = self
            .indexes
            .iter()
            .flat_map(|listed| listed.tallies.iter().flatten().map(|t| *t as usize))
            .collect();
        let mut chains: Vec<Chain> = (0..self.indexes.len()).map(|nth| self.listed_chain(nth)).collect();
        for (tip, link) in links.iter().enumerate() {
            if link.is_followed || listed.contains(&tip) {
                continue;
            }
            chains.extend(self.followed_chain(tip, link));
        }
        (chains, Links(links.into_iter().map(|link| link.before).collect()))
    }

    /// Looks up the records of the groups that indexes list.
    fn list_groups(&mut self) {
        for listed in &mut self.indexes {
            let found = |(id, _): (GroupId, Digest)| self.by_root.get(&id.root).map(|tally| *tally as u32);
            listed.tallies = listed.index.groups().map(found).collect();
        }
    }

    fn listed_chain(&self, nth: usize) -> Chain {
        let IndexedGroups { index, tallies } = &self.indexes[nth];
        let can_restore = |tally: &Option<u32>| {
            tally.is_some_and(|tally| {
                let tally = &self.tallies[tally as usize];
                tally.weakest() as usize >= tally.id.geometry.shape().code.k()
            })
        };
        let mut found = tallies.iter().flatten().map(|tally| &self.tallies[*tally as usize]);
        Chain {
            is_in_annexes: found.all(|tally| !tally.stands_by_itself),
            root: Some(index.header.root),
            geometry: Some(index.header.geometry),
            is_restorable: tallies.iter().all(can_restore),
            members: Members::Listed(nth),
        }
    }

    /// The chain that ends with group `tip`; `None` if the group's place in the payload is unknown.
    fn followed_chain(&mut self, tip: usize, link: &Link) -> Option<Chain> {
        let last = self.tallies[tip].id.geometry;
        if last.is_last() && last.number() > 0 && link.count == 1 {
            let lost =
                FormatError::Damaged("the place of a last group, of which all groups before are lost,");
            self.leftovers.reject(|| format!("group {}", last.number()), lost);
            if self.wanted == Some(self.tallies[tip].id.root) {
                self.leftovers.found_wanted = true;
            }
            return None;
        }
        let Tally { id: GroupId { geometry: first, before, .. }, .. } = &self.tallies[link.first];
        if first.number() == 0 && self.bad_metas.contains(before) {
            return None;
        }
        let has_meta = first.number() == 0
            && (self.metas.get(before).is_some() || first.shape().hash.digest(b"") == *before);
        let is_seal_lost = first.shape().is_sealed() && !has_meta;
        let geometry =
            last.is_last().then(|| FileGeometry::of_chain(first.shape(), &last).expect("it follows them"));
        Some(Chain {
            root: last.is_last().then(|| self.tallies[tip].id.root),
            geometry,
            is_restorable: geometry.is_some() && link.is_whole && !is_seal_lost,
            is_in_annexes: !link.stands_by_itself,
            members: Members::Followed { tip, count: link.count },
        })
    }

    /// Follows every group to the one before it.
    fn links(&mut self) -> Vec<Link> {
        let mut order: Vec<usize> = (0..self.tallies.len()).collect();
        order.sort_by_key(|nth| self.tallies[*nth].id.geometry.number());
        let mut links = vec![Link::default(); self.tallies.len()];
        for nth in order {
            let tally = &self.tallies[nth];
            let (id, stands_by_itself) = (tally.id, tally.stands_by_itself);
            let has_k = tally.weakest() as usize >= id.geometry.shape().code.k();
            let before = match id.geometry.number() {
                0 => None,
                _ => self.by_root.get(&id.before).copied(),
            };
            let fits = |before: &usize| may_follow(&self.tallies[*before].id.geometry, &id.geometry);
            if before.is_some_and(|before| !fits(&before)) {
                let error =
                    FormatError::NotCanonical("a group is not what the geometry of the payload implies");
                self.leftovers.reject(|| format!("group {}", id.geometry.number()), error);
            }
            // A fitting group has a lower number, so it is linked already.
            links[nth] = match before.filter(fits) {
                None => Link {
                    first: nth,
                    count: 1,
                    is_whole: id.geometry.number() == 0 && has_k,
                    stands_by_itself,
                    ..Link::default()
                },
                Some(before) => {
                    links[before].is_followed = true;
                    let so_far = links[before];
                    Link {
                        before: Some(before),
                        count: so_far.count + 1,
                        is_whole: so_far.is_whole && has_k,
                        stands_by_itself: so_far.stands_by_itself || stands_by_itself,
                        is_followed: false,
                        ..so_far
                    }
                }
            };
        }
        links
    }

    /// The tallies of a chain's groups, in order.
    fn members(&self, chain: &Chain, links: &Links) -> Vec<Option<u32>> {
        match chain.members {
            Members::Listed(nth) => self.indexes[nth].tallies.clone(),
            Members::Followed { tip, count } => {
                let back = std::iter::successors(Some(tip), |nth| links.0[*nth]);
                let mut members: Vec<Option<u32>> = back.take(count).map(|nth| Some(nth as u32)).collect();
                members.reverse();
                members
            }
        }
    }

    fn present<'a>(&'a self, chain: &Chain, links: &Links) -> impl Iterator<Item = &'a Tally> {
        self.members(chain, links).into_iter().flatten().map(|nth| &self.tallies[nth as usize])
    }

    /// The groups of a chain.
    pub(crate) fn groups(&self, chain: &Chain, links: &Links) -> Groups<'_> {
        match chain.members {
            Members::Listed(nth) => {
                let index = &self.indexes[nth].index;
                let (geometry, last) = (index.header.geometry, index.header.geometry.groups() - 1);
                Groups::new(geometry.group(0), geometry.group(last), &index.trees[..])
            }
            Members::Followed { tip, .. } => {
                let trees: Vec<Digest> = self.present(chain, links).map(|tally| tally.tree).collect();
                let first =
                    self.present(chain, links).next().map_or(tip, |first| self.by_root[&first.id.root]);
                Groups::new(self.tallies[first].id.geometry, self.tallies[tip].id.geometry, trees)
            }
        }
    }

    /// The fewest intact shards of any set of the chain.
    pub(crate) fn weakest(&self, chain: &Chain, links: &Links) -> u32 {
        let members = self.members(chain, links);
        let is_from_0 = match chain.members {
            Members::Listed(_) => true,
            Members::Followed { tip, count } => self.tallies[tip].id.geometry.number() as usize + 1 == count,
        };
        let weakest = |tally: &Option<u32>| tally.map_or(0, |t| self.tallies[t as usize].weakest());
        members.iter().map(weakest).min().filter(|_| is_from_0).unwrap_or(0)
    }

    /// Number of records found of each shard, over all sets of the chain.
    pub(crate) fn records_by_index(&self, chain: &Chain, links: &Links, n: u32) -> Vec<u64> {
        let tallies: Vec<&Tally> = self.present(chain, links).collect();
        (0..n).map(|index| tallies.iter().map(|tally| tally.records_of(index)).sum()).collect()
    }

    /// Tells whether a copy of the chain's index was found.
    pub(crate) fn has_index(&self, chain: &Chain) -> bool {
        matches!(chain.members, Members::Listed(_))
    }

    /// Tells whether all parts of a chain with an index are at the places where they were written: the meta, the
    /// records, and the index three times.
    pub(crate) fn is_in_order(&self, chain: &Chain, links: &Links) -> bool {
        let Members::Listed(nth) = chain.members else { return false };
        let header = &self.indexes[nth].index.header;
        let Some(mut at) = self.front_len(chain, links) else { return false };
        let mut copies = self.copies(chain, links);
        if self.copies_in_place(chain, links) != copies.count() {
            return false;
        }
        let kind = *header.geometry.to_bytes().first_chunk().expect("32 bytes");
        if at > 0 && self.first_meta != Some((kind, header.meta_hash, 0)) {
            return false;
        }
        let are_records_whole = self.members(chain, links).iter().all(|tally| {
            tally.is_some_and(|tally| {
                let tally = &self.tallies[tally as usize];
                let (start, between) = (at, std::mem::replace(&mut copies, Copies::NONE));
                at += tally.id.group_len() + between.total();
                tally.is_whole_at(start, between)
            })
        });
        let step = HEADER_LEN as u64 + header.body_len();
        are_records_whole && self.index_places == [0, 1, 2].map(|copy| (header.root, at + copy * step))
    }

    /// Bytes of the meta frame that a chain was written with; `None`: unknown.
    pub(crate) fn front_len(&self, chain: &Chain, links: &Links) -> Option<u64> {
        self.meta_len(chain, links).map(|len| if len == 0 { 0 } else { MetaFrame::len_for(len as usize) })
    }

    /// Bytes of a chain's meta; `None`: unknown.
    pub(crate) fn meta_len(&self, chain: &Chain, links: &Links) -> Option<u32> {
        if let Members::Listed(nth) = chain.members {
            return Some(self.indexes[nth].index.header.meta_len);
        }
        let meta_hash = self.meta_hash(chain, links)?;
        let frame = self.metas.get(&meta_hash);
        frame.map(|frame| frame.meta_len).or_else(|| self.meta(chain, links).map(|_| 0))
    }

    /// M of a chain; `None` if both its first group and its index are lost.
    fn meta_hash(&self, chain: &Chain, links: &Links) -> Option<Digest> {
        match chain.members {
            Members::Listed(nth) => Some(self.indexes[nth].index.header.meta_hash),
            Members::Followed { .. } => {
                self.present(chain, links).next().filter(|t| t.id.geometry.number() == 0).map(|t| t.id.before)
            }
        }
    }

    /// The meta of a chain, if a copy of it was found.
    pub(crate) fn meta(&self, chain: &Chain, links: &Links) -> Option<&Meta> {
        if let Members::Listed(nth) = chain.members {
            return Some(&self.indexes[nth].index.meta);
        }
        let meta_hash = self.meta_hash(chain, links)?;
        let is_empty = self.present(chain, links).next()?.id.geometry.shape().hash.digest(b"") == meta_hash;
        let found = self.metas.get(&meta_hash).map(|frame| &frame.meta);
        if is_empty { Some(&NO_META) } else { found }
    }

    /// Tells whether any record is left of a chain.
    pub(crate) fn has_records(&self, chain: &Chain) -> bool {
        match chain.members {
            Members::Listed(nth) => self.indexes[nth].tallies.iter().any(Option::is_some),
            Members::Followed { .. } => true,
        }
    }

    /// A chain as an encoding to restore from `file`. Without a file no shard can be loaded.
    pub(crate) fn encoded<'a>(
        &'a self,
        chain: &Chain,
        links: &Links,
        file: Option<&'a dyn ReadAt>,
    ) -> Encoded<'a> {
        let groups = self.groups(chain, links);
        let tallies = self.members(chain, links);
        let tallies = tallies.into_iter().map(|nth| nth.map(|nth| &self.tallies[nth as usize])).collect();
        let first = groups.first_number();
        Encoded {
            root: chain.root,
            payload_len: chain.geometry.map(|p| p.payload_len()),
            meta: self.meta(chain, links),
            records: Box::new(RecordLoader { file, first, tallies }),
            groups,
        }
    }
}

static NO_META: Meta =
    Meta { name: None, sha256: None, blake3: None, annexes: None, seal: None, others: Vec::new() };

/// Tells whether a group with `geometry` can follow one with `before`.
pub(crate) fn may_follow(before: &GroupGeometry, geometry: &GroupGeometry) -> bool {
    let (shape, its) = (before.shape(), geometry.shape());
    if before.is_last() || u64::from(before.number()) + 1 != u64::from(geometry.number()) {
        return false;
    }
    match geometry.is_last() {
        false => its == shape,
        true => {
            (its.hash, its.flags, its.code) == (shape.hash, shape.flags, shape.code)
                && FileGeometry::of_chain(shape, geometry).is_ok()
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

struct RecordLoader<'a> {
    file: Option<&'a dyn ReadAt>,
    /// The number of the first group.
    first: u32,
    tallies: Vec<Option<&'a Tally>>,
}

impl<'a> RecordLoader<'a> {
    fn tally(&self, group: u32) -> Option<&'a Tally> {
        self.tallies[(group - self.first) as usize]
    }

    fn one(&self, group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        let (Some(tally), Some(file)) = (self.tally(group), self.file) else {
            return Ok(Load::Missing);
        };
        let Some(at) = tally.find(set, index) else { return Ok(Load::Missing) };
        let mut head = vec![0u8; tally.id.record_head_len()];
        let stage = stages::enter(Stage::Read, tally.id.record_len());
        let read = file.read_exact_at(at, &mut head);
        let read = read.and_then(|()| file.read_exact_at(at + head.len() as u64, reading.slot(index)));
        drop(stage);
        match read {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Load::Missing),
            other => other?,
        }
        // The file may have changed since the scan, so every part is checked again.
        let fixed = head.first_chunk().expect("a record's head has 128 bytes");
        if record_head_len(fixed) != head.len() {
            return Ok(Load::Damaged);
        }
        let Ok(header) = RecordHeader::parse(&head) else { return Ok(Load::Damaged) };
        let Some(proof) = header.proof(&head) else { return Ok(Load::Damaged) };
        let intact = reading.check(index, &[proof], Run { observer: &Observed, ..Run::default() });
        Ok(if intact { Load::Intact } else { Load::Damaged })
    }
}

impl Records for RecordLoader<'_> {
    fn load(&self, group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        let mut one = |index: &u32| self.one(group, set, *index, reading).unwrap_or_else(Load::Unreadable);
        wanted.iter().map(&mut one).collect()
    }

    fn present(&self, group: u32, _sets: u32) -> Vec<Range<u32>> {
        self.tally(group).filter(|_| self.file.is_some()).map_or_else(Vec::new, Tally::present)
    }

    fn obtainable(&self, group: &GroupGeometry) -> Vec<Range<u64>> {
        let tally = self.tally(group.number()).filter(|_| self.file.is_some());
        tally.map_or_else(Vec::new, Tally::obtainable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::block::Code;
    use fec_core::digest::HashKind;
    use fec_core::params::ContainerLayout;

    /// An attacker may append groups behind a signed last group. Readers that stop there would get another payload than
    /// readers that go on.
    #[test]
    fn nothing_follows_a_last_group() {
        let layout = |m| {
            let code = Code::new(2, m).unwrap();
            ContainerLayout::new(HashKind::Blake3, code, 8192, Some(1)).unwrap()
        };
        let of = layout(1);
        let full = |number| of.group(number, of.piece_len(), false);
        let last = |number, len| of.group(number, len, true);
        assert!(may_follow(&full(0), &full(1)) && may_follow(&full(0), &last(1, 100)));
        for next in [full(1), last(1, 100), last(1, of.piece_len())] {
            assert!(
                !may_follow(&last(0, 100), &next) && !may_follow(&last(0, of.piece_len()), &next),
                "{next:?}"
            );
        }
        assert!(
            !may_follow(&full(0), &full(2))
                && !may_follow(&full(1), &full(1))
                && !may_follow(&full(1), &full(0))
        );
        let other = layout(2);
        assert!(!may_follow(&full(0), &other.group(1, other.piece_len(), false)));
        assert!(!may_follow(&full(0), &other.group(1, 100, true)));
    }
}
