//! The border between C and Rust: what comes in is checked, what goes out is owned, and no panic passes.

use fec_base::error::{Class, Error};
use fec_base::io::ReadAt;
use fec_base::program::guarded;
use std::ffi::{CString, c_char};
use std::io;

/// How a call ended. The numbers are the exit codes of the command.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// All is well.
    Ok = 0,
    /// Something is damaged or missing, and all of it can be restored.
    Damaged = 1,
    /// Wrong use: a NULL where none may be, no such code, an input in which nothing of fec is.
    Usage = 2,
    /// The payload cannot be restored whole.
    Lost = 3,
    /// A callback failed, or the system did.
    Io = 4,
    /// Not what the root promises.
    Untrue = 5,
    /// A limit, or a version that this library does not know.
    Refused = 6,
    /// A fault of the library itself. Nothing was made.
    Fault = 70,
}

/// A hash function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    /// BLAKE3, the default.
    Blake3 = 0,
    /// SHA-256.
    Sha256 = 1,
}

/// Bytes of somebody else. `data` may be NULL if `len` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// The first byte.
    pub data: *const u8,
    /// Their number.
    pub len: usize,
}

/// Why a call failed.
pub(crate) struct Failure {
    status: Status,
    words: String,
}

impl Failure {
    pub(crate) fn usage(words: impl Into<String>) -> Failure {
        Failure { status: Status::Usage, words: words.into() }
    }

    pub(crate) fn new(status: Status, words: impl Into<String>) -> Failure {
        Failure { status, words: words.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { status: error.class().into(), words: error.to_string() }
    }
}

impl From<Class> for Status {
    fn from(class: Class) -> Status {
        match class {
            Class::Mendable => Status::Damaged,
            Class::Lost => Status::Lost,
            Class::Untrue => Status::Untrue,
            Class::Refused => Status::Refused,
            // Nothing here is ended early but by a callback that fails.
            Class::Io | Class::Cancelled => Status::Io,
            Class::Usage => Status::Usage,
        }
    }
}

pub(crate) type Done = Result<Status, Failure>;

/// Does the work of a call, and turns its end into a status and a sentence.
///
/// # Safety
/// `why` is NULL, or can be written to.
pub(crate) unsafe fn guarded(why: *mut *mut c_char, work: impl FnOnce() -> Done) -> Status {
    let (status, words) = match guarded::catch(work) {
        Some(Ok(status)) => (status, None),
        Some(Err(failure)) => (failure.status, Some(failure.words)),
        None => (Status::Fault, Some("fec has a fault: this call panicked".to_owned())),
    };
    if !why.is_null() {
        // A NUL would end the sentence early, and names show none.
        let text = words.map(|words| CString::new(words.replace('\0', "?")).unwrap_or_default());
        let text = text.map_or(std::ptr::null_mut(), CString::into_raw);
        // SAFETY: `why` is not NULL, so the caller of this function vouches for it.
        unsafe { why.write(text) };
    }
    status
}

/// The bytes that C names.
///
/// # Safety
/// Unless `len` is 0, or `data` is NULL, there are `len` bytes at `data` that nobody changes as long as the result
/// lives.
pub(crate) unsafe fn slice<'a>(data: *const u8, len: usize, what: &str) -> Result<&'a [u8], Failure> {
    check(data, len, what)?;
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: `data` is not NULL and `len` is within what a slice may have; the caller vouches for the bytes, which any
    // address aligns.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

fn check<T>(data: *const T, len: usize, what: &str) -> Result<(), Failure> {
    if data.is_null() && len > 0 {
        return Err(Failure::usage(format!("{what} is NULL, and {len} bytes long")));
    }
    let most = isize::MAX as usize / size_of::<T>();
    if len > most {
        return Err(Failure::usage(format!("{what} is longer than memory can be")));
    }
    Ok(())
}

/// The list of bytes that C names.
///
/// # Safety
/// As for [`slice`], with `len` of [`Bytes`] in place of bytes.
pub(crate) unsafe fn list<'a>(data: *const Bytes, len: usize, what: &str) -> Result<&'a [Bytes], Failure> {
    check(data, len, what)?;
    if len == 0 {
        return Ok(&[]);
    }
    if !data.is_aligned() {
        return Err(Failure::usage(format!("{what} is not aligned")));
    }
    // SAFETY: `data` is aligned and not NULL, and `len` is within what a slice may have; the caller vouches for the
    // rest.
    Ok(unsafe { std::slice::from_raw_parts(data, len) })
}

/// The value that C names, if it names one.
///
/// # Safety
/// `value` is NULL, or points to a `T`.
pub(crate) unsafe fn given<T: Copy>(value: *const T) -> Option<T> {
    if value.is_null() {
        return None;
    }
    // SAFETY: `value` is not NULL, so the caller vouches for it; it may be unaligned.
    Some(unsafe { value.read_unaligned() })
}

/// Sets what C waits for, if it waits for it.
///
/// # Safety
/// `to` is NULL, or can be written to.
pub(crate) unsafe fn set<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: `to` is not NULL, so the caller vouches for it; it may be unaligned.
        unsafe { to.write_unaligned(value) };
    }
}

