//! Walks over all sets of an encoding, on all threads: each set is loaded, checked and decoded, and handed whole to a
//! visitor. Restoring and verifying are visitors. Sets without any shard count as lost without a look, so that the work
//! follows the shards that exist and not the claims of a header.
//!
//! A worker takes a whole set, and as many workers run as memory allows. Further threads split a set. A worker loads
//! shards until k are intact, decodes them, and hands the set to the visitor. The visitor also sees a set with too few
//! shards, because its own path proves each intact one. A visitor gets the k originals, or all n shards on request.
//! `verify --deep` and the choice between encodings visit nothing: the `Outcome` of the walk is their answer.

use crate::error::{Action, EncodingError, Error, Result};
use crate::forms::encoded::{Load, Records};
use crate::groups::{GroupEntry, Groups};
use crate::losses::{self, Losses};
use crate::report::Outcome;
use fec_base::context::{Context, Gauge};
use fec_base::program::stages::{self, Observed};
use fec_base::threads::{Threads, share};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::params::Shape;
use fec_core::set::{Decoded, PlanCache, Reading, Run, SetDecoder, SetError};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Receives sets as they are decoded. Called from several threads.
pub trait SetVisitor: Sync {
    /// Tells whether the visitor needs all n rows of a decoded set, or the originals only.
    fn wants_recovery(&self) -> bool {
        false
    }

    /// A set was decoded: all its originals are proved.
    ///
    /// # Errors
    /// Whatever must end the walk.
    fn decoded(&self, set: &SetEntry, rows: &Decoded<'_>) -> Result<()>;

    /// A set has too few shards. Its intact shards are proved by their own paths.
    ///
    /// # Errors
    /// Whatever must end the walk.
    fn undecoded(&self, _set: &SetEntry, _rows: &Reading<'_>) -> Result<()> {
        Ok(())
    }
}

/// A visitor that ignores the sets: the walk itself tells whether they can be decoded.
pub struct Nobody;

impl SetVisitor for Nobody {
    fn decoded(&self, _set: &SetEntry, _rows: &Decoded<'_>) -> Result<()> {
        Ok(())
    }
}

/// A set of an encoding.
#[derive(Clone, Copy, Debug)]
pub struct SetEntry {
    /// The group of the set.
    pub group: GroupEntry,
    /// The set's number in the group.
    pub set: u32,
}

impl SetEntry {
    /// Each original that holds payload: its index, the position of that payload in the whole payload, and its bytes.
    pub fn originals(&self) -> impl Iterator<Item = (u32, u64, usize)> {
        let (geometry, set, start) = (self.group.geometry, self.set, self.group.start);
        (0..geometry.shape().code.k()).filter_map(move |i| {
            let len = geometry.shard_payload(set, i);
            (len > 0).then(|| (i as u32, start + geometry.shard_offset(set, i), len))
        })
    }
}

/// Decoders that no walk is using. An operation that walks once for each group keeps them between groups: memory that
/// new threads allocate and free again is not given back to the system, and adds up far above the budget.
#[derive(Debug, Default)]
pub struct SpareDecoders(Mutex<Vec<(Shape, SetDecoder)>>);

impl SpareDecoders {
    fn fits(made_for: &Shape, largest: &Shape) -> bool {
        made_for.code == largest.code && made_for.shard_len >= largest.shard_len
    }

    /// Drops decoders that a walk with `workers` decoders for sets up to `largest` cannot use, before it takes any.
    fn trim(&self, workers: usize, largest: &Shape) {
        let mut spare = lock(&self.0);
        spare.retain(|(made_for, _)| SpareDecoders::fits(made_for, largest));
        spare.truncate(workers);
    }

    pub(crate) fn take(&self, largest: &Shape, wants_recovery: bool) -> (Shape, SetDecoder) {
        let spare = lock(&self.0).pop();
        spare.filter(|(made_for, _)| SpareDecoders::fits(made_for, largest)).unwrap_or_else(|| {
            let new = if wants_recovery { SetDecoder::new } else { SetDecoder::for_payload };
            (*largest, new(largest))
        })
    }

