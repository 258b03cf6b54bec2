//! Sidecars: recovery shards for files that stay where they are (format specification, section 17).
//!
//! - [`anchor`]: by what blocks are found that have moved.
//! - [`area`]: where pieces and recovery shards stand in a sidecar.
//! - [`piece`]: the pieces that the metadata is coded into.
//! - [`catalog`]: what the files were, which of their bytes are which shard, and the digests of all shards.
//! - [`stat`]: times and permissions, which the root does not bind.

pub mod anchor;
pub mod area;
pub mod catalog;
mod entry;
pub mod piece;
pub mod stat;
mod varint;

pub use entry::{ANCHOR_EVERY, Entry, EntryKind, FileEntry, Run, has_anchor};
