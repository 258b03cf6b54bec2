//! Maps of files, on systems where nothing fences them: there are none, and files are read.

use std::convert::Infallible;
use std::fs::File;
use std::io;

/// A mapped file: none.
#[derive(Debug)]
pub(crate) struct FencedMap(Infallible);

impl FencedMap {
    /// Maps the whole of a file.
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn new(_file: &File) -> io::Result<FencedMap> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no fenced maps of files"))
    }

    /// Copies the bytes from an offset.
    ///
    /// # Errors
    /// None: there is no map.
    pub(crate) fn copy(&self, _offset: usize, _out: &mut [u8]) -> io::Result<()> {
        match self.0 {}
    }
}
