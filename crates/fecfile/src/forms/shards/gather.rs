//! Finds shard files, wherever they are and whatever they are called.

use crate::forms::encoded::{Encoded, GroupEntry, Load, Records};
use crate::input::{Content, Object};
use crate::io::ReadAt;
use crate::leftovers::Leftovers;
use crate::names::show;
use crate::ranges::Ranges;
use crate::stages::{self, Observed, Stage};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::shard_file::{self, Encoding, HEADER_LEN, Layout, ShardHeader};
use fec_core::set::{Reading, Run, shard_is_proved};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A shard file that is open.
pub(super) struct ShardFile {
    pub place: PathBuf,
    pub bytes: Arc<dyn ReadAt>,
    pub len: u64,
}

/// One file's claim to be a certain shard: `bases` are the positions at which its layout may start,
/// the most likely first. They differ from 0 when bytes were lost or gained.
#[derive(Clone)]
pub(super) struct Member {
    pub file: Arc<ShardFile>,
    pub bases: Vec<i128>,
}

/// All files whose headers name one root.
pub(super) struct ShardSet {
    pub encoding: Encoding,
    /// For each shard index the files that claim it.
    pub members: Vec<Vec<Member>>,
}

/// What the objects of an input held.
#[derive(Default)]
pub(super) struct Gathered {
    /// By root.
    pub sets: BTreeMap<Digest, ShardSet>,
    pub leftovers: Leftovers,
}

