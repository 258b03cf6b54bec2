//! Sealed payloads: whoever holds the shards learns nothing (format specification, section 20).
//!
//! A payload is sealed before it is coded, in chunks that are each encrypted and authentic by themselves. Its key
//! serves this payload alone, and stands in the meta, in an age file that the recipients open. The codec, the trees and
//! the root know nothing of it, so anybody can verify and repair what they cannot read.
//!
//! ```text
//! Sealing (recipients, cipher) ─▶ Sealer ─▶ SealedPayload, SealedReader ─▶ encode
//!                                   └─────▶ the seal, in the meta
//! Opener  (the seal, keys)     ─▶ Unsealer: from front to back; or a file where it stands
//! ```

pub mod error;
mod keys;
pub mod open;
pub mod sealed;
pub mod sealer;
pub(crate) mod spool;

pub use error::SealError;
pub use open::Opener;
pub use sealed::{SealedPayload, SealedReader};
pub use sealer::{SealedTo, Sealer, Sealing, reseal};

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod copies;
#[cfg(test)]
mod tests;
