//! The code of areas: up to 65,536 blocks of which any m may be lost, wherever they are.
//!
//! A set of [`block`](crate::block) has at most 256 shards, and a region of files needs many of them, each with
//! recovery shards of its own. An area is one codeword of Reed and Solomon over GF(2^16) instead: what it tolerates is
//! one number, however the losses lie. `docs/FORMAT.md`, section 22, has the code; its transforms are those of Lin,
//! Chung and Han (FOCS 2014) over Cantor's basis.
//!
//! - [`AreaCode`]: k and m, checked, and the cosets of positions, in which blocks are handed over.
//! - [`AreaRoom`]: memory, made once.
//! - [`AreaEncoder`]: originals in, coset by coset, recovery blocks out.
//! - [`AreaDecoder`] and [`AreaSolution`]: all blocks that are there in, coset by coset, lost ones out.
//!
//! ```
//! use fec_core::area::{AreaCode, AreaDecoder, AreaEncoder, AreaRoom};
//! use fec_core::executor::Inline;
//! use fec_core::gf256::kernel::Backend;
//!
//! let code = AreaCode::new(3, 2)?;
//! let originals = [[1; 128], [2; 128], [3; 128]];
//! let mut room = AreaRoom::new(code.m(), 128, 1)?;
//!
//! // Positions 0 and 1 are the recovery blocks.
//! let mut encoder = AreaEncoder::new(code, 128, Backend::best(), &mut room)?;
//! encoder.add(0, &[None, None, Some(&originals[0]), Some(&originals[1]), Some(&originals[2])], &Inline)?;
//! let mut recovery = [[0; 128]; 2];
//! let [a, b] = &mut recovery;
//! encoder.finish(&mut [a, b], &Inline)?;
//!
//! // Two originals are lost.
//! let mut decoder = AreaDecoder::new(code, 128, &[2, 4], Backend::best(), &mut room)?;
//! decoder.add(0, &[Some(&recovery[0]), Some(&recovery[1]), None, Some(&originals[1]), None], &Inline)?;
//! let mut solution = decoder.solve(&Inline)?;
//! let mut restored = [[0; 128]; 2];
//! let [a, b] = &mut restored;
//! solution.restore(0, &mut [a, b], &Inline)?;
//! assert_eq!(restored, [originals[0], originals[2]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! - Every block is read once, and no row is kept: the memory of rows belongs to the caller again when a call returns.
//! - Memory is what [`AreaRoom::bytes`] says, some numbers for each lost position, and while a call runs a list of
//!   references to rows.
//! - Bytes are the same with every backend, number of threads and order of cosets.
//! - A caller may stop between any two calls.
//!
//! Nothing here checks that blocks are intact: digests do. Blocks that stand an odd number of lines apart, as those of
//! a [`ShardBuf`](crate::block::ShardBuf) do, are read faster than those at powers of two.

mod code;
mod decoder;
mod encoder;
mod error;
mod fill;
mod locator;
mod sums;
#[cfg(test)]
mod tests;

pub use code::{AreaCode, AreaCodeError};
pub use decoder::{AreaDecoder, AreaSolution};
pub use encoder::AreaEncoder;
pub use error::AreaError;
pub use sums::AreaRoom;
