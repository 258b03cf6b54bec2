//! `fec protect`: a sidecar for files that stay where they are.

use crate::line;
use crate::line::seal::Open;
use crate::line::sign::Trusted;
use crate::plan::options::{NEW, UPDATE};
use crate::run::inputs::listed;
use crate::run::sidecar::known;
use crate::run::sign::{self, Detached};
use crate::run::target::quoted;
use crate::run::target::{ENDING, beside};
use crate::say::advice::protected_paths;
use crate::say::failure::{Exit, Failure, Result, misuse};
use crate::say::sidecar::count;
use crate::settings::{SCHEMA_VERSION, Settings, print_line};
use fec_base::error::Action;
use fec_base::io::output::{Policy, is_same};
use fec_base::names::{hex, show, show_bytes};
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_keys::sign::{SecretKey, SignError, Signature, Trust};
use fec_sidecar::examine::base_of;
use fec_sidecar::protect::{Protect, Protected, protect};
use fec_sidecar::update::{Anew, Updated, update};
use fec_sidecar::{Sidecar, signature_path};

use fecfile::seal::SealedTo;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(args: &line::Protect, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    settings.given.check(if args.update { UPDATE } else { NEW })?;
    let mut paths = args.paths.clone();
    if let Some(list) = &args.files_from {
        paths.extend(listed(list, false)?);
    }
    check_no_sidecar(&paths, settings)?;
    let output = output(args, &paths)?;
    let sealing = args.seal.sealing()?.map(Arc::new);
    let keys = match &sealing {
        // The same passphrase opens the sidecar and seals it again.
        Some(sealing) if args.update && args.seal.passphrase => match &sealing.to {
            SealedTo::Passphrase(passphrase) => Some(Keys::Passphrase(passphrase.clone())),
            SealedTo::Recipients(_) => None,
        },
        _ => Open { identity: args.identity.clone(), passphrase: false }.keys()?,
    };
    let bars = settings.bars("protect");
    let context = settings.context(&bars);
    let job = Protect {
        paths: &paths,
        output: &output,
        base: args.base.as_deref(),
        redundancy: args.redundancy,
        exclude: &args.exclude,
        one_file_system: args.one_file_system,
        sha256: args.sha256,
        policy: settings.policy(args.force),
        sealing: sealing.as_ref(),
        keys: keys.as_ref(),
    };
    let signing = Signing::new(args, &output)?;
    let (protected, updated) = if args.update {
        let trust = signing.trust_before(args.root)?;
        let updated = update(&job, (args.root, trust.as_ref()), &context);
        let updated = updated.map_err(|error| signing.explain(error))?;
        (updated.sidecar.clone(), Some(updated))
    } else {
        (protect(&job, &context)?, None)
    };
    signing.sign(&protected, settings)?;
    if let Some(metadata) = &protected.metadata {
        known::note(&protected.root, metadata);
    }
    let report = Report::new(&protected, updated.as_ref(), &output, started);
    settings.report(&report, &report.describe(&protected), false)?;
    if !settings.json {
        print_line(&report.root)?;
    }
    Ok(Exit::Done)
}

/// Refuses to protect a sidecar.
fn check_no_sidecar(paths: &[PathBuf], settings: &Settings) -> Result<()> {
    let [path] = paths else { return Ok(()) };
    let is_named = path.extension().is_some_and(|ending| ending == ENDING) && path.is_file();
    if !is_named || !Sidecar::starts(path)? {
        return Ok(());
    }
    Err(misuse("protect", path, "it is a sidecar").help(match update_command(path, settings) {
        Some(command) => format!("to bring it up to date, name what it protects:\n  {command}"),
        None => {
            "name the files or folders that it protects; it is PATH.fecp, or the one named with -o".to_owned()
        }
    }))
}

/// The command that updates a sidecar, if its content can be read and has few enough paths to name.
fn update_command(sidecar: &Path, settings: &Settings) -> Option<String> {
    let opened = Sidecar::open(sidecar, None, &settings.library).ok()?;
    let paths = protected_paths(&opened, &base_of(&opened, None).ok()?)?;
    Some(format!("fec protect --update {paths}"))
}

