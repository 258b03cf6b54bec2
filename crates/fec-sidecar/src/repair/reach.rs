//! Finds out before anything is written which files and folders a repair may write to. The user's own that are
//! read-only are made writable for the moment; the list names them, so that a killed repair leaves none writable.

use crate::Sidecar;
use crate::catalog::journal::{Closed, Journal};
use crate::error::SidecarError;
use crate::repair::actions::EntryAction;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::{Base, file_type};
use fec_base::io::output::free_room;
use fec_base::io::read_only::{Access, MadeWritable};
use rustix::fs::FileType;
use rustix::process::geteuid;
use std::collections::HashMap;
use std::io::{self, ErrorKind as IoKind};

/// The places that a repair may write to.
#[derive(Default)]
pub(crate) struct Reach {
    /// Read-only files and folders that are made writable.
    pub(crate) closed: Closed,
    /// The folder that new files are made in first, below the base.
    pub(crate) room: Box<[u8]>,
    /// Entries that cannot be written to, in order, each with the cause.
    pub(crate) barred: Vec<(usize, Error)>,
}

impl Reach {
    /// Finds the places that these actions write to. Without a list nothing that is read-only is made writable: it
    /// would stay so after a kill.
    pub(crate) fn of(sidecar: &Sidecar, base: &Base, actions: &[EntryAction], is_listed: bool) -> Reach {
        let mut reach = Reach::default();
        let mut folders: Folders<'_> = Folders { base, known: HashMap::new() };
        let mut first = None;
        for (nth, action) in actions.iter().enumerate() {
            let path = &*sidecar.catalog.entries[nth].path;
            let (place, access) = match action {
                EntryAction::Leave => continue,
                EntryAction::Mend => (path, base.access(path)),
                EntryAction::Make { .. } => folders.around(path),
            };
            let error = match access {
                Ok(Access::ReadOnly(mode)) if is_listed => {
                    reach.closed.extend(key(sidecar, place).map(|key| (key, mode)));
                    None
                }
                Ok(Access::Free) => None,
                Ok(Access::ReadOnly(_)) => Some(no_list(base, path)),
                Ok(Access::NotYours) => {
                    Some(Error::at(Action::Write, base.place(place).as_path(), SidecarError::ReadOnly))
                }
                Err(e) => Some(Error::io(Action::Write, base.place(place).as_path(), e)),
            };
            match (error, action) {
                (Some(error), _) => reach.barred.push((nth, error)),
                (None, EntryAction::Make { .. }) => first = first.or(Some(place)),
                _ => {}
            }
        }
        reach.keep_room(sidecar, base, actions);
        if let Some(place) = first {
            reach.room = reach.room_on_the_way(sidecar, &mut folders, place).into();
        }
        reach
    }

    /// Bars the new files that there is no room for. A file that is mended in place needs none, and does not wait.
    fn keep_room(&mut self, sidecar: &Sidecar, base: &Base, actions: &[EntryAction]) {
        let place = base.place(base.named());
        let Some(free) = free_room(&place) else { return };
        let is_barred = |nth: usize| self.barred.iter().any(|(barred, _)| *barred == nth);
        let is_made = |nth: usize| matches!(actions[nth], EntryAction::Make { .. });
        let made: Vec<_> = sidecar.catalog.files().filter(|(nth, _)| is_made(*nth)).collect();
        let needed: u64 = made.iter().map(|(_, file)| file.size).sum();
        if needed <= free {
            return;
        }
        let made = made.into_iter().filter(|(nth, _)| !is_barred(*nth));
        let mut left = free;
        let mut barred = Vec::new();
        for (nth, file) in made {
            match left.checked_sub(file.size) {
                Some(rest) => left = rest,
                None => {
                    let none = ErrorKind::NoRoom { needed, free };
                    barred.push((nth, Error::at(Action::Write, place.as_path(), none)));
                }
            }
        }
        self.barred.extend(barred);
    }

    /// The folder nearest to the named one, on the way to this one, that new files can be made in.
    fn room_on_the_way<'p>(&self, sidecar: &Sidecar, folders: &mut Folders<'p>, to: &'p [u8]) -> &'p [u8] {
        let named = folders.base.named().len();
        let ends = (named..to.len()).filter(|at| *at == 0 || to[*at] == b'/');
        let mut way = ends.map(|end| &to[..end]);
        let is_open = |folder: &&'p [u8]| {
            folders.access(folder).is_ok_and(|access| access == Access::Free)
                || key(sidecar, folder).is_some_and(|key| self.closed.contains_key(&key))
        };
        way.find(is_open).unwrap_or(to)
    }
}

/// The access to folders below the base, each asked for once.
struct Folders<'p> {
    base: &'p Base,
    known: HashMap<&'p [u8], Access>,
}

