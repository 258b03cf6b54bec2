//! The arguments of `fec verify`.

use super::seal;
use super::sign;
use super::stores;
use crate::line::examples;
use crate::line::values::{root, sample, share};
use crate::units::{duration, size};

use clap::{Args, ValueEnum};
use fec_core::digest::Digest;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
#[command(after_help = examples::VERIFY)]
pub(crate) struct Verify {
    /// Shard files, containers, sidecars, or folders of them. A file or folder with a sidecar beside it stands for
    /// that; behind one sidecar stand files and folders that it protects, to be checked alone. `-` is standard input
    /// [default: standard input]
    #[arg(value_name = "PATH", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The folder that the names in a sidecar are relative to [default: the sidecar's own]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// Check against this root: 64 hexadecimal digits, or @FILE. Shard files that are named may then be few: what is
    /// checked is whether they are right
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// Check each line of this list, ROOT  PATH, as encode prints them for several files; `-` is standard input
    #[arg(long, value_name = "LIST", conflicts_with = "inputs")]
    pub(crate) roots: Option<PathBuf>,
    /// Ask whether so many intact shards are there of every set, and nothing else: exit code 0, or 3 if there are fewer
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "deep",
        value_parser = clap::value_parser!(u32).range(1..=256),
    )]
    pub(crate) need: Option<u32>,
    /// How the report is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = VerifyFormat::Text)]
    pub(crate) format: VerifyFormat,
    /// Also decode every set and check that it is one codeword. Of a sidecar: whether its recovery data is that of the
    /// files, which reads them twice, in the memory of --max-memory and 32 bytes for each block of files that are
    /// damaged
    #[arg(long)]
    pub(crate) deep: bool,
    /// With a sidecar: only see whether files are there, with their sizes and times
    #[arg(long, conflicts_with_all = ["deep", "sidecar_only"])]
    pub(crate) quick: bool,
    /// With a sidecar: check the sidecar alone, and none of the files
    #[arg(long, conflicts_with = "deep")]
    pub(crate) sidecar_only: bool,
    /// With a sidecar: remember in this file when each file was checked, and begin with those whose last check is
    /// longest ago; with --audit: when each place was audited. The file is made when it is not there, and each sidecar
    /// and root needs its own
    #[arg(long, value_name = "FILE", group = "remembered", conflicts_with_all = ["deep", "quick", "sidecar_only"])]
    pub(crate) state: Option<PathBuf>,
    /// With --state: leave out what was checked within this time: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "remembered")]
    pub(crate) older_than: Option<Duration>,
    /// With --state or --sample: begin nothing more after this time: 2h, 90min
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) budget: Option<Duration>,
    /// With a sidecar: check so much of all bytes, chosen at random
    #[arg(
        long,
        value_name = "P%",
        value_parser = sample,
        conflicts_with_all = ["deep", "quick", "sidecar_only", "state", "older_than"],
    )]
    pub(crate) sample: Option<u32>,
    /// With --from: look at some bytes of each place, chosen at random and proved, and say how much of it can be lost
    /// at most
    #[arg(long, requires = "from", conflicts_with = "deep")]
    pub(crate) audit: bool,
    /// With --audit: find a place out that has lost more than --rot with this probability
    #[arg(long, value_name = "P%", value_parser = share, default_value = "99%")]
    pub(crate) confidence: f64,
    /// With --audit: the share of the bytes of a place
    #[arg(long, value_name = "P%", value_parser = share, default_value = "1%")]
    pub(crate) rot: f64,
    /// With --audit: look at no more than so many bytes of all places together, even if less is shown then
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) budget_bytes: Option<u64>,
    /// With --audit: look at the same bytes as an earlier audit, which named this number
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// With a sidecar: say and count nothing of this, several with commas between. With edited,moved,new exit code 1
    /// means damage, or what no time tells from damage
    #[arg(long, value_enum, value_name = "KIND", value_delimiter = ',')]
    pub(crate) ignore: Vec<Ignore>,
    #[command(flatten)]
    pub(crate) trusted: sign::Trusted,
    #[command(flatten)]
    pub(crate) open: seal::Open,
    #[command(flatten)]
    pub(crate) stores: stores::From,
    #[command(flatten)]
    pub(crate) network: stores::Network,
}

/// How `fec verify` prints its report; --json comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// Lines for people
    Text,
    /// A table in Markdown, for the summary of a job
    Markdown,
}

/// Findings that a nightly run may leave unsaid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ignore {
    /// Files that somebody edited, and whose times tell so
    Edited,
    /// Files that somebody wrote to, and whose times were put back
    Changed,
    /// Files under other names
    Moved,
    /// Files that are gone, as the policy allows
    Gone,
    /// Files that are not protected
    New,
}
