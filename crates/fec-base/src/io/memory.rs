//! A store in memory, for tests and for programs that move shards themselves.

use super::{NewObjects, ReadAt, Store};
use crate::context::Progress;
use crate::error::Place;
use fec_core::executor::lock;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex};

/// An object in memory.
pub type MemoryObject = Arc<[u8]>;

/// Objects by name. Clones share one store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    objects: Arc<Mutex<BTreeMap<OsString, MemoryObject>>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Puts an object into the store, in place of an object with that name.
    pub fn put(&self, name: impl Into<OsString>, bytes: impl Into<MemoryObject>) {
        lock(&self.objects).insert(name.into(), bytes.into());
    }

    /// The bytes of an object.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<MemoryObject> {
        lock(&self.objects).get(name.as_ref()).cloned()
    }

    /// Removes an object and returns it.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Option<MemoryObject> {
        lock(&self.objects).remove(name.as_ref())
    }
}

impl Store for MemoryStore {
    fn list(&self) -> io::Result<Vec<OsString>> {
        Ok(lock(&self.objects).keys().cloned().collect())
    }

    fn open(&self, name: &OsStr) -> io::Result<Box<dyn ReadAt>> {
        self.get(name).map(|bytes| Box::new(bytes) as Box<dyn ReadAt>).ok_or(io::ErrorKind::NotFound.into())
    }

    fn create(
        &self,
        names: &[OsString],
        _bytes: u64,
        _progress: &dyn Progress,
    ) -> crate::Result<Box<dyn NewObjects>> {
        let objects = names.iter().map(|_| Mutex::default()).collect();
        Ok(Box::new(NewMemory { store: self.clone(), names: names.to_vec(), objects }))
    }
}

struct NewMemory {
    store: MemoryStore,
    names: Vec<OsString>,
    objects: Vec<Mutex<Vec<u8>>>,
}

impl NewObjects for NewMemory {
    fn write_at(&self, object: usize, offset: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let mut bytes = lock(&self.objects[object]);
        let mut at = usize::try_from(offset).map_err(io::Error::other)?;
        for part in parts {
            let end = at + part.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[at..end].copy_from_slice(part);
            at = end;
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place::Nowhere
    }

    fn read_back(&self, object: usize, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        lock(&self.objects[object])[..].read_at(offset, out)
    }

    fn commit(self: Box<Self>) -> crate::Result<()> {
        let mut objects = lock(&self.store.objects);
        for (name, bytes) in self.names.iter().zip(&self.objects) {
            objects.insert(name.clone(), std::mem::take(&mut *lock(bytes)).into());
        }
        Ok(())
    }
}
