//! Callbacks of C as readers and writers, and containers that pass through them.

use crate::border::{Done, Failure, Status, given, guarded, set};
use crate::shards::Options;
use crate::{context, root_at};
use fec_base::error::Place;
use fecfile::forms::Beginning;
use fecfile::payload::Source;
use fecfile::pipe::{self, Pipe};
use fecfile::{Destination, encode};
use std::ffi::{c_char, c_int, c_void};
use std::io::{self, Read, Write};
use std::path::Path;

/// The name of streams in sentences.
const STREAM: &str = "the stream";

/// Reads some of the next bytes into `buffer`, at most `len`, which is not 0. Returns their number; 0 at the end; a
/// negative number if that failed, which ends the call with FEC_STATUS_IO.
pub type ReadFn = Option<unsafe extern "C" fn(context: *mut c_void, buffer: *mut u8, len: usize) -> isize>;

/// Takes all `len` bytes. Returns 0; anything else if that failed, which ends the call with FEC_STATUS_IO.
pub type WriteFn = Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, len: usize) -> c_int>;

/// A callback that reads.
struct Input {
    read: unsafe extern "C" fn(*mut c_void, *mut u8, usize) -> isize,
    context: *mut c_void,
}

/// A callback that writes.
struct Output {
    write: unsafe extern "C" fn(*mut c_void, *const u8, usize) -> c_int,
    context: *mut c_void,
}

// SAFETY: the caller of `new` vouches that the callback may be called with this context from any thread, one call at a
// time, which `&mut self` sees to.
unsafe impl Send for Input {}
// SAFETY: as above.
unsafe impl Send for Output {}

impl Input {
    /// # Safety
    /// `read` keeps to its description, with `context`, from any thread, one call at a time, as long as this lives.
    unsafe fn new(read: ReadFn, context: *mut c_void) -> Option<Input> {
        Some(Input { read: read?, context })
    }
}

impl Output {
    /// # Safety
    /// As for [`Input::new`].
    unsafe fn new(write: WriteFn, context: *mut c_void) -> Option<Output> {
        Some(Output { write: write?, context })
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        // SAFETY: `out` has as many bytes, and the caller of `new` vouches for the callback.
        let read = unsafe { (self.read)(self.context, out.as_mut_ptr(), out.len()) };
        match usize::try_from(read) {
            Ok(read) if read <= out.len() => Ok(read),
            Ok(_) => Err(io::Error::other("the callback says that it read more than there was room for")),
            Err(_) => Err(io::Error::other("the callback that reads failed")),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        // SAFETY: there are as many bytes, and the caller of `new` vouches for the callback.
        match unsafe { (self.write)(self.context, bytes.as_ptr(), bytes.len()) } {
            0 => Ok(bytes.len()),
            _ => Err(io::Error::other("the callback that writes failed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Encodes what `read` reads to a container that goes to `write`, in memory that does not grow with it. Each callback
/// gets its context, and is called by one thread at a time, which is the caller's only if `options` asks for one
/// thread. Callbacks return; they do not jump or throw. After a failure nothing that was written counts.
///
/// `root` gets the 32 bytes of the root, and may be NULL. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_encode_stream(
    read: ReadFn,
    read_context: *mut c_void,
    write: WriteFn,
    write_context: *mut c_void,
    options: *const Options,
    root: *mut u8,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        // SAFETY: the caller vouches for its callbacks, until this call ends.
        let mut read =
            unsafe { Input::new(read, read_context) }.ok_or_else(|| Failure::usage("read is NULL"))?;
        // SAFETY: as above.
        let write =
            unsafe { Output::new(write, write_context) }.ok_or_else(|| Failure::usage("write is NULL"))?;
        // SAFETY: the caller vouches for what it gives.
        let options = unsafe { given(options) }.unwrap_or(Options::DEFAULT);
        let (context, stream) = (context(options.threads), Place::from(Path::new(STREAM)));
        let source = Source::Pipe(&mut read, stream.clone());
        let written = encode::to_writer(source, write, &stream, &options.of_library()?, &context)?;
        // SAFETY: the caller vouches for what it waits for.
        unsafe { set(root.cast(), written.root) };
        Ok(Status::Ok)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}

/// Restores the payload of a container that `read` reads to `write`, in memory that does not grow with it. Callbacks
/// are called as by `fec_encode_stream`. Each part is written once it is proved by itself. If the whole is not what
/// `root` promises, or a part cannot be restored, the status says so after other parts were written: they count only
/// with FEC_STATUS_OK. `root` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_decode_stream(
    read: ReadFn,
    read_context: *mut c_void,
    write: WriteFn,
    write_context: *mut c_void,
    root: *const u8,
    why: *mut *mut c_char,
) -> Status {
    let work = || -> Done {
        // SAFETY: the caller vouches for its callbacks, until this call ends.
        let input =
            unsafe { Input::new(read, read_context) }.ok_or_else(|| Failure::usage("read is NULL"))?;
        // SAFETY: as above.
        let mut out =
            unsafe { Output::new(write, write_context) }.ok_or_else(|| Failure::usage("write is NULL"))?;
        // SAFETY: the caller vouches for what it gives.
        let wanted = unsafe { root_at(root) };
        let place = Path::new(STREAM);
        let pipe = Pipe { input, place, beginning: Beginning::Other, wanted, keys: None };
        let _whole = pipe::restore(pipe, Destination::Writer(&mut out, place.into()), &context(0))?;
        Ok(Status::Ok)
    };
    // SAFETY: the caller vouches for `why`.
    unsafe { guarded(why, work) }
}
