//! A file to protect, mapped or read at positions, and a check that it stayed unchanged.

use super::ReadAt;
use super::system::{self, FencedMap};
use crate::context::{Context, Notice};
use crate::error::{Action, Error, ErrorKind, Result};
use crate::program::lease::Writers;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// A regular file open for reading.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    file: File,
    map: Option<FencedMap>,
    stamp: Stamp,
    mode: u32,
    writers: Writers,
}

/// Properties of a file that change when it is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    /// Those of the last write and of the last change of any kind.
    times: [(i64, i64); 2],
}

impl Stamp {
    /// The stamp of an open file, which has these metadata.
    ///
    /// # Errors
    /// `Unsupported` on a system that does not tell when a file was changed.
    pub fn of(file: &File, meta: &Metadata) -> io::Result<Stamp> {
        Ok(Stamp { len: meta.len(), times: system::times(file, meta)? })
    }
}

impl SourceFile {
    /// Opens a regular file. The settings may ask for a map, which is not made for an empty file, without the fence of
    /// [`sigbus`](crate::program::sigbus), or if the system refuses it. The context's receiver gets a
    /// [`Notice::OpenElsewhere`] of a file that is open for writing elsewhere.
    pub fn open(path: &Path, context: &Context<'_>) -> Result<SourceFile> {
        let fail = |e: io::Error| Error::io(Action::Read, path, e);
        let file = File::open(path).map_err(fail)?;
        let writers = Writers::of(&file);
        if let Writers::Some = writers {
            context.progress.note(Notice::OpenElsewhere { path });
        }
        let meta = file.metadata().map_err(fail)?;
        let stamp = Stamp::of(&file, &meta).map_err(fail)?;
        let map = if context.settings.map && stamp.len > 0 {
            FencedMap::new(&file).inspect_err(|e| tracing::debug!("not mapped, read instead: {e}")).ok()
        } else {
            None
        };
        Ok(SourceFile { path: path.to_path_buf(), file, map, stamp, mode: system::mode(&meta), writers })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the file in bytes when it was opened.
    pub fn size(&self) -> u64 {
        self.stamp.len
    }

    /// Its type and permissions, as `stat` gives them.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Tells whether the file was open for writing elsewhere when it was opened here, as far as the system tells.
    pub fn is_open_elsewhere(&self) -> bool {
        matches!(self.writers, Writers::Some)
    }

    /// Copies the bytes from `offset` into `out`.
    pub fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.writers.after(&self.file, out.len() as u64);
        let done = match &self.map {
            Some(map) => map.copy(offset as usize, out),
            None => self.file.read_exact_at(offset, out),
        };
        done.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.changed(),
            _ => Error::io(Action::Read, self.path.as_path(), e),
        })
    }

    /// Fails if the file was changed since it was opened. The lease ends here, so that waiting writers need not wait
    /// until the output is on the disk; later reads rely on the stamp alone.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = self.file.metadata().and_then(|meta| Stamp::of(&self.file, &meta));
        let now = now.map_err(|e| Error::io(Action::Read, self.path.as_path(), e))?;
        if now != self.stamp || self.writers.have_come(&self.file) {
            return Err(self.changed());
        }
        self.writers.end(&self.file);
        Ok(())
    }

    fn changed(&self) -> Error {
        Error::at(Action::Read, self.path.as_path(), ErrorKind::Changed)
    }
}
