//! The seal is lost no sooner than the payload; verifying, restoring and repairing agree, whatever is damaged.

use super::sealer::{SealedTo, Sealing};
use crate::archive::Archive;
use crate::encode;
use crate::error::EncodingError;
use crate::input::{Input, Object};
use crate::leftovers::Beginning;
use crate::payload::{Grouping, Options, Source};
use crate::pipe::{self, Pipe};
use crate::range::PayloadRange;
use crate::repair::Repair;
use crate::report::Verified;
use crate::restore::Wish;
use fec_base::class::Class;
use fec_base::context::Context;
use fec_base::error::{Error, Place};
use fec_base::io::folder::Folder;
use fec_base::io::output::{Destination, Policy};
use fec_core::block::Code;
use fec_core::format::annex;
use fec_core::format::container::{INDEX_MAGIC, META_MAGIC, MetaFrame, RECORD_MAGIC};
use fec_core::random::SplitMix64;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

const POLICY: Policy = Policy::new().with_force(true).with_sync(false);

struct Made {
    keys: Keys,
    plain: Vec<u8>,
    container: Vec<u8>,
}

fn options(code: (usize, usize), identity: &Identity) -> Options {
    let to = SealedTo::Recipients(vec![identity.recipient()]);
    let sealing = Some(Arc::new(Sealing { to, cipher: Cipher::Aes256Gcm }));
    Options { sealing, ..Options::new(Code::new(code.0, code.1).unwrap()) }
}

fn made(code: (usize, usize), len: usize, grouping: Grouping) -> Made {
    let identity = Identity::generate(KeyKind::X25519).unwrap();
    let plain: Vec<u8> = (0..len as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let options = Options { grouping, ..options(code, &identity) };
    let mut container = Vec::new();
    let source = Source::Payload(&plain);
    encode::to_writer(source, &mut container, &Place::Output, &options, &Context::default()).unwrap();
    Made { keys: Keys::Identities(vec![identity]), plain, container }
}

fn places(bytes: &[u8], magic: &[u8; 8]) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, magic).collect()
}

fn archive(bytes: &[u8]) -> fec_base::Result<Archive> {
    let object = Object::new("x.fec", Arc::new(Arc::<[u8]>::from(bytes))).unwrap();
    Archive::open(&Input::One(object), None, &Context::default())
}

/// The report of verifying without a key, after a check that restoring, ranges, pipes and repairing agree with it.
fn agreed(made: &Made, bytes: &[u8], folder: &Path) -> fec_base::Result<Verified> {
    let context = Context::default();
    let piped = Archive::in_pipe(bytes, Path::new("-"), Beginning::Other, None, &context);
    let archive = match archive(bytes) {
        Ok(archive) => archive,
        Err(error) => {
            assert!(piped.is_err(), "{error}");
            return Err(error);
        }
    };
    let verified = archive.verify(false, &context)?;
    let is_restorable = verified.is_restorable == Some(true);
    let piped = piped?.verify(false, &context)?;
    assert_eq!(piped.is_restorable, verified.is_restorable);
    let (path, fixed) = (folder.join("x.fec"), folder.join("fixed.fec"));
    fs::write(&path, bytes).unwrap();
    let on_disk = Archive::open(&Input::of_paths(&[path]).unwrap(), None, &context).unwrap();
    let repair = |dry_run| on_disk.repair(Repair { out: Some(&fixed), policy: POLICY, dry_run }, &context);
    let restored = restored(made, &archive, folder);
    if !is_restorable {
        assert_eq!(verified.may_still_lose(), None);
        for failed in [restored.map(drop), repair(true).map(drop), repair(false).map(drop)] {
            assert_eq!(failed.unwrap_err().class(), Class::Lost);
        }
        assert!(!fixed.exists());
        return Ok(verified);
    }
    for plain in restored.unwrap() {
        assert!(plain == made.plain);
    }
    assert_eq!(repair(true).is_ok_and(|would| would.files.is_empty()), verified.is_intact());
    if !repair(false).unwrap().files.is_empty() {
        assert!(fs::read(&fixed).unwrap() == made.container, "bit for bit");
        fs::remove_file(&fixed).unwrap();
    }
    Ok(verified)
}

