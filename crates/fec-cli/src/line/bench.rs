//! The arguments of `fec bench`.

use crate::line::examples;
use crate::line::link::Link;
use crate::line::stream::Kind;
use crate::line::values::{Hash, per_cent, words};
use crate::units::size;

use clap::{Args, Subcommand, ValueEnum};
use fec_live::loss::Loss;
use std::path::PathBuf;

/// The measurements of `fec bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// One set through encode, digests and tree, and back: phase by phase, for hashes and thread counts
    Reference,
    /// Every backend: products, matrices, transforms and packet additions, in each cache and in memory
    Kernels,
    /// Many short sets one by one and in batches, with one plan and with a plan for each
    Batch,
    /// A sweep over k, m and the length of shards
    Sets,
    /// Hash trees node by node and level by level, and whole sets of short shards
    Tree,
    /// Real files through encode, verify and decode: read, code, hash, write, sync
    Files,
    /// What the machine can do at best: memory by cache level, hashes, writing to the page cache
    Roof,
    /// The cache model alone, beside a fixed number of rounds that an outside simulator can count
    Model,
    /// Whether the settings of this processor are within 5 % of the best: each other setting against them, in turn
    Tuning,
    /// The sliding-window packet code over windows and blocks: packet additions of a row, and speed
    Window,
    /// Live streams through lossy lines: encode, decode, what is rebuilt, beside an ideal code; and the transport alone
    Stream,
    /// Sealing: the ciphers on chunks, beside OpenSSL, and what each recipient costs
    Seal,
    /// Key encapsulation with ML-KEM-768: one key a call and several, on one thread and on all
    Kem,
}

/// How `fec bench` prints its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for a terminal
    Table,
    /// One JSON object
    Json,
    /// Comma-separated values, one block for each table
    Csv,
    /// Markdown
    Markdown,
    /// A row for docs/boards.md, of `reference`
    Board,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, after_help = examples::BENCH)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) other: Option<OtherBench>,
    /// What to measure
    #[arg(value_enum, default_value_t = Preset::Reference, value_name = "PRESET")]
    pub(crate) preset: Preset,
    /// How to print the result; --json is the same as --format json
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub(crate) format: Format,
    /// Hash function of digests and roots [default: both, one after the other]
    #[arg(long, value_enum)]
    pub(crate) hash: Option<Hash>,
    /// Original shards of the set
    #[arg(short = 'k', long = "data", value_name = "K", default_value_t = 33)]
    pub(crate) data: u16,
    /// Recovery shards of the set
    #[arg(short = 'm', long = "recovery", value_name = "M", default_value_t = 67)]
    pub(crate) recovery: u16,
    /// Payload bytes of the set; of `files`: of the file
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) set_size: Option<u64>,
    /// Take so many slices of each figure at most; of `model`: run so many rounds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rounds: Option<u32>,
    /// Finish within about this many seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400), conflicts_with = "quick")]
    pub(crate) budget: Option<u32>,
    /// Finish within ten seconds: `kernels`, `tuning` and `files` take a part of their figures
    #[arg(long)]
    pub(crate) quick: bool,
    /// Fail, with exit code 2, unless this kernel is the one in use
    #[arg(long, value_name = "NAME", value_parser = words)]
    pub(crate) require_backend: Option<String>,
    /// The caches to model: cortex-a53, cortex-a55, cortex-a72, cortex-a76, host, or L1,WAYS,L2,WAYS as in
    /// 32K,4,512K,16
    #[arg(long, value_name = "CACHES", default_value = "host", value_parser = words)]
    pub(crate) model: String,
    /// Of `model`: a live stream with this profile, in place of a set
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub(crate) profile: Option<Kind>,
    /// Where `files` puts its files, in a temporary folder [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
    /// What `stream` loses on the way: random:P, ge:P,L (loss P in bursts of L packets), burst:N, burst:N,START or
    /// trace:FILE; may be given several times [default: random:0.1, ge:0.05,50 and burst:300]
    #[arg(long, value_name = "MODEL", value_parser = str::parse::<Loss>)]
    pub(crate) loss: Vec<Loss>,
    /// Also write the result to this file, as JSON; of `tuning`, without a file: keep the fastest settings for this
    /// user, so that all commands use them
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "not given; given without a file; with one")]
    pub(crate) save: Option<Option<PathBuf>>,
    /// Compare with a result that was saved before
    #[arg(long, value_name = "FILE", group = "comparison")]
    pub(crate) compare: Option<PathBuf>,
    /// With --compare: end with exit code 1 if anything became slower by more than P per cent, beyond the noise. Where
    /// the machine was too busy to tell, the report says that it is inconclusive, and the exit code is 0
    #[arg(long, value_name = "P%", value_parser = per_cent, requires = "comparison")]
    pub(crate) gate: Option<f64>,
    /// Do not measure: check products, round trips, another codec's shards and published vectors, and print counts;
    /// of `seal`: the ciphers against published vectors and another implementation, and age files
    #[arg(long)]
    pub(crate) gates: bool,
}

/// The measurements with options of their own.
#[derive(Debug, Subcommand)]
pub(crate) enum OtherBench {
    /// Test the link to another machine: what arrives of what is sent, how late, and what recovery makes of it
    Link(Link),
}
