//! A set on its way through a decoder: shards are read into rows and checked, until the set is decoded. Each state has
//! a type of its own, so nothing comes out that was not checked.

use super::decode::{Keeps, SetDecoder, SetError};
use super::plans::PlanCache;
use super::run::Run;
use super::tree::SetRoots;
use crate::digest::Digest;
use crate::executor::for_each;
use crate::observe::Phase;
use crate::params::{GroupGeometry, Shape};

/// Fewest bytes of shards that are hashed on a thread of their own.
const SMALLEST_SHARE: usize = 64 << 10;

impl SetDecoder {
    /// Starts on set `set` of the group with this geometry and tree of sets; forgets the set before.
    ///
    /// # Panics
    /// If the code differs from the decoder's, or the shards are longer.
    pub fn begin<'a>(
        &'a mut self,
        geometry: &'a GroupGeometry,
        group_tree: &'a Digest,
        set: u32,
    ) -> Reading<'a> {
        assert_eq!(geometry.shape().code, self.code, "a decoder serves one code");
        self.places.begin(geometry.shape().shard_len);
        self.checked.fill(None);
        Reading { decoder: self, geometry, group_tree, set, roots: SetRoots::default() }
    }
}

/// A set that is being read. Shards go into slots and are checked there; from then on they count.
///
/// Shards can come singly: [`slot`](Reading::slot), [`check`](Reading::check), until k are [`intact`](Reading::intact).
/// Batches are hashed faster: a `slot` for each of k shards, a [`check_all`](Reading::check_all) over them, and again
/// for as many as are still lacking.
#[derive(Debug)]
pub struct Reading<'a> {
    decoder: &'a mut SetDecoder,
    geometry: &'a GroupGeometry,
    group_tree: &'a Digest,
    set: u32,
    /// The roots on the path of proofs of intact shards.
    roots: SetRoots,
}

impl<'a> Reading<'a> {
    /// The row to read shard `index` into, of L bytes. The shard does not count until it is checked, and the row's old
    /// content means nothing.
    ///
    /// A decoder for the payload has rows for k recovery shards, or m if that is less. When all are taken, this takes
    /// the row of the recovery shard that was read into first and is not intact. A batch of up to k −
    /// [`intact`](Reading::intact) different shards therefore never loses one of its own.
    ///
    /// # Panics
    /// If there is no such shard; or if k recovery shards are intact already, and a decoder for the payload has no row
    /// for another.
    pub fn slot(&mut self, index: u32) -> &mut [u8] {
        self.decoder.checked[index as usize] = None;
        self.decoder.places.slot(index)
    }

