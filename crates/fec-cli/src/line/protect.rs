//! The arguments of `fec protect`.

use super::seal;
use super::sign;
use crate::line::examples;
use crate::line::values::{root, sidecar_redundancy};

use clap::Args;
use fec_core::digest::Digest;
use fec_sidecar::Redundancy;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::PROTECT)]
pub(crate) struct Protect {
    /// Files and folders; they are only read
    #[arg(value_name = "PATH", required_unless_present = "files_from")]
    pub(crate) paths: Vec<PathBuf>,
    /// The sidecar [default: PATH.fecp, beside PATH]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Bring an existing sidecar up to date with the files and folders that it was made for: only what changed is
    /// coded. A file with its recorded size and time is not read, so that damage is never mistaken for an edit; with
    /// --root, --signer or --sign everything is read
    #[arg(short, long)]
    pub(crate) update: bool,
    /// Only list the generations that the sidecar of PATH holds, the newest first: the root, the number, files, bytes,
    /// and the latest time of a file. `fec repair --root ROOT -o FOLDER SIDECAR` brings one back
    #[arg(long, conflicts_with = "update")]
    pub(crate) list: bool,
    /// Recovery data in per cent of the files [default: 16%; with --update as before]
    #[arg(short = 'r', long, value_name = "P%", value_parser = sidecar_redundancy)]
    pub(crate) redundancy: Option<Redundancy>,
    /// The folder that names are relative to [default: that of the sidecar, if all PATHs lie in it]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) base: Option<PathBuf>,
    /// Leave out what matches this pattern, with all that is in it; may be given several times. `*.tmp` and `cache/`
    /// match names everywhere, `cache/` only those of folders. `/cache` and `d/cache` match paths, from the folder PATH
    /// (if it is the only one) or from the base. The sidecar remembers patterns: --update uses them again, and adds new
    /// ones
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,
    /// Leave out folders that are tagged as caches, by a file CACHEDIR.TAG with the standard signature; --update does
    /// so again
    #[arg(long)]
    pub(crate) exclude_caches: bool,
    /// With --update: leave out only what this command names, and forget the patterns of before
    #[arg(long)]
    pub(crate) forget_excludes: bool,
    /// The policy, which says what may happen to the files of the folder PATH: restic, rustic, borg, kopia, git,
    /// annex, maildir, photos; a file with lines such as `once stays: /data/`; or none. `once`: the file is written
    /// once, and any difference is damage; `stays`: it goes only with --pruned. The sidecar remembers it [default:
    /// that of a repository of restic, borg or kopia, which is recognised; with --update as before]
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// With --update: what is gone was pruned or deleted on purpose, however much it is
    #[arg(long)]
    pub(crate) pruned: bool,
    /// With --update: a prune is about to begin; until the next --update anything in the folder of the policy may go
    #[arg(long, conflicts_with = "pruned")]
    pub(crate) pruning: bool,
    /// With --update: FOLDER, a snapshot or where you moved files to, has what has left or changed as it was, under the
    /// paths that it had from the base. It is taken out of the recovery data then, which would be spent on it otherwise
    #[arg(long, value_name = "FOLDER")]
    pub(crate) retired: Option<PathBuf>,
    /// Files only grow, as logs and recordings do: of one that is longer, an update reads its old end and what is new.
    /// A file that does not begin with what it was is told, and stays protected as it was, but for a log that has
    /// another name now
    #[arg(long)]
    pub(crate) append: bool,
    /// As --append, and go on until it is interrupted: what is written is protected within a second. A sidecar that is
    /// there is brought up to date first
    #[arg(long)]
    pub(crate) follow: bool,
    /// Also protect the files and folders that are listed in this file, a line each or with zero bytes between; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) files_from: Option<PathBuf>,
    /// Leave out file systems that are mounted below PATH
    #[arg(long)]
    pub(crate) one_file_system: bool,
    /// Record no time of change and no inode of the files, so that copies of them get the same sidecar. An edit by a
    /// program that puts a file's time back is then taken for damage; --update does as the sidecar was made
    #[arg(long)]
    pub(crate) portable: bool,
    /// Also record SHA-256 of each file, for `fec manifest --sha256`; reads the files once more
    #[arg(long)]
    pub(crate) sha256: bool,
    /// With --update: the root that the sidecar has now, 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root)]
    pub(crate) root: Option<Digest>,
    /// Replace an existing sidecar; with --update go on although many files are gone, or files have become empty
    #[arg(short, long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) seal: seal::Seal,
    /// With --update: open a sealed sidecar with the identities in this file; it is sealed anew for the recipients that
    /// are named
    #[arg(short, long, value_name = "FILE", conflicts_with = "passphrase", help_heading = "Sealing")]
    pub(crate) identity: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) secret: sign::Secret,
    /// With --update: only if the sidecar as it is now is signed with this public key: RW… itself, or its .pub file.
    /// With --sign it is that of the same key, unless others are given
    #[arg(long, value_name = "PUB", value_parser = sign::signer, help_heading = "Signatures")]
    pub(crate) signer: Vec<sign::NamedSigner>,
    /// The file of the signature, which is read, and with --sign written [default: X.fecp.minisig]
    #[arg(long, value_name = "FILE", help_heading = "Signatures")]
    pub(crate) signature: Option<PathBuf>,
}
