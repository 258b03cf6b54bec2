//! `fec keygen`: new keys.

use crate::args;
use crate::failure::{Exit, Failure, Result, misuse};
use crate::passphrase;
use crate::settings::{SCHEMA_VERSION, Settings};
use crate::sign;
use crate::target::is_dash;
use fecfile::io::output::{Policy, write_text};
use fecfile::live::key::{KEY_LEN, StreamKey};
use fecfile::names::show;
use fecfile::sign::SecretKey;
use serde::Serialize;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// What a key is for.
#[derive(Clone, Copy)]
enum Kind {
    /// Live streams.
    Stream,
    /// Signatures.
    Sign,
}

/// What `keygen` did. The key itself is never told.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    kind: &'static str,
    output: String,
    /// Of a pair: the file of the public key, and the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// Of a pair: whether a passphrase is needed to sign.
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
}

pub(crate) fn run(args: &args::Keygen, settings: &Settings) -> Result<Exit> {
    let kind = match (args.stream, args.sign) {
        (true, _) => Kind::Stream,
        (false, true) => Kind::Sign,
        (false, false) => {
            return Err(Failure::usage("keygen: it is not said what the key is for")
                .help("--stream makes one for live streams, --sign a pair for signatures"));
        }
    };
    if is_dash(&args.output) {
        return Err(Failure::usage("keygen: a key is written to a file: name one with -o"));
    }
    check_absent(&args.output)?;
    let (report, text) = match kind {
        Kind::Stream => stream(&args.output)?,
        Kind::Sign => pair(&args.output, args.sign_passphrase_file.as_deref())?,
    };
    settings.report(&report, &text, false)?;
    Ok(Exit::Done)
}

fn check_absent(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(
            misuse("write", path, "it exists").help("choose another name with -o: no key is overwritten")
        );
    }
    Ok(())
}

fn report(kind: &'static str, output: String) -> Report {
    Report {
        schema_version: SCHEMA_VERSION,
        command: "keygen",
        kind,
        output,
        public_output: None,
        public_key: None,
        encrypted: None,
    }
}

/// The key of live streams.
fn stream(output: &Path) -> Result<(Report, String)> {
    StreamKey::generate()?.write(output)?;
    let output = show(output);
    let text =
        format!("{output}: a new key of {KEY_LEN} bytes; whoever has it can read and send your streams\n");
    Ok((report("stream", output), text))
}

/// A pair of keys for signatures.
fn pair(output: &Path, passphrase_file: Option<&Path>) -> Result<(Report, String)> {
    let mut public = output.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    check_absent(&public)?;
    let passphrase = new_passphrase(passphrase_file)?;
    let key = SecretKey::generate()?;
    key.write(output, passphrase.as_deref().map(String::as_str))?;
    let signer = key.signer();
    write_text(&public, &signer.to_text(), Policy { force: false, sync: true })?;
    let (output, public) = (show(output), show(&public));
    let kept = match passphrase {
        Some(_) => "encrypted with the passphrase",
        None => "not encrypted: whoever has the file can sign in your name",
    };
    let text =
        format!("{output}: a new secret key, {kept}\n{public}: its public key {signer}, for --signer\n");
    let report = Report {
        public_output: Some(public),
        public_key: Some(signer.to_string()),
        encrypted: Some(passphrase.is_some()),
        ..report("sign", output)
    };
    Ok((report, text))
}

/// The passphrase that is given, or asked for where there is a terminal; an empty one is none.
fn new_passphrase(file: Option<&Path>) -> Result<Option<Zeroizing<String>>> {
    let passphrase = match sign::given_passphrase(file)? {
        Some(passphrase) => passphrase,
        None => match passphrase::asked("passphrase of the secret key, empty for none: ", "") {
            // There is no terminal.
            Err(_) => return Ok(None),
            Ok(first) if first.is_empty() => first,
            Ok(first) => {
                if *passphrase::asked("once more: ", "")? != *first {
                    return Err(Failure::usage("keygen: the two passphrases differ"));
                }
                first
            }
        },
    };
    Ok(Some(passphrase).filter(|passphrase| !passphrase.is_empty()))
}
