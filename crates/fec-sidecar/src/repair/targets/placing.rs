//! Gives made entries their names.

use super::Targets;
use crate::catalog::hashing::is_whole;
use crate::repair::left_out::{Dressed, is_of_kind, unset};
use fec_base::error::Result;
use fec_base::io::base::{self, file_type};
use fec_base::io::temporary::Temporary;
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::FileType;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;

impl Targets<'_> {
    /// Puts a made entry in its place. Returns false if it is not as recorded.
    pub(crate) fn made(&mut self, entry: usize, replace: bool) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let of = &self.sidecar.catalog.entries[entry];
        let stat = self.sidecar.stats.entries[entry];
        self.make_folders(&of.path).map_err(&fail)?;
        let holder = self.base.holder(&of.path).map_err(&fail)?;
        if replace && !self.may_replace(entry as u32).map_err(&fail)? {
            return Ok(false);
        }
        let is_folder = || holder.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        if of.kind != EntryKind::Folder && is_folder() {
            // A folder is removed only if it is empty.
            if !replace || holder.remove_folder().is_err() {
                return Ok(false);
            }
        }
        match &of.kind {
            EntryKind::Folder => return self.made_folder(entry, &holder, replace),
            EntryKind::Symlink(target) => {
                let made = self.make_link(&holder, entry, replace, |at| at.create_link(target));
                if !self.is_held(entry, made)? {
                    return Ok(true);
                }
                let time = unset(holder.set_modified(stat.seconds, stat.nanos)).map_err(&fail)?;
                self.note_undressed(entry, Dressed { permissions: None, time });
            }
            EntryKind::HardLink(first) => {
                let first =
                    self.base.holder(&self.sidecar.catalog.entries[*first as usize].path).map_err(&fail)?;
                let made = self.make_link(&holder, entry, replace, |at| at.create_hard_link(&first));
                self.is_held(entry, made)?;
                return Ok(true);
            }
            EntryKind::File(file) => {
                if !self.made_file(entry, file, &holder, replace)? {
                    return Ok(false);
                }
            }
        }
        if self.how.sync {
            holder.sync().map_err(&fail)?;
        }
        Ok(true)
    }

    /// Makes a folder, in the place of something else if it replaces that. Returns whether a folder stands there.
    fn made_folder(&self, entry: usize, holder: &base::Holder<'_>, replace: bool) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let is_folder = || holder.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        let mode = self.sidecar.permissions(entry, self.umask) as u16 | 0o700;
        if replace && !is_folder() && holder.stat().is_ok() {
            holder.remove().map_err(&fail)?;
        }
        match holder.create_folder(mode) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            done => done.map_err(&fail)?,
        }
        Ok(is_folder())
    }

    /// Moves a new file from the room to its place. Returns false, and leaves the file there, if it is not as recorded.
    fn made_file(
        &mut self,
        entry: usize,
        file: &FileEntry,
        holder: &base::Holder<'_>,
        replace: bool,
    ) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let name = OsString::from(entry.to_string());
        let block = self.sidecar.catalog.block.into();
        let is_as_written = match self.values.remove(&(entry as u32)) {
            Some(written) => written.digest(file, block).map(|digest| digest == file.blake3),
            None => None,
        };
        let room = self.room()?;
        let new = room.write(name.as_bytes()).map_err(&fail)?;
        let is_whole = match is_as_written {
            Some(is_whole) => is_whole,
            None => is_whole(&new, file, block).map_err(&fail)?,
        };
        if !is_whole {
            return Ok(false);
        }
        let from = room.holder(name.as_bytes()).map_err(&fail)?;
        let mut dressed = self.dress(&new, entry, true).map_err(&fail)?;
        match from.rename(holder, replace) {
            Err(e) if e.raw_os_error() == Some(libc::EXDEV) => {
                dressed = self.copy_across(&new, entry, holder, replace).map_err(&fail)?;
            }
            done => done.map_err(&fail)?,
        }
        self.note_undressed(entry, dressed);
        Ok(true)
    }

    /// Tells whether a link was made. A link that the target cannot hold is left out.
    fn is_held(&mut self, entry: usize, made: Result<()>) -> Result<bool> {
        let Err(error) = made else { return Ok(true) };
        match is_of_kind(&self.sidecar.catalog.entries[entry].kind, &error) {
            Some(cause) => {
                self.leave_out(entry, cause);
                Ok(false)
            }
            None => Err(error),
        }
    }

    /// Makes a link under a name, or makes it in the room for new files and renames it from there.
    fn make_link(
        &mut self,
        holder: &base::Holder<'_>,
        entry: usize,
        replace: bool,
        make: impl Fn(&base::Holder<'_>) -> io::Result<()>,
    ) -> Result<()> {
        let fail = self.fail(entry as u32);
        if !replace {
            return make(holder).map_err(fail);
        }
        let name = OsString::from(entry.to_string());
        let new = self.room()?.holder(name.as_bytes()).map_err(&fail)?;
        let renamed = match make(&new).and_then(|()| new.rename(holder, true)) {
            // The name lies on another file system.
            Err(e) if e.raw_os_error() == Some(libc::EXDEV) => {
                self.beside(entry, holder, &make).and_then(|(temporary, ())| {
                    let name = temporary.path().file_name().unwrap_or_default().to_owned();
                    let beside = holder.sibling(&name)?;
                    let renamed = temporary.commit(|_| beside.rename(holder, true));
                    let _ = beside.remove();
                    renamed
                })
            }
            done => done,
        };
        // A rename does nothing if both names are already the same file.
        let _ = new.remove();
        renamed.map_err(fail)
    }

    /// Copies a new file into a folder on another file system.
    fn copy_across(
        &self,
        new: &File,
        entry: usize,
        to: &base::Holder<'_>,
        replace: bool,
    ) -> io::Result<Dressed> {
        let (temporary, mut copy) = self.beside(entry, to, |at| at.create_file(0o600))?;
        let mut source = new;
        io::Seek::seek(&mut source, io::SeekFrom::Start(0))?;
        io::copy(&mut source, &mut copy)?;
        let dressed = self.dress(&copy, entry, true)?;
        copy.sync_all()?;
        temporary
            .commit(|path| to.sibling(path.file_name().unwrap_or_default())?.rename(to, replace))
            .map(|()| dressed)
    }

    /// Makes something under a temporary name in the folder of an entry. It is removed unless it gets its own name.
    fn beside<T>(
        &self,
        entry: usize,
        to: &base::Holder<'_>,
        make: impl Fn(&base::Holder<'_>) -> io::Result<T>,
    ) -> io::Result<(Temporary, T)> {
        let place = self.base.place(self.entry(entry as u32).0);
        Temporary::beside(&place, |path| make(&to.sibling(path.file_name().unwrap_or_default())?))
    }

    /// Makes the missing folders around a path that have no entries of their own.
    fn make_folders(&self, path: &[u8]) -> io::Result<()> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            match self.base.stat(&path[..at]) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    self.base.holder(&path[..at])?.create_folder(0o777)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}
