//! The destination of a stream's bytes, which come in pieces.

use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::output::FileOut;
use std::io::{self, Write};

/// Bytes to gather before a write, unless the input pauses.
const GATHER: usize = 128 << 10;

/// A file that appears when it is whole, or a writer that gets the bytes as they come.
pub struct Output<'a> {
    to: Writing<'a>,
    buffer: Vec<u8>,
    written: u64,
}

enum Writing<'a> {
    Stream(Place, Box<dyn Write + 'a>),
    File(FileOut),
}

impl<'a> Output<'a> {
    /// A writer that gets the bytes from front to back, as a pipe does; errors name `place`.
    pub fn stream(place: Place, writer: impl Write + 'a) -> Output<'a> {
        Output::new(Writing::Stream(place, Box::new(writer)))
    }

    /// A file that appears under its name when the stream has ended.
    pub fn file(file: FileOut) -> Output<'a> {
        Output::new(Writing::File(file))
    }

    /// Tells whether the output is a file that appears under its name at the end.
    pub fn is_file(&self) -> bool {
        matches!(self.to, Writing::File(_))
    }

    fn new(to: Writing<'a>) -> Output<'a> {
        Output { to, buffer: Vec::with_capacity(2 * GATHER), written: 0 }
    }

    /// Takes bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= GATHER { self.flush() } else { Ok(()) }
    }

    /// Takes `count` zeros.
    pub(super) fn zeros(&mut self, mut count: u64) -> Result<()> {
        while count > 0 {
            let now = count.min(GATHER as u64);
            self.buffer.resize(self.buffer.len() + now as usize, 0);
            self.flush()?;
            count -= now;
        }
        Ok(())
    }

    /// Writes the gathered bytes.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let done = match &mut self.to {
            Writing::Stream(place, writer) => {
                write_all(writer, &self.buffer).map_err(|e| Error::io(Action::Write, place.clone(), e))
            }
            Writing::File(file) => write_all(&mut file.file(), &self.buffer).map_err(|e| file.failure(e)),
        };
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        done
    }

    /// Bytes written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Gives a file its name.
    pub(super) fn commit(self) -> Result<()> {
        match self.to {
            Writing::File(file) => file.commit(self.written),
            Writing::Stream(..) => Ok(()),
        }
    }
}

/// Writes bytes, and flushes them for a reader that may wait.
fn write_all(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes)?;
    writer.flush()
}
