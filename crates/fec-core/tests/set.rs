//! Sets as an honest and as a malicious encoder makes them, on every backend and thread count.

use fec_core::block::{Code, ShardBuf};
use fec_core::digest::{Digest, HashKind};
use fec_core::executor::{Executor, Inline};
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::Tree;
use fec_core::observe::Unobserved;
use fec_core::params::{FileGeometry, GroupGeometry};
use fec_core::set::{PlanCache, SetDecoder, SetEncoder, SetError};

/// Scoped threads, as a caller lends them.
struct Lent(usize);

impl Executor for Lent {
    fn width(&self) -> usize {
        self.0
    }

    fn run(&self, count: usize, job: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for first in 0..self.0.min(count) {
                scope.spawn(move || (first..count).step_by(self.0).for_each(job));
            }
        });
    }
}

/// All n shards of one set with a tree over them, whatever the shards are.
struct Signed {
    group: GroupGeometry,
    shards: Vec<Vec<u8>>,
    tree: Tree,
    root: Digest,
}

impl Signed {
    /// A tree over these shards: what an encoder signs, be it true or not.
    fn new(group: GroupGeometry, shards: Vec<Vec<u8>>) -> Signed {
        let hash = group.shape().hash;
        let mut tree = Tree::new();
        tree.leaves_mut().extend((0..).zip(&shards).map(|(i, shard)| hash.leaf(&hash.digest(shard), 0, i)));
        let root = group.root(&tree.build(hash));
        Signed { group, shards, tree, root }
    }

    /// The codeword of `payload`, computed by the library.
    fn honest(code: Code, hash: HashKind, payload: &[u8]) -> Signed {
        let len = payload.len() as u64;
        let group = FileGeometry::shard_files(hash, code, len.max(1), len).unwrap().group(0);
        assert_eq!(group.shape().sets, 1);
        let mut originals = ShardBuf::new(code.k(), group.shape().shard_len);
        for (i, row) in originals.iter_mut().enumerate() {
            let at = group.shard_offset(0, i) as usize;
            let part = group.shard_payload(0, i);
            row[..part].copy_from_slice(&payload[at..at + part]);
        }
        let mut recovery = ShardBuf::new(code.m(), group.shape().shard_len);
        let rows: Vec<&[u8]> = originals.iter().collect();
        let encoder = SetEncoder::new(code, hash, Backend::best());
        encoder.encode(0, &rows, &mut recovery, &mut Tree::new(), &Inline, &Unobserved);
        Signed::new(group, originals.iter().chain(recovery.iter()).map(<[u8]>::to_vec).collect())
    }

    /// Loads these shards into a decoder; each must pass its check.
    fn load(&self, indices: &[u32]) -> SetDecoder {
        let mut decoder = SetDecoder::new(self.group.shape());
        decoder.begin(&self.group, &self.root, 0);
        self.read_into(&mut decoder, indices);
        decoder
    }

    /// Reads these shards into a decoder that began this set; each must pass its check.
    fn read_into(&self, decoder: &mut SetDecoder, indices: &[u32]) {
        let mut proof = vec![0u8; self.group.shape().proof_len()];
        for index in indices {
            decoder.slot(*index).copy_from_slice(&self.shards[*index as usize]);
            self.tree.write_path(*index as usize, &mut proof);
            assert!(decoder.check(*index, &[&proof], &Unobserved), "shard {index} is proved by the tree");
        }
    }

    fn decode(&self, indices: &[u32]) -> Result<SetDecoder, SetError> {
        let mut decoder = self.load(indices);
        decoder.decode(&PlanCache::new(Backend::best()), &Inline, &Unobserved)?;
        Ok(decoder)
    }
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
            let decoder = signed.decode(&subset).unwrap();
            for (i, shard) in (0..).zip(&signed.shards) {
                assert_eq!(decoder.row(i), shard, "shard {i} from {subset:?}");
            }
        }
    }
}

