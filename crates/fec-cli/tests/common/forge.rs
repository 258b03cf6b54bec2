//! A malicious encoder: every number and byte is the attacker's choice, and everything is signed again.

use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::digest::{Digest, HashKind, Tag};
use fec_core::format::container::{INDEX_MAGIC, RECORD_MAGIC};
use fec_core::format::shard_file;
use fec_core::gf256::kernel::Backend;
use fec_core::merkle::{Frontier, Tree, ceil_log2};

/// A geometry block, any numbers.
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

    fn n(&self) -> u64 {
        u64::from(self.k) + u64::from(self.m)
    }

    fn set_path_len(&self) -> usize {
        32 * ceil_log2(self.n()) as usize
    }

    fn proof_len(&self) -> usize {
        self.set_path_len() + 32 * ceil_log2(self.sets.into()) as usize
    }
}

/// The bytes of every shard: `rows[set][index]`.
pub(crate) type Rows = Vec<Vec<Vec<u8>>>;

/// Encodes as an honest encoder does.
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
    sets: Vec<Tree>,
    top: Tree,
    root: Digest,
}

fn forest(pg: &Block, rows: &Rows) -> Forest {
    let hash = hash_of(pg);
    let mut top = Tree::new();
    let mut sets = Vec::new();
    let mut roots = Vec::new();
    for (s, set) in rows.iter().enumerate() {
        let mut tree = Tree::new();
        let leaves = (0u32..).zip(set).map(|(i, row)| hash.leaf(&hash.digest(row), s as u32, i));
        tree.leaves_mut().extend(leaves);
        roots.push(tree.build(hash));
        sets.push(tree);
    }
    top.leaves_mut().extend(roots);
    let x = top.build(hash);
    Forest { sets, top, root: hash.node(Tag::Group, &x, &pg.bytes()) }
}

impl Forest {
    fn proof(&self, pg: &Block, set: usize, index: usize) -> Vec<u8> {
        let mut proof = vec![0; pg.proof_len()];
        let (set_path, group_path) = proof.split_at_mut(pg.set_path_len());
        self.sets[set].write_path(index, set_path);
        self.top.write_path(set, group_path);
        proof
    }
}

fn root_of(p: &Block, tree: &Digest, meta: &[u8]) -> Digest {
    let hash = hash_of(p);
    hash.node(Tag::Root, tree, &hash.node(Tag::Param, &p.bytes(), &hash.digest(meta)))
}

fn seal(bytes: &mut [u8]) {
    let sum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Meta with a name, unchecked.
pub(crate) fn meta(name: &[u8]) -> Vec<u8> {
    [&[2u8], &(name.len() as u16).to_le_bytes()[..], name].concat()
}

/// Shard files over any rows; the root covers exactly these bytes.
pub(crate) fn shard_files(p: &Block, rows: &Rows, meta: &[u8]) -> (Digest, Vec<Vec<u8>>) {
    let pg = Block { flags: 1, tail: 0, ..*p };
    let forest = forest(&pg, rows);
    let root = root_of(p, &forest.root, meta);
    let file = |index: usize| {
        let body: Vec<u8> = rows.iter().flat_map(|set| set[index].clone()).collect();
        let proofs: Vec<u8> = (0..rows.len()).flat_map(|s| forest.proof(&pg, s, index)).collect();
        let mut header = vec![0u8; 512];
        header[..8].copy_from_slice(&shard_file::MAGIC);
        header[16..20].copy_from_slice(&(index as u32).to_le_bytes());
        header[24..32].copy_from_slice(&(body.len() as u64).to_le_bytes());
        header[32..64].copy_from_slice(&p.bytes());
        header[64..96].copy_from_slice(&root);
        header[96..128].copy_from_slice(&forest.root);
        header[128..160].copy_from_slice(&hash_of(p).digest(meta));
        header[160..162].copy_from_slice(&(meta.len() as u16).to_le_bytes());
        header[162..162 + meta.len()].copy_from_slice(meta);
        seal(&mut header);
        let gap = vec![0; (512 + proofs.len()).next_multiple_of(4096) - 512 - proofs.len()];
        [&header[..], &proofs, &gap, &body, &proofs, &header].concat()
    };
    (root, (0..rows[0].len()).map(file).collect())
}

/// A record of any numbers with a checksum that fits.
pub(crate) fn record(
    pg: &Block,
    root: &Digest,
    head: &Digest,
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
    out[96..128].copy_from_slice(head);
    out.extend_from_slice(proof);
    out.resize(out.len().next_multiple_of(64), 0);
    seal(&mut out);
    out.extend_from_slice(body);
    out
}

/// An index header of any numbers with a checksum that fits.
pub(crate) fn index_header(p: &Block, root: &Digest, meta: &[u8], body_len: u64) -> Vec<u8> {
    let mut out = vec![0u8; 128];
    out[..8].copy_from_slice(&INDEX_MAGIC);
    out[16..24].copy_from_slice(&body_len.to_le_bytes());
    out[24..26].copy_from_slice(&(meta.len() as u16).to_le_bytes());
    out[32..64].copy_from_slice(&p.bytes());
    out[64..96].copy_from_slice(root);
    out[96..].copy_from_slice(&hash_of(p).digest(meta));
    seal(&mut out);
    out
}

/// A container in its parts.
pub(crate) struct Container {
    pub(crate) root: Digest,
    /// All records in their order.
    pub(crate) records: Vec<Vec<u8>>,
    pub(crate) index: Vec<u8>,
}

impl Container {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        [self.records.concat(), self.index.clone()].concat()
    }
}

/// A container over any rows: for each group its Pg and shards.
pub(crate) fn container(p: &Block, groups: &[(Block, Rows)], meta: &[u8]) -> Container {
    let hash = hash_of(p);
    let mut heads = Frontier::new(hash);
    let (mut records, mut roots) = (Vec::new(), Vec::new());
    for (pg, rows) in groups {
        let forest = forest(pg, rows);
        let head = heads.root().unwrap_or([0; 32]);
        for index in 0..rows[0].len() {
            for (set, rows) in rows.iter().enumerate() {
                let proof = forest.proof(pg, set, index);
                records.push(record(pg, &forest.root, &head, set as u32, index as u32, &proof, &rows[index]));
            }
        }
        heads.push(forest.root);
        roots.push(forest.root);
    }
    let root = root_of(p, &heads.root().expect("there are groups"), meta);
    let mut body = [roots.concat(), meta.to_vec()].concat();
    body.resize(body.len().next_multiple_of(64), 0);
    let header = index_header(p, &root, meta, body.len() as u64);
    Container { root, records, index: [&header[..], &body, &header, &body, &header].concat() }
}

/// Hexadecimal digits, as `--root` takes them.
pub(crate) fn hex(root: &Digest) -> String {
    root.iter().map(|b| format!("{b:02x}")).collect()
}
