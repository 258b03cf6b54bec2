//! The sum of the inverse transforms of all cosets, strip by strip.
//!
//! A *strip* is a stretch of units of all rows, so short that a sheet of them fits the second cache. The sums of a
//! strip stand in the order of tiles: the far step adds to them from the first byte to the last.

use super::AreaError;
use crate::executor::{Executor, for_each};
use crate::gf256::kernel::{
    AlignedBytes, Backend, Columns, GROUP, LINE, MAX_UNITS, Position, Sheet, UNIT, Unit,
};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Bytes of a sheet, if rows are not too many: half of a second cache of 2 MiB.
const SHEET: usize = 1 << 20;

/// The cut of an area into strips for transforms of some number of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Rows of a transform: a power of two. Sums have [`GROUP`] rows at least.
    pub(super) rows: usize,
    /// Units of a block.
    pub(super) block: usize,
    /// Units of a row in a strip; the last strip may have fewer.
    pub(super) units: usize,
}

impl Shape {
    /// The shape for transforms of at least `rows` rows of `block_len` bytes, a multiple of a unit.
    pub(super) fn new(rows: usize, block_len: usize) -> Shape {
        let (rows, block) = (rows.next_power_of_two(), block_len / UNIT);
        let units = SHEET / UNIT / rows.max(GROUP);
        Shape { rows, block, units: units.clamp(1, MAX_UNITS.min(block.max(1))) }
    }

    /// Groups of 64 rows.
    pub(super) fn groups(self) -> usize {
        self.rows.div_ceil(GROUP)
    }

    /// Layers within a group.
    pub(super) fn layers(self) -> usize {
        self.rows.trailing_zeros().min(6) as usize
    }

    /// Units of all sums.
    pub(super) fn len(self) -> usize {
        self.groups() * GROUP * self.block
    }

    /// Units of the sums of a strip.
    pub(super) fn strip_len(self) -> usize {
        self.groups() * GROUP * self.units
    }

    /// Units from a group in a sheet to the next: not a multiple of anything, since caches put such into few places.
    pub(super) fn distance(self) -> usize {
        GROUP * self.units + 1
    }

    /// Units of a sheet.
    fn sheet_len(self) -> usize {
        self.groups() * self.distance()
    }
}

/// A thread's memory: tiles, a sheet, and as much again as the sums of a strip.
pub(super) struct Bench<'b> {
    pub(super) near: &'b mut [Unit; GROUP],
    pub(super) far: &'b mut [Unit],
    pub(super) groups: &'b mut [Unit],
    pub(super) spare: &'b mut [Unit],
    shape: Shape,
}

impl Bench<'_> {
    /// Units of the memory of a thread.
    fn len(shape: Shape) -> usize {
        GROUP + shape.groups() + shape.sheet_len() + shape.strip_len()
    }

    fn new(bytes: &mut [u8], shape: Shape) -> Bench<'_> {
        let (near, rest) = units_of(bytes).split_first_chunk_mut().expect("it is long enough");
        let (far, rest) = rest.split_at_mut(shape.groups());
        let (groups, rest) = rest.split_at_mut(shape.sheet_len());
        Bench { near, far, groups, spare: &mut rest[..shape.strip_len()], shape }
    }

    pub(super) fn sheet(&mut self) -> Sheet<'_> {
        Sheet { tile: self.far, groups: self.groups, distance: self.shape.distance() }
    }
}

fn units_of(bytes: &mut [u8]) -> &mut [Unit] {
    bytes.as_chunks_mut::<LINE>().0.as_chunks_mut::<2>().0
}

/// The memory of an encoder or a decoder, used again for one area after the other.
///
/// It holds sums of m rows, rounded up to a power of two, and for each thread about 2 MiB (more from m = 16,384 on).
#[derive(Debug)]
pub struct AreaRoom {
    /// Sums, and behind them the benches: in one piece, which is large enough for huge pages.
    bytes: AlignedBytes,
    /// Bytes of the sums.
    sums: usize,
    /// Bytes of a bench.
    bench: usize,
}

