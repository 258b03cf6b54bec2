//! What was found and does not take part.

use crate::class::{Class, class_of};
use crate::names::{hex, show};
use fec_core::digest::Digest;
use fec_core::error::{Class as FormatClass, FormatError};
use std::io;
use std::path::{Path, PathBuf};

/// A root as people read it, or words for one that is not known.
pub fn show_root(root: Option<Digest>) -> String {
    root.map_or_else(|| "a root that is not known".to_owned(), |root| hex(&root))
}

/// What the beginning of an input tells of live streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// Nothing: it is no packet of one.
    #[default]
    Other,
    /// A whole valid packet.
    Stream,
    /// What looks like a sealed packet: only who has the key can tell.
    Sealed,
}

/// Everything that was found and does not take part: for the report, and for the class of the error when the payload
/// cannot be restored without it.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    /// Files that hold nothing of any encoding.
    pub foreign: Vec<PathBuf>,
    /// Files or places that could not be read.
    pub unreadable: Vec<String>,
    /// Those that whoever asks may not read: nobody knows whether they are damaged.
    pub denied: Vec<PathBuf>,
    /// Objects that break a rule: where, and which; a thousand at most, the others are only counted.
    pub rejected: Vec<(String, FormatError)>,
    /// Whether the input starts like a live stream, which holds no encodings.
    pub beginning: Beginning,
    /// Roots of encodings that were left aside because another was asked for, up to 16.
    pub others: Vec<Digest>,
    /// The root that was asked for is there, and too little else.
    pub(crate) found_wanted: bool,
    worst: Option<FormatClass>,
    /// A header of a version that this build does not know, and one of the version that it knows.
    has_other_version: bool,
    has_version_1: bool,
    count: u64,
}

/// Rejected objects are listed up to this number, and counted beyond.
const MAX_NOTES: usize = 1000;
/// Roots of other encodings are listed up to this number.
const MAX_OTHERS: usize = 16;
/// Lines of one kind before the rest is only counted.
const LINES: usize = 10;

impl Leftovers {
    /// Notes an object that breaks a rule.
    pub fn reject(&mut self, place: impl FnOnce() -> String, error: FormatError) {
        match error {
            FormatError::Version(_) => self.has_other_version = true,
            _ => self.worst = self.worst.max(Some(error.class())),
        }
        self.has_version_1 |= error.is_behind_checksum();
        self.count += 1;
        if self.rejected.len() < MAX_NOTES {
            self.rejected.push((place(), error));
        }
    }

    /// Notes that something was written as this version: then another version elsewhere is a byte that rotted.
    pub(crate) fn found_version_1(&mut self) {
        self.has_version_1 = true;
    }

    /// Notes the root of an encoding that is there and was not asked for.
    pub(crate) fn other_root(&mut self, root: &Digest) {
        if self.others.len() < MAX_OTHERS && !self.others.contains(root) {
            self.others.push(*root);
        }
    }

    /// Adds what another search found in the same object.
    pub(crate) fn absorb(&mut self, other: &Leftovers) {
        let room = MAX_NOTES.saturating_sub(self.rejected.len());
        self.rejected.extend(other.rejected.iter().take(room).cloned());
        self.unreadable.extend(other.unreadable.iter().cloned());
        self.denied.extend(other.denied.iter().cloned());
        self.worst = self.worst.max(other.worst);
        self.has_other_version |= other.has_other_version;
        self.has_version_1 |= other.has_version_1;
        self.found_wanted |= other.found_wanted;
        self.count += other.count;
    }

    /// Whether there is anything that does not take part.
    pub(crate) fn is_any(&self) -> bool {
        !(self.foreign.is_empty() && self.unreadable.is_empty() && self.others.is_empty()) || self.count > 0
    }

    /// Notes an object that cannot be read.
    pub fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.unreadable.push(format!("{}: {error}", show(path)));
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.denied.push(path.to_path_buf());
        }
    }

    /// What it means that a payload cannot be restored, by what stood in the way.
    pub fn class(&self) -> Class {
        let version = match (self.has_other_version, self.has_version_1) {
            (true, false) => Some(FormatClass::Refused),
            (true, true) => Some(FormatClass::Damaged),
            (false, _) => None,
        };
        if self.unreadable.is_empty() { class_of(self.worst.max(version)) } else { Class::Io }
    }

    /// Lines for people: files that hold nothing, and what [`describe`](Leftovers::describe) tells.
    pub fn describe_all(&self, out: &mut String) {
        for path in self.foreign.iter().take(LINES) {
            out.push_str(&format!("  no shard file: {}\n", show(path)));
        }
        self.describe(out);
    }

    /// A line for each object that was rejected, where what is not plain damage comes first; and one for those that are only
    /// counted.
    pub fn rejections(&self) -> Vec<String> {
        let mut listed: Vec<&(String, FormatError)> = self.rejected.iter().collect();
        listed.sort_by_key(|(_, e)| std::cmp::Reverse(e.class()));
        let unlisted = self.count - listed.len() as u64;
        let mut lines: Vec<String> =
            listed.iter().map(|(place, error)| format!("rejected: {place}: {error}")).collect();
        lines.extend((unlisted > 0).then(|| format!("rejected: {unlisted} more")));
        lines
    }

    /// Lines for people: what was rejected for another reason than plain damage comes first.
    pub fn describe(&self, out: &mut String) {
        for line in self.rejections().iter().take(LINES) {
            out.push_str(&format!("  {line}\n"));
        }
        if self.count > LINES as u64 {
            out.push_str(&format!("  and {} more rejected\n", self.count - LINES as u64));
        }
        for line in self.unreadable.iter().take(LINES) {
            out.push_str(&format!("  cannot be read: {line}\n"));
        }
    }
}