/// The signature of a sidecar, in its own file.
struct Signing<'a> {
    args: &'a line::Protect,
    sidecar: &'a Path,
    /// The path of the signature.
    place: PathBuf,
    key: Option<SecretKey>,
}

impl<'a> Signing<'a> {
    /// Refuses, before any work, a run that would leave a signature that no longer fits.
    fn new(args: &'a line::Protect, sidecar: &'a Path) -> Result<Signing<'a>> {
        let place = args.signature.clone().unwrap_or_else(|| signature_path(sidecar));
        if args.signature.is_some() && args.secret.sign.is_none() && args.signer.is_empty() {
            return Err(Failure::usage("protect: --signature is for --sign and --signer"));
        }
        let key = sign::secret_key(&args.secret)?;
        let is_there = place.symlink_metadata().is_ok();
        if key.is_none() && is_there && sidecar.exists() && !args.force {
            let what = "the sidecar is signed, and the signature would not fit it any more";
            return Err(misuse("protect", &place, what)
                .help("sign it again with --sign, or go on with -f, which leaves the signature as it is"));
        }
        if is_same(&place, sidecar) {
            return Err(misuse("write", &place, "it is the sidecar").help("choose another --signature"));
        }
        if key.is_some() && args.update && is_there && !args.force {
            // The old signature is replaced, but no other kind of file.
            sign::check_file(&place)?;
            Signature::read(&place)?;
        }
        let signing = Signing { args, sidecar, place, key };
        if let Some(signature) = signing.detached(args.force || args.update) {
            signature.check()?;
        }
        Ok(signing)
    }

    fn detached(&self, force: bool) -> Option<Detached<'_>> {
        let policy = Policy::new().with_force(force);
        self.key.as_ref().map(|key| Detached { key, path: &self.place, policy })
    }

    /// The signer that the sidecar must have before an update: rot and forgeries must not be signed.
    fn trust_before(&self, root: Option<Digest>) -> Result<Option<Trust>> {
        let mut signers = self.args.signer.clone();
        if signers.is_empty() && root.is_none() {
            signers.extend(self.key.as_ref().map(SecretKey::signer));
        }
        let signature = Some(self.place.clone()).filter(|place| place.exists());
        sign::trust_of_sidecar(&Trusted { signer: signers, signature, ..Trusted::default() }, self.sidecar)
    }

    fn explain(&self, error: fecfile::Error) -> Failure {
        let is_unsigned = matches!(error.cause(), Some(SignError::Unsigned(_)));
        let failure = Failure::from(error);
        if is_unsigned && self.args.signer.is_empty() {
            return failure.help(
                "only what was signed before is signed again; or give its --root, from where you keep it",
            );
        }
        failure
    }

    fn sign(&self, protected: &Protected, settings: &Settings) -> Result<()> {
        let force = self.args.force || self.args.update;
        self.detached(force).map_or(Ok(()), |mut signature| {
            signature.policy.sync = settings.library.sync;
            signature.write_sidecar(&protected.root, protected.metadata.as_ref())
        })
    }
}

/// The path of the sidecar: beside the protected path, if there is just one.
fn output(args: &line::Protect, paths: &[PathBuf]) -> Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let [path] = paths else {
        return Err(Failure::usage("protect: several files or folders have no name in common")
            .help("name the sidecar with -o"));
    };
    if path.file_name().is_none() {
        // A path like `..` has a name only if it exists: otherwise this fails with the reason.
        std::fs::canonicalize(path).map_err(|e| Failure::io(Action::Read, path, e))?;
    }
    beside(path)
        .ok_or_else(|| Failure::usage("protect /: nothing lies beside it").help("name the sidecar with -o"))
}

/// The final report of `protect`, as text and JSON.
#[derive(Debug, Serialize)]
struct Report {
    schema_version: u32,
    command: &'static str,
    root: String,
    sidecar: String,
    base: String,
    files: u64,
    folders: u64,
    links: u64,
    payload_bytes: u64,
    recovery_bytes: u64,
    sidecar_bytes: u64,
    block_bytes: u32,
    data: usize,
    recovery: usize,
    sets: u32,
    /// Devices, sockets and FIFOs: they hold no content to protect.
    skipped: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    update: Option<Update>,
    seconds: f64,
}

