//! Hash trees node by node and level by level, and whole sets of short shards, whose time is mostly hashing.

use super::reference::kept_shards;
use crate::error::{Error, Result};
use crate::lab::Lab;
use crate::random::Mmix;
use crate::rows::filled;
use crate::table::{FigureTable, Findings, figure, key};
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::{Digest, HashKind, Tag};
use fec_core::merkle::Tree;
use fec_core::params::{Form, GroupGeometry, SHORT_SHARD};
use fec_core::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};
use std::cell::RefCell;

const HASHES: [HashKind; 2] = [HashKind::Blake3, HashKind::Sha256];

const LEAVES: [usize; 3] = [100, 10_000, 100_000];

/// Bytes of a short shard.
const LENGTHS: [usize; 2] = [256, 1024];

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let code = lab.options.code()?;
    lab.plan(HASHES.len() * (LEAVES.len() + LENGTHS.len()));
    let trees = trees(lab);
    let sets = sets(lab, code)?;
    Ok(Findings::new(vec![trees, sets], Vec::new()))
}

fn trees(lab: &mut Lab) -> FigureTable {
    let mut table = FigureTable::new(
        "trees",
        "Trees, one thread: each node by a call of its own, and each level by one call",
        [
            key("leaves", "leaves"),
            key("hash", "hash"),
            key("way", "way"),
            figure("time_us", "median µs", 2),
            figure("ns_a_node", "ns a node", 1),
            figure("speedup", "against node by node", 2),
        ],
    );
    for hash in HASHES {
        for count in LEAVES {
            let mut leaves: Vec<Digest> = vec![[0; 32]; count];
            Mmix(count as u64).fill(leaves.as_flattened_mut());
            let mut tree = Tree::new();
            let mut level = Vec::with_capacity(count);
            let mut by_nodes = || {
                std::hint::black_box(root(hash, &leaves, &mut level));
            };
            let mut by_levels = || {
                tree.leaves_mut().extend_from_slice(&leaves);
                std::hint::black_box(tree.build(hash));
            };
            let works: &mut [&mut dyn FnMut()] = &mut [&mut by_nodes, &mut by_levels];
            let Some(measured) = lab.race(&format!("{count} leaves, {}", hash.name()), false, works) else {
                continue;
            };
            assert_eq!(tree.root(), root(hash, &leaves, &mut level).unwrap_or_default(), "one root");
            for (way, timed) in ["node by node", "level by level"].into_iter().zip(&measured) {
                table.row([
                    ("leaves", count.into()),
                    ("hash", hash.name().into()),
                    ("way", way.into()),
                    ("time_us", timed.time.scaled(1e6).into()),
                    ("ns_a_node", (timed.time.median * 1e9 / (count - 1) as f64).into()),
                    ("speedup", (measured[0].time.median / timed.time.median).into()),
                ]);
            }
        }
    }
    table
}

/// The root over leaves, in the memory of `level`.
fn root(hash: HashKind, leaves: &[Digest], level: &mut Vec<Digest>) -> Option<Digest> {
    level.clear();
    level.extend_from_slice(leaves);
    while level.len() > 1 {
        let count = level.len();
        for nth in 0..count.div_ceil(2) {
            level[nth] = match level[2 * nth..count.min(2 * nth + 2)] {
                [left, right] => hash.node(Tag::Node, &left, &right),
                _ => level[2 * nth],
            };
        }
        level.truncate(count.div_ceil(2));
    }
    level.first().copied()
}

fn sets(lab: &mut Lab, code: Code) -> Result<FigureTable> {
    let mut table = FigureTable::new(
        "small_sets",
        format!(
            "A set of {} + {} short shards, one thread: digests, tree, proofs, code and copies",
            code.k(),
            code.m()
        ),
        [
            key("shard_bytes", "shard B"),
            key("hash", "hash"),
            key("operation", "operation"),
            figure("time_us", "median µs", 2),
        ],
    );
    for hash in HASHES {
        for len in LENGTHS {
            small_set(lab, &mut table, code, hash, len)?;
        }
    }
    Ok(table)
}

