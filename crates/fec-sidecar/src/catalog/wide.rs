//! The memory that sets of a wide code are computed in.

use fec_base::context::Settings;
use fec_base::threads::Threads;
use fec_core::area::{AreaCode, AreaRoom};
use fec_core::block::ShardBuf;
use fec_core::executor::{Executor, lock};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that a thread reads or writes at a time.
const PIECE: usize = 256 << 10;
/// About as much as a thread takes for its part of a transform.
const THREAD: u64 = 5 << 19;

/// Buffers for one set after the other.
pub(crate) struct WideBuffers {
    /// Blocks of a coset, one behind the other.
    pub(crate) blocks: ShardBuf,
    pub(crate) room: AreaRoom,
    /// The threads that compute: as many as the memory allows.
    pub(crate) threads: Threads,
}

impl WideBuffers {
    pub(crate) fn new(code: AreaCode, block: u32, settings: &Settings) -> WideBuffers {
        let spare = settings.max_memory.saturating_sub(of_set(code, block.into()));
        let threads = settings.threads.min((spare / THREAD) as usize).max(1);
        let block = block as usize;
        WideBuffers {
            blocks: ShardBuf::new(1, code.coset_len().min(code.n()) * block),
            room: AreaRoom::new(code.m(), block, threads).expect("blocks are whole units"),
            threads: Threads(threads),
        }
    }
}

/// The least memory for a set with blocks of this length.
pub(crate) fn memory(code: AreaCode, block: u64) -> u64 {
    of_set(code, block) + THREAD
}

/// The memory for a set, without that of threads: the blocks of a coset, and as many sums.
fn of_set(code: AreaCode, block: u64) -> u64 {
    (code.coset_len().min(code.n()) + code.coset_len().max(64)) as u64 * block
}

/// Cuts blocks into parts of successive ones. `end` gives the end of the stretch that a number lies in: no part reaches
/// beyond it.
pub(crate) fn parts(
    numbers: Range<u64>,
    mut blocks: &mut [u8],
    block: u32,
    end: impl Fn(u64) -> u64,
) -> Vec<(u64, &mut [u8])> {
    let block = block as usize;
    let most = (PIECE / block).max(1) as u64;
    let mut parts = Vec::new();
    let mut next = numbers.start;
    while next < numbers.end {
        let count = most.min(end(next) - next).min(numbers.end - next);
        let (part, rest) = blocks.split_at_mut(count as usize * block);
        parts.push((next, part));
        (blocks, next) = (rest, next + count);
    }
    parts
}

/// Calls `job` for each part, with the number of the thread.
pub(crate) fn on_each<T: Send>(threads: Threads, parts: Vec<T>, job: impl Fn(usize, T) + Sync) {
    let parts: Vec<Mutex<Option<T>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    let next = AtomicUsize::new(0);
    threads.run(threads.0.min(parts.len()), &|worker| {
        while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
            lock(part).take().into_iter().for_each(|part| job(worker, part));
        }
    });
}
