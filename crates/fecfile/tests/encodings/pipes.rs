//! Containers from pipes: the order of records, rivals for a group, losses and cuts.

use crate::made::*;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fecfile::error::EncodingError;
use fecfile::forms::Beginning;
use fecfile::payload::{Grouping, Options, PayloadDigests};
use fecfile::pipe::{self, Pipe};
use fecfile::report::Restored;
use fecfile::seal::SealError;
use fecfile::{Archive, Class, Destination, ErrorKind, Result};
use std::path::Path;

/// The output of a pipe with these bytes, and its end.
fn piped_by(bytes: &[u8], wanted: Option<Digest>, keys: Option<&Keys>) -> (Vec<u8>, Result<Restored>) {
    let mut out = Vec::new();
    let pipe = Pipe { input: bytes, place: Path::new("-"), beginning: Beginning::Other, wanted, keys };
    let done = pipe::restore(pipe, Destination::writer(&mut out), &context());
    (out, done)
}

fn piped(bytes: &[u8], wanted: Option<Digest>) -> (Vec<u8>, Result<Restored>) {
    piped_by(bytes, wanted, None)
}

/// Asserts that all comes out, under this root.
#[track_caller]
fn is_whole(container: &[u8], wanted: Option<Digest>, payload: &[u8], root: Digest) {
    let _ = whole(container, wanted, payload, root);
}

/// As [`is_whole`], with the report.
#[track_caller]
fn whole(container: &[u8], wanted: Option<Digest>, payload: &[u8], root: Digest) -> Restored {
    let (out, done) = piped(container, wanted);
    let restored = done.unwrap_or_else(|error| panic!("it is whole: {error}"));
    assert!(out == payload && restored.root == Some(root) && restored.is_whole() && restored.written);
    assert_eq!(restored.payload_len, Some(payload.len() as u64));
    restored
}

#[test]
fn groups_come_out_in_order_whatever_is_lost() {
    for len in [200_000, 1, 0] {
        let bytes = payload(1, len);
        for sets in [1, 3, 20] {
            let (made, root) = container(&bytes, &options(Grouping::Sets(sets)));
            let parts = Parts::of(&made);
            let restored = whole(&made, None, &bytes, root);
            assert_eq!(restored.sets, if len == 200_000 { 10 } else { 1 });
            // Four of nine shards of each set are lost, and the index.
            for lost in [[0, 1, 2, 3], [5, 6, 7, 8], [0, 3, 5, 8]] {
                let left = parts.with(|_, set, shard| !lost.contains(&((shard + set) % 9)));
                is_whole(&left, None, &bytes, root);
                is_whole(&left, Some(root), &bytes, root);
                is_whole(&left[..left.len() - parts.index.len()], Some(root), &bytes, root);
            }
        }
    }
}

/// The records of a group may come in any order, between those of the next.
#[test]
fn records_may_come_in_another_order() {
    let bytes = payload(1, 200_000);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let parts = Parts::of(&made);
    let sorted = |key: &dyn Fn(u32, u32, u32) -> u32| {
        let mut records: Vec<_> = parts.records.iter().collect();
        records.sort_by_key(|(group, set, shard, _)| key(*group, *set, *shard));
        parts.joined(records.into_iter().map(|(.., bytes)| bytes))
    };
    is_whole(&sorted(&|group, set, shard| group * 100 + shard * 10 + set), None, &bytes, root);
    is_whole(&sorted(&|group, set, shard| group * 100 + (8 - shard) * 10 + set), None, &bytes, root);
    // The next group begins before the last records that a group needs.
    is_whole(&sorted(&|group, _, shard| 2 * group + if shard < 5 { 0 } else { 3 }), None, &bytes, root);
    is_whole(&sorted(&|group, _, shard| 2 * group + if shard < 2 { 0 } else { 3 }), None, &bytes, root);
    // A group in front of the first is never the next.
    let (out, done) = piped(&sorted(&|group, _, _| 9 - group), None);
    assert!(out == bytes[..3 * 20_480] && done.is_err(), "the groups behind it have gone by");
}

