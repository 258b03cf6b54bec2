//! The border on a system that is no Unix, such as Windows.
//!
//! Folders have no permissions that a program could just name, and no locks. The user's own folder for temporary files
//! is closed to other users there, and all that is private stays in it; what a killed process leaves stays too.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A folder; nothing shows to other processes that it is in use.
#[derive(Debug)]
pub(crate) struct OpenFolder(());

impl OpenFolder {
    /// The folder at `path`, which this process has just made.
    ///
    /// # Errors
    /// None.
    pub(crate) fn own(_path: &Path) -> io::Result<OpenFolder> {
        Ok(OpenFolder(()))
    }

    /// Opens the folder at `path`, which anybody may have put there.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn found(_path: &Path) -> io::Result<OpenFolder> {
        lacking("this system has no locks of folders")
    }

    /// False: there are no locks.
    pub(crate) fn lock(&self) -> bool {
        false
    }
}

fn lacking<T>(what: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::Unsupported, what))
}

/// Makes a folder for the owner alone, which can only be one below the user's folder for temporary files.
///
/// # Errors
/// `Unsupported` for any other place; those of the system.
pub(crate) fn make_private_folder(path: &Path) -> io::Result<()> {
    let around = fs::canonicalize(path.parent().unwrap_or(path))?;
    if !around.starts_with(fs::canonicalize(std::env::temp_dir())?) {
        return lacking("on this system only the user's own folder for temporary files is closed to others");
    }
    fs::create_dir(path)
}

/// Changes nothing: the folder around them is private.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

/// The path of a folder in a spelling that any other of the same folder has too: in small letters, since capitals make
/// no other name.
pub(crate) fn spelling(path: PathBuf) -> PathBuf {
    path.to_str().map_or(path.clone(), |text| PathBuf::from(text.to_lowercase()))
}

/// A place as the user writes it, without the slashes at its end. The slash behind the letter of a drive stays: without
/// it the path would begin wherever the process last was on that drive.
pub(crate) fn without_end(place: &str) -> &str {
    let trimmed = place.trim_end_matches('/');
    if trimmed.ends_with(':') && trimmed.len() < place.len() { &place[..=trimmed.len()] } else { trimmed }
}

/// The path that stands behind `file://`, which begins with a slash; none stands before the letter of a drive.
pub(crate) fn path_of_url(behind: &str) -> &str {
    let path = match without_end(behind) {
        "" => "/",
        path => path,
    };
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => &path[1..],
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_drives() {
        for (place, path) in [("C:/", "C:/"), ("C:///", "C:/"), ("C:", "C:"), ("C:/a/", "C:/a"), ("a//", "a")]
        {
            assert_eq!(without_end(place), path);
        }
        for (behind, path) in
            [("/C:/a/", "C:/a"), ("/C:/", "C:/"), ("/a", "/a"), ("/", "/"), ("/1:/", "/1:/")]
        {
            assert_eq!(path_of_url(behind), path);
        }
        assert_eq!(spelling("C:/Shards".into()), spelling("c:/shards".into()));
    }

    #[test]
    fn only_the_folder_for_temporary_files_is_private() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        make_private_folder(&folder.path().join("room")).expect("a folder");
        let refused = make_private_folder(Path::new("/room")).expect_err("it is not below that folder");
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
    }
}
