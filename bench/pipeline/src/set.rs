//! A set through fec, and against hashing its shards, which every pipeline needs.

use crate::{Contender, race, timed};
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::gf256::kernel::Backend;
use fec_core::params::{Form, GroupGeometry};
use fec_core::set::{Decoded, EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};
use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes of payload of a set.
pub(crate) const PAYLOAD: usize = 4 << 20;

/// Bytes without structure: no code or hash can take a short cut.
pub(crate) fn payload() -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..PAYLOAD).map(|_| next()).collect()
}

/// The way a set is decoded.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// As `fec decode` does: originals are proved, and nothing more is computed.
    Default,
    /// As `fec decode --strict` and `commonware-coding` do: the whole set is shown to be a codeword.
    Strict,
}

/// A set in memory.
pub(crate) struct Set {
    pub(crate) group: GroupGeometry,
    pub(crate) originals: ShardBuf,
    encoded: EncodedSet,
    /// X: the root of the only set.
    tree: [u8; 32],
}

impl Set {
    pub(crate) fn new(code: Code, hash: HashKind) -> Set {
        let bytes = PAYLOAD as u64;
        let group = GroupGeometry::whole(Form::Shards, hash, code, bytes, bytes).expect("a geometry");
        let originals = ShardBuf::new(code.k(), group.shape().shard_len);
        Set { group, originals, encoded: EncodedSet::new(group.shape()), tree: [0; 32] }
    }

    /// Copies the payload in, as from a file.
    pub(crate) fn fill(&mut self, payload: &[u8]) {
        for (i, row) in self.originals.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(self.group.shard_payload(0, i));
            let at = self.group.shard_offset(0, i) as usize;
            bytes.copy_from_slice(&payload[at..at + bytes.len()]);
            padding.fill(0);
        }
    }

    pub(crate) fn encode(&mut self, encoder: &SetEncoder) {
        let rows: Vec<&[u8]> = self.originals.iter().collect();
        self.tree = encoder.encode(0, &rows, &mut self.encoded, Run::default());
    }

    /// Encodes the payload in place. Only the padded shards at its end are copied.
    pub(crate) fn encode_in_place(&mut self, payload: &[u8], encoder: &SetEncoder) {
        let len = self.group.shape().shard_len;
        let whole = payload.len() / len;
        for (i, row) in self.originals.iter_mut().enumerate().skip(whole) {
            let (bytes, padding) = row.split_at_mut(self.group.shard_payload(0, i));
            bytes.copy_from_slice(&payload[i * len..][..bytes.len()]);
            padding.fill(0);
        }
        let rows: Vec<&[u8]> = payload.chunks_exact(len).chain(self.originals.iter().skip(whole)).collect();
        self.tree = encoder.encode(0, &rows, &mut self.encoded, Run::default());
    }

    pub(crate) fn shard(&self, index: u32) -> &[u8] {
        let recovery = (index as usize).checked_sub(self.originals.rows());
        recovery.map_or_else(|| self.originals.row(index as usize), |i| self.encoded.recovery().row(i))
    }

    /// Reads, checks and decodes. Returns the times of checking and of decoding.
    pub(crate) fn decode<'a>(
        &'a self,
        way: Way,
        decoder: &'a mut SetDecoder,
        kept: &[u32],
        plans: &PlanCache,
    ) -> (Duration, Duration, Decoded<'a>) {
        let mut shards: Vec<(u32, [Vec<u8>; 1])> =
            kept.iter().map(|index| (*index, [vec![0; self.group.shape().proof_len()]])).collect();
        let mut reading = decoder.begin(&self.group, &self.tree, 0);
        for (index, [proof]) in &mut shards {
            reading.slot(*index).copy_from_slice(self.shard(*index));
            self.encoded.write_path(*index as usize, proof);
        }
        let (checking, intact) = timed(|| reading.check_all(&shards, Run::default()));
        assert!(intact.iter().all(|intact| *intact), "every shard is intact");
        let (decoding, decoded) = timed(|| match way {
            Way::Default => reading.decode(plans, Run::default()),
            Way::Strict => reading.decode_strictly(plans, Run::default()),
        });
        (checking, decoding, decoded.expect("it decodes"))
    }
}

/// k shards without the first `lost` originals.
fn kept(code: Code, lost: usize) -> Vec<u32> {
    (lost..code.k() + lost).map(|i| i as u32).collect()
}

