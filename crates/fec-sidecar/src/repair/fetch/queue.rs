//! The queue of jobs, the mirrors that take them, and what came of each answer.

use super::asked::Asked;
use super::jobs::{Blocks, Job, Jobs, Work};
use super::tails::{Judged, Tails};
use crate::catalog::bits::Bits;
use crate::catalog::proved::proved;
use crate::catalog::stash::Stash;
use crate::mirrors::{Mirrors, OfMirror};
use crate::mirrors::{NoAnswer, Way};
use crate::repair::task::{Damage, Task};
use fec_base::context::{Cancel, Gauge};
use fec_base::error::{Action, Error, Result};
use fec_base::threads::Threads;
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::EntryKind;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Most requests to a mirror at the same time. The first right answer takes one.
const REQUESTS: u64 = 4;
/// Most bytes of all requests to a mirror, unless a block is longer.
const IN_FLIGHT: u64 = 8 << 20;
/// Most files that share a block and are asked for, one after the other.
const ROUNDS: usize = 64;
/// Longest time that a thread waits before it looks again whether there is work.
const NOTICE: Duration = Duration::from_millis(100);
/// A mirror whose first answer fails after so long is left.
const LONG: Duration = Duration::from_secs(20);
/// Most bytes of tails that are kept for comparison with what other mirrors have.
const MOST_KEPT: usize = 32 << 20;

/// Blocks that were fetched: the first position, the number, and the offset in the stash.
pub(super) type Placed = (u64, u64, u64);

/// All that a fetch works with.
pub(super) struct Queue<'a> {
    task: &'a Task<'a>,
    damage: &'a Damage,
    wanted: &'a Bits,
    mirrors: &'a Mirrors<'a>,
    /// Tells whether nothing but one file is protected.
    is_only: bool,
    state: Mutex<State<'a>>,
    changed: Condvar,
    /// Ends the requests under way.
    cancel: Cancel,
    meter: Gauge<'a>,
}

/// The state that all threads share.
pub(super) struct State<'a> {
    pub(super) jobs: Jobs,
    pub(super) got: Bits,
    stash: &'a mut Stash,
    placed: Vec<Placed>,
    /// Wanted positions that nobody has got.
    left: u64,
    /// Jobs that a mirror tried in vain. Others take them from here.
    pub(super) returned: Vec<Option<Job>>,
    pub(super) flying: HashMap<u64, Flight>,
    flights: u64,
    pub(super) asked: Vec<Asked>,
    /// Bytes of tails that are kept.
    kept: usize,
    error: Option<Error>,
    /// Nothing more is asked for.
    is_over: bool,
}

/// A request under way.
pub(super) struct Flight {
    pub(super) mirror: usize,
    pub(super) started: Instant,
    /// The same job, until another mirror takes it too.
    pub(super) double: Option<Job>,
}

/// The answer to a job.
struct Answer {
    /// The blocks that are right, or why there are none.
    blocks: std::result::Result<Vec<bool>, NoAnswer>,
    judged: Judged,
    requests: u64,
    received: u64,
    way: Option<Way>,
    /// Tails that the mirror does not have: entry, offset and reason.
    none: Vec<(NoAnswer, (u32, u64))>,
    took: Duration,
}

