//! The interface of an object store: a few verbs on objects that are put whole, under keys whose contents never change.

use super::call::Call;
use super::error::StoreError;
use fec_base::io::ReadAt;
use std::io;
use std::ops::Range;

/// A store's description of an object. It may be a lie: only proved bytes are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Key, below the target's prefix.
    pub key: String,
    /// Length in bytes.
    pub size: u64,
    /// The store's name of this content, if it has one.
    pub etag: Option<String>,
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The object was made.
    Created,
    /// An object was there already, and was left unchanged.
    Existed,
}

/// The outcome of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The object is gone, as far as the place tells.
    Gone,
    /// The place keeps its versions: a mark hides the object, whose bytes stay.
    Hidden,
}

/// Tells which keys of a list are of interest. All others are dropped as they are read, because there may be any number
/// of them. In the list of a whole place, a folder is entered if its key, with a slash at the end, is wanted.
pub type Wanted = fn(&str) -> bool;

/// Takes the objects of a list one by one. An error ends the list.
pub type Each<'a> = dyn FnMut(ObjectInfo) -> Result<(), StoreError> + 'a;

/// Takes the bytes of an object in order, as they come.
pub type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Objects under keys. A key is a path with `/` between its parts; no part is `.`, `..` or empty. Several threads call
/// a store at once.
///
/// Each call is a single attempt. The caller repeats it if that is [worth it](StoreError::is_worth_retrying), as
/// [`Call::retry`](super::call::Call::retry) does. A [cancelled](super::call::Cancel) call ends soon, with
/// [`StoreError::Cancelled`].
pub trait ObjectStore: Send + Sync {
    /// Its name in messages: the URL, without secrets.
    fn name(&self) -> &str;

    /// All objects whose keys start with `prefix`, in any order; the prefix ends in `/`. A store that cannot list
    /// returns [`StoreError::Unsupported`].
    fn list(&self, prefix: &str, call: &Call<'_>) -> Result<Vec<ObjectInfo>, StoreError> {
        self.list_wanted(prefix, |_| true, call)
    }

    /// The wanted objects below `prefix`. The number of other objects read is bounded. Beyond the bound the call fails,
    /// perhaps with [`StoreError::Unsupported`], as in a store that cannot list.
    fn list_wanted(
        &self,
        prefix: &str,
        wanted: Wanted,
        call: &Call<'_>,
    ) -> Result<Vec<ObjectInfo>, StoreError>;

    /// Gives the wanted objects below `prefix` to `each` as they come, so that none of them is held in memory. Without
    /// a prefix it is the whole place. The number of other objects read is bounded, as in
    /// [`list_wanted`](Self::list_wanted).
    fn walk(
        &self,
        prefix: &str,
        wanted: Wanted,
        each: &mut Each<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError> {
        self.list_wanted(prefix, wanted, call)?.into_iter().try_for_each(each)
    }

    /// Describes an object, or tells that it is not there.
    fn head(&self, key: &str, call: &Call<'_>) -> Result<ObjectInfo, StoreError>;

    /// Reads these bytes of an object and gives them to `sink`: all of them, or an error. If the store visibly answers
    /// with other bytes, the error is [`StoreError::WrongRange`].
    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        sink: &mut Sink<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError>;

    /// These bytes of an object: few, as they are held in memory. The store is not asked for no bytes.
    fn read(&self, key: &str, range: Range<u64>, call: &Call<'_>) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::with_capacity(range.end.saturating_sub(range.start) as usize);
        let mut sink = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        if !range.is_empty() {
            self.get(key, range, &mut sink, call)?;
        }
        Ok(bytes)
    }

    /// Makes an object of the first `len` bytes of `body`. It appears whole or not at all. A large one goes in parts,
    /// each retried by [`Call::retry`](super::call::Call::retry). No object is replaced if the store can tell.
    fn put(&self, key: &str, body: &dyn ReadAt, len: u64, call: &Call<'_>) -> Result<Put, StoreError>;

    /// Removes an object. A missing object is no error.
    fn delete(&self, key: &str, call: &Call<'_>) -> Result<(), StoreError>;

    /// Removes an object, and tells whether its bytes stay.
    fn remove(&self, key: &str, call: &Call<'_>) -> Result<Removed, StoreError> {
        self.delete(key, call).map(|()| Removed::Gone)
    }
}
