//! Files under names that others can predict. In a folder that others may write to, any type of file may be there: a
//! link is not followed, a FIFO is not waited for, and another user's file is not believed.

use super::system;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;

/// The kind of entry under such a name.
#[derive(Debug)]
pub enum Stands {
    /// No entry.
    Nothing,
    /// A regular file of the same user or of root, without other names. Other users' permission to write is not
    /// checked: a file system without permissions lets everybody write.
    Own(File, Metadata),
    /// Anything else, which is not opened; with the reason.
    Other(&'static str),
}

/// Looks up a name, and opens the entry for reading if it is the user's own file.
///
/// # Errors
/// Those of the system.
pub fn look(path: &Path) -> io::Result<Stands> {
    // The check comes before opening, because opening a device may have effects.
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Stands::Nothing),
        named => {
            if let Some(wrong) = wrong_with(&named?, None)? {
                return Ok(Stands::Other(wrong));
            }
        }
    }
    // The entry may have changed since, so it is checked again.
    let file = match system::open_unfollowed(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(Stands::Other(LINK)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Stands::Nothing),
        Err(e) => return Err(e),
    };
    let meta = file.metadata()?;
    Ok(match wrong_with(&meta, Some(&file))? {
        Some(wrong) => Stands::Other(wrong),
        None => Stands::Own(file, meta),
    })
}

const LINK: &str = "it is a symbolic link";

/// The reason against an entry; `file` is the entry, once it is open.
fn wrong_with(meta: &Metadata, file: Option<&File>) -> io::Result<Option<&'static str>> {
    Ok(match meta {
        _ if meta.is_symlink() => Some(LINK),
        _ if !meta.is_file() => Some("it is no regular file"),
        _ if !system::is_own(meta, file)? => Some("it belongs to another user"),
        _ if system::links(meta, file) > 1 => Some("it has other names too"),
        _ => None,
    })
}

/// Opens a file that the user named for reading, if it is a regular file. A FIFO in its place is not waited for.
///
/// # Errors
/// Those of the system.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let file = system::open_at_once(path)?;
    Ok(if file.metadata()?.is_file() { Some(file) } else { None })
}

/// Tells why a device, FIFO or socket, or a link to one, is not written to: another user has put it into a folder that
/// others may write to. `None`: it may be written to.
///
/// # Errors
/// Those of the system.
pub fn planted(path: &Path) -> io::Result<Option<&'static str>> {
    let meta = fs::symlink_metadata(path)?;
    let owner = system::owner(&meta)?;
    // Only root can make devices.
    if system::is_device(&meta) || system::is_mine(owner) {
        return Ok(None);
    }
    let folder = fs::metadata(super::temporary::parent(path))?;
    let is_of_its_owner = owner == system::owner(&folder)? && system::mode(&folder) & 0o022 == 0;
    Ok((!is_of_its_owner).then_some(match meta.is_symlink() {
        true => "it is a symbolic link that another user has put there",
        false => "it belongs to another user, in a folder that others may write to",
    }))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use rustix::process::geteuid;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    fn wrong(path: &Path) -> &'static str {
        match look(path).unwrap() {
            Stands::Other(wrong) => wrong,
            stands => panic!("{stands:?}"),
        }
    }

    #[test]
    fn what_others_may_have_put_there_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        assert!(matches!(look(&at("none")).unwrap(), Stands::Nothing));
        fs::write(at("own"), b"own").unwrap();
        assert!(matches!(look(&at("own")).unwrap(), Stands::Own(..)));
        symlink("own", at("link")).unwrap();
        symlink("/dev/full", at("device")).unwrap();
        fs::create_dir(at("folder")).unwrap();
        // Opening a FIFO without a writer blocks.
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        for name in ["link", "device"] {
            assert_eq!(wrong(&at(name)), LINK);
        }
        for name in ["folder", "fifo"] {
            assert_eq!(wrong(&at(name)), "it is no regular file");
            assert!(open_regular(&at(name)).unwrap().is_none());
        }
        assert!(open_regular(&at("link")).unwrap().is_some());
        fs::hard_link(at("own"), at("other name")).unwrap();
        assert_eq!(wrong(&at("own")), "it has other names too");
        fs::remove_file(at("other name")).unwrap();
    }

    #[test]
    fn what_another_user_has_put_there_is_not_written_to() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), b"theirs").unwrap();
        if chown(at("file"), Some(12_345), None).is_err() || !geteuid().is_root() {
            eprintln!("skipped: only root gives files away");
            return;
        }
        assert_eq!(wrong(&at("file")), "it belongs to another user");
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        symlink("/dev/null", at("link")).unwrap();
        for name in ["fifo", "link"] {
            assert_eq!(planted(&at(name)).unwrap(), None, "one's own");
            lchown(at(name), Some(12_345), None).unwrap();
            assert!(planted(&at(name)).unwrap().is_some());
        }
        // A folder that only its owner may write to has what its owner wants.
        chown(place.path(), Some(12_345), None).unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(planted(&at("fifo")).unwrap(), None);
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(planted(&at("fifo")).unwrap().is_some());
        assert_eq!(planted(Path::new("/dev/null")).unwrap(), None);
    }
}
