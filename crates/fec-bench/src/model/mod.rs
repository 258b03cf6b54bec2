//! A model of caches: the misses of a processor with these caches that does only the codec's accesses.
//!
//! Two levels of set-associative caches with lines of 64 bytes that forget the line used longest ago. The accesses are
//! the codec's own, in its order ([`Plan::trace`], [`Encoder::push_traced`](fec_core::window::Encoder::push_traced)).
//! The truth lies between two figures: without any prefetching, and with an ideal prefetcher that always brings the
//! next line in time. The model says nothing of the cost of a miss, and predicts no speed. `scripts/checks/model.sh`
//! compares it with another simulator.
//!
//! The figures are the same at each run: the accesses come from a thread of its own, whose stack begins on a page, and
//! [`Addresses`] stand for the real ones.

mod addresses;

use crate::error::{Error, Result};
use crate::machine::Caches;
use crate::table::{Cell, FigureColumn, figure};
use addresses::Addresses;
use fec_core::block::{Access, AccessKind, Plan};
use fec_core::gf256::kernel::Backend;
use std::fmt;

/// Bytes of a line.
const LINE: u64 = 64;

/// Bytes of the packets for which misses are told.
const PACKET: f64 = 1400.0;

/// The largest cache, and the most ways.
const MOST_BYTES: u64 = 1 << 30;
const MOST_WAYS: u64 = 1024;

/// The shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CacheShape {
    bytes: u64,
    ways: u64,
}

/// The caches to be modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheHierarchy {
    name: String,
    l1: CacheShape,
    l2: CacheShape,
}

/// Sizes of usual parts: makers may choose others.
const KNOWN: [(&str, CacheShape, CacheShape); 4] = [
    ("cortex-a53", shape(32, 4), shape(512, 16)),
    ("cortex-a55", shape(32, 4), shape(256, 4)),
    ("cortex-a72", shape(32, 2), shape(1024, 16)),
    ("cortex-a76", shape(64, 4), shape(512, 8)),
];

const fn shape(kib: u64, ways: u64) -> CacheShape {
    CacheShape { bytes: kib << 10, ways }
}

impl CacheHierarchy {
    /// The caches of a usual part, by its [name](CacheHierarchy::names).
    pub fn named(name: &str) -> Option<CacheHierarchy> {
        let (name, l1, l2) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        Some(CacheHierarchy { name: (*name).to_owned(), l1: *l1, l2: *l2 })
    }

    /// The names of usual parts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, ..)| *name)
    }

    /// Caches of these sizes, each in bytes and ways.
    ///
    /// # Errors
    /// [`Cache`](Error::Cache).
    pub fn new(name: &str, l1: (u64, u64), l2: (u64, u64)) -> Result<CacheHierarchy> {
        let [l1, l2] = [("L1", l1), ("L2", l2)].map(|(level, (bytes, ways))| {
            let is_whole = ways > 0 && ways <= MOST_WAYS && bytes > 0 && bytes.is_multiple_of(ways * LINE);
            let shape = (is_whole && bytes <= MOST_BYTES).then_some(CacheShape { bytes, ways });
            shape.ok_or(Error::Cache { level })
        });
        Ok(CacheHierarchy { name: name.to_owned(), l1: l1?, l2: l2? })
    }

    /// The caches of one core of this machine, or of a small core if the system does not tell.
    pub fn host() -> CacheHierarchy {
        let host = Caches::host();
        // Sizes that are no multiple of the ways would leave a set unfinished.
        let whole = |bytes: u64, ways: u64| CacheShape { bytes: bytes / (ways * LINE) * (ways * LINE), ways };
        let (l1, l2) = (whole(host.l1_bytes, host.l1_ways), whole(host.l2_bytes, host.l2_ways));
        let name = if host.known { "host" } else { "host unknown, a small core" };
        CacheHierarchy { name: name.to_owned(), l1, l2 }
    }

    /// The backend whose loops stand for the processor. A core with vectors of 16 bytes gets a backend with such
    /// vectors, if there is one; other cores get `chosen`.
    pub(crate) fn backend(&self, chosen: Backend) -> Backend {
        let small = KNOWN.iter().any(|(name, ..)| *name == self.name);
        let vectors = Backend::available().find(|backend| backend.vector_len() == 16);
        vectors.filter(|_| small).unwrap_or(chosen)
    }
}

