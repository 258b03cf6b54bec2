//! Python's file objects and iterators as readers and writers. The GIL is taken for each piece, and released in
//! between.

use crate::buffers::bytes_of;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyIterator};
use std::io::{self, Read, Write};

/// A source of bytes.
pub(crate) struct Source {
    from: From,
    /// The piece that came last, of which `taken` bytes were read.
    piece: Option<PyBackedBytes>,
    taken: usize,
}

enum From {
    File(Py<PyAny>),
    Iterator(Py<PyIterator>),
}

impl Source {
    /// A source that reads an object with `read`, or an iterable of bytes.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Source> {
        let from = if object.hasattr(intern!(object.py(), "read"))? {
            From::File(object.clone().unbind())
        } else if bytes_of(object).is_ok() {
            // `bytes` are iterable too, but yield numbers.
            return Err(PyTypeError::new_err(
                "a file object or an iterable of bytes is read, not bytes: io.BytesIO makes one of them",
            ));
        } else {
            From::Iterator(object.try_iter()?.unbind())
        };
        Ok(Source { from, piece: None, taken: 0 })
    }

    /// The next piece; `None` at the end.
    fn next(&self, py: Python<'_>, most: usize) -> PyResult<Option<PyBackedBytes>> {
        py.check_signals()?;
        match &self.from {
            From::File(file) => {
                let piece = bytes_of(&file.bind(py).call_method1(intern!(py, "read"), (most,))?)?;
                Ok((!piece.is_empty()).then_some(piece))
            }
            From::Iterator(iterator) => {
                // An empty piece is not the end.
                for piece in iterator.bind(py).clone() {
                    let piece = bytes_of(&piece?)?;
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                Ok(None)
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.piece.as_ref().is_none_or(|piece| self.taken == piece.len()) {
            self.piece = Python::attach(|py| self.next(py, out.len())).map_err(io::Error::other)?;
            self.taken = 0;
        }
        let Some(piece) = &self.piece else { return Ok(0) };
        let rest = &piece[self.taken..];
        let len = rest.len().min(out.len());
        out[..len].copy_from_slice(&rest[..len]);
        self.taken += len;
        Ok(len)
    }
}

/// A file object to which bytes are written.
pub(crate) struct Sink(Py<PyAny>);

impl Sink {
    /// A sink that writes to an object with `write`.
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Sink> {
        match object.hasattr(intern!(object.py(), "write"))? {
            true => Ok(Sink(object.clone().unbind())),
            false => Err(PyTypeError::new_err("a file object is written to: something with write()")),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Python::attach(|py| {
            py.check_signals()?;
            // Raw files return how much they took; other files take everything, and some return nothing.
            let told = self.0.bind(py).call_method1(intern!(py, "write"), (PyBytes::new(py, bytes),))?;
            if told.is_none() { Ok(bytes.len()) } else { told.extract::<usize>() }
        });
        written.map(|len| len.min(bytes.len())).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
