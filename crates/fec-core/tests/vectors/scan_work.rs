//! The work that the scanner counts (section 9.1), step by step, for records, frames, indexes, annexes and ends made
//! from the golden vectors.

use super::*;

/// Corrects the checksum of `bytes`.
fn seal_sum(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[12..]).to_le_bytes();
    bytes[8..12].copy_from_slice(&sum);
}

/// The report of a step: its name, the number of bytes it drops, and the error.
fn said(step: ScanStep<'_>) -> (&'static str, usize, Option<FormatError>) {
    match step {
        ScanStep::Skip(skipped) => ("skip", skipped, None),
        ScanStep::More(needed) => ("more", needed, None),
        ScanStep::Record { drop, .. } => ("record", drop, None),
        ScanStep::Meta { drop, .. } => ("meta", drop, None),
        ScanStep::BadMeta { error, drop, .. } => ("bad meta", drop, Some(error)),
        ScanStep::Index { drop, .. } => ("index", drop, None),
        ScanStep::IndexHeader { len, .. } => ("index header", len, None),
        ScanStep::Annex { drop, .. } => ("annex", drop, None),
        ScanStep::Rejected { error, drop } => ("rejected", drop, Some(error)),
    }
}

/// The bytes that a step counts as hashed in vain, at most 10^6, found by how many more are allowed at byte 0.
fn counted(bytes: &[u8], at_end: bool, wanted: Option<[u8; 32]>) -> u64 {
    let mut scanner = Scanner::new(wanted);
    scanner.in_vain((1 << 30) - 1_000_000, 0, 0);
    scanner.step(bytes, at_end, 5000);
    1_000_000 - (0..).take_while(|_| scanner.in_vain(1, 0, 0) == 8).count() as u64
}

/// The first step over an input, and its bytes in vain.
fn first(bytes: &[u8], at_end: bool) -> (&'static str, usize, u64) {
    let (name, drop, _) = said(Scanner::new(None).step(bytes, at_end, 5000));
    (name, drop, counted(bytes, at_end, None))
}

/// Asserts that the count up to and with `bytes` is compared with four times their end and 2^30.
fn is_bounded(bytes: &[u8], wanted: Option<[u8; 32]>, work: u64, len: usize) {
    assert_eq!(counted(bytes, true, wanted), work);
    for position in [0, 5000] {
        for (more, dropped) in [(0, 8), (1, len)] {
            let mut scanner = Scanner::new(wanted);
            scanner.in_vain((1 << 30) + 4 * (position + len as u64) - work + more, 0, 0);
            assert_eq!(
                said(scanner.step(bytes, true, position)).1,
                dropped,
                "{more} more, from {position} on"
            );
        }
    }
}

/// Section 9.1, records: a header has 128 bytes, and a checksum leaves out twelve.
#[test]
fn records_in_a_scan() {
    // 2+1, three sets: a proof of 32·(1 + 1 + 2) bytes. L is 64·⌈24571 / (64·2·3)⌉.
    let bytes = read(&golden("files/container-blake3-2+1-b24571-s8192.fec"));
    let record = &bytes[..256 + 4096];
    let changed = |at: usize, sum: bool| {
        let mut changed = record.to_vec();
        changed[at] ^= 1;
        if sum {
            seal_sum(&mut changed[..256]);
        }
        changed
    };
    assert_eq!(first(record, false), ("record", 4352, 0));
    assert_eq!(first(&record[..4351], false), ("more", 4352, 0));
    assert_eq!(first(&record[..255], false), ("more", 256, 0));
    assert_eq!(first(&record[..127], false), ("more", 128, 0));
    assert_eq!(first(&record[..255], true), ("rejected", 8, 0));
    assert_eq!(first(&record[..256], true), ("rejected", 8, 244));
    assert_eq!(first(&record[..4351], true), ("rejected", 8, 244));
    is_bounded(&record[..4351], None, 244, 256);
    // The checksum, zero bytes, the set, the digest.
    for at in [8, 200] {
        is_bounded(&changed(at, false), None, 244, 256);
    }
    for at in [12, 31, 19] {
        is_bounded(&changed(at, true), None, 244, 256);
    }
    for (at, sum) in [(4351, false), (64, true), (96, true), (16, true), (20, true), (255, true)] {
        is_bounded(&changed(at, sum), None, 244 + 4096, 4352);
    }
    // The record hides nothing under another root.
    let root: [u8; 32] = record[64..96].try_into().unwrap();
    assert_eq!(said(Scanner::new(Some(root)).step(record, true, 0)).1, 4352);
    is_bounded(record, Some([0; 32]), 244 + 4096, 4352);
    // A padded proof: 32 bytes of 64.
    let bytes = read(&golden("files/container-sha256-1+1-b65.fec"));
    let mut padded = bytes[..192 + 128].to_vec();
    padded[160] = 1;
    seal_sum(&mut padded[..192]);
    is_bounded(&padded, None, 180, 192);
    let (_, _, error) = said(Scanner::new(None).step(&padded, true, 0));
    assert_eq!(error.map(|error| error.class()), Some(Class::Damaged));
}

