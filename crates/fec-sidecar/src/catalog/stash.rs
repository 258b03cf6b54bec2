//! Blocks that a repair has fetched, in a file that stays until the repair is done, so that an interrupted one goes on.
//!
//! ```text
//! head: 128 bytes with the root of the sidecar     runs: position, count (8 bytes each, little-endian), blocks
//! ```
//!
//! The file proves nothing, since others may write to it: each block is compared with its digest when it is found, and
//! again when it is written to its file. A run whose end is missing is cut off.

use crate::catalog::moved::{MovedSpan, STASH};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::own::{Stands, look};
use fec_base::names::hex;
use fec_core::digest::Digest;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const HEAD: &str = "fec fetched ";
const HEAD_LEN: u64 = 128;
const RUN_HEAD_LEN: u64 = 16;
/// Most bytes of blocks that are compared at a time.
const PIECE: u64 = 1 << 20;

/// The file of fetched blocks. It is this process's own, since the sidecar is locked.
#[derive(Debug)]
pub(crate) struct Stash {
    path: PathBuf,
    pub(crate) file: Arc<File>,
    block: u64,
    /// The end of the last whole run.
    end: u64,
}

/// Tells of each block, from a position on, whether it is right.
pub(crate) type Proves<'a> = dyn Fn(u64, &[u8]) -> Vec<bool> + 'a;

/// The path of the stash of a sidecar: beside it, or in a folder that the user named.
pub(crate) fn path_of(sidecar: &Path, spool: Option<&Path>, root: &Digest) -> PathBuf {
    if let Some(folder) = spool {
        return folder.join(format!("{}.fetched", hex(root)));
    }
    // A link may name the sidecar, so the real path counts.
    let place = fs::canonicalize(sidecar).unwrap_or_else(|_| sidecar.to_path_buf());
    let mut path = OsString::from(place);
    path.push(".fetched");
    path.into()
}

/// Tells whether a file begins as a stash, of whichever sidecar.
pub(crate) fn is_one(file: &File) -> bool {
    let mut head = [0; HEAD.len()];
    file.read_exact_at(&mut head, 0).is_ok() && head == HEAD.as_bytes()
}

/// The head of the stash of a root.
fn head_of(root: &Digest) -> Vec<u8> {
    let mut head = format!("{HEAD}{}\n", hex(root)).into_bytes();
    head.resize(HEAD_LEN as usize, 0);
    head
}

