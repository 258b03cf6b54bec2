//! Digests of shards and the node function of the trees (format specification, section 3).
//!
//! A node costs one compression: BLAKE3 in keyed mode, or one SHA-256 block from an initial value that no message can
//! reach. Each level has a tag of its own, so nodes, digests and the levels of the trees cannot be taken for one
//! another.
//!
//! Many shards of one length are hashed together by [`HashKind::digests`], and the codec hashes them in pieces
//! while they are in the cache: BLAKE3 in any order (`columns.rs`), SHA-256 from the first to the last (`sha256/`).
//!
//! ```
//! use fec_core::digest::{HashKind, Tag};
//!
//! let hash = HashKind::Sha256;
//! let (a, b) = (hash.digest(b"a shard"), hash.digest(b"another"));
//! assert_eq!(hash.digests(&[b"a shard", b"another"]), [a, b]);
//! // Leaves bind a digest to its place, nodes bind leaves.
//! let node = hash.node(Tag::Node, &hash.leaf(&a, 0, 0), &hash.leaf(&b, 0, 1));
//! assert_ne!(node, hash.node(Tag::Node, &hash.leaf(&a, 0, 1), &hash.leaf(&b, 0, 0)));
//! ```

pub mod blocks;
mod columns;
mod digests;
mod engine;
mod hash;
#[cfg(feature = "blake3-lanes")]
mod lanes;
mod nodes;
pub(crate) mod sha256;
#[cfg(any(test, not(feature = "blake3-lanes")))]
mod subtrees;

pub(crate) use columns::{Columns, Piece};
pub use digests::Digests;
pub use hash::{Digest, HashKind, PlainHasher, Tag};
#[cfg(test)]
pub(crate) use nodes::nodes_of;
