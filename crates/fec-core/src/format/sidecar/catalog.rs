//! The catalog: the record of the files, the assignment of their bytes to shards, and the digests of all shards
//! (section 17.2).

use super::entry::{self, Cursor, Entry, EntryKind, FileEntry};
use super::extent::Extent;
use super::group::{GroupCode, RECORD_LEN, SidecarGroup};
use super::piece::check_block;
use crate::digest::Digest;
use crate::error::FormatError;
use crate::format::{is_zero, u32_at, u64_at};

/// Bytes before the extents.
const HEAD_LEN: usize = 64;
/// Bytes of a digest of a position or a recovery shard.
pub const DIGEST_LEN: usize = 16;
/// The feature of catalogs in which files with the same bytes share places.
const SHARES: u32 = 1;
/// The feature of catalogs with groups of a wide code.
const WIDE: u32 = 2;
/// The feature of catalogs whose groups of a wide code say how long their runs are.
const RUNS: u32 = 4;
/// The key of the hash that is the root of a sidecar.
const ROOT_KEY: &[u8; 32] = b"fec/1 sidecar: catalog          ";

/// The first bytes of a digest, which the catalog keeps for each shard.
pub type ShortDigest = [u8; DIGEST_LEN];

/// The bytes of a digest that the catalog keeps.
pub fn shortened(digest: &Digest) -> ShortDigest {
    *digest.first_chunk().expect("a digest has 32 bytes")
}

/// A catalog with its digests and its anchors.
pub type Parsed<'a> = (Catalog, &'a [ShortDigest], &'a [[u8; 8]]);

/// Starts and ends of runs, with the number of the first block, and those of packed bytes.
type Places = (Vec<(u64, u64, u64)>, Vec<(u64, u64)>);

/// All of a catalog but the digests of the shards and the anchors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// Bytes of a block.
    pub block: u32,
    /// Stretches of the sidecar.
    pub extents: Vec<Extent>,
    /// Groups, by the order of their positions.
    pub groups: Vec<SidecarGroup>,
    /// Entries, by path.
    pub entries: Vec<Entry>,
}

impl Catalog {
    /// The root: the keyed hash of all bytes of a catalog.
    pub fn root(bytes: &[u8]) -> Digest {
        *blake3::keyed_hash(ROOT_KEY, bytes).as_bytes()
    }

