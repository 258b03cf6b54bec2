//! `fec` for Python: the extension module `fecshards._native`.
//!
//! `fec-core` and `fecfile` do the work; this crate wraps it in Python objects. Calls release the GIL while they work.
//! `python/fecshards` has the names that users see, their types and the exceptions.
//!
//! `code` is `fec_core::block` over buffers. `files` and `streams` are encode, archive and pipe over paths and Python's
//! file objects. `errors` gives each `Class` an exception. The workspace is its own, so that a build of fec needs no
//! Python.

mod buffers;
mod code;
mod errors;
mod files;
mod keys;
mod reports;
mod streams;

/// The native part of fecshards.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use super::code::Code;
    #[pymodule_export]
    use super::files::{
        decode_file, decode_stream, encode_file, encode_stream, payload_len, read_range, repair_file,
        verify_file, verify_stream,
    };
    #[pymodule_export]
    use super::keys::generate_identity;
    #[pymodule_export]
    use super::reports::{Repaired, Report, Restored, Shard};
}
