//! The metadata of a sidecar: written as pieces between recovery shards, and read back from those that are left
//! (docs/FORMAT.md, sections 17.4 to 17.6).

use super::error::SidecarError;
pub(super) use super::generations::{LOST, NOTHING};
use super::generations::{Opened, Parsed, PiecesFound, Seen, area_of, broken, choose};
use super::tree::fingerprint_of;
use crate::context::Settings;
use crate::error::{Error, ErrorKind, Result};
use crate::io::ReadAt;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::sidecar::FileEntry;
use fec_core::format::sidecar::area::Area;
use fec_core::format::sidecar::catalog::{Catalog, DIGEST_LEN, ShortDigest, SidecarGroup};
use fec_core::format::sidecar::piece::{Generation, HEADER_LEN, Layout, PIECE_MAGIC, Piece, piece_head_len};
use fec_core::format::sidecar::stat::Stats;
use fec_core::merkle::Tree;
use fec_core::params::GroupGeometry;
use fec_core::set::{EncodedSet, PlanCache, Run, SetDecoder, SetEncoder, tree_of_shard};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Codes metadata of exactly `geometry`'s length, and hands each piece with its place to `put`.
pub(super) fn write(
    metadata: Vec<u8>,
    geometry: GroupGeometry,
    layout: Layout,
    area: &Area,
    settings: &Settings,
    mut put: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<Generation> {
    let shape = *geometry.shape();
    let mut padded = metadata;
    padded.resize(shape.capacity() as usize, 0);
    let row =
        |set: u32, index: usize| &padded[geometry.shard_offset(set, index) as usize..][..shape.shard_len];
    let encoder = SetEncoder::new(shape.code, shape.hash, settings.backend);
    let (mut roots, mut encoded) = (Vec::new(), Vec::new());
    for set in 0..shape.sets {
        let originals: Vec<&[u8]> = (0..shape.code.k()).map(|index| row(set, index)).collect();
        let mut recovery = EncodedSet::new(&shape);
        roots.push(encoder.encode(set, &originals, &mut recovery, Run::default()));
        encoded.push(recovery);
    }
    let mut tree = Tree::new();
    tree.leaves_mut().extend(roots);
    let of = Generation::new(geometry, layout, &tree.build(shape.hash));
    let mut bytes = vec![0; of.piece_len() as usize];
    for index in 0..shape.code.n() {
        for set in 0..shape.sets {
            let piece = Piece { set, index: index as u32, of };
            let (head, body) = bytes.split_at_mut(of.head_len());
            let (set_path, group_path) = piece.proof_mut(head).split_at_mut(shape.set_path_len());
            encoded[set as usize].write_path(index, set_path);
            tree.write_path(set as usize, group_path);
            piece.seal(head);
            body.copy_from_slice(match index.checked_sub(shape.code.k()) {
                None => row(set, index),
                Some(recovery) => encoded[set as usize].recovery().row(recovery),
            });
            put(area.piece(of.ordinal(set, index as u32), layout.block.into()), &bytes)?;
        }
    }
    Ok(of)
}

/// A sidecar that was opened: what it says of the files, and how well it is itself.
#[derive(Debug)]
pub struct Sidecar {
    pub(super) file: File,
    path: PathBuf,
    /// Bytes of the file.
    pub(super) len: u64,
    pub(super) catalog: Catalog,
    pub(super) stats: Stats,
    /// What stands before the digests, where it is not what this writer makes of the same catalog.
    odd_head: Option<Vec<u8>>,
    /// All digests and anchors, as they stand in the catalog.
    digests: Vec<u8>,
    /// Of each group, its first position, and the number of that position's digest.
    starts: Vec<(u64, u64)>,
    /// What the file looked like when it was opened.
    seen: u64,
    root: Digest,
    pub(super) of: Generation,
    pub(super) pieces: PiecesFound,
    pub(super) shifts: Shifts,
    /// A greater generation, of which there are pieces and too few of them.
    pub(super) newer: Option<u64>,
}

/// By how many bytes the surroundings of pieces have moved: by the start of their area and their number. Empty if none
/// has.
#[derive(Clone, Debug, Default)]
pub(super) struct Shifts(BTreeMap<(u64, u64), i64>);

impl Shifts {
    /// Where a block of an area may stand, most likely first: at its place, or moved as the nearest pieces are on either
    /// side.
    pub(super) fn places(&self, area: &Area, nth: u64, block: u64) -> Vec<u64> {
        let at = area.block(nth, block).0;
        let mut places = vec![at];
        let [before, behind] = area.neighbours(nth);
        let start = area.start;
        let nearest = [
            self.0.range((start, 0)..=(start, before)).next_back(),
            self.0.range((start, behind)..=(start, u64::MAX)).next(),
        ];
        for (_, by) in nearest.into_iter().flatten() {
            let moved = at.checked_add_signed(*by);
            places.extend(moved.filter(|place| !places.contains(place)));
        }
        places
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Encodings of metadata that pieces name, each with the places of its pieces: by set and index.
type Found = HashMap<Generation, Places>;

/// Where the pieces of an encoding are looked for.
enum Places {
    /// Each where it belongs.
    Expected,
    /// Where their heads were found, by set and index.
    Found(HashMap<(u32, u32), Vec<u64>>),
}

impl Places {
    /// The places of a piece, which belongs at `expected`.
    fn of<'a>(&'a self, key: (u32, u32), expected: &'a u64) -> &'a [u64] {
        match self {
            Places::Expected => std::slice::from_ref(expected),
            Places::Found(places) => places.get(&key).map_or(&[], Vec::as_slice),
        }
    }

    /// How many pieces have a place, and where the first of these places is.
    fn extent(&self, of: &Generation) -> (u64, u64) {
        match self {
            Places::Expected => (of.pieces(), of.layout.start),
            Places::Found(places) => {
                let first = places.values().flatten().min();
                (places.len() as u64, first.copied().unwrap_or(0))
            }
        }
    }
}

/// Encodings that are told apart in one file: each takes no more memory than its piece takes of the file.
const MOST_ENCODINGS: usize = 1 << 16;
/// Places that are tried for one piece.
const MOST_COPIES: usize = 64;

impl Sidecar {
    /// Opens the sidecar at `path`: the one with the root `wanted`, or else the newest.
    ///
    /// # Errors
    /// [`SidecarError`], and those of the file.
    pub fn open(path: &Path, wanted: Option<Digest>, settings: &Settings) -> Result<Sidecar> {
        let fail = |e| Error::io("read", path, e);
        let file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(Error::at("read", path, SidecarError::NotFound(None)));
        }
        let reader = Reader {
            len: meta.len(),
            // More than the file holds can only be holes.
            most: meta.blocks().saturating_mul(512).max(1 << 20).min(meta.len()),
            file: &file,
            plans: PlanCache::new(settings.backend),
            settings,
            work: Cell::new(0),
            links: RefCell::default(),
        };
        let at = |e: SidecarError| Error::at("read", path, e);
        let mut rule = None;
        let (mut found, is_tidy) = reader.by_place(&mut rule);
        let mut seen = reader.look_at_all(&found).map_err(fail)?;
        let has_wanted = |seen: &Seen| wanted.is_none_or(|root| seen.root() == Some(root));
        let is_enough = is_tidy && seen.len() == found.len() && seen.iter().all(|seen| seen.is_whole);
        if !is_enough || !seen.iter().any(has_wanted) {
            found = reader.scan(&mut rule).map_err(fail)?;
            seen = reader.look_at_all(&found).map_err(fail)?;
        }
        if found.is_empty() {
            return Err(at(SidecarError::NotFound(rule)));
        }
        let broken = broken(&seen, rule);
        let chosen = choose(seen, &reader.links.take(), wanted).map_err(|error| match (error, broken) {
            (SidecarError::TooFewPieces | SidecarError::OtherRoot(_), Some(rule)) => {
                at(SidecarError::Invalid(rule))
            }
            (error, _) => at(error),
        })?;
        // Of several, only what was chosen is kept in memory, and read once more.
        let parsed = match chosen.parsed {
            Some(parsed) => *parsed,
            None => {
                reader.work.set(0);
                let again = reader.restore(chosen.of, &found[&chosen.of]).map_err(fail)?;
                let parsed = again.and_then(|opened| opened.parse().ok());
                parsed.ok_or_else(|| Error::at("read", path, ErrorKind::Changed))?
            }
        };
        let Parsed { opened, catalog, stats, root, digests_at } = parsed;
        let Opened { of, mut metadata, pieces, .. } = opened;
        let shifts = shifts(&found, &of, &catalog);
        metadata.truncate(of.layout.catalog_len as usize);
        let digests = metadata.split_off(digests_at);
        let odd_head = (catalog.head_bytes() != metadata).then_some(metadata);
        let generation = of.layout.generation;
        let newer = found.keys().map(|of| of.layout.generation).filter(|other| *other > generation).max();
        let starts = starts(&catalog);
        Ok(Sidecar {
            len: reader.len,
            path: path.to_path_buf(),
            starts,
            seen: fingerprint_of(&meta),
            catalog,
            stats,
            odd_head,
            digests,
            root,
            of,
            pieces,
            shifts,
            newer,
            file,
        })
    }

    /// Whether a file starts as a sidecar does.
    ///
    /// # Errors
    /// Those of the file.
    pub fn starts(path: &Path) -> Result<bool> {
        let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
        let mut head = vec![0; HEADER_LEN];
        if file.read_exact_at(0, &mut head).is_err() || !head.starts_with(&PIECE_MAGIC) {
            return Ok(false);
        }
        // All of the head: a record of a container is one bit away from the magic alone.
        let head_len = piece_head_len(head.first_chunk().expect("it has that many bytes"));
        head.resize(head_len, 0);
        let is_read = file.read_exact_at(HEADER_LEN as u64, &mut head[HEADER_LEN..]).is_ok();
        Ok(is_read
            && Piece::parse(&head)
                .map_or_else(|e| e.is_behind_checksum() && !matches!(e, FormatError::Damaged(_)), |_| true))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its root: the hash of all that it says of the files.
    pub fn root(&self) -> Digest {
        self.root
    }

    /// What it protects.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Times and permissions, and where the base was.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Which pieces of its metadata are left.
    pub fn pieces(&self) -> &PiecesFound {
        &self.pieces
    }

    /// From 1: how often it was updated, and once more.
    pub fn generation(&self) -> u64 {
        self.of.layout.generation
    }

    fn digest(&self, nth: u64) -> ShortDigest {
        let at = nth as usize * DIGEST_LEN;
        *self.digests[at..].first_chunk().expect("each shard has a digest")
    }

    /// The digest of a position, over all groups.
    pub(super) fn digest_of(&self, position: u64) -> ShortDigest {
        let (group, nth) = self.group_of(position);
        self.position_digest(group, nth)
    }

    /// The group of a position, and its number there.
    pub(super) fn group_of(&self, position: u64) -> (usize, u64) {
        let group = self.starts.partition_point(|(first, _)| *first <= position) - 1;
        (group, position - self.starts[group].0)
    }

    /// The digest of a position of group `group`, counted in the group.
    pub(super) fn position_digest(&self, group: usize, nth: u64) -> ShortDigest {
        self.digest(self.starts[group].1 + nth)
    }

    /// The digest of a recovery shard of group `group`, counted in the group.
    pub(super) fn recovery_digest(&self, group: usize, nth: u64) -> ShortDigest {
        self.digest(self.starts[group].1 + self.catalog.groups[group].positions() + nth)
    }

    /// The digests of a file's whole blocks, from number `first` on.
    pub(super) fn digests_of_file<'a>(
        &'a self,
        file: &'a FileEntry,
        first: u64,
    ) -> impl Iterator<Item = ShortDigest> + 'a {
        let mut before = 0;
        let runs = file.runs.iter().filter_map(move |run| {
            let skipped = first.saturating_sub(before).min(run.count);
            before += run.count;
            (skipped < run.count).then_some(run.start + skipped..run.start + run.count)
        });
        runs.flatten().map(|position| self.digest_of(position))
    }

    /// The digests of all shards, group by group, as they stand in the catalog.
    pub(super) fn digests(&self) -> &[ShortDigest] {
        self.digests[..self.catalog.digests() as usize * DIGEST_LEN].as_chunks().0
    }

    /// The anchors of all files, in order.
    pub(super) fn anchors(&self) -> impl Iterator<Item = u64> {
        let at = self.catalog.digests() as usize * DIGEST_LEN;
        let anchors = self.digests[at..].as_chunks().0;
        anchors.iter().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Where a recovery shard belongs.
    pub(super) fn recovery_place(&self, group: usize, shard: u64) -> u64 {
        let group = &self.catalog.groups[group];
        self.catalog.areas[group.area as usize].block(group.first + shard, self.catalog.block.into()).0
    }

    /// The bytes that the file should have.
    pub(super) fn expected_len(&self) -> Option<u64> {
        let area = self.catalog.areas.last()?;
        area.start.checked_add(area.len(self.catalog.block.into())?)
    }

    /// Keeps others from working on the sidecar, until what is returned is dropped.
    ///
    /// # Errors
    /// [`SidecarError::Busy`] if somebody works on it already, or did since it was opened.
    pub(super) fn lock(&self, action: &'static str) -> Result<File> {
        let (file, now) = lock_file(&self.path, action)?;
        if fingerprint_of(&now) != self.seen {
            return Err(Error::at(action, self.path.as_path(), SidecarError::Busy));
        }
        Ok(file)
    }

    /// All of the metadata, as it was coded.
    pub(super) fn metadata(&self) -> Vec<u8> {
        let head = self.odd_head.clone().unwrap_or_else(|| self.catalog.head_bytes());
        [head, self.digests.clone(), self.stats.to_bytes()].concat()
    }
}

/// Keeps others from working on the sidecar at `path`, until what is returned is dropped; and what the file looks like.
///
/// # Errors
/// [`SidecarError::Busy`] if somebody works on it already.
pub(super) fn lock_file(path: &Path, action: &'static str) -> Result<(File, Metadata)> {
    use rustix::fs::{FlockOperation, flock};
    let fail = |e| Error::io("read", path, e);
    let file = File::open(path).map_err(fail)?;
    // A file system may be without locks.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK) {
        return Err(Error::at(action, path, SidecarError::Busy));
    }
    // Whoever had the lock may have put another file in its place.
    let now = std::fs::metadata(path).map_err(fail)?;
    let held = file.metadata().map_err(fail)?;
    if (now.dev(), now.ino()) != (held.dev(), held.ino()) {
        return Err(Error::at(action, path, SidecarError::Busy));
    }
    Ok((file, now))
}

/// Of each group, its first position, and the number of that position's digest.
fn starts(catalog: &Catalog) -> Vec<(u64, u64)> {
    let mut next = (0, 0);
    let of_group = |group: &SidecarGroup| {
        let start = next;
        next = (start.0 + group.positions(), start.1 + group.positions() + group.recovery());
        start
    };
    catalog.groups.iter().map(of_group).collect()
}

struct Reader<'a> {
    file: &'a File,
    len: u64,
    /// The most bytes of metadata that are believed.
    most: u64,
    plans: PlanCache,
    settings: &'a Settings,
    /// Bytes that were hashed.
    work: Cell<u64>,
    /// Encodings of which any piece is usable.
    links: RefCell<Vec<Generation>>,
}

