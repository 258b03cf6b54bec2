//! The border of the module: what its host calls, and what it calls of its host. Numbers are 32 bits wide, offsets and
//! lengths of objects are doubles, which hold all whole numbers up to 2^53.

// The only unsafe code of the crate: memory that passes between the module and its host.
#![allow(unsafe_code)]

use crate::host::Host;
use crate::run::Session;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use zeroize::Zeroize;

#[link(wasm_import_module = "fec")]
unsafe extern "C" {
    /// Reads bytes of an object: their number, 0 at the end, or -1.
    fn read(object: u32, offset: f64, out: *mut u8, len: u32) -> i32;
    /// Takes bytes of an output: 0, or -1.
    fn write(output: u32, offset: f64, bytes: *const u8, len: u32) -> i32;
    /// Reads bytes of an output back: their number, or -1.
    fn read_back(output: u32, offset: f64, out: *mut u8, len: u32) -> i32;
    /// Shows progress; `total` is below 0 if it is not known.
    fn progress(done: f64, total: f64);
}

/// The host of this module.
struct Outside;

thread_local! {
    /// A module has one thread, and one host.
    static SESSION: RefCell<Session> = RefCell::new(Session::new(Arc::new(Outside)));
}

/// The longest piece that is asked for or handed over at once.
const MOST: usize = 16 << 20;

fn count(read: i32) -> io::Result<usize> {
    usize::try_from(read).map_err(|_| io::Error::other("the host could not read it"))
}

impl Host for Outside {
    fn read(&self, object: u32, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(MOST);
        // SAFETY: the host writes at most `len` bytes from the pointer on, which `out` holds.
        count(unsafe { read(object, offset as f64, out.as_mut_ptr(), len as u32) })
    }

    fn write(&self, output: u32, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut at = offset;
        for piece in bytes.chunks(MOST) {
            // SAFETY: the host reads as many bytes as `piece` has, and changes none.
            let written = unsafe { write(output, at as f64, piece.as_ptr(), piece.len() as u32) };
            count(written).map_err(|_| io::Error::other("the host could not keep it"))?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    fn read_back(&self, output: u32, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let piece = &mut out[done..];
            let len = piece.len().min(MOST);
            // SAFETY: the host writes at most `len` bytes from the pointer on, which `piece` holds.
            match count(unsafe {
                read_back(output, (offset + done as u64) as f64, piece.as_mut_ptr(), len as u32)
            })? {
                0 => break,
                read => done += read.min(len),
            }
        }
        Ok(done)
    }

    fn progress(&self, done: u64, total: Option<u64>) {
        // SAFETY: the host gets two numbers.
        unsafe { progress(done as f64, total.map_or(-1.0, |total| total as f64)) }
    }
}

/// The layout of a request or an answer.
fn layout(len: u32) -> Layout {
    Layout::array::<u8>((len as usize).max(1)).expect("it fits into the memory")
}

/// Memory of `len` bytes for the host, which it gives back by [`fec_free`] or [`fec_call`].
#[unsafe(no_mangle)]
pub extern "C" fn fec_alloc(len: u32) -> *mut u8 {
    let layout = layout(len);
    // SAFETY: the layout has at least one byte.
    let memory = unsafe { alloc(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: the memory was just made for so many bytes.
    unsafe { memory.write_bytes(0, layout.size()) };
    memory
}

/// Takes back memory of [`fec_alloc`], or an answer of [`fec_call`] with the four bytes in front of it.
///
/// # Safety
/// The memory must have been given out with this length, and not been taken back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_free(memory: *mut u8, len: u32) {
    // SAFETY: the caller says that the memory has this layout.
    unsafe { dealloc(memory, layout(len)) }
}

/// Answers a request of `len` bytes, whose memory it overwrites and takes back. The answer is its length in four bytes,
/// little-endian, and as many bytes of JSON.
///
/// # Safety
/// As [`fec_free`]; `len` bytes must have been written to the memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fec_call(request: *mut u8, len: u32) -> *mut u8 {
    // SAFETY: the caller says that the memory holds so many bytes, and hands it over.
    let bytes = unsafe { std::slice::from_raw_parts_mut(request, len as usize) };
    let said = SESSION.with_borrow_mut(|session| session.answer(bytes)).to_string();
    // The request may hold keys.
    bytes.zeroize();
    // SAFETY: the memory was handed over, and nobody looks at it any more.
    unsafe { fec_free(request, len) };
    let memory = fec_alloc(said.len() as u32 + 4);
    // SAFETY: it was just made for so many bytes, and nobody else has it.
    let out = unsafe { std::slice::from_raw_parts_mut(memory, said.len() + 4) };
    out[..4].copy_from_slice(&(said.len() as u32).to_le_bytes());
    out[4..].copy_from_slice(said.as_bytes());
    memory
}
