//! A signature: the signed bytes, and the text that stores it.

use super::error::SignError;
use super::id::KeyId;
use super::ml_dsa;
use super::text;
use blake2::{Blake2b512, Digest as _};
use fec_base::error::{Action, Error, Result};
use fec_base::names::hex;
use fec_base::roots::parse_root;
use fec_core::digest::Digest;
use std::path::Path;
use zeroize::Zeroizing;

/// The most bytes of a signature's text.
pub const LONGEST_SIGNATURE: usize = 8192;

/// The first bytes of prehashed signatures, and of old ones.
pub(super) const PREHASHED: [u8; 2] = *b"ED";
const LEGACY: [u8; 2] = *b"Ed";

/// The start of the field of the trusted comment that names E of the metadata of a sidecar.
pub(super) const METADATA: &str = "fec sidecar 1 ";

/// The signed line: `fec root 1 `, the root in hexadecimal digits, and a line feed.
pub fn message(root: &Digest) -> String {
    format!("fec root 1 {}\n", hex(root))
}

/// The text that ML-DSA-65 signs: the line, and the trusted comment.
pub(super) fn post_quantum_message(root: &Digest, trusted: &str) -> String {
    message(root) + trusted
}

/// The bytes that Ed25519 signs: BLAKE2b-512 of the line.
pub(super) fn hashed(root: &Digest) -> [u8; 64] {
    Blake2b512::digest(message(root)).into()
}

/// The digest in 64 lowercase hexadecimal digits.
fn parse_hex(digits: &str) -> Option<Digest> {
    let digest = parse_root(digits.as_bytes())?;
    (hex(&digest) == digits).then_some(digest)
}

/// A signature in minisign's form. Its claims are unchecked: only [`Signer::has_signed`](super::Signer::has_signed)
/// tells whether they are true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature {
    text: String,
    id: KeyId,
    pub(super) signed: [u8; 64],
    trusted: String,
    /// The signature over `signed` and `trusted`.
    pub(super) global: [u8; 64],
}

impl Signature {
    /// Parses the lines of a signature, of at most [`LONGEST_SIGNATURE`] bytes: four, and a fifth with the signature of
    /// ML-DSA-65, which hybrid keys make.
    ///
    /// # Errors
    /// [`SignError::NotASignature`], [`SignError::Legacy`].
    pub fn parse(bytes: &[u8]) -> std::result::Result<Signature, SignError> {
        let wrong = SignError::NotASignature;
        if bytes.len() > LONGEST_SIGNATURE {
            return Err(wrong("it is longer than 8192 bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| wrong("it is not text (UTF-8)"))?;
        let four = text::lines::<4>(text).map(|four| (four, None));
        let five = || text::lines::<5>(text).map(|[a, b, c, d, fifth]| ([a, b, c, d], Some(fifth)));
        let ([comment, signature, trusted, global], fifth) = four
            .or_else(five)
            .ok_or(wrong("it should have four lines, or five, without control characters"))?;
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
        let is_signature = |line| text::decoded::<{ ml_dsa::SIGNATURE_LEN }>(line).is_some();
        if !fifth.is_none_or(is_signature) {
            return Err(wrong("its fifth line should have 4412 characters"));
        }
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
            text::read(path, LONGEST_SIGNATURE).map_err(|e| Error::io(Action::ReadSignature, path, e))?;
        let parsed = file
            .ok_or(SignError::NotASignature("it is not text of at most 8192 bytes"))
            .and_then(|text| Signature::parse(text.as_bytes()));
        parsed.map_err(|cause| Error::at(Action::ReadSignature, path, cause))
    }

    /// The signature's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key that the signature names.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The comment that the second signature covers.
    pub fn trusted_comment(&self) -> &str {
        &self.trusted
    }

    /// E of the metadata of a sidecar, from the fields of the trusted comment.
    pub(super) fn metadata(&self) -> impl Iterator<Item = Digest> {
        self.trusted.split('\t').filter_map(|field| parse_hex(field.strip_prefix(METADATA)?))
    }

    /// The signature of ML-DSA-65, which covers [`message`] and the trusted comment.
    pub(super) fn post_quantum(&self) -> Option<Zeroizing<ml_dsa::Signature>> {
        text::decoded(self.text.lines().nth(4)?)
    }

    /// The bytes that the second signature covers.
    pub(super) fn vouched_for(&self) -> Vec<u8> {
        [&self.signed[..], self.trusted.as_bytes()].concat()
    }
}
