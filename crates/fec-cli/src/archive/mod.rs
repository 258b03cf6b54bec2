//! What was found in the inputs: encodings whose records can be read and proved.
//!
//! Shard files and containers end in the same thing, an [`Encoded`]: groups in order, and a way to load
//! any shard of any set into a decoder, which checks it there.

pub(crate) mod choose;
pub(crate) mod container;
pub(crate) mod ranges;
pub(crate) mod scan;
pub(crate) mod shards;
mod tally;

use crate::failure::{Exit, Failure, Result, hex, show};
use crate::progress::{Mode, Progress};
use crate::settings::Settings;
use crate::sys::salvage::salvage;
use fec_core::digest::Digest;
use fec_core::error::{Class, FormatError};
use fec_core::params::{CONTAINER_GROUP_BYTES, GroupGeometry, Shape};
use fec_core::set::Reading;
use std::io;
use std::path::{Path, PathBuf};

/// One group of an encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupEntry {
    pub(crate) geometry: GroupGeometry,
    pub(crate) root: Digest,
    /// Where its payload starts in the whole payload.
    pub(crate) start: u64,
}

/// The state of one shard of one set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// It was read into its slot and passed its check.
    Intact,
    /// It is there and does not pass.
    Damaged,
    /// It is not there.
    Missing,
}

/// Where shards come from. Called from several threads.
pub(crate) trait Records: Sync {
    /// Reads shard `index` of set `set` of group number `group` into its slot of `reading`, which is of that set.
    fn load(&self, group: u32, set: u32, index: u32, reading: &mut Reading<'_>) -> io::Result<Load>;
}

/// An encoding whose parts were found.
pub(crate) struct Encoded<'a> {
    /// `None` for a container that was cut and lost its index.
    pub(crate) root: Option<Digest>,
    /// All groups from 0, or as many as are known.
    pub(crate) groups: Vec<GroupEntry>,
    /// B; `None` when the end is not known.
    pub(crate) payload_len: Option<u64>,
    /// The recorded name.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) records: Box<dyn Records + 'a>,
}

impl Encoded<'_> {
    /// The shape of group 0, the largest.
    pub(crate) fn shape(&self) -> &Shape {
        self.groups[0].geometry.shape()
    }

    /// Refuses sets that do not fit the memory allowed.
    pub(crate) fn check_memory(&self, settings: &Settings) -> Result<()> {
        let (need, most) = (self.shape().set_bytes(), settings.max_memory);
        if need > most {
            let message = format!("one set takes {need} bytes, --max-memory is {most}");
            return Err(Failure::new(Exit::Refused, message).help("allow more with --max-memory"));
        }
        Ok(())
    }

    /// All sets, in order.
    pub(crate) fn sets(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.geometry.shape().sets)).sum()
    }

    /// The end of what is known of the payload.
    pub(crate) fn known_len(&self) -> u64 {
        self.groups.last().map_or(0, |g| g.start + g.geometry.payload_len())
    }
}

/// A root for people, or what stands for it.
pub(crate) fn show_root(root: Option<Digest>) -> String {
    root.map_or_else(|| "a root that is not known".to_owned(), |root| hex(&root))
}

/// Everything that was found and does not take part: for the report, and for the exit code when the
/// payload cannot be restored without it.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Files that hold nothing of any encoding.
    pub(crate) foreign: Vec<PathBuf>,
    /// Files or places that could not be read.
    pub(crate) unreadable: Vec<String>,
    /// Objects that break a rule: where, and which; at most [`MAX_NOTES`].
    pub(crate) rejected: Vec<(String, FormatError)>,
    worst: Option<Class>,
    count: u64,
}

/// A rejected object, in a report.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Rejected {
    place: String,
    cause: String,
}

/// Rejected objects are listed up to this number, and counted beyond.
const MAX_NOTES: usize = 1000;

impl Leftovers {
    pub(crate) fn reject(&mut self, place: impl FnOnce() -> String, error: FormatError) {
        self.worst = self.worst.max(Some(error.class()));
        self.count += 1;
        if self.rejected.len() < MAX_NOTES {
            self.rejected.push((place(), error));
        }
    }

    /// The rejected objects for a report.
    pub(crate) fn rejected_report(&self) -> Vec<Rejected> {
        let rejected = self.rejected.iter();
        rejected.map(|(place, e)| Rejected { place: place.clone(), cause: e.to_string() }).collect()
    }

