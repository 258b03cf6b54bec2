//! Remembers the metadata digests of the roots that this user has made: a file in the user's state, `ROOT E` per line.
//!
//! A root does not bind times and permissions, and nobody keeps E beside it. `fec protect` therefore notes both, out
//! of reach of whoever can write to the sidecar. A root that is given here later then proves both. Without the note it
//! proves less, so no failure here is an error.

use crate::system::progress::remove_stale_beside;
use fec_base::io::output::{Policy, write_text};
use fec_base::io::own::{Stands, look};
use fec_base::names::hex;
use fec_base::roots::parse_root;
use fec_core::digest::Digest;
use rustix::fs::OFlags;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Most bytes that are kept and read: about 30,000 roots, the newest.
const MOST: u64 = 4 << 20;

/// `$XDG_STATE_HOME/fec/sidecars`, or `~/.local/state/fec/sidecars`. Relative paths do not count, as the XDG
/// specification says.
fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("fec/sidecars"))
}

/// Tells whether this user owns a file, and nobody else may write to it.
fn is_own(meta: &Metadata) -> bool {
    meta.uid() == geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// Opens the list for reading, if nobody else can write to it or to its folder. `None`: there is no list.
fn open(path: &Path) -> io::Result<Option<File>> {
    let is_in_own =
        path.parent().is_some_and(|folder| fs::symlink_metadata(folder).is_ok_and(|m| is_own(&m)));
    match look(path)? {
        Stands::Nothing if is_in_own => Ok(None),
        Stands::Own(file, meta) if is_in_own && is_own(&meta) => Ok(Some(file)),
        _ => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Reads the end of the list.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut file) = open(path)? {
        let start = file.metadata()?.len().saturating_sub(MOST);
        file.seek(SeekFrom::Start(start))?;
        file.take(MOST).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The metadata digests E that are known to belong to a root.
pub(crate) fn of(root: &Digest) -> Vec<Digest> {
    let bytes = path().and_then(|path| read(&path).ok()).unwrap_or_default();
    // A damaged line says nothing, and the others still do.
    let text = String::from_utf8_lossy(&bytes);
    let wanted = hex(root);
    let of_root = |line: &str| parse_root(line.strip_prefix(&wanted)?.strip_prefix(' ')?.as_bytes());
    text.lines().filter_map(of_root).collect()
}

/// Notes that a metadata digest belongs to a root.
pub(crate) fn note(root: &Digest, metadata: &Digest) {
    if let Some(path) = path().filter(|_| !of(root).contains(metadata)) {
        // A failure only makes the root prove less.
        let _ = add(&path, &format!("{} {}\n", hex(root), hex(metadata)));
    }
}

fn add(path: &Path, line: &str) -> io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    // In another user's home, as with `sudo`, nothing of this user is created.
    let there = folder.ancestors().find_map(|folder| fs::metadata(folder).ok());
    if there.is_none_or(|meta| meta.uid() != geteuid().as_raw()) {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let bytes = read(path)?;
    // A line that was cut off does not swallow the new one.
    let begin = if bytes.last().is_none_or(|byte| *byte == b'\n') { "" } else { "\n" };
    let line = format!("{begin}{line}");
    if (bytes.len() + line.len()) as u64 > MOST {
        let half = &bytes[bytes.len() / 2..];
        let newer = half.iter().position(|byte| *byte == b'\n').map_or(&b""[..], |at| &half[at + 1..]);
        let policy = Policy::new().with_force(true).with_sync(false).with_permissions(0o600);
        let text = String::from_utf8_lossy(newer) + &*line;
        remove_stale_beside(path);
        return write_text(path, &text, policy).map_err(io::Error::other);
    }
    // The list may have been replaced since, so the flags stay those of `look`.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut how = OpenOptions::new();
    how.append(true).create(true).mode(0o600).custom_flags(flags.bits() as i32);
    let mut file = how.open(path)?;
    let meta = file.metadata()?;
    if !(meta.is_file() && is_own(&meta)) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // A single write, because other processes may append too.
    file.write_all(line.as_bytes())
}
