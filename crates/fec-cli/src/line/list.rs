//! The arguments of `fec list`.

use super::stores::Limits;
use crate::line::examples;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = examples::LIST)]
pub(crate) struct List {
    /// The places: s3://BUCKET/PREFIX, gs://, az://, file:///PATH or a folder, as `encode --to` takes them; or @FILE
    /// with a line for each
    #[arg(value_name = "PLACE")]
    pub(crate) places: Vec<String>,
    /// A place, as the other commands name it. May be given several times
    #[arg(long, value_name = "URL")]
    pub(crate) from: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: Limits,
}
