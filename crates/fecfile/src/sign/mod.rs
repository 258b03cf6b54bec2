//! Signatures over roots, with the keys and in the files of minisign: Ed25519, prehashed with BLAKE2b (docs/FORMAT.md,
//! section 19).
//!
//! A root names an encoding, and a signature names its author: a holder of the public key needs no root any more. The
//! signed text is a line ([`message`]), so that minisign itself can check it. Keys and signatures are parsed strictly.
//! No signature found beside an encoding counts before it was checked with a key that the caller brought.

pub(crate) mod error;
mod id;
mod public;
mod secret;
mod signature;
mod signatures;
#[cfg(test)]
mod tests;
mod text;
mod trust;

pub use error::{SignError, Unsigned};
pub use id::KeyId;
pub use public::Signer;
pub use secret::{SecretKey, StoredKey};
pub use signature::{LONGEST_SIGNATURE, Signature, message};
pub use signatures::{MOST_IN_ALL, MOST_OF_ONE, Signatures};
pub use trust::{Signed, Trust};
