//! A pass over the columns of a set: missing originals, recovery shards, and the digests of new rows.
//!
//! Pieces of columns are restored, extended and hashed one after the other, each while it is in the cache. Recovery
//! shards of which only the digests are wanted therefore need only the memory of a piece.

use super::run::Run;
use crate::block::{Plan, ShardBuf};
use crate::digest::{Columns, Digest, HashKind, Piece, blocks, sha256};
use crate::executor::{Executor, for_each};
use crate::observe::{Observer, Phase, Unobserved};

/// Bytes of each row that are coded into the memory of a piece and hashed there.
///
/// BLAKE3 hashes this many bytes of one row with lanes that are nearly full, and a hundred such rows leave space in a
/// second cache of one megabyte.
const PIECE_LEN: usize = 8 << 10;

/// Bytes of each row that are hashed together if all rows are kept: those of a leaf, so that outlines cost no more
/// hashing. Kept rows are coded whole before, since the kernels store large outputs past the caches: coding in pieces
/// took twice as long as hashing.
const KEPT_PIECE_LEN: usize = blocks::LEAF;

/// Bytes of each row in a piece that threads share: enough to pay for starting them.
const SHARED_PIECE_LEN: usize = 16 << 10;

/// Fewest bytes of all rows that are worth sharing among threads.
const SMALLEST_SHARE: usize = 64 << 10;

/// Fewest bytes of a row that are worth splitting.
const SMALLEST_CHUNK: usize = 16 << 10;

/// An original shard, or its part in a piece.
pub(super) enum Original<'a> {
    Known(&'a [u8]),
    Missing(&'a mut [u8]),
}

/// The rows of a pass, all of one length: a multiple of 64, and more than 0.
pub(super) struct PassRows<'a> {
    /// The rows from which missing originals are restored, in the order of the plan. Empty if none is missing.
    pub(super) known: Vec<&'a [u8]>,
    /// All originals in order.
    pub(super) originals: Vec<Original<'a>>,
    /// Rows for recovery shards, in the order of the plan. With `None` these shards are hashed and dropped.
    pub(super) recovery: Option<Vec<&'a mut [u8]>>,
}

impl<'a> PassRows<'a> {
    fn len(&self) -> usize {
        match &self.originals[0] {
            Original::Known(row) => row.len(),
            Original::Missing(row) => row.len(),
        }
    }

    /// Cuts the rows into pieces of columns.
    fn pieces(self, piece_len: usize) -> Vec<PassRows<'a>> {
        let empty = || PassRows {
            known: Vec::with_capacity(self.known.len()),
            originals: Vec::with_capacity(self.originals.len()),
            recovery: self.recovery.as_ref().map(|rows| Vec::with_capacity(rows.len())),
        };
        let mut out: Vec<PassRows> = (0..self.len().div_ceil(piece_len)).map(|_| empty()).collect();
        for row in self.known {
            out.iter_mut().zip(row.chunks(piece_len)).for_each(|(out, part)| out.known.push(part));
        }
        for row in self.originals {
            match row {
                Original::Known(row) => {
                    let parts = row.chunks(piece_len).map(Original::Known);
                    out.iter_mut().zip(parts).for_each(|(out, part)| out.originals.push(part));
                }
                Original::Missing(row) => {
                    let parts = row.chunks_mut(piece_len).map(Original::Missing);
                    out.iter_mut().zip(parts).for_each(|(out, part)| out.originals.push(part));
                }
            }
        }
        for row in self.recovery.into_iter().flatten() {
            for (out, part) in out.iter_mut().zip(row.chunks_mut(piece_len)) {
                out.recovery.get_or_insert_default().push(part);
            }
        }
        out
    }
}

/// The computations of a pass.
pub(super) struct SetPass<'a> {
    pub(super) hash: HashKind,
    /// From the known shards to the missing originals.
    pub(super) restore: Option<&'a Plan>,
    /// From all originals to recovery shards, if any are wanted.
    pub(super) extend: Option<&'a Plan>,
    /// True if known originals are hashed too.
    pub(super) hash_known: bool,
    /// True if there are rows that keep the recovery shards.
    pub(super) keeps_recovery: bool,
    /// The phase that the observer is told for the second plan.
    pub(super) phase: Phase,
}

/// The work of a thread: stretches of columns that are coded at once, each with the pieces in which it is hashed, and a
/// buffer.
type Job<'a, 'r> = (Vec<(PassRows<'a>, Vec<Piece<'a>>)>, &'r mut ShardBuf);

/// Buffers for pieces of recovery shards that are dropped, one for each thread, reused from set to set.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    rooms: Vec<ShardBuf>,
    rows: usize,
    piece_len: usize,
}

