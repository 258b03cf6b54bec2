//! Differences between Unixes in files and clocks, each with its reason. Sockets have theirs in `fec-live`, and
//! [`lease`](crate::program::lease) is Linux's alone.
//!
//! `fec` is made for Linux and tested there. `.ci/run systems` compiles it for macOS, FreeBSD and Android, and runs
//! nothing of that. A call that a system lacks is an error here, which callers know from file systems that lack it: no
//! promise is weakened in silence.

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::os::unix::ffi::OsStrExt;

/// Flags that open a folder as a place to start from, which takes no permission for the folder itself.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(in crate::io) const PLACE: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// macOS has no O_PATH. The folder is opened for reading, so only those who may list it get through it.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(in crate::io) const PLACE: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Asks for the rights of the effective user.
#[cfg(not(target_os = "android"))]
pub(in crate::io) const EFFECTIVE: AtFlags = AtFlags::EACCESS;

/// Android's C library cannot ask for them. There the effective user is the real one: no program is set-uid.
#[cfg(target_os = "android")]
pub(in crate::io) const EFFECTIVE: AtFlags = AtFlags::empty();

/// Opens a path from a folder, through no link and to nowhere outside: `openat2` of Linux.
///
/// # Errors
/// Those of the system; `ENOSYS` where it has no such call, as others than Linux.
pub(in crate::io) fn open_beneath(
    folder: &OwnedFd,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
) -> rustix::io::Result<OwnedFd> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(folder, OsStr::from_bytes(path), flags | OFlags::CLOEXEC, mode, resolve) {
                // A concurrent rename.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (folder, path, flags, mode);
        Err(Errno::NOSYS)
    }
}

/// Errors of a file system that has no sync, of this kind or at all.
const NO_SYNC: [Errno; 5] = [Errno::INVAL, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS, Errno::NOTTY];

/// Waits until a file is on the disk.
///
/// On macOS `fsync` leaves the bytes in the drive's own cache, which a loss of power empties; F_FULLFSYNC writes them
/// out of there. File systems without it, those of networks above all, get the `fsync` that they have.
///
/// # Errors
/// Those of the system.
pub fn sync(file: impl AsFd) -> io::Result<()> {
    #[cfg(target_vendor = "apple")]
    match retry_on_intr(|| rustix::fs::fcntl_fullfsync(&file)) {
        Err(e) if NO_SYNC.contains(&e) => {}
        done => return Ok(done?),
    }
    Ok(retry_on_intr(|| rustix::fs::fsync(&file))?)
}

/// Waits until the bytes of a file are on the disk, and of what is known of it, what it takes to read them.
///
/// # Errors
/// Those of the system.
pub fn sync_data(file: &File) -> io::Result<()> {
    if cfg!(target_vendor = "apple") { sync(file) } else { file.sync_data() }
}

/// Waits until the names in a folder are on the disk. Some file systems cannot sync a folder; its files are safe. A
/// read-only file system has nothing to sync.
///
/// # Errors
/// Those of the system.
pub fn sync_folder(folder: impl AsFd) -> io::Result<()> {
    match sync(folder) {
        Err(e) if Errno::from_io_error(&e).is_some_and(|e| e == Errno::ROFS || NO_SYNC.contains(&e)) => {
            Ok(())
        }
        done => done,
    }
}

/// Waits until everything that was written to the file system of a file is on the disk.
///
/// # Errors
/// Those of the system; `ENOSYS` where it has no such call: `sync` of macOS and FreeBSD does not wait for the disk.
pub fn sync_file_system(of: impl AsFd) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return rustix::fs::syncfs(of);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        drop(of);
        Err(Errno::NOSYS)
    }
}

/// Gives an entry another name, if that is free: RENAME_NOREPLACE of Linux, RENAME_EXCL of macOS.
///
/// # Errors
/// Those of the system; `ENOSYS` where it has no such call, as FreeBSD.
pub(in crate::io) fn rename_new(
    (of, from): (impl AsFd, &OsStr),
    (at, to): (impl AsFd, &OsStr),
) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    return rustix::fs::renameat_with(of, from, at, to, rustix::fs::RenameFlags::NOREPLACE);
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        drop((of, from, at, to));
        Err(Errno::NOSYS)
    }
}