impl Reader<'_> {
    /// The piece that stands at a place.
    fn head_at(&self, at: u64, rule: &mut Option<FormatError>) -> Option<(Piece, Vec<u8>)> {
        let mut head = vec![0; HEADER_LEN];
        self.file.read_exact_at(at, &mut head).ok()?;
        let header = head.first_chunk().expect("it has that many bytes");
        if !header.starts_with(&PIECE_MAGIC) {
            return None;
        }
        let head_len = piece_head_len(header);
        head.resize(head_len, 0);
        self.file.read_exact_at(at + HEADER_LEN as u64, &mut head[HEADER_LEN..]).ok()?;
        match Piece::parse(&head) {
            Ok(piece) if self.is_possible(&piece.of) => Some((piece, head)),
            Ok(piece) => {
                let (value, limit) =
                    (piece.of.geometry.shape().set_bytes().into(), self.settings.max_memory.into());
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
                // Another version is told only where nothing else is found.
                if e.is_behind_checksum() || (rule.is_none() && matches!(e, FormatError::Version(_))) {
                    *rule = Some(e);
                }
                None
            }
        }
    }

    fn is_possible(&self, of: &Generation) -> bool {
        let shape = of.geometry.shape();
        area_of(of).is_some()
            && shape.capacity() <= self.most
            && shape.set_bytes() <= self.settings.max_memory
    }

    /// The encodings whose pieces stand in their places, area behind area; and whether that is all of the file.
    fn by_place(&self, rule: &mut Option<FormatError>) -> (Found, bool) {
        let mut found = Found::new();
        let mut at = 0;
        while at < self.len {
            let Some((piece, _)) = self.head_at(at, rule) else { return (found, false) };
            let Some(area) = area_of(&piece.of) else { return (found, false) };
            let block = u64::from(piece.of.layout.block);
            let end = area.len(block).and_then(|len| at.checked_add(len));
            let is_next = area.start == at && found.len() < MOST_ENCODINGS;
            let Some(end) = end.filter(|end| is_next && *end <= self.len) else { return (found, false) };
            found.insert(piece.of, Places::Expected);
            at = end;
        }
        (found, true)
    }

    /// The encodings of all pieces, wherever they stand.
    fn scan(&self, rule: &mut Option<FormatError>) -> std::io::Result<Found> {
        const WINDOW: usize = 1 << 20;
        let finder = memchr::memmem::Finder::new(&PIECE_MAGIC);
        let mut found = Found::new();
        let mut window = vec![0; WINDOW + PIECE_MAGIC.len() - 1];
        let mut at = 0;
        while at < self.len {
            let mut filled = 0;
            while filled < window.len() {
                match self.file.read_at(at + filled as u64, &mut window[filled..]) {
                    Ok(0) => break,
                    Ok(n) => filled += n,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                    // What cannot be read is lost, and what is behind it is read.
                    Err(_) => {
                        let lost = (window.len() - filled).min(4096);
                        window[filled..filled + lost].fill(0);
                        filled += lost;
                    }
                }
            }
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

    /// Those that can be restored. The work is bounded: those with the most pieces come first.
    fn look_at_all(&self, found: &Found) -> std::io::Result<Vec<Seen>> {
        let mut order: Vec<_> = found.iter().collect();
        order.sort_by_key(|(of, places)| {
            let (count, first) = places.extent(of);
            (std::cmp::Reverse(count), first)
        });
        self.work.set(0);
        self.links.take();
        let is_only = order.len() == 1;
        let mut seen = Vec::new();
        for (of, places) in order {
            let Some(opened) = self.restore(*of, places)? else { continue };
            let (first, is_whole) = (opened.first, opened.pieces.intact == opened.pieces.all);
            let parsed = opened.parse();
            let root = parsed.as_ref().map(|parsed| parsed.root).map_err(Clone::clone);
            let parsed = parsed.ok().filter(|_| is_only).map(Box::new);
            seen.push(Seen { of: *of, first, is_whole, root, parsed });
        }
        Ok(seen)
    }

    /// Whether so many bytes more may be hashed: four times as many as there are, and a gigabyte (section 9.1).
    fn may_hash(&self, bytes: u64) -> bool {
        self.work.set(self.work.get().saturating_add(bytes));
        self.work.get() <= self.len.saturating_mul(4).saturating_add(1 << 30)
    }

    /// Reads the body of a piece that is looked for at a place into `body`; returns X, if it leads there, and its proof.
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
        self.file.read_exact_at(at + of.head_len() as u64, body).ok()?;
        let proof = piece.proof(&head).to_vec();
        Some((tree_of_shard(&of.geometry, set, index, body, &proof)?, proof))
    }

    /// Notes an encoding of which a piece is usable.
    fn note(&self, of: &Generation) {
        let mut links = self.links.borrow_mut();
        if !links.contains(of) {
            links.push(*of);
        }
    }

    /// The metadata of an encoding, if enough of its pieces are intact.
    fn restore(&self, of: Generation, places: &Places) -> std::io::Result<Option<Opened>> {
        let shape = *of.geometry.shape();
        let (k, n) = (shape.code.k(), shape.code.n());
        let Some(area) = area_of(&of) else { return Ok(None) };
        let mut body = vec![0; shape.shard_len];
        if let Places::Found(found) = places
            && found.len() < k * shape.sets as usize
        {
            let mut all = found.iter().flat_map(|(key, places)| places.iter().map(move |at| (*key, *at)));
            let is_usable = |(tree, _): (Digest, Vec<u8>)| of.is_proved_by(&tree);
            if all.any(|(key, at)| self.prove(&of, key, at, &mut body).is_some_and(is_usable)) {
                self.note(&of);
            }
            return Ok(None);
        }
        let mut decoder = SetDecoder::for_payload(&shape);
        let mut metadata = vec![0; of.geometry.payload_len() as usize];
        let mut tree = None;
        let mut pieces = PiecesFound { all: of.pieces(), spare: u64::MAX, ..PiecesFound::default() };
        let mut rule = None;
        for set in 0..shape.sets {
            let mut proved: Vec<(u32, Vec<u8>, Vec<u8>)> = Vec::new();
            let mut intact = 0;
            for index in 0..n as u32 {
                let expected = area.piece(of.ordinal(set, index), of.layout.block.into());
                let mut is_there = false;
                for &at in places.of((set, index), &expected) {
                    let Some((leads_to, proof)) = self.prove(&of, (set, index), at, &mut body) else {
                        continue;
                    };
                    let is_proved = match &tree {
                        Some(tree) => *tree == leads_to,
                        None => of.is_proved_by(&leads_to),
                    };
                    if is_proved {
                        self.note(&of);
                        tree = Some(leads_to);
                        is_there = at == expected;
                        intact += 1;
                        // Recovery shards only as long as they are needed.
                        if (index as usize) < k || proved.len() < k {
                            proved.push((index, body.clone(), proof));
                        }
                        break;
                    }
                }
                if !is_there {
                    pieces.displaced.push(of.ordinal(set, index));
                }
            }
            pieces.intact += intact;
            pieces.spare = pieces.spare.min(intact.saturating_sub(k as u64));
            let Some(tree) = tree else { return Ok(None) };
            if proved.len() < k {
                return Ok(None);
            }
            let mut put = |index: usize, row: &[u8]| {
                let at = of.geometry.shard_offset(set, index) as usize;
                let len = of.geometry.shard_payload(set, index);
                metadata[at.min(of.geometry.payload_len() as usize)..][..len].copy_from_slice(&row[..len]);
                if row[len..].iter().any(|byte| *byte != 0) {
                    rule = Some(FormatError::Catalog("what is behind its end is not zero"));
                }
            };
            if proved.iter().take(k).all(|(index, ..)| (*index as usize) < k) {
                proved.iter().take(k).for_each(|(index, row, _)| put(*index as usize, row));
                continue;
            }
            let mut reading = decoder.begin(&of.geometry, &tree, set);
            for (index, row, proof) in &proved {
                reading.slot(*index).copy_from_slice(row);
                reading.check(*index, &[proof], Run::default());
            }
            let Ok(decoded) = reading.decode(&self.plans, Run::default()) else {
                rule = Some(FormatError::Catalog("it is not a codeword"));
                continue;
            };
            (0..k).for_each(|index| put(index, decoded.row(index as u32)));
        }
        let (_, first) = places.extent(&of);
        Ok(Some(Opened { of, rule, first, metadata, pieces }))
    }
}

/// How the surroundings of pieces have moved: of those of a generation, and of those before it whose areas it still has.
fn shifts(found: &Found, meant: &Generation, catalog: &Catalog) -> Shifts {
    let mut shifts = BTreeMap::new();
    for (of, places) in found {
        let Some(area) = area_of(of) else { continue };
        let (last, before) = catalog.areas.split_last().expect("a catalog has an area");
        if !(of == meant || (area != *last && before.contains(&area))) {
            continue;
        }
        let Places::Found(places) = places else { continue };
        for ((set, index), places) in places {
            let ordinal = of.ordinal(*set, *index);
            let expected = area.piece(ordinal, of.layout.block.into());
            let at = if places.contains(&expected) { expected } else { places[0] };
            shifts.insert((area.start, ordinal), at as i64 - expected as i64);
        }
    }
    if shifts.values().all(|by| *by == 0) {
        shifts.clear();
    }
    Shifts(shifts)
}