    /// The number of positions of all groups.
    pub fn positions(&self) -> u64 {
        self.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.positions()))
    }

    /// The number of digests: of all positions and recovery shards.
    pub fn digests(&self) -> u64 {
        self.groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.positions() + group.recovery()))
    }

    /// The number of anchors of all files.
    pub fn anchors(&self) -> u64 {
        self.files().fold(0, |sum: u64, (_, file)| sum.saturating_add(file.anchors(self.block.into())))
    }

    /// The sum of the sizes of all files.
    pub fn files_len(&self) -> u64 {
        self.files().map(|(_, file)| file.size).sum()
    }

    /// The files, with the numbers of their entries.
    pub fn files(&self) -> impl Iterator<Item = (usize, &FileEntry)> {
        self.entries.iter().enumerate().filter_map(|(nth, entry)| match &entry.kind {
            EntryKind::File(file) => Some((nth, file)),
            _ => None,
        })
    }

    /// All bytes before the digests.
    pub fn head_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; HEAD_LEN];
        for extent in &self.extents {
            out.extend_from_slice(&extent.start.to_le_bytes());
            out.extend_from_slice(&extent.blocks.to_le_bytes());
            out.extend_from_slice(&extent.pieces.to_le_bytes());
            out.extend_from_slice(&extent.piece_len.to_le_bytes());
            out.extend_from_slice(&[0; 8]);
        }
        let features = self.features();
        self.groups.iter().for_each(|group| group.put(&mut out, features & RUNS != 0));
        let entries_at = out.len();
        let mut cursor = Cursor::default();
        self.entries.iter().for_each(|entry| cursor.put(entry, self.block.into(), &mut out));
        let numbers = [
            1,
            features,
            self.block,
            self.extents.len() as u32,
            self.groups.len() as u32,
            self.entries.len() as u32,
        ];
        out[..24].as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(out, n)| *out = n.to_le_bytes());
        let entries_len = (out.len() - entries_at) as u64;
        out[24..32].copy_from_slice(&entries_len.to_le_bytes());
        out[32..40].copy_from_slice(&self.files_len().to_le_bytes());
        out
    }

    /// Parses a catalog. Returns it with its digests and its anchors. The digests of each group are those of its
    /// positions, then those of its recovery shards.
    ///
    /// # Errors
    /// The rule of section 17.2 that is broken.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, FormatError> {
        const CUT: FormatError = FormatError::Catalog("it is shorter than it says");
        let (head, rest) = bytes.split_at_checked(HEAD_LEN).ok_or(CUT)?;
        let (version, features, block) = (u32_at(head, 0), u32_at(head, 4), u32_at(head, 8));
        if version != 1 {
            return Err(FormatError::CriticalCatalog { what: "version", value: version.into() });
        }
        if features & !(SHARES | WIDE | RUNS) != 0 || features & (WIDE | RUNS) == RUNS {
            return Err(FormatError::CriticalCatalog { what: "features", value: features.into() });
        }
        check_block(block)?;
        let (extents, groups) = (u32_at(head, 12), u32_at(head, 16));
        let (entries, entries_len) = (u32_at(head, 20), u64_at(head, 24));
        if !is_zero(&head[40..]) {
            return Err(FormatError::Catalog("a zero field is not zero"));
        }
        let records_len = (u64::from(extents) + u64::from(groups)) * RECORD_LEN as u64;
        let (records, rest) = split(rest, records_len).ok_or(CUT)?;
        let (extents_bytes, groups_bytes) = records.split_at(extents as usize * RECORD_LEN);
        let block_len = u64::from(block);
        let extents = extents_bytes.chunks_exact(RECORD_LEN).map(|bytes| extent(bytes, block_len));
        let extents: Vec<Extent> = extents.collect::<Result<_, _>>()?;
        let groups = groups_bytes
            .chunks_exact(RECORD_LEN)
            .map(|bytes| SidecarGroup::parse(bytes, &extents, (features & WIDE != 0, features & RUNS != 0)));
        let groups: Vec<SidecarGroup> = groups.collect::<Result<_, _>>()?;
        if extents.is_empty() || groups.is_empty() {
            return Err(FormatError::Catalog("it has no extent, or no group"));
        }
        let ends = extents
            .iter()
            .map(|extent| extent.start.saturating_add(extent.len(block_len).unwrap_or(u64::MAX)));
        if extents.iter().skip(1).zip(ends).any(|(next, end)| next.start < end) {
            return Err(FormatError::Catalog("extents overlap, or are not in order"));
        }
        let mut shards: Vec<(u32, u64, u64)> =
            groups.iter().map(|group| (group.extent, group.first, group.first + group.recovery())).collect();
        shards.sort_unstable();
        if shards.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].2 > pair[1].1) {
            return Err(FormatError::Catalog("two groups share recovery shards"));
        }
        let (entries_bytes, rest) = split(rest, entries_len).ok_or(CUT)?;
        // Each position and recovery shard has a digest in the catalog, so their number cannot be a lie.
        let catalog = Catalog { block, extents, groups, entries: Vec::new() };
        let digests_len = catalog.digests().saturating_mul(DIGEST_LEN as u64);
        let (digests, rest) =
            split(rest, digests_len).ok_or(FormatError::Catalog("it has not one digest for each shard"))?;
        let (digests, (anchors, left)) = (digests.as_chunks().0, rest.as_chunks());
        let entries = entry::parse(entries_bytes, entries, block_len)?;
        let catalog = Catalog { entries, ..catalog };
        let sizes = catalog.files().try_fold(0u64, |sum, (_, file)| sum.checked_add(file.size));
        if sizes != Some(u64_at(head, 32)) {
            return Err(FormatError::Catalog("the sum of the sizes is another"));
        }
        if !left.is_empty() || anchors.len() as u64 != catalog.anchors() {
            return Err(FormatError::Catalog("it has not one anchor for each block that should have one"));
        }
        catalog.check_folders()?;
        catalog.check_places(features & SHARES != 0)?;
        Ok((catalog, digests, anchors))
    }

    /// Checks that only folders have entries below them.
    fn check_folders(&self) -> Result<(), FormatError> {
        let mut inside = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.kind != EntryKind::Folder) {
            inside.clear();
            inside.extend_from_slice(&entry.path);
            inside.push(b'/');
            let first = self.entries.partition_point(|other| *other.path < *inside);
            if self.entries.get(first).is_some_and(|other| other.path.starts_with(&inside)) {
                return Err(FormatError::Catalog("something lies in an entry that is no folder"));
            }
        }
        Ok(())
    }

    /// The places of all runs, each with the number of its first block, and those of all packed bytes, in order.
    fn places(&self) -> Places {
        let (mut whole, mut packed) = (Vec::new(), Vec::new());
        for (_, file) in self.files() {
            whole.extend(file.runs.iter().map(|run| (run.start, run.start + run.count, run.block)));
            let tail = file.tail_len(self.block.into());
            if tail != 0 {
                packed.push((file.tail, file.tail + tail));
            }
        }
        whole.sort_unstable();
        packed.sort_unstable();
        (whole, packed)
    }

    /// The features: whether files share places, whether a group has a wide code, and whether one says its runs.
    fn features(&self) -> u32 {
        let (whole, packed) = self.places();
        let shares = whole.windows(2).any(|pair| pair[0] == pair[1])
            || packed.windows(2).any(|pair| pair[0] == pair[1]);
        let is_wide = self.groups.iter().any(|group| matches!(group.code, GroupCode::Wide(_)));
        let says_runs = self.groups.iter().any(SidecarGroup::says_run);
        u32::from(shares) * SHARES + u32::from(is_wide) * WIDE + u32::from(says_runs) * RUNS
    }

    /// Checks that all bytes of files lie in existing positions, and that no two share a place, or all of it if they
    /// may.
    fn check_places(&self, may_share: bool) -> Result<(), FormatError> {
        let (block, positions) = (u64::from(self.block), self.positions());
        let (mut whole, mut packed) = self.places();
        if may_share {
            whole.dedup();
            packed.dedup();
        }
        let is_apart = whole.windows(2).all(|pair| pair[0].1 <= pair[1].0)
            && packed.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        if !is_apart {
            return Err(FormatError::Catalog("two files share a place"));
        }
        let ends =
            [whole.last().map_or(0, |last| last.1), packed.last().map_or(0, |last| last.1.div_ceil(block))];
        if ends.into_iter().any(|end| end > positions) {
            return Err(FormatError::Catalog("a file lies behind the last position"));
        }
        let mut runs = whole.into_iter().peekable();
        for (start, end) in packed {
            let (start, end) = (start / block, end.div_ceil(block));
            while runs.next_if(|run| run.1 <= start).is_some() {}
            if runs.peek().is_some_and(|run| run.0 < end) {
                return Err(FormatError::Catalog("packed bytes lie in a whole block"));
            }
        }
        Ok(())
    }
}

