//! `fec` for C, and for whatever calls C. `include/fec.h` is made of this file and its modules, with their
//! documentation, and says what holds for all of them.
//!
//! Nothing of a format is known here: [`fecfile`] does the work. `border` checks what comes in and keeps panics in,
//! `streams` makes readers and writers of callbacks.

// The border to C is pointers.
#![allow(unsafe_code)]
// cbindgen.toml has what callers promise, which is the same for all functions: each pointer is NULL where that is
// allowed, or leads to as much as the description says, unchanged as long as the call lasts; what is given back is what
// was made, once.
#![allow(clippy::missing_safety_doc)]

mod border;
pub mod shards;
pub mod streams;
pub mod verify;

pub use border::{Bytes, Hash, Status};

use border::{Borrowed, Failure, given, list, set, text_from_c};
use fec_base::context::{Context, Settings};
use fec_base::error::{Action, Error};
use fec_core::Root;
use fec_core::digest::Digest;
use fecfile::{Input, Object};
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::Arc;

/// Nothing is mapped and nothing is on a disk.
fn context(threads: u32) -> Context<'static> {
    let settings = Settings { map: false, sync: false, ..Settings::new() };
    Context::new(match threads {
        0 => settings,
        threads => Settings { threads: threads as usize, ..settings },
    })
}

/// Tells the version of the library, as text that lasts.
#[unsafe(no_mangle)]
pub extern "C" fn fec_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("no version has a NUL"),
        };
    VERSION.as_ptr()
}

/// The inputs of a call. A single one may have any form; several are shards and whatever lies beside them.
///
/// # Safety
/// As for [`list`], and for the bytes that it names, as long as the result lives.
unsafe fn input(inputs: *const Bytes, count: usize) -> Result<(Input, u64), Failure> {
    // SAFETY: the caller of this function vouches for it.
    let inputs = unsafe { list(inputs, count, "inputs") }?;
    let mut objects = Vec::with_capacity(inputs.len());
    let mut all = 0u64;
    for (nth, bytes) in inputs.iter().enumerate() {
        let name = format!("inputs/{nth}");
        // SAFETY: the caller of this function vouches for it.
        let borrowed = unsafe { Borrowed::new(*bytes, &name) }?;
        all = all.saturating_add(bytes.len as u64);
        let object = Object::new(&name, Arc::new(borrowed));
        objects.push(object.map_err(|e| Error::io(Action::Read, Path::new(&name), e))?);
    }
    match <[Object; 1]>::try_from(objects) {
        Ok([object]) => Ok((Input::One(object), all)),
        Err(objects) => Ok((Input::Several(objects), all)),
    }
}

/// The root that C names, if it names one.
///
/// # Safety
/// `root` is NULL, or 32 bytes are there.
unsafe fn root_at(root: *const u8) -> Option<Digest> {
    // SAFETY: the caller of this function vouches for it.
    unsafe { given(root.cast::<Digest>()) }
}

/// Gives a sentence back. NULL may be given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_free_text(text: *mut c_char) {
    // SAFETY: the caller vouches that it is the sentence of a call, and was not given back.
    unsafe { text_from_c(text) };
}

/// Writes a root of 32 bytes as text: 64 hexadecimal digits and a NUL, so `text` has room for 65.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_root_to_text(root: *const u8, text: *mut c_char) -> Status {
    // SAFETY: the caller vouches for what it gives.
    let (Some(root), false) = (unsafe { root_at(root) }, text.is_null()) else { return Status::Usage };
    let mut digits = [0u8; 65];
    digits[..64].copy_from_slice(Root(root).to_string().as_bytes());
    // SAFETY: `text` is not NULL, and the caller vouches for 65 bytes.
    unsafe { text.cast::<[u8; 65]>().write(digits) };
    Status::Ok
}

/// Reads a root from text of 64 hexadecimal digits. FEC_STATUS_USAGE: it is another text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_root_from_text(text: *const c_char, root: *mut u8) -> Status {
    if text.is_null() || root.is_null() {
        return Status::Usage;
    }
    // SAFETY: `text` is not NULL, and the caller vouches that a NUL ends it.
    let text = unsafe { CStr::from_ptr(text) };
    let Some(Root(parsed)) = text.to_str().ok().and_then(|text| text.parse().ok()) else {
        return Status::Usage;
    };
    // SAFETY: `root` is not NULL, and the caller vouches for 32 bytes.
    unsafe { set(root.cast(), parsed) };
    Status::Ok
}
