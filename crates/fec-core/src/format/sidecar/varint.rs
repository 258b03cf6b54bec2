//! Integers of as many bytes as they need (LEB128), and a reader of bytes that may end at any place.

use crate::error::FormatError;

const CUT: FormatError = FormatError::Catalog("it ends too early");

/// Appends a number below 2^63.
pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the step from one number below 2^62 to another.
pub(super) fn put_step(out: &mut Vec<u8>, from: u64, to: u64) {
    put(out, if to >= from { (to - from) * 2 } else { (from - to) * 2 - 1 });
}

/// Bytes that are read from front to back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(CUT)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(super) fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let is_shortest = byte != 0 || shift == 0;
                return is_shortest
                    .then_some(value)
                    .ok_or(FormatError::Catalog("a number has zeros in front"));
            }
        }
        Err(FormatError::Catalog("a number is too large"))
    }

    /// A number that is the length of something in memory.
    pub(super) fn count(&mut self, most: u64) -> Result<usize, FormatError> {
        let count = self.varint()?;
        if count > most {
            return Err(FormatError::Catalog("a length is beyond its limit"));
        }
        Ok(count as usize)
    }

    /// The number that is a step away from another.
    pub(super) fn step(&mut self, from: u64) -> Result<u64, FormatError> {
        let step = self.varint()?;
        let to = match step % 2 {
            0 => from.checked_add(step / 2),
            _ => from.checked_sub(step / 2 + 1),
        };
        to.ok_or(FormatError::Catalog("a step leads out of the positions"))
    }
}

/// The most bytes of a pattern.
const MAX_PATTERN: u64 = 1024;

/// Appends bytes behind their number.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A pattern: UTF-8 without zero bytes, and not empty.
pub(super) fn take_pattern<'a>(rest: &mut Bytes<'a>) -> Result<&'a str, FormatError> {
    let wrong = FormatError::Catalog;
    let pattern =
        std::str::from_utf8(take(rest, MAX_PATTERN)?).map_err(|_| wrong("a pattern is not UTF-8"))?;
    match pattern.is_empty() || pattern.contains('\0') {
        true => Err(wrong("a pattern is empty, or has a zero byte")),
        false => Ok(pattern),
    }
}

/// As many bytes as the number in front says.
pub(super) fn take<'a>(rest: &mut Bytes<'a>, most: u64) -> Result<&'a [u8], FormatError> {
    let len = rest.count(most.min(rest.0.len() as u64))?;
    rest.take(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_have_one_form() {
        for value in [0, 1, 127, 128, 300, 16_383, 16_384, (1 << 62) - 1, (1 << 63) - 1] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(Bytes(&bytes).varint(), Ok(value));
            assert!((0..bytes.len()).all(|cut| Bytes(&bytes[..cut]).varint().is_err()));
        }
        for (from, to) in [(0, 0), (5, 9), (9, 5), (1 << 61, 0)] {
            let mut bytes = Vec::new();
            put_step(&mut bytes, from, to);
            assert_eq!(Bytes(&bytes).step(from), Ok(to));
        }
        assert!(Bytes(&[0x80, 0]).varint().is_err(), "zeros in front");
        assert!(Bytes(&[0xff; 10]).varint().is_err(), "too large");
        assert!(Bytes(&[1]).step(0).is_err(), "below zero");
    }
}
