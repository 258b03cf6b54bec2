//! Sets by honest and by malicious encoders, on every backend and thread count.

mod common;

use common::Lent;
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::{Digest, HashKind, Tag};
use fec_core::executor::Executor;
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::Tree;
use fec_core::observe::{Observer, Phase};
use fec_core::params::{Form, GroupGeometry};
use fec_core::set::{
    Decoded, EncodedSet, PlanCache, Reading, Run, SetDecoder, SetEncoder, SetError, leaf_is_proved,
    shard_is_proved, tree_of_shard,
};

/// All n shards of one set, with a tree over them that is valid whatever the shards.
struct Signed {
    group: GroupGeometry,
    shards: Vec<Vec<u8>>,
    /// The trees over the originals and over the recovery shards.
    trees: [Tree; 2],
    /// The set's root, which is the tree of the group's only set.
    root: Digest,
}

impl Signed {
    /// A tree over these shards, true or false, as an encoder would sign it.
    fn new(group: GroupGeometry, shards: Vec<Vec<u8>>) -> Signed {
        let (hash, k) = (group.shape().hash, group.shape().code.k());
        let leaves = (0..).zip(&shards).map(|(i, shard)| hash.leaf(&hash.digest(shard), 0, i));
        let leaves: Vec<Digest> = leaves.collect();
        let mut trees = [Tree::new(), Tree::new()];
        let [originals, recovery] = &mut trees;
        originals.leaves_mut().extend_from_slice(&leaves[..k]);
        recovery.leaves_mut().extend_from_slice(&leaves[k..]);
        let recovery = if leaves.len() == k { [0; 32] } else { recovery.build(hash) };
        let root = hash.node(Tag::Set, &originals.build(hash), &recovery);
        Signed { group, shards, trees, root }
    }

    /// The codeword of `payload`, computed by the library.
    fn honest(code: Code, hash: HashKind, payload: &[u8]) -> Signed {
        let len = payload.len() as u64;
        let group =
            GroupGeometry::whole(Form::Shards, hash, code, len.max(4096 * code.k() as u64), len).unwrap();
        assert_eq!(group.shape().sets, 1);
        let mut originals = ShardBuf::new(code.k(), group.shape().shard_len);
        for (i, row) in originals.iter_mut().enumerate() {
            let at = group.shard_offset(0, i) as usize;
            let part = group.shard_payload(0, i);
            row[..part].copy_from_slice(&payload[at..at + part]);
        }
        let mut encoded = EncodedSet::new(group.shape());
        let rows: Vec<&[u8]> = originals.iter().collect();
        let encoder = SetEncoder::new(code, hash, Backend::best());
        encoder.encode(0, &rows, &mut encoded, Run::default());
        Signed::new(group, originals.iter().chain(encoded.recovery().iter()).map(<[u8]>::to_vec).collect())
    }

    /// A decoder that keeps everything.
    fn decoder(&self) -> SetDecoder {
        SetDecoder::new(self.group.shape())
    }

    fn proof(&self, index: u32) -> Vec<u8> {
        let mut proof = vec![0u8; self.group.shape().proof_len()];
        let k = self.group.shape().code.k();
        let (own, other, index) = match (index as usize).checked_sub(k) {
            None => (&self.trees[0], &self.trees[1], index as usize),
            Some(index) => (&self.trees[1], &self.trees[0], index),
        };
        let used = own.write_path(index, &mut proof);
        if !other.leaves().is_empty() {
            proof[used..used + 32].copy_from_slice(&other.root());
        }
        proof
    }

    /// Reads these shards into a decoder; each must pass its check.
    fn load<'a>(&'a self, decoder: &'a mut SetDecoder, indices: &[u32]) -> Reading<'a> {
        let mut reading = decoder.begin(&self.group, &self.root, 0);
        self.read_into(&mut reading, indices);
        reading
    }

    /// Reads these shards into a decoder that began this set; each must pass its check.
    fn read_into(&self, reading: &mut Reading<'_>, indices: &[u32]) {
        for index in indices {
            reading.slot(*index).copy_from_slice(&self.shards[*index as usize]);
            assert!(reading.check(*index, &[self.proof(*index)], Run::default()), "{index} is proved");
        }
    }

