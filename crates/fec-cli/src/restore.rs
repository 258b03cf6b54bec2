//! Decoding an encoding, set by set, on all threads.

use crate::archive::ranges::Ranges;
use crate::archive::{GroupEntry, Load, Records};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::stages::{self, Observed, Stage};
use crate::sys::threads::{Threads, share};
use fec_core::executor::Executor;
use fec_core::params::Shape;
use fec_core::set::{PlanCache, Run, SetDecoder, SetError, Undecoded};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Where restored payload goes. Called from several threads.
pub(crate) trait Sink: Sync {
    /// Puts `bytes` at `offset` of the payload.
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()>;
}

/// A sink that drops everything: for checks.
pub(crate) struct Nowhere;

impl Sink for Nowhere {
    fn put(&self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// What became of the sets.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Sets that were decoded and proved by their codeword.
    pub(crate) proved_sets: u64,
    /// Of those, sets in which an original shard was missing or damaged.
    pub(crate) mended_sets: u64,
    /// Sets with too few shards. A set may hold no payload at all, so that nothing else tells.
    pub(crate) lost_sets: u64,
    /// Records that were read and passed, as far as they were needed.
    pub(crate) intact_records: u64,
    /// Records that were read and did not pass.
    pub(crate) damaged_records: u64,
    /// Payload proved by the codeword of its set.
    pub(crate) by_codeword: u64,
    /// Payload proved only by its own path, in sets that cannot be decoded.
    pub(crate) by_path: Ranges,
    /// Payload that is lost.
    pub(crate) lost: Ranges,
    /// The first set that the root binds and that breaks a rule.
    pub(crate) untrue: Option<(u32, u32, SetError)>,
    /// The first record that could not be read.
    pub(crate) unreadable: Option<String>,
}

impl Outcome {
    /// Whether every set was restored.
    pub(crate) fn is_whole(&self) -> bool {
        self.lost_sets == 0 && self.untrue.is_none()
    }

    /// Adds what became of other sets.
    pub(crate) fn absorb(&mut self, other: Outcome) {
        self.proved_sets += other.proved_sets;
        self.mended_sets += other.mended_sets;
        self.lost_sets += other.lost_sets;
        self.intact_records += other.intact_records;
        self.damaged_records += other.damaged_records;
        self.by_codeword += other.by_codeword;
        other.by_path.list().iter().for_each(|r| self.by_path.add(r.start, r.end));
        other.lost.list().iter().for_each(|r| self.lost.add(r.start, r.end));
        self.untrue = self.untrue.take().or(other.untrue);
        self.unreadable = self.unreadable.take().or(other.unreadable);
    }
}

/// Decoders that no run is using. A command that runs once for each group keeps them from one group to the
/// next: memory that comes from and goes back to the allocator in ever new threads is not given back to the
/// system, and adds up far above the budget.
#[derive(Debug, Default)]
pub(crate) struct SpareDecoders(Mutex<Vec<(Shape, SetDecoder)>>);

impl SpareDecoders {
    fn fits(made_for: &Shape, largest: &Shape) -> bool {
        made_for.code == largest.code && made_for.shard_len >= largest.shard_len
    }

    /// Drops what a run with `workers` decoders for sets up to `largest` has no use for, before it takes any.
    fn trim(&self, workers: usize, largest: &Shape) {
        let mut spare = self.0.lock().unwrap_or_else(|e| e.into_inner());
        spare.retain(|(made_for, _)| SpareDecoders::fits(made_for, largest));
        spare.truncate(workers);
    }

    fn take(&self, largest: &Shape) -> (Shape, SetDecoder) {
        let spare = self.0.lock().unwrap_or_else(|e| e.into_inner()).pop();
        let spare = spare.filter(|(made_for, _)| SpareDecoders::fits(made_for, largest));
        spare.unwrap_or_else(|| (*largest, SetDecoder::for_payload(largest)))
    }

    fn put_back(&self, decoder: (Shape, SetDecoder)) {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).push(decoder);
    }
}

/// How to restore.
pub(crate) struct Restorer<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) plans: &'a PlanCache,
    /// Bytes that the decoders may take together.
    pub(crate) budget: u64,
    /// Original shards of sets that cannot be decoded go out too, when their own path proves them.
    pub(crate) partial: bool,
    pub(crate) progress: Option<&'a Progress>,
    /// Decoders of earlier runs.
    pub(crate) spare: SpareDecoders,
}

