//! Gives made entries their names.

use super::owner::{UserAndGroup, give, owner_of};
use super::{Targets, holes};
use crate::catalog::hashing::is_whole;
use crate::examine::written::Written;
use crate::repair::left_out::{Dressed, is_of_kind, unset};
use fec_base::error::Result;
use fec_base::io::base::{self, file_type};
use fec_base::io::look::Over;
use fec_base::io::output::if_any;
use fec_base::io::temporary::{Temporary, parent, remove_stale, undisturbed};
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::{FileType, Stat};
use rustix::process::geteuid;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

impl Targets<'_> {
    /// Puts a made entry in its place. Returns false if it is not as recorded.
    pub(crate) fn made(&mut self, entry: usize, replace: bool) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let of = &self.sidecar.catalog.entries[entry];
        let stat = self.sidecar.stats.entries[entry];
        self.make_folders(&of.path).map_err(&fail)?;
        let holder = self.base.holder(&of.path).map_err(&fail)?;
        let over = if replace { self.replaceable(entry as u32).map_err(&fail)? } else { Some(Over::Nothing) };
        let Some(mut over) = over else { return Ok(false) };
        let is_folder = || holder.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        if of.kind != EntryKind::Folder && is_folder() {
            // A folder is removed only if it is empty.
            if !replace || holder.remove_folder().is_err() {
                return Ok(false);
            }
            over = Over::Nothing;
        }
        match &of.kind {
            EntryKind::Folder => return self.made_folder(entry, &holder, over),
            EntryKind::Symlink(target) => {
                let owner = self.owner(&holder, None).map_err(&fail)?;
                let made = self.make_link(&holder, (entry, owner), over, |at| at.create_link(target));
                match self.placed(entry, made)? {
                    Placed::Named => {}
                    Placed::LeftOut => return Ok(true),
                    Placed::InTheWay => return Ok(false),
                }
                let time = unset(holder.set_modified(stat.seconds, stat.nanos)).map_err(&fail)?;
                self.note_undressed(entry, Dressed { permissions: None, time });
            }
            EntryKind::HardLink(first) => {
                let first =
                    self.base.holder(&self.sidecar.catalog.entries[*first as usize].path).map_err(&fail)?;
                let made = self.make_link(&holder, (entry, None), over, |at| at.create_hard_link(&first));
                return Ok(self.placed(entry, made)? != Placed::InTheWay);
            }
            EntryKind::File(file) => {
                if !self.made_file(entry, file, &holder, over)? {
                    return Ok(false);
                }
            }
        }
        if self.how.sync {
            holder.sync().map_err(&fail)?;
        }
        Ok(true)
    }

    /// Makes a folder, in the place of something that may be replaced. Returns whether a folder stands there.
    fn made_folder(&mut self, entry: usize, holder: &base::Holder<'_>, over: Over) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let is_folder = || holder.stat().is_ok_and(|stat| file_type(&stat) == FileType::Directory);
        let mode = self.sidecar.permissions(entry, self.umask) as u16 | 0o700;
        if !is_folder() {
            let made = match self.new_folder(holder, mode, over) {
                Err(e) if is_elsewhere(&e) => {
                    self.beside(entry, holder, |at| at.create_folder(mode)).and_then(|(temporary, ())| {
                        let name = temporary.path().file_name().unwrap_or_default().to_owned();
                        temporary.commit(|_| holder.sibling(&name)?.rename(holder, over))
                    })
                }
                made => made,
            };
            match made {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                done => done.map_err(&fail)?,
            }
        }
        Ok(is_folder())
    }

    /// Moves a new file from the room to its place. Returns false, and leaves the file there, if it is not as recorded
    /// or something else has the name now.
    fn made_file(
        &mut self,
        entry: usize,
        file: &FileEntry,
        holder: &base::Holder<'_>,
        over: Over,
    ) -> Result<bool> {
        let fail = self.fail(entry as u32);
        let name = OsString::from(entry.to_string());
        let block = self.sidecar.catalog.block.into();
        let all_zeros = || (file.runs.is_empty() && file.tail_len(block) == 0).then(|| Written::new(file));
        let is_as_written = match self.values.remove(&(entry as u32)).or_else(all_zeros) {
            Some(written) => {
                written.digest(block, || self.meter.check())?.map(|digest| digest == file.blake3)
            }
            None => None,
        };
        let old = self.base.stat(&self.sidecar.catalog.entries[entry].path).ok();
        let old = old.filter(|old| over != Over::Nothing && file_type(old) == FileType::RegularFile);
        let owner = self.owner(holder, old.as_ref()).map_err(&fail)?;
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
        // The integer types differ between systems.
        #[allow(clippy::unnecessary_cast)]
        let kept = old.map(|old| old.st_mode as u32 & 0o777);
        give(&new, owner).map_err(&fail)?;
        let mut dressed = self.dress(&new, entry, kept).map_err(&fail)?;
        let placed = match undisturbed(|| from.rename(holder, over)) {
            Err(e) if is_elsewhere(&e) => {
                self.copy_across(&new, (entry, owner, kept), holder, over).map(|copied| dressed = copied)
            }
            done => done,
        };
        if is_taken(&placed, over) {
            return Ok(false);
        }
        placed.map_err(&fail)?;
        self.note_undressed(entry, dressed);
        Ok(true)
    }

    /// The outcome of making a link. A link that the target cannot hold is left out.
    fn placed(&mut self, entry: usize, made: io::Result<Placed>) -> Result<Placed> {
        let error = match made {
            Ok(placed) => return Ok(placed),
            Err(e) => self.fail(entry as u32)(e),
        };
        match is_of_kind(&self.sidecar.catalog.entries[entry].kind, &error) {
            Some(cause) => {
                self.leave_out(entry, cause);
                Ok(Placed::LeftOut)
            }
            None => Err(error),
        }
    }

    /// Makes a link under a name, or makes it in the room for new files and renames it from there.
    fn make_link(
        &mut self,
        holder: &base::Holder<'_>,
        (entry, owner): (usize, Option<UserAndGroup>),
        over: Over,
        make: impl Fn(&base::Holder<'_>) -> io::Result<()>,
    ) -> io::Result<Placed> {
        if over == Over::Nothing && owner.is_none() {
            return make(holder).map(|()| Placed::Named);
        }
        let in_room = |at: &base::Holder<'_>| {
            make(at)?;
            owner.map_or(Ok(()), |owner| if_any(at.set_owner(owner)))
        };
        let name = OsString::from(entry.to_string());
        let new = self.room().map_err(io::Error::other)?.holder(name.as_bytes())?;
        let renamed = match in_room(&new).and_then(|()| undisturbed(|| new.rename(holder, over))) {
            // The name lies on another file system.
            Err(e) if is_elsewhere(&e) => self.beside(entry, holder, &make).and_then(|(temporary, ())| {
                let name = temporary.path().file_name().unwrap_or_default().to_owned();
                let beside = holder.sibling(&name)?;
                let renamed = temporary.commit(|_| beside.rename(holder, over));
                let _ = beside.remove();
                renamed
            }),
            done => done,
        };
        // A rename does nothing if both names are already the same file.
        let _ = new.remove();
        match is_taken(&renamed, over) {
            true => Ok(Placed::InTheWay),
            false => renamed.map(|()| Placed::Named),
        }
    }

    /// Copies a new file into a folder on another file system.
    fn copy_across(
        &mut self,
        new: &File,
        (entry, owner, kept): (usize, Option<UserAndGroup>, Option<u32>),
        to: &base::Holder<'_>,
        over: Over,
    ) -> io::Result<Dressed> {
        let (temporary, copy) = self.beside(entry, to, |at| at.create_file(0o600))?;
        let len = new.metadata()?.len();
        copy.set_len(len)?;
        let mut bytes = vec![0; 256 << 10];
        for at in (0..len).step_by(bytes.len()) {
            let bytes = &mut bytes[..(len - at).min(256 << 10) as usize];
            new.read_exact_at(bytes, at)?;
            holes::write_new(&copy, bytes, at)?;
        }
        give(&copy, owner)?;
        let dressed = self.dress(&copy, entry, kept)?;
        fec_base::io::system::sync(&copy)?;
        temporary
            .commit(|path| to.sibling(path.file_name().unwrap_or_default())?.rename(to, over))
            .map(|()| dressed)
    }

    /// Makes something under a temporary name in the folder of an entry. It is removed unless it gets its own name.
    fn beside<T>(
        &mut self,
        entry: usize,
        to: &base::Holder<'_>,
        make: impl Fn(&base::Holder<'_>) -> io::Result<T>,
    ) -> io::Result<(Temporary, T)> {
        let place = self.base.place(self.entry(entry as u32).0);
        if self.tidied != parent(&place) {
            parent(&place).clone_into(&mut self.tidied);
            remove_stale(&self.tidied, self.progress);
        }
        Temporary::beside(&place, |path| make(&to.sibling(path.file_name().unwrap_or_default())?))
    }

    /// Makes the missing folders around a path that have no entries of their own.
    fn make_folders(&mut self, path: &[u8]) -> io::Result<()> {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            match self.base.stat(&path[..at]) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    let base = self.base;
                    self.new_folder(&base.holder(&path[..at])?, 0o777, Over::Nothing)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The owner that an entry gets; `None` if it stays the caller's. An entry that replaces a file gets the owner of
    /// that one, else it gets that of the folder.
    pub(super) fn owner(
        &self,
        holder: &base::Holder<'_>,
        old: Option<&Stat>,
    ) -> io::Result<Option<UserAndGroup>> {
        if !geteuid().is_root() {
            return Ok(None);
        }
        let around = match old {
            Some(old) => *old,
            None => holder.folder_stat()?,
        };
        Ok(Some(owner_of(self.how.owner, (around.st_uid, around.st_gid))))
    }

    /// Makes a folder that has its owner from the start.
    ///
    /// # Errors
    /// Those of the system: `AlreadyExists` if something stands there that may not be replaced, EXDEV if something on
    /// another file system is to be replaced.
    pub(super) fn new_folder(&mut self, holder: &base::Holder<'_>, mode: u16, over: Over) -> io::Result<()> {
        let owner = self.owner(holder, None)?;
        if owner.is_none() && over == Over::Nothing {
            return holder.create_folder(mode);
        }
        // Entries have the numbers below.
        let name = OsString::from((self.actions.len() + self.folders).to_string());
        self.folders += 1;
        let room = self.room().map_err(io::Error::other)?;
        let new = room.holder(name.as_encoded_bytes())?;
        new.create_folder(mode)?;
        let owned = owner.map_or(Ok(()), |owner| if_any(new.set_owner(owner)));
        match owned.and_then(|()| undisturbed(|| new.rename(holder, over))) {
            Err(e) => {
                let _ = new.remove_folder();
                // On another file system it stays the caller's.
                if is_elsewhere(&e) && over == Over::Nothing { holder.create_folder(mode) } else { Err(e) }
            }
            done => done,
        }
    }
}

/// The outcome of making a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    /// It has its name.
    Named,
    /// The target cannot hold it.
    LeftOut,
    /// Something else has the name than what was examined.
    InTheWay,
}

/// Tells whether a name lies on another file system than the room.
fn is_elsewhere(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EXDEV)
}

/// Tells whether a name was not given because somebody has put another entry there since the examination.
fn is_taken(renamed: &io::Result<()>, over: Over) -> bool {
    matches!((renamed, over), (Err(e), Over::Known(_)) if e.kind() == io::ErrorKind::AlreadyExists)
}
