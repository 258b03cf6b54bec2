//! Copies of the protected files elsewhere, from which a repair fetches what is lost. None of them is trusted.

use fec_base::context::Cancel;
use fec_base::io::ReadAt;
use fec_base::io::own::open_regular;
use fec_base::names::of_file;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A copy of a protected file, or of a folder with some of them: whole or not, old or new, honest or not. Several
/// threads read it at once.
pub trait Mirror: Sync {
    /// Its name in reports, without secrets.
    fn name(&self) -> &str;

    /// The last part of its address: it tells whether the address is that of a file, or of which folder.
    fn last_part(&self) -> &[u8];

    /// The length of the file at `key`, as the mirror tells it.
    ///
    /// # Errors
    /// [`NoAnswer`].
    fn len(&self, key: &[u8], cancel: &Cancel) -> Result<u64, NoAnswer>;

    /// Fills `out` from byte `offset` of the file at `key`, a path below the address. The empty key is the address
    /// itself. A call ends soon after `cancel` does.
    ///
    /// # Errors
    /// [`NoAnswer`], after which the content of `out` does not count.
    fn read(&self, key: &[u8], offset: u64, out: &mut [u8], cancel: &Cancel) -> Result<(), NoAnswer>;
}

/// Why a mirror gives no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// There is no such file.
    Absent,
    /// The file ends before the last of these bytes.
    Short,
    /// The mirror refuses. Many do where there is no such file.
    Denied(String),
    /// These bytes cannot be read, as those of a bad sector. Others may be.
    Broken(String),
    /// The mirror does not answer.
    Failed(String),
    /// The caller has ended the call.
    Cancelled,
}

/// A copy on this machine: a file, or a folder.
#[derive(Debug)]
pub struct LocalMirror {
    name: String,
    path: PathBuf,
    last_part: Vec<u8>,
}

impl LocalMirror {
    /// The file or folder at `path`, which `name` stands for in reports. Nothing is opened yet.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> LocalMirror {
        let path = path.into();
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let last_part = real.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        LocalMirror { name: name.into(), path, last_part }
    }

    fn open(&self, key: &[u8]) -> Result<File, NoAnswer> {
        let opened = match key {
            [] => open(&self.path),
            key => {
                let mut path = self.path.clone();
                for name in key.split(|byte| *byte == b'/') {
                    path.push(of_file(name.to_vec()).ok_or(NoAnswer::Absent)?);
                }
                open(&path)
            }
        };
        match opened {
            Err(NoAnswer::Absent) if !self.path.exists() => {
                Err(NoAnswer::Failed("it is not there".to_owned()))
            }
            opened => opened,
        }
    }
}

impl Mirror for LocalMirror {
    fn name(&self) -> &str {
        &self.name
    }

    fn last_part(&self) -> &[u8] {
        &self.last_part
    }

    fn len(&self, key: &[u8], _cancel: &Cancel) -> Result<u64, NoAnswer> {
        self.open(key)?.metadata().map(|meta| meta.len()).map_err(|e| NoAnswer::Failed(e.to_string()))
    }

    fn read(&self, key: &[u8], offset: u64, out: &mut [u8], _cancel: &Cancel) -> Result<(), NoAnswer> {
        let file = self.open(key)?;
        ReadAt::read_exact_at(&file, offset, out).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => NoAnswer::Short,
            _ => NoAnswer::Broken(e.to_string()),
        })
    }
}

/// Opens a regular file. A FIFO is not waited for, and a device not opened, which may have effects.
fn open(path: &Path) -> Result<File, NoAnswer> {
    // An error is that of one file, and others may be there.
    match open_regular(path) {
        Ok(file) => file.ok_or(NoAnswer::Absent),
        Err(e) => match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename => {
                Err(NoAnswer::Absent)
            }
            _ => Err(NoAnswer::Denied(e.to_string())),
        },
    }
}

/// The way from the address of a mirror to a file.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The address is that of the file.
    Itself,
    /// The file is below the address, under its path without this many folders.
    Without(usize),
}

