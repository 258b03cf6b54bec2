//! The options of signatures, as clap sees them.

use clap::Args;
use fec_keys::sign::{Signature, Signer};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Options of commands that sign.
#[derive(Debug, Args)]
#[command(next_help_heading = "Signatures")]
pub(crate) struct Secret {
    /// Sign the root with this secret key, of minisign or post-quantum: see `fec keygen --sign`. Its passphrase, if it
    /// has one, is asked for at the terminal, or in the variable FEC_SIGN_PASSPHRASE
    #[arg(long, value_name = "KEYFILE")]
    pub(crate) sign: Option<PathBuf>,
    /// Read the passphrase of the secret key from this file
    #[arg(long, value_name = "FILE", requires = "sign")]
    pub(crate) sign_passphrase_file: Option<PathBuf>,
}

/// Options of commands that accept only signed roots.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Signatures")]
pub(crate) struct Trusted {
    /// Accept only what is signed with this public key: RW… of minisign itself, or a .pub file. May be given several
    /// times: the signature of one of them is enough
    #[arg(long, value_name = "PUB", value_parser = signer)]
    pub(crate) signer: Vec<NamedSigner>,
    /// Also take the signature in this file [default: of a sidecar, X.fecp.minisig]
    #[arg(long, value_name = "FILE", requires = "signer")]
    pub(crate) signature: Option<PathBuf>,
    /// The signature of --signature. It is read once: the file may be a pipe.
    #[arg(skip)]
    pub(crate) read: OnceLock<Signature>,
}

/// A public key, and the word that named it. Advice repeats the word: some keys take half a screen.
#[derive(Clone, Debug)]
pub(crate) struct NamedSigner {
    pub(crate) key: Signer,
    pub(crate) word: String,
}

impl NamedSigner {
    /// A key that nobody named, by itself.
    pub(crate) fn of(key: Signer) -> NamedSigner {
        NamedSigner { word: key.to_string(), key }
    }
}

/// A public key, or the path of its file.
pub(crate) fn signer(text: &str) -> Result<NamedSigner, String> {
    let key = text.parse().or_else(|_| Signer::read(Path::new(text)).map_err(|e| e.to_string()))?;
    Ok(NamedSigner { key, word: text.to_owned() })
}
