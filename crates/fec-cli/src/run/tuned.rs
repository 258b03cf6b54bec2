//! Kernel settings that a user keeps. The file in the user's configuration has a line for each processor and backend,
//! so several machines can share a home folder.
//!
//! A line is `PROCESSOR <tab> BACKEND <tab> SETTINGS`, as `fec bench tuning --save` writes it. Only speed depends on
//! the content of the file.

use crate::plan::bench::kept_at;
use crate::plan::common::kept_tuning;
use crate::say::failure::{Failure, Result, say};
use crate::system::progress::remove_stale_beside;
use fec_base::error::Action;
use fec_base::io::output::{Policy, write_text};
use fec_base::io::own::open_regular;
use fec_base::processor;
use fec_core::gf256::kernel::{Backend, Tuning};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Most bytes of the file. A longer one was not written by fec.
const LONGEST: u64 = 64 << 10;

/// `$XDG_CONFIG_HOME/fec/tuning`, or `~/.config/fec/tuning`. Relative paths do not count, as the XDG specification
/// says.
fn path() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(config.join("fec/tuning"))
}

/// The beginning of the line for this processor and backend. `table` has the processor's usual settings.
fn key(backend: Backend, table: Tuning) -> String {
    let name: String = processor::name().chars().filter(|c| !c.is_control()).collect();
    format!("{name} ({})\t{}\t", table.name(), backend.name())
}

/// The settings for this processor and backend: those in the file, with its path, or else those of the table. An
/// unreadable file gives a warning and is ignored.
pub(crate) fn own(backend: Backend) -> (Tuning, Option<PathBuf>) {
    let table = processor::tuning(backend.tuning());
    match kept(backend, table) {
        Ok(Some((tuning, path))) => (tuning, Some(path)),
        Ok(None) => (table, None),
        Err(failure) => {
            say(&format!("warning: {}; the usual settings are used", failure.message));
            (table, None)
        }
    }
}

fn kept(backend: Backend, table: Tuning) -> Result<Option<(Tuning, PathBuf)>> {
    let Some(path) = path() else { return Ok(None) };
    let text = match read(&path) {
        // A file that this user may not read is not this user's.
        Err(e) if e.kind() == ErrorKind::PermissionDenied => return Ok(None),
        read => read.map_err(|e| Failure::io(Action::Read, &path, e))?,
    };
    let key = key(backend, table);
    let Some(changes) = text.lines().find_map(|line| line.strip_prefix(&key)) else { return Ok(None) };
    let tuning = kept_tuning(table, changes, &path)?;
    Ok(Some((tuning, path)))
}

/// The text of the file, empty if it does not exist. Anything but a short file is an error: a pipe would make every
/// command wait.
fn read(path: &Path) -> io::Result<String> {
    let meta = match fs::metadata(path) {
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(String::new());
        }
        meta => meta?,
    };
    if !meta.is_file() || meta.len() > LONGEST {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "it is not what `fec bench tuning --save` writes",
        ));
    }
    let mut text = String::new();
    if let Some(file) = open_regular(path)? {
        file.take(LONGEST).read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The file of the settings that are kept, and its text. An unreadable one is not replaced: it may hold other machines'
/// settings.
///
/// # Errors
/// When there is no home folder, or the file cannot be read.
pub(crate) fn place() -> Result<(PathBuf, String)> {
    let path = kept_at(path())?;
    let text = read(&path).map_err(|e| Failure::io(Action::Read, &path, e))?;
    Ok((path, text))
}

/// Keeps settings for this processor and backend in place of earlier ones, and returns the path. Settings equal to the
/// table's are only removed from the file.
///
/// # Errors
/// When there is no home folder, or the file cannot be written.
pub(crate) fn keep(backend: Backend, settings: Tuning) -> Result<PathBuf> {
    let (path, text) = place()?;
    let table = processor::tuning(backend.tuning());
    let key = key(backend, table);
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.starts_with(&key)).map(|line| format!("{line}\n")).collect();
    if settings != table {
        lines.push(format!("{key}{settings}\n"));
    }
    let folder = path.parent().expect("it is a file in a folder");
    fs::create_dir_all(folder).map_err(|e| Failure::io(Action::Create, folder, e))?;
    let policy = Policy::new().with_force(true);
    remove_stale_beside(&path);
    write_text(&path, &lines.concat(), policy)?;
    Ok(path)
}
