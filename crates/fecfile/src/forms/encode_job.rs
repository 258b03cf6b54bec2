//! Encodes the sets of a group on all threads, each set to its own place.
//!
//! Each worker takes a few sets at a time. It gets their originals into its own buffers, from a payload of known length
//! or from remaining shards. It encodes and hashes these buffers, and hands every shard to a sink. Only the set roots
//! are kept.

use crate::error::{Action, Error, ErrorKind, Place, Result};
use crate::payload::Payload;
use fec_base::context::{Context, Gauge, Settings};
use fec_base::program::stages::{self, Observed, Stage};
use fec_base::threads::{Threads, share};
use fec_core::block::ShardBuf;
use fec_core::digest::Digest;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::merkle::Tree;
use fec_core::params::{GroupGeometry, Shape};
use fec_core::set::{EncodedSet, Run, SetEncoder};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Most sets that a worker takes at a time. Their shards are side by side in each file. Systems that cache files in
/// large pages write a byte faster in a long write than in several short ones.
const RUN: u64 = 4;

/// Gives the originals of the sets of a group. Several threads call it at once.
pub(crate) trait SetSource: Sync {
    /// Fills the rows of set `set`, padding included; returns its bytes of payload. The work on the set may use the
    /// threads of `inner`.
    ///
    /// # Errors
    /// Any error that must end the work.
    fn fill(&self, set: u32, rows: &mut ShardBuf, inner: Threads) -> Result<u64>;

    /// Fills the rows of consecutive sets from number `first` on, if that costs less than filling them one by one.
    /// Returns their bytes of payload; `None` if it does not.
    ///
    /// # Errors
    /// Any error that must end the work.
    fn fill_together(&self, _first: u32, _sets: &mut [&mut ShardBuf]) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// The sets of a group whose part of the payload begins at `start`.
pub(crate) struct PayloadSets<'a> {
    pub(crate) payload: &'a dyn Payload,
    pub(crate) group: GroupGeometry,
    pub(crate) start: u64,
}

impl SetSource for PayloadSets<'_> {
    fn fill(&self, set: u32, rows: &mut ShardBuf, _inner: Threads) -> Result<u64> {
        let mut payload = 0;
        for (i, row) in rows.iter_mut().enumerate() {
            let (bytes, padding) = row.split_at_mut(self.group.shard_payload(set, i));
            let _stage = stages::enter(Stage::Read, bytes.len() as u64);
            if !bytes.is_empty() {
                self.payload.read_at(self.start + self.group.shard_offset(set, i), bytes)?;
            }
            padding.fill(0);
            payload += bytes.len() as u64;
        }
        Ok(payload)
    }

    fn fill_together(&self, first: u32, sets: &mut [&mut ShardBuf]) -> Result<Option<u64>> {
        if !self.payload.gains_by_length() {
            return Ok(None);
        }
        let mut payload = 0;
        for i in 0..self.group.shape().code.k() {
            // Row `i` of consecutive sets is contiguous in the payload.
            let (mut parts, mut len) = (Vec::with_capacity(sets.len()), 0);
            for (set, rows) in (first..).zip(sets.iter_mut()) {
                let (bytes, padding) = rows.row_mut(i).split_at_mut(self.group.shard_payload(set, i));
                padding.fill(0);
                len += bytes.len() as u64;
                if !bytes.is_empty() {
                    parts.push(bytes);
                }
            }
            let _stage = stages::enter(Stage::Read, len);
            if len > 0 {
                self.payload.read_parts(self.start + self.group.shard_offset(first, i), &mut parts)?;
            }
            payload += len;
        }
        Ok(Some(payload))
    }
}

/// Takes the shards of sets as they are encoded. Several threads call it at once.
pub(crate) trait SetSink: Sync {
    /// Writes the shards of `sets`, which are consecutive from number `first` on.
    ///
    /// # Errors
    /// Any error that must end the work.
    fn write(&self, first: u32, sets: &[ShardsOfSet]) -> Result<()>;
}

/// A sink that drops the shards, for callers that only want the root.
pub(crate) struct Nowhere;

impl SetSink for Nowhere {
    fn write(&self, _first: u32, _sets: &[ShardsOfSet]) -> Result<()> {
        Ok(())
    }
}

/// A set and its shards.
pub(crate) struct ShardsOfSet {
    originals: ShardBuf,
    encoded: EncodedSet,
}