/// The payload, as each call restores it.
fn restored(made: &Made, archive: &Archive, folder: &Path) -> fec_base::Result<Vec<Vec<u8>>> {
    let context = Context::default();
    let opener = archive.opener(Some(&made.keys))?;
    let wish = Wish { opener: opener.as_ref(), ..Wish::default() };
    let (path, mut out, mut part) = (folder.join("out"), Vec::new(), Vec::new());
    assert!(archive.restore(Destination::File(&path, POLICY), wish, &context)?.is_whole());
    assert!(archive.restore(Destination::writer(&mut out), wish, &context)?.is_whole());
    let all = PayloadRange::ALL;
    assert!(archive.restore_range(all, opener.as_ref(), Destination::writer(&mut part), &context)?.written);
    Ok(vec![fs::read(&path).unwrap(), out, part])
}

/// The range of each record, and the position of each copy of the meta.
fn parts(container: &[u8]) -> (Vec<Range<usize>>, Vec<usize>) {
    let starts = places(container, &RECORD_MAGIC);
    let mut cuts =
        [&starts[..], &places(container, &annex::MAGIC), &places(container, &INDEX_MAGIC)].concat();
    cuts.sort_unstable();
    let end = |start: &usize| cuts.iter().copied().find(|cut| cut > start).unwrap_or(container.len());
    let records = starts.iter().map(|start| *start..end(start)).collect();
    (records, [places(container, &META_MAGIC), places(container, &INDEX_MAGIC)].concat())
}

#[test]
fn whatever_the_shards_survive_the_seal_survives() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = SplitMix64::new(7);
    for (code, sets) in [((3, 5), None), ((10, 4), None), ((2, 2), Some(1)), ((4, 1), None), ((1, 9), None)] {
        let grouping = sets.map_or(Grouping::Auto, Grouping::Sets);
        let made = made(code, 20_000, grouping);
        let whole = agreed(&made, &made.container, folder.path()).unwrap();
        assert!(whole.is_intact());
        assert_eq!(whole.may_still_lose(), Some(code.1 as u32), "the seal is no weaker than the shards");
        let n = code.0 + code.1;
        // With several groups the records of a shard stand apart, so this damage could not hit a shard.
        for _ in 0..if sets.is_some() { 0 } else { 40 } {
            // The damage hits some shards with everything in front of them, the end, and sometimes the front.
            let lost = random.next() as usize % (code.1 + 2);
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_cached_key(|_| random.next());
            let (records, _) = parts(&made.container);
            let per_shard = records.len() / n;
            let mut damaged = made.container.clone();
            for shard in &order[..lost] {
                let first = records[shard * per_shard].start;
                let start = if *shard == 0 { 0 } else { records[shard * per_shard - 1].end };
                let end = records[(shard + 1) * per_shard - 1].end;
                assert!(start <= first);
                damaged[start..end].fill(0x55);
            }
            let end = records.last().unwrap().end;
            damaged[end..].fill(0x55);
            if random.next().is_multiple_of(2) {
                damaged[..records[0].start].fill(0x55);
            }
            let verified = agreed(&made, &damaged, folder.path());
            match lost <= code.1 {
                true => assert_eq!(verified.unwrap().is_restorable, Some(true), "{code:?}: {lost} lost"),
                false => assert!(!verified.is_ok_and(|verified| verified.is_restorable == Some(true))),
            }
        }
    }
}

#[test]
fn without_any_copy_of_its_seal_a_payload_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    for (code, sets) in [((3, 5), None), ((3, 0), None), ((2, 2), Some(1))] {
        let made = made(code, 20_000, sets.map_or(Grouping::Auto, Grouping::Sets));
        let (_, copies) = parts(&made.container);
        let damaged = |left: Option<usize>| {
            let mut bytes = made.container.clone();
            for copy in copies.iter().filter(|copy| Some(**copy) != left) {
                bytes[copy + 70] ^= 1;
            }
            bytes
        };
        let lost = agreed(&made, &damaged(None), folder.path()).unwrap();
        assert_eq!((lost.is_restorable, lost.is_seal_lost()), (Some(false), true));
        assert_eq!(lost.least() as usize, code.0 + code.1, "every shard is intact");
        // A single copy is enough, and may not be lost any more.
        for copy in places(&made.container, &META_MAGIC) {
            let one = agreed(&made, &damaged(Some(copy)), folder.path()).unwrap();
            assert_eq!((one.is_restorable, one.may_still_lose()), (Some(true), Some(0)));
        }
    }
}

