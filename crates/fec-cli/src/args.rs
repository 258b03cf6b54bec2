//! The command line as clap sees it. Help, completions and the manual page come from here.

use crate::examples;
use crate::link::args::Link;
use crate::progress::Mode;
use crate::seal;
use crate::sign;
use crate::stores;
use crate::stream;
use crate::stream::args::Kind;
use crate::units::{duration, size};

use clap::{Args, Parser, Subcommand, ValueEnum};
use fec_core::digest::{Digest, HashKind};
use fecfile::live::loss::Loss;
use fecfile::range::PayloadRange;
use fecfile::roots::parse_root;
use fecfile::sidecar::protect::Redundancy;
use fecfile::sign::Signer;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Protects files and pipes against loss, corruption and tampering.
///
/// A payload becomes k original and m recovery shards; any k intact ones restore it, and a 32-byte
/// root names exactly this encoding of exactly these bytes.
#[derive(Debug, Parser)]
#[command(name = "fec", bin_name = "fec", version, max_term_width = 80, after_help = examples::FEC)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Print errors only; verify tells of damage in one line
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Tell what is being done; twice: in detail
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Use this many threads [default: as many as the machine has]
    #[arg(short = 'j', long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Show progress on standard error: a bar if it is a terminal, JSON lines, or never
    #[arg(long, global = true, value_enum, default_value_t = Mode::Auto, value_name = "WHEN")]
    pub(crate) progress: Mode,
    /// Print one JSON object at the end instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Tell on standard error where the time goes, stage by stage, and what holds the work back
    #[arg(long = "where", global = true)]
    pub(crate) locate: bool,
    /// Use this kernel; an error if this machine does not have it; `list` lists those that it has [default: the fastest it has]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// Settings of the kernel: a processor's name, NAME=VALUE, or several with commas between; `list` lists them. They
    /// change how fast it is and nothing else [default: those for this processor]
    #[arg(long, global = true, value_name = "LIST")]
    pub(crate) tuning: Option<String>,
    /// Read files with ordinary reads instead of mapping them
    #[arg(long, global = true)]
    pub(crate) no_mmap: bool,
    /// Do not wait until outputs are on the disk
    #[arg(long, global = true)]
    pub(crate) no_sync: bool,
    /// Most bytes for the buffers of sets, groups and windows; larger ones are refused [default: 96MiB,
    /// 48MiB for a container's group, and 64MiB for the window of a live stream]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    pub(crate) max_memory: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Protect a file or a pipe: write shard files or a container, print the root; or send a live stream
    Encode(Encode),
    /// Restore the payload from shard files, a container or a live stream
    Decode(Decode),
    /// Check shard files, containers, or a sidecar and what it protects: what is intact, damaged or missing
    Verify(Verify),
    /// Mend what a sidecar protects; or make damaged and missing shard files, or a container, anew, bit for bit
    Repair(Repair),
    /// Protect files and folders where they are: one sidecar beside them finds what changed, and mends it
    Protect(Protect),
    /// List the digests that a sidecar keeps, as b3sum and sha256sum check them
    Manifest(Manifest),
    /// Make a new key
    Keygen(Keygen),
    /// Measure this machine: what it can do, what holds it back, and whether it became slower
    Bench(Bench),
    /// Print a completion script for a shell
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff) of fec, or of one of its commands
    #[command(after_help = examples::MAN)]
    Man {
        /// encode, decode, …
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

impl Command {
    /// Whether standard output may carry a payload, so that nothing else may be printed there.
    pub(crate) fn stdout_is_data(&self) -> bool {
        let is_stdout = |path: &PathBuf| path.as_os_str() == "-";
        match self {
            Command::Encode(args) if !args.stores.to.is_empty() || args.files_from.is_some() => false,
            Command::Decode(args) if !args.stores.from.is_empty() => {
                args.output.as_ref().is_some_and(is_stdout)
            }
            Command::Encode(args) => {
                let is_pipe =
                    || args.live.stream || args.input().as_os_str() == "-" || !args.input().is_file();
                args.outputs.first().map_or_else(is_pipe, is_stdout)
            }
            Command::Decode(args) => {
                let is_pipe = |path: &PathBuf| is_stdout(path) || !(path.is_file() || path.is_dir());
                let reads_pipe = || args.inputs.iter().any(is_pipe);
                args.output.as_ref().map_or_else(reads_pipe, is_stdout)
            }
            Command::Manifest(_) => true,
            _ => false,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = examples::ENCODE)]
pub(crate) struct Encode {
    /// The files to protect, one after the other; `-` is standard input [default: standard input]
    #[arg(value_name = "FILE", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Encode each of the files that are listed in this file, a line each; `-` is standard input. One that fails does not stop
    /// the others; the exit code is that of the gravest failure. Of -o, {} is the path of each, and {/} its last component
    #[arg(long, value_name = "LIST", conflicts_with_all = ["inputs", "stream", "to", "root_file"])]
    pub(crate) files_from: Option<PathBuf>,
    /// With --files-from: paths end with zero bytes, not with lines
    #[arg(short = '0', long)]
    pub(crate) null: bool,
    /// Where to: a folder (ends in `/`, or is one) gets shard files, a file a container, `-` is
    /// standard output; with --stream also udp://HOST:PORT, several of them for several ways at the same time (default:
    /// FILE.shards/ for a file, or with `> NEW` a container there; standard output for standard input)
    #[arg(short, long = "output", value_name = "PATH")]
    pub(crate) outputs: Vec<PathBuf>,
    /// Original shards of a set (k): any k of the k + m shards restore the payload
    #[arg(short = 'k', long = "data", value_name = "K", default_value_t = 33)]
    pub(crate) data: u16,
    /// Recovery shards of a set (m): so many shards may be lost
    #[arg(short = 'm', long = "recovery", value_name = "M", default_value_t = 67)]
    pub(crate) recovery: u16,
    /// Recovery data in per cent of the payload, as 100 shards: 17% is 85 + 15, 200% is 33 + 67. A container mends one gap of
    /// almost so much, and less of scattered damage: encode says how much
    #[arg(short = 'r', long, value_name = "P%", value_parser = redundancy, conflicts_with_all = ["data", "recovery"])]
    pub(crate) redundancy: Option<(u16, u16)>,
    /// Payload bytes of a set [default: at most 4MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) set_size: Option<u64>,
    /// Sets of each group of a container [default: all of a file, 48MiB of a pipe]; fewer need less memory in pipes, and
    /// survive shorter gaps
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) group_size: Option<u32>,
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
    /// Print the root on standard output, also where that was redirected to a new file, which gets a container otherwise
    #[arg(long, conflicts_with_all = ["stream", "json"])]
    pub(crate) print_root: bool,
    /// If the output is there, is intact and is of this very input and these options, write nothing; if some of it is missing
    /// or damaged, make only that anew. Anything else that is there is an error, or replaced with -f
    #[arg(long, conflicts_with_all = ["stream", "to"])]
    pub(crate) keep: bool,
    /// Replace what exists
    #[arg(short, long)]
    pub(crate) force: bool,
    /// With --sign: write the signature to this file, not into the container or the shard files
    #[arg(
        long,
        value_name = "FILE",
        requires = "sign",
        conflicts_with = "files_from",
        help_heading = "Signatures"
    )]
    pub(crate) signature: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: sign::args::Secret,
    #[command(flatten)]
    pub(crate) seal: seal::args::Seal,
    #[command(flatten)]
    pub(crate) live: stream::args::Send,
    #[command(flatten)]
    pub(crate) stores: stores::args::Send,
    #[command(flatten)]
    pub(crate) network: stores::args::Network,
}

