//! A malicious encoder: every number and byte is the attacker's choice, and everything is signed again.

use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::digest::{Digest, HashKind, Tag};
use fec_core::format::container::{INDEX_MAGIC, META_MAGIC, RECORD_MAGIC};
use fec_core::format::shard_file;
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::{Tree, ceil_log2};

/// A geometry block with any numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) version: u8,
    pub(crate) hash: u8,
    pub(crate) form: u8,
    pub(crate) flags: u8,
    pub(crate) k: u16,
    pub(crate) m: u16,
    pub(crate) shard_len: u32,
    pub(crate) sets: u32,
    pub(crate) payload: u64,
    pub(crate) tail: u64,
}

impl Block {
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        out[..4].copy_from_slice(&[self.version, self.hash, self.form, self.flags]);
        out[4..6].copy_from_slice(&self.k.to_le_bytes());
        out[6..8].copy_from_slice(&self.m.to_le_bytes());
        out[8..12].copy_from_slice(&self.shard_len.to_le_bytes());
        out[12..16].copy_from_slice(&self.sets.to_le_bytes());
        out[16..24].copy_from_slice(&self.payload.to_le_bytes());
        out[24..].copy_from_slice(&self.tail.to_le_bytes());
        out
    }

    fn set_path_len(&self) -> usize {
        32 * (ceil_log2(self.k.max(self.m).into()) as usize + 1)
    }

    pub(crate) fn proof_len(&self) -> usize {
        self.set_path_len() + 32 * ceil_log2(self.sets.into()) as usize
    }
}

/// The bytes of every shard: `rows[set][index]`.
pub(crate) type Rows = Vec<Vec<Vec<u8>>>;

/// Encodes like an honest encoder.
pub(crate) fn honest_rows(payload: &[u8], k: usize, m: usize, shard_len: usize, sets: usize) -> Rows {
    let code = Code::new(k, m).expect("a code");
    let plan = Plan::encode(code, Backend::best());
    let set = |s: usize| {
        let mut buffer = ShardBuf::new(code.n(), shard_len);
        for i in 0..k {
            let start = payload.len().min((i * sets + s) * shard_len);
            let end = payload.len().min(start + shard_len);
            buffer.row_mut(i)[..end - start].copy_from_slice(&payload[start..end]);
        }
        let (originals, mut recovery) = buffer.split_rows(|i| i >= k);
        plan.run(&originals, &mut recovery);
        buffer.iter().map(<[u8]>::to_vec).collect()
    };
    (0..sets).map(set).collect()
}

/// The hash with this number in a geometry block; BLAKE3 for numbers that do not exist.
fn hash_of(block: &Block) -> HashKind {
    HashKind::from_number(block.hash).unwrap_or(HashKind::Blake3)
}

/// The trees over all shards of a group.
struct Forest {
    /// For each set, the tree over its originals and the tree over its recovery shards.
    sets: Vec<[Tree; 2]>,
    top: Tree,
}

fn forest(pg: &Block, rows: &Rows) -> Forest {
    let hash = hash_of(pg);
    let mut top = Tree::new();
    let mut sets = Vec::new();
    let mut roots = Vec::new();
    for (s, set) in rows.iter().enumerate() {
        let leaves = (0u32..).zip(set).map(|(i, row)| hash.leaf(&hash.digest(row), s as u32, i));
        let leaves: Vec<Digest> = leaves.collect();
        let (originals, recovery) = leaves.split_at(usize::from(pg.k).clamp(1, leaves.len()));
        let mut trees = [Tree::new(), Tree::new()];
        trees[0].leaves_mut().extend(originals);
        trees[1].leaves_mut().extend(recovery);
        let other = if recovery.is_empty() { [0; 32] } else { trees[1].build(hash) };
        roots.push(hash.node(Tag::Set, &trees[0].build(hash), &other));
        sets.push(trees);
    }
    top.leaves_mut().extend(roots);
    top.build(hash);
    Forest { sets, top }
}

