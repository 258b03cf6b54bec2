//! Combines the findings on files, and reports the state of each entry.

use super::{Files, Survey};
use crate::catalog::bits::Bits;
use crate::catalog::hashing::plain_digests;
use crate::catalog::metadata::{LOST, NOTHING};
use crate::catalog::moved::Moved;
use crate::catalog::policy::Policy;
use crate::catalog::positions::{Any, PositionReader, Span, position_of, runs_of};
use crate::error::SidecarError;
use crate::examine::by_stat::Known;
use crate::examine::findings::{Cause, EntryReport, Examined, Margin, Scope, Unprotected};
use crate::examine::looker::{CHUNK, FileReport, Job, Len, Looker};
use crate::examine::search::{FoundElsewhere, Search, Wanted};
use crate::examine::twins::Twins;
use crate::examine::verdict::{Facts, State, Time, Traces, Writer};
use fec_base::error::{Action, Error, Result};
use fec_base::ranges::RangeList;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

impl Files<'_> {
    /// Combines the findings on all entries.
    pub(crate) fn conclude(&self, survey: Survey) -> Result<Examined> {
        let Survey { mut states, facts, mut reports, .. } = survey;
        combine(&mut reports);
        let traces = Traces::of(whole_files(&facts, &reports));
        let is_touched = |(time, writer): &(Time, Writer)| *time != Time::Same || *writer == Writer::Somebody;
        let touched = whole_files(&facts, &reports).filter(is_touched).count() as u64;
        // A file that may not be read may be intact.
        for (nth, _) in reports.iter().filter(|(_, report)| report.is_denied()) {
            states[*nth] = State::Unreadable;
        }
        self.look_at_neighbours(&states, &mut reports);
        let [mut erased, mut denied] = [0; 2].map(|_| Bits::new(self.sidecar.catalog.positions()));
        self.erase_lost(&mut erased);
        let mut found = self.find_elsewhere(&states, &reports);
        self.settle(&mut reports, &states, &found.moved, [&mut erased, &mut denied]);
        let Files { sidecar, base, positions, .. } = *self;
        let twins = Twins { sidecar, base, positions, states: &states, reports: &reports };
        let known = twins.find([&mut erased, &mut denied], &mut found.moved);
        reports.retain(|(_, report)| !(report.is_part && report.is_clean()));
        self.check_agreement(&reports)?;
        for (nth, state) in states.iter_mut().enumerate() {
            *state = match *state {
                State::Missing if found.renamed.contains_key(&nth) => State::Moved,
                State::Missing if found.damaged.contains_key(&nth) => State::MovedDamaged,
                State::Edited if found.shifted.contains(&nth) => State::Shifted,
                same => same,
            };
        }
        self.follow_moved(&mut states, &mut found.renamed);
        let policy = Policy::of(self.sidecar.believed_policy());
        self.let_go(&mut states, &policy);
        self.leave_out_found(&mut reports, &found);
        found.renamed.extend(found.damaged);
        let (entries, unproved) =
            self.entry_reports((&states, &facts, traces), reports, &found.renamed, &policy);
        let unprotected =
            if self.scope == Scope::Sidecar { Unprotected::default() } else { self.unprotected(&entries) };
        Ok(Examined {
            entries,
            unproved,
            touched,
            traces,
            left_out: 0,
            unprotected,
            recovery: 0,
            recovery_damaged: 0,
            recovery_displaced: 0,
            margin: Margin::default(),
            sidecar_damage: Vec::new(),
            container_damaged: false,
            erased,
            known,
            denied,
            moved: found.moved,
            recovery_erased: Bits::default(),
        })
    }

    /// Searches for the bytes that are not in their places, if everything is examined.
    fn find_elsewhere(&self, states: &[State], reports: &[(usize, FileReport)]) -> FoundElsewhere {
        let wanted = |(nth, report): &(usize, FileReport)| Wanted {
            entry: *nth,
            blocks: report.bad.clone(),
            is_missing: states[*nth] == State::Missing,
        };
        // A rotten file was not moved by anybody, since its size and time are unchanged.
        let may_have_moved =
            |(nth, report): &&(usize, FileReport)| states[*nth] != State::Intact && !report.is_denied();
        let wanted: Vec<Wanted> = reports.iter().filter(may_have_moved).map(wanted).collect();
        let names = self.other_names(states);
        match self.scope {
            Scope::All => Search::new(self.sidecar, self.base).with_names(&names).run(&wanted),
            _ => FoundElsewhere::default(),
        }
    }

    /// Takes the blocks that stand in damaged files elsewhere out of the reports of these files.
    fn leave_out_found(&self, reports: &mut [(usize, FileReport)], found: &FoundElsewhere) {
        let block = self.block();
        for (nth, report) in reports.iter_mut().filter(|(nth, _)| found.damaged.contains_key(nth)) {
            let EntryKind::File(file) = &self.sidecar.catalog.entries[*nth].kind else { continue };
            // A block that has no position is zeros, and never lost.
            let is_lost = |nth: &u64| {
                let at = position_of(file, *nth).map(|position| position * block);
                at.is_some_and(|at| found.moved.within(at..at + block).next().is_none())
            };
            let whole = FileEntry::whole_blocks(file.size, block);
            report.bad = (0..whole).filter(is_lost).map(|nth| nth..nth + 1).collect();
            // Nothing tells of a tail alone whether it is right.
            report.is_tail_unknown &= report.bad.is_empty();
        }
    }

    /// Fails if the sidecar contradicts itself about a file.
    fn check_agreement(&self, reports: &[(usize, FileReport)]) -> Result<()> {
        let Some((nth, _)) = reports.iter().find(|(_, report)| report.contradicts()) else { return Ok(()) };
        let path = self.sidecar.catalog.entries[*nth].path.to_vec();
        Err(Error::at(Action::Verify, self.sidecar.path(), SidecarError::Contradiction(path)))
    }

    /// The reports of all entries that are not intact, and the number of those that count as edited for lack of proof.
    /// `renamed` has the entries that are under another name.
    fn entry_reports(
        &self,
        (states, facts, traces): (&[State], &[Known], Traces),
        reports: Vec<(usize, FileReport)>,
        renamed: &HashMap<usize, Box<[u8]>>,
        policy: &Policy<'_>,
    ) -> (Vec<EntryReport>, u64) {
        let (mut entries, mut unproved) = (Vec::new(), 0);
        let mut of_files = reports.into_iter().peekable();
        for (nth, entry) in self.sidecar.catalog.entries.iter().enumerate() {
            let report = of_files.next_if(|(of, _)| *of == nth).map(|(_, report)| report);
            let report = self.entry_report(
                (nth, &entry.kind),
                (states[nth], facts[nth].map(|(facts, _)| traces.read(facts)), traces.is_copy),
                report,
                policy,
            );
            let is_edited = report.as_ref().is_some_and(|report| report.state == State::Edited);
            unproved += u64::from(is_edited && states[nth] == State::Intact);
            let seen = facts[nth].map(|(_, seen)| seen);
            let moved_to = renamed.get(&nth).cloned();
            entries.extend(report.map(|report| EntryReport { moved_to, seen, ..report }));
        }
        (entries, unproved)
    }

    /// Missing files, each with a hard link under which it is whole.
    fn other_names(&self, states: &[State]) -> Vec<(usize, Box<[u8]>)> {
        let mut names: Vec<(usize, Box<[u8]>)> = Vec::new();
        let mut named = HashSet::new();
        for (entry, state) in self.sidecar.catalog.entries.iter().zip(states) {
            if let EntryKind::HardLink(of) = entry.kind
                && *state == State::Intact
                && states[of as usize] == State::Missing
                && named.insert(of)
            {
                names.push((of as usize, entry.path.clone()));
            }
        }
        names
    }

    /// Marks positions that were lost before: recorded as lost, or of files that are no longer in the catalog.
    fn erase_lost(&self, erased: &mut Bits) {
        let covered = self.positions.covered(self.sidecar.catalog.positions());
        let mut first = 0;
        for (nth, group) in self.sidecar.catalog.groups.iter().enumerate() {
            for position in 0..group.positions() {
                let at = first + position;
                let is_lost = match self.sidecar.position_digest(nth, position) {
                    NOTHING => false,
                    LOST => true,
                    _ => !covered.get(at),
                };
                if is_lost {
                    erased.set(at);
                }
            }
            first += group.positions();
        }
    }

    /// Marks the positions of damaged bytes. For a file known to be wrong only as a whole, the digest of its tail's
    /// position tells whether the tail is wrong, unless the other files in that position are to blame.
    fn settle(
        &self,
        reports: &mut [(usize, FileReport)],
        states: &[State],
        moved: &Moved,
        [erased, denied]: [&mut Bits; 2],
    ) {
        let block = self.block();
        let mut reader =
            PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any).with(moved);
        let mut position = vec![0; block as usize];
        // Many tails may share a position.
        let mut looked: HashMap<u64, bool> = HashMap::new();
        let suspects = suspects(reports);
        for (nth, report) in reports.iter_mut() {
            let EntryKind::File(file) = &self.sidecar.catalog.entries[*nth].kind else { continue };
            let lost = if report.is_denied() { &mut *denied } else { &mut *erased };
            for range in &report.bad {
                let is_moved =
                    |position: &u64| moved.within(position * block..(position + 1) * block).next().is_some();
                let runs = runs_of(file, range.clone()).map(|run| run.start..run.start + run.count);
                runs.flatten().filter(|position| !is_moved(position)).for_each(|position| lost.set(position));
            }
            let tail = file.tail_len(block);
            // A tail that is right, or stands in a whole file elsewhere, does not make its position lost.
            if tail == 0 || report.is_right == Some(true) {
                continue;
            }
            let is_explained = !report.bad.is_empty() || report.len == Len::Fewer;
            if moved.within(file.tail..file.tail + tail).next().is_some() {
                report.is_tail_unknown = report.is_right == Some(false) && !is_explained;
                continue;
            }
            let at = file.tail / block;
            // The first of the files that share the place gives the bytes, unless another one is looked at.
            let first = self.positions.within(at..at + 1).find(|span| span.at == file.tail);
            let (entry, offset) = (*nth as u32, file.size - tail);
            let own = first.filter(|span| span.entry != entry).map(|span| Span { entry, offset, ..span });
            let is_intact = match own {
                Some(own) => self.is_intact(at, Some(&own), &mut reader, &mut position),
                None => {
                    *looked.entry(at).or_insert_with(|| self.is_intact(at, None, &mut reader, &mut position))
                }
            };
            report.has_tail = is_intact;
            if !is_intact {
                lost.set(at);
            }
            // Another file may be to blame for damage in a shared position.
            report.is_tail_unknown = !is_intact && {
                let is_right = |span: Span| {
                    let is_as_it_was = || states[span.entry as usize] == State::Intact;
                    !suspects.contains(&span.entry) && (!report.is_part || is_as_it_was())
                };
                let is_gone = report.is_right.is_none() && !report.is_part;
                // The tail of an existing file is wrong if nothing else explains the file's wrong digest, or if
                // everything else in the position is right. A part that is right so far is examined whole another time.
                is_gone
                    || (report.is_right == Some(false) && !is_explained)
                    || self.sharing(at, *nth).all(is_right)
            };
        }
    }

    /// The spans of other files in a position.
    fn sharing(&self, position: u64, nth: usize) -> impl Iterator<Item = Span> {
        self.positions.within(position..position + 1).filter(move |span| span.entry as usize != nth)
    }

    /// Examines small files that a partial scope left out, if they may be to blame for damage in a position that they
    /// share with a tail. Adds those that are not whole.
    fn look_at_neighbours(&self, states: &[State], reports: &mut Vec<(usize, FileReport)>) {
        let block = self.block();
        let nothing = Moved::default();
        let mut reader =
            PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any).with(&nothing);
        let mut position = vec![0; block as usize];
        let mut looked: HashSet<u32> = reports.iter().map(|(nth, _)| *nth as u32).collect();
        let mut found = Vec::new();
        for (nth, _) in reports.iter().filter(|(_, report)| report.is_part && report.is_clean()) {
            let EntryKind::File(file) = &self.sidecar.catalog.entries[*nth].kind else { continue };
            let at = file.tail / block;
            if file.tail_len(block) == 0 || self.is_intact(at, None, &mut reader, &mut position) {
                continue;
            }
            for span in self.sharing(at, *nth).filter(|span| states[span.entry as usize] == State::Intact) {
                let EntryKind::File(file) = &self.sidecar.catalog.entries[span.entry as usize].kind else {
                    continue;
                };
                if file.size > CHUNK || !looked.insert(span.entry) {
                    continue;
                }
                let job = Job { entry: span.entry, chunk: 0, chunks: 1 };
                let (_, report) = Looker::new(self.sidecar, self.base, self.meter).look(&job, file);
                if !report.is_whole() {
                    found.push((span.entry as usize, report));
                }
            }
        }
        reports.append(&mut found);
        reports.sort_by_key(|(nth, _)| *nth);
    }

    /// Tells whether a position has its digest, with these bytes of a file among those that share their place.
    fn is_intact(
        &self,
        at: u64,
        of: Option<&Span>,
        reader: &mut PositionReader<'_>,
        position: &mut [u8],
    ) -> bool {
        let mut read = reader.fill(at, position, |_, e| Err(e));
        if let Some(of) = of {
            let start = (of.at - at * self.block()) as usize;
            read = read.and_then(|()| reader.read(of, &mut position[start..][..of.len as usize]));
        }
        read.is_ok() && plain_digests(position, self.block() as usize)[0] == self.digest_of(at)
    }

    fn digest_of(&self, position: u64) -> [u8; 16] {
        self.sidecar.digest_of(position)
    }

    /// The report of an entry; `None` if it is intact.
    fn entry_report(
        &self,
        (nth, kind): (usize, &EntryKind),
        (state, facts, is_copy): (State, Option<Facts>, bool),
        report: Option<FileReport>,
        policy: &Policy<'_>,
    ) -> Option<EntryReport> {
        let EntryKind::File(file) = kind else {
            return (state != State::Intact).then_some(EntryReport {
                entry: nth,
                state,
                damage: RangeList::default(),
                cause: self.cause(nth, state),
                moved_to: None,
                may_be_damage: false,
                is_unclear: false,
                is_by_policy: false,
                seen: None,
                no_zeros: Vec::new(),
                is_right: false,
            });
        };
        let (state, report) = match report {
            Some(report) => (state, report),
            None => self.without_report(state, facts)?,
        };
        let block = self.block();
        let damage = damage_of(file, &report, block);
        let facts =
            facts.map(|facts| Facts { once: self.once((nth, file), facts, &report, policy), ..facts });
        let is_by_policy = matches!(state, State::Intact | State::Edited | State::Shifted)
            && facts.is_some_and(Facts::is_rotten_by_policy);
        let state = match if is_by_policy { State::Intact } else { state } {
            State::Intact => match facts.map_or(State::Rotten, Facts::state) {
                // A file that may not be read may be intact.
                _ if report.cause.is_some_and(Cause::is_denied) => State::Unreadable,
                State::Rotten if report.cause.is_some() => State::Unreadable,
                state => state,
            },
            other => other,
        };
        let cause = report.cause.or_else(|| self.cause(nth, state));
        let is_right = report.is_right == Some(true);
        let no_zeros = no_zeros(file, &report, block);
        let is_slight = damage.bytes() <= (file.size / 16).max(block);
        let is_sized_edit =
            state == State::Edited && facts.is_some_and(|facts| facts.has_size && facts.is_file);
        let is_unproved = facts.is_some_and(|facts| facts.time != Time::Other);
        let is_unclear = is_sized_edit && !is_right && (is_copy || is_unproved);
        let may_be_damage = is_sized_edit && !damage.is_empty() && (is_slight || is_copy);
        Some(EntryReport {
            entry: nth,
            state,
            damage,
            cause,
            moved_to: None,
            may_be_damage,
            is_unclear,
            is_by_policy: is_by_policy && state == State::Rotten,
            seen: None,
            no_zeros,
            is_right,
        })
    }

    /// The state of a file without a report: it has the right bytes, if it was read, and its time does not count then.
    /// `None` if it is intact.
    fn without_report(&self, state: State, facts: Option<Facts>) -> Option<(State, FileReport)> {
        let is_read = self.scope == Scope::All;
        let has_mode = facts.is_none_or(|facts| facts.has_mode);
        match state {
            State::Edited if !is_read => Some((state, FileReport::default())),
            State::Intact | State::Edited if !has_mode => {
                Some((State::Mode, FileReport { is_right: Some(is_read), ..FileReport::default() }))
            }
            State::Unreadable => Some((state, FileReport::default())),
            _ => None,
        }
    }

    /// Why an entry cannot be examined, or opened.
    fn cause(&self, nth: usize, state: State) -> Option<Cause> {
        let path = &self.sidecar.catalog.entries[nth].path;
        let error = || self.base.stat(path).err().or_else(|| self.base.read(path).err());
        let error = (state == State::Unreadable).then(error);
        error.flatten().as_ref().map(Cause::from)
    }
}

