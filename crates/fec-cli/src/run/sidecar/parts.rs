//! Parts of what a sidecar protects: the files and folders that a command line names behind the sidecar.

use crate::line::seal::Open;
use crate::plan::named::{Found, INPUT};
use crate::plan::refused;
use crate::run::sidecar::named;
use crate::run::sidecar::opened::{Opened, Opening};
use crate::run::survey::is_ours;
use crate::run::target::{is_dash, quoted};
use crate::say::failure::Result;
use crate::settings::Settings;
use fec_base::io::base::Base;
use fec_base::names::{show, show_input};
use fec_sidecar::Sidecar;
use fec_sidecar::examine::Selection;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The sidecar that is named first, opened, with the part of it that the other paths name. `None` where these paths are
/// to be looked at by themselves: one is an encoding or a sidecar, the sidecar cannot be opened, or all are there and
/// none of them is protected by it.
///
/// # Errors
/// Wrong use: the sidecar protects only some of the paths, or one that is not there.
pub(crate) fn of(
    paths: &[PathBuf],
    opening: Opening<'_>,
    open: &Open,
    (command, settings): (&str, &Settings),
) -> Result<Option<Opened>> {
    let [first, parts @ ..] = paths else { return Ok(None) };
    let is_for_itself = |path: &PathBuf| is_dash(path) || path.is_file() && is_ours(path);
    if parts.is_empty() || is_dash(first) || !first.is_file() || parts.iter().any(is_for_itself) {
        return Ok(None);
    }
    let Some(path) = named(std::slice::from_ref(first), open)? else { return Ok(None) };
    let keys = open.keys()?;
    let opening = Opening { keys: keys.as_ref(), ..opening };
    let Ok(opened) = Opened::new(&path, opening, settings) else { return Ok(None) };
    let names: Vec<Option<Vec<u8>>> =
        parts.iter().map(|path| entry_of(&opened.sidecar, &opened.base, path)).collect();
    let Some(unknown) = names.iter().position(Option::is_none) else {
        let selection = Selection::of(&opened.sidecar, names.iter().flatten().map(Vec::as_slice))?;
        let paths: String = parts.iter().map(|path| format!(" {}", quoted(path))).collect();
        return Ok(Some(Opened { part: (!selection.is_all()).then_some((selection, paths)), ..opened }));
    };
    let is_gone = |path: &PathBuf| !is_dash(path) && path.symlink_metadata().is_err();
    if names.iter().all(Option::is_none) && !parts.iter().any(is_gone) {
        return Ok(None);
    }
    Err(refused(&Found::NoPart, INPUT, |name| match name {
        "verb" => command.to_owned(),
        "path" => show_input(&parts[unknown]),
        _ => show(&path),
    }))
}

/// The path of the entry that `path` names: from the working folder, or as reports print it, from the base.
fn entry_of(sidecar: &Sidecar, base: &Base, path: &Path) -> Option<Vec<u8>> {
    let is_entry = |name: &Vec<u8>| Selection::of(sidecar, [name.as_slice()]).is_ok();
    let home = base.path().canonicalize().ok()?;
    let from_here = real(path).and_then(|path| Some(path.strip_prefix(&home).ok()?.to_path_buf()));
    let paths = from_here.into_iter().chain([path.to_path_buf()]);
    paths.filter_map(|path| name_of(&path)).find(is_entry)
}

/// A path without symbolic links around it, as far as the folders around it are there.
fn real(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    match (path.file_name(), path.parent()) {
        (Some(name), Some(folder)) => {
            let folder = folder.canonicalize().ok().or_else(|| real(folder))?;
            Some(folder.join(name))
        }
        // It ends in `..`, or is the root.
        _ => path.canonicalize().ok(),
    }
}

/// The name that an entry at a relative path has. `None` if the path leads out of its folder.
fn name_of(path: &Path) -> Option<Vec<u8>> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::CurDir => Some(None),
        _ => None,
    };
    let parts: Option<Vec<_>> = path.components().map(part).collect();
    let parts: Vec<_> = parts?.into_iter().flatten().collect();
    Some(parts.join(OsStr::new("/")).as_bytes().to_vec())
}
