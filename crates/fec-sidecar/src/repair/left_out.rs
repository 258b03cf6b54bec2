//! Links, names, permissions, times and long files that the target's file system cannot hold. They are left out and
//! reported, and the rest is restored.

use crate::examine::findings::Cause;
use fec_base::error::{Error, ErrorKind};
use fec_base::io::naming::is_lacking;
use fec_base::io::output::if_any;
use fec_core::format::sidecar::EntryKind;
use rustix::io::Errno;
use std::io;

/// Something that the target cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of the entry in the catalog.
    pub entry: usize,
    /// The missing part of the entry.
    pub what: Part,
    /// The answer of the system.
    pub cause: Cause,
}

/// The part of an entry that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole entry.
    Entry,
    /// The permissions.
    Permissions,
    /// The time.
    Time,
}

/// The cause, if an error says that the target cannot hold an entry of this name or length.
pub(crate) fn is_of_name(error: &Error) -> Option<Cause> {
    const OF_NAME: [Errno; 4] = [Errno::INVAL, Errno::ILSEQ, Errno::NAMETOOLONG, Errno::FBIG];
    cause_if(error, |errno| OF_NAME.contains(&errno))
}

/// The cause, if an error of making a link says that the target cannot hold this kind.
pub(crate) fn is_of_kind(kind: &EntryKind, error: &Error) -> Option<Cause> {
    cause_if(error, |errno| match kind {
        EntryKind::HardLink(_) => is_lacking(errno) || [Errno::MLINK, Errno::XDEV].contains(&errno),
        _ => is_lacking(errno),
    })
}

fn cause_if(error: &Error, is: impl Fn(Errno) -> bool) -> Option<Cause> {
    let ErrorKind::Io(error) = &error.kind else { return None };
    Errno::from_io_error(error).filter(|errno| is(*errno)).map(|_| Cause::from(error))
}

/// The causes why permissions and time could not be set, where the target or the system has none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dressed {
    pub(crate) permissions: Option<Cause>,
    pub(crate) time: Option<Cause>,
}

/// The cause, if the target has no such attribute; other errors stay errors.
pub(crate) fn unset(done: io::Result<()>) -> io::Result<Option<Cause>> {
    match done {
        Err(e) if if_any(Err(io::Error::from(Cause::from(&e)))).is_ok() => Ok(Some(Cause::from(&e))),
        done => done.map(|()| None),
    }
}