fn split(bytes: &[u8], len: u64) -> Option<(&[u8], &[u8])> {
    usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len))
}

fn extent(bytes: &[u8], block: u64) -> Result<Extent, FormatError> {
    let extent = Extent {
        start: u64_at(bytes, 0),
        blocks: u64_at(bytes, 8),
        pieces: u32_at(bytes, 16),
        piece_len: u32_at(bytes, 20),
    };
    let end = extent.len(block).and_then(|len| extent.start.checked_add(len));
    let is_possible = extent.pieces >= 2 && end.is_some_and(|end| end < 1 << 62);
    if !is_possible || !is_zero(&bytes[24..]) {
        return Err(FormatError::Catalog("an extent is not possible"));
    }
    Ok(extent)
}

#[cfg(test)]
mod tests {
    use super::super::entry::Run;
    use super::*;
    use crate::block::Code;

    fn sample() -> (Catalog, Vec<u8>) {
        let file = |size, runs: &[(u64, u64, u64)], tail| {
            EntryKind::File(FileEntry {
                size,
                blake3: if size == 0 {
                    crate::digest::HashKind::Blake3.digest(b"")
                } else {
                    [size as u8; 32]
                },
                sha256: (size % 2 == 1).then(|| Box::new([9; 32])),
                is_executable: size % 3 == 0,
                runs: runs.iter().map(|&(block, start, count)| Run { block, start, count }).collect(),
                tail,
            })
        };
        let entries = [
            ("a", file(3000, &[(0, 0, 2)], 7168)),
            ("a-b", EntryKind::Symlink((*b"a").into())),
            ("d", EntryKind::Folder),
            ("d/e", file(0, &[], 0)),
            ("d/f", file(5 * 1024, &[(0, 4, 3), (3, 2, 2)], 0)),
            ("d/g", EntryKind::HardLink(4)),
            ("d\u{fffd}", file(1000, &[], 8216)),
        ];
        let entries = entries.map(|(path, kind)| Entry { path: path.as_bytes().into(), kind });
        let catalog = Catalog {
            block: 1024,
            extents: vec![Extent { start: 0, blocks: 8, pieces: 3, piece_len: 512 }],
            groups: vec![SidecarGroup::new(GroupCode::Small(Code::new(5, 2).unwrap()), 2, 1, (0, 4))],
            entries: entries.to_vec(),
        };
        let mut bytes = catalog.head_bytes();
        bytes.extend((0..catalog.digests() * 16 + catalog.anchors() * 8).map(|i| i as u8));
        (catalog, bytes)
    }

