//! The assignment of bytes to shards, for files that are protected for the first time (docs/FORMAT.md, section 17.8).

use crate::redundancy::Redundancy;
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::error::FormatError;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::group::{GroupCode, SidecarGroup};
use fec_core::format::sidecar::piece::Generation;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry, Run};
use fec_core::params::{Form, GroupGeometry};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Neighbouring positions of one set, of several: few enough that each set loses about as much of a file that is lost,
/// and enough that a disk which has to seek reads them in one go.
const RUN: u64 = 32;

/// Bytes that take no positions of their own.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// Whole blocks of zeros, by entry and number.
    pub(crate) zeros: HashMap<usize, Vec<Range<u64>>>,
    /// Files that have the bytes of another one: both entries.
    pub(crate) twins: BTreeMap<usize, usize>,
    /// Files whose tails share no position with those of most others, which change at other times. A file that an
    /// update holds keeps its place only while no other part of the position has changed.
    pub(crate) apart: HashMap<usize, Apart>,
}

/// The company of a tail that is apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// It shares positions with others that may change, where the rest is written once.
    Changing,
    /// It grows, and shares none.
    Alone,
}

/// Adds blocks behind all others.
pub(crate) fn add_blocks(blocks: &mut Vec<Range<u64>>, more: Range<u64>) {
    match blocks.last_mut() {
        _ if more.is_empty() => {}
        Some(last) if last.end == more.start => last.end = more.end,
        _ => blocks.push(more),
    }
}

/// Bytes of a block for files of this total length.
pub(crate) fn block_len(files_len: u64) -> u32 {
    const SMALLEST: u64 = 256 << 10;
    const MOST_BLOCKS: u64 = 1 << 22;
    match files_len {
        0..=SMALLEST => 1024,
        _ => (12..16)
            .map(|power| 1u32 << power)
            .find(|block| files_len.div_ceil((*block).into()) <= MOST_BLOCKS)
            .unwrap_or(1 << 16),
    }
}

/// Assigns positions to all bytes of files but `content`: whole blocks first, then all tails. Returns the number of
/// positions.
fn place(entries: &mut [Entry], block: u64, content: &Content) -> u64 {
    let files = |entries: &mut [Entry], place: &mut dyn FnMut(usize, &mut FileEntry)| {
        for (nth, entry) in entries.iter_mut().enumerate() {
            if let EntryKind::File(file) = &mut entry.kind
                && !content.twins.contains_key(&nth)
            {
                place(nth, file);
            }
        }
    };
    let mut next = 0;
    files(entries, &mut |nth, file| {
        let zeros = content.zeros.get(&nth).map_or(&[][..], |zeros| zeros);
        file.runs = runs_between(FileEntry::whole_blocks(file.size, block), zeros, &mut next);
    });
    for company in COMPANIES {
        let mut bins = Bins::new(block, next, company);
        files(entries, &mut |nth, file| {
            let len = file.tail_len(block);
            if len > 0 && content.apart.get(&nth).copied() == company {
                file.tail = bins.take(len);
            }
        });
        next += bins.filled.len() as u64;
    }
    share(entries, &content.twins);
    next
}

/// The runs of `whole` blocks at the next positions, but for those of zeros.
pub(crate) fn runs_between(whole: u64, zeros: &[Range<u64>], next: &mut u64) -> Vec<Run> {
    let (mut runs, mut block) = (Vec::new(), 0);
    let end = whole..whole;
    for zeros in zeros.iter().chain([&end]) {
        if block < zeros.start {
            let count = zeros.start - block;
            runs.push(Run { block, start: *next, count });
            *next += count;
        }
        block = zeros.end;
    }
    runs
}

/// Gives each file with the bytes of another one that one's places.
pub(crate) fn share(entries: &mut [Entry], twins: &BTreeMap<usize, usize>) {
    for (twin, of) in twins {
        let EntryKind::File(FileEntry { runs, tail, .. }) = &entries[*of].kind else { continue };
        let (of_runs, of_tail) = (runs.clone(), *tail);
        if let EntryKind::File(file) = &mut entries[*twin].kind {
            (file.runs, file.tail) = (of_runs, of_tail);
        }
    }
}

/// Gives each file with the bytes of another one that one's digest.
pub(crate) fn share_digests(entries: &mut [Entry], twins: &BTreeMap<usize, usize>) {
    for (twin, of) in twins {
        let EntryKind::File(FileEntry { blake3, .. }) = entries[*of].kind else { continue };
        if let EntryKind::File(file) = &mut entries[*twin].kind {
            file.blake3 = blake3;
        }
    }
}

/// The kinds of tails, in the order of their positions.
pub(crate) const COMPANIES: [Option<Apart>; 3] = [None, Some(Apart::Changing), Some(Apart::Alone)];

/// Positions that tails are packed into. No tail spans two positions.
pub(crate) struct Bins {
    block: u64,
    /// The first position.
    first: u64,
    /// Bytes taken of each position.
    pub(crate) filled: Vec<u64>,
    /// The last positions that may still be filled.
    open: usize,
}

impl Bins {
    /// Positions from `first` on.
    pub(crate) fn new(block: u64, first: u64, company: Option<Apart>) -> Bins {
        let open = if company == Some(Apart::Alone) { 0 } else { 16 };
        Bins { block, first, filled: Vec::new(), open }
    }

