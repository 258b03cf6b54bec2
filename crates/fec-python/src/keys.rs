//! Recipients and keys of sealed payloads.

use crate::errors::exception;
use fec_keys::age::{AgeError, Identity, KeyKind, Keys, Passphrase, Recipient, identities_of};
use fec_keys::cipher::Cipher;
use fecfile::error::{Action, Error};
use fecfile::seal::{SealError, SealedTo, Sealing};
use pyo3::prelude::*;
use zeroize::Zeroizing;

use crate::errors::UsageError;

/// The recipients to seal for, if any are given.
pub(crate) fn sealing(
    py: Python<'_>,
    recipients: Option<Vec<String>>,
    passphrase: Option<String>,
) -> PyResult<Option<Sealing>> {
    let recipients = recipients.unwrap_or_default();
    let to = match (recipients.is_empty(), passphrase) {
        (true, None) => return Ok(None),
        (false, None) => {
            let parsed = recipients.iter().map(|text| text.parse::<Recipient>());
            SealedTo::Recipients(parsed.collect::<Result<_, _>>().map_err(|e| failed(py, e))?)
        }
        (true, Some(text)) => SealedTo::Passphrase(as_passphrase(py, text)?),
        (false, Some(_)) => {
            return Err(UsageError::new_err(
                "a payload is sealed for recipients or with a passphrase, not both",
            ));
        }
    };
    Ok(Some(Sealing { to, cipher: Cipher::best() }))
}

/// The keys that open a sealed payload, if any are given.
pub(crate) fn keys(
    py: Python<'_>,
    identities: Option<Vec<String>>,
    passphrase: Option<String>,
) -> PyResult<Option<Keys>> {
    let identities = identities.unwrap_or_default();
    match (identities.is_empty(), passphrase) {
        (true, None) => Ok(None),
        (true, Some(text)) => Ok(Some(Keys::Passphrase(as_passphrase(py, text)?))),
        (false, None) => {
            let mut all = Vec::new();
            for text in identities.into_iter().map(Zeroizing::new) {
                all.extend(identities_of(text.as_bytes(), &mut || None).map_err(|e| failed(py, e))?);
            }
            Ok(Some(Keys::Identities(all)))
        }
        (false, Some(_)) => Err(UsageError::new_err("identities or a passphrase open a payload, not both")),
    }
}

/// A new key pair for sealing, as text: the secret identity, and its recipient, for whom payloads are sealed. `kind` is
/// `"hybrid"`, which also resists quantum computers, or `"x25519"`, which is short.
#[pyfunction]
#[pyo3(signature = (kind = "hybrid"))]
pub(crate) fn generate_identity(py: Python<'_>, kind: &str) -> PyResult<(String, String)> {
    let kind = match kind {
        "hybrid" => KeyKind::Hybrid,
        "x25519" => KeyKind::X25519,
        _ => return Err(UsageError::new_err(format!("kind is \"hybrid\" or \"x25519\", not \"{kind}\""))),
    };
    let identity = Identity::generate(kind)
        .map_err(|e| exception(py, Error::io(Action::MakeKey, fecfile::error::Place::Nowhere, e)))?;
    let text = identity.to_text().map(|text| text.to_string()).unwrap_or_default();
    Ok((text, identity.recipient().to_string()))
}

fn as_passphrase(py: Python<'_>, text: String) -> PyResult<Passphrase> {
    Passphrase::new(Zeroizing::new(text)).map_err(|e| failed(py, e))
}

fn failed(py: Python<'_>, error: AgeError) -> PyErr {
    exception(py, Error::new(Action::Seal, SealError::Age(error)))
}
