//! The host of the module: objects that it reads, outputs that it takes, and progress that it shows.

use fec_base::context::{Meter, Progress};
use fec_base::error::Action;
use fec_base::io::ReadAt;
use fec_core::executor::lock;
use fecfile::seal::open::WriteAt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// The calls that the module makes. Numbers of objects are those of the request, numbers of outputs those of the
/// answer.
pub trait Host: Send + Sync + 'static {
    /// Reads some bytes of an object from `offset` on, at most as many as `out` holds; 0 at its end.
    ///
    /// # Errors
    /// When the bytes cannot be read.
    fn read(&self, object: u32, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Takes bytes of an output. They count only once the answer says that all is well.
    ///
    /// # Errors
    /// When they cannot be kept.
    fn write(&self, output: u32, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads bytes back that [`write`](Host::write) took.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read_back(&self, output: u32, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// `done` bytes are done, of `total` if their number is known.
    fn progress(&self, done: u64, total: Option<u64>);
}

/// An object of the host.
pub(crate) struct Object {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) number: u32,
    pub(crate) size: u64,
}

impl ReadAt for Object {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        // A file that grows while it is read keeps the length that the request gave.
        let len = out.len().min(usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        let read = self.host.read(self.number, offset, &mut out[..len])?;
        if read > len {
            return Err(io::Error::other("the host gave more bytes than were asked for"));
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }
}

/// Progress that the host shows.
pub(crate) struct Shown(pub(crate) Arc<dyn Host>);

impl Progress for Shown {
    fn begin(&self, _action: Action, total: Option<u64>) -> Box<dyn Meter + '_> {
        self.0.progress(0, total);
        Box::new(Counted { host: &*self.0, total, done: Mutex::new(0) })
    }
}

struct Counted<'a> {
    host: &'a dyn Host,
    total: Option<u64>,
    done: Mutex<u64>,
}

impl Meter for Counted<'_> {
    fn add(&self, bytes: u64) {
        let mut done = lock(&self.done);
        *done += bytes;
        self.host.progress(*done, self.total);
    }
}

/// Output 0 of the host, from front to back.
pub(crate) struct Output<'a> {
    pub(crate) host: &'a Arc<dyn Host>,
    pub(crate) at: u64,
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.host.write(0, self.at, bytes)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A sealed payload: what is read is output 0 of the host, what is written goes to output 1.
pub(crate) struct Sealed {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) len: u64,
}

impl ReadAt for Sealed {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.host.read_back(0, offset, out)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

impl WriteAt for Sealed {
    fn write_all_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.host.write(1, offset, bytes)
    }
}
