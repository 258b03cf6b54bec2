//! A census of the records in a container, and the chains of groups that they form.

use super::scan::{ScanEvent, Taken, scan};
use super::tally::Tally;
use crate::context::Meter;
use crate::error::{Error, ErrorKind, Result};
use crate::forms::encoded::{Encoded, GroupEntry, Load, Records};
use crate::io::ReadAt;
use crate::io::bad_blocks::readable;
use crate::leftovers::Leftovers;
use crate::names::show;
use crate::ranges::Ranges;
use crate::stages::{self, Observed, Stage};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{GroupId, Index, RecordHeader, record_head_len};
use fec_core::merkle::Frontier;
use fec_core::params::{FileGeometry, Form, GroupGeometry, MAX_GROUPS, Shape};
use fec_core::set::{Reading, Run};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Chains that are told apart before the input is refused.
const MAX_CHAINS: usize = 64;

/// Everything that a scan of a container found.
#[derive(Debug, Default)]
pub(crate) struct Census {
    pub tallies: Vec<Tally>,
    /// The place of each group's tally. The root of a group binds its geometry.
    by_root: HashMap<Digest, usize>,
    indexes: Vec<Index>,
    pub leftovers: Leftovers,
    /// Bytes that belong to nothing.
    pub gaps: Ranges,
    pub len: u64,
    /// Records that were there more than once.
    pub duplicates: u64,
    /// The only root that matters, if one was asked for: other chains do not count against limits then.
    wanted: Option<Digest>,
}

/// Groups that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub root: Option<Digest>,
    pub geometry: Option<FileGeometry>,
    /// Of each group its geometry and root, and the tally of its records if there are any.
    pub groups: Vec<(GroupGeometry, Digest, Option<usize>)>,
    name: Option<Vec<u8>>,
}

impl Census {
    /// Scans an object, except for the bytes that are `proved` to be something else; places of it that cannot be read cost
    /// the records that they hit.
    pub(crate) fn of_object(
        (bytes, len): (&Arc<dyn ReadAt>, u64),
        path: &Path,
        proved: &Ranges,
        max_group: u64,
        wanted: Option<Digest>,
        meter: &dyn Meter,
    ) -> Result<Census> {
        let mut input = readable(bytes.as_ref(), len);
        let unproved = Unproved { inner: &mut input, at: 0, proved };
        let mut census = Census::take(unproved, Some(bytes.as_ref()), path, max_group, wanted, meter)?;
        if input.lost > 0 {
            let note = format!("{}: {} bytes: input/output error", show(path), input.lost);
            census.leftovers.unreadable.push(note);
        }
        Ok(census)
    }

    /// Scans `input`. An object can be passed as `object` too: then index bodies that stand
    /// before their only good header are found as well.
    pub(crate) fn take(
        input: impl io::Read,
        object: Option<&dyn ReadAt>,
        path: &Path,
        max_group: u64,
        wanted: Option<Digest>,
        meter: &dyn Meter,
    ) -> Result<Census> {
        let mut census = Census { wanted, ..Census::default() };
        let scanned = scan(input, path, max_group, meter, |at, found| census.on(at, found, object))?;
        census.gaps = scanned.gaps;
        census.len = scanned.len;
        Ok(census)
    }

    fn on(&mut self, at: u64, found: ScanEvent<'_>, object: Option<&dyn ReadAt>) -> Result<Taken> {
        match found {
            ScanEvent::Record { header, .. } => self.add_record(&header, at).map(|()| Taken::Yes),
            ScanEvent::Index(index) => {
                self.add_index(*index);
                Ok(Taken::Yes)
            }
            ScanEvent::IndexHeader(header) => {
                if self.indexes.iter().any(|i| i.root == header.root) {
                    return Ok(Taken::Yes);
                }
                let start = at.checked_sub(header.body_len() as u64);
                let mut hashed = 0;
                if let (Some(object), Some(start)) = (object, start) {
                    let mut body = vec![0u8; header.body_len()];
                    if object.read_exact_at(start, &mut body).is_ok() {
                        if let Ok(index) = header.open(&body) {
                            self.add_index(index);
                            return Ok(Taken::Yes);
                        }
                        hashed = body.len();
                    }
                }
                self.leftovers.reject(|| format!("offset {at}"), FormatError::Damaged("the index body"));
                Ok(Taken::No { hashed })
            }
            ScanEvent::Rejected(error) => {
                self.leftovers.reject(|| format!("offset {at}"), error);
                Ok(Taken::No { hashed: 0 })
            }
        }
    }

    /// Counts a record that was found at `at`.
    pub(crate) fn add_record(&mut self, header: &RecordHeader, at: u64) -> Result<()> {
        let next = self.tallies.len();
        let place = *self.by_root.entry(header.group.root).or_insert(next);
        if place == next {
            if next as u64 >= MAX_GROUPS {
                return Err(Error::new("read", ErrorKind::TooManyGroups(MAX_GROUPS)));
            }
            self.tallies.push(Tally::new(header));
        }
        if !self.tallies[place].add(header, at) {
            self.duplicates += 1;
        }
        Ok(())
    }

