//! The arguments of `fec decode`.

use super::seal;
use super::sign;
use super::stores;
use super::stream;
use crate::line::examples;
use crate::line::values::{payload_range, root};

use clap::Args;
use fec_core::digest::Digest;
use fecfile::PayloadRange;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::DECODE)]
pub(crate) struct Decode {
    /// Shard files, folders of shard files, one container, or one live stream, from a file or udp://ADDRESS:PORT;
    /// `-` is standard input [default: standard input]
    #[arg(value_name = "PATH", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where to; a folder takes the recorded name, `-` is standard output (default: the recorded name
    /// in the current folder; for X.fec X; for standard input, standard output)
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Accept this root only: 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// Write what is proved, and zeros for what is lost; still exit code 3
    #[arg(long)]
    pub(crate) partial: bool,
    /// Only these bytes of the payload, counted from 0: 4K..8K, 1G..+64M, 1G.. or ..1M
    #[arg(long, value_name = "A..B", value_parser = payload_range, conflicts_with_all = ["partial", "early", "deep"])]
    pub(crate) range: Option<PayloadRange>,
    /// With --root and a pipe: write each group as it is proved, before the root is
    #[arg(long, requires = "root", conflicts_with = "partial")]
    pub(crate) early: bool,
    /// Also check that every set is one codeword, its recovery shards too, and the recorded digests of the payload
    #[arg(long, conflicts_with = "early")]
    pub(crate) deep: bool,
    /// Replace an existing output
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: seal::Open,
    #[command(flatten)]
    pub(crate) trusted: sign::Trusted,
    #[command(flatten)]
    pub(crate) live: stream::Receive,
    #[command(flatten)]
    pub(crate) stores: stores::From,
    #[command(flatten)]
    pub(crate) network: stores::Network,
}
