//! Signatures over roots, with the keys and in the files of minisign: Ed25519, prehashed with BLAKE2b (docs/FORMAT.md,
//! section 19).
//!
//! A root names an encoding, and a signature names its author: a holder of the public key needs no root any more. The
//! signed text is a line ([`message`]), so that minisign itself can check it. Keys and signatures are parsed strictly.
//! No signature found beside an encoding counts before it was checked with a key that the caller brought.
//!
//! A signature is over a root, so that encoders know nothing of it before the root is there. Readers collect the texts
//! of annexes unread, until all encodings are found. Then [`Trust`] says which roots the caller's keys have signed, and
//! the choice is among these. No other decision rests on a signature.
//!
//! A hybrid key has a key of ML-DSA-65 (FIPS 204) beside, and makes minisign's signature with a line more. Whoever has
//! its public key wants both signatures: an attacker who breaks one of the two has nothing yet.

mod error;
mod id;
mod ml_dsa;
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