    fn decode<'a>(&'a self, decoder: &'a mut SetDecoder, indices: &[u32]) -> Result<Decoded<'a>, SetError> {
        let plans = PlanCache::new(Backend::best());
        Ok(self.load(decoder, indices).decode(&plans, Run::default())?)
    }
}

/// A run on lent threads, without an observer.
fn on(executor: &dyn Executor) -> Run<'_> {
    Run { executor, ..Run::default() }
}

fn payload(len: usize) -> Vec<u8> {
    let mut x = 7u32;
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 24) as u8
        })
        .collect()
}

/// All k-subsets of 0..n.
fn subsets(n: u32, k: usize) -> Vec<Vec<u32>> {
    (0u32..1 << n)
        .filter(|bits| bits.count_ones() as usize == k)
        .map(|bits| (0..n).filter(|i| bits >> i & 1 == 1).collect())
        .collect()
}

#[test]
fn every_subset_restores_an_honest_set() {
    let code = Code::new(4, 3).unwrap();
    for hash in [HashKind::Blake3, HashKind::Sha256] {
        let signed = Signed::honest(code, hash, &payload(4 * 128 - 5));
        for subset in subsets(7, 4) {
            let mut decoder = signed.decoder();
            let decoded = signed.decode(&mut decoder, &subset).unwrap();
            assert!(decoded.rows().eq(signed.shards.iter().map(Vec::as_slice)), "from {subset:?}");
            for (i, shard) in (0..).zip(&signed.shards) {
                assert_eq!(decoded.row(i), shard, "shard {i} from {subset:?}");
            }
            let mut bytes = vec![0; 4 * 128 - 5];
            for (at, part) in decoded.payload() {
                bytes[at as usize..][..part.len()].copy_from_slice(part);
            }
            assert_eq!(bytes, payload(4 * 128 - 5), "the payload from {subset:?}");
        }
    }
}

/// A decoder that keeps only the originals gives the same originals and the same verdicts. Recovery shards are read in
/// every order in which they displace each other, on one thread and several, as whole pieces and parts of one.
#[test]
fn decoders_for_the_payload_agree_with_those_that_keep_everything() {
    for (k, m, len) in [(4, 3, 4 * 128 - 5), (3, 9, 3 * 20_032), (10, 4, 10 * 8192), (5, 0, 900), (1, 4, 70)]
    {
        let code = Code::new(k, m).unwrap();
        for hash in [HashKind::Blake3, HashKind::Sha256] {
            let honest = Signed::honest(code, hash, &payload(len));
            let n = code.n() as u32;
            for first in 0..n {
                // All shards in turn, from `first` on; only the last k of them are whole.
                let order: Vec<u32> = (0..n).map(|i| (first + i) % n).collect();
                let intact = &order[m..];
                for threads in [1, 3] {
                    let mut decoder = SetDecoder::for_payload(honest.group.shape());
                    let plans = PlanCache::new(Backend::best());
                    let mut reading = decoder.begin(&honest.group, &honest.root, 0);
                    for index in &order[..m] {
                        reading.slot(*index).fill(0x55);
                    }
                    honest.read_into(&mut reading, intact);
                    let run = Lent(threads);
                    let decoded = match threads {
                        1 => reading.decode(&plans, on(&run)),
                        _ => reading.decode_strictly(&plans, on(&run)),
                    };
                    let decoded = decoded.unwrap();
                    assert_eq!(decoded.rows().len(), k);
                    for (i, shard) in (0..).zip(&honest.shards[..k]) {
                        assert!(decoded.row(i) == shard, "original {i} from {intact:?}, {k} + {m}");
                    }
                    // The shard that was not read last is false: only the check of the codeword can notice.
                    let Some(altered) = m.checked_sub(1).map(|last| order[last] as usize) else { continue };
                    let mut shards = honest.shards.clone();
                    *shards[altered].last_mut().unwrap() ^= 1;
                    let forged = Signed::new(honest.group, shards);
                    let reading = forged.load(&mut decoder, intact);
                    let result = reading.decode_strictly(&plans, on(&Lent(threads)));
                    let error = result.unwrap_err().error;
                    assert_eq!(error, SetError::NotACodeword, "{altered} altered, from {intact:?}");
                }
            }
        }
    }
}

