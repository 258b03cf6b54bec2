//! Sidecars: pieces, catalogs, and what stands behind them (section 17).

use super::*;
use fec_core::area::AreaCode;
use fec_core::format::sidecar::policy::{Rule, Rules, Words};
use fec_core::format::sidecar::stack::Stack;

/// Section 17.4: header of 128 bytes, layout of 96, proof, zeros, body.
#[test]
fn pieces() {
    let layout =
        Layout { before: [0; 32], generation: 1, start: 0, blocks: 0, catalog_len: 100, block: 65_536 };
    let of = Generation::new(group(Form::Sidecar), layout, &[6; 32]);
    assert!(of.is_proved_by(&[6; 32]) && !of.is_proved_by(&[7; 32]));
    assert_eq!((of.head_len(), of.piece_len(), of.pieces()), (320, 320 + 4096, 6));
    assert_eq!((of.ordinal(0, 1), of.ordinal(1, 2)), (2, 5));
    let piece = Piece { set: 1, index: 2, of };
    let mut head = vec![9; 320];
    assert_eq!(piece.proof_mut(&mut head).len(), 96);
    piece.proof_mut(&mut head).fill(8);
    piece.seal(&mut head);
    assert_eq!(piece_head_len(&le(&head, 0)), 320);
    assert_eq!(head[8..12], crc32c::crc32c(&head[12..]).to_le_bytes());
    assert_eq!((head[223], head[224..].to_vec()), (0, vec![8; 96]));
    assert_eq!(le(&head, 96), HashKind::Blake3.digest(&head[128..224]));
    assert_eq!((Piece::parse(&head), piece.proof(&head)), (Ok(piece), &[8; 96][..]));
}

/// Section 17.4: the allowed values in the layout and the header of a piece.
#[test]
fn layouts_of_pieces_hold_at_their_limits() {
    let parsed = |geometry: GroupGeometry, layout: Layout| {
        let of = Generation::new(geometry, layout, &[6; 32]);
        let mut head = vec![0; of.head_len()];
        Piece { set: 0, index: 0, of }.seal(&mut head);
        Piece::parse(&head).map(|piece| assert_eq!(piece.of, of))
    };
    let first = Layout { before: [0; 32], generation: 1, start: 0, blocks: 0, catalog_len: 100, block: 1024 };
    let later = Layout { before: [1; 32], generation: 2, start: 4096, ..first };
    let of = Generation::new(group(Form::Sidecar), later, &[6; 32]);
    let pieces = of.pieces() * of.piece_len();
    const WRONG: Result<(), FormatError> =
        Err(FormatError::Catalog("a number of the layout is not possible"));
    const BLOCK: Result<(), FormatError> =
        Err(FormatError::Catalog("a block has 1024 to 1,048,576 bytes, a power of two"));
    for (layout, expected) in [
        (first, Ok(())),
        (later, Ok(())),
        (Layout { generation: 2, ..first }, WRONG),
        (Layout { generation: 0, ..first }, WRONG),
        (Layout { start: 1, ..first }, WRONG),
        (Layout { generation: 1, ..later }, WRONG),
        (Layout { generation: 0, ..later }, WRONG),
        (Layout { generation: u64::MAX, ..later }, Ok(())),
        // The extent ends below 2^62, with its pieces.
        (Layout { start: (1 << 62) - pieces - 1, ..later }, Ok(())),
        (Layout { start: (1 << 62) - pieces, ..later }, WRONG),
        (Layout { blocks: (1 << 52) - 5 - pieces.div_ceil(1024), ..later }, Ok(())),
        (Layout { blocks: (1 << 52) - 4, ..later }, WRONG),
        (Layout { blocks: u64::MAX, ..later }, WRONG),
        // The metadata has 16,384 bytes.
        (Layout { catalog_len: 16_384, ..first }, Ok(())),
        (Layout { catalog_len: 16_385, ..first }, WRONG),
        (Layout { block: 1 << 20, ..first }, Ok(())),
        (Layout { block: 1 << 21, ..first }, BLOCK),
        (Layout { block: 512, ..first }, BLOCK),
        (Layout { block: 1536, ..first }, BLOCK),
        (Layout { block: 0, ..first }, BLOCK),
    ] {
        assert_eq!(parsed(group(Form::Sidecar), layout), expected, "{layout:?}");
    }
    // n·G below 2^32: three times 1,431,655,765 is 2^32 − 1.
    let sets = |sets: u64| {
        let code = Code::new(2, 1).unwrap();
        GroupGeometry::whole(Form::Sidecar, HashKind::Blake3, code, 8192, 8192 * sets).unwrap()
    };
    assert_eq!(sets(1_431_655_765).shape().sets, 1_431_655_765);
    assert_eq!(parsed(sets(1_431_655_765), first), Ok(()));
    assert_eq!(
        parsed(sets(1_431_655_766), first),
        Err(FormatError::NotCanonical("there are too many pieces"))
    );
}

