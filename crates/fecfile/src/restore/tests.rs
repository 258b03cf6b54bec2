//! Output of containers that are whole, damaged, cut, sealed, or record wrong digests.

use super::*;
use crate::error::Action;
use crate::forms::container::writer;
use crate::groups::Groups;
use crate::input::{Input, Object};
use crate::payload::{Options, Source};
use crate::range::PayloadRange;
use crate::seal::SealedPayload;
use crate::seal::sealer::{SealedTo, Sealer, Sealing};
use fec_base::io::folder::Folder;
use fec_base::io::output::Destination;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::meta::Meta;
use fec_core::format::seal::SealedKind;
use fec_core::params::ContainerLayout;
use fec_core::random::SplitMix64;
use fec_keys::age::{Identity, KeyKind, Keys};
use fec_keys::cipher::Cipher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const QUICK: Policy = Policy::new().with_sync(false);
/// Payload bytes of a group: two sets of three shards.
const GROUP: usize = 24 << 10;

fn layout(sets: u32) -> ContainerLayout {
    ContainerLayout::new(HashKind::Blake3, Code::new(3, 1).unwrap(), 12 << 10, Some(sets)).unwrap()
}

fn random(len: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(len as u64);
    (0..len).map(|_| random.next() as u8).collect()
}

/// A container and its payload.
struct Made {
    /// The encoded bytes: the payload, sealed if the test wants that.
    coded: Vec<u8>,
    container: Vec<u8>,
    /// The container after it was looked through, if it changes.
    later: Option<Vec<u8>>,
}

/// Bytes that change.
struct Changing {
    now: Vec<u8>,
    later: Vec<u8>,
    is_later: Arc<AtomicBool>,
}

impl ReadAt for Changing {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let bytes = if self.is_later.load(Ordering::SeqCst) { &self.later } else { &self.now };
        ReadAt::read_at(&bytes[..], offset, out)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.now.len() as u64)
    }
}

impl Made {
    fn new(payload: Vec<u8>, meta: Meta) -> Made {
        Made::laid_out(&layout(2), payload, meta)
    }

    fn laid_out(layout: &ContainerLayout, coded: Vec<u8>, meta: Meta) -> Made {
        let mut container = Vec::new();
        let fail = |e| Error::io(Action::Write, Place::Nowhere, e);
        let source = Source::Payload(&coded as &dyn Payload);
        let context = Context::default();
        writer::write(source, &mut container, &fail, layout, &meta.to_bytes(), &context).unwrap();
        Made { coded, container, later: None }
    }

    fn sealed(payload: &Vec<u8>, keys: &Keys) -> Made {
        let Keys::Identities(identities) = keys else { unreachable!("it is for a key") };
        let to = SealedTo::Recipients(vec![identities[0].recipient()]);
        let sealer =
            Sealer::new(&Sealing { to, cipher: Cipher::Aes256Gcm }, SealedKind::Payload, None, 1).unwrap();
        let sealed = SealedPayload::new(payload, &sealer);
        let mut coded = vec![0; sealed.size() as usize];
        sealed.read_at(0, &mut coded).unwrap();
        Made::laid_out(&layout(2).sealed(), coded, sealer.meta())
    }

    /// Position of the first record of a group.
    fn group(&self, nth: usize) -> usize {
        let first = &self.coded[nth * GROUP..][..64];
        self.container.windows(64).position(|bytes| bytes == first).unwrap()
    }

    /// Damages these ranges of the container.
    fn without(mut self, lost: &[Range<usize>]) -> Made {
        for range in lost {
            self.container[range.clone()].fill(0x55);
        }
        self
    }

    fn without_group(self, nth: usize) -> Made {
        // The header of the next group stays whole.
        let lost = self.group(nth)..self.group(nth + 1) - 1000;
        self.without(&[lost])
    }

    /// Damages two shards of a set of a group.
    fn with_damaged_group(self, nth: usize) -> Made {
        let at = self.group(nth);
        self.without(&[at..at + 200, at + 8800..at + 9000])
    }

    /// Damages two shards of a set of a group after the container was looked through.
    fn losing_group(self, nth: usize) -> Made {
        let now = self.container.clone();
        let lost = self.with_damaged_group(nth);
        Made { later: Some(lost.container), container: now, ..lost }
    }