/// The lost bytes of a file.
fn damage_of(file: &FileEntry, report: &FileReport, block: u64) -> RangeList {
    let mut damage = RangeList::default();
    for range in &report.bad {
        damage.add(range.start * block, (range.end * block).min(file.size));
    }
    let whole = FileEntry::whole_blocks(file.size, block) * block;
    if report.is_tail_unknown && whole < file.size {
        damage.add(whole, file.size);
    }
    damage
}

/// The blocks without positions that are not zeros in a file that was read.
fn no_zeros(file: &FileEntry, report: &FileReport, block: u64) -> Vec<Range<u64>> {
    let bad = if report.is_right.is_some() { &report.bad[..] } else { &[] };
    let within = |zeros: Range<u64>| {
        let first = bad.partition_point(|range| range.end <= zeros.start);
        let bad = bad[first..].iter().take_while(move |range| range.start < zeros.end);
        bad.map(move |range| range.start.max(zeros.start)..range.end.min(zeros.end))
    };
    file.zeros(block).flat_map(within).collect()
}

/// The files that are not known to be unchanged.
fn suspects(reports: &[(usize, FileReport)]) -> HashSet<u32> {
    let is_suspect =
        |report: &FileReport| !(report.is_part && report.is_clean()) && report.is_right != Some(true);
    reports.iter().filter(|(_, report)| is_suspect(report)).map(|(nth, _)| *nth as u32).collect()
}

/// The times and marks of the files that are whole: those of the recorded size that no report says anything of.
fn whole_files<'a>(
    facts: &'a [Known],
    reports: &'a [(usize, FileReport)],
) -> impl Iterator<Item = (Time, Writer)> + 'a {
    let is_whole = |nth: &usize| reports.binary_search_by_key(nth, |(of, _)| *of).is_err();
    let known = facts.iter().enumerate().filter_map(|(nth, facts)| Some((nth, facts.as_ref()?.0)));
    let whole = known.filter(move |(nth, facts)| facts.is_file && facts.has_size && is_whole(nth));
    whole.map(|(_, facts)| (facts.time, facts.writer))
}

/// Sorts reports by their entries, and combines those of the same file, which was examined in several parts.
fn combine(reports: &mut Vec<(usize, FileReport)>) {
    reports.sort_by_key(|(nth, _)| *nth);
    reports.dedup_by(|(later, more), (first, report)| {
        if later == first {
            report.bad.append(&mut more.bad);
            report.bad.sort_unstable_by_key(|range| range.start);
            report.is_tail_unknown |= more.is_tail_unknown;
            report.len = report.len.max(more.len);
            report.cause = report.cause.or(more.cause);
        }
        later == first
    });
}
