//! `fec protect`: a sidecar for files that stay where they are.

use crate::line;
use crate::line::seal::Open;
use crate::line::sign::{NamedSigner, Trusted};
use crate::plan::check;
use crate::plan::protect::{self as plan, FOUND, Found};
use crate::run::inputs::listed;
use crate::run::sidecar::follow::follow;
use crate::run::sidecar::place::place_of;
use crate::run::sidecar::{known, list, policy};
use crate::run::sign::{self, Detached};
use crate::run::target::ENDING;
use crate::say::advice::protected_paths;
use crate::say::failure::{Exit, Failure, Result};
use crate::say::protect::Report;
use crate::settings::{Settings, print_line};
use fec_base::io::output::{Policy, is_same};
use fec_base::names::show_input;
use fec_core::digest::Digest;
use fec_keys::age::Keys;
use fec_keys::sign::{SecretKey, SignError, Signature, Trust};
use fec_sidecar::Sidecar;
use fec_sidecar::examine::base_of;
use fec_sidecar::kind;
use fec_sidecar::kind::signature_path;
use fec_sidecar::protect::{Protect, Protected, Prune, protect};
use fec_sidecar::update::update;

use fecfile::seal::SealedTo;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(args: &line::Protect, settings: &Settings) -> Result<Exit> {
    let started = Instant::now();
    let plan = plan::Protect::of(args, settings.given)?;
    if plan == plan::Protect::List {
        return list::run(args, settings);
    }
    let mut paths = args.paths.clone();
    if let Some(list) = &args.files_from {
        paths.extend(listed(list, false)?);
    }
    check_no_sidecar(&paths, settings)?;
    let output = place_of(args, &paths)?;
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
    let (rules, is_recognised) = policy::given(args, plan, &paths)?;
    let known = args.root.as_ref().map_or_else(Vec::new, known::of);
    let appends = args.append || args.follow;
    let job = Protect {
        paths: &paths,
        output: &output,
        base: args.base.as_deref(),
        redundancy: args.redundancy,
        exclude: &args.exclude,
        exclude_caches: args.exclude_caches,
        forget_excludes: args.forget_excludes,
        rules: rules.as_ref(),
        prune: match (args.pruned, args.pruning) {
            (true, _) => Prune::Done,
            (_, true) => Prune::Announced,
            _ => Prune::Nothing,
        },
        retired: args.retired.as_deref(),
        appends,
        one_file_system: args.one_file_system,
        sha256: args.sha256,
        marks: !args.portable,
        policy: settings.policy(args.force),
        sealing: sealing.as_ref(),
        keys: keys.as_ref(),
        known: &known,
    };
    let signing = Signing::new(args, &output)?;
    // A service that is started again goes on.
    let goes_on = args.follow && !args.force && kind::starts(&output).unwrap_or(false);
    let (mut protected, mut updated) = if plan == plan::Protect::Update || goes_on {
        let trust = signing.trust_before(args.root)?;
        let updated = update(&job, (args.root, trust.as_ref()), &context);
        let updated = updated.map_err(|error| signing.explain(error))?;
        (updated.sidecar.clone(), Some(updated))
    } else {
        (protect(&job, &context)?, None)
    };
    signing.sign(&protected, settings)?;
    if args.follow {
        let again = Protect {
            policy: settings.policy(false),
            forget_excludes: false,
            rules: None,
            prune: Prune::Nothing,
            retired: None,
            ..job
        };
        if let Some(last) = follow(&again, settings)? {
            (protected, updated) = (last.sidecar.clone(), Some(last));
        }
    }
    if let Some(metadata) = &protected.metadata {
        known::note(&protected.root, metadata);
    }
    let report = Report::new(&protected, updated.as_ref(), (&output, is_recognised), started);
    let is_held = updated.as_ref().is_some_and(|updated| !updated.held.is_empty());
    let is_all = protected.omitted.is_empty() && protected.kept.is_empty() && !is_held;
    let exit = if is_all { Exit::Done } else { Exit::Mendable };
    settings.report(&report, exit, &report.describe(&protected, settings.verbose), false)?;
    if !settings.json {
        print_line(&report.root)?;
    }
    settings.report_damage(exit, || report.verdict());
    Ok(exit)
}

/// Refuses to protect a sidecar.
fn check_no_sidecar(paths: &[PathBuf], settings: &Settings) -> Result<()> {
    let [path] = paths else { return Ok(()) };
    let is_named = path.extension().is_some_and(|ending| ending == ENDING) && path.is_file();
    if !is_named || !kind::starts(path)? {
        return Ok(());
    }
    let command = update_command(path, settings);
    check(&Found::Sidecar { has_command: command.is_some() }, FOUND, |name| match name {
        "path" => show_input(path),
        _ => command.clone().unwrap_or_default(),
    })
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
        let key = sign::secret_key(&args.secret)?;
        let is_there = place.symlink_metadata().is_ok();
        let found = Found::Signature {
            is_sidecar: is_same(&place, sidecar),
            are_there: is_there && sidecar.exists(),
            is_signed_anew: key.is_some(),
            is_forced: args.force,
        };
        check(&found, FOUND, |_| show_input(&place))?;
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
        let mut signer = self.args.signer.clone();
        if signer.is_empty() && root.is_none() {
            signer.extend(self.key.as_ref().map(|key| NamedSigner::of(key.signer())));
        }
        let signature = Some(self.place.clone()).filter(|place| place.exists());
        sign::trust_of_sidecar(&Trusted { signer, signature, ..Trusted::default() }, self.sidecar)
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