    /// Restores the container to a writer and to a file, and returns both outputs. Both calls have the same result.
    fn restored(&self, wish: Wish<'_>) -> (Result<Restored>, Vec<u8>, Option<Vec<u8>>) {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let context = Context::default();
        let archive = self.archive();
        let mut out = Vec::new();
        let written = archive.restore(Destination::writer(&mut out), wish, &context);
        let filed = archive.restore(Destination::File(&path, QUICK), wish, &context);
        match (&written, &filed) {
            (Ok(written), Ok(filed)) => {
                assert_eq!(written.written, filed.written);
                assert_eq!(written.is_whole(), filed.is_whole());
                assert_eq!(written.opened, filed.opened);
                assert_eq!(written.outcome.lost.list(), filed.outcome.lost.list());
                assert_eq!(path.exists(), filed.written);
            }
            (Err(written), Err(filed)) => {
                assert_eq!(written.to_string(), filed.to_string());
                assert!(!path.exists());
            }
            _ => panic!("{written:?} {filed:?}"),
        }
        // Without `partial`, a payload that is not whole is an error.
        assert!(
            wish.partial || written.as_ref().is_ok_and(|restored| restored.is_whole()) || written.is_err()
        );
        (written, out, std::fs::read(&path).ok())
    }

    fn archive(&self) -> Archive {
        let is_later = Arc::new(AtomicBool::new(false));
        let later = self.later.as_ref().unwrap_or(&self.container).clone();
        let bytes = Changing { now: self.container.clone(), later, is_later: is_later.clone() };
        let input = Input::One(Object::new("x.fec", Arc::new(bytes)).unwrap());
        let archive = Archive::open(&input, None, &Context::default()).unwrap();
        is_later.store(true, Ordering::SeqCst);
        archive
    }
}

const PARTIAL: Wish<'_> = Wish { partial: true, strict: false, opener: None };
const STRICT: Wish<'_> = Wish { partial: false, strict: true, opener: None };

/// Meta with the wanted digests of a payload.
fn digests(payload: &Vec<u8>, sha256: bool, blake3: bool) -> Meta {
    let wanted = PayloadDigests { sha256, blake3 };
    let (sha256, blake3) = payload::digests(payload, wanted, &Context::default()).unwrap();
    Meta { sha256, blake3, ..Meta::default() }
}

/// The report in the error of a lost payload.
fn lost(restored: Result<Restored>) -> Restored {
    match restored {
        Err(error) => match error.into_cause() {
            Ok(EncodingError::Lost(restored)) => *restored,
            other => panic!("{other:?}"),
        },
        Ok(restored) => panic!("{restored:?}"),
    }
}

#[test]
fn a_damaged_container_is_restored_whole() {
    let payload = random(100_000);
    let made = Made::new(payload.clone(), digests(&payload, true, true));
    // The damage hits one of four shards.
    let at = made.group(2);
    let made = made.without(&[at..at + 200, at + 300..at + 4096]);
    for wish in [Wish::default(), PARTIAL, STRICT, Wish { partial: true, ..STRICT }] {
        let (restored, out, file) = made.restored(wish);
        let restored = restored.unwrap();
        assert!(restored.written && restored.is_whole() && restored.opened.is_none());
        assert_eq!(restored.outcome.mended_sets, 1);
        assert!(out == payload && file.unwrap() == payload);
    }
}

/// A loss after the container was looked through. Groups that were proved before it have gone out to a writer. Nothing
/// has gone out if digests are compared first, or to a file.
#[test]
fn what_is_lost_ends_the_payload() {
    let payload = random(100_000);
    let all = digests(&payload, true, true);
    for (meta, wish, expected) in [
        (Meta::default(), Wish::default(), 2 * GROUP),
        (Meta::default(), STRICT, 2 * GROUP),
        (all.clone(), Wish::default(), 2 * GROUP),
        (all, STRICT, 0),
    ] {
        let made = Made::new(payload.clone(), meta).losing_group(2);
        let (restored, out, file) = made.restored(wish);
        let restored = lost(restored);
        assert!(!restored.written && !restored.is_whole());
        assert!(out == payload[..expected], "{} of {expected}", out.len());
        assert!(file.is_none());
    }
}

