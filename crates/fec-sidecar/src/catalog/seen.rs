//! Files as they were found, and those that fail while they are read: they are noted, so that nothing stops at the
//! first.

use crate::catalog::fingerprint::{fingerprint_of, identity_of};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_core::executor::lock;
use fec_core::format::sidecar::parts::Reason;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Paths, and why they are not protected as they are now.
pub(crate) type Reasons = BTreeMap<Box<[u8]>, Reason>;

/// The fingerprint of an entry that is taken over from an old sidecar, and must not be read.
pub(crate) const UNSEEN: u64 = 0;

/// The files that were found.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The fingerprint of each entry, to detect later changes, or [`UNSEEN`].
    pub(crate) fingerprints: Vec<u64>,
    /// The identity of each entry, and its size, if files may grow: what comes behind that size is no change.
    growing: Vec<(u64, u64)>,
    /// True for a file that was read in one go, and has not changed until then: what happens to it later is an edit.
    settled: Vec<AtomicBool>,
    pub(crate) failed: Arc<Failed>,
}

/// The paths that failed.
#[derive(Debug, Default)]
pub(crate) struct Failed(Mutex<Reasons>);

impl Failed {
    pub(crate) fn take(&self) -> Reasons {
        std::mem::take(&mut lock(&self.0))
    }
}

impl Seen {
    /// Tells whether an entry was looked at.
    pub(crate) fn has(&self, nth: usize) -> bool {
        self.fingerprints[nth] != UNSEEN
    }

    /// The files with these fingerprints, and their identities and sizes, if they may grow.
    pub(crate) fn new(fingerprints: Vec<u64>, growing: Vec<(u64, u64)>) -> Seen {
        let settled = fingerprints.iter().map(|_| AtomicBool::new(false)).collect();
        Seen { fingerprints, growing, settled, failed: Arc::default() }
    }

    /// Tells whether files may grow.
    pub(crate) fn may_grow(&self) -> bool {
        !self.growing.is_empty()
    }

    /// Tells whether a file is the one that was found, and has not changed since; it may have grown, where that is
    /// allowed.
    pub(crate) fn is_as_found(&self, nth: usize, now: &Metadata) -> bool {
        let grew = |(identity, size): &(u64, u64)| *identity == identity_of(now) && *size <= now.len();
        fingerprint_of(now) == self.fingerprints[nth] || self.growing.get(nth).is_some_and(grew)
    }

    /// Notes that a file was read in one go, and has not changed.
    pub(crate) fn settle(&self, nth: usize) {
        self.settled[nth].store(true, Ordering::Relaxed);
    }

    /// Tells whether it counts for nothing that a file changes.
    pub(crate) fn is_settled(&self, nth: usize) -> bool {
        self.settled[nth].load(Ordering::Relaxed)
    }

    /// Notes a file that cannot be read or has changed. Returns the error.
    pub(crate) fn fail(&self, base: &Base, path: &[u8], cause: io::Error) -> Error {
        let place = base.place(path);
        match reason_of(&cause) {
            None => Error::io(Action::Read, place.as_path(), cause),
            Some(reason) => {
                self.note(path, reason);
                match reason {
                    Reason::Changing => Error::at(Action::Read, place.as_path(), ErrorKind::Changed),
                    _ => Error::io(Action::Read, place.as_path(), cause),
                }
            }
        }
    }

    /// Notes that a path has failed.
    pub(crate) fn note(&self, path: &[u8], reason: Reason) {
        lock(&self.failed.0).entry(path.into()).or_insert(reason);
    }

    /// As [`Seen::fail`], but goes on without a file that is noted.
    ///
    /// # Errors
    /// Those that are not the file's.
    pub(crate) fn pass(&self, base: &Base, path: &[u8], cause: io::Error) -> Result<()> {
        let is_noted = reason_of(&cause).is_some();
        let error = self.fail(base, path, cause);
        if is_noted { Ok(()) } else { Err(error) }
    }

    /// Fails if a file has failed.
    ///
    /// # Errors
    /// That of the first file.
    pub(crate) fn check(&self, base: &Base) -> Result<()> {
        let first = lock(&self.failed.0).first_key_value().map(|(path, reason)| (path.clone(), *reason));
        first.map_or(Ok(()), |(path, reason)| Err(error_of(base, &path, reason)))
    }
}

/// The error of a path that is not protected.
pub(crate) fn error_of(base: &Base, path: &[u8], reason: Reason) -> Error {
    let code = match reason {
        Reason::Changing => return Error::at(Action::Read, base.place(path).as_path(), ErrorKind::Changed),
        Reason::Denied => libc::EACCES,
        Reason::Unreadable => libc::EIO,
        Reason::TooLong => libc::ENAMETOOLONG,
    };
    Error::io(Action::Read, base.place(path).as_path(), io::Error::from_raw_os_error(code))
}

/// The reason of the folder that a path lies in.
fn reason_above(reasons: &Reasons, path: &[u8]) -> Option<Reason> {
    let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    slashes.find_map(|(at, _)| reasons.get(&path[..at])).copied()
}

/// Tells whether a path lies in a folder that is one of these.
pub(crate) fn is_below(reasons: &Reasons, path: &[u8]) -> bool {
    reason_above(reasons, path).is_some()
}

/// The reason of a path, or of the folder that it lies in.
pub(crate) fn reason_for(reasons: &Reasons, path: &[u8]) -> Option<Reason> {
    reasons.get(path).copied().or_else(|| reason_above(reasons, path))
}

/// Why a path that gives this error is not protected; `None` if the error is not that of the path.
pub(crate) fn reason_of(error: &io::Error) -> Option<Reason> {
    match (error.raw_os_error(), error.kind()) {
        (Some(libc::EACCES | libc::EPERM), _) => Some(Reason::Denied),
        (Some(libc::ENAMETOOLONG), _) => Some(Reason::TooLong),
        (Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR), _) => None,
        // The file is shorter than before, or another one, or gone.
        (Some(libc::ENOENT | libc::ENOTDIR | libc::ELOOP), _)
        | (None, io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput) => Some(Reason::Changing),
        (Some(_), _) => Some(Reason::Unreadable),
        (None, _) => None,
    }
}
