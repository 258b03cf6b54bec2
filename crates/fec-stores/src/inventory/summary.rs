//! The facts of an encoding, by its manifest and by the lists of places.

use super::objects::{Held, Objects};
use crate::places::Places;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_core::format::manifest::Manifest;
use fec_core::format::shard_file::Encoding;
use std::collections::{BTreeMap, BTreeSet};

/// Most segments whose missing shards are named.
const NAMED: usize = 16;
/// Most places named that were not asked.
const ELSEWHERE: usize = 4;

/// The facts of an encoding. Its root proves those of the manifest; which shards are there is the word of the lists.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The recorded name; `None` if there is none, or if it is sealed.
    pub name: Option<Vec<u8>>,
    /// The payload is sealed: its name too.
    pub is_sealed: bool,
    /// Hash of the root.
    pub hash: HashKind,
    /// k and m of all segments.
    pub code: Code,
    /// Bytes of the payload; of a sealed one, of its ciphertext.
    pub payload_len: u64,
    /// Number of segments.
    pub segments: usize,
    /// Shards of all segments together that no list has in the right length.
    pub missing: u64,
    /// The first segments that lack shards.
    pub lacking: Vec<Lack>,
    /// Objects of another length than a shard of the encoding, or than its manifest, has.
    pub damaged: u64,
    /// Shards beyond those needed, of the segment that has the fewest; negative if shards are lacking.
    pub margin: i64,
    /// Shards that each place lists, of all segments together.
    pub held: BTreeMap<usize, u64>,
    /// Places that the manifest names, and that have no copy of it.
    pub lack_manifest: Vec<usize>,
    /// Places that the manifest names and that were not asked: their number, and the first of them.
    pub elsewhere: (usize, Vec<String>),
}

/// Shards that a segment lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Number of the segment.
    pub segment: usize,
    /// Root of the segment.
    pub root: Digest,
    /// Shards that no list has in the right length.
    pub missing: Vec<u32>,
}

impl Summary {
    pub(super) fn new(places: &Places, objects: &Objects, root: &Digest, manifest: &Manifest) -> Summary {
        let mut summary = Summary {
            name: manifest.meta.name.clone(),
            is_sealed: manifest.segments.iter().any(|segment| segment.geometry.shape().is_sealed()),
            hash: manifest.hash,
            code: manifest.code,
            payload_len: manifest.payload_len(),
            segments: manifest.segments.len(),
            missing: 0,
            lacking: Vec::new(),
            damaged: 0,
            margin: i64::MAX,
            held: (0..places.len()).map(|place| (place, 0)).collect(),
            lack_manifest: Vec::new(),
            elsewhere: (0, Vec::new()),
        };
        summary.place(places, objects, root, manifest);
        for (number, segment) in manifest.segments.iter().enumerate() {
            summary.segment(objects, number, segment);
        }
        summary
    }

    /// Tells whether all shards are listed, and the manifest at all places that it names.
    pub fn is_whole(&self) -> bool {
        self.missing == 0 && self.damaged == 0 && self.lack_manifest.is_empty()
    }

    /// Takes the copies of the manifest.
    fn place(&mut self, places: &Places, objects: &Objects, root: &Digest, manifest: &Manifest) {
        let len = manifest.to_bytes().len() as u64;
        let copies = objects.of.get(root).into_iter().flatten().filter(|object| object.shard.is_none());
        let (whole, other): (Vec<&Held>, Vec<&Held>) =
            copies.partition(|copy| objects.may_have(copy, |copy| copy == len));
        self.damaged += other.len() as u64;
        let names: BTreeMap<String, usize> =
            places.iter().enumerate().map(|(nth, place)| (place.target.name(), nth)).collect();
        let has_failed = |place: &usize| objects.failed.iter().any(|(failed, _)| failed == place);
        for target in &manifest.targets {
            match names.get(&target.url) {
                Some(place) if has_failed(place) || whole.iter().any(|copy| copy.place == *place) => {}
                Some(place) => self.lack_manifest.push(*place),
                None => {
                    self.elsewhere.0 += 1;
                    if self.elsewhere.1.len() < ELSEWHERE {
                        self.elsewhere.1.push(target.url.clone());
                    }
                }
            }
        }
    }

    fn segment(&mut self, objects: &Objects, number: usize, segment: &Encoding) {
        let n = self.code.n() as u32;
        let mut there = BTreeSet::new();
        for object in objects.of.get(&segment.root).into_iter().flatten() {
            let Some(index) = object.shard.filter(|index| *index < n) else { continue };
            if objects.may_have(object, |len| segment.has_len(len)) {
                there.insert(index);
                *self.held.entry(object.place).or_default() += 1;
            } else {
                self.damaged += 1;
            }
        }
        self.margin = self.margin.min(there.len() as i64 - self.code.k() as i64);
        let missing: Vec<u32> = (0..n).filter(|index| !there.contains(index)).collect();
        self.missing += missing.len() as u64;
        if !missing.is_empty() && self.lacking.len() < NAMED {
            self.lacking.push(Lack { segment: number, root: segment.root, missing });
        }
    }
}
