//! The byte layouts: strict parsers over `&[u8]` and their writers. Nothing here reads files.
//!
//! - [`shard_file`]: one shard index of every set in a file of its own, with headers and proofs at both ends.
//! - [`container`]: all shards as records, one after the other, then an index; [`scan`] finds them in any bytes.
//! - [`sidecar`]: the file that protects files that stay where they are.
//! - [`manifest`]: the segments of a payload whose shards stand in stores.
//! - [`packet`]: the packets of live streams; [`report`]: those that a receiver answers.
//! - [`annex`]: bytes that others may add behind either, and that the root does not bind.
//! - [`outline`]: the annexes that prove leaves of a shard, so that a few bytes can be had alone.
//! - [`meta`]: the payload's name and similar facts, which the root binds.
//!
//! Parsers are strict: an object that breaks any rule gives a [`FormatError`], whose [`class`](FormatError::class) says
//! whether it is damaged, invalid, or beyond the limits of this build.
//!
//! ```
//! use fec_core::block::Code;
//! use fec_core::digest::HashKind;
//! use fec_core::error::Class;
//! use fec_core::format::meta::Meta;
//! use fec_core::format::shard_file::{Encoding, ShardHeader};
//! use fec_core::params::{Form, GroupGeometry};
//!
//! // Shard 2 of an encoding of 10,000 bytes in 3 + 2 shard files; the tree's root comes from encoding its sets.
//! let geometry = GroupGeometry::whole(Form::Shards, HashKind::Blake3, Code::new(3, 2)?, 1 << 20, 10_000)?;
//! let encoding = Encoding::new(geometry, [7; 32], &Meta::with_name(b"letters.tar")?.to_bytes());
//! let layout = encoding.layout();
//! assert_eq!(layout.body_len, geometry.shape().shard_len as u64 * u64::from(geometry.shape().sets));
//! let header = ShardHeader { index: 2, encoding };
//!
//! let mut bytes = header.to_bytes();
//! assert_eq!(ShardHeader::parse(&bytes), Ok(header));
//! bytes[40] ^= 1;
//! assert_eq!(ShardHeader::parse(&bytes).unwrap_err().class(), Class::Damaged);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod annex;
pub mod container;
mod crc;
pub mod manifest;
pub mod meta;
pub mod outline;
pub mod packet;
pub mod report;
pub mod scan;
pub mod seal;
pub mod sealed_packet;
pub mod shard_file;
pub mod sidecar;

use crate::error::FormatError;

/// CRC32C of bytes behind their 12-byte prefix, which is magic and checksum.
fn checksum(bytes: &[u8]) -> u32 {
    checksum_of(&[&bytes[12..]])
}

/// CRC32C of all parts, one after the other: the checksum of every header.
pub fn checksum_of(parts: &[&[u8]]) -> u32 {
    crc::crc32c(parts)
}

/// Offset of the version in every header.
const VERSION_AT: usize = 32;

/// The first two checks of every header, which are the same in all versions: the magic, and the version at offset 32.
fn check_start(bytes: &[u8], magic: &[u8; 8]) -> Result<(), FormatError> {
    if !bytes.starts_with(magic) {
        return Err(FormatError::Damaged("the magic"));
    }
    match bytes[VERSION_AT] {
        1 => Ok(()),
        version => Err(FormatError::Version(version)),
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| *b == 0)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The `N` bytes from `at`.
///
/// # Panics
/// If the bytes are too few: callers check lengths first.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes")
}
