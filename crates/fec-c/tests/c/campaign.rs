//! Damaged and forged inputs through C: what comes out is what the library in Rust says, and nothing else comes out.
//! FEC_MUTATIONS is the number of cases, FEC_SEED another seed.

use crate::calls::{Calls, Ended, Looked, Options, Report};
use crate::vectors::exit_of;
use fec_core::digest::Digest;
use fec_core::format::shard_file::{Encoding, ShardHeader};
use fec_core::random::SplitMix64;
use fecfile::io::ReadAt;
use fecfile::report::{ShardState, Verified};
use fecfile::{Archive, Context, Destination, Input, Object, Result, Wish, decode_reader};
use std::sync::Arc;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().expect("a number"))
}

/// The inputs, as the library in Rust takes them.
fn input(inputs: &[Vec<u8>]) -> Input {
    let object = |bytes: &Vec<u8>| {
        let bytes: Arc<dyn ReadAt> = Arc::new(bytes.clone().into_boxed_slice());
        Object::new("an input", bytes).expect("its length is known")
    };
    let mut objects: Vec<Object> = inputs.iter().map(object).collect();
    if objects.len() == 1 { Input::One(objects.remove(0)) } else { Input::Several(objects) }
}

fn status<T>(done: &Result<T>) -> i32 {
    done.as_ref().map_or_else(|error| exit_of(error.class()) as i32, |_| 0)
}

/// The words of an error are those of C.
fn ended<T>(done: &Result<T>) -> Ended {
    let why = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
    Ended { status: status(done), why }
}

fn decoded(inputs: &[Vec<u8>], root: Option<Digest>, context: &Context<'_>) -> (i32, Vec<u8>) {
    let mut out = Vec::new();
    let done = Archive::open(&input(inputs), root, context).and_then(|archive| {
        archive.opener(None)?;
        archive.restore(Destination::writer(&mut out), Wish::default(), context).map(|_| ())
    });
    if done.is_err() {
        out.clear();
    }
    (status(&done), out)
}

/// The exit code of `fec verify`.
fn code_of(verified: &Verified) -> i32 {
    match (verified.is_restorable, verified.is_intact()) {
        (None | Some(true), true) => 0,
        (None, false) => 5,
        (Some(true), false) => 1,
        (Some(false), _) => exit_of(verified.leftovers.class()) as i32,
    }
}

fn verified(inputs: &[Vec<u8>], root: Option<Digest>, context: &Context<'_>) -> (i32, Report) {
    let several = || Archive::open(&input(inputs).as_several(), root, context);
    let archive = Archive::open(&input(inputs), root, context);
    let archive = archive.and_then(|archive| if archive.is_one_shard() { several() } else { Ok(archive) });
    let found = archive.and_then(|archive| archive.verify(false, context));
    let Ok(verified) = &found else { return (status(&found), Report::default()) };
    let of = |state| verified.found.shards.iter().filter(|shard| shard.state == state).count() as u32;
    let report = Report {
        root: verified.root.unwrap_or_default(),
        k: verified.shape.code.k() as u32,
        m: verified.shape.code.m() as u32,
        intact: of(ShardState::Intact),
        damaged: of(ShardState::Damaged),
        missing: of(ShardState::Missing),
        may_still_lose: verified.may_still_lose().map_or(-1, |shards| shards as i32),
        payload_len: verified.payload_len.unwrap_or(u64::MAX),
    };
    (code_of(verified), report)
}

/// A shard alone, under a root.
fn shard(bytes: &Vec<u8>, root: Digest, context: &Context<'_>) -> (i32, u32) {
    let found = Archive::open(&input(std::slice::from_ref(bytes)), Some(root), context)
        .and_then(|archive| Ok((archive.is_one_shard(), archive.verify(false, context)?)));
    match &found {
        Err(_) => (status(&found), 0),
        Ok((false, _)) => (2, 0),
        Ok((true, verified)) => match code_of(verified) {
            0 => (0, verified.found.shards[0].index),
            code => (code, 0),
        },
    }
}

/// Compares what C says of inputs with what Rust says. No payload but the right one comes out under its root.
fn compare(looked: &Looked, inputs: &[Vec<u8>], root: Option<Digest>, payload: &[u8], context: &Context<'_>) {
    let (code, out) = decoded(inputs, root, context);
    assert_eq!((looked.decoded.0.status, &looked.decoded.1), (code, &out), "decode: {:?}", looked.decoded.0);
    assert!(root.is_none() || code != 0 || out == payload, "another payload came out");
    let (code, report) = verified(inputs, root, context);
    assert_eq!((looked.verified.0.status, &looked.verified.1), (code, &report), "{:?}", looked.verified.0);
    for (ended, bytes) in looked.shards.iter().zip(inputs) {
        let (code, index) = shard(bytes, root.expect("shards are looked at with a root"), context);
        assert_eq!((ended.0.status, ended.1), (code, index), "a shard: {:?}", ended.0);
    }
    if let Some((stream, written)) = &looked.stream {
        let mut out = Vec::new();
        let done = decode_reader(&inputs[0][..], &mut out, root, context);
        assert_eq!(stream.status, ended(&done).status, "a stream: {stream:?}");
        assert!(stream.status != 0 || *written == out);
    }
}

