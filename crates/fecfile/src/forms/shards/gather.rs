//! Finds shard files, whatever their names.

mod file;

pub(super) use file::{Position, ShardFile, read_at};

use self::file::{holds_a_shard, is_cut_header, read_header, read_meta, version_of_short};
use crate::forms::annexes::{self, Stripped};
use crate::forms::encoded::{Encoded, Load, Records};
use crate::groups::{GroupEntry, Groups};
use crate::input::{Content, Object};
use crate::leftovers::Leftovers;
use fec_base::names::show;
use fec_base::program::stages::Observed;
use fec_base::ranges::{Ranges, joined};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::meta::Meta;
use fec_core::format::outline::Outlines;
use fec_core::format::shard_file::{self, Encoding, HEADER_LEN, ShardHeader};
use fec_core::set::{Reading, Run, leaf_is_proved, shard_is_proved};
use fec_keys::sign::Signatures;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A file's claim to be a certain shard, and the positions at which it may stand in the file, the most likely first.
#[derive(Clone)]
pub(super) struct Member {
    pub file: Arc<ShardFile>,
    pub positions: Vec<Position>,
}

/// All files whose headers name the same root.
pub(super) struct ShardSet {
    /// The encoding. The length of its meta is that of the meta itself, or a header's claim while that is `None`.
    pub encoding: Encoding,
    /// The meta; `None` while no good copy was found.
    pub meta: Option<Meta>,
    /// Shards whose files have a good copy of the meta.
    pub with_meta: BTreeSet<u32>,
    /// For each shard index the files that claim it.
    pub members: Vec<Vec<Member>>,
    zeros: OnceLock<Digest>,
}

/// Shard files and other findings in the objects of an input.
#[derive(Default)]
pub(super) struct Gathered {
    /// Files by root.
    pub sets: BTreeMap<Digest, ShardSet>,
    /// Signatures in the annexes of all files.
    pub signatures: Signatures,
    pub leftovers: Leftovers,
}

impl Gathered {
    /// Adds the shards that the headers at both ends of an object claim. Returns whether a header has the right magic
    /// and checksum.
    pub(super) fn add(&mut self, object: &Object) -> bool {
        let path = &object.place;
        let (bytes, len) = match &object.content {
            Content::Bytes(bytes, len) => (bytes.clone(), *len),
            Content::NoFile => {
                self.leftovers.foreign.push(path.clone());
                return false;
            }
            Content::Unreadable(e) => {
                self.leftovers.unreadable(path, e);
                return false;
            }
        };
        let bare = annexes::stripped_by_headers(bytes.as_ref(), len).unwrap_or_else(|_| Stripped::bare(len));
        self.signatures.absorb(bare.signatures);
        let mut file = ShardFile::new(path.clone(), bytes, (bare.len, len));
        file.has_outlines = bare.has_outlines;
        let file = Arc::new(file);
        let Some(headers) = self.headers(&file) else { return false };
        let mut checks = false;
        for (end, found) in [("head", headers[0]), ("tail", headers[1])] {
            let Some(bytes) = found else { continue };
            checks |= shard_file::header_checks(&bytes);
            let is_tail = end == "tail";
            let claimed = ShardHeader::parse(&bytes).and_then(|header| self.claim(&file, &header, is_tail));
            if let Err(error) = claimed {
                self.leftovers.reject(|| format!("{} ({end})", show(path)), error);
            }
        }
        checks
    }

    /// The headers at both ends of a file; `None` if the file is none of ours, which the leftovers then tell.
    fn headers(&mut self, file: &ShardFile) -> Option<[Option<[u8; HEADER_LEN]>; 2]> {
        let path = &file.place;
        let mut is_read = true;
        // An unreadable header must not cost the shards that the other header leads to.
        let headers = [0, i128::from(file.len) - HEADER_LEN as i128].map(|at| {
            read_header(file, at).unwrap_or_else(|e| {
                self.leftovers.unreadable(path, &e);
                is_read = false;
                None
            })
        });
        let short = version_of_short(file);
        let is_cut = short.is_none() && is_cut_header(file);
        if let Some(error) = short {
            self.leftovers.reject(|| show(path), error);
        }
        if headers.iter().any(Option::is_some) || !is_read {
            return Some(headers);
        }
        match is_cut {
            true => self.leftovers.reject(|| show(path), FormatError::Damaged("a header that is cut off")),
            false => self.leftovers.foreign.push(path.clone()),
        }
        None
    }

