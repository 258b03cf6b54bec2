//! Puts an object under a key that determines its contents.

use super::call::Cancel;
use super::error::StoreError;
use super::object::Put;
use super::places::Places;
use fec_base::io::ReadAt;

/// Key, length in bytes, and first bytes of an object.
pub(super) type Expected<'a> = (&'a str, u64, &'a [u8]);

/// Puts an object. A different object under its key does not belong there, because the key determines the contents, and
/// is replaced.
pub(super) fn put(
    places: &Places,
    place: usize,
    body: &dyn ReadAt,
    expected: Expected<'_>,
    cancel: &Cancel,
) -> Result<Put, StoreError> {
    let (key, len, _) = expected;
    for _ in 0..2 {
        let put = places.retry(place, cancel, |store, call| store.put(key, body, len, call))?;
        if put == Put::Created || is_there(places, place, expected, cancel)? {
            return Ok(put);
        }
        places.retry(place, cancel, |store, call| store.delete(key, call))?;
    }
    Err(StoreError::Failed("another object stands there, and comes back when it is removed".into()))
}

/// Tells whether the expected object is there, as [`is_ours`] tells; an object that is not there is none.
pub(super) fn is_there(
    places: &Places,
    place: usize,
    expected: Expected<'_>,
    cancel: &Cancel,
) -> Result<bool, StoreError> {
    match is_ours(places, place, expected, None, cancel) {
        Err(StoreError::NotFound) => Ok(false),
        told => told,
    }
}

/// Tells whether an object has the expected size and first bytes. The rest is not read: a deep verify does that.
/// `listed` is its size by a list, which may be out of date.
pub(super) fn is_ours(
    places: &Places,
    place: usize,
    (key, len, first): Expected<'_>,
    listed: Option<u64>,
    cancel: &Cancel,
) -> Result<bool, StoreError> {
    places.retry(place, cancel, |store, call| {
        if listed != Some(len) && store.head(key, call)?.size != len {
            return Ok(false);
        }
        Ok(store.read(key, 0..first.len() as u64, call)? == first)
    })
}