impl Encode {
    /// The file to protect, where it is one.
    pub(crate) fn input(&self) -> &Path {
        self.inputs.first().map_or(Path::new("-"), PathBuf::as_path)
    }
}

#[derive(Debug, Args)]
#[command(after_help = examples::DECODE)]
pub(crate) struct Decode {
    /// Shard files, folders of shard files, one container, or one live stream, from a file or udp://ADDRESS:PORT;
    /// `-` is standard input [default: standard input]
    #[arg(value_name = "PATH", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where to; a folder takes the recorded name, `-` is standard output (default: the recorded name
    /// in the current folder; for X.fec X; for standard input, and with `> NEW`, standard output)
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
    #[arg(long)]
    pub(crate) early: bool,
    /// Also check that every set is one codeword, its recovery shards too, and the recorded digests of the payload
    #[arg(long, conflicts_with = "early")]
    pub(crate) deep: bool,
    /// Replace an existing output
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) open: seal::args::Open,
    #[command(flatten)]
    pub(crate) trusted: sign::args::Trusted,
    #[command(flatten)]
    pub(crate) live: stream::args::Receive,
    #[command(flatten)]
    pub(crate) stores: stores::args::From,
    #[command(flatten)]
    pub(crate) network: stores::args::Network,
}

#[derive(Debug, Args)]
#[command(after_help = examples::VERIFY)]
pub(crate) struct Verify {
    /// Shard files, containers, folders of either, or one sidecar; `-` is standard input [default: standard input]
    #[arg(value_name = "PATH", default_value = "-", hide_default_value = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// The folder that the names in a sidecar are relative to [default: the sidecar's own]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// Check against this root: 64 hexadecimal digits, or @FILE. Shard files that are named may then be few: what is checked
    /// is whether they are right
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// Check each line of this list, ROOT  PATH, as encode prints them for several files; `-` is standard input
    #[arg(long, value_name = "LIST", conflicts_with_all = ["inputs", "root", "from", "quick", "sidecar_only", "base", "state", "budget", "sample"])]
    pub(crate) roots: Option<PathBuf>,
    /// Ask whether so many intact shards are there of every set, and nothing else: exit code 0, or 3 if there are fewer
    #[arg(long, value_name = "N", conflicts_with = "from", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) need: Option<u32>,
    /// How the report is printed
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = VerifyFormat::Text, conflicts_with = "from")]
    pub(crate) format: VerifyFormat,
    /// Also decode every set and check that it is one codeword
    #[arg(long)]
    pub(crate) deep: bool,
    /// With a sidecar: only see whether files are there, with their sizes and times
    #[arg(long, conflicts_with_all = ["deep", "sidecar_only"])]
    pub(crate) quick: bool,
    /// With a sidecar: check the sidecar alone, and none of the files
    #[arg(long, conflicts_with = "deep")]
    pub(crate) sidecar_only: bool,
    /// With a sidecar: remember in this file when each file was checked, and begin with those whose last check is longest
    /// ago; the file is made when it is not there, and each sidecar needs its own
    #[arg(long, value_name = "FILE", conflicts_with_all = ["deep", "quick", "sidecar_only"])]
    pub(crate) state: Option<PathBuf>,
    /// With --state: leave out what was checked within this time: 30d, 12h
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "state")]
    pub(crate) older_than: Option<Duration>,
    /// With --state or --sample: begin nothing more after this time: 2h, 90min
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) budget: Option<Duration>,
    /// With a sidecar: check so much of all bytes, chosen at random
    #[arg(long, value_name = "P%", value_parser = sample, conflicts_with_all = ["deep", "quick", "sidecar_only", "state", "older_than"])]
    pub(crate) sample: Option<u32>,
    #[command(flatten)]
    pub(crate) trusted: sign::args::Trusted,
    #[command(flatten)]
    pub(crate) open: seal::args::Open,
    #[command(flatten)]
    pub(crate) stores: stores::args::From,
    #[command(flatten)]
    pub(crate) network: stores::args::Network,
}

