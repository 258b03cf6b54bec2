//! Bytes between Python and Rust.
//!
//! `bytes` never change, so they are read in place, also while other threads run Python. Other buffers (bytearray,
//! memoryview, mmap, arrays) may be written to in the meantime, and are copied first.

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView};

/// The bytes of an object that has a buffer.
///
/// # Errors
/// TypeError for an object without a buffer.
pub(crate) fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.clone().into());
    }
    let copied = PyMemoryView::from(object)?.call_method0("tobytes")?;
    Ok(copied.cast_into::<PyBytes>()?.into())
}

/// `count` new bytes objects of `len` bytes each. `fill` gets all of them at once, as zeros.
///
/// # Errors
/// Those of `fill`, and MemoryError.
pub(crate) fn new_rows<'py>(
    py: Python<'py>,
    count: usize,
    len: usize,
    fill: &mut dyn FnMut(Vec<&mut [u8]>) -> PyResult<()>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut made = Vec::with_capacity(count);
    level(py, (count, len), Vec::with_capacity(count), fill, &mut made)?;
    made.reverse();
    Ok(made)
}

/// Makes one object and, inside the call that makes it, the objects behind it: only during that call can it be written
/// to.
fn level<'py>(
    py: Python<'py>,
    (left, len): (usize, usize),
    rows: Vec<&mut [u8]>,
    fill: &mut dyn FnMut(Vec<&mut [u8]>) -> PyResult<()>,
    made: &mut Vec<Bound<'py, PyBytes>>,
) -> PyResult<()> {
    if left == 0 {
        return fill(rows);
    }
    let own = PyBytes::new_with(py, len, |row| {
        let mut rows: Vec<&mut [u8]> = rows;
        rows.push(row);
        level(py, (left - 1, len), rows, fill, made)
    })?;
    made.push(own);
    Ok(())
}
