//! The codec of `fec`: Reed-Solomon sets, Merkle roots, strict formats and live streams, without I/O, clock or
//! threads of its own.
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
//! Live streams are apart from all that: [`window`] makes and reads packets over a sliding window.
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

pub mod block;
pub mod digest;
pub mod error;
pub mod executor;
pub mod format;
pub mod gf256;
pub mod merkle;
pub mod observe;
pub mod params;
pub mod random;
pub mod set;
pub mod window;