/// How `fec verify` prints its report; --json comes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// Lines for people
    Text,
    /// A table in Markdown, for the summary of a job
    Markdown,
}

#[derive(Debug, Args)]
#[command(after_help = examples::PROTECT)]
pub(crate) struct Protect {
    /// Files and folders; they are only read
    #[arg(value_name = "PATH", required_unless_present = "files_from")]
    pub(crate) paths: Vec<PathBuf>,
    /// The sidecar [default: PATH.fecp, beside PATH]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Bring an existing sidecar up to date with the files and folders that it was made for: only what changed is coded.
    /// What has the size and time that it had is not read, so that damage is never mistaken for an edit
    #[arg(short, long)]
    pub(crate) update: bool,
    /// Recovery data in per cent of the files [default: 16%; with --update as before]
    #[arg(short = 'r', long, value_name = "P%", value_parser = sidecar_redundancy)]
    pub(crate) redundancy: Option<Redundancy>,
    /// The folder that names are relative to [default: that of the sidecar, if all PATHs lie in it]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// Leave out what matches this pattern, by its name or its path from the base; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Also protect the files and folders that are listed in this file, a line each or with zero bytes between; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) files_from: Option<PathBuf>,
    /// Leave out file systems that are mounted below PATH
    #[arg(long)]
    pub(crate) one_file_system: bool,
    /// Also record SHA-256 of each file, for `fec manifest --sha256`; reads the files once more
    #[arg(long)]
    pub(crate) sha256: bool,
    /// With --update: the root that the sidecar has now, 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root, requires = "update")]
    pub(crate) root: Option<Digest>,
    /// Replace an existing sidecar; with --update go on although many files are gone, or files have become empty
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) seal: seal::args::Seal,
    /// With --update: open a sealed sidecar with the identities in this file; it is sealed anew for the recipients that are named
    #[arg(
        short,
        long,
        value_name = "FILE",
        requires = "update",
        conflicts_with = "passphrase",
        help_heading = "Sealing"
    )]
    pub(crate) identity: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: sign::args::Secret,
    /// With --update: only if the sidecar as it is now is signed with this public key: RW… itself, or its .pub file. With
    /// --sign it is that of the same key, unless others are given
    #[arg(long, value_name = "PUB", value_parser = sign::args::signer, requires = "update", help_heading = "Signatures")]
    pub(crate) signer: Vec<Signer>,
    /// The file of the signature, which is read, and with --sign written [default: X.fecp.minisig]
    #[arg(long, value_name = "FILE", help_heading = "Signatures")]
    pub(crate) signature: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = examples::KEYGEN)]
