//! The fence around mapped files. A page that cannot be read (the file shrank, the disk failed) reads as zeros and
//! raises a flag, instead of killing the process.
//!
//! A handler of SIGBUS looks the address up in a small fixed table of mapped ranges. Inside a range it maps a page of
//! zeros over the fault and sets the range's flag, which is checked after every copy from the range. Outside of all
//! ranges, and for a SIGBUS sent by a process, the signal takes its default course.
//!
//! The handler is not installed by default: a program that wants files mapped calls [`install`] once. Without it files
//! are read with ordinary reads.
#![allow(unsafe_code)] // signal handlers and mappings have no safe interface

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Range {
    taken: AtomicBool,
    start: AtomicUsize,
    end: AtomicUsize,
    failed: AtomicBool,
}

/// Number of ranges, more than an operation keeps open.
const SLOTS: usize = 8;
static RANGES: [Range; SLOTS] = [const {
    Range {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
    }
}; SLOTS];
static PAGE: AtomicUsize = AtomicUsize::new(4096);
static INSTALLED: AtomicBool = AtomicBool::new(false);

/// A mapped file behind the fence.
#[derive(Debug)]
pub struct FencedMap {
    map: Mmap,
    slot: usize,
}

impl FencedMap {
    /// Maps the whole of `file`, which must not be empty.
    pub fn new(file: &File) -> io::Result<FencedMap> {
        if !INSTALLED.load(Ordering::SeqCst) {
            return Err(io::Error::other("the fence against SIGBUS does not stand"));
        }
        // SAFETY: the map is only read through `copy`, which makes no reference to bytes that may
        // change (it copies raw bytes) and reports a fault instead of trusting what it read; changes
        // of the file while it is mapped are detected by its time stamps and give an error.
        let map = unsafe { Mmap::map(file) }?;
        let slot = RANGES
            .iter()
            .position(|r| !r.taken.swap(true, Ordering::SeqCst))
            .ok_or_else(|| io::Error::other("too many mapped files"))?;
        let start = map.as_ptr() as usize;
        RANGES[slot].failed.store(false, Ordering::SeqCst);
        RANGES[slot].start.store(start, Ordering::SeqCst);
        RANGES[slot].end.store(start + map.len(), Ordering::SeqCst);
        Ok(FencedMap { map, slot })
    }

    /// Copies the bytes from `offset` into `out`.
    ///
    /// # Errors
    /// When any page of the file could not be read since it was mapped.
    ///
    /// # Panics
    /// If the range is outside the map.
    pub fn copy(&self, offset: usize, out: &mut [u8]) -> io::Result<()> {
        assert!(offset.checked_add(out.len()).is_some_and(|end| end <= self.map.len()));
        // SAFETY: `offset` is at most the map's length, so the pointer stays inside its mapping.
        let src = unsafe { self.map.as_ptr().add(offset) };
        // SAFETY: `src` is valid for `out.len()` bytes by the assertion, even when the file has shrunk
        // (the fence then maps zeros); `out` is exclusive and cannot overlap a read-only mapping.
        unsafe { std::ptr::copy_nonoverlapping(src, out.as_mut_ptr(), out.len()) };
        if RANGES[self.slot].failed.load(Ordering::SeqCst) {
            return Err(io::Error::other("it shrank or could not be read while it was mapped"));
        }
        Ok(())
    }
}

impl Drop for FencedMap {
    fn drop(&mut self) {
        // The range is cleared before the mapping goes, so that the handler never touches foreign memory.
        RANGES[self.slot].end.store(0, Ordering::SeqCst);
        RANGES[self.slot].start.store(0, Ordering::SeqCst);
        RANGES[self.slot].taken.store(false, Ordering::SeqCst);
    }
}

/// Installs the handler of SIGBUS, for the whole process and for good; calling it again does nothing.
///
/// # Errors
/// Those of sigaction.
pub fn install() -> io::Result<()> {
    static RESULT: OnceLock<Result<(), i32>> = OnceLock::new();
    let result = RESULT.get_or_init(|| {
        // SAFETY: sysconf has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if let Ok(page) = usize::try_from(page) {
            PAGE.store(page, Ordering::SeqCst);
        }
        // SAFETY: an all-zero sigaction is a valid value of the C struct.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO;
        // SAFETY: `action` is fully initialised, and the handler only does what is allowed in one:
        // atomics, mmap and sigaction.
        let status = unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) };
        INSTALLED.store(status == 0, Ordering::SeqCst);
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error().raw_os_error().unwrap_or(0)) }
    });
    result.map_err(io::Error::from_raw_os_error)
}

extern "C" fn on_sigbus(_signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler that was installed with SA_SIGINFO.
    let info = unsafe { &*info };
    // Codes of faults are positive. Other codes mean that a process sent the signal, and there is no address.
    if info.si_code <= 0 {
        take_default_course();
        // SAFETY: raise is allowed in handlers; the signal is blocked until this one returns, and then ends the
        // process.
        unsafe { libc::raise(libc::SIGBUS) };
        return;
    }
    // SAFETY: si_addr is set for SIGBUS.
    let address = unsafe { info.si_addr() } as usize;
    let inside = |r: &&Range| {
        let (start, end) = (r.start.load(Ordering::SeqCst), r.end.load(Ordering::SeqCst));
        start != 0 && (start..end).contains(&address)
    };
    if let Some(range) = RANGES.iter().find(inside) {
        range.failed.store(true, Ordering::SeqCst);
        let page = PAGE.load(Ordering::SeqCst);
        let at = (address & !(page - 1)) as *mut libc::c_void;
        let (protection, flags) =
            (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED);
        // SAFETY: the page lies in a live mapping that this module owns (the range is cleared before
        // the mapping goes), and only its contents change: nobody holds references into it.
        let mapped = unsafe { libc::mmap(at, page, protection, flags, -1, 0) };
        if mapped != libc::MAP_FAILED {
            return;
        }
    }
    // The faulting instruction runs again and ends the process.
    take_default_course();
}

fn take_default_course() {
    // SAFETY: an all-zero sigaction means the default action.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: sigaction is allowed in handlers, and `default` is fully initialised.
    unsafe { libc::sigaction(libc::SIGBUS, &default, std::ptr::null_mut()) };
}

/// Tells whether a signal was ignored at the start of this process (nohup, a shell's background job).
pub fn is_ignored(signal: libc::c_int) -> bool {
    // SAFETY: an all-zero sigaction is a valid value of the C struct.
    let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null new action only asks; `now` is valid for writing.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &mut now) };
    status == 0 && now.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_shrinks_while_mapped_is_an_error_and_no_signal() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 40_000]).unwrap();
        assert!(FencedMap::new(&file).is_err(), "nothing is installed behind the caller's back");
        install().unwrap();
        let map = FencedMap::new(&file).unwrap();
        let mut out = [0u8; 100];
        map.copy(39_900, &mut out).unwrap();
        assert_eq!(out, [7; 100]);
        file.set_len(4096).unwrap();
        assert!(map.copy(30_000, &mut out).is_err());
        assert!(map.copy(0, &mut out).is_err(), "the flag stays: what was read before is in doubt too");
    }
}
