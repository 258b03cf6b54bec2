//! The files to protect, as they are found, and what a sidecar says of them.

use super::excluded::Excluded;
use super::job::{Protect, Protected};
use super::policy::{anchor, check_idle, choose};
use crate::Sidecar;
use crate::catalog::folder::{AROUND, around};
use crate::catalog::hashing::room_for_stack;
use crate::catalog::journal;
use crate::catalog::others::is_of_sidecar;
use crate::catalog::plan::Apart;
use crate::catalog::policy::Policy;
use crate::catalog::positions::Positions;
use crate::catalog::seen::{Reasons, error_of, is_below};
use crate::catalog::tree::{Selection, Tree, base_of, named, resolved};
use crate::error::SidecarError;
use crate::examine::Spare;
use crate::kind::signature_path;
use crate::protect::attempts::Attempts;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_core::digest::Digest;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::parts::{Omitted, Reason, limit_omitted};
use fec_core::format::sidecar::policy::{Rules, Words};
use fec_core::format::sidecar::stack::Stack;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files to protect.
pub(crate) struct Found {
    /// The path of the sidecar, without links on the way.
    home: PathBuf,
    base_path: PathBuf,
    pub(crate) base: Base,
    pub(crate) tree: Tree,
    excluded: Excluded,
    /// The policy.
    pub(crate) rules: Rules,
    /// The stacks of files, which an update knows.
    pub(crate) stacks: Vec<Stack>,
}

impl Found {
    /// Finds what the next attempt protects. `old` is an updated sidecar.
    pub(crate) fn of(job: &Protect<'_>, attempts: &Attempts, old: Option<&Sidecar>) -> Result<Found> {
        if job.paths.is_empty() {
            return Err(Error::new(Action::Protect, SidecarError::Nothing));
        }
        let home = resolved(job.output)?;
        let base_path = match job.base {
            Some(base) => std::fs::canonicalize(base).map_err(|e| Error::io(Action::Read, base, e))?,
            None => base_of(job.paths, job.output)?,
        };
        let named = named(job.paths, &base_path)?;
        let base = Base::open(&base_path).map_err(|e| Error::io(Action::Read, base_path.as_path(), e))?;
        let old_patterns = old.filter(|_| !job.forget_excludes);
        let anchor = anchor(&named, &base_path);
        let rules = choose(job, &named, &base_path, old)?;
        let mut excluded = Excluded::new((job.exclude, job.exclude_caches), anchor, old_patterns)?;
        let beside = [journal::path_of(&home), signature_path(&home)];
        let own_folder = around(&home).ok().flatten().and(home.parent());
        let is_own = |place: &Path| {
            place == home
                || Some(place) == own_folder
                || beside.iter().any(|own| own == place)
                || is_temporary(place, &home)
        };
        let mut tree = excluded.run(&rules, |patterns| {
            let Attempts { omitted, kept, .. } = attempts;
            let keep = |omitted: &_| old.map_or_else(Vec::new, |old| attempts.keep(old, omitted));
            let (one_file_system, may_grow) = (job.one_file_system, job.appends);
            let selection =
                Selection { named: &named, patterns, one_file_system, may_grow, omitted, kept, keep: &keep };
            let tree = Tree::find(&base, &selection, [&is_own, &is_of_sidecar])?;
            check_idle(patterns, &base)?;
            Ok::<Tree, Error>(tree)
        })?;
        tree.seen.failed = Arc::clone(&attempts.failed);
        if !job.marks {
            tree.marks.clear();
        }
        check_any(&tree, &base)?;
        Ok(Found { home, base_path, base, tree, excluded, rules, stacks: Vec::new() })
    }

    /// Tells whether the base is known by the place of the sidecar, in a folder `.fec`.
    fn is_around(&self) -> bool {
        around(&self.home).is_ok_and(|around| around.is_some())
    }

    /// The path from the folder of the sidecar to the base; empty if they are the same.
    pub(crate) fn way(&self) -> Vec<u8> {
        way_to(&self.home, &self.base_path)
    }

    /// The times and permissions of all entries, and what else stands behind the catalog.
    pub(crate) fn stats(&self) -> Stats {
        let Tree { stats, marks, .. } = &self.tree;
        Stats {
            entries: stats.clone(),
            base: self.way(),
            marks: marks.clone(),
            exclusion: self.excluded.by.clone(),
            omitted: self.omitted(),
            policy: self.rules.clone(),
            stacks: self.stacks.clone(),
        }
    }

