//! Tells apart the encodings in several places, and sorts files by encoding. Only beginnings and ends of files are
//! read; their contents are proved later, when each encoding is opened.

use fec_base::error::Action;
use fec_base::io::folder::open_file;
use fec_base::io::temporary::is_temporary;
use fec_base::io::{ReadAt, list};
use fec_base::names::show;
use fec_core::digest::Digest;
use fec_core::format::container::{INDEX_MAGIC, META_MAGIC, RECORD_MAGIC};
use fec_core::format::shard_file::{self, HEADER_LEN, ShardHeader};
use fec_core::params::Form;
use fec_sidecar::kind;
use fecfile::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The encodings and other files in the named places.
#[must_use = "places may hold nothing that is known"]
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// The encodings, ordered by name.
    pub(crate) encodings: Vec<Place>,
    /// Named files that hold nothing that looks like an encoding.
    pub(crate) unknown: Vec<PathBuf>,
    /// Sidecars.
    pub(crate) sidecars: Vec<PathBuf>,
}

/// An encoding, or something that looks like one, and its place.
#[derive(Debug)]
pub(crate) struct Place {
    /// The name for reports: its folder or its file.
    pub(crate) name: String,
    /// The form that it seems to have.
    pub(crate) form: Form,
    /// Its files, and others that may be damaged ones of it.
    pub(crate) paths: Vec<PathBuf>,
    /// The root of the encoding, if these files hold shards of several encodings.
    pub(crate) root: Option<Digest>,
}

/// The apparent kind of a file.
enum Kind {
    /// A shard file with this root; `None` if damage hides the root.
    Shard(Option<Digest>),
    Container,
    Sidecar,
    Other,
}

/// The shard files of a folder, or the named ones.
#[derive(Default)]
struct Shards {
    by_root: BTreeMap<Digest, Vec<PathBuf>>,
    damaged: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

/// Looks through files and folders, and all folders inside. Symbolic links in folders are followed only to files.
///
/// # Errors
/// When a path is not there, or a folder cannot be listed.
pub(crate) fn survey(paths: &[PathBuf]) -> Result<Survey> {
    let mut survey = Survey::default();
    let mut folders: BTreeMap<PathBuf, Shards> = BTreeMap::new();
    let mut containers = BTreeSet::new();
    let mut sidecars = BTreeSet::new();
    let mut named = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<(PathBuf, bool)> = paths.iter().rev().map(|path| (path.clone(), true)).collect();
    while let Some((path, is_named)) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let fail = |e| Error::io(Action::Read, path.as_path(), e);
        let is_folder = match is_named {
            true => fs::metadata(&path).map_err(fail)?.is_dir(),
            false => fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()),
        };
        if is_folder {
            let names = list(&path).map_err(fail)?;
            let names = names.into_iter().filter(|name| !is_temporary(name.as_encoded_bytes()));
            open.extend(names.map(|name| (path.join(name), false)));
            continue;
        }
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        match kind(&path) {
            Kind::Container => {
                containers.insert(path);
            }
            Kind::Sidecar => {
                sidecars.insert(path);
            }
            Kind::Shard(Some(root)) => {
                folders.entry(folder).or_default().by_root.entry(root).or_default().push(path);
            }
            Kind::Shard(None) => folders.entry(folder).or_default().damaged.push(path),
            Kind::Other => {
                if is_named {
                    named.insert(path.clone());
                }
                folders.entry(folder).or_default().others.push(path);
            }
        }
    }
    survey.encodings = shards(folders);
    survey.encodings.extend(containers.into_iter().map(|path| Place {
        name: show(&path),
        form: Form::Container,
        paths: vec![path],
        root: None,
    }));
    survey.encodings.sort_by(|a, b| a.name.cmp(&b.name));
    survey.unknown = named.into_iter().collect();
    survey.sidecars = sidecars.into_iter().collect();
    Ok(survey)
}

