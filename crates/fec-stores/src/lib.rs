//! Shards in object stores that fail independently.
//!
//! A payload is cut into segments, each an ordinary encoding. Its shard files are objects `ROOT/NNN.shard` below a
//! prefix, spread over targets so that no domain holds more of them than may be lost. A manifest names the segments,
//! and its root is the root of the whole. This root and the places suffice to get the payload back, and none of the
//! places is trusted.
//!
//! [`ObjectStore`] is the interface of a place: a folder, S3, Google, Azure or HTTPS.
//!
//! The feature `stores` brings `object_store`, `reqwest`, `rustls` with ring, `tokio` and what they need: 120 crates,
//! and a binary of 12.3 MB in place of 6.9. Builds for boards leave it out.
//!
//! [`audit`](stored::Stored::audit) shows with a few megabytes how much places can have lost at most.
//! [`inventory`](inventory::inventory) lists the encodings in places, and [`Forget`](forget::Forget) removes one.
//!
//! No answer of a store is believed. Keys follow from roots, the ordinary reader proves each byte, and a list is read
//! for keys that can be ours; a list that leads back or does not end is left.

mod arrived;
pub mod audit;
pub mod call;
mod cloud;
pub mod error;
mod fetch;
mod find;
pub mod folder;
pub mod forget;
mod hedge;
pub mod inventory;
mod keys;
mod lists;
mod manifest;
pub mod mend;
pub mod object;
mod open;
mod part;
pub mod placement;
pub mod places;
mod put;
pub mod rekey;
mod room;
pub mod send;
pub mod stored;
mod system;
pub mod target;
mod transfer;
pub mod verify;

pub use error::StoreError;
pub use object::ObjectStore;
pub use open::open;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