/// Shards that are checked together count singly; a shard whose row went to another does not count.
#[test]
fn checking_together_is_checking_each() {
    let code = Code::new(2, 5).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(128));
    let mut decoder = SetDecoder::for_payload(signed.group.shape());
    let mut reading = decoder.begin(&signed.group, &signed.root, 0);
    for index in [0, 3, 4, 5] {
        reading.slot(index).copy_from_slice(&signed.shards[index as usize]);
    }
    reading.slot(0)[9] ^= 1;
    let all: Vec<(u32, [Vec<u8>; 2])> = (0..7).map(|index| (index, [vec![], signed.proof(index)])).collect();
    // 0 is damaged, 3 lost its row to 5, the others were never read.
    let found = reading.check_all(&all, Run::default());
    assert_eq!(found, [false, false, false, false, true, true, false]);
    assert_eq!(reading.intact(), 2);
    let intact = (0..7).map(|index| reading.row(index).is_some());
    assert!(intact.eq(found), "exactly what is intact can be seen");
    let decoded = reading.decode(&PlanCache::new(Backend::best()), Run::default()).unwrap();
    assert_eq!((decoded.row(0), decoded.row(1)), (&signed.shards[0][..], &signed.shards[1][..]));
}

/// Batches have as many shards as are lacking. Some are damaged in each, and none displaces another of its batch.
/// Several threads share shards that are long enough.
#[test]
fn batches_of_shards_reach_k_whatever_is_damaged() {
    let (code, len) = (Code::new(5, 9).unwrap(), 5 * 40_000);
    let signed = Signed::honest(code, HashKind::Blake3, &payload(len));
    for (threads, step) in [(1, 1), (2, 3), (3, 5), (3, 9), (4, 11), (4, 13)] {
        let lent = Lent(threads);
        let mut decoder = SetDecoder::for_payload(signed.group.shape());
        let mut reading = decoder.begin(&signed.group, &signed.root, 0);
        // All shards, in an order of their own, also backwards; every other one is damaged, five in all.
        let mut order = (0..14u32).map(|nth| (nth * step + 13) % 14).enumerate();
        while reading.intact() < 5 {
            let batch: Vec<(usize, u32)> = order.by_ref().take(5 - reading.intact()).collect();
            for (nth, index) in &batch {
                let slot = reading.slot(*index);
                slot.copy_from_slice(&signed.shards[*index as usize]);
                slot[77] ^= u8::from(nth % 2 == 0 && *nth < 10);
            }
            let proofs: Vec<_> = batch.iter().map(|(_, index)| (*index, [signed.proof(*index)])).collect();
            let intact = reading.check_all(&proofs, on(&lent));
            let expected: Vec<bool> = batch.iter().map(|(nth, _)| nth % 2 == 1 || *nth >= 10).collect();
            assert_eq!(intact, expected, "{batch:?} in steps of {step}");
        }
        let decoded = reading.decode(&PlanCache::new(Backend::best()), on(&lent)).unwrap();
        assert!(decoded.rows().eq(signed.shards[..5].iter().map(Vec::as_slice)), "in steps of {step}");
    }
}

/// A set at 33+67 from many shapes of loss, on every backend: few originals lost, some, all, and all with so many
/// recovery shards left that a transform can start from some of them. An altered shard is noticed in each case, whether
/// it was decoded from or not.
#[test]
fn large_sets_from_many_losses() {
    let code = Code::new(33, 67).unwrap();
    let honest = Signed::honest(code, HashKind::Blake3, &payload(33 * 192 - 7));
    let mut shards = honest.shards.clone();
    shards[70][100] ^= 4;
    let forged = Signed::new(honest.group, shards);
    let losses: [Vec<u32>; 6] = [
        (1..34).collect(),
        (8..60).collect(),
        (0..99).filter(|i| i % 3 == 1).collect(),
        (40..73).collect(),
        (34..100).collect(),
        (64..97).collect(),
    ];
    for backend in Backend::available() {
        let plans = PlanCache::new(backend);
        for intact in &losses {
            let mut decoder = honest.decoder();
            let decoded = honest.load(&mut decoder, intact).decode(&plans, Run::default()).unwrap();
            for (i, shard) in (0..).zip(&honest.shards) {
                assert!(decoded.row(i) == shard, "shard {i} from {intact:?}, {}", backend.name());
            }
            let result = forged.load(&mut decoder, intact).decode(&plans, Run::default());
            let error = result.unwrap_err().error;
            assert_eq!(error, SetError::NotACodeword, "from {intact:?}, {}", backend.name());
        }
    }
}

