//! Everything that is printed: reports, failures and advice.

pub(crate) mod advice;
pub(crate) mod decode;
pub(crate) mod details;
pub(crate) mod encode;
pub(crate) mod failure;
pub(crate) mod report;
pub(crate) mod seal_help;
pub(crate) mod sent;
pub(crate) mod sidecar;
pub(crate) mod signed;
#[cfg(feature = "stores")]
pub(crate) mod stores;
#[cfg(feature = "stores")]
pub(crate) mod stores_repair;
pub(crate) mod stream;
pub(crate) mod stream_help;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod usage;
pub(crate) mod verify;
