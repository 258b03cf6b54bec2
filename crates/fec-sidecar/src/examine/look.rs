//! Examines protected files: their stats, and their bytes on all threads.

mod concluding;
mod folders;
mod policy;
mod unprotected;

use crate::Sidecar;
use crate::catalog::positions::Positions;
use crate::examine::by_stat::{ByStat, Known, state_by_stat, state_of_stat};
use crate::examine::findings::{Examined, Scope};
use crate::examine::looker::{CHUNK, FileReport, Job, Looker};
use crate::examine::selection::Selection;
use crate::examine::verdict::State;
use fec_base::context::{Context, Gauge};
use fec_base::error::Result;
use fec_base::io::base::{Base, file_type};
use fec_base::io::stats::Stats;
use fec_base::threads::Threads;
use fec_core::digest::{Digest, blocks};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The number of chunks of a file.
fn chunks(size: u64) -> u64 {
    size.div_ceil(CHUNK).max(1)
}

/// The findings on a file whose chunks are examined one by one.
struct Pending {
    left: usize,
    /// The value of each chunk.
    values: Vec<Option<Digest>>,
    report: FileReport,
    /// True if the last chunk was examined.
    has_end: bool,
    /// The recorded digest of the file.
    blake3: Digest,
}

impl Pending {
    fn new(chunks: u64, blake3: Digest) -> Pending {
        let left = chunks as usize;
        Pending { left, values: vec![None; left], report: FileReport::default(), has_end: false, blake3 }
    }

    /// Adds the value of a chunk, and the findings on it.
    fn add(&mut self, chunk: u64, value: Option<Digest>, report: FileReport) {
        let chunk = chunk as usize;
        self.values[chunk] = value;
        self.has_end |= chunk + 1 == self.values.len();
        self.report.bad.extend(report.bad);
        self.report.cause = self.report.cause.or(report.cause);
        self.report.len = self.report.len.max(report.len);
        self.left -= 1;
    }

    /// The report of a file whose chunks were all examined.
    fn complete(self) -> FileReport {
        let Pending { values, mut report, blake3, .. } = self;
        let values: Option<Vec<Digest>> = values.into_iter().collect();
        report.is_right = Some(values.is_some_and(|values| blocks::root(&values) == blake3));
        report.bad.sort_unstable_by_key(|range| range.start);
        report
    }

    /// The report of a file that was examined in part, unless there is nothing to report. Its tail has no digest of its
    /// own.
    fn in_part(self) -> Option<FileReport> {
        let Pending { mut report, has_end, .. } = self;
        if !has_end && report.is_clean() {
            return None;
        }
        report.is_part = true;
        report.bad.sort_unstable_by_key(|range| range.start);
        Some(report)
    }
}

/// The findings of all threads.
#[derive(Default)]
struct Collected {
    /// Files that were examined, and are not whole.
    done: Mutex<Vec<(usize, FileReport)>>,
    /// Files with chunks that were not examined yet.
    pending: Mutex<HashMap<u32, Pending>>,
}

impl Collected {
    /// Adds the report of a file, unless the file is whole.
    fn add_file(&self, entry: u32, report: FileReport) {
        if !report.is_whole() {
            lock(&self.done).push((entry as usize, report));
        }
    }

    /// Adds the value of a chunk, and the findings on it. `begin` is called for the first chunk of a file.
    fn add_chunk(
        &self,
        job: &Job,
        value: Option<Digest>,
        report: FileReport,
        begin: impl FnOnce() -> Pending,
    ) {
        let mut pending = lock(&self.pending);
        let of_file = pending.entry(job.entry).or_insert_with(begin);
        of_file.add(job.chunk, value, report);
        if of_file.left > 0 {
            return;
        }
        let whole = pending.remove(&job.entry);
        drop(pending);
        if let Some(whole) = whole {
            self.add_file(job.entry, whole.complete());
        }
    }

    /// All reports, those of files that were examined in part too.
    fn into_reports(self) -> Vec<(usize, FileReport)> {
        let mut reports = into_value(self.done);
        let in_part = |(entry, of_file): (u32, Pending)| Some((entry as usize, of_file.in_part()?));
        reports.extend(into_value(self.pending).into_iter().filter_map(in_part));
        reports
    }
}