/// Reads exactly the bytes at `at`; `None` when they are not all in the file.
pub(super) fn read_at(file: &ShardFile, at: i128, out: &mut [u8]) -> io::Result<Option<()>> {
    let _stage = stages::enter(Stage::Read, out.len() as u64);
    let inside = at >= 0 && at + out.len() as i128 <= i128::from(file.len);
    if !inside {
        return Ok(None);
    }
    match file.bytes.read_exact_at(at as u64, out) {
        Ok(()) => Ok(Some(())),
        // The file became shorter since it was opened: the shard is an erasure.
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

impl Gathered {
    /// Adds what the headers at both ends of an object say. Returns whether there is one whose magic and checksum are
    /// right.
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
        let file = Arc::new(ShardFile { place: path.clone(), bytes, len });
        let tail_at = i128::from(len) - HEADER_LEN as i128;
        let mut is_read = true;
        // A header in a bad sector must not cost what the other one leads to.
        let mut header_at = |at| {
            read_header(&file, at).unwrap_or_else(|e| {
                self.leftovers.unreadable(path, &e);
                is_read = false;
                None
            })
        };
        let (head, tail) = (header_at(0), header_at(tail_at));
        if head.is_none() && tail.is_none() && is_read {
            self.leftovers.foreign.push(path.clone());
            return false;
        }
        let mut checks = false;
        for (end, found) in [("head", head), ("tail", tail)] {
            let Some(bytes) = found else { continue };
            checks |= shard_file::header_checks(&bytes);
            let header = match ShardHeader::parse(&bytes) {
                Ok(header) => header,
                Err(error) => {
                    self.leftovers.reject(|| format!("{} ({end})", show(path)), error);
                    continue;
                }
            };
            // Where bytes were lost or gained, both ends give positions, whichever header is left.
            let layout = header.encoding.layout();
            let mut bases = vec![0, i128::from(len) - i128::from(layout.file_len)];
            if end == "tail" {
                bases.reverse();
            }
            bases.retain(|base| holds_a_shard(&file, &layout, *base));
            if bases.is_empty() {
                let error = FormatError::Damaged("the length of a file without one whole shard");
                self.leftovers.reject(|| format!("{} ({end})", show(path)), error);
            }
            bases.into_iter().for_each(|base| self.place(&file, &header, base));
        }
        checks
    }

    fn place(&mut self, file: &Arc<ShardFile>, header: &ShardHeader, base: i128) {
        let index = header.index as usize;
        let set = self.sets.entry(header.encoding.root).or_insert_with(|| {
            let n = header.encoding.geometry.shape().code.n();
            ShardSet { encoding: header.encoding.clone(), members: vec![Vec::new(); n] }
        });
        let claims = &mut set.members[index];
        match claims.iter_mut().find(|m| Arc::ptr_eq(&m.file, file)) {
            Some(member) if member.bases.contains(&base) => {}
            Some(member) => member.bases.push(base),
            None => claims.push(Member { file: file.clone(), bases: vec![base] }),
        }
    }
}

/// Whether at least one shard lies inside the file when its layout starts at `base`. A header that
/// states more than is there must not decide how much memory is taken.
fn holds_a_shard(file: &ShardFile, layout: &Layout, base: i128) -> bool {
    let body = base + i128::from(layout.body);
    let last = body + i128::from(layout.body_len - layout.shard_len);
    let fits = |at: i128| at >= 0 && at + i128::from(layout.shard_len) <= i128::from(file.len);
    fits(body) || fits(last)
}

/// The bytes of one header copy, whatever they say; `None` if its magic is not there.
fn read_header(file: &ShardFile, at: i128) -> io::Result<Option<[u8; HEADER_LEN]>> {
    let mut bytes = [0u8; HEADER_LEN];
    Ok(read_at(file, at, &mut bytes)?.filter(|()| shard_file::has_magic(&bytes)).map(|()| bytes))
}

impl Member {
    /// All copies of the proof of `set` that can be read, from each base.
    fn proofs(&self, layout: &Layout, set: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut out: Vec<Vec<u8>> = Vec::new();
        let mut error = None;
        for base in &self.bases {
            for at in layout.proofs(set) {
                let mut proof = vec![0u8; layout.proof_len as usize];
                match read_at(&self.file, base + i128::from(at), &mut proof) {
                    Ok(Some(())) if !out.contains(&proof) => out.push(proof),
                    Ok(_) => {}
                    Err(e) => error = Some(e),
                }
            }
        }
        // One copy is enough.
        error.filter(|_| out.is_empty()).map_or(Ok(out), Err)
    }

    /// Loads the shard of `set` into its slot, from whichever base it is intact.
    pub(super) fn load(
        &self,
        layout: &Layout,
        set: u32,
        index: u32,
        reading: &mut Reading<'_>,
    ) -> io::Result<Load> {
        let proofs = self.proofs(layout, set)?;
        let mut state = Load::Missing;
        for base in &self.bases {
            let at = base + i128::from(layout.shard(set));
            if read_at(&self.file, at, reading.slot(index))?.is_none() {
                continue;
            }
            if reading.check(index, &proofs, Run { observer: &Observed, ..Run::default() }) {
                return Ok(Load::Intact);
            }
            state = Load::Damaged;
        }
        Ok(state)
    }
}

impl ShardSet {
    /// The first file that claims any shard, and which.
    pub(super) fn only_member(&self) -> Option<(u32, &Member)> {
        (0..).zip(&self.members).find_map(|(index, members)| members.first().map(|m| (index, m)))
    }

    /// Where proved shards stand in the only file that was gathered, and whether they suffice to restore all sets.
    pub(super) fn proved(&self) -> io::Result<(Ranges, bool)> {
        let (layout, group) = (self.encoding.layout(), self.encoding.group());
        let shape = group.shape();
        let mut body = vec![0; shape.shard_len];
        let mut places = Ranges::default();
        let mut counts = vec![0; shape.sets as usize];
        for (index, members) in (0..).zip(&self.members) {
            for (set, count) in (0..shape.sets).zip(&mut counts) {
                let mut is_proved = false;
                for member in members {
                    let proofs = member.proofs(&layout, set)?;
                    for base in &member.bases {
                        let at = base + i128::from(layout.shard(set));
                        let tree = &self.encoding.tree;
                        if read_at(&member.file, at, &mut body)?.is_some()
                            && proofs.iter().any(|p| shard_is_proved(&group, tree, set, index, &body, p))
                        {
                            places.add(at as u64, at as u64 + layout.shard_len);
                            is_proved = true;
                        }
                    }
                }
                *count += usize::from(is_proved);
            }
        }
        Ok((places, counts.iter().all(|count| *count >= shape.code.k())))
    }

    /// The set as an encoding to restore from.
    pub(super) fn encoded(&self) -> Encoded<'_> {
        let geometry = self.encoding.group();
        Encoded {
            root: Some(self.encoding.root),
            groups: vec![GroupEntry { geometry, root: self.encoding.tree, start: 0 }],
            payload_len: Some(geometry.payload_len()),
            name: self.encoding.meta.name.clone(),
            records: Box::new(ShardLoader { set: self, layout: self.encoding.layout() }),
        }
    }
}

struct ShardLoader<'a> {
    set: &'a ShardSet,
    layout: Layout,
}

impl ShardLoader<'_> {
    /// Loads one shard from whichever file has it intact.
    fn one(&self, set: u32, index: u32, reading: &mut Reading<'_>) -> Load {
        let mut state = Load::Missing;
        let mut error = None;
        for member in &self.set.members[index as usize] {
            match member.load(&self.layout, set, index, reading) {
                Ok(Load::Intact) => return Load::Intact,
                Ok(Load::Damaged) => state = Load::Damaged,
                Ok(_) => {}
                Err(e) => error = Some(e),
            }
        }
        // A copy that cannot be read matters only if no other is intact.
        error.map_or(state, Load::Unreadable)
    }
}

impl Records for ShardLoader<'_> {
    fn load(&self, _group: u32, set: u32, wanted: &[u32], reading: &mut Reading<'_>) -> Vec<Load> {
        wanted.iter().map(|index| self.one(set, *index, reading)).collect()
    }
}
