//! Sidecars of an attacker who writes any content, made with the project's own writers.

use super::recode::pieces;
use fec_core::block::Code;
use fec_core::digest::{Digest, HashKind};
use fec_core::format::sidecar::catalog::{Catalog, shortened};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::group::{GroupCode, SidecarGroup};
use fec_core::format::sidecar::piece::{Generation, Layout};
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use fec_core::params::{Form, GroupGeometry};

/// The content of a forged sidecar.
pub(super) struct Forged {
    pub(super) entries: Vec<Entry>,
    /// The stat of each entry. Missing ones are zeros.
    pub(super) stats: Vec<Stat>,
    pub(super) base: Vec<u8>,
    pub(super) before: Digest,
    pub(super) start: u64,
    pub(super) block: u32,
    /// Bytes of positions, each at most a block.
    pub(super) positions: Vec<Vec<u8>>,
    /// The number of further positions without content.
    pub(super) nothing: usize,
    pub(super) recovery: usize,
    /// Changes the catalog before it is signed.
    pub(super) tweak: fn(&mut Vec<u8>),
}

/// The geometry of forged metadata: a single set, of which any shard is enough.
pub(super) fn geometry(len: u64) -> GroupGeometry {
    let code = Code::new(1, 2).expect("a code");
    GroupGeometry::whole(Form::Sidecar, HashKind::Blake3, code, 64 << 20, len).expect("it is possible")
}

impl Forged {
    pub(super) fn new() -> Forged {
        Forged {
            entries: Vec::new(),
            stats: Vec::new(),
            base: Vec::new(),
            before: [0; 32],
            start: 0,
            block: 1024,
            positions: Vec::new(),
            nothing: 0,
            recovery: 0,
            tweak: |_| {},
        }
    }

    /// Adds an entry. Entries have to be in order.
    pub(super) fn with(mut self, path: &[u8], kind: EntryKind) -> Forged {
        self.entries.push(Entry { path: path.into(), kind });
        self
    }

    /// Adds a file of at most a block.
    pub(super) fn file(mut self, path: &[u8], bytes: &[u8]) -> Forged {
        let tail = if bytes.is_empty() { 0 } else { self.positions.len() as u64 * u64::from(self.block) };
        if !bytes.is_empty() {
            self.positions.push(bytes.to_vec());
        }
        let file = FileEntry {
            size: bytes.len() as u64,
            blake3: HashKind::Blake3.digest(bytes),
            sha256: None,
            is_executable: false,
            runs: Vec::new(),
            tail,
        };
        self.with(path, EntryKind::File(file))
    }

    /// The bytes of the file, and E.
    pub(super) fn build(&self) -> (Vec<u8>, Digest) {
        let block = self.block as usize;
        let mut originals: Vec<Vec<u8>> = self.positions.clone();
        originals.resize(originals.len() + self.nothing, Vec::new());
        if originals.is_empty() {
            originals.push(Vec::new());
        }
        let k = originals.len();
        let m = if self.recovery == 0 { k } else { self.recovery };
        let is_nothing: Vec<bool> = originals.iter().map(Vec::is_empty).collect();
        originals.iter_mut().for_each(|original| original.resize(block, 0));
        let recovery = fec_core::encode(k, m, &originals).expect("they can be coded");
        let short = |bytes: &Vec<u8>| shortened(&HashKind::Blake3.digest(bytes));
        let of_originals =
            originals.iter().zip(is_nothing).map(|(bytes, is)| if is { [0; 16] } else { short(bytes) });
        let digests: Vec<[u8; 16]> = of_originals.chain(recovery.iter().map(short)).collect();
        let code = GroupCode::Small(Code::new(k, m).expect("a code"));
        let group = SidecarGroup::new(code, 1, 1, (0, 0));
        let mut extent = Extent { start: self.start, blocks: m as u64, pieces: 3, piece_len: 0 };
        let mut catalog = Catalog {
            block: self.block,
            extents: vec![extent],
            groups: vec![group],
            entries: self.entries.clone(),
        };
        let mut stats = self.stats.clone();
        stats.resize(self.entries.len(), Stat::default());
        let stats = Stats { entries: stats, base: self.base.clone(), ..Stats::default() }.to_bytes();
        let len = catalog.head_bytes().len() + 16 * digests.len() + stats.len();
        let geometry = geometry(len as u64);
        extent.piece_len = (Generation::head_len_for(&geometry) + geometry.shape().shard_len) as u32;
        catalog.extents = vec![extent];
        let mut bytes = catalog.head_bytes();
        bytes.extend_from_slice(digests.as_flattened());
        (self.tweak)(&mut bytes);
        let layout = Layout {
            before: self.before,
            generation: if self.before == [0; 32] { 1 } else { 2 },
            start: self.start,
            blocks: extent.blocks,
            catalog_len: bytes.len() as u64,
            block: self.block,
        };
        bytes.extend_from_slice(&stats);
        let (of, pieces) = pieces(&bytes, geometry, layout);
        let mut out = vec![0; extent.len(block as u64).expect("it is possible") as usize];
        let mut put =
            |at: u64, bytes: &[u8]| out[(at - self.start) as usize..][..bytes.len()].copy_from_slice(bytes);
        (0..).zip(&pieces).for_each(|(nth, piece)| put(extent.piece(nth, block as u64), piece));
        (0..).zip(&recovery).for_each(|(nth, shard)| put(extent.block(nth, block as u64).0, shard));
        (out, of.root)
    }
}