/// Damage of any kind: of bits, holes, cuts, doubles, strangers, and of headers with the right checksum.
fn mutate(inputs: &mut Vec<Vec<u8>>, random: &mut SplitMix64, foreign: &[Vec<u8>]) {
    let mut below = |most: usize| random.below(most.max(1) as u32) as usize;
    let nth = below(inputs.len());
    if inputs.is_empty() || inputs[nth].is_empty() {
        return inputs.push(foreign[below(foreign.len())].clone());
    }
    let (at, some) = (below(inputs[nth].len()), 1 + below(300));
    match below(10) {
        0..3 => inputs[nth][at] ^= 1 << below(8),
        3 => {
            let end = (at + some).min(inputs[nth].len());
            inputs[nth][at..end].fill(0);
        }
        4 => inputs[nth].truncate(at),
        5 => drop(inputs[nth].drain(..some.min(at))),
        6 => inputs.push(inputs[nth].clone()),
        7 => inputs[nth].extend_from_slice(&foreign[below(foreign.len())]),
        8 => inputs.push(foreign[below(foreign.len())].clone()),
        9 => match inputs[nth].first_chunk_mut().map(|head| (ShardHeader::parse(head), head)) {
            Some((Ok(mut header), head)) => {
                let Encoding { root, tree, meta_hash, meta_len, .. } = &mut header.encoding;
                match below(5) {
                    0 => header.index ^= 1,
                    1 => root[below(32)] ^= 1,
                    2 => tree[below(32)] ^= 1,
                    3 => meta_hash[below(32)] ^= 1,
                    _ => *meta_len ^= 1 << below(16),
                }
                *head = header.to_bytes();
            }
            _ => inputs[nth][at..].reverse(),
        },
        _ => unreachable!("there are ten kinds"),
    }
}

#[test]
fn verdicts_are_those_of_the_library_in_rust() {
    let (cases, seed) = (from_environment("FEC_MUTATIONS", 500), from_environment("FEC_SEED", 1));
    println!("FEC_SEED={seed}");
    let (mut calls, mut random) = (Calls::new(), SplitMix64::new(seed));
    let context = Context::default();
    let mut statuses = std::collections::BTreeMap::new();
    let mut foreign = vec![b"no shard of anything".to_vec(), Vec::new()];
    for case in 0..cases {
        let mut below = |most: u32| random.below(most);
        let (k, m) = [(1, 2), (3, 2), (10, 4), (5, 20)][below(4) as usize];
        let len = [0, 1, 1_000, 50_000, 400_000][below(5) as usize];
        let payload: Vec<u8> = (0..len).map(|i| ((i * (case + 3)) >> 3) as u8).collect();
        let set_size = [0, u64::from(k) * 4096][below(2) as usize];
        let options = Options { k, m, set_size, group_sets: below(3), ..Options::default() };
        let is_container = below(2) == 0;
        let encoded = calls.encode(&options, &payload, is_container);
        assert_eq!(encoded.ended.status, 0, "{:?}", encoded.ended);
        let mut inputs: Vec<Vec<u8>> = encoded.objects.into_iter().map(|(_, bytes)| bytes).collect();
        if below(3) == 0 && !is_container {
            // About as many as are needed.
            let left = (k as usize + below(3) as usize).saturating_sub(1);
            while inputs.len() > left {
                inputs.remove(below(inputs.len() as u32) as usize);
            }
        }
        for _ in 0..below(4) {
            mutate(&mut inputs, &mut random, &foreign);
        }
        let root = (random.below(3) > 0).then_some(encoded.root);
        let looked = calls.look(&inputs, root);
        *statuses.entry(looked.decoded.0.status).or_insert(0) += 1;
        compare(&looked, &inputs, root, &payload, &context);
        foreign.extend(inputs.into_iter().filter(|bytes| bytes.len() < 5_000).take(2));
        foreign.truncate(40);
    }
    calls.end();
    println!("statuses of decoding, and how often: {statuses:?}");
    assert!(cases < 500 || [0, 3, 5].iter().all(|status| statuses.contains_key(status)), "{statuses:?}");
}
