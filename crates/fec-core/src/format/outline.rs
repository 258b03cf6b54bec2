//! Outlines: the values of the leaves of shards, in annexes behind a shard file (format specification, section 9.5).
//!
//! A shard's digest by BLAKE3 is the root of a tree. The chaining values of its leaves lead to the digest, which the
//! shard's path proves. Path, outline and a few leaves therefore prove the bytes in them.

use super::annex;
use super::array_at;
use crate::digest::{Digest, HashKind, blocks};
use crate::params::{GroupGeometry, Shape};
use crate::set::leaf_is_proved;
use std::ops::Range;

pub use crate::digest::blocks::LEAF;

/// The first bytes of an annex's data.
const HEAD: usize = 16;

/// The outlines of the shards in a shard file: where they stand, and what they prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlines {
    shard_len: usize,
    sets: u32,
    /// Outlines in each annex but the last.
    sets_of_annex: u32,
}

impl Outlines {
    /// The outlines of the shard files of a shape. `None` for shards without: those of SHA-256, which have no tree, and
    /// those of one leaf, whose digest is enough.
    pub fn new(shape: &Shape) -> Option<Outlines> {
        if shape.hash != HashKind::Blake3 || shape.shard_len <= LEAF {
            return None;
        }
        Some(Outlines::of(shape.shard_len, shape.sets))
    }

    /// The outlines of so many shards of this length.
    fn of(shard_len: usize, sets: u32) -> Outlines {
        let most = (annex::MAX_DATA as usize - HEAD) / (shard_len.div_ceil(LEAF) * 32);
        Outlines { shard_len, sets, sets_of_annex: most as u32 }
    }

    /// Number of leaves of a shard: at least 2.
    pub fn leaves(&self) -> usize {
        self.shard_len.div_ceil(LEAF)
    }

    /// Bytes of the outline of one shard.
    pub fn outline_len(&self) -> usize {
        self.leaves() * 32
    }

    /// The bytes of a leaf within its shard.
    pub fn leaf(&self, nth: usize) -> Range<usize> {
        nth * LEAF..self.shard_len.min((nth + 1) * LEAF)
    }

    /// The leaves that hold these bytes of a shard.
    ///
    /// # Panics
    /// If the range is empty or beyond the shard.
    pub fn leaves_of(&self, bytes: &Range<usize>) -> Range<usize> {
        assert!(bytes.start < bytes.end && bytes.end <= self.shard_len, "bytes of a shard");
        bytes.start / LEAF..bytes.end.div_ceil(LEAF)
    }

    /// The leaves that hold these bytes of a shard, and the bytes of all of them.
    ///
    /// # Panics
    /// As [`leaves_of`](Self::leaves_of).
    pub fn around(&self, bytes: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let leaves = self.leaves_of(bytes);
        let around = self.leaf(leaves.start).start..self.leaf(leaves.end - 1).end;
        (leaves, around)
    }

    /// Number of annexes.
    pub fn annexes(&self) -> u32 {
        self.sets.div_ceil(self.sets_of_annex)
    }

    /// The sets whose outlines annex `nth` holds.
    pub fn sets_of(&self, nth: u32) -> Range<u32> {
        let first = nth * self.sets_of_annex;
        first..self.sets.min(first + self.sets_of_annex)
    }

    /// Bytes of a whole annex for all but the last.
    fn full_len(&self) -> u64 {
        self.annex_len(self.sets_of_annex)
    }

    fn annex_len(&self, sets: u32) -> u64 {
        (2 * annex::HEADER_LEN + HEAD) as u64 + u64::from(sets) * self.outline_len() as u64
    }

    /// Start of annex `nth`, counted from the first annex.
    pub fn annex_at(&self, nth: u32) -> u64 {
        u64::from(nth) * self.full_len()
    }

    /// Bytes of all annexes.
    pub fn annexes_len(&self) -> u64 {
        let last = self.annexes() - 1;
        self.annex_at(last) + self.annex_len(self.sets_of(last).len() as u32)
    }

