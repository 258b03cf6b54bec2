//! Putting an object under a key that says what belongs there.

use super::call::Cancel;
use super::error::StoreError;
use super::object::Put;
use super::places::Places;
use crate::io::ReadAt;

/// Key, bytes, and first bytes of an object.
pub(super) type Expected<'a> = (&'a str, u64, &'a [u8]);

/// Puts an object. One that stands there and is another does not belong under its key, which says what belongs there: it is
/// replaced.
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
        if put == Put::Created || is_ours(places, place, expected, cancel)? {
            return Ok(put);
        }
        places.retry(place, cancel, |store, call| store.delete(key, call))?;
    }
    Err(StoreError::Failed("another object stands there, and comes back when it is removed".into()))
}

/// Whether an object has the size and the first bytes that it has to have. What is behind them is not read: a deep verify is
/// there for that.
pub(super) fn is_ours(
    places: &Places,
    place: usize,
    (key, len, first): Expected<'_>,
    cancel: &Cancel,
) -> Result<bool, StoreError> {
    places.retry(place, cancel, |store, call| {
        let size = match store.head(key, call) {
            Err(StoreError::NotFound) => return Ok(false),
            info => info?.size,
        };
        if size != len {
            return Ok(false);
        }
        let mut read = Vec::with_capacity(first.len());
        let range = 0..first.len() as u64;
        store.get(
            key,
            range,
            &mut |bytes| {
                read.extend_from_slice(bytes);
                Ok(())
            },
            call,
        )?;
        Ok(read == first)
    })
}
