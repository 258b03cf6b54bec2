//! Scrubs the protected files: examines a part of them at a time, again and again, until all were examined.

mod state;

use crate::Sidecar;
use crate::catalog::positions::Positions;
use crate::examine::look::{Files, Looked, Survey};
use crate::examine::looker::{CHUNK, Job};
use crate::examine::recovery::{Recovery, RecoveryFound, RecoveryJob};
use crate::examine::{EntryReport, Examined, Scope, State as EntryState};
use fec_base::context::Context;
use fec_base::error::{Action, Result};
use fec_base::io::base::Base;
use fec_base::io::temporary::{parent, remove_stale};
use fec_core::format::sidecar::EntryKind;
use fec_core::random::SplitMix64;
use state::{Finding, Known, State};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The choice of what to examine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scrub<'a> {
    /// The file that remembers when each file was last examined. Files with the oldest examination come first.
    pub state: Option<&'a Path>,
    /// Files examined within this time are left out.
    pub older_than: Option<Duration>,
    /// Nothing more is begun after this time.
    pub budget: Option<Duration>,
    /// The share of all bytes, in parts of 10,000, that is chosen at random.
    pub sample: Option<u32>,
}

/// The work done, and the work left.
#[must_use = "damage and losses are no errors"]
#[derive(Clone, Debug, Default)]
pub struct Scrubbed {
    /// Bytes of files and of the sidecar that were examined.
    pub looked_len: u64,
    /// Files that were examined to their end.
    pub looked_files: u64,
    /// Files that are due and were not, or not wholly, examined.
    pub due_files: u64,
    /// The age of the oldest examination; `None` if a file or the sidecar was never examined.
    pub oldest: Option<Duration>,
    /// Files found damaged when they were last examined, before this run.
    pub damaged_before: u64,
    /// Those of them whose damage could not be mended.
    pub lost_before: u64,
    /// True if the sidecar was found damaged when it was last examined, before this run.
    pub sidecar_was_damaged: bool,
}

/// A file or the sidecar.
#[derive(Clone, Copy, Debug)]
enum Item {
    Sidecar,
    File(u32),
}

/// The interval at which the state is written.
const SAVE_EVERY: Duration = Duration::from_secs(30);
/// Chunks that are examined between two looks at the clock for that.
const BATCH: usize = 1024;

/// Examines a part of the files and of the sidecar, and the stats of all.
///
/// Memory: as [`examine`](crate::examine::examine), and 24 bytes more for each entry.
///
/// # Errors
/// [`SidecarError::NotAState`](crate::SidecarError::NotAState); those of the base and of the state. A file that cannot
/// be read is part of the result.
pub fn scrub(
    sidecar: &Sidecar,
    base: &Base,
    how: &Scrub<'_>,
    context: &Context<'_>,
) -> Result<(Examined, Scrubbed)> {
    let started = Instant::now();
    let until = how.budget.and_then(|budget| started.checked_add(budget));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut state = match how.state {
        Some(path) => State::load(path, sidecar, now)?,
        None => State::new(sidecar),
    };
    if let Some(path) = how.state {
        remove_stale(parent(path), context.progress);
        // A state that cannot be written fails now, rather than after hours.
        state.save(path, sidecar, context.settings.sync)?;
    }
    let positions = Positions::of(&sidecar.catalog);
    let total = how.sample.is_none().then(|| due_len(sidecar, &state, how, now));
    let meter = context.meter(Action::Verify, total);
    let files = Files { sidecar, base, positions: &positions, meter: &meter, scope: Scope::Part };
    let recovery = Recovery::new(sidecar, &positions, &meter);
    let survey = files.survey();
    let mut run = Run {
        sidecar,
        files,
        recovery,
        survey,
        found: RecoveryFound::new(recovery_shards(sidecar)),
        done: Scrubbed::default(),
        ended: Vec::new(),
        has_ended_sidecar: false,
        now,
        until,
        saved: started,
        context,
    };
    match how.sample {
        Some(parts) => run.sample(parts),
        None => run.oldest_first(&mut state, how)?,
    }
    // Findings so far stand in the state that was saved last.
    meter.check()?;
    let Run { files, mut survey, found, mut done, ended, has_ended_sidecar, .. } = run;
    files.look_again(&mut survey, context)?;
    meter.finish();
    let mut examined = files.conclude(survey)?;
    examined.add_sidecar(sidecar, &positions, found);
    (done.damaged_before, done.lost_before) = note_files(&mut state, &examined, &ended, now);
    if let Some(path) = how.state {
        done.sidecar_was_damaged = note_sidecar(&mut state, &examined, has_ended_sidecar, now);
        state.save(path, sidecar, context.settings.sync)?;
        done.count_left(&state, &files.survey().files, how, now);
    }
    Ok((examined, done))
}

fn recovery_shards(sidecar: &Sidecar) -> u64 {
    sidecar.catalog.groups.iter().map(|group| group.recovery()).sum()
}

