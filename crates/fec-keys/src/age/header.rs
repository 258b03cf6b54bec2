//! The header of an age file: text that holds the file key once for each recipient (C2SP age.md, "Header").
//!
//! All stanzas of known kinds are checked when the header is read, whoever has their keys. Others are skipped, as the
//! specification asks.

use super::error::AgeError;
use super::limits::{MOST_ARGUMENTS, MOST_STANZAS, MOST_WORK};
use super::primitives::{BODY_LEN, FileKey, hkdf};
use base64ct::{Base64Unpadded, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const INTRODUCTION: &str = "age-encryption.org/v1\n";
const COLUMNS: usize = 64;
const BYTES_PER_LINE: usize = COLUMNS / 4 * 3;
const MAC_LEN: usize = 32;
/// Most bytes of a header, as in Go's age.
const LONGEST_HEADER: usize = 2 << 20;

/// Bytes of an encapsulated key of a post-quantum recipient: a ciphertext of ML-KEM-768 and a point.
pub(super) const HYBRID_SHARE_LEN: usize = 1088 + 32;
/// Bytes of a passphrase's salt.
pub(super) const SALT_LEN: usize = 16;
/// Bytes that identify an SSH key.
pub(super) const SSH_TAG_LEN: usize = 4;

/// The kind of key that a stanza is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StanzaKind {
    /// An X25519 key.
    X25519,
    /// A hybrid post-quantum key, of ML-KEM-768 and X25519.
    Hybrid,
    /// An Ed25519 key of SSH.
    SshEd25519,
    /// An RSA key of SSH, which is not supported here.
    SshRsa,
    /// A passphrase.
    Passphrase,
    /// Another kind, with its name in the file: printable ASCII, at most 64 characters.
    Other(String),
}

/// A file key for one recipient of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sealed {
    X25519 { share: [u8; 32] },
    Hybrid { share: Box<[u8; HYBRID_SHARE_LEN]> },
    SshEd25519 { tag: [u8; SSH_TAG_LEN], share: [u8; 32] },
    Passphrase { salt: [u8; SALT_LEN], log_n: u8 },
}

/// A header's entry for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stanza {
    Known { sealed: Sealed, body: [u8; BODY_LEN] },
    Other(StanzaKind),
}

/// A header, and its bytes.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) stanzas: Vec<Stanza>,
    authenticated: &'a [u8],
    mac: [u8; MAC_LEN],
    pub(super) payload: &'a [u8],
}

impl Stanza {
    pub(super) fn kind(&self) -> StanzaKind {
        match self {
            Stanza::Other(kind) => kind.clone(),
            Stanza::Known { sealed, .. } => match sealed {
                Sealed::X25519 { .. } => StanzaKind::X25519,
                Sealed::Hybrid { .. } => StanzaKind::Hybrid,
                Sealed::SshEd25519 { .. } => StanzaKind::SshEd25519,
                Sealed::Passphrase { .. } => StanzaKind::Passphrase,
            },
        }
    }
}

impl<'a> Header<'a> {
    /// Reads the header that a file begins with.
    ///
    /// # Errors
    /// [`AgeError::Header`] for a header that is not well-formed, [`AgeError::MuchWork`] for one with too high a work
    /// factor.
    pub(super) fn read(file: &'a [u8]) -> Result<Header<'a>, AgeError> {
        let mut lines = Lines::after_introduction(file)?;
        let mut stanzas = Vec::new();
        let (authenticated, mac) = loop {
            let start = lines.at;
            let line = lines.next()?;
            if let Some(mac) = line.strip_prefix("---") {
                let mac = mac.strip_prefix(' ').and_then(exactly);
                break (&file[..start + 3], mac.ok_or(AgeError::Header("its last line is malformed"))?);
            }
            if stanzas.len() == MOST_STANZAS {
                return Err(AgeError::Header("it has more stanzas than are allowed"));
            }
            stanzas.push(stanza(line, &mut lines)?);
        };
        if stanzas.is_empty() {
            return Err(AgeError::Header("it has no stanza"));
        }
        if stanzas.len() > 1 && stanzas.iter().any(|stanza| stanza.kind() == StanzaKind::Passphrase) {
            return Err(AgeError::Header("a passphrase is not its only stanza"));
        }
        Ok(Header { stanzas, authenticated, mac, payload: &file[lines.at..] })
    }

    /// Tells whether this key made the header, and nobody has changed it since. The comparison takes the same time
    /// wherever they differ.
    pub(super) fn is_of(&self, file_key: &FileKey) -> bool {
        mac_of(file_key, self.authenticated).verify_slice(&self.mac).is_ok()
    }
}

/// The bytes of a header with these stanzas.
pub(super) fn write(file_key: &FileKey, stanzas: &[(Sealed, [u8; BODY_LEN])]) -> Vec<u8> {
    let base64 = |bytes: &[u8]| Base64Unpadded::encode_string(bytes);
    let mut text = String::from(INTRODUCTION);
    for (sealed, body) in stanzas {
        let arguments = match sealed {
            Sealed::X25519 { share } => format!("X25519 {}", base64(share)),
            Sealed::Hybrid { share } => format!("mlkem768x25519 {}", base64(&share[..])),
            Sealed::SshEd25519 { tag, share } => format!("ssh-ed25519 {} {}", base64(tag), base64(share)),
            Sealed::Passphrase { salt, log_n } => format!("scrypt {} {log_n}", base64(salt)),
        };
        // The body is shorter than a line, and takes a single one.
        text += &format!("-> {arguments}\n{}\n", base64(body));
    }
    text += "---";
    let mac = mac_of(file_key, text.as_bytes()).finalize().into_bytes();
    text += &format!(" {}\n", base64(&mac));
    text.into_bytes()
}

fn mac_of(file_key: &FileKey, header: &[u8]) -> Hmac<Sha256> {
    let key = hkdf(&file_key[..], &[], b"header");
    let mut mac = Hmac::new_from_slice(&key[..]).expect("a key of any length is allowed");
    mac.update(header);
    mac
}

/// The lines of a header, each of which ends in a newline and is printable ASCII.
struct Lines<'a> {
    file: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn after_introduction(file: &'a [u8]) -> Result<Lines<'a>, AgeError> {
        if file.starts_with(INTRODUCTION.as_bytes()) {
            return Ok(Lines { file, at: INTRODUCTION.len() });
        }
        Err(AgeError::Header(if file.trim_ascii_start().starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----") {
            "it is armored, and only binary files are read (to convert it, decrypt it with age and encrypt it again without -a)"
        } else if file.starts_with(b"age-encryption.org/") {
            "its version of the format is not v1"
        } else {
            "it does not begin like one"
        }))
    }

