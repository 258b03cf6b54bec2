//! Compares blocks with the digests of their positions.

use crate::Sidecar;
use crate::catalog::hashing::{is_zeros, plain_digests};
use crate::catalog::metadata::{LOST, NOTHING};
use crate::catalog::positions::Positions;
use fec_core::digest::blocks;
use fec_core::format::sidecar::catalog::{ShortDigest, shortened};

/// Tells of each block whether it has the digest of its position. `bytes` are the blocks from position `first` on. A
/// position that was lost for good has no digest, and no block is proved by it.
///
/// # Panics
/// If `bytes` are no whole blocks.
pub(crate) fn proved(sidecar: &Sidecar, positions: &Positions, first: u64, bytes: &[u8]) -> Vec<bool> {
    let block = sidecar.catalog.block as usize;
    assert!(bytes.len().is_multiple_of(block), "whole blocks");
    let end = first + (bytes.len() / block) as u64;
    let mut digests: Vec<ShortDigest> = Vec::with_capacity(bytes.len() / block);
    let mut position = first;
    while position < end {
        let bytes = &bytes[(position - first) as usize * block..];
        let span = positions.within(position..end).next().filter(|span| !span.is_packed);
        let whole = span.filter(|span| span.at == position * block as u64);
        let count = whole.map_or(1, |span| span.len as usize / block);
        let bytes = &bytes[..count * block];
        match whole {
            Some(span) => {
                let mut values = vec![[0; 32]; count];
                blocks::values(bytes, block, span.offset, &mut values);
                digests.extend(values.iter().map(shortened));
            }
            None => digests.push(digest_of_packed(positions, position, bytes)),
        }
        position += count as u64;
    }
    let expected = (first..end).map(|position| sidecar.digest_of(position));
    expected.zip(&digests).map(|(expected, digest)| expected != LOST && expected == *digest).collect()
}

/// The digest of a block at a position, on which the place in its file may bear.
pub(crate) fn digest_at(positions: &Positions, position: u64, bytes: &[u8]) -> ShortDigest {
    if let Some(offset) = positions.whole_block(position) {
        let mut value = [[0; 32]];
        blocks::values(bytes, bytes.len(), offset, &mut value);
        return shortened(&value[0]);
    }
    digest_of_packed(positions, position, bytes)
}

/// The digest of a block that holds tails, or nothing.
fn digest_of_packed(positions: &Positions, position: u64, bytes: &[u8]) -> ShortDigest {
    let is_nothing = positions.within(position..position + 1).next().is_none();
    match is_nothing && is_zeros(bytes) {
        true => NOTHING,
        false => plain_digests(bytes, bytes.len())[0],
    }
}
