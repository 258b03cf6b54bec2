//! Every way through the library once, at sizes that an interpreter of the machine code can run.
//! `scripts/checks/miri.sh` runs this file under Miri, which sees reads outside of what is borrowed, unaligned ones,
//! uninitialised bytes and races. Recovery shards are compared with products by their definition.

mod common;

use common::Lent;
use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaRoom};
use fec_core::block::{Code, Engine, Plan, ShardBuf};
use fec_core::digest::{Digest, HashKind, Tag};
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::Tree;
use fec_core::params::{Form, GroupGeometry};
use fec_core::random::SplitMix64;
use fec_core::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings};

/// The product by its definition: carry-less multiplication bit by bit, reduced on the way.
fn product(mut a: u8, b: u8) -> u8 {
    let mut sum = 0;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            sum ^= a;
        }
        a = a << 1 ^ if a >> 7 == 1 { 0x1D } else { 0 };
    }
    sum
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|&b| product(a, b) == 1).expect("only 0 has none")
}

/// Shard `y` of the polynomial through the points of `known` (Lagrange).
fn shard(known: &[(u8, &[u8])], y: u8) -> Vec<u8> {
    let mut sum = vec![0; known[0].1.len()];
    for &(x, row) in known {
        let others = known.iter().map(|(other, _)| *other).filter(|&other| other != x);
        let (over, under) = others.fold((1, 1), |(n, d), o| (product(n, y ^ o), product(d, x ^ o)));
        let factor = product(over, inverse(under));
        for (sum, byte) in sum.iter_mut().zip(row) {
            *sum ^= product(factor, *byte);
        }
    }
    sum
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut noise = SplitMix64::new(seed);
    (0..len).map(|_| noise.next() as u8).collect()
}

/// All shards of a set, by the definition.
fn codeword(k: usize, m: usize, len: usize) -> Vec<Vec<u8>> {
    let originals: Vec<Vec<u8>> = (0..k).map(|i| noise(len, i as u64)).collect();
    let known: Vec<(u8, &[u8])> = (0..).zip(originals.iter().map(Vec::as_slice)).collect();
    let recovery = (k..k + m).map(|y| shard(&known, y as u8));
    let recovery: Vec<Vec<u8>> = recovery.collect();
    [originals, recovery].concat()
}

fn slowest_and_fastest() -> [Backend; 2] {
    [Backend::by_name("scalar").expect("it is always there"), Backend::best()]
}

/// Both engines, on every backend; rows of a line, of several, and of several and a rest of a tile.
#[test]
fn rows_of_codes_equal_the_definition() {
    for (k, m, len) in [(1, 1, 64), (2, 2, 320), (4, 4, 128), (3, 5, 64)] {
        let shards = codeword(k, m, len);
        let n = k + m;
        let lost_first: Vec<u8> = (0..n as u8).collect();
        let lost_last: Vec<u8> = lost_first.iter().rev().copied().collect();
        for order in [lost_first, lost_last] {
            let (known, wanted) = order.split_at(k);
            let rows: Vec<&[u8]> = known.iter().map(|&i| &shards[usize::from(i)][..]).collect();
            for backend in Backend::available() {
                for engine in [Engine::Matrix, Engine::Fft] {
                    let code = Code::new(k, m).unwrap();
                    // Some sets of known shards suit no transform.
                    let Ok(plan) = Plan::with_engine(code, backend, known, wanted, engine) else { continue };
                    let mut out = ShardBuf::new(m, len);
                    plan.run(&rows, &mut out.iter_mut().collect::<Vec<_>>());
                    for (i, row) in wanted.iter().zip(out.iter()) {
                        assert!(row == shards[usize::from(*i)], "{i} of {k} + {m} x {len}: {plan:?}");
                    }
                }
            }
        }
    }
}

/// Areas of one group and of two, whose sum with the powers of their points is zero, and which come back.
#[test]
fn areas_equal_the_definition_and_come_back() {
    for (k, m, len) in [(5, 3, 256), (70, 66, 128)] {
        let code = AreaCode::new(k, m).unwrap();
        let mut all: Vec<Vec<u8>> = (0..code.n()).map(|p| noise(len, p as u64)).collect();
        for backend in Backend::available() {
            let lent = Lent(2);
            let mut room = AreaRoom::new(m, len, 2).unwrap();
            let mut encoder = AreaEncoder::new(code, len, backend, &mut room).unwrap();
            for coset in 0..code.cosets() {
                let row = |p: usize| (p >= m).then(|| &all[p][..]);
                encoder.add(coset, &code.positions(coset).map(row).collect::<Vec<_>>(), &lent).unwrap();
            }
            let mut out = vec![vec![0; len]; m];
            encoder.finish(&mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(), &lent).unwrap();
            all[..m].clone_from_slice(&out);
            let mut terms: Vec<u16> = all.iter().map(|row| u16::from_le_bytes([row[9], row[73]])).collect();
            for power in 0..3 {
                assert_eq!(
                    terms.iter().fold(0, |sum, term| sum ^ term),
                    0,
                    "power {power} on {}",
                    backend.name()
                );
                let points = (0..).map(fec_core::gf65536::point);
                terms.iter_mut().zip(points).for_each(|(term, x)| *term = fec_core::gf65536::mul(*term, x));
            }
            let lost: Vec<usize> = (1..=m).collect();
            let mut decoder = AreaDecoder::new(code, len, &lost, backend, &mut room).unwrap();
            for coset in 0..code.cosets() {
                let row = |p: usize| (!lost.contains(&p)).then(|| &all[p][..]);
                decoder.add(coset, &code.positions(coset).map(row).collect::<Vec<_>>(), &lent).unwrap();
            }
            let mut solution = decoder.solve(&lent).unwrap();
            for coset in 0..code.cosets() {
                let positions = solution.lost(coset).to_vec();
                let mut out = vec![vec![0; len]; positions.len()];
                let mut rows: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
                solution.restore(coset, &mut rows, &lent).unwrap();
                assert!(positions.iter().map(|&p| &all[p]).eq(&out), "{}", backend.name());
            }
        }
    }
}

