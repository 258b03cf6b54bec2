//! What the paths of a command line are (docs/FORMAT.md, section 9.3): never by their names, by a magic alone, or by
//! any single place of a file.

use super::choose::ambiguous;
use super::container::Census;
use super::ranges::Ranges;
use super::shards::Gathered;
use crate::failure::{Exit, Failure, Result};
use crate::progress::{Mode, Progress};
use crate::settings::Settings;
use fec_core::digest::Digest;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// What the paths of a command line are.
pub(crate) enum Inputs {
    /// Standard input, or a pipe or device with this path.
    Pipe(PathBuf, File),
    /// One file to be scanned for the records of a container.
    Container(ContainerFile),
    /// Shard files and folders of them.
    Shards(Vec<PathBuf>),
}

/// A file to be scanned for records.
pub(crate) struct ContainerFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Bytes of shards that are proved under a header at one of its ends: they are not scanned.
    pub(crate) proved: Ranges,
}

/// Tells what the inputs are, when the root `wanted` is asked for, or none.
pub(crate) fn classify(paths: &[PathBuf], wanted: Option<Digest>, settings: &Settings) -> Result<Inputs> {
    let is_stdin = |p: &PathBuf| p.as_os_str() == "-";
    let [path] = paths else {
        if paths.iter().any(is_stdin) {
            return Err(Failure::usage("read -: standard input stands alone"));
        }
        return Ok(Inputs::Shards(paths.to_vec()));
    };
    let fail = |e: io::Error| Failure::io("read", path, &e);
    let file = if is_stdin(path) {
        File::from(io::stdin().as_fd().try_clone_to_owned().map_err(fail)?)
    } else if path.is_dir() {
        return Ok(Inputs::Shards(paths.to_vec()));
    } else {
        File::open(path).map_err(fail)?
    };
    let meta = file.metadata().map_err(fail)?;
    if meta.is_dir() {
        return Err(Failure::usage("read -: it is a folder"));
    }
    // What was read of standard input before is not ours: the rest is a pipe.
    let is_rest = is_stdin(path) && (&file).stream_position().is_ok_and(|position| position > 0);
    if !meta.is_file() || is_rest {
        return Ok(Inputs::Pipe(path.clone(), file));
    }
    let input = one_file(path, file, wanted, settings)?;
    if is_stdin(path) && matches!(input, Inputs::Shards(_)) {
        return Err(
            Failure::usage("read -: it is a shard file, not a container").help("name the shard files")
        );
    }
    Ok(input)
}

/// One regular file: shards and streams of records in it count together.
fn one_file(path: &Path, file: File, wanted: Option<Digest>, settings: &Settings) -> Result<Inputs> {
    let fail = |e: io::Error| Failure::io("read", path, &e);
    let mut gathered = Gathered::default();
    let checks = gathered.add_file(path, file.try_clone().map_err(fail)?).map_err(fail)?;
    let mut input = ContainerFile { path: path.to_path_buf(), file, proved: Ranges::default() };
    if !checks {
        return Ok(Inputs::Container(input));
    }
    let shards = || Inputs::Shards(vec![path.to_path_buf()]);
    let mut restorable = Vec::new();
    match wanted {
        Some(root) if gathered.sets.contains_key(&root) => return Ok(shards()),
        Some(_) => {}
        None => {
            for (root, set) in &gathered.sets {
                let (proved, is_restorable) = set.proved().map_err(fail)?;
                proved.iter().for_each(|(start, end)| input.proved.add(start, end));
                restorable.extend(is_restorable.then_some(Some(*root)));
            }
        }
    }
    let streams = match restorable_streams(&input, wanted, settings) {
        // Headers that imitate records without end: a shard file may hold them, and is one all the same.
        Err(failure) if failure.exit == Exit::Refused => Vec::new(),
        other => other?,
    };
    match (streams.is_empty(), restorable.is_empty()) {
        (true, _) => Ok(shards()),
        (false, true) => Ok(Inputs::Container(input)),
        (false, false) => Err(ambiguous(restorable.into_iter().chain(streams))),
    }
}

/// The roots of all streams in a file that can be restored; of the wanted one, whether it can or not.
pub(crate) fn restorable_streams(
    input: &ContainerFile,
    wanted: Option<Digest>,
    settings: &Settings,
) -> Result<Vec<Option<Digest>>> {
    let unseen = Progress::new(Mode::Never, true, "scan", None);
    let mut census = Census::of_file(input, settings.max_group, wanted, &unseen)?;
    let mut streams = census.streams()?;
    streams.retain(|s| match wanted {
        Some(root) => s.root == Some(root),
        None => census.is_restorable(s),
    });
    Ok(streams.into_iter().map(|s| s.root).collect())
}

/// Copies a pipe to an unnamed temporary file.
pub(crate) fn spool(path: &Path, mut input: impl io::Read) -> Result<ContainerFile> {
    let fail = |e: io::Error| Failure::io("spool", path, &e);
    let mut file = tempfile::tempfile().map_err(fail)?;
    io::copy(&mut input, &mut file).map_err(fail)?;
    file.rewind().map_err(fail)?;
    Ok(ContainerFile { path: path.to_path_buf(), file, proved: Ranges::default() })
}