    /// Takes `len` bytes, at most a block, in the first of the last positions that has room. Returns their address.
    pub(crate) fn take(&mut self, len: u64) -> u64 {
        let oldest = self.filled.len().saturating_sub(self.open);
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

/// The catalog of these entries without their digests, and the geometry of the metadata, of which `stats_len` bytes
/// stand behind the catalog. `content` takes no positions.
pub(crate) fn plan(
    mut entries: Vec<Entry>,
    redundancy: Redundancy,
    stats_len: u64,
    (block, content): (u32, &Content),
) -> Result<(Catalog, GroupGeometry), FormatError> {
    let positions = place(&mut entries, block.into(), content);
    let (code, sets) = redundancy.shape(positions, block.into());
    let group = group(code, sets, (0, 0))?;
    let extent = Extent { start: 0, blocks: group.recovery(), pieces: 2, piece_len: 0 };
    let mut catalog = Catalog { block, extents: vec![extent], groups: vec![group], entries };
    let geometry = fit_pieces(&mut catalog, stats_len)?;
    Ok((catalog, geometry))
}

/// A group of this many sets, with its extent and its first block there.
pub(crate) fn group(
    code: GroupCode,
    sets: u64,
    (extent, first): (u32, u64),
) -> Result<SidecarGroup, FormatError> {
    let limit = FormatError::Limit { what: "the number of sets", value: sets.into(), limit: u32::MAX.into() };
    let sets = u32::try_from(sets).map_err(|_| limit)?;
    Ok(SidecarGroup::new(code, sets, RUN, (extent, first)))
}

/// Fits the pieces of the metadata into the last extent of a catalog. Returns the geometry of the metadata.
pub(crate) fn fit_pieces(catalog: &mut Catalog, stats_len: u64) -> Result<GroupGeometry, FormatError> {
    let head_len = catalog.head_bytes().len() as u64;
    let len = head_len + 16 * catalog.digests() + 8 * catalog.anchors() + stats_len;
    let code = catalog.groups[catalog.groups.len() - 1].code;
    let geometry = metadata_geometry(len, code, 0)?;
    fit_extent(catalog, &geometry)?;
    Ok(geometry)
}

/// Fits the pieces of a difference of this length into the last extent of a catalog. Returns its geometry.
pub(crate) fn fit_difference(catalog: &mut Catalog, len: u64) -> Result<GroupGeometry, FormatError> {
    /// A few pieces stand close together, where one fault may hit them all.
    const MORE: u64 = 8;
    let code = catalog.groups[catalog.groups.len() - 1].code;
    let geometry = metadata_geometry(len, code, MORE)?;
    fit_extent(catalog, &geometry)?;
    Ok(geometry)
}

/// Makes room for pieces of this geometry in the last extent of a catalog.
fn fit_extent(catalog: &mut Catalog, geometry: &GroupGeometry) -> Result<(), FormatError> {
    let shape = geometry.shape();
    let pieces = shape.code.n() as u64 * u64::from(shape.sets);
    let limit =
        FormatError::Limit { what: "the number of pieces", value: pieces.into(), limit: u32::MAX.into() };
    let extent = catalog.extents.last_mut().expect("a catalog has an extent");
    extent.pieces = u32::try_from(pieces).map_err(|_| limit)?;
    extent.piece_len = (Generation::head_len_for(geometry) + shape.shard_len) as u32;
    Ok(())
}

/// The length of a new sidecar for the files of a catalog, at this number of positions.
pub(crate) fn len_anew(
    catalog: &Catalog,
    positions: u64,
    redundancy: Redundancy,
    stats_len: u64,
) -> Result<u64, FormatError> {
    let (code, sets) = redundancy.shape(positions, catalog.block.into());
    let shards = (code.k() + code.m()) * sets;
    let head_len = catalog.head_bytes().len() as u64;
    let geometry = metadata_geometry(head_len + 16 * shards + 8 * catalog.anchors() + stats_len, code, 0)?;
    let shape = geometry.shape();
    let piece_len = (Generation::head_len_for(&geometry) + shape.shard_len) as u64;
    let pieces = shape.code.n() as u64 * u64::from(shape.sets);
    Ok(code.m() * sets * u64::from(catalog.block) + pieces * piece_len)
}

/// The coding of metadata of this length, beside shards of this code. Short metadata gets `more` recovery shards.
fn metadata_geometry(len: u64, code: GroupCode, more: u64) -> Result<GroupGeometry, FormatError> {
    /// Shards of all sets of large metadata.
    const SHARDS: u64 = 128;
    let (k, m) = (code.k(), code.m());
    let recovery = (SHARDS * m).div_ceil(k + m).clamp(SHARDS / 4, SHARDS - 1);
    let originals = SHARDS - recovery;
    let (k, m) = if len >= 4096 * originals {
        (originals, recovery)
    } else {
        let few = len.div_ceil(4096).max(1);
        (few, (few * recovery).div_ceil(originals) + 1 + more)
    };
    let code = Code::new(k as usize, m as usize).expect("at most 128 shards, or a few");
    GroupGeometry::whole(Form::Sidecar, HashKind::Blake3, code, 8192 * originals, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_grow_with_the_files() {
        for (len, block) in [
            (0, 1024),
            (256 << 10, 1024),
            ((256 << 10) + 1, 4096),
            (16 << 30, 4096),
            ((16 << 30) + 1, 8192),
            (256 << 30, 65_536),
            (1 << 50, 65_536),
        ] {
            assert_eq!(block_len(len), block, "{len}");
        }
    }
}