impl Forest {
    /// The root GR of the group that follows `before`.
    fn root(&self, pg: &Block, before: &Digest) -> Digest {
        let hash = hash_of(pg);
        hash.node(Tag::Group, &self.top.root(), &hash.node(Tag::Link, &pg.bytes(), before))
    }

    fn proof(&self, pg: &Block, set: usize, index: usize) -> Vec<u8> {
        let mut proof = vec![0; pg.proof_len()];
        let (set_path, group_path) = proof.split_at_mut(pg.set_path_len());
        let [originals, recovery] = &self.sets[set];
        let (own, other, place) = match index.checked_sub(originals.leaves().len()) {
            None => (originals, recovery, index),
            Some(place) => (recovery, originals, place),
        };
        let used = own.write_path(place, set_path);
        if !other.leaves().is_empty() {
            set_path[used..used + 32].copy_from_slice(&other.root());
        }
        self.top.write_path(set, group_path);
        proof
    }
}

fn seal(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Meta with an unchecked name.
pub(crate) fn meta(name: &[u8]) -> Vec<u8> {
    [&[2u8], &(name.len() as u16).to_le_bytes()[..], name].concat()
}

/// Shard files over any rows. The root covers exactly these bytes. `pg` is the block in their headers.
pub(crate) fn shard_files(pg: &Block, rows: &Rows, meta: &[u8]) -> (Digest, Vec<Vec<u8>>) {
    let forest = forest(pg, rows);
    let meta_hash = hash_of(pg).digest(meta);
    let root = forest.root(pg, &meta_hash);
    let mut padded = meta.to_vec();
    padded.resize(meta.len().next_multiple_of(64), 0);
    let file = |index: usize| {
        let body: Vec<u8> = rows.iter().flat_map(|set| set[index].clone()).collect();
        let proofs: Vec<u8> = (0..rows.len()).flat_map(|s| forest.proof(pg, s, index)).collect();
        let mut header = vec![0u8; shard_file::HEADER_LEN];
        header[..8].copy_from_slice(&shard_file::MAGIC);
        header[16..20].copy_from_slice(&(index as u32).to_le_bytes());
        header[20..24].copy_from_slice(&(meta.len() as u32).to_le_bytes());
        header[24..32].copy_from_slice(&(body.len() as u64).to_le_bytes());
        header[32..64].copy_from_slice(&pg.bytes());
        header[64..96].copy_from_slice(&root);
        header[96..128].copy_from_slice(&forest.top.root());
        header[128..160].copy_from_slice(&meta_hash);
        seal(&mut header);
        let head = header.len() + padded.len() + proofs.len();
        let align = if body.len() >= 65_536 { 4096 } else { 64 };
        let gap = vec![0; head.next_multiple_of(align) - head];
        [&header[..], &padded, &proofs, &gap, &body, &proofs, &padded, &header].concat()
    };
    (root, (0..rows[0].len()).map(file).collect())
}

/// A record with any numbers and a matching checksum.
pub(crate) fn record(
    pg: &Block,
    root: &Digest,
    before: &Digest,
    set: u32,
    index: u32,
    proof: &[u8],
    body: &[u8],
) -> Vec<u8> {
    let mut out = vec![0u8; 128];
    out[..8].copy_from_slice(&RECORD_MAGIC);
    out[16..20].copy_from_slice(&set.to_le_bytes());
    out[20..24].copy_from_slice(&index.to_le_bytes());
    out[32..64].copy_from_slice(&pg.bytes());
    out[64..96].copy_from_slice(root);
    out[96..128].copy_from_slice(before);
    out.extend_from_slice(proof);
    out.resize(out.len().next_multiple_of(64), 0);
    seal(&mut out);
    out.extend_from_slice(body);
    out
}

/// The first original of a group without other records: made-up siblings prove it.
pub(crate) fn lone_record(pg: &Block, before: &Digest) -> Vec<u8> {
    let hash = hash_of(pg);
    let body = vec![0; pg.shard_len as usize];
    let proof: Vec<u8> = (0..pg.proof_len()).map(|i| i as u8).collect();
    let mut siblings = proof.chunks(32).map(|node| Digest::try_from(node).expect("32 bytes"));
    let mut climb = |node: Digest, tag, levels| {
        (0..levels).fold(node, |node, _| hash.node(tag, &node, &siblings.next().expect("a sibling")))
    };
    let own = climb(hash.leaf(&hash.digest(&body), 0, 0), Tag::Node, ceil_log2(pg.k.into()));
    let set = if pg.m == 0 { hash.node(Tag::Set, &own, &[0; 32]) } else { climb(own, Tag::Set, 1) };
    let mut used = proof[..pg.set_path_len()].to_vec();
    let from = 32 * (ceil_log2(pg.k.into()) as usize + usize::from(pg.m > 0));
    used[from..].fill(0);
    used.extend_from_slice(&proof[from..][..32 * ceil_log2(pg.sets.into()) as usize]);
    let tree = climb(set, Tag::Node, ceil_log2(pg.sets.into()));
    let root = hash.node(Tag::Group, &tree, &hash.node(Tag::Link, &pg.bytes(), before));
    record(pg, &root, before, 0, 0, &used, &body)
}

/// An index header with any numbers and a matching checksum.
pub(crate) fn index_header(p: &Block, root: &Digest, meta: &[u8], body_len: u64) -> Vec<u8> {
    let mut out = vec![0u8; 128];
    out[..8].copy_from_slice(&INDEX_MAGIC);
    out[16..24].copy_from_slice(&body_len.to_le_bytes());
    out[24..28].copy_from_slice(&(meta.len() as u32).to_le_bytes());
    out[32..64].copy_from_slice(&p.bytes());
    out[64..96].copy_from_slice(root);
    out[96..].copy_from_slice(&hash_of(p).digest(meta));
    seal(&mut out);
    out
}

/// A meta frame around any bytes, with a matching checksum and hash.
pub(crate) fn meta_frame(p: &Block, meta: &[u8]) -> Vec<u8> {
    let mut out = vec![0u8; 128];
    out[..8].copy_from_slice(&META_MAGIC);
    out[16..20].copy_from_slice(&(meta.len() as u32).to_le_bytes());
    out[32..36].copy_from_slice(&p.bytes()[..4]);
    out[64..96].copy_from_slice(&hash_of(p).digest(meta));
    out.extend_from_slice(meta);
    out.resize(out.len().next_multiple_of(64), 0);
    seal(&mut out);
    out
}

/// The parts of a container.
pub(crate) struct Container {
    pub(crate) root: Digest,
    /// The meta frame, if there is meta.
    pub(crate) front: Vec<u8>,
    /// All records in their order.
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) index: Vec<u8>,
}

