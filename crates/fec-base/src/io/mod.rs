//! Storage that the rest of the library reads from and writes to.
//!
//! | trait | stands for | implementations |
//! |---|---|---|
//! | [`ReadAt`] | an object that is read at positions | `File`, [`MemoryObject`](memory::MemoryObject), byte slices |
//! | [`NewObjects`] | new objects that appear together | [`FolderOut`](output::FolderOut), the memory store |
//! | [`Store`] | a place for objects with names | [`Folder`](folder::Folder), [`MemoryStore`](memory::MemoryStore) |
//!
//! Forms know only these traits. An object with an unreadable place is damaged at that place alone.
//!
//! An output appears whole or not at all: a temporary name, a sync, a rename. Two outputs are exceptions: a damaged
//! file that a sidecar protects is mended in place, and an updated sidecar grows in place, and is cut off again after a
//! failure. Outputs are written from reused buffers, because fresh mapped pages cost several times more. Shards are
//! read at positions and need no fence: a short read is an erasure. Inputs of an encode are mapped where the fence
//! stands.

pub mod bad_blocks;
#[cfg(unix)]
pub mod base;
pub mod folder;
pub mod look;
pub mod memory;
pub mod output;
pub mod own;
#[cfg(unix)]
pub mod read_only;
#[cfg(unix)]
mod readers;
pub mod small;
pub mod source;
pub mod spool;
#[cfg(unix)]
pub mod stats;
pub mod system;
pub mod temporary;

#[cfg(unix)]
pub use system::naming;
pub use system::{list, remove_folder};

use crate::context::Progress;
use crate::error::Place;
use look::Look;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice};
use std::ops::Range;

/// An object that several threads read at positions.
pub trait ReadAt: Send + Sync {
    /// Reads some of the bytes from `offset` on; 0 at the end.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Length of the object in bytes.
    fn size(&self) -> io::Result<u64>;

    /// The next range of stored bytes from `offset` on. Bytes before the range are a hole, which reads as zeros, or
    /// lost, which cannot be read. `None` if no stored bytes follow. By default all bytes are stored.
    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        Some(offset..u64::MAX)
    }

    /// The look of the file that holds the object; `None` if it is no file.
    ///
    /// # Errors
    /// Those of the system.
    fn look(&self) -> io::Result<Option<Look>> {
        Ok(None)
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the object ends before; those of the object.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < out.len() {
            match self.read_at(offset + filled as u64, &mut out[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        system::read_at(self, out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|meta| meta.len())
    }

    fn look(&self) -> io::Result<Option<Look>> {
        system::look(self)
    }

    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        system::next_data(self, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let start = self.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let len = out.len().min(self.len() - start);
        out[..len].copy_from_slice(&self[start..start + len]);
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, out)
    }

    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        (**self).next_data(offset)
    }

    fn look(&self) -> io::Result<Option<Look>> {
        (**self).look()
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for std::sync::Arc<T> {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, out)
    }

    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        (**self).next_data(offset)
    }

    fn look(&self) -> io::Result<Option<Look>> {
        (**self).look()
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Box<T> {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, out)
    }

    fn next_data(&self, offset: u64) -> Option<Range<u64>> {
        (**self).next_data(offset)
    }

    fn look(&self) -> io::Result<Option<Look>> {
        (**self).look()
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

/// Objects that several threads write, in any order. They appear under their names once all of them are whole. Dropped
/// before that, they leave nothing behind.
pub trait NewObjects: Send + Sync {
    /// Writes `parts` in sequence from byte `offset` of object number `object` on. The list is used up.
    fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()>;

    /// Their name in messages.
    fn place(&self) -> Place;

    /// Reads back written bytes: fills `out` as far as there are bytes, and returns their number.
    fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Makes all objects durable and gives them their names.
    fn commit(self: Box<Self>) -> crate::Result<()>;
}

/// A place for objects with names.
pub trait Store: Send + Sync {
    /// The names of all objects, in order.
    fn list(&self) -> io::Result<Vec<OsString>>;

    /// Opens an object for reading.
    fn open(&self, name: &OsStr) -> io::Result<Box<dyn ReadAt>>;

    /// Starts objects with these names, of about `bytes` bytes together. `progress` gets notices.
    ///
    /// # Errors
    /// When they may not be created, or there is too little space.
    fn create(
        &self,
        names: &[OsString],
        bytes: u64,
        progress: &dyn Progress,
    ) -> crate::Result<Box<dyn NewObjects>>;
}
