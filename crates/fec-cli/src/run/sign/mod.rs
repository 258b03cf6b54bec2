//! Signatures over roots: the keys that a command line names, and reports on signatures.

use crate::line::sign::{NamedSigner, Secret, Trusted};
use crate::plan::{check, keys};
use crate::say::failure::{Failure, Result};
use crate::system::border::no_core_dumps;
use crate::system::passphrase;
use crate::system::progress::remove_stale_beside;
use fec_base::error::Action;
use fec_base::io::output::{Policy, check_absent, check_folder, write_text};
use fec_base::io::small;
use fec_base::names::{show, show_input};
use fec_core::digest::Digest;
use fec_keys::sign::{SecretKey, Signature, Signer, StoredKey, Trust};
use fec_sidecar::kind::signature_path;
use fecfile::{Error, ErrorKind};
use std::path::Path;
use zeroize::Zeroizing;

/// The variable with the passphrase of a secret key, for runs that can ask nobody.
pub(crate) const VARIABLE: &str = "FEC_SIGN_PASSPHRASE";
/// Most bytes of a passphrase file.
const LONGEST_PASSPHRASE: usize = 4096;

/// The secret key that the options name, if they name one. Asks for its passphrase.
pub(crate) fn secret_key(secret: &Secret) -> Result<Option<SecretKey>> {
    let Some(path) = &secret.sign else { return Ok(None) };
    no_core_dumps();
    let stored = StoredKey::read(path)?;
    let open = |passphrase: Option<&str>| {
        stored
            .open(passphrase)
            .map_err(|cause| Error::at(Action::ReadSecretKey, path.as_path(), cause).into())
    };
    if !stored.is_encrypted() {
        return open(None).map(Some);
    }
    let passphrase = match given_passphrase(secret.sign_passphrase_file.as_deref())? {
        Some(passphrase) => passphrase,
        None => {
            let help = format!("without a terminal, use --sign-passphrase-file, or set {VARIABLE}");
            passphrase::asked(&format!("passphrase of {}: ", show(path)), &help)?
        }
    };
    open(Some(&passphrase)).map(Some)
}

/// The passphrase in the file, or else in the variable.
pub(crate) fn given_passphrase(file: Option<&Path>) -> Result<Option<Zeroizing<String>>> {
    let Some(path) = file else {
        return passphrase::of_variable(VARIABLE, "put it into a file, for --sign-passphrase-file");
    };
    let bytes = small::read(path, LONGEST_PASSPHRASE);
    let bytes = bytes.map_err(|e| Failure::io(Action::ReadPassphrase, path, e))?;
    keys::passphrase_in(path, bytes.as_ref().map(|bytes| bytes.as_slice())).map(Some)
}

/// The keys whose signatures count, if any were named.
pub(crate) fn trust(trusted: &Trusted) -> Result<Option<Trust>> {
    if trusted.signer.is_empty() {
        return Ok(None);
    }
    let detached = trusted.signature.iter().map(|path| named(trusted, path)).collect::<Result<_>>()?;
    Ok(Some(Trust { signers: keys(&trusted.signer), detached }))
}

/// The public keys that were named.
pub(crate) fn keys(named: &[NamedSigner]) -> Vec<Signer> {
    named.iter().map(|named| named.key.clone()).collect()
}

/// The signature of --signature, read at the first call.
fn named(trusted: &Trusted, path: &Path) -> Result<Signature> {
    if let Some(signature) = trusted.read.get() {
        return Ok(signature.clone());
    }
    let signature = Signature::read(path)?;
    Ok(trusted.read.get_or_init(|| signature).clone())
}

/// Like [`trust`], but for a sidecar. Its signature is the file beside it, unless another is named.
pub(crate) fn trust_of_sidecar(trusted: &Trusted, sidecar: &Path) -> Result<Option<Trust>> {
    if trusted.signer.is_empty() {
        return Ok(None);
    }
    if trusted.signature.is_some() {
        return trust(trusted);
    }
    let place = signature_path(sidecar);
    check_file(&place)?;
    let detached = match Signature::read(&place) {
        Ok(signature) => vec![signature],
        // A missing signature is reported later, as an unsigned root.
        Err(Error { kind: ErrorKind::Io(e), .. }) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(Trust { signers: keys(&trusted.signer), detached }))
}

/// Refuses a signature path that nobody named and that is no regular file: reading a FIFO there would never end.
pub(crate) fn check_file(place: &Path) -> Result<()> {
    let is_other = place.metadata().is_ok_and(|meta| !meta.is_file());
    check(&is_other, keys::SIGNATURE, |_| show_input(place))
}

/// A signature that goes to its own file.
pub(crate) struct Detached<'a> {
    pub(crate) key: &'a SecretKey,
    pub(crate) path: &'a Path,
    pub(crate) policy: Policy,
}

impl Detached<'_> {
    /// Refuses a file that cannot be made, before any work.
    pub(crate) fn check(&self) -> Result<()> {
        check_absent(self.path, self.policy)?;
        Ok(check_folder(self.path)?)
    }

    /// Writes the signature over a root.
    pub(crate) fn write(&self, root: &Digest) -> Result<()> {
        self.put(&self.key.sign_root(root))
    }

    /// Writes the signature over the root of a sidecar. It also covers E of the metadata, if the metadata is not
    /// sealed.
    pub(crate) fn write_sidecar(&self, root: &Digest, metadata: Option<&Digest>) -> Result<()> {
        self.put(&match metadata {
            Some(metadata) => self.key.sign_sidecar(root, metadata),
            None => self.key.sign_root(root),
        })
    }

    fn put(&self, signature: &Signature) -> Result<()> {
        remove_stale_beside(self.path);
        write_text(self.path, signature.text(), self.policy).map_err(|e| {
            Failure::from(e)
                .help("all but the signature is complete; sign it with minisign, or do it again with -f")
        })
    }
}