/// A copy of the seal may come behind k records of each set; a pipe waits for it.
#[test]
fn a_pipe_waits_for_a_copy_of_the_seal() {
    let made = made((3, 5), 20_000, Grouping::Auto);
    let frames = places(&made.container, &META_MAGIC);
    for last in 1..frames.len() {
        let mut bytes = made.container.clone();
        frames[..last].iter().for_each(|at| bytes[at + 70] ^= 1);
        let (place, beginning) = (Path::new("-"), Beginning::Other);
        let pipe = Pipe { input: &bytes[..], place, beginning, wanted: None, keys: Some(&made.keys) };
        let mut out = Vec::new();
        assert!(pipe::restore(pipe, Destination::writer(&mut out), &Context::default()).unwrap().is_whole());
        assert!(out == made.plain, "{last} copies are lost");
    }
}

/// A pipe that carries two sealed payloads is ambiguous, wherever their seals stand.
#[test]
fn two_sealed_payloads_in_a_pipe_are_ambiguous() {
    let [first, second] = [5_000, 3_000].map(|len| made((1, 1), len, Grouping::Auto));
    let without_index = |made: &Made| made.container[..places(&made.container, &INDEX_MAGIC)[0]].to_vec();
    for a in [first.container.clone(), without_index(&first)] {
        for b in [second.container.clone(), without_index(&second)] {
            let bytes = [&a[..], &b].concat();
            let (place, beginning) = (Path::new("-"), Beginning::Other);
            let pipe = Pipe { input: &bytes[..], place, beginning, wanted: None, keys: Some(&first.keys) };
            let error =
                pipe::restore(pipe, Destination::writer(&mut Vec::new()), &Context::default()).unwrap_err();
            assert!(
                matches!(error.cause(), Some(EncodingError::Ambiguous(roots)) if roots.len() == 2),
                "{error}"
            );
        }
    }
}

/// Frames that somebody puts in front hide no copy of a seal behind them.
#[test]
fn false_frames_in_front_hide_no_seal() {
    let false_one = || made((1, 0), 1, Grouping::Auto);
    let made = made((1, 2), 5_000, Grouping::Auto);
    let false_frames: Vec<u8> = (0..70)
        .flat_map(|_| {
            let mut other = false_one().container;
            other.truncate(MetaFrame::frame_len(other.first_chunk().unwrap()));
            other
        })
        .collect();
    let cut = places(&made.container, &INDEX_MAGIC)[0];
    for container in [&made.container[..], &made.container[..cut]] {
        let bytes = [&false_frames[..], container].concat();
        let verified = archive(&bytes).unwrap().verify(false, &Context::default()).unwrap();
        assert_eq!(verified.is_restorable, Some(true));
        let (place, beginning) = (Path::new("-"), Beginning::Other);
        let pipe = Pipe { input: &bytes[..], place, beginning, wanted: None, keys: Some(&made.keys) };
        let mut out = Vec::new();
        assert!(pipe::restore(pipe, Destination::writer(&mut out), &Context::default()).unwrap().is_whole());
        assert!(out == made.plain);
    }
}

/// Older containers have no copies of the seal between their records. They are intact, and repairs keep them as they
/// are. Verifying counts the few places that have the seal.
#[test]
fn a_container_without_copies_is_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut made = made((3, 5), 20_000, Grouping::Auto);
    let annexes = places(&made.container, &annex::MAGIC);
    for pair in annexes.chunks_exact(2).rev() {
        made.container.drain(pair[0]..pair[1] + annex::HEADER_LEN);
    }
    let whole = agreed(&made, &made.container, folder.path()).unwrap();
    assert!(whole.is_intact());
    assert_eq!(whole.may_still_lose(), Some(1), "its seal stands at both ends alone");
    let (records, _) = parts(&made.container);
    for at in [10, records[3].start + 500, made.container.len() - 1] {
        let mut bytes = made.container.clone();
        bytes[at] ^= 1;
        assert!(!agreed(&made, &bytes, folder.path()).unwrap().is_intact());
    }
}

