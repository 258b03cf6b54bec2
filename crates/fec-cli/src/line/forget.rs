//! The arguments of `fec forget`.

use super::stores::Limits;
use crate::line::examples;
use crate::line::values::root;

use clap::Args;
use fec_core::digest::Digest;

#[derive(Debug, Args)]
#[command(after_help = examples::FORGET)]
pub(crate) struct Forget {
    /// Remove the encoding with this root: 64 hexadecimal digits, or @FILE
    #[arg(long, value_name = "HEX|@FILE", value_parser = root, required = true)]
    pub(crate) root: Option<Digest>,
    /// Remove it from there: s3://BUCKET/PREFIX, gs://, az://, file:///PATH or a folder, as `encode --to` takes them;
    /// or @FILE with a line for each. May be given several times
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) from: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Remove what can be removed, although a place gives no list, or the manifest of another encoding cannot be read,
    /// which may need the same objects
    #[arg(long)]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) limits: Limits,
}