/// A strict decoding catches a valid tree over shards that are no codeword, whichever k shards are used: also if the
/// false shard is not among them.
#[test]
fn a_valid_tree_over_an_invalid_codeword() {
    let code = Code::new(4, 3).unwrap();
    let honest = Signed::honest(code, HashKind::Blake3, &payload(4 * 128));
    for altered in 0..7 {
        let mut shards = honest.shards.clone();
        shards[altered][17] ^= 1;
        let signed = Signed::new(honest.group, shards);
        for subset in subsets(7, 4) {
            let error = signed.decode(&mut signed.decoder(), &subset).unwrap_err();
            assert_eq!(error, SetError::NotACodeword, "shard {altered} altered, from {subset:?}");
        }
    }
}

/// A surplus shard is proved by the tree and differs from the codeword: its digest must not be reused, but computed
/// again.
#[test]
fn a_digest_reused_from_the_input() {
    let code = Code::new(3, 3).unwrap();
    let honest = Signed::honest(code, HashKind::Sha256, &payload(3 * 64));
    let mut shards = honest.shards.clone();
    shards[5][0] ^= 0x80;
    let signed = Signed::new(honest.group, shards);
    for intact in [&[0, 1, 2, 5][..], &[0, 1, 2, 3, 4, 5]] {
        let mut decoder = signed.decoder();
        let reading = signed.load(&mut decoder, intact);
        assert_eq!(reading.intact(), intact.len());
        let undecoded = reading.decode(&PlanCache::new(Backend::best()), Run::default()).unwrap_err();
        assert_eq!(undecoded.error, SetError::NotACodeword);
        // The rows of surplus shards were overwritten.
        let still_intact = (0..6).filter(|i| undecoded.reading.is_intact(*i));
        assert!(still_intact.eq(0..3), "only what was decoded from");
        assert_eq!(undecoded.reading.row(2), Some(&signed.shards[2][..]));
    }
}

#[test]
fn padding_that_is_not_zero() {
    let code = Code::new(2, 2).unwrap();
    // 100 bytes in 128: a full codeword over other padding, signed as if it were the payload's.
    let short = Signed::honest(code, HashKind::Blake3, &payload(100));
    let full = Signed::honest(code, HashKind::Blake3, &payload(128));
    let signed = Signed::new(short.group, full.shards.clone());
    for subset in subsets(4, 2) {
        let error = signed.decode(&mut signed.decoder(), &subset).unwrap_err();
        assert_eq!(error, SetError::Padding, "{subset:?}");
    }
}

#[test]
fn too_few_shards_and_shards_that_fail_their_check() {
    let code = Code::new(3, 2).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(192));
    let mut decoder = signed.decoder();
    let mut reading = signed.load(&mut decoder, &[0, 4]);
    let proof = &signed.proof(1)[..];
    // The right bytes under another index, and wrong bytes under the right one.
    reading.slot(2).copy_from_slice(&signed.shards[1]);
    assert!(!reading.check(2, &[proof], Run::default()));
    reading.slot(1).copy_from_slice(&signed.shards[0]);
    assert!(!reading.check(1, &[proof], Run::default()));
    assert!(!reading.check(1, &[&proof[32..], &[]], Run::default()), "a proof that is too short");
    assert_eq!(reading.intact(), 2);
    let plans = PlanCache::new(Backend::best());
    let undecoded = reading.decode(&plans, Run::default()).unwrap_err();
    assert_eq!(undecoded.error, SetError::TooFew { intact: 2, needed: 3 });
    assert_eq!(undecoded.to_string(), "only 2 intact shards where 3 are needed");
    // Intact shards can be used, and reading goes on.
    let mut reading = undecoded.reading;
    assert_eq!((reading.row(0), reading.row(1)), (Some(&signed.shards[0][..]), None));
    // A row that is written again must be checked again, whatever its state before.
    reading.slot(0).fill(0x55);
    assert_eq!((reading.intact(), reading.is_intact(0), reading.row(0)), (1, false, None));
    reading.slot(0).copy_from_slice(&signed.shards[0]);
    assert!(reading.check(0, &[&signed.proof(0)[..]], Run::default()));
    reading.slot(1).copy_from_slice(&signed.shards[1]);
    assert_eq!(reading.intact(), 2);
    assert!(reading.check(1, &[proof], Run::default()));
    let decoded = reading.decode(&plans, Run::default()).unwrap();
    assert_eq!(decoded.row(2), signed.shards[2]);
}

