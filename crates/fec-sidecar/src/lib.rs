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
//!
//! Names, times and owners of files are those of Unix. Other systems have [`kind`] alone, which recognizes a sidecar,
//! and [`mirrors`], which repairs of shard files use too.

#[cfg(unix)]
mod catalog;
pub mod error;
#[cfg(unix)]
pub mod examine;
pub mod kind;
#[cfg_attr(not(unix), allow(dead_code, reason = "repairs that use them are Unix's alone"))]
pub mod mirrors;
#[cfg(unix)]
pub mod protect;
#[cfg_attr(not(unix), allow(dead_code, reason = "whatever codes is Unix's alone"))]
mod redundancy;
#[cfg(unix)]
pub mod repair;
#[cfg(unix)]
pub mod scrub;
#[cfg(unix)]
pub mod update;

#[cfg(unix)]
pub use catalog::{generations::PiecesFound, history::Recorded, manifest, metadata::Sidecar, proof::Proof};
pub use error::SidecarError;
pub use redundancy::Redundancy;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
