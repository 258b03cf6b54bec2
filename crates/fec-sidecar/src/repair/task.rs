//! A repair as it was asked for, and the damage that it finds.

use crate::Sidecar;
use crate::catalog::journal::Journal;
use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use crate::examine::{Examined, Scope, Selection, State, examine, examine_selected};
use crate::repair::begun::Begun;
use crate::repair::copy::Copy;
use crate::repair::mend::Mend;
use crate::repair::reach::{folders_of, put_back};
use crate::repair::targets::remove_old_rooms;
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_base::io::output::{Policy, check_absent};
use fec_base::io::temporary::{parent, remove_stale};
use std::io::ErrorKind as IoKind;

/// A repair that was asked for.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) how: &'a Mend<'a>,
    pub(crate) context: &'a Context<'a>,
}

/// The damage that was found, before anything is decided.
pub(crate) struct Damage {
    pub(crate) found: Examined,
    pub(crate) positions: Positions,
    /// Entries that the caller may not read, in order.
    pub(crate) denied: Vec<usize>,
}

impl<'a> Task<'a> {
    /// Checks what can be checked before any file is read, and removes the remains of interrupted repairs.
    pub(crate) fn prepare(&self) -> Result<(Journal, Option<Copy<'a>>)> {
        let Task { sidecar, base, how, context } = *self;
        let journal = Journal::of(sidecar)?;
        if !how.dry_run && how.out.is_none() {
            journal.check(sidecar, Action::Repair)?;
        }
        let copy = how.out.map(|out| Copy::new(sidecar, out)).transpose()?;
        if !how.dry_run {
            // Interrupted repairs leave such rooms and files behind.
            remove_old_rooms(base);
            for folder in folders_of(&journal, sidecar).filter_map(|path| base.folder(path).ok()) {
                remove_old_rooms(&folder);
            }
            if how.out.is_none() {
                put_back(&journal, sidecar, base);
            }
            remove_stale(parent(sidecar.path()), context.progress);
        }
        if let Some(undo) = how.undo {
            let policy = Policy::new().with_sync(false);
            check_absent(undo, policy).map_err(|e| Error { action: Action::Keep, ..e })?;
        }
        Ok((journal, copy))
    }

    /// Finds the damage, of everything or of a selection.
    pub(crate) fn examine(&self, selection: Option<&Selection>) -> Result<Damage> {
        let Task { sidecar, base, how, context } = *self;
        let mut found = match selection {
            Some(selection) => examine_selected(sidecar, base, selection, context)?,
            None => examine(sidecar, base, Scope::All, context)?,
        };
        if let Some(path) = found.unprotected.busy.as_ref().filter(|_| how.out.is_none() && !how.dry_run) {
            return Err(Error::at(Action::Repair, base.place(path).as_path(), SidecarError::AtWork));
        }
        // Whatever is named is asked for, and may not go.
        for report in found.entries.iter_mut().filter(|report| report.state == State::Gone) {
            if how.only.is_some_and(|only| only.has(report.entry)) {
                report.state = State::Missing;
            }
        }
        let denied: Vec<usize> = found.denied().collect();
        if !denied.is_empty() && !how.partial {
            return Err(self.not_allowed(&denied));
        }
        // Unreadable bytes count as lost when others are computed, so they use up recovery shards too.
        let positions = Positions::of(&sidecar.catalog);
        let not_read = std::mem::take(&mut found.denied);
        found.erased.absorb(&not_read);
        found.margin = found.margin_of(&sidecar.catalog, &positions);
        Ok(Damage { found, positions, denied })
    }

    /// Fails if not all of the damage can be mended, unless a partial repair was asked for.
    pub(crate) fn check_lost(&self, Damage { found, .. }: &Damage) -> Result<()> {
        let Task { sidecar, how, .. } = *self;
        // Into another folder everything is written as it was, and what was edited too.
        let lost = match how.revert || how.out.is_some() {
            true => found.margin.lost_bytes,
            false => found.margin.damaged_bytes,
        };
        if lost > 0 && !how.partial {
            let is_partly_mendable = how.revert || how.out.is_some() || found.is_partly_mendable();
            let lost = SidecarError::BeyondRepair { lost, is_partly_mendable };
            return Err(Error::at(Action::Repair, sidecar.path(), lost));
        }
        Ok(())
    }

    /// The damage as the list of half-mended files is compared with it.
    pub(crate) fn begun<'b>(&'b self, positions: &'b Positions, found: &'b Examined) -> Begun<'b> {
        Begun { sidecar: self.sidecar, base: self.base, positions, found }
    }

    /// The error for entries that the caller may not read or write to.
    pub(crate) fn not_allowed(&self, entries: &[usize]) -> Error {
        let Task { sidecar, base, .. } = self;
        let places = entries.iter().map(|nth| base.place(&sidecar.catalog.entries[*nth].path)).collect();
        Error::at(Action::Repair, sidecar.path(), ErrorKind::NotAllowed(places))
    }
}

/// Tells whether permission is missing, or room: then the rest is mended all the same.
pub(crate) fn is_denied(error: &Error) -> bool {
    matches!(&error.kind, ErrorKind::Io(cause) if cause.kind() == IoKind::PermissionDenied)
        || matches!(error.cause(), Some(SidecarError::ReadOnly | SidecarError::NoList))
        || matches!(error.kind, ErrorKind::NoRoom { .. })
}
