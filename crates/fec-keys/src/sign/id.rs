//! The name of a key.

use std::fmt;

/// The eight bytes by which a signature names its key. Anybody can make a key that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(super) [u8; 8]);

/// The name in minisign's form, 16 hexadecimal digits.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016X}", u64::from_le_bytes(self.0))
    }
}
