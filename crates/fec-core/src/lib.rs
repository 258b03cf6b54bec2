//! The codec of `fec`: shards that may get lost, roots that tell which are intact, and live streams, without I/O, clock
//! or threads of its own.
//!
//! # What it is about
//!
//! A payload is cut into **sets**. A set has k **original shards**, which are the payload itself, and m **recovery
//! shards**, computed from the originals by a Reed-Solomon code: any k of the n = k + m give back all others. A
//! **group** is one or more sets, interleaved over one contiguous piece of payload, so that a hole in the payload is
//! spread over all of them. Each shard has a **digest**, the digests of a set form a tree, and so do the sets of a
//! group and the groups of a payload. The top is the **root**: 32 bytes that name the whole. A **proof** is the path
//! from one shard up to its group's root. With it, anyone who knows that root can tell whether the shard is intact, and
//! whether decoded bytes are those of an honest encoder.
//!
//! # Four ways in
//!
//! **Shards alone**: [`encode`] and [`decode`], when something else tells which shards are intact.
//!
//! ```
//! let originals = ["alpha", "bravo", "delta"];
//! let recovery = fec_core::encode(3, 2, &originals)?;
//!
//! let mut shards = [None, Some(b"bravo".to_vec()), None, Some(recovery[0].clone()), Some(recovery[1].clone())];
//! fec_core::decode(3, 2, &mut shards)?;
//! assert_eq!(shards[0].as_deref(), Some(&b"alpha"[..]));
//! # Ok::<(), fec_core::CodingError>(())
//! ```
//!
//! **Shards with proofs**: [`encode_proved`] and [`Root`], when only a root is trusted; [`proved`] has an example.
//!
//! ```
//! let (root, shards) = fec_core::encode_proved(3, 2, b"the only copy of something")?;
//! assert_eq!(root.check(&shards[4].shard, &shards[4].proof)?, 4);
//! assert_eq!(root.decode(&shards[2..])?, b"the only copy of something");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Beneath is [`set`], for payloads of many sets: shard files and containers are made of these
//! ([`format`](mod@format)), set by set, in memory that is used again. This example makes a root; [`set`] shows the way
//! back.
//!
//! ```
//! use fec_core::block::Code;
//! use fec_core::digest::HashKind;
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::params::{Form, GroupGeometry};
//! use fec_core::set::{EncodedSet, Run, SetEncoder};
//!
//! let (code, hash) = (Code::new(2, 2)?, HashKind::Blake3);
//! let group = GroupGeometry::whole(Form::Shards, hash, code, 1 << 20, 128)?;
//! let mut encoded = EncodedSet::new(group.shape());
//! let encoder = SetEncoder::new(code, hash, Backend::best());
//! let tree = encoder.encode(0, &[&[b'a'; 64], &[b'b'; 64]], &mut encoded, Run::default());
//! assert_eq!(encoded.recovery().rows(), 2);
//! println!("the group's root is {:x?}", group.root(&tree, &hash.digest(b"")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Packets**: [`window`], when payloads come one after the other and cannot wait for a set to fill up. A sender adds
//! repair packets over a sliding window; a receiver rebuilds from them what a network lost.
//!
//! ```
//! use fec_core::gf256::kernel::Backend;
//! use fec_core::window::{Decoder, Limits, Received};
//!
//! let mut receiver = Decoder::new(Limits::default(), Backend::best());
//! assert!(matches!(receiver.receive(b"not a packet"), Received::Rejected(_)));
//! assert!(receiver.next().is_none(), "no payload came of it");
//! ```
//!
//! **Areas**: [`area`], a code over up to 65,536 blocks, when losses may fall anywhere among very many.
//!
//! # What stands on what
//!
//! ```text
//! payload ─▶ params: groups, sets, shards ─▶ block: k originals → m recovery shards ─▶ gf256::kernel
//!                                              │
//!                                              ▼
//!            digest of each shard ─▶ merkle: set tree → group tree → root
//!                                              │
//!                                              ▼
//!            format: shard files and containers, written and read strictly
//! ```
//!
//! | term | meaning |
//! |---|---|
//! | set | one codeword: k original and m recovery shards of `shard_len` bytes |
//! | group | G sets interleaved over one contiguous piece of payload |
//! | erasure | a shard that is missing or was rejected |
//! | digest | plain hash of a shard's bytes |
//! | proof | the path from one shard to its group's root |
//! | root | the 32 bytes that name an encoding |
//! | kernel, backend | one SIMD implementation of the field operations; the one in use |
//!
//! The caller lends the threads ([`executor`]), and may also follow the work ([`observe`]).
//!
//! # Features
//!
//! `blake3-lanes` hashes many shards at once, through an interface of the `blake3` crate that is not documented. It is
//! off by default; digests are the same without it, and take somewhat longer.

pub mod area;
pub mod block;
pub mod digest;
pub mod error;
pub mod executor;
pub mod format;
pub mod gf256;
pub mod gf65536;
#[cfg(all(test, target_os = "linux"))]
mod guarded;
pub mod merkle;
pub mod observe;
pub mod params;
pub mod proved;
pub mod random;
pub mod set;
pub mod simple;
pub mod window;

pub use proved::{ProvedShard, Root, encode_proved};
pub use simple::{CodingError, decode, encode};
