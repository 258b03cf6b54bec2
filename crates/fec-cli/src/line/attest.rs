//! The arguments of `fec attest`.

use crate::line::examples;

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = examples::ATTEST)]
pub(crate) struct Attest {
    /// The file with a root, as encode --root-file writes it, or with a list of roots; its very bytes are attested, so
    /// keep it
    #[arg(value_name = "FILE")]
    pub(crate) roots: PathBuf,
    /// Check that this statement speaks of FILE and nothing else; - is standard input. Who signed it is for cosign,
    /// sigstore or gh to tell
    #[arg(long, value_name = "STATEMENT")]
    pub(crate) check: Option<PathBuf>,
}
