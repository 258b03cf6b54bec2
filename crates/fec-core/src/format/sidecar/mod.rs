//! Sidecars: recovery shards for files that stay where they are (format specification, section 17).
//!
//! - [`anchor`]: hashes that find moved blocks.
//! - [`area`]: the places of pieces and recovery shards in a sidecar.
//! - [`piece`]: the pieces that the metadata is coded into.
//! - [`catalog`]: the record of the files, the assignment of their bytes to shards, and the digests of all shards.
//! - [`stat`]: times and permissions, which the root does not bind.

pub mod anchor;
pub mod area;
pub mod catalog;
mod entry;
pub mod piece;
pub mod stat;
mod varint;

pub use entry::{ANCHOR_EVERY, Entry, EntryKind, FileEntry, Run, has_anchor};
