//! A folder as an object store: keys are paths below it.

use super::call::Call;
use super::error::StoreError;
use super::object::{Each, ObjectInfo, ObjectStore, Put, Sink, Wanted};
use fec_base::error::{Error, ErrorKind};
use fec_base::io::ReadAt;
use fec_base::io::folder::open_file;
use fec_base::io::output::{FileOut, Policy};
use fec_base::io::system::create_folders;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes copied at a time.
const PIECE: usize = 1 << 20;
/// Depth to which folders are listed.
const DEPTH: usize = 8;
/// Most names read for a list that are no wanted objects, and most objects of a list that is held in memory. Beyond
/// that it is faster to ask for single keys.
const MAX_NAMES: usize = 100_000;

/// A folder of this machine. The first put creates it.
#[derive(Debug)]
pub struct FolderStore {
    name: String,
    path: PathBuf,
    /// Objects are on the disk before a put ends.
    sync: bool,
}

/// A list of files as it is read.
struct List<'a> {
    wanted: Wanted,
    call: &'a Call<'a>,
    /// Names read that are no wanted objects.
    others: usize,
    each: &'a mut Each<'a>,
}

const TOO_LONG: StoreError = StoreError::Unsupported("list so many files");

impl FolderStore {
    /// The folder at `path`, which `name` stands for in messages.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>, sync: bool) -> FolderStore {
        FolderStore { name: name.into(), path: path.into(), sync }
    }

    fn list_below(
        &self,
        folder: &Path,
        key: &str,
        depth: usize,
        list: &mut List<'_>,
    ) -> Result<(), StoreError> {
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if list.call.cancel.is_cancelled() {
                return Err(StoreError::Cancelled);
            }
            if list.others > MAX_NAMES {
                return Err(TOO_LONG);
            }
            list.others += 1;
            // Names that are not UTF-8 were not put here.
            let Some(name) = entry.file_name().to_str().map(|name| format!("{key}{name}")) else { continue };
            let kind = entry.file_type().map_err(failed)?;
            if entry.file_name().as_encoded_bytes().starts_with(b".fec-") {
                continue; // an unfinished put
            }
            if kind.is_dir() {
                let below = format!("{name}/");
                // Other folders of a whole place may be closed, and hold any number of files.
                let is_entered = !key.is_empty() || (list.wanted)(&below);
                if depth > 0 && is_entered {
                    self.list_below(&entry.path(), &below, depth - 1, list)?;
                }
            } else if kind.is_file() && (list.wanted)(&name) {
                list.others -= 1;
                match entry.metadata() {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    metadata => {
                        let size = metadata.map_err(failed)?.len();
                        (list.each)(ObjectInfo { key: name, size, etag: None })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Makes the folders that hold `path`. Nothing is made above the store's own folder: a file system that is not
    /// mounted must be noticed.
    fn make_folders(&self, path: &Path, permissions: u32) -> io::Result<()> {
        match fs::create_dir(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
        let Some(folder) = path.parent() else { return Ok(()) };
        // Readers of the files may also search the folders.
        let mode = permissions | permissions >> 2 & 0o111 | 0o700;
        create_folders(folder, mode)
    }

    fn open(&self, key: &str) -> Result<(Arc<dyn ReadAt>, u64), StoreError> {
        let file = open_file(&self.path.join(key)).map_err(failed)?.ok_or(StoreError::NotFound)?;
        let len = file.size().map_err(failed)?;
        Ok((file, len))
    }
}

impl ObjectStore for FolderStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn list_wanted(
        &self,
        prefix: &str,
        wanted: Wanted,
        call: &Call<'_>,
    ) -> Result<Vec<ObjectInfo>, StoreError> {
        let mut out = Vec::new();
        let mut each = |object| {
            out.push(object);
            if out.len() > MAX_NAMES { Err(TOO_LONG) } else { Ok(()) }
        };
        self.walk(prefix, wanted, &mut each, call)?;
        Ok(out)
    }

    fn walk(
        &self,
        prefix: &str,
        wanted: Wanted,
        each: &mut Each<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        let folder = self.path.join(prefix);
        let mut each = |object| each(object);
        let mut list = List { wanted, call, others: 0, each: &mut each };
        match self.list_below(&folder, prefix, DEPTH, &mut list) {
            // The encoding's folder may be missing, but not the place itself.
            Err(StoreError::NotFound) => fs::metadata(&self.path).map(drop).map_err(failed),
            Ok(()) if call.cancel.is_cancelled() => Err(StoreError::Cancelled),
            listed => listed,
        }
    }

    fn head(&self, key: &str, _call: &Call<'_>) -> Result<ObjectInfo, StoreError> {
        let (_, size) = self.open(key)?;
        Ok(ObjectInfo { key: key.to_owned(), size, etag: None })
    }

    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        sink: &mut Sink<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        let (file, _) = self.open(key)?;
        let mut buffer = vec![0; PIECE.min((range.end - range.start) as usize)];
        let mut at = range.start;
        while at < range.end {
            let len = ((range.end - at) as usize).min(buffer.len());
            call.bytes(len as u64)?;
            file.read_exact_at(at, &mut buffer[..len]).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => StoreError::Short(range.end),
                _ => failed(e),
            })?;
            sink(&buffer[..len]).map_err(|e| StoreError::Sink(e.to_string()))?;
            at += len as u64;
            if call.cancel.is_cancelled() {
                return Err(StoreError::Cancelled);
            }
        }
        Ok(())
    }

    fn put(&self, key: &str, body: &dyn ReadAt, len: u64, call: &Call<'_>) -> Result<Put, StoreError> {
        let path = self.path.join(key);
        self.make_folders(&path, call.permissions).map_err(failed)?;
        let out = match FileOut::create(
            &path,
            Policy::new().with_sync(self.sync).with_permissions(call.permissions),
        ) {
            Err(Error { kind: ErrorKind::Exists, .. }) => return Ok(Put::Existed),
            other => other.map_err(as_store)?,
        };
        let mut buffer = vec![0; PIECE.min(len as usize)];
        let mut at = 0;
        while at < len {
            let piece = ((len - at) as usize).min(buffer.len());
            call.bytes(piece as u64)?;
            body.read_exact_at(at, &mut buffer[..piece]).map_err(|e| StoreError::Sink(e.to_string()))?;
            out.put(at, &buffer[..piece]).map_err(as_store)?;
            at += piece as u64;
            if call.cancel.is_cancelled() {
                return Err(StoreError::Cancelled);
            }
        }
        // Concurrent puts of an object write the same bytes, so the second leaves the first in place.
        match out.commit(len) {
            Err(Error { kind: ErrorKind::Exists, .. }) => Ok(Put::Existed),
            other => other.map(|()| Put::Created).map_err(as_store),
        }
    }

    fn delete(&self, key: &str, _call: &Call<'_>) -> Result<(), StoreError> {
        match fs::remove_file(self.path.join(key)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(e)),
            _ => Ok(()),
        }
    }
}

fn as_store(error: Error) -> StoreError {
    match error.kind {
        ErrorKind::Io(error) => failed(error),
        kind => StoreError::Failed(kind.to_string()),
    }
}

fn failed(error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound,
        io::ErrorKind::PermissionDenied => StoreError::Denied(error.to_string()),
        io::ErrorKind::NotADirectory => StoreError::Failed("it is no folder".into()),
        io::ErrorKind::Interrupted | io::ErrorKind::TimedOut => StoreError::Unavailable(error.to_string()),
        _ => StoreError::Failed(error.to_string()),
    }
}
