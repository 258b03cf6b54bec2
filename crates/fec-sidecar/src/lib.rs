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

mod actions;
mod begun;
mod bits;
mod by_stat;
mod coding;
mod decisions;
mod deep;
pub mod error;
pub mod examine;
mod findings;
mod generations;
mod hashing;
mod journal;
mod left_out;
mod look;
mod looker;
pub mod manifest;
mod metadata;
mod moved;
mod outputs;
mod own_shards;
mod permissions;
mod plan;
mod positions;
mod proof;
pub mod protect;
mod reader;
mod rebuild;
mod recovery;
pub mod repair;
pub mod scrub;
mod sealed;
mod search;
mod signature;
mod targets;
mod tree;
mod undo;
pub mod update;

pub use error::SidecarError;
pub use generations::PiecesFound;
pub use metadata::Sidecar;
pub use proof::Proof;
pub use signature::signature_path;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
