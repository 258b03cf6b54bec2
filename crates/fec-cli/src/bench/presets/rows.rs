//! Rows of bytes that presets work on.

use super::super::lab::Lab;
use fec_core::block::{Plan, ShardBuf};

/// Bytes that no code or hash can take a short cut on (Knuth's MMIX generator).
pub(super) fn fill(bytes: &mut [u8], seed: u64) {
    let mut state = seed;
    for byte in bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
}

/// Rows of zeros, each of which begins on a cache line: figures of rows that do not would be of something else.
///
/// # Panics
/// If one does not.
pub(super) fn aligned(rows: usize, len: usize) -> ShardBuf {
    let buf = ShardBuf::new(rows, len);
    assert!(buf.iter().all(|row| row.as_ptr().addr().is_multiple_of(64)), "rows begin on cache lines");
    buf
}

/// Filled rows.
pub(super) fn filled(rows: usize, len: usize) -> ShardBuf {
    let mut buf = aligned(rows, len);
    (1..).zip(buf.iter_mut()).for_each(|(seed, row)| fill(row, seed));
    buf
}

/// Where the working set of a figure lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) name: &'static str,
    /// Bytes of the working set.
    pub(super) bytes: usize,
}

/// Working sets that fit the first cache, the second, and no cache of a core.
pub(super) fn levels(lab: &Lab) -> [Level; 3] {
    let caches = super::super::machine::Machine::new_caches();
    // Halves: other things need a place too. Less than the rest of memory would be a cache again.
    let (l1, l2) = (caches.l1_bytes as usize / 2, caches.l2_bytes as usize / 2);
    // Where sizes are not known, the core is small or emulated.
    let memory = if caches.known { 12 << 20 } else { 4 << 20 };
    let most = (lab.settings.max_memory / 2) as usize;
    [
        Level { name: "L1", bytes: l1 },
        Level { name: "L2", bytes: l2 },
        Level { name: "memory", bytes: (8 * l2).max(memory).min(most) },
    ]
}

/// A call of a plan that takes longer than this is cut by columns.
const LONG: f64 = 5e-3;

/// A plan at work on rows; where one call over whole rows takes long, each call takes the next columns.
pub(super) struct Work<'a> {
    plan: &'a Plan,
    src: ShardBuf,
    dst: ShardBuf,
    width: usize,
    at: usize,
}

impl<'a> Work<'a> {
    /// Rows for `plan` of `row_len` bytes.
    pub(super) fn new(plan: &'a Plan, row_len: usize) -> Work<'a> {
        let src = filled(plan.known().len(), row_len);
        let dst = aligned(plan.wanted().len(), row_len);
        let mut work = Work { plan, src, dst, width: 1024.min(row_len), at: 0 };
        // From a few columns: the whole may take seconds.
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
    pub(super) fn bytes(&self) -> u64 {
        (self.width * self.plan.known().len()) as u64
    }

    pub(super) fn run(&mut self) {
        if self.at + self.width > self.src.row_len() {
            self.at = 0;
        }
        let columns = self.at..self.at + self.width;
        self.at = columns.end;
        let src: Vec<&[u8]> = self.src.iter().map(|row| &row[columns.clone()]).collect();
        let mut dst: Vec<&mut [u8]> = self.dst.iter_mut().map(|row| &mut row[columns.clone()]).collect();
        self.plan.run(&src, &mut dst);
    }

    /// What the model says of one pass over the whole rows, and the bytes of that.
    pub(super) fn model(&self, lab: &Lab) -> (super::super::model::Misses, u64) {
        let (src, dst): (Vec<&[u8]>, Vec<&[u8]>) = (self.src.iter().collect(), self.dst.iter().collect());
        let bytes = (self.src.row_len() * src.len()) as u64;
        (super::super::model::of_plan(&lab.model, self.plan, &src, &dst), bytes)
    }
}