    /// The files whose tails stand apart: those that may change by the policy, beside others that are written once, and
    /// where files grow, those that keep a stack.
    pub(crate) fn apart(&self, entries: &[Entry], block: u32, appends: bool) -> HashMap<usize, Apart> {
        let policy = Policy::of(&self.rules);
        let has_policy = !self.rules.is_empty();
        let of = |(nth, entry): (usize, &Entry)| {
            if appends && room_for_stack(nth, entry, block).is_some() {
                return Some((nth, Apart::Alone));
            }
            let is_changing = has_policy && !policy.words(&entry.path, false).has(Words::ONCE);
            is_changing.then_some((nth, Apart::Changing))
        };
        if !has_policy && !appends {
            return HashMap::new();
        }
        entries.iter().enumerate().filter_map(of).collect()
    }

    /// The paths that are not protected, as far as a sidecar records them: a folder stands for what is in it.
    fn omitted(&self) -> Vec<Omitted> {
        let mut omitted = listed(&self.tree.omitted);
        omitted.retain(|omitted| !is_below(&self.tree.omitted, &omitted.path));
        limit_omitted(&mut omitted);
        omitted
    }

    /// The report of a sidecar with this root and this E.
    pub(crate) fn report(
        &self,
        catalog: &Catalog,
        (root, metadata): (Digest, Option<Digest>),
        spare: Spare,
    ) -> Protected {
        let count = |is: fn(&EntryKind) -> bool| {
            catalog.entries.iter().filter(|entry| is(&entry.kind)).count() as u64
        };
        let block = u64::from(catalog.block);
        let group =
            catalog.groups.iter().max_by_key(|group| group.positions()).expect("a catalog has a group");
        let extent = catalog.extents[catalog.extents.len() - 1];
        Protected {
            root,
            metadata,
            base: self.base_path.clone(),
            is_beside: self.way().is_empty() || self.way() == AROUND && self.is_around(),
            files: count(|kind| matches!(kind, EntryKind::File(_))),
            folders: count(|kind| matches!(kind, EntryKind::Folder)),
            links: count(|kind| matches!(kind, EntryKind::Symlink(_) | EntryKind::HardLink(_))),
            files_len: catalog.files_len(),
            data_len: Positions::of(catalog).len(0..catalog.positions()),
            recovery_len: catalog.groups.iter().map(|group| group.recovery()).sum::<u64>() * block,
            sidecar_len: extent.start + extent.len(block).unwrap_or(u64::MAX),
            spare,
            block: catalog.block,
            code: (group.code.k() as usize, group.code.m() as usize),
            sets: group.sets,
            skipped: self.tree.skipped.clone(),
            sidecars: self.tree.sidecars.clone(),
            excluded: self.excluded.clone(),
            rules: self.rules.clone(),
            omitted: listed(&self.tree.omitted),
            kept: listed(&self.tree.kept),
        }
    }
}

/// Fails if nothing was found, or no file could be read.
fn check_any(tree: &Tree, base: &Base) -> Result<()> {
    let is_read =
        |(nth, entry): (usize, &Entry)| matches!(entry.kind, EntryKind::File(_)) && tree.seen.has(nth);
    let mut left = tree.omitted.iter().chain(&tree.kept);
    match left.clone().next() {
        None if tree.entries.is_empty() => Err(Error::new(Action::Protect, SidecarError::Nothing)),
        Some((path, reason)) if !tree.entries.iter().enumerate().any(is_read) => {
            match left.all(|(_, reason)| *reason == Reason::Denied) {
                true => {
                    let mut denied: Vec<PathBuf> =
                        tree.omitted.keys().chain(tree.kept.keys()).map(|path| base.place(path)).collect();
                    denied.sort_unstable();
                    Err(Error::new(Action::Read, ErrorKind::NotAllowed(denied)))
                }
                false => Err(error_of(base, path, *reason)),
            }
        }
        _ => Ok(()),
    }
}

/// Paths with their reasons.
fn listed(reasons: &Reasons) -> Vec<Omitted> {
    reasons.iter().map(|(path, reason)| Omitted { path: path.clone(), reason: *reason }).collect()
}

/// Tells whether a path is that of a temporary file of fec beside the sidecar.
fn is_temporary(place: &Path, home: &Path) -> bool {
    let name = place.file_name().map_or(&[][..], |name| name.as_bytes());
    place.parent() == home.parent() && name.starts_with(b".fec-") && name.ends_with(b".tmp")
}

/// The path from the folder of a sidecar to the base; empty if they are the same.
fn way_to(home: &Path, base: &Path) -> Vec<u8> {
    let folder = home.parent().unwrap_or(Path::new("/"));
    let shared = folder.components().zip(base.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    let way: PathBuf = up.chain(base.components().skip(shared)).collect();
    let way = way.into_os_string();
    // A path that is too long is not recorded. The user then names the base.
    if way.len() > usize::from(u16::MAX) { Vec::new() } else { way.as_bytes().to_vec() }
}
