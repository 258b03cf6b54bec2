//! Keys and signatures, as bytes.

use zeroize::Zeroizing;

/// Bytes of a public key.
pub(crate) const PUBLIC_LEN: usize = 1952;
/// Bytes of a signature.
pub(crate) const SIGNATURE_LEN: usize = 3309;

/// Bytes of which a secret key is made (ξ of algorithm 1).
pub(crate) type Seed = Zeroizing<[u8; 32]>;
/// The encoding of a public key (algorithm 22). Any bytes are one.
pub(crate) type PublicKey = [u8; PUBLIC_LEN];
/// The encoding of a signature (algorithm 26).
pub(crate) type Signature = [u8; SIGNATURE_LEN];