pub(crate) struct Keygen {
    /// For live streams: the same key serves `encode --stream --key-file` and `decode --key-file` [default: an identity of age,
    /// whose recipient is printed]
    #[arg(long, conflicts_with = "sign")]
    pub(crate) stream: bool,
    /// An identity that stands up to quantum computers too (ML-KEM-768 and X25519)
    #[arg(long, conflicts_with_all = ["stream", "sign"])]
    pub(crate) pq: bool,
    /// To sign roots: a pair of minisign's keys, of which FILE is secret, for `encode --sign`, and FILE.pub is for everybody,
    /// for `decode --signer`. With a passphrase, from the terminal or the variable FEC_SIGN_PASSPHRASE, FILE is encrypted
    #[arg(long)]
    pub(crate) sign: bool,
    /// With --sign: read the passphrase from this file
    #[arg(long, value_name = "FILE", requires = "sign")]
    pub(crate) sign_passphrase_file: Option<PathBuf>,
    /// The key file, which its owner alone may read; it must not exist
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) output: PathBuf,
}

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
    pub(crate) open: seal::args::Open,
}

#[derive(Debug, Args)]
#[command(after_help = examples::REPAIR)]
pub(crate) struct Repair {
    /// Shard files, folders of shard files, one container, or one sidecar
    #[arg(required_unless_present = "from", value_name = "PATH")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Write what is made anew here, and change nothing that is there: a folder for shard files
    /// and for all files that a sidecar protects, a file for a container [default: what is damaged is mended where it is]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Repair the encoding with this root only: 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// The folder that the names in a sidecar are relative to [default: the sidecar's own]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// With a sidecar: also undo edits, and restore moved files under their old names. This writes over what is there now:
    /// keep it with --undo FILE, or write to a folder with -o
    #[arg(long)]
    pub(crate) revert: bool,
    /// With a sidecar: mend what can be mended, even if not everything can
    #[arg(long)]
    pub(crate) partial: bool,
    /// With a sidecar: first keep the files that are written over in this tar archive, as they are
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "dry_run"])]
    pub(crate) undo: Option<PathBuf>,
    /// Only tell what would be mended or made anew
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// With shard files: replace other files that have the names of missing ones
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) trusted: sign::args::Trusted,
    #[command(flatten)]
    pub(crate) open: seal::args::Open,
    /// With --from: the places where shards may stand from now on, as `encode --to` takes them; those at other places count as
    /// lost [default: those of --from that can be written to]
    #[arg(long, value_name = "URL[,domain=D]", requires = "from")]
    pub(crate) to: Vec<String>,
    /// With --from: make all anew that is lost, not only where more than half of what may be lost is
    #[arg(long, requires = "from")]
    pub(crate) now: bool,
    /// With --from: look at every byte, not only at sizes and first bytes
    #[arg(long, requires = "from")]
    pub(crate) deep: bool,
    #[command(flatten)]
    pub(crate) stores: stores::args::From,
    #[command(flatten)]
    pub(crate) network: stores::args::Network,
}