    /// Start of the outline of `set`, counted from the first annex.
    pub fn outline_at(&self, set: u32) -> u64 {
        let nth = set / self.sets_of_annex;
        let within = u64::from(set % self.sets_of_annex) * self.outline_len() as u64;
        self.annex_at(nth) + (annex::HEADER_LEN + HEAD) as u64 + within
    }

    /// The first bytes of the data of annex `nth`; the outlines follow.
    pub fn head(&self, nth: u32) -> [u8; HEAD] {
        let sets = self.sets_of(nth);
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&(LEAF as u32).to_le_bytes());
        head[4..8].copy_from_slice(&sets.start.to_le_bytes());
        head[8..12].copy_from_slice(&(sets.len() as u32).to_le_bytes());
        head
    }

    /// The digest of the shard to which an outline leads; `None` if it has the wrong length.
    pub fn digest(&self, outline: &[u8]) -> Option<Digest> {
        let (values, rest) = outline.as_chunks::<32>();
        (values.len() == self.leaves() && rest.is_empty()).then(|| blocks::root(values))
    }

    /// Tells whether `bytes` are these leaves of shard `index` of set `set` of the group with this geometry and tree of
    /// sets. The outline is believed because it leads to the shard's digest, and that along `proof` to the tree.
    ///
    /// Cost: one hash of the bytes, two node hashes for each leaf of the shard, and a few for the proof.
    pub fn prove(
        &self,
        (geometry, tree): (&GroupGeometry, &Digest),
        (set, index): (u32, u32),
        (outline, proof): (&[u8], &[u8]),
        leaves: Range<usize>,
        bytes: &[u8],
    ) -> bool {
        let Some(digest) = self.digest(outline) else { return false };
        let leaf = geometry.shape().hash.leaf(&digest, set, index);
        leaf_is_proved(geometry, tree, set, index, &leaf, proof) && self.are_leaves(outline, leaves, bytes)
    }

    /// Tells whether `bytes` are these leaves of the shard that an outline of the right length describes.
    fn are_leaves(&self, outline: &[u8], leaves: Range<usize>, bytes: &[u8]) -> bool {
        if leaves.is_empty() || leaves.end > self.leaves() {
            return false;
        }
        let (start, end) = (self.leaf(leaves.start).start, self.leaf(leaves.end - 1).end);
        let value = |nth: usize| array_at::<32>(outline, nth * 32);
        bytes.len() == end - start
            && leaves
                .zip(bytes.chunks(LEAF))
                .all(|(nth, leaf)| blocks::tail_value(leaf, (nth * LEAF) as u64) == value(nth))
    }
}

