//! Errors that only sidecars have.

use fec_base::class::{Class, class_of};
use fec_base::error::Cause;
use fec_base::names::{bytes, show, show_bytes};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use std::path::PathBuf;

/// Why files cannot be protected, or a sidecar cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// Nothing to protect exists under the given paths.
    #[error("nothing to protect was found")]
    Nothing,
    /// None of the given paths is a file, though the sidecar to be replaced protects some.
    #[error("there is no file to protect, and the sidecar that is there protects some")]
    NoFiles,
    /// A given path is neither a file nor a folder.
    #[error("it is neither a file nor a folder, but a link or a device")]
    NotAFile,
    /// The folder for mended copies is not empty.
    #[error("the folder is not empty")]
    OutputNotEmpty,
    /// Something else exists at the path of the sidecar.
    #[error("it exists, and does not begin as a sidecar does")]
    NotASidecar,
    /// A pattern that no path can match.
    #[error("{pattern}: {why}")]
    Pattern {
        /// The pattern, as it was given.
        pattern: String,
        /// The fault in it.
        why: String,
    },
    /// A policy that cannot be used.
    #[error("{0}")]
    Policy(String),
    /// A policy, and several paths.
    #[error("a policy is for one folder")]
    PolicyOfOne,
    /// The sidecar has a policy, and the root or signature that was asked for does not prove it.
    #[error("it has a policy, and nothing that was given proves it")]
    PolicyUnproved,
    /// A prune is announced, and no policy says what stays otherwise.
    #[error("it has no policy")]
    NoPolicy,
    /// A program is at work in the folder.
    #[error("a program is at work here, as its policy says")]
    AtWork,
    /// Files are damaged or gone that the policy says are written once, or stay, and the rest cannot be protected
    /// without them.
    #[error("damaged or gone, though written once or to stay: {}", named(.0))]
    Held(Vec<Vec<u8>>),
    /// Files that should only grow do not begin with what they were, and nothing can be protected without them.
    #[error("not grown from what they were: {}", named(.0))]
    Rewritten(Vec<Vec<u8>>),
    /// Files that cannot be read share recovery data with what has changed, and would not be protected any more.
    #[error("they cannot be read, and could not stay protected: {}", named(.0))]
    GivenUp(Vec<Vec<u8>>),
    /// More patterns than a sidecar remembers.
    #[error("its patterns are too long, or too many")]
    ManyPatterns,
    /// A given path lies outside the base.
    #[error("it does not lie in the base, {}", show(.0))]
    OutsideBase(PathBuf),
    /// A path at which, or below which, nothing is protected.
    #[error("it does not protect {}", show_bytes(.0))]
    NoEntry(Vec<u8>),
    /// No piece of a sidecar was found.
    #[error("no piece of a sidecar was found{}", .0.as_ref().map(|rule| format!(" that is not rejected: {rule}")).unwrap_or_default())]
    NotFound(Option<FormatError>),
    /// Too few pieces were found.
    #[error("too few of its pieces are left to know what it protects")]
    TooFewPieces,
    /// The metadata breaks a rule.
    #[error("{0}")]
    Invalid(FormatError),
    /// Several sidecars were found, and none replaces the others.
    #[error("it holds several sidecars, and none was asked for:{}", listed(.0))]
    Ambiguous(Vec<Digest>),
    /// The root differs from the given one.
    #[error("it has no generation with the given root:{}", listed(.0))]
    OtherRoot(Vec<Digest>),
    /// The root is the signed one, but the metadata beside it is not.
    #[error(
        "its root was signed, {}, and its times and permissions are not those that were signed with it",
        fec_base::names::hex(.0)
    )]
    OtherMetadata(Digest),
    /// The files do not lie where the sidecar lies.
    #[error("the files that it protects do not lie in its folder; when it was made, their base was {} from there", show_bytes(.0))]
    BaseNeeded(Vec<u8>),
    /// Damage exceeds the recovery shards.
    #[error("{} are lost beyond repair; nothing was changed", bytes(*.lost))]
    BeyondRepair {
        /// Lost bytes.
        lost: u64,
        /// True if a partial repair would mend something.
        is_partly_mendable: bool,
    },
    /// All blocks of a file have their digests, but the file has another one.
    #[error("{} is not what the sidecar says, although all its blocks are: whoever made the sidecar cheated or erred", show_bytes(.0))]
    Contradiction(Vec<u8>),
    /// Recovery shards do not fit the files, although all of them have their digests.
    #[error(
        "its recovery data is not that of its files, although all of it has its digests: whoever made the sidecar cheated or erred, or had bad memory{}",
        .0.as_ref().map(|path| format!("; {} needs it", show_bytes(path))).unwrap_or_default()
    )]
    NotACodeword(Option<Vec<u8>>),
    /// A file is no list of when files were examined.
    #[error("it is something else than a list of what was verified when")]
    NotAState,
    /// A list of when files were examined names none of these files.
    #[error("it is a list of what was verified when, and of none of the files of this sidecar")]
    OtherState,
    /// There is no sidecar to update.
    #[error("there is no sidecar to update")]
    NothingToUpdate,
    /// Too many files are gone for that to be intended.
    #[error("{gone} of the {of} files that it protects are gone, with {} of {}", bytes(*gone_len), bytes(*of_len))]
    ManyGone {
        /// Files that are gone.
        gone: u64,
        /// All files.
        of: u64,
        /// Bytes of the files that are gone.
        gone_len: u64,
        /// Bytes of all files.
        of_len: u64,
    },
    /// Most files of a folder are gone.
    #[error("{gone} of the {of} files that it protects in {} are gone", show_bytes(folder))]
    FolderGone {
        /// The folder.
        folder: Vec<u8>,
        /// Its files that are gone.
        gone: u64,
        /// All its files.
        of: u64,
    },
    /// A file that had bytes is empty.
    #[error("{} has become empty", show_bytes(.0))]
    Emptied(Vec<u8>),
    /// A file looks like one that was elsewhere, but has other bytes.
    #[error(
        "{} has the size and the time that {} had, but other bytes: it was probably moved, and then damaged",
        show_bytes(now),
        show_bytes(was)
    )]
    RottenOrNew {
        /// The file that is there.
        now: Vec<u8>,
        /// The path of the other file.
        was: Vec<u8>,
    },
    /// Files have other bytes, and their times do not tell damage from edits: somebody put them back, or no file has
    /// kept its own.
    #[error("damaged or edited, which no time tells: the size is as it was, and the bytes are not: {}", named(.0))]
    RottenOrEdited(Vec<Vec<u8>>),
    /// Files have other bytes, though nobody wrote to them.
    #[error("rotten: the size and time are as they were, and the bytes are not: {}", named(.0))]
    Rotten(Vec<Vec<u8>>),
    /// A repair with this root was interrupted.
    #[error(
        "a repair of what it protects has begun, and has not ended; its root is {root}, and its list {}",
        show(list)
    )]
    RepairBegun {
        /// The root of the state that the repair was to restore.
        root: String,
        /// The list of the repair.
        list: PathBuf,
    },
    /// An interrupted repair may have mended an entry in part, and the system gives no answer to that. A list of what
    /// else is mended would hide it.
    #[error(
        "an interrupted repair may have mended it in part, as its list {} says, and it cannot be looked at: {cause}",
        show(list)
    )]
    MayBeBegun {
        /// The system's answer.
        cause: std::io::Error,
        /// The list of the repair.
        list: PathBuf,
    },
    /// A file, or the folder around it, is somebody else's, who lets nobody write to it.
    #[error("it is read-only, and not yours")]
    ReadOnly,
    /// No list can be written, and without one a file cannot be mended that would not stay what it is.
    #[error(
        "the list of the repair cannot be written beside the sidecar; without it, nothing is mended that is read-only, has \
         other names, or is not yours"
    )]
    NoList,
    /// The sidecar was opened by the root of an older generation, and is damaged.
    #[error("it was asked for by the root of an older generation, and is damaged")]
    Older,
    /// Parts of a newer generation exist, too few to restore it.
    #[error(
        "it has parts of a newer generation, {newer}, of which too few are left; this is generation {this}"
    )]
    NewerLost {
        /// The newer generation.
        newer: u64,
        /// The newest generation that can be restored.
        this: u64,
    },
    /// The sidecar has damage that must be mended first.
    #[error("parts of it have moved or are missing")]
    Displaced,
    /// Somebody else works on the sidecar.
    #[error("somebody else works on it, or did just now")]
    Busy,
}