/// The tree of the originals defines the payload. A false recovery shard does no harm as long as there are others, and
/// a false original none at all, since the tree makes it true.
#[test]
fn the_originals_define_the_payload() {
    let code = Code::new(4, 3).unwrap();
    for hash in [HashKind::Blake3, HashKind::Sha256] {
        let honest = Signed::honest(code, hash, &payload(4 * 128));
        for altered in 0..7 {
            let mut shards = honest.shards.clone();
            shards[altered][17] ^= 1;
            let signed = Signed::new(honest.group, shards);
            for count in 4..=7 {
                for subset in subsets(7, count) {
                    let mut decoder = SetDecoder::for_payload_from_all(signed.group.shape());
                    let decoded = signed.decode(&mut decoder, &subset);
                    let lost = (0..4).filter(|i| !subset.contains(i)).count();
                    let good = subset.iter().filter(|i| **i >= 4 && **i != altered as u32).count();
                    // No recovery shard belongs to an original that was altered after encoding.
                    let serves = lost == 0 || (altered >= 4 && good >= lost);
                    match decoded {
                        Ok(rows) if serves => {
                            assert!(rows.rows().zip(&signed.shards).all(|(row, shard)| row == shard));
                        }
                        result => assert_eq!(
                            (result.err(), serves),
                            (Some(SetError::NotACodeword), false),
                            "{altered} altered, from {subset:?}"
                        ),
                    }
                    // A strict decoder accepts none of it.
                    let mut decoder = SetDecoder::for_payload_from_all(signed.group.shape());
                    let strict = signed
                        .load(&mut decoder, &subset)
                        .decode_strictly(&PlanCache::new(Backend::best()), Run::default());
                    assert_eq!(strict.unwrap_err().error, SetError::NotACodeword, "{altered}, {subset:?}");
                }
            }
        }
    }
}

/// The most shards fill a byte with their numbers: builds that check for overflow panicked.
#[test]
fn codes_of_256_shards() {
    for (k, m) in [(256, 0), (255, 1), (1, 255)] {
        let bytes = payload(k * 64);
        let signed = Signed::honest(Code::new(k, m).unwrap(), HashKind::Blake3, &bytes);
        let mut decoder = SetDecoder::for_payload(signed.group.shape());
        let first = if m > 0 { 1 } else { 0 };
        let decoded = signed.decode(&mut decoder, &(first..first + k as u32).collect::<Vec<_>>()).unwrap();
        assert_eq!(decoded.payload().flat_map(|(_, part)| part).copied().collect::<Vec<u8>>(), bytes);
    }
}

/// Section 10: if only one of a recovery shards serves, those at ⌊t·a/16⌋ are tried.
#[test]
fn which_recovery_shards_are_tried() {
    let honest = Signed::honest(Code::new(1, 20).unwrap(), HashKind::Blake3, &payload(64));
    for right in 0..20 {
        let mut shards = honest.shards.clone();
        for (nth, shard) in shards[1..].iter_mut().enumerate().filter(|(nth, _)| *nth != right) {
            shard[0] ^= 1 + nth as u8;
        }
        let signed = Signed::new(honest.group, shards);
        let mut decoder = SetDecoder::for_payload_from_all(signed.group.shape());
        let decoded = signed.decode(&mut decoder, &(1..=20).collect::<Vec<_>>());
        let is_tried = (0..16).any(|t| t * 20 / 16 == right);
        assert_eq!(
            decoded.map(|decoded| decoded.row(0) == honest.shards[0]).ok(),
            is_tried.then_some(true),
            "{right}"
        );
    }
}

