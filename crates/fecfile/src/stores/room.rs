//! Folders for the shards of one segment: temporary, and gone however the process ends.

use crate::error::{Error, Place, Result};
use crate::forms::shards::writer::file_name;
use crate::io::temporary::Temporary;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder for the shards of a segment.
#[derive(Debug)]
pub(super) struct Room {
    folder: Temporary,
}

impl Room {
    /// An empty one, in this folder or in that of the system for temporary files.
    pub(super) fn new(spool: Option<&Path>) -> Result<Room> {
        let folder = spool.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let made = Temporary::beside(&folder.join("segment"), |path| fs::create_dir(path));
        let (folder, ()) =
            made.map_err(|e| Error::io("create a temporary folder in", folder.as_path(), e))?;
        Ok(Room { folder })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of its shard files.
    pub(super) fn shards(&self) -> PathBuf {
        self.file("shards")
    }

    /// A shard file of an encoding that records `name`.
    pub(super) fn shard(&self, name: &[u8], index: usize) -> PathBuf {
        self.shards().join(file_name(name, index))
    }

    /// The same error in words that do not name a path nobody has heard of.
    pub(super) fn failure(error: Error) -> Error {
        Error { place: Place::Temporary, ..error }
    }
}
