//! The assignment of bytes to shards, for files that are protected for the first time (docs/FORMAT.md, section 17.8).

use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::FormatError;
use fec_core::format::sidecar::area::Area;
use fec_core::format::sidecar::catalog::{Catalog, SidecarGroup};
use fec_core::format::sidecar::piece::Generation;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, Run};
use fec_core::params::{Form, GroupGeometry};

/// Recovery data for each original byte, in parts of 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy(u32);

impl Redundancy {
    /// The default: 16 %, which is 220 + 36 shards.
    pub const DEFAULT: Redundancy = Redundancy(1600);

    /// Recovery data in parts of 10,000, from 1 to 1,270,000, which is 127 times the originals; `None` beyond.
    pub fn new(parts: u32) -> Option<Redundancy> {
        (1..=1_270_000).contains(&parts).then_some(Redundancy(parts))
    }

    /// The redundancy of a sidecar with sets of this code: the default if it gives this code, else the ratio of
    /// recovery shards to originals.
    pub(crate) fn of(code: Code) -> Redundancy {
        let (k, m) = (code.k() as u64, code.m() as u64);
        if Redundancy::DEFAULT.recovery(k) == m {
            return Redundancy::DEFAULT;
        }
        Redundancy(((m * 10_000 / k) as u32).clamp(1, 1_270_000))
    }

    /// The redundancy of an update with `new` positions among `all` living ones. It gives as many recovery shards as
    /// the whole tree would get, but at most one per new original, so that an added file can be lost whole as an old
    /// one can.
    pub(crate) fn of_few(self, new: u64, all: u64) -> Redundancy {
        let as_all = u128::from(self.0) * u128::from(all) / u128::from(new.max(1));
        Redundancy(self.0.max(as_all.min(10_000) as u32))
    }

    /// Recovery shards for k originals: ⌈k·r⌉.
    fn recovery(self, k: u64) -> u64 {
        (k * u64::from(self.0)).div_ceil(10_000)
    }

    /// The most originals of a set.
    fn most(self) -> u64 {
        (1..=255).rev().find(|k| k + self.recovery(*k) <= 256).unwrap_or(1)
    }

    /// The code, and the number of its sets, for this number of positions.
    pub(crate) fn shape(self, positions: u64) -> (Code, u64) {
        let sets = positions.div_ceil(self.most()).max(1);
        let k = positions.div_ceil(sets).max(1);
        let code = Code::new(k as usize, self.recovery(k) as usize).expect("k + m is at most 256");
        (code, sets)
    }
}

/// Bytes of a block for files of this total length.
pub(crate) fn block_len(files_len: u64) -> u32 {
    const SMALLEST: u64 = 256 << 10;
    const MOST_BLOCKS: u64 = 1 << 18;
    match files_len {
        0..=SMALLEST => 1024,
        _ => (12..16)
            .map(|power| 1u32 << power)
            .find(|block| files_len.div_ceil((*block).into()) <= MOST_BLOCKS)
            .unwrap_or(1 << 16),
    }
}

/// Assigns positions to all bytes of files: whole blocks first, then all tails. Returns the number of positions.
fn place(entries: &mut [Entry], block: u64) -> u64 {
    let files = |entries: &mut [Entry], place: &mut dyn FnMut(&mut FileEntry)| {
        for entry in entries {
            if let EntryKind::File(file) = &mut entry.kind {
                place(file);
            }
        }
    };
    let mut next = 0;
    files(entries, &mut |file| {
        let count = FileEntry::whole_blocks(file.size, block);
        if count > 0 {
            file.runs = vec![Run { start: next, count }];
            next += count;
        }
    });
    let mut bins = Bins { block, first: next, filled: Vec::new() };
    files(entries, &mut |file| {
        let len = file.tail_len(block);
        if len > 0 {
            file.tail = bins.take(len);
        }
    });
    next + bins.filled.len() as u64
}

/// Positions that tails are packed into. No tail spans two positions.
pub(crate) struct Bins {
    pub(crate) block: u64,
    /// The first position.
    pub(crate) first: u64,
    /// Bytes taken of each position.
    pub(crate) filled: Vec<u64>,
}

impl Bins {
    /// Takes `len` bytes, at most a block, in the first of the last positions that has room. Returns their address.
    pub(crate) fn take(&mut self, len: u64) -> u64 {
        /// The last positions that may still be filled.
        const OPEN: usize = 16;
        let oldest = self.filled.len().saturating_sub(OPEN);
        let fits = |filled: &u64| filled + len <= self.block;
        let nth = match self.filled[oldest..].iter().position(fits) {
            Some(found) => oldest + found,
            None => {
                self.filled.push(0);
                self.filled.len() - 1
            }
        };
        let at = (self.first + nth as u64) * self.block + self.filled[nth];
        self.filled[nth] += len;
        at
    }
}