    /// Hashes the row of shard `index` and follows the proofs, until one serves: each is a set path and a group path
    /// ([`Shape::proof_len`] bytes). `true`: the shard counts from now on.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn check<P: AsRef<[u8]>>(&mut self, index: u32, proofs: &[P], run: Run<'_>) -> bool {
        self.check_all(&[(index, proofs)], run)[0]
    }

    /// As [`check`](Reading::check), for several shards, each with its proofs. This is faster: their rows are hashed
    /// together, and on all threads that are lent, and nodes that their proofs share are hashed once. The result has a
    /// bool for each, in order. It is also false for a shard without a row, because it was never read or its row went
    /// to another.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn check_all<S, P>(&mut self, shards: &[(u32, S)], run: Run<'_>) -> Vec<bool>
    where
        S: AsRef<[P]>,
        P: AsRef<[u8]>,
    {
        let Reading { decoder, geometry, group_tree, set, .. } = self;
        let SetDecoder { places, climber, checked, .. } = &mut **decoder;
        run.observer.begin(Phase::Check);
        // Neighbours in the tree follow each other: their proofs share nodes.
        let has_row = |nth: &usize| places.row(shards[*nth].0).is_some();
        let mut order: Vec<usize> = (0..shards.len()).filter(has_row).collect();
        order.sort_unstable_by_key(|nth| shards[*nth].0);
        let index = |nth: &usize| shards[*nth].0;
        let bytes: Vec<&[u8]> = order.iter().filter_map(|nth| places.row(index(nth))).collect();
        let digests = digests(geometry.shape(), &bytes, run);
        let checked_bytes = bytes.iter().map(|row| row.len() as u64).sum();
        let mut leaves = Vec::with_capacity(order.len());
        geometry.shape().hash.leaves(*set, order.iter().map(index).zip(digests), &mut leaves);
        let mut found = vec![false; shards.len()];
        for (nth, leaf) in order.into_iter().zip(leaves) {
            let (index, proofs) = &shards[nth];
            let climb = |proof: &P| {
                climber.climb_to_group(geometry, group_tree, (*set, *index), leaf, proof.as_ref())
            };
            if let Some(roots) = proofs.as_ref().iter().find_map(climb) {
                self.roots = roots;
                checked[*index as usize] = Some(leaf);
                places.keep(*index);
                found[nth] = true;
            }
        }
        run.observer.end(Phase::Check, checked_bytes);
        found
    }

    /// Number of shards that passed their check.
    pub fn intact(&self) -> usize {
        self.decoder.checked.iter().flatten().count()
    }

    /// Tells whether shard `index` passed its check.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn is_intact(&self, index: u32) -> bool {
        self.decoder.checked[index as usize].is_some()
    }

    /// The bytes of shard `index`, if it passed its check.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn row(&self, index: u32) -> Option<&[u8]> {
        self.decoder.places.row(index).filter(|_| self.is_intact(index))
    }

    /// Computes the missing originals, if any, from k of the intact shards, and compares the tree of the originals;
    /// checks that the padding is zero. If the tree differs and more recovery shards are intact than are needed, up to
    /// 16 choices of them are tried. Afterwards every original is proved; whether the recovery shards belong to them is
    /// not examined. A decoder that has all n shards decodes as in [`decode_strictly`](Reading::decode_strictly).
    ///
    /// # Errors
    /// [`SetError`], in an [`Undecoded`] that gives the reading back.
    pub fn decode(self, plans: &PlanCache, run: Run<'_>) -> Result<Decoded<'a>, Undecoded<'a>> {
        match self.decoder.keeps {
            Keeps::All => self.decode_strictly(plans, run),
            Keeps::Originals => self.decoded(|reading| {
                let Reading { decoder, geometry, set, roots, .. } = reading;
                decoder.decode_originals(geometry, *set, &roots.originals, plans, run)
            }),
        }
    }

    /// Computes all other shards from k of the intact ones: first the missing originals, then from all originals
    /// the missing recovery shards. Hashes them and compares the set's root; checks that the padding is zero.
    /// Afterwards every shard is proved by the codeword.
    ///
    /// # Errors
    /// [`SetError`], in an [`Undecoded`] that gives the reading back.
    pub fn decode_strictly(self, plans: &PlanCache, run: Run<'_>) -> Result<Decoded<'a>, Undecoded<'a>> {
        self.decoded(|reading| {
            let Reading { decoder, geometry, set, roots, .. } = reading;
            decoder.decode_all(geometry, *set, &roots.root, plans, run)
        })
    }

    fn decoded(
        mut self,
        decode: impl FnOnce(&mut Reading<'a>) -> Result<(), SetError>,
    ) -> Result<Decoded<'a>, Undecoded<'a>> {
        match decode(&mut self) {
            Ok(()) => Ok(Decoded { decoder: self.decoder, geometry: self.geometry, set: self.set }),
            Err(error) => Err(Undecoded { error, reading: self }),
        }
    }
}

/// A set that was not decoded: the reason, and the reading as it was.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Undecoded<'a> {
    /// The reason.
    pub error: SetError,
    /// The reading. After [`SetError::TooFew`] it is as before: intact shards can be used by themselves, since each is
    /// proved by its own path, or more can be read. After the other errors, shards that were intact before still are,
    /// except recovery shards of a decoder that has all n.
    pub reading: Reading<'a>,
}

impl From<Undecoded<'_>> for SetError {
    fn from(undecoded: Undecoded<'_>) -> SetError {
        undecoded.error
    }
}

/// A decoded set: its originals are those that the root stands for. After a strict decoding, all shards are those of an
/// honest encoder.
#[derive(Clone, Copy, Debug)]
pub struct Decoded<'a> {
    decoder: &'a SetDecoder,
    geometry: &'a GroupGeometry,
    set: u32,
}

impl<'a> Decoded<'a> {
    /// The bytes of shard `index`.
    ///
    /// # Panics
    /// If there is no such shard; or if it is a recovery shard and the decoder is
    /// [for the payload](SetDecoder::for_payload).
    pub fn row(&self, index: u32) -> &'a [u8] {
        self.decoder.kept_row(index)
    }

    /// The bytes of all shards that the decoder keeps, in order: all n, or the k originals if it is [for the
    /// payload](SetDecoder::for_payload).
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let decoder = self.decoder;
        (0..decoder.kept() as u32).map(move |index| decoder.kept_row(index))
    }

    /// The payload in the set: the offset in the group's payload and the bytes without padding, for each original that
    /// holds any.
    pub fn payload(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let Decoded { decoder, geometry, set } = *self;
        (0..decoder.code.k()).filter_map(move |i| {
            let bytes = &decoder.kept_row(i as u32)[..geometry.shard_payload(set, i)];
            (!bytes.is_empty()).then(|| (geometry.shard_offset(set, i), bytes))
        })
    }
}