/// Groups come out until one has lost too much, and the error tells from where on.
#[test]
fn what_is_lost_ends_the_pipe_at_its_byte() {
    let bytes = payload(1, 200_000);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let parts = Parts::of(&made);
    let group = 3 * 20_480;
    for wanted in [None, Some(root)] {
        for lost in 0..parts.groups() {
            let left = parts.with(|of, set, shard| of != lost || set != 0 || shard < 4);
            let (out, done) = piped(&left, wanted);
            assert!(out == bytes[..lost as usize * group], "group {lost}");
            let error = done.unwrap_err();
            let Some(EncodingError::NotWhole { position, lost: of, .. }) = error.cause() else {
                panic!("{error}")
            };
            assert_eq!((*position, error.class()), (u64::from(lost) * group as u64, Class::Lost));
            assert!(!of.is_empty());
            // All of the group is gone.
            let (out, done) = piped(&parts.with(|of, _, _| of < lost), wanted);
            assert!(out == bytes[..lost as usize * group]);
            let error = done.unwrap_err();
            match error.cause() {
                Some(EncodingError::Cut { position, .. }) => assert_eq!(*position, out.len() as u64),
                Some(EncodingError::NothingFound(_)) => assert_eq!(lost, 0),
                _ => panic!("{error}"),
            }
        }
    }
    // A file appears only when all of it is proved.
    let home = tempfile::tempdir().unwrap();
    let (to, left) = (home.path().join("out"), parts.with(|of, _, shard| of != 2 || shard < 4));
    for (input, is_whole) in [(&left, false), (&made, true)] {
        let pipe = Pipe {
            input: &input[..],
            place: Path::new("-"),
            beginning: Beginning::Other,
            wanted: None,
            keys: None,
        };
        let done = pipe::restore(pipe, Destination::File(&to, POLICY), &context());
        assert_eq!((done.is_ok(), to.exists()), (is_whole, is_whole));
    }
}

/// Records of other payloads in front of a group, or within it, take no place of it and do not end the pipe.
#[test]
fn records_of_rivals_do_not_stop_a_group() {
    let bytes = payload(1, 200_000);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let parts = Parts::of(&made);
    let rivals: Vec<Parts> = (10..14)
        .map(|seed| Parts::of(&container(&payload(seed, 200_000), &options(Grouping::Sets(3))).0))
        .collect();
    let first = |of: &Parts, records: usize| -> Vec<u8> {
        of.records.iter().take(records).flat_map(|(.., bytes)| bytes.clone()).collect()
    };
    for records in [1, 4, 12] {
        for count in 1..=rivals.len() {
            let noise: Vec<u8> = rivals[..count].iter().flat_map(|rival| first(rival, records)).collect();
            is_whole(&[&noise[..], &made].concat(), None, &bytes, root);
            is_whole(&[&noise[..], &made].concat(), Some(root), &bytes, root);
            // Within the first group, and behind all.
            let at = made.len() / 9;
            is_whole(&[&made[..at], &noise, &made[at..]].concat(), None, &bytes, root);
            is_whole(&[&made[..], &noise].concat(), None, &bytes, root);
        }
    }
    // Rivals that begin alike: their later groups follow the same group.
    let mut other = bytes.clone();
    other[150_000] ^= 1;
    let (rival, rival_root) = container(&other, &options(Grouping::Sets(3)));
    let rival = Parts::of(&rival);
    assert_eq!((rival.records[0].3.clone(), rival_root == root), (parts.records[0].3.clone(), false));
    let mixed: Vec<&Vec<u8>> = (0..parts.groups())
        .flat_map(|group| {
            let of =
                |from: &'static str| move |record: &&(u32, u32, u32, Vec<u8>)| (record.0 == group, from).0;
            let theirs = rival.records.iter().filter(of("rival")).filter(|record| record.2 < 4);
            theirs.chain(parts.records.iter().filter(of("own"))).map(|(.., bytes)| bytes)
        })
        .collect();
    is_whole(&parts.joined(mixed.into_iter()), None, &bytes, root);
}

/// Records of a container, chosen and put in order by the test, one call after the other.
struct Line<'a>(Vec<u8>, &'a Parts);

impl<'a> Line<'a> {
    fn new(front: &'a Parts) -> Line<'a> {
        Line(front.front.concat(), front)
    }

    /// Adds these shards of a group, of each of its sets.
    fn add(mut self, of: &Parts, group: u32, shards: std::ops::Range<u32>) -> Line<'a> {
        for shard in shards {
            let records = of.records.iter().filter(|record| (record.0, record.2) == (group, shard));
            records.for_each(|(.., bytes)| self.0.extend_from_slice(bytes));
        }
        self
    }

    /// Adds these groups, with as many shards as they need, and the end.
    fn end(mut self, groups: std::ops::Range<u32>) -> Vec<u8> {
        let parts = self.1;
        for group in groups {
            self = self.add(parts, group, 0..5);
        }
        [self.0, parts.index.clone()].concat()
    }
}