    pub(crate) fn put_back(&self, decoder: (Shape, SetDecoder)) {
        lock(&self.0).push(decoder);
    }
}

/// A walk over sets, with its options.
pub struct SetWalk<'a> {
    /// Threads and kernel.
    pub context: Context<'a>,
    /// Decoding plans, by lost shards.
    pub plans: &'a PlanCache,
    /// Bytes that the decoders may take together.
    pub budget: u64,
    /// Counts the payload bytes of the sets that were walked over.
    pub meter: Option<&'a Gauge<'a>>,
    /// Require every set to be a codeword, recovery shards included.
    pub strict: bool,
    /// Decoders of earlier walks, for visitors that need the same rows.
    pub spare: SpareDecoders,
}

impl<'a> SetWalk<'a> {
    /// A walk that may use all the allowed memory.
    pub fn new(context: &Context<'a>, plans: &'a PlanCache) -> SetWalk<'a> {
        let budget = context.settings.max_memory;
        SetWalk {
            context: *context,
            plans,
            budget,
            meter: None,
            strict: false,
            spare: SpareDecoders::default(),
        }
    }

    /// Decodes all sets of `groups` and hands each to `visitor`.
    ///
    /// # Errors
    /// Those of the visitor. Faults of the records are in the outcome.
    pub fn run(
        &self,
        records: &dyn Records,
        groups: &Groups<'_>,
        visitor: &dyn SetVisitor,
    ) -> Result<Outcome> {
        let largest = groups.largest();
        let decoder_bytes = match visitor.wants_recovery() {
            true => largest.set_bytes(),
            false => SetDecoder::payload_bytes(largest),
        };
        let (workers, inner) =
            share(self.context.settings.threads, groups.sets(), decoder_bytes, self.budget);
        self.spare.trim(workers, largest);
        let queue = Mutex::new(SetQueue::new(groups, records));
        let stop = AtomicBool::new(false);
        let total: Mutex<Result<Outcome>> = Mutex::new(Ok(Outcome::default()));
        Threads(workers).run(workers, &|_| {
            let (made_for, mut decoder) = self.spare.take(largest, visitor.wants_recovery());
            let mut outcome = Outcome::default();
            let mut result = Ok(());
            while !stop.load(Ordering::Relaxed) {
                let Some(set) = lock(&queue).next() else { break };
                result = self
                    .context
                    .check(Action::Decode)
                    .and_then(|()| self.set(records, &set, &mut decoder, inner, visitor, &mut outcome));
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                    break;
                }
            }
            self.spare.put_back((made_for, decoder));
            let mut total = lock(&total);
            match (&mut *total, result) {
                (Ok(sum), Ok(())) => sum.absorb(outcome),
                (Ok(_), Err(error)) => *total = Err(error),
                (Err(_), _) => {}
            }
        });
        let mut outcome = into_value(total)?;
        outcome.losses.absorb(into_value(queue).absent);
        let losses = std::mem::take(&mut outcome.losses);
        outcome.lost_sets += losses.sets();
        let (lost, by_path) = losses.payload(groups);
        outcome.lost.absorb(&lost);
        outcome.by_path.absorb(&by_path);
        Ok(outcome)
    }

    fn set(
        &self,
        records: &dyn Records,
        set: &SetEntry,
        decoder: &mut SetDecoder,
        inner: Threads,
        visitor: &dyn SetVisitor,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let GroupEntry { geometry, tree, .. } = &set.group;
        stages::tell_work(geometry.shape().code, geometry.shape().hash, self.context.settings.backend);
        let mut reading = decoder.begin(geometry, tree, set.set);
        load(records, set, &mut reading, outcome);
        outcome.intact_records += reading.intact() as u64;
        let k = geometry.shape().code.k() as u32;
        let is_mended = (0..k).any(|i| !reading.is_intact(i));
        let run = Run { executor: &inner, observer: &Observed };
        let decoded = match self.strict {
            true => reading.decode_strictly(self.plans, run),
            false => reading.decode(self.plans, run),
        };
        let payload: u64 = set.originals().map(|(.., len)| len as u64).sum();
        match decoded {
            Ok(rows) => {
                visitor.decoded(set, &rows)?;
                outcome.count_proved(payload, is_mended);
            }
            Err(undecoded) => match undecoded.error {
                SetError::TooFew { .. } => {
                    visitor.undecoded(set, &undecoded.reading)?;
                    let lost = (0..k).filter(|index| !undecoded.reading.is_intact(*index));
                    let sets = set.set..set.set + 1;
                    outcome.losses.add(geometry.number(), sets, losses::originals(lost));
                }
                SetError::NotACodeword if !self.strict && !visitor.wants_recovery() => {
                    self.decode_from_all(records, set, run, visitor, outcome)?;
                }
                error => outcome.count_untrue(set, error),
            },
        }
        if let Some(meter) = self.meter {
            meter.add(payload);
        }
        Ok(())
    }

    /// Decodes a set from all its shards, after the first recovery shards turned out not to match its originals: others
    /// may match.
    fn decode_from_all(
        &self,
        records: &dyn Records,
        set: &SetEntry,
        run: Run<'_>,
        visitor: &dyn SetVisitor,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let GroupEntry { geometry, tree, .. } = &set.group;
        let mut decoder = SetDecoder::for_payload_from_all(geometry.shape());
        let mut reading = decoder.begin(geometry, tree, set.set);
        let all: Vec<u32> = (0..geometry.shape().code.n() as u32).collect();
        records.load(geometry.number(), set.set, &all, &mut reading);
        match reading.decode(self.plans, run) {
            Ok(rows) => {
                visitor.decoded(set, &rows)?;
                outcome.count_proved(set.originals().map(|(.., len)| len as u64).sum(), true);
            }
            Err(undecoded) => outcome.count_untrue(set, undecoded.error),
        }
        Ok(())
    }
}

