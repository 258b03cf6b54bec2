//! A file to protect: mapped, or read at positions; and the proof that it stayed the same.

use super::sigbus::FencedMap;
use crate::failure::{Exit, Failure, Result};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A regular file open for reading.
#[derive(Debug)]
pub(crate) struct Source {
    path: PathBuf,
    file: File,
    map: Option<FencedMap>,
    stamp: Stamp,
}

/// What changes when somebody writes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    len: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(meta: &Metadata) -> Stamp {
        Stamp {
            len: meta.len(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

impl Source {
    /// Opens a regular file; `mapped` asks for a map, which is not made for an empty file or where the
    /// system refuses it.
    pub(crate) fn open(path: &Path, mapped: bool) -> Result<Source> {
        let fail = |e: io::Error| Failure::io("read", path, &e);
        let file = File::open(path).map_err(fail)?;
        let stamp = Stamp::of(&file.metadata().map_err(fail)?);
        let map = if mapped && stamp.len > 0 {
            FencedMap::new(&file).inspect_err(|e| tracing::debug!("not mapped, read instead: {e}")).ok()
        } else {
            None
        };
        Ok(Source { path: path.to_path_buf(), file, map, stamp })
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.stamp.len
    }

    /// Copies the bytes from `offset` into `out`.
    pub(crate) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let done = match &self.map {
            Some(map) => map.copy(offset as usize, out),
            None => self.file.read_exact_at(out, offset),
        };
        done.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.changed(),
            _ => Failure::io("read", &self.path, &e),
        })
    }

    /// Fails if the file was changed since it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let meta = self.file.metadata().map_err(|e| Failure::io("read", &self.path, &e))?;
        if Stamp::of(&meta) != self.stamp {
            return Err(self.changed());
        }
        Ok(())
    }

    fn changed(&self) -> Failure {
        let message = format!("read {}: it changed while it was read", crate::failure::show(&self.path));
        Failure::new(Exit::Io, message).help("nothing was written; try again when nobody writes to it")
    }
}