    /// Adds the shard that a header claims, at each position at which it may stand in the file.
    ///
    /// # Errors
    /// A broken rule of the meta, or a file that holds no whole shard.
    fn claim(
        &mut self,
        file: &Arc<ShardFile>,
        header: &ShardHeader,
        is_tail: bool,
    ) -> Result<(), FormatError> {
        self.leftovers.found_version_1();
        // If bytes were lost or gained, both ends give possible positions, whichever header is left.
        let layout = header.encoding.layout();
        let bases = [0, i128::from(file.len) - i128::from(layout.file_len)];
        let mut positions = bases.map(|base| Position { base, layout }).to_vec();
        let meta = read_meta(file, &header.encoding, &positions)?;
        if is_tail {
            positions.reverse();
        }
        positions.retain(|position| holds_a_shard(file, position));
        let has_position = !positions.is_empty();
        let set = self.set_of(header);
        if let Some(meta) = meta {
            // The root binds the meta, and with it the length that this header states.
            set.encoding = header.encoding;
            set.meta.get_or_insert(meta);
            set.with_meta.insert(header.index);
        }
        positions.into_iter().for_each(|position| set.place(file, header.index, position));
        let none = FormatError::Damaged("the length of a file without one whole shard");
        if has_position { Ok(()) } else { Err(none) }
    }

    /// Forgets roots that have headers alone, and notes whether the wanted root or others are among them.
    pub(super) fn drop_empty(&mut self, wanted: Option<Digest>) {
        let leftovers = &mut self.leftovers;
        self.sets.retain(|root, set| {
            let is_empty = !set.has_files();
            match wanted.filter(|_| is_empty) {
                Some(wanted) if wanted == *root => leftovers.found_wanted = true,
                Some(_) => leftovers.other_root(root),
                None => {}
            }
            !is_empty
        });
    }

    /// The files of a header's root.
    fn set_of(&mut self, header: &ShardHeader) -> &mut ShardSet {
        self.sets.entry(header.encoding.root).or_insert_with(|| {
            let shape = header.encoding.geometry.shape();
            let n = shape.code.n();
            // The hash of no bytes proves the length 0, whatever the header says.
            let is_empty = shape.hash.digest(b"") == header.encoding.meta_hash;
            let meta_len = if is_empty { 0 } else { header.encoding.meta_len };
            ShardSet {
                encoding: Encoding { meta_len, ..header.encoding },
                meta: is_empty.then(Meta::default),
                with_meta: BTreeSet::new(),
                members: vec![Vec::new(); n],
                zeros: OnceLock::new(),
            }
        })
    }
}

impl Member {
    /// Sets whose proof may be stored, in order.
    pub(super) fn present(&self, sets: u32) -> Vec<Range<u32>> {
        let in_copies = |position: &Position| {
            let layout = position.layout;
            position.proofs(0).into_iter().flat_map(move |at| self.file.proved_sets(at, &layout, sets))
        };
        joined(self.positions.iter().flat_map(in_copies).collect())
    }

    /// The readable, distinct copies of the proof of `set`, from all positions; at most `most` of them.
    fn proofs(&self, set: u32, most: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut error = None;
        let copies =
            self.positions.iter().flat_map(|from| from.proofs(set).map(|at| (at, from.layout.proof_len)));
        for (at, len) in copies {
            let mut proof = vec![0u8; len as usize];
            match read_at(&self.file, at, &mut proof) {
                Ok(Some(())) if !out.contains(&proof) => out.push(proof),
                Ok(_) => {}
                Err(e) => error = Some(e),
            }
            if out.len() == most {
                break;
            }
        }
        // A single copy suffices, so errors of others do not matter.
        error.filter(|_| out.is_empty()).map_or(Ok(out), Err)
    }

