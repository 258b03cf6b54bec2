//! Examines files and their sidecar: compares each file with its digests, in one pass.
//!
//! An examination changes nothing. Digests decide what is intact; times and sizes only decide whether a difference is
//! rot or an edit.

pub(crate) mod by_stat;
pub(crate) mod deep;
pub(crate) mod findings;
pub(crate) mod look;
pub(crate) mod looker;
pub(crate) mod rebuild;
pub(crate) mod recovery;
pub(crate) mod search;
pub(crate) mod written;

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use crate::examine::deep::Deep;
use crate::examine::look::Files;
use crate::examine::recovery::{Recovery, RecoveryFound};
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::base::Base;
use fec_base::io::temporary::parent;
use fec_base::names::hex;
use fec_core::format::sidecar::catalog::Catalog;
use std::path::Path;

pub use crate::examine::findings::{Cause, EntryReport, Examined, Margin, Scope, State, Unprotected};

/// The folder that a sidecar's names are relative to: `named`, or else the folder of the sidecar.
///
/// # Errors
/// [`SidecarError::BaseNeeded`] when the base has to be named; those of the system.
pub fn base_of(sidecar: &Sidecar, named: Option<&Path>) -> Result<Base> {
    let path = match named {
        Some(path) => path.to_path_buf(),
        None if sidecar.stats.base.is_empty() => parent(sidecar.path()).to_path_buf(),
        None => {
            let needed = SidecarError::BaseNeeded(sidecar.stats.base.clone());
            return Err(Error::at(Action::Read, sidecar.path(), needed));
        }
    };
    Base::open(&path).map_err(|e| Error::io(Action::Read, path.as_path(), e))
}

/// Examines everything in `scope`, and changes nothing.
///
/// Memory: a few megabytes for each thread, and a bit for each block.
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
    if !examined.is_mendable() {
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
        self.margin = margin(catalog, positions, &self.erased, Some(&self.recovery_erased));
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
    } else if !pieces.displaced.is_empty() {
        damage.push(format!(
            "{} of {} pieces of its metadata have moved",
            pieces.displaced.len(),
            pieces.all
        ));
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

/// The margin, set by set, when these positions and recovery shards are lost.
pub(crate) fn margin(
    catalog: &Catalog,
    positions: &Positions,
    erased: &Bits,
    recovery_erased: Option<&Bits>,
) -> Margin {
    let block = u64::from(catalog.block);
    let mut margin = Margin::default();
    let mut one_piece = None;
    let covered = positions.covered(catalog.positions());
    let (mut first, mut first_recovery) = (0, 0);
    for group in &catalog.groups {
        let (sets, k, m) = (u64::from(group.sets), group.code.k() as u64, group.code.m() as u64);
        let mut used = vec![0u64; sets as usize];
        let mut lives = vec![false; sets as usize];
        for index in 0..group.positions() {
            used[(index % sets) as usize] += u64::from(erased.get(first + index));
            lives[(index % sets) as usize] |= covered.get(first + index);
        }
        for index in 0..recovery_erased.map_or(0, |_| group.recovery()) {
            let is_erased = recovery_erased.is_some_and(|erased| erased.get(first_recovery + index));
            used[(index % sets) as usize] += u64::from(is_erased);
        }
        let mut least = m;
        // A set whose files are all gone has nothing to lose.
        for (set, used) in used.iter().enumerate().filter(|(set, _)| lives[*set]) {
            if *used > m {
                margin.lost_sets += 1;
                let lost = (0..k).map(|index| first + index * sets + set as u64);
                let lost = lost.filter(|position| erased.get(*position));
                let bytes =
                    lost.flat_map(|position| positions.within(position..position + 1)).map(|span| span.len);
                margin.lost_bytes += bytes.sum::<u64>();
            }
            let spare = m.saturating_sub(*used);
            least = least.min(spare);
            // Keeps the set that has used the greatest part of its shards.
            if margin.of == 0 || *used * margin.of > margin.used * m {
                (margin.of, margin.used) = (m, *used);
            }
        }
        // A group with as many spare recovery shards as originals may lose all its originals.
        if least < k && lives.contains(&true) {
            one_piece = Some(one_piece.unwrap_or(u64::MAX).min(least * sets * block));
        }
        first += group.positions();
        first_recovery += group.recovery();
    }
    margin.one_piece = one_piece.unwrap_or(first * block);
    if margin.of == 0 {
        margin.of = catalog.groups[0].code.m() as u64;
    }
    margin
}
