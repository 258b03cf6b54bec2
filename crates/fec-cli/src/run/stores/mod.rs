//! `--to` and `--from`: shards in stores. Builds without the feature `stores` refuse both.

#[cfg(not(feature = "stores"))]
mod absent;
#[cfg(feature = "stores")]
mod commands;

#[cfg(not(feature = "stores"))]
pub(crate) use absent::{check_root_file, decode, repair, send, verify};
#[cfg(feature = "stores")]
pub(crate) use commands::{check_root_file, decode, repair, send, verify};
