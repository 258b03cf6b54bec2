//! The seal of a payload: an entry of the meta with the data that opens it (format specification, section 20).
//!
//! This module has only its layout and the lengths of chunks; keys and ciphers are elsewhere.

use super::{array_at, is_zero, u32_at};
use crate::error::FormatError;

/// Bytes of plaintext in each chunk but the last.
pub const CHUNK: usize = 65_536;
/// Bytes of the tag that each chunk gets.
pub const TAG: usize = 16;
/// Bytes of a sealed chunk that is not the last.
pub const SEALED_CHUNK: usize = CHUNK + TAG;

/// Bytes in front of the age file.
const FRONT: usize = 8;
/// Bytes of the field of a seal that replaces another.
const AGAIN: usize = 64;
/// The unit to which the private part is padded before it is encrypted.
const PRIVATE_UNIT: usize = 256;
/// The most bytes of an entry: the limit of the meta's u16, less room for entries of other types.
pub const MAX_SEAL: usize = 65_000;

/// The kind of a sealed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedKind {
    /// The bytes that the caller gave.
    Payload,
    /// A sidecar (section 17).
    Sidecar,
}

/// The field of a seal that replaces another, behind the age file (version 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// SHA-256 of the first seal of this payload, with which its chunks are authentic.
    pub first: [u8; 32],
    /// A random number, by which the key of the private part differs from that of other seals of this payload.
    pub salt: [u8; 32],
}

/// The parts of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal<'a> {
    /// The number of the cipher: 1 AES-256-GCM, 2 ChaCha20-Poly1305.
    pub cipher: u8,
    /// The kind of the payload.
    pub content: SealedKind,
    /// The age file whose plaintext is the content key.
    pub age_file: &'a [u8],
    /// Only in a seal that replaces another.
    pub again: Option<Again>,
    /// The private part, encrypted.
    pub private: &'a [u8],
    /// The bytes in front of the private part, authentic with it.
    pub public: &'a [u8],
}

