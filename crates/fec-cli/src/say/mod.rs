//! Everything that is printed: reports, failures and advice.

#[cfg(unix)]
pub(crate) mod advice;
pub(crate) mod decode;
pub(crate) mod details;
pub(crate) mod encode;
pub(crate) mod failure;
#[cfg(unix)]
pub(crate) mod generations;
pub(crate) mod habits;
#[cfg(unix)]
pub(crate) mod left_out;
pub(crate) mod metrics;
pub(crate) mod mirrors;
#[cfg(unix)]
pub(crate) mod not_protected;
#[cfg(unix)]
pub(crate) mod policy;
#[cfg(unix)]
pub(crate) mod protect;
#[cfg(unix)]
pub(crate) mod protected;
pub(crate) mod repair;
pub(crate) mod repair_table;
pub(crate) mod report;
#[cfg(unix)]
pub(crate) mod scrub;
pub(crate) mod seal_help;
pub(crate) mod sent;
#[cfg(unix)]
pub(crate) mod sidecar;
#[cfg(unix)]
pub(crate) mod sidecar_repair;
pub(crate) mod signed;
#[cfg(unix)]
pub(crate) mod spare;
pub(crate) mod state;
#[cfg(feature = "stores")]
pub(crate) mod stores;
#[cfg(feature = "stores")]
pub(crate) mod stores_audit;
#[cfg(feature = "stores")]
pub(crate) mod stores_forget;
#[cfg(feature = "stores")]
pub(crate) mod stores_list;
#[cfg(feature = "stores")]
pub(crate) mod stores_rekey;
#[cfg(feature = "stores")]
pub(crate) mod stores_repair;
pub(crate) mod stream;
pub(crate) mod stream_help;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod usage;
pub(crate) mod verify;
