//! The payload: chunks of 64 KiB, each sealed separately. The last one is marked as such (C2SP age.md, "Payload").

use super::error::{AgeError, Part};
use super::primitives::{FileKey, Secret, TAG_LEN, decrypt, encrypt, hkdf, random};
use zeroize::Zeroizing;

/// Bytes of plaintext in every chunk but the last.
const CHUNK_LEN: usize = 64 << 10;
/// Bytes of the nonce that the payload begins with.
const NONCE_LEN: usize = 16;

/// Appends the payload of this plaintext.
pub(super) fn write(file_key: &FileKey, plaintext: &[u8], file: &mut Vec<u8>) -> Result<(), AgeError> {
    let nonce = random::<NONCE_LEN>()?;
    let key = payload_key(file_key, &nonce);
    let chunks = plaintext.len().div_ceil(CHUNK_LEN).max(1);
    // The memory is reserved first: growing would leave copies of plaintext behind.
    file.reserve(NONCE_LEN + plaintext.len() + chunks * TAG_LEN);
    file.extend_from_slice(&nonce[..]);
    for at in 0..chunks {
        let chunk = &plaintext[at * CHUNK_LEN..plaintext.len().min((at + 1) * CHUNK_LEN)];
        let start = file.len();
        file.extend_from_slice(chunk);
        let tag = encrypt(&key, &chunk_nonce(at, at + 1 == chunks), &mut file[start..]);
        file.extend_from_slice(&tag);
    }
    Ok(())
}

/// All plaintext of a payload.
///
/// # Errors
/// [`AgeError::Header`] if the payload ends within its nonce; [`AgeError::Damaged`] if any byte is changed, missing, or
/// too much.
pub(super) fn read(file_key: &FileKey, payload: &[u8]) -> Result<Zeroizing<Vec<u8>>, AgeError> {
    let (nonce, sealed) =
        payload.split_first_chunk().ok_or(AgeError::Header("it ends before the payload"))?;
    let key = payload_key(file_key, nonce);
    let damaged = || AgeError::Damaged(Part::Payload);
    let chunks = sealed.len().div_ceil(CHUNK_LEN + TAG_LEN).max(1);
    let mut plaintext = Zeroizing::new(Vec::with_capacity(sealed.len()));
    for at in 0..chunks {
        let end = sealed.len().min((at + 1) * (CHUNK_LEN + TAG_LEN));
        let (data, tag) = sealed[at * (CHUNK_LEN + TAG_LEN)..end].split_last_chunk().ok_or_else(damaged)?;
        let start = plaintext.len();
        plaintext.extend_from_slice(data);
        let is_empty_end = at > 0 && data.is_empty();
        let nonce = chunk_nonce(at, at + 1 == chunks);
        if is_empty_end || !decrypt(&key, &nonce, &mut plaintext[start..], tag) {
            return Err(damaged());
        }
    }
    Ok(plaintext)
}

fn payload_key(file_key: &FileKey, nonce: &[u8; NONCE_LEN]) -> Secret {
    hkdf(&file_key[..], nonce, b"payload")
}

/// The number of the chunk, and whether it is the last.
fn chunk_nonce(number: usize, is_last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&(number as u64).to_be_bytes());
    nonce[11] = u8::from(is_last);
    nonce
}