/// A decoder that keeps only the originals: the same originals and the same verdicts, with recovery shards read in
/// every order that takes room from each other, on one thread and several, whole pieces and parts of one.
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
                    decoder.begin(&honest.group, &honest.root, 0);
                    for index in &order[..m] {
                        decoder.slot(*index).fill(0x55);
                    }
                    honest.read_into(&mut decoder, intact);
                    decoder.decode(&PlanCache::new(Backend::best()), &Lent(threads), &Unobserved).unwrap();
                    for (i, shard) in (0..).zip(&honest.shards[..k]) {
                        assert!(decoder.row(i) == shard, "original {i} from {intact:?}, {k} + {m}");
                    }
                    // The shard that was not read last is false: only the check of the codeword can tell.
                    let Some(altered) = m.checked_sub(1).map(|last| order[last] as usize) else { continue };
                    let mut shards = honest.shards.clone();
                    *shards[altered].last_mut().unwrap() ^= 1;
                    let forged = Signed::new(honest.group, shards);
                    decoder.begin(&forged.group, &forged.root, 0);
                    forged.read_into(&mut decoder, intact);
                    let result =
                        decoder.decode(&PlanCache::new(Backend::best()), &Lent(threads), &Unobserved);
                    assert_eq!(result, Err(SetError::NotACodeword), "{altered} altered, from {intact:?}");
                }
            }
        }
    }
}

/// Shards that are checked together count one by one; one whose room went to another does not count.
#[test]
fn checking_together_is_checking_each() {
    let code = Code::new(2, 5).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(128));
    let mut proofs = vec![vec![0u8; signed.group.shape().proof_len()]; 7];
    (0..).zip(&mut proofs).for_each(|(i, proof)| signed.tree.write_path(i, proof));
    let mut decoder = SetDecoder::for_payload(signed.group.shape());
    decoder.begin(&signed.group, &signed.root, 0);
    for index in [0, 3, 4, 5] {
        decoder.slot(index).copy_from_slice(&signed.shards[index as usize]);
    }
    decoder.slot(0)[9] ^= 1;
    let proofs: Vec<[&[u8]; 2]> = proofs.iter().map(|proof| [&[][..], &proof[..]]).collect();
    let all: Vec<(u32, &[&[u8]])> = (0..).zip(proofs.iter().map(|proofs| &proofs[..])).collect();
    // 0 is damaged, 3 gave its room to 5, the others were never read.
    let found = decoder.check_all(&all, &Unobserved);
    assert_eq!(found, [false, false, false, false, true, true, false]);
    assert_eq!(decoder.intact(), 2);
    decoder.decode(&PlanCache::new(Backend::best()), &Inline, &Unobserved).unwrap();
    assert_eq!((decoder.row(0), decoder.row(1)), (&signed.shards[0][..], &signed.shards[1][..]));
}

/// A set at 33+67 from many shapes of loss, on every backend: few originals lost, some, all of them, and all
/// with so many recovery shards left that those a transform can start from are among them. An altered shard
/// is noticed in each case, be it among those decoded from or not.
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
            let mut decoder = honest.load(intact);
            decoder.decode(&plans, &Inline, &Unobserved).unwrap();
            for (i, shard) in (0..).zip(&honest.shards) {
                assert!(decoder.row(i) == shard, "shard {i} from {intact:?}, {}", backend.name());
            }
            let result = forged.load(intact).decode(&plans, &Inline, &Unobserved);
            assert_eq!(result, Err(SetError::NotACodeword), "from {intact:?}, {}", backend.name());
        }
    }
}

/// A valid tree over something that is not a codeword is caught whichever k shards are used: also when
/// the false shard is not among them.
#[test]
fn a_valid_tree_over_an_invalid_codeword() {
    let code = Code::new(4, 3).unwrap();
    let honest = Signed::honest(code, HashKind::Blake3, &payload(4 * 128));
    for altered in 0..7 {
        let mut shards = honest.shards.clone();
        shards[altered][17] ^= 1;
        let signed = Signed::new(honest.group, shards);
        for subset in subsets(7, 4) {
            let result = signed.decode(&subset).map(|_| ());
            assert_eq!(result, Err(SetError::NotACodeword), "shard {altered} altered, from {subset:?}");
        }
    }
}

