//! The commands on stores, in builds without stores: each one is refused.

use crate::line::{Decode, Encode, Forget, List, Rekey, Repair, Verify};
use crate::say::failure::{Exit, Failure, Result};
use crate::say::mirrors::Fetched;
use crate::settings::Settings;
use fec_base::context::Context;
use fec_sidecar::mirrors::Mirror;
use fecfile::Archive;
use fecfile::payload::{Options, Source};
use std::path::PathBuf;
use std::time::Instant;

pub(crate) fn send(
    _: Source<'_>,
    _: (&[u8], u32),
    _: &Options,
    _: &Encode,
    _: &Settings,
    _: Instant,
) -> Result<Exit> {
    Err(absent("encode --to"))
}

pub(crate) fn decode(_: &Decode, _: &Settings) -> Result<Exit> {
    Err(absent("decode --from"))
}

pub(crate) fn verify(_: &Verify, _: &Settings) -> Result<Exit> {
    Err(absent("verify --from"))
}

pub(crate) fn audit(_: &Verify, _: &Settings) -> Result<Exit> {
    Err(absent("verify --from"))
}

pub(crate) fn repair(_: &Repair, _: &Settings) -> Result<Exit> {
    Err(absent("repair --from"))
}

pub(crate) fn mirrors(_: &Repair, _: u64, _: &Settings) -> Result<Vec<Box<dyn Mirror>>> {
    Err(absent("repair --from"))
}

/// Files that came from copies: none.
pub(crate) struct Completed {
    pub(crate) fetched: Fetched,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) aside: Option<PathBuf>,
}

impl Completed {
    pub(crate) fn end(&self) {}
}

pub(crate) fn complete(_: &Archive, _: &Repair, _: (&Settings, &Context<'_>)) -> Result<Completed> {
    Err(absent("repair --from"))
}

pub(crate) fn list(_: &List, _: &Settings) -> Result<Exit> {
    Err(absent("list"))
}

pub(crate) fn forget(_: &Forget, _: &Settings) -> Result<Exit> {
    Err(absent("forget"))
}

pub(crate) fn rekey(_: &Rekey, _: &Settings) -> Result<Exit> {
    Err(absent("rekey"))
}

fn absent(what: &str) -> Failure {
    Failure::usage(format!("{what}: this build of fec has no stores"))
        .help("use one with the feature `stores`, which cargo switches on by default")
}