/// A file of zeros whose blocks all have positions, as a catalog describes it.
fn file(size: u64, runs: &[(u64, u64)], tail: u64) -> EntryKind {
    let mut block = 0;
    let runs = runs.iter().map(|&(start, count)| {
        block += count;
        Run { block: block - count, start, count }
    });
    of_runs(size, runs.collect(), tail)
}

/// A file of zeros with these runs.
fn of_runs(size: u64, runs: Vec<Run>, tail: u64) -> EntryKind {
    EntryKind::File(FileEntry {
        size,
        blake3: if size == 0 { HashKind::Blake3.digest(b"") } else { [0; 32] },
        sha256: None,
        is_executable: false,
        runs,
        tail,
    })
}

fn small(k: usize, m: usize) -> GroupCode {
    GroupCode::Small(Code::new(k, m).unwrap())
}

/// A group of 5 + 2 with two sets, whose four recovery shards are all of an extent with three pieces.
fn catalog(entries: &[(&str, EntryKind)]) -> Catalog {
    let entry = |(path, kind): &(&str, EntryKind)| Entry { path: path.as_bytes().into(), kind: kind.clone() };
    Catalog {
        block: 1024,
        extents: vec![Extent { start: 0, blocks: 4, pieces: 3, piece_len: 512 }],
        groups: vec![SidecarGroup::new(small(5, 2), 2, 1, (0, 0))],
        entries: entries.iter().map(entry).collect(),
    }
}

/// The catalog's bytes, with digests and anchors that are all zeros.
fn bytes_of(catalog: &Catalog) -> Vec<u8> {
    let mut bytes = catalog.head_bytes();
    bytes.resize(bytes.len() + catalog.digests() as usize * 16 + catalog.anchors() as usize * 8, 0);
    bytes
}

fn rule_of(catalog: &Catalog) -> Option<FormatError> {
    let parsed = Catalog::parse(&bytes_of(catalog)).map(|(parsed, _, _)| assert_eq!(parsed, *catalog));
    parsed.err()
}

/// Section 17.2: extents and groups.
#[test]
fn extents_and_groups_hold_at_their_limits() {
    type Change = fn(&mut Catalog);
    const EXTENT: FormatError = FormatError::Catalog("an extent is not possible");
    const GROUP: FormatError = FormatError::Catalog("a group is not possible");
    // The extent has 4·1024 + 3·512 bytes.
    let cases: [(Change, Option<FormatError>); 12] = [
        (|_| (), None),
        (|c| c.extents.push(Extent { start: 5632, ..c.extents[0] }), None),
        (
            |c| c.extents.push(Extent { start: 5631, ..c.extents[0] }),
            Some(FormatError::Catalog("extents overlap, or are not in order")),
        ),
        (|c| c.extents[0].start = (1 << 62) - 5633, None),
        (|c| c.extents[0].start = (1 << 62) - 5632, Some(EXTENT)),
        (|c| c.extents[0].pieces = 2, None),
        (|c| c.extents[0].pieces = 1, Some(EXTENT)),
        (|c| c.extents[0].blocks = 3, Some(GROUP)),
        (|c| c.groups[0].first = 1, Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { code: small(1, 0), ..c.groups[0] }), Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { sets: 0, first: 4, ..c.groups[0] }), Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { extent: 1, ..c.groups[0] }), Some(GROUP)),
    ];
    for (nth, (change, expected)) in cases.into_iter().enumerate() {
        let mut catalog = catalog(&[("a", EntryKind::Folder)]);
        change(&mut catalog);
        assert_eq!(rule_of(&catalog), expected, "case {nth}");
    }
    // An extent of just below 2^62 bytes, and one of exactly as many.
    let extent = Extent { start: 0, blocks: (1 << 52) - 1, pieces: 2, piece_len: 511 };
    assert_eq!(extent.len(1024), Some((1 << 62) - 2));
    assert_eq!(Extent { piece_len: 512, ..extent }.len(1024), None);
}

