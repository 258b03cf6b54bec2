//! Folders, links and further names that were moved with the files beside them.

use super::Files;
use crate::catalog::moved::folders_of;
use crate::examine::verdict::State;
use fec_base::io::base::file_type;
use fec_core::format::sidecar::EntryKind;
use rustix::fs::FileType;
use std::collections::{HashMap, HashSet};

/// The new paths of entries that were moved.
pub(super) type NewPaths = HashMap<usize, Box<[u8]>>;

impl Files<'_> {
    /// Finds what is missing beside moved files where these are, and adds it to `moved`. A folder is moved too if all
    /// that it held is elsewhere: it does not have to be made again.
    pub(super) fn follow_moved(&self, states: &mut [State], moved: &mut NewPaths) {
        let entries = &self.sidecar.catalog.entries;
        let is_missing = |nth: &usize| states[*nth] == State::Missing;
        let missing: Vec<usize> =
            (0..entries.len()).filter(is_missing).filter(|nth| !self.is_file(*nth)).collect();
        if missing.is_empty() || moved.is_empty() {
            return;
        }
        let places = self.new_places(moved);
        for nth in &missing {
            let path = &entries[*nth].path;
            let found = places_of(&places, path).find(|place| self.is_entry_at(*nth, place, moved));
            if let Some(place) = found {
                states[*nth] = State::Moved;
                moved.insert(*nth, place);
            }
        }
        // Whatever is made again needs its folders.
        let needed: HashSet<&[u8]> = states
            .iter()
            .zip(entries)
            .filter(|(state, entry)| state.is_damage() && entry.kind != EntryKind::Folder)
            .flat_map(|(_, entry)| folders_of(&entry.path))
            .collect();
        let emptied: HashSet<&[u8]> = moved.keys().flat_map(|nth| folders_of(&entries[*nth].path)).collect();
        for nth in missing.iter().filter(|nth| entries[**nth].kind == EntryKind::Folder) {
            let path = &*entries[*nth].path;
            if needed.contains(path) {
                states[*nth] = State::Missing;
                moved.remove(nth);
            } else if emptied.contains(path) {
                states[*nth] = State::Moved;
            }
        }
    }

    fn is_file(&self, nth: usize) -> bool {
        matches!(self.sidecar.catalog.entries[nth].kind, EntryKind::File(_))
    }

    /// For each folder of a moved file, the new path of most files that were in it.
    fn new_places(&self, moved: &NewPaths) -> HashMap<&[u8], Box<[u8]>> {
        let mut votes: HashMap<&[u8], HashMap<Box<[u8]>, u64>> = HashMap::new();
        for (nth, now) in moved {
            for folder in folders_of(&self.sidecar.catalog.entries[*nth].path) {
                let rest = &self.sidecar.catalog.entries[*nth].path[folder.len()..];
                if let Some(place) = now.strip_suffix(rest).filter(|place| *place != folder) {
                    *votes.entry(folder).or_default().entry(place.into()).or_default() += 1;
                }
            }
        }
        let most = |votes: HashMap<Box<[u8]>, u64>| {
            votes.into_iter().max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0))).map(|(place, _)| place)
        };
        votes.into_iter().filter_map(|(folder, votes)| Some((folder, most(votes)?))).collect()
    }

    /// Tells whether what stands at a path is this entry, which is no first name of a file.
    fn is_entry_at(&self, nth: usize, place: &[u8], moved: &NewPaths) -> bool {
        let entries = &self.sidecar.catalog.entries;
        let Ok(stat) = self.base.stat(place) else { return false };
        match &entries[nth].kind {
            EntryKind::File(_) => false,
            EntryKind::Folder => file_type(&stat) == FileType::Directory,
            EntryKind::Symlink(target) => self.base.link_target(place).is_ok_and(|found| found == **target),
            EntryKind::HardLink(of) => {
                let first = moved.get(&(*of as usize)).unwrap_or(&entries[*of as usize].path);
                let first = self.base.stat(first);
                first.is_ok_and(|first| (first.st_dev, first.st_ino) == (stat.st_dev, stat.st_ino))
            }
        }
    }
}

/// The paths that an entry may have now, by the new paths of the folders above it and of itself.
fn places_of<'a>(
    places: &'a HashMap<&[u8], Box<[u8]>>,
    path: &'a [u8],
) -> impl Iterator<Item = Box<[u8]>> + 'a {
    std::iter::once(path).chain(folders_of(path)).filter_map(|above| {
        let place = places.get(above)?;
        Some([place, &path[above.len()..]].concat().into_boxed_slice())
    })
}