/// The examination of files.
pub(crate) struct Files<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) positions: &'a Positions,
    pub(crate) meter: &'a Gauge<'a>,
    pub(crate) scope: Scope,
}

/// The findings from the stats of files, before any file is read.
pub(crate) struct Survey {
    states: Vec<State>,
    /// The facts about each file by its stat, and its fingerprint.
    facts: Vec<Known>,
    reports: Vec<(usize, FileReport)>,
    /// Files that can be read.
    pub(crate) files: Vec<u32>,
}

impl Survey {
    /// The state of an entry by its stat.
    pub(crate) fn state(&self, nth: usize) -> State {
        self.states[nth]
    }

    /// Adds findings on the bytes of files.
    pub(crate) fn add(&mut self, looked: Looked) {
        self.reports.extend(looked.reports);
    }
}

/// The findings on chunks.
pub(crate) struct Looked {
    reports: Vec<(usize, FileReport)>,
    /// The number of chunks, from the first on, that were examined in time.
    pub(crate) done: usize,
}

impl Looked {
    /// The entries with possible damage, and whether any damage was found.
    pub(crate) fn suspects(&self) -> impl Iterator<Item = (usize, bool)> {
        let seen = self.reports.iter().filter(|(_, report)| !report.is_denied());
        seen.map(|(nth, report)| (*nth, !report.is_clean()))
    }

    /// The entries that the reader has no permission for.
    pub(crate) fn denied(&self) -> HashSet<u32> {
        let denied = self.reports.iter().filter(|(_, report)| report.is_denied());
        denied.map(|(nth, _)| *nth as u32).collect()
    }
}

