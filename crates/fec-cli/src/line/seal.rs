//! Options of sealing.

use clap::{Args, ValueEnum};
use fec_keys::cipher::Cipher;
use std::path::PathBuf;

/// For whom `encode` and `protect` seal.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Sealing")]
pub(crate) struct Seal {
    /// Seal for the holder of this key: age1…, age1pq1… (post-quantum) or `ssh-ed25519 …`, as age takes them; may
    /// be given several times, and any of them opens it
    #[arg(long, value_name = "KEY")]
    pub(crate) recipient: Vec<String>,
    /// The same for all keys that are listed in this file, a line each
    #[arg(short = 'R', long, value_name = "FILE")]
    pub(crate) recipients_file: Vec<PathBuf>,
    /// Seal with a passphrase of 12 characters or more, from the terminal or the variable FEC_PASSPHRASE; live streams
    /// too
    #[arg(long)]
    pub(crate) passphrase: bool,
    /// Encrypt by this cipher; live streams too [default: AES where the processor has instructions for it]
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) cipher: Option<CipherKind>,
}

/// The options that open a sealed payload.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sealing")]
pub(crate) struct Open {
    /// Open what is sealed, with the identities in this file: age's, as `fec keygen` makes them, or an OpenSSH key; may
    /// be given several times
    #[arg(short, long, value_name = "FILE", conflicts_with = "passphrase")]
    pub(crate) identity: Vec<PathBuf>,
    /// Open what is sealed, with a passphrase from the terminal or the variable FEC_PASSPHRASE; live streams too
    #[arg(long)]
    pub(crate) passphrase: bool,
}

/// The ciphers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CipherKind {
    /// AES-256-GCM
    #[value(name = "aes-256-gcm")]
    Aes256Gcm,
    /// ChaCha20-Poly1305
    #[value(name = "chacha20-poly1305")]
    ChaCha20Poly1305,
}

impl From<CipherKind> for Cipher {
    fn from(kind: CipherKind) -> Cipher {
        match kind {
            CipherKind::Aes256Gcm => Cipher::Aes256Gcm,
            CipherKind::ChaCha20Poly1305 => Cipher::ChaCha20Poly1305,
        }
    }
}