/// Section 17.2: a group of several sets of the wide code says how long its runs are, unless all such have 128.
#[test]
fn runs_of_positions_hold_at_their_limits() {
    const GROUP: FormatError = FormatError::Catalog("a group is not possible");
    /// Places of the features, and of the runs that the first of two groups says.
    const FEATURES: usize = 4;
    const SAID: usize = 64 + 32 + 14;
    let wide = |run, sets, first| {
        let code = GroupCode::Wide(AreaCode::new(384, 1).unwrap());
        SidecarGroup::new(code, sets, run, (0, first))
    };
    let two = |first, second| Catalog { groups: vec![first, second], ..catalog(&[("a", EntryKind::Folder)]) };
    let with = |catalog: &Catalog, at: usize, value: u16| {
        let mut bytes = bytes_of(catalog);
        bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        Catalog::parse(&bytes).map(|(parsed, _, _)| parsed.groups[0].run)
    };
    let unsaid = two(wide(128, 2, 0), wide(128, 2, 2));
    let mixed = two(wide(128, 2, 0), wide(32, 2, 2));
    let one_set = two(wide(32, 1, 0), wide(32, 2, 2));
    for (catalog, features, said) in [(&unsaid, 2, 0), (&mixed, 6, 128), (&one_set, 6, 0)] {
        assert_eq!(rule_of(catalog), None);
        let bytes = bytes_of(catalog);
        assert_eq!((bytes[FEATURES], u16::from_le_bytes([bytes[SAID], bytes[SAID + 1]])), (features, said));
    }
    for (run, expected) in [(1, Ok(1)), (0, Err(GROUP)), (384, Ok(384)), (31, Err(GROUP)), (768, Err(GROUP))]
    {
        assert_eq!(with(&mixed, SAID, run), expected, "{run}");
    }
    // A group of one set has no runs, nor has one whose catalog does not say so.
    assert_eq!(with(&one_set, SAID, 384), Err(GROUP));
    assert_eq!(with(&unsaid, SAID, 128), Err(GROUP));
    for features in [4, 5, 8] {
        let refused = FormatError::CriticalCatalog { what: "features", value: features.into() };
        assert_eq!(with(&mixed, FEATURES, features), Err(refused));
    }
}

