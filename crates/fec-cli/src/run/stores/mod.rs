//! `--to` and `--from`, `list` and `forget`: shards in stores. Builds without the feature `stores` refuse all of them.

#[cfg(not(feature = "stores"))]
mod absent;
#[cfg(feature = "stores")]
mod audit;
#[cfg(feature = "stores")]
mod commands;
#[cfg(feature = "stores")]
mod copies;
#[cfg(feature = "stores")]
mod held;
#[cfg(feature = "stores")]
mod mirrors;
#[cfg(feature = "stores")]
mod rekey;

#[cfg(not(feature = "stores"))]
pub(crate) use absent::{audit, complete, decode, forget, list, mirrors, rekey, repair, send, verify};
#[cfg(feature = "stores")]
pub(crate) use audit::audit;
#[cfg(feature = "stores")]
pub(crate) use commands::{decode, repair, send, verify};
#[cfg(feature = "stores")]
pub(crate) use copies::complete;
#[cfg(feature = "stores")]
pub(crate) use held::{forget, list};
#[cfg(feature = "stores")]
pub(crate) use mirrors::mirrors;
#[cfg(feature = "stores")]
pub(crate) use rekey::rekey;
