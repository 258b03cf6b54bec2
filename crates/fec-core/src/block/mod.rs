//! The block code: systematic Reed-Solomon over GF(2^8).
//!
//! Shard i (0 ≤ i < n = k + m ≤ 256) of a set is, byte by byte, the value at the field point i of the
//! polynomial of degree below k through the originals, which are its values at 0..k. Any k shards fix that
//! polynomial, so any k give back all others (Reed and Solomon 1960, in evaluation form). The bytes are those
//! of the `reed-solomon-erasure` crate and of klauspost/reedsolomon with their default matrices.
//!
//! - [`Code`]: the two numbers k and m, checked.
//! - [`Plan`]: which shards are known, which are wanted, and the way from one to the other, ready for a
//!   backend: a matrix, or a Fourier transform where that takes fewer operations. Encoding, decoding and
//!   re-encoding are all plans.
//! - [`ShardBuf`]: rows of bytes, laid out for fast stores.
//!
//! ```
//! use fec_core::block::{Code, Plan, ShardBuf};
//! use fec_core::gf256::kernel::Backend;
//!
//! let code = Code::new(2, 2)?;
//! let mut set = ShardBuf::new(code.n(), 64);
//! set.row_mut(0).fill(b'a');
//! set.row_mut(1).fill(b'b');
//! let (originals, mut recovery) = set.split_rows(|i| i >= code.k());
//! Plan::encode(code, Backend::best()).run(&originals, &mut recovery);
//!
//! // Both originals are lost: the recovery shards give them back.
//! let mut lost = ShardBuf::new(2, 64);
//! let (_, mut restored) = lost.split_rows(|_| true);
//! Plan::new(code, Backend::best(), &[2, 3], &[0, 1])?.run(&[set.row(2), set.row(3)], &mut restored);
//! assert_eq!(lost.row(0), set.row(0));
//! assert_eq!(lost.row(1), set.row(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here checks that shards belong together or are intact: digests and trees do. This module starts no threads
//! either; see [`Plan::run`] for how a caller divides the work.

mod buf;
mod code;
mod fft;
mod lagrange;
mod plan;

#[cfg(feature = "trace")]
pub use crate::gf256::kernel::{Access, AccessKind};
pub use crate::gf256::kernel::{Operations, Rows};
pub use buf::ShardBuf;
pub use code::{Code, CodeError};
pub use fft::transformable;
pub use plan::{Engine, Plan, PlanError};
