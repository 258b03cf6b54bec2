//! Examines files and their sidecar: compares each file with its digests, in one pass.
//!
//! An examination changes nothing. Digests decide what is intact; times and sizes only decide whether a difference is
//! rot or an edit.

pub(crate) mod by_stat;
pub(crate) mod deep;
pub(crate) mod findings;
pub(crate) mod look;
pub(crate) mod looker;
mod margin;
pub(crate) mod rebuild;
pub(crate) mod recovery;
pub(crate) mod renamed;
pub(crate) mod search;
pub(crate) mod selection;
pub(crate) mod twins;
pub(crate) mod verdict;
pub(crate) mod written;

use crate::Sidecar;
use crate::catalog::folder::{AROUND, around};
use crate::catalog::positions::{Positions, Span};
use crate::error::SidecarError;
use crate::examine::deep::Deep;
use crate::examine::look::Files;
use crate::examine::recovery::{Recovery, RecoveryFound};
use crate::examine::renamed::{around_itself, renamed};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_base::io::temporary::parent;
use fec_base::names::hex;
use fec_core::format::sidecar::catalog::Catalog;
use std::path::{Path, PathBuf};

pub use crate::examine::findings::{Cause, EntryReport, Examined, Margin, Scope, Spare, Unprotected};
pub(crate) use crate::examine::margin::{beyond_repair, margin};
pub use crate::examine::selection::Selection;
pub use crate::examine::verdict::State;

/// The folder that a sidecar's names are relative to: `named`, or else the folder of the sidecar, or the one around it
/// if it is named `.fec`. Folders in it that were renamed as a whole are found under their new names. A protected
/// folder that is named itself, whatever it is called, stands for the one around it.
///
/// # Errors
/// [`SidecarError::BaseNeeded`] when the base has to be named; those of the system.
pub fn base_of(sidecar: &Sidecar, named: Option<&Path>) -> Result<Base> {
    let needed = || {
        let needed = SidecarError::BaseNeeded(sidecar.stats.base.clone());
        Error::at(Action::Read, sidecar.path(), needed)
    };
    let path = match (named, &*sidecar.stats.base) {
        (Some(path), _) => path.to_path_buf(),
        (None, []) => parent(sidecar.path()).to_path_buf(),
        (None, AROUND) => {
            let around = around(sidecar.path()).map_err(|e| Error::io(Action::Read, sidecar.path(), e))?;
            shown(sidecar.path(), around.ok_or_else(needed)?)
        }
        _ => return Err(needed()),
    };
    let base = Base::open(&path).map_err(|e| Error::io(Action::Read, path.as_path(), e))?;
    if named.is_some()
        && let Some(around) = around_itself(sidecar, &base)
    {
        return Ok(around);
    }
    let renamed = renamed(sidecar, &base);
    Ok(base.with_renamed(renamed))
}

/// A folder as the user would name it: from the path of the sidecar, where that leads to the same place.
fn shown(sidecar: &Path, around: PathBuf) -> PathBuf {
    let named = parent(parent(sidecar));
    let is_it = std::fs::canonicalize(named).is_ok_and(|place| place == around);
    if is_it { named.to_path_buf() } else { around }
}

/// Examines everything in `scope`, and changes nothing.
///
/// Memory: a few megabytes for each thread, a bit for each block, 24 bytes for each lost one, and 24 for each entry.
///
/// # Errors
/// Those of the base; a file that cannot be read is part of the result.
pub fn examine(sidecar: &Sidecar, base: &Base, scope: Scope, context: &Context<'_>) -> Result<Examined> {
    let catalog = &sidecar.catalog;
    let recovery: u64 = catalog.groups.iter().map(|group| group.recovery()).sum();
    let files_len = if scope == Scope::All { catalog.files_len() } else { 0 };
    let total = files_len + recovery * u64::from(catalog.block);
    let meter = context.meter(Action::Verify, Some(total));
    let positions = Positions::of(catalog);
    let mut examined = Files { sidecar, base, positions: &positions, meter: &meter, scope }.look(context)?;
    let mut found = RecoveryFound::new(recovery);
    if scope != Scope::Quick {
        let looks = Recovery::new(sidecar, &positions, &meter);
        looks.look_at(&looks.jobs(), None, &mut found, context);
        meter.check()?;
    }
    meter.finish();
    examined.add_sidecar(sidecar, &positions, found);
    if let Some((container, _)) = sidecar.sealed.as_ref().filter(|_| scope != Scope::Quick) {
        examined.container_damaged = !container.is_intact(context)?;
    }
    Ok(examined)
}

