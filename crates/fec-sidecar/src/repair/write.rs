//! Writes what a repair has decided on: computed bytes to files and to the sidecar, and new entries under their names.

use crate::catalog::fingerprint::fingerprint_of_stat;
use crate::catalog::journal::Journal;
use crate::catalog::positions::{Any, PositionReader, Positions, Span};
use crate::error::SidecarError;
use crate::examine::by_stat::looks_as_it_did;
use crate::examine::rebuild::{Rebuild, Wants};
use crate::examine::{Examined, State};
use crate::repair::actions::{EntryAction, Owner, owners};
use crate::repair::left_out::Part;
use crate::repair::mend::Mended;
use crate::repair::outcome::Outcome;
use crate::repair::own_shards::OwnShards;
use crate::repair::plan::Plan;
use crate::repair::reach::open_folders;
use crate::repair::targets::{Targets, Writing};
use crate::repair::task::Task;
use crate::repair::undo;
use fec_base::context::Gauge;
use fec_base::error::{Action, Result};
use fec_base::io::base::Base;
use std::collections::{HashMap, HashSet};

/// The writing of a repair.
pub(crate) struct Writer<'a> {
    pub(crate) task: &'a Task<'a>,
    pub(crate) positions: &'a Positions,
    /// The folder that files are written below.
    pub(crate) target: &'a Base,
}

