//! A folder and its contents. No operation follows a symbolic link or leaves the folder.
//!
//! Paths are bytes from the base, with `/` between their parts. Every operation opens the path anew from the base's own
//! descriptor, and the system itself refuses links on it (`openat2` with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS). On a
//! system without this call each part is opened alone, and must not be a link.

use super::look::Over;
use super::naming::{self, Name};
use super::read_only::{Access, MadeWritable, access_of_folder};
use super::system::sync_folder;
use super::system::unixes::{PLACE, open_beneath};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Paths from a base.
pub type Paths = Vec<Box<[u8]>>;

/// A folder whose entries are reached by paths within it.
#[derive(Debug)]
pub struct Base {
    folder: OwnedFd,
    path: PathBuf,
    /// The system has no `openat2`.
    is_old: AtomicBool,
    /// Folders directly in the base that have other names now.
    renamed: Vec<Renamed>,
}

/// A folder directly in a base, which paths name as it was called before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name in paths.
    pub from: Box<[u8]>,
    /// The name that it has.
    pub to: Box<[u8]>,
    /// True if the caller named the folder, which nobody need be told.
    pub is_named: bool,
}

/// The folder that holds an entry, and the entry's name in it.
#[derive(Debug)]
pub struct Holder<'a> {
    folder: OwnedFd,
    name: Cow<'a, OsStr>,
}

