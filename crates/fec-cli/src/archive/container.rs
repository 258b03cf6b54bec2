//! A container file: a census of its records, and the streams that they form.

use super::ranges::Ranges;
use super::scan::{Found, Taken, scan};
use super::tally::Tally;
use super::{Encoded, GroupEntry, Leftovers, Load, Records};
use crate::failure::{Exit, Failure, Result, show};
use crate::progress::Progress;
use crate::stages::{self, Observed, Stage};
use crate::sys::salvage::salvage;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, RecordHeader, record_head_len};
use fec_core::merkle::Frontier;
use fec_core::params::{FileGeometry, Form, GroupGeometry, MAX_GROUPS, Shape};
use fec_core::set::{Reading, Run};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Streams that are told apart before the input is refused.
const MAX_STREAMS: usize = 64;

/// Everything that a scan of a container found.
#[derive(Debug, Default)]
pub(crate) struct Census {
    pub(crate) tallies: Vec<Tally>,
    /// The place of each group's tally. The root of a group binds its geometry.
    by_root: HashMap<Digest, usize>,
    indexes: Vec<(Index, u64, u64)>,
    pub(crate) leftovers: Leftovers,
    /// Bytes that belong to nothing.
    pub(crate) gaps: Ranges,
    pub(crate) len: u64,
    /// Records that were there more than once.
    pub(crate) duplicates: u64,
    /// The only root that matters, if one was asked for: other streams do not count against limits then.
    wanted: Option<Digest>,
}

/// Groups that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) root: Option<Digest>,
    pub(crate) geometry: Option<FileGeometry>,
    /// Of each group its geometry and root, and the tally of its records if there are any.
    pub(crate) groups: Vec<(GroupGeometry, Digest, Option<usize>)>,
    name: Option<Vec<u8>>,
    /// From the first to the last byte that was accepted.
    observed: (u64, u64),
    /// The same, or more where the geometry says so.
    extent: (u64, u64),
}

impl Census {
    /// Scans a container file; places of it that cannot be read cost the records that they hit.
    pub(crate) fn of_file(
        file: &File,
        path: &Path,
        max_group: u64,
        wanted: Option<Digest>,
        progress: &Progress,
    ) -> Result<Census> {
        let len = file.metadata().map_err(|e| Failure::io("read", path, &e))?.len();
        let mut input = salvage(file, len);
        let mut census = Census::take(&mut input, Some(file), path, max_group, wanted, progress)?;
        if input.lost > 0 {
            let note = format!("{}: {} bytes: input/output error", show(path), input.lost);
            census.leftovers.unreadable.push(note);
        }
        Ok(census)
    }

    /// Scans `input`. A container file can be passed as `file` too: then index bodies that stand
    /// before their only good header are found as well.
    pub(crate) fn take(
        input: impl io::Read,
        file: Option<&File>,
        path: &Path,
        max_group: u64,
        wanted: Option<Digest>,
        progress: &Progress,
    ) -> Result<Census> {
        let mut census = Census { wanted, ..Census::default() };
        let scanned = scan(input, path, max_group, progress, |at, found| census.on(at, found, file))?;
        census.gaps = scanned.gaps;
        census.len = scanned.len;
        Ok(census)
    }

    fn on(&mut self, at: u64, found: Found<'_>, file: Option<&File>) -> Result<Taken> {
        match found {
            Found::Record { header, .. } => {
                let next = self.tallies.len();
                let place = *self.by_root.entry(header.group.root).or_insert(next);
                if place == next {
                    if next as u64 >= MAX_GROUPS {
                        let message = format!("read: more than {MAX_GROUPS} groups");
                        return Err(Failure::new(Exit::Refused, message));
                    }
                    self.tallies.push(Tally::new(&header, at));
                }
                if !self.tallies[place].add(&header, at) {
                    self.duplicates += 1;
                }
                Ok(Taken::Yes)
            }
            Found::Index { index, len } => {
                self.add_index(*index, at, at + len as u64);
                Ok(Taken::Yes)
            }
            Found::IndexHeader(header) => {
                let end = at + HEADER_LEN as u64;
                if let Some((_, _, its_end)) = self.indexes.iter_mut().find(|(i, ..)| i.root == header.root) {
                    *its_end = end.max(*its_end);
                    return Ok(Taken::Yes);
                }
                let start = at.checked_sub(header.body_len() as u64);
                let mut hashed = 0;
                if let (Some(file), Some(start)) = (file, start) {
                    let mut body = vec![0u8; header.body_len()];
                    if file.read_exact_at(&mut body, start).is_ok() {
                        if let Ok(index) = header.open(&body) {
                            self.add_index(index, start, end);
                            return Ok(Taken::Yes);
                        }
                        hashed = body.len();
                    }
                }
                self.leftovers.reject(|| format!("offset {at}"), FormatError::Damaged("the index body"));
                Ok(Taken::No { hashed })
            }
            Found::Rejected(error) => {
                self.leftovers.reject(|| format!("offset {at}"), error);
                Ok(Taken::No { hashed: 0 })
            }
        }
    }

