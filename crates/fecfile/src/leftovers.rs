//! Findings of a search that belong to no chosen encoding.

pub use fec_base::beginning::Beginning;
use fec_base::class::{Class, class_of};
use fec_base::names::{hex, show};
use fec_core::digest::Digest;
use fec_core::error::{Class as FormatClass, FormatError};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A root as people read it, or words for one that is not known.
pub fn show_root(root: Option<Digest>) -> String {
    root.map_or_else(|| "a root that is not known".to_owned(), |root| hex(&root))
}

/// All findings that belong to no chosen encoding. They go into the report, and give the class of the error when the
/// payload cannot be restored.
#[derive(Clone, Default)]
pub struct Leftovers {
    /// Files that hold nothing of any encoding.
    pub foreign: Vec<PathBuf>,
    /// Files or places that could not be read.
    pub unreadable: Vec<String>,
    /// Files that this user may not read: nobody knows whether they are damaged.
    pub denied: Vec<PathBuf>,
    /// Objects that break a rule: where, and which rule. A thousand at most are listed, the others only counted.
    pub rejected: Vec<(String, FormatError)>,
    /// Tells whether the input starts like a live stream, which holds no encodings.
    pub beginning: Beginning,
    /// Roots of encodings that were left aside because another root was wanted, up to 16.
    pub others: Vec<Digest>,
    /// The wanted root was found, with too little else.
    pub(crate) found_wanted: bool,
    worst: Option<FormatClass>,
    /// True if any header has a version that this build does not know, and whether any has version 1.
    has_other_version: bool,
    has_version_1: bool,
    count: u64,
}

/// The counts alone: thousands of findings would hide everything else.
impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers")
            .field("foreign", &self.foreign.len())
            .field("unreadable", &self.unreadable.len())
            .field("denied", &self.denied.len())
            .field("rejected", &self.count)
            .field("others", &self.others.len())
            .finish_non_exhaustive()
    }
}

/// The most rejected objects that are listed; the others are only counted.
const MAX_NOTES: usize = 1000;
/// The most roots of other encodings that are listed.
const MAX_OTHERS: usize = 16;
/// The most lines of one kind; the rest is only counted.
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

    /// Notes that something has version 1: another version elsewhere is then a rotten byte.
    pub(crate) fn found_version_1(&mut self) {
        self.has_version_1 = true;
    }

    /// Notes the root of an encoding that was found but not asked for.
    pub(crate) fn other_root(&mut self, root: &Digest) {
        if self.others.len() < MAX_OTHERS && !self.others.contains(root) {
            self.others.push(*root);
        }
    }

    /// Adds the findings of another search in the same object.
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

    /// Tells whether there is anything that belongs to no encoding.
    pub(crate) fn is_any(&self) -> bool {
        !(self.foreign.is_empty() && self.unreadable.is_empty()) || self.rejects_any()
    }

    /// Tells whether any object breaks a rule, or is of an encoding that was left aside.
    pub(crate) fn rejects_any(&self) -> bool {
        self.count > 0 || !self.others.is_empty()
    }

    /// Notes an object that cannot be read.
    pub fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.unreadable.push(format!("{}: {error}", show(path)));
        if error.kind() == io::ErrorKind::PermissionDenied {
            self.denied.push(path.to_path_buf());
        }
    }

    /// The class of the error when these leftovers are why a payload cannot be restored.
    pub fn class(&self) -> Class {
        let version = match (self.has_other_version, self.has_version_1) {
            (true, false) => Some(FormatClass::Refused),
            (true, true) => Some(FormatClass::Damaged),
            (false, _) => None,
        };
        if self.unreadable.is_empty() { class_of(self.worst.max(version)) } else { Class::Io }
    }

    /// Lines for people: files that hold nothing, and the lines of [`describe`](Leftovers::describe).
    pub fn describe_all(&self, out: &mut String) {
        for path in self.foreign.iter().take(LINES) {
            out.push_str(&format!("  no shard file: {}\n", show(path)));
        }
        self.describe(out);
    }

    /// A line for each rejected object, with plain damage last, and a line with the number of those that are only
    /// counted.
    pub fn rejections(&self) -> Vec<String> {
        self.rejections_outside(|_| false)
    }

    /// The same without plain damage of a container at offsets that are told otherwise.
    pub fn rejections_outside(&self, is_told: impl Fn(u64) -> bool) -> Vec<String> {
        let is_told =
            |place: &str| place.strip_prefix("offset ").and_then(|at| at.parse().ok()).is_some_and(&is_told);
        let is_plain = |error: &FormatError| error.class() == FormatClass::Damaged;
        let mut listed: Vec<&(String, FormatError)> =
            self.rejected.iter().filter(|(place, error)| !(is_plain(error) && is_told(place))).collect();
        listed.sort_by_key(|(_, e)| std::cmp::Reverse(e.class()));
        // Files that were only counted are as those that are listed.
        let unlisted = match listed.len() {
            0 => 0,
            _ => self.count - self.rejected.len() as u64,
        };
        let mut lines: Vec<String> =
            listed.iter().map(|(place, error)| format!("rejected: {place}: {error}")).collect();
        lines.extend((unlisted > 0).then(|| format!("rejected: {unlisted} more")));
        lines
    }

    /// Lines for people. Objects that were rejected for another reason than plain damage come first.
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
