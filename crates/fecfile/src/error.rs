//! The errors of encodings.

use crate::leftovers::{Beginning, Leftovers, show_root};
use crate::report::Restored;
use fec_base::names::bytes;
use fec_base::ranges::RangeList;
use fec_core::digest::Digest;
use fec_core::set::SetError;
use std::fmt;

pub use fec_base::error::{Action, Cause, Class, Error, ErrorKind, Place, Result, WriteFailure};

/// The reason why an operation on an encoding stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingError {
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
}

impl Cause for EncodingError {
    fn class(&self) -> Class {
        match self {
            EncodingError::EncodeMemory { .. }
            | EncodingError::FewLeft { .. }
            | EncodingError::ManyGroups(_) => Class::Refused,
            EncodingError::NothingFound(found) if found.live() != Beginning::Other => Class::Usage,
            EncodingError::NothingFound(found) if found.others.is_empty() => found.leftovers.class(),
            EncodingError::NothingFound(found) => found.leftovers.class().max(Class::Untrue),
            EncodingError::NoneWhole { leftovers, .. }
            | EncodingError::NotWhole { leftovers, .. }
            | EncodingError::Cut { leftovers, .. } => leftovers.class(),
            EncodingError::Lost(restored) if restored.outcome.unreadable.is_some() => Class::Io,
            EncodingError::Lost(restored) => restored.leftovers.class(),
            EncodingError::MetaLost => Class::Lost,
            EncodingError::Untrue { .. } | EncodingError::OtherDigest(_) | EncodingError::OtherRoot => {
                Class::Untrue
            }
            EncodingError::Ambiguous(_)
            | EncodingError::TooManyEncodings(_)
            | EncodingError::StreamAndEncodings(_)
            | EncodingError::DigestsOfPipe
            | EncodingError::OutOfPayload(_)
            | EncodingError::NameNotPlain
            | EncodingError::HoldsAnother
            | EncodingError::OtherEncoding(_)
            | EncodingError::OneShardDeep
            | EncodingError::ShardFileAlone => Class::Usage,
        }
    }

    fn speaks_for_itself(&self) -> bool {
        matches!(
            self,
            EncodingError::NothingFound(_) | EncodingError::Ambiguous(_) | EncodingError::NoneWhole { .. }
        )
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

    /// Tells whether the search found nothing but files that hold nothing of any encoding.
    pub fn is_foreign(&self) -> bool {
        let Leftovers { foreign, unreadable, .. } = &self.leftovers;
        self.is_bare()
            || !foreign.is_empty()
                && unreadable.is_empty()
                && !self.leftovers.rejects_any()
                && self.others.is_empty()
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