/// A set in memory, and the proofs of the shards from which it is decoded.
struct SmallSet {
    group: GroupGeometry,
    rows: ShardBuf,
    encoded: EncodedSet,
    tree: Digest,
    proofs: Vec<(u32, [Vec<u8>; 1])>,
}

impl SmallSet {
    fn new(group: GroupGeometry, encoder: &SetEncoder) -> SmallSet {
        let shape = group.shape();
        let rows = filled(shape.code.k(), shape.shard_len);
        let mut encoded = EncodedSet::new(shape);
        let tree = encoder.encode(0, &rows.iter().collect::<Vec<_>>(), &mut encoded, Run::default());
        let proof = |index: u32| {
            let mut proof = vec![0; shape.proof_len()];
            encoded.write_path(index as usize, &mut proof);
            (index, [proof])
        };
        let proofs = kept_shards(shape.code).into_iter().map(proof).collect();
        SmallSet { group, rows, encoded, tree, proofs }
    }

    fn shard(&self, index: u32) -> &[u8] {
        match (index as usize).checked_sub(self.rows.rows()) {
            None => self.rows.row(index as usize),
            Some(recovery) => self.encoded.recovery().row(recovery),
        }
    }

    /// Copies the shards in, checks them and decodes.
    fn decode(&self, decoder: &mut SetDecoder, plans: &PlanCache, at_once: bool) -> Result<()> {
        let mut reading = decoder.begin(&self.group, &self.tree, 0);
        for (index, _) in &self.proofs {
            reading.slot(*index).copy_from_slice(self.shard(*index));
        }
        let intact = match at_once {
            true => reading.check_all(&self.proofs, Run::default()),
            false => {
                let one = |(index, proof): &(u32, [Vec<u8>; 1])| reading.check(*index, proof, Run::default());
                self.proofs.iter().map(one).collect()
            }
        };
        if let Some(damaged) = intact.iter().position(|is_intact| !is_intact) {
            return Err(Error::Check(self.proofs[damaged].0));
        }
        let decoded = reading.decode(plans, Run::default());
        let decoded = decoded.map_err(|undecoded| Error::Decode(undecoded.error))?;
        match (0..self.rows.rows() as u32).find(|index| decoded.row(*index)[0] != self.shard(*index)[0]) {
            None => Ok(()),
            Some(index) => Err(Error::WrongShard(index)),
        }
    }
}

fn small_set(lab: &mut Lab, table: &mut FigureTable, code: Code, hash: HashKind, len: usize) -> Result<()> {
    let payload = (code.k() * len) as u64;
    let set_size = payload.max(SHORT_SHARD * code.k() as u64);
    let group = GroupGeometry::whole(Form::Shards, hash, code, set_size, payload).map_err(Error::Geometry)?;
    let encoder = SetEncoder::new(code, hash, lab.settings.backend);
    let set = SmallSet::new(group, &encoder);
    let plans = PlanCache::new(lab.settings.backend);
    let failed: RefCell<Result<()>> = RefCell::new(Ok(()));
    let note = |outcome: Result<()>| {
        if outcome.is_err() {
            drop(failed.replace(outcome));
        }
    };
    let originals: Vec<&[u8]> = set.rows.iter().collect();
    let [mut first, mut second] = std::array::from_fn(|_| SetDecoder::for_payload(group.shape()));
    let mut again = EncodedSet::new(group.shape());
    let mut encode = || {
        std::hint::black_box(encoder.encode(0, &originals, &mut again, Run::default()));
    };
    let mut one_by_one = || note(set.decode(&mut first, &plans, false));
    let mut at_once = || note(set.decode(&mut second, &plans, true));
    let works: &mut [&mut dyn FnMut()] = &mut [&mut encode, &mut one_by_one, &mut at_once];
    let measured = lab.race(&format!("sets of {len}-byte shards, {}", hash.name()), false, works);
    failed.into_inner()?;
    let ways = ["encode", "check one by one, decode", "check at once, decode"];
    for (operation, measured) in ways.into_iter().zip(measured.into_iter().flatten()) {
        table.row([
            ("shard_bytes", len.into()),
            ("hash", hash.name().into()),
            ("operation", operation.into()),
            ("time_us", measured.time.scaled(1e6).into()),
        ]);
    }
    Ok(())
}
