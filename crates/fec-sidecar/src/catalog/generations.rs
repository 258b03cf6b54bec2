//! Generations of a sidecar whose metadata was restored: which of them break a rule, and which is meant
//! (docs/FORMAT.md, section 17.6).

use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use fec_core::digest::Digest;
use fec_core::error::{Class as FormatClass, FormatError};
use fec_core::format::sidecar::catalog::{Catalog, DIGEST_LEN, ShortDigest};
use fec_core::format::sidecar::difference::Difference;
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::piece::{Generation, Layout};
use fec_core::format::sidecar::stat::Stats;
use std::collections::{HashMap, HashSet};

/// The digest of a position whose bytes are lost for good.
pub(crate) const LOST: ShortDigest = [0xff; DIGEST_LEN];
/// The digest of an empty position.
pub(crate) const NOTHING: ShortDigest = [0; DIGEST_LEN];

/// The pieces of the metadata that are left.
#[derive(Clone, Debug, Default)]
pub struct PiecesFound {
    /// Pieces that should exist.
    pub all: u64,
    /// Intact pieces, wherever they stand.
    pub intact: u64,
    /// The fewest pieces that a set has beyond those it needs.
    pub spare: u64,
    /// Pieces that are not in their places.
    pub(crate) displaced: u64,
}

impl PiecesFound {
    /// Adds the pieces of another generation that is needed too.
    fn add(&mut self, other: &PiecesFound) {
        self.all += other.all;
        self.intact += other.intact;
        self.spare = self.spare.min(other.spare);
        self.displaced += other.displaced;
    }
}

/// Metadata that was restored.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) of: Generation,
    /// The rule that the coding of the metadata breaks, if any.
    pub(crate) rule: Option<FormatError>,
    /// Offset of the first piece.
    pub(crate) first: u64,
    pub(crate) metadata: Vec<u8>,
    /// Bytes of the catalog in it.
    pub(crate) catalog_len: u64,
    pub(crate) pieces: PiecesFound,
    /// The origin of the metadata, if the payload is a difference.
    pub(crate) difference: Option<FromWhole>,
}

/// The origin of metadata that was restored by a difference.
#[derive(Clone, Debug)]
pub(crate) struct FromWhole {
    /// The whole generation.
    pub(crate) whole: Generation,
    /// The difference.
    pub(crate) payload: Vec<u8>,
}

/// An encoding whose metadata can be restored.
pub(crate) struct Seen {
    pub(crate) of: Generation,
    /// Offset of the first piece.
    pub(crate) first: u64,
    /// True if all pieces are intact.
    pub(crate) is_whole: bool,
    /// The root, or the rule that the metadata breaks.
    pub(crate) root: std::result::Result<Digest, FormatError>,
    /// The parsed metadata, if this is the only encoding.
    pub(crate) parsed: Option<Box<Parsed>>,
}

impl Seen {
    pub(crate) fn root(&self) -> Option<Digest> {
        self.root.as_ref().ok().copied()
    }

    fn is_refused(&self) -> bool {
        self.root.as_ref().is_err_and(|rule| rule.class() == FormatClass::Refused)
    }
}

/// The rule that tells why nothing counts. A rule that refuses comes first.
pub(crate) fn broken(seen: &[Seen], rule: Option<FormatError>) -> Option<FormatError> {
    let mut rules: Vec<FormatError> = seen.iter().filter_map(|seen| seen.root.clone().err()).collect();
    // Pieces of version 1 exist, so another version is damage (section 11).
    let is_rule =
        |rule: &FormatError| rule.class() != FormatClass::Damaged && !matches!(rule, FormatError::Version(_));
    rules.extend(rule.filter(is_rule));
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.class()));
    rules.into_iter().next()
}

/// Metadata that breaks no rule.
pub(crate) struct Parsed {
    pub(crate) opened: Opened,
    pub(crate) catalog: Catalog,
    pub(crate) stats: Stats,
    pub(crate) root: Digest,
    pub(crate) digests_at: usize,
}

