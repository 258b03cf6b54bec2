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

#[cfg(test)]
mod tests {
    use super::*;
    use fec_base::io::output::Policy;
    use std::cell::RefCell;

    /// A writer that notes its writes, and fails after some bytes.
    struct Noting<'a>(&'a RefCell<Vec<usize>>, usize);

    impl Write for Noting<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let all: usize = self.0.borrow().iter().sum();
            if all + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.borrow_mut().push(bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Small pieces go out together, and all of them at a pause.
    #[test]
    fn pieces_are_gathered_and_zeros_are_counted() {
        let writes = RefCell::default();
        let mut output = Output::stream(Place::Nowhere, Noting(&writes, usize::MAX));
        assert!(!output.is_file());
        (0..10).for_each(|_| output.write(&[7; 1000]).expect("it is taken"));
        assert_eq!((writes.borrow().len(), output.written()), (0, 0), "nothing pauses");
        output.flush().expect("it is written");
        output.flush().expect("there is nothing");
        assert_eq!((&writes.borrow()[..], output.written()), (&[10_000][..], 10_000));
        output.write(&vec![7; GATHER - 1]).expect("it is taken");
        assert_eq!(writes.borrow().len(), 1);
        output.write(&[7]).expect("it is taken");
        assert_eq!(writes.borrow()[1..], [GATHER], "that is enough for a write");
        for zeros in [0, 1, GATHER as u64, 3 * GATHER as u64 + 7] {
            let before = output.written();
            output.zeros(zeros).expect("it is taken");
            output.flush().expect("it is written");
            assert_eq!(output.written() - before, zeros);
        }
        output.commit().expect("a writer has no name");
    }

    #[test]
    fn a_file_appears_with_all_its_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let file = FileOut::create(&path, Policy::new().with_sync(false)).expect("a file");
        let mut output = Output::file(file);
        assert!(output.is_file());
        output.write(b"ab").expect("it is taken");
        output.zeros(3).expect("it is taken");
        output.write(b"c").expect("it is taken");
        output.flush().expect("it is written");
        assert!(!path.exists(), "it may not be all");
        output.commit().expect("it gets its name");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"ab\0\0\0c");
    }

    #[test]
    fn what_cannot_be_written_names_its_place() {
        let writes = RefCell::default();
        let mut output = Output::stream(Place::Output, Noting(&writes, 100));
        output.write(&[7; 101]).expect("it is taken");
        let error = output.flush().expect_err("there is no room");
        assert!(matches!(error.place, Place::Output) && matches!(error.kind, fec_base::ErrorKind::Io(_)));
    }
}
