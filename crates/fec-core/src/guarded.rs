//! For tests: bytes between two pages that cannot be touched.

// Memory mappings have no safe interface.
#![allow(unsafe_code)]

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;

/// Largest page size of the known processors.
const PAGE: usize = 64 << 10;

/// Bytes that end where a page ends. The next page cannot be read or written, and neither can the page in front of
/// their first one.
pub(crate) struct Guarded {
    /// Address right behind the page in front.
    start: *mut c_void,
    /// Bytes between the pages that cannot be touched.
    room: usize,
    len: usize,
}

impl Guarded {
    pub(crate) fn new(bytes: &[u8]) -> Guarded {
        let room = bytes.len().next_multiple_of(PAGE).max(PAGE);
        // SAFETY: the system chooses the address of a new mapping, so no memory in use is touched.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                PAGE + room + PAGE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let start = start.expect("there is memory").wrapping_byte_add(PAGE);
        let mut guarded = Guarded { start, room, len: bytes.len() };
        guarded.end_mut(bytes.len()).copy_from_slice(bytes);
        for page in [start.wrapping_byte_sub(PAGE), start.wrapping_byte_add(room)] {
            // SAFETY: the mapping has a page on each side of the `room` bytes that references reach.
            let done = unsafe { mprotect(page, PAGE, MprotectFlags::empty()) };
            done.expect("it is this mapping's own");
        }
        guarded
    }

    /// The last `len` bytes.
    pub(crate) fn end(&self, len: usize) -> &[u8] {
        assert!(len <= self.len);
        // SAFETY: these bytes are within the mapping, in front of its last page. They live and are not written to as
        // long as `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.wrapping_byte_add(self.room - len).cast(), len) }
    }

    /// The first `len` bytes. They begin behind the page in front if all bytes fill whole pages.
    pub(crate) fn start(&self, len: usize) -> &[u8] {
        &self.end(self.len)[..len]
    }

    /// The last `len` bytes, to be written.
    pub(crate) fn end_mut(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= self.len);
        // SAFETY: as in `end`, and borrowed by nobody else.
        unsafe { std::slice::from_raw_parts_mut(self.start.wrapping_byte_add(self.room - len).cast(), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: this is the whole mapping that `new` made, and no reference is left.
        let _ = unsafe { munmap(self.start.wrapping_byte_sub(PAGE), PAGE + self.room + PAGE) };
    }
}
