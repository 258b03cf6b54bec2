//! Failures, with the message and the exit code that a user gets.

use crate::say::terminal::{folded, harmless};
use crate::system::secrets::{hides, hushed};
use fec_base::names::{show, show_bytes, show_input};
use fec_base::roots::parse_root;
use fec_keys::sign::SignError;
use fec_live::address::Address;
use fec_sidecar::SidecarError;
use fec_sidecar::kind;
use fecfile::error::{Action, Class, Place};
use fecfile::forms::Beginning;
use fecfile::{EncodingError, Error, ErrorKind};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit codes, in increasing gravity: that of several things is the gravest, so that nothing which trying again may
/// help hides what it does not. README and the manual page list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything that was asked is true.
    Done,
    /// Verify found damage, but the payload can be restored; or a benchmark became slower.
    Mendable,
    /// Wrong use, or a refusal before any work.
    Usage,
    /// An input or output failed, or the input changed while it was read.
    Io,
    /// A limit was exceeded, or the input needs something that this build does not know.
    Refused,
    /// The payload cannot be restored whole.
    Lost,
    /// The content is not the one that the root promises.
    Untrue,
    /// A signal ended the run. The results up to then were printed.
    Interrupted,
}

/// The exit code of several things.
pub(crate) fn gravest(exits: impl Iterator<Item = Exit>) -> Exit {
    exits.max().unwrap_or(Exit::Done)
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Mendable => 1,
            Exit::Usage => 2,
            Exit::Lost => 3,
            Exit::Io => 4,
            Exit::Untrue => 5,
            Exit::Refused => 6,
            Exit::Interrupted => 130,
        }
    }
}

impl Exit {
    /// The meaning in words, for a command that was told to be quiet.
    fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "all that was asked is true",
            Exit::Mendable => "something is damaged, missing or left as it was, and can be mended",
            Exit::Lost => "not all of it can be restored",
            Exit::Untrue => "it is not what was promised",
            Exit::Refused => "it is beyond a limit, or of another version",
            Exit::Io => "it could not be read or written",
            Exit::Usage => "it was not asked for in the right way",
            Exit::Interrupted => "interrupted",
        }
    }
}

impl From<Class> for Exit {
    fn from(class: Class) -> Exit {
        match class {
            Class::Mendable => Exit::Mendable,
            Class::Lost => Exit::Lost,
            Class::Untrue => Exit::Untrue,
            Class::Refused => Exit::Refused,
            Class::Io => Exit::Io,
            Class::Usage => Exit::Usage,
            Class::Cancelled => Exit::Interrupted,
        }
    }
}

/// The reason why a command stops. Printed as `fec: <action> <path>: <cause>`, with a line of advice.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The reader of standard output is gone: nothing is printed.
    pub(crate) broken_pipe: bool,
    /// The kind and its numbers, for JSON, where a program may want to go on by them.
    pub(crate) kind: Option<Kind>,
}

/// A refusal that a program may answer.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Copies elsewhere lack a part of what is lost here.
    Lacking { fetched: serde_json::Value },
    /// More is gone than an update takes without being told.
    ManyGone { gone: u64, of: u64, gone_bytes: u64, of_bytes: u64 },
    /// Most files of a folder are gone.
    FolderGone { folder: String, gone: u64, of: u64 },
    /// Files are damaged or gone that the policy holds.
    Held { held: Vec<String> },
}

