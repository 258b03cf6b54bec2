//! The border on Unix.

use super::naming::{self, Name};
use super::unixes::{self, for_each_name};
use crate::io::look::{Look, Over};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use super::unixes::{make_hole, memory_file, since_1970, sync, sync_data, sync_file_system, sync_folder};
pub(crate) use crate::program::closing::{close, close_copy};
pub(crate) use crate::program::sigbus::FencedMap;

/// Flags for opening a folder.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The name that these bytes are; `None` if the system has no such name.
pub(crate) fn name_of(bytes: Vec<u8>) -> Option<OsString> {
    Some(OsString::from_vec(bytes))
}

/// The path that these bytes are; `None` if the system has no such path.
pub(crate) fn path_of(bytes: Vec<u8>) -> Option<PathBuf> {
    name_of(bytes).map(PathBuf::from)
}

/// Fails if the system would take this name for something else: Unix takes none so.
///
/// # Errors
/// None.
pub(crate) fn check_name(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// A name as it is compared: each byte counts.
pub fn folded(name: &OsStr) -> OsString {
    name.to_owned()
}

/// The names in a folder, in no order.
///
/// # Errors
/// Those of the system.
pub fn list(folder: &Path) -> io::Result<Vec<OsString>> {
    // The standard library's iterator panics when closing fails.
    let folder = rustix::fs::open(folder, FOLDER, Mode::empty())?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::new(folder)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// Removes a folder and its contents; links in it are removed, not followed.
///
/// # Errors
/// Those of the system; part of the contents may be gone then.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    /// Folders that others go on filling are left after so many passes.
    const PASSES: usize = 100;
    fn empty(folder: &OwnedFd) -> rustix::io::Result<()> {
        for _ in 0..PASSES {
            let mut is_empty = true;
            for_each_name(folder, |name| {
                if [c".", c".."].contains(&name) {
                    return Ok(());
                }
                is_empty = false;
                match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
                    // The entry is a folder: ISDIR on Linux, PERM by POSIX.
                    Err(Errno::ISDIR | Errno::PERM) => {
                        empty(&rustix::fs::openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)?;
                        rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
                    }
                    Err(Errno::NOENT) => Ok(()),
                    done => done,
                }
            })?;
            if is_empty {
                break;
            }
        }
        Ok(())
    }
    // The standard library is avoided as above. An empty folder can be removed even without a free descriptor to open
    // it.
    match rustix::fs::open(path, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(folder) => empty(&folder)?,
        Err(e) => return fs::remove_dir(path).map_err(|_| e.into()),
    }
    fs::remove_dir(path)
}

/// The type and permissions of an entry, as `stat` gives them.
pub fn mode(meta: &Metadata) -> u32 {
    meta.mode()
}

/// The device that an entry is on, and its number there, through links; `None` if there is none.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Tells whether a disk is mounted at a folder.
pub(crate) fn is_mount(folder: &Path) -> bool {
    let device = |path: &Path| identity(path).map(|(device, _)| device);
    device(folder).is_some_and(|of| device(&folder.join("..")).is_some_and(|above| above != of))
}

/// The times, in seconds and nanoseconds, of the last write to a file and of the last change of any kind.
///
/// # Errors
/// `Unsupported` if the system does not tell both.
pub(crate) fn times(_file: &File, meta: &Metadata) -> io::Result<[(i64, i64); 2]> {
    Ok([(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())])
}

/// The number of the user whose entry it is.
///
/// # Errors
/// `Unsupported` if the system does not tell.
pub(crate) fn owner(meta: &Metadata) -> io::Result<u32> {
    Ok(meta.uid())
}

/// Tells whether a user is the same as this process's, or root, who may do anything anyway.
pub(crate) fn is_mine(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw()
}

/// Tells whether an entry belongs to this user, or to root; `file` is the entry, once it is open.
///
/// # Errors
/// None.
pub(crate) fn is_own(meta: &Metadata, _file: Option<&File>) -> io::Result<bool> {
    Ok(is_mine(meta.uid()))
}

/// The number of names that a file has; `file` is the same one, once it is open.
pub(crate) fn links(meta: &Metadata, _file: Option<&File>) -> u64 {
    meta.nlink()
}

/// Tells whether an entry is a device, FIFO or socket.
pub(crate) fn is_special(meta: &Metadata) -> bool {
    is_device(meta) || is_fifo(meta) || meta.file_type().is_socket()
}

/// Tells whether an entry is a device.
pub(crate) fn is_device(meta: &Metadata) -> bool {
    meta.file_type().is_char_device() || meta.file_type().is_block_device()
}