impl Base {
    /// Opens a folder; the way to it may lead through links.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Base> {
        let folder = rustix::fs::open(path, PLACE, Mode::empty())?;
        Ok(Base { folder, path: path.to_path_buf(), is_old: AtomicBool::new(false), renamed: Vec::new() })
    }

    /// The same base, in which paths lead to folders that were renamed.
    pub fn with_renamed(self, renamed: Vec<Renamed>) -> Base {
        Base { renamed, ..self }
    }

    /// Folders that have other names than paths say, as was found out.
    pub fn renamed(&self) -> impl Iterator<Item = &Renamed> {
        self.renamed.iter().filter(|renamed| !renamed.is_named)
    }

    /// The path of the folder that the caller named: of the base itself, or of a folder in it under another name.
    pub fn named(&self) -> &[u8] {
        self.renamed.iter().find(|renamed| renamed.is_named).map_or(b"", |renamed| &renamed.from)
    }

    /// A path with the name that its uppermost folder has.
    fn real<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let top = path.split(|byte| *byte == b'/').next().unwrap_or_default();
        match self.renamed.iter().find(|renamed| *renamed.from == *top) {
            Some(renamed) => Cow::Owned([&renamed.to, &path[top.len()..]].concat()),
            None => Cow::Borrowed(path),
        }
    }

    /// A folder within the base, as a base of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder(&self, path: &[u8]) -> io::Result<Base> {
        let folder = self.open_within(path, PLACE | OFlags::NOFOLLOW, Mode::empty())?;
        let is_old = AtomicBool::new(false);
        Ok(Base { folder, path: self.place(path), is_old, renamed: Vec::new() })
    }

    /// Path of the base.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of an entry for messages.
    pub fn place(&self, path: &[u8]) -> PathBuf {
        self.path.join(OsStr::from_bytes(&self.real(path)))
    }

    pub(super) fn open_within(&self, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        if path.is_empty() {
            return rustix::fs::openat(&self.folder, ".", flags | OFlags::CLOEXEC, mode);
        }
        let path = &*self.real(path);
        path.split(|b| *b == b'/').try_for_each(|part| checked(part).map(|_| ()))?;
        if !self.is_old.load(Ordering::Relaxed) {
            match open_beneath(&self.folder, path, flags, mode) {
                Err(Errno::NOSYS | Errno::PERM) if self.lacks_openat2() => {
                    self.is_old.store(true, Ordering::Relaxed);
                }
                opened => return opened,
            }
        }
        self.open_by_parts(path, flags, mode)
    }

    /// Tells whether even the base itself cannot be opened by `openat2`: then the call is missing or forbidden.
    fn lacks_openat2(&self) -> bool {
        open_beneath(&self.folder, b".", PLACE, Mode::empty()).is_err()
    }

    /// Opens a path part by part. A link in the middle fails, because it is no folder; a link at the end is not
    /// followed.
    fn open_by_parts(&self, path: &[u8], flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let (folders, name) = match path.iter().rposition(|b| *b == b'/') {
            Some(slash) => (Some(&path[..slash]), &path[slash + 1..]),
            None => (None, path),
        };
        let mut folder = None;
        for part in folders.into_iter().flat_map(|folders| folders.split(|b| *b == b'/')) {
            let at = folder.as_ref().unwrap_or(&self.folder);
            folder = Some(rustix::fs::openat(at, checked(part)?, PLACE | OFlags::NOFOLLOW, Mode::empty())?);
        }
        let at = folder.as_ref().unwrap_or(&self.folder);
        rustix::fs::openat(at, checked(name)?, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// Those of the system; `InvalidInput` for anything that is not a regular file.
    pub fn read(&self, path: &[u8]) -> io::Result<File> {
        // NONBLOCK, because the file may have become a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        regular(self.open_within(path, flags, Mode::empty())?)
    }

    /// Opens an existing regular file for reading and writing.
    ///
    /// # Errors
    /// As [`Base::read`].
    pub fn write(&self, path: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        regular(self.open_within(path, flags, Mode::empty())?)
    }

    /// As [`Base::write`], also for a file that the calling user owns and has made read-only. The file is made writable
    /// for the moment of opening.
    ///
    /// # Errors
    /// As [`Base::read`].
    pub fn write_own(&self, path: &[u8]) -> io::Result<File> {
        match self.write(path) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let Some(_made) = MadeWritable::of(self.read(path)?)? else { return Err(e) };
                self.write(path)
            }
            opened => opened,
        }
    }

    /// The access to a regular file. Nothing is changed.
    ///
    /// # Errors
    /// As [`Base::read`], except for missing permission to write.
    pub fn access(&self, path: &[u8]) -> io::Result<Access> {
        match self.write(path) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                Access::denied(&rustix::fs::fstat(self.read(path)?)?)
            }
            opened => opened.map(|_| Access::Free),
        }
    }

    /// The access to a folder. Nothing is changed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder_access(&self, path: &[u8]) -> io::Result<Access> {
        access_of_folder(self.open_within(path, PLACE | OFlags::NOFOLLOW, Mode::empty())?)
    }

    /// Makes a folder writable, if it is the user's own and read-only.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_writable(&self, path: &[u8]) -> io::Result<Option<MadeWritable>> {
        MadeWritable::of(self.read_folder(path)?)
    }

    /// Opens a folder itself.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read_folder(&self, path: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        Ok(File::from(self.open_within(path, flags, Mode::empty())?))
    }

    /// The entry at a path. A link is not followed.
    ///
    /// # Errors
    /// Those of the system: `NotFound` if there is no entry.
    pub fn stat(&self, path: &[u8]) -> io::Result<Stat> {
        match path {
            b"" => Ok(rustix::fs::fstat(&self.folder)?),
            path => self.holder(path)?.stat(),
        }
    }

    /// The folder that holds an entry, whether the entry exists or not.
    ///
    /// # Errors
    /// Those of the system.
    pub fn holder<'a>(&self, path: &'a [u8]) -> io::Result<Holder<'a>> {
        let (folders, name) = match path.iter().rposition(|b| *b == b'/') {
            Some(slash) => (&path[..slash], Cow::Borrowed(&path[slash + 1..])),
            None => (&b""[..], self.real(path)),
        };
        let folder = self.open_within(folders, PLACE, Mode::empty())?;
        checked(&name)?;
        let name = match name {
            Cow::Borrowed(name) => Cow::Borrowed(OsStr::from_bytes(name)),
            Cow::Owned(name) => Cow::Owned(OsString::from_vec(name)),
        };
        Ok(Holder { folder, name })
    }

    /// The regular files, the folders and the symbolic links in a folder, as paths from the base.
    ///
    /// # Errors
    /// Those of the system.
    pub fn list(&self, path: &[u8]) -> io::Result<(Paths, Paths, Paths)> {
        let (mut files, mut folders, mut links) = (Vec::new(), Vec::new(), Vec::new());
        self.visit(path, |inner, kind| match kind {
            FileType::RegularFile => files.push(inner.into()),
            FileType::Symlink => links.push(inner.into()),
            _ => folders.push(inner.into()),
        })?;
        Ok((files, folders, links))
    }

    /// Calls `see` with each regular file, folder and symbolic link in a folder, as a path from the base.
    ///
    /// # Errors
    /// Those of the system.
    pub fn visit(&self, path: &[u8], mut see: impl FnMut(&[u8], FileType)) -> io::Result<()> {
        let folder = self.open_within(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut inner = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        let len = inner.len();
        for entry in rustix::fs::Dir::new(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            inner.truncate(len);
            inner.extend_from_slice(name);
            let kind = match entry.file_type() {
                FileType::Unknown => self.stat(&inner).map_or(FileType::Unknown, |stat| file_type(&stat)),
                known => known,
            };
            match kind {
                FileType::RegularFile | FileType::Symlink => see(&inner, kind),
                FileType::Directory if name != b"." && name != b".." => see(&inner, kind),
                _ => {}
            }
        }
        Ok(())
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// Those of the system: `InvalidInput` if the entry is no link.
    pub fn link_target(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let holder = self.holder(path)?;
        Ok(rustix::fs::readlinkat(&holder.folder, &*holder.name, Vec::new())?.into_bytes())
    }
}

/// The part of a path, if it is the name of an entry.
pub(super) fn checked(part: &[u8]) -> rustix::io::Result<&OsStr> {
    match part {
        b"" | b"." | b".." => Err(Errno::INVAL),
        part => Ok(OsStr::from_bytes(part)),
    }
}

fn regular(fd: OwnedFd) -> io::Result<File> {
    let file = File::from(fd);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

impl Holder<'_> {
    fn in_folder(&self) -> Name<'_> {
        Name { folder: self.folder.as_fd(), name: &self.name }
    }

    /// Makes a new file of this name; fails if an entry is there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_file(&self, mode: u16) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode.into());
        Ok(File::from(rustix::fs::openat(&self.folder, &*self.name, flags, mode)?))
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_folder(&self, mode: u16) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.folder, &*self.name, Mode::from_raw_mode(mode.into()))?)
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_link(&self, target: &[u8]) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(OsStr::from_bytes(target), &self.folder, &*self.name)?)
    }

    /// Makes this entry another name of the file at `of`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_hard_link(&self, of: &Holder<'_>) -> io::Result<()> {
        Ok(rustix::fs::linkat(&of.folder, &*of.name, &self.folder, &*self.name, AtFlags::empty())?)
    }

    /// Gives this entry another name, in place of an entry that `over` gives up.
    ///
    /// # Errors
    /// `AlreadyExists` if another entry has the name; those of the system.
    pub fn rename(&self, to: &Holder<'_>, over: Over) -> io::Result<()> {
        naming::rename(self.in_folder(), to.in_folder(), over)
    }

    /// Removes a file or link.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &*self.name, AtFlags::empty())?)
    }

    /// Sets the permissions of a file or folder; it must be no link.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_mode(&self, mode: u16) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode.into());
        Ok(rustix::fs::chmodat(&self.folder, &*self.name, mode, AtFlags::empty())?)
    }

    /// Gives the entry to this user and group. A link is not followed. Only where nobody else can put another entry in
    /// its place is it the entry that was meant.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_owner(&self, (user, group): (u32, u32)) -> io::Result<()> {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::chownat(&self.folder, &*self.name, Some(user), Some(group), flags)?)
    }

    /// The stat of the folder that holds the entry.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder_stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.folder)?)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_folder(&self) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, &*self.name, AtFlags::REMOVEDIR)?)
    }

    /// The entry. A link is not followed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.folder, &*self.name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets the modification time of the entry. A link is not followed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_modified(&self, seconds: i64, nanos: u32) -> io::Result<()> {
        let times = modified(&self.stat()?, seconds, nanos);
        Ok(rustix::fs::utimensat(&self.folder, &*self.name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Makes the folder itself durable.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(&self.folder, ".", flags, Mode::empty())?;
        sync_folder(folder)
    }

    /// The same folder with another name in it.
    pub fn sibling<'a>(&self, name: &'a OsStr) -> io::Result<Holder<'a>> {
        Ok(Holder { folder: self.folder.try_clone()?, name: Cow::Borrowed(name) })
    }
}

