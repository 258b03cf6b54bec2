//! A set: encoding it into shards, digests and a root, and decoding it from shards that were checked in place.
//!
//! ```text
//! SetEncoder::encode ─▶ EncodedSet: recovery shards, tree of leaves, root
//!
//! SetDecoder::begin ─▶ Reading: slot, check, … ─▶ decode ─▶ Decoded: every original, proved by the tree
//!                         ▲                          │
//!                         └────── Undecoded ◀────────┘  the error, and the reading again
//! ```
//!
//! The decoder owns the buffer that shards are read into, and computes their digests there: only checked bytes can be
//! decoded. Each step of decoding is a value that only the step before gives, so a wrong order does not compile. Coding
//! and hashing go through a set in one pass over its columns (`pass.rs`).
//!
//! Each call takes the caller's threads and observer in a [`Run`]; [`Run::default`] is the calling thread, unobserved.
//!
//! ```
//! use fec_core::block::Code;
//! use fec_core::digest::HashKind;
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::params::{Form, GroupGeometry};
//! use fec_core::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder, SetError};
//!
//! // One set of 3 + 2 shards, each of 64 bytes: the payload is as long as the three originals.
//! let payload = [*b"Any three of these shards, and nothing but the root of them all,", [b'b'; 64], [b'c'; 64]];
//! let code = Code::new(3, 2)?;
//! let group = GroupGeometry::whole(Form::Shards, HashKind::Blake3, code, 1 << 20, 3 * 64)?;
//!
//! let originals: Vec<&[u8]> = payload.iter().map(|shard| &shard[..]).collect();
//! let mut encoded = EncodedSet::new(group.shape());
//! let encoder = SetEncoder::new(code, HashKind::Blake3, Backend::best());
//! // The group has one set, whose root is the whole tree.
//! let tree = encoder.encode(0, &originals, &mut encoded, Run::default());
//!
//! // Two originals are lost. What is there of the set is read into the decoder and checked against the tree.
//! let mut decoder = SetDecoder::for_payload(group.shape());
//! let mut reading = decoder.begin(&group, &tree, 0);
//! let mut proof = vec![0; group.shape().proof_len()];
//! for (index, shard) in [(1, originals[1]), (3, encoded.recovery().row(0)), (4, encoded.recovery().row(1))] {
//!     reading.slot(index).copy_from_slice(shard);
//!     encoded.write_path(index as usize, &mut proof);
//!     assert!(reading.check(index, &[&proof], Run::default()));
//! }
//! let plans = PlanCache::new(Backend::best());
//! let decoded = reading.decode(&plans, Run::default()).map_err(SetError::from)?;
//! assert!((0..3).all(|index| decoded.row(index) == originals[index as usize]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encode;
mod pass;
mod places;
mod plans;
mod proof;
mod reading;
mod run;
mod tree;

pub use decode::{SetDecoder, SetError};
pub use encode::{EncodedSet, SetEncoder};
pub use plans::PlanCache;
pub use proof::{leaf_is_proved, shard_is_proved, tree_of_shard};
pub use reading::{Decoded, Reading, Undecoded};
pub use run::Run;
