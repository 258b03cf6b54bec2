//! Decoding a set, and checking that it is a codeword.
//!
//! A decode computes the missing originals alone: the root stands for the originals, so an intact one costs its check.
//! A strict decode also computes the recovery shards, in the memory of a piece, where they are hashed and dropped.
//! These follow from the complete originals, by a plan like that of an encode.

use super::pass::{Original, PassRows, Scratch, SetPass};
use super::places::Places;
use super::plans::PlanCache;
use super::proof::climb_to_group;
use super::run::Run;
use super::tree::{SetRoots, SetTree};
use crate::block::{Code, transformable};
use crate::digest::Digest;
use crate::executor::for_each;
use crate::observe::Phase;
use crate::params::{GroupGeometry, Shape};

/// Fewest bytes of shards that are hashed on a thread of their own.
const SMALLEST_SHARE: usize = 64 << 10;

/// The reason why a set cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// Fewer than k shards are intact.
    #[error("only {intact} intact shards where {needed} are needed")]
    TooFew {
        /// Shards that passed their check.
        intact: usize,
        /// k.
        needed: usize,
    },
    /// The shards lead to the root and still are not one codeword, in any choice that was tried.
    #[error(
        "the shards are proved by the root but are not one codeword: whoever encoded them cheated or erred"
    )]
    NotACodeword,
    /// The bytes after the payload's end are not zero.
    #[error("the padding after the payload is not zero: whoever encoded it cheated or erred")]
    Padding,
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

/// The shards that a decoder has after decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    /// All n shards, computed and compared: every decoding is strict.
    All,
    /// The originals.
    Originals,
}

/// Most choices of recovery shards that are tried before a set counts as untrue.
const MAX_CHOICES: usize = 16;

/// Decodes one set at a time in a buffer of its own, only from rows that were read and checked there. It is reused from
/// set to set.
#[derive(Debug)]
pub struct SetDecoder {
    code: Code,
    keeps: Keeps,
    places: Places,
    /// The leaf of each row that was checked.
    checked: Vec<Option<Digest>>,
    tree: SetTree,
    scratch: Scratch,
}

impl SetDecoder {
    /// A decoder for sets up to this shape that has all n shards after decoding, and always decodes strictly. Memory:
    /// n·L bytes and a little.
    pub fn new(largest: &Shape) -> SetDecoder {
        let n = largest.code.n();
        SetDecoder::with_places(largest, Places::new(n, n, 0, largest.shard_len), Keeps::All)
    }

    /// A decoder for sets up to this shape that has only the originals after decoding. Only a strict decoding computes
    /// recovery shards that were not read, and it does not keep them. Memory: as in
    /// [`payload_bytes`](SetDecoder::payload_bytes).
    pub fn for_payload(largest: &Shape) -> SetDecoder {
        let (code, shared) = (largest.code, SetDecoder::shared_rows(largest));
        let places = Places::new(code.n(), code.k(), shared, largest.shard_len);
        SetDecoder::with_places(largest, places, Keeps::Originals)
    }

    /// As [`for_payload`](SetDecoder::for_payload), with rows for all recovery shards at once. If
    /// [`SetError::NotACodeword`] came of wrongly encoded ones, others may serve. Memory: n·L bytes and a little.
    pub fn for_payload_from_all(largest: &Shape) -> SetDecoder {
        let n = largest.code.n();
        SetDecoder::with_places(largest, Places::new(n, n, 0, largest.shard_len), Keeps::Originals)
    }

    /// Bytes, about, that a decoder [`for_payload`](SetDecoder::for_payload) takes with one thread. Each thread more
    /// takes at most 8 KiB for each recovery shard.
    pub fn payload_bytes(largest: &Shape) -> u64 {
        let rows = largest.code.k() + SetDecoder::shared_rows(largest);
        (rows * largest.shard_len) as u64 + Scratch::bytes(largest.code.m())
    }

    /// Number of recovery shards that can take the place of originals.
    fn shared_rows(largest: &Shape) -> usize {
        largest.code.k().min(largest.code.m())
    }