impl Opened {
    /// The bytes that its pieces code.
    pub(crate) fn payload(self) -> Vec<u8> {
        self.difference.map_or(self.metadata, |of| of.payload)
    }

    /// Applies the payload, which is a difference, to the metadata of the whole generation that it names.
    pub(crate) fn apply_to(&mut self, whole: &Opened) {
        let payload = std::mem::take(&mut self.metadata);
        let is_before = whole.of.layout.generation < self.of.layout.generation;
        let applied = match (&whole.rule, is_before) {
            (Some(rule), _) => Err(rule.clone()),
            (None, false) => {
                Err(FormatError::Catalog("it is a difference to a generation that is not before it"))
            }
            (None, true) => Difference::parse(&payload)
                .and_then(|difference| Ok((difference.catalog_len, difference.apply(&whole.metadata)?))),
        };
        match applied {
            Ok((catalog_len, metadata)) => (self.catalog_len, self.metadata) = (catalog_len, metadata),
            Err(rule) => self.rule = Some(rule),
        }
        self.pieces.add(&whole.pieces);
        self.difference = Some(FromWhole { whole: whole.of, payload });
    }

    pub(crate) fn parse(self) -> std::result::Result<Parsed, FormatError> {
        if let Some(rule) = self.rule {
            return Err(rule);
        }
        let layout = &self.of.layout;
        let (catalog_bytes, stats) = self.metadata.split_at(self.catalog_len as usize);
        let (catalog, digests, anchors) = Catalog::parse(catalog_bytes)?;
        let digests_at = catalog_bytes.len() - size_of_val(anchors) - size_of_val(digests);
        if catalog.extents.last() != extent_of(&self.of).as_ref() || catalog.block != layout.block {
            return Err(FormatError::Catalog("its last extent is not that of its pieces"));
        }
        if layout.generation == 1 && catalog.extents.len() > 1 {
            return Err(FormatError::Catalog("the first generation has several extents"));
        }
        if let Some(FromWhole { whole, .. }) = &self.difference
            && !extent_of(whole).is_some_and(|extent| catalog.extents.contains(&extent))
        {
            return Err(FormatError::Catalog("the extent of the whole generation is none of its extents"));
        }
        let is_lost = |(nth, digest): (u64, &ShortDigest)| (*digest == LOST).then_some(nth);
        let lost: Vec<u64> = positions_of(&catalog, digests).filter_map(is_lost).collect();
        if !lost.is_empty() {
            let covered = Positions::of(&catalog).covered(catalog.positions());
            if lost.into_iter().any(|position| covered.get(position)) {
                return Err(FormatError::Catalog("bytes of a file are marked as lost"));
            }
        }
        // A part of a later version is refused only where all else is right.
        let stats = Stats::parse(stats, &catalog.entries, catalog.block)?;
        let root = Catalog::root(catalog_bytes);
        Ok(Parsed { catalog, stats, root, digests_at, opened: self })
    }
}

/// The digests of all positions, with their numbers.
fn positions_of<'a>(
    catalog: &'a Catalog,
    digests: &'a [ShortDigest],
) -> impl Iterator<Item = (u64, &'a ShortDigest)> {
    let mut at = 0;
    let of_group = catalog.groups.iter().flat_map(move |group| {
        let start = at;
        at += (group.positions() + group.recovery()) as usize;
        &digests[start..start + group.positions() as usize]
    });
    (0..).zip(of_group)
}

/// The extent of the pieces of a generation; `None` if no valid extent results.
pub(crate) fn extent_of(of: &Generation) -> Option<Extent> {
    let (pieces, piece_len) = (u32::try_from(of.pieces()).ok()?, u32::try_from(of.piece_len()).ok()?);
    let Layout { start, blocks, block, .. } = of.layout;
    let extent = Extent { start, blocks, pieces, piece_len };
    (pieces >= 2 && extent.len(block.into()).is_some()).then_some(extent)
}

