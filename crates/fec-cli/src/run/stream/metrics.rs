//! The file of `--metrics`: statistics for other programs, renewed while a stream runs.

use crate::plan::check;
use crate::plan::named::{METRICS, MetricsFile};
use crate::run::target::is_dash;
use crate::say::failure::{Failure, Result, say};
use crate::say::metrics::BEGINNING;
use crate::system::progress::remove_stale_beside;
use fec_base::error::Action;
use fec_base::io::output::{check_own, is_same, write_shown};
use fec_base::names::show;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The file, as far as the user wants it.
pub(crate) struct Metrics {
    path: Option<PathBuf>,
    /// True if a failure was told.
    is_told: bool,
}

impl Metrics {
    /// The file at `path`, which is none of the `others` that the command reads and writes, and holds nothing but older
    /// statistics.
    pub(crate) fn new(path: Option<&Path>, others: &[&Path]) -> Result<Metrics> {
        if let Some(path) = path {
            let is_other = others.iter().any(|other| is_same(path, other));
            let is_dash = is_dash(path);
            let is_foreign = !is_dash && !is_other && is_foreign(path)?;
            let found = MetricsFile { is_dash, is_other, is_foreign };
            check(&found, METRICS, |_| show(path))?;
            remove_stale_beside(path);
        }
        Ok(Metrics { path: path.map(Path::to_path_buf), is_told: false })
    }

    /// Writes the statistics. A failure is told once, and ends nothing.
    pub(crate) fn write(&mut self, text: impl FnOnce() -> String) {
        let Some(path) = &self.path else { return };
        if let Err(e) = write_shown(path, &text())
            && !std::mem::replace(&mut self.is_told, true)
        {
            say(&format!("{}\n     the stream goes on without", Failure::from(e)));
        }
    }
}

/// Tells whether a file holds something else than older statistics. Anything that is no file of this user is an error.
fn is_foreign(path: &Path) -> Result<bool> {
    let Some((file, _)) = check_own(path, Action::Write)? else { return Ok(false) };
    let mut beginning = Vec::new();
    let read = file.take(BEGINNING.len() as u64).read_to_end(&mut beginning);
    read.map_err(|e| Failure::io(Action::Read, path, e))?;
    Ok(!beginning.is_empty() && beginning != BEGINNING.as_bytes())
}