    fn with_places(largest: &Shape, places: Places, keeps: Keeps) -> SetDecoder {
        SetDecoder {
            code: largest.code,
            keeps,
            places,
            checked: vec![None; largest.code.n()],
            tree: SetTree::default(),
            scratch: Scratch::default(),
        }
    }

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

impl SetDecoder {
    fn decode_originals(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        originals_root: &Digest,
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Result<(), SetError> {
        let k = self.code.k();
        let first = self.choose_known()?;
        if (0..k).any(|i| self.checked[i].is_none()) {
            let choices = self.choices(&first);
            let is_proved =
                |known: &Vec<u8>| self.restore_originals(geometry, set, known, plans, run) == *originals_root;
            if !choices.iter().any(is_proved) {
                return Err(SetError::NotACodeword);
            }
        }
        self.check_padding(geometry, set)
    }

    /// The shards to decode from, one choice after the other: `first`, then other choices of the intact recovery shards
    /// (specification, section 10).
    fn choices(&self, first: &[u8]) -> Vec<Vec<u8>> {
        let (k, n) = (self.code.k(), self.code.n());
        let (originals, chosen) = first.split_at(first.partition_point(|i| usize::from(*i) < k));
        let there: Vec<u8> = (k..n).filter(|i| self.checked[*i].is_some()).map(|i| i as u8).collect();
        let mut choices = vec![first.to_vec()];
        if there.len() > chosen.len() {
            let tries = there.len().min(MAX_CHOICES);
            for nth in 0..tries {
                let start = nth * there.len() / tries;
                let window = there.iter().cycle().skip(start).take(chosen.len());
                let mut known: Vec<u8> = originals.iter().chain(window).copied().collect();
                known.sort_unstable();
                if !choices.contains(&known) {
                    choices.push(known);
                }
            }
        }
        choices
    }

    /// Computes the originals that are not known. Returns O over all originals.
    fn restore_originals(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        known: &[u8],
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Digest {
        let (hash, k) = (geometry.shape().hash, self.code.k());
        run.observer.begin(Phase::Plan);
        let plan = plans.get(self.code, known);
        run.observer.end(Phase::Plan, 0);
        let pass = SetPass {
            hash,
            restore: Some(&plan.originals),
            extend: None,
            hash_known: false,
            keeps_recovery: false,
            phase: Phase::Decode,
        };
        let digests = self.run_pass(&pass, known, run);
        run.observer.begin(Phase::Tree);
        let mut digests = digests.iter();
        let is_known = |i: usize| known.contains(&(i as u8));
        let leaf = |i: usize| match self.checked[i] {
            Some(leaf) if is_known(i) => leaf,
            _ => hash.leaf(digests.next().expect("one digest for each new shard"), set, i as u32),
        };
        let root = self.tree.build_originals(hash, (0..k).map(leaf));
        run.observer.end(Phase::Tree, (k * self.places.row_len()) as u64);
        root
    }

    fn decode_all(
        &mut self,
        geometry: &GroupGeometry,
        set: u32,
        set_root: &Digest,
        plans: &PlanCache,
        run: Run<'_>,
    ) -> Result<(), SetError> {
        let (code, hash) = (self.code, geometry.shape().hash);
        let known = self.choose_known()?;
        run.observer.begin(Phase::Plan);
        let plan = plans.get(code, &known);
        let recovery = plan.recovery();
        run.observer.end(Phase::Plan, 0);
        let keeps_recovery = self.keeps == Keeps::All;
        let pass = SetPass {
            hash,
            restore: Some(&plan.originals).filter(|plan| !plan.wanted().is_empty()),
            extend: Some(recovery),
            hash_known: false,
            keeps_recovery,
            phase: Phase::Reencode,
        };
        let is_known = |i: usize| known.contains(&(i as u8));
        if keeps_recovery {
            // These rows are computed again.
            (code.k()..code.n()).filter(|i| !is_known(*i)).for_each(|i| self.checked[i] = None);
        }
        let digests = self.run_pass(&pass, &known, run);
        run.observer.begin(Phase::Tree);
        // Digests come in the order of the shards.
        let mut digests = digests.iter();
        let leaf = |i: usize| match self.checked[i] {
            Some(leaf) if is_known(i) => leaf,
            _ => hash.leaf(digests.next().expect("one digest for each new shard"), set, i as u32),
        };
        let root = self.tree.build(hash, code, (0..code.n()).map(leaf));
        run.observer.end(Phase::Tree, (code.n() * self.places.row_len()) as u64);
        if root != *set_root {
            return Err(SetError::NotACodeword);
        }
        self.check_padding(geometry, set)
    }

    fn run_pass(&mut self, pass: &SetPass<'_>, known: &[u8], run: Run<'_>) -> Vec<Digest> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let digests = pass.run(self.pass_rows(|i| known.contains(&(i as u8))), &mut scratch, run);
        self.scratch = scratch;
        digests
    }

    fn check_padding(&self, geometry: &GroupGeometry, set: u32) -> Result<(), SetError> {
        let padding_is_zero = (0..self.code.k())
            .all(|i| self.kept_row(i as u32)[geometry.shard_payload(set, i)..].iter().all(|byte| *byte == 0));
        if padding_is_zero { Ok(()) } else { Err(SetError::Padding) }
    }

    /// The k intact shards to decode from, in order.
    fn choose_known(&self) -> Result<Vec<u8>, SetError> {
        let code = self.code;
        let is_intact = |i: usize| self.checked[i].is_some();
        let known: Vec<u8> =
            (0..code.n()).filter(|i| is_intact(*i)).take(code.k()).map(|i| i as u8).collect();
        if known.len() < code.k() {
            return Err(SetError::TooFew { intact: known.len(), needed: code.k() });
        }
        if usize::from(known[0]) < code.k() {
            return Ok(known);
        }
        // If all originals are lost, some recovery shards give them back by transform.
        Ok(transformable(code, is_intact).unwrap_or(known))
    }

    /// The rows in the form that a pass takes.
    fn pass_rows(&mut self, is_known: impl Fn(usize) -> bool) -> PassRows<'_> {
        let keeps_recovery = self.keeps == Keeps::All;
        let mut take = self.places.take_rows();
        let (mut known, mut originals, mut recovery) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..self.code.k() {
            let row = take(i).expect("every original has a row");
            if is_known(i) {
                known.push(&*row);
                originals.push(Original::Known(known[known.len() - 1]));
            } else {
                originals.push(Original::Missing(row));
            }
        }
        for i in self.code.k()..self.code.n() {
            match take(i) {
                Some(row) if is_known(i) => known.push(&*row),
                Some(row) if keeps_recovery => recovery.push(row),
                _ => {}
            }
        }
        PassRows { known, originals, recovery: keeps_recovery.then_some(recovery) }
    }

    /// Number of shards that the decoder has after decoding, from the first.
    fn kept(&self) -> usize {
        match self.keeps {
            Keeps::All => self.code.n(),
            Keeps::Originals => self.code.k(),
        }
    }

    /// The row of a shard that the decoder keeps.
    fn kept_row(&self, index: u32) -> &[u8] {
        assert!((index as usize) < self.kept(), "a decoder for the payload keeps no recovery shards");
        self.places.row(index).expect("a shard that is kept has a row of its own")
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