/// Section 9.1, meta frames.
#[test]
fn meta_frames_in_a_scan() {
    let bytes = read(&golden("files/container-blake3-1+1-b100-name11-extra65519.fec"));
    let frame = &bytes[..128 + 65_536];
    assert_eq!(first(frame, false), ("meta", frame.len(), 0));
    assert_eq!(first(&frame[..frame.len() - 1], false), ("more", frame.len(), 0));
    assert_eq!(first(&frame[..frame.len() - 1], true), ("rejected", 8, 0));
    let mut changed = frame.to_vec();
    changed[1000] ^= 1;
    is_bounded(&changed, None, 116 + 65_536, frame.len());
    // The checksum is right, the hash of the meta is not.
    seal_sum(&mut changed);
    is_bounded(&changed, None, 116 + 2 * 65_536, frame.len());
    // Zero bytes, the form, the length: nothing was hashed.
    for at in [96, 34] {
        let mut changed = frame.to_vec();
        changed[at] ^= 4;
        seal_sum(&mut changed);
        is_bounded(&changed, None, 116 + 65_536, frame.len());
    }
    // An unknown even type in 64 bytes of meta.
    let mut meta = [0; 64];
    meta[..3].copy_from_slice(&[4, 61, 0]);
    let mut frame = frame[..192].to_vec();
    frame[16..20].copy_from_slice(&64u32.to_le_bytes());
    frame[64..96].copy_from_slice(blake3::hash(&meta).as_bytes());
    frame[128..].copy_from_slice(&meta);
    seal_sum(&mut frame);
    is_bounded(&frame, None, 180 + 64, 192);
    match Scanner::new(None).step(&frame, false, 0) {
        ScanStep::BadMeta { meta_hash, error, .. } => {
            assert_eq!((meta_hash, error), (*blake3::hash(&meta).as_bytes(), FormatError::CriticalMeta(4)));
        }
        other => panic!("{other:?}"),
    }
}

/// Section 9.1, indexes: the bytes of a body count four times.
#[test]
fn indexes_in_a_scan() {
    let bytes = read(&golden("files/container-blake3-1+1-b1.fec"));
    let index = &bytes[bytes.len() - 3 * 128 - 2 * 64..][..192];
    assert_eq!(first(index, false), ("index", 192, 0));
    assert_eq!(first(&index[..191], false), ("more", 192, 0));
    assert_eq!(first(&index[..191], true), ("index header", 128, 0));
    let mut changed = index.to_vec();
    changed[191] = 1;
    assert_eq!(first(&changed, false), ("index header", 192, 4 * 64));
    changed[64] ^= 1;
    is_bounded(&changed, None, 116, 128);
    // An unknown type of meta, in an index that leads to its root.
    let header = IndexHeader::parse(index.first_chunk().unwrap()).unwrap();
    let tree: [u8; 32] = index[128..160].try_into().unwrap();
    let mut meta = [0; 64];
    meta[..3].copy_from_slice(&[4, 61, 0]);
    let meta_hash = *blake3::hash(&meta).as_bytes();
    let root = header.geometry.group(0).root(&tree, &meta_hash);
    let mut bad = [&index[..128], &tree, &meta, &[0; 32]].concat();
    bad[16..20].copy_from_slice(&128u32.to_le_bytes());
    bad[24..28].copy_from_slice(&64u32.to_le_bytes());
    bad[64..96].copy_from_slice(&root);
    bad[96..128].copy_from_slice(&meta_hash);
    seal_sum(&mut bad[..128]);
    is_bounded(&bad, None, 116 + 4 * 128, 256);
    match Scanner::new(None).step(&bad, false, 0) {
        ScanStep::BadMeta { meta_hash: of, error, .. } => {
            assert_eq!((of, error), (meta_hash, FormatError::CriticalMeta(4)));
        }
        other => panic!("{other:?}"),
    }
    // Section 12: 2^20 groups and the longest meta are examined, longer bodies are skipped.
    for (groups, expected) in
        [(1u64 << 20, ("more", 128 + (32 << 20) + 65_536)), ((1 << 20) + 1, ("index header", 128))]
    {
        let mut long = index[..128].to_vec();
        long[16..24].copy_from_slice(&(32 * groups + 65_536).next_multiple_of(64).to_le_bytes());
        long[24..28].copy_from_slice(&65_536u32.to_le_bytes());
        // k 1, m 1, L 4096, G 1.
        long[40..48].copy_from_slice(&[0, 16, 0, 0, 1, 0, 0, 0]);
        long[48..56].copy_from_slice(&(groups * 4096).to_le_bytes());
        long[56..64].copy_from_slice(&groups.to_le_bytes());
        seal_sum(&mut long);
        let (name, len, _) = said(Scanner::new(None).step(&long, false, 0));
        assert_eq!((name, len), expected);
    }
}