/// Bytes of the files and of the sidecar that have to be examined.
fn due_len(sidecar: &Sidecar, state: &State, how: &Scrub<'_>, now: u64) -> u64 {
    let due = sidecar.catalog.files().filter(|(nth, _)| is_due(&state.files[*nth], how, now));
    let of_files: u64 =
        due.map(|(nth, file)| file.size.saturating_sub(state.files[nth].next.saturating_mul(CHUNK))).sum();
    let of_sidecar = recovery_shards(sidecar) * u64::from(sidecar.catalog.block);
    of_files + if is_due(&state.sidecar, how, now) { of_sidecar } else { 0 }
}

/// Notes the findings on files in the state. `ended` are the files whose last chunk was examined, and that may be
/// damaged. Returns the number of files that were found damaged before, and that this run does not report itself, and
/// how many of them could not be mended.
fn note_files(state: &mut State, examined: &Examined, ended: &[usize], now: u64) -> (u64, u64) {
    let is_damage = |report: &EntryReport| {
        // A file that was changed under its old time may be damaged: it is looked at again the next time.
        let may_be =
            matches!(report.state, EntryState::Rotten | EntryState::Changed | EntryState::Unreadable);
        may_be && !report.is_denied()
    };
    // This run reports missing and edited files itself.
    let is_told = |nth: &usize| examined.entries.binary_search_by_key(nth, |report| report.entry).is_ok();
    let is_untold = |(nth, known): &(usize, &Known)| known.is_damaged() && !is_told(nth);
    let has_untold = state.files.iter().enumerate().any(|known| is_untold(&known));
    for report in examined.entries.iter().filter(|report| is_damage(report)) {
        let known = &mut state.files[report.entry];
        known.finding = Finding::Damaged;
        // With what was not looked at now, as much may be lost as before.
        known.is_lost &= has_untold;
        known.is_lost |= examined.margin.damaged_entries.contains(&(report.entry as u32));
    }
    ended.iter().for_each(|nth| state.files[*nth].end(now));
    let before = || state.files.iter().enumerate().filter(is_untold);
    (before().count() as u64, before().filter(|(_, known)| known.is_lost).count() as u64)
}

/// Notes the findings on the sidecar in the state. Returns whether it was found damaged before, and not in this run.
fn note_sidecar(state: &mut State, examined: &Examined, has_ended: bool, now: u64) -> bool {
    let is_damaged = examined.recovery_damaged + examined.recovery_displaced > 0;
    if is_damaged {
        state.sidecar.finding = Finding::Damaged;
    }
    if has_ended {
        state.sidecar.end(now);
    }
    !is_damaged && state.sidecar.is_damaged()
}

impl Scrubbed {
    /// Counts the files that are due, and tells the age of the oldest examination. `files` are those that can be read.
    fn count_left(&mut self, state: &State, files: &[u32], how: &Scrub<'_>, now: u64) {
        let known = |nth: &u32| state.files[*nth as usize];
        let times = || files.iter().map(known).chain([state.sidecar]);
        self.oldest = match times().all(|known| known.time > 0) {
            true => times().map(|known| Duration::from_secs(now - known.time)).max(),
            false => None,
        };
        let is_left = |known: Known| (known.time < now || known.next > 0) && is_due(&known, how, now);
        self.due_files = files.iter().filter(|nth| is_left(known(nth))).count() as u64;
    }
}

/// Tells whether a file or the sidecar has to be examined.
fn is_due(known: &Known, how: &Scrub<'_>, now: u64) -> bool {
    let age = Duration::from_secs(now.saturating_sub(known.time));
    let is_old = how.older_than.is_none_or(|older| age >= older);
    known.next > 0 || known.time == 0 || is_old || known.is_damaged()
}

/// A scrub in progress.
struct Run<'a> {
    sidecar: &'a Sidecar,
    files: Files<'a>,
    recovery: Recovery<'a>,
    survey: Survey,
    found: RecoveryFound,
    done: Scrubbed,
    /// Files whose last chunk was examined, and that may be damaged. The end of the run decides.
    ended: Vec<usize>,
    /// True if the last recovery shard was examined.
    has_ended_sidecar: bool,
    now: u64,
    until: Option<Instant>,
    saved: Instant,
    context: &'a Context<'a>,
}