/// Examines the selected entries, and changes nothing. No other file is read while all of them are intact; what is not
/// intact takes the rest to tell whether it can be mended, and all files are examined.
///
/// Memory: as [`examine`].
///
/// # Errors
/// As [`examine`].
pub fn examine_selected(
    sidecar: &Sidecar,
    base: &Base,
    selection: &Selection,
    context: &Context<'_>,
) -> Result<Examined> {
    let catalog = &sidecar.catalog;
    let files = catalog.files().filter(|(nth, _)| selection.has(*nth));
    let meter = context.meter(Action::Verify, Some(files.map(|(_, file)| file.size).sum()));
    let positions = Positions::of(catalog);
    let files = Files { sidecar, base, positions: &positions, meter: &meter, scope: Scope::Part };
    let mut examined = files.look_at_selected(selection, context)?;
    meter.finish();
    let recovery = catalog.groups.iter().map(|group| group.recovery()).sum();
    examined.add_sidecar(sidecar, &positions, RecoveryFound::new(recovery));
    examined.keep(selection, sidecar, &positions);
    if examined.entries.iter().any(|report| !report.is_right) {
        examined = examine(sidecar, base, Scope::All, context)?;
        examined.keep(selection, sidecar, &positions);
    }
    Ok(examined)
}

/// Examines everything, and decodes every set: checks that the recovery data fits the files and would make damaged ones
/// whole. With losses beyond repair it decodes nothing, since the losses matter first.
///
/// Cost: reads the files twice, and computes as much as [`protect`](crate::protect::protect). Memory: beside that of
/// [`examine`], the settings' allowance for sets, and 32 bytes for each block of damaged files.
///
/// # Errors
/// As [`examine`]; [`SidecarError::NotACodeword`], [`SidecarError::Contradiction`];
/// [`ErrorKind::Changed`](fec_base::ErrorKind::Changed) when a file changes meanwhile.
pub fn examine_deep(sidecar: &Sidecar, base: &Base, context: &Context<'_>) -> Result<Examined> {
    let examined = examine(sidecar, base, Scope::All, context)?;
    if !examined.is_revertible() {
        return Ok(examined);
    }
    let meter = context.meter(Action::Decode, None);
    let deep = Deep { sidecar, base, examined: &examined, context, meter: &meter };
    let found = deep.all()?;
    meter.finish();
    match found {
        Some(contradiction) => Err(Error::at(Action::Verify, sidecar.path(), contradiction)),
        None => Ok(examined),
    }
}

impl Examined {
    /// Adds the state of the sidecar, and the margin that results from all losses.
    pub(crate) fn add_sidecar(&mut self, sidecar: &Sidecar, positions: &Positions, found: RecoveryFound) {
        let catalog = &sidecar.catalog;
        self.recovery = catalog.groups.iter().map(|group| group.recovery()).sum();
        self.recovery_damaged = found.erased.count();
        self.recovery_displaced = found.displaced.count();
        self.recovery_erased = found.erased;
        self.sidecar_damage = sidecar_damage(sidecar);
        self.margin = self.margin_of(catalog, positions);
    }

    /// The margin that results from all losses.
    pub(crate) fn margin_of(&self, catalog: &Catalog, positions: &Positions) -> Margin {
        let lost = |span: &Span| {
            let lost = span.len - self.moved.len_within(span.at..span.end());
            (lost, if self.state(span.entry as usize).is_damage() { lost } else { 0 })
        };
        margin(catalog, positions, (&self.erased, Some(&self.recovery_erased)), &lost)
    }
}

/// The damage of the sidecar beside its recovery shards.
fn sidecar_damage(sidecar: &Sidecar) -> Vec<String> {
    let mut damage = Vec::new();
    let pieces = &sidecar.pieces;
    if pieces.intact < pieces.all {
        let lost = pieces.all - pieces.intact;
        damage.push(format!(
            "{lost} of {} pieces of its metadata are lost; {} more may be",
            pieces.all, pieces.spare
        ));
    } else if pieces.displaced > 0 {
        damage.push(format!("{} of {} pieces of its metadata have moved", pieces.displaced, pieces.all));
    }
    if let Some(newer) = sidecar.newer {
        let (of, this) = (newer.generation, sidecar.generation());
        damage.push(match newer.is_unfinished {
            true => format!("an update to generation {of} was ended on the way; this is generation {this}"),
            false => format!("of its generation {of} too few pieces are left; this is generation {this}"),
        });
    }
    let end = sidecar.expected_len();
    if let Some(newest) = sidecar.replaced_by {
        damage.push(format!(
            "it was asked for by its root; a newer generation stands behind it, with root {}",
            hex(&newest)
        ));
    } else if end != Some(sidecar.len) {
        damage.push(format!("it has {} bytes and should have {}", sidecar.len, end.unwrap_or(0)));
    }
    damage
}