/// Everything on one core against `blake3::hash` of the same shards.
pub(crate) fn against_hashing(rounds: usize) {
    let code = Code::new(33, 67).expect("a code");
    let set = RefCell::new(Set::new(code, HashKind::Blake3));
    let encoder = SetEncoder::new(code, HashKind::Blake3, Backend::best());
    let encode = || set.borrow_mut().encode(&encoder);
    set.borrow_mut().fill(&payload());
    encode();
    let hashing = || {
        Contender::new("`blake3::hash` of the 100 shards", || {
            let set = set.borrow();
            (0..100).for_each(|i| _ = black_box(blake3::hash(set.shard(i))));
        })
    };
    let together = Contender::new("their digests, computed together", || {
        let set = set.borrow();
        let rows: Vec<&[u8]> = (0..100).map(|i| set.shard(i)).collect();
        black_box(HashKind::Blake3.digests(&rows));
    });
    let ours = Contender::new("encoding, 100 digests, tree", encode);
    race("encode 33 + 67 of 4 MiB, blake3", rounds, vec![hashing(), ours, together]);

    let plans = PlanCache::new(Backend::best());
    for lost in [0, 1, 22, 33] {
        let kept = kept(code, lost);
        let set = set.borrow();
        let mut decoder = SetDecoder::for_payload(set.group.shape());
        let mut keeping = SetDecoder::new(set.group.shape());
        let (_, _, decoded) = set.decode(Way::Default, &mut decoder, &kept, &plans);
        assert!(decoded.rows().eq((0..33).map(|i| set.shard(i))), "decoding gives the originals back");
        let (_, _, decoded) = set.decode(Way::Strict, &mut keeping, &kept, &plans);
        assert!(decoded.rows().eq((0..100).map(|i| set.shard(i))), "decoding gives every shard back");
        let decoder = RefCell::new(decoder);
        let decode = |way, decoder: &mut SetDecoder| {
            let (checking, decoding, _) = set.decode(way, decoder, &kept, &plans);
            checking + decoding
        };
        let title = format!("decode 33 + 67 of 4 MiB, {lost} originals lost, blake3");
        let contenders = vec![
            hashing(),
            Contender::timing_itself("checking 33, decoding", || {
                decode(Way::Default, &mut decoder.borrow_mut())
            }),
            Contender::timing_itself("the same with codeword check (strict)", || {
                decode(Way::Strict, &mut decoder.borrow_mut())
            }),
            Contender::timing_itself("strict, keeping all 100 shards", || decode(Way::Strict, &mut keeping)),
        ];
        race(&title, rounds, contenders);
    }
}

/// As many sets as would be in flight for a file, on one thread and on two.
pub(crate) fn two_threads(rounds: usize) {
    const SETS: usize = 16;
    let code = Code::new(33, 67).expect("a code");
    let (payload, backend) = (payload(), Backend::best());
    let encoder = SetEncoder::new(code, HashKind::Blake3, backend);
    let plans = PlanCache::new(backend);
    let kept = kept(code, 22);
    let mut workers: Vec<(Set, SetDecoder)> = (0..2)
        .map(|_| {
            let set = Set::new(code, HashKind::Blake3);
            let decoder = SetDecoder::for_payload(set.group.shape());
            (set, decoder)
        })
        .collect();
    let work = |(set, decoder): &mut (Set, SetDecoder), sets: usize| {
        for _ in 0..sets {
            set.fill(&payload);
            set.encode(&encoder);
            set.decode(Way::Default, decoder, &kept, &plans);
        }
    };
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for round in 0..=rounds.div_ceil(2) {
        let began = Instant::now();
        work(&mut workers[0], SETS);
        let first = began.elapsed();
        std::thread::scope(|scope| {
            for worker in &mut workers {
                scope.spawn(move || work(worker, SETS / 2));
            }
        });
        if round > 0 {
            one.push(first.as_secs_f64());
            two.push((began.elapsed() - first).as_secs_f64());
        }
    }
    let mut ratios: Vec<f64> = one.iter().zip(&two).map(|(one, two)| one / two).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "\n### two threads against one, {SETS} sets of 4 MiB encoded, checked and decoded (clock time)\n"
    );
    println!("{:.2} times as fast", ratios[ratios.len() / 2]);
}