#[test]
fn what_is_lost_is_zeros_where_a_part_is_wanted() {
    let payload = random(100_000);
    let right = digests(&payload, true, true);
    for wish in [PARTIAL, Wish { partial: true, ..STRICT }] {
        let made = Made::new(payload.clone(), right.clone());
        let made = made.with_damaged_group(1).without_group(3);
        let (restored, out, file) = made.restored(wish);
        let restored = restored.unwrap();
        assert!(restored.written && !restored.is_whole());
        assert!(restored.outcome.by_path.bytes() > 0, "some were proved one by one");
        let mut expected = payload.clone();
        for lost in restored.outcome.lost.list() {
            expected[lost.start as usize..lost.end as usize].fill(0);
        }
        let lost = restored.outcome.lost.bytes();
        assert!((GROUP as u64..2 * GROUP as u64).contains(&lost), "{lost}");
        assert!(out == expected && file.unwrap() == expected);
    }
}

/// Group 1, alone or with the group behind it: neither the end nor the beginning of the payload is known.
#[test]
fn a_piece_of_a_container_stands_where_it_belongs() {
    let payload = random(100_000);
    for groups in [1, 2] {
        let made = Made::new(payload.clone(), Meta::default());
        let piece = made.group(1) - 700..made.group(1 + groups) - 700;
        let made = Made { container: made.container[piece].to_vec(), ..made };
        let (restored, out, file) = made.restored(PARTIAL);
        let restored = restored.unwrap();
        assert!(restored.written && restored.root.is_none());
        let expected = [&[0; GROUP][..], &payload[GROUP..(1 + groups) * GROUP]].concat();
        assert!(out == expected, "{} of {}", out.len(), expected.len());
        assert!(file.unwrap() == expected);
    }
}

#[test]
fn only_a_strict_reader_compares_digests() {
    let (payload, other) = (random(60_000), random(60_001));
    let (right, wrong) = (digests(&payload, true, true), digests(&other, true, true));
    for (meta, expected) in [
        (Meta { sha256: right.sha256, ..Meta::default() }, None),
        (Meta { blake3: right.blake3, ..Meta::default() }, None),
        (Meta { sha256: wrong.sha256, ..Meta::default() }, Some("SHA-256")),
        (Meta { blake3: wrong.blake3, ..Meta::default() }, Some("BLAKE3")),
        (Meta { blake3: wrong.blake3, ..right.clone() }, Some("BLAKE3")),
        (Meta { sha256: wrong.sha256, ..right.clone() }, Some("SHA-256")),
    ] {
        let made = Made::new(payload.clone(), meta);
        let (restored, out, file) = made.restored(Wish::default());
        assert!(restored.unwrap().written && out == payload && file.unwrap() == payload);
        let (restored, out, file) = made.restored(STRICT);
        match expected {
            None => assert!(restored.unwrap().written && out == payload && file.unwrap() == payload),
            Some(name) => {
                assert!(
                    matches!(restored.unwrap_err().cause(), Some(EncodingError::OtherDigest(of)) if *of == name)
                );
                assert!(out.is_empty() && file.is_none());
            }
        }
    }
}

#[test]
fn a_written_payload_is_read_where_it_stands() {
    let file = tempfile::tempfile().unwrap();
    fec_base::io::system::write_all_at(&file, b"payload", 0).unwrap();
    let written = WrittenPayload { bytes: &file, len: 7, place: Place::Temporary };
    let mut out = [0; 4];
    written.read_at(3, &mut out).unwrap();
    assert_eq!((&out, written.size()), (b"load", 7));
    assert!(matches!(written.place(), Place::Temporary));
    assert!(written.read_at(4, &mut out).is_err(), "it is shorter than that");
}