impl Kind {
    fn of(error: &Error) -> Option<Kind> {
        Some(match error.cause()? {
            SidecarError::ManyGone { gone, of, gone_len, of_len } => {
                Kind::ManyGone { gone: *gone, of: *of, gone_bytes: *gone_len, of_bytes: *of_len }
            }
            SidecarError::FolderGone { folder, gone, of } => {
                Kind::FolderGone { folder: show_bytes(folder), gone: *gone, of: *of }
            }
            SidecarError::Held(held) | SidecarError::Rewritten(held) => {
                Kind::Held { held: held.iter().map(|path| show_bytes(path)).collect() }
            }
            _ => return None,
        })
    }
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: plain(&message.into()), help: None, broken_pipe: false, kind: None }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// A failed system call on a file.
    pub(crate) fn io(action: Action, path: &Path, cause: io::Error) -> Failure {
        Error::io(action, path, cause).into()
    }

    /// A failed write to standard output.
    pub(crate) fn stdout(cause: io::Error) -> Failure {
        Error::io(Action::Write, Place::Output, cause).into()
    }

    /// Adds advice. If something in it is hidden, it cannot be followed, and is left out.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(harmless(&help.into())).filter(|help| !hides(help));
        self
    }

    /// The same failure, with a kind for programs.
    pub(crate) fn of_kind(self, kind: Option<Kind>) -> Failure {
        Failure { kind: kind.or(self.kind), ..self }
    }

    /// The same failure, with more advice behind what it has.
    pub(crate) fn and_help(self, more: &str) -> Failure {
        let help = self.help.as_ref().map(|help| format!("{help}\n")).unwrap_or_default();
        self.help(help + more)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let broken_pipe = error.place == Place::Output
            && matches!(&error.kind, ErrorKind::Io(e) if e.kind() == io::ErrorKind::BrokenPipe);
        Failure {
            exit: error.class().into(),
            message: plain(&error.to_string()),
            help: match &error.kind {
                ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::NotFound => meant_by(&error.place),
                ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                    Some(NOT_ALLOWED.to_owned())
                }
                _ => help(&error),
            },
            broken_pipe,
            kind: Kind::of(&error),
        }
    }
}

/// Advice for the causes of encodings, live streams, seals, signatures and sidecars. Those of stores have theirs in the
/// commands.
fn help_of_cause(error: &Error) -> Option<String> {
    if let Some(cause) = error.cause() {
        return crate::say::stream_help::help(cause);
    }
    if let Some(cause) = error.cause() {
        return encoding_help(error.action, cause).map(str::to_owned);
    }
    let seal = error.cause().and_then(crate::say::seal_help::help);
    let sign = error.cause().and_then(sign_help);
    seal.or(sign).or_else(|| error.cause().and_then(sidecar_help)).map(str::to_owned)
}

/// Advice for missing permissions.
pub(crate) const NOT_ALLOWED: &str = "run it as a user who may: the owner, or root";

/// A path behind `udp://`.
fn prefixed(path: &Path) -> PathBuf {
    let mut whole = OsString::from("udp://");
    whole.push(path);
    whole.into()
}

/// Advice when the name of a missing file is a root, or an address.
fn meant_by(place: &Place) -> Option<String> {
    let Place::Path(path) = place else { return None };
    if Address::is_one(path) || Address::is_bare(path) {
        let whole = if Address::is_one(path) { path.to_path_buf() } else { prefixed(path) };
        // Another text may hold a password.
        let address = Address::parse(&whole).ok()?;
        return Some(format!("a live stream from a network is received with:\n  fec decode {address}"));
    }
    let name = path.as_os_str().as_encoded_bytes();
    parse_root(name)?;
    Some(format!("that is a root, which decode, verify and repair take as\n  --root {}", show(path)))
}

/// Advice for an error of a key or a signature.
fn sign_help(cause: &SignError) -> Option<&'static str> {
    Some(match cause {
        SignError::Unsigned(unsigned) if !unsigned.wrong.is_empty() => {
            "what is here was changed, or the signature was taken from something else"
        }
        SignError::Unsigned(_) => "is it the right key, and are these the right files?",
        SignError::NotAPublicKey(_) => "the public key is in the .pub file that was made with the secret key",
        SignError::NotASecretKey(_) => "minisign -G and fec keygen --sign make them",
        SignError::Legacy => "sign again, without minisign's option -l",
        SignError::TooMany { .. } => "choose an encoding with --root",
        SignError::Passphrase | SignError::PassphraseNeeded => {
            "it is asked for at the terminal, unless --sign-passphrase-file or FEC_SIGN_PASSPHRASE gives it"
        }
        _ => return None,
    })
}