    /// Notes an index; the same one stands in a container several times.
    pub(crate) fn add_index(&mut self, index: Index) {
        let is_known = self.indexes.iter().any(|i| i.root == index.root);
        if !is_known && (self.indexes.len() < MAX_CHAINS || self.wanted == Some(index.root)) {
            self.indexes.push(index);
        }
    }

    /// The chains that the records form, each under its root.
    pub(crate) fn chains_found(&mut self) -> Result<Vec<Chain>> {
        let mut found = self.indexed_chains();
        let is_found = self.wanted.is_some() && found.iter().any(|s| s.root == self.wanted);
        // The index of the wanted root leaves nothing to guess.
        let chains = if is_found { Vec::new() } else { self.chains()? };
        for chain in chains {
            let made = self.chain_of(&chain);
            // A chain that an index lists already is not another one.
            let known = |s: &Chain| match made.root {
                Some(root) => s.root == Some(root) || made.has_groups_of(s),
                None => made.tallies().is_subset(&s.tallies()),
            };
            if !found.iter().any(known) {
                found.push(made);
            }
        }
        Ok(found)
    }

    fn indexed_chains(&mut self) -> Vec<Chain> {
        let mut found_chains = Vec::new();
        let mut mismatches = Vec::new();
        for index in &self.indexes {
            let mut groups = Vec::new();
            for id in index.groups() {
                let found = self.by_root.get(&id.root).copied();
                let tally = found.filter(|t| self.tallies[*t].geometry == id.geometry);
                if found.is_some() && tally.is_none() {
                    // The root of a group binds its geometry, and the index binds another.
                    mismatches.push(id.geometry.number());
                }
                groups.push((id.geometry, id.root, tally));
            }
            found_chains.push(Chain {
                root: Some(index.root),
                geometry: Some(index.geometry),
                groups,
                name: index.meta.name.clone(),
            });
        }
        mismatches.into_iter().for_each(|group| self.reject_group(group));
        found_chains
    }

    fn reject_group(&mut self, number: u32) {
        let error = FormatError::NotCanonical("a group is not what the geometry of the payload implies");
        self.leftovers.reject(|| format!("group {number}"), error);
    }

