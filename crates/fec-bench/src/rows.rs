//! Rows of bytes that presets work on.

use crate::machine::Caches;
use crate::model::{self, CacheHierarchy, Misses};
use crate::options::Options;
use crate::random::Mmix;
use fec_base::processor;
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub(crate) name: String,
    /// Bytes of the working set.
    pub(crate) bytes: usize,
}

/// A working set lies in memory if it has this many times the bytes of the last cache.
const BEYOND: u64 = 4;

/// The least and the most bytes of it, whatever the system says of its caches. Unknown sizes mean a small core, or an
/// emulated one.
const LEAST: u64 = 12 << 20;
const LEAST_UNKNOWN: u64 = 4 << 20;
const MOST: u64 = 1 << 30;
/// The most bytes where there is little time: more takes a good part of it to be filled.
const MOST_QUICK: u64 = 256 << 20;

/// Working sets that fit the first cache, the second, and no cache.
pub(crate) fn levels(options: &Options) -> [Level; 3] {
    let available =
        processor::field(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default(), "MemAvailable");
    let kib = available.and_then(|text| text.strip_suffix(" kB")?.trim().parse::<u64>().ok());
    // A quarter of what is free, or half of what the user allows: other data needs room too.
    let room = options.max_memory.map_or(kib.map_or(LEAST, |kib| kib << 8), |most| most / 2);
    levels_of(&Caches::host(), if options.quick { room.min(MOST_QUICK) } else { room })
}

/// The working sets on these caches, in so many bytes of memory. The last one is called by its size if it is too small
/// to lie in memory.
fn levels_of(caches: &Caches, room: u64) -> [Level; 3] {
    // Halves, since other data needs space too.
    let (l1, l2) = (caches.l1_bytes as usize / 2, caches.l2_bytes as usize / 2);
    let beyond = BEYOND * caches.l3_bytes.unwrap_or(caches.l2_bytes).max(caches.l2_bytes);
    let least = if caches.known { LEAST } else { LEAST_UNKNOWN };
    let bytes = beyond.max(least).min(MOST).min(room.max(l2 as u64));
    let name = if bytes >= beyond { "memory".to_owned() } else { format!("{} MiB", bytes >> 20) };
    [
        Level { name: "L1".to_owned(), bytes: l1 },
        Level { name: "L2".to_owned(), bytes: l2 },
        Level { name, bytes: bytes as usize },
    ]
}

/// Most bytes of rows that are modelled.
const MODELLED: usize = 12 << 20;

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

    /// The model's misses for a pass over rows, and the bytes of that pass. The beginnings of long rows serve: whatever
    /// no modelled cache holds misses alike.
    pub(crate) fn model(&self, caches: &CacheHierarchy) -> (Misses, u64) {
        let len =
            self.src.row_len().min((MODELLED / (self.src.rows() + self.dst.rows())).next_multiple_of(64));
        let [src, dst] =
            [&self.src, &self.dst].map(|buf| buf.iter().map(|row| &row[..len]).collect::<Vec<_>>());
        (model::of_plan(caches, self.plan, &src, &dst), (len * src.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(l2: u64, l3: Option<u64>) -> Caches {
        Caches { l1_bytes: 32 << 10, l1_ways: 8, l2_bytes: l2, l2_ways: 8, l3_bytes: l3, known: true }
    }

    #[test]
    fn what_is_called_memory_is_beyond_the_last_cache() {
        let last = |caches: Caches, room: u64| {
            let [.., last] = levels_of(&caches, room);
            (last.name, last.bytes >> 20)
        };
        assert_eq!(last(caches(512 << 10, Some(32 << 20)), 1 << 30), ("memory".to_owned(), 128));
        assert_eq!(last(caches(512 << 10, None), 1 << 30), ("memory".to_owned(), 12));
        assert_eq!(last(caches(4 << 20, None), 1 << 30), ("memory".to_owned(), 16));
        // Too little room, and caches of a server.
        assert_eq!(last(caches(512 << 10, Some(32 << 20)), 48 << 20), ("48 MiB".to_owned(), 48));
        assert_eq!(last(caches(512 << 10, Some(512 << 20)), 1 << 40), ("1024 MiB".to_owned(), 1024));
        let unknown = Caches { known: false, ..caches(512 << 10, None) };
        assert_eq!(last(unknown, 1 << 30), ("memory".to_owned(), 4));
    }
}
