//! Sidecars as an attacker with write access changes them: parts are replaced, and checksums, digests and E are
//! computed anew.
#![allow(dead_code)] // each test uses only a part

use fec_core::digest::{Digest, HashKind};
use fec_core::format::sidecar::catalog::{Catalog, shortened};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::piece::{Generation, HEADER_LEN, Layout, Piece, piece_head_len};
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::Tree;
use fec_core::params::GroupGeometry;
use fec_core::set::{EncodedSet, Run, SetEncoder};

/// A sidecar of one generation, whose metadata has one set.
pub(crate) struct Recoded {
    bytes: Vec<u8>,
    of: Generation,
    extent: Extent,
    /// The catalog and the sections behind it.
    pub(crate) metadata: Vec<u8>,
}

impl Recoded {
    pub(crate) fn of(bytes: &[u8]) -> Recoded {
        let len = piece_head_len(bytes.first_chunk().expect("a header"));
        assert!(len > HEADER_LEN);
        let of = Piece::parse(&bytes[..len]).expect("a piece").of;
        assert_eq!(of.geometry.shape().sets, 1);
        let (pieces, piece_len) = (of.pieces() as u32, of.piece_len() as u32);
        let extent = Extent { start: of.layout.start, blocks: of.layout.blocks, pieces, piece_len };
        let mut metadata = Vec::new();
        for index in 0..of.geometry.shape().code.k() as u32 {
            let at = extent.piece(of.ordinal(0, index), of.layout.block.into()) as usize;
            metadata.extend_from_slice(&bytes[at + of.head_len()..at + piece_len as usize]);
        }
        metadata.truncate(of.geometry.payload_len() as usize);
        Recoded { bytes: bytes.to_vec(), of, extent, metadata }
    }

    fn catalog_len(&self) -> usize {
        self.of.layout.catalog_len as usize
    }

    /// The metadata's root, which docs/FORMAT.md calls E.
    pub(crate) fn metadata_root(&self) -> Digest {
        self.of.root
    }

    pub(crate) fn catalog(&self) -> Catalog {
        Catalog::parse(&self.metadata[..self.catalog_len()]).expect("a catalog").0
    }

    /// Changes times and permissions of each entry, by its path.
    pub(crate) fn restamped(mut self, change: impl Fn(&[u8], &mut Stat)) -> Recoded {
        let catalog = self.catalog();
        let behind = self.metadata.split_off(self.catalog_len());
        let mut stats =
            Stats::parse(&behind, &catalog.entries, catalog.block).expect("times and permissions");
        catalog.entries.iter().zip(&mut stats.entries).for_each(|(entry, stat)| change(&entry.path, stat));
        self.metadata.extend_from_slice(&stats.to_bytes());
        self
    }

    /// Offset of the digest of shard `nth` of the first group; positions come first.
    fn digest_at(&self, nth: u64) -> usize {
        let catalog = self.catalog();
        self.catalog_len() - 8 * catalog.anchors() as usize - 16 * (catalog.digests() - nth) as usize
    }

    /// Replaces the digest of a position.
    pub(crate) fn with_digest(mut self, position: u64, digest: [u8; 16]) -> Recoded {
        let at = self.digest_at(position);
        self.metadata[at..at + 16].copy_from_slice(&digest);
        self
    }

    /// Flips a bit of every recovery shard and recomputes its digest.
    pub(crate) fn misremembered(mut self) -> Recoded {
        let block = self.of.layout.block as usize;
        for nth in 0..self.extent.blocks {
            let at = self.extent.block(nth, block as u64).0 as usize;
            self.bytes[at + 7] ^= 1;
            let digest = shortened(&HashKind::Blake3.digest(&self.bytes[at..at + block]));
            self = self.with_recovery_digest(nth, digest);
        }
        self
    }

    fn with_recovery_digest(self, shard: u64, digest: [u8; 16]) -> Recoded {
        let positions = self.catalog().positions();
        self.with_digest(positions + shard, digest)
    }

    /// Replaces bytes that occur once in the metadata.
    pub(crate) fn with(mut self, old: &[u8], new: &[u8]) -> Recoded {
        let at = self.metadata.windows(old.len()).position(|window| window == old).expect("they are there");
        self.metadata[at..at + new.len()].copy_from_slice(new);
        self
    }

    /// The changed sidecar.
    pub(crate) fn build(mut self) -> Vec<u8> {
        let pieces = self.pieces(self.of.layout);
        for (nth, piece) in (0..).zip(pieces) {
            let at = self.extent.piece(nth, self.of.layout.block.into()) as usize;
            self.bytes[at..at + piece.len()].copy_from_slice(&piece);
        }
        self.bytes
    }

    /// The metadata as a later generation: its pieces one behind the other.
    pub(crate) fn as_later(&self) -> Vec<u8> {
        self.pieces(Layout { generation: 2, before: self.of.root, ..self.of.layout }).concat()
    }

    fn pieces(&self, layout: Layout) -> Vec<Vec<u8>> {
        pieces(&self.metadata, self.of.geometry, layout).1
    }
}

/// The pieces of metadata in one set, in order.
pub(crate) fn pieces(metadata: &[u8], geometry: GroupGeometry, layout: Layout) -> (Generation, Vec<Vec<u8>>) {
    let shape = *geometry.shape();
    assert_eq!(shape.sets, 1);
    let mut padded = metadata.to_vec();
    padded.resize(shape.capacity() as usize, 0);
    let rows: Vec<&[u8]> = padded.chunks(shape.shard_len).collect();
    let mut encoded = EncodedSet::new(&shape);
    let encoder = SetEncoder::new(shape.code, shape.hash, Backend::best());
    let root = encoder.encode(0, &rows, &mut encoded, Run::default());
    let mut tree = Tree::new();
    tree.leaves_mut().push(root);
    let of = Generation::new(geometry, layout, &tree.build(shape.hash));
    let piece = |index: usize| {
        let mut bytes = vec![0; of.piece_len() as usize];
        let (head, body) = bytes.split_at_mut(of.head_len());
        let piece = Piece { set: 0, index: index as u32, of };
        encoded.write_path(index, piece.proof_mut(head));
        piece.seal(head);
        let recovered = |nth: usize| encoded.recovery().row(nth);
        body.copy_from_slice(index.checked_sub(shape.code.k()).map_or_else(|| rows[index], recovered));
        bytes
    };
    (of, (0..shape.code.n()).map(piece).collect())
}