/// An observer hears phases that begin and end in turn, and their bytes.
#[test]
fn observers_hear_every_phase() {
    #[derive(Default)]
    struct Heard(std::sync::Mutex<Vec<(Phase, u64)>>);
    impl Observer for Heard {
        fn end(&self, phase: Phase, bytes: u64) {
            self.0.lock().unwrap().push((phase, bytes));
        }
    }
    let code = Code::new(2, 1).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(2 * 64));
    let heard = Heard::default();
    let run = Run { observer: &heard, ..Run::default() };
    let mut encoded = EncodedSet::new(signed.group.shape());
    let originals = [&signed.shards[0][..], &signed.shards[1]];
    let root =
        SetEncoder::new(code, HashKind::Blake3, Backend::best()).encode(0, &originals, &mut encoded, run);
    assert_eq!((root, encoded.root()), (signed.root, root));
    assert_eq!(*heard.0.lock().unwrap(), [(Phase::Encode, 64), (Phase::Digest, 192), (Phase::Tree, 192)]);
    heard.0.lock().unwrap().clear();
    let mut decoder = signed.decoder();
    let mut reading = decoder.begin(&signed.group, &signed.root, 0);
    for index in [1, 2] {
        reading.slot(index).copy_from_slice(&signed.shards[index as usize]);
    }
    reading.check_all(&[(1, [signed.proof(1)]), (2, [signed.proof(2)])], run);
    reading.decode(&PlanCache::new(Backend::best()), run).unwrap();
    let expected =
        [(Phase::Check, 128), (Phase::Plan, 0), (Phase::Decode, 64), (Phase::Digest, 64), (Phase::Tree, 192)];
    assert_eq!(*heard.0.lock().unwrap(), expected);
    // A decoder for the payload has a tree of the originals alone.
    heard.0.lock().unwrap().clear();
    let mut decoder = SetDecoder::for_payload(signed.group.shape());
    signed.load(&mut decoder, &[1, 2]).decode(&PlanCache::new(Backend::best()), run).unwrap();
    assert_eq!(heard.0.lock().unwrap().last(), Some(&(Phase::Tree, 128)));
}

/// The observer hears threads that share the work as one: all hashed bytes, once.
#[test]
fn observers_hear_the_bytes_of_all_threads() {
    #[derive(Default)]
    struct Hashed(std::sync::Mutex<u64>);
    impl Observer for Hashed {
        fn end(&self, phase: Phase, bytes: u64) {
            if matches!(phase, Phase::Encode | Phase::Decode) {
                *self.0.lock().unwrap() += bytes;
            }
        }
    }
    let code = Code::new(2, 1).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(2 * 100_032));
    let hashed = Hashed::default();
    let mut decoder = SetDecoder::for_payload(signed.group.shape());
    let run = Run { executor: &Lent(2), observer: &hashed };
    signed.load(&mut decoder, &[1, 2]).decode(&PlanCache::new(Backend::best()), run).unwrap();
    assert_eq!(*hashed.0.lock().unwrap(), 100_032);
}