impl Stash {
    /// Opens the stash at a path, or makes it. Returns the runs of blocks that `proves` finds right; of the others
    /// nothing is said. A stash of another root is emptied: its sidecar was updated since, or replaced.
    ///
    /// # Errors
    /// [`ErrorKind::NotOwn`] when anything but a stash of one's own is there; those of the file.
    pub(crate) fn open(
        path: &Path,
        root: &Digest,
        (block, positions): (u64, u64),
        proves: &Proves<'_>,
    ) -> Result<(Stash, Vec<MovedSpan>)> {
        let fail = |e| Error::io(Action::Write, path, e);
        let not_own = |why| Error::at(Action::Write, path, ErrorKind::NotOwn(why));
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600).custom_flags(flags);
        let file = match look(path).map_err(fail)? {
            Stands::Other(wrong) => return Err(not_own(wrong)),
            Stands::Nothing => options.create_new(true).open(path).map_err(fail)?,
            Stands::Own(found, meta) => {
                if meta.len() > 0 && !is_one(&found) {
                    return Err(not_own("it holds something else than fetched blocks"));
                }
                let file = options.open(path).map_err(fail)?;
                let of = file.metadata().map_err(fail)?;
                if (of.dev(), of.ino()) != (meta.dev(), meta.ino()) {
                    return Err(not_own("somebody replaces it"));
                }
                file
            }
        };
        let mut stash = Stash { path: path.to_path_buf(), file: Arc::new(file), block, end: HEAD_LEN };
        let spans = stash.take_up(root, positions, proves).map_err(fail)?;
        Ok((stash, spans))
    }

    /// The length of the stash of a root at a path, if it is there and one's own.
    pub(crate) fn len_at(path: &Path, root: &Digest) -> Option<u64> {
        let Ok(Stands::Own(file, meta)) = look(path) else { return None };
        let mut head = vec![0; HEAD_LEN as usize];
        let is_of_root = file.read_exact_at(&mut head, 0).is_ok() && head == head_of(root);
        is_of_root.then_some(meta.len())
    }

    /// Reads what an interrupted repair has left, and cuts off what follows it.
    fn take_up(&mut self, root: &Digest, positions: u64, proves: &Proves<'_>) -> io::Result<Vec<MovedSpan>> {
        let head = head_of(root);
        let mut found = vec![0; head.len()];
        let mut spans = Vec::new();
        if self.file.read_exact_at(&mut found, 0).is_err() || found != head {
            self.file.set_len(0)?;
            self.file.write_all_at(&head, 0)?;
            return Ok(spans);
        }
        let len = self.file.metadata()?.len();
        let mut bytes = Vec::new();
        while let Some((first, count)) = self.run_at(self.end, len, positions)? {
            let blocks = self.end + RUN_HEAD_LEN;
            let step = (PIECE / self.block).max(1);
            for at in (0..count).step_by(step as usize) {
                let offset = blocks + at * self.block;
                bytes.resize((step.min(count - at) * self.block) as usize, 0);
                self.file.read_exact_at(&mut bytes, offset)?;
                add_right(&mut spans, (first + at, self.block), offset, &proves(first + at, &bytes));
            }
            self.end = blocks + count * self.block;
        }
        self.file.set_len(self.end)?;
        Ok(spans)
    }

    /// The first position and the number of blocks of the run at an offset, if a whole one is there.
    fn run_at(&self, offset: u64, len: u64, positions: u64) -> io::Result<Option<(u64, u64)>> {
        if len.saturating_sub(offset) < RUN_HEAD_LEN {
            return Ok(None);
        }
        let mut head = [0; RUN_HEAD_LEN as usize];
        self.file.read_exact_at(&mut head, offset)?;
        let (first, count) = head.split_at(8);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let (first, count) = (number(first), number(count));
        let is_of_sidecar = first < positions && count > 0 && count <= positions - first;
        let is_there = is_of_sidecar && count <= (len - offset - RUN_HEAD_LEN) / self.block;
        Ok(is_there.then_some((first, count)))
    }

    /// Adds blocks that were proved, from position `first` on. Returns the offset that they stand at.
    ///
    /// # Errors
    /// Those of the file; above all that there is no room.
    pub(crate) fn add(&mut self, first: u64, blocks: &[u8]) -> Result<u64> {
        let fail = |e| Error::io(Action::Write, self.path.as_path(), e);
        let count = blocks.len() as u64 / self.block;
        let offset = self.end + RUN_HEAD_LEN;
        self.file.write_all_at(blocks, offset).map_err(fail)?;
        self.file
            .write_all_at(&[first.to_le_bytes(), count.to_le_bytes()].concat(), self.end)
            .map_err(fail)?;
        self.end = offset + blocks.len() as u64;
        Ok(offset)
    }

    /// Tells whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == HEAD_LEN
    }

    /// Removes the stash, unless something else has come to stand at its path.
    pub(crate) fn end(self) {
        let place = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let own = self.file.metadata().map(place).ok();
        if own.is_some() && fs::symlink_metadata(&self.path).map(place).ok() == own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Adds a span for each run of blocks that are right. The blocks stand at `offset`, and belong at `first` on.
pub(crate) fn add_right(
    spans: &mut Vec<MovedSpan>,
    (first, block): (u64, u64),
    offset: u64,
    is_right: &[bool],
) {
    let mut nth = 0;
    for run in is_right.chunk_by(|a, b| a == b) {
        let count = run.len() as u64;
        if run[0] {
            let (at, offset) = ((first + nth) * block, offset + nth * block);
            let span = MovedSpan { at, len: count * block, source: STASH, offset, is_twin: true };
            span.add_to(spans);
        }
        nth += count;
    }
}
