//! Parts of payloads: any range comes out, whatever is lost elsewhere, and nothing comes out that is not proved.

use crate::made::*;
use fecfile::error::{EncodingError, Place};
use fecfile::payload::Grouping;
use fecfile::{Archive, Class, Destination, PayloadRange, Result, Wish};
use std::fs;
use std::ops::Range;
use std::path::Path;

const LEN: usize = 200_000;
/// Payload bytes of a shard.
const SHARD: u64 = 4096;

fn range(bytes: &Range<u64>) -> PayloadRange {
    PayloadRange { start: bytes.start, end: Some(bytes.end) }
}

/// The bytes of a range, and the report. In order and without temporary files, the same comes out.
fn part(archive: &Archive, bytes: &Range<u64>) -> Result<(Vec<u8>, fecfile::report::Restored)> {
    let (mut out, mut in_order) = (Vec::new(), Vec::new());
    let restored = archive.restore_range(range(bytes), None, Destination::writer(&mut out), &context());
    let again = archive.restore_in_order(range(bytes), None, (&mut in_order, Place::Nowhere), &context());
    let class = |done: &Result<_>| done.as_ref().map(|_| ()).map_err(fecfile::Error::class);
    assert!(class(&restored) == class(&again) && (restored.is_err() || in_order == out), "{again:?}");
    restored.map(|restored| (out, restored))
}

/// Ranges around all borders: of shards, of sets, of rows of shards, of groups, and of the payload.
fn borders() -> Vec<Range<u64>> {
    let len = LEN as u64;
    let mut all = vec![0..0, 0..1, len..len, len - 1..len, 0..len, 100_000..100_001];
    for border in [SHARD, 5 * SHARD, 10 * SHARD, 20 * SHARD, 40 * SHARD] {
        all.extend([border - 1..border, border..border + 1, border - 1..border + 1, border..border]);
        all.push(border - SHARD..border + SHARD);
        all.push(border - 3..border + 7 * SHARD);
    }
    all
}

/// A container in one group and in several, and shard files: the same payload.
fn encodings(home: &Path) -> Vec<Archive> {
    let bytes = payload(1, LEN);
    let mut found = Vec::new();
    for (nth, grouping) in [Grouping::Sets(20), Grouping::Sets(3), Grouping::Sets(1)].into_iter().enumerate()
    {
        let path = home.join(format!("{nth}.fec"));
        fs::write(&path, container(&bytes, &options(grouping)).0).unwrap();
        found.push(open(&path, None).unwrap());
    }
    found
}

#[test]
fn every_range_of_an_intact_encoding_comes_out() {
    let (home, bytes) = (tempfile::tempdir().unwrap(), payload(1, LEN));
    let (shards, _) = shard_files(&bytes, &options(Grouping::Auto));
    let mut archives = encodings(home.path());
    archives.push(open(&shards.path().join("s"), None).unwrap());
    for (nth, archive) in archives.iter().enumerate() {
        for at in borders() {
            let (out, restored) = part(archive, &at).unwrap();
            assert!(out == bytes[at.start as usize..at.end as usize], "{nth}: {at:?}");
            assert!(restored.written && restored.is_whole());
            let told = restored.part.map(|part| part.start..part.end);
            assert_eq!((told, restored.outcome.restored), (Some(at.clone()), at.end - at.start), "{nth}");
            assert_eq!((restored.outcome.mended_sets, restored.outcome.lost_sets), (0, 0));
            assert_eq!(restored.outcome.proved_sets == 0, at.is_empty(), "{nth}: {at:?}");
        }
        // An open end is that of the payload.
        let mut out = Vec::new();
        let rest = PayloadRange { start: 199_000, end: None };
        let _ = archive.restore_range(rest, None, Destination::writer(&mut out), &context()).unwrap();
        assert!(out == bytes[199_000..]);
    }
}

