//! Rows of bytes that presets work on.

use crate::machine::Caches;
use crate::model::{self, CacheHierarchy, Misses};
use crate::random::Mmix;
use fec_core::block::{Plan, ShardBuf};

/// Rows of zeros that begin on cache lines: other rows would change the figures.
///
/// # Panics
/// If a row does not begin on a cache line.
pub(crate) fn aligned(rows: usize, len: usize) -> ShardBuf {
    let buf = ShardBuf::new(rows, len);
    assert!(buf.iter().all(|row| row.as_ptr().addr().is_multiple_of(64)), "rows begin on cache lines");
    buf
}

/// Filled rows.
pub(crate) fn filled(rows: usize, len: usize) -> ShardBuf {
    let mut buf = aligned(rows, len);
    (1..).zip(buf.iter_mut()).for_each(|(seed, row)| Mmix(seed).fill(row));
    buf
}

/// The place of a figure's working set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    /// Bytes of the working set.
    pub(crate) bytes: usize,
}

/// Working sets that fit the first cache, the second, and no cache of a core. The last has at most half of
/// `max_memory`.
pub(crate) fn levels(max_memory: u64) -> [Level; 3] {
    let caches = Caches::host();
    // Halves, since other data needs space too. A smaller working set for memory would fit a cache again.
    let (l1, l2) = (caches.l1_bytes as usize / 2, caches.l2_bytes as usize / 2);
    // Unknown sizes mean a small core, or an emulated one.
    let memory = if caches.known { 12 << 20 } else { 4 << 20 };
    let most = (max_memory / 2) as usize;
    [
        Level { name: "L1", bytes: l1 },
        Level { name: "L2", bytes: l2 },
        Level { name: "memory", bytes: (8 * l2).max(memory).min(most) },
    ]
}

/// Seconds of a call of a plan beyond which it is cut by columns.
const LONG: f64 = 5e-3;

/// A plan at work on rows. If a call over whole rows takes long, each call takes the next columns.
pub(crate) struct PlanOnRows<'a> {
    plan: &'a Plan,
    src: ShardBuf,
    dst: ShardBuf,
    width: usize,
    at: usize,
}

impl<'a> PlanOnRows<'a> {
    /// Rows for `plan` of `row_len` bytes.
    pub(crate) fn new(plan: &'a Plan, row_len: usize) -> PlanOnRows<'a> {
        let src = filled(plan.known().len(), row_len);
        let dst = aligned(plan.wanted().len(), row_len);
        let mut work = PlanOnRows { plan, src, dst, width: 1024.min(row_len), at: 0 };
        // A few columns give an estimate: the whole may take seconds.
        work.run();
        let began = std::time::Instant::now();
        work.run();
        let whole = began.elapsed().as_secs_f64() * row_len as f64 / work.width as f64;
        let columns = if whole > LONG { (row_len as f64 * 1e-3 / whole) as usize } else { row_len };
        work.width = (columns / 64 * 64).clamp(1024.min(row_len), row_len);
        work.at = 0;
        work
    }

    /// Payload bytes of one call.
    pub(crate) fn bytes(&self) -> u64 {
        (self.width * self.plan.known().len()) as u64
    }

    pub(crate) fn run(&mut self) {
        if self.at + self.width > self.src.row_len() {
            self.at = 0;
        }
        let columns = self.at..self.at + self.width;
        self.at = columns.end;
        let src: Vec<&[u8]> = self.src.iter().map(|row| &row[columns.clone()]).collect();
        let mut dst: Vec<&mut [u8]> = self.dst.iter_mut().map(|row| &mut row[columns.clone()]).collect();
        self.plan.run(&src, &mut dst);
    }

    /// The model's misses for a pass over whole rows, and the bytes of that pass.
    pub(crate) fn model(&self, caches: &CacheHierarchy) -> (Misses, u64) {
        let (src, dst): (Vec<&[u8]>, Vec<&[u8]>) = (self.src.iter().collect(), self.dst.iter().collect());
        let bytes = (self.src.row_len() * src.len()) as u64;
        (model::of_plan(caches, self.plan, &src, &dst), bytes)
    }
}