impl Restorer<'_> {
    /// Decodes all sets of `groups` into `sink`.
    ///
    /// # Errors
    /// Those of the sink. What is wrong with the records is in the outcome.
    pub(crate) fn run(
        &self,
        records: &dyn Records,
        groups: &[GroupEntry],
        sink: &dyn Sink,
    ) -> Result<Outcome> {
        let Some(largest) = groups.iter().map(|g| g.geometry.shape()).max_by_key(|s| s.set_bytes()) else {
            return Ok(Outcome::default());
        };
        // Sets of all groups are numbered through.
        let mut ends = Vec::with_capacity(groups.len());
        let mut sets = 0u64;
        for group in groups {
            sets += u64::from(group.geometry.shape().sets);
            ends.push(sets);
        }
        let (workers, inner) =
            share(self.settings.threads, sets, SetDecoder::payload_bytes(largest), self.budget);
        self.spare.trim(workers, largest);
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let total: Mutex<Result<Outcome>> = Mutex::new(Ok(Outcome::default()));
        Threads(workers).run(workers, &|_| {
            let (made_for, mut decoder) = self.spare.take(largest);
            let mut outcome = Outcome::default();
            let mut result = Ok(());
            while !stop.load(Ordering::Relaxed) {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= sets {
                    break;
                }
                let place = ends.partition_point(|end| *end <= nth);
                let group = &groups[place];
                let set = (nth - (ends[place] - u64::from(group.geometry.shape().sets))) as u32;
                result = self.set(records, group, set, &mut decoder, inner, sink, &mut outcome);
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            self.spare.put_back((made_for, decoder));
            let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
            match (&mut *total, result) {
                (Ok(sum), Ok(())) => sum.absorb(outcome),
                (Ok(_), Err(failure)) => *total = Err(failure),
                (Err(_), _) => {}
            }
        });
        total.into_inner().unwrap_or_else(|e| e.into_inner())
    }

    #[allow(clippy::too_many_arguments)] // One set's whole context, used in one place.
    fn set(
        &self,
        records: &dyn Records,
        group: &GroupEntry,
        set: u32,
        decoder: &mut SetDecoder,
        inner: Threads,
        sink: &dyn Sink,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let geometry = &group.geometry;
        let code = geometry.shape().code;
        stages::tell_work(code, geometry.shape().hash, self.settings.backend);
        let mut reading = decoder.begin(geometry, &group.root, set);
        for index in 0..code.n() as u32 {
            if reading.intact() == code.k() {
                break;
            }
            match records.load(geometry.number(), set, index, &mut reading) {
                Ok(Load::Damaged) => outcome.damaged_records += 1,
                Ok(_) => {}
                Err(e) => {
                    outcome.unreadable.get_or_insert_with(|| format!("shard {index} of set {set}: {e}"));
                }
            }
        }
        outcome.intact_records += reading.intact() as u64;
        let mended = (0..code.k() as u32).any(|i| !reading.is_intact(i));
        let decoded = reading.decode(self.plans, Run { executor: &inner, observer: &Observed });
        let ranges = (0..code.k()).filter_map(|i| {
            let len = geometry.shard_payload(set, i);
            (len > 0).then(|| (i as u32, group.start + geometry.shard_offset(set, i), len))
        });
        match decoded {
            Ok(decoded) => {
                outcome.proved_sets += 1;
                outcome.mended_sets += u64::from(mended);
                for (index, start, len) in ranges {
                    let _stage = stages::enter(Stage::Write, len as u64);
                    sink.put(start, &decoded.row(index)[..len])?;
                    outcome.by_codeword += len as u64;
                    self.advance(len);
                }
            }
            Err(Undecoded { error: SetError::TooFew { .. }, reading }) => {
                outcome.lost_sets += 1;
                for (index, start, len) in ranges {
                    if let Some(row) = reading.row(index) {
                        if self.partial {
                            sink.put(start, &row[..len])?;
                        }
                        outcome.by_path.add(start, start + len as u64);
                    } else {
                        outcome.lost.add(start, start + len as u64);
                    }
                    self.advance(len);
                }
            }
            Err(Undecoded { error, .. }) => {
                tracing::debug!("group {} set {set}: {error}", geometry.number());
                outcome.untrue.get_or_insert((geometry.number(), set, error));
            }
        }
        Ok(())
    }

    fn advance(&self, bytes: usize) {
        if let Some(progress) = self.progress {
            progress.add(bytes as u64);
        }
    }
}

/// The failure for a set that the root binds and that breaks a rule.
pub(crate) fn untrue(group: u32, set: u32, error: SetError) -> Failure {
    Failure::new(crate::failure::Exit::Untrue, format!("decode: group {group}, set {set}: {error}"))
        .help("nothing was restored: no choice of shards can give what the root stands for")
}
