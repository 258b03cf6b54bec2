//! Gives a file another name, never one that is taken. File systems have several calls for that, and many lack some of
//! them: FAT and exFAT, FUSE, network file systems.

use super::unixes;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;

/// A name in an open folder.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// The folder, or the current one.
    pub folder: BorrowedFd<'a>,
    /// The name in it, or a path from there.
    pub name: &'a OsStr,
}

/// The calls of a file system, which may lack some of them.
trait Calls {
    fn rename_new(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()>;
    fn link(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()>;
    fn rename(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()>;
    fn stat(&self, name: Name<'_>) -> rustix::io::Result<()>;
    fn unlink(&self, name: Name<'_>) -> rustix::io::Result<()>;
}

/// The system's own calls.
struct System;

impl Calls for System {
    fn rename_new(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
        unixes::rename_new((from.folder, from.name), (to.folder, to.name))
    }

    fn link(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
        rustix::fs::linkat(from.folder, from.name, to.folder, to.name, AtFlags::empty())
    }

    fn rename(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
        rustix::fs::renameat(from.folder, from.name, to.folder, to.name)
    }

    fn stat(&self, name: Name<'_>) -> rustix::io::Result<()> {
        rustix::fs::statat(name.folder, name.name, AtFlags::SYMLINK_NOFOLLOW).map(|_| ())
    }

    fn unlink(&self, name: Name<'_>) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(name.folder, name.name, AtFlags::empty())
    }
}

/// Tells whether an error may mean that the file system lacks a call, or lacks it for this type of file. File systems
/// differ in this error. (ENOTSUP is EOPNOTSUPP on Linux, and another number on macOS.)
pub fn is_lacking(error: Errno) -> bool {
    [Errno::INVAL, Errno::PERM, Errno::IO, Errno::NOSYS, Errno::OPNOTSUPP, Errno::NOTSUP].contains(&error)
}

/// Gives a file or folder another name, if that is free.
///
/// If the system cannot do that in a single step, a file gets a second name by a link, which never takes a name either.
/// If that fails too, it is renamed after a check that the name is free.
///
/// # Errors
/// `AlreadyExists`; those of the system.
pub fn rename_new(from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    by(&System, from, to)
}

/// Gives a file another name, in place of a file with that name.
///
/// # Errors
/// The system's own calls.
pub fn rename_over(from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    Ok(System.rename(from, to)?)
}

fn by(calls: &impl Calls, from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    match calls.rename_new(from, to) {
        Err(e) if is_lacking(e) => {}
        done => return Ok(done?),
    }
    match calls.link(from, to) {
        Ok(()) => return Ok(calls.unlink(from)?),
        Err(e @ (Errno::EXIST | Errno::XDEV)) => return Err(e.into()),
        // Folders cannot have a second name, and on some file systems files cannot either.
        Err(_) => {}
    }
    match calls.stat(to) {
        Err(Errno::NOENT) => Ok(calls.rename(from, to)?),
        Err(e) => Err(e.into()),
        Ok(()) => Err(Errno::EXIST.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::path::Path;

    /// A file system without some calls.
    struct Poor {
        rename_new: Option<Errno>,
        link: Option<Errno>,
    }

    impl Calls for Poor {
        fn rename_new(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
            self.rename_new.map_or_else(|| System.rename_new(from, to), Err)
        }
        fn link(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
            self.link.map_or_else(|| System.link(from, to), Err)
        }
        fn rename(&self, from: Name<'_>, to: Name<'_>) -> rustix::io::Result<()> {
            System.rename(from, to)
        }
        fn stat(&self, name: Name<'_>) -> rustix::io::Result<()> {
            System.stat(name)
        }
        fn unlink(&self, name: Name<'_>) -> rustix::io::Result<()> {
            System.unlink(name)
        }
    }

    fn name(path: &Path) -> Name<'_> {
        Name { folder: CWD, name: path.as_os_str() }
    }

    /// Lacking calls are reported with different errors; exFAT through FUSE has its own.
    #[test]
    fn whatever_a_file_system_lacks_a_free_name_is_given_and_a_taken_one_is_not() {
        let lacking = [Errno::INVAL, Errno::PERM, Errno::IO, Errno::NOSYS, Errno::OPNOTSUPP];
        let ways: Vec<Option<Errno>> = std::iter::once(None).chain(lacking.map(Some)).collect();
        for (rename_new, link) in ways.iter().flat_map(|a| ways.iter().map(move |b| (*a, *b))) {
            let place = tempfile::tempdir().unwrap();
            let at = |name: &str| place.path().join(name);
            let calls = Poor { rename_new, link };
            fs::write(at("new"), b"new").unwrap();
            fs::write(at("old"), b"precious").unwrap();
            std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
            fs::create_dir_all(at("folder/with")).unwrap();
            for taken in ["old", "dangling", "folder"] {
                let refused = by(&calls, name(&at("new")), name(&at(taken))).unwrap_err();
                assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists, "{rename_new:?} {link:?} {taken}");
            }
            assert_eq!(fs::read(at("old")).unwrap(), b"precious");
            by(&calls, name(&at("new")), name(&at("free"))).unwrap();
            assert!(!at("new").exists() && fs::read(at("free")).unwrap() == b"new");
            by(&calls, name(&at("folder")), name(&at("other"))).unwrap();
            assert!(!at("folder").exists() && at("other/with").exists());
            let gone = by(&calls, name(&at("nothing")), name(&at("at all"))).unwrap_err();
            assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn other_errors_are_told() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("new"), b"new").unwrap();
        for other in [Errno::NOSPC, Errno::ACCESS, Errno::XDEV, Errno::ROFS] {
            let calls = Poor { rename_new: Some(other), link: None };
            let told = by(&calls, name(&at("new")), name(&at("free"))).unwrap_err();
            assert_eq!(told.raw_os_error(), Some(other.raw_os_error()));
            assert!(at("new").exists() && !at("free").exists());
        }
    }
}