impl Container {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.front.clone(), self.records.concat(), self.index.clone()].concat()
    }
}

/// A container over any rows: the Pg and the shards of each group.
pub(crate) fn container(p: &Block, groups: &[(Block, Rows)], meta: &[u8]) -> Container {
    let mut root = hash_of(p).digest(meta);
    let (mut records, mut trees) = (Vec::new(), Vec::new());
    for (pg, rows) in groups {
        let forest = forest(pg, rows);
        let before = root;
        root = forest.root(pg, &before);
        for index in 0..rows[0].len() {
            for (set, rows) in rows.iter().enumerate() {
                let proof = forest.proof(pg, set, index);
                records.push(record(pg, &root, &before, set as u32, index as u32, &proof, &rows[index]));
            }
        }
        trees.push(forest.top.root());
    }
    let mut body = [trees.concat(), meta.to_vec()].concat();
    body.resize(body.len().next_multiple_of(64), 0);
    let header = index_header(p, &root, meta, body.len() as u64);
    let front = if meta.is_empty() { Vec::new() } else { meta_frame(p, meta) };
    Container { root, front, records, index: [&header[..], &body, &header, &body, &header].concat() }
}

/// Hexadecimal digits, as `--root` takes them.
pub(crate) fn hex(root: &Digest) -> String {
    root.iter().map(|b| format!("{b:02x}")).collect()
}