/// Exactly as many records as needed, between those of the group behind and of rivals: none of them may be dropped.
#[test]
fn a_group_and_the_one_behind_it_keep_their_records() {
    let bytes = payload(1, 200_000);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let own = Parts::of(&made);
    let mut alike = bytes.clone();
    alike[70_000] ^= 1;
    // The rival begins alike: its second group follows the same first one.
    let rival = Parts::of(&container(&alike, &options(Grouping::Sets(3))).0);
    let other = Parts::of(&container(&payload(2, 200_000), &options(Grouping::Sets(3))).0);
    let groups = own.groups();
    let line = || Line::new(&own);
    // The group behind is here before its predecessor is whole, with all that it needs or a part.
    is_whole(
        &line().add(&own, 0, 0..4).add(&own, 1, 0..5).add(&own, 0, 4..5).end(2..groups),
        None,
        &bytes,
        root,
    );
    let parts = line().add(&own, 0, 0..2).add(&own, 1, 0..3).add(&own, 0, 2..5).add(&own, 1, 3..5);
    is_whole(&parts.end(2..groups), None, &bytes, root);
    // A rival of the group behind takes nothing from it.
    let rivals = line().add(&own, 0, 0..4).add(&own, 1, 0..4).add(&rival, 1, 0..4).add(&own, 0, 4..5);
    is_whole(&rivals.add(&own, 1, 4..5).end(2..groups), None, &bytes, root);
    // A rival of the group itself takes the place of the one behind, which may come again.
    let rivals = line().add(&own, 0, 0..4).add(&own, 1, 5..9).add(&other, 0, 0..1).add(&own, 0, 4..5);
    is_whole(&rivals.end(1..groups), None, &bytes, root);
    // A whole group of another container is not the next, though its number is.
    is_whole(&line().add(&own, 0, 0..5).add(&other, 1, 0..9).end(1..groups), None, &bytes, root);
    is_whole(&line().add(&other, 1, 0..9).end(0..groups), None, &bytes, root);
    // A rival that is whole comes out instead, as nothing tells it from the right one, and the end tells.
    let (_, done) = piped(&line().add(&own, 0, 0..5).add(&rival, 1, 0..5).end(1..groups), None);
    assert!(done.is_err());
}

/// Two whole encodings: without a root neither is the answer, with one it is found wherever it stands.
#[test]
fn two_encodings_in_a_pipe_need_a_root() {
    let (one, two) = (payload(1, 60_000), payload(2, 60_000));
    for sets in [3, 1] {
        let (first, root) = container(&one, &options(Grouping::Sets(sets)));
        let (second, other) = container(&two, &options(Grouping::Sets(sets)));
        let both = [&first[..], &second].concat();
        let (_, done) = piped(&both, None);
        let error = done.unwrap_err();
        assert!(
            matches!(error.cause(), Some(EncodingError::Ambiguous(roots)) if roots.len() == 2),
            "{error}"
        );
        is_whole(&both, Some(root), &one, root);
        if sets == 3 {
            is_whole(&both, Some(other), &two, other);
        }
        let (_, done) = piped(&first, Some(other));
        let error = done.unwrap_err();
        assert_eq!(error.class(), Class::Untrue, "{error}");
        assert!(
            matches!(error.cause(), Some(EncodingError::NothingFound(found)) if found.wanted == Some(other))
        );
        // The same encoding twice is one.
        is_whole(&[&first[..], &first].concat(), None, &one, root);
    }
    for nothing in [&b""[..], &payload(5, 5000), b"a letter"] {
        let (out, done) = piped(nothing, None);
        assert!(out.is_empty() && matches!(done.unwrap_err().cause(), Some(EncodingError::NothingFound(_))));
    }
}

/// Damaged records and bytes of others between records are told, and cost nothing else.
#[test]
fn damage_in_a_pipe_is_told() {
    let bytes = payload(1, 200_000);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let record = Parts::of(&made).records[0].3.len();
    for at in [20, 100, 1000, record + 20, record + 500] {
        let mut damaged = made.clone();
        damaged[at] ^= 1;
        let restored = whole(&damaged, None, &bytes, root);
        let is_told = restored.outcome.damaged_records > 0 || !restored.leftovers.rejected.is_empty();
        let archive =
            Archive::in_pipe(&damaged[..], Path::new("-"), Beginning::Other, Some(root), &context());
        let verified = archive.unwrap().verify(false, &context()).unwrap();
        assert!(!verified.is_intact() && verified.is_restorable == Some(true), "{at}: {is_told}");
    }
    let shifted = [&made[..record], b"noise", &made[record..]].concat();
    is_whole(&shifted, None, &bytes, root);
    let archive = Archive::in_pipe(&made[..], Path::new("-"), Beginning::Other, None, &context()).unwrap();
    assert!(archive.verify(false, &context()).unwrap().is_intact());
    assert_eq!((archive.root(), archive.others().len()), (Some(root), 0));
}

