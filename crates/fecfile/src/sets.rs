//! One walk over all sets of an encoding, on all threads: each set is loaded, checked and decoded, and handed whole to
//! a visitor. Restoring and verifying are visitors.

use crate::context::{Context, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::forms::encoded::{GroupEntry, Load, Records};
use crate::report::Outcome;
use crate::stages::{self, Observed};
use crate::threads::{Threads, share};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::params::Shape;
use fec_core::set::{Decoded, PlanCache, Reading, Run, SetDecoder, SetError};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Takes sets as they are decoded. Called from several threads.
pub trait SetVisitor: Sync {
    /// Whether all n rows of a decoded set are wanted, or the originals only.
    fn wants_recovery(&self) -> bool {
        false
    }

    /// A set that was decoded, and proved by its codeword.
    ///
    /// # Errors
    /// Whatever must end the walk.
    fn decoded(&self, set: &SetEntry<'_>, rows: &Decoded<'_>) -> Result<()>;

    /// A set with too few shards, of which the intact ones are proved by their own paths.
    ///
    /// # Errors
    /// Whatever must end the walk.
    fn undecoded(&self, _set: &SetEntry<'_>, _rows: &Reading<'_>) -> Result<()> {
        Ok(())
    }
}

/// A visitor that looks at nothing: whether sets can be decoded, the walk itself tells.
pub struct Nobody;

impl SetVisitor for Nobody {
    fn decoded(&self, _set: &SetEntry<'_>, _rows: &Decoded<'_>) -> Result<()> {
        Ok(())
    }
}

/// Which set it is.
#[derive(Clone, Copy, Debug)]
pub struct SetEntry<'a> {
    /// Its group.
    pub group: &'a GroupEntry,
    /// Its number in the group.
    pub set: u32,
}

impl SetEntry<'_> {
    /// For each original that holds payload: its index, where that stands in the whole payload, and how many bytes it is.
    pub fn originals(&self) -> impl Iterator<Item = (u32, u64, usize)> {
        let (geometry, set, start) = (self.group.geometry, self.set, self.group.start);
        (0..geometry.shape().code.k()).filter_map(move |i| {
            let len = geometry.shard_payload(set, i);
            (len > 0).then(|| (i as u32, start + geometry.shard_offset(set, i), len))
        })
    }
}

/// Decoders that no walk is using. An operation that walks once for each group keeps them from one group to the
/// next: memory that comes from and goes back to the allocator in ever new threads is not given back to the
/// system, and adds up far above the budget.
#[derive(Debug, Default)]
pub struct SpareDecoders(Mutex<Vec<(Shape, SetDecoder)>>);

impl SpareDecoders {
    fn fits(made_for: &Shape, largest: &Shape) -> bool {
        made_for.code == largest.code && made_for.shard_len >= largest.shard_len
    }

    /// Drops what a walk with `workers` decoders for sets up to `largest` has no use for, before it takes any.
    fn trim(&self, workers: usize, largest: &Shape) {
        let mut spare = lock(&self.0);
        spare.retain(|(made_for, _)| SpareDecoders::fits(made_for, largest));
        spare.truncate(workers);
    }

    fn take(&self, largest: &Shape, wants_recovery: bool) -> (Shape, SetDecoder) {
        let spare = lock(&self.0).pop();
        spare.filter(|(made_for, _)| SpareDecoders::fits(made_for, largest)).unwrap_or_else(|| {
            let new = if wants_recovery { SetDecoder::new } else { SetDecoder::for_payload };
            (*largest, new(largest))
        })
    }

    fn put_back(&self, decoder: (Shape, SetDecoder)) {
        lock(&self.0).push(decoder);
    }
}

/// How to walk.
pub struct SetWalk<'a> {
    /// Threads and kernel.
    pub context: Context<'a>,
    /// Plans by what is lost.
    pub plans: &'a PlanCache,
    /// Bytes that the decoders may take together.
    pub budget: u64,
    /// Counts the payload that was walked over.
    pub meter: Option<&'a dyn Meter>,
    /// Decoders of earlier walks, for visitors that want the same rows.
    pub spare: SpareDecoders,
}