#[test]
fn what_does_not_lie_in_the_payload_is_refused() {
    let home = tempfile::tempdir().unwrap();
    for archive in encodings(home.path()) {
        for (start, end) in [(0, Some(200_001)), (200_001, None), (5, Some(4)), (u64::MAX, Some(u64::MAX))] {
            let to = home.path().join("out");
            let wanted = PayloadRange { start, end };
            let done = archive.restore_range(wanted, None, Destination::File(&to, POLICY), &context());
            let error = done.unwrap_err();
            assert!(matches!(error.cause(), Some(EncodingError::OutOfPayload(200_000))), "{error}");
            assert!(error.class() == Class::Usage && !to.exists());
        }
    }
}

/// Any k shards of a set are enough, whichever those are.
#[test]
fn a_range_is_mended_from_the_shards_that_are_left() {
    let bytes = payload(1, LEN);
    for lost in [&[0][..], &[4], &[0, 1, 2, 3], &[1, 4, 5, 8], &[5, 6, 7, 8]] {
        let (home, _) = shard_files(&bytes, &options(Grouping::Auto));
        for (nth, index) in lost.iter().enumerate() {
            match nth % 2 {
                0 => fs::remove_file(shard(home.path(), *index)).unwrap(),
                _ => (0..10).for_each(|set| flip(&shard(home.path(), *index), 2000 + set * 4300)),
            }
        }
        let archive = open(&home.path().join("s"), None).unwrap();
        for at in borders() {
            let (out, restored) = part(&archive, &at).unwrap();
            assert!(out == bytes[at.start as usize..at.end as usize], "{lost:?}: {at:?}");
            // Sets are mended only where a lost original is touched.
            let touches = !at.is_empty() && lost.iter().any(|index| *index < 5);
            assert!(touches || restored.outcome.mended_sets == 0, "{lost:?}: {at:?}");
        }
        let whole = 0..LEN as u64;
        let is_mended = part(&archive, &whole).unwrap().1.outcome.mended_sets > 0;
        assert_eq!(is_mended, lost.iter().any(|index| *index < 5));
    }
}

/// A set is beyond repair: ranges beside it come out, and ranges in it where their own shards are intact.
#[test]
fn losses_elsewhere_do_not_matter() {
    let bytes = payload(1, LEN);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let parts = Parts::of(&made);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    // Shard 1 of the second set of the first group is left alone, of nine.
    let left = parts.with(|group, set, shard| (group, set) != (0, 1) || shard == 1);
    fs::write(&path, &left).unwrap();
    let input = fecfile::Input::of_paths(std::slice::from_ref(&path)).unwrap();
    let by_index = Archive::open_by_index(&input, Some(root), &context()).unwrap();
    for archive in [open(&path, Some(root)).unwrap(), by_index] {
        for at in (0..LEN as u64).step_by(SHARD as usize) {
            let wanted = at..(at + SHARD).min(LEN as u64);
            // Three sets of five shards: shard q of the payload is that of set q mod 3.
            let nth = at / SHARD;
            let is_lost = nth < 15 && nth % 3 == 1 && nth / 3 != 1;
            match part(&archive, &wanted) {
                Ok((out, _)) => {
                    assert!(!is_lost && out == bytes[at as usize..wanted.end as usize], "{nth}");
                }
                Err(error) => {
                    let Some(EncodingError::Lost(restored)) = error.cause() else { panic!("{error}") };
                    assert!(is_lost && !restored.written, "{nth}");
                    assert_eq!(
                        (restored.outcome.lost_sets, restored.outcome.lost.bytes()),
                        (1, SHARD),
                        "{nth}"
                    );
                }
            }
        }
        // Nothing of a range appears that is not whole.
        let to = home.path().join("out");
        let done = archive.restore_range(PayloadRange::ALL, None, Destination::File(&to, POLICY), &context());
        assert!(done.is_err() && !to.exists());
    }
}

