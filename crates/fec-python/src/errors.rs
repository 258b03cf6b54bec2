//! Turns errors of the library into exceptions. The classes stand in python/fecshards/errors.py, one for each exit code
//! of the command.

use fec_core::block::CodeError;
use fecfile::error::{Class, EncodingError, Error, ErrorKind, Place};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use std::io;

pyo3::import_exception!(fecshards.errors, Damaged);
pyo3::import_exception!(fecshards.errors, Refused);
pyo3::import_exception!(fecshards.errors, UsageError);
pyo3::import_exception!(fecshards.errors, WrongRoot);

/// The exception for an error.
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let (class, message) = (error.class(), error.to_string());
    if let Some(EncodingError::Lost(restored)) = error.cause() {
        let raised = of_class(class, message);
        // The report tells the lost and the remaining bytes, as far as they are known.
        let report = Py::new(py, crate::reports::Restored::new(restored));
        return match report.and_then(|report| raised.value(py).setattr("restored", report)) {
            Ok(()) => raised,
            Err(other) => other,
        };
    }
    match error.kind {
        ErrorKind::Io(cause) => io_exception(cause, &error.place, message),
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
        Class::Cancelled => PyKeyboardInterrupt::new_err(message),
    }
}

/// An error of the system becomes its subclass of OSError in Python, with errno and the file's name. An exception of a
/// file object passes unchanged.
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

/// The exception for numbers k and m that no code has.
pub(crate) fn no_code(error: CodeError) -> PyErr {
    UsageError::new_err(error.to_string())
}
