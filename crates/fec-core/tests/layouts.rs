//! Layouts and their numbers, as docs/FORMAT.md gives them: no expected value comes from the code.

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::FormatError;
use fec_core::format::container::{GroupId, Index, IndexHeader, MetaFrame, RecordHeader, record_head_len};
use fec_core::format::manifest::{Manifest, ManifestTarget};
use fec_core::format::meta::Meta;
use fec_core::format::packet::{Body, PacketError, Parameters, Profile, parse, payload_checksum};
use fec_core::format::seal::{Seal, SealedKind};
use fec_core::format::shard_file::{Encoding, ShardHeader, header_checks};
use fec_core::format::sidecar::anchor::Gear;
use fec_core::format::sidecar::area::Area;
use fec_core::format::sidecar::catalog::{Catalog, SidecarGroup};
use fec_core::format::sidecar::piece::{Generation, Layout, Piece, piece_head_len};
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, Run, has_anchor};
use fec_core::params::{ContainerLayout, Form, GroupGeometry};

/// 2+1, two sets, shards of 4096 bytes. A proof has 32·(1 + 1) bytes of set path and 32 of group path.
fn group(form: Form) -> GroupGeometry {
    GroupGeometry::whole(form, HashKind::Blake3, Code::new(2, 1).unwrap(), 8192, 16_384).unwrap()
}

fn le<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().unwrap()
}

/// Section 8: H, meta, proofs, zeros, body, proofs, meta, H.
#[test]
fn a_shard_file() {
    let meta = Meta::with_name(b"x").unwrap().to_bytes();
    let header = ShardHeader { index: 1, encoding: Encoding::new(group(Form::Shards), [7; 32], &meta) };
    let layout = header.encoding.layout();
    assert_eq!(layout.metas(), [192, 448 + 8192 + 192]);
    assert_eq!(layout.padded_meta_len(), 64);
    assert_eq!(layout.proofs(1), [256 + 96, 448 + 8192 + 96]);
    assert_eq!((layout.shard(0), layout.shard(1)), (448, 448 + 4096));
    assert_eq!(layout.file_len, 448 + 8192 + 192 + 64 + 192);
    let bytes = header.to_bytes();
    assert!(header_checks(&bytes));
    for at in [0, 8, 12, 100, 191] {
        let mut bytes = bytes;
        bytes[at] ^= 1;
        assert!(!header_checks(&bytes), "byte {at}");
    }
}