/// A range of sealed bytes is opened, and no more than its chunks are read.
#[test]
fn a_range_of_a_sealed_payload_is_opened() {
    let (sealing, keys) = sealing();
    let bytes = payload(3, 400_000);
    let sealed = fecfile::payload::Options { sealing: Some(sealing), ..options(Grouping::Sets(3)) };
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    fs::write(&path, container(&bytes, &sealed).0).unwrap();
    let archive = open(&path, None).unwrap();
    let opener = archive.opener(Some(&keys)).unwrap();
    let chunk = 65_536;
    for at in
        [0..1, chunk - 1..chunk + 1, chunk..2 * chunk, 3 * chunk..400_000, 399_999..400_000, 5..5, 0..400_000]
    {
        let mut out = Vec::new();
        let to = Destination::writer(&mut out);
        let restored = archive.restore_range(range(&at), opener.as_ref(), to, &context()).unwrap();
        assert!(out == bytes[at.start as usize..at.end as usize], "{at:?}");
        assert_eq!(restored.opened, Some(at.end - at.start));
        let file = home.path().join("out");
        let to = Destination::File(&file, POLICY.with_force(true));
        let _ = archive.restore_range(range(&at), opener.as_ref(), to, &context()).unwrap();
        assert!(fs::read(&file).unwrap() == out, "{at:?}");
    }
    let beyond = PayloadRange { start: 0, end: Some(400_001) };
    let done =
        archive.restore_range(beyond, opener.as_ref(), Destination::writer(&mut Vec::new()), &context());
    assert!(matches!(done.unwrap_err().cause(), Some(EncodingError::OutOfPayload(400_000))));
    // Without the key it stays as it is, and is whole.
    let mut out = Vec::new();
    let all = archive.restore(Destination::writer(&mut out), Wish::default(), &context()).unwrap();
    assert!(all.opened.is_none() && out.len() > 400_000);
}

/// Walks over an encoding in which sets are absent count each of them, on any number of threads.
#[test]
fn lost_sets_are_counted_with_their_bytes() {
    let bytes = payload(1, LEN);
    let (made, root) = container(&bytes, &options(Grouping::Sets(3)));
    let parts = Parts::of(&made);
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("c.fec");
    type Keep = fn(u32, u32, u32) -> bool;
    let cases: [(Keep, u64, u64); 5] = [
        (|_, _, _| true, 0, 0),
        (|group, set, _| (group, set) != (0, 0), 1, 5 * SHARD),
        (|group, _, _| group != 1, 3, 15 * SHARD),
        // Two originals of a set are lost, and three are left: each is proved by its own path.
        (|group, set, shard| (group, set) != (2, 2) || shard < 3, 1, 2 * SHARD),
        (|group, set, shard| group != 2 && (set != 0 || shard > 3), 3, 15 * SHARD),
    ];
    for (nth, (keep, sets, lost)) in cases.into_iter().enumerate() {
        fs::write(&path, parts.with(keep)).unwrap();
        for threads in [1, 4] {
            let settings = fecfile::Settings { threads, ..context().settings };
            let context = context().with_settings(settings);
            let archive = open(&path, Some(root)).unwrap();
            let to = home.path().join("out");
            let wish = Wish { partial: true, ..Wish::default() };
            let done = archive.restore(Destination::File(&to, POLICY.with_force(true)), wish, &context);
            let restored = done.unwrap_or_else(|error| panic!("{nth}: {error}"));
            assert_eq!((restored.outcome.lost_sets, restored.outcome.lost.bytes()), (sets, lost), "{nth}");
            assert_eq!((restored.sets, restored.is_whole()), (10, sets == 0), "{nth}");
            assert_eq!(restored.outcome.proved_sets, 10 - sets);
            let out = fs::read(&to).unwrap();
            let wrong =
                out.chunks(SHARD as usize).zip(bytes.chunks(SHARD as usize)).filter(|(is, was)| is != was);
            let wrong: u64 = wrong.map(|(is, _)| is.len() as u64).sum();
            assert_eq!(
                (wrong, out.len()),
                (lost, LEN),
                "{nth}: what is lost is zeros, and all else is right"
            );
        }
    }
}
