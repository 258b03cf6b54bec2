//! Reads the remains of a file on a failing disk.

use super::{ReadAt, system};
use std::io::{self, Read};
use std::ops::Range;

/// Bytes given up together when they cannot be read.
const BLOCK: u64 = 4096;

/// Tells whether a read failed because of its place, so that other places may still be readable.
pub fn is_bad_place(error: &io::Error) -> bool {
    system::is_bad_place(error)
}

/// An object, read from front to back. Unreadable blocks read as zeros and are counted. The records that they hit fail
/// their check, as after any other damage.
pub struct Readable<R> {
    read_at: R,
    at: u64,
    len: u64,
    /// Unreadable bytes.
    pub lost: u64,
}

/// Reads the first `len` bytes of an object.
pub fn readable(object: &dyn ReadAt, len: u64) -> Readable<impl FnMut(&mut [u8], u64) -> io::Result<usize>> {
    Readable { read_at: |out: &mut [u8], at| object.read_at(at, out), at: 0, len, lost: 0 }
}

impl<R> Readable<R> {
    /// Skips this many bytes.
    pub fn skip(&mut self, bytes: u64) {
        self.at += bytes;
    }
}

impl<R: FnMut(&mut [u8], u64) -> io::Result<usize>> Read for Readable<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let block = (BLOCK - self.at % BLOCK).min(self.len.saturating_sub(self.at));
        let done = match (self.read_at)(out, self.at) {
            Err(e) if is_bad_place(&e) && block > 0 => {
                let block = (out.len() as u64).min(block) as usize;
                match (self.read_at)(&mut out[..block], self.at) {
                    Err(e) if is_bad_place(&e) => {
                        out[..block].fill(0);
                        self.lost += block as u64;
                        Ok(block)
                    }
                    other => other,
                }
            }
            other => other,
        }?;
        self.at += done as u64;
        Ok(done)
    }
}

/// Fills `out` with the bytes of an object from `at` on, as far as it has any, and returns how many these are, with
/// those of a bad block at its end. Bytes that cannot be read are zeros: `lost` is called with each range of them in
/// `out`, of a block or less, and with the error.
///
/// A system may fail for a whole read where one block is bad, so a read that fails goes on block by block up to that
/// one: at most one read for each block, and two more for each bad one.
pub fn fill_readable(
    object: &(impl ReadAt + ?Sized),
    at: u64,
    out: &mut [u8],
    mut lost: impl FnMut(Range<usize>, io::Error),
) -> usize {
    let (mut filled, mut is_near) = (0, false);
    while filled < out.len() {
        let from = at + filled as u64;
        let block = filled + ((BLOCK - from % BLOCK) as usize).min(out.len() - filled);
        let end = if is_near { block } else { out.len() };
        match object.read_at(from, &mut out[filled..end]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) if end > block => is_near = true,
            Err(e) => {
                out[filled..block].fill(0);
                lost(filled..block, e);
                (filled, is_near) = (block, false);
            }
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The system's number of the error of a bad place: EIO, and ERROR_CRC of Windows.
    const BAD: i32 = if cfg!(windows) { 23 } else { 5 };

    /// An object of sevens with bad blocks, which fails for a read of any byte of them, or gives what stands in front.
    struct Bad<'a> {
        len: usize,
        bad: &'a [Range<usize>],
        gives_a_part: bool,
    }

    impl ReadAt for Bad<'_> {
        fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
            let start = self.len.min(at as usize);
            let asked = self.len.min(start + out.len());
            let end = match self.bad.iter().find(|bad| start < bad.end && bad.start < asked) {
                None => asked,
                Some(bad) if self.gives_a_part && start < bad.start => bad.start,
                Some(_) => return Err(io::Error::from_raw_os_error(BAD)),
            };
            out[..end - start].fill(7);
            Ok(end - start)
        }

        fn size(&self) -> io::Result<u64> {
            Ok(self.len as u64)
        }
    }

    #[test]
    fn no_more_is_lost_than_bad_blocks() {
        let len = 5 * BLOCK as usize + 100;
        let range = |start: usize, end: usize| start..end;
        let block = |nth: usize| range(nth * 4096, (nth + 1) * 4096);
        let cases = [
            vec![],
            vec![block(1)],
            vec![block(0)],
            vec![range(5 * 4096, len)],
            vec![block(1), block(2), block(4)],
            vec![range(5000, 5001)],
        ];
        for bad in &cases {
            for gives_a_part in [false, true] {
                for start in [0, 1, 4095, 4097, 9000, len] {
                    // Behind a bad end nobody knows where the object ends.
                    let behind = if bad.iter().any(|bad| bad.end == len) { 0 } else { 10 };
                    let mut out = vec![9; len - start + behind];
                    let mut all = Vec::new();
                    let object = Bad { len, bad, gives_a_part };
                    let filled = fill_readable(&object, start as u64, &mut out, |range, _| all.push(range));
                    assert_eq!(filled, len - start);
                    let covered: Vec<Range<usize>> = bad
                        .iter()
                        .map(|bad| bad.start / 4096 * 4096..len.min(bad.end.next_multiple_of(4096)))
                        .collect();
                    for (at, byte) in (start..len).zip(&out) {
                        let is_lost = all.iter().any(|range| range.contains(&(at - start)));
                        let is_bad = bad.iter().any(|bad| bad.contains(&at));
                        let may_be_lost = covered.iter().any(|block| block.contains(&at));
                        assert_eq!(*byte, if is_lost { 0 } else { 7 });
                        assert!(is_lost >= is_bad && is_lost <= may_be_lost, "{bad:?} from {start}: {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn bad_blocks_come_as_zeros_and_the_rest_as_it_is() {
        let len = 3 * BLOCK as usize + 100;
        for bad in [4096..8192, 0..4096, 3 * 4096..len] {
            let read_at = |out: &mut [u8], at: u64| {
                let (start, end) = (at as usize, len.min(at as usize + out.len()));
                if start < bad.end && bad.start < end {
                    return Err(io::Error::from_raw_os_error(BAD));
                }
                out[..end - start].fill(7);
                Ok(end - start)
            };
            let mut readable = Readable { read_at, at: 0, len: len as u64, lost: 0 };
            let mut out = Vec::new();
            readable.read_to_end(&mut out).unwrap();
            let mut wanted = vec![7; len];
            wanted[bad.clone()].fill(0);
            assert!(out == wanted, "{bad:?}");
            assert_eq!(readable.lost, bad.len() as u64);
        }
    }
}
