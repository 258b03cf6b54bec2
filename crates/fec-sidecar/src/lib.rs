//! Protects files where they are: a sidecar beside them detects changes and mends damage (docs/FORMAT.md, section 17).
//!
//! ```text
//! tree: the files found ─▶ plan: which byte is which shard ─▶ protect: one pass hashes, codes and writes
//!                                                            │
//! metadata: names and digests, in pieces with a code of their own ◀─▶ Sidecar
//!                                                            │
//!                           examine: finds damage ◀──────────┴─▶ repair: computes lost bytes
//! ```
//!
//! The metadata is coded like a payload. Its shards stand as pieces evenly between the recovery shards, so that damage
//! of the sidecar costs shards of both kinds. [`Sidecar::open`] restores it from the pieces that are left, also when
//! these have moved.
//!
//! The rooms stand on each other in this order: `catalog` (what is recorded, and how it is read), [`examine`]
//! (compares, searches and computes, and writes nothing), [`protect`], [`repair`] (the only one that writes into
//! files), and [`scrub`] and [`update`].

mod catalog;
pub mod error;
pub mod examine;
pub mod protect;
pub mod repair;
pub mod scrub;
pub mod update;

pub use catalog::generations::PiecesFound;
pub use catalog::history::Recorded;
pub use catalog::manifest;
pub use catalog::metadata::Sidecar;
pub use catalog::proof::Proof;
pub use catalog::signature::signature_path;
pub use error::SidecarError;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