impl<'a> SetWalk<'a> {
    /// A walk with all the memory that is allowed.
    pub fn new(context: &Context<'a>, plans: &'a PlanCache) -> SetWalk<'a> {
        let budget = context.settings.max_memory;
        SetWalk { context: *context, plans, budget, meter: None, spare: SpareDecoders::default() }
    }

    /// Decodes all sets of `groups` and shows each to `visitor`.
    ///
    /// # Errors
    /// Those of the visitor. What is wrong with the records is in the outcome.
    pub fn run(
        &self,
        records: &dyn Records,
        groups: &[GroupEntry],
        visitor: &dyn SetVisitor,
    ) -> Result<Outcome> {
        let Some(largest) = groups.iter().map(|g| g.geometry.shape()).max_by_key(|s| s.set_bytes()) else {
            return Ok(Outcome::default());
        };
        let order = SetOrder::new(groups);
        let decoder_bytes = match visitor.wants_recovery() {
            true => largest.set_bytes(),
            false => SetDecoder::payload_bytes(largest),
        };
        let (workers, inner) = share(self.context.settings.threads, order.sets(), decoder_bytes, self.budget);
        self.spare.trim(workers, largest);
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let total: Mutex<Result<Outcome>> = Mutex::new(Ok(Outcome::default()));
        Threads(workers).run(workers, &|_| {
            let (made_for, mut decoder) = self.spare.take(largest, visitor.wants_recovery());
            let mut outcome = Outcome::default();
            let mut result = Ok(());
            while !stop.load(Ordering::Relaxed) {
                let Some(set) = order.set(next.fetch_add(1, Ordering::Relaxed)) else { break };
                result = self.set(records, &set, &mut decoder, inner, visitor, &mut outcome);
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
        into_value(total)
    }

    fn set(
        &self,
        records: &dyn Records,
        set: &SetEntry<'_>,
        decoder: &mut SetDecoder,
        inner: Threads,
        visitor: &dyn SetVisitor,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let GroupEntry { geometry, root, .. } = set.group;
        stages::tell_work(geometry.shape().code, geometry.shape().hash, self.context.settings.backend);
        let mut reading = decoder.begin(geometry, root, set.set);
        load(records, set, &mut reading, outcome);
        outcome.intact_records += reading.intact() as u64;
        let k = geometry.shape().code.k() as u32;
        let is_mended = (0..k).any(|i| !reading.is_intact(i));
        match reading.decode(self.plans, Run { executor: &inner, observer: &Observed }) {
            Ok(rows) => {
                outcome.proved_sets += 1;
                outcome.mended_sets += u64::from(is_mended);
                visitor.decoded(set, &rows)?;
                outcome.by_codeword += set.originals().map(|(.., len)| len as u64).sum::<u64>();
            }
            Err(undecoded) => match undecoded.error {
                SetError::TooFew { .. } => {
                    outcome.lost_sets += 1;
                    visitor.undecoded(set, &undecoded.reading)?;
                    for (index, start, len) in set.originals() {
                        let is_proved = undecoded.reading.is_intact(index);
                        let ranges = if is_proved { &mut outcome.by_path } else { &mut outcome.lost };
                        ranges.add(start, start + len as u64);
                    }
                }
                error => {
                    tracing::debug!("group {} set {}: {error}", geometry.number(), set.set);
                    outcome.untrue.get_or_insert((geometry.number(), set.set, error));
                }
            },
        }
        if let Some(meter) = self.meter {
            meter.add(set.originals().map(|(.., len)| len as u64).sum());
        }
        Ok(())
    }
}

/// Loads shards until k of them are intact: as many as are lacking at a time, in the order of their numbers.
fn load(records: &dyn Records, set: &SetEntry<'_>, reading: &mut Reading<'_>, outcome: &mut Outcome) {
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

/// The sets of all groups, numbered consecutively.
struct SetOrder<'a> {
    groups: &'a [GroupEntry],
    /// For each group, the number after its last set.
    ends: Vec<u64>,
}

impl<'a> SetOrder<'a> {
    fn new(groups: &'a [GroupEntry]) -> SetOrder<'a> {
        let mut sets = 0;
        let ends = groups.iter().map(|group| {
            sets += u64::from(group.geometry.shape().sets);
            sets
        });
        SetOrder { groups, ends: ends.collect() }
    }

    fn sets(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Set number `nth`, if there is one.
    fn set(&self, nth: u64) -> Option<SetEntry<'a>> {
        let place = self.ends.partition_point(|end| *end <= nth);
        let group = self.groups.get(place)?;
        let first = self.ends[place] - u64::from(group.geometry.shape().sets);
        Some(SetEntry { group, set: (nth - first) as u32 })
    }
}

/// The error for a set that the root binds and that breaks a rule.
pub(crate) fn untrue((group, set, cause): (u32, u32, SetError)) -> Error {
    Error::new("decode", ErrorKind::Untrue { group, set, cause })
}