/// Exchanges two entries: RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS.
///
/// # Errors
/// Those of the system; `ENOSYS` where it has no such call, as FreeBSD.
pub(super) fn exchange((of, a): (impl AsFd, &OsStr), (at, b): (impl AsFd, &OsStr)) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    return rustix::fs::renameat_with(of, a, at, b, rustix::fs::RenameFlags::EXCHANGE);
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        drop((of, a, at, b));
        Err(Errno::NOSYS)
    }
}

/// Calls `see` with each name in a folder, from the first on; `.` and `..` are among them. On Linux this takes no
/// memory from the heap, so that a process without memory can remove its folders. Other systems have no call for that.
///
/// # Errors
/// Those of the system, and of `see`.
pub(in crate::io) fn for_each_name(
    folder: &OwnedFd,
    mut see: impl FnMut(&CStr) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 4096];
        rustix::fs::seek(folder, rustix::fs::SeekFrom::Start(0))?;
        let mut entries = rustix::fs::RawDir::new(folder, &mut buffer);
        while let Some(entry) = entries.next() {
            see(entry?.file_name())?;
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    for entry in rustix::fs::Dir::read_from(folder)? {
        see(entry?.file_name())?;
    }
    Ok(())
}

/// Makes a range of a file zeros that take no room. False: the file system has no holes, or the system no such call,
/// and nothing changed.
pub fn make_hole(file: &File, at: u64, len: u64) -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, at, len).is_ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (file, at, len);
        false
    }
}

/// A file in memory, which has no name but in lists of open files.
///
/// # Errors
/// Those of the system; `Unsupported` where it has no such call, as macOS.
pub fn memory_file(name: &str) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        use rustix::fs::{MemfdFlags, memfd_create};
        Ok(memfd_create(name, MemfdFlags::CLOEXEC)?.into())
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    {
        let _ = name;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The time by the system's clock, exact to some milliseconds. Linux and FreeBSD have a clock for that which takes no
/// time to read.
fn coarse_time() -> Timespec {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    return clock_gettime(ClockId::RealtimeCoarse);
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    clock_gettime(ClockId::Realtime)
}

/// The time since 1970, by the clock that costs least; zero before that.
pub fn since_1970() -> std::time::Duration {
    let time = coarse_time();
    std::time::Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_can_be_synced_is_and_what_cannot_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("file")).unwrap();
        let here = File::open(folder.path()).unwrap();
        sync(&file).unwrap();
        sync_data(&file).unwrap();
        sync_folder(&here).unwrap();
        sync_file_system(&file).unwrap();
        let (pipe, _other) = io::pipe().unwrap();
        assert_eq!(sync(&pipe).unwrap_err().raw_os_error(), Some(Errno::INVAL.raw_os_error()));
        // /proc cannot sync folders.
        sync_folder(File::open("/proc").unwrap()).unwrap();
    }

    #[test]
    fn a_taken_name_is_not_given_and_two_entries_change_places() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b, free] = ["a", "b", "free"].map(|name| folder.path().join(name));
        fs::write(&a, b"a").unwrap();
        fs::write(&b, b"b").unwrap();
        let cwd = rustix::fs::CWD;
        let name = |to: &std::path::Path| rename_new((cwd, a.as_os_str()), (cwd, to.as_os_str()));
        assert_eq!(name(&b), Err(Errno::EXIST));
        exchange((cwd, a.as_os_str()), (cwd, b.as_os_str())).unwrap();
        assert_eq!((fs::read(&a).unwrap(), fs::read(&b).unwrap()), (b"b".to_vec(), b"a".to_vec()));
        name(&free).unwrap();
        assert!(!a.exists() && free.exists());
    }

    #[test]
    fn every_name_is_seen_and_an_error_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        // More names than fit the buffer at once.
        let mut names: Vec<String> = (0..300).map(|n| format!("{n:0100}")).collect();
        names.iter().for_each(|name| fs::write(folder.path().join(name), b"").unwrap());
        let open: OwnedFd = File::open(folder.path()).unwrap().into();
        for _ in 0..2 {
            let mut seen = Vec::new();
            let mut note = |name: &std::ffi::CStr| {
                seen.push(name.to_str().unwrap().to_owned());
                Ok(())
            };
            for_each_name(&open, &mut note).unwrap();
            seen.sort();
            names.extend([".".to_owned(), "..".to_owned()]);
            names.sort();
            names.dedup();
            assert_eq!(seen, names);
        }
        assert_eq!(for_each_name(&open, |_| Err(Errno::NOMEM)), Err(Errno::NOMEM));
    }
}
