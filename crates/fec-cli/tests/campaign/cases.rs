//! The encodings that are damaged, and where their shards stand.

use super::*;

/// k, m, set size, sets of a container's group, payload length, and hash.
pub(super) type Shape = (usize, usize, &'static str, &'static str, usize, &'static str);

pub(super) const SHAPES: [Shape; 7] = [
    (2, 1, "8K", "3", 40_000, "blake3"),
    (2, 1, "8K", "10", 90_001, "sha256"),
    (5, 3, "20K", "4", 100_000, "sha256"),
    (10, 4, "41K", "3", 130_000, "blake3"),
    (33, 67, "132K", "2", 280_000, "sha256"),
    (33, 67, "136K", "8", 150_000, "blake3"),
    (3, 3, "64K", "1", 10_000, "blake3"),
];

/// A payload in both forms.
pub(super) struct Run {
    pub(super) payload: Vec<u8>,
    pub(super) shards_root: String,
    pub(super) shards: Vec<Vec<u8>>,
    pub(super) boxed_root: String,
    pub(super) boxed: Vec<u8>,
}

pub(super) struct Case {
    pub(super) k: usize,
    pub(super) own: Run,
    pub(super) other: Run,
    pub(super) shards: ShardPlaces,
    pub(super) records: Vec<Record>,
}

/// Offsets in a shard file, computed from its own header.
pub(super) struct ShardPlaces {
    pub(super) sets: usize,
    pub(super) shard_len: usize,
    pub(super) proof_len: usize,
    pub(super) proofs: usize,
    pub(super) body: usize,
    pub(super) tail_proofs: usize,
    pub(super) len: usize,
}

/// A record of a container.
pub(super) struct Record {
    pub(super) group: usize,
    pub(super) set: usize,
    pub(super) range: Range<usize>,
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Bytes of a shard file's header.
pub(super) const HEADER: usize = 192;

/// Bytes of a proof, computed from k, m and G in a geometry block.
pub(super) fn proof_len(geometry: &[u8]) -> usize {
    let longer = usize::from(geometry[4].max(geometry[6]));
    let levels = |count: usize| count.next_power_of_two().trailing_zeros() as usize;
    32 * (levels(longer) + 1 + levels(u32_at(geometry, 12)))
}

pub(super) fn shard_places(file: &[u8]) -> ShardPlaces {
    let geometry = &file[32..64];
    let (shard_len, sets, proof_len) = (u32_at(geometry, 8), u32_at(geometry, 12), proof_len(geometry));
    let meta = u32_at(file, 20).next_multiple_of(64);
    let align = if sets * shard_len >= 65_536 { 4096 } else { 64 };
    let proofs = HEADER + meta;
    let body = (proofs + sets * proof_len).next_multiple_of(align);
    let tail_proofs = body + sets * shard_len;
    assert_eq!(file.len(), tail_proofs + sets * proof_len + meta + HEADER);
    ShardPlaces { sets, shard_len, proof_len, proofs, body, tail_proofs, len: file.len() }
}

pub(super) fn records(boxed: &[u8]) -> Vec<Record> {
    let (mut at, mut out) = (0, Vec::new());
    while boxed[at..].starts_with(b"\x89fecR\r\n\x1a") {
        let geometry = &boxed[at + 32..at + 64];
        let len = 128 + proof_len(geometry).next_multiple_of(64) + u32_at(geometry, 8);
        out.push(Record { group: u32_at(geometry, 24), set: u32_at(boxed, at + 16), range: at..at + len });
        at += len;
    }
    out
}

pub(super) fn encode(shape: &Shape, seed: u64) -> Run {
    let (k, m, set_size, group_size, len, hash) = *shape;
    let bytes = payload(seed, len);
    let (folder, _) = common::scratch("payload", &bytes);
    let (k, m) = (k.to_string(), m.to_string());
    let options = ["encode", "payload", "-k", &k, "-m", &m, "--set-size", set_size, "--hash", hash, "-o"];
    let shards_root = root(&run(folder.path(), options.into_iter().chain(["s/"])));
    let boxed_root =
        root(&run(folder.path(), options.into_iter().chain(["c.fec", "--group-size", group_size])));
    let files = common::shard_files(&folder.path().join("s"));
    Run {
        payload: bytes,
        shards_root,
        shards: files.iter().map(|f| fs::read(f).unwrap()).collect(),
        boxed_root,
        boxed: fs::read(folder.path().join("c.fec")).unwrap(),
    }
}

pub(super) fn case(shape: &Shape) -> Case {
    let (own, other) = (encode(shape, 1), encode(shape, 2));
    let (shards, records) = (shard_places(&own.shards[0]), records(&own.boxed));
    Case { k: shape.0, own, other, shards, records }
}
