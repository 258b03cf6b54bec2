//! A selection of the entries of a sidecar, to be examined or repaired alone.

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::examine::findings::Unprotected;
use fec_base::error::{Action, Error, Result};
use fec_core::format::sidecar::EntryKind;

/// Entries of a sidecar: those at some paths, all below them, and what they need: the folders around them, and the
/// files that hard links are further names of.
#[derive(Clone, Debug)]
pub struct Selection {
    entries: Bits,
    /// The number of entries in the sidecar.
    of: usize,
}

impl Selection {
    /// Selects the entries at these paths, which are relative to the base, and all below them. The empty path is the
    /// base.
    ///
    /// Cost: a binary search for each path, and a bit for each entry.
    ///
    /// # Errors
    /// [`SidecarError::NoEntry`] for the first path that is no entry, and that no entry lies below.
    pub fn of<'p>(sidecar: &Sidecar, paths: impl IntoIterator<Item = &'p [u8]>) -> Result<Selection> {
        let entries = &sidecar.catalog.entries;
        let mut selected = Bits::new(entries.len() as u64);
        for path in paths {
            let found = below(sidecar, path);
            if found.is_empty() {
                let unknown = SidecarError::NoEntry(path.to_vec());
                return Err(Error::at(Action::Read, sidecar.path(), unknown));
            }
            for nth in found {
                selected.set(nth as u64);
                if let EntryKind::HardLink(of) = entries[nth].kind {
                    selected.set(of.into());
                    select_folders(sidecar, &entries[of as usize].path, &mut selected);
                }
            }
            select_folders(sidecar, path, &mut selected);
        }
        Ok(Selection { entries: selected, of: entries.len() })
    }

    /// Tells whether no entry is left out.
    pub fn is_all(&self) -> bool {
        self.entries.count() == self.of as u64
    }

    /// The numbers of the selected entries, in order.
    pub fn entries(&self) -> impl Iterator<Item = usize> {
        (0..self.of).filter(|nth| self.has(*nth))
    }

    pub(crate) fn has(&self, entry: usize) -> bool {
        self.entries.get(entry as u64)
    }

    /// Adds entries, by numbers that the sidecar may not have.
    pub(crate) fn with(mut self, entries: impl IntoIterator<Item = usize>) -> Selection {
        entries.into_iter().filter(|nth| *nth < self.of).for_each(|nth| self.entries.set(nth as u64));
        self
    }
}

impl Examined {
    /// Forgets the entries that are not selected, and the damage of the sidecar. Lost bytes stay lost where
    /// others are computed.
    pub(crate) fn keep(&mut self, selection: &Selection, sidecar: &Sidecar, positions: &Positions) {
        self.entries.retain(|report| selection.has(report.entry));
        self.unprotected = Unprotected { busy: self.unprotected.busy.take(), ..Unprotected::default() };
        (self.touched, self.recovery_damaged, self.recovery_displaced) = (0, 0, 0);
        (self.sidecar_damage, self.container_damaged) = (Vec::new(), false);
        self.margin = self.margin_of(&sidecar.catalog, positions);
    }
}

/// The numbers of the entries at a path and below it. Those below a folder follow each other.
fn below(sidecar: &Sidecar, path: &[u8]) -> Vec<usize> {
    let entries = &sidecar.catalog.entries;
    if path.is_empty() {
        return (0..entries.len()).collect();
    }
    let folder = [path, b"/"].concat();
    let start = entries.partition_point(|entry| *entry.path < *folder);
    let end = start + entries[start..].partition_point(|entry| entry.path.starts_with(&folder));
    let itself = entries.binary_search_by(|entry| (*entry.path).cmp(path));
    itself.into_iter().chain(start..end).collect()
}

/// Selects the folders around a path.
fn select_folders(sidecar: &Sidecar, path: &[u8], selected: &mut Bits) {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let folders = ends.filter_map(|at| {
        sidecar.catalog.entries.binary_search_by(|entry| (*entry.path).cmp(&path[..at])).ok()
    });
    folders.for_each(|nth| selected.set(nth as u64));
}
