//! Shared code of the targets: it corrects the checksums that stand in the way of a fuzzer before bytes are parsed.
//!
//! A fuzzer cannot guess a CRC32C. A target that reads a format with one therefore parses its input twice: unchanged,
//! which tries the check, and with the correct checksum, which tries everything behind the check. Corpora stay plain
//! files of the format.
//!
//! Targets go through public interfaces alone. `scripts/checks/fuzz.sh` builds and runs them.

use arbitrary::{Arbitrary, Unstructured};
use fec_core::error::FormatError;

/// Place of the checksum in the headers of files; it covers the bytes that follow.
const SUM: std::ops::Range<usize> = 8..12;

/// Writes the checksum of a header that begins with a magic. Shorter bytes stay as they are.
pub fn restore_header(header: &mut [u8]) {
    if header.len() > SUM.end {
        let sum = crc32c::crc32c(&header[SUM.end..]);
        header[SUM].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Gives `check` the bytes unchanged, and with the correct checksum of a header.
pub fn with_and_without_checksum(bytes: &[u8], mut check: impl FnMut(&[u8])) {
    check(bytes);
    let mut restored = bytes.to_vec();
    restore_header(&mut restored);
    if restored != bytes {
        check(&restored);
    }
}

/// Reads an error as a user does: each has a class and words.
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

/// Most edits of an input, and most bytes that it may gain: more take time and show nothing more.
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
                // The copy is appended, and then moved to `to`.
                let gained = end - at;
                bytes.extend_from_within(at..end);
                bytes[to..].rotate_right(gained);
            }
            2 => {}
            _ => bytes[at..end].fill(what),
        }
    }
}
