//! The arguments of `fec keygen`.

use crate::line::examples;

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::KEYGEN)]
pub(crate) struct Keygen {
    /// For live streams: the same key serves `encode --stream --key-file` and `decode --key-file` [default: an identity
    /// of age, whose recipient is printed]
    #[arg(long, conflicts_with = "sign")]
    pub(crate) stream: bool,
    /// A key that stands up to quantum computers too: an identity of ML-KEM-768 and X25519; with --sign, a pair of
    /// ML-DSA-65 and Ed25519
    #[arg(long, conflicts_with = "stream")]
    pub(crate) pq: bool,
    /// To sign roots: a pair of minisign's keys, of which FILE is secret, for `encode --sign`, and FILE.pub is for
    /// everybody, for `decode --signer`. With a passphrase, from the terminal or the variable FEC_SIGN_PASSPHRASE, FILE
    /// is encrypted
    #[arg(long, group = "signing")]
    pub(crate) sign: bool,
    /// With --sign: read the passphrase from this file
    #[arg(long, value_name = "FILE", requires = "signing")]
    pub(crate) sign_passphrase_file: Option<PathBuf>,
    /// The key file, which its owner alone may read; it must not exist
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) output: PathBuf,
}
