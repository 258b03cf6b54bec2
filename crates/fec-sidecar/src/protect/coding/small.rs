//! Codes sets of at most 256 shards: rows of several go through the kernel and the hash while they are in a cache.

use super::rows::{Coding, Found, Reader};
use fec_base::error::{Error, Result};
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::block::{Code, Plan, ShardBuf};
use fec_core::digest::HashKind;
use fec_core::executor::{Executor, into_value, lock};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Codes all sets of a group.
///
/// # Errors
/// Those that are not of the files.
pub(super) fn run(coding: &Coding<'_>, code: Code) -> Result<()> {
    /// The most bytes of a row: enough to keep the hash busy, and few enough for all rows to stay in a cache.
    const ROW: u64 = 32 << 10;
    let Coding { group, settings, .. } = coding;
    let (block, sets) = (u64::from(coding.catalog.block), u64::from(group.sets));
    stages::tell_work(code, HashKind::Blake3, settings.backend);
    let set_bytes = code.n() as u64 * block;
    // Two thirds of the memory, since the rest is for digests.
    let budget = settings.max_memory / 3 * 2;
    let workers = settings.threads.min((budget / set_bytes).max(1) as usize).min(group.sets as usize).max(1);
    let together =
        (budget / (workers as u64 * set_bytes)).min(ROW / block).min(sets.div_ceil(workers as u64)).max(1);
    let plan = Plan::encode(code, settings.backend);
    let next = AtomicU64::new(0);
    let first_error: Mutex<Option<Error>> = Mutex::new(None);
    Threads(workers).run(workers, &|_| {
        let rows = ShardBuf::new(code.n(), (together * block) as usize);
        let mut worker = Worker { coding, plan: &plan, rows, files: coding.reader() };
        while lock(&first_error).is_none() {
            let first = next.fetch_add(together, Ordering::Relaxed);
            if first >= sets {
                break;
            }
            let coded = coding.meter.check().and_then(|()| worker.code(first..(first + together).min(sets)));
            if let Err(e) = coded {
                lock(&first_error).get_or_insert(e);
            }
        }
    });
    into_value(first_error).map_or(Ok(()), Err)
}

/// The buffers of a thread.
struct Worker<'a> {
    coding: &'a Coding<'a>,
    plan: &'a Plan,
    rows: ShardBuf,
    files: Reader<'a>,
}

impl Worker<'_> {
    /// Reads, hashes, codes and writes successive sets, which stand side by side in the rows.
    fn code(&mut self, sets: Range<u64>) -> Result<()> {
        let Worker { coding, plan, rows, files } = self;
        let (block, k) = (coding.catalog.block as usize, plan.code().k());
        let row_len = (sets.end - sets.start) as usize * block;
        rows.set_row_len(row_len);
        let mut found = Found::default();
        for index in 0..k {
            let first = coding.first + coding.group.position(sets.start, index as u64);
            coding.read(first, rows.row_mut(index), files, &mut found)?;
        }
        let stage = stages::enter(Stage::Code, (row_len * k) as u64);
        let (known, mut wanted) = rows.split_rows(|index| index >= k);
        plan.run(&known, &mut wanted);
        drop(stage);
        for index in k..plan.code().n() {
            let shard = coding.group.shard(sets.start, (index - k) as u64);
            coding.write((shard, 1), rows.row(index), &mut found)?;
        }
        coding.keep(&found);
        coding.meter.add(found.bytes);
        Ok(())
    }
}