impl ShardsOfSet {
    /// Shard `index`.
    pub(crate) fn shard(&self, index: usize) -> &[u8] {
        match index.checked_sub(self.originals.rows()) {
            None => self.originals.row(index),
            Some(recovery) => self.encoded.recovery().row(recovery),
        }
    }

    /// The outline of shard `index`; empty if it has none.
    pub(crate) fn outline(&self, index: usize) -> &[Digest] {
        self.encoded.outline(index)
    }

    /// Writes the set path of the proof of shard `index`.
    pub(crate) fn write_path(&self, index: usize, out: &mut [u8]) {
        self.encoded.write_path(index, out);
    }
}

/// Unused buffers of sets. A caller that encodes group after group keeps them between groups: memory that ever new
/// threads take and give back adds up.
#[derive(Default)]
pub struct SpareRooms(Mutex<Vec<(Shape, Vec<ShardsOfSet>)>>);

impl SpareRooms {
    /// Buffers for `run` sets of a shape.
    fn take(&self, shape: &Shape, run: u32) -> Vec<ShardsOfSet> {
        let fits = |(made_for, room): &(Shape, Vec<ShardsOfSet>)| {
            (made_for.code, made_for.shard_len) == (shape.code, shape.shard_len) && room.len() >= run as usize
        };
        let spare = lock(&self.0).pop();
        let new = || ShardsOfSet {
            originals: ShardBuf::new(shape.code.k(), shape.shard_len),
            encoded: EncodedSet::new(shape),
        };
        spare.filter(fits).map_or_else(|| (0..run).map(|_| new()).collect(), |(_, room)| room)
    }
}

/// Refuses sets that do not fit the memory allowed.
///
/// # Errors
/// [`SetMemory`](ErrorKind::SetMemory).
pub(crate) fn check_memory(shape: &Shape, payload: &Place, settings: &Settings) -> Result<()> {
    let (need, most) = (shape.set_bytes(), settings.max_memory);
    if need > most {
        return Err(Error::at(Action::Encode, payload.clone(), ErrorKind::SetMemory { need, most }));
    }
    Ok(())
}

/// The work of encoding a group.
pub(crate) struct EncodeJob<'a> {
    source: &'a dyn SetSource,
    spare: &'a SpareRooms,
    group: GroupGeometry,
    sink: &'a dyn SetSink,
    encoder: SetEncoder,
    /// Sets that a worker takes at a time.
    run: u32,
    inner: Threads,
    meter: &'a Gauge<'a>,
    workers: usize,
    next: AtomicU64,
    stop: AtomicBool,
    set_roots: Mutex<Vec<Digest>>,
}

/// Number of sets that a worker takes at a time: as many as memory allows, but so few that all workers have work.
fn run_len(workers: usize, sets: u32, set_bytes: u64, budget: u64) -> u32 {
    let workers = workers as u64;
    let fit = budget / set_bytes.max(1) / workers;
    fit.min(RUN).min(u64::from(sets).div_ceil(workers)).max(1) as u32
}

