//! The arguments of `fec rekey`.

use super::seal::Open;
use super::stores::Limits;
use crate::line::examples;
use crate::line::values::root;

use clap::{ArgGroup, Args};
use fec_core::digest::Digest;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::REKEY, override_usage = "fec rekey [OPTIONS] --root <HEX|@FILE> --from <URL>")]
#[command(group = ArgGroup::new("recipients").args(["recipient", "recipients_file"]).multiple(true).required(true))]
#[command(group = ArgGroup::new("keys").args(["identity", "passphrase"]).multiple(true).required(true))]
pub(crate) struct Rekey {
    /// The sealed payload with this root: 64 hexadecimal digits, or @FILE. It gets a new root
    #[arg(long, value_name = "HEX|@FILE", value_parser = root, required = true)]
    pub(crate) root: Option<Digest>,
    /// Find its manifest there, and put the new one there: s3://BUCKET/PREFIX, gs://, az://, file:///PATH or a folder,
    /// as `encode --to` takes them; or @FILE with a line for each. May be given several times
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) from: Vec<String>,
    /// Seal it for the holder of this key: age1…, age1pq1… (post-quantum) or `ssh-ed25519 …`; may be given
    /// several times. Name all who may open it from now on: those of before do not count
    #[arg(long, value_name = "KEY")]
    pub(crate) recipient: Vec<String>,
    /// The same for all keys that are listed in this file, a line each
    #[arg(short = 'R', long, value_name = "FILE")]
    pub(crate) recipients_file: Vec<PathBuf>,
    /// Write the new root to this file, too
    #[arg(long, value_name = "FILE")]
    pub(crate) root_file: Option<PathBuf>,
    /// Replace the file of --root-file
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: Open,
    #[command(flatten)]
    pub(crate) limits: Limits,
}
