//! The file of --root-file. A file that holds this very root already stays as it is, so the same command can run again.

use crate::say::failure::{Failure, Result, say};
use crate::settings::Settings;
use crate::system::progress::remove_stale_beside;
use fec_base::io::output::{Policy, check_absent, is_special, write_text};
use fec_base::io::own::open_regular;
use fec_base::names::{hex, show};
use fec_base::roots::parse_root;
use fec_core::digest::Digest;
use fecfile::error::{Error, ErrorKind};
use std::io::Read;
use std::path::Path;

/// Checks before any work that the file may take a root: it does not exist, may be replaced, or holds a root, which may
/// be this one.
pub(crate) fn check(path: &Path, policy: Policy) -> fecfile::Result<()> {
    let absent = check_absent(path, policy);
    match absent {
        Err(Error { kind: ErrorKind::Exists, .. }) if held(path).is_some() => Ok(()),
        absent => absent,
    }
}

/// The root in a file that holds nothing else.
fn held(path: &Path) -> Option<Digest> {
    /// Enough bytes for a root and the end of its line.
    const MOST: u64 = 80;
    let mut text = Vec::new();
    let file = open_regular(path).ok().flatten()?;
    file.take(MOST).read_to_end(&mut text).ok()?;
    parse_root(text.trim_ascii())
}

/// Writes the file, unless it holds this very root.
pub(crate) fn write(path: &Path, root: &str, policy: Policy, settings: &Settings) -> Result<()> {
    if !is_special(path) && held(path).is_some_and(|held| hex(&held) == root) {
        if !settings.quiet && !settings.json {
            say(&format!("{} was there already, with this root", show(path)));
        }
        return Ok(());
    }
    remove_stale_beside(path);
    write_text(path, &format!("{root}\n"), policy).map_err(|e| {
        let is_there = matches!(&e.kind, ErrorKind::Exists);
        let failure = Failure::from(e);
        failure.help(match (is_there, held(path)) {
            (true, Some(_)) => format!(
                "it holds another root, and is replaced with -f; the encoding is complete, and its root is {root}"
            ),
            (true, None) => format!(
                "it holds something else, and is replaced with -f; the encoding is complete, and its root is {root}"
            ),
            (false, _) => format!("the encoding is complete; its root is {root}"),
        })
    })
}