/// Section 17.2: the places of files' bytes, among ten positions of 1024 bytes.
#[test]
fn places_of_files_hold_at_their_limits() {
    const RUNS: FormatError = FormatError::Catalog("the runs of a file are not its blocks");
    const BEHIND: FormatError = FormatError::Catalog("a file lies behind the last position");
    const PACKED: FormatError = FormatError::Catalog("packed bytes lie in a whole block");
    type Case<'a> = (&'a [(&'a str, EntryKind)], Option<FormatError>);
    let cases: [Case<'_>; 14] = [
        (&[("a", file(2048, &[(8, 2)], 0))], None),
        (&[("a", file(2048, &[(9, 2)], 0))], Some(BEHIND)),
        (&[("a", file(1024, &[], 9216))], None),
        (&[("a", file(1, &[], 10_240))], Some(BEHIND)),
        // Below 2^62.
        (&[("a", file(2048, &[((1 << 62) - 3, 2)], 0))], Some(BEHIND)),
        (&[("a", file(2048, &[((1 << 62) - 2, 2)], 0))], Some(RUNS)),
        (&[("a", file(100, &[], (1 << 62) - 101))], Some(BEHIND)),
        (&[("a", file(100, &[], (1 << 62) - 100))], Some(RUNS)),
        // Packed bytes in front of whole blocks, and behind them.
        (&[("a", file(1024, &[], 0)), ("b", file(2048, &[(1, 2)], 0)), ("c", file(1, &[], 3072))], None),
        (&[("a", file(1024, &[], 1024)), ("b", file(2048, &[(1, 2)], 0))], Some(PACKED)),
        (&[("a", file(1, &[], 3071)), ("b", file(2048, &[(1, 2)], 0))], Some(PACKED)),
        (&[("a", file(2049, &[(0, 1), (2, 1)], 1024))], None),
        (&[("a", file(2049, &[(0, 1), (2, 1)], 1023))], Some(PACKED)),
        (&[("a", file(0, &[], 0)), ("b", file(2048, &[(0, 2)], 0))], None),
    ];
    for (entries, expected) in cases {
        assert_eq!(rule_of(&catalog(entries)), expected, "{entries:?}");
    }
    // A file that is not longer than a block has no whole block.
    let blocks = [(0, 0), (1023, 0), (1024, 0), (1025, 1), (2047, 1), (2048, 2)];
    for (size, whole) in blocks {
        assert_eq!(FileEntry::whole_blocks(size, 1024), whole, "{size}");
    }
    // Anchors: at multiples of 65,536.
    let offsets =
        [(0, true), (1024, false), (65_535, false), (65_536, true), (131_072, true), (98_304, false)];
    for (offset, has) in offsets {
        assert_eq!(has_anchor(offset), has, "{offset}");
    }
}

/// Section 17.2: blocks without positions, and files with the same ones.
#[test]
fn zeros_and_shared_places_hold_at_their_limits() {
    const SHARE: FormatError = FormatError::Catalog("two files share a place");
    const MANY: FormatError =
        FormatError::CriticalCatalog { what: "zeros of more bytes than", value: MOST_ZEROS };
    let run = |block, start, count| Run { block, start, count };
    let zeros = |size| of_runs(size, Vec::new(), 0);
    type Case<'a> = (&'a [(&'a str, EntryKind)], Option<FormatError>);
    let cases: [Case<'_>; 9] = [
        (&[("a", of_runs(6 * 1024, vec![run(1, 4, 2), run(4, 0, 1)], 0))], None),
        (&[("a", of_runs(3 * 1024 + 5, vec![run(2, 9, 1)], 77))], None),
        (&[("a", zeros(MOST_ZEROS))], None),
        (&[("a", zeros(MOST_ZEROS + 1024))], Some(MANY)),
        (&[("a", zeros(MOST_ZEROS)), ("b", zeros(2048))], Some(MANY)),
        // The same runs, and the same tails.
        (&[("a", file(5000, &[(0, 4)], 9216)), ("b", file(5000, &[(0, 4)], 9216))], None),
        (&[("a", file(2048, &[(0, 1), (1, 1)], 0)), ("b", file(2048, &[(0, 2)], 0))], Some(SHARE)),
        (&[("a", file(2048, &[(0, 1), (1, 1)], 0)), ("b", file(2048, &[(1, 1), (0, 1)], 0))], Some(SHARE)),
        (&[("a", file(100, &[], 0)), ("b", file(99, &[], 0))], Some(SHARE)),
    ];
    for (entries, expected) in cases {
        assert_eq!(rule_of(&catalog(entries)), expected, "{entries:?}");
    }
    // Files share nothing unless the catalog says so, which older readers refuse.
    let mut bytes = bytes_of(&catalog(&[("a", file(9, &[], 5)), ("b", file(9, &[], 5))]));
    assert_eq!(bytes[4], 1);
    bytes[4] = 0;
    assert_eq!(Catalog::parse(&bytes).err(), Some(SHARE));
}

/// Section 17.2: an entry of a folder has at least four bytes; lengths are compared with the remaining bytes.
#[test]
fn counts_of_entries_hold_at_their_limits() {
    let folders = catalog(&[("a", EntryKind::Folder), ("b", EntryKind::Folder)]);
    let mut bytes = bytes_of(&folders);
    // Behind a head, an extent and a group: shared, count, the path, the kind.
    assert_eq!((&bytes[24..32], &bytes[128..136]), (&8u64.to_le_bytes()[..], &b"\0\x01a\x01\0\x01b\x01"[..]));
    assert!(Catalog::parse(&bytes).is_ok());
    bytes[20] = 3;
    let rule = |bytes: &[u8]| Catalog::parse(bytes).err();
    assert_eq!(rule(&bytes), Some(FormatError::Catalog("it ends too early")));
    // A run of five blocks: its step and its length stand last, their count before.
    let one = catalog(&[("a", file(5 * 1024, &[(1, 5)], 0))]);
    let mut bytes = bytes_of(&one);
    let end = one.head_bytes().len();
    assert_eq!(bytes[end - 3..end], [1, 2, 5]);
    bytes[end - 3] = 2;
    assert_eq!(rule(&bytes), Some(FormatError::Catalog("a length is beyond its limit")));
    // 4096 bytes of a path, and 4097, of which the path before has all but two.
    let path =
        format!("{}{}/{}", format!("{}/", "x".repeat(255)).repeat(15), "y".repeat(127), "y".repeat(128));
    assert_eq!(path.len(), 4096);
    let next = format!("{}z", &path[..4095]);
    let after = format!("{}zz", &path[..4095]);
    assert_eq!(rule_of(&catalog(&[(&path, EntryKind::Folder), (&next, EntryKind::Folder)])), None);
    assert_eq!(
        rule_of(&catalog(&[(&path, EntryKind::Folder), (&after, EntryKind::Folder)])),
        Some(FormatError::Catalog("a length is beyond its limit"))
    );
}

/// Parses what stands behind a catalog of this many folders.
fn stats_of(bytes: &[u8], folders: usize) -> Result<Stats, FormatError> {
    Stats::parse(bytes, &vec![Entry { path: b"f"[..].into(), kind: EntryKind::Folder }; folders], 1024)
}

/// Section 17.3: 16 bytes for each entry, and a path with its length in front.
#[test]
fn times_and_permissions() {
    let entry = Stat { seconds: -2, nanos: 999_999_999, mode: 0o7777 };
    let stats = Stats { entries: vec![entry, Stat::default()], base: b"../a".to_vec(), ..Stats::default() };
    let mut bytes =
        vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x9a, 0x3b, 0xff, 0x0f, 0, 0];
    bytes.extend([0; 16]);
    bytes.extend(b"\x04\0../a");
    assert_eq!(stats.to_bytes(), bytes);
    assert_eq!(stats_of(&bytes, 2), Ok(stats));
    let is_wrong = |bytes: &[u8], entries| stats_of(bytes, entries).is_err();
    // 10^9 nanoseconds, a mode of 13 bits, bytes that must be zero, a path that is longer or has a NUL.
    for (at, byte) in [(8, 0), (13, 0x10), (14, 1), (15, 1), (32, 3), (32, 5), (35, 0)] {
        let mut wrong = bytes.clone();
        wrong[at] = byte;
        if at == 8 {
            wrong[8..12].copy_from_slice(&1_000_000_000u32.to_le_bytes());
        }
        assert!(is_wrong(&wrong, 2), "byte {at}");
    }
    assert!(is_wrong(&bytes, 3) && is_wrong(&bytes[..32], 2));
    let mut wrong = bytes;
    wrong[12..14].copy_from_slice(&[0, 0x10]);
    assert!(is_wrong(&wrong, 2), "2^12");
}

/// Section 17.3, part 4: its bytes, and the words that a rule may have.
#[test]
fn policies() {
    let rule = |words, pattern: &str| Rule { words, pattern: pattern.to_owned() };
    let rules = vec![rule(Words::ONCE | Words::STAYS, "/data/"), rule(Words::OUT, "*.tmp")];
    let policy = Rules { anchor: b"r".to_vec(), is_announced: true, rules };
    let stats = Stats { policy: policy.clone(), ..Stats::default() };
    let part = b"\x04\x12\x01\x01r\x05\x06/data/\x10\x05*.tmp";
    let with = |part: &[u8]| [&[0; 2][..], part].concat();
    assert_eq!(stats.to_bytes(), with(part));
    assert_eq!(stats_of(&with(part), 0), Ok(stats));
    assert!(policy.is_valid());
    let shuffled = Rules { rules: policy.rules.iter().rev().cloned().collect(), ..policy };
    assert!(!shuffled.is_valid(), "rules are in order");
    let of = |words: u8| stats_of(&with(&[4, 5, 0, 0, words, 1, b'x']), 0);
    let allowed: Vec<u8> = (0..=255).filter(|words| of(*words).is_ok()).collect();
    assert_eq!(allowed, [1, 2, 4, 5, 6, 8, 9, 10, 16, 32]);
    let is_refused = |words: u8| matches!(of(words), Err(FormatError::CriticalCatalog { .. }));
    assert!((64..=255).all(is_refused) && !(0..64).any(is_refused));
    let strict = Words::ONCE | Words::STAYS;
    assert_eq!((strict | Words::CHANGES | Words::GOES).settled(), Words::CHANGES | Words::GOES);
    assert_eq!((strict | Words::OUT).settled(), strict | Words::OUT);
}

/// Section 17.3: each part has its bytes, and comes back.
#[test]
fn parts_behind_the_base() {
    let front = [&[0; 32][..], &[0; 2]].concat();
    let with = |behind: &[u8]| [&front[..], behind].concat();
    let stats = Stats { entries: vec![Stat::default(); 2], ..Stats::default() };
    let marks = Stats { marks: vec![0x0102, u64::MAX], ..stats.clone() };
    let marks_part = [&[1, 16, 2, 1, 0, 0, 0, 0, 0, 0][..], &[0xff; 8]].concat();
    let exclusion =
        Exclusion { caches: true, anchor: b"d".to_vec(), patterns: vec!["*.tmp".into(), "/c/".into()] };
    let omitted = |path: &[u8], reason| Omitted { path: path.into(), reason };
    let list = vec![omitted(b"d/a", Reason::Denied), omitted(&[b'x'; 300], Reason::TooLong)];
    let exclusion_part = b"\x02\x0d\x01\x01d\x05*.tmp\x03/c/";
    let omitted_part = [b"\x03\xb4\x02\x01\x03d/a\x04\xac\x02", &[b'x'; 300][..]].concat();
    let all = Stats { exclusion: exclusion.clone(), omitted: list.clone(), ..marks.clone() };
    for (stats, behind) in [
        (marks, marks_part.clone()),
        (Stats { exclusion, ..stats.clone() }, exclusion_part.to_vec()),
        (Stats { omitted: list, ..stats }, omitted_part.clone()),
        (all, [&marks_part[..], exclusion_part, &omitted_part].concat()),
    ] {
        assert_eq!(stats.to_bytes(), with(&behind));
        assert_eq!(stats_of(&with(&behind), 2), Ok(stats));
    }
    for behind in [
        &b"\x00"[..],
        b"\x01\x00",
        b"\x01\x80\x00",
        b"\x02",
        b"\x02\x02\x00\x00",
        b"\x02\x03\x01\x00\x00",
        b"\x02\x04\x00\x00\x01\xff",
        b"\x02\x04\x00\x00\x01\x00",
        b"\x02\x06\x00\x00\x01b\x01a",
        b"\x02\x05\x00\x01/\x01a",
        b"\x03\x04\x01\x02..",
        b"\x03\x06\x01\x01b\x01\x01a",
        b"\x03\x02\x01\x00",
        b"\x03\x03\x01\x01a\x02\x04\x00\x00\x01a",
        b"\x02\x04\x00\x00\x01a\x02\x04\x00\x00\x01a",
    ] {
        let found = stats_of(&with(behind), 2);
        assert!(found.as_ref().is_err_and(|e| e.class() != Class::Damaged), "{behind:?}: {found:?}");
    }
    for refused in [&b"\x06\x00"[..], b"\x06", b"\x00", b"\x02\x04\x02\x00\x01a", b"\x03\x03\x05\x01a"] {
        assert_eq!(stats_of(&with(refused), 2).map_err(|e| e.class()), Err(Class::Refused), "{refused:?}");
    }
}

/// Section 17.3, part 5: a value for each bit of the number of whole blocks but one.
#[test]
fn stacks_of_files() {
    let file = |size| {
        let tail =
            FileEntry { size, blake3: [0; 32], sha256: None, is_executable: false, runs: vec![], tail: 0 };
        Entry { path: b"f"[..].into(), kind: EntryKind::File(tail) }
    };
    // 1, 2, 8 and 8 whole blocks.
    let folder = Entry { path: b"f"[..].into(), kind: EntryKind::Folder };
    let entries = [file(2047), file(2048), folder, file(8192), file(9000)];
    let stack = |entry, values: &[u8]| Stack { entry, values: values.iter().map(|of| [*of; 32]).collect() };
    let stacks = vec![stack(1, &[5]), stack(4, &[6, 7, 8])];
    let front = [0; 16 * 5 + 2];
    let with = |behind: &[u8]| Stats::parse(&[&front[..], behind].concat(), &entries, 1024);
    let part = [b"\x05\x82\x01\x01", &[5; 32][..], b"\x02", &[6; 32], &[7; 32], &[8; 32]].concat();
    let stats = with(&part).unwrap();
    assert_eq!(stats.stacks, stacks);
    assert_eq!(stats.to_bytes(), [&front[..], &part].concat());
    // A file of one whole block, a folder, no entry, a number that is too large, too few values, and none.
    for entry in [&[0][..], &[2], &[5], &[0xff, 0xff, 0xff, 0xff, 0x7f], &[0x80, 0]] {
        let part = [&[5, 32 + entry.len() as u8], entry, &[5; 32]].concat();
        assert!(with(&part).is_err_and(|e| e.class() == Class::Invalid), "{entry:?}");
    }
    for values in [0, 31, 33] {
        let part = [&[5, 1 + values, 1][..], &[5; 33][..values.into()]].concat();
        assert!(with(&part).is_err_and(|e| e.class() == Class::Invalid), "{values}");
    }
}

/// SplitMix64's first output, as its author publishes it, is for seed 0.
#[test]
fn anchors_are_sums_of_shifted_random_numbers() {
    let gear = Gear::default();
    assert_eq!(gear.step(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(gear.step(3, 0), 0xe220_a839_7b1d_cdaf + 6);
}
