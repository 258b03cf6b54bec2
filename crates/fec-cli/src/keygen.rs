//! `fec keygen`: new keys.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::settings::Settings;
use crate::target::is_dash;
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
    if is_dash(&args.output) {
        return Err(Failure::usage("keygen: a key is written to a file: name one with -o"));
    }
    if args.output.symlink_metadata().is_ok() {
        return Err(misuse("write", &args.output, "it exists")
            .help("choose another name with -o: no key is overwritten"));
    }
    StreamKey::generate()?.write(&args.output)?;
    let output = show(&args.output);
    let text =
        format!("{output}: a new key of {KEY_LEN} bytes; whoever has it can read and send your streams\n");
    let report =
        Report { schema_version: crate::settings::SCHEMA_VERSION, command: "keygen", kind: "stream", output };
    settings.report(&report, &text, false)?;
    Ok(Exit::Done)
}
