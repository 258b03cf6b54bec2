//! fec against `commonware-coding`, which does the same job: shards, digests, a root, and the way from k checked shards
//! back to the payload, with proof that an honest encoder would have made the same shards.

use crate::set::{PAYLOAD, Set, Way, payload};
use crate::{Contender, race, timed};
use commonware_coding::{Config, ReedSolomon, Scheme};
use commonware_cryptography::{Blake3, Hasher, Sha256};
use commonware_parallel::Sequential;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::gf256::kernel::Backend;
use fec_core::set::{PlanCache, SetDecoder, SetEncoder};
use std::cell::RefCell;
use std::hint::black_box;
use std::num::NonZeroU16;

/// The result of commonware-coding for a payload.
type Encoded<H> = (<ReedSolomon<H> as Scheme>::Commitment, Vec<<ReedSolomon<H> as Scheme>::Shard>);

pub(crate) fn races(rounds: usize) {
    with::<Blake3>(HashKind::Blake3, rounds);
    with::<Sha256>(HashKind::Sha256, rounds);
}

fn with<H: Hasher>(hash: HashKind, rounds: usize) {
    let payload = payload();
    let payload = &payload[..];
    let code = Code::new(33, 67).expect("a code");
    let mut set = Set::new(code, hash);
    let encoder = SetEncoder::new(code, hash, Backend::best());
    let number = |n: usize| NonZeroU16::new(n as u16).expect("more than none");
    let config = Config { minimum_shards: number(code.k()), extra_shards: number(code.m()) };
    let encode = || ReedSolomon::<H>::encode(&config, payload, &Sequential).expect("it encodes");

    let ours = Contender::new("fec", || {
        set.encode_in_place(payload, &encoder);
    });
    let theirs = Contender::new("commonware-coding", || {
        black_box(encode());
    });
    let name = hash.name();
    race(&format!("payload to 33 + 67 shards and root, 4 MiB, {name}"), rounds, vec![ours, theirs]);

    set.fill(payload);
    // Arbitrary recovery shards, and those that a receiver with a choice takes.
    decode::<H>(&set, &config, &encode(), &(33..66).collect::<Vec<u32>>(), rounds);
    decode::<H>(&set, &config, &encode(), &(64..97).collect::<Vec<u32>>(), rounds);
}

/// From the recovery shards `kept` to the payload.
fn decode<H: Hasher>(set: &Set, config: &Config, (root, shards): &Encoded<H>, kept: &[u32], rounds: usize) {
    let payload = &payload()[..];
    let recovery: Vec<(u16, _)> = kept.iter().map(|i| (*i as u16, &shards[*i as usize])).collect();
    let check = || ReedSolomon::<H>::check_many(config, root, &recovery, &Sequential);
    let checked: Vec<_> = check().into_iter().map(|shard| shard.expect("it is intact")).collect();
    let plans = PlanCache::new(Backend::best());
    let mut decoder = SetDecoder::for_payload(set.group.shape());
    let ours = Contender::timing_itself("fec", || set.decode(Way::Strict, &mut decoder, kept, &plans).0);
    let theirs = Contender::new("commonware-coding", || {
        black_box(check());
    });
    let (name, first) = (set.group.shape().hash.name(), kept[0]);
    race(&format!("checking 33 shards, {name}"), rounds, vec![ours, theirs]);

    let ours = RefCell::new((decoder, vec![0; PAYLOAD]));
    let decode = |way| {
        let (decoder, out) = &mut *ours.borrow_mut();
        let (_, decoding, decoded) = set.decode(way, decoder, kept, &plans);
        let copying = timed(|| {
            decoded
                .payload()
                .for_each(|(at, bytes)| out[at as usize..][..bytes.len()].copy_from_slice(bytes));
        });
        decoding + copying.0
    };
    let strict = Contender::timing_itself("fec, codeword check (strict)", || decode(Way::Strict));
    let default = Contender::timing_itself("fec, no codeword check (default)", || decode(Way::Default));
    let theirs = Contender::timing_itself("commonware-coding", || {
        let (time, payload_again) = timed(|| {
            let decoded = ReedSolomon::<H>::decode(config, root, checked.iter(), &Sequential);
            decoded.expect("it decodes")
        });
        assert!(payload_again == payload, "commonware-coding gives the payload back");
        time
    });
    let title = format!("33 checked recovery shards, from {first} on, to payload, {name}");
    race(&title, rounds, vec![strict, default, theirs]);
    assert!(ours.borrow().1 == payload, "fec gives the payload back");
}
