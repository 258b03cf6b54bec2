//! `fec` for Python: the extension module `fecshards._native`.
//!
//! Everything is done by `fec-core` and `fecfile`; here are objects of Python around it. Calls let go of the GIL while they work.
//! `python/fecshards` gives the names that users see, their types and the exceptions.

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
        decode_file, decode_stream, encode_file, encode_stream, repair_file, verify_file, verify_stream,
    };
    #[pymodule_export]
    use super::keys::generate_identity;
    #[pymodule_export]
    use super::reports::{Repaired, Report, Restored, Shard};
}
