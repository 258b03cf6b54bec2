//! From errors of the library to exceptions. The classes stand in python/fecshards/errors.py, one for each exit code of the command.

use fec_core::block::CodeError;
use fecfile::error::{Class, Error, ErrorKind, Place};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use std::io;

pyo3::import_exception!(fecshards.errors, Damaged);
pyo3::import_exception!(fecshards.errors, Refused);
pyo3::import_exception!(fecshards.errors, UsageError);
pyo3::import_exception!(fecshards.errors, WrongRoot);

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let (class, message) = (error.class(), error.to_string());
    match error.kind {
        ErrorKind::Io(cause) => io_exception(cause, &error.place, message),
        ErrorKind::Lost(restored) => {
            let raised = of_class(class, message);
            // What is lost, and what is left, as far as it is known.
            let report = Py::new(py, crate::reports::Restored::new(&restored));
            match report.and_then(|report| raised.value(py).setattr("restored", report)) {
                Ok(()) => raised,
                Err(other) => other,
            }
        }
        _ => of_class(class, message),
    }
}

fn of_class(class: Class, message: String) -> PyErr {
    match class {
        Class::Mendable | Class::Lost => Damaged::new_err(message),
        Class::Untrue => WrongRoot::new_err(message),
        Class::Refused => Refused::new_err(message),
        Class::Io => PyOSError::new_err(message),
        Class::Usage => UsageError::new_err(message),
    }
}

/// What the system reports becomes the subclass of OSError that it has in Python, with errno and the file's name; what a file object
/// raised goes on as it is.
fn io_exception(cause: io::Error, place: &Place, message: String) -> PyErr {
    let Some(code) = cause.raw_os_error() else {
        return match cause.downcast::<PyErr>() {
            Ok(raised) => raised,
            Err(_) => PyOSError::new_err(message),
        };
    };
    let text = cause.to_string();
    let text = text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text).to_owned();
    match place {
        Place::Path(path) => PyOSError::new_err((code, text, path.clone().into_os_string())),
        _ => PyOSError::new_err((code, text)),
    }
}

/// There is no such code.
pub(crate) fn no_code(error: CodeError) -> PyErr {
    UsageError::new_err(error.to_string())
}