impl<'a> Queue<'a> {
    pub(super) fn new(
        task: &'a Task<'a>,
        damage: &'a Damage,
        (wanted, mirrors): (&'a Bits, &'a Mirrors<'a>),
        (got, stash): (Bits, &'a mut Stash),
    ) -> Queue<'a> {
        let catalog = &task.sidecar.catalog;
        let left = wanted.count() - got.count();
        let state = State {
            jobs: Jobs::new(0, 0, catalog.block.into()),
            got,
            stash,
            placed: Vec::new(),
            left,
            returned: Vec::new(),
            flying: HashMap::new(),
            flights: 0,
            asked: mirrors.list.iter().map(|mirror| Asked::new(mirror.name())).collect(),
            kept: 0,
            error: None,
            is_over: false,
        };
        Queue {
            task,
            damage,
            wanted,
            mirrors,
            is_only: catalog.files().count() == 1,
            state: Mutex::new(state),
            changed: Condvar::new(),
            cancel: task.context.cancel.map_or_else(Cancel::default, Cancel::child),
            meter: task.context.meter(Action::Fetch, Some(left * u64::from(catalog.block))),
        }
    }

    /// Fetches as much of what is wanted as the mirrors have.
    ///
    /// # Errors
    /// Those of the stash; that the caller has ended it.
    pub(super) fn run(&self) -> Result<()> {
        let catalog = &self.task.sidecar.catalog;
        for round in 0..ROUNDS {
            let mut state = lock(&self.state);
            state.jobs = Jobs::new(round, catalog.positions(), catalog.block.into());
            state.returned.clear();
            state.kept = 0;
            state.asked.iter_mut().for_each(|asked| asked.cursor = 0);
            if state.left == 0 || self.mirrors.list.is_empty() {
                break;
            }
            drop(state);
            let requests = (IN_FLIGHT / u64::from(catalog.block)).clamp(1, REQUESTS) as usize;
            let workers = self.mirrors.list.len() * requests;
            Threads(workers).run(workers, &|worker| self.work(worker % self.mirrors.list.len()));
            self.meter.check()?;
            let mut state = lock(&self.state);
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if !state.jobs.has_any() {
                break;
            }
        }
        self.meter.finish();
        Ok(())
    }

    /// The positions that were got, where those that were fetched are, and the part of each mirror.
    pub(super) fn into_parts(self) -> (Bits, Vec<Placed>, Vec<OfMirror>) {
        let state = into_value(self.state);
        (state.got, state.placed, state.asked.into_iter().map(|asked| asked.of).collect())
    }

    /// Takes jobs for a mirror until there are none.
    fn work(&self, mirror: usize) {
        let mut bytes = Vec::new();
        while let Some((flight, mut job)) = self.next(mirror) {
            let started = Instant::now();
            let way = lock(&self.state).asked[mirror].way;
            // A mirror that panics must not be waited for.
            let asked = catch_unwind(AssertUnwindSafe(|| self.ask(mirror, way, &mut job, &mut bytes)));
            let mut answer = asked.unwrap_or_else(|panic| {
                lock(&self.state).is_over = true;
                self.cancel.cancel();
                resume_unwind(panic)
            });
            answer.took = started.elapsed();
            self.note((mirror, flight), job, answer, &bytes);
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    /// The next job for a mirror. Waits while one may come back from another.
    fn next(&self, mirror: usize) -> Option<(u64, Job)> {
        let mut state = lock(&self.state);
        loop {
            if state.left == 0 || state.is_over || self.meter.is_cancelled() {
                return None;
            }
            if let Some(job) = state.take(mirror, (&self.damage.positions, self.wanted)) {
                let double = Some(Job { work: job.work.anew(), tried: job.tried | 1 << mirror });
                state.flights += 1;
                let flight = state.flights;
                state.flying.insert(flight, Flight { mirror, started: Instant::now(), double });
                state.asked[mirror].flying += 1;
                return Some((flight, job));
            }
            if state.flying.is_empty() || state.asked[mirror].of.left.is_some() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, NOTICE);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    /// Asks a mirror for a job. Bytes of blocks are in `bytes` then, and so is a block of tails that is right.
    fn ask(&self, mirror: usize, way: Option<Way>, job: &mut Job, bytes: &mut Vec<u8>) -> Answer {
        let sidecar = self.task.sidecar;
        let block = u64::from(sidecar.catalog.block);
        let mut answer = Answer {
            blocks: Err(NoAnswer::Absent),
            judged: Judged::Open,
            requests: 0,
            received: 0,
            way: None,
            none: Vec::new(),
            took: Duration::ZERO,
        };
        match &mut job.work {
            Work::Blocks(blocks) => {
                bytes.resize((blocks.count * block) as usize, 0);
                let read = self.read(mirror, way, (blocks.entry, blocks.offset), bytes, &mut answer);
                answer.blocks = read.map(|()| proved(sidecar, &self.damage.positions, blocks.first, bytes));
            }
            Work::Tails(tails) => {
                let positions = &self.damage.positions;
                let lacks: Vec<(u32, u64)> = {
                    let state = lock(&self.state);
                    let lacks = &state.asked[mirror].lacks;
                    let of = positions.within(tails.position..tails.position + 1);
                    of.filter_map(|span| Some((span.entry, *lacks.get(&span.entry)?))).collect()
                };
                let (judged, right) = tails.ask((self.task, self.damage), |span| {
                    if lacks.iter().any(|(entry, from)| *entry == span.entry && span.offset >= *from) {
                        return None;
                    }
                    let mut tail = vec![0; span.len as usize];
                    match self.read(mirror, way, (span.entry, span.offset), &mut tail, &mut answer) {
                        Ok(()) => Some(tail.into()),
                        Err(why) => {
                            answer.none.push((why, (span.entry, span.offset)));
                            None
                        }
                    }
                });
                answer.judged = judged;
                if let Some(right) = right {
                    *bytes = right;
                    answer.blocks = Ok(vec![true]);
                }
            }
        }
        answer
    }

    /// Reads bytes of an entry from a mirror, by each way that may lead there unless one is known.
    fn read(
        &self,
        mirror: usize,
        way: Option<Way>,
        (entry, offset): (u32, u64),
        out: &mut [u8],
        answer: &mut Answer,
    ) -> std::result::Result<(), NoAnswer> {
        let entry = &self.task.sidecar.catalog.entries[entry as usize];
        debug_assert!(matches!(entry.kind, EntryKind::File(_)), "only files have bytes");
        let of = self.mirrors.list[mirror];
        let all = Way::all(&entry.path, of.last_part(), self.is_only);
        // The way to another file is the likely one, and not the only one.
        let ways = way.into_iter().chain(all.into_iter().filter(|other| Some(*other) != way));
        let mut none = NoAnswer::Absent;
        for (way, key) in ways.filter_map(|way| Some((way, way.key(&entry.path)?))) {
            answer.requests += 1;
            match of.read(key, offset, out, &self.cancel) {
                Ok(()) => {
                    answer.received += out.len() as u64;
                    answer.way = Some(way);
                    return Ok(());
                }
                Err(NoAnswer::Absent) => {}
                // Another way may lead to the file that is meant.
                Err(why @ (NoAnswer::Short | NoAnswer::Denied(_) | NoAnswer::Broken(_))) => none = why,
                Err(why) => return Err(why),
            }
        }
        Err(none)
    }

    /// Takes in the answer to a job.
    fn note(&self, (mirror, flight): (usize, u64), mut job: Job, answer: Answer, bytes: &[u8]) {
        let mut state = lock(&self.state);
        state.flying.remove(&flight);
        let asked = &mut state.asked[mirror];
        asked.flying -= 1;
        asked.of.requests += answer.requests;
        asked.of.received += answer.received;
        if answer.received > 0 {
            asked.usual =
                if asked.usual.is_zero() { answer.took } else { (asked.usual * 3 + answer.took) / 4 };
        }
        if let (Err(NoAnswer::Failed(why)), true) = (&answer.blocks, asked.right == 0 && answer.took > LONG) {
            asked.leave(why.as_str());
        }
        answer.none.iter().for_each(|(why, of)| asked.note_none(why, *of));
        job.tried |= 1 << mirror;
        let tried = job.tried;
        match job.work {
            Work::Blocks(blocks) => match answer.blocks {
                Ok(is_right) => {
                    self.note_blocks(&mut state, mirror, (blocks, tried), (&is_right, answer.way), bytes);
                }
                Err(why) => self.note_none(&mut state, mirror, (blocks, tried), &why),
            },
            Work::Tails(tails) => {
                self.note_tails(&mut state, mirror, (tails, tried), &answer, bytes);
            }
        }
        if state.left == 0 || state.is_over {
            // The requests under way are not needed.
            self.cancel.cancel();
        }
    }

    /// Takes in blocks: those that are right are kept, and others may have the rest.
    fn note_blocks(
        &self,
        state: &mut State<'_>,
        mirror: usize,
        (blocks, tried): (Blocks, u64),
        (is_right, way): (&[bool], Option<Way>),
        bytes: &[u8],
    ) {
        let is_open = |nth: u64| self.wanted.get(blocks.first + nth) && !state.got.get(blocks.first + nth);
        let open: Vec<bool> = (0..blocks.count).map(is_open).collect();
        let taken: Vec<bool> = open.iter().zip(is_right).map(|(open, right)| *open && *right).collect();
        match (is_right.contains(&true), open.contains(&true)) {
            (true, _) => state.asked[mirror].note_right(way),
            (false, true) => state.asked[mirror].note_wrong(),
            (false, false) => {}
        }
        self.keep(state, mirror, (blocks.first, &taken), bytes);
        let block = u64::from(self.task.sidecar.catalog.block);
        for (from, count) in runs(open.iter().zip(&taken).map(|(open, taken)| *open && !*taken)) {
            state.returned.push(Some(Job { work: Work::Blocks(blocks.part(from, count, block)), tried }));
        }
    }

    /// Takes in why there are no blocks.
    fn note_none(
        &self,
        state: &mut State<'_>,
        mirror: usize,
        (blocks, tried): (Blocks, u64),
        why: &NoAnswer,
    ) {
        let may_be_there = matches!(why, NoAnswer::Short | NoAnswer::Broken(_) | NoAnswer::Failed(_));
        if may_be_there && blocks.count > 1 {
            // The file ends within, or a place in it cannot be read: a part may be there.
            if let NoAnswer::Failed(_) = why {
                state.asked[mirror].note_none(why, (blocks.entry, blocks.offset));
            }
            let (half, block) = (blocks.count / 2, u64::from(self.task.sidecar.catalog.block));
            for (from, count) in [(0, half), (half, blocks.count - half)] {
                let work = Work::Blocks(blocks.part(from, count, block));
                state.returned.push(Some(Job { work, tried: tried & !(1 << mirror) }));
            }
            return;
        }
        state.asked[mirror].note_none(why, (blocks.entry, blocks.offset));
        state.returned.push(Some(Job { work: Work::Blocks(blocks), tried }));
    }

    /// Takes in tails: their block, if it is right, or what others may complete.
    fn note_tails(
        &self,
        state: &mut State<'_>,
        mirror: usize,
        (mut tails, tried): (Tails, u64),
        answer: &Answer,
        bytes: &[u8],
    ) {
        match answer.judged {
            Judged::Right => state.asked[mirror].note_right(answer.way),
            Judged::Wrong => state.asked[mirror].note_wrong(),
            Judged::Open => {}
        }
        match answer.blocks.is_ok() {
            true if state.got.get(tails.position) => {}
            true => self.keep(state, mirror, (tails.position, &[true]), bytes),
            false => {
                state.kept += tails.len();
                if state.kept > MOST_KEPT {
                    tails.forget();
                }
                state.returned.push(Some(Job { work: Work::Tails(tails), tried }));
            }
        }
    }

    /// Keeps the blocks that are taken, of those from position `first` on.
    fn keep(&self, state: &mut State<'_>, mirror: usize, (first, taken): (u64, &[bool]), bytes: &[u8]) {
        let block = u64::from(self.task.sidecar.catalog.block);
        for (from, count) in runs(taken.iter().copied()) {
            let of_run = &bytes[(from * block) as usize..((from + count) * block) as usize];
            match state.stash.add(first + from, of_run) {
                Ok(offset) => state.placed.push((first + from, count, offset)),
                Err(error) => {
                    state.error.get_or_insert(error);
                    state.is_over = true;
                    return;
                }
            }
            (from..from + count).for_each(|nth| state.got.set(first + nth));
            state.left -= count;
            state.asked[mirror].of.taken += count * block;
            self.meter.add(count * block);
        }
    }
}

/// The runs of what is true: the first of each, and its length.
fn runs(of: impl Iterator<Item = bool>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for (nth, _) in (0..).zip(of).filter(|(_, is)| *is) {
        match runs.last_mut().filter(|(first, count)| first + count == nth) {
            Some((_, count)) => *count += 1,
            None => runs.push((nth, 1)),
        }
    }
    runs
}