impl fmt::Display for CacheHierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheHierarchy { name, l1, l2 } = self;
        write!(
            f,
            "{name} (L1 {} KiB {}-way, L2 {} KiB {}-way, LRU)",
            l1.bytes >> 10,
            l1.ways,
            l2.bytes >> 10,
            l2.ways
        )
    }
}

/// A cache at work: the lines of each set, the most recently used one in front.
struct Cache {
    ways: usize,
    sets: u64,
    lines: Vec<u64>,
}

/// No line: the address space ends before it.
const EMPTY: u64 = u64::MAX;

impl Cache {
    fn new(shape: CacheShape) -> Cache {
        let sets = shape.bytes / LINE / shape.ways;
        Cache { ways: shape.ways as usize, sets, lines: vec![EMPTY; (sets * shape.ways) as usize] }
    }

    /// Uses a line. Returns whether it was there.
    fn hit(&mut self, line: u64) -> bool {
        let set = (line % self.sets) as usize;
        let lines = &mut self.lines[set * self.ways..][..self.ways];
        let found = lines.iter().position(|&there| there == line);
        let place = found.unwrap_or(lines.len() - 1);
        lines.copy_within(..place, 1);
        lines[0] = line;
        found.is_some()
    }
}

/// Both levels, and their misses.
struct Simulator {
    l1: Cache,
    l2: Cache,
    next_line: bool,
    missed: [u64; 2],
    /// Lines that came from memory: misses of L2, and the prefetcher's lines.
    fetched: u64,
}

impl Simulator {
    fn new(caches: &CacheHierarchy, next_line: bool) -> Simulator {
        Simulator {
            l1: Cache::new(caches.l1),
            l2: Cache::new(caches.l2),
            next_line,
            missed: [0; 2],
            fetched: 0,
        }
    }

    fn use_line(&mut self, line: u64) {
        if !self.l1.hit(line) {
            self.missed[0] += 1;
            let missed = u64::from(!self.l2.hit(line));
            self.missed[1] += missed;
            self.fetched += missed;
        }
        if self.next_line && !self.l1.hit(line + 1) {
            self.fetched += u64::from(!self.l2.hit(line + 1));
        }
    }
}

/// Both caches with and without the prefetcher, at the same accesses.
pub(crate) struct Pair {
    simulators: [Simulator; 2],
    addresses: Addresses,
    /// Bytes by which the stack is moved.
    stack: usize,
    /// Bytes of a load or store.
    width: usize,
    references: u64,
}

/// The observations of both simulators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheUse {
    /// Loads and stores.
    pub(crate) references: u64,
    pub(crate) misses: Misses,
    /// Lines read from memory, without the prefetcher and with it.
    pub(crate) fetched: [u64; 2],
}

impl std::ops::AddAssign for CacheUse {
    fn add_assign(&mut self, other: CacheUse) {
        self.references += other.references;
        self.misses.l1 += other.misses.l1;
        self.misses.l2 += other.misses.l2;
        self.misses.l1_prefetched += other.misses.l1_prefetched;
        self.misses.l2_prefetched += other.misses.l2_prefetched;
        self.fetched.iter_mut().zip(other.fetched).for_each(|(sum, more)| *sum += more);
    }
}

impl Pair {
    /// Empty caches; a load or store is counted for each `width` bytes of an access.
    pub(crate) fn new(caches: &CacheHierarchy, width: usize) -> Pair {
        let simulators = [false, true].map(|next| Simulator::new(caches, next));
        Pair { simulators, addresses: Addresses::default(), stack: 0, width, references: 0 }
    }

    pub(crate) fn access(&mut self, access: Access) {
        if access.kind != AccessKind::Stack {
            self.references += access.len.div_ceil(self.width) as u64;
        }
        if access.kind == AccessKind::Stream {
            return;
        }
        let moved = if access.kind == AccessKind::Stack { self.stack } else { 0 };
        let (first, last) = (access.address + moved, access.address + moved + access.len - 1);
        for line in first / LINE as usize..=last / LINE as usize {
            let line = self.addresses.of(line * LINE as usize) as u64 / LINE;
            self.simulators.iter_mut().for_each(|simulator| simulator.use_line(line));
        }
    }

