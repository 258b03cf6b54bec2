//! The process: its border to the system, signals, closed descriptors, secrets, passphrases and progress on a terminal.

pub(crate) mod border;
pub(crate) mod closed;
#[cfg(feature = "stores")]
pub(crate) mod consent;
pub(crate) mod passphrase;
pub(crate) mod progress;
pub(crate) mod secrets;
pub(crate) mod signals;