/// Tells whether an entry is a FIFO.
pub(crate) fn is_fifo(meta: &Metadata) -> bool {
    meta.file_type().is_fifo()
}

/// Opens an entry for reading, and waits for nobody, as opening and reading a FIFO would.
///
/// # Errors
/// Those of the system.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// As [`open_at_once`]; `None` for a symbolic link, which is not followed.
///
/// # Errors
/// Those of the system.
pub(crate) fn open_unfollowed(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Err(e) if e.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Makes reads of a file that was opened by [`open_at_once`] wait for bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn wait_from_now_on(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fcntl_setfl(file, OFlags::empty())?)
}

/// Opens a device, FIFO or socket for writing.
///
/// # Errors
/// Those of the system.
pub(crate) fn open_special(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(path)
}

/// Opens a folder, and fails if another type of file or a link is there.
///
/// # Errors
/// Those of the system.
pub fn open_folder(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Makes a file with these permissions, less those that the process's umask withholds, and opens it for reading and
/// writing.
///
/// # Errors
/// Those of the system, and that the name is taken.
pub(crate) fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// Makes a folder with permissions as in `create_new`.
///
/// # Errors
/// Those of the system, and that the name is taken.
pub fn create_folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)
}

/// Makes a folder and those around it, as far as they are missing, with permissions as in `create_new`.
///
/// # Errors
/// Those of the system.
pub fn create_folders(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Gives an open file these permissions.
///
/// # Errors
/// Those of the system.
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Gives a new file the permissions of the old one that it is to replace.
///
/// # Errors
/// Those of the system.
pub(crate) fn keep_mode(new: &File, (_path, old): (&Path, &Metadata)) -> io::Result<()> {
    match mode(old) & 0o777 {
        same if mode(&new.metadata()?) & 0o7777 == same => Ok(()),
        kept => set_mode(new, kept),
    }
}

/// Tells whether files get their permissions from the folder that they are made in.
pub(crate) const FILES_INHERIT: bool = false;

/// Gives a new folder the permissions of the old one that it is to replace.
///
/// # Errors
/// Those of the system.
pub(crate) fn keep_mode_of_folder(new: &Path, (_path, old): (&Path, &Metadata)) -> io::Result<()> {
    fs::set_permissions(new, Permissions::from_mode(mode(old) & 0o7777))
}

/// Tells whether an error means that a file system has no permissions, or lacks another feature.
pub(crate) fn is_missing_feature(error: &io::Error) -> bool {
    const NONE: [i32; 5] = [libc::EPERM, libc::EOPNOTSUPP, libc::ENOTSUP, libc::ENOSYS, libc::EINVAL];
    error.raw_os_error().is_some_and(|code| NONE.contains(&code))
}

/// The blocks of the file system that a folder is on, and its free bytes. A file system without blocks does not count
/// them.
///
/// # Errors
/// Those of the system.
pub(crate) fn room(folder: &Path) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok((stat.f_blocks, stat.f_bavail.saturating_mul(stat.f_frsize)))
}

/// Reads some of the bytes of a file from `at` on; 0 at the end.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_at(file: &File, out: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(out, at)
}

/// Writes some of `rows` in sequence from byte `at` on, and returns the number of bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn write_at(file: &File, rows: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, rows, at)?)
}

/// Writes all of `bytes` from byte `at` on.
///
/// # Errors
/// Those of the system.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// The next range of stored bytes of a file from `at` on, as [`ReadAt::next_data`](crate::io::ReadAt::next_data).
pub(crate) fn next_data(file: &File, at: u64) -> Option<Range<u64>> {
    // A search for holes looks up every page of a file, so files without holes skip it.
    if let Ok(meta) = file.metadata()
        && meta.blocks().saturating_mul(512) >= meta.len()
    {
        return (at < meta.len()).then_some(at..u64::MAX);
    }
    // The file's own position is free to change: all reads give their positions.
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => Some(start..rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(u64::MAX)),
        Err(Errno::NXIO) => None,
        // The file system does not tell.
        Err(_) => Some(at..u64::MAX),
    }
}

/// Locks a file or a folder for this process alone, as long as it is open, without waiting.
///
/// # Errors
/// Those of the system, and that another process has it.
pub fn lock_alone(file: &File) -> io::Result<()> {
    Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)?)
}

/// Takes the lock off a file that stays open. To close it would not be enough: a process that is being started has all
/// open files of its parent until its program begins.
pub fn unlock(file: &File) {
    // An error is no harm: the lock ends with the process.
    let _ = rustix::fs::flock(file, FlockOperation::Unlock);
}