/// Section 6.1: the siblings in the shard's own tree, the root of the other one, and zeros. A set without recovery
/// shards has zeros for their tree.
#[test]
fn proofs_lead_from_shards_to_the_tree_and_nothing_else_does() {
    for (k, m) in [(3, 0), (1, 1), (3, 1), (5, 8)] {
        let code = Code::new(k, m).unwrap();
        let signed = Signed::honest(code, HashKind::Blake3, &payload(k * 128));
        let (group, root) = (&signed.group, &signed.root);
        let mut encoded = EncodedSet::new(group.shape());
        let originals: Vec<&[u8]> = signed.shards[..k].iter().map(Vec::as_slice).collect();
        SetEncoder::new(code, HashKind::Blake3, Backend::best()).encode(
            0,
            &originals,
            &mut encoded,
            Run::default(),
        );
        for (i, body) in (0..).zip(&signed.shards) {
            let proof = signed.proof(i);
            let mut path = vec![0xff; proof.len()];
            encoded.write_path(i as usize, &mut path);
            assert_eq!(path, proof, "{k}+{m}, shard {i}");
            let hash = group.shape().hash;
            let leaf = hash.leaf(&hash.digest(body), 0, i);
            assert_eq!(tree_of_shard(group, 0, i, body, &proof), Some(*root));
            assert!(shard_is_proved(group, root, 0, i, body, &proof));
            assert!(leaf_is_proved(group, root, 0, i, &leaf, &proof));
            // Another body, tree, place or length fails; and so do bytes behind the path, or too few of them.
            let other: Vec<u8> = body.iter().map(|byte| byte ^ 1).collect();
            assert!(!shard_is_proved(group, root, 0, i, &other, &proof));
            assert!(!shard_is_proved(group, &[7; 32], 0, i, body, &proof));
            assert!(!leaf_is_proved(group, &[7; 32], 0, i, &leaf, &proof));
            assert!(!leaf_is_proved(group, root, 0, i, &[7; 32], &proof));
            assert_eq!(tree_of_shard(group, 0, i, &body[1..], &proof), None);
            assert_eq!(tree_of_shard(group, 0, i, body, &proof[..proof.len() - 1]), None);
            let is_original = (i as usize) < k;
            let height = if is_original { k } else { m }.next_power_of_two().ilog2() as usize;
            for at in 32 * (height + 1)..proof.len() {
                let mut proof = proof.clone();
                proof[at] ^= 1;
                assert_eq!(tree_of_shard(group, 0, i, body, &proof), None, "byte {at} has to be zero");
            }
        }
    }
}

/// Otherwise an encoder could bind bytes that no reader compares.
#[test]
fn a_tree_of_recovery_shards_where_there_are_none() {
    let signed = Signed::honest(Code::new(3, 0).unwrap(), HashKind::Blake3, &payload(3 * 128));
    let hash = HashKind::Blake3;
    let root = hash.node(Tag::Set, &signed.trees[0].root(), &[1; 32]);
    let mut proof = signed.proof(0);
    let height = 2;
    proof[32 * height..][..32].fill(1);
    assert_eq!(tree_of_shard(&signed.group, 0, 0, &signed.shards[0], &proof), None);
    assert!(!shard_is_proved(&signed.group, &root, 0, 0, &signed.shards[0], &proof));
}

/// Rows for the originals and for the recovery shards that can take their place, and a piece of 8 KiB of each recovery
/// shard.
#[test]
fn memory_of_decoders_for_the_payload() {
    for (k, m, rows) in [(3, 2, 5), (2, 3, 4)] {
        let code = Code::new(k, m).unwrap();
        let whole =
            GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 4096 * k as u64, 4096 * k as u64);
        assert_eq!(SetDecoder::payload_bytes(whole.unwrap().shape()), rows * 4096 + m as u64 * 8192);
    }
}

/// 1, 2 and 4 threads on every backend, with rows long enough to be split, give the same bytes and roots.
#[test]
fn threads_and_backends_do_not_change_a_byte() {
    let code = Code::new(10, 4).unwrap();
    let bytes = payload(10 * 100_032 - 1);
    let expected = Signed::honest(code, HashKind::Blake3, &bytes);
    for backend in Backend::available() {
        for threads in [1, 2, 3, 4] {
            let encoder = SetEncoder::new(code, HashKind::Blake3, backend);
            let rows: Vec<&[u8]> = expected.shards[..10].iter().map(Vec::as_slice).collect();
            let mut encoded = EncodedSet::new(expected.group.shape());
            let root = encoder.encode(0, &rows, &mut encoded, on(&Lent(threads)));
            assert_eq!(root, expected.root, "{} x{threads}", backend.name());
            let mut decoder = expected.decoder();
            let reading = expected.load(&mut decoder, &[1, 3, 5, 7, 8, 9, 10, 11, 12, 13]);
            let decoded = reading.decode(&PlanCache::new(backend), on(&Lent(threads))).unwrap();
            for (i, shard) in (0..).zip(&expected.shards) {
                assert!(decoded.row(i) == shard, "shard {i}, {} x{threads}", backend.name());
            }
        }
    }
}
