//! The options that prove and open what a command line names, for commands in advice: one that drops them would believe
//! what is not proved, or look at another thing.

use crate::line;
use crate::line::seal::Open;
use crate::line::sign::Trusted;
use crate::run::target::quoted;
use crate::settings::Settings;
use fec_base::names::hex;
use fec_core::digest::Digest;
use fec_sidecar::kind;
use fecfile::{Archive, Input};
use std::path::{Path, PathBuf};

/// The options of a command line that prove and open.
#[derive(Clone, Copy)]
pub(crate) struct Proofs<'a> {
    root: Option<Digest>,
    trusted: &'a Trusted,
    open: &'a Open,
    /// The folder of the files of a sidecar.
    base: Option<&'a Path>,
    /// The options of a repair, which say what it writes.
    repair: Option<&'a line::Repair>,
    settings: &'a Settings,
}

impl<'a> Proofs<'a> {
    pub(crate) fn of_decode(args: &'a line::Decode, settings: &'a Settings) -> Proofs<'a> {
        let (trusted, open) = (&args.trusted, &args.open);
        Proofs { root: args.root, trusted, open, base: None, repair: None, settings }
    }

    pub(crate) fn of_verify(args: &'a line::Verify, settings: &'a Settings) -> Proofs<'a> {
        let (trusted, open, base) = (&args.trusted, &args.open, args.base.as_deref());
        Proofs { root: args.root, trusted, open, base, repair: None, settings }
    }

    pub(crate) fn of_repair(args: &'a line::Repair, settings: &'a Settings) -> Proofs<'a> {
        let (trusted, open, base) = (&args.trusted, &args.open, args.base.as_deref());
        Proofs { root: args.root, trusted, open, base, repair: Some(args), settings }
    }

    /// The same options with another root: that of a line of a list.
    pub(crate) fn with_root(self, root: Option<Digest>) -> Proofs<'a> {
        Proofs { root, ..self }
    }

    /// The same options with the folder around the one that was named as the base, if an update has to name that one.
    #[cfg(unix)]
    pub(crate) fn around(self, base: &'a fec_base::io::base::Base) -> Proofs<'a> {
        match self.base {
            Some(_) if !base.named().is_empty() => Proofs { base: Some(base.path()), ..self },
            _ => self,
        }
    }

    /// The command for a file, with the options that fit the file: the root if the file has it, and the keys if the
    /// file is sealed.
    pub(crate) fn command(&self, command: &str, path: &Path) -> String {
        let root = self.root.filter(|root| has_root(path, *root, self.settings));
        let is_sealed = is_sealed(path, root, self.settings);
        let how = if command == "repair" { self.how(&[]) } else { String::new() };
        format!("fec {command}{how} {}{}", quoted(path), self.with_root(root).options(is_sealed))
    }

    /// The options for a file that has the root.
    pub(crate) fn options(&self, is_sealed: bool) -> String {
        let root = self.root.map(|root| format!(" --root {}", hex(&root))).unwrap_or_default();
        let base = self.base.map(|base| format!(" --base {}", quoted(base))).unwrap_or_default();
        let keys = if is_sealed { self.keys() } else { String::new() };
        format!("{root}{}{base}{keys}", self.signers())
    }

    /// The options that say what a repair writes, and where, without some of them.
    pub(crate) fn how(&self, without: &[&str]) -> String {
        let Some(args) = self.repair else { return String::new() };
        let file = |option: &str, path: &Option<PathBuf>| {
            path.as_ref().map(|path| format!(" {option} {}", quoted(path))).unwrap_or_default()
        };
        let flags = [("--revert", args.revert), ("--partial", args.partial), ("--dry-run", args.dry_run)];
        let flags = flags.iter().filter(|(flag, is_given)| *is_given && !without.contains(flag));
        let flags: String = flags.map(|(flag, _)| format!(" {flag}")).collect();
        let from: String =
            args.from.urls.iter().map(|url| format!(" --from {}", quoted(Path::new(url)))).collect();
        flags + &file("--undo", &args.undo) + &file("-o", &args.output) + &from
    }

    /// Tells whether keys are files, rather than a passphrase.
    pub(crate) fn has_identity(&self) -> bool {
        !self.open.identity.is_empty()
    }

    /// The file with the signature, if one was named.
    pub(crate) fn signature(&self) -> Option<&'a Path> {
        self.trusted.signature.as_deref()
    }

    /// The command for a list of roots.
    pub(crate) fn command_of_list(&self, list: &Path) -> String {
        format!("fec verify --roots {}{}{}", quoted(list), self.signers(), self.keys())
    }

    /// The file with the root that was asked for. Without a root, the first file.
    pub(crate) fn meant<'p>(&self, paths: &'p [PathBuf]) -> Option<&'p Path> {
        let is_it = |path: &&PathBuf| self.root.is_none_or(|root| has_root(path, root, self.settings));
        paths.iter().find(is_it).map(PathBuf::as_path)
    }

    fn signers(&self) -> String {
        let signers =
            self.trusted.signer.iter().map(|named| format!(" --signer {}", quoted(Path::new(&named.word))));
        let signature = self.trusted.signature.iter().map(|path| format!(" --signature {}", quoted(path)));
        signers.chain(signature).collect()
    }

    fn keys(&self) -> String {
        let files = self.open.identity.iter().map(|path| format!(" -i {}", quoted(path)));
        files.chain(self.open.passphrase.then(|| " --passphrase".to_owned())).collect()
    }
}

/// Tells whether a root is that of a sidecar, of the container that a sidecar is sealed in, or of another container.
pub(crate) fn has_root(path: &Path, root: Digest, settings: &Settings) -> bool {
    #[cfg(unix)]
    let is_sidecar = || fec_sidecar::Sidecar::open(path, Some(root), &settings.library).is_ok();
    // The record of a sidecar is read where its files can be.
    #[cfg(not(unix))]
    let is_sidecar = || false;
    match kind::starts(path).unwrap_or(false) {
        true => is_sidecar(),
        false => archive(path, Some(root), settings).is_some() || is_sidecar(),
    }
}

/// Tells whether a file holds something sealed.
fn is_sealed(path: &Path, root: Option<Digest>, settings: &Settings) -> bool {
    archive(path, root, settings).is_some_and(|archive| archive.sealed_kind().is_some())
}

/// The root of the container at `path`, if there is one alone.
pub(crate) fn container_root(path: &Path, settings: &Settings) -> Option<Digest> {
    archive(path, None, settings)?.root()
}

fn archive(path: &Path, root: Option<Digest>, settings: &Settings) -> Option<Archive> {
    let context = settings.context(&fec_base::context::Silent);
    Archive::open(&Input::of_paths(&[path.to_path_buf()]).ok()?, root, &context).ok()
}