    fn add_index(&mut self, index: Index, start: u64, end: u64) {
        if let Some((_, _, its_end)) = self.indexes.iter_mut().find(|(i, ..)| i.root == index.root) {
            *its_end = end.max(*its_end);
        } else if self.indexes.len() < MAX_STREAMS || self.wanted == Some(index.root) {
            self.indexes.push((index, start, end));
        }
    }

    /// The streams that the records form; [`outermost`] tells which of them are another's payload.
    pub(crate) fn streams(&mut self) -> Result<Vec<Stream>> {
        let mut streams = self.indexed_streams();
        let is_found = self.wanted.is_some() && streams.iter().any(|s| s.root == self.wanted);
        // The index of the wanted root leaves nothing to guess.
        let chains = if is_found { Vec::new() } else { self.chains()? };
        for chain in chains {
            let stream = self.chained_stream(&chain);
            let known = |s: &Stream| match stream.root {
                Some(root) => s.root == Some(root),
                None => stream.tallies().is_subset(&s.tallies()),
            };
            if !streams.iter().any(known) {
                streams.push(stream);
            }
        }
        for stream in &mut streams {
            stream.extent = self.extent(stream);
        }
        Ok(streams)
    }

    fn indexed_streams(&mut self) -> Vec<Stream> {
        let mut streams = Vec::new();
        let mut mismatches = Vec::new();
        for (index, start, end) in &self.indexes {
            let mut observed = (*start, *end);
            let mut groups = Vec::new();
            for id in index.groups() {
                let found = self.by_root.get(&id.root).copied();
                let tally = found.filter(|t| self.tallies[*t].geometry == id.geometry);
                if found.is_some() && tally.is_none() {
                    // The root of a group binds its geometry, and the index binds another.
                    mismatches.push(id.geometry.number());
                }
                if let Some(tally) = tally {
                    observed.0 = observed.0.min(self.tallies[tally].first);
                    observed.1 = observed.1.max(self.tallies[tally].end);
                }
                groups.push((id.geometry, id.root, tally));
            }
            streams.push(Stream {
                root: Some(index.root),
                geometry: Some(index.geometry),
                groups,
                name: index.meta.name.clone(),
                observed,
                extent: observed,
            });
        }
        mismatches.into_iter().for_each(|group| self.reject_group(group));
        streams
    }

    fn reject_group(&mut self, number: u32) {
        let error = FormatError::NotCanonical("a group is not what the geometry of the payload implies");
        self.leftovers.reject(|| format!("group {number}"), error);
    }

