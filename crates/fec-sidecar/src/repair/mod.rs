//! Repairs files and their sidecar: computes, proves and writes damaged or missing bytes.
//!
//! ```text
//! task: asked, damaged ─▶ plan: decided, not written ─▶ write: files, the sidecar ─▶ outcome: told
//! ```

pub(crate) mod actions;
pub(crate) mod begun;
pub(crate) mod copy;
pub(crate) mod decisions;
pub(crate) mod fetch;
pub(crate) mod left_out;
pub(crate) mod mend;
pub(crate) mod outcome;
pub(crate) mod own_shards;
pub(crate) mod plan;
pub(crate) mod reach;
pub(crate) mod targets;
pub(crate) mod task;
pub(crate) mod undo;
pub(crate) mod write;

use crate::Sidecar;
use crate::catalog::journal;
use crate::mirrors::Mirrors;
use crate::repair::fetch::{Kept, fetch};
pub use crate::repair::left_out::{LeftOut, Part};
pub use crate::repair::mend::{Mend, Mended};
use crate::repair::plan::Plan;
use crate::repair::task::Task;
use crate::repair::write::Writer;
use fec_base::context::Context;
use fec_base::error::{Action, Result};
use fec_base::io::base::Base;
use std::path::{Path, PathBuf};

/// The path of the list by which a repair goes on with what an earlier one had begun. It is there only meanwhile.
pub fn list_path(sidecar: &Path) -> PathBuf {
    journal::path_of(sidecar)
}

/// Repairs the files that a sidecar protects, and the sidecar.
///
/// Damaged files are mended in place: only computed and proved bytes are written. An interrupted repair can be run
/// again. Missing files appear when they are whole. Nothing is reached through a symbolic link below `base`, and
/// nothing outside.
///
/// # Errors
/// [`BeyondRepair`](crate::SidecarError::BeyondRepair), after which nothing was changed;
/// [`NotACodeword`](crate::SidecarError::NotACodeword) and [`Contradiction`](crate::SidecarError::Contradiction), after
/// which everything else that can be mended was; [`OutputNotEmpty`](crate::SidecarError::OutputNotEmpty); those of the
/// system.
pub fn repair(sidecar: &Sidecar, base: &Base, how: &Mend<'_>, context: &Context<'_>) -> Result<Mended> {
    let _lock = if how.dry_run { None } else { Some(sidecar.lock(Action::Repair)?) };
    let task = Task { sidecar, base, how, context };
    let (mut journal, copy) = task.prepare()?;
    let selection = how.only.map(|only| match how.out {
        // The list names what an interrupted repair has begun: it has to be ended, or the list would stay.
        None => only.clone().with(journal.list.entries()),
        Some(_) => only.clone(),
    });
    let mut damage = task.examine(selection.as_ref())?;
    // An interrupted repair may have fetched what is lost.
    let nobody = Mirrors::new(Vec::new(), None);
    let stash = fetch(&task, &mut damage, how.mirrors.unwrap_or(&nobody))?;
    task.check_lost(&damage)?;
    let mut plan = Plan::of(&task, &damage, (copy.as_ref(), selection.as_ref()), &mut journal)?;
    let mut mended = plan.promise(damage.found);
    if how.dry_run {
        return Ok(mended);
    }
    if plan.own.mends_container {
        mend_container(&task, &mut mended);
    }
    if !plan.has_work() {
        // The files of an interrupted repair are whole, or somebody has changed them since.
        let is_half_mended = plan.barred.entries.iter().any(|entry| journal.own.contains_key(entry));
        if how.out.is_none() && journal.is_there() && !is_half_mended {
            journal.end();
        }
        end_stash(stash, &mended);
        return Ok(mended);
    }
    plan.check_room(&task)?;
    let out = copy.as_ref().map(|copy| copy.begin(sidecar, how.owner, context.progress)).transpose()?;
    let target = out.as_ref().unwrap_or(base);
    let writer = Writer { task: &task, positions: &damage.positions, target };
    let outcome = writer.write(plan, &mut mended, &mut journal)?;
    if let Some(copy) = copy {
        copy.end();
    }
    let mended = outcome.tell(&task, mended, &journal, target)?;
    end_stash(stash, &mended);
    Ok(mended)
}

/// Removes what was fetched, unless a later repair may need it.
fn end_stash(stash: Option<Kept>, mended: &Mended) {
    if mended.failed.is_empty() && mended.found.is_mendable() {
        stash.into_iter().for_each(Kept::end);
    }
}

/// Mends the container of a sealed sidecar. A container that cannot be mended keeps no file from being mended.
fn mend_container(task: &Task<'_>, mended: &mut Mended) {
    let Some((container, _)) = &task.sidecar.sealed else { return };
    match container.mend(task.how.sync, false, task.context) {
        Ok(_) => mended.sidecar = true,
        Err(error) => {
            mended.sidecar = false;
            mended.sidecar_left.get_or_insert(error);
        }
    }
}
