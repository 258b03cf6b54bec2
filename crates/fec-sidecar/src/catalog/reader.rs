//! Finds the pieces of metadata in a file, and restores the metadata from the pieces that are left (docs/FORMAT.md,
//! sections 17.4 and 17.5).

mod restoring;

use crate::catalog::generations::{Links, Opened, Seen, extent_of};
use crate::catalog::hashing::is_zeros;
use fec_base::context::Settings;
use fec_base::io::ReadAt;
use fec_base::io::bad_blocks::fill_readable;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::piece::{Generation, HEADER_LEN, PIECE_MAGIC, Piece, piece_head_len};
use fec_core::set::{PlanCache, tree_of_shard};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// The number of bytes by which pieces have moved, by the start of their extent and their number. Empty if no piece has
/// moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shifts(BTreeMap<(u64, u64), i64>);

impl Shifts {
    /// The possible offsets of a block of an extent, most likely first: its place, then its place moved as far as the
    /// nearest pieces on either side.
    pub(crate) fn places(&self, extent: &Extent, nth: u64, block: u64) -> Vec<u64> {
        let at = extent.block(nth, block).0;
        let mut places = vec![at];
        let [before, behind] = extent.neighbours(nth);
        let start = extent.start;
        let nearest = [self.0.range(..=(start, before)).next_back(), self.0.range((start, behind)..).next()];
        for (_, by) in nearest.into_iter().flatten() {
            let moved = at.checked_add_signed(*by);
            places.extend(moved.filter(|place| !places.contains(place)));
        }
        places
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The encodings of metadata that pieces name, each with the places of its pieces.
pub(crate) type Found = HashMap<Generation, Places>;

/// The offsets at which pieces of an encoding are sought.
pub(crate) enum Places {
    /// Each piece is in its place.
    Expected,
    /// Offsets of the heads that were found, by set and index.
    Found(HashMap<(u32, u32), Vec<u64>>),
}

impl Places {
    /// The offsets of a piece that belongs at `expected`.
    fn of<'a>(&'a self, key: (u32, u32), expected: &'a u64) -> &'a [u64] {
        match self {
            Places::Expected => std::slice::from_ref(expected),
            Places::Found(places) => places.get(&key).map_or(&[], Vec::as_slice),
        }
    }

    /// The number of pieces with an offset, and the smallest offset.
    fn span(&self, of: &Generation) -> (u64, u64) {
        match self {
            Places::Expected => (of.pieces(), of.layout.start),
            Places::Found(places) => {
                let first = places.values().flatten().min();
                (places.len() as u64, first.copied().unwrap_or(0))
            }
        }
    }
}

/// The most encodings that are distinguished in a file. Each takes no more memory than its piece takes of the file.
const MOST_ENCODINGS: usize = 1 << 16;
/// The most offsets that are tried for a piece.
const MOST_COPIES: usize = 64;

/// Reads the pieces of a file.
pub(crate) struct Reader<'a> {
    file: &'a dyn ReadAt,
    pub(crate) len: u64,
    /// The longest metadata, in bytes, that is believed.
    most: u64,
    plans: PlanCache,
    settings: &'a Settings,
    /// Bytes that were hashed.
    pub(crate) work: Cell<u64>,
    /// Encodings with a usable piece.
    pub(crate) links: RefCell<Links>,
    /// The greatest generation of a piece whose metadata takes more than the file seems to hold.
    pub(crate) beyond: Cell<Option<u64>>,
    /// The first error of a read.
    pub(crate) unread: RefCell<Option<std::io::Error>>,
    /// The last whole generation that a payload differs from.
    whole: RefCell<Option<Opened>>,
}

/// Keeps the gravest rule that pieces break. Another version is kept only if no other rule is broken.
fn note(rule: &mut Option<FormatError>, broken: FormatError) {
    let is_version = |rule: &FormatError| matches!(rule, FormatError::Version(_));
    let is_graver = match rule {
        None => broken.is_behind_checksum() || is_version(&broken),
        Some(rule) => broken.is_behind_checksum() && (is_version(rule) || broken.class() > rule.class()),
    };
    if is_graver {
        *rule = Some(broken);
    }
}

/// The stored bytes of a file; the rest can only be holes. Some file systems do not tell.
pub(crate) fn stored(meta: &Metadata) -> u64 {
    match meta.blocks() {
        0 => meta.len(),
        blocks => blocks.saturating_mul(512).max(1 << 20).min(meta.len()),
    }
}

/// Tells whether the metadata of a generation takes more than `most` bytes.
fn shape_is_beyond(of: &Generation, most: u64) -> bool {
    of.geometry.shape().capacity() > most
}

impl<'a> Reader<'a> {
    /// A reader of a file of `len` bytes, with `stored` of them stored.
    pub(crate) fn new(file: &'a dyn ReadAt, (len, stored): (u64, u64), settings: &'a Settings) -> Reader<'a> {
        Reader {
            len,
            most: stored,
            file,
            plans: PlanCache::new(settings.backend),
            settings,
            work: Cell::new(0),
            links: RefCell::default(),
            unread: RefCell::default(),
            whole: RefCell::default(),
            beyond: Cell::new(None),
        }
    }

