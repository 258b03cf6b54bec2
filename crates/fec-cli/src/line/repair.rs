//! The arguments of `fec repair`.

use super::seal;
use super::sign;
use super::stores;
use crate::line::examples;
use crate::line::values::{owner, root};

use clap::Args;
use fec_core::digest::Digest;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::REPAIR)]
pub(crate) struct Repair {
    /// Shard files, containers, sidecars, or folders of them. A file or folder with a sidecar beside it stands for
    /// that; behind one sidecar stand files and folders that it protects, to be mended alone
    #[arg(required_unless_present = "from", value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Write what is made anew here, and change nothing that is there: a folder for shard files and for all files that
    /// a sidecar protects, a file for a container [default: what is damaged is mended where it is]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Repair the encoding with this root only: 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// The folder that the names in a sidecar are relative to [default: the sidecar's own]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// With a sidecar: also undo edits, and restore moved files under their old names. This writes over what is there
    /// now: keep it with --undo FILE, or write to a folder with -o
    #[arg(long)]
    pub(crate) revert: bool,
    /// With a sidecar: mend what can be mended, even if not everything can
    #[arg(long)]
    pub(crate) partial: bool,
    /// With a sidecar: first keep the files that are written over in this tar archive, as they are
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "dry_run"])]
    pub(crate) undo: Option<PathBuf>,
    /// With a sidecar, as root: the user, and the group, that files which are made anew get, as numbers or names
    /// [default: those of the folder around them]
    #[arg(long, value_name = "USER[:GROUP]", value_parser = owner)]
    pub(crate) owner: Option<(u32, Option<u32>)>,
    /// Only tell what would be mended or made anew
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// With shard files: replace other files that have the names of missing ones
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) trusted: sign::Trusted,
    #[command(flatten)]
    pub(crate) open: seal::Open,
    /// With --from: the places where shards may stand from now on, as `encode --to` takes them; those at other places
    /// count as lost [default: those of --from that can be written to]
    #[arg(long, value_name = "URL[,domain=D]")]
    pub(crate) to: Vec<String>,
    /// With --from: make all anew that is lost, not only where more than half of what may be lost is
    #[arg(long)]
    pub(crate) now: bool,
    /// With --from: look at every byte, not only at sizes and first bytes
    #[arg(long)]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) from: stores::FromAnybody,
    #[command(flatten)]
    pub(crate) network: stores::Network,
}
