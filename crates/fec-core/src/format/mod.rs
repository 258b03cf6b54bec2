//! The byte layouts: strict parsers over `&[u8]` and their writers. Nothing here reads files.

pub mod container;
mod crc;
pub mod meta;
pub mod packet;
pub mod scan;
pub mod shard_file;

/// CRC32C of bytes that start with a 12-byte prefix of magic and checksum which it leaves out.
fn checksum(bytes: &[u8]) -> u32 {
    crc::crc32c(&[&bytes[12..]])
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
/// If they are not there: callers check lengths first.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has N bytes")
}
