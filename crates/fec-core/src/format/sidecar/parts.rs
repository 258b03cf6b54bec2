//! The parts behind the path to the base, none of which the root binds: marks, what was left out, what is not
//! protected, the policy, and stacks (section 17.3).

use super::entry::{Entry, MAX_PATH, check_names, check_path};
use super::policy::Rules;
use super::stack::{self, Stack};
use super::varint::{Bytes, put_bytes, take, take_pattern};
use crate::error::FormatError;

/// The numbers of the parts.
const MARKS: u8 = 1;
const EXCLUSION: u8 = 2;
const OMITTED: u8 = 3;
const POLICY: u8 = 4;
const STACKS: u8 = 5;

/// Bytes for the mark of an entry.
const MARK_LEN: usize = 8;
/// The most bytes of the part with the patterns.
const MAX_EXCLUSION: usize = 1 << 14;
/// The most bytes of the part with the paths that are not protected.
const MAX_OMITTED: usize = 1 << 22;
/// The most bytes of such a path: a name more than a path of an entry has.
const MAX_OMITTED_PATH: u64 = MAX_PATH + 256;

const FLAG_CACHES: u8 = 1;

/// The choice of what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exclusion {
    /// True if folders with the tag of a cache are left out.
    pub caches: bool,
    /// The path from the base to the folder that patterns count from, as they do from the base; may be empty.
    pub anchor: Vec<u8>,
    /// The patterns, in the order of their bytes.
    pub patterns: Vec<String>,
}

impl Exclusion {
    /// Tells whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        !self.caches && self.patterns.is_empty()
    }

    /// Tells whether a reader accepts it.
    pub fn is_valid(&self) -> bool {
        self.is_empty() || Exclusion::parse(&self.to_bytes()).as_ref() == Ok(self)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![if self.caches { FLAG_CACHES } else { 0 }];
        put_bytes(&mut out, &self.anchor);
        self.patterns.iter().for_each(|pattern| put_bytes(&mut out, pattern.as_bytes()));
        out
    }

    fn parse(bytes: &[u8]) -> Result<Exclusion, FormatError> {
        let wrong = FormatError::Catalog;
        if bytes.len() > MAX_EXCLUSION {
            return Err(wrong("its patterns are too long"));
        }
        let mut rest = Bytes(bytes);
        let [flags] = rest.array()?;
        if flags & !FLAG_CACHES != 0 {
            return Err(FormatError::CriticalCatalog { what: "patterns with flags", value: flags.into() });
        }
        let anchor = take(&mut rest, MAX_PATH)?;
        if !anchor.is_empty() {
            check_path(anchor, b"")?;
        }
        let mut patterns: Vec<String> = Vec::new();
        while !rest.0.is_empty() {
            let pattern = take_pattern(&mut rest)?;
            if patterns.last().is_some_and(|before| pattern <= before.as_str()) {
                return Err(wrong("the patterns are not in order"));
            }
            patterns.push(pattern.to_owned());
        }
        let exclusion = Exclusion { caches: flags & FLAG_CACHES != 0, anchor: anchor.to_vec(), patterns };
        if exclusion.is_empty() { Err(wrong("nothing is left out")) } else { Ok(exclusion) }
    }
}

/// Why a path is not protected although it was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Whoever protected the files may not read it.
    Denied = 1,
    /// It could not be read.
    Unreadable = 2,
    /// It changed while it was read, twice in a row.
    Changing = 3,
    /// Its path is too long, or has too many parts.
    TooLong = 4,
}

/// A path that is not protected although it was named; of a folder that may not be read, what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omitted {
    /// The path relative to the base.
    pub path: Box<[u8]>,
    /// Why it is not protected.
    pub reason: Reason,
}

