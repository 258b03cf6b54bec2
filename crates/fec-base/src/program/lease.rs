//! Detects that a file is open for writing elsewhere while it is read.
//!
//! The time stamps of a file change when a write begins, and when a mapped page becomes dirty. They do not show a write
//! under way, nor stores to a page that is dirty already. The system's read lease does (`fcntl(2)`, "Leases"). It is
//! refused while the file is open for writing anywhere, and whoever opens the file later waits until the lease is given
//! back. The lease is given back at the next MiB read, or when all was read and compared, so nobody waits for long (45
//! seconds at most, as Linux has it). Later writes change the stamps.
//!
//! Linux gives leases to the owner of a file and to root, on local file systems. Windows can keep writers out, but has
//! nothing that lets them wait. It tells whether a file is open for writing, and changes the time stamps when a writer
//! closes it, if not before. A look at the beginning and at the end shows all that time stamps do not, but for writes
//! to mapped pages. Elsewhere nothing is known.
#![allow(unsafe_code)] // the call for leases has no safe interface

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A read lease, held or given back.
#[derive(Debug)]
pub(crate) struct Lease {
    is_held: AtomicBool,
    /// Bytes read so far; at each full MiB the lease makes way.
    read: AtomicU64,
}

/// Knowledge about other writers of a file.
#[derive(Debug)]
pub(crate) enum Writers {
    /// There were no writers, and a new one waits for the lease.
    None(Lease),
    /// The file is open for writing elsewhere.
    Some,
    /// Unknown: the system does not tell.
    Unknown,
}

impl Writers {
    /// Asks for a lease on a file that is open for reading.
    pub(crate) fn of(file: &File) -> Writers {
        match calls::take(file) {
            Ok(()) => Writers::None(Lease { is_held: AtomicBool::new(true), read: AtomicU64::new(0) }),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock && calls::is_local(file) => Writers::Some,
            Err(e) => {
                tracing::trace!("no lease: {e}");
                Writers::Unknown
            }
        }
    }

    /// Gives the lease back if a writer waits for it. This is asked only once in a while, by the number of bytes read.
    pub(crate) fn after(&self, file: &File, bytes: u64) {
        /// Bytes read between two questions whether a writer waits.
        const PIECE: u64 = 1 << 20;
        if let Writers::None(lease) = self {
            let before = lease.read.fetch_add(bytes, Ordering::Relaxed);
            if before / PIECE != (before + bytes) / PIECE {
                lease.make_way(file);
            }
        }
    }

    /// Tells whether a writer has the file open who was not there at first, and whose writes no time stamp shows yet.
    pub(crate) fn have_come(&self, file: &File) -> bool {
        let is_open = || calls::take(file).is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock);
        cfg!(windows) && matches!(self, Writers::None(_)) && is_open()
    }

    /// Gives the lease back, if it is held.
    pub(crate) fn end(&self, file: &File) {
        if let Writers::None(lease) = self
            && lease.is_held.swap(false, Ordering::Relaxed)
        {
            calls::give_back(file);
        }
    }
}

impl Lease {
    fn make_way(&self, file: &File) {
        if self.is_held.load(Ordering::Relaxed) && calls::is_wanted(file) {
            self.is_held.store(false, Ordering::Relaxed);
            calls::give_back(file);
        }
    }
}

/// Tells whether a file is open for writing elsewhere, as far as the system tells.
pub fn is_open_for_writing(file: &File) -> bool {
    match Writers::of(file) {
        Writers::None(_) => {
            calls::give_back(file);
            false
        }
        Writers::Some => true,
        Writers::Unknown => false,
    }
}

#[cfg(target_os = "linux")]
mod calls {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;

    /// `linux/fcntl.h`, the same on every architecture.
    const F_SETSIG: libc::c_int = 10;

    fn call(file: &File, command: libc::c_int, value: libc::c_int) -> io::Result<libc::c_int> {
        // SAFETY: the commands given below take a number, not a pointer; the descriptor is open as long as `file` is.
        let done = unsafe { libc::fcntl(file.as_raw_fd(), command, value) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
    }

    pub(crate) fn take(file: &File) -> io::Result<()> {
        // The signal that asks for the lease. SIGURG is ignored unless it is caught; the default, SIGIO, would end the
        // process.
        call(file, F_SETSIG, libc::SIGURG)?;
        call(file, libc::F_SETLEASE, libc::F_RDLCK).map(|_| ())
    }

    /// Tells whether a writer waits for the lease, or the system took it.
    pub(crate) fn is_wanted(file: &File) -> bool {
        call(file, libc::F_GETLEASE, 0).is_ok_and(|kind| kind != libc::F_RDLCK)
    }

    pub(crate) fn give_back(file: &File) {
        // This fails if the system has taken the lease already.
        let _ = call(file, libc::F_SETLEASE, libc::F_UNLCK);
    }

    /// Tells whether a file is on a local file system. Network file systems refuse leases for other reasons with the
    /// same error.
    pub(crate) fn is_local(file: &File) -> bool {
        const NFS: u64 = 0x6969;
        const CIFS: u64 = 0xff53_4d42;
        const SMB2: u64 = 0xfe53_4d42;
        const CEPH: u64 = 0x00c3_6400;
        // The type of this field differs between systems.
        #[allow(clippy::unnecessary_cast)]
        rustix::fs::fstatfs(file)
            .is_ok_and(|fs| ![NFS, CIFS, SMB2, CEPH].contains(&(fs.f_type as u64 & 0xffff_ffff)))
    }
}

#[cfg(windows)]
mod calls {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::{AsRawHandle, FromRawHandle};
    use windows_sys::Win32::Foundation::{ERROR_SHARING_VIOLATION, GENERIC_READ, INVALID_HANDLE_VALUE};
    use windows_sys::Win32::Storage::FileSystem::{FILE_SHARE_DELETE, FILE_SHARE_READ, ReOpenFile};

