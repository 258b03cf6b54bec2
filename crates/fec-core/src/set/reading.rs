//! A set on its way through a decoder: shards are read into rows and checked, until the set is decoded. Each state has
//! a type of its own, so nothing comes out that was not checked.

use super::decode::{Keeps, SetDecoder, SetError};
use super::plans::PlanCache;
use super::proof::climb_to_group;
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

    /// As [`check`](Reading::check), for several shards, each with its proofs. Their rows are hashed together, and on
    /// all threads that are lent, which is faster. The result has a bool for each, in order. It is also false for a
    /// shard without a row, because it was never read or its row went to another.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn check_all<S, P>(&mut self, shards: &[(u32, S)], run: Run<'_>) -> Vec<bool>
    where
        S: AsRef<[P]>,
        P: AsRef<[u8]>,
    {
        let Reading { decoder, geometry, group_tree, set, .. } = self;
        let hash = geometry.shape().hash;
        run.observer.begin(Phase::Check);
        let rows = || shards.iter().map(|(index, _)| decoder.places.row(*index));
        let bytes: Vec<&[u8]> = rows().flatten().collect();
        let mut digests = digests(geometry.shape(), &bytes, run).into_iter();
        let mut found = Vec::with_capacity(shards.len());
        for ((index, proofs), row) in shards.iter().zip(rows()) {
            let digest = row.and_then(|_| digests.next());
            found.push(digest.and_then(|digest| {
                let leaf = hash.leaf(&digest, *set, *index);
                let climb =
                    |proof: &P| climb_to_group(geometry, group_tree, *set, *index, leaf, proof.as_ref());
                proofs.as_ref().iter().find_map(climb).map(|roots| (leaf, roots))
            }));
        }
        run.observer.end(Phase::Check, bytes.iter().map(|row| row.len() as u64).sum());
        for ((index, _), found) in shards.iter().zip(&found) {
            if let Some((leaf, roots)) = found {
                self.roots = *roots;
                self.decoder.checked[*index as usize] = Some(*leaf);
                self.decoder.places.keep(*index);
            }
        }
        found.iter().map(Option::is_some).collect()
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