impl Writer<'_> {
    /// Writes everything of the plan, and puts into `mended` how that went.
    ///
    /// # Errors
    /// Those of the system, which end the repair on its way.
    pub(crate) fn write(&self, plan: Plan, mended: &mut Mended, journal: &mut Journal) -> Result<Outcome> {
        let Task { sidecar, base, how, context } = *self.task;
        if plan.is_listed {
            journal.give_times_back(sidecar, base);
        }
        let owners = self.owners(&plan.actions, &mended.found, journal);
        if let Some(undo) = how.undo {
            undo::keep(undo, sidecar, base, &plan.actions, context)?;
        }
        let mut own = OwnShards::new(sidecar, self.positions, &mut mended.found, plan.own.mends, context)?;
        if plan.is_listed {
            let begun = self.task.begun(self.positions, &mended.found);
            begun.begin(journal, &plan.actions, (&plan.made, &plan.closed))?;
        }
        let mut outcome = self.write_files(plan, owners, &mut own, mended, journal)?;
        let own = own.unless_wrong(sidecar, &mut outcome.contradiction, &context.settings)?;
        mended.sidecar &= outcome.contradiction.is_none();
        own.finish(sidecar, context)?;
        Ok(outcome)
    }

    /// The owners of the files that are written over. They are noted before anything is kept or written, to detect
    /// concurrent writers from then on.
    fn owners(&self, actions: &[EntryAction], found: &Examined, journal: &Journal) -> HashMap<u32, Owner> {
        let Task { sidecar, base, how, .. } = *self.task;
        if how.out.is_some() {
            return HashMap::new();
        }
        owners(base, sidecar, actions, |entry, stat| {
            let nth = entry as usize;
            let seen = found.report(nth).filter(|report| report.is_by_policy).and_then(|report| report.seen);
            match (found.state(nth), actions[nth]) {
                (State::Rotten, _) if seen.is_some() => {
                    seen != Some(fingerprint_of_stat(stat)) && !journal.is_own(nth, stat)
                }
                (State::Rotten, _) => !looks_as_it_did(sidecar, nth, stat) && !journal.is_own(nth, stat),
                // An interrupted repair has half mended it, and nobody has written to it since that was proved.
                (State::Edited | State::Changed | State::Changing | State::Shifted, _) if !how.revert => {
                    !journal.is_own(nth, stat)
                }
                (State::Intact, EntryAction::Mend) => !journal.is_own(nth, stat),
                _ => false,
            }
        })
    }

    /// Writes all files, folders and links, and hands recovery shards to `own`.
    fn write_files(
        &self,
        plan: Plan,
        owners: HashMap<u32, Owner>,
        own: &mut OwnShards,
        mended: &mut Mended,
        journal: &Journal,
    ) -> Result<Outcome> {
        let Task { sidecar, how, context, .. } = *self.task;
        let barred = plan.barred.entries;
        let _open = open_folders(sidecar, self.task.base, &plan.closed)?;
        // Files whose bytes are all right need no computed bytes, wherever they are written to.
        let wants = |(nth, action): (usize, &EntryAction)| {
            *action != EntryAction::Leave && !mended.found.has_all_bytes(nth)
        };
        let wants: Vec<bool> = plan.actions.iter().enumerate().map(wants).collect();
        let (is_copy, room) = (how.out.is_some(), plan.room);
        let writing = Writing { sync: how.sync, owner: how.owner, is_copy, room, wants, owners };
        let mut put = |group: usize, shard: u64, bytes: &[u8]| own.put_shard(sidecar, group, shard, bytes);
        let meter = context.meter(Action::Repair, None);
        let how = (writing, &meter, context.progress);
        let mut targets = Targets::new(sidecar, self.positions, self.target, plan.actions, how, &mut put);
        targets.leave_out_long()?;
        self.copy_known_bytes(&mut targets, &mended.found)?;
        let contradiction =
            self.compute_lost_bytes(&mut targets, &mended.found, plan.own.mends.is_some(), &meter)?;
        let failed = targets.finish()?;
        mended.failed = [&failed[..], &barred].concat();
        mended.failed.sort_unstable();
        let has_failed = |entry: usize| mended.failed.binary_search(&entry).is_ok();
        mended.is_denied |= mended.found.denied().any(has_failed);
        mended.left_out = std::mem::take(&mut targets.left_out);
        mended.written = targets.written;
        let cause = targets.cause.take();
        let is_own = |entry: &usize| journal.own.contains_key(entry);
        let is_half_mended = targets.are_half_mended(&failed, is_own) || barred.iter().any(is_own);
        targets.end()?;
        meter.finish();
        let whole = mended.left_out.iter().filter(|out| out.what == Part::Entry);
        let out: HashSet<usize> = whole.map(|out| out.entry).chain(mended.failed.iter().copied()).collect();
        mended.mended.retain(|entry| !out.contains(entry));
        Ok(Outcome { failed, contradiction, cause, is_half_mended })
    }

    /// Fills files that are made with the bytes that were found.
    fn copy_known_bytes(&self, targets: &mut Targets<'_>, found: &Examined) -> Result<()> {
        let Task { sidecar, base, .. } = *self.task;
        let mut reader = PositionReader::new(base, &sidecar.catalog, self.positions, &Any).with(&found.moved);
        let mut computed = found.erased.clone();
        computed.absorb(&found.known);
        for (nth, _) in sidecar.catalog.files() {
            if let EntryAction::Make { .. } = targets.actions[nth] {
                let computed = (!found.has_all_bytes(nth)).then_some(&computed);
                targets.fill(nth as u32, &mut reader, computed)?;
            }
        }
        let block = u64::from(sidecar.catalog.block);
        for report in &found.entries {
            if targets.actions[report.entry] != EntryAction::Mend {
                continue;
            }
            for blocks in &report.no_zeros {
                targets.clear(report.entry as u32, blocks.start * block..blocks.end * block)?;
            }
        }
        Ok(())
    }

    /// Computes the lost bytes that are wanted. `recovery` tells whether lost recovery shards are wanted too. Returns a
    /// contradiction of the sidecar, if one shows.
    fn compute_lost_bytes(
        &self,
        targets: &mut Targets<'_>,
        found: &Examined,
        recovery: bool,
        meter: &Gauge<'_>,
    ) -> Result<Option<SidecarError>> {
        let Task { sidecar, base, context, .. } = *self.task;
        let positions = self.positions;
        let rebuild = Rebuild { sidecar, base, positions, examined: found, context, meter };
        let wants = targets.wants();
        let makes = |action: &EntryAction| matches!(action, EntryAction::Make { .. });
        let makes: Vec<bool> = targets.actions.iter().map(makes).collect();
        // A new file has such a tail already.
        let is_there = |span: &Span| {
            span.is_packed && makes[span.entry as usize] && found.moved.covers(span.at..span.end())
        };
        let is_wanted = |position: u64| {
            let mut spans = positions.within(position..position + 1);
            spans.any(|span| wants[span.entry as usize] && !is_there(&span))
        };
        rebuild.run(&Wants { position: &is_wanted, recovery, check: false }, targets)
    }
}