    /// Looks for writers: a second handle that admits none is refused if there are any. It is closed at once.
    pub(crate) fn take(file: &File) -> io::Result<()> {
        let share = FILE_SHARE_READ | FILE_SHARE_DELETE;
        // SAFETY: the handle is open as long as `file` is borrowed, and the call takes no pointer.
        let opened = unsafe { ReOpenFile(file.as_raw_handle(), GENERIC_READ, share, 0) };
        if opened == INVALID_HANDLE_VALUE {
            let error = io::Error::last_os_error();
            let is_shared = error.raw_os_error().map(i32::cast_unsigned) == Some(ERROR_SHARING_VIOLATION);
            return Err(if is_shared { io::ErrorKind::WouldBlock.into() } else { error });
        }
        // SAFETY: the call has just opened the handle, and nobody else has it.
        drop(unsafe { File::from_raw_handle(opened) });
        Ok(())
    }

    pub(crate) fn is_wanted(_file: &File) -> bool {
        false
    }

    pub(crate) fn give_back(_file: &File) {}

    /// The error above has no other reason.
    pub(crate) fn is_local(_file: &File) -> bool {
        true
    }
}

#[cfg(not(any(target_os = "linux", windows)))]
mod calls {
    use std::fs::File;
    use std::io;

    pub(crate) fn take(_file: &File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn is_wanted(_file: &File) -> bool {
        false
    }

    pub(crate) fn give_back(_file: &File) {}

    pub(crate) fn is_local(_file: &File) -> bool {
        false
    }
}

#[cfg(all(test, windows))]
mod tests_of_looks {
    use crate::context::Context;
    use crate::io::source::SourceFile;
    use std::fs::{self, OpenOptions};

    #[test]
    fn writers_are_seen_at_the_beginning_and_at_the_end() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("in");
        fs::write(&path, [1; 4096]).expect("a file");
        let write = || OpenOptions::new().append(true).open(&path).expect("nobody is kept out");
        let context = Context::default();
        let open = || SourceFile::open(&path, &context).expect("it can be read");
        let writer = write();
        assert!(open().is_open_elsewhere());
        drop(writer);
        let source = open();
        assert!(!source.is_open_elsewhere());
        source.check_unchanged().expect("nobody was there");
        let writer = write();
        source.check_unchanged().expect_err("it may have been written to");
        drop(writer);
        let source = open();
        fs::rename(&path, folder.path().join("moved")).expect("nobody is kept from moving it");
        drop(source);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::context::{Context, Settings};
    use crate::io::source::SourceFile;
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn who_writes_is_known_and_who_comes_waits_until_the_next_read() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("in");
        std::fs::write(&path, [1; 4096]).expect("a file");
        if let Writers::Unknown = Writers::of(&File::open(&path).expect("it is there")) {
            eprintln!("skipped: no leases here");
            return;
        }
        let context = Context::new(Settings { map: false, ..Settings::new() });
        let writer = OpenOptions::new().append(true).open(&path).expect("it can be written to");
        let torn = SourceFile::open(&path, &context).expect("it can be read all the same");
        assert!(torn.is_open_elsewhere() && is_open_for_writing(&File::open(&path).unwrap()));
        drop((torn, writer));
        assert!(!is_open_for_writing(&File::open(&path).unwrap()));

        let source = SourceFile::open(&path, &context).expect("it can be read");
        assert!(!source.is_open_elsewhere());
        let is_open = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut file = OpenOptions::new().append(true).open(&path).expect("in the end");
                is_open.store(true, Ordering::SeqCst);
                file.write_all(b"more").expect("there is room");
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!is_open.load(Ordering::SeqCst), "it waits");
            // Each check makes way for writers, before and after a write.
            while !is_open.load(Ordering::SeqCst) {
                let _ = source.check_unchanged();
                std::thread::yield_now();
            }
        });
        assert!(source.check_unchanged().is_err());
    }
}