    #[test]
    fn catalogs_come_back() {
        let (catalog, bytes) = sample();
        let (found, digests, anchors) = Catalog::parse(&bytes).unwrap();
        assert_eq!((&found, digests.len(), anchors.len()), (&catalog, 14, 2));
        assert_eq!((found.positions(), found.files_len()), (10, 3000 + 5 * 1024 + 1000));
    }

    /// A cut catalog is refused, and no changed byte makes the parser panic.
    #[test]
    fn any_bytes_are_read_without_harm() {
        let (_, bytes) = sample();
        assert!((0..bytes.len()).all(|cut| Catalog::parse(&bytes[..cut]).is_err()));
        for at in 0..bytes.len() {
            for change in [1u8, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let _ = Catalog::parse(&bytes);
            }
        }
    }

    /// A kind of a later version is refused whatever the path of its entry is, and before the rules that follow all
    /// entries.
    #[test]
    fn a_later_kind_is_refused_before_anything_behind_it_is_looked_at() {
        let (_, bytes) = sample();
        let entries_at = 64 + 32 + 32;
        // The first entry is `a`: no shared bytes, one new byte, and its kind.
        assert_eq!(&bytes[entries_at..entries_at + 3], &[0, 1, b'a']);
        for path in [b'a', b'.', b'/', 0] {
            for kind in [4, 15, 17, 65, 0x80, 0xc0] {
                let mut bytes = bytes.clone();
                bytes[entries_at + 2..entries_at + 4].copy_from_slice(&[path, kind]);
                // The sum of the sizes and the bytes behind the digests become wrong too.
                bytes[32] ^= 1;
                bytes.push(0);
                let refused = Catalog::parse(&bytes).unwrap_err();
                assert_eq!(refused.class(), crate::error::Class::Refused, "{path} {kind}: {refused}");
            }
        }
        // A known kind with such a path is invalid instead.
        let mut bytes = bytes;
        bytes[entries_at + 2] = b'.';
        assert!(matches!(Catalog::parse(&bytes), Err(FormatError::Catalog(_))));
    }

    #[test]
    fn what_cannot_be_is_invalid() {
        type Change = fn(&mut Catalog);
        fn of(catalog: &mut Catalog, nth: usize) -> &mut FileEntry {
            match &mut catalog.entries[nth].kind {
                EntryKind::File(file) => file,
                _ => panic!("it is a file"),
            }
        }
        let changes: [(&str, Change); 17] = [
            ("an empty file with a digest of bytes", |c| of(c, 3).blake3 = [3; 32]),
            ("runs overlap", |c| of(c, 4).runs[1].start = 1),
            ("tails overlap", |c| of(c, 6).tail = 7170),
            ("a tail in a whole block", |c| of(c, 6).tail = 5 * 1024),
            ("a tail in two positions", |c| of(c, 6).tail = 8120),
            ("behind the end", |c| of(c, 6).tail = 10 * 1024),
            ("a run behind the end", |c| of(c, 4).runs[0].start = 8),
            ("out of the base", |c| c.entries[0].path = (*b"../a").into()),
            ("not in order", |c| c.entries.swap(1, 2)),
            ("in a file", |c| c.entries[2].kind = EntryKind::Symlink((*b"x").into())),
            ("a link to a folder", |c| c.entries[5].kind = EntryKind::HardLink(2)),
            ("a link to itself", |c| c.entries[5].kind = EntryKind::HardLink(5)),
            ("recovery behind the extent", |c| c.groups[0].first = 5),
            ("an extent of one piece", |c| c.extents[0].pieces = 1),
            ("extents overlap", |c| c.extents.push(c.extents[0])),
            ("groups share shards", |c| c.groups.push(c.groups[0])),
            ("no group", |c| c.groups.clear()),
        ];
        for (what, change) in changes {
            let (mut catalog, _) = sample();
            change(&mut catalog);
            let mut bytes = catalog.head_bytes();
            bytes.extend(vec![0; catalog.digests() as usize * 16 + catalog.anchors() as usize * 8]);
            assert!(matches!(Catalog::parse(&bytes), Err(FormatError::Catalog(_))), "{what}");
        }
    }
}
