//! Chooses the encoding to examine, and turns the findings into an exit code.

use crate::say::failure::Exit;
use crate::say::verify::Asked;
use fec_base::io::output::Destination;
use fec_core::digest::Digest;
use fec_keys::sign::Trust;
use fecfile::error::Class;
use fecfile::report::{Deep, Verified};
use fecfile::seal::Opener;
use fecfile::{Archive, Context, Input, Wanted, Wish};
use std::io;

/// Finds the encoding with this root, or the signed one, or the only one.
pub(crate) fn find(
    input: &Input,
    root: Option<Digest>,
    trust: Option<&Trust>,
    context: &Context<'_>,
) -> fecfile::Result<Archive> {
    Archive::open(input, Wanted::from(root).signed_by(trust), context)
}

/// Opens all of a sealed payload that can be restored. Returns whether there was something to open; `None` without an
/// opener.
pub(crate) fn opens(
    archive: &Archive,
    verified: &Verified,
    opener: Option<&Opener>,
    context: &Context<'_>,
) -> fecfile::Result<Option<bool>> {
    let opens = opener.is_some().then_some(verified.is_restorable == Some(true));
    if opens == Some(true) {
        let wish = Wish { opener, ..Wish::default() };
        let opened = archive.restore(Destination::writer(&mut io::sink()), wish, &context.silent())?;
        debug_assert!(opened.is_whole());
    }
    Ok(opens)
}

/// The exit code for the findings, which depends on the question.
pub(crate) fn exit(verified: &Verified, asked: &Asked) -> Exit {
    if let Some(has_enough) = asked.has_enough(verified) {
        return if has_enough { Exit::Done } else { Exit::Lost };
    }
    match (verified.is_restorable, verified.is_intact()) {
        (None, true) => Exit::Done,
        (None, false) => Class::Untrue.into(),
        _ if asked.files && verified.is_given_intact() => Exit::Done,
        (Some(true), is_intact) if verified.deep != Deep::Failed => {
            if !is_intact && !verified.leftovers.denied.is_empty() {
                // A file that this user may not read may be intact.
                Exit::Io
            } else if is_intact {
                Exit::Done
            } else {
                Exit::Mendable
            }
        }
        _ if asked.files => Class::Untrue.into(),
        _ => verified.leftovers.class().into(),
    }
}