impl AreaRoom {
    /// Memory for areas of up to `m` recovery blocks of `block_len` bytes, worked on by `threads` threads at once. If
    /// an executor lends more, those wait.
    ///
    /// # Errors
    ///
    /// [`AreaError::BlockLen`] when that is no positive multiple of 128.
    ///
    /// # Panics
    ///
    /// When it is more than an allocation can hold.
    pub fn new(m: usize, block_len: usize, threads: usize) -> Result<AreaRoom, AreaError> {
        check_block_len(block_len)?;
        let shape = Shape::new(m.max(1), block_len);
        // Fewer rows have longer strips.
        let shapes = (0..=shape.rows.trailing_zeros()).map(|log| Shape::new(1 << log, block_len));
        let bench = shapes.map(Bench::len).max().expect("there is one") * UNIT;
        let sums = shape.len() * UNIT;
        let len = threads.max(1).checked_mul(bench).and_then(|benches| benches.checked_add(sums));
        Ok(AreaRoom { bytes: AlignedBytes::zeroed(len.expect("length overflows")), sums, bench })
    }

    /// Bytes of it all.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Refuses a length that blocks cannot have.
fn check_block_len(len: usize) -> Result<(), AreaError> {
    if len == 0 || !len.is_multiple_of(UNIT) { Err(AreaError::BlockLen { len }) } else { Ok(()) }
}

/// The sums of an area, in the memory of a room.
#[derive(Debug)]
pub(super) struct Sums<'r> {
    pub(super) shape: Shape,
    backend: Backend,
    units: &'r mut [Unit],
    benches: Vec<Mutex<&'r mut [u8]>>,
    /// True until something is added: what is there before means nothing.
    is_empty: bool,
}

impl<'r> Sums<'r> {
    pub(super) fn new(
        rows: usize,
        block_len: usize,
        backend: Backend,
        room: &'r mut AreaRoom,
    ) -> Result<Sums<'r>, AreaError> {
        check_block_len(block_len)?;
        let shape = Shape::new(rows, block_len);
        let need = shape.len() * UNIT;
        if need > room.sums || Bench::len(shape) * UNIT > room.bench {
            return Err(AreaError::Room { need, space: room.sums });
        }
        let (sums, benches) = room.bytes.split_at_mut(room.sums);
        let benches = benches.chunks_exact_mut(room.bench).map(Mutex::new).collect();
        Ok(Sums { shape, backend, units: units_of(&mut sums[..need]), benches, is_empty: true })
    }

    /// Adds the inverse transforms of rows from position `first` on, a multiple of the rows of a transform and of a
    /// group.
    pub(super) fn add(&mut self, executor: &dyn Executor, first: usize, rows: &[Option<&[u8]>]) {
        let (shape, backend, benches, is_empty) = (self.shape, self.backend, &self.benches, self.is_empty);
        let strips = self.units.chunks_mut(shape.strip_len()).enumerate().collect();
        for_each(executor, strips, |(strip, sums): (usize, &mut [Unit])| {
            let mut bench = take_bench(benches);
            let at = strip * shape.units * UNIT;
            let mut strip = Strip { shape, backend, at, sums, is_empty };
            strip.add(&mut Bench::new(&mut bench, shape), first, rows);
        });
        self.is_empty = false;
    }

    /// Calls `job` with each strip, the memory of a thread, columns of `rows`, and the place of the strip in these
    /// columns.
    /// `rows` are blocks, or none.
    pub(super) fn for_each_strip(
        &mut self,
        executor: &dyn Executor,
        rows: &mut [&mut [u8]],
        job: impl Fn(&mut [Unit], &mut Bench<'_>, &mut [&mut [u8]], usize) + Sync,
    ) {
        let (shape, benches) = (self.shape, &self.benches);
        let strips = shape.block.div_ceil(shape.units);
        // Each thread takes a few parts, so that none waits long for the others.
        let parts = if executor.width() == 1 { 1 } else { (4 * executor.width()).min(strips) };
        let per_part = strips.div_ceil(parts);
        let sums = self.units.chunks_mut(per_part * shape.strip_len());
        let mut items: Vec<(&mut [Unit], Vec<&mut [u8]>)> =
            sums.map(|sums| (sums, Vec::with_capacity(rows.len()))).collect();
        for row in rows.iter_mut() {
            let columns = row.chunks_mut(per_part * shape.units * UNIT);
            items.iter_mut().zip(columns).for_each(|((_, rows), columns)| rows.push(columns));
        }
        for_each(executor, items, |(sums, mut rows)| {
            let mut bench = take_bench(benches);
            for (strip, sums) in sums.chunks_mut(shape.strip_len()).enumerate() {
                let at = strip * shape.units * UNIT;
                job(sums, &mut Bench::new(&mut bench, shape), &mut rows, at);
            }
        });
    }
}