/// The root and metadata that a caller asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// The root; `None` asks for the one that is meant.
    pub(crate) root: Option<Digest>,
    /// Accepted values of E; an empty list accepts any encoding with the root.
    pub(crate) metadata: Vec<Digest>,
}

impl Wanted {
    /// Tells whether an encoding is one that the caller asks for.
    pub(crate) fn is(&self, seen: &Seen) -> bool {
        let is_root = self.root.is_none_or(|root| seen.root() == Some(root));
        is_root && (self.metadata.is_empty() || self.metadata.contains(&seen.of.root))
    }
}

/// Chooses the encoding that is meant (section 17.6).
pub(crate) fn choose(
    seen: Vec<Seen>,
    links: &Links,
    wanted: &Wanted,
) -> std::result::Result<Seen, SidecarError> {
    let (mut read, refused): (Vec<Seen>, Vec<Seen>) = seen
        .into_iter()
        .filter(|seen| seen.root.is_ok() || seen.is_refused())
        .partition(|seen| seen.root.is_ok());
    let replaced = links.ancestors(read.iter().chain(&refused).map(|seen| seen.of));
    // Encodings with the same root say the same of the files. The wanted one comes first, then the newest.
    read.sort_by_key(|seen| {
        (seen.root(), !wanted.is(seen), std::cmp::Reverse(seen.of.layout.generation), seen.first)
    });
    read.dedup_by_key(|seen| seen.root());
    let roots = |read: &[Seen]| read.iter().filter_map(Seen::root).collect();
    if let Some(root) = wanted.root {
        return match read.iter().position(|seen| seen.root() == Some(root)) {
            Some(at) if wanted.is(&read[at]) => Ok(read.swap_remove(at)),
            Some(_) => Err(SidecarError::OtherMetadata(root)),
            None if read.is_empty() => Err(SidecarError::TooFewPieces),
            None => Err(SidecarError::OtherRoot(roots(&read))),
        };
    }
    read.retain(|seen| !replaced.contains(&seen.of.root));
    let refused = refused.iter().filter(|seen| !replaced.contains(&seen.of.root)).count();
    match (read.len(), refused) {
        (1, 0) => Ok(read.swap_remove(0)),
        // Nothing is left, or only a refused encoding.
        (0, 0 | 1) => Err(SidecarError::TooFewPieces),
        _ => Err(SidecarError::Ambiguous(roots(&read))),
    }
}

/// Encodings with a usable piece, by their roots; each names its predecessor.
#[derive(Default)]
pub(crate) struct Links(HashMap<Digest, Generation>);

impl Links {
    pub(crate) fn insert(&mut self, of: Generation) {
        self.0.insert(of.root, of);
    }

    /// The generation that `of` replaces.
    fn before(&self, of: &Generation) -> Option<&Generation> {
        self.0.get(&of.layout.before).filter(|before| before.layout.generation < of.layout.generation)
    }

    /// The predecessors of a generation, from the newest on.
    pub(crate) fn chain(&self, of: &Generation) -> impl Iterator<Item = &Generation> {
        std::iter::successors(self.before(of), |now| self.before(now))
    }

    /// All predecessors of these generations.
    fn ancestors(&self, of: impl Iterator<Item = Generation>) -> HashSet<Digest> {
        let mut found = HashSet::new();
        for of in of {
            // The predecessors of a generation that was found already were added together with it.
            for before in self.chain(&of) {
                if !found.insert(before.root) {
                    break;
                }
            }
        }
        found
    }

    /// All generations that replace this one.
    pub(crate) fn descendants(&self, of: &Generation) -> HashSet<Digest> {
        let mut links: Vec<&Generation> = self.0.values().collect();
        links.sort_unstable_by_key(|link| link.layout.generation);
        let mut found = HashSet::new();
        for link in links {
            let replaces = |before: &Generation| before.root == of.root || found.contains(&before.root);
            if self.before(link).is_some_and(replaces) {
                found.insert(link.root);
            }
        }
        found
    }
}
