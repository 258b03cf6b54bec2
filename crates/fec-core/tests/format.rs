//! Parsers are total: whatever the bytes, they answer; and what they accept, they write again.

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::container::{GroupId, HEADER_LEN, Index, IndexHeader, RecordHeader, record_head_len};
use fec_core::format::meta::Meta;
use fec_core::format::scan::{ScanStep, Scanner};
use fec_core::format::shard_file::{self, Encoding, Layout, ShardHeader};
use fec_core::params::{CONTAINER_GROUP_BYTES, ContainerLayout, FileGeometry};
use proptest::prelude::*;

fn shard_header(k: usize, m: usize, len: u64, name: &[u8]) -> ShardHeader {
    let code = Code::new(k, m).unwrap();
    let geometry = FileGeometry::shard_files(HashKind::Blake3, code, 1 << 16, len).unwrap();
    let encoding = Encoding::new(geometry, [7; 32], Meta::with_name(name).unwrap());
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
    let layout = Layout::new(&header.encoding.geometry);
    assert_eq!(layout.body % 4096, 0);
    assert_eq!(layout.shard(0), layout.body);
    assert_eq!(layout.file_len, layout.tail_header + shard_file::HEADER_LEN as u64);
    assert_eq!(layout.proofs(1)[1] - layout.proofs(0)[1], layout.proof_len);
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
    fn altered_shard_headers_are_never_taken_for_another(at in 12usize..512, byte: u8) {
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
        let layout = ContainerLayout::new(HashKind::Sha256, code, 192, None, CONTAINER_GROUP_BYTES).unwrap();
        let group = GroupId { geometry: layout.group(0, 100, true), root: [1; 32], head: [0; 32] };
        let mut head = vec![0u8; group.record_head_len()];
        RecordHeader { set: 0, index: 4, group }.seal(&mut head);
        prop_assert!(RecordHeader::parse(&head, CONTAINER_GROUP_BYTES).is_ok());
        head[at] = bytes[at];
        let len = record_head_len(head.first_chunk().unwrap());
        head.resize(len.max(HEADER_LEN), 0);
        seal(&mut head);
        if let Ok(parsed) = RecordHeader::parse(&head, u64::MAX) {
            let mut again = head.clone();
            parsed.seal(&mut again);
            prop_assert_eq!(again, head);
        }
        let index = Index::new(layout.file(&group.geometry), vec![[9; 32]], Meta::default()).to_bytes();
        bytes[..12].copy_from_slice(&index[..12]);
        let mut mixed = index[..HEADER_LEN].to_vec();
        mixed[at] = bytes[at];
        seal(&mut mixed);
        if let Ok(header) = IndexHeader::parse(mixed.first_chunk().unwrap(), u64::MAX) {
            // Every field but the root and the meta's hash is bound by a rule of its own.
            prop_assert!(header.open(&index[HEADER_LEN..][..header.body_len().min(index.len() - HEADER_LEN)]).is_ok() == (mixed == index[..HEADER_LEN]));
        }
    }

    #[test]
    fn meta_is_total_and_writes_what_it_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(meta) = Meta::parse(&bytes) {
            prop_assert_eq!(Meta::parse(&meta.to_bytes()), Ok(meta));
        }
    }

    /// The scanner always gets on: it drops bytes, or asks for more than it has.
    #[test]
    fn scanning_anything_ends(mut bytes in proptest::collection::vec(any::<u8>(), 0..2000), magics in proptest::collection::vec((0usize..2000, any::<bool>()), 0..8)) {
        for (at, is_record) in magics {
            let magic: &[u8] = if is_record { b"\x89fecR\r\n\x1a" } else { b"\x89fecX\r\n\x1a" };
            if let Some(place) = bytes.get_mut(at..at + 8) {
                place.copy_from_slice(magic);
            }
        }
        let mut scanner = Scanner::new(CONTAINER_GROUP_BYTES);
        let mut at = 0;
        while at < bytes.len() {
            let dropped = match scanner.step(&bytes[at..], true, bytes.len() as u64).unwrap() {
                ScanStep::Skip(skipped) => skipped,
                ScanStep::More(needed) => return Err(TestCaseError::fail(format!("asked for {needed} at the end"))),
                ScanStep::Record { len, .. } | ScanStep::Index { len, .. } => len,
                ScanStep::IndexHeader(_) | ScanStep::Rejected(_) => 8,
            };
            prop_assert!(dropped > 0);
            at += dropped;
        }
    }
}
