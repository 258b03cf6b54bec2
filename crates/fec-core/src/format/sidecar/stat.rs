//! The metadata that the root does not bind: times, permissions, the path to the base, and parts (section 17.3).

use super::entry::Entry;
use super::parts::{Exclusion, Omitted, Parts, parse_parts, put_parts};
use super::policy::Rules;
use super::stack::Stack;
use crate::digest::HashKind;
use crate::error::FormatError;
use crate::format::array_at;

/// Bytes for each entry.
pub const STAT_LEN: usize = 16;

/// The permissions of an entry and its time of modification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second.
    pub nanos: u32,
    /// The lower twelve bits of the mode.
    pub mode: u16,
}

/// The mark of a file: it tells whether somebody has written to the file, or put another one in its place. Zero is no
/// mark.
///
/// `changed` is the time of status change in seconds and nanoseconds.
pub fn mark(changed: (i64, u32), inode: u64) -> u64 {
    let mut bytes = [0; 20];
    bytes[..8].copy_from_slice(&changed.0.to_le_bytes());
    bytes[8..12].copy_from_slice(&changed.1.to_le_bytes());
    bytes[12..].copy_from_slice(&inode.to_le_bytes());
    u64::from_le_bytes(array_at(&HashKind::Blake3.digest(&bytes), 0)).max(1)
}

/// Times, permissions and marks of all entries, the path from the sidecar's folder to the base, and what is not
/// protected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The stat of each entry, in order.
    pub entries: Vec<Stat>,
    /// The path to the base; empty if the base is the folder of the sidecar.
    pub base: Vec<u8>,
    /// The [`mark`] of each entry, in order; empty if none were recorded.
    pub marks: Vec<u64>,
    /// The choice of what is left out.
    pub exclusion: Exclusion,
    /// Paths that are not protected although they were named, in the order of their bytes.
    pub omitted: Vec<Omitted>,
    /// The policy.
    pub policy: Rules,
    /// The stacks of files that grow, in the order of their entries.
    pub stacks: Vec<Stack>,
}

impl Stats {
    /// The bytes of the stats.
    ///
    /// # Panics
    /// If the path has more than 65,535 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * (STAT_LEN + 8) + self.base.len() + 16);
        for stat in &self.entries {
            out.extend_from_slice(&stat.seconds.to_le_bytes());
            out.extend_from_slice(&stat.nanos.to_le_bytes());
            out.extend_from_slice(&stat.mode.to_le_bytes());
            out.extend_from_slice(&[0; 2]);
        }
        let base_len = u16::try_from(self.base.len()).expect("a path has at most 65,535 bytes");
        out.extend_from_slice(&base_len.to_le_bytes());
        out.extend_from_slice(&self.base);
        put_parts(&mut out, (&self.marks, &self.stacks), (&self.exclusion, &self.omitted, &self.policy));
        out
    }

    /// Parses the bytes behind a catalog with these entries and this block.
    ///
    /// # Errors
    /// [`FormatError::Catalog`], [`FormatError::CriticalCatalog`].
    pub fn parse(bytes: &[u8], entries: &[Entry], block: u32) -> Result<Stats, FormatError> {
        let wrong = FormatError::Catalog;
        let (stats, rest) = bytes
            .split_at_checked(entries.len() * STAT_LEN)
            .ok_or(wrong("times and permissions end too early"))?;
        let (base_len, rest) = rest.split_first_chunk().ok_or(wrong("the path of the base is missing"))?;
        let (base, parts) = rest
            .split_at_checked(u16::from_le_bytes(*base_len).into())
            .filter(|(base, _)| !base.contains(&0))
            .ok_or(wrong("the path of the base has another length"))?;
        let stat = |bytes: &[u8; STAT_LEN]| {
            let stat = Stat {
                seconds: i64::from_le_bytes(array_at(bytes, 0)),
                nanos: u32::from_le_bytes(array_at(bytes, 8)),
                mode: u16::from_le_bytes(array_at(bytes, 12)),
            };
            let is_possible = stat.nanos < 1_000_000_000 && stat.mode < 1 << 12 && bytes[14..] == [0; 2];
            is_possible.then_some(stat).ok_or(wrong("a time or permissions are not possible"))
        };
        let mut all = Vec::with_capacity(entries.len());
        for bytes in stats.as_chunks().0 {
            all.push(stat(bytes)?);
        }
        let Parts { marks, exclusion, omitted, policy, stacks } = parse_parts(parts, entries, block.into())?;
        Ok(Stats { entries: all, base: base.to_vec(), marks, exclusion, omitted, policy, stacks })
    }
}
