//! A temporary file without a name: for what has to be whole before it goes on.

use super::ReadAt;
use super::output::Turn;
use crate::error::{Error, Place, Result, WriteFailure};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are copied at a time: enough that the calls for it cost nothing beside them.
const PIECE: usize = 256 << 10;

/// What a reader has, again if a signal came in between; 0 at its end.
fn read_some(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(to) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A temporary file, gone when it is dropped.
pub struct Spool(File, Turn);

impl Spool {
    /// An empty one, in the folder that the system has for temporary files.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> Result<Spool> {
        Spool::within(None)
    }

    /// An empty one in this folder, or in that of the system.
    ///
    /// # Errors
    /// As [`new`](Spool::new).
    pub fn within(folder: Option<&Path>) -> Result<Spool> {
        let file = folder.map_or_else(tempfile::tempfile, tempfile::tempfile_in);
        file.map(|file| Spool(file, Turn::default())).map_err(|e| Error::io("create", Place::Temporary, e))
    }

    /// One that holds all that comes out of a pipe, as an object to read.
    ///
    /// # Errors
    /// Those of the pipe and of the file, told as the pipe's.
    pub fn of_pipe(place: &Path, mut pipe: impl Read) -> Result<Arc<dyn ReadAt>> {
        let fail = |e: io::Error| Error::io("spool", place, e);
        let mut file = tempfile::tempfile().map_err(fail)?;
        let (mut piece, mut copied) = (vec![0; PIECE], 0);
        loop {
            let len = read_some(&mut pipe, &mut piece).map_err(fail)?;
            if len == 0 {
                break;
            }
            file.write_all(&piece[..len]).map_err(fail)?;
            copied += len as u64;
        }
        if file.metadata().map_err(fail)?.len() != copied {
            return Err(fail(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Arc::new(file))
    }

    /// Puts bytes at a place.
    ///
    /// # Errors
    /// Those of the file.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _turn = self.1.take();
        self.0.write_all_at(bytes, offset).map_err(|e| Error::io("write", Place::Temporary, e))
    }

    /// Gets bytes that were put there.
    ///
    /// # Errors
    /// Those of the file.
    pub fn get(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        ReadAt::read_exact_at(&self.0, offset, out)
    }

    /// Makes it this long, with zeros where nothing was put.
    ///
    /// # Errors
    /// Those of the file.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len).map_err(|e| Error::io("write", Place::Temporary, e))
    }

    /// What was put there, as an object to read.
    pub fn bytes(&self) -> &dyn ReadAt {
        &self.0
    }

    /// Writes the first `len` bytes to `out`, with zeros where nothing was put.
    ///
    /// # Errors
    /// Those of the file, one that became shorter meanwhile too, and those of `out`.
    pub fn copy_to(&self, len: u64, out: &mut dyn Write, fail: &WriteFailure<'_>) -> Result<()> {
        let here = |action| move |e| Error::io(action, Place::Temporary, e);
        self.0.set_len(len).map_err(here("write"))?;
        let mut file = &self.0;
        file.rewind().map_err(here("read"))?;
        let mut piece = vec![0; len.min(PIECE as u64) as usize];
        let mut left = len;
        while left > 0 {
            let most = left.min(PIECE as u64) as usize;
            let len = read_some(&mut file, &mut piece[..most]).map_err(here("read"))?;
            if len == 0 {
                // What went out is not the payload.
                return Err(here("read")(io::ErrorKind::UnexpectedEof.into()));
            }
            out.write_all(&piece[..len]).map_err(fail)?;
            left -= len as u64;
        }
        Ok(())
    }
}