#[test]
fn whole_sets_in_one_call() {
    let shards = codeword(3, 2, 77);
    assert_eq!(fec_core::encode(3, 2, &shards[..3]).unwrap(), shards[3..]);
    let mut left: Vec<Option<Vec<u8>>> = shards.iter().cloned().map(Some).collect();
    (left[0], left[2]) = (None, None);
    fec_core::decode(3, 2, &mut left).unwrap();
    assert!(left.into_iter().map(Option::unwrap).eq(shards));
}

/// The tree of a set of one group, from digests of the shards alone.
fn trees(hash: HashKind, shards: &[Vec<u8>], k: usize) -> ([Tree; 2], Digest) {
    let leaves = (0..).zip(shards).map(|(i, shard)| hash.leaf(&hash.digest(shard), 0, i));
    let leaves: Vec<Digest> = leaves.collect();
    let mut trees = [Tree::new(), Tree::new()];
    trees[0].leaves_mut().extend_from_slice(&leaves[..k]);
    trees[1].leaves_mut().extend_from_slice(&leaves[k..]);
    let [originals, recovery] = trees.each_mut().map(|tree| tree.build(hash));
    (trees, hash.node(Tag::Set, &originals, &recovery))
}

/// A set is encoded by one and by two threads, proved, and decoded from the rest.
#[test]
fn sets_with_trees() {
    let (k, m) = (3, 2);
    let code = Code::new(k, m).unwrap();
    for hash in [HashKind::Blake3, HashKind::Sha256] {
        let group = GroupGeometry::whole(Form::Shards, hash, code, 4096 * k as u64, 3 * 1088).unwrap();
        assert_eq!((group.shape().sets, group.shape().shard_len), (1, 1088));
        let shards = codeword(k, m, 1088);
        let (trees, root) = trees(hash, &shards, k);
        for (threads, backend) in (1..).zip(slowest_and_fastest()) {
            let lent = Lent(threads);
            let run = || Run { executor: &lent, ..Run::default() };
            let rows: Vec<&[u8]> = shards[..k].iter().map(Vec::as_slice).collect();
            let mut encoded = EncodedSet::new(group.shape());
            assert_eq!(SetEncoder::new(code, hash, backend).encode(0, &rows, &mut encoded, run()), root);
            assert!(encoded.recovery().iter().eq(shards[k..].iter().map(Vec::as_slice)));
            let mut decoder = SetDecoder::new(group.shape());
            let mut reading = decoder.begin(&group, &root, 0);
            for index in [1, 3, 4] {
                let (own, other, at) = if index < k { (0, 1, index) } else { (1, 0, index - k) };
                let mut proof = vec![0; group.shape().proof_len()];
                let used = trees[own].write_path(at, &mut proof);
                proof[used..used + 32].copy_from_slice(&trees[other].root());
                let slot = reading.slot(index as u32);
                slot.copy_from_slice(&shards[index]);
                slot[7] ^= 1;
                assert!(!reading.check(index as u32, &[proof.clone()], run()), "a wrong byte is seen");
                reading.slot(index as u32).copy_from_slice(&shards[index]);
                assert!(reading.check(index as u32, &[proof], run()));
            }
            let plans = PlanCache::new(backend);
            let decoded = reading.decode(&plans, run()).unwrap();
            for (i, shard) in (0..).zip(&shards) {
                assert!(decoded.row(i) == shard, "{i} on {} by {threads}", backend.name());
            }
        }
    }
}

/// A stream that loses some packets.
#[test]
fn packets_come_back() {
    let settings = StreamSettings {
        stream_id: 7,
        window: 96,
        block: 24,
        payload: 40,
        profile: Profile::Bounded,
        ratio: Ratio::new(1, 3).unwrap(),
        limit: 1 << 20,
    };
    let payloads: Vec<Vec<u8>> = (0..40).map(|seq| noise(40 - seq % 3, seq as u64)).collect();
    for backend in slowest_and_fastest() {
        let mut packets: Vec<Vec<u8>> = Vec::new();
        let mut encoder = Encoder::new(&settings, backend).unwrap();
        for payload in &payloads {
            encoder.push(payload, &mut |packet: &[u8]| packets.push(packet.to_vec())).unwrap();
        }
        encoder.finish(&mut |packet: &[u8]| packets.push(packet.to_vec()));
        let mut decoder = Decoder::new(Limits::default(), backend);
        let (mut given, mut rebuilt) = (Vec::new(), 0);
        for packet in packets.iter().enumerate().filter(|(i, _)| i % 9 != 4).map(|(_, packet)| packet) {
            decoder.receive(packet);
            while let Some(event) = decoder.next() {
                if let Event::Packet { payload, rebuilt: was_lost, .. } = event {
                    given.push(payload.to_vec());
                    rebuilt += usize::from(was_lost);
                }
            }
        }
        assert!(given == payloads, "{}: {} of {}", backend.name(), given.len(), payloads.len());
        assert!(rebuilt > 3);
    }
}