    /// The misses of a call that follows the same call. `trace` tells its accesses.
    fn of_second(&mut self, trace: impl Fn(&mut dyn FnMut(Access))) -> Misses {
        trace(&mut |access| self.access(access));
        self.take();
        trace(&mut |access| self.access(access));
        self.take().misses
    }

    /// The observations since the last call.
    pub(crate) fn take(&mut self) -> CacheUse {
        let [(l1, l2), (l1_prefetched, l2_prefetched)] =
            self.simulators.each_mut().map(|simulator| std::mem::take(&mut simulator.missed).into());
        CacheUse {
            references: std::mem::take(&mut self.references),
            misses: Misses { l1, l2, l1_prefetched, l2_prefetched },
            fetched: self.simulators.each_mut().map(|simulator| std::mem::take(&mut simulator.fetched)),
        }
    }
}

/// Modelled misses of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Misses {
    pub(crate) l1: u64,
    pub(crate) l2: u64,
    /// With an ideal prefetcher of the next line.
    pub(crate) l1_prefetched: u64,
    pub(crate) l2_prefetched: u64,
}

/// Runs the work on a thread of its own, whose stack begins on a page; where none can be had, here.
pub(crate) fn apart<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &work).ok();
        thread.and_then(|thread| thread.join().ok())
    })
    .unwrap_or_else(work)
}

/// Places of the stack of which [`of_plan`] takes the mean: which lines share a set with it moves the misses of a
/// transform by up to 2 %.
const PLACES: u64 = 8;

/// Modelled misses of a plan on these rows, of a call that follows the same call.
pub(crate) fn of_plan(caches: &CacheHierarchy, plan: &Plan, src: &[&[u8]], dst: &[&[u8]]) -> Misses {
    let of_places = apart(|| {
        let place = |nth: u64| {
            let mut pair = Pair::new(caches, LINE as usize);
            pair.stack = (nth * caches.l1.bytes / caches.l1.ways / PLACES) as usize;
            [src, dst].iter().for_each(|rows| pair.addresses.lay_out(rows));
            pair.of_second(|visit| plan.trace(src, dst, visit))
        };
        (0..PLACES).map(place).collect::<Vec<_>>()
    });
    let mean = |of: fn(&Misses) -> u64| of_places.iter().map(of).sum::<u64>().div_ceil(PLACES);
    Misses {
        l1: mean(|misses| misses.l1),
        l2: mean(|misses| misses.l2),
        l1_prefetched: mean(|misses| misses.l1_prefetched),
        l2_prefetched: mean(|misses| misses.l2_prefetched),
    }
}

/// The meaning of [`columns`].
pub(crate) const LEGEND: &str = "model: how often a line of 64 bytes misses the first or second cache, for each KiB of source (16 lines) and each packet of 1400 bytes; a line may miss several times. Prefetched: the same where the next line always comes in time";

/// The columns of the model in a table.
pub(crate) fn columns() -> [FigureColumn; 6] {
    [
        figure("model_l1_misses_per_kib", "model L1/KiB", 2),
        figure("model_l1_misses_per_kib_prefetched", "L1 prefetched", 2),
        figure("model_l2_misses_per_kib", "model L2/KiB", 2),
        figure("model_l2_misses_per_kib_prefetched", "L2 prefetched", 2),
        figure("model_l1_misses_per_packet", "L1/packet", 2),
        figure("model_l2_misses_per_packet", "L2/packet", 2),
    ]
}

/// The cells of a row whose calls go through `bytes` bytes each; a packet has 1400.
pub(crate) fn cells(misses: &Misses, bytes: u64) -> [(&'static str, Cell); 6] {
    let per = |count: u64, unit: f64| (count as f64 * unit / bytes as f64).into();
    [
        ("model_l1_misses_per_kib", per(misses.l1, 1024.0)),
        ("model_l1_misses_per_kib_prefetched", per(misses.l1_prefetched, 1024.0)),
        ("model_l2_misses_per_kib", per(misses.l2, 1024.0)),
        ("model_l2_misses_per_kib_prefetched", per(misses.l2_prefetched, 1024.0)),
        ("model_l1_misses_per_packet", per(misses.l1, PACKET)),
        ("model_l2_misses_per_packet", per(misses.l2, PACKET)),
    ]
}

#[cfg(test)]
mod tests;