    pub(crate) fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.unreadable.push(format!("{}: {error}", show(path)));
    }

    /// The exit code of a payload that cannot be restored, by what stood in the way.
    pub(crate) fn exit(&self) -> Exit {
        if !self.unreadable.is_empty() {
            return Exit::Io;
        }
        match self.worst {
            Some(Class::Refused) => Exit::Refused,
            Some(Class::Invalid) => Exit::Untrue,
            Some(Class::Damaged) | None => Exit::Lost,
        }
    }

    /// Lines for people: what was rejected for another reason than plain damage comes first.
    pub(crate) fn describe(&self, out: &mut String) {
        const LINES: usize = 10;
        let mut listed: Vec<&(String, FormatError)> = self.rejected.iter().collect();
        listed.sort_by_key(|(_, e)| std::cmp::Reverse(e.class()));
        for (place, error) in listed.iter().take(LINES) {
            out.push_str(&format!("  rejected: {place}: {error}\n"));
        }
        if self.count > LINES as u64 {
            out.push_str(&format!("  and {} more rejected\n", self.count - LINES as u64));
        }
        for line in self.unreadable.iter().take(LINES) {
            out.push_str(&format!("  cannot be read: {line}\n"));
        }
    }
}

/// What the paths of a command line are.
pub(crate) enum Inputs {
    /// Standard input, or a pipe or device with this path.
    Stream(PathBuf, std::fs::File),
    /// One container file.
    Container(PathBuf, std::fs::File),
    /// Shard files and folders of them.
    Shards(Vec<PathBuf>),
}

/// Tells what the inputs are, by their magic and never by their names.
pub(crate) fn classify(paths: &[PathBuf]) -> Result<Inputs> {
    use std::io::Seek;
    use std::os::fd::AsFd;
    let is_stdin = |p: &PathBuf| p.as_os_str() == "-";
    if let [path] = paths {
        let file = if is_stdin(path) {
            let fd = io::stdin().as_fd().try_clone_to_owned().map_err(|e| Failure::io("read", path, &e))?;
            std::fs::File::from(fd)
        } else if path.is_dir() {
            return Ok(Inputs::Shards(paths.to_vec()));
        } else {
            std::fs::File::open(path).map_err(|e| Failure::io("read", path, &e))?
        };
        let meta = file.metadata().map_err(|e| Failure::io("read", path, &e))?;
        if meta.is_dir() {
            return Err(Failure::usage("read -: it is a folder"));
        }
        // What was read of standard input before is not ours: the rest is a stream.
        let is_rest = is_stdin(path) && (&file).stream_position().is_ok_and(|position| position > 0);
        if !meta.is_file() || is_rest {
            return Ok(Inputs::Stream(path.clone(), file));
        }
        let is_shard =
            shards::looks_like_shard(&file, meta.len()).map_err(|e| Failure::io("read", path, &e))?;
        // The end of a container may be anything that somebody appended.
        if !is_shard || is_container(path, &file, meta.len())? {
            return Ok(Inputs::Container(path.clone(), file));
        }
        if is_stdin(path) {
            return Err(
                Failure::usage("read -: it is a shard file, not a container").help("name the shard files")
            );
        }
        return Ok(Inputs::Shards(paths.to_vec()));
    }
    if paths.iter().any(is_stdin) {
        return Err(Failure::usage("read -: standard input stands alone"));
    }
    for path in paths {
        let is_file = std::fs::metadata(path).is_ok_and(|m| m.is_file());
        let starts = |file: std::fs::File| scan::starts_like_container(&file);
        if is_file && std::fs::File::open(path).and_then(starts).unwrap_or(false) {
            return Err(Failure::usage(format!(
                "read {}: it is a container, and containers stand alone",
                show(path)
            ))
            .help("name one container, or shard files and folders of shard files"));
        }
    }
    Ok(Inputs::Shards(paths.to_vec()))
}

/// Whether a file that has a shard file's magic at one end is a container all the same: it starts like one,
/// or has records before the place where the shard file at its end would start.
fn is_container(path: &Path, file: &std::fs::File, len: u64) -> Result<bool> {
    use std::io::Read;
    let fail = |e: io::Error| Failure::io("read", path, &e);
    if scan::starts_like_container(file).map_err(fail)? {
        return Ok(true);
    }
    let before = shards::start_of_shard_at_end(file, len).map_err(fail)?;
    let mut found = false;
    let unseen = Progress::new(Mode::Never, true, "scan", None);
    let scanned =
        scan::scan(salvage(file, len).take(before), path, CONTAINER_GROUP_BYTES, &unseen, |_, what| {
            found |= matches!(what, scan::Found::Record { .. } | scan::Found::Index { .. });
            Ok(scan::Taken::No { hashed: 0 })
        });
    // Too much work for false headers: whoever reads it as a container will say so.
    Ok(found && scanned.is_ok())
}

/// Copies a pipe to an unnamed temporary file.
pub(crate) fn spool(path: &Path, mut input: impl io::Read) -> Result<std::fs::File> {
    use std::io::Seek;
    let fail = |e: io::Error| Failure::io("spool", path, &e);
    let mut file = tempfile::tempfile().map_err(fail)?;
    io::copy(&mut input, &mut file).map_err(fail)?;
    file.rewind().map_err(fail)?;
    Ok(file)
}
