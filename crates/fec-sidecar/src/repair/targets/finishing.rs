//! Finishes all entries after their bytes are there: gives them their names, permissions and times.

use super::{Targets, room};
use crate::catalog::hashing::{Padded, digest_of_file};
use crate::repair::actions::EntryAction;
use crate::repair::left_out::{Dressed, unset};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::{self, file_type};
use fec_base::io::output::set_mode;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

impl Targets<'_> {
    /// Makes missing folders and links, and gives new files their names. Returns the entries that could not be
    /// restored.
    pub(crate) fn finish(&mut self) -> Result<Vec<usize>> {
        self.complete_new_files()?;
        let mut failed = Vec::new();
        for entry in 0..self.actions.len() {
            if !self.finish_entry(entry)? {
                failed.push(entry);
            }
        }
        // Folders come last, since making entries in them changes their times.
        for entry in (0..self.actions.len()).rev() {
            let is_folder = self.sidecar.catalog.entries[entry].kind == EntryKind::Folder;
            let is_made = failed.binary_search(&entry).is_err() && !self.out.contains(&entry);
            if let (EntryAction::Make { .. }, true, true) = (self.actions[entry], is_folder, is_made) {
                self.dress_folder(entry)?;
            }
        }
        Ok(failed)
    }

    /// Creates the new files that have no bytes, closes all files, and syncs the new ones.
    fn complete_new_files(&mut self) -> Result<()> {
        // Empty files were not created yet.
        for entry in 0..self.actions.len() as u32 {
            if let (EntryAction::Make { .. }, Some(_)) = (self.actions[entry as usize], self.entry(entry).1) {
                self.file(entry)?;
            }
        }
        self.open.clear();
        // New files are synced together: many files would each wait for the disk.
        if let (true, Some((_, room))) = (self.how.sync, &self.room) {
            room::sync_new(room).map_err(|e| Error::io(Action::Sync, room.path(), e))?;
        }
        Ok(())
    }

    /// Finishes an entry, or leaves it out if the target cannot hold it. Returns false if it could not be restored.
    fn finish_entry(&mut self, entry: usize) -> Result<bool> {
        let done = match self.actions[entry] {
            EntryAction::Leave => Ok(true),
            EntryAction::Mend => self.mended(entry),
            EntryAction::Make { replace } => self.made(entry, replace),
        };
        let Err(error) = done else { return done };
        if let Some(cause) = self.cannot_hold(entry, &error) {
            self.leave_out(entry, cause);
            return Ok(true);
        }
        // The other entries do not wait for this one.
        if is_in_the_way(&error) {
            self.cause.get_or_insert(error);
            return Ok(false);
        }
        Err(error)
    }

    /// Gives a made folder its permissions and its time.
    fn dress_folder(&mut self, entry: usize) -> Result<()> {
        let stat = self.sidecar.stats.entries[entry];
        let path = &self.sidecar.catalog.entries[entry].path;
        let wanted = self.sidecar.permissions(entry, self.umask);
        if let Ok(folder) = self.base.read_folder(path) {
            let owner = self.base.holder(path).and_then(|holder| self.owner(&holder, None));
            let dressed = owner.and_then(|owner| {
                // Another folder that somebody put there keeps its permissions and time.
                if owner.is_some_and(|(user, _)| folder.metadata().is_ok_and(|meta| meta.uid() != user)) {
                    return Ok(Dressed::default());
                }
                let permissions = unset(set_mode(&folder, wanted))?;
                Ok(Dressed {
                    permissions,
                    time: unset(base::set_modified(&folder, stat.seconds, stat.nanos))?,
                })
            });
            let dressed = dressed.map_err(self.fail(entry as u32))?;
            self.note_undressed(entry, dressed);
            return Ok(());
        }
        let dressed = self.base.holder(path).and_then(|holder| {
            let now = holder.stat()?;
            // Something else that somebody put there keeps its permissions and time.
            if file_type(&now) != FileType::Directory {
                return Ok(Dressed::default());
            }
            // The integer type differs between systems.
            #[allow(clippy::unnecessary_cast)]
            let has_mode = now.st_mode as u32 & 0o7777 == wanted;
            let mode = if has_mode { Ok(()) } else { holder.set_mode(wanted as u16) };
            let permissions = unset(mode)?;
            Ok(Dressed { permissions, time: unset(holder.set_modified(stat.seconds, stat.nanos))? })
        });
        let dressed = dressed.map_err(self.fail(entry as u32))?;
        self.note_undressed(entry, dressed);
        Ok(())
    }

    /// Gives a mended file its length, its permissions and its recorded time, unless somebody else has written to it.
    /// Returns whether the file is whole. A file that got no byte and lacks some stays as it is: it may be an edit.
    fn mended(&mut self, entry: usize) -> Result<bool> {
        let (_, Some(of)) = self.entry(entry as u32) else { return Ok(true) };
        let fail = self.fail(entry as u32);
        let is_whole = self.holds_all(entry, of)?;
        // Whoever wrote to the file while it was read again shows here.
        if !is_whole && !self.begun.get(entry as u64) || self.begin(entry as u32)?.is_none() {
            return Ok(false);
        }
        let Some(file) = self.open.remove(&(entry as u32)) else { return Ok(true) };
        // The repair wrote only bytes that the file had before. A file that is not whole yet still counts as rotten,
        // and gets its recorded time too.
        let kept = file.metadata().map_err(&fail)?.permissions().mode() & 0o7777;
        let dressed = self.dress(&file, entry, Some(kept)).map_err(&fail)?;
        self.note_undressed(entry, dressed);
        if self.how.sync {
            fec_base::io::system::sync(&file).map_err(&fail)?;
        }
        Ok(is_whole)
    }

    /// Tells whether a file will have all bytes of its entry when it gets its length: bytes behind it do not count, and
    /// missing ones are zeros. A file that cannot be read again has not.
    fn holds_all(&mut self, entry: usize, of: &FileEntry) -> Result<bool> {
        let block = self.sidecar.catalog.block.into();
        let file = self.file(entry as u32)?;
        match digest_of_file(&Padded(file), of, block) {
            Ok(digest) => Ok(digest == of.blake3),
            // The other entries do not wait for this one.
            Err(e) => {
                let place = self.base.place(self.entry(entry as u32).0);
                self.cause.get_or_insert_with(|| Error::io(Action::Read, place.as_path(), e));
                Ok(false)
            }
        }
    }

    /// Gives a file its permissions and its time. It keeps the permissions `kept` if its owner's right to execute is
    /// right in them. Permissions beyond those of owner, group and others are not restored.
    pub(super) fn dress(&self, file: &File, entry: usize, kept: Option<u32>) -> io::Result<Dressed> {
        let stat = self.sidecar.stats.entries[entry];
        let is_executable =
            matches!(&self.sidecar.catalog.entries[entry].kind, EntryKind::File(of) if of.is_executable);
        let kept = kept.filter(|kept| (kept & 0o100 != 0) == is_executable);
        let mode = kept.unwrap_or_else(|| self.sidecar.permissions(entry, self.umask));
        let mode = if is_executable { mode | 0o100 } else { mode & !0o100 };
        let permissions = unset(set_mode(file, mode))?;
        Ok(Dressed { permissions, time: unset(base::set_modified(file, stat.seconds, stat.nanos))? })
    }
}

/// Tells whether an error concerns a single entry: something is in its way, or something that it needs is missing.
fn is_in_the_way(error: &Error) -> bool {
    const OF_ONE: [i32; 9] = [
        libc::ENOENT,
        libc::EEXIST,
        libc::ENOTDIR,
        libc::EISDIR,
        libc::ENOTEMPTY,
        libc::ELOOP,
        libc::EACCES,
        libc::EPERM,
        libc::ETXTBSY,
    ];
    matches!(&error.kind, ErrorKind::Io(e) if e.raw_os_error().is_some_and(|code| OF_ONE.contains(&code)))
}