impl Run<'_> {
    /// Examines the files with the oldest examination first, until the time is over.
    fn oldest_first(&mut self, state: &mut State, how: &Scrub<'_>) -> Result<()> {
        let mut items: Vec<(u64, Item)> = vec![(state.sidecar.time, Item::Sidecar)];
        items.extend(self.survey.files.iter().map(|nth| (state.files[*nth as usize].time, Item::File(*nth))));
        items.retain(|(_, item)| {
            let known = match item {
                Item::Sidecar => &state.sidecar,
                Item::File(nth) => &state.files[*nth as usize],
            };
            is_due(known, how, self.now)
        });
        // Equal times go by path. The sidecar comes first, since all files need it.
        items.sort_by_key(|(time, _)| *time);
        let mut jobs: Vec<Job> = Vec::new();
        for (_, item) in items {
            match item {
                Item::Sidecar => {
                    if !self.look_at_files(&mut jobs, state) || !self.look_at_recovery(state) {
                        return Ok(());
                    }
                }
                Item::File(nth) => {
                    let next = state.files[nth as usize].next;
                    let all = self.files.jobs(nth);
                    let next = if next < all.size_hint().0 as u64 { next } else { 0 };
                    if next == 0 {
                        state.files[nth as usize].begin();
                    }
                    for job in all.skip(next as usize) {
                        jobs.push(job);
                        if jobs.len() < BATCH {
                            continue;
                        }
                        if !self.look_at_files(&mut jobs, state) {
                            return Ok(());
                        }
                        if let Some(path) = how.state
                            && self.saved.elapsed() >= SAVE_EVERY
                        {
                            state.save(path, self.sidecar, false)?;
                            self.saved = Instant::now();
                        }
                    }
                }
            }
        }
        self.look_at_files(&mut jobs, state);
        Ok(())
    }

    /// Examines chunks of files, each from some chunk to its end. Returns false if the time is over.
    fn look_at_files(&mut self, jobs: &mut Vec<Job>, state: &mut State) -> bool {
        let looked = self.files.look_at(jobs, self.until, self.context);
        let done = looked.done;
        let mut suspects = HashSet::new();
        let damage = |(nth, _): &(usize, bool)| self.files.is_damage(&self.survey, *nth);
        for (nth, is_damaged) in looked.suspects().filter(damage) {
            suspects.insert(nth);
            if is_damaged {
                // The damage is noted now, so that it stays known if this run is interrupted.
                state.files[nth].finding = Finding::Damaged;
            }
        }
        let denied = looked.denied();
        self.add(looked, &jobs[..done]);
        let seen = jobs[..done].chunk_by(|a, b| a.entry == b.entry);
        for of_file in seen.filter(|of_file| !denied.contains(&of_file[0].entry)) {
            let last = of_file[of_file.len() - 1];
            let nth = last.entry as usize;
            let is_whole = last.is_last();
            self.done.looked_files += u64::from(is_whole);
            match (is_whole, suspects.contains(&nth)) {
                (false, _) => state.files[nth].next = last.chunk + 1,
                (true, false) => state.files[nth].end(self.now),
                (true, true) => self.ended.push(nth),
            }
        }
        let is_all = done == jobs.len();
        jobs.clear();
        is_all
    }

    /// Takes over the findings.
    fn add(&mut self, looked: Looked, jobs: &[Job]) {
        for job in jobs {
            if let EntryKind::File(file) = &self.sidecar.catalog.entries[job.entry as usize].kind {
                self.done.looked_len += (file.size - job.chunk * CHUNK).min(CHUNK);
            }
        }
        self.survey.add(looked);
    }

    /// Examines recovery shards from where the last run stopped. Returns false if the time is over.
    fn look_at_recovery(&mut self, state: &mut State) -> bool {
        let jobs = self.recovery.jobs();
        let start = usize::try_from(state.sidecar.next).ok().filter(|start| *start < jobs.len()).unwrap_or(0);
        if start == 0 {
            state.sidecar.begin();
        }
        let done = self.recovery.look_at(&jobs[start..], self.until, &mut self.found, self.context);
        self.count(&jobs[start..start + done]);
        self.has_ended_sidecar = start + done == jobs.len();
        if !self.has_ended_sidecar {
            state.sidecar.next = (start + done) as u64;
        }
        self.has_ended_sidecar
    }

    fn count(&mut self, jobs: &[RecoveryJob]) {
        let shards: u64 = jobs.iter().map(RecoveryJob::shards).sum();
        self.done.looked_len += shards * u64::from(self.sidecar.catalog.block);
    }

    /// Examines a random part of everything, in random order.
    fn sample(&mut self, parts: u32) {
        // The system seeds this once for each process.
        let seed = RandomState::new().hash_one(self.now);
        let mut random = SplitMix64::new(seed);
        let mut is_drawn = || random.next() % 10_000 < u64::from(parts);
        let mut jobs: Vec<Job> = self.survey.files.iter().flat_map(|nth| self.files.jobs(*nth)).collect();
        jobs.retain(|_| is_drawn());
        let mut of_recovery = self.recovery.jobs();
        of_recovery.retain(|_| is_drawn());
        let is_limited = self.until.is_some();
        let mut shuffle = |len: usize, swap: &mut dyn FnMut(usize, usize)| {
            for at in (1..len).filter(|_| is_limited).rev() {
                swap(at, (random.next() % (at as u64 + 1)) as usize);
            }
        };
        shuffle(jobs.len(), &mut |a, b| jobs.swap(a, b));
        shuffle(of_recovery.len(), &mut |a, b| of_recovery.swap(a, b));
        let done = self.recovery.look_at(&of_recovery, self.until, &mut self.found, self.context);
        self.count(&of_recovery[..done]);
        let looked = self.files.look_at(&jobs, self.until, self.context);
        let done = looked.done;
        self.add(looked, &jobs[..done]);
    }
}
