//! Records, meta frames, indexes and annexes in any bytes. The scanner's findings do not depend on how much of the
//! input it sees at once, and every index that it accepts is written as the same bytes.
#![no_main]

use fec_core::format::annex;
use fec_core::format::container::{
    HEADER_LEN, INDEX_MAGIC, IndexHeader, META_MAGIC, MetaFrame, RECORD_MAGIC, RecordHeader, record_head_len,
};
use fec_core::format::scan::{MAX_INDEX_BODY, ScanStep, Scanner};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let restored = restored(bytes);
    if restored != bytes {
        check(&restored);
    }
});

/// The bytes, with correct checksums of everything that begins like a record, a frame or an index.
fn restored(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at + HEADER_LEN <= out.len() {
        let header: [u8; HEADER_LEN] = out[at..at + HEADER_LEN].try_into().expect("so many bytes");
        let len = match &header[..8] {
            magic if *magic == RECORD_MAGIC => record_head_len(&header),
            magic if *magic == META_MAGIC => MetaFrame::frame_len(&header),
            magic if *magic == INDEX_MAGIC => HEADER_LEN,
            _ => {
                at += 1;
                continue;
            }
        };
        let end = (at + len).min(out.len());
        fec_fuzz::restore_header(&mut out[at..end]);
        at += HEADER_LEN;
    }
    out
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Record(usize, u32, u32),
    Meta(usize),
    Bad(usize),
    Index(usize, u32),
    IndexHeader(usize),
    Annex(usize, u32, usize),
}

fn check(bytes: &[u8]) {
    parse_all(bytes);
    let whole = scan(bytes, usize::MAX);
    for window in [HEADER_LEN, 500] {
        assert_eq!(scan(bytes, window), whole, "in windows of {window}");
    }
}

/// The findings in the bytes, seen through windows of at least `least` bytes.
fn scan(bytes: &[u8], least: usize) -> Vec<Found> {
    let (mut scanner, mut found, mut at, mut len) = (Scanner::new(None), Vec::new(), 0, least);
    while at < bytes.len() {
        let window = &bytes[at..];
        let window = &window[..window.len().min(len)];
        let at_end = at + window.len() == bytes.len();
        let drop = match scanner.step(window, at_end, at as u64) {
            ScanStep::More(more) => {
                assert!(!at_end && more > window.len(), "more is asked for than there is");
                len = more;
                continue;
            }
            ScanStep::Skip(drop) => drop,
            ScanStep::Record { header, len, drop, body, .. } => {
                assert_eq!(body.len(), header.group.geometry.shape().shard_len);
                assert!(drop <= len);
                found.push(Found::Record(at, header.set, header.index));
                drop
            }
            ScanStep::Meta { drop, .. } => {
                found.push(Found::Meta(at));
                drop
            }
            ScanStep::BadMeta { drop, error, .. } => {
                fec_fuzz::look_at(&error);
                found.push(Found::Bad(at));
                drop
            }
            ScanStep::Index { index, drop } => {
                let written = index.to_bytes(&index.meta.to_bytes());
                assert_eq!(written[..drop], window[..drop], "written as it was read");
                assert_eq!(index.groups().count(), index.trees.len());
                found.push(Found::Index(at, index.header.geometry.groups()));
                drop
            }
            ScanStep::IndexHeader { header, len } => {
                assert!(header.body_len() > 0);
                found.push(Found::IndexHeader(at));
                scanner.index_in_vain(&header, false, at as u64, len)
            }
            ScanStep::Annex { kind, data, len, drop } => {
                assert_eq!(annex::write(kind, data), window[..len], "written as it was read");
                found.push(Found::Annex(at, kind, data.len()));
                drop
            }
            ScanStep::Rejected { error, drop } => {
                fec_fuzz::look_at(&error);
                drop
            }
        };
        assert!(drop > 0 && drop <= window.len(), "the scan goes on, within what it saw");
        at += drop;
        len = least;
    }
    found
}

/// The parsers alone, at the beginning.
fn parse_all(bytes: &[u8]) {
    let Some(header) = bytes.first_chunk::<HEADER_LEN>() else { return };
    if let Some(head) = bytes.get(..record_head_len(header))
        && let Ok(record) = RecordHeader::parse(head)
        && record.proof(head).is_some()
    {
        let mut written = head.to_vec();
        record.seal(&mut written);
        assert_eq!(written, head, "written as it was read");
    }
    if let Ok(index) = IndexHeader::parse(header)
        && index.body_len() <= MAX_INDEX_BODY
        && let Some(body) = bytes.get(HEADER_LEN..HEADER_LEN + index.body_len() as usize)
    {
        let _ = index.open(body);
    }
}