/// Times for `utimensat` that set only the modification time. Many file systems on FUSE ignore a call that names one
/// time alone (`UTIME_OMIT`), and say that it was done.
// The integer types differ between systems.
#[allow(clippy::unnecessary_cast)]
fn modified(stat: &Stat, seconds: i64, nanos: u32) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: stat.st_atime as i64, tv_nsec: stat.st_atime_nsec as _ },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos.into() },
    }
}

/// Sets the modification time of an open file.
///
/// # Errors
/// Those of the system.
pub fn set_modified(file: impl AsFd, seconds: i64, nanos: u32) -> io::Result<()> {
    let times = modified(&rustix::fs::fstat(&file)?, seconds, nanos);
    Ok(rustix::fs::futimens(file, &times)?)
}

/// Type of the file that a stat describes.
pub fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_that_is_taken_is_given_away_only_on_request() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("old"), b"precious").unwrap();
        fs::write(place.path().join("new"), b"new").unwrap();
        let base = Base::open(place.path()).unwrap();
        let (new, old) = (base.holder(b"new").unwrap(), base.holder(b"old").unwrap());
        let refused = new.rename(&old, Over::Nothing).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(place.path().join("old")).unwrap(), b"precious");
        assert_eq!(fs::read(place.path().join("new")).unwrap(), b"new");
        new.rename(&old, Over::Anything).unwrap();
        assert_eq!(fs::read(place.path().join("old")).unwrap(), b"new");
        assert!(!place.path().join("new").exists());
    }

    /// scripts/checks/filesystems.sh sees that this works on FUSE, where UTIME_OMIT does not.
    #[test]
    fn a_time_of_modification_is_set_beside_the_time_of_access() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        fs::write(&path, b"file").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let old = |seconds| std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 5);
        file.set_times(fs::FileTimes::new().set_accessed(old(1)).set_modified(old(2))).unwrap();
        set_modified(&file, 3, 5).unwrap();
        let times =
            || (path.metadata().unwrap().accessed().unwrap(), path.metadata().unwrap().modified().unwrap());
        assert_eq!(times(), (old(1), old(3)));
        Base::open(place.path()).unwrap().holder(b"file").unwrap().set_modified(4, 5).unwrap();
        assert_eq!(times(), (old(1), old(4)));
    }

    #[test]
    fn nothing_is_reached_through_links_or_outside() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("base"), place.path().join("outside"));
        fs::create_dir_all(inside.join("d")).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), b"secret").unwrap();
        fs::write(inside.join("d/file"), b"file").unwrap();
        symlink("../outside", inside.join("out")).unwrap();
        symlink("d", inside.join("alias")).unwrap();
        symlink("d/file", inside.join("link")).unwrap();
        let base = Base::open(&inside).unwrap();
        for is_old in [false, true] {
            base.is_old.store(is_old, Ordering::Relaxed);
            assert_eq!(io::read_to_string(base.read(b"d/file").unwrap()).unwrap(), "file");
            for path in [
                &b"out/secret"[..],
                b"alias/file",
                b"link",
                b"../outside/secret",
                b"d/../d/file",
                b"d",
                b"d/none",
            ] {
                assert!(base.read(path).is_err(), "{is_old}: {path:?}");
                assert!(base.write(path).is_err(), "{is_old}: {path:?}");
            }
            assert!(base.holder(b"out/new").is_err() && base.holder(b"d/..").is_err());
            assert!(base.holder(b"d/new").unwrap().create_file(0o600).is_ok());
            base.holder(b"d/new").unwrap().remove().unwrap();
            assert_eq!(file_type(&base.stat(b"link").unwrap()), FileType::Symlink);
            assert_eq!(base.link_target(b"link").unwrap(), b"d/file");
        }
    }
}
