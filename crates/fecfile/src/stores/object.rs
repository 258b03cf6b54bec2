//! What an object store has to be able to do: six verbs on objects that are put whole, under keys that never change.

use super::call::Call;
use super::error::StoreError;
use crate::io::ReadAt;
use std::io;
use std::ops::Range;

/// What a store says of an object. It may lie: nothing is believed before bytes are proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its key, below the target's prefix.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// What the store calls this content, if it does.
    pub etag: Option<String>,
}

/// What became of an object that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It was made.
    Created,
    /// An object stood there, and was left as it is.
    Existed,
}

/// Which keys of a list are of interest. All others are dropped as they are read: there may be any number of them.
pub type Wanted = fn(&str) -> bool;

/// Takes the bytes of an object as they come, in order.
pub type Sink<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// Objects under keys, which are paths with `/` between their parts and no `.`, `..` or empty ones. Called from several threads.
///
/// Each call is tried once: whoever calls repeats what is [worth it](StoreError::is_worth_retrying), as
/// [`Call::retry`](super::call::Call::retry) does. A call that is [cancelled](super::call::Cancel) ends soon, with
/// [`StoreError::Cancelled`].
pub trait ObjectStore: Send + Sync {
    /// What to call it: its URL, without anything secret.
    fn name(&self) -> &str;

    /// All objects whose keys start with `prefix`, which ends in `/`, in any order; [`StoreError::Unsupported`] where a store
    /// cannot list.
    fn list(&self, prefix: &str, call: &Call<'_>) -> Result<Vec<ObjectInfo>, StoreError> {
        self.list_wanted(prefix, |_| true, call)
    }

    /// Those of them that are wanted. How many others are read besides is bounded: where there are more, that is an error, or
    /// [`StoreError::Unsupported`] as where a store cannot list.
    fn list_wanted(
        &self,
        prefix: &str,
        wanted: Wanted,
        call: &Call<'_>,
    ) -> Result<Vec<ObjectInfo>, StoreError>;

    /// Looks whether an object is there.
    fn head(&self, key: &str, call: &Call<'_>) -> Result<ObjectInfo, StoreError>;

    /// Reads these bytes of an object and gives them to `sink`, all of them or an error. Where a store answers with other bytes
    /// than it was asked for, as far as can be seen, that is [`StoreError::WrongRange`].
    fn get(
        &self,
        key: &str,
        range: Range<u64>,
        sink: &mut Sink<'_>,
        call: &Call<'_>,
    ) -> Result<(), StoreError>;

    /// Makes an object of the first `len` bytes of `body`, which appears whole or not at all. Large ones go in parts, which are
    /// retried one by one by [`Call::retry`](super::call::Call::retry). Where the store can tell, nothing is replaced.
    fn put(&self, key: &str, body: &dyn ReadAt, len: u64, call: &Call<'_>) -> Result<Put, StoreError>;

    /// Takes an object away; one that is not there is no error.
    fn delete(&self, key: &str, call: &Call<'_>) -> Result<(), StoreError>;
}