/// Advice for an error of a sidecar.
fn sidecar_help(cause: &SidecarError) -> Option<&'static str> {
    Some(match cause {
        SidecarError::NotAFile => "name the file or folder that it leads to",
        SidecarError::OutputNotEmpty => "choose another with -o",
        SidecarError::NotASidecar => {
            "if it is a damaged sidecar, fec repair mends it; else remove it, or choose another name with -o"
        }
        SidecarError::OutsideBase(_) => "name a folder with --base that all of them lie in",
        SidecarError::PolicyOfOne => "name one folder, or leave --policy out",
        SidecarError::PolicyUnproved => "give it again with --policy, or go on without one: --policy none",
        SidecarError::NoPolicy => {
            "give it one with --policy; without one, --pruned when the prune has ended is enough"
        }
        SidecarError::AtWork => {
            "run it again when that has ended; if none is at work, it was killed: run it again first, or remove what it left"
        }
        SidecarError::NotFound(_) | SidecarError::TooFewPieces => {
            "if the files are intact, remove it, and protect them anew with fec protect"
        }
        SidecarError::Ambiguous(_) => "choose one with --root",
        SidecarError::OtherRoot(_) => "is it the right root, and the right sidecar?",
        SidecarError::BaseNeeded(_) => "name it with --base",
        SidecarError::BeyondRepair { is_partly_mendable: true, .. } => {
            "fec verify lists what is lost; --partial mends what can be mended"
        }
        SidecarError::BeyondRepair { .. } => "fec verify lists what is lost",
        SidecarError::NotAState => "choose another name with --state",
        SidecarError::OtherState => {
            "give each sidecar a list of its own with --state; if this one is of no use any more, remove it"
        }
        SidecarError::Rotten(_) => {
            "look at them: if they are as they should be, give them another time with touch; if not, mend them first \
             with fec repair"
        }
        SidecarError::OtherMetadata(_) => {
            "somebody changed times or permissions in the sidecar; its --root alone, in place of --signer, still proves \
             contents"
        }
        SidecarError::NotACodeword(_) => {
            "it cannot mend what it should; while the files are intact, protect them anew with fec protect -f, or restore \
             them from elsewhere"
        }
        SidecarError::Older => "fec repair without --root mends it",
        SidecarError::Displaced => "mend the sidecar first: fec repair",
        SidecarError::ReadOnly => "run it as its owner, or as root",
        SidecarError::Busy => "try again when it has ended",
        cause => return update_help(cause).or_else(|| begun_help(cause)),
    })
}

/// Advice for an update that may be a mistake.
fn update_help(cause: &SidecarError) -> Option<&'static str> {
    Some(match cause {
        SidecarError::NewerLost { .. } => {
            "a copy of the sidecar may have more of them; to go on without, and keep what was edited since:\n  \
             fec protect --update -f PATH\nto go on without, and undo it:\n  fec repair --revert SIDECAR"
        }
        SidecarError::Held(_) => {
            "nothing was updated, for the rest cannot be protected without them: mend them first, with fec repair SIDECAR;\nif \
             they were pruned or deleted on purpose, go on with --pruned; if they were changed on purpose, with -f"
        }
        SidecarError::Rewritten(_) => {
            "nothing was updated; to have them as they were, and keep what that writes over:\n  \
             fec repair --revert --undo FILE SIDECAR\nif they were changed on purpose, update again without --append"
        }
        SidecarError::GivenUp(_) => {
            "nothing was updated: make them readable, or mend them with fec repair SIDECAR;\nto go on, and give up their \
             protection, with -f"
        }
        SidecarError::NothingToUpdate => "make one first: fec protect, without --update",
        SidecarError::ManyGone { .. } | SidecarError::FolderGone { .. } => {
            "is the disk mounted, and are these the folders that it was made for?\n\
             fec repair brings back what it can; if they were deleted on purpose, go on with --pruned"
        }
        SidecarError::Emptied(_) => {
            "fec repair --revert brings back what it was;\nif it should be empty, go on with -f"
        }
        SidecarError::RottenOrNew { .. } => {
            "look at it: if it is damaged, put the whole one in its place, which fec repair restores (with -o FOLDER, if \
             something else has its old name; where it is now, if its whole folder was renamed);\nif it really is another file, \
             go on with -f"
        }
        SidecarError::RottenOrEdited(_) => {
            "look at them: what is damaged is made what it was by fec repair --revert --undo FILE SIDECAR;\nif they are edits, go \
             on with -f"
        }
        SidecarError::NoFiles => "is the disk mounted? to give up what it protects, remove the sidecar first",
        _ => return None,
    })
}

