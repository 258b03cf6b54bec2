//! Layouts and their numbers, as docs/FORMAT.md gives them: no expected value comes from the code.

mod sidecars;
mod streams;

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::{Class, FormatError};
use fec_core::format::container::{GroupId, Index, IndexHeader, MetaFrame, RecordHeader, record_head_len};
use fec_core::format::manifest::{Manifest, ManifestTarget};
use fec_core::format::meta::Meta;
use fec_core::format::packet::{Body, PacketError, Parameters, Profile, parse, payload_checksum};
use fec_core::format::seal::{Seal, SealedKind};
use fec_core::format::shard_file::{Encoding, ShardHeader, header_checks};
use fec_core::format::sidecar::anchor::Gear;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::group::{GroupCode, SidecarGroup};
use fec_core::format::sidecar::parts::{Exclusion, Omitted, Reason};
use fec_core::format::sidecar::piece::{Generation, Layout, Piece, piece_head_len};
use fec_core::format::sidecar::stat::{Stat, Stats};
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, MOST_ZEROS, Run, has_anchor};
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
    let public = Seal::public(2, SealedKind::Sidecar, &vec![3; most], None).unwrap();
    assert_eq!(public, entry(most, 0));
    let (value, limit) = (65_001, 65_000);
    assert_eq!(
        Seal::public(2, SealedKind::Sidecar, &vec![3; most + 1], None),
        Err(FormatError::Limit { what: "the length of the seal", value, limit })
    );
}
