//! What was found in the inputs: encodings whose records can be read and proved.
//!
//! Shard files and containers end in the same thing, an [`Encoded`]: groups in order, and a way to load
//! any shard of any set into a decoder, which checks it there.

pub(crate) mod choose;
pub(crate) mod container;
pub(crate) mod inputs;
pub(crate) mod ranges;
pub(crate) mod scan;
pub(crate) mod shards;
mod tally;

use crate::failure::{Exit, Failure, Result, hex, show};
use crate::settings::Settings;
use fec_core::digest::Digest;
use fec_core::error::{Class, FormatError};
use fec_core::params::{GroupGeometry, Shape};
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
    /// The input starts like a live stream, in which nothing of this kind is to be found.
    pub(crate) is_live: bool,
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
        for path in self.foreign.iter().take(LINES) {
            out.push_str(&format!("  no shard file: {}\n", show(path)));
        }
        for line in self.unreadable.iter().take(LINES) {
            out.push_str(&format!("  cannot be read: {line}\n"));
        }
    }
}