/// Advice for a repair that has begun and not ended.
fn begun_help(cause: &SidecarError) -> Option<&'static str> {
    Some(match cause {
        SidecarError::RepairBegun { .. } => {
            "run fec repair again first, with --root if that root is not the newest: it goes on where it ended; if the \
             sidecar does not have that root any more, or cannot mend all, look at the files, and remove the list"
        }
        SidecarError::MayBeBegun { cause, .. } if cause.kind() != io::ErrorKind::PermissionDenied => {
            "run fec repair again when it can be looked at; if that will never be, look at the other files, and remove \
             the list"
        }
        SidecarError::MayBeBegun { .. } => {
            "repair as a user who may look at it, or open the folder that it lies in, and run fec repair again"
        }
        _ => return None,
    })
}

/// Advice for an error of encodings that stopped an action.
fn encoding_help(action: Action, cause: &EncodingError) -> Option<&'static str> {
    Some(match cause {
        EncodingError::NothingFound(found) if !found.leftovers.denied.is_empty() => NOT_ALLOWED,
        EncodingError::NoneWhole { leftovers, .. } if !leftovers.denied.is_empty() => NOT_ALLOWED,
        EncodingError::Lost(restored) if !restored.leftovers.denied.is_empty() => NOT_ALLOWED,
        EncodingError::EncodeMemory { .. } => {
            "choose a smaller --group-size, leave it out with a file, or allow more with --max-memory"
        }
        EncodingError::FewLeft { .. } => "with -o they go to a file, if there is room for it",
        EncodingError::OneShardDeep => "name more of them, or leave --deep out",
        EncodingError::OutOfPayload(_) => "choose a --range within it",
        EncodingError::DigestsOfPipe => "save the pipe to a file first, or leave --payload-digest out",
        EncodingError::ManyGroups(_) => "a larger --set-size makes fewer groups",
        EncodingError::TooManyEncodings(_) => "give --root, or split the input",
        EncodingError::NothingFound(found) if found.live() == Beginning::Stream => {
            "fec decode restores it, without --root, --partial and --early"
        }
        EncodingError::NothingFound(found) if found.live() == Beginning::Sealed => {
            "fec decode restores it: give its key with --key-file, or --passphrase"
        }
        EncodingError::NothingFound(found) if found.wanted.is_some() => {
            "are these the right files? Each encoding has a root of its own: other options, or a container instead of \
             shard files, give another one"
        }
        EncodingError::NothingFound(_) => "name the shard files, their folder, or the container",
        EncodingError::Ambiguous(_) => "choose one with --root",
        EncodingError::StreamAndEncodings(_) => "choose the stream with --stream, or an encoding with --root",
        EncodingError::NoneWhole { .. } => "choose one with --root to see what is lost",
        EncodingError::NotWhole { .. } | EncodingError::Cut { .. } => {
            "save the stream to a file: there --partial writes all that is left"
        }
        EncodingError::Untrue { .. } => {
            "nothing was restored: no choice of shards can give what the root stands for"
        }
        EncodingError::ShardFileAlone => {
            "with --root fec verify checks it by itself; to restore the payload, name the shard files"
        }
        EncodingError::MetaLost | EncodingError::HoldsAnother | EncodingError::OtherEncoding(_)
            if action == Action::Keep =>
        {
            "nothing was changed; choose another name with -o, or replace all of it with -f"
        }
        EncodingError::MetaLost => "fec decode restores the payload, to be encoded again",
        EncodingError::OtherRoot => {
            "nothing was changed; fec decode restores the payload, to be encoded again"
        }
        EncodingError::NameNotPlain => "fec decode -o restores the payload, to be encoded again",
        EncodingError::HoldsAnother => "nothing was changed; write what is made anew elsewhere with -o",
        _ => return None,
    })
}

/// Advice for an error of the library.
pub(crate) fn help(error: &Error) -> Option<String> {
    match &error.kind {
        ErrorKind::Other(_) => help_of_cause(error),
        _ => help_of_kind(error).map(str::to_owned),
    }
}