impl Files<'_> {
    /// Examines everything in the scope.
    pub(crate) fn look(&self, context: &Context<'_>) -> Result<Examined> {
        let mut survey = self.survey();
        if self.scope == Scope::All {
            let jobs: Vec<Job> = survey.files.iter().flat_map(|entry| self.jobs(*entry)).collect();
            survey.add(self.look_at(&jobs, None, context));
            self.meter.check()?;
            self.look_again(&mut survey, context)?;
        }
        self.conclude(survey)
    }

    /// Examines the bytes of the selected entries, and the stats of all.
    pub(crate) fn look_at_selected(&self, selection: &Selection, context: &Context<'_>) -> Result<Examined> {
        let mut survey = self.survey();
        let selected = survey.files.iter().filter(|entry| selection.has(**entry as usize));
        let jobs: Vec<Job> = selected.flat_map(|entry| self.jobs(*entry)).collect();
        survey.add(self.look_at(&jobs, None, context));
        self.meter.check()?;
        self.look_again(&mut survey, context)?;
        self.conclude(survey)
    }

    /// Looks once more at files that are not whole and that somebody wrote to while they were read: an edit during the
    /// examination is no damage.
    pub(crate) fn look_again(&self, survey: &mut Survey, context: &Context<'_>) -> Result<()> {
        let has_changed = |survey: &Survey, nth: usize| {
            let seen = survey.facts[nth].map(|(_, seen)| seen);
            seen.is_some() && seen != state_by_stat(self.sidecar, self.base, nth).facts.map(|(_, seen)| seen)
        };
        let mut again: Vec<usize> = survey.reports.iter().map(|(nth, _)| *nth).collect();
        again.sort_unstable();
        again.dedup();
        again.retain(|nth| has_changed(survey, *nth));
        if again.is_empty() {
            return Ok(());
        }
        survey.reports.retain(|(nth, _)| again.binary_search(nth).is_err());
        survey.files.clear();
        self.survey_entries(survey, again.iter().copied());
        let jobs: Vec<Job> = survey.files.iter().flat_map(|entry| self.jobs(*entry)).collect();
        survey.add(self.look_at(&jobs, None, context));
        self.meter.check()?;
        let bad: HashSet<usize> = survey.reports.iter().map(|(nth, _)| *nth).collect();
        for nth in again {
            if bad.contains(&nth) && survey.states[nth] != State::Missing && has_changed(survey, nth) {
                survey.states[nth] = State::Changing;
            }
        }
        Ok(())
    }

    /// Examines stats alone.
    pub(crate) fn survey(&self) -> Survey {
        let all = self.sidecar.catalog.entries.len();
        let (states, facts) = (vec![State::Intact; all], vec![None; all]);
        let mut survey = Survey { states, facts, reports: Vec::new(), files: Vec::new() };
        let looks_at = if self.scope == Scope::Sidecar { 0 } else { all };
        self.survey_entries(&mut survey, 0..looks_at);
        survey
    }

    /// Takes the stats of entries.
    fn survey_entries(&self, survey: &mut Survey, entries: impl Iterator<Item = usize>) {
        let mut stats = Stats::new(self.base);
        for nth in entries {
            let stat = stats.stat(&self.sidecar.catalog.entries[nth].path);
            self.survey_entry(survey, nth, state_of_stat(self.sidecar, self.base, nth, stat));
        }
    }

    /// Takes in the finding on an entry by its stat.
    fn survey_entry(&self, survey: &mut Survey, nth: usize, found: ByStat) {
        let entry = &self.sidecar.catalog.entries[nth];
        survey.states[nth] = found.state;
        survey.facts[nth] = found.facts;
        if let EntryKind::File(file) = &entry.kind {
            match found.state {
                State::Missing => survey.reports.push((nth, self.all_lost(file))),
                State::Edited if !self.is_regular(&entry.path) => {
                    survey.reports.push((nth, self.all_lost(file)))
                }
                _ => survey.files.push(nth as u32),
            }
        }
    }

    /// Tells whether the fault of an entry is damage: the entry cannot be read, or nobody is known to have written to
    /// it.
    pub(crate) fn is_damage(&self, survey: &Survey, nth: usize) -> bool {
        match survey.state(nth) {
            State::Intact => survey.facts[nth]
                .is_some_and(|(facts, _)| matches!(facts.state(), State::Rotten | State::Changed)),
            state => state == State::Unreadable,
        }
    }

    /// The chunks of a file. Zeros without positions cost their maker nothing, so such a file is examined as far as it
    /// goes.
    pub(crate) fn jobs(&self, entry: u32) -> impl Iterator<Item = Job> + use<> {
        let of = &self.sidecar.catalog.entries[entry as usize];
        let chunks = match &of.kind {
            EntryKind::File(file) if file.zeros(self.block()).next().is_some() => {
                // The integer type differs between systems.
                #[allow(clippy::unnecessary_cast)]
                let there = self.base.stat(&of.path).map_or(0, |stat| stat.st_size as u64);
                chunks(file.size.min(there))
            }
            EntryKind::File(file) => chunks(file.size),
            _ => 0,
        };
        (0..chunks).map(move |chunk| Job { entry, chunk, chunks })
    }

    /// Examines chunks on all threads, until the time is over.
    pub(crate) fn look_at(&self, jobs: &[Job], until: Option<Instant>, context: &Context<'_>) -> Looked {
        let next = AtomicUsize::new(0);
        let collected = Collected::default();
        let workers = context.settings.threads.min(jobs.len()).max(1);
        let is_over = || self.meter.is_cancelled() || until.is_some_and(|until| Instant::now() >= until);
        Threads(workers).run(workers, &|_| {
            let mut looker = Looker::new(self.sidecar, self.base, self.meter);
            while !is_over()
                && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let EntryKind::File(file) = &self.sidecar.catalog.entries[job.entry as usize].kind else {
                    continue;
                };
                let (value, report) = looker.look(job, file);
                match job.chunks {
                    1 => collected.add_file(job.entry, report),
                    chunks => collected.add_chunk(job, value, report, || Pending::new(chunks, file.blake3)),
                }
            }
        });
        Looked { reports: collected.into_reports(), done: next.into_inner().min(jobs.len()) }
    }

    fn block(&self) -> u64 {
        self.sidecar.catalog.block.into()
    }

    fn all_lost(&self, file: &FileEntry) -> FileReport {
        let blocks = FileEntry::whole_blocks(file.size, self.block());
        let bad = (blocks > 0).then_some(0..blocks).into_iter().collect();
        FileReport { bad, ..FileReport::default() }
    }

    fn is_regular(&self, path: &[u8]) -> bool {
        self.base.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::RegularFile)
    }
}
