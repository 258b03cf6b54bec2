//! Randomness of the system.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use zeroize::Zeroizing;

/// New bytes from the system's source of randomness.
pub(crate) fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    let mut done = 0;
    while done < N {
        match getrandom(&mut bytes[done..], GetRandomFlags::empty()) {
            Ok(more) => done += more,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}
