//! Sidecars: recovery shards for files that stay where they are (format specification, section 17).
//!
//! - [`anchor`]: hashes that find moved blocks.
//! - [`extent`]: the places of pieces and recovery shards in a sidecar.
//! - [`piece`]: the pieces that the metadata is coded into.
//! - [`difference`]: metadata as a difference to that of a generation before.
//! - [`catalog`]: the record of the files, the assignment of their bytes to shards, and the digests of all shards.
//! - [`group`]: the code of positions and recovery shards, and how they are dealt to its sets.
//! - [`stat`]: times and permissions, which the root does not bind.
//! - [`parts`]: marks, what was left out, and what is not protected, which it does not bind either.
//! - [`policy`]: what may happen to which paths; it is one of these parts.
//! - [`stack`]: the hash trees of files that grow, up to their ends; it is another.

pub mod anchor;
pub mod catalog;
pub mod difference;
mod entry;
pub mod extent;
pub mod group;
pub mod parts;
pub mod piece;
pub mod policy;
pub mod stack;
pub mod stat;
mod varint;

pub use entry::{
    ANCHOR_EVERY, Entry, EntryKind, FileEntry, MOST_ZEROS, Run, has_anchor, is_path, most_paths,
};
