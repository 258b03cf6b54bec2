//! Errors as values: the action, the place and the cause. Callers choose words and exit codes of their own.

use crate::names::{bytes, show, show_input};
use fec_core::error::FormatError;
use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use crate::action::Action;
pub use crate::class::Class;

/// The result of an operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns a failed write into an error that names the output.
pub type WriteFailure<'a> = dyn Fn(io::Error) -> Error + Sync + 'a;

/// The action, the place and the cause of a failure.
#[derive(Debug)]
pub struct Error {
    /// The action that failed.
    pub action: Action,
    /// The place of the failure.
    pub place: Place,
    /// The cause.
    pub kind: ErrorKind,
}

/// A place where something went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file or folder, `-` for standard input, or the name of an object in a store.
    Path(PathBuf),
    /// Standard output, or any other writer of the caller.
    Output,
    /// A temporary file.
    Temporary,
    /// A network address.
    Address(String),
    /// No place in particular.
    Nowhere,
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Place {
        Place::Path(path.to_path_buf())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Path(path) => f.write_str(&show_input(path)),
            Place::Output => f.write_str("standard output"),
            Place::Temporary => f.write_str("the temporary file"),
            Place::Address(address) => f.write_str(address),
            Place::Nowhere => Ok(()),
        }
    }
}

