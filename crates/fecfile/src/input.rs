//! Inputs: objects that are read at positions, each with the place where it stands.

use crate::error::{Action, Error, Place, Result};
use fec_base::io::folder::open_file;
use fec_base::io::spool::Spool;
use fec_base::io::system::is_shortage;
use fec_base::io::temporary::is_temporary;
use fec_base::io::{ReadAt, Store, list};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Objects in which encodings are searched.
pub enum Input {
    /// Shard files, from any places and under any names, and whatever else lies beside them.
    Several(Vec<Object>),
    /// An object of any form.
    One(Object),
}

/// An object and where it stands.
#[derive(Clone)]
pub struct Object {
    /// Its path, or its name in a store: for reports, never for decisions.
    pub place: PathBuf,
    /// The readable content.
    pub content: Content,
}

/// The readable content of an object.
#[derive(Clone)]
pub enum Content {
    /// Bytes at positions, and their number when the object was opened.
    Bytes(Arc<dyn ReadAt>, u64),
    /// A folder, pipe or device. It is not opened, since opening could wait for ever.
    NoFile,
    /// An object that cannot be opened.
    Unreadable(Arc<io::Error>),
}

impl Object {
    /// An open object.
    ///
    /// # Errors
    /// When its size cannot be told.
    pub fn new(place: impl Into<PathBuf>, bytes: Arc<dyn ReadAt>) -> io::Result<Object> {
        let len = bytes.size()?;
        Ok(Object { place: place.into(), content: Content::Bytes(bytes, len) })
    }

    fn open(place: PathBuf, open: impl FnOnce() -> io::Result<Option<Arc<dyn ReadAt>>>) -> Object {
        let content = match open().and_then(|bytes| bytes.map(|b| b.size().map(|len| (b, len))).transpose()) {
            Ok(Some((bytes, len))) => Content::Bytes(bytes, len),
            Ok(None) => Content::NoFile,
            Err(e) => Content::Unreadable(Arc::new(e)),
        };
        Object { place, content }
    }
}

/// A copy of the error if the process or the machine caused it, and not the file.
fn shortage(error: &io::Error) -> Option<io::Error> {
    let code = error.raw_os_error()?;
    is_shortage(error).then(|| io::Error::from_raw_os_error(code))
}

impl Input {
    /// The place for reports: the only object, or the folder of all objects. Several from several folders have none.
    pub(crate) fn place(&self) -> Place {
        match self {
            Input::One(object) => object.place.as_path().into(),
            Input::Several(objects) => {
                let folders = || objects.iter().map(|object| object.place.parent());
                let folder = folders().next().flatten().filter(|folder| !folder.as_os_str().is_empty());
                let folder = folder.filter(|folder| folders().all(|other| other == Some(folder)));
                let only =
                    objects.first().filter(|_| objects.len() == 1).map(|object| object.place.as_path());
                folder.or(only).map_or(Place::Nowhere, Place::from)
            }
        }
    }

    /// The input that a list of paths names. A single file is one object of any form. Folders, read one level deep, and
    /// several paths are shard files. Temporary files in a folder are ignored: their writer may still be at work, and
    /// the next run there removes stale ones.
    ///
    /// # Errors
    /// When a path is not there, or a folder cannot be listed.
    pub fn of_paths(paths: &[PathBuf]) -> Result<Input> {
        let fail = |path: &Path, e| Error::io(Action::Read, path, e);
        if let [path] = paths
            && let Some(bytes) = open_file(path).map_err(|e| fail(path, e))?
        {
            return Ok(Input::One(Object::new(path, bytes).map_err(|e| fail(path, e))?));
        }
        let mut files = BTreeSet::new();
        for path in paths {
            if !fs::metadata(path).map_err(|e| fail(path, e))?.is_dir() {
                files.insert(path.clone());
                continue;
            }
            let names = list(path).map_err(|e| fail(path, e))?;
            let lasting = names.into_iter().filter(|name| !is_temporary(name.as_encoded_bytes()));
            files.extend(lasting.map(|name| path.join(name)));
        }
        let open = |path: PathBuf| {
            let file = path.clone();
            let object = Object::open(path, move || open_file(&file));
            match &object.content {
                // A shortage says nothing of the file, which may be intact.
                Content::Unreadable(e) => match shortage(e) {
                    Some(shortage) => Err(Error::io(Action::Read, object.place.as_path(), shortage)),
                    None => Ok(object),
                },
                _ => Ok(object),
            }
        };
        Ok(Input::Several(files.into_iter().map(open).collect::<Result<_>>()?))
    }

    /// The same input, with a single object taken as one of several shard files. A single shard file is only checked
    /// for being right; among several, the question is whether the payload can be restored.
    #[must_use]
    pub fn as_several(self) -> Input {
        match self {
            Input::One(object) => Input::Several(vec![object]),
            several @ Input::Several(_) => several,
        }
    }

    /// All objects of a store.
    ///
    /// # Errors
    /// When the store cannot be listed.
    pub fn of_store(store: &dyn Store) -> Result<Input> {
        let names =
            store.list().map_err(|e| Error::new(Action::ListStore, crate::error::ErrorKind::Io(e)))?;
        let open = |name: std::ffi::OsString| {
            let place = PathBuf::from(&name);
            Object::open(place, || store.open(&name).map(|bytes| Some(Arc::from(bytes))))
        };
        Ok(Input::Several(names.into_iter().map(open).collect()))
    }

    /// A pipe, copied to an unnamed temporary file.
    ///
    /// # Errors
    /// Those of the pipe and of the file.
    pub fn spooled(place: &Path, pipe: impl io::Read) -> Result<Input> {
        let bytes = Spool::of_pipe(place, pipe)?;
        let object = Object::new(place, bytes).map_err(|e| Error::io(Action::Spool, place, e))?;
        Ok(Input::One(object))
    }
}
