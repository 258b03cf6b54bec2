//! One signature: what is signed, and the text that it is kept as.

use super::error::SignError;
use super::id::KeyId;
use super::text;
use crate::error::{Error, Result};
use crate::names::hex;
use crate::roots::parse_root;
use blake2::{Blake2b512, Digest as _};
use fec_core::digest::Digest;
use std::path::Path;

/// Bytes of a signature's text, at most.
pub const LONGEST_SIGNATURE: usize = 4096;

/// What prehashed signatures begin with, and the old ones.
pub(super) const PREHASHED: [u8; 2] = *b"ED";
const LEGACY: [u8; 2] = *b"Ed";

/// What a field of the trusted comment begins with that names E of the metadata of a sidecar.
pub(super) const METADATA: &str = "fec sidecar 1 ";

/// The line that is signed: `fec root 1 `, the root in hexadecimal digits, and a line feed.
pub fn message(root: &Digest) -> String {
    format!("fec root 1 {}\n", hex(root))
}

/// What is really signed: BLAKE2b-512 of the line.
pub(super) fn hashed(root: &Digest) -> [u8; 64] {
    Blake2b512::digest(message(root)).into()
}

/// 64 lowercase hexadecimal digits.
fn parse_hex(digits: &str) -> Option<Digest> {
    let digest = parse_root(digits.as_bytes())?;
    (hex(&digest) == digits).then_some(digest)
}

/// A signature as minisign writes it. It says what it says: only [`Signer::has_signed`](super::Signer::has_signed) tells whether
/// that is true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    text: String,
    id: KeyId,
    pub(super) signed: [u8; 64],
    trusted: String,
    /// Over `signed` and `trusted`.
    pub(super) global: [u8; 64],
}

impl Signature {
    /// Parses the four lines of a signature, of at most [`LONGEST_SIGNATURE`] bytes.
    ///
    /// # Errors
    /// [`SignError::NotASignature`], [`SignError::Legacy`].
    pub fn parse(bytes: &[u8]) -> std::result::Result<Signature, SignError> {
        let wrong = SignError::NotASignature;
        if bytes.len() > LONGEST_SIGNATURE {
            return Err(wrong("it is longer than 4096 bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not text (UTF-8)"))?;
        let [comment, signature, trusted, global] =
            text::lines::<4>(text).ok_or(wrong("it should have four lines, without control characters"))?;
        if !text::is_untrusted(comment) {
            return Err(wrong("its first line is not a comment"));
        }
        let trusted = text::trusted(trusted).ok_or(wrong("its third line is not a trusted comment"))?;
        let signature =
            text::decoded::<74>(signature).ok_or(wrong("its second line should have 100 characters"))?;
        let (algorithm, rest) = signature.split_at(2);
        let (id, signed) = rest.split_at(8);
        if algorithm == LEGACY {
            return Err(SignError::Legacy);
        }
        if algorithm != PREHASHED {
            return Err(wrong("its algorithm is not Ed25519"));
        }
        let global = text::decoded::<64>(global).ok_or(wrong("its fourth line should have 88 characters"))?;
        Ok(Signature {
            text: text.to_owned(),
            id: KeyId(id.try_into().expect("eight bytes")),
            signed: signed.try_into().expect("64 bytes"),
            trusted: trusted.to_owned(),
            global: *global,
        })
    }

    /// Reads a signature from its file.
    ///
    /// # Errors
    /// Those of the file, and of [`Signature::parse`].
    pub fn read(path: &Path) -> Result<Signature> {
        let file =
            text::read(path, LONGEST_SIGNATURE).map_err(|e| Error::io("read the signature", path, e))?;
        let parsed = file
            .ok_or(SignError::NotASignature("it is not text of at most 4096 bytes"))
            .and_then(|text| Signature::parse(text.as_bytes()));
        parsed.map_err(|cause| Error::at("read the signature", path, cause))
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key that it names.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The comment that is signed too.
    pub fn trusted_comment(&self) -> &str {
        &self.trusted
    }

    /// E of the metadata of a sidecar, as the trusted comment names it.
    pub(super) fn metadata(&self) -> impl Iterator<Item = Digest> {
        self.trusted.split('\t').filter_map(|field| parse_hex(field.strip_prefix(METADATA)?))
    }

    /// What the second signature in it is over.
    pub(super) fn vouched_for(&self) -> Vec<u8> {
        [&self.signed[..], self.trusted.as_bytes()].concat()
    }
}