/// Tells whether a place is a file that begins as a sidecar does.
fn is_sidecar(place: &Place) -> bool {
    matches!(place, Place::Path(path) if kind::starts(path).unwrap_or(false))
}

fn help_of_kind(error: &Error) -> Option<&'static str> {
    Some(match &error.kind {
        ErrorKind::IsFolder if error.action == Action::Write => {
            "choose another name with -o; -o - is standard output"
        }
        ErrorKind::IsFolder if error.action == Action::Repair => {
            "it has taken the place of what was there: move it away, and run it again; with --partial it stays"
        }
        ErrorKind::NotAllowed(_) if error.action == Action::Repair => {
            "nothing was changed: run it as a user who may, the owner or root; with a sidecar --partial mends the others"
        }
        ErrorKind::NotAllowed(_) => {
            "run it as a user who may, the owner or root; or leave them out, with --exclude PATTERN"
        }
        ErrorKind::NotOwn(_) if error.action == Action::UseState => {
            "choose another name with --state; or remove it, if nobody needs it"
        }
        ErrorKind::NotOwn(_) => {
            "if nobody needs it, remove it; who wrote it may want something else than you"
        }
        ErrorKind::IsSymlink => "name the file that it leads to",
        ErrorKind::Exists if error.action == Action::Keep => {
            "choose another name with --undo: this one may hold what an earlier repair wrote over"
        }
        ErrorKind::Exists if error.action == Action::Protect && !is_sidecar(&error.place) => {
            "if it is a damaged sidecar, fec repair mends it; else remove it, or choose another name with -o"
        }
        ErrorKind::Exists if error.action == Action::Protect => {
            "to protect later changes too:\n  fec protect --update PATH\nto start over, and give up what it can still mend: -f"
        }
        ErrorKind::Exists => "choose another name with -o, or replace it with -f",
        ErrorKind::NotAFolder => "choose another name with -o",
        ErrorKind::FolderNotEmpty => "choose another with -o, or replace the shard files in it with -f",
        ErrorKind::NotAShardFile(_) => "only a folder of shard files is replaced as a whole",
        ErrorKind::NoRoom { .. } => "make room, or choose another place with -o",
        ErrorKind::Changed if matches!(error.action, Action::Repair | Action::Keep) => {
            "run it again when nobody writes to the files; what was mended stays mended"
        }
        ErrorKind::Overtaken => "look at it, and run the command again; what was mended stays mended",
        ErrorKind::Changed => "nothing was written; try again when nobody writes to it",
        ErrorKind::SetMemory { .. } if error.action == Action::Encode => {
            "choose a smaller --set-size, or allow more with --max-memory, as in --max-memory 256MiB"
        }
        ErrorKind::SetMemory { .. } => "allow more with --max-memory",
        _ => return None,
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fec: {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n     {}", help.replace('\n', "\n     "))?;
        }
        Ok(())
    }
}

/// The text without secrets, and without control characters that a terminal obeys.
pub(crate) fn plain(text: &str) -> String {
    hushed(&harmless(text))
}

/// Prints a text on standard error, without control characters. A failed write does not change the outcome.
pub(crate) fn say(text: &str) {
    say_line(folded(&harmless(text), &io::stderr()).trim_end());
}

/// True if a message or a report was printed.
static SAID: AtomicBool = AtomicBool::new(false);

/// Notes that the user was told the reason for the exit code.
pub(crate) fn note_said() {
    SAID.store(true, Ordering::Relaxed);
}

/// Explains an exit code in a few words, if nothing else was printed.
pub(crate) fn explain_silence(command: &str, exit: Exit) {
    if exit != Exit::Done && !SAID.load(Ordering::Relaxed) {
        say(&format!("fec: {command}: {}", exit.meaning()));
    }
}

/// Like [`say`], but prints the line unchanged: for JSON, and for lines that are already folded.
pub(crate) fn say_line(line: &str) {
    note_said();
    let _ = writeln!(io::stderr(), "{line}");
}

/// Wrong use of a path, as in `write x: it is the input`.
pub(crate) fn misuse(action: &str, path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{action} {}: {why}", show_input(path)))
}