/// The memory of a thread that no other one uses, or the next that becomes free.
fn take_bench<'b, 'r>(benches: &'b [Mutex<&'r mut [u8]>]) -> MutexGuard<'b, &'r mut [u8]> {
    for bench in benches {
        match bench.try_lock() {
            Ok(bench) => return bench,
            Err(TryLockError::Poisoned(bench)) => return bench.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    crate::executor::lock(&benches[0])
}

/// A strip, while rows are added to its sums.
struct Strip<'s> {
    shape: Shape,
    backend: Backend,
    /// The first byte of the strip in a block.
    at: usize,
    sums: &'s mut [Unit],
    is_empty: bool,
}

impl Strip<'_> {
    fn add(&mut self, bench: &mut Bench<'_>, first: usize, rows: &[Option<&[u8]>]) {
        let coset_len = self.shape.groups() * GROUP;
        for (coset, here) in rows.chunks(coset_len).enumerate() {
            if here.iter().any(Option::is_some) {
                let base = first + coset * coset_len;
                // The same columns of the next coset, or those of the next strip.
                let next = match rows.get((coset + 1) * coset_len..) {
                    None | Some([]) => Columns { rows, at: self.at + self.shape.units * UNIT },
                    Some(rows) => Columns { rows, at: self.at },
                };
                self.add_coset(bench, base, Columns { rows: here, at: self.at }, next);
                self.is_empty = false;
            }
        }
        if self.is_empty {
            self.sums.fill([[0; LINE]; 2]);
        }
    }

    /// Adds a coset. `next` is what will be added next.
    fn add_coset(&mut self, bench: &mut Bench<'_>, base: usize, rows: Columns<'_>, next: Columns<'_>) {
        let (shape, backend) = (self.shape, self.backend);
        if shape.groups() == 1 {
            let at = Position { base, layers: shape.layers() };
            return backend.near_rows(at, rows, next, bench.near, self.sums, !self.is_empty);
        }
        let len = self.sums.len() / shape.groups();
        for (g, group) in bench.groups.chunks_exact_mut(shape.distance()).enumerate() {
            let (here, after) = (group_of(rows, g), group_of(rows, g + 1));
            let after = if after.rows.is_empty() { group_of(next, 0) } else { after };
            if here.rows.iter().any(Option::is_some) {
                let at = Position { base: base + g * GROUP, layers: 6 };
                backend.near_rows(at, here, after, bench.near, &mut group[..len], false);
            } else {
                group.fill([[0; LINE]; 2]);
            }
        }
        backend.far_inverse(base, bench.sheet(), self.sums, !self.is_empty);
    }
}

/// Group `g` of some rows: 64, fewer at their end, or none.
fn group_of(columns: Columns<'_>, g: usize) -> Columns<'_> {
    let rows = columns.rows.get(g * GROUP..).unwrap_or_default();
    Columns { rows: &rows[..GROUP.min(rows.len())], ..columns }
}
