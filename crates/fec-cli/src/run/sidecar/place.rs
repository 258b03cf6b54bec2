//! The place of the sidecar that `fec protect` makes, updates or lists.

use crate::line;
use crate::plan::protect::{FOUND, Found};
use crate::plan::refused;
use crate::run::target::beside;
use crate::say::failure::{Failure, Result};
use fec_base::error::Action;
use std::path::PathBuf;

/// The path of the sidecar: beside the protected path, if there is just one.
pub(crate) fn place_of(args: &line::Protect, paths: &[PathBuf]) -> Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let [path] = paths else {
        return Err(refused(&Found::Several, FOUND, |_| String::new()));
    };
    if path.file_name().is_none() {
        // A path like `..` has a name only if it exists: otherwise this fails with the reason.
        std::fs::canonicalize(path).map_err(|e| Failure::io(Action::Read, path, e))?;
    }
    beside(path).ok_or_else(|| refused(&Found::Top, FOUND, |_| String::new()))
}
