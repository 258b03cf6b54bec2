//! Keys: files of age with their recipients and identities, the post-quantum ones too, keys and signatures of minisign,
//! passphrases, and the ciphers under all of them. It knows no format of `fec`.
//!
//! | to | use |
//! |---|---|
//! | wrap a content key for those who may have it, as other tools read it | [`age`] |
//! | sign roots, and accept only what is signed | [`sign`] |
//! | encrypt and authenticate bytes in place | [`cipher`] |
//! | agree on secrets, also post-quantum ones, many at once | [`kem`] |
//! | refuse short passphrases, and derive keys from others | [`passphrases`] |

pub mod age;
pub mod cipher;
pub mod kem;
pub mod passphrases;
mod random;
pub mod sign;

/// The example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
