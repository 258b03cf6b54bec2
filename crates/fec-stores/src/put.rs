//! Puts an object under a key that determines its contents.

use super::call::Cancel;
use super::error::StoreError;
use super::object::Put;
use super::places::Places;
use fec_base::io::ReadAt;
use fec_core::format::shard_file::Encoding;

/// An object as it should be.
#[derive(Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) key: &'a str,
    /// Its length in bytes, and another that it may have as well.
    pub(super) lens: [u64; 2],
    /// Its first bytes.
    pub(super) first: &'a [u8],
}

impl<'a> Expected<'a> {
    /// A shard file with this header, with outlines or without.
    pub(super) fn shard(key: &'a str, encoding: &Encoding, header: &'a [u8]) -> Expected<'a> {
        Expected { key, lens: [encoding.outlined_len(), encoding.layout().file_len], first: header }
    }

    /// A manifest.
    pub(super) fn manifest(key: &'a str, bytes: &'a [u8]) -> Expected<'a> {
        Expected { key, lens: [bytes.len() as u64; 2], first: bytes }
    }
}

/// Puts an object of the first of the lengths. A different object under its key does not belong there, because the
/// key determines the contents, and is replaced.
pub(super) fn put(
    places: &Places,
    place: usize,
    body: &dyn ReadAt,
    expected: Expected<'_>,
    cancel: &Cancel,
) -> Result<Put, StoreError> {
    let (key, len) = (expected.key, expected.lens[0]);
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

/// Tells whether an object has an expected size and the expected first bytes. The rest is not read: a deep verify
/// does that. `listed` is its size by a list, which may be out of date.
pub(super) fn is_ours(
    places: &Places,
    place: usize,
    Expected { key, lens, first }: Expected<'_>,
    listed: Option<u64>,
    cancel: &Cancel,
) -> Result<bool, StoreError> {
    places.retry(place, cancel, |store, call| {
        let is_known = listed.is_some_and(|size| lens.contains(&size));
        if !is_known && !lens.contains(&store.head(key, call)?.size) {
            return Ok(false);
        }
        Ok(store.read(key, 0..first.len() as u64, call)? == first)
    })
}