/// Fails unless C waits for a result.
pub(crate) fn must_take<T>(to: *const T, what: &str) -> Result<(), Failure> {
    if to.is_null() { Err(Failure::usage(format!("{what} is NULL"))) } else { Ok(()) }
}

/// Gives bytes to C.
pub(crate) fn into_c(bytes: Vec<u8>) -> (*mut u8, usize) {
    let len = bytes.len();
    (Box::into_raw(bytes.into_boxed_slice()).cast(), len)
}

/// Takes back the bytes of [`into_c`].
///
/// # Safety
/// `data` is NULL, or both are of [`into_c`], and were not taken back.
pub(crate) unsafe fn from_c(data: *mut u8, len: usize) {
    if !data.is_null() {
        let bytes = std::ptr::slice_from_raw_parts_mut(data, len);
        // SAFETY: `into_c` made this box, and nobody else owns it.
        drop(unsafe { Box::from_raw(bytes) });
    }
}

/// Takes back a sentence.
///
/// # Safety
/// `text` is NULL, or of [`guarded`], and was not taken back.
pub(crate) unsafe fn text_from_c(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: `guarded` made it by `CString::into_raw`, and nobody else owns it.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Bytes of the caller, read for as long as a call lasts.
pub(crate) struct Borrowed(Bytes);

// SAFETY: the bytes are only read, and the caller of `new` vouches that nobody changes them.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

impl Borrowed {
    /// # Safety
    /// As for [`slice`], for as long as this value lives.
    pub(crate) unsafe fn new(bytes: Bytes, what: &str) -> Result<Borrowed, Failure> {
        check(bytes.data, bytes.len, what)?;
        Ok(Borrowed(bytes))
    }

    fn bytes(&self) -> &[u8] {
        if self.0.len == 0 {
            return &[];
        }
        // SAFETY: `new` checked pointer and length, and its caller vouches for the bytes as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len) }
    }
}

impl ReadAt for Borrowed {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        self.bytes().read_at(offset, out)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.len as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::null_mut;

    /// A panic is a status like any other, and its sentence is given back like any other.
    #[test]
    fn no_panic_passes() {
        let mut why = null_mut();
        // SAFETY: `why` is a local.
        let status = unsafe { guarded(&mut why, || panic!("as expected")) };
        assert_eq!(status, Status::Fault);
        // SAFETY: it was just made.
        let words = unsafe { CStr::from_ptr(why) }.to_str().unwrap();
        assert!(words.contains("panicked"), "{words}");
        // SAFETY: it was just made.
        unsafe { text_from_c(why) };
        // SAFETY: NULL may be given.
        assert_eq!(unsafe { guarded(null_mut(), || panic!("as expected")) }, Status::Fault);
        let mut why = std::ptr::dangling_mut();
        // SAFETY: `why` is a local.
        assert_eq!(unsafe { guarded(&mut why, || Ok(Status::Damaged)) }, Status::Damaged);
        assert!(why.is_null(), "no sentence is left from before");
    }

    #[test]
    fn what_cannot_be_memory_is_refused() {
        for (data, len) in [(null_mut(), 1), (std::ptr::dangling_mut(), usize::MAX)] {
            // SAFETY: nothing is read.
            assert!(unsafe { slice(data, len, "it") }.is_err());
            // SAFETY: nothing is read.
            assert!(unsafe { Borrowed::new(Bytes { data, len }, "it") }.is_err());
            // SAFETY: nothing is read.
            assert!(unsafe { list(data.cast(), len, "it") }.is_err());
        }
        let odd = std::ptr::without_provenance::<Bytes>(3);
        // SAFETY: nothing is read.
        assert!(unsafe { list(odd, 1, "it") }.is_err());
        // SAFETY: there is nothing to read.
        assert!(unsafe { slice(null_mut(), 0, "it") }.is_ok_and(<[u8]>::is_empty));
    }

    #[test]
    fn bytes_of_any_number_go_to_c_and_back() {
        for len in [0, 1, 100] {
            let (data, told) = into_c(Vec::with_capacity(len + 50));
            assert_eq!(told, 0);
            // SAFETY: they are of `into_c`.
            unsafe { from_c(data, told) };
            let (data, told) = into_c(vec![7; len]);
            assert!(told == len && !data.is_null());
            // SAFETY: they are of `into_c`.
            unsafe { from_c(data, told) };
        }
        // SAFETY: NULL may be given back.
        unsafe { from_c(null_mut(), 5) };
        // SAFETY: NULL may be given back.
        unsafe { text_from_c(null_mut()) };
    }
}