/// The annexes of the outlines of a shard file. `read` fills a buffer from an offset in its body on: the shards of all
/// sets, one after the other. The annexes have 0.2 % of the bytes of the body, and cost a hash of it. `None` if the
/// shards have no outlines.
///
/// # Errors
/// Those of `read`.
pub fn annexes<E>(
    shape: &Shape,
    mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
) -> Result<Option<Vec<u8>>, E> {
    let Some(outlines) = Outlines::new(shape) else { return Ok(None) };
    let mut leaf = vec![0; LEAF];
    let mut all = Vec::with_capacity(outlines.annexes_len() as usize);
    for nth in 0..outlines.annexes() {
        let mut data = outlines.head(nth).to_vec();
        for set in outlines.sets_of(nth) {
            let shard = u64::from(set) * outlines.shard_len as u64;
            for bytes in (0..outlines.leaves()).map(|nth| outlines.leaf(nth)) {
                let leaf = &mut leaf[..bytes.len()];
                read(shard + bytes.start as u64, leaf)?;
                data.extend_from_slice(&blocks::tail_value(leaf, bytes.start as u64));
            }
        }
        all.extend_from_slice(&annex::write(annex::OUTLINES, &data));
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Code;
    use crate::format::annex::AnnexHeader;
    use crate::gf256::kernel::Backend;
    use crate::merkle::Tree;
    use crate::params::Form;
    use crate::random::SplitMix64;
    use crate::set::{EncodedSet, Run, SetEncoder};
    use std::convert::Infallible;

    /// Shards of some sets of 3 + 2, their outlines and proofs, by index and set.
    struct Encoded {
        geometry: GroupGeometry,
        tree: Digest,
        outlines: Outlines,
        shards: Vec<Vec<Vec<u8>>>,
        values: Vec<Vec<Vec<u8>>>,
        proofs: Vec<Vec<Vec<u8>>>,
    }

    fn encoded(shard_len: usize, sets: u32) -> Encoded {
        let (code, hash) = (Code::new(3, 2).unwrap(), HashKind::Blake3);
        let bytes = (3 * shard_len) as u64 * u64::from(sets);
        let geometry = GroupGeometry::whole(Form::Shards, hash, code, 3 * shard_len as u64, bytes).unwrap();
        let shape = *geometry.shape();
        assert_eq!((shape.shard_len, shape.sets), (shard_len, sets));
        let encoder = SetEncoder::new(code, hash, Backend::best());
        let mut noise = SplitMix64::new(shard_len as u64);
        let (mut shards, mut values, mut proofs) = (vec![vec![]; 5], vec![vec![]; 5], vec![vec![]; 5]);
        let (mut roots, mut tree) = (Vec::new(), Tree::new());
        for set in 0..sets {
            let rows: Vec<Vec<u8>> =
                (0..3).map(|_| (0..shard_len).map(|_| noise.next() as u8).collect()).collect();
            let originals: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
            let mut done = EncodedSet::new(&shape);
            roots.push(encoder.encode(set, &originals, &mut done, Run::default()));
            for index in 0..5 {
                let recovery = |i: usize| done.recovery().row(i - 3).to_vec();
                shards[index].push(rows.get(index).cloned().unwrap_or_else(|| recovery(index)));
                values[index].push(done.outline(index).as_flattened().to_vec());
                let mut proof = vec![0; shape.proof_len()];
                done.write_path(index, &mut proof[..shape.set_path_len()]);
                proofs[index].push(proof);
            }
        }
        *tree.leaves_mut() = roots;
        tree.build(hash);
        for (set, proof) in proofs.iter_mut().flat_map(|of| of.iter_mut().enumerate()) {
            tree.write_path(set, &mut proof[shape.set_path_len()..]);
        }
        let outlines = Outlines::new(&shape).expect("several leaves");
        Encoded { geometry, tree: tree.root(), outlines, shards, values, proofs }
    }

    #[test]
    fn leaves_prove_themselves_and_nothing_else_does() {
        for (shard_len, sets) in [(LEAF + 64, 3), (2 * LEAF, 1), (5 * LEAF - 64, 2)] {
            let e = encoded(shard_len, sets);
            let count = e.outlines.leaves();
            let of = (&e.geometry, &e.tree);
            for index in 0..5 {
                for set in 0..sets as usize {
                    let (shard, outline) = (&e.shards[index][set], &e.values[index][set]);
                    let proof = &e.proofs[index][set];
                    assert_eq!(e.outlines.digest(outline), Some(HashKind::Blake3.digest(shard)));
                    let at = (set as u32, index as u32);
                    for leaves in (0..count).flat_map(|first| (first + 1..=count).map(move |end| first..end))
                    {
                        let bytes = &shard[leaves.start * LEAF..shard_len.min(leaves.end * LEAF)];
                        let is = |at: (u32, u32),
                                  outline: &[u8],
                                  proof: &[u8],
                                  leaves: Range<usize>,
                                  bytes: &[u8]| {
                            e.outlines.prove(of, at, (outline, proof), leaves, bytes)
                        };
                        assert!(is(at, outline, proof, leaves.clone(), bytes));
                        // Another place, another shard's outline or proof, other leaves, fewer and other bytes.
                        assert!(!is((at.0, (at.1 + 1) % 5), outline, proof, leaves.clone(), bytes));
                        assert!(!is((at.0 + 1, at.1), outline, proof, leaves.clone(), bytes));
                        assert!(!is(at, &e.values[(index + 1) % 5][set], proof, leaves.clone(), bytes));
                        assert!(!is(at, outline, &e.proofs[(index + 1) % 5][set], leaves.clone(), bytes));
                        assert!(!is(at, outline, proof, leaves.start + 1..leaves.end + 1, bytes));
                        assert!(!is(at, outline, proof, leaves.clone(), &bytes[..bytes.len() - 64]));
                        assert!(!is(at, &outline[32..], proof, leaves.clone(), bytes));
                        for flipped in [0, bytes.len() / 2, bytes.len() - 1] {
                            let mut wrong = bytes.to_vec();
                            wrong[flipped] ^= 1;
                            assert!(!is(at, outline, proof, leaves.clone(), &wrong));
                        }
                        let mut wrong = outline.clone();
                        wrong[leaves.start * 32] ^= 1;
                        assert!(!is(at, &wrong, proof, leaves.clone(), bytes));
                    }
                }
            }
        }
    }

    /// The check values of the specification, made by another implementation.
    #[test]
    fn published_check_values() {
        let shard: Vec<u8> = (0..40_000u32).map(|i| (i * i % 251) as u8).collect();
        let outlines = Outlines::of(shard.len(), 1);
        let values: Vec<Digest> = shard
            .chunks(LEAF)
            .zip(0..)
            .map(|(leaf, nth)| blocks::tail_value(leaf, nth * LEAF as u64))
            .collect();
        let start =
            |digest: &Digest| digest[..4].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(values.iter().map(start).collect::<Vec<_>>(), ["e10b5af2", "e3a04f6b", "b9c16c28"]);
        assert_eq!(start(&outlines.digest(values.as_flattened()).expect("an outline")), "a1c32804");
    }

    /// The annexes that are made from bytes hold the values that the encoder kept, at the places that are computed.
    #[test]
    fn annexes_hold_the_outlines_where_they_are_looked_for() {
        for (shard_len, sets) in [(LEAF + 64, 3), (7 * LEAF, 5)] {
            let e = encoded(shard_len, sets);
            for index in 0..5 {
                let body = e.shards[index].concat();
                let read = |at: u64, out: &mut [u8]| -> Result<(), Infallible> {
                    out.copy_from_slice(&body[at as usize..][..out.len()]);
                    Ok(())
                };
                let annexes = annexes(e.geometry.shape(), read).unwrap().expect("several leaves");
                assert_eq!(annexes.len() as u64, e.outlines.annexes_len());
                let header = AnnexHeader::read(annexes.first_chunk().unwrap()).unwrap();
                assert!(header.opens(&annexes) && header.kind == annex::OUTLINES);
                for set in 0..sets {
                    let at = e.outlines.outline_at(set) as usize;
                    assert_eq!(annexes[at..][..e.outlines.outline_len()], e.values[index][set as usize]);
                }
            }
        }
    }

    /// Checks positions in several annexes by what is written one after the other.
    #[test]
    fn no_outline_is_cut_by_the_end_of_an_annex() {
        for (shard_len, sets) in [(1 << 26, 40), (1 << 26, 8), (4096 * 100, 3000), (LEAF + 64, 70_000)] {
            let outlines = Outlines::of(shard_len, sets);
            let (mut at, mut next) = (0, 0);
            for nth in 0..outlines.annexes() {
                assert_eq!(outlines.annex_at(nth), at);
                at += (annex::HEADER_LEN + HEAD) as u64;
                for set in outlines.sets_of(nth) {
                    assert_eq!((set, outlines.outline_at(set)), (next, at));
                    (next, at) = (next + 1, at + outlines.outline_len() as u64);
                }
                at += annex::HEADER_LEN as u64;
                assert!(at - outlines.annex_at(nth) <= annex::MAX_DATA + 64);
            }
            assert_eq!((next, at), (sets, outlines.annexes_len()));
        }
    }

    #[test]
    fn shards_of_one_leaf_and_of_sha256_have_none() {
        let shape = |hash, shard_len: u64| {
            let code = Code::new(3, 2).unwrap();
            *GroupGeometry::whole(Form::Shards, hash, code, 3 * shard_len, 3 * shard_len).unwrap().shape()
        };
        assert_eq!(Outlines::new(&shape(HashKind::Blake3, LEAF as u64)), None);
        assert_eq!(Outlines::new(&shape(HashKind::Sha256, 1 << 20)), None);
        assert!(Outlines::new(&shape(HashKind::Blake3, LEAF as u64 + 64)).is_some());
    }
}
