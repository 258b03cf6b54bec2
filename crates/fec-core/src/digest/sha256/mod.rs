//! SHA-256 of many rows of one length at a time (FIPS 180-4, sections 5 and 6.2).
//!
//! SHA-256 has no tree: each block of a row waits for the one before. A single row therefore leaves most of a processor
//! idle, whatever its instructions, and rows are hashed side by side: in vectors with a row in each lane
//! (`vertical.rs`), or as streams of the instructions for SHA-256 that take turns. Only whole blocks are hashed. Eight
//! words for each row are kept between pieces, so that rows can be hashed piece by piece while they are in a cache.
//!
//! The codec uses `rows.rs`. `engine.rs` lists the kernels, one file each, and the numbers of rows that each takes.
//! `scalar.rs` is the crate `sha2`: it serves where no other kernel does, and is the oracle of the tests. Single
//! messages that are not shards go to that crate directly.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod contract;
mod engine;
mod rows;
mod scalar;
mod standard;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vertical;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;
#[cfg(target_arch = "x86_64")]
mod x86_avx512;
#[cfg(target_arch = "x86_64")]
mod x86_shani;

pub(super) use engine::compress_each;
pub(crate) use rows::{Rows, Share};
pub(super) use standard::IV;
#[cfg(test)]
pub(super) use standard::to_bytes;
