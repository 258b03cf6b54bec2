//! The arguments of `fec manifest`.

use super::seal;
use crate::line::examples;
use crate::line::values::root;

use clap::Args;
use fec_core::digest::Digest;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::MANIFEST)]
pub(crate) struct Manifest {
    /// The sidecar
    #[arg(value_name = "FILE")]
    pub(crate) sidecar: PathBuf,
    /// SHA-256, for `sha256sum --check` in the base folder
    #[arg(long, conflicts_with = "b3")]
    pub(crate) sha256: bool,
    /// BLAKE3, for `b3sum --check` in the base folder; this is the default
    #[arg(long)]
    pub(crate) b3: bool,
    /// Accept this root only: 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    #[command(flatten)]
    pub(crate) open: seal::Open,
}
