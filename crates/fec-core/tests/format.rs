//! Parsers are total: whatever the bytes, they answer; and what they accept, they write again.

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::container::{
    GroupId, HEADER_LEN, Index, IndexHeader, MetaFrame, RecordHeader, record_head_len,
};
use fec_core::format::meta::Meta;
use fec_core::format::scan::{ScanStep, Scanner};
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

#[test]
fn layouts_are_products_of_header_fields() {
    let header = shard_header(33, 67, 200_000_000, b"x");
    let layout = header.encoding.layout();
    assert_eq!(layout.body % 4096, 0);
    assert_eq!(layout.shard(0), layout.body);
    assert_eq!(layout.file_len, layout.tail_header + shard_file::HEADER_LEN as u64);
    assert_eq!(layout.proofs(1)[1] - layout.proofs(0)[1], layout.proof_len);
}

/// 100 shards of a payload of 16 KiB, whatever it is called.
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

    /// Any byte changed and the checksum put right: rejected, or the same meaning in the same bytes.
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
            // What no rule binds, the root does.
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

    /// The scanner always gets on: it drops bytes, or asks for more than it has.
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
