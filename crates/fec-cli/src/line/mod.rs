//! The command line as clap sees it: the options of all commands, a file for the arguments of each command, and one for
//! the options of stores, streams, sealing, signatures and the link. Help, completions and the manual page come from
//! here.

mod attest;
mod bench;
mod decode;
mod encode;
pub(crate) mod examples;
mod forget;
mod keygen;
pub(crate) mod link;
mod list;
mod manifest;
mod protect;
mod rekey;
mod repair;
pub(crate) mod seal;
pub(crate) mod short;
pub(crate) mod sign;
pub(crate) mod stores;
pub(crate) mod stream;
mod values;
mod verify;

use crate::line::values::words;
pub(crate) use attest::Attest;
pub(crate) use bench::{Bench, Format, OtherBench, Preset};
pub(crate) use decode::Decode;
pub(crate) use encode::Encode;
pub(crate) use forget::Forget;
pub(crate) use keygen::Keygen;
pub(crate) use list::List;
pub(crate) use manifest::Manifest;
pub(crate) use protect::Protect;
pub(crate) use rekey::Rekey;
pub(crate) use repair::Repair;
pub(crate) use values::Hash;
pub(crate) use verify::{Ignore, Verify, VerifyFormat};

use crate::system::progress::Mode;
use crate::units::size;

use clap::{Args, Parser, Subcommand};

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

/// The options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Print errors only; verify tells of damage in one line
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Tell what is being done; twice: in detail
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Compute on this many threads [default: as many as the machine has]; those that only wait, for disks, pipes and
    /// stores, do not count
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
    /// Use this kernel; an error if this machine does not have it; `list` lists those that it has [default: the fastest
    /// it has]
    #[arg(long, global = true, value_name = "NAME", value_parser = words)]
    pub(crate) backend: Option<String>,
    /// Settings of the kernel: a processor's name, NAME=VALUE, or several with commas between; `list` lists them. They
    /// change how fast it is and nothing else [default: those for this processor]
    #[arg(long, global = true, value_name = "LIST", value_parser = words)]
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
    #[command(visible_aliases = ["check", "info"])]
    Verify(Verify),
    /// Mend what a sidecar protects; or make damaged and missing shard files, or a container, anew, bit for bit
    Repair(Repair),
    /// Protect files and folders where they are: one sidecar beside them finds what changed, and mends it
    Protect(Protect),
    /// List the encodings that stores hold: their roots, names and sizes, and what is missing of them
    List(List),
    /// Remove an encoding from stores
    Forget(Forget),
    /// Give a sealed payload in stores to other recipients: only its manifest is sent
    Rekey(Rekey),
    /// List the digests that a sidecar keeps, as b3sum and sha256sum check them
    Manifest(Manifest),
    /// Make a statement about roots, for cosign, sigstore or gh to sign; or check that one speaks of them
    Attest(Attest),
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
        #[arg(value_name = "COMMAND", value_parser = words)]
        command: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    /// clap's own assertion on groups is off without debug assertions, as in releases.
    #[test]
    fn groups_have_names_of_their_own() {
        use clap::CommandFactory;
        let mut fec = Cli::command();
        fec.build();
        for command in fec.get_subcommands() {
            let mut names: Vec<_> = command.get_groups().map(|group| group.get_id().as_str()).collect();
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}: {names:?}", command.get_name());
        }
    }
}