fn listed(roots: &[Digest]) -> String {
    roots.iter().map(|root| format!("\n  found: root {}", fec_base::names::hex(root))).collect()
}

/// Paths, at most a few of them.
fn named(paths: &[Vec<u8>]) -> String {
    const FEW: usize = 5;
    let few: Vec<String> = paths.iter().take(FEW).map(|path| show_bytes(path)).collect();
    let more = if paths.len() > FEW { format!(" and {} more", paths.len() - FEW) } else { String::new() };
    few.join(", ") + &more
}

impl Cause for SidecarError {
    fn class(&self) -> Class {
        match self {
            SidecarError::NotFound(rule) => class_of(rule.as_ref().map(FormatError::class)),
            SidecarError::Invalid(rule) => class_of(Some(rule.class())),
            SidecarError::Rotten(_)
            | SidecarError::RottenOrNew { .. }
            | SidecarError::RottenOrEdited(_)
            | SidecarError::Held(_)
            | SidecarError::Rewritten(_)
            | SidecarError::RepairBegun { .. }
            | SidecarError::Older
            | SidecarError::NewerLost { .. }
            | SidecarError::Displaced => Class::Mendable,
            SidecarError::MayBeBegun { .. }
            | SidecarError::GivenUp(_)
            | SidecarError::ReadOnly
            | SidecarError::NoList
            | SidecarError::AtWork => Class::Io,
            SidecarError::TooFewPieces | SidecarError::BeyondRepair { .. } => Class::Lost,
            SidecarError::OtherRoot(_)
            | SidecarError::OtherMetadata(_)
            | SidecarError::Contradiction(_)
            | SidecarError::NotACodeword(_) => Class::Untrue,
            SidecarError::Nothing
            | SidecarError::NothingToUpdate
            | SidecarError::NotAState
            | SidecarError::OtherState
            | SidecarError::ManyGone { .. }
            | SidecarError::FolderGone { .. }
            | SidecarError::Emptied(_)
            | SidecarError::NoFiles
            | SidecarError::NotAFile
            | SidecarError::NotASidecar
            | SidecarError::OutputNotEmpty
            | SidecarError::OutsideBase(_)
            | SidecarError::NoEntry(_)
            | SidecarError::Pattern { .. }
            | SidecarError::ManyPatterns
            | SidecarError::Policy(_)
            | SidecarError::PolicyOfOne
            | SidecarError::PolicyUnproved
            | SidecarError::NoPolicy
            | SidecarError::Ambiguous(_)
            | SidecarError::BaseNeeded(_)
            | SidecarError::Busy => Class::Usage,
        }
    }
}
