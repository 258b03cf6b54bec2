//! Parsers are total: they answer any bytes, and write accepted bytes again unchanged.

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::FormatError;
use fec_core::format::annex;
use fec_core::format::container::{
    GroupId, HEADER_LEN, INDEX_MAGIC, Index, IndexHeader, META_MAGIC, MetaFrame, RECORD_MAGIC, RecordHeader,
    record_head_len,
};
use fec_core::format::meta::{MAX_META, Meta};
use fec_core::format::scan::{MAX_INDEX_BODY, ScanStep, Scanner};
use fec_core::format::shard_file::{self, Encoding, ShardHeader};
use fec_core::params::{ContainerLayout, Form, GroupGeometry};
use proptest::prelude::*;

fn shard_header(k: usize, m: usize, len: u64, name: &[u8]) -> ShardHeader {
    let code = Code::new(k, m).unwrap();
    let geometry = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 1 << 20, len).unwrap();
    let encoding = Encoding::new(geometry, [7; 32], &Meta::with_name(name).unwrap().to_bytes());
    ShardHeader { index: (k + m - 1) as u32, encoding }
}

/// Puts the checksum right, as an attacker does.
fn seal(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// The scanner gets the bytes that its caller has read so far: a magic may begin at their end.
#[test]
fn a_magic_that_is_cut_by_the_end_of_a_window_is_not_dropped() {
    for magic in [RECORD_MAGIC, META_MAGIC, INDEX_MAGIC, annex::MAGIC] {
        for (before, cut) in (0..6).chain([100]).flat_map(|before| (0..=7).map(move |cut| (before, cut))) {
            let window = [&vec![b'x'; before][..], &magic[..cut]].concat();
            let skipped = match Scanner::new(None).step(&window, false, 0) {
                ScanStep::Skip(skipped) => skipped,
                ScanStep::More(needed) => {
                    assert!(needed > window.len());
                    0
                }
                other => panic!("{other:?} of {window:?}"),
            };
            assert!(
                skipped <= before,
                "{cut} bytes of a magic behind {before} others: {skipped} are dropped"
            );
            assert!(skipped + 3 >= before, "what is no part of a magic does not stay");
        }
    }
}

/// Zero bytes go before what the geometry says, those behind the proof too: what is damaged says nothing of rules.
#[test]
fn zeros_of_a_record_are_checked_before_its_geometry() {
    let layout = ContainerLayout::new(HashKind::Blake3, Code::new(2, 1).unwrap(), 1 << 20, None).unwrap();
    let group = GroupId { geometry: layout.group(0, 100, true), root: [1; 32], before: [2; 32] };
    for zero in [12, 24, group.record_head_len() - 1] {
        // k is 0: another shape has a proof as long.
        let mut record = vec![0; group.record_head_len()];
        RecordHeader { set: 0, index: 0, group }.seal(&mut record);
        record[36] = 0;
        let padding = record_head_len(record.first_chunk().unwrap()) - HEADER_LEN;
        record.resize(HEADER_LEN + padding, 0);
        seal(&mut record);
        assert!(!matches!(RecordHeader::parse(&record), Ok(_) | Err(FormatError::Damaged(_))));
        let last = record.len() - 1;
        record[zero.min(last)] = 1;
        seal(&mut record);
        let parsed = RecordHeader::parse(&record);
        assert!(matches!(parsed, Err(FormatError::Damaged(_))), "{zero}: {parsed:?}");
    }
}

/// A header that ends before the bytes that its checksum covers does not prove its version.
#[test]
fn a_header_that_is_cut_has_no_checksum() {
    let layout = ContainerLayout::new(HashKind::Blake3, Code::new(2, 1).unwrap(), 1 << 20, None).unwrap();
    let geometry = layout.group(0, 100, true);
    let group = GroupId { geometry, root: [1; 32], before: [2; 32] };
    let mut record = vec![0; group.record_head_len()];
    RecordHeader { set: 0, index: 0, group }.seal(&mut record);
    let frame = MetaFrame::to_bytes(geometry.shape(), &Meta::with_name(b"name").unwrap().to_bytes());
    for (what, bytes) in [("record", &record), ("meta frame", &frame)] {
        for len in [HEADER_LEN, bytes.len() - 1] {
            let step = Scanner::new(None).step(&bytes[..len], true, 0);
            let ScanStep::Rejected { error, drop: 8 } = step else { panic!("{what}: {step:?}") };
            assert!(!error.is_behind_checksum(), "{what}: {error}");
        }
    }
    // A record with its whole head proves that it was written as one.
    let ScanStep::Rejected { error, .. } = Scanner::new(None).step(&record, true, 0) else { panic!() };
    assert!(error.is_behind_checksum());
    // The beginning of a shard file's header names a version, or none.
    let mut header = shard_header(2, 1, 100, b"name").to_bytes();
    assert_eq!(shard_file::other_version(&header[..33]), None);
    header[32] = 2;
    assert_eq!(shard_file::other_version(&header[..33]), Some(FormatError::Version(2)));
    assert_eq!(shard_file::other_version(&header[..32]), None);
}

/// Section 9.1: four times the input and 2^30 bytes may be hashed without going on behind them.
#[test]
fn what_is_hashed_in_vain_is_bounded() {
    const ALLOWANCE: u64 = 1 << 30;
    let (position, len) = (5000, 300);
    let most = 4 * (position + len as u64) + ALLOWANCE;
    let mut scanner = Scanner::new(None);
    assert_eq!(scanner.in_vain(most - 1, position, len), 8);
    assert_eq!(scanner.in_vain(1, position, len), 8, "only the magic is passed over");
    assert_eq!(scanner.in_vain(1, position, len), len);
    assert_eq!(scanner.in_vain(3, position + 1, len), 8, "the input is longer by one byte");
}

/// Section 12: an index of 2^20 groups with the longest meta is examined, and no longer one.
#[test]
fn the_longest_index_that_is_looked_at() {
    let code = Code::new(1, 1).unwrap();
    let layout = ContainerLayout::new(HashKind::Blake3, code, 512 << 10, Some(1)).unwrap();
    let header = |groups: u32| {
        let geometry = layout.file(&layout.group(groups - 1, layout.piece_len(), true)).unwrap();
        IndexHeader { geometry, root: [0; 32], meta_hash: [0; 32], meta_len: MAX_META as u32 }
    };
    assert_eq!(header(1 << 20).body_len(), MAX_INDEX_BODY);
    assert!(header((1 << 20) + 1).body_len() > MAX_INDEX_BODY);
}

/// An index without a body behind it may have one in front: that body is examined only as long as the work allows.
#[test]
fn bodies_before_an_index_are_bounded_too() {
    let layout = ContainerLayout::new(HashKind::Blake3, Code::new(2, 1).unwrap(), 1 << 20, None).unwrap();
    let file = layout.file(&layout.group(0, 100, true)).unwrap();
    let header = Index::new(file, vec![[0; 32]], b"").header;
    // A body counts four times: this one has 64 bytes.
    assert_eq!(header.body_len(), 64);
    let (position, work) = (1000, 4 * 64);
    let most = 4 * (position + HEADER_LEN as u64) + (1 << 30);
    let mut scanner = Scanner::new(None);
    scanner.in_vain(most - work, 0, 0);
    assert!(scanner.may_look_before(&header, position));
    scanner.in_vain(1, 0, 0);
    assert!(!scanner.may_look_before(&header, position));
    assert!(scanner.may_look_before(&header, position + 1));
    // An examined body counts, and the header itself from its checksum on.
    let counted = |looked_before| {
        let mut scanner = Scanner::new(None);
        assert_eq!(scanner.index_in_vain(&header, looked_before, 0, HEADER_LEN), 8);
        let left = (0..1000).find(|left| {
            let mut scanner = Scanner::new(None);
            scanner.in_vain(4 * HEADER_LEN as u64 + (1 << 30) - left, 0, 0);
            scanner.index_in_vain(&header, looked_before, 0, HEADER_LEN) == 8
        });
        left.unwrap()
    };
    assert_eq!((counted(false), counted(true)), (128 - 12, 128 - 12 + work));
}

/// Section 4.1: the pieces before would be the whole payload.
#[test]
fn a_last_group_without_payload_is_not_canonical() {
    let layout = ContainerLayout::new(HashKind::Blake3, Code::new(2, 1).unwrap(), 1 << 20, None).unwrap();
    let parse =
        |number, len| GroupGeometry::parse(&layout.group(number, len, true).to_bytes(), Form::Container);
    assert_eq!(parse(1, 0), Err(FormatError::NotCanonical("the last group is empty")));
    assert!(parse(1, 1).is_ok());
    assert!(parse(0, 0).is_ok(), "a payload may be empty");
}

#[test]
fn layouts_are_products_of_header_fields() {
    let header = shard_header(33, 67, 200_000_000, b"x");
    let layout = header.encoding.layout();
    assert_eq!(layout.body % 4096, 0);
    assert_eq!(layout.shard(0), layout.body);
    assert_eq!(layout.file_len, layout.tail_header + shard_file::HEADER_LEN as u64);
    assert_eq!(layout.proofs(1)[1] - layout.proofs(0)[1], layout.proof_len);
}

/// 100 shards of a payload of 16 KiB, whatever its name.
#[test]
fn shard_files_of_small_payloads_are_small() {
    let header = shard_header(33, 67, 16 << 10, &[b'n'; 255]);
    assert!(header.encoding.layout().file_len <= 2048, "{}", header.encoding.layout().file_len);
    assert!(shard_header(33, 67, 10_000, b"notes.txt").encoding.layout().file_len <= 1408);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shard_headers_round_trip(k in 1usize..=200, m in 0usize..=56, len in 0u64..1 << 35, name in "[a-z]{1,200}") {
        let header = shard_header(k, m, len, name.as_bytes());
        let bytes = header.to_bytes();
        prop_assert_eq!(ShardHeader::parse(&bytes), Ok(header));
    }

    /// Any byte changed and the checksum put right: the parser rejects it, or writes the same bytes again.
    #[test]
    fn altered_shard_headers_are_never_taken_for_another(at in 12usize..192, byte: u8) {
        let header = shard_header(10, 4, 12_345, b"name");
        let mut bytes = header.to_bytes();
        bytes[at] = byte;
        seal(&mut bytes);
        match ShardHeader::parse(&bytes) {
            Ok(parsed) => prop_assert_eq!(parsed.to_bytes(), bytes),
            Err(_) => prop_assert_ne!(bytes, header.to_bytes()),
        }
    }

    #[test]
    fn record_and_index_headers_are_total(mut bytes in proptest::collection::vec(any::<u8>(), HEADER_LEN), at in 12usize..128) {
        let code = Code::new(3, 2).unwrap();
        let layout = ContainerLayout::new(HashKind::Sha256, code, 1 << 20, None).unwrap();
        let group = GroupId { geometry: layout.group(0, 100, true), root: [1; 32], before: [0; 32] };
        let mut head = vec![0u8; group.record_head_len()];
        RecordHeader { set: 0, index: 4, group }.seal(&mut head);
        prop_assert!(RecordHeader::parse(&head).is_ok());
        head[at] = bytes[at];
        let len = record_head_len(head.first_chunk().unwrap());
        head.resize(len.max(HEADER_LEN), 0);
        seal(&mut head);
        if let Ok(parsed) = RecordHeader::parse(&head) {
            let mut again = head.clone();
            parsed.seal(&mut again);
            prop_assert_eq!(again, head);
        }
        let index = Index::new(layout.file(&group.geometry).unwrap(), vec![[9; 32]], b"").to_bytes(b"");
        bytes[..12].copy_from_slice(&index[..12]);
        let mut mixed = index[..HEADER_LEN].to_vec();
        mixed[at] = bytes[at];
        seal(&mut mixed);
        if let Ok(header) = IndexHeader::parse(mixed.first_chunk().unwrap()) {
            // Fields that no rule binds are bound by the root.
            let body = &index[HEADER_LEN..][..(header.body_len() as usize).min(index.len() - HEADER_LEN)];
            prop_assert!(header.open(body).is_ok() == (mixed == index[..HEADER_LEN]));
        }
        let mut frame = MetaFrame::to_bytes(layout.shape(), b"\x02\x01\x00a");
        let whole = frame.clone();
        frame[at] = bytes[at];
        frame.resize(MetaFrame::frame_len(frame.first_chunk().unwrap()), 0);
        seal(&mut frame);
        let ignorable = at == 35 && frame[at] & 0xf == 0;
        prop_assert_eq!(MetaFrame::parse(&frame).is_ok(), frame == whole || ignorable);
    }

    #[test]
    fn meta_is_total_and_writes_what_it_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(meta) = Meta::parse(&bytes) {
            prop_assert_eq!(Meta::parse(&meta.to_bytes()), Ok(meta));
        }
    }

    /// The scanner always advances: it drops bytes, or asks for more than it has.
    #[test]
    fn scanning_anything_ends(mut bytes in proptest::collection::vec(any::<u8>(), 0..2000), magics in proptest::collection::vec((0usize..2000, 0usize..4), 0..8)) {
        for (at, kind) in magics {
            let magic = [b"\x89fecR\r\n\x1a", b"\x89fecX\r\n\x1a", b"\x89fecM\r\n\x1a", b"\x89fecA\r\n\x1a"][kind];
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(magic);
            }
            if let Some(place) = bytes.get_mut(at + 32..at + 33) {
                place[0] = 1;
            }
        }
        let mut scanner = Scanner::new(None);
        let mut at = 0;
        while at < bytes.len() {
            let dropped = match scanner.step(&bytes[at..], true, at as u64) {
                ScanStep::Skip(skipped) => skipped,
                ScanStep::More(needed) => return Err(TestCaseError::fail(format!("asked for {needed} at the end"))),
                ScanStep::Record { drop, .. }
                | ScanStep::Meta { drop, .. }
                | ScanStep::Index { drop, .. }
                | ScanStep::Annex { drop, .. }
                | ScanStep::BadMeta { drop, .. }
                | ScanStep::Rejected { drop, .. } => drop,
                ScanStep::IndexHeader { .. } => 8,
            };
            prop_assert!(dropped > 0);
            at += dropped;
        }
    }
}