/// The number of this process.
pub(crate) fn process() -> u32 {
    std::process::id()
}

/// The place in which process numbers mean the same, until the next boot of the machine and in the same container, if
/// the system names it: Linux does, in `/proc`.
pub(crate) fn processes_here() -> Option<Vec<u8>> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some([&boot, namespace.as_os_str().as_encoded_bytes()].concat())
}

/// Tells whether a process is gone, or has ended without being reaped by its parent, as is common in containers.
pub(crate) fn is_gone(process: i32) -> bool {
    let has_ended = || {
        let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
        // The program's name is in front, in brackets, and may contain any bytes.
        let state = stat.rsplitn(2, |byte| *byte == b')').next()?.trim_ascii().first()?;
        Some(matches!(state, b'Z' | b'X'))
    };
    let is_unknown = Pid::from_raw(process).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    is_unknown || has_ended() == Some(true)
}

/// Gives an entry another name, in place of one that `over` gives up ([`naming::rename`]).
///
/// # Errors
/// `AlreadyExists`; those of the system.
pub fn rename(from: &Path, to: &Path, over: Over) -> io::Result<()> {
    let [from, to] = [from, to].map(|path| Name { folder: CWD, name: path.as_os_str() });
    naming::rename(from, to, over)
}

/// Gives a folder another name, which may be that of an empty folder.
///
/// # Errors
/// `DirectoryNotEmpty`; those of the system.
pub(crate) fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)
}

/// Moves files of these names from a folder to another, neither of them a link.
///
/// # Errors
/// Those of the system; some of the files may be moved then.
pub(crate) fn move_files(names: &[OsString], from: &Path, to: &Path, over: Over) -> io::Result<()> {
    let (source, target) = (open_folder(from)?, open_folder(to)?);
    for name in names {
        let of = |folder| Name { folder, name };
        naming::rename(of(source.as_fd()), of(target.as_fd()), over)?;
    }
    Ok(())
}

impl Look {
    /// The look of the entry that has this stat.
    // The integer types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    pub fn of(stat: &Stat) -> Look {
        Look {
            place: (stat.st_dev as u64, stat.st_ino as u64),
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        }
    }

    /// The look of an open file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of_file(file: &File) -> io::Result<Look> {
        Ok(Look::of(&rustix::fs::fstat(file)?))
    }

    /// Tells whether both are looks of the same entry, whatever was written to it.
    pub(super) fn is_same_entry(&self, other: &Look) -> bool {
        self.place == other.place
    }
}

/// The look of an open file.
///
/// # Errors
/// Those of the system.
pub(crate) fn look(file: &File) -> io::Result<Option<Look>> {
    Look::of_file(file).map(Some)
}

/// Exchanges two entries in a single step.
///
/// # Errors
/// Those of the system; [`is_lacking`] knows those of one that cannot.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    Ok(unixes::exchange((CWD, a.as_os_str()), (CWD, b.as_os_str()))?)
}

/// Tells whether an error may mean that the system, or the file system, lacks a call for names.
pub(crate) fn is_lacking(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(naming::is_lacking)
}

/// Waits until the names in a folder are on the disk; `of` is a file on the same file system.
///
/// # Errors
/// Those of the system.
pub(crate) fn sync_names(folder: &Path, of: Option<&File>) -> io::Result<()> {
    match (File::open(folder), of) {
        // Without permission to list the folder the whole file system is synced, where the system can do that.
        (Err(e), Some(of)) if e.kind() == io::ErrorKind::PermissionDenied => match sync_file_system(of) {
            Err(Errno::NOSYS) => Err(e),
            done => Ok(done?),
        },
        (folder, _) => folder.and_then(sync_folder),
    }
}

/// Tells whether a read failed because of its place, so that other places may still be readable.
pub(crate) fn is_bad_place(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

/// Tells whether the process or the machine caused an error, and not the file.
pub fn is_shortage(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| [libc::EMFILE, libc::ENFILE, libc::ENOMEM].contains(&code))
}

/// A file without a name in this folder, or in [`temporary_folder`].
///
/// # Errors
/// Those of the system.
pub(crate) fn nameless_file(folder: Option<&Path>) -> io::Result<File> {
    folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in)
}

/// The system's folder for temporary files, if it has one.
pub(crate) fn temporary_folder() -> Option<PathBuf> {
    Some(std::env::temp_dir())
}

/// The time that a core has worked for the calling thread.
pub(crate) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