/// A surplus shard that is proved by the tree and differs from the codeword: its digest must not be
/// taken over, it must be computed again.
#[test]
fn a_digest_reused_from_the_input() {
    let code = Code::new(3, 3).unwrap();
    let honest = Signed::honest(code, HashKind::Sha256, &payload(3 * 64));
    let mut shards = honest.shards.clone();
    shards[5][0] ^= 0x80;
    let signed = Signed::new(honest.group, shards);
    assert_eq!(signed.decode(&[0, 1, 2, 5]).map(|_| ()), Err(SetError::NotACodeword));
    assert_eq!(signed.decode(&[0, 1, 2, 3, 4, 5]).map(|_| ()), Err(SetError::NotACodeword));
}

#[test]
fn padding_that_is_not_zero() {
    let code = Code::new(2, 2).unwrap();
    // 100 bytes in 128: a full codeword over other padding, signed as if it were the payload's.
    let short = Signed::honest(code, HashKind::Blake3, &payload(100));
    let full = Signed::honest(code, HashKind::Blake3, &payload(128));
    let signed = Signed::new(short.group, full.shards.clone());
    for subset in subsets(4, 2) {
        assert_eq!(signed.decode(&subset).map(|_| ()), Err(SetError::Padding), "{subset:?}");
    }
}

#[test]
fn too_few_shards_and_shards_that_fail_their_check() {
    let code = Code::new(3, 2).unwrap();
    let signed = Signed::honest(code, HashKind::Blake3, &payload(192));
    let mut decoder = signed.load(&[0, 4]);
    let mut proof = vec![0u8; signed.group.shape().proof_len()];
    signed.tree.write_path(1, &mut proof);
    // The right bytes under another index, and wrong bytes under the right one.
    decoder.slot(2).copy_from_slice(&signed.shards[1]);
    assert!(!decoder.check(2, &[&proof], &Unobserved));
    decoder.slot(1).copy_from_slice(&signed.shards[0]);
    assert!(!decoder.check(1, &[&proof], &Unobserved));
    assert!(!decoder.check(1, &[&proof[32..], &[]], &Unobserved), "a proof that is too short");
    assert_eq!(decoder.intact(), 2);
    let plans = PlanCache::new(Backend::best());
    let result = decoder.decode(&plans, &Inline, &Unobserved);
    assert_eq!(result, Err(SetError::TooFew { intact: 2, needed: 3 }));
    // A row that is written again must be checked again.
    decoder.slot(1).copy_from_slice(&signed.shards[1]);
    assert_eq!(decoder.intact(), 2);
    assert!(decoder.check(1, &[&proof], &Unobserved));
    decoder.decode(&plans, &Inline, &Unobserved).unwrap();
    assert_eq!(decoder.row(2), signed.shards[2]);
}

/// 1, 2 and 4 threads, on every backend, with rows long enough to be split: the same bytes and roots.
#[test]
fn threads_and_backends_do_not_change_a_byte() {
    let code = Code::new(10, 4).unwrap();
    let bytes = payload(10 * 100_032 - 1);
    let expected = Signed::honest(code, HashKind::Blake3, &bytes);
    for backend in Backend::available() {
        for threads in [1, 2, 3, 4] {
            let encoder = SetEncoder::new(code, HashKind::Blake3, backend);
            let rows: Vec<&[u8]> = expected.shards[..10].iter().map(Vec::as_slice).collect();
            let mut recovery = ShardBuf::new(4, expected.group.shape().shard_len);
            let mut tree = Tree::new();
            let root = encoder.encode(0, &rows, &mut recovery, &mut tree, &Lent(threads), &Unobserved);
            assert_eq!(expected.group.root(&root), expected.root, "{} x{threads}", backend.name());
            let mut decoder = expected.load(&[1, 3, 5, 7, 8, 9, 10, 11, 12, 13]);
            decoder.decode(&PlanCache::new(backend), &Lent(threads), &Unobserved).unwrap();
            for (i, shard) in (0..).zip(&expected.shards) {
                assert!(decoder.row(i) == shard, "shard {i}, {} x{threads}", backend.name());
            }
        }
    }
}
