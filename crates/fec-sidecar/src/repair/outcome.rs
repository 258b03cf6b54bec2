//! The end of a repair: tells what was mended, and whether the sidecar is why some of it was not.

use crate::Sidecar;
use crate::catalog::journal::Journal;
use crate::error::SidecarError;
use crate::examine::deep::Deep;
use crate::examine::{Scope, State, examine};
use crate::repair::mend::Mended;
use crate::repair::task::{Task, is_denied};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::{Base, file_type};
use rustix::fs::FileType;

/// Everything about the written files that the result is told from.
pub(crate) struct Outcome {
    /// Entries that were to be written, and could not be restored.
    pub(crate) failed: Vec<usize>,
    /// The contradiction of the sidecar, if one is known.
    pub(crate) contradiction: Option<SidecarError>,
    /// The error of the first file that could not be made or read again.
    pub(crate) cause: Option<Error>,
    /// True if some file is half mended, and nobody else has written to it.
    pub(crate) is_half_mended: bool,
}

impl Outcome {
    /// Tells the result of a repair that has written below `target`, and removes the list that nobody needs any more.
    ///
    /// # Errors
    /// A contradiction, or the cause of a failure, unless a partial repair was asked for.
    pub(crate) fn tell(
        self,
        task: &Task<'_>,
        mut mended: Mended,
        journal: &Journal,
        target: &Base,
    ) -> Result<Mended> {
        let Task { sidecar, how, .. } = *task;
        let Outcome { failed, contradiction, cause, is_half_mended } = self;
        let contradiction = match (contradiction, &cause) {
            (None, _) if failed.is_empty() => None,
            (None, None) => contradiction_of(task, &failed)?,
            // An entry may have failed because it needs one that could not be mended, as a link needs its file.
            (None, Some(_)) => contradiction_of(task, &failed).unwrap_or_default(),
            (found, _) => found,
        };
        // By the list a later repair knows what is half mended. The list goes even after a contradiction: another run
        // would end the same.
        let is_listed = how.out.is_none() && journal.is_there();
        if is_listed && (contradiction.is_some() || !is_half_mended) {
            journal.end();
        }
        if let Some(contradiction) = contradiction {
            let contradiction = Error::at(Action::Repair, sidecar.path(), contradiction);
            if !how.partial {
                return Err(contradiction);
            }
            mended.contradiction = Some(contradiction);
        }
        if failed.is_empty() || how.partial {
            mended.is_denied |= cause.as_ref().is_some_and(is_denied);
            mended.cause = cause.or(mended.cause);
            return Ok(mended);
        }
        Err(cause.unwrap_or_else(|| in_the_way(sidecar, target, failed[0])))
    }
}

/// The error for an entry that something else stands in the place of.
fn in_the_way(sidecar: &Sidecar, target: &Base, entry: usize) -> Error {
    let path = &sidecar.catalog.entries[entry].path;
    let is_folder = target.stat(path).is_ok_and(|stat| file_type(&stat) == FileType::Directory);
    let kind = if is_folder { ErrorKind::IsFolder } else { ErrorKind::Changed };
    Error::at(Action::Repair, target.place(path).as_path(), kind)
}

/// Tells whether the sidecar is why these files could not be mended. They are examined anew, since the repair has
/// written to them. A file that the system does not give back whole says nothing of the sidecar.
fn contradiction_of(task: &Task<'_>, failed: &[usize]) -> Result<Option<SidecarError>> {
    let Task { sidecar, base, context, .. } = *task;
    let context = &context.silent();
    let examined = match examine(sidecar, base, Scope::All, context) {
        Ok(examined) => examined,
        Err(error) if matches!(error.cause(), Some(SidecarError::Contradiction(_))) => {
            return error.into_cause().map(Some);
        }
        Err(error) => return Err(error),
    };
    if examined.entries.iter().any(|report| report.state == State::Unreadable) {
        return Ok(None);
    }
    let meter = context.meter(Action::Verify, None);
    Deep { sidecar, base, examined: &examined, context, meter: &meter }.files(failed)
}
