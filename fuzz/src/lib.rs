//! What the targets share: checksums that stand in the way of a fuzzer are put right before bytes are parsed.
//!
//! A fuzzer cannot guess a CRC32C. So a target that reads a format with one parses its input twice: as it is, which tries the check,
//! and with the checksum that it should have, which tries everything behind the check. Corpora stay plain files of the format.

use arbitrary::{Arbitrary, Unstructured};
use fec_core::error::FormatError;

/// Where the headers of files have their checksum, which covers what follows.
const SUM: std::ops::Range<usize> = 8..12;

/// Writes the checksum of a header that begins with a magic. Nothing happens to what is shorter.
pub fn restore_header(header: &mut [u8]) {
    if header.len() > SUM.end {
        let sum = crc32c::crc32c(&header[SUM.end..]);
        header[SUM].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Gives `check` the bytes as they are, and with the checksum of a header right.
pub fn with_and_without_checksum(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    check(bytes);
    let mut restored = bytes.to_vec();
    restore_header(&mut restored);
    if restored != bytes {
        check(&restored);
    }
}

/// Errors are values that somebody reads: each has a class and words.
pub fn look_at(error: &FormatError) {
    let _ = error.class();
    assert!(!error.to_string().is_empty());
}

/// A change of some bytes.
#[derive(Debug, Arbitrary)]
struct Edit {
    at: u16,
    len: u16,
    what: u8,
}

/// How many edits one input gets, and how many bytes it may gain: more takes time and shows nothing more.
const MOST_EDITS: usize = 48;
const MOST_GAINED: usize = 8192;

/// Changes bytes as `edits` say: cuts out, flips bits, repeats elsewhere, fills.
pub fn edit(bytes: &mut Vec<u8>, edits: &[u8]) {
    let mut input = Unstructured::new(edits);
    let most = bytes.len() + MOST_GAINED;
    for _ in 0..MOST_EDITS {
        let Ok(Edit { at, len, what }) = Edit::arbitrary(&mut input) else { break };
        if input.is_empty() || bytes.is_empty() {
            break;
        }
        let at = usize::from(at) % bytes.len();
        let end = (at + usize::from(len)).min(bytes.len());
        match what % 4 {
            0 => drop(bytes.drain(at..end)),
            1 => bytes[at] ^= what | 1,
            2 if bytes.len() + (end - at) <= most => {
                let to = usize::from(what) * 977 % bytes.len();
                // It goes to the end, and the end behind it.
                let gained = end - at;
                bytes.extend_from_within(at..end);
                bytes[to..].rotate_right(gained);
            }
            2 => {}
            _ => bytes[at..end].fill(what),
        }
    }
}