/// An encoding for each root, with all files that may belong to it. Shards of an encoding may lie in many folders, and
/// a folder may hold shards of many.
fn shards(folders: BTreeMap<PathBuf, Shards>) -> Vec<Place> {
    let mut by_root: BTreeMap<Digest, Vec<(&PathBuf, &Shards)>> = BTreeMap::new();
    for (folder, shards) in &folders {
        shards.by_root.keys().for_each(|root| by_root.entry(*root).or_default().push((folder, shards)));
    }
    let place = |(root, homes): (&Digest, &Vec<(&PathBuf, &Shards)>)| {
        let is_alone = homes.iter().all(|(_, shards)| shards.by_root.len() == 1);
        let mut paths = BTreeSet::new();
        for (_, shards) in homes {
            paths.extend(shards.by_root[root].iter().cloned());
            paths.extend(shards.damaged.iter().cloned());
            if is_alone {
                paths.extend(shards.others.iter().cloned());
            }
        }
        let (folder, shards) = homes[0];
        let first = if is_alone { folder } else { &shards.by_root[root][0] };
        let first = if first.as_os_str().is_empty() { Path::new(".") } else { first.as_path() };
        let more = if homes.len() > 1 { format!(" and {} more", homes.len() - 1) } else { String::new() };
        Place {
            name: format!("{}{more}", show(first)),
            form: Form::Shards,
            paths: paths.into_iter().collect(),
            root: (!is_alone).then_some(*root),
        }
    };
    let mut found: Vec<Place> = by_root.iter().map(place).collect();
    // No root says to which encoding these damaged files belong.
    let orphans =
        folders.iter().filter(|(_, shards)| shards.by_root.is_empty() && !shards.damaged.is_empty());
    found.extend(orphans.map(|(folder, shards)| Place {
        name: show(folder),
        form: Form::Shards,
        paths: shards.damaged.clone(),
        root: None,
    }));
    found
}

/// Tells whether a path is a file of another kind: it is not empty, and neither its bytes nor its name are those of a
/// shard file, a container or a sidecar. Damage may leave nothing of ours but the name.
pub(crate) fn is_plain(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0)
        && path.extension().is_none_or(|ending| ending != "shard")
        && !is_ours(path)
}

/// Tells whether a file looks like a shard file, a container or a sidecar.
pub(crate) fn is_ours(path: &Path) -> bool {
    !matches!(kind(path), Kind::Other)
}

/// The apparent kind of a file, by its two ends and its name. The name alone tells for an unreadable file.
fn kind(path: &Path) -> Kind {
    let is_named = |ending: &str| path.extension().is_some_and(|e| e == ending);
    let Ok(Some(bytes)) = open_file(path) else {
        return match (is_named("fec"), is_named("fecp")) {
            (true, _) => Kind::Container,
            (_, true) => Kind::Sidecar,
            (false, false) => Kind::Other,
        };
    };
    let len = bytes.size().unwrap_or(0);
    let header = |at: Option<u64>| {
        let mut header = [0; HEADER_LEN];
        bytes.read_exact_at(at?, &mut header).ok().map(|()| header)
    };
    let ends = [header(Some(0)), header(len.checked_sub(HEADER_LEN as u64))];
    let mut is_shard = false;
    for header in ends.iter().flatten() {
        is_shard |= shard_file::has_magic(header);
        if let Ok(header) = ShardHeader::parse(header) {
            return Kind::Shard(Some(header.encoding.root));
        }
    }
    let head = ends[0].as_ref().map_or(&[][..], |header| &header[..]);
    if is_shard {
        Kind::Shard(None)
    } else if is_named("fecp") || kind::starts(path).unwrap_or(false) {
        Kind::Sidecar
    } else if is_named("fec")
        || [RECORD_MAGIC, INDEX_MAGIC, META_MAGIC].iter().any(|magic| head.starts_with(magic))
    {
        Kind::Container
    } else {
        Kind::Other
    }
}