/// Keeps as many of the omitted paths, which ascend, as a sidecar records.
pub fn limit_omitted(omitted: &mut Vec<Omitted>) {
    let mut len = 0;
    omitted.retain(|omitted| {
        let now = omitted.path.len() + 3;
        let fits = len + now <= MAX_OMITTED && omitted.path.len() as u64 <= MAX_OMITTED_PATH;
        len += if fits { now } else { 0 };
        fits
    });
}

fn omitted_bytes(omitted: &[Omitted]) -> Vec<u8> {
    let mut out = Vec::new();
    for Omitted { path, reason } in omitted {
        out.push(*reason as u8);
        put_bytes(&mut out, path);
    }
    out
}

fn parse_omitted(bytes: &[u8]) -> Result<Vec<Omitted>, FormatError> {
    let wrong = FormatError::Catalog;
    if bytes.len() > MAX_OMITTED {
        return Err(wrong("too much is not protected"));
    }
    let mut rest = Bytes(bytes);
    let mut all: Vec<Omitted> = Vec::new();
    while !rest.0.is_empty() {
        let [reason] = rest.array()?;
        let reason = match reason {
            1 => Reason::Denied,
            2 => Reason::Unreadable,
            3 => Reason::Changing,
            4 => Reason::TooLong,
            _ => return Err(FormatError::CriticalCatalog { what: "the reason", value: reason.into() }),
        };
        let path = take(&mut rest, MAX_OMITTED_PATH)?;
        check_names(path, usize::MAX, all.last().map_or(b"", |omitted| &omitted.path))?;
        all.push(Omitted { path: path.into(), reason });
    }
    Ok(all)
}

/// All parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) marks: Vec<u64>,
    pub(super) exclusion: Exclusion,
    pub(super) omitted: Vec<Omitted>,
    pub(super) policy: Rules,
    pub(super) stacks: Vec<Stack>,
}

/// Appends the parts that are there.
pub(super) fn put_parts(
    out: &mut Vec<u8>,
    (marks, stacks): (&[u64], &[Stack]),
    (exclusion, omitted, policy): (&Exclusion, &[Omitted], &Rules),
) {
    let marks = marks.iter().flat_map(|mark| mark.to_le_bytes()).collect();
    let exclusion = if exclusion.is_empty() { Vec::new() } else { exclusion.to_bytes() };
    let omitted = omitted_bytes(omitted);
    let (policy, stacks) = (policy.to_bytes(), stack::to_bytes(stacks));
    let parts = [marks, exclusion, omitted, policy, stacks];
    for (kind, bytes) in (MARKS..).zip(parts) {
        if !bytes.is_empty() {
            out.push(kind);
            put_bytes(out, &bytes);
        }
    }
}

/// Parses the parts of a catalog with these entries and this block.
pub(super) fn parse_parts(bytes: &[u8], entries: &[Entry], block: u64) -> Result<Parts, FormatError> {
    let wrong = FormatError::Catalog;
    let (mut rest, mut before) = (Bytes(bytes), 0);
    let mut parts = Parts::default();
    while !rest.0.is_empty() {
        let [kind] = rest.array()?;
        if !(MARKS..=STACKS).contains(&kind) {
            return Err(FormatError::CriticalCatalog { what: "a part of kind", value: kind.into() });
        }
        let bytes = take(&mut rest, u64::MAX)?;
        if kind <= before || bytes.is_empty() {
            return Err(wrong("its parts are not in order, or one is empty"));
        }
        before = kind;
        match kind {
            MARKS if bytes.len() != entries.len() * MARK_LEN => {
                return Err(wrong("there is not one mark for each entry"));
            }
            MARKS => parts.marks = bytes.as_chunks().0.iter().map(|mark| u64::from_le_bytes(*mark)).collect(),
            EXCLUSION => parts.exclusion = Exclusion::parse(bytes)?,
            OMITTED => parts.omitted = parse_omitted(bytes)?,
            POLICY => parts.policy = Rules::parse(bytes)?,
            _ => parts.stacks = stack::parse(bytes, entries, block)?,
        }
    }
    Ok(parts)
}