    fn next(&mut self) -> Result<&'a str, AgeError> {
        let rest = &self.file[self.at..];
        let rest = &rest[..rest.len().min(LONGEST_HEADER.saturating_sub(self.at))];
        let len = memchr::memchr(b'\n', rest).ok_or(AgeError::Header("its header has no end"))?;
        self.at += len + 1;
        match std::str::from_utf8(&rest[..len]) {
            Ok(line) if line.bytes().all(|c| matches!(c, b' '..=b'~')) => Ok(line),
            _ => Err(AgeError::Header("its header has characters that are not printable ASCII")),
        }
    }
}

fn stanza(line: &str, lines: &mut Lines) -> Result<Stanza, AgeError> {
    let malformed = AgeError::Header("a stanza is malformed");
    let Some(arguments) = line.strip_prefix("-> ") else { return Err(malformed) };
    let arguments: Vec<&str> = arguments.split(' ').take(MOST_ARGUMENTS + 2).collect();
    if arguments.iter().any(|argument| argument.is_empty()) || arguments.len() > MOST_ARGUMENTS + 1 {
        return Err(malformed);
    }
    let body = body(lines)?;
    let sealed = match arguments[..] {
        ["X25519", share] => exactly(share).map(|share| Sealed::X25519 { share }),
        ["mlkem768x25519", share] => exactly(share).map(|share| Sealed::Hybrid { share: Box::new(share) }),
        ["ssh-ed25519", tag, share] => match (exactly(tag), exactly(share)) {
            (Some(tag), Some(share)) => Some(Sealed::SshEd25519 { tag, share }),
            _ => None,
        },
        ["scrypt", salt, work] => match (exactly(salt), decimal(work)) {
            (_, Some(log_n)) if log_n > MOST_WORK => return Err(AgeError::MuchWork(log_n)),
            (Some(salt), Some(log_n)) => Some(Sealed::Passphrase { salt, log_n }),
            _ => None,
        },
        ["X25519" | "mlkem768x25519" | "ssh-ed25519" | "scrypt", ..] => None,
        ["ssh-rsa", ..] => return Ok(Stanza::Other(StanzaKind::SshRsa)),
        _ => return Ok(Stanza::Other(StanzaKind::Other(arguments[0].chars().take(64).collect()))),
    };
    match (sealed, body.try_into()) {
        (Some(sealed), Ok(body)) => Ok(Stanza::Known { sealed, body }),
        _ => Err(malformed),
    }
}

/// The body of a stanza: full lines, and a shorter one.
fn body(lines: &mut Lines) -> Result<Vec<u8>, AgeError> {
    let mut body = Vec::new();
    loop {
        let line = lines.next()?;
        let bytes = if line.len() <= COLUMNS { base64(line) } else { None };
        body.extend_from_slice(
            &bytes.as_ref().ok_or(AgeError::Header("the body of a stanza is malformed"))?[..],
        );
        if line.len() < COLUMNS {
            return Ok(body);
        }
        debug_assert_eq!(bytes.map(|bytes| bytes.len()), Some(BYTES_PER_LINE));
    }
}

/// The bytes of a text in base64 without padding, if it is their canonical text.
fn base64(text: &str) -> Option<Vec<u8>> {
    Base64Unpadded::decode_vec(text).ok()
}

fn exactly<const N: usize>(text: &str) -> Option<[u8; N]> {
    base64(text)?.try_into().ok()
}

/// A number of a stanza: digits alone, without a leading zero. Numbers above 255 become 255.
fn decimal(text: &str) -> Option<u8> {
    let is_canonical = text.bytes().all(|c| c.is_ascii_digit()) && !text.starts_with('0') && !text.is_empty();
    is_canonical.then(|| text.parse().unwrap_or(u8::MAX))
}