impl<'a> Seal<'a> {
    /// Parses the entry.
    ///
    /// # Errors
    /// [`FormatError::Limit`] for a version, cipher or content that this build does not know; [`FormatError::Meta`] for
    /// the rest.
    pub fn parse(bytes: &'a [u8]) -> Result<Seal<'a>, FormatError> {
        if bytes.len() > MAX_SEAL {
            return Err(FormatError::Meta("the seal is longer than 65,000 bytes"));
        }
        let too_short = || FormatError::Meta("the seal is cut short");
        let Some((front, rest)) = bytes.split_at_checked(FRONT) else { return Err(too_short()) };
        let known = |what, value: u8, limit: u8| match value {
            value if value > limit => {
                Err(FormatError::Limit { what, value: value.into(), limit: limit.into() })
            }
            value => Ok(value),
        };
        let version = known("the version of the seal", front[0], 2)?;
        if version == 0 {
            return Err(FormatError::Meta("the seal has no version"));
        }
        let cipher = known("the cipher's number", front[1], 2)?;
        if cipher == 0 {
            return Err(FormatError::Meta("the seal names no cipher"));
        }
        let content = match known("the number of what is sealed", front[2], 1)? {
            0 => SealedKind::Payload,
            _ => SealedKind::Sidecar,
        };
        if !is_zero(&front[3..4]) {
            return Err(FormatError::Meta("a byte of the seal is not zero"));
        }
        if version == 2 && content == SealedKind::Sidecar {
            return Err(FormatError::Meta("the seal of a sidecar replaces another"));
        }
        let age_len = u32_at(front, 4) as usize;
        let (age_file, rest) = rest.split_at_checked(age_len).ok_or_else(too_short)?;
        let (again, private) = match version {
            1 => (None, rest),
            _ => {
                let (again, private) = rest.split_first_chunk::<AGAIN>().ok_or_else(too_short)?;
                (Some(Again { first: array_at(again, 0), salt: array_at(again, 32) }), private)
            }
        };
        let is_padded = |len: usize| len > 0 && len.is_multiple_of(PRIVATE_UNIT);
        if !private.len().checked_sub(TAG).is_some_and(is_padded) {
            return Err(FormatError::Meta("the private part of the seal has another length"));
        }
        let public = &bytes[..bytes.len() - private.len()];
        Ok(Seal { cipher, content, age_file, again, private, public })
    }

    /// The entry without its private part: of the first seal of a payload, or of one that replaces it.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when the age file leaves no room for one of [`padded`] bytes in the meta.
    pub fn public(
        cipher: u8,
        content: SealedKind,
        age_file: &[u8],
        again: Option<&Again>,
    ) -> Result<Vec<u8>, FormatError> {
        let front = FRONT + again.map_or(0, |_| AGAIN);
        let (value, limit) = ((front + age_file.len() + 2 * PRIVATE_UNIT + TAG) as u128, MAX_SEAL as u128);
        if value > limit {
            return Err(FormatError::Limit { what: "the length of the seal", value, limit });
        }
        let content = match content {
            SealedKind::Payload => 0,
            SealedKind::Sidecar => 1,
        };
        let mut out = vec![1 + u8::from(again.is_some()), cipher, content, 0];
        out.extend_from_slice(&(age_file.len() as u32).to_le_bytes());
        out.extend_from_slice(age_file);
        if let Some(Again { first, salt }) = again {
            out.extend_from_slice(first);
            out.extend_from_slice(salt);
        }
        Ok(out)
    }
}

/// The private part before it is encrypted: `u16 length ‖ meta bytes ‖ zeros`.
///
/// # Panics
/// If `meta` has more than 510 bytes, which a name alone never has.
pub fn padded(meta: &[u8]) -> Vec<u8> {
    assert!(meta.len() + 2 <= 2 * PRIVATE_UNIT);
    let mut out = (meta.len() as u16).to_le_bytes().to_vec();
    out.extend_from_slice(meta);
    out.resize(out.len().next_multiple_of(PRIVATE_UNIT), 0);
    out
}

/// The meta bytes in the private part after it was decrypted.
///
/// # Errors
/// [`FormatError::Meta`] when they are not as [`padded`] makes them.
pub fn unpadded(private: &[u8]) -> Result<&[u8], FormatError> {
    let wrong = FormatError::Meta("the private part of the seal is not padded as it has to be");
    let Some(([low, high], rest)) = private.split_first_chunk::<2>() else { return Err(wrong) };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let is_whole = private.len().is_multiple_of(PRIVATE_UNIT);
    match rest.split_at_checked(len) {
        Some((meta, zeros)) if is_whole && is_zero(zeros) && zeros.len() < PRIVATE_UNIT => Ok(meta),
        _ => Err(wrong),
    }
}

/// Bytes of the sealed payload for `len` bytes of plaintext; an empty one has one chunk.
pub fn sealed_len(len: u64) -> u64 {
    len + len.div_ceil(CHUNK as u64).max(1) * TAG as u64
}

/// Bytes of plaintext in a sealed payload; `None` for an impossible length.
pub fn plain_len(sealed: u64) -> Option<u64> {
    let chunks = sealed.div_ceil(SEALED_CHUNK as u64).max(1);
    let plain = sealed.checked_sub(chunks * TAG as u64)?;
    (sealed_len(plain) == sealed).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_lead_there_and_back() {
        let (chunk, tag) = (CHUNK as u64, TAG as u64);
        let cases = [
            (0, tag),
            (1, 1 + tag),
            (chunk, chunk + tag),
            (chunk + 1, chunk + 1 + 2 * tag),
            (2 * chunk, 2 * chunk + 2 * tag),
        ];
        for (plain, sealed) in cases {
            assert_eq!(sealed_len(plain), sealed);
            assert_eq!(plain_len(sealed), Some(plain));
        }
        for wrong in [0, 15, chunk + tag + 1, chunk + 2 * tag, 2 * chunk + 3 * tag] {
            assert_eq!(plain_len(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_not_as_it_is_written_is_refused() {
        let mut entry = Seal::public(2, SealedKind::Sidecar, b"age", None).expect("it fits");
        let public = entry.len();
        entry.extend_from_slice(&[7; 256 + TAG]);
        let seal = Seal::parse(&entry).expect("it is well formed");
        assert_eq!((seal.cipher, seal.content, seal.age_file), (2, SealedKind::Sidecar, &b"age"[..]));
        assert_eq!((seal.private.len(), seal.public), (256 + TAG, &entry[..public]));
        for len in 0..entry.len() {
            assert!(Seal::parse(&entry[..len]).is_err(), "{len}");
        }
        for (at, value, is_refused) in [
            (0, 0, false),
            (0, 2, false),
            (0, 3, true),
            (1, 0, false),
            (1, 3, true),
            (2, 2, true),
            (3, 1, false),
            (7, 1, false),
        ] {
            let mut changed = entry.clone();
            changed[at] = value;
            let error = Seal::parse(&changed).expect_err("it is not as it is written");
            assert_eq!(matches!(error, FormatError::Limit { .. }), is_refused, "byte {at}: {error}");
        }
        assert!(Seal::public(1, SealedKind::Payload, &vec![0; MAX_SEAL], None).is_err());
    }

    #[test]
    fn a_seal_that_replaces_another_says_which_was_first() {
        let again = Again { first: [3; 32], salt: [4; 32] };
        let mut entry = Seal::public(1, SealedKind::Payload, b"age", Some(&again)).expect("it fits");
        let public = entry.len();
        entry.extend_from_slice(&[7; 256 + TAG]);
        let seal = Seal::parse(&entry).expect("it is well formed");
        assert_eq!((seal.again, seal.age_file, seal.public), (Some(again), &b"age"[..], &entry[..public]));
        assert_eq!(seal.private.len(), 256 + TAG);
        for len in 0..entry.len() {
            assert!(Seal::parse(&entry[..len]).is_err(), "{len}");
        }
        for (at, value) in [(0, 1), (2, 1)] {
            let mut changed = entry.clone();
            changed[at] = value;
            assert!(matches!(Seal::parse(&changed), Err(FormatError::Meta(_))), "byte {at}");
        }
        let long = vec![0; MAX_SEAL - FRONT - 2 * PRIVATE_UNIT - TAG];
        assert!(Seal::public(1, SealedKind::Payload, &long, None).is_ok());
        assert!(Seal::public(1, SealedKind::Payload, &long, Some(&again)).is_err());
    }

    #[test]
    fn the_private_part_is_padded_in_one_way() {
        for len in [0, 1, 253, 254, 255, 510] {
            let meta = vec![1; len];
            let private = padded(&meta);
            assert!(private.len().is_multiple_of(256));
            assert_eq!(unpadded(&private), Ok(&meta[..]));
            let mut changed = private.clone();
            changed.extend_from_slice(&[0; 256]);
            assert!(unpadded(&changed).is_err(), "longer than it needs to be");
            if private.len() > len + 2 {
                let mut changed = private;
                *changed.last_mut().expect("it has bytes") = 1;
                assert!(unpadded(&changed).is_err(), "not zeros");
            }
        }
        assert!(unpadded(&[]).is_err());
        assert!(unpadded(&[5, 0, 1]).is_err());
        // Fuzzing found this input.
        assert!(unpadded(&[2, 0, 0, 0]).is_err(), "not padded at all");
    }
}
