//! `fec keygen`: new keys.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::secrecy::no_core_dumps;
use crate::settings::{Settings, print_line};
use crate::target::is_dash;
use fecfile::age::{Identity, KeyKind};
use fecfile::error::{Error, Place};
use fecfile::io::output::write_secret;
use fecfile::live::key::{KEY_LEN, StreamKey};
use fecfile::names::show;
use serde::Serialize;
use zeroize::Zeroizing;

/// What `keygen` did. The key itself is never told.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    kind: &'static str,
    output: String,
    /// What others seal with.
    recipient: Option<String>,
}

pub(crate) fn run(args: &args::Keygen, settings: &Settings) -> Result<Exit> {
    if is_dash(&args.output) {
        return Err(Failure::usage("keygen: a key is written to a file: name one with -o"));
    }
    if args.output.symlink_metadata().is_ok() {
        return Err(misuse("write", &args.output, "it exists")
            .help("choose another name with -o: no key is overwritten"));
    }
    no_core_dumps();
    let output = show(&args.output);
    let (kind, recipient, text) = match (args.stream, args.pq) {
        (true, _) => {
            StreamKey::generate()?.write(&args.output)?;
            let text = format!(
                "{output}: a new key of {KEY_LEN} bytes; whoever has it can read and send your streams\n"
            );
            ("stream", None, text)
        }
        (false, is_hybrid) => {
            let (name, kind) = match is_hybrid {
                true => ("age-post-quantum", KeyKind::Hybrid),
                false => ("age", KeyKind::X25519),
            };
            let recipient = identity(kind, args)?;
            let text = format!("{output}: a new identity; whoever has it can open what is sealed for:\n");
            (name, Some(recipient), text)
        }
    };
    let report = Report {
        schema_version: crate::settings::SCHEMA_VERSION,
        command: "keygen",
        kind,
        output,
        recipient,
    };
    settings.report(&report, &text, false)?;
    if let Some(recipient) = report.recipient.filter(|_| !settings.json) {
        print_line(&recipient)?;
    }
    Ok(Exit::Done)
}

/// Writes a new identity, as age does; returns its recipient.
fn identity(kind: KeyKind, args: &args::Keygen) -> Result<String> {
    let identity = Identity::generate(kind).map_err(|e| Error::io("make a key", Place::Nowhere, e))?;
    let recipient = identity.recipient().to_string();
    let secret = identity.to_text().expect("an identity that was made here has a text");
    let text = Zeroizing::new(format!("# public key: {recipient}\n{}\n", *secret));
    write_secret(&args.output, text.as_bytes())?;
    Ok(recipient)
}
