//! The policy that `fec protect` is given, or recognises.

use crate::line;
use crate::plan::protect::Protect as Plan;
use crate::run::target::quoted;
use crate::say::failure::{Failure, Result, misuse};
use fec_base::io::own::open_regular;
use fec_core::format::sidecar::policy::Rules;
use fec_sidecar::protect::{PRESETS, preset, recognised, rules_of};
use fecfile::error::Action;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Most bytes of a text with a policy.
const MOST: u64 = 1 << 16;

/// The policy for these paths, and whether it was recognised by the only folder. `None` leaves it to the sidecar.
///
/// # Errors
/// Wrong use; those of the file.
pub(crate) fn given(args: &line::Protect, plan: Plan, paths: &[PathBuf]) -> Result<(Option<Rules>, bool)> {
    let folder = match paths {
        [path] if path.is_dir() => Some(path.as_path()),
        _ => None,
    };
    let Some(named) = &args.policy else {
        let name = folder.filter(|_| plan == Plan::New).and_then(recognised);
        let rules = name.and_then(|name| preset(name, folder?));
        let is_recognised = rules.is_some();
        return Ok((rules, is_recognised));
    };
    let name = named.to_str().unwrap_or_default();
    if name == "none" {
        return Ok((Some(Rules::default()), false));
    }
    if !PRESETS.contains(&name) {
        return Ok((Some(read(named)?), false));
    }
    let of = folder.unwrap_or(Path::new(""));
    match preset(name, of) {
        Some(rules) => Ok((Some(rules), false)),
        None => Err(Failure::usage(format!("protect {}: it holds no repository of git", quoted(of)))),
    }
}

/// The policy in a file.
fn read(path: &Path) -> Result<Rules> {
    let fail = |cause| Failure::io(Action::Read, path, cause);
    let help =
        "the policies that have a name are restic, rustic, borg, kopia, git, annex, maildir, photos and none";
    let file = open_regular(path).map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => fail(cause).help(help),
        _ => fail(cause),
    })?;
    let file = file.ok_or_else(|| misuse("read", path, "it is no file").help(help))?;
    let mut text = String::new();
    let read = file.take(MOST + 1).read_to_string(&mut text);
    match read {
        Err(cause) if cause.kind() == std::io::ErrorKind::InvalidData => {
            Err(misuse("read", path, "it is no text").help(help))
        }
        Err(cause) => Err(fail(cause)),
        Ok(len) if len as u64 > MOST => Err(misuse("read", path, "it is too long for a policy")),
        Ok(_) => rules_of(&text).map_err(|error| misuse("read", path, &error.to_string())),
    }
}