    /// Fills `out` with the bytes from `at` on; `None` if they are missing or unreadable. The first error is kept.
    fn fill(&self, at: u64, out: &mut [u8]) -> Option<()> {
        match self.file.read_exact_at(at, out) {
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(e) => {
                self.unread.borrow_mut().get_or_insert(e);
                None
            }
            Ok(()) => Some(()),
        }
    }

    /// Tells whether a generation with too few pieces was never written whole. Its extent must lie in the file. From
    /// the first missing piece on there must be no pieces, though that piece may have been begun. All recovery shards
    /// must exist.
    pub(crate) fn is_unfinished(&self, of: &Generation, places: &Places) -> bool {
        let Some(extent) = extent_of(of) else { return false };
        let block = u64::from(of.layout.block);
        let end = extent.len(block).and_then(|len| extent.start.checked_add(len));
        if end.is_none_or(|end| end > self.len) {
            return false;
        }
        let blank = |at: u64, len: u64| {
            let mut bytes = vec![0; len as usize];
            self.fill(at, &mut bytes).is_some() && is_zeros(&bytes)
        };
        let shape = of.geometry.shape();
        // Pieces are written in this order, so nothing follows the first missing piece.
        let mut is_missing = false;
        for index in 0..shape.code.n() as u32 {
            for set in 0..shape.sets {
                let at = extent.piece(of.ordinal(set, index), block);
                let is_there =
                    places.of((set, index), &at).contains(&at) && self.head_at(at, &mut None).is_some();
                if is_there && !is_missing {
                    continue;
                }
                // The first missing piece may have been begun.
                if is_missing && (is_there || !blank(at, of.piece_len())) {
                    return false;
                }
                is_missing = true;
            }
        }
        // All recovery shards are written before the first piece, so without them the generation was damaged later.
        is_missing && (0..extent.blocks).rev().take(8).all(|nth| !blank(extent.block(nth, block).0, block))
    }

    /// The piece at an offset, with its head.
    fn head_at(&self, at: u64, rule: &mut Option<FormatError>) -> Option<(Piece, Vec<u8>)> {
        let mut head = vec![0; HEADER_LEN];
        // The version defines the rest of the head, so it is read even if the rest is missing.
        const AT_VERSION: usize = 32;
        let is_whole = self.fill(at, &mut head).is_some();
        if !(is_whole || self.fill(at, &mut head[..=AT_VERSION]).is_some()) || !head.starts_with(&PIECE_MAGIC)
        {
            return None;
        }
        if head[AT_VERSION] != 1 {
            note(rule, FormatError::Version(head[AT_VERSION]));
            return None;
        }
        let head_len = piece_head_len(head.first_chunk().filter(|_| is_whole)?);
        head.resize(head_len, 0);
        self.fill(at + HEADER_LEN as u64, &mut head[HEADER_LEN..])?;
        match Piece::parse(&head) {
            Ok(piece) if self.is_possible(&piece.of) => Some((piece, head)),
            Ok(piece) => {
                let (value, limit) =
                    (piece.of.geometry.shape().set_bytes().into(), self.settings.max_memory.into());
                if shape_is_beyond(&piece.of, self.most) {
                    self.beyond.set(self.beyond.get().max(Some(piece.of.layout.generation)));
                }
                if value > limit {
                    rule.get_or_insert(FormatError::Limit {
                        what: "the size of a set of the metadata",
                        value,
                        limit,
                    });
                }
                None
            }
            Err(e) => {
                note(rule, e);
                None
            }
        }
    }

    fn is_possible(&self, of: &Generation) -> bool {
        let shape = of.geometry.shape();
        extent_of(of).is_some()
            && !shape_is_beyond(of, self.most)
            && shape.set_bytes() <= self.settings.max_memory
    }

    /// The encodings whose pieces are in their places, extent by extent, and whether these extents are the whole file.
    pub(crate) fn by_place(&self, rule: &mut Option<FormatError>) -> (Found, bool) {
        let mut found = Found::new();
        let mut at = 0;
        while at < self.len {
            let Some((piece, _)) = self.head_at(at, rule) else { return (found, false) };
            let Some(extent) = extent_of(&piece.of) else { return (found, false) };
            let block = u64::from(piece.of.layout.block);
            let end = extent.len(block).and_then(|len| at.checked_add(len));
            let is_next = extent.start == at && found.len() < MOST_ENCODINGS;
            let Some(end) = end.filter(|end| is_next && *end <= self.len) else { return (found, false) };
            found.insert(piece.of, Places::Expected);
            at = end;
        }
        (found, true)
    }