    /// Loads the shard of `set` into its slot, from any position at which it is intact.
    fn load(&self, of: &ShardSet, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load> {
        // The first copy is nearly always right, so the others are read only if needed.
        let first = self.proofs(set, 1)?;
        let state = self.load_by(&first, of, set, index, reading)?;
        if matches!(state, Load::Intact) {
            return Ok(state);
        }
        let all = self.proofs(set, usize::MAX)?;
        if all.len() == first.len() { Ok(state) } else { self.load_by(&all, of, set, index, reading) }
    }

    /// Loads the shard of `set` with these copies of its proof.
    fn load_by(
        &self,
        proofs: &[Vec<u8>],
        of: &ShardSet,
        set: u32,
        index: u32,
        reading: &mut Reading<'_>,
    ) -> io::Result<Load> {
        let mut state = Load::Missing;
        for position in &self.positions {
            let at = position.shard(set);
            if self.file.is_hole(at, position.layout.shard_len) && !of.zeros_are_proved(set, index, proofs) {
                state = Load::Damaged;
                continue;
            }
            if read_at(&self.file, at, reading.slot(index))?.is_none() {
                continue;
            }
            if reading.check(index, proofs, Run { observer: &Observed, ..Run::default() }) {
                return Ok(Load::Intact);
            }
            state = Load::Damaged;
        }
        Ok(state)
    }

    /// Bytes of the shard of `set` by its leaves, from a position at which its outline proves them.
    fn load_part(&self, of: &ShardSet, set: u32, index: u32, bytes: &Range<usize>) -> Option<Vec<u8>> {
        let Encoding { geometry, tree, .. } = &of.encoding;
        let outlines = Outlines::new(geometry.shape()).filter(|_| self.file.has_outlines)?;
        let (leaves, around) = outlines.around(bytes);
        let proofs = self.proofs(set, usize::MAX).ok()?;
        let read = |at: i128, len: usize| {
            let mut bytes = vec![0; len];
            matches!(read_at(&self.file, at, &mut bytes), Ok(Some(()))).then_some(bytes)
        };
        self.positions.iter().find_map(|position| {
            let outline = read(position.outline(&outlines, set), outlines.outline_len())?;
            let found = read(position.shard(set) + around.start as i128, around.len())?;
            let is_proved = |proof: &Vec<u8>| {
                let (of, at) = ((geometry, tree), (set, index));
                outlines.prove(of, at, (&outline, proof), leaves.clone(), &found)
            };
            let is_proved = proofs.iter().any(is_proved);
            is_proved.then(|| found[bytes.start - around.start..bytes.end - around.start].to_vec())
        })
    }
}

impl ShardSet {
    /// Adds a file's claim to be shard `index` at a position.
    fn place(&mut self, file: &Arc<ShardFile>, index: u32, position: Position) {
        let claims = &mut self.members[index as usize];
        match claims.iter_mut().find(|m| Arc::ptr_eq(&m.file, file)) {
            Some(member) if member.positions.contains(&position) => {}
            Some(member) => member.positions.push(position),
            None => claims.push(Member { file: file.clone(), positions: vec![position] }),
        }
    }

    /// The encoding as this file should state it. If no meta is proved, nothing tells its length better than the file.
    pub(super) fn encoding_of(&self, member: &Member) -> Encoding {
        let claimed = member.positions.first().filter(|_| self.meta.is_none());
        let meta_len = claimed.map_or(self.encoding.meta_len, |position| position.layout.meta_len as u32);
        Encoding { meta_len, ..self.encoding }
    }

    /// Tells whether any file claims any shard.
    fn has_files(&self) -> bool {
        self.members.iter().any(|members| !members.is_empty())
    }

    /// Number of shards whose files hold the seal; `None` if the payload is not sealed, or its seal is not in its meta.
    pub(super) fn seal_places(&self) -> Option<u32> {
        let is_sealed = self.encoding.geometry.shape().is_sealed();
        let has_seal = self.meta.as_ref().is_none_or(|meta| meta.seal.is_some());
        (is_sealed && has_seal).then_some(self.with_meta.len() as u32)
    }

    /// Tells whether the payload is sealed and its seal is lost.
    pub(super) fn is_seal_lost(&self) -> bool {
        self.seal_places() == Some(0)
    }

