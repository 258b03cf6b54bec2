//! Sealing: the options and keys that seal an encoding, and those that open it.

pub(crate) mod keys;