    /// Chains of groups by their heads, each as long as it goes.
    fn chains(&mut self) -> Result<Vec<Vec<usize>>> {
        // By what a chain looks for: the next number after exactly these groups.
        let mut by_head: HashMap<(u32, Digest), Vec<usize>> = HashMap::new();
        let mut firsts = Vec::new();
        for (i, tally) in self.tallies.iter().enumerate() {
            match tally.geometry.number() {
                0 => firsts.push(i),
                number => tally.heads().for_each(|h| by_head.entry((number, *h)).or_default().push(i)),
            }
        }
        let mut done = Vec::new();
        let mut mismatches = Vec::new();
        let mut open: Vec<(Vec<usize>, Frontier)> = Vec::new();
        for first in firsts {
            let mut tree = Frontier::new(self.tallies[first].geometry.shape().hash);
            tree.push(self.tallies[first].root);
            open.push((vec![first], tree));
        }
        let mut forks = 0;
        while let Some((chain, tree)) = open.pop() {
            let streams = if self.wanted.is_some() { forks } else { open.len() + done.len() };
            if streams >= MAX_STREAMS {
                let message = format!("read: more than {MAX_STREAMS} encodings in one input");
                return Err(Failure::new(Exit::Refused, message).help("give --root, or split the input"));
            }
            let last = &self.tallies[*chain.last().expect("a chain has a first group")];
            let head = tree.root().expect("a chain has a first group");
            let candidates = by_head.get(&(last.geometry.number() + 1, head)).map_or(&[][..], |c| c);
            let first = &self.tallies[chain[0]].geometry;
            let (next, other): (Vec<usize>, Vec<usize>) =
                candidates.iter().partition(|c| may_follow(first.shape(), &self.tallies[**c].geometry));
            mismatches.extend(other);
            if last.geometry.is_last() || next.is_empty() {
                let is_wanted = || self.wanted.is_some() && self.chained_stream(&chain).root == self.wanted;
                if done.len() < MAX_STREAMS || is_wanted() {
                    done.push(chain);
                }
                continue;
            }
            forks += next.len() - 1;
            // Almost always there is one: the chain grows in place, and is copied only where it forks.
            for candidate in next.iter().skip(1) {
                let (mut chain, mut tree) = (chain.clone(), tree.clone());
                tree.push(self.tallies[*candidate].root);
                chain.push(*candidate);
                open.push((chain, tree));
            }
            let (mut chain, mut tree) = (chain, tree);
            tree.push(self.tallies[next[0]].root);
            chain.push(next[0]);
            open.push((chain, tree));
        }
        let listed: HashSet<Digest> =
            self.indexes.iter().flat_map(|(i, ..)| i.group_roots.iter().copied()).collect();
        mismatches.retain(|t| !listed.contains(&self.tallies[*t].root));
        for tally in mismatches {
            self.reject_group(self.tallies[tally].geometry.number());
        }
        Ok(done)
    }

    /// A stream without an index: complete if it reaches a last group that P agrees with.
    fn chained_stream(&self, chain: &[usize]) -> Stream {
        let tallies = || chain.iter().map(|i| &self.tallies[*i]);
        let first = &self.tallies[chain[0]].geometry;
        let last = &self.tallies[chain[chain.len() - 1]].geometry;
        let geometry = last.is_last().then(|| FileGeometry::of_stream(first.shape(), last));
        let root = geometry.map(|p| {
            let mut tree = Frontier::new(p.shape().hash);
            tallies().for_each(|t| tree.push(t.root));
            p.root(&tree.root().expect("a chain has a first group"), &[])
        });
        let observed =
            (tallies().map(|t| t.first).min().unwrap_or(0), tallies().map(|t| t.end).max().unwrap_or(0));
        Stream {
            root,
            geometry,
            groups: chain
                .iter()
                .map(|i| (self.tallies[*i].geometry, self.tallies[*i].root, Some(*i)))
                .collect(),
            name: None,
            observed,
            extent: observed,
        }
    }

    /// Where a stream's bytes are: for one that can be restored, as far as its geometry says.
    fn extent(&self, stream: &Stream) -> (u64, u64) {
        let mut extent = stream.observed;
        if !self.is_restorable(stream) {
            return extent;
        }
        let tally = |group: Option<&(GroupGeometry, Digest, Option<usize>)>| group.and_then(|(.., t)| *t);
        if let Some(first) = tally(stream.groups.first()) {
            extent.0 = extent.0.min(self.tallies[first].extent().0);
        }
        if let Some(last) = tally(stream.groups.last()) {
            let body = (32 * stream.groups.len() as u64).next_multiple_of(64);
            let index = 3 * HEADER_LEN as u64 + 2 * body;
            extent.1 = extent.1.max(self.tallies[last].extent().1.saturating_add(index));
        }
        extent
    }

    /// The fewest intact shards of any set of the stream.
    pub(crate) fn weakest(&self, stream: &Stream) -> u32 {
        let of_group = |t: &Option<usize>| t.map_or(0, |t| self.tallies[t].weakest());
        stream.groups.iter().map(|(.., tally)| of_group(tally)).min().unwrap_or(0)
    }

    /// How many records of shard `index` are there, over all sets of the stream.
    pub(crate) fn records_of(&self, stream: &Stream, index: u32) -> u64 {
        stream.tallies().into_iter().map(|t| self.tallies[t].records_of(index)).sum()
    }

    /// Whether a copy of the stream's index was found.
    pub(crate) fn has_index(&self, stream: &Stream) -> bool {
        self.indexes.iter().any(|(index, ..)| Some(index.root) == stream.root)
    }

    /// Whether all records stand where they were written, with the heads they were written with.
    pub(crate) fn is_in_order(&self, stream: &Stream) -> bool {
        let mut heads: Option<Frontier> = None;
        let mut at = 0;
        stream.groups.iter().all(|(geometry, root, tally)| {
            let head = heads.as_ref().and_then(Frontier::root).unwrap_or([0; 32]);
            heads.get_or_insert_with(|| Frontier::new(geometry.shape().hash)).push(*root);
            let start = at;
            at += GroupId { geometry: *geometry, root: *root, head }.group_len();
            tally.is_some_and(|t| self.tallies[t].is_whole_at(start, &head))
        })
    }