    /// Chains of groups by their heads, each as long as it goes.
    fn chains(&mut self) -> Result<Vec<Vec<usize>>> {
        // Groups by their number and a head that they state: what a chain looks for next.
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
            let count = if self.wanted.is_some() { forks } else { open.len() + done.len() };
            if count >= MAX_CHAINS {
                return Err(Error::new("read", ErrorKind::TooManyEncodings(MAX_CHAINS)));
            }
            let last = &self.tallies[*chain.last().expect("a chain has a first group")];
            let head = tree.root().expect("a chain has a first group");
            let candidates = by_head.get(&(last.geometry.number() + 1, head)).map_or(&[][..], |c| c);
            let first = &self.tallies[chain[0]].geometry;
            let (next, other): (Vec<usize>, Vec<usize>) =
                candidates.iter().partition(|c| may_follow(first.shape(), &self.tallies[**c].geometry));
            mismatches.extend(other);
            if last.geometry.is_last() || next.is_empty() {
                let is_wanted = || self.wanted.is_some() && self.chain_of(&chain).root == self.wanted;
                if done.len() < MAX_CHAINS || is_wanted() {
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
            self.indexes.iter().flat_map(|i| i.group_roots.iter().copied()).collect();
        mismatches.retain(|t| !listed.contains(&self.tallies[*t].root));
        for tally in mismatches {
            self.reject_group(self.tallies[tally].geometry.number());
        }
        Ok(done)
    }

    /// A chain without an index: complete if it reaches a last group that P agrees with.
    fn chain_of(&self, chain: &[usize]) -> Chain {
        let tallies = || chain.iter().map(|i| &self.tallies[*i]);
        let first = &self.tallies[chain[0]].geometry;
        let last = &self.tallies[chain[chain.len() - 1]].geometry;
        let geometry = last.is_last().then(|| FileGeometry::of_chain(first.shape(), last));
        let root = geometry.map(|p| {
            let mut tree = Frontier::new(p.shape().hash);
            tallies().for_each(|t| tree.push(t.root));
            p.root(&tree.root().expect("a chain has a first group"), &[])
        });
        Chain {
            root,
            geometry,
            groups: chain
                .iter()
                .map(|i| (self.tallies[*i].geometry, self.tallies[*i].root, Some(*i)))
                .collect(),
            name: None,
        }
    }

    /// The fewest intact shards of any set of the chain.
    pub(crate) fn weakest(&self, chain: &Chain) -> u32 {
        let of_group = |t: &Option<usize>| t.map_or(0, |t| self.tallies[t].weakest());
        chain.groups.iter().map(|(.., tally)| of_group(tally)).min().unwrap_or(0)
    }

    /// How many records of shard `index` are there, over all sets of the chain.
    pub(crate) fn records_of(&self, chain: &Chain, index: u32) -> u64 {
        chain.tallies().into_iter().map(|t| self.tallies[t].records_of(index)).sum()
    }

    /// Whether a copy of the chain's index was found.
    pub(crate) fn has_index(&self, chain: &Chain) -> bool {
        self.indexes.iter().any(|index| Some(index.root) == chain.root)
    }

    /// Whether all records stand where they were written, with the heads they were written with.
    pub(crate) fn is_in_order(&self, chain: &Chain) -> bool {
        let mut heads: Option<Frontier> = None;
        let mut at = 0;
        chain.groups.iter().all(|(geometry, root, tally)| {
            let head = heads.as_ref().and_then(Frontier::root).unwrap_or([0; 32]);
            heads.get_or_insert_with(|| Frontier::new(geometry.shape().hash)).push(*root);
            let start = at;
            at += GroupId { geometry: *geometry, root: *root, head }.group_len();
            tally.is_some_and(|t| self.tallies[t].is_whole_at(start, &head))
        })
    }

    /// Whether every set of every group has k intact shards, and the end is known.
    pub(crate) fn is_restorable(&self, chain: &Chain) -> bool {
        chain.geometry.is_some()
            && chain.groups.iter().all(|(geometry, _, tally)| {
                tally.is_some_and(|t| self.tallies[t].weakest() as usize >= geometry.shape().code.k())
            })
    }

    /// Whether anything but the index is left of a chain.
    pub(crate) fn has_records(&self, chain: &Chain) -> bool {
        chain.groups.iter().any(|(.., tally)| tally.is_some())
    }

    /// A chain as an encoding to restore from `file`; without a file, nothing of it can be loaded.
    pub(crate) fn encoded<'a>(
        &'a self,
        chain: &Chain,
        file: Option<&'a dyn ReadAt>,
        max_group: u64,
    ) -> Encoded<'a> {
        let mut start = 0;
        let mut groups = Vec::new();
        let mut tallies = Vec::new();
        for (geometry, root, tally) in &chain.groups {
            groups.push(GroupEntry { geometry: *geometry, root: *root, start });
            tallies.push(tally.map(|t| &self.tallies[t]));
            start += geometry.payload_len();
        }
        Encoded {
            root: chain.root,
            groups,
            payload_len: chain.geometry.map(|p| p.payload_len()),
            name: chain.name.clone(),
            records: Box::new(RecordLoader { file, tallies, max_group }),
        }
    }
}

impl Chain {
    /// The tallies of its groups.
    fn tallies(&self) -> HashSet<usize> {
        self.groups.iter().filter_map(|(.., tally)| *tally).collect()
    }

    /// Whether both consist of the same groups: then their payloads are one.
    fn has_groups_of(&self, other: &Chain) -> bool {
        self.groups.iter().map(|(_, root, _)| root).eq(other.groups.iter().map(|(_, root, _)| root))
    }
}

/// Whether a group can belong to a chain whose first group has the shape `first`.
pub(crate) fn may_follow(first: &Shape, geometry: &GroupGeometry) -> bool {
    if !geometry.is_last() {
        return geometry.shape() == first;
    }
    let p = FileGeometry::of_chain(first, geometry);
    FileGeometry::parse(&p.to_bytes(), Form::Container, u64::MAX).is_ok()
        && p.group(geometry.number()) == *geometry
}

/// An input whose proved shards come as zeros, so that nothing in them is taken for a record.
struct Unproved<'a, R> {
    inner: R,
    at: u64,
    proved: &'a Ranges,
}

impl<R: io::Read> io::Read for Unproved<'_, R> {
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

struct RecordLoader<'a> {
    file: Option<&'a dyn ReadAt>,
    tallies: Vec<Option<&'a Tally>>,
    max_group: u64,
}

impl RecordLoader<'_> {
    fn one(&self, group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        let (Some(tally), Some(file)) = (self.tallies[group as usize], self.file) else {
            return Ok(Load::Missing);
        };
        let Some(at) = tally.find(set, index) else { return Ok(Load::Missing) };
        let mut head = vec![0u8; tally.head_len()];
        let stage = stages::enter(Stage::Read, (head.len() + tally.geometry.shape().shard_len) as u64);
        let read = file.read_exact_at(at, &mut head);
        let read = read.and_then(|()| file.read_exact_at(at + head.len() as u64, reading.slot(index)));
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

impl Records for RecordLoader<'_> {
    fn load(&self, group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        let mut one = |index: &u32| self.one(group, set, *index, reading).unwrap_or_else(Load::Unreadable);
        wanted.iter().map(&mut one).collect()
    }
}
