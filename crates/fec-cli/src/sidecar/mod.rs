//! Files that stay where they are: `fec protect`, and what `verify`, `repair` and `manifest` do with a sidecar.

pub(crate) mod manifest;
pub(crate) mod protect;
pub(crate) mod repair;
pub(crate) mod report;
pub(crate) mod verify;

use crate::failure::Result;
use crate::target::is_dash;
use fecfile::sidecar::Sidecar;
use std::path::{Path, PathBuf};

/// The ending of a sidecar's name.
const ENDING: &str = "fecp";

/// The sidecar that a command line names, if it names one: by what stands at its start, or by its name.
pub(crate) fn named(paths: &[PathBuf]) -> Result<Option<&Path>> {
    let [path] = paths else { return Ok(None) };
    if is_dash(path) || !path.is_file() {
        return Ok(None);
    }
    let is_one = path.extension().is_some_and(|ending| ending == ENDING) || Sidecar::starts(path)?;
    Ok(is_one.then_some(path))
}