/// Missing chunks of a sealed payload become zeros, and the chunks behind them are opened.
#[test]
fn a_sealed_payload_is_opened_as_far_as_it_is_there() {
    let identity = Identity::generate(KeyKind::X25519).unwrap();
    let payload = random(400_000);
    let keys = Keys::Identities(vec![identity]);
    let opener = Made::sealed(&payload, &keys);
    let read = |made: &Made, partial| {
        let opener = made.archive().opener(Some(&keys)).unwrap();
        assert!(opener.is_some());
        made.restored(Wish { partial, opener: opener.as_ref(), ..Wish::default() })
    };
    for partial in [false, true] {
        let (restored, out, file) = read(&opener, partial);
        let restored = restored.unwrap();
        assert!(restored.written && restored.is_whole());
        assert_eq!(restored.opened, Some(400_000));
        assert!(out == payload && file.unwrap() == payload);
    }
    // Without an opener the payload is restored sealed.
    let (restored, out, _) = opener.restored(Wish::default());
    assert!(restored.unwrap().opened.is_none() && out == opener.coded);

    let holed = Made::sealed(&payload, &keys).losing_group(7);
    let (restored, out, file) = read(&holed, false);
    let restored = lost(restored);
    assert!(!restored.written && restored.opened.is_none() && file.is_none());
    assert!(
        out.len() >= 128 << 10 && payload.starts_with(&out),
        "what was there before went out: {}",
        out.len()
    );
    let (restored, out, file) = read(&holed, true);
    let restored = restored.unwrap();
    assert!(restored.written && restored.opened == Some(400_000));
    assert!(out == file.unwrap() && out.len() == payload.len());
    let right = out.chunks(64 << 10).zip(payload.chunks(64 << 10)).filter(|(is, of)| is == of).count();
    let zeros = out.chunks(64 << 10).filter(|chunk| chunk.iter().all(|byte| *byte == 0)).count();
    assert!(zeros > 0 && right + zeros == out.chunks(64 << 10).count(), "{right} {zeros}");

    // The container is cut behind the first groups: nothing shows that the last chunk is the last.
    let cut = Made::sealed(&payload, &keys);
    let end = cut.group(9) - 700;
    let cut = Made { container: cut.container[..end].to_vec(), ..cut };
    let (restored, out, file) = read(&cut, true);
    assert!(restored.unwrap().written);
    assert!(out == file.unwrap());
    assert!(
        out.len() >= 3 * (64 << 10) && payload[..3 * (64 << 10)] == out[..3 * (64 << 10)],
        "{}",
        out.len()
    );
}

/// Too few shards are known beforehand, and the place of the output is not even looked at.
#[test]
fn nothing_is_begun_that_cannot_be_ended() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let context = Context::default();
    let payload = random(30_000);
    let options = Options::new(Code::new(3, 2).unwrap());
    crate::encode::to_store(&payload, b"p", &Folder::new(at("shards"), QUICK), &options, &context).unwrap();
    let files = fec_base::io::list(&at("shards")).unwrap();
    let open = || Archive::open(&Input::of_paths(&[at("shards")]).unwrap(), None, &context).unwrap();
    std::fs::remove_file(at("shards").join(&files[0])).unwrap();
    let nowhere = at("no folder/out");
    open().restore(Destination::File(&nowhere, QUICK), Wish::default(), &context).unwrap_err();
    let whole = open().restore(Destination::File(&at("whole"), QUICK), Wish::default(), &context).unwrap();
    assert!(whole.written && whole.is_whole() && std::fs::read(at("whole")).unwrap() == payload);
    for file in &files[1..3] {
        std::fs::remove_file(at("shards").join(file)).unwrap();
    }
    let archive = open();
    assert_eq!(archive.is_restorable(), Some(false));
    let lost = lost(archive.restore(Destination::File(&nowhere, QUICK), Wish::default(), &context));
    assert!(!lost.written && !lost.is_whole() && lost.outcome.lost_sets > 0);
    let partly = archive.restore(Destination::File(&at("out"), QUICK), PARTIAL, &context).unwrap();
    assert!(partly.written && !partly.is_whole());
    assert_eq!(std::fs::read(at("out")).unwrap().len(), payload.len());
}

