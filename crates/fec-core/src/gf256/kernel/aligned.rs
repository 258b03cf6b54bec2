//! Bytes that begin on a cache line.
//!
//! Kernels are correct at any address, and fastest on lines of their own. Safe code gets such lines by allocating 63
//! bytes more than it needs and starting at the first line.

// This file advises the operating system, at its end.
#![allow(unsafe_code)]

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and the unit of row lengths.
pub(crate) const LINE: usize = 64;

/// Fewest bytes for which huge pages are worth a request: two of the usual 2 MiB, so that one at least lies within.
const HUGE: usize = 4 << 20;

/// A fixed number of bytes, the first of them at an address divisible by 64.
///
/// The allocation never grows, so it never moves. There is no `Clone`: a copied vector would begin elsewhere.
pub(crate) struct AlignedBytes {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBytes {
    /// `len` bytes of zero. Large allocations stand in huge pages where Linux gives them on request: scattered reads of
    /// rows in a window need address translation too.
    ///
    /// # Panics
    ///
    /// When `len` is more than an allocation can hold.
    pub(crate) fn zeroed(len: usize) -> AlignedBytes {
        let mut bytes = vec![0; len.checked_add(LINE - 1).expect("length overflows")];
        if len >= HUGE {
            ask_for_huge_pages(&mut bytes);
        }
        let start = bytes.as_ptr().addr().wrapping_neg() % LINE;
        AlignedBytes { bytes, start, len }
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

impl fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AlignedBytes").field("len", &self.len).finish_non_exhaustive()
    }
}

/// Asks for huge pages under some bytes. Nothing changes where Linux has none.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages(bytes: &mut [u8]) {
    // 64 KiB is the largest usual page.
    let before = bytes.as_ptr().addr().wrapping_neg() % (64 << 10);
    let pages = &mut bytes[before..];
    // SAFETY: the range is ours, borrowed for writing, and this advice changes neither its bytes nor who may read or
    // write them. (rustix has one function for all advice, and some advice is unsafe.)
    let _ = unsafe {
        rustix::mm::madvise(pages.as_mut_ptr().cast(), pages.len(), rustix::mm::Advice::LinuxHugepage)
    };
}

/// Other systems have no such request.
#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages(_bytes: &mut [u8]) {}