/// What `fec bench` measures.
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
    /// Finish within ten seconds
    #[arg(long)]
    pub(crate) quick: bool,
    /// Fail, with exit code 2, unless this kernel is the one in use
    #[arg(long, value_name = "NAME")]
    pub(crate) require_backend: Option<String>,
    /// The caches to model: cortex-a53, cortex-a55, cortex-a72, cortex-a76, host, or L1,WAYS,L2,WAYS as in
    /// 32K,4,512K,16
    #[arg(long, value_name = "CACHES", default_value = "host")]
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
    /// Also write the result to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Compare with a result that was saved before
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// With --compare: end with exit code 1 if anything became slower by more than P per cent, beyond the noise. Where the machine
    /// was too busy to tell, the report says that it is inconclusive, and the exit code is 0
    #[arg(long, value_name = "P%", value_parser = per_cent, requires = "compare")]
    pub(crate) gate: Option<f64>,
    /// Do not measure: check products, round trips, another codec's shards and published vectors, and print counts;
    /// of `seal`: the ciphers against published vectors and another implementation, and age files
    #[arg(long, conflicts_with_all = ["save", "compare", "require_backend"])]
    pub(crate) gates: bool,
}

/// What is measured with options of its own.
#[derive(Debug, Subcommand)]
pub(crate) enum OtherBench {
    /// Test the link to another machine: what arrives of what is sent, how late, and what recovery makes of it
    Link(Link),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hash {
    /// BLAKE3: the fastest
    Blake3,
    /// SHA-256: what the rest of the world has
    Sha256,
}

impl From<Hash> for HashKind {
    fn from(hash: Hash) -> HashKind {
        match hash {
            Hash::Blake3 => HashKind::Blake3,
            Hash::Sha256 => HashKind::Sha256,
        }
    }
}

/// `5%` is 0.05.
fn per_cent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("write per cent, as in 5%")?;
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1000.0).contains(&number) => Ok(number / 100.0),
        _ => Err("per cent is a number like 5% or 2.5%, from 0 to 1000".into()),
    }
}

/// n = 100 and k = floor(100 / (1 + P)): at least P, in exact arithmetic.
fn redundancy(text: &str) -> Result<(u16, u16), String> {
    let number = text.strip_suffix('%').ok_or("write per cent, as in 17%")?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits || whole.len() > 6 || fraction.len() > 6 {
        return Err("per cent is a number like 17% or 12.5%".into());
    }
    // P = numerator / denominator.
    let digits: u64 = format!("{whole}{fraction}").parse().map_err(|_| "not a number".to_owned())?;
    let denominator = 100 * 10u64.pow(fraction.len() as u32);
    let k = 100 * denominator / (denominator + digits);
    if k == 0 {
        return Err("more than 9900% leaves no original shard among 100; use -k and -m".into());
    }
    Ok((k as u16, (100 - k) as u16))
}

