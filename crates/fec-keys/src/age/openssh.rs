//! Private keys as OpenSSH writes them (its PROTOCOL.key), if the key is an Ed25519 key.

use super::error::AgeError;
use super::limits::{LONGEST_SSH_KEY, MOST_SSH_ROUNDS};
use super::passphrase::Passphrase;
use super::ssh::{KIND, SshIdentity, SshRecipient};
use aes::Aes256;
use base64ct::{Base64, Encoding};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use zeroize::Zeroizing;

pub(super) const BEGIN: &[u8] = b"-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &[u8] = b"-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";
const MALFORMED: AgeError = AgeError::Identity("the OpenSSH private key is malformed");
/// Bytes of a block, to which the encrypted part is padded.
const BLOCK_LEN: usize = 16;
/// The same without a cipher.
const PLAIN_BLOCK_LEN: usize = 8;

/// Reads a file with such a key; only white space may surround it. `ask` is called once for the passphrase, if the key
/// has one.
pub(super) fn read(
    text: &[u8],
    ask: &mut dyn FnMut() -> Option<Passphrase>,
) -> Result<SshIdentity, AgeError> {
    let data = decoded(text).ok_or(MALFORMED)?;
    let mut file = Reader(data.strip_prefix(MAGIC).ok_or(MALFORMED)?);
    let (cipher, derivation) = (file.string()?, file.string()?);
    let mut options = Reader(file.string()?);
    if file.number()? != 1 {
        return Err(AgeError::Identity("it holds several SSH keys"));
    }
    let public = file.string()?;
    let public = match Reader(public).string()? {
        kind if kind == KIND.as_bytes() => SshRecipient::from_blob(public).ok_or(MALFORMED)?,
        _ => return Err(AgeError::Identity("of SSH keys, only Ed25519 keys are supported")),
    };
    let mut secret = Zeroizing::new(file.string()?.to_vec());
    file.end()?;
    match (cipher, derivation) {
        (b"none", b"none") => {
            options.end()?;
            let identity = private(&secret, PLAIN_BLOCK_LEN)?.ok_or(MALFORMED)?;
            is_of(identity, &public)
        }
        (b"aes256-ctr", b"bcrypt") => {
            let (salt, rounds) = (options.string()?, options.number()?);
            options.end()?;
            if salt.is_empty() || rounds == 0 {
                return Err(MALFORMED);
            }
            if rounds > MOST_SSH_ROUNDS {
                return Err(AgeError::Identity("the passphrase of the SSH key takes too much work"));
            }
            let passphrase = ask().ok_or(AgeError::KeyNeedsPassphrase)?;
            let mut key = Zeroizing::new([0; 48]);
            bcrypt_pbkdf::bcrypt_pbkdf(passphrase.bytes(), salt, rounds, &mut key[..])
                .map_err(|_| MALFORMED)?;
            let mut cipher =
                Ctr128BE::<Aes256>::new_from_slices(&key[..32], &key[32..]).map_err(|_| MALFORMED)?;
            cipher.apply_keystream(&mut secret);
            is_of(private(&secret, BLOCK_LEN)?.ok_or(AgeError::WrongPassphrase)?, &public)
        }
        (_, b"bcrypt") => Err(AgeError::Identity("encrypted SSH keys are supported only with aes256-ctr")),
        _ => Err(MALFORMED),
    }
}

/// The bytes between the two lines.
fn decoded(text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let text = text.trim_ascii();
    let inner = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    if text.len() > LONGEST_SSH_KEY || !inner.ends_with(b"\n") {
        return None;
    }
    let mut digits = Zeroizing::new(String::with_capacity(inner.len()));
    digits.extend(inner.iter().filter(|&&c| c != b'\r' && c != b'\n').map(|&c| char::from(c)));
    Base64::decode_vec(&digits).ok().map(Zeroizing::new)
}

/// The key in the decrypted part. `None` if the two numbers at its beginning differ, because another key decrypted it.
fn private(bytes: &[u8], block_len: usize) -> Result<Option<SshIdentity>, AgeError> {
    let mut secret = Reader(bytes);
    if secret.number()? != secret.number()? {
        return Ok(None);
    }
    let (kind, public, pair) = (secret.string()?, secret.string()?, secret.string()?);
    let _comment = secret.string()?;
    let padding = secret.0;
    let is_padded = bytes.len().is_multiple_of(block_len)
        && padding.len() < block_len
        && padding.iter().zip(1..).all(|(&byte, number)| byte == number);
    let (seed, again) = pair.split_first_chunk::<32>().ok_or(MALFORMED)?;
    if kind != KIND.as_bytes() || public != again || !is_padded {
        return Err(MALFORMED);
    }
    let identity = SshIdentity::new(&Zeroizing::new(*seed)).ok_or(MALFORMED)?;
    if identity.recipient().blob().ends_with(public) && public.len() == 32 {
        return Ok(Some(identity));
    }
    Err(AgeError::Identity("the halves of the SSH key do not belong together"))
}

fn is_of(identity: SshIdentity, public: &SshRecipient) -> Result<SshIdentity, AgeError> {
    if identity.recipient().blob() == public.blob() {
        return Ok(identity);
    }
    Err(AgeError::Identity("the halves of the SSH key do not belong together"))
}

/// Numbers and strings as SSH writes them (RFC 4251, section 5).
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn number(&mut self) -> Result<u32, AgeError> {
        let (number, rest) = self.0.split_first_chunk().ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*number))
    }

    fn string(&mut self) -> Result<&'a [u8], AgeError> {
        let len = self.number()? as usize;
        let (string, rest) = self.0.split_at_checked(len).ok_or(MALFORMED)?;
        self.0 = rest;
        Ok(string)
    }

    fn end(&self) -> Result<(), AgeError> {
        if self.0.is_empty() { Ok(()) } else { Err(MALFORMED) }
    }
}
