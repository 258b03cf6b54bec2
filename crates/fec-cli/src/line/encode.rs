//! The arguments of `fec encode`.

use super::seal;
use super::sign;
use super::stores;
use super::stream;
use crate::line::examples;
use crate::line::values::{Hash, redundancy, sets, shards};
use crate::units::size;

use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = examples::ENCODE)]
pub(crate) struct Encode {
    /// The files to protect, one after the other; `-` is standard input [default: standard input]
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Encode each of the files that are listed in this file, a line each; `-` is standard input. One that fails does
    /// not stop the others; the exit code is that of the gravest failure. Of -o, {} is the path of each, and {/} its
    /// last component
    #[arg(long, value_name = "LIST", conflicts_with = "inputs")]
    pub(crate) files_from: Option<PathBuf>,
    /// With --files-from: paths end with zero bytes, not with lines
    #[arg(short = '0', long, requires = "files_from")]
    pub(crate) null: bool,
    /// Where to: a folder (ends in `/`, or is one) gets shard files, a file a container, `-` is
    /// standard output; with --stream also udp://HOST:PORT, several of them for several ways at the same time (default:
    /// FILE.shards/ for a file, whatever standard output is; standard output for standard input)
    #[arg(short, long = "output", value_name = "PATH")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Original shards of a set (k): any k of the k + m shards restore the payload
    #[arg(short = 'k', long = "data", value_name = "K", value_parser = shards, default_value_t = 33)]
    pub(crate) data: u16,
    /// Recovery shards of a set (m): so many shards may be lost
    #[arg(short = 'm', long = "recovery", value_name = "M", value_parser = shards, default_value_t = 67)]
    pub(crate) recovery: u16,
    /// Recovery data in per cent of the payload, as 100 shards: 17% is 85 + 15, 200% is 33 + 67. A container mends one
    /// gap of almost so much, and less of scattered damage: encode says how much
    #[arg(short = 'r', long, value_name = "P%", value_parser = redundancy, conflicts_with_all = ["data", "recovery"])]
    pub(crate) redundancy: Option<(u16, u16)>,
    /// Payload bytes of a set [default: at most 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) set_size: Option<u64>,
    /// Sets of each group of a container [default: all of a file; of a pipe as many as make 48MiB]; fewer need less
    /// memory in pipes, and survive shorter gaps
    #[arg(long, value_name = "SETS", value_parser = sets)]
    pub(crate) group_size: Option<u32>,
    /// Put outlines behind shard files, about 0.2 % more bytes: a few bytes are proved then by the 16 KiB around them,
    /// not by a whole record. Stores get them without this option
    #[arg(long)]
    pub(crate) outlines: bool,
    /// Record these digests of the payload, which the root then binds; reads the file once more
    #[arg(long, value_enum, value_name = "HASH,…", num_args = 0..=2, require_equals = true, value_delimiter = ',',
        default_missing_value = "sha256,blake3")]
    pub(crate) payload_digest: Vec<Hash>,
    /// Hash function of digests and roots
    #[arg(long, value_enum, default_value_t = Hash::Blake3)]
    pub(crate) hash: Hash,
    /// Also write the root to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) root_file: Option<PathBuf>,
    /// If the output is there, is intact and is of this very input and these options, write nothing; if some of it is
    /// missing or damaged, make only that anew. Anything else that is there is an error, or replaced with -f
    #[arg(long)]
    pub(crate) keep: bool,
    /// Replace what exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// With --sign: write the signature to this file, not into the container or the shard files
    #[arg(long, value_name = "FILE", requires = "sign", help_heading = "Signatures")]
    pub(crate) signature: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: sign::Secret,
    #[command(flatten)]
    pub(crate) seal: seal::Seal,
    #[command(flatten)]
    pub(crate) live: stream::Send,
    #[command(flatten)]
    pub(crate) stores: stores::Send,
    #[command(flatten)]
    pub(crate) network: stores::Network,
}

impl Encode {
    /// The first file to protect, or `-`.
    pub(crate) fn input(&self) -> &Path {
        self.inputs.first().map_or(Path::new("-"), PathBuf::as_path)
    }
}
