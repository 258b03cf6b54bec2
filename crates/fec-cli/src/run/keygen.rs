//! `fec keygen`: makes keys.

use crate::line;
use crate::plan::check;
use crate::plan::keygen::{FOUND, Keygen, UNASKED};
use crate::run::sign;
use crate::say::failure::{Exit, Result};
use crate::settings::{Settings, print_line};
use crate::system::border::no_core_dumps;
use crate::system::passphrase;
use crate::system::progress::remove_stale_beside;
use fec_base::io::output::{Policy, write_secret, write_text};
use fec_base::names::show;
use fec_keys::age::{Identity, KeyKind};
use fec_keys::sign::SecretKey;
use fec_live::key::{KEY_LEN, StreamKey};
use fecfile::error::{Action, Error, Place};
use serde::Serialize;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The outcome of `keygen`. It never holds a secret key.
#[derive(Debug, Serialize)]
struct Report {
    kind: &'static str,
    output: String,
    /// The recipient of an identity, for those who seal.
    #[serde(skip_serializing_if = "Option::is_none")]
    recipient: Option<String>,
    /// The public key of a signing pair, and its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    /// The part of a post-quantum key that minisign knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    minisign_key: Option<String>,
    /// Tells whether a signing key needs a passphrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    encrypted: Option<bool>,
}

pub(crate) fn run(args: &line::Keygen, settings: &Settings) -> Result<Exit> {
    let plan = Keygen::of(args, settings.given)?;
    check_absent(&args.output)?;
    no_core_dumps();
    remove_stale_beside(&args.output);
    let (report, text) = match plan {
        Keygen::Stream => stream(&args.output)?,
        Keygen::Pair { is_hybrid, passphrase } => pair(&args.output, is_hybrid, passphrase)?,
        Keygen::Identity { is_hybrid } => identity(&args.output, is_hybrid)?,
    };
    settings.report(&report, Exit::Done, &text, false)?;
    if let Some(recipient) = report.recipient.filter(|_| !settings.json) {
        print_line(&recipient)?;
    }
    Ok(Exit::Done)
}

fn check_absent(path: &Path) -> Result<()> {
    check(&path.symlink_metadata().is_ok(), FOUND, |_| show(path))
}

fn report(kind: &'static str, output: String) -> Report {
    Report {
        kind,
        output,
        recipient: None,
        public_output: None,
        public_key: None,
        minisign_key: None,
        encrypted: None,
    }
}

/// Writes an age identity in the format of age-keygen.
fn identity(output: &Path, is_hybrid: bool) -> Result<(Report, String)> {
    let (name, kind) = match is_hybrid {
        true => ("age-post-quantum", KeyKind::Hybrid),
        false => ("age", KeyKind::X25519),
    };
    let identity = Identity::generate(kind).map_err(|e| Error::io(Action::MakeKey, Place::Nowhere, e))?;
    let recipient = identity.recipient().to_string();
    let secret = identity.to_text().expect("an identity that was made here has a text");
    let content = Zeroizing::new(format!("# public key: {recipient}\n{}\n", *secret));
    write_secret(output, content.as_bytes())?;
    let output = show(output);
    let text = format!("{output}: a new identity; whoever has it can open what is sealed for:\n");
    Ok((Report { recipient: Some(recipient), ..report(name, output) }, text))
}

/// Writes a key for live streams.
fn stream(output: &Path) -> Result<(Report, String)> {
    StreamKey::generate()?.write(output)?;
    let output = show(output);
    let text =
        format!("{output}: a new key of {KEY_LEN} bytes; whoever has it can read and send your streams\n");
    Ok((report("stream", output), text))
}

/// Writes a pair of signing keys.
fn pair(output: &Path, is_hybrid: bool, passphrase_file: Option<&Path>) -> Result<(Report, String)> {
    let mut public = output.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    check_absent(&public)?;
    let passphrase = new_passphrase(passphrase_file)?;
    let key = if is_hybrid { SecretKey::generate_hybrid() } else { SecretKey::generate() }?;
    key.write(output, passphrase.as_deref().map(String::as_str))?;
    let signer = key.signer();
    write_text(&public, &signer.to_text(), Policy::new())?;
    let (output, public) = (show(output), show(&public));
    let kept = match passphrase {
        Some(_) => "encrypted with the passphrase",
        None => "not encrypted: whoever has the file can sign in your name",
    };
    let classic = signer.classic();
    let (kind, of_public) = match is_hybrid {
        false => ("sign", format!("its public key {signer}, for --signer")),
        true => (
            "sign-post-quantum",
            format!(
                "its public key {}, for --signer FILE\nminisign itself checks half of its signatures, by {classic}",
                signer.id()
            ),
        ),
    };
    let text = format!("{output}: a new secret key, {kept}\n{public}: {of_public}\n");
    let report = Report {
        public_output: Some(public),
        public_key: Some(signer.to_string()),
        minisign_key: is_hybrid.then(|| classic.to_string()),
        encrypted: Some(passphrase.is_some()),
        ..report(kind, output)
    };
    Ok((report, text))
}

/// The passphrase from the file or the variable, or else typed at a terminal. An empty one counts as none.
fn new_passphrase(file: Option<&Path>) -> Result<Option<Zeroizing<String>>> {
    let passphrase = match sign::given_passphrase(file)? {
        Some(passphrase) => passphrase,
        // Breaking off at the prompt gives no key, rather than an unencrypted one.
        None => {
            check(&!passphrase::has_terminal(), UNASKED, |_| String::new())?;
            let first = passphrase::asked("passphrase of the secret key, empty for none: ", "")?;
            if !first.is_empty() {
                passphrase::confirm(&first)?;
            }
            first
        }
    };
    Ok(Some(passphrase).filter(|passphrase| !passphrase.is_empty()))
}