/// The reason why an operation stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The system or a store reports an error.
    #[error(transparent)]
    Io(io::Error),
    /// A folder where a file is expected.
    #[error("it is a folder")]
    IsFolder,
    /// An output that is a symbolic link.
    #[error("it is a symbolic link")]
    IsSymlink,
    /// A name that others can predict leads to something else than a regular file of this user; the words say what is
    /// wrong with it.
    #[error("{0}")]
    NotOwn(&'static str),
    /// Files and folders that this user may not read or write.
    #[error("{}", not_allowed(.0))]
    NotAllowed(Vec<PathBuf>),
    /// An output that exists and may not be replaced.
    #[error("it exists")]
    Exists,
    /// A path for the output folder where something else stands.
    #[error("it exists and is not a folder")]
    NotAFolder,
    /// An output folder that is not empty.
    #[error("the folder is not empty")]
    FolderNotEmpty,
    /// A folder that may be replaced holds something that is not a shard file.
    #[error("{} is not a shard file", show(.0))]
    NotAShardFile(PathBuf),
    /// An output file system that is too small.
    #[error("{} are needed and {} are free", bytes(*needed), bytes(*free))]
    NoRoom {
        /// Bytes of the output.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// An output that is complete under its name, but may not be on the disk yet.
    #[error("it is complete, but its folder could not be put on the disk: {0}")]
    NotSynced(io::Error),
    /// An input that changed while it was read.
    #[error("it changed while it was read")]
    Changed,
    /// An output whose name another file got, in place of the one that was to be replaced.
    #[error("another file was put there meanwhile, and it stays")]
    Overtaken,
    /// A set larger than the allowed memory.
    #[error("a set takes {}, and {} may be used", bytes(*need), bytes(*most))]
    SetMemory {
        /// Bytes of a set.
        need: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// The caller ended the operation early.
    #[error("it was stopped")]
    Cancelled,
    /// A request that breaks a rule of the formats.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A cause of another crate or module, which [`Error::cause`] tells by its type.
    #[error("{0}")]
    Other(Box<dyn Cause>),
}

/// A cause that another crate or module has of its own.
pub trait Cause: std::error::Error + Any + Send + Sync {
    /// The meaning of the error for the caller.
    fn class(&self) -> Class;

    /// Tells whether its words need no action and no place in front.
    fn speaks_for_itself(&self) -> bool {
        false
    }
}

impl<C: Cause> From<C> for ErrorKind {
    fn from(cause: C) -> ErrorKind {
        ErrorKind::Other(Box::new(cause))
    }
}

/// The paths, a line each; only the first thousand are named.
fn not_allowed(paths: &[PathBuf]) -> String {
    const MOST: usize = 1000;
    let mut out = match paths.len() {
        1 => "permission denied:".to_owned(),
        count => format!("permission denied, {count} times:"),
    };
    paths.iter().take(MOST).for_each(|path| out.push_str(&format!("\n  {}", show(path))));
    if paths.len() > MOST {
        out.push_str(&format!("\n  and {} more", paths.len() - MOST));
    }
    out
}

impl Error {
    /// An error without a place.
    pub fn new(action: Action, kind: impl Into<ErrorKind>) -> Error {
        Error { action, place: Place::Nowhere, kind: kind.into() }
    }

    /// An error at a place.
    pub fn at(action: Action, place: impl Into<Place>, kind: impl Into<ErrorKind>) -> Error {
        Error { action, place: place.into(), kind: kind.into() }
    }

    /// An error that the system reported for a file.
    pub fn io(action: Action, place: impl Into<Place>, cause: io::Error) -> Error {
        Error::at(action, place, ErrorKind::Io(cause))
    }

    /// The cause, if it is of this type.
    pub fn cause<C: Cause>(&self) -> Option<&C> {
        let ErrorKind::Other(cause) = &self.kind else { return None };
        let cause: &dyn Any = cause.as_ref();
        cause.downcast_ref()
    }

    /// The cause, to be changed, if it is of this type.
    pub fn cause_mut<C: Cause>(&mut self) -> Option<&mut C> {
        let ErrorKind::Other(cause) = &mut self.kind else { return None };
        let cause: &mut dyn Any = cause.as_mut();
        cause.downcast_mut()
    }

    /// The cause, if it is of this type; the error otherwise.
    ///
    /// # Errors
    /// The error itself.
    pub fn into_cause<C: Cause>(self) -> std::result::Result<C, Error> {
        match self.kind {
            ErrorKind::Other(cause) if (cause.as_ref() as &dyn Any).is::<C>() => {
                let cause: Box<dyn Any> = cause;
                Ok(*cause.downcast().expect("it was asked for its type"))
            }
            kind => Err(Error { kind, ..self }),
        }
    }

    /// The meaning of the error for the caller.
    pub fn class(&self) -> Class {
        match &self.kind {
            ErrorKind::Io(_)
            | ErrorKind::NotAllowed(_)
            | ErrorKind::NotSynced(_)
            | ErrorKind::NoRoom { .. }
            | ErrorKind::Changed
            | ErrorKind::Overtaken => Class::Io,
            ErrorKind::Cancelled => Class::Cancelled,
            ErrorKind::SetMemory { .. } | ErrorKind::Format(_) => Class::Refused,
            ErrorKind::Other(cause) => cause.class(),
            ErrorKind::IsFolder
            | ErrorKind::IsSymlink
            | ErrorKind::NotOwn(_)
            | ErrorKind::Exists
            | ErrorKind::NotAFolder
            | ErrorKind::FolderNotEmpty
            | ErrorKind::NotAShardFile(_) => Class::Usage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speaks_for_itself = matches!(&self.kind, ErrorKind::Other(cause) if cause.speaks_for_itself());
        match &self.place {
            _ if speaks_for_itself => write!(f, "{}", self.kind),
            Place::Nowhere => write!(f, "{}: {}", self.action, self.kind),
            place => write!(f, "{} {place}: {}", self.action, self.kind),
        }
    }
}

impl std::error::Error for Error {
    /// The cause of the cause: the words of the cause are in those of the error.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// Programs print an error and its sources, one after the other.
    #[test]
    fn a_cause_is_told_once() {
        let path = Path::new("a file");
        let system = || io::Error::from(io::ErrorKind::NotFound);
        let errors = [
            Error::io(Action::Read, path, system()),
            Error::io(Action::Write, path, io::Error::other(system())),
            Error::at(Action::Write, path, ErrorKind::NotSynced(system())),
            Error::at(Action::Encode, path, FormatError::SmallSet { least: 5 }),
            Error::new(Action::Decode, ErrorKind::Cancelled),
        ];
        for error in errors {
            let told = error.to_string();
            let mut source = error.source();
            while let Some(cause) = source {
                assert!(!told.contains(&cause.to_string()), "{told}; {cause}");
                source = cause.source();
            }
        }
    }
}
