//! Items in protected folders that are not protected.

use super::Files;
use crate::catalog::journal;
use crate::catalog::moved::folders_of;
use crate::catalog::others::is_of_sidecar;
use crate::catalog::patterns::Patterns;
use crate::examine::findings::{EntryReport, Unprotected};
use crate::kind::signature_path;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::parts::Omitted;
use rustix::fs::FileType;
use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;

impl Files<'_> {
    /// The unprotected items in the folders, beside the recorded entries. Folders that cannot be read are reported as
    /// entries.
    pub(super) fn unprotected(&self, reports: &[EntryReport]) -> Unprotected {
        let moved = reports.iter().filter_map(|report| report.moved_to.as_deref());
        // A folder with a moved file in it is not new either.
        let moved: HashSet<&[u8]> =
            moved.flat_map(|path| std::iter::once(path).chain(folders_of(path))).collect();
        let entries = &self.sidecar.catalog.entries;
        let sidecar = self.sidecar.path();
        let own = [sidecar.to_path_buf(), journal::path_of(sidecar), signature_path(sidecar)];
        let own = own.map(|path| std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino())));
        let exclusion = self.sidecar.believed_exclusion();
        let patterns = Patterns::of(&exclusion, self.sidecar.believed_policy());
        let omitted = self.omitted();
        let mut unprotected = Unprotected::default();
        let folders = entries.iter().filter(|entry| entry.kind == EntryKind::Folder);
        let mut folders: Vec<Box<[u8]>> = folders.map(|entry| entry.path.clone()).collect();
        while let Some(folder) = folders.pop() {
            // A folder that cannot be listed is missing, or no folder any more.
            let _ = self.base.visit(&folder, |path, kind| {
                if entries.binary_search_by(|entry| (*entry.path).cmp(path)).is_ok() {
                    return;
                }
                let is_own = || {
                    let stat = self.base.stat(path).ok();
                    // The integer types differ between systems.
                    #[allow(clippy::unnecessary_cast)]
                    let place = stat.map(|stat| (stat.st_dev as u64, stat.st_ino as u64));
                    place.is_some() && own.contains(&place)
                };
                let is_omitted = omitted.binary_search_by(|omitted| (*omitted.path).cmp(path)).is_ok();
                if is_omitted || patterns.leave_out(self.base, path, kind == FileType::Directory) {
                    return;
                }
                if moved.contains(path) && kind == FileType::Directory {
                    // Beside what was moved there, things may be new.
                    folders.push(path.into());
                }
                let is_left_out = || is_own() || is_of_sidecar(&self.base.place(path));
                if !(moved.contains(path) || kind == FileType::RegularFile && is_left_out()) {
                    unprotected.count += 1;
                    unprotected.first.get_or_insert_with(|| path.into());
                }
            });
        }
        Unprotected { left_out: patterns.left_out(), omitted, busy: self.busy(), ..unprotected }
    }

    /// The paths that could not be protected, as far as they are still there: folders with what is in them, and what
    /// is no entry.
    fn omitted(&self) -> Vec<Omitted> {
        let entries = &self.sidecar.catalog.entries;
        let is_protected = |path: &[u8]| {
            let at = entries.binary_search_by(|entry| (*entry.path).cmp(path));
            at.is_ok_and(|at| entries[at].kind != EntryKind::Folder)
        };
        let is_there = |path: &[u8]| match self.base.stat(path) {
            Ok(_) => true,
            Err(e) => !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        };
        let omitted = self.sidecar.stats.omitted.iter();
        omitted.filter(|omitted| !is_protected(&omitted.path) && is_there(&omitted.path)).cloned().collect()
    }
}