impl<'p> Folders<'p> {
    fn access(&mut self, folder: &'p [u8]) -> io::Result<Access> {
        if let Some(access) = self.known.get(folder) {
            return Ok(*access);
        }
        let access = self.base.folder_access(folder)?;
        self.known.insert(folder, access);
        Ok(access)
    }

    /// The nearest folder around a path that is there, and the access to it.
    fn around(&mut self, path: &'p [u8]) -> (&'p [u8], io::Result<Access>) {
        let mut folder = path;
        loop {
            folder = &folder[..folder.iter().rposition(|byte| *byte == b'/').unwrap_or(0)];
            match self.access(folder) {
                Err(e) if !folder.is_empty() && is_no_folder(&e) => {}
                access => return (folder, access),
            }
        }
    }
}

/// Tells whether an error says that no folder is there.
fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), IoKind::NotFound | IoKind::NotADirectory)
        || error.raw_os_error() == Some(libc::ELOOP)
}

/// The first entry at or below a path, and the length of the path: so the list names it.
fn key(sidecar: &Sidecar, path: &[u8]) -> Option<(usize, usize)> {
    let entries = &sidecar.catalog.entries;
    let at = match entries.binary_search_by(|entry| (*entry.path).cmp(path)) {
        Ok(at) => at,
        Err(_) if path.is_empty() => 0,
        Err(_) => {
            let below = [path, b"/"].concat();
            entries.partition_point(|entry| *entry.path < *below)
        }
    };
    (at < entries.len()).then_some((at, path.len()))
}

/// The path that a list names so, if it is one.
fn path_at(sidecar: &Sidecar, (entry, len): (usize, usize)) -> Option<&[u8]> {
    let path = &*sidecar.catalog.entries.get(entry)?.path;
    let is_end = len == 0 || path.get(len).map_or(len == path.len(), |byte| *byte == b'/');
    path.get(..len).filter(|_| is_end)
}

/// Makes read-only folders writable, as long as the result lives.
///
/// # Errors
/// Those of the system.
pub(crate) fn open_folders(sidecar: &Sidecar, base: &Base, closed: &Closed) -> Result<Vec<MadeWritable>> {
    let mut opened = Vec::new();
    for path in closed.keys().filter_map(|key| path_at(sidecar, *key)) {
        if base.folder_access(path).is_ok() {
            let made = base.make_writable(path);
            opened.extend(made.map_err(|e| Error::io(Action::Write, base.place(path).as_path(), e))?);
        }
    }
    Ok(opened)
}

/// The folders that the list of an interrupted repair names as made writable.
pub(crate) fn folders_of<'a>(journal: &'a Journal, sidecar: &'a Sidecar) -> impl Iterator<Item = &'a [u8]> {
    journal.list.closed.keys().filter_map(|key| path_at(sidecar, *key))
}

/// Puts the permissions back that an interrupted repair took from read-only files and folders. Only what was changed
/// later than the list, and has no permission but the one to write besides, was made writable by it.
pub(crate) fn put_back(journal: &Journal, sidecar: &Sidecar, base: &Base) {
    for (key, mode) in &journal.list.closed {
        let Some(path) = path_at(sidecar, *key) else { continue };
        let is_folder = base.folder_access(path).is_ok();
        let opened = if is_folder { base.read_folder(path) } else { base.read(path) };
        // An entry that cannot be looked at stays in the list.
        let _ = opened.and_then(|file| match journal.is_older_than(&rustix::fs::fstat(&file)?) {
            true => MadeWritable::put_back(&file, *mode),
            false => Ok(()),
        });
    }
}

/// Replaces files in one step that are to be mended in place, where no list can be written. Those that have other
/// names, or belong to others, would not stay what they are: they are barred, and so is all that is read-only.
pub(crate) fn without_list(
    sidecar: &Sidecar,
    base: &Base,
    actions: &mut [EntryAction],
) -> Vec<(usize, Error)> {
    let mut barred = Vec::new();
    for (nth, action) in actions.iter_mut().enumerate().filter(|(_, action)| **action == EntryAction::Mend) {
        let path = &sidecar.catalog.entries[nth].path;
        let user = geteuid();
        let is_own = base.stat(path).is_ok_and(|stat| {
            file_type(&stat) == FileType::RegularFile
                && stat.st_nlink == 1
                && stat.st_mode & 0o200 != 0
                && (user.is_root() || stat.st_uid == user.as_raw())
        });
        match is_own {
            true => *action = EntryAction::Make { replace: true },
            false => barred.push((nth, no_list(base, path))),
        }
    }
    barred
}

/// The error for an entry that is not written to without a list.
fn no_list(base: &Base, path: &[u8]) -> Error {
    Error::at(Action::Write, base.place(path).as_path(), SidecarError::NoList)
}