/// Section 9.4: no annex counts inside an annex, and everything else in it is looked for.
#[test]
fn annexes_in_a_scan() {
    let whole = annex::write(7, &[1; 100]);
    let len = 2 * 32 + 100;
    assert_eq!(whole.len(), len);
    assert_eq!(first(&whole, false), ("annex", 8, 120));
    assert_eq!(first(&whole[..len - 1], false), ("more", len, 0));
    assert_eq!(first(&whole[..len - 1], true), ("skip", 8, 0));
    assert_eq!(first(&whole[..31], false), ("more", 32, 0));
    assert_eq!(first(&whole[..31], true), ("skip", 8, 0));
    assert_eq!(first(&whole[..8], true), ("skip", 8, 0));
    let mut changed = whole.clone();
    changed[40] ^= 1;
    is_bounded(&changed, None, 120, len);
    // An annex in another, and another behind it.
    let outer = annex::write(8, &[&[2; 10][..], &whole].concat());
    let bytes = [b"in front", &outer[..], &whole, b"behind"].concat();
    for more in [0, 1, 1 << 20] {
        let found = scan(&bytes, None, more);
        let expected = ["8: annex 8 of 174".to_owned(), format!("{}: annex 7 of 100", 8 + outer.len())];
        assert_eq!(found.lines, expected);
    }
    // A frame in an annex is found.
    let frame = &read(&golden("files/container-blake3-1+1-b100-name1.fec"))[..192];
    assert_eq!(scan(&annex::write(8, frame), None, 0).lines, ["0: annex 8 of 192", "32: meta of 4"]);
}

/// The first and the last bytes of an input, which may be those of a header.
#[test]
fn ends_of_a_scan() {
    for magic in [*b"\x89fecR\r\n\x1a", *b"\x89fecM\r\n\x1a", *b"\x89fecX\r\n\x1a"] {
        let mut start = [0; 127];
        start[..8].copy_from_slice(&magic);
        start[32] = 2;
        assert_eq!(said(Scanner::new(None).step(&start, false, 0)), ("more", 128, None));
        // A version stands at byte 32, in all versions to come.
        for len in [33, 127] {
            let step = Scanner::new(None).step(&start[..len], true, 0);
            assert_eq!(said(step), ("rejected", 8, Some(FormatError::Version(2))));
        }
        let whole = [&start[..], &[0]].concat();
        assert_eq!(
            said(Scanner::new(None).step(&whole, false, 0)),
            ("rejected", 8, Some(FormatError::Version(2)))
        );
        for len in [8, 20, 32] {
            let (name, skipped, _) = said(Scanner::new(None).step(&start[..len], true, 0));
            assert!(name == "skip" && (4..=8).contains(&skipped), "{name} {skipped}");
        }
        start[32] = 1;
        assert_eq!(said(Scanner::new(None).step(&start, true, 0)), ("skip", 8, None));
    }
    // Other magics are none.
    assert_eq!(
        said(Scanner::new(None).step(&[&b"\x89fecS\r\n\x1a"[..], &[1; 120]].concat(), false, 0)),
        ("skip", 4, None)
    );
    assert_eq!(said(Scanner::new(None).step(b"none of it", false, 0)), ("skip", 7, None));
    assert_eq!(said(Scanner::new(None).step(b"none of it", true, 0)), ("skip", 10, None));
    assert_eq!(said(Scanner::new(None).step(b"non", true, 0)), ("skip", 3, None));
    assert_eq!(said(Scanner::new(None).step(b"four", false, 0)), ("skip", 1, None));
    for at_end in [false, true] {
        assert_eq!(said(Scanner::new(None).step(b"12345\x89fecR", at_end, 0)), ("skip", 5, None));
    }
}