/// Per cent as in `16%` or `12.5%`, of what a sidecar protects.
fn sidecar_redundancy(text: &str) -> Result<Redundancy, String> {
    let wrong = "write per cent between 0.01% and 12700%, as in 16%";
    hundredths(text, wrong).and_then(|parts| Redundancy::new(parts).ok_or_else(|| wrong.to_owned()))
}

/// Per cent of all bytes, in parts of 10,000.
fn sample(text: &str) -> Result<u32, String> {
    let wrong = "write per cent between 0.01% and 100%, as in 5%";
    let parts = hundredths(text, wrong)?;
    if (1..=10_000).contains(&parts) { Ok(parts) } else { Err(wrong.to_owned()) }
}

/// Hundredths of a per cent.
fn hundredths(text: &str, wrong: &str) -> Result<u32, String> {
    let wrong = || wrong.to_owned();
    let number = text.strip_suffix('%').ok_or_else(|| format!("write it with %, as in {text}%"))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 2 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let fraction: u32 = format!("{fraction:0<2}").parse().map_err(|_| wrong())?;
    whole.checked_mul(100).map(|parts| parts + fraction).ok_or_else(wrong)
}

/// 64 hexadecimal digits, or the first line of a file.
fn root(text: &str) -> Result<Digest, String> {
    let line = match text.strip_prefix('@') {
        None => text.to_owned(),
        Some(path) => {
            use std::io::Read;
            let mut content = Vec::new();
            let file = std::fs::File::open(path).map_err(|e| format!("read {path}: {e}"))?;
            file.take(4096).read_to_end(&mut content).map_err(|e| format!("read {path}: {e}"))?;
            String::from_utf8_lossy(&content).split_whitespace().next().unwrap_or("").to_owned()
        }
    };
    parse_root(line.as_bytes()).ok_or_else(|| match text {
        file if Path::new(file).is_file() => format!("a root in a file is written --root @{file}"),
        _ => "a root is 64 hexadecimal digits, or @FILE with them".to_owned(),
    })
}

/// `A..B`, `A..+N`, `A..` or `..B`, each number with K, M, G or none.
fn payload_range(text: &str) -> Result<PayloadRange, String> {
    let wrong = || "write A..B, A..+N, A.. or ..B, as in 4K..8K".to_owned();
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| if text == "0" { Ok(0) } else { size(text) };
    let start = if start.is_empty() { 0 } else { number(start)? };
    let end = match (end.strip_prefix('+'), end) {
        (_, "") => None,
        (Some(count), _) => Some(start.checked_add(number(count)?).ok_or_else(wrong)?),
        (None, end) => Some(number(end)?),
    };
    if end.is_some_and(|end| end < start) {
        return Err("it ends before it begins".to_owned());
    }
    Ok(PayloadRange { start, end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn redundancy_is_at_least_what_was_asked_for() {
        let expected = [("17%", 85), ("200%", 33), ("0%", 100), ("12.5%", 88), ("100%", 50), ("9900%", 1)];
        for (text, k) in expected {
            assert_eq!(redundancy(text), Ok((k, 100 - k)), "{text}");
        }
        for bad in ["17", "%", "-1%", "1e3%", "9901%", "nan%", "1.2.3%"] {
            assert!(redundancy(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        assert_eq!(size("4M"), Ok(4 << 20));
        assert_eq!(size("64KiB"), Ok(64 << 10));
        assert_eq!((size("3MiB"), size("3MB"), size("3 kB")), (Ok(3 << 20), Ok(3_000_000), Ok(3000)));
        assert_eq!(size("1"), Ok(1));
        for bad in ["", "M", "4X", "0", "-1", "99999999999G", "1.5M"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn roots_have_64_digits() {
        assert!(root(&"ab".repeat(32)).is_ok());
        for bad in ["", "ab", &"ab".repeat(33), &"xy".repeat(32), "@/does/not/exist"] {
            assert!(root(bad).is_err(), "{bad}");
        }
    }
}