/// Most files that are listed. Further files are only counted.
const LINES: usize = 50;

/// The outcome of an update.
#[derive(Debug, Serialize)]
struct Update {
    generation: u64,
    written: bool,
    /// The reason why the sidecar was made anew.
    anew: Option<String>,
    unchanged: u64,
    changed: u64,
    added: u64,
    moved: u64,
    gone: u64,
    gone_files: Vec<String>,
    coded_bytes: u64,
}

impl Update {
    fn new(updated: &Updated) -> Update {
        Update {
            generation: updated.generation,
            written: updated.written,
            anew: updated.anew.map(|why| match why {
                Anew::Weak(sets) => {
                    format!(
                        "{} had lost too much of their recovery data to what is gone",
                        count(sets, "set", "sets")
                    )
                }
                Anew::Long => "it would be more than twice as long as a new one".to_owned(),
                Anew::SmallBlocks => "its blocks were too small for so many bytes".to_owned(),
                Anew::Sha256 => "it had no SHA-256 of its files".to_owned(),
            }),
            unchanged: updated.unchanged,
            changed: updated.changed,
            added: updated.added,
            moved: updated.moved,
            gone: updated.gone.len() as u64,
            gone_files: updated.gone.iter().map(|path| show_bytes(path)).collect(),
            coded_bytes: updated.coded_len,
        }
    }

    fn describe(&self, sidecar: &str) -> String {
        let counts = [
            (self.unchanged, "as they were"),
            (self.changed, "changed"),
            (self.added, "new"),
            (self.moved, "moved"),
            (self.gone, "gone"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
        let what = match (&self.anew, self.written) {
            (Some(why), _) => format!("{sidecar} was made anew, because {why}"),
            (None, true) => format!("{sidecar} was updated: {} bytes were coded", self.coded_bytes),
            (None, false) => format!("{sidecar} is up to date"),
        };
        let mut out = String::new();
        for path in self.gone_files.iter().take(LINES) {
            out.push_str(&format!("  gone       {path}\n"));
        }
        if self.gone_files.len() > LINES {
            out.push_str(&format!("  and {} more\n", self.gone_files.len() - LINES));
        }
        out.push_str(&format!("files: {}\n{what}\n", told.join(", ")));
        out
    }
}

impl Report {
    fn new(protected: &Protected, updated: Option<&Updated>, output: &Path, started: Instant) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            command: "protect",
            root: hex(&protected.root),
            sidecar: show(output),
            base: show(&protected.base),
            files: protected.files,
            folders: protected.folders,
            links: protected.links,
            payload_bytes: protected.files_len,
            recovery_bytes: protected.recovery_len,
            sidecar_bytes: protected.sidecar_len,
            block_bytes: protected.block,
            data: protected.code.0,
            recovery: protected.code.1,
            sets: protected.sets,
            skipped: protected.skipped.iter().map(show).collect(),
            update: updated.map(Update::new),
            seconds: started.elapsed().as_secs_f64(),
        }
    }

    fn describe(&self, protected: &Protected) -> String {
        let files = count(self.files, "file", "files");
        let mut out = self.update.as_ref().map_or_else(String::new, |update| update.describe(&self.sidecar));
        out.push_str(&format!(
            "{} ({} bytes) protects {files} ({} bytes); about {} bytes in a row could be lost and mended\n",
            self.sidecar, self.sidecar_bytes, self.payload_bytes, protected.one_piece
        ));
        if !protected.is_beside {
            let base = quoted(&protected.base);
            out.push_str(&format!("to verify and repair them, name their base: --base {base}\n"));
        }
        if !protected.skipped.is_empty() {
            out.push_str(&format!(
                "left out, because they are devices, sockets or pipes: {}\n",
                self.skipped.join(", ")
            ));
        }
        out
    }
}