impl Outcome {
    fn count_proved(&mut self, payload: u64, is_mended: bool) {
        self.proved_sets += 1;
        self.mended_sets += u64::from(is_mended);
        self.restored += payload;
    }

    fn count_untrue(&mut self, set: &SetEntry, error: SetError) {
        let group = set.group.geometry.number();
        tracing::debug!("group {group} set {}: {error}", set.set);
        self.untrue.get_or_insert((group, set.set, error));
    }
}

/// Loads shards until k of them are intact: as many at a time as are lacking, in the order of their numbers.
pub(crate) fn load(records: &dyn Records, set: &SetEntry, reading: &mut Reading<'_>, outcome: &mut Outcome) {
    let code = set.group.geometry.shape().code;
    let mut rest = 0..code.n() as u32;
    loop {
        let batch: Vec<u32> = rest.by_ref().take(code.k() - reading.intact()).collect();
        if batch.is_empty() {
            return;
        }
        let states = records.load(set.group.geometry.number(), set.set, &batch, reading);
        for (index, state) in batch.into_iter().zip(states) {
            match state {
                Load::Intact | Load::Missing => {}
                Load::Damaged => outcome.damaged_records += 1,
                Load::Unreadable(e) => {
                    outcome
                        .unreadable
                        .get_or_insert_with(|| format!("shard {index} of set {}: {e}", set.set));
                }
            }
        }
    }
}

/// The sets of all groups that may have any shard, one after the other.
struct SetQueue<'a> {
    groups: &'a Groups<'a>,
    records: &'a dyn Records,
    /// The current group, counted from the first of `groups`.
    nth: usize,
    present: VecDeque<Range<u32>>,
    /// Sets that were passed over, since nothing of them is there.
    absent: Losses,
}

impl<'a> SetQueue<'a> {
    fn new(groups: &'a Groups<'a>, records: &'a dyn Records) -> SetQueue<'a> {
        let mut queue =
            SetQueue { groups, records, nth: 0, present: VecDeque::new(), absent: Losses::default() };
        queue.enter();
        queue
    }

    /// Finds the present sets of the group that begins.
    fn enter(&mut self) {
        if self.nth == self.groups.len() {
            return;
        }
        let geometry = self.groups.get(self.nth).geometry;
        let sets = geometry.shape().sets;
        self.present = self.records.present(geometry.number(), sets).into();
        if self.present.is_empty() {
            self.absent.add_group(geometry.number(), sets);
            return;
        }
        let mut passed = 0;
        for range in &self.present {
            self.absent.add(geometry.number(), passed..range.start, losses::ALL);
            passed = range.end;
        }
        self.absent.add(geometry.number(), passed..sets, losses::ALL);
    }

    fn next(&mut self) -> Option<SetEntry> {
        while self.nth < self.groups.len() {
            if let Some(range) = self.present.front_mut() {
                if let Some(set) = range.next() {
                    return Some(SetEntry { group: self.groups.get(self.nth), set });
                }
                self.present.pop_front();
            } else {
                self.nth += 1;
                self.enter();
            }
        }
        None
    }
}

/// The error for a set that the root binds and that breaks a rule.
pub fn untrue((group, set, cause): (u32, u32, SetError)) -> Error {
    Error::new(Action::Decode, EncodingError::Untrue { group, set, cause })
}
