//! Small age files, which wrap a content key so that every implementation of age opens it.
//!
//! The format is C2SP age.md (`age-encryption.org/v1`), binary and not armored. A file is for recipients ([`seal`]):
//! keys of X25519, hybrid post-quantum keys of ML-KEM-768 and X25519, Ed25519 keys of SSH; or for a passphrase
//! ([`seal_with_passphrase`]). Identities open it, or the passphrase ([`open`]). RSA keys of SSH, plugins and encrypted
//! files of identities are refused by name.
//!
//! A file is read from memory and written to memory: it is meant for keys, not for contents. Input is hostile: files
//! that are not canonical are refused, and the work is bounded by [`MOST_STANZAS`] and [`MOST_WORK`].
//!
//! ```
//! use fec_keys::age::{self, Identity, KeyKind, Keys};
//! # fn main() -> Result<(), age::AgeError> {
//! let identity = Identity::generate(KeyKind::Hybrid).expect("there is randomness");
//! let file = age::seal(&[identity.recipient()], b"32 bytes that decrypt everything")?;
//! let keys = Keys::Identities(vec![identity]);
//! assert_eq!(age::open(&file, &keys)?.as_slice(), b"32 bytes that decrypt everything");
//! # Ok(())
//! # }
//! ```
//!
//! The code is fec's own: the format's crate brings 147 crates, and no post-quantum keys.

mod bech32;
mod error;
mod header;
mod hybrid;
mod identity;
mod limits;
mod open;
mod openssh;
mod passphrase;
mod primitives;
mod recipient;
mod seal;
mod ssh;
mod stream;
mod x25519;

pub use error::{AgeError, Part};
pub use header::StanzaKind;
pub use hybrid::HybridRecipient;
pub use identity::{Identity, KeyKind, identities_of};
pub use limits::{DEFAULT_WORK, MOST_STANZAS, MOST_WORK};
pub use open::{Keys, open, recipients_in};
pub use passphrase::Passphrase;
pub use recipient::{Recipient, recipients_of};
pub use seal::{seal, seal_on, seal_with_passphrase};
pub use ssh::SshRecipient;
pub use x25519::X25519Recipient;

#[cfg(test)]
mod tests;
