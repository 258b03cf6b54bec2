//! Writes bytes so that zeros stay holes.

use fec_base::io::system::make_hole;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes that are a hole together or not at all.
const PIECE: usize = 4096;

/// Writes into a file that has only zeros there.
pub(super) fn write_new(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    for (range, is_zero) in runs(bytes) {
        if !is_zero {
            file.write_all_at(&bytes[range.clone()], offset + range.start as u64)?;
        }
    }
    Ok(())
}

/// Writes over other bytes.
pub(super) fn write_over(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    for (range, is_zero) in runs(bytes) {
        let at = offset + range.start as u64;
        if !(is_zero && make_hole(file, at, range.len() as u64)) {
            file.write_all_at(&bytes[range], at)?;
        }
    }
    Ok(())
}

/// Makes a range zeros.
pub(super) fn clear(file: &File, range: Range<u64>) -> io::Result<()> {
    if range.is_empty() || make_hole(file, range.start, range.end - range.start) {
        return Ok(());
    }
    let zeros = vec![0; 1 << 20];
    for at in range.clone().step_by(zeros.len()) {
        file.write_all_at(&zeros[..(range.end - at).min(zeros.len() as u64) as usize], at)?;
    }
    Ok(())
}

/// Runs of pieces, each with whether they are zeros.
fn runs(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, bool)> {
    let is_zero = |at: usize| bytes[at..].iter().take(PIECE).all(|byte| *byte == 0);
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, kind) = (at, is_zero(at.min(bytes.len())));
        while at < bytes.len() && is_zero(at) == kind {
            at = (at + PIECE).min(bytes.len());
        }
        (start < at).then_some((start..at, kind))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_cover_all_bytes() {
        let mut bytes = vec![0; 5 * PIECE + 7];
        bytes[PIECE] = 1;
        bytes[3 * PIECE - 1] = 1;
        let found: Vec<(Range<usize>, bool)> = runs(&bytes).collect();
        let expected = [(0..PIECE, true), (PIECE..3 * PIECE, false), (3 * PIECE..5 * PIECE + 7, true)];
        assert_eq!(found, expected);
        assert_eq!(runs(&[]).count(), 0);
    }
}