/// The meta of a container has copies: any of them serves, in front or in the index.
#[test]
fn a_meta_is_taken_from_any_copy() {
    let bytes = payload(1, 60_000);
    let digests = PayloadDigests { sha256: true, blake3: true };
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    let how = Options { payload_digests: digests, ..options(Grouping::Sets(3)) };
    let source = fecfile::payload::Source::Payload(&bytes);
    let root = fecfile::encode::to_file(source, &path, POLICY, &how, &context()).unwrap().root;
    let made = std::fs::read(&path).unwrap();
    let parts = Parts::of(&made);
    let meta = |bytes_of: &[u8]| whole(bytes_of, None, &bytes, root).meta.expect("a copy");
    let recorded = meta(&made);
    assert!(recorded.sha256.is_some() && recorded.blake3.is_some());
    let without_front = made[parts.front.concat().len()..].to_vec();
    assert_eq!(meta(&without_front).blake3, recorded.blake3);
    let without_index = made[..made.len() - parts.index.len()].to_vec();
    assert_eq!(meta(&without_index).sha256, recorded.sha256);
    let neither: Vec<u8> = parts.records.iter().flat_map(|(.., bytes)| bytes.clone()).collect();
    let (out, done) = piped(&neither, Some(root));
    assert!(out == bytes && done.unwrap().meta.is_none());
}

/// A sealed container opens as it comes. Without its seal in front nothing goes out before another copy has come.
#[test]
fn a_sealed_container_opens_as_it_comes() {
    let (sealing, keys) = sealing();
    let bytes = payload(4, 150_000);
    for sets in [20, 3] {
        let how = Options { sealing: Some(sealing.clone()), ..options(Grouping::Sets(sets)) };
        let (made, _) = container(&bytes, &how);
        let parts = Parts::of(&made);
        let (out, done) = piped_by(&made, None, Some(&keys));
        assert_eq!((done.unwrap().opened, out == bytes), (Some(150_000), true));
        let front = parts.front.concat().len();
        let (out, done) = piped_by(&made[front..], None, Some(&keys));
        match done {
            Ok(restored) => assert_eq!((restored.opened, out == bytes), (Some(150_000), true)),
            Err(_) => assert!(out.is_empty(), "nothing goes out unopened"),
        }
        let is = |done: Result<Restored>, wanted: fn(&SealError) -> bool| {
            done.unwrap_err().cause().is_some_and(wanted)
        };
        let (out, done) = piped_by(&made, None, None);
        assert!(out.is_empty() && is(done, |error| matches!(error, SealError::NoKey)));
        let (out, done) = piped_by(&container(&bytes, &options(Grouping::Sets(sets))).0, None, Some(&keys));
        assert!(out.is_empty() && is(done, |error| matches!(error, SealError::NotSealed)));
        // A group that lost too much is an error with the key too.
        let left = parts.with(|group, _, shard| group + 1 < parts.groups() || shard < 4);
        assert!(piped_by(&left, None, Some(&keys)).1.is_err());
    }
}

/// A group needs its memory: too little is refused with the bytes that it takes.
#[test]
fn a_group_needs_the_memory_of_a_set() {
    let bytes = payload(1, 60_000);
    let (made, _) = container(&bytes, &options(Grouping::Sets(3)));
    let within = |most| {
        let settings = context().settings.with_memory(Some(most));
        let pipe = Pipe {
            input: &made[..],
            place: Path::new("-"),
            beginning: Beginning::Other,
            wanted: None,
            keys: None,
        };
        pipe::restore(pipe, Destination::writer(&mut Vec::new()), &context().with_settings(settings))
    };
    let error = within(1000).unwrap_err();
    let ErrorKind::SetMemory { need, most } = error.kind else { panic!("{error}") };
    assert!(most == 1000 && need > 1000);
    assert!(within(need - 1).is_err() && within(need).is_ok());
}

/// A group that is too large for memory waits in a file, and comes out of it as from memory: mended, or not at all.
#[test]
fn large_groups_wait_in_a_file() {
    let bytes = payload(7, 28 << 20);
    let how = Options { set_size: Some(2 << 20), ..options(Grouping::Sets(100)) };
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    let source = fecfile::payload::Source::Payload(&bytes);
    let roomy = context().with_settings(context().settings.with_memory(Some(1 << 30)));
    let root = fecfile::encode::to_file(source, &path, POLICY, &how, &roomy).unwrap().root;
    let mut made = std::fs::read(&path).unwrap();
    // The records of a shard stand together: this is three of nine, and more than that is left of the others.
    let ninth = made.len() / 9;
    made[ninth + 100..4 * ninth].fill(0);
    let restored = whole(&made, None, &bytes, root);
    assert!(restored.outcome.mended_sets > 0);
    made[..6 * ninth].fill(0);
    let (out, done) = piped(&made, Some(root));
    assert!(done.unwrap_err().class() == Class::Lost);
    assert!(out.is_empty(), "nothing of a group comes out that is not whole");
}