    /// The digest of a shard of zeros.
    pub(super) fn zeros(&self) -> &Digest {
        let shape = self.encoding.geometry.shape();
        self.zeros.get_or_init(|| shape.hash.digest(&vec![0; shape.shard_len]))
    }

    /// Tells whether any of these proofs proves a shard of zeros.
    fn zeros_are_proved(&self, set: u32, index: u32, proofs: &[Vec<u8>]) -> bool {
        let Encoding { geometry, tree, .. } = &self.encoding;
        let leaf = geometry.shape().hash.leaf(self.zeros(), set, index);
        proofs.iter().any(|proof| leaf_is_proved(geometry, tree, set, index, &leaf, proof))
    }

    /// Tells whether fewer than k shards have a file.
    pub(super) fn has_too_few_files(&self) -> bool {
        let there = self.members.iter().filter(|members| !members.is_empty()).count();
        there < self.encoding.geometry.shape().code.k()
    }

    /// The first file that claims any shard, and that shard's index.
    pub(super) fn only_member(&self) -> Option<(u32, &Member)> {
        (0..).zip(&self.members).find_map(|(index, members)| members.first().map(|m| (index, m)))
    }

    /// Places of proved shards in the only gathered file, and whether they suffice to restore all sets.
    pub(super) fn proved(&self) -> io::Result<(Ranges, bool)> {
        let group = self.encoding.geometry;
        let shape = group.shape();
        let mut body = vec![0; shape.shard_len];
        let mut places = Ranges::default();
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, members) in (0..).zip(&self.members) {
            let present = members.iter().flat_map(|member| member.present(shape.sets)).collect();
            for set in joined(present).into_iter().flatten() {
                let mut is_proved = false;
                for member in members {
                    let proofs = member.proofs(set, usize::MAX)?;
                    for position in &member.positions {
                        let at = position.shard(set);
                        let tree = &self.encoding.tree;
                        if read_at(&member.file, at, &mut body)?.is_some()
                            && proofs.iter().any(|p| shard_is_proved(&group, tree, set, index, &body, p))
                        {
                            places.add(at as u64, at as u64 + position.layout.shard_len);
                            is_proved = true;
                        }
                    }
                }
                if is_proved {
                    *counts.entry(set).or_default() += 1;
                }
            }
        }
        let is_whole = counts.len() == shape.sets as usize && counts.values().all(|c| *c >= shape.code.k());
        Ok((places, is_whole))
    }

    /// The files as an encoding to restore from.
    pub(super) fn encoded(&self) -> Encoded<'_> {
        let geometry = self.encoding.geometry;
        Encoded {
            root: Some(self.encoding.root),
            groups: Groups::new(geometry, geometry, vec![self.encoding.tree]),
            payload_len: Some(geometry.payload_len()),
            meta: self.meta.as_ref(),
            records: Box::new(ShardLoader { set: self }),
        }
    }
}

struct ShardLoader<'a> {
    set: &'a ShardSet,
}

impl ShardLoader<'_> {
    /// Loads a shard from any file that has it intact.
    fn one(&self, set: u32, index: u32, reading: &mut Reading<'_>) -> Load {
        let mut state = Load::Missing;
        let mut error = None;
        for member in &self.set.members[index as usize] {
            match member.load(self.set, set, index, reading) {
                Ok(Load::Intact) => return Load::Intact,
                Ok(Load::Damaged) => state = Load::Damaged,
                Ok(_) => {}
                Err(e) => error = Some(e),
            }
        }
        // An unreadable copy matters only if no other copy is intact.
        error.map_or(state, Load::Unreadable)
    }
}

impl Records for ShardLoader<'_> {
    fn present(&self, _group: u32, sets: u32) -> Vec<Range<u32>> {
        let members = self.set.members.iter().flatten();
        joined(members.flat_map(|member| member.present(sets)).collect())
    }

    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        wanted.iter().map(|index| self.one(set, *index, reading)).collect()
    }

    fn load_part(&self, _group: &GroupEntry, set: u32, index: u32, bytes: &Range<usize>) -> Option<Vec<u8>> {
        let members = &self.set.members[index as usize];
        members.iter().find_map(|member| member.load_part(self.set, set, index, bytes))
    }
}

#[cfg(test)]
mod tests;
