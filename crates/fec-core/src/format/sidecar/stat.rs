//! The metadata that the root does not bind: times, permissions, and the path to the base (section 17.3).

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

/// Times and permissions of all entries, and the path from the sidecar's folder to the base.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The stat of each entry, in order.
    pub entries: Vec<Stat>,
    /// The path to the base; empty if the base is the folder of the sidecar.
    pub base: Vec<u8>,
}

impl Stats {
    /// Bytes that [`to_bytes`](Stats::to_bytes) gives for `entries` entries.
    pub fn len_for(entries: usize, base: &[u8]) -> usize {
        entries * STAT_LEN + 2 + base.len()
    }

    /// The bytes of the stats.
    ///
    /// # Panics
    /// If the path has more than 65,535 bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(Stats::len_for(self.entries.len(), &self.base));
        for stat in &self.entries {
            out.extend_from_slice(&stat.seconds.to_le_bytes());
            out.extend_from_slice(&stat.nanos.to_le_bytes());
            out.extend_from_slice(&stat.mode.to_le_bytes());
            out.extend_from_slice(&[0; 2]);
        }
        let base_len = u16::try_from(self.base.len()).expect("a path has at most 65,535 bytes");
        out.extend_from_slice(&base_len.to_le_bytes());
        out.extend_from_slice(&self.base);
        out
    }

    /// Parses the bytes behind a catalog of `entries` entries.
    ///
    /// # Errors
    /// [`FormatError::Catalog`].
    pub fn parse(bytes: &[u8], entries: usize) -> Result<Stats, FormatError> {
        let wrong = FormatError::Catalog;
        let (stats, rest) =
            bytes.split_at_checked(entries * STAT_LEN).ok_or(wrong("times and permissions end too early"))?;
        let (base_len, base) = rest.split_first_chunk().ok_or(wrong("the path of the base is missing"))?;
        if base.len() != usize::from(u16::from_le_bytes(*base_len)) || base.contains(&0) {
            return Err(wrong("the path of the base has another length"));
        }
        let stat = |bytes: &[u8; STAT_LEN]| {
            let stat = Stat {
                seconds: i64::from_le_bytes(array_at(bytes, 0)),
                nanos: u32::from_le_bytes(array_at(bytes, 8)),
                mode: u16::from_le_bytes(array_at(bytes, 12)),
            };
            let is_possible = stat.nanos < 1_000_000_000 && stat.mode < 1 << 12 && bytes[14..] == [0; 2];
            is_possible.then_some(stat).ok_or(wrong("a time or permissions are not possible"))
        };
        let mut all = Vec::with_capacity(entries);
        for bytes in stats.as_chunks().0 {
            all.push(stat(bytes)?);
        }
        Ok(Stats { entries: all, base: base.to_vec() })
    }
}
