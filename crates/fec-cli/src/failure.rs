//! What goes wrong, in the words and with the exit code that a user gets.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// The exit codes; README and the manual page list them. The order is that of precedence when an
/// operation has several causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// All that was asked is true.
    Done,
    /// Verify found damage, and the payload can still be restored; or a benchmark found that it is slower.
    Mendable,
    /// The payload cannot be restored whole.
    Lost,
    /// What is there is not what the root promises.
    Untrue,
    /// A limit, or something that this build does not know.
    Refused,
    /// An input or output error, or the input changed while it was read.
    Io,
    /// Wrong use, or refused before any work.
    Usage,
    /// A signal asked for the end, and what was done until then was printed.
    Interrupted,
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

/// Why a command stops. Printed as `fec: <action> <path>: <cause>` and a line that helps.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// The reader of standard output has gone: nothing is printed.
    pub(crate) broken_pipe: bool,
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into(), help: None, broken_pipe: false }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// An operation of the system on a file failed.
    pub(crate) fn io(action: &str, path: &Path, cause: &io::Error) -> Failure {
        let message = format!("{action} {}: {cause}", show(path));
        Failure::new(Exit::Io, message)
    }

    /// A write to standard output failed.
    pub(crate) fn stdout(cause: &io::Error) -> Failure {
        let broken_pipe = cause.kind() == io::ErrorKind::BrokenPipe;
        let message = format!("write standard output: {cause}");
        Failure { broken_pipe, ..Failure::new(Exit::Io, message) }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Failure {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fec: {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n     {help}")?;
        }
        Ok(())
    }
}

/// A path or recorded name for people: control characters and broken UTF-8 are escaped, so that no
/// name can play tricks with a terminal.
pub(crate) fn show(path: impl AsRef<Path>) -> String {
    show_bytes(path.as_ref().as_os_str().as_encoded_bytes())
}

/// [`show`] for a name that is raw bytes.
pub(crate) fn show_bytes(name: &[u8]) -> String {
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() || is_bidi(c) {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// Prints a line on standard error. Nobody may be reading it; that changes nothing of the result.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{}", text.trim_end());
}

/// Whether a character turns the direction of the text around it, so that a name looks like another.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_causes_the_gravest_counts() {
        let order = [Exit::Mendable, Exit::Lost, Exit::Untrue, Exit::Refused, Exit::Io];
        assert_eq!(order.map(Exit::code), [1, 3, 5, 6, 4]);
        assert!(order.is_sorted());
    }

    #[test]
    fn names_cannot_play_tricks_with_a_terminal() {
        assert_eq!(show_bytes(b"a\x1b[2Jb\xff\n"), "a\\u{1b}[2Jb\\xff\\n");
    }
}
