//! A temporary file without a name, for data that has to be whole before it is passed on.

use super::output::Turn;
use super::{ReadAt, system};
use crate::error::{Action, Error, Place, Result, WriteFailure};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

/// Bytes copied at a time: enough to make the cost of the calls negligible.
const PIECE: usize = 256 << 10;

/// Reads some bytes, again if a signal interrupts; 0 at the end.
fn read_some(from: &mut impl Read, to: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(to) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// A temporary file, removed when dropped.
pub struct Spool(File, Turn);

impl Spool {
    /// An empty file in the system's folder for temporary files.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn new() -> Result<Spool> {
        Spool::within(None)
    }

    /// An empty file in this folder, or in the system's one.
    ///
    /// # Errors
    /// As [`new`](Spool::new).
    pub fn within(folder: Option<&Path>) -> Result<Spool> {
        system::nameless_file(folder)
            .map(|file| Spool(file, Turn::default()))
            .map_err(|e| Error::io(Action::Create, Place::Temporary, e))
    }

    /// Copies a whole pipe into a temporary file, as an object to read.
    ///
    /// # Errors
    /// Those of the pipe and of the file, reported as the pipe's.
    pub fn of_pipe(place: &Path, mut pipe: impl Read) -> Result<Arc<dyn ReadAt>> {
        let fail = |e: io::Error| Error::io(Action::Spool, place, e);
        let mut file = system::nameless_file(None).map_err(|e| {
            let Some(folder) = system::temporary_folder() else { return fail(e) };
            let why = format!("in the folder {}, which TMPDIR names: {e}", folder.display());
            fail(io::Error::new(e.kind(), why))
        })?;
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

    /// Writes bytes at an offset.
    ///
    /// # Errors
    /// Those of the file.
    pub fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _turn = self.1.take();
        system::write_all_at(&self.0, bytes, offset)
            .map_err(|e| Error::io(Action::Write, Place::Temporary, e))
    }

    /// Reads bytes at an offset.
    ///
    /// # Errors
    /// Those of the file.
    pub fn get(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        ReadAt::read_exact_at(&self.0, offset, out)
    }

    /// Sets the length of the file in bytes; bytes never written are zeros.
    ///
    /// # Errors
    /// Those of the file.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len).map_err(|e| Error::io(Action::Write, Place::Temporary, e))
    }

    /// The file, as an object to read.
    pub fn bytes(&self) -> &dyn ReadAt {
        &self.0
    }

    /// Writes the first `len` bytes to `out`; bytes never written are zeros.
    ///
    /// # Errors
    /// Those of the file, also if it became shorter meanwhile, and those of `out`.
    pub fn copy_to(&self, len: u64, out: &mut dyn Write, fail: &WriteFailure<'_>) -> Result<()> {
        let here = |action| move |e| Error::io(action, Place::Temporary, e);
        self.0.set_len(len).map_err(here(Action::Write))?;
        let mut file = &self.0;
        file.rewind().map_err(here(Action::Read))?;
        let mut piece = vec![0; len.min(PIECE as u64) as usize];
        let mut left = len;
        while left > 0 {
            let most = left.min(PIECE as u64) as usize;
            let len = read_some(&mut file, &mut piece[..most]).map_err(here(Action::Read))?;
            if len == 0 {
                // The output so far is not the whole payload.
                return Err(here(Action::Read)(io::ErrorKind::UnexpectedEof.into()));
            }
            out.write_all(&piece[..len]).map_err(fail)?;
            left -= len as u64;
        }
        Ok(())
    }
}