    /// The encodings of all pieces, wherever they stand.
    pub(crate) fn scan(&self, rule: &mut Option<FormatError>) -> std::io::Result<Found> {
        const WINDOW: usize = 1 << 20;
        let finder = memchr::memmem::Finder::new(&PIECE_MAGIC);
        let mut found = Found::new();
        let mut window = vec![0; WINDOW + PIECE_MAGIC.len() - 1];
        let (mut at, mut data) = (0, 0..0);
        while at < self.len {
            if at >= data.end {
                // Holes, and parts known to be lost, may have any length.
                data = self.file.next_data(at).unwrap_or(self.len..self.len);
                if data.start > at {
                    let _ = self.fill(at, &mut [0]);
                    at = data.start;
                    continue;
                }
            }
            // Unreadable bytes are lost, and reading goes on behind them.
            let filled = fill_readable(self.file, at, &mut window, |_, e| {
                self.unread.borrow_mut().get_or_insert(e);
            });
            for hit in finder.find_iter(&window[..filled]) {
                let place = at + hit as u64;
                if let Some((piece, _)) = self.head_at(place, rule)
                    && (found.len() < MOST_ENCODINGS || found.contains_key(&piece.of))
                {
                    let places = found.entry(piece.of).or_insert_with(|| Places::Found(HashMap::new()));
                    let Places::Found(places) = places else { continue };
                    let copies = places.entry((piece.set, piece.index)).or_default();
                    if copies.len() < MOST_COPIES && copies.last() != Some(&place) {
                        copies.push(place);
                    }
                }
            }
            at += WINDOW as u64;
        }
        Ok(found)
    }

    /// The encodings that can be restored. The work is bounded, so those with the most pieces come first.
    pub(crate) fn look_at_all(&self, found: &Found) -> std::io::Result<Vec<Seen>> {
        let mut order: Vec<_> = found.iter().collect();
        order.sort_by_key(|(of, places)| {
            let (count, first) = places.span(of);
            (std::cmp::Reverse(count), first)
        });
        self.work.set(0);
        self.links.take();
        self.whole.take();
        let is_only = order.len() == 1;
        let mut seen = Vec::new();
        for (of, _) in order {
            let Some(opened) = self.open(*of, found)? else { continue };
            let (first, is_whole) = (opened.first, opened.pieces.intact == opened.pieces.all);
            let parsed = opened.parse();
            let root = parsed.as_ref().map(|parsed| parsed.root).map_err(Clone::clone);
            let parsed = parsed.ok().filter(|_| is_only).map(Box::new);
            seen.push(Seen { of: *of, first, is_whole, root, parsed });
        }
        Ok(seen)
    }

    /// Tells whether `bytes` more may be hashed, or copied from whole metadata: the limit is four times the file, plus
    /// a gigabyte (section 9.1).
    fn may_hash(&self, bytes: u64) -> bool {
        self.work.set(self.work.get().saturating_add(bytes));
        self.work.get() <= self.len.saturating_mul(4).saturating_add(1 << 30)
    }

    /// Reads the body of a wanted piece at an offset into `body`. Returns the X that its proof leads to, and the proof.
    fn prove(
        &self,
        of: &Generation,
        (set, index): (u32, u32),
        at: u64,
        body: &mut [u8],
    ) -> Option<(Digest, Vec<u8>)> {
        let (piece, head) = self.head_at(at, &mut None)?;
        let is_it = piece.of == *of && (piece.set, piece.index) == (set, index);
        if !is_it || !self.may_hash(body.len() as u64) {
            return None;
        }
        self.fill(at + of.head_len() as u64, body)?;
        let proof = piece.proof(&head).to_vec();
        Some((tree_of_shard(&of.geometry, set, index, body, &proof)?, proof))
    }

    /// Notes an encoding with a usable piece.
    fn note(&self, of: &Generation) {
        self.links.borrow_mut().insert(*of);
    }
}

/// The shifts of the pieces of a generation, and of earlier ones whose extents it still has.
pub(crate) fn shifts(found: &Found, meant: &Generation, catalog: &Catalog) -> Shifts {
    let mut shifts = BTreeMap::new();
    for (of, places) in found {
        let Some(extent) = extent_of(of) else { continue };
        let (last, before) = catalog.extents.split_last().expect("a catalog has an extent");
        if !(of == meant || (extent != *last && before.contains(&extent))) {
            continue;
        }
        let Places::Found(places) = places else { continue };
        for ((set, index), places) in places {
            let ordinal = of.ordinal(*set, *index);
            let expected = extent.piece(ordinal, of.layout.block.into());
            let at = if places.contains(&expected) { expected } else { places[0] };
            shifts.insert((extent.start, ordinal), at as i64 - expected as i64);
        }
    }
    if shifts.values().all(|by| *by == 0) {
        shifts.clear();
    }
    Shifts(shifts)
}