/// The digests of rows; each thread takes a share.
fn digests(shape: &Shape, rows: &[&[u8]], run: Run<'_>) -> Vec<Digest> {
    let share = rows.len().div_ceil(run.executor.width()).max(SMALLEST_SHARE.div_ceil(shape.shard_len));
    if rows.len() <= share {
        return shape.hash.digests(rows);
    }
    let mut digests = vec![[0; 32]; rows.len()];
    let jobs = rows.chunks(share).zip(digests.chunks_mut(share)).collect();
    for_each(run.executor, jobs, |(rows, digests): (&[&[u8]], &mut [Digest])| {
        digests.copy_from_slice(&shape.hash.digests(rows));
    });
    digests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Code;
    use crate::digest::{HashKind, nodes_of};
    use crate::gf256::kernel::Backend;
    use crate::params::Form;
    use crate::random::SplitMix64;
    use crate::set::{EncodedSet, SetEncoder};
    use std::collections::BTreeSet;

    /// Nodes above leaves of a tree, each told once.
    fn above(leaves: impl Iterator<Item = u32>, count: u32) -> usize {
        let mut nodes = BTreeSet::new();
        for leaf in leaves {
            let (mut index, mut last, mut level) = (leaf, count - 1, 0);
            while last > 0 {
                let has_sibling = index % 2 == 1 || index < last;
                (index, last, level) = (index / 2, last / 2, level + 1);
                if has_sibling {
                    nodes.insert((level, index));
                }
            }
        }
        nodes.len()
    }

    /// Proofs of a batch in any order, and proofs one by one in the order of the shards.
    #[test]
    fn nodes_that_proofs_share_are_hashed_once() {
        let code = Code::new(33, 67).expect("a code");
        let originals = [[7; 64]; 33];
        let originals = originals.each_ref().map(|row| &row[..]);
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            let group = GroupGeometry::whole(Form::Shards, hash, code, 33 << 12, 33 * 64).expect("a group");
            let mut encoded = EncodedSet::new(group.shape());
            let encoder = SetEncoder::new(code, hash, Backend::best());
            let mut tree = [0; 32];
            let hashed = nodes_of(|| tree = encoder.encode(0, &originals, &mut encoded, Run::default()));
            assert_eq!(hashed, 100 + 99, "a leaf for each shard, and the nodes above");
            let mut indices: Vec<u32> = (0..100).collect();
            for seed in 0..if cfg!(miri) { 1 } else { 20 } {
                let mut random = SplitMix64::new(seed);
                (1..100).rev().for_each(|i| indices.swap(i, (random.next() % (i as u64 + 1)) as usize));
                let kept = &mut indices.clone()[..33];
                let own = kept.iter().copied().filter(|index| *index < 33);
                let recovery = kept.iter().filter_map(|index| index.checked_sub(33));
                let expected = 33 + above(own, 33) + above(recovery, 67) + 1;
                let proof = |index: &u32| {
                    let mut proof = vec![0; group.shape().proof_len()];
                    encoded.write_path(*index as usize, &mut proof);
                    (*index, [proof])
                };
                let shard = |index: u32| match index.checked_sub(33) {
                    None => originals[index as usize],
                    Some(recovery) => encoded.recovery().row(recovery as usize),
                };
                let mut decoder = SetDecoder::new(group.shape());
                let mut reading = decoder.begin(&group, &tree, 0);
                kept.iter().for_each(|index| reading.slot(*index).copy_from_slice(shard(*index)));
                let proofs: Vec<_> = kept.iter().map(proof).collect();
                let hashed = nodes_of(|| assert_eq!(reading.check_all(&proofs, Run::default()), [true; 33]));
                assert_eq!(hashed, expected, "33 proofs at once");
                kept.sort_unstable();
                let mut decoder = SetDecoder::new(group.shape());
                let mut reading = decoder.begin(&group, &tree, 0);
                let hashed = nodes_of(|| {
                    for index in kept.iter() {
                        reading.slot(*index).copy_from_slice(shard(*index));
                        let (_, proof) = proof(index);
                        assert!(reading.check(*index, &proof, Run::default()));
                    }
                });
                assert_eq!(hashed, expected, "33 proofs one by one");
            }
        }
    }
}