/// The catalog of these entries without their digests, and the geometry of the metadata.
pub(crate) fn plan(
    mut entries: Vec<Entry>,
    redundancy: Redundancy,
    base: &[u8],
) -> Result<(Catalog, GroupGeometry), FormatError> {
    let files_len = entries.iter().map(|entry| match &entry.kind {
        EntryKind::File(file) => file.size,
        _ => 0,
    });
    let block = block_len(files_len.sum());
    let positions = place(&mut entries, block.into());
    let (code, sets) = redundancy.shape(positions);
    let group = group(code, sets, 0)?;
    let area = Area { start: 0, blocks: group.recovery(), pieces: 2, piece_len: 0 };
    let mut catalog = Catalog { block, areas: vec![area], groups: vec![group], entries };
    let stats_len = Stats::len_for(catalog.entries.len(), base) as u64;
    let geometry = fit_pieces(&mut catalog, stats_len)?;
    Ok((catalog, geometry))
}

/// A group of this many sets, the first of an area.
pub(crate) fn group(code: Code, sets: u64, area: u32) -> Result<SidecarGroup, FormatError> {
    let limit = FormatError::Limit { what: "the number of sets", value: sets.into(), limit: u32::MAX.into() };
    let sets = u32::try_from(sets).map_err(|_| limit)?;
    Ok(SidecarGroup { code, sets, area, first: 0 })
}

/// Fits the pieces of the metadata into the last area of a catalog. Returns the geometry of the metadata.
pub(crate) fn fit_pieces(catalog: &mut Catalog, stats_len: u64) -> Result<GroupGeometry, FormatError> {
    let head_len = catalog.head_bytes().len() as u64;
    let len = head_len + 16 * catalog.digests() + 8 * catalog.anchors() + stats_len;
    let code = catalog.groups[catalog.groups.len() - 1].code;
    let geometry = metadata_geometry(len, code)?;
    let shape = geometry.shape();
    let pieces = shape.code.n() as u64 * u64::from(shape.sets);
    let limit =
        FormatError::Limit { what: "the number of pieces", value: pieces.into(), limit: u32::MAX.into() };
    let area = catalog.areas.last_mut().expect("a catalog has an area");
    area.pieces = u32::try_from(pieces).map_err(|_| limit)?;
    area.piece_len = (Generation::head_len_for(&geometry) + shape.shard_len) as u32;
    Ok(geometry)
}

/// The length of a new sidecar for the files of a catalog, at this number of positions.
pub(crate) fn len_anew(
    catalog: &Catalog,
    positions: u64,
    redundancy: Redundancy,
    stats_len: u64,
) -> Result<u64, FormatError> {
    let (code, sets) = redundancy.shape(positions);
    let shards = code.n() as u64 * sets;
    let head_len = catalog.head_bytes().len() as u64;
    let geometry = metadata_geometry(head_len + 16 * shards + 8 * catalog.anchors() + stats_len, code)?;
    let shape = geometry.shape();
    let piece_len = (Generation::head_len_for(&geometry) + shape.shard_len) as u64;
    let pieces = shape.code.n() as u64 * u64::from(shape.sets);
    Ok(code.m() as u64 * sets * u64::from(catalog.block) + pieces * piece_len)
}

/// The coding of metadata of this length, beside shards of this code.
pub(crate) fn metadata_geometry(len: u64, code: Code) -> Result<GroupGeometry, FormatError> {
    /// Shards of all sets of large metadata.
    const SHARDS: u64 = 128;
    let (k, m) = (code.k() as u64, code.m() as u64);
    let recovery = (SHARDS * m).div_ceil(k + m).clamp(SHARDS / 4, SHARDS - 1);
    let originals = SHARDS - recovery;
    let (k, m) = if len >= 4096 * originals {
        (originals, recovery)
    } else {
        let few = len.div_ceil(4096).max(1);
        (few, (few * recovery).div_ceil(originals) + 1)
    };
    let code = Code::new(k as usize, m as usize).expect("at most 128 shards, or a few");
    GroupGeometry::whole(Form::Sidecar, HashKind::Blake3, code, 8192 * originals, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_is_at_least_what_was_asked_for() {
        for (parts, positions, k, m, sets) in [
            (1600, 48_829, 220, 36, 222),
            (1600, 3, 3, 1, 1),
            (500, 1000, 200, 10, 5),
            (10_000, 256, 128, 128, 2),
            (20_000, 85, 85, 170, 1),
            (1600, 0, 1, 1, 1),
        ] {
            let (code, found) = Redundancy(parts).shape(positions);
            assert_eq!((code.k(), code.m(), found), (k, m, sets), "{parts} of {positions}");
        }
    }

    #[test]
    fn blocks_grow_with_the_files() {
        for (len, block) in [
            (0, 1024),
            (256 << 10, 1024),
            ((256 << 10) + 1, 4096),
            (1 << 30, 4096),
            ((1 << 30) + 1, 8192),
            (16 << 30, 65_536),
            (1 << 50, 65_536),
        ] {
            assert_eq!(block_len(len), block, "{len}");
        }
    }
}
