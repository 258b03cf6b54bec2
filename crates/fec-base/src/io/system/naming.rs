//! Gives a file another name, never one that is taken, or one that has an entry which may be replaced. File systems
//! have several calls for that, and many lack some of them: FAT and exFAT, FUSE, network file systems.

use super::unixes;
use crate::io::look::{Look, Over};
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
    fn exchange(&self, a: Name<'_>, b: Name<'_>) -> rustix::io::Result<()>;
    fn look(&self, name: Name<'_>) -> rustix::io::Result<Look>;
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

    fn exchange(&self, a: Name<'_>, b: Name<'_>) -> rustix::io::Result<()> {
        unixes::exchange((a.folder, a.name), (b.folder, b.name))
    }

    fn look(&self, name: Name<'_>) -> rustix::io::Result<Look> {
        rustix::fs::statat(name.folder, name.name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Look::of(&stat))
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

/// Gives a file or folder another name. An entry that has the name is removed, if it is one that `over` gives up.
///
/// An entry that is known is exchanged for the new one, and looked at where nobody else finds it. If somebody has put
/// another one there meanwhile, that one gets its name back. A file system that cannot exchange has a moment between
/// the last look and the rename.
///
/// # Errors
/// `AlreadyExists` if another entry has the name; those of the system.
pub fn rename(from: Name<'_>, to: Name<'_>, over: Over) -> io::Result<()> {
    match over {
        Over::Nothing => rename_new(from, to),
        Over::Known(look) => over_known(&System, from, to, look),
        Over::Anything => Ok(System.rename(from, to)?),
    }
}

/// Gives a file or folder another name, if that is free.
///
/// If the system cannot do that in a single step, a file gets a second name by a link, which never takes a name either.
/// If that fails too, it is renamed after a check that the name is free.
///
/// # Errors
/// `AlreadyExists`; those of the system.
fn rename_new(from: Name<'_>, to: Name<'_>) -> io::Result<()> {
    by(&System, from, to)
}

fn over_known(calls: &impl Calls, from: Name<'_>, to: Name<'_>, known: Look) -> io::Result<()> {
    let mut placed = calls.look(from)?;
    match calls.exchange(from, to) {
        Err(Errno::NOENT) => return by(calls, from, to),
        Err(e) if is_lacking(e) => {
            return match calls.look(to) {
                Ok(now) if now == known => Ok(calls.rename(from, to)?),
                Ok(_) => Err(Errno::EXIST.into()),
                Err(Errno::NOENT) => by(calls, from, to),
                Err(e) => Err(e.into()),
            };
        }
        done => done?,
    }
    let mut out = calls.look(from)?;
    if out == known {
        return Ok(calls.unlink(from)?);
    }
    loop {
        match calls.exchange(from, to) {
            // Whoever put `out` there has removed the name.
            Err(Errno::NOENT) => break,
            done => done?,
        }
        let now = calls.look(from)?;
        if now.is_same_entry(&placed) {
            break;
        }
        // Somebody has replaced what was placed: the later entry is to have the name, in place of the earlier one.
        (placed, out) = (out, now);
    }
    Err(Errno::EXIST.into())
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
    match calls.look(to) {
        Err(Errno::NOENT) => Ok(calls.rename(from, to)?),
        Err(e) => Err(e.into()),
        Ok(_) => Err(Errno::EXIST.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::fs;
    use std::path::Path;

    /// A file system without some calls.
    #[derive(Default)]
    struct Poor {
        rename_new: Option<Errno>,
        link: Option<Errno>,
        exchange: Option<Errno>,
        /// Somebody else's work, one piece before each exchange.
        meanwhile: RefCell<VecDeque<Meanwhile>>,
    }

    #[derive(Clone, Copy, Debug)]
    enum Meanwhile {
        Nothing,
        Saves(&'static str),
        Removes,
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
        fn exchange(&self, a: Name<'_>, b: Name<'_>) -> rustix::io::Result<()> {
            let path = Path::new(b.name);
            match self.meanwhile.borrow_mut().pop_front() {
                Some(Meanwhile::Saves(text)) => {
                    fs::write(path.with_extension("saved"), text).unwrap();
                    fs::rename(path.with_extension("saved"), path).unwrap();
                }
                Some(Meanwhile::Removes) => fs::remove_file(path).unwrap(),
                Some(Meanwhile::Nothing) | None => {}
            }
            self.exchange.map_or_else(|| System.exchange(a, b), Err)
        }
        fn look(&self, name: Name<'_>) -> rustix::io::Result<Look> {
            System.look(name)
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
            let calls = Poor { rename_new, link, ..Poor::default() };
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

    /// Whatever others do between the steps, the file that they saved last has the name in the end.
    #[test]
    fn a_file_that_somebody_saves_in_the_middle_is_not_replaced() {
        use Meanwhile::{Nothing, Removes, Saves};
        // The work of others, and the file under the name afterwards; "new" if it was given.
        let cases: &[(&[Meanwhile], Option<&str>)] = &[
            (&[], Some("new")),
            (&[Removes], Some("new")),
            (&[Saves("saved")], Some("saved")),
            (&[Saves("saved"), Saves("later")], Some("later")),
            (&[Saves("saved"), Saves("later"), Saves("last")], Some("last")),
            (&[Saves("saved"), Removes], None),
            (&[Saves("saved"), Nothing, Nothing], Some("saved")),
        ];
        for (meanwhile, wanted) in cases {
            let place = tempfile::tempdir().unwrap();
            let at = |name: &str| place.path().join(name);
            fs::write(at("new"), b"new").unwrap();
            fs::write(at("old"), b"examined").unwrap();
            let calls =
                Poor { meanwhile: RefCell::new(meanwhile.iter().copied().collect()), ..Poor::default() };
            let known = System.look(name(&at("old"))).unwrap();
            let done = over_known(&calls, name(&at("new")), name(&at("old")), known);
            assert_eq!(fs::read_to_string(at("old")).ok().as_deref(), *wanted, "{meanwhile:?}");
            match wanted {
                Some("new") => assert!(done.is_ok() && !at("new").exists(), "{meanwhile:?}"),
                _ => assert_eq!(done.unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{meanwhile:?}"),
            }
        }
    }

    /// Without the call, a file that was saved before the last look stays.
    #[test]
    fn a_file_system_that_cannot_exchange_replaces_only_what_is_known() {
        for (meanwhile, wanted) in
            [(Meanwhile::Nothing, "new"), (Meanwhile::Saves("saved"), "saved"), (Meanwhile::Removes, "new")]
        {
            let place = tempfile::tempdir().unwrap();
            let at = |name: &str| place.path().join(name);
            fs::write(at("new"), b"new").unwrap();
            fs::write(at("old"), b"examined").unwrap();
            let meanwhile = RefCell::new([meanwhile].into());
            let calls = Poor { exchange: Some(Errno::INVAL), meanwhile, ..Poor::default() };
            let known = System.look(name(&at("old"))).unwrap();
            let done = over_known(&calls, name(&at("new")), name(&at("old")), known);
            assert_eq!(fs::read_to_string(at("old")).unwrap(), wanted);
            assert_eq!(done.is_ok(), wanted == "new");
        }
    }

    #[test]
    fn other_errors_are_told() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("new"), b"new").unwrap();
        for other in [Errno::NOSPC, Errno::ACCESS, Errno::XDEV, Errno::ROFS] {
            let calls = Poor { rename_new: Some(other), ..Poor::default() };
            let told = by(&calls, name(&at("new")), name(&at("free"))).unwrap_err();
            assert_eq!(told.raw_os_error(), Some(other.raw_os_error()));
            assert!(at("new").exists() && !at("free").exists());
        }
    }
}