#[cfg(unix)]
impl Way {
    /// The ways that may lead to the file at `path`, the likely one first. `is_only` tells whether no other file is
    /// protected: then the address may be that of the file, whatever it is called.
    pub(crate) fn all(path: &[u8], last_part: &[u8], is_only: bool) -> Vec<Way> {
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let (name, folders) = parts.split_last().expect("a path has a part");
        let mut ways = Vec::new();
        if *name == last_part {
            ways.push(Way::Itself);
        }
        let inside = folders.iter().rposition(|folder| *folder == last_part).map(|at| Way::Without(at + 1));
        ways.extend(inside);
        for way in [Way::Without(0), Way::Without(1), Way::Without(folders.len())] {
            if way.key(path).is_some() && !ways.contains(&way) {
                ways.push(way);
            }
        }
        if is_only && !ways.contains(&Way::Itself) {
            ways.push(Way::Itself);
        }
        ways
    }

    /// The key of the file at `path`, if its path has as many folders.
    pub(crate) fn key(self, path: &[u8]) -> Option<&[u8]> {
        match self {
            Way::Itself => Some(&[]),
            Way::Without(0) => Some(path),
            Way::Without(folders) => {
                let (end, _) = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').nth(folders - 1)?;
                Some(&path[end + 1..])
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn keys(path: &str, last_part: &str, is_only: bool) -> Vec<String> {
        let ways = Way::all(path.as_bytes(), last_part.as_bytes(), is_only);
        let key =
            |way: Way| String::from_utf8(way.key(path.as_bytes()).expect("a key").to_vec()).expect("text");
        ways.into_iter().map(key).collect()
    }

    #[test]
    fn the_address_tells_where_a_file_is_likely() {
        for (path, last_part, is_only, expected) in [
            ("docs/a/b", "docs", false, &["a/b", "docs/a/b", "b"][..]),
            ("docs/a/b", "a", false, &["b", "docs/a/b", "a/b"]),
            ("docs/a/b", "b", false, &["", "docs/a/b", "a/b", "b"]),
            ("docs/a/b", "elsewhere", false, &["docs/a/b", "a/b", "b"]),
            ("photo", "photo", true, &["", "photo"]),
            ("photo", "elsewhere", true, &["photo", ""]),
            ("photo", "elsewhere", false, &["photo"]),
            ("a/a/b", "a", false, &["b", "a/a/b", "a/b"]),
        ] {
            assert_eq!(keys(path, last_part, is_only), expected, "{path} at {last_part}");
        }
        assert_eq!(Way::Without(2).key(b"a/b"), None);
    }

    #[test]
    fn a_mirror_on_this_machine_says_why_it_gives_nothing() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(home.path().join("file"), b"0123456789").expect("a file");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            home.path().join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        let (folder, file) =
            (LocalMirror::new("folder", home.path()), LocalMirror::new("file", home.path().join("file")));
        let read = |mirror: &LocalMirror, key: &[u8], offset| {
            let mut out = [0; 4];
            mirror.read(key, offset, &mut out, &Cancel::default()).map(|()| out)
        };
        assert_eq!(
            (folder.last_part(), file.last_part()),
            (home.path().file_name().expect("a name").as_encoded_bytes(), &b"file"[..])
        );
        assert_eq!(folder.len(b"file", &Cancel::default()), Ok(10));
        assert_eq!(read(&folder, b"file", 6), Ok(*b"6789"));
        assert_eq!(read(&file, b"", 0), Ok(*b"0123"));
        for offset in [7, 10, 1 << 40] {
            assert_eq!(read(&folder, b"file", offset), Err(NoAnswer::Short));
        }
        let none = LocalMirror::new("none", home.path().join("none"));
        assert_eq!(read(&none, b"x", 0), Err(NoAnswer::Failed("it is not there".into())));
        for (mirror, key) in [
            (&folder, &b""[..]),
            (&folder, b"none"),
            (&folder, b"fifo"),
            (&file, b"file"),
            (&folder, &[b'x'; 300]),
        ] {
            assert_eq!(read(mirror, key, 0), Err(NoAnswer::Absent), "{key:?}");
        }
    }
}
