//! `fec keygen`: new keys.

use crate::args;
use crate::failure::{Exit, Result};
use crate::settings::Settings;
use fecfile::live::key::{KEY_LEN, StreamKey};
use fecfile::names::show;
use serde::Serialize;

/// What `keygen` did. The key itself is never told.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    kind: &'static str,
    output: String,
}

pub(crate) fn run(args: &args::Keygen, settings: &Settings) -> Result<Exit> {
    StreamKey::generate()?.write(&args.output)?;
    let output = show(&args.output);
    let text =
        format!("{output}: a new key of {KEY_LEN} bytes; whoever has it can read and send your streams\n");
    let report =
        Report { schema_version: crate::settings::SCHEMA_VERSION, command: "keygen", kind: "stream", output };
    settings.report(&report, &text, false)?;
    Ok(Exit::Done)
}
