//! Randomness of the system.

use fec_base::io::system;
use std::io;
use zeroize::Zeroizing;

/// New bytes from the system's source of randomness.
pub(crate) fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    system::random(&mut bytes[..])?;
    Ok(bytes)
}