impl<'a> EncodeJob<'a> {
    /// Prepares to encode the group's sets, which `source` gives.
    pub(crate) fn new(
        (source, spare): (&'a dyn SetSource, &'a SpareRooms),
        group: &GroupGeometry,
        sink: &'a dyn SetSink,
        meter: &'a Gauge<'a>,
        context: &Context<'_>,
    ) -> EncodeJob<'a> {
        let (settings, shape) = (&context.settings, group.shape());
        let (workers, inner) =
            share(settings.threads, shape.sets.into(), shape.set_bytes(), settings.max_memory);
        let run = run_len(workers, shape.sets, shape.set_bytes(), settings.max_memory);
        let (k, m) = (shape.code.k(), shape.code.m());
        let (sets, len) = (shape.sets, shape.shard_len);
        tracing::info!("{sets} sets of {k} + {m} shards of {len} bytes, {workers} times {run} at a time");
        stages::tell_work(shape.code, shape.hash, settings.backend);
        let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
        tracing::info!(
            "{} engine: {:?} a column",
            encoder.plan().engine().name(),
            encoder.plan().operations()
        );
        EncodeJob {
            source,
            spare,
            group: *group,
            sink,
            encoder,
            run,
            inner,
            meter,
            workers,
            next: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            set_roots: Mutex::new(vec![[0; 32]; sets as usize]),
        }
    }

    /// Encodes all sets; returns the tree over their roots.
    pub(crate) fn run(self) -> Result<Tree> {
        let first_error = Mutex::new(None);
        Threads(self.workers).run(self.workers, &|_| {
            if let Err(error) = self.work() {
                self.stop.store(true, Ordering::Relaxed);
                lock(&first_error).get_or_insert(error);
            }
        });
        into_value(first_error).map_or(Ok(()), Err)?;
        let mut tree = Tree::new();
        *tree.leaves_mut() = into_value(self.set_roots);
        tree.build(self.group.shape().hash);
        Ok(tree)
    }

    /// A worker: encodes sets until none is left.
    fn work(&self) -> Result<()> {
        let shape = self.group.shape();
        let mut room = self.spare.take(shape, self.run);
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.next.fetch_add(self.run.into(), Ordering::Relaxed);
            if first >= u64::from(shape.sets) {
                break;
            }
            self.meter.check()?;
            let sets = first as u32..u64::from(shape.sets).min(first + u64::from(self.run)) as u32;
            let room = &mut room[..sets.len()];
            let mut originals: Vec<&mut ShardBuf> = room.iter_mut().map(|room| &mut room.originals).collect();
            let together = self.source.fill_together(sets.start, &mut originals)?;
            let mut payload = together.unwrap_or(0);
            for (set, room) in sets.clone().zip(&mut *room) {
                if together.is_none() {
                    payload += self.source.fill(set, &mut room.originals, self.inner)?;
                }
                self.meter.check()?;
                self.encode(set, room);
            }
            self.sink.write(sets.start, room)?;
            self.meter.add(payload);
        }
        lock(&self.spare.0).push((*shape, room));
        Ok(())
    }

    /// Computes the shards of a set from its originals.
    fn encode(&self, set: u32, room: &mut ShardsOfSet) {
        let rows: Vec<&[u8]> = room.originals.iter().collect();
        let run = Run { executor: &self.inner, observer: &Observed };
        let root = self.encoder.encode(set, &rows, &mut room.encoded, run);
        lock(&self.set_roots)[set as usize] = root;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that fails for the first sets; writes of later sets wait for this failure.
    #[derive(Default)]
    struct Full {
        has_failed: AtomicBool,
        written: AtomicU64,
    }

    impl SetSink for Full {
        fn write(&self, first: u32, sets: &[ShardsOfSet]) -> Result<()> {
            if first == 0 {
                self.has_failed.store(true, Ordering::SeqCst);
                return Err(Error::new(Action::Write, ErrorKind::Io(std::io::ErrorKind::StorageFull.into())));
            }
            while !self.has_failed.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
            self.written.fetch_add(sets.len() as u64, Ordering::Relaxed);
            Ok(())
        }
    }

    /// Otherwise a full disk would be reported only after hours.
    #[test]
    fn when_one_worker_fails_the_others_stop() {
        let code = fec_core::block::Code::new(2, 1).unwrap();
        let hash = fec_core::digest::HashKind::Blake3;
        let payload = vec![1; 16 << 20];
        let form = fec_core::params::Form::Shards;
        let group = GroupGeometry::whole(form, hash, code, 8192, payload.size()).unwrap();
        assert!(group.shape().sets > 1000);
        let context = Context::new(Settings { threads: 2, ..Settings::default() });
        let (source, spare) = (PayloadSets { payload: &payload, group, start: 0 }, SpareRooms::default());
        let (sink, meter) = (Full::default(), context.meter(Action::Encode, None));
        let done = EncodeJob::new((&source, &spare), &group, &sink, &meter, &context).run();
        assert!(done.is_err_and(|error| matches!(error.kind, ErrorKind::Io(_))));
        let written = sink.written.into_inner();
        assert!(written < 500, "{written} of {} sets were written behind a failure", group.shape().sets);
    }

    #[test]
    fn runs_fit_memory_and_leave_work_for_all() {
        assert_eq!(run_len(1, 1000, 12 << 20, 96 << 20), 4);
        assert_eq!(run_len(2, 1000, 13 << 20, 96 << 20), 3);
        assert_eq!(run_len(2, 3, 12 << 20, 96 << 20), 2);
        assert_eq!(run_len(7, 1000, 13 << 20, 96 << 20), 1);
        assert_eq!(run_len(1, 1, 200 << 20, 96 << 20), 1);
    }
}
