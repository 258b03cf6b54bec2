//! Errors as values: the action, the place and the cause. Callers choose words and exit codes of their own.

use crate::leftovers::{Beginning, Leftovers, show_root};
use crate::live::LiveError;
use crate::names::{bytes, show, show_input};
use crate::ranges::RangeList;
use crate::report::Restored;
use crate::seal::error::SealError;
use crate::sidecar::error::SidecarError;
use crate::sign::error::SignError;
#[cfg(feature = "stores")]
use crate::stores::error::StoresError;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::set::SetError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

pub use crate::class::Class;

/// The result of an operation of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns a failed write into an error that names the output.
pub(crate) type WriteFailure<'a> = dyn Fn(io::Error) -> Error + Sync + 'a;

/// The action, the place and the cause of a failure.
#[derive(Debug)]
pub struct Error {
    /// `read`, `write`, `encode`, …
    pub action: &'static str,
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
    #[error("{0}")]
    Io(#[source] io::Error),
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
    NotSynced(#[source] io::Error),
    /// An input that changed while it was read.
    #[error("it changed while it was read")]
    Changed,
    /// A set larger than the allowed memory.
    #[error("a set takes {}, and {} may be used", bytes(*need), bytes(*most))]
    SetMemory {
        /// Bytes of a set.
        need: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// Groups that do not fit the allowed memory while they are encoded.
    #[error("two groups take {}, and {} may be used", bytes(*need), bytes(*most))]
    EncodeMemory {
        /// Bytes of the groups.
        need: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// Digests of a payload that can be read only once.
    #[error("its digests stand in front of the container, so it would have to be read twice")]
    DigestsOfPipe,
    /// A request that breaks a rule of the formats.
    #[error("{0}")]
    Format(#[from] FormatError),
    /// A payload with more groups than the format has numbers for.
    #[error("the payload has more than {0} groups")]
    ManyGroups(u64),
    /// More encodings in one input than a reader tells apart.
    #[error("more than {0} encodings end in this input, and none was asked for")]
    TooManyEncodings(usize),
    /// Nothing was found under the wanted root, or under any.
    #[error("{0}")]
    NothingFound(Box<NothingFound>),
    /// Two or more encodings can be restored, and none was asked for.
    #[error("{} encodings are here, and none was asked for:{}", .0.len(), Roots(.0))]
    Ambiguous(Vec<Option<Digest>>),
    /// A live stream in front, and encodings behind it that can be restored.
    #[error("a live stream and encodings are here:{}", Roots(.0))]
    StreamAndEncodings(Vec<Option<Digest>>),
    /// Several encodings, of which none can be restored whole.
    #[error("{} encodings are here, and none is whole:{}", .roots.len(), Roots(roots))]
    NoneWhole {
        /// Their roots.
        roots: Vec<Option<Digest>>,
        /// Everything else that was found.
        leftovers: Box<Leftovers>,
    },
    /// A pipe from which no more can be restored.
    #[error("the payload cannot be restored from byte {position} on\n{}", lost_and_left(lost, leftovers))]
    NotWhole {
        /// Bytes of payload that were written out.
        position: u64,
        /// The lost bytes of the group that follows them.
        lost: Box<RangeList>,
        /// Everything else that came.
        leftovers: Box<Leftovers>,
    },
    /// A payload that cannot be restored whole. Nothing was written; the outcome lists the lost bytes.
    #[error("the payload cannot be restored whole\n{}", lost_and_left(&.0.outcome.lost, &.0.leftovers))]
    Lost(Box<Restored>),
    /// A container in a pipe that ends too early.
    #[error("it is cut: {position} bytes of the payload came out, and nothing follows")]
    Cut {
        /// Bytes of payload that were written out.
        position: u64,
        /// Everything else that came.
        leftovers: Box<Leftovers>,
    },
    /// A payload that is almost all lost: restoring its parts would write zeros for the rest.
    #[error("it has {len} bytes, of which {left} are left at most: the others would go out as zeros")]
    FewLeft {
        /// Bytes of payload whose sets have any shard.
        left: u64,
        /// Bytes of the payload, as far as it is known.
        len: u64,
    },
    /// A set that the root binds and that breaks a rule.
    #[error("group {group}, set {set}: {cause}")]
    Untrue {
        /// The group's number.
        group: u32,
        /// The set's number in it.
        set: u32,
        /// The rule.
        #[source]
        cause: SetError,
    },
    /// A recorded digest that the root binds and that is not the payload's.
    #[error("the recorded {0} is not that of the payload: whoever encoded it cheated or erred")]
    OtherDigest(&'static str),
    /// An encoding whose decoded payload, encoded again, has another root.
    #[error("what is left, encoded again, has another root: whoever encoded it cheated or erred")]
    OtherRoot,
    /// A meta of which no copy is left, although it stands in every file.
    #[error("no copy of the meta is left")]
    MetaLost,
    /// A recorded name that is not safe to name files after, where files are missing.
    #[error("the recorded name is not a plain one, and files are missing that are named after it")]
    NameNotPlain,
    /// A file that would be replaced and also holds another encoding.
    #[error("it also holds another encoding")]
    HoldsAnother,
    /// An output that is to be kept and holds another encoding.
    #[error("it holds another encoding than this payload has with these options{0}")]
    OtherEncoding(Box<OtherEncoding>),
    /// A range that does not lie in the payload.
    #[error("the range does not lie in the payload, which has {0} bytes")]
    OutOfPayload(u64),
    /// Decoding was asked for with one shard, which is not enough.
    #[error("one shard is not enough to decode sets")]
    OneShardDeep,
    /// A shard file where only a container can be read.
    #[error("it is a shard file, not a container")]
    ShardFileAlone,
    /// A failure to send or receive a live stream.
    #[error("{0}")]
    Live(#[from] LiveError),
    /// A failure to send shards to stores or to fetch them.
    #[cfg(feature = "stores")]
    #[error("{0}")]
    Stores(#[source] Box<StoresError>),
    /// A failure to protect files or to use a sidecar.
    #[error("{0}")]
    Sidecar(#[source] Box<SidecarError>),
    /// A failure to seal a payload or to open one.
    #[error("{0}")]
    Seal(#[source] Box<SealError>),
    /// An unusable key or signature, or a missing signature.
    #[error("{0}")]
    Sign(#[from] SignError),
}

impl From<SealError> for ErrorKind {
    fn from(error: SealError) -> ErrorKind {
        ErrorKind::Seal(Box::new(error))
    }
}

impl From<SidecarError> for ErrorKind {
    fn from(error: SidecarError) -> ErrorKind {
        ErrorKind::Sidecar(Box::new(error))
    }
}

/// The findings of a search that found no encoding to choose.
#[derive(Debug)]
pub struct NothingFound {
    /// The root that was asked for.
    pub wanted: Option<Digest>,
    /// Roots that some header, record or index names.
    pub others: Vec<Digest>,
    /// Findings that belong to no encoding.
    pub leftovers: Leftovers,
    /// The input is a single shard file of the wanted root, without one whole shard.
    pub is_shard_file: bool,
}

impl fmt::Display for NothingFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.live() {
            Beginning::Other => {}
            Beginning::Stream => {
                return f
                    .write_str("the input is a live stream: it has no root, and nothing in it is proved");
            }
            Beginning::Sealed => {
                return f.write_str("the input is a sealed live stream, which its key opens");
            }
        }
        let mut listed: String =
            self.others.iter().map(|root| format!("\n  found: root {}", show_root(Some(*root)))).collect();
        let mut left = String::new();
        self.leftovers.describe_all(&mut left);
        if !left.is_empty() {
            listed.push('\n');
            listed.push_str(left.trim_end());
        }
        match self.wanted {
            Some(root) => write!(f, "nothing of root {} was found{listed}", show_root(Some(root))),
            None => write!(f, "no intact shard or record was found{listed}"),
        }
    }
}

impl NothingFound {
    /// Tells whether the search found nothing at all that could belong to an encoding, damaged or not.
    pub fn is_bare(&self) -> bool {
        self.others.is_empty() && !self.leftovers.is_any() && self.live() == Beginning::Other
    }

    /// The kind of live stream that the input is, if it is one. A stream holds no encodings.
    pub fn live(&self) -> Beginning {
        if self.others.is_empty() { self.leftovers.beginning } else { Beginning::Other }
    }
}

/// The encoding that an output holds in place of the wanted one.
#[derive(Debug)]
pub struct OtherEncoding {
    /// Roots that anything in the output names.
    pub roots: Vec<Digest>,
    /// The wanted root.
    pub wanted: Digest,
    /// The parameters that differ, if the output holds one encoding. An empty list means that the payload differs.
    pub differences: Option<Vec<Difference>>,
}

/// A parameter that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The parameter's name.
    pub what: &'static str,
    /// The value in the output.
    pub is: String,
    /// The wanted value.
    pub would_be: String,
}

impl fmt::Display for OtherEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.roots.iter().try_for_each(|root| write!(f, "\n  there:  root {}", show_root(Some(*root))))?;
        write!(f, "\n  wanted: root {}", show_root(Some(self.wanted)))?;
        match self.differences.as_deref() {
            None => Ok(()),
            Some([]) => f.write_str("\n  the parameters are the same, so it is of other bytes"),
            Some(differences) => differences.iter().try_for_each(|Difference { what, is, would_be }| {
                write!(f, "\n  {what}: {is} there, {would_be} wanted")
            }),
        }
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

struct Roots<'a>(&'a [Option<Digest>]);

impl fmt::Display for Roots<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|root| write!(f, "\n  root {}", show_root(*root)))
    }
}

fn lost_and_left(lost: &RangeList, leftovers: &Leftovers) -> String {
    let mut out = String::new();
    lost.describe("lost", 5, &mut out);
    leftovers.describe(&mut out);
    out.trim_end().to_owned()
}

impl Error {
    /// An error without a place.
    pub fn new(action: &'static str, kind: impl Into<ErrorKind>) -> Error {
        Error { action, place: Place::Nowhere, kind: kind.into() }
    }

    /// An error at a place.
    pub fn at(action: &'static str, place: impl Into<Place>, kind: impl Into<ErrorKind>) -> Error {
        Error { action, place: place.into(), kind: kind.into() }
    }

    /// An error that the system reported for a file.
    pub fn io(action: &'static str, place: impl Into<Place>, cause: io::Error) -> Error {
        Error::at(action, place, ErrorKind::Io(cause))
    }

    /// The meaning of the error for the caller.
    pub fn class(&self) -> Class {
        match &self.kind {
            ErrorKind::Io(_)
            | ErrorKind::NotAllowed(_)
            | ErrorKind::NotSynced(_)
            | ErrorKind::NoRoom { .. }
            | ErrorKind::Changed => Class::Io,
            ErrorKind::SetMemory { .. }
            | ErrorKind::EncodeMemory { .. }
            | ErrorKind::FewLeft { .. }
            | ErrorKind::ManyGroups(_)
            | ErrorKind::Format(_) => Class::Refused,
            ErrorKind::NothingFound(found) if found.live() != Beginning::Other => Class::Usage,
            ErrorKind::NothingFound(found) if found.others.is_empty() => found.leftovers.class(),
            ErrorKind::NothingFound(found) => found.leftovers.class().max(Class::Untrue),
            ErrorKind::NoneWhole { leftovers, .. }
            | ErrorKind::NotWhole { leftovers, .. }
            | ErrorKind::Cut { leftovers, .. } => leftovers.class(),
            ErrorKind::Lost(restored) if restored.outcome.unreadable.is_some() => Class::Io,
            ErrorKind::Lost(restored) => restored.leftovers.class(),
            ErrorKind::MetaLost => Class::Lost,
            ErrorKind::Untrue { .. } | ErrorKind::OtherDigest(_) | ErrorKind::OtherRoot => Class::Untrue,
            ErrorKind::Live(cause) => cause.class(),
            #[cfg(feature = "stores")]
            ErrorKind::Stores(cause) => cause.class(),
            ErrorKind::Sidecar(cause) => cause.class(),
            ErrorKind::Seal(cause) => cause.class(),
            ErrorKind::Sign(cause) => cause.class(),
            ErrorKind::IsFolder
            | ErrorKind::IsSymlink
            | ErrorKind::NotOwn(_)
            | ErrorKind::Exists
            | ErrorKind::NotAFolder
            | ErrorKind::FolderNotEmpty
            | ErrorKind::NotAShardFile(_)
            | ErrorKind::Ambiguous(_)
            | ErrorKind::TooManyEncodings(_)
            | ErrorKind::StreamAndEncodings(_)
            | ErrorKind::DigestsOfPipe
            | ErrorKind::OutOfPayload(_)
            | ErrorKind::NameNotPlain
            | ErrorKind::HoldsAnother
            | ErrorKind::OtherEncoding(_)
            | ErrorKind::OneShardDeep
            | ErrorKind::ShardFileAlone => Class::Usage,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The words of these kinds need no action and no place in front.
        let speaks_for_itself = matches!(
            self.kind,
            ErrorKind::NothingFound(_) | ErrorKind::Ambiguous(_) | ErrorKind::NoneWhole { .. }
        );
        match &self.place {
            _ if speaks_for_itself => write!(f, "{}", self.kind),
            Place::Nowhere => write!(f, "{}: {}", self.action, self.kind),
            place => write!(f, "{} {place}: {}", self.action, self.kind),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}
