//! The metadata of a generation, as a difference to that of a whole one (section 17.4).

use super::varint::{Bytes, put};
use crate::digest::Digest;
use crate::error::FormatError;
use crate::format::{array_at, is_zero, u32_at, u64_at};
use std::ops::Range;

/// The version of a difference.
const VERSION: u32 = 2;
/// Bytes before the steps.
const HEAD_LEN: usize = 64;

/// A step: bytes of the whole metadata that are left out, bytes that are taken from behind them, and the place in the
/// new metadata of the bytes that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes of the whole metadata that are left out.
    pub skip: u64,
    /// Bytes of the whole metadata that are taken.
    pub copy: u64,
    /// Bytes of the new metadata that are not in the whole one, by their offsets.
    pub add: Range<usize>,
}

/// A difference to the metadata of a whole generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'a> {
    /// E of the whole generation.
    pub whole: Digest,
    /// Bytes of the catalog that results.
    pub catalog_len: u64,
    metadata_len: u64,
    steps: &'a [u8],
}

/// The payload of a difference. `steps` lead from the metadata of the generation with the root `whole` to `metadata`,
/// of which the first `catalog_len` bytes are the catalog.
///
/// # Panics
/// If a step adds bytes that `metadata` has not.
pub fn difference_bytes(whole: &Digest, catalog_len: u64, metadata: &[u8], steps: &[Step]) -> Vec<u8> {
    let mut out = vec![0; HEAD_LEN];
    out[..4].copy_from_slice(&VERSION.to_le_bytes());
    out[8..16].copy_from_slice(&catalog_len.to_le_bytes());
    out[16..24].copy_from_slice(&(metadata.len() as u64).to_le_bytes());
    out[32..].copy_from_slice(whole);
    for Step { skip, copy, add } in steps {
        [*skip, *copy, add.len() as u64].into_iter().for_each(|number| put(&mut out, number));
        out.extend_from_slice(&metadata[add.clone()]);
    }
    out
}

impl<'a> Difference<'a> {
    /// Parses the head.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(payload: &'a [u8]) -> Result<Difference<'a>, FormatError> {
        let Some((head, steps)) = payload.split_first_chunk::<HEAD_LEN>() else {
            return Err(FormatError::Catalog("a difference is too short"));
        };
        match u32_at(head, 0) {
            VERSION => {}
            value => {
                return Err(FormatError::CriticalCatalog {
                    what: "a difference of version",
                    value: value.into(),
                });
            }
        }
        let difference = Difference {
            whole: array_at(head, 32),
            catalog_len: u64_at(head, 8),
            metadata_len: u64_at(head, 16),
            steps,
        };
        let is_possible = is_zero(&head[4..8])
            && is_zero(&head[24..32])
            && difference.catalog_len <= difference.metadata_len;
        is_possible
            .then_some(difference)
            .ok_or(FormatError::Catalog("a number of the difference is not possible"))
    }

    /// The metadata that results from that of the whole generation. Takes no more memory than both have bytes.
    ///
    /// # Errors
    /// The first rule that a step breaks.
    pub fn apply(&self, whole: &[u8]) -> Result<Vec<u8>, FormatError> {
        let wrong = FormatError::Catalog("a step leads out of the metadata");
        let most = whole.len() as u64 + self.steps.len() as u64;
        if self.metadata_len > most {
            return Err(wrong);
        }
        let (mut rest, mut left) = (Bytes(self.steps), whole);
        let mut out = Vec::with_capacity(self.metadata_len as usize);
        while !rest.0.is_empty() {
            let skip = rest.count(left.len() as u64)?;
            left = &left[skip..];
            let copy = rest.count(left.len() as u64)?;
            let (taken, behind) = left.split_at(copy);
            left = behind;
            let count = rest.count(rest.0.len() as u64)?;
            let added = rest.take(count)?;
            if copy + count == 0 || (out.len() + copy + count) as u64 > self.metadata_len {
                return Err(wrong);
            }
            out.extend_from_slice(taken);
            out.extend_from_slice(added);
        }
        match out.len() as u64 == self.metadata_len {
            true => Ok(out),
            false => Err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Class;

    const WHOLE: Digest = [7; 32];

    fn steps() -> Vec<Step> {
        vec![
            Step { skip: 0, copy: 4, add: 4..4 },
            Step { skip: 2, copy: 3, add: 7..12 },
            Step { skip: 1, copy: 0, add: 12..13 },
        ]
    }

    #[test]
    fn a_difference_gives_the_metadata_back() {
        let whole = b"0123456789";
        let new = b"0123678abcdeX";
        let payload = difference_bytes(&WHOLE, 5, new, &steps());
        let difference = Difference::parse(&payload).unwrap();
        assert_eq!((difference.whole, difference.catalog_len), (WHOLE, 5));
        assert_eq!(difference.apply(whole).unwrap(), new);
        assert!(difference.apply(&whole[..9]).is_err(), "it leaves a byte out that is not there");
        for cut in 0..payload.len() {
            let is_whole = Difference::parse(&payload[..cut]).is_ok_and(|cut| cut.apply(whole).is_ok());
            assert!(!is_whole, "{cut}");
        }
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        let (whole, new) = (b"0123456789", b"0123678abcdeX");
        let payload = difference_bytes(&WHOLE, 5, new, &steps());
        let class = |at: usize, byte: u8| {
            let mut payload = payload.clone();
            payload[at] = byte;
            let applied = Difference::parse(&payload).and_then(|difference| difference.apply(whole));
            applied.map_err(|e| e.class()).err()
        };
        assert_eq!(class(0, 1), Some(Class::Refused));
        assert_eq!(class(0, 3), Some(Class::Refused));
        for (at, byte) in [(4, 1), (7, 1), (24, 1), (31, 1), (8, 14), (15, 1), (16, 12), (16, 14), (23, 255)]
        {
            assert_eq!(class(at, byte), Some(Class::Invalid), "{at}");
        }
        // The first step takes nothing and adds nothing.
        assert_eq!(class(65, 0), Some(Class::Invalid));
        let empty = difference_bytes(&WHOLE, 0, b"", &[]);
        assert_eq!(Difference::parse(&empty).unwrap().apply(whole), Ok(Vec::new()));
    }

    #[test]
    fn a_length_reserves_no_memory() {
        let mut payload = difference_bytes(&WHOLE, 0, b"", &[]);
        payload[16..24].copy_from_slice(&(u64::MAX >> 1).to_le_bytes());
        assert!(Difference::parse(&payload).unwrap().apply(b"0123").is_err());
    }
}