/// Section 9: header of 128 bytes, proof with zeros up to 128, body. Records go shard by shard, and within a shard set
/// by set.
#[test]
fn records() {
    let id = GroupId { geometry: group(Form::Container), root: [1; 32], before: [2; 32] };
    assert_eq!((id.record_head_len(), id.record_len()), (256, 256 + 4096));
    assert_eq!((id.records(), id.group_len()), (6, 6 * 4352));
    assert_eq!((id.ordinal(0, 1), id.ordinal(1, 2)), (2, 5));
    let record = RecordHeader { set: 1, index: 2, group: id };
    let mut head = vec![9; 256];
    record.seal(&mut head);
    assert_eq!(record_head_len(&le(&head, 0)), 256);
    assert_eq!(head[16..24], [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!((le(&head, 64), le(&head, 96)), ([1u8; 32], [2u8; 32]));
    assert_eq!(head[8..12], crc32c::crc32c(&head[12..]).to_le_bytes());
    assert_eq!(RecordHeader::parse(&head), Ok(record));
    assert_eq!(record.proof(&head), Some(&[9; 96][..]));
    assert!(RecordHeader::is_sealed(&head));
    assert!(!RecordHeader::is_sealed(&head[..127]), "it is cut");
    head[255] = 1;
    assert_eq!(record.proof(&head), None, "the padding is not zero");
    assert!(!RecordHeader::is_sealed(&head));
}

/// Section 9: header of 128 bytes, meta, zeros to a multiple of 64.
#[test]
fn meta_frames() {
    assert_eq!([1, 64, 65].map(MetaFrame::len_for), [192, 192, 256]);
    let meta = Meta::with_name(b"x").unwrap().to_bytes();
    let frame = MetaFrame::to_bytes(group(Form::Container).shape(), &meta);
    assert_eq!((frame.len(), MetaFrame::frame_len(&le(&frame, 0))), (192, 192));
    assert_eq!(frame[16..20], (meta.len() as u32).to_le_bytes());
    assert_eq!(frame[32..36], [1, 1, 2, 0]);
    assert_eq!(le(&frame, 64), HashKind::Blake3.digest(&meta));
    assert_eq!(frame[128..128 + meta.len()], meta);
    assert_eq!(MetaFrame::parse(&frame).unwrap().meta.name.as_deref(), Some(&b"x"[..]));
}

/// Section 9: header, body, header, body, header. The body is a tree of each group, the meta, and zeros to a multiple
/// of 64.
#[test]
fn an_index() {
    let layout = ContainerLayout::new(HashKind::Blake3, Code::new(2, 1).unwrap(), 8192, Some(1)).unwrap();
    let geometry = layout.file(&layout.group(2, 100, true)).unwrap();
    let meta = Meta::with_name(b"x").unwrap().to_bytes();
    let index = Index::new(geometry, vec![[3; 32], [4; 32], [5; 32]], &meta);
    let bytes = index.to_bytes(&meta);
    assert_eq!(bytes.len(), 3 * 128 + 2 * 128);
    let (header, body) = (le::<128>(&bytes, 0), &bytes[128..256]);
    assert_eq!(header[16..28], [128, 0, 0, 0, 0, 0, 0, 0, meta.len() as u8, 0, 0, 0]);
    assert_eq!(header[8..12], crc32c::crc32c(&header[12..]).to_le_bytes());
    assert_eq!((le(&header, 64), le(&header, 96)), (index.header.root, HashKind::Blake3.digest(&meta)));
    assert_eq!(
        (&body[..32], &body[64..96], &body[96..][..meta.len()]),
        (&[3; 32][..], &[5; 32][..], &meta[..])
    );
    let read = IndexHeader::parse(&header).unwrap();
    assert_eq!(read, index.header);
    assert_eq!(read.open(body).unwrap(), index);
    for at in [0, 95, 96, 127] {
        let mut body = body.to_vec();
        body[at] ^= 1;
        assert_eq!(read.open(&body), Err(FormatError::Damaged("the index body")), "byte {at}");
    }
    let groups: Vec<_> = index.groups().collect();
    assert_eq!(groups.iter().map(|(id, _)| id.geometry.number()).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(groups[0].0.before, HashKind::Blake3.digest(&meta));
    assert_eq!((groups[1].0.before, groups[2].0.root), (groups[0].0.root, index.header.root));
}

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
        // The area ends below 2^62, with its pieces.
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

/// A file of zeros, as a catalog describes it.
fn file(size: u64, runs: &[(u64, u64)], tail: u64) -> EntryKind {
    let runs = runs.iter().map(|&(start, count)| Run { start, count }).collect();
    EntryKind::File(FileEntry {
        size,
        blake3: if size == 0 { HashKind::Blake3.digest(b"") } else { [0; 32] },
        sha256: None,
        is_executable: false,
        runs,
        tail,
    })
}

/// A group of 5 + 2 with two sets, whose four recovery shards are all of an area with three pieces.
fn catalog(entries: &[(&str, EntryKind)]) -> Catalog {
    let entry = |(path, kind): &(&str, EntryKind)| Entry { path: path.as_bytes().into(), kind: kind.clone() };
    Catalog {
        block: 1024,
        areas: vec![Area { start: 0, blocks: 4, pieces: 3, piece_len: 512 }],
        groups: vec![SidecarGroup { code: Code::new(5, 2).unwrap(), sets: 2, area: 0, first: 0 }],
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

/// Section 17.2: areas and groups.
#[test]
fn areas_and_groups_hold_at_their_limits() {
    type Change = fn(&mut Catalog);
    const AREA: FormatError = FormatError::Catalog("an area is not possible");
    const GROUP: FormatError = FormatError::Catalog("a group is not possible");
    // The area has 4·1024 + 3·512 bytes.
    let cases: [(Change, Option<FormatError>); 12] = [
        (|_| (), None),
        (|c| c.areas.push(Area { start: 5632, ..c.areas[0] }), None),
        (
            |c| c.areas.push(Area { start: 5631, ..c.areas[0] }),
            Some(FormatError::Catalog("areas overlap, or are not in order")),
        ),
        (|c| c.areas[0].start = (1 << 62) - 5633, None),
        (|c| c.areas[0].start = (1 << 62) - 5632, Some(AREA)),
        (|c| c.areas[0].pieces = 2, None),
        (|c| c.areas[0].pieces = 1, Some(AREA)),
        (|c| c.areas[0].blocks = 3, Some(GROUP)),
        (|c| c.groups[0].first = 1, Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { code: Code::new(1, 0).unwrap(), ..c.groups[0] }), Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { sets: 0, first: 4, ..c.groups[0] }), Some(GROUP)),
        (|c| c.groups.push(SidecarGroup { area: 1, ..c.groups[0] }), Some(GROUP)),
    ];
    for (nth, (change, expected)) in cases.into_iter().enumerate() {
        let mut catalog = catalog(&[("a", EntryKind::Folder)]);
        change(&mut catalog);
        assert_eq!(rule_of(&catalog), expected, "case {nth}");
    }
    // An area of just below 2^62 bytes, and one of exactly as many.
    let area = Area { start: 0, blocks: (1 << 52) - 1, pieces: 2, piece_len: 511 };
    assert_eq!(area.len(1024), Some((1 << 62) - 2));
    assert_eq!(Area { piece_len: 512, ..area }.len(1024), None);
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

/// Section 17.2: an entry of a folder has at least four bytes; lengths are compared with the remaining bytes.
#[test]
fn counts_of_entries_hold_at_their_limits() {
    let folders = catalog(&[("a", EntryKind::Folder), ("b", EntryKind::Folder)]);
    let mut bytes = bytes_of(&folders);
    // Behind a head, an area and a group: shared, count, the path, the kind.
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

/// Section 17.3: 16 bytes for each entry, and a path with its length in front.
#[test]
fn times_and_permissions() {
    let entry = Stat { seconds: -2, nanos: 999_999_999, mode: 0o7777 };
    let stats = Stats { entries: vec![entry, Stat::default()], base: b"../a".to_vec() };
    let mut bytes =
        vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc9, 0x9a, 0x3b, 0xff, 0x0f, 0, 0];
    bytes.extend([0; 16]);
    bytes.extend(b"\x04\0../a");
    assert_eq!((stats.to_bytes(), Stats::len_for(2, b"../a")), (bytes.clone(), bytes.len()));
    assert_eq!(Stats::parse(&bytes, 2), Ok(stats));
    let is_wrong =
        |bytes: &[u8], entries| matches!(Stats::parse(bytes, entries), Err(FormatError::Catalog(_)));
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

/// SplitMix64's first output, as its author publishes it, is for seed 0.
#[test]
fn anchors_are_sums_of_shifted_random_numbers() {
    let gear = Gear::default();
    assert_eq!(gear.step(0, 0), 0xe220_a839_7b1d_cdaf);
    assert_eq!(gear.step(3, 0), 0xe220_a839_7b1d_cdaf + 6);
}

/// Section 18.1: front of 64 bytes, headers of segments, texts of targets with four bytes of lengths, 16 MiB at most.
#[test]
fn room_of_manifests() {
    let target = |url: &str, domain: &str| ManifestTarget { url: url.into(), domain: domain.into() };
    assert!(target("file:///a", "rack 1").is_plain());
    for (url, domain) in [("", "a"), ("a", ""), ("a\n", "a"), ("a", "\0"), (&"a".repeat(2049), "a")] {
        assert!(!target(url, domain).is_plain());
    }
    assert!(target(&"a".repeat(2048), "a").is_plain());
    let meta = Meta::with_name(b"x").unwrap();
    let rest = (16 << 20) - 64 - meta.to_bytes().len() as u64;
    assert_eq!(Manifest::most_segments(&meta, &[]), rest / 192);
    // Targets with as many bytes as 100 headers.
    let targets = vec![target(&"a".repeat(180), "12345678"); 100];
    assert_eq!(Manifest::most_segments(&meta, &targets), rest / 192 - 100);
}

/// Section 18.1: at most 2^24 bytes, 65,536 bytes of meta, 1024 targets, and payloads below 2^63 bytes.
#[test]
fn manifests_hold_at_their_limits() {
    let encoding = |k, set_size, len| {
        let code = Code::new(k, 1).unwrap();
        let geometry = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, set_size, len).unwrap();
        Encoding::new(geometry, [7; 32], b"")
    };
    let of = |k, segment_len, segments| Manifest {
        hash: HashKind::Blake3,
        code: Code::new(k, 1).unwrap(),
        segment_len,
        segments,
        meta: Meta::default(),
        targets: Vec::new(),
    };
    let opened = |manifest: &Manifest| {
        let opened = Manifest::open(&manifest.root(), &manifest.to_bytes());
        opened.map(|opened| assert_eq!(opened, *manifest))
    };
    // 64 + 87,381 · 192 is 2^24.
    let mut long = of(1, 1, vec![encoding(1, 4096, 1); 87_381]);
    let bytes = long.to_bytes();
    assert_eq!((bytes.len(), opened(&long)), (1 << 24, Ok(())));
    long.segments.push(long.segments[0]);
    assert!(opened(&long).is_err());
    const LENGTH: FormatError = FormatError::Damaged("the length of the manifest");
    assert_eq!(Manifest::parse(&long.to_bytes()), Err(LENGTH));
    // No segment, and one more than there are headers.
    let small = of(1, 1, vec![encoding(1, 4096, 1)]);
    let mut front = small.to_bytes();
    for (len, segments) in [(64, 0), (64, 1), (64 + 192, 2)] {
        front.truncate(64);
        front.resize(len, 0);
        front[16..20].copy_from_slice(&(len as u32).to_le_bytes());
        front[20] = segments;
        let sum = crc32c::crc32c(&front[12..]).to_le_bytes();
        front[8..12].copy_from_slice(&sum);
        assert_eq!(Manifest::parse(&front), Err(FormatError::Manifest("the number of segments")));
    }
    assert_eq!(Manifest::parse(&front[..63]), Err(LENGTH));
    assert_eq!(opened(&small), Ok(()));
    let mut meta = small.clone();
    meta.meta.others = vec![(11, vec![1; 65_536 - 3])];
    assert_eq!((meta.meta.to_bytes().len(), opened(&meta)), (65_536, Ok(())));
    meta.meta.others[0].1.push(1);
    // A length of 65,534 bytes still fits its field.
    assert_eq!(opened(&meta), Err(FormatError::Manifest("the length of the meta")));
    let mut targets = small;
    targets.targets = vec![ManifestTarget { url: "a".into(), domain: "b".into() }; 1024];
    assert_eq!(opened(&targets), Ok(()));
    targets.targets.push(targets.targets[0].clone());
    assert_eq!(opened(&targets), Err(FormatError::Manifest("the number of targets")));
    // 64 shards of 2^26 bytes: 2^30 sets of them are 2^62 bytes.
    let (half, less) = (encoding(64, 1 << 32, 1 << 62), encoding(64, 1 << 32, (1 << 62) - 1));
    assert_eq!(opened(&of(64, 1 << 62, vec![half, less])), Ok(()));
    let payload = FormatError::Manifest("the length of the payload");
    assert_eq!(opened(&of(64, 1 << 62, vec![half, half])), Err(payload));
}

/// Section 20.2: at most 65,000 bytes; private parts of 256·n + 16. Written entries leave room for 512 + 16.
#[test]
fn seals_hold_at_their_limits() {
    let entry = |age: usize, private: usize| {
        let mut bytes = vec![1, 2, 1, 0];
        bytes.extend((age as u32).to_le_bytes());
        bytes.resize(8 + age + private, 3);
        bytes
    };
    let rule = |bytes: &[u8]| Seal::parse(bytes).map(|_| ()).err();
    assert_eq!(rule(&entry(65_000 - 8 - 272, 272)), None);
    assert_eq!(
        rule(&entry(65_001 - 8 - 272, 272)),
        Some(FormatError::Meta("the seal is longer than 65,000 bytes"))
    );
    for (private, is_right) in [(16, false), (256, false), (272, true), (528, true), (529, false), (0, false)]
    {
        assert_eq!(rule(&entry(100, private)).is_none(), is_right, "{private}");
    }
    let most = 65_000 - 8 - 528;
    let public = Seal::public(2, SealedKind::Sidecar, &vec![3; most]).unwrap();
    assert_eq!(public, entry(most, 0));
    let (value, limit) = (65_001, 65_000);
    assert_eq!(
        Seal::public(2, SealedKind::Sidecar, &vec![3; most + 1]),
        Err(FormatError::Limit { what: "the length of the seal", value, limit })
    );
}

fn parameters(profile: Profile, (window, payload, block): (u32, u16, u16)) -> Parameters {
    Parameters { profile, stream_id: 5, window, payload, block }
}

/// Section 13.1, rule 2.
#[test]
fn numbers_of_streams_hold_at_their_limits() {
    use Profile::*;
    for (profile, numbers, is_right) in [
        (Bounded, (96, 16, 48), true),
        (Bounded, (96, 15, 48), false),
        (Bounded, (0, 16, 1), false),
        (Bounded, (96, 16, 0), false),
        (Bounded, (96, 16, 49), false),
        (Bounded, (97, 16, 49), true),
        (Classic, (65_536, 16, 48), true),
        (Classic, (65_537, 16, 48), false),
        // D ≥ 48 or ⌈W/D⌉ ≤ 8.
        (Classic, (8 * 47, 16, 47), true),
        (Classic, (8 * 47 + 1, 16, 47), false),
        (Classic, (8 * 48 + 1, 16, 48), true),
        (ClassicBlocks, (9, 16, 9), true),
        (ClassicBlocks, (9, 16, 10), false),
        (Blocks, (9, 16, 255), true),
        (Blocks, (9, 16, 256), false),
    ] {
        assert_eq!(parameters(profile, numbers).check().is_ok(), is_right, "{profile:?} {numbers:?}");
    }
    assert_eq!(parameters(Bounded, (96, 1200, 48)).symbol_len(), 1206);
    let names = [Bounded, Classic, ClassicBlocks, Blocks].map(Profile::name);
    assert_eq!(names, ["bounded", "classic", "classic-blocks", "blocks"]);
}

/// A packet by section 13.1, with a correct checksum.
fn packet(kind: u8, profile: u8, number: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x89, 0x66, 0x65, 0x70, 1, kind, 0, profile];
    bytes.extend(5u64.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    // W 96, P 16, D 48.
    bytes.extend([96, 0, 0, 0, 16, 0, 48, 0, 0, 0, 0, 0]);
    let header = bytes.len();
    bytes.extend(body);
    let summed = if kind == 0 { header } else { bytes.len() };
    let sum = crc32c::crc32c(&bytes[..summed]);
    bytes[32..36].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Section 13.2.
#[test]
fn bodies_of_packets_hold_at_their_limits() {
    let is_invalid = |bytes: &[u8]| matches!(parse(bytes), Err(PacketError::Invalid(_)));
    // Source packets.
    let source = |seq: u64, len: u16, payload: &[u8]| {
        let summed = [&5u64.to_le_bytes()[..], &seq.to_le_bytes(), &len.to_le_bytes(), payload].concat();
        let sum = crc32c::crc32c(&summed);
        assert_eq!(payload_checksum(5, seq, payload) == sum, usize::from(len) == payload.len());
        packet(0, 1, seq, &[&sum.to_le_bytes()[..], &len.to_le_bytes(), payload].concat())
    };
    let last = (1 << 63) - 1;
    let bytes = source(last, 16, b"sixteen bytes of");
    let (read, body) = parse(&bytes).unwrap();
    assert_eq!(read, parameters(Profile::Bounded, (96, 16, 48)));
    assert!(matches!(body, Body::Source { seq, payload: b"sixteen bytes of", .. } if seq == last));
    assert!(is_invalid(&source(1 << 63, 16, b"sixteen bytes of")));
    assert!(is_invalid(&source(0, 17, b"seventeen bytes, ")));
    assert_eq!(parse(&source(0, 3, b"four")), Err(PacketError::Damaged));
    let mut other = source(0, 4, b"four");
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(parse(&other), Err(PacketError::Damaged));
    // Marks.
    for (flags, end) in [(0, false), (1, true)] {
        let bytes = packet(2, 1, 7, &[flags, 0, 0, 0]);
        assert_eq!(parse(&bytes).unwrap().1, Body::Mark { sent: 7, end });
    }
    assert!(is_invalid(&packet(2, 1, 7, &[2, 0, 0, 0])));
    assert_eq!(parse(&packet(2, 1, 7, &[0; 5])), Err(PacketError::Damaged));
    assert_eq!(parse(&packet(3, 1, 7, &[0; 4])), Err(PacketError::Type(3)));
    // Rows.
    let row = |profile, first: u64, count: u32, part: u32, symbol: usize| {
        let numbers = [&first.to_le_bytes()[..], &count.to_le_bytes(), &part.to_le_bytes()].concat();
        packet(1, profile, 3, &[numbers, vec![9; symbol]].concat())
    };
    let bytes = row(1, 48, 96, 0, 22);
    let expected = Body::Repair { row: 3, first: 48, count: 96, part: 0, symbol: &[9; 22] };
    assert_eq!(parse(&bytes).unwrap().1, expected);
    assert!(parse(&row(1, 0, 1, 0, 6)).is_ok());
    for symbol in [5, 23] {
        assert_eq!(parse(&row(1, 48, 96, 0, symbol)), Err(PacketError::Damaged));
    }
    assert!(is_invalid(&row(1, 48, 0, 0, 22)) && is_invalid(&row(1, 48, 97, 0, 22)));
    // The last multiple of 48 from which there are 8 packets: 2^63 mod 48 is 32, and first + count < 2^63.
    let first = (1 << 63) - 32;
    assert!(parse(&row(1, first, 31, 0, 22)).is_ok());
    assert!(is_invalid(&row(1, first, 32, 0, 22)));
    for profile in [1, 2, 3] {
        assert!(is_invalid(&row(profile, 47, 1, 0, 22)) && is_invalid(&row(profile, 48, 1, 1, 22)));
    }
    assert!(parse(&row(3, 48, 48, 0, 22)).is_ok());
    assert!(is_invalid(&row(3, 48, 49, 0, 22)));
    // `blocks`: first mod W = 0 or count ≤ D; ⌊part/s⌋ + ⌈count/s⌉ < 256 with s = ⌈count/D⌉.
    assert!(parse(&row(4, 1, 48, 0, 22)).is_ok() && parse(&row(4, 96, 49, 0, 22)).is_ok());
    assert!(is_invalid(&row(4, 48, 49, 0, 22)));
    assert!(parse(&row(4, 0, 48, 207, 22)).is_ok());
    assert!(is_invalid(&row(4, 0, 48, 208, 22)));
    assert!(parse(&row(4, 0, 96, 2 * 207 + 1, 22)).is_ok());
    assert!(is_invalid(&row(4, 0, 96, 2 * 208, 22)));
}
