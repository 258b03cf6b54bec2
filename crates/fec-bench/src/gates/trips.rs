//! Sets there and back: encoded, some shards lost, decoded, and everything computed again, with roots and proofs.

use crate::random::Mmix;
use fec_core::block::{Code, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::gf256::kernel::Backend;
use fec_core::params::{Form, GroupGeometry};
use fec_core::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder};

pub(crate) const ALL: u64 = 1000;

/// Number of sets that gave every shard back.
pub(crate) fn right(backend: Backend) -> u64 {
    (0..ALL).filter(|seed| trip(backend, *seed).is_some()).count() as u64
}

/// A single trip; `None` if anything differs.
fn trip(backend: Backend, seed: u64) -> Option<()> {
    let mut random = Mmix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let k = 1 + random.below(1 << (1 + random.clone().below(7)));
    let m = random.below(257 - k).min(100);
    let code = Code::new(k, m).ok()?;
    let hash = if random.below(2) == 0 { HashKind::Blake3 } else { HashKind::Sha256 };
    let payload = 1 + random.below(64 * k * 4);
    let group = GroupGeometry::whole(Form::Shards, hash, code, 4 << 20, payload as u64).ok()?;
    let mut originals = ShardBuf::new(k, group.shape().shard_len);
    for (i, row) in originals.iter_mut().enumerate() {
        random.fill(&mut row[..group.shard_payload(0, i)]);
    }
    let mut encoded = EncodedSet::new(group.shape());
    let rows: Vec<&[u8]> = originals.iter().collect();
    let encoder = SetEncoder::new(code, hash, backend);
    let tree = encoder.encode(0, &rows, &mut encoded, Run::default());

    let shards: Vec<&[u8]> = originals.iter().chain(encoded.recovery().iter()).collect();
    let mut decoder = SetDecoder::new(group.shape());
    let mut reading = decoder.begin(&group, &tree, 0);
    let mut proof = vec![0; group.shape().proof_len()];
    for index in random.some(k, code.n()) {
        reading.slot(index as u32).copy_from_slice(shards[index]);
        encoded.write_path(index, &mut proof);
        reading.check(index as u32, &[&proof], Run::default()).then_some(())?;
    }
    let decoded = reading.decode(&PlanCache::new(backend), Run::default()).ok()?;
    decoded.rows().eq(shards.iter().copied()).then_some(())
}
