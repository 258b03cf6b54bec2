//! Where the payload of a stream goes, in pieces as it comes.

use crate::failure::{Failure, Result, show};
use crate::sys::output::FileOut;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Bytes that are gathered before they are written, unless the input pauses.
const GATHER: usize = 128 << 10;

/// A file that appears when it is whole, or something that is written as it comes.
pub(crate) struct Output {
    place: Place,
    buffer: Vec<u8>,
    written: u64,
}

/// Where payload bytes go.
pub(crate) enum Place {
    Stdout(File),
    Special(PathBuf, File),
    File(PathBuf, FileOut),
}

impl Output {
    pub(crate) fn new(place: Place) -> Output {
        Output { place, buffer: Vec::with_capacity(2 * GATHER), written: 0 }
    }

    /// Takes bytes of the payload.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    /// Takes so many zeros.
    pub(super) fn zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let now = count.min(GATHER as u64);
            self.buffer.resize(self.buffer.len() + now as usize, 0);
            self.flush()?;
            count -= now;
        }
        Ok(())
    }

    /// Writes what was gathered.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let done = match &mut self.place {
            Place::Stdout(file) => write_all(file, &self.buffer).map_err(|e| Failure::stdout(&e)),
            Place::Special(path, file) => {
                write_all(file, &self.buffer).map_err(|e| Failure::io("write", path, &e))
            }
            Place::File(_, file) => write_all(file.file(), &self.buffer).map_err(|e| file.failure(&e)),
        };
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        done
    }

    /// Bytes written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn is_stdout(&self) -> bool {
        matches!(self.place, Place::Stdout(_))
    }

    pub(super) fn name(&self) -> String {
        match &self.place {
            Place::Stdout(_) => "-".to_owned(),
            Place::Special(path, _) | Place::File(path, _) => show(path),
        }
    }

    /// Gives a file its name.
    pub(super) fn commit(self) -> Result<()> {
        match self.place {
            Place::File(_, file) => file.commit(self.written),
            _ => Ok(()),
        }
    }
}

fn write_all(mut file: impl Write, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}
