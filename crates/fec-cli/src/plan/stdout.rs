//! The use of standard output, as far as it can be told before the work.

use super::encode::Kind;
use super::{decode, encode};
use crate::line::Command;
use std::path::Path;

/// Tells whether standard output carries data, so that nothing else may be printed there. `kind` tells the
/// kind of an input.
pub(crate) fn stdout_is_data(command: &Command, kind: impl Fn(&Path) -> Kind) -> bool {
    match command {
        Command::Encode(line) => encode::stdout_is_data(line, kind),
        Command::Decode(line) => decode::stdout_is_data(line, kind),
        _ => false,
    }
}