impl Scratch {
    /// Bytes of a thread's buffer of `rows` rows.
    pub(super) fn bytes(rows: usize) -> u64 {
        (rows * PIECE_LEN) as u64
    }

    /// `threads` buffers for pieces of `piece_len` bytes of `rows` rows.
    fn rooms(&mut self, threads: usize, rows: usize, piece_len: usize) -> &mut [ShardBuf] {
        if self.rows < rows || self.piece_len != piece_len {
            *self = Scratch { rooms: Vec::new(), rows, piece_len };
        }
        while self.rooms.len() < threads {
            self.rooms.push(ShardBuf::new(self.rows, self.piece_len));
        }
        &mut self.rooms[..threads]
    }
}

impl SetPass<'_> {
    /// Fills the missing originals and the recovery rows. Returns the digests of the originals (all, or the missing
    /// ones), then those of the recovery shards. `values` becomes the values of the pieces of these rows, row after
    /// row: none for rows of one piece, and none of SHA-256.
    pub(super) fn run(
        &self,
        rows: PassRows<'_>,
        scratch: &mut Scratch,
        mut values: Option<&mut Vec<Digest>>,
        run: Run<'_>,
    ) -> Vec<Digest> {
        if let Some(values) = &mut values {
            values.clear();
        }
        let missing = self.restore.map_or(0, |plan| plan.wanted().len());
        let originals = if self.hash_known { rows.originals.len() } else { missing };
        let hashed = originals + self.extended();
        if hashed == 0 {
            return Vec::new();
        }
        if rows.len() <= PIECE_LEN && (run.executor.width() == 1 || hashed * rows.len() <= SMALLEST_SHARE) {
            return self.at_once(rows, scratch, run);
        }
        match self.hash {
            HashKind::Blake3 => self.in_any_order(rows, hashed, (scratch, values), run),
            HashKind::Sha256 => self.in_order(rows, hashed, scratch, run),
        }
    }

    /// Short rows are a single piece.
    fn at_once(&self, mut rows: PassRows<'_>, scratch: &mut Scratch, run: Run<'_>) -> Vec<Digest> {
        let room = &mut scratch.rooms(1, self.dropped(), PIECE_LEN)[0];
        let fresh = self.code(&mut rows, room, run.observer, Plan::run);
        run.observer.begin(Phase::Digest);
        let digests = self.hash.digests(&fresh);
        run.observer.end(Phase::Digest, bytes(&fresh));
        digests
    }

    /// Each thread has columns of its own.
    fn in_any_order(
        &self,
        rows: PassRows<'_>,
        hashed: usize,
        (scratch, values): (&mut Scratch, Option<&mut Vec<Digest>>),
        Run { executor, observer }: Run<'_>,
    ) -> Vec<Digest> {
        let len = rows.len();
        let piece_len = if self.keeps_recovery { KEPT_PIECE_LEN } else { PIECE_LEN };
        let mut columns = Columns::new(hashed, len, piece_len);
        let mut pieces = columns.pieces();
        let count = len.div_ceil(piece_len);
        let threads = executor.width().min(count);
        // Number of pieces that are coded together.
        let stretch = if self.keeps_recovery { count.div_ceil(threads) } else { 1 };
        let mut stretches = rows.pieces(stretch * piece_len).into_iter();
        let share = stretches.len().div_ceil(threads);
        let mut jobs: Vec<Job> = Vec::with_capacity(threads);
        for room in scratch.rooms(threads, self.dropped(), piece_len).iter_mut() {
            let own = stretches.by_ref().take(share);
            jobs.push((own.map(|rows| (rows, pieces.by_ref().take(stretch).collect())).collect(), room));
        }
        drop((pieces, stretches));
        // Phases that run side by side have no times of their own.
        let (inside, outside): (&dyn Observer, &dyn Observer) =
            if threads == 1 { (observer, &Unobserved) } else { (&Unobserved, observer) };
        outside.begin(self.phase);
        for_each(executor, jobs, |(stretches, room)| {
            for (mut rows, pieces) in stretches {
                let fresh = self.code(&mut rows, room, inside, Plan::run);
                inside.begin(Phase::Digest);
                for (start, piece) in (0..).step_by(piece_len).zip(pieces) {
                    let parts = fresh.iter().map(|row| &row[start..row.len().min(start + piece_len)]);
                    piece.hash(&parts.collect::<Vec<_>>());
                }
                inside.end(Phase::Digest, bytes(&fresh));
            }
        });
        outside.end(self.phase, (hashed * len) as u64);
        columns.finish_keeping(values)
    }

    /// Every row is hashed from its start to its end, so threads share each piece.
    fn in_order(
        &self,
        rows: PassRows<'_>,
        hashed: usize,
        scratch: &mut Scratch,
        Run { executor, observer }: Run<'_>,
    ) -> Vec<Digest> {
        let len = rows.len();
        let piece_len = match (self.keeps_recovery, executor.width()) {
            (true, _) => len,
            (false, 1) => PIECE_LEN,
            (false, _) => SHARED_PIECE_LEN,
        };
        let room = &mut scratch.rooms(1, self.dropped(), piece_len)[0];
        let mut hashing = sha256::Rows::new(hashed);
        for mut rows in rows.pieces(piece_len) {
            let fresh =
                self.code(&mut rows, room, observer, |plan, src, dst| run_plan(executor, plan, src, dst));
            observer.begin(Phase::Digest);
            let share = hashed.div_ceil(executor.width());
            let jobs = hashing.shares(share).zip(fresh.chunks(share)).collect();
            for_each(executor, jobs, |(share, rows): (sha256::Share<'_>, &[&[u8]])| share.hash(rows));
            observer.end(Phase::Digest, bytes(&fresh));
        }
        hashing.finish(len)
    }

    /// Number of buffer rows for dropped shards.
    fn dropped(&self) -> usize {
        if self.keeps_recovery { 0 } else { self.extended() }
    }

    /// Number of recovery shards that are computed.
    fn extended(&self) -> usize {
        self.extend.map_or(0, |plan| plan.wanted().len())
    }

    /// Runs both plans on a piece, and returns the rows to be hashed.
    fn code<'r>(
        &self,
        rows: &'r mut PassRows<'_>,
        room: &'r mut ShardBuf,
        observer: &dyn Observer,
        run: impl Fn(&Plan, &[&[u8]], &mut [&mut [u8]]),
    ) -> Vec<&'r [u8]> {
        let len = rows.len();
        if let Some(restore) = self.restore {
            let missing = rows.originals.iter_mut().filter_map(|row| match row {
                Original::Known(_) => None,
                Original::Missing(row) => Some(&mut **row),
            });
            let mut missing: Vec<&mut [u8]> = missing.collect();
            observer.begin(Phase::Decode);
            run(restore, &rows.known, &mut missing);
            observer.end(Phase::Decode, (restore.wanted().len() * len) as u64);
        }
        let wanted = self.extended();
        let mut originals = Vec::with_capacity(rows.originals.len());
        let mut fresh = Vec::with_capacity(rows.originals.len() + wanted);
        for row in &rows.originals {
            let (row, is_fresh): (&[u8], bool) = match row {
                Original::Known(row) => (row, self.hash_known),
                Original::Missing(row) => (row, true),
            };
            originals.push(row);
            fresh.extend(is_fresh.then_some(row));
        }
        let Some(extend) = self.extend.filter(|_| wanted > 0) else { return fresh };
        observer.begin(self.phase);
        match &mut rows.recovery {
            Some(rows) => {
                run(extend, &originals, rows);
                fresh.extend(rows.iter().map(|row| &**row));
            }
            None => {
                room.set_row_len(len);
                let mut rows: Vec<&mut [u8]> = room.iter_mut().take(wanted).collect();
                run(extend, &originals, &mut rows);
                fresh.extend(rows.into_iter().map(|row| &*row));
            }
        }
        observer.end(self.phase, (wanted * len) as u64);
        fresh
    }
}

/// Sources and destinations of one range of columns.
type ColumnRange<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);

/// Runs a plan with the columns split over the threads.
fn run_plan(executor: &dyn Executor, plan: &Plan, src: &[&[u8]], dst: &mut [&mut [u8]]) {
    let len = src.first().map_or(0, |row| row.len());
    let chunk = len.div_ceil(executor.width()).next_multiple_of(64).max(SMALLEST_CHUNK);
    if dst.is_empty() {
        return;
    }
    if chunk >= len {
        return plan.run(src, dst);
    }
    let mut jobs: Vec<ColumnRange> = Vec::new();
    for start in (0..len).step_by(chunk) {
        jobs.push((src.iter().map(|row| &row[start..len.min(start + chunk)]).collect(), Vec::new()));
    }
    for row in dst {
        jobs.iter_mut().zip(row.chunks_mut(chunk)).for_each(|(job, part)| job.1.push(part));
    }
    for_each(executor, jobs, |(src, mut dst)| plan.run(&src, &mut dst));
}

/// Bytes of all rows.
fn bytes(rows: &[&[u8]]) -> u64 {
    rows.iter().map(|row| row.len() as u64).sum()
}