/// A lost copy is damage, wherever the other copies stand. A copy behind the end belongs to nothing.
#[test]
fn a_missing_copy_is_damage_and_one_too_many_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let made = made((3, 5), 20_000, Grouping::Auto);
    let annexes = places(&made.container, &annex::MAGIC);
    let copies: Vec<Range<usize>> =
        annexes.chunks_exact(2).map(|pair| pair[0]..pair[1] + annex::HEADER_LEN).collect();
    assert_eq!(copies.len(), 6);
    for copy in &copies {
        let mut gone = made.container.clone();
        gone.drain(copy.clone());
        assert!(!agreed(&made, &gone, folder.path()).unwrap().is_intact());
    }
    let more = [&made.container[..], &made.container[copies[0].clone()]].concat();
    let archive = archive(&more).unwrap();
    assert!(archive.verify(false, &Context::default()).unwrap().is_intact());
    // A repair does not append copies that a lost end held to the new one.
    let cut = &made.container[..copies[3].end];
    assert!(!agreed(&made, cut, folder.path()).unwrap().is_intact());
}

/// The index alone leads to a part; nothing else is looked at.
#[test]
fn the_index_tells_where_records_stand_between_copies() {
    let made = made((3, 5), 20_000, Grouping::Auto);
    let root = archive(&made.container).unwrap().root();
    let mut damaged = made.container.clone();
    // The damaged record belongs to no wanted part, and only a scan would find it.
    let (records, _) = parts(&damaged);
    damaged[records[7].start] ^= 1;
    let object = Object::new("x.fec", Arc::new(Arc::<[u8]>::from(&damaged[..]))).unwrap();
    let context = Context::default();
    let archive = Archive::open_by_index(&Input::One(object), root, &context).unwrap();
    assert!(archive.encoded().obtainable().into_iter().eq(std::iter::once(0..archive.encoded().known_len())));
    let opener = archive.opener(Some(&made.keys)).unwrap();
    let mut out = Vec::new();
    let part = PayloadRange { start: 7_000, end: Some(19_000) };
    let part = archive.restore_range(part, opener.as_ref(), Destination::writer(&mut out), &context).unwrap();
    assert!(part.written && out == made.plain[7_000..19_000]);
}

/// Each shard file has a copy of the seal: the seal is lost with the last copy.
#[test]
fn shard_files_without_a_copy_of_the_seal_are_lost() {
    let context = Context::default();
    let identity = Identity::generate(KeyKind::X25519).unwrap();
    let options = options((2, 2), &identity);
    let plain = vec![7u8; 20_000];
    let with_copies = |left: usize| {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().join("shards"), POLICY);
        encode::to_store(&plain, b"p", &folder, &options, &context).unwrap();
        for index in left..4 {
            let path = place.path().join(format!("shards/payload.{index:03}.shard"));
            let mut bytes = fs::read(&path).unwrap();
            let len = bytes.len();
            bytes[200] ^= 1;
            bytes[len - 200 - 192] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
        let input = Input::of_paths(&[place.path().join("shards")]).unwrap();
        let archive = Archive::open(&input, None, &context).unwrap();
        let verified = archive.verify(false, &context).unwrap();
        let repair = archive.repair(Repair { out: None, policy: POLICY, dry_run: true }, &context);
        (verified.is_restorable, verified.may_still_lose(), repair.is_ok(), archive.is_restorable())
    };
    assert_eq!(with_copies(4), (Some(true), Some(2), true, None));
    assert_eq!(with_copies(2), (Some(true), Some(1), true, None));
    assert_eq!(with_copies(1), (Some(true), Some(0), true, None));
    assert_eq!(with_copies(0), (Some(false), None, false, Some(false)));
}

/// Bytes that nobody could open never come out, not even for a caller without a key who asks for the remains.
#[test]
fn nothing_comes_out_that_nobody_can_open() {
    let made = made((3, 5), 20_000, Grouping::Auto);
    let mut bytes = made.container.clone();
    parts(&bytes).1.iter().for_each(|copy| bytes[copy + 70] ^= 1);
    let (archive, context) = (archive(&bytes).unwrap(), Context::default());
    let is_lost = |error: Error| assert_eq!(error.class(), Class::Lost, "{error}");
    let mut out = Vec::new();
    for partial in [false, true] {
        let wish = Wish { partial, ..Wish::default() };
        is_lost(archive.restore(Destination::writer(&mut out), wish, &context).unwrap_err());
    }
    let all = PayloadRange::ALL;
    is_lost(archive.restore_range(all, None, Destination::writer(&mut out), &context).unwrap_err());
    is_lost(archive.opener(Some(&made.keys)).err().unwrap());
    assert!(out.is_empty());
}
