//! Reads the remains of a file on a failing disk.

use super::ReadAt;
use std::io::{self, Read};

/// Bytes given up together when they cannot be read.
const BLOCK: u64 = 4096;

/// Tells whether a read failed because of its place, so that other places may still be readable.
pub fn is_bad_place(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_blocks_come_as_zeros_and_the_rest_as_it_is() {
        let len = 3 * BLOCK as usize + 100;
        for bad in [4096..8192, 0..4096, 3 * 4096..len] {
            let read_at = |out: &mut [u8], at: u64| {
                let (start, end) = (at as usize, len.min(at as usize + out.len()));
                if start < bad.end && bad.start < end {
                    return Err(io::Error::from_raw_os_error(libc::EIO));
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