/// A caller that ignores the report must not take nothing for the payload: every call fails, in every form, if too few
/// shards are left.
#[test]
fn no_call_is_done_without_an_error_where_the_payload_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let context = Context::default();
    let payload = random(100_000);
    let made = Made::new(payload.clone(), Meta::default());
    let container = made.without_group(1).archive();
    let store = fec_base::io::memory::MemoryStore::new();
    let options = Options::new(Code::new(3, 2).unwrap());
    crate::encode::to_store(&payload, b"p", &store, &options, &context).unwrap();
    for index in [0, 2, 4] {
        store.remove(format!("p.{index:03}.shard")).unwrap();
    }
    let shards = Archive::open(&Input::of_store(&store).unwrap(), None, &context).unwrap();
    for (what, archive) in [("container", container), ("shards", shards)] {
        let mut out = Vec::new();
        let path = place.path().join("out");
        let range = PayloadRange { start: 30_000, end: Some(40_000) };
        let strict = Wish { strict: true, ..Wish::default() };
        for wish in [Wish::default(), strict] {
            assert!(!lost(archive.restore(Destination::writer(&mut out), wish, &context)).written);
            assert!(!lost(archive.restore(Destination::File(&path, QUICK), wish, &context)).written);
        }
        assert!(!lost(archive.restore_range(range, None, Destination::File(&path, QUICK), &context)).written);
        let written = out.len();
        assert!(!lost(archive.restore_range(range, None, Destination::writer(&mut out), &context)).written);
        assert!(out.len() == written && !path.exists(), "{what}");
        assert_eq!(archive.verify(false, &context).unwrap().is_restorable, Some(false), "{what}");
        // A caller that asks for the remains gets them, and a report.
        let partly = archive.restore(Destination::File(&path, QUICK), PARTIAL, &context).unwrap();
        assert!(partly.written && !partly.is_whole(), "{what}");
        std::fs::remove_file(&path).unwrap();
    }
}

/// Records of these sets only.
struct Few(Vec<Range<u32>>);

impl crate::forms::encoded::Records for Few {
    fn load(
        &self,
        _group: u32,
        _set: u32,
        _wanted: &[u32],
        _decoder: &mut Reading<'_>,
    ) -> Vec<crate::forms::encoded::Load> {
        unreachable!("only what is there is asked")
    }

    fn present(&self, _group: u32, _sets: u32) -> Vec<Range<u32>> {
        self.0.clone()
    }
}

/// A few records may claim to belong to an endless payload.
#[test]
fn zeros_without_end_are_refused() {
    assert_eq!(most_for(0), 1 << 30);
    assert_eq!(most_for(3), (1 << 30) + 3072);
    assert_eq!(most_for(u64::MAX), u64::MAX);
    let sets = 1 << 18;
    let geometry = layout(sets).group(0, 3 << 30, true);
    let check = |present: &[Range<u32>]| {
        let groups = Groups::new(geometry, geometry, vec![[0; 32]]);
        let records = Box::new(Few(present.to_vec()));
        check_left(&Encoded { root: None, groups, payload_len: Some(3 << 30), meta: None, records })
    };
    for (present, sets) in [(&[][..], 0), (&[5..7, 9..10], 3), (&[0..9, 9..170], 170)] {
        let refused = check(present).unwrap_err();
        let expected = sets * 12_288;
        let Some(EncodingError::FewLeft { left, len }) = refused.cause() else { panic!("{refused}") };
        assert_eq!((*left, *len), (expected, 3 << 30));
    }
    check(&[0..9, 9..171]).unwrap();
    check(&[0..9, 9..sets]).unwrap();
    // The limit of zeros that go out although nothing may be left.
    let few = |len| {
        let geometry = layout(sets).group(0, len, true);
        let groups = Groups::new(geometry, geometry, vec![[0; 32]]);
        check_left(&Encoded {
            root: None,
            groups,
            payload_len: None,
            meta: None,
            records: Box::new(Few(Vec::new())),
        })
    };
    few(1 << 30).unwrap();
    few((1 << 30) + 1).unwrap_err();
}

/// A large group, or an only one, goes through a temporary file.
#[test]
fn a_small_group_among_others_waits_in_memory() {
    for (capacity, groups, expected) in [
        (1000, 2, true),
        (BOUNDED_GROUP_BYTES, 2, true),
        (BOUNDED_GROUP_BYTES + 1, 2, false),
        (1000, 1, false),
        (1000, 0, false),
    ] {
        assert_eq!(waits_in_memory(capacity, groups), expected, "{capacity} {groups}");
    }
}

#[test]
fn a_payload_is_put_where_it_belongs() {
    let payload = random(100_000);
    for lost in [None, Some(2)] {
        let made = Made::new(payload.clone(), Meta::default());
        let made = lost.into_iter().fold(made, Made::losing_group);
        let out = Mutex::new(vec![0; payload.len()]);
        let put = |at: u64, bytes: &[u8]| {
            put_in_memory(&out, at, bytes);
            Ok(())
        };
        let restored = made.archive().restore_by(&put, &Context::default()).unwrap();
        assert_eq!((restored.written, restored.is_whole()), (lost.is_none(), lost.is_none()));
        assert_eq!(*lock(&out) == payload, lost.is_none());
    }
}