    /// Whether every set of every group has k intact shards, and the end is known.
    pub(crate) fn is_restorable(&self, stream: &Stream) -> bool {
        stream.geometry.is_some()
            && stream.groups.iter().all(|(geometry, _, tally)| {
                tally.is_some_and(|t| self.tallies[t].weakest() as usize >= geometry.shape().code.k())
            })
    }

    /// Whether anything but the index is left of a stream.
    pub(crate) fn has_records(&self, stream: &Stream) -> bool {
        stream.groups.iter().any(|(.., tally)| tally.is_some())
    }

    /// A stream as an encoding to restore from `file`; without a file, nothing of it can be loaded.
    pub(crate) fn encoded<'a>(
        &'a self,
        stream: &Stream,
        file: Option<&'a File>,
        max_group: u64,
    ) -> Encoded<'a> {
        let mut start = 0;
        let mut groups = Vec::new();
        let mut tallies = Vec::new();
        for (geometry, root, tally) in &stream.groups {
            groups.push(GroupEntry { geometry: *geometry, root: *root, start });
            tallies.push(tally.map(|t| &self.tallies[t]));
            start += geometry.payload_len();
        }
        Encoded {
            root: stream.root,
            groups,
            payload_len: stream.geometry.map(|p| p.payload_len()),
            name: stream.name.clone(),
            records: Box::new(Loader { file, tallies, max_group }),
        }
    }
}

impl Stream {
    /// The tallies of its groups.
    fn tallies(&self) -> HashSet<usize> {
        self.groups.iter().filter_map(|(.., tally)| *tally).collect()
    }
}

/// Whether a group can belong to a stream whose first group has the shape `first`.
pub(crate) fn may_follow(first: &Shape, geometry: &GroupGeometry) -> bool {
    if !geometry.is_last() {
        return geometry.shape() == first;
    }
    let p = FileGeometry::of_stream(first, geometry);
    FileGeometry::parse(&p.to_bytes(), Form::Container, u64::MAX).is_ok()
        && p.group(geometry.number()) == *geometry
}

/// Leaves out the streams that lie wholly inside the extent of another: those are its payload.
pub(crate) fn outermost(streams: Vec<Stream>) -> Vec<Stream> {
    let inside = |x: &Stream, o: &Stream| {
        x.observed.0 >= o.extent.0 && x.observed.1 <= o.extent.1 && x.tallies().is_disjoint(&o.tallies())
    };
    let is_payload = |i: usize| {
        let others = streams.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, o)| o).any(|o| inside(&streams[i], o) && !inside(o, &streams[i]))
    };
    let keep: Vec<bool> = (0..streams.len()).map(|i| !is_payload(i)).collect();
    streams.into_iter().zip(keep).filter_map(|(stream, keep)| keep.then_some(stream)).collect()
}

struct Loader<'a> {
    file: Option<&'a File>,
    tallies: Vec<Option<&'a Tally>>,
    max_group: u64,
}

impl Records for Loader<'_> {
    fn load(&self, group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        let (Some(tally), Some(file)) = (self.tallies[group as usize], self.file) else {
            return Ok(Load::Missing);
        };
        let Some(at) = tally.find(set, index) else { return Ok(Load::Missing) };
        let mut head = vec![0u8; tally.head_len()];
        let stage = stages::enter(Stage::Read, (head.len() + reading.slot(index).len()) as u64);
        let read = file.read_exact_at(&mut head, at);
        let read = read.and_then(|()| file.read_exact_at(reading.slot(index), at + head.len() as u64));
        drop(stage);
        match read {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Load::Missing),
            other => other?,
        }
        // The file may have changed since the scan: everything is checked again.
        let fixed = head.first_chunk().expect("a record's head has 128 bytes");
        if record_head_len(fixed) != head.len() {
            return Ok(Load::Damaged);
        }
        let Ok(header) = RecordHeader::parse(&head, self.max_group) else { return Ok(Load::Damaged) };
        let Some(proof) = header.proof(&head) else { return Ok(Load::Damaged) };
        let intact = reading.check(index, &[proof], Run { observer: &Observed, ..Run::default() });
        Ok(if intact { Load::Intact } else { Load::Damaged })
    }
}
