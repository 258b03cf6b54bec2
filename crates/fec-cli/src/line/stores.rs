//! Options of the commands that work on stores.

use crate::units::{duration, size};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the commands that move shards.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct Network {
    /// With stores: keep the shards of a segment here while they are under way [default: the system's folder for
    /// temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) spool: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Limits of the requests to stores.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct Limits {
    /// With stores: give a request up when nothing moves for so long
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s")]
    pub(crate) timeout: Duration,
    /// With stores: repeat a request so often that failed for a reason that may pass
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(..=100),
    )]
    pub(crate) retries: u32,
    /// With stores: move at most so many bytes a second
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) limit: Option<u64>,
}

/// Where `encode` sends shards to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stores")]
// `encode` has another struct of this name, and clap names groups after structs.
#[group(skip)]
pub(crate) struct Send {
    /// Send the shards there: s3://BUCKET/PREFIX, gs://, az://, file:///PATH or a folder, with `,domain=NAME` for what
    /// fails together, and for other S3 services `,endpoint=URL`, `,region=NAME`, `,profile=NAME`,
    /// `,style=virtual`; or @FILE with a line for each. May be given several times
    #[arg(long, value_name = "URL[,domain=D]")]
    pub(crate) to: Vec<String>,
    /// With --to: payload bytes of a segment, which is coded and sent as a whole
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) segment_size: Option<u64>,
    /// With --to: send so many objects at the same time; each takes up to 6 MiB of memory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) uploads: Option<u16>,
    /// With --to: be done when enough has arrived: k + m/2 shards of each segment, and without those of any domain
    /// enough to restore. Slower ones are given up after half as long again
    #[arg(long)]
    pub(crate) enough: bool,
    /// With --to: let a domain hold more shards than may be lost
    #[arg(long)]
    pub(crate) crowded: bool,
}

/// The places in which `repair` finds shards, or copies of what is lost.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct FromAnybody {
    /// Find what is lost there, in https://, s3://, gs://, az:// or a folder; or @FILE with a line for each. With a
    /// sidecar: copies of the protected file or folder, whole or not, of which blocks are fetched that cannot be mended
    /// otherwise. With shard files or a container: copies of these. Without PATH: the shards of --root, as `encode
    /// --to` takes places. May be given several times
    #[arg(id = "from", long, value_name = "URL")]
    pub(crate) urls: Vec<String>,
}

/// The places in which `decode` and `verify` find shards.
#[derive(Debug, Args)]
#[command(next_help_heading = "Stores")]
pub(crate) struct From {
    /// Find the shards of --root there: s3://BUCKET/PREFIX, gs://, az://, https://, file:///PATH or a folder, as
    /// `encode --to` takes them; or @FILE with a line for each. May be given several times
    #[arg(long, value_name = "URL", requires = "root", conflicts_with = "inputs")]
    pub(crate) from: Vec<String>,
}
