//! Goes on with an update after all files were compared: appends what is new, or makes the sidecar anew.

use super::compare::{Compare, Fate, file};
use super::place::{self, Expected, Lives, Placed, Tails};
use super::updated::{Anew, Counts, Updated};
use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::metadata::{self, LOST};
use crate::catalog::plan::{self, Content, Redundancy};
use crate::catalog::positions::Positions;
use crate::catalog::proof::Proof;
use crate::error::SidecarError;
use crate::examine::{Spare, margin};
use crate::protect::coding::{Coded, Coding, Put, give_digests};
use crate::protect::content::Contents;
use crate::protect::outputs::UpdatedSidecar;
use crate::protect::sha256::{add_sha256, make_room_for_sha256};
use crate::protect::{Found, Protect, anew, check_memory, check_unchanged, metadata_bytes, readers};
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::output::check_room;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::error::FormatError;
use fec_core::format::sidecar::area::Area;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::piece::Generation;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use fec_core::params::GroupGeometry;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::FileExt;

/// An update in progress.
pub(crate) struct Update<'a> {
    pub(crate) job: &'a Protect<'a>,
    pub(crate) old: &'a Sidecar,
    /// The end of the old sidecar.
    pub(crate) end: u64,
    pub(crate) found: Found,
    pub(crate) fates: Vec<Fate>,
    pub(crate) counts: Counts,
    pub(crate) context: &'a Context<'a>,
}

/// The way that an update goes on.
enum Way {
    /// Nothing has changed.
    Nothing,
    /// The sidecar is made anew.
    Anew(Anew),
    /// New recovery shards and metadata go behind the old ones.
    Append(Box<Extension>),
}

/// The layout of an updated sidecar.
struct Extension {
    catalog: Catalog,
    /// Digests of all old shards; those of new ones follow when they are coded.
    digests: Vec<ShortDigest>,
    stats: Stats,
    /// The geometry of the metadata.
    geometry: GroupGeometry,
    /// The number of new positions.
    positions: u64,
    /// Hashes that coding must find again, by entry.
    expected: HashMap<usize, Expected>,
    /// Files that share the places of others.
    twins: BTreeMap<usize, usize>,
    /// Bytes behind the old sidecar.
    area_len: u64,
    /// Bytes of a sidecar that is made anew.
    len_anew: u64,
}

/// The values that coding collects, beside digests.
#[derive(Default)]
struct NewBytes {
    /// Bytes of files that were coded.
    coded_len: u64,
    /// Positions of new blocks with their anchors, in order.
    anchors: Vec<(u64, u64)>,
}

impl Update<'_> {
    pub(crate) fn run(mut self) -> Result<Updated> {
        let has_sha256 = self.old.catalog.files().any(|(_, file)| file.sha256.is_some());
        match self.choose(has_sha256)? {
            Way::Nothing => self.nothing(),
            Way::Anew(why) => self.anew(why, has_sha256 || why == Anew::Sha256),
            Way::Append(extension) => self.append(*extension, has_sha256),
        }
    }

    /// Lays out the updated sidecar, and chooses how the update goes on. `has_sha256` tells whether the old sidecar
    /// records SHA-256. The entries that were found move into the layout, unless the sidecar is made anew.
    fn choose(&mut self, has_sha256: bool) -> Result<Way> {
        let old = self.old;
        if self.job.sha256 && !has_sha256 {
            return Ok(Way::Anew(Anew::Sha256));
        }
        if has_sha256 {
            let fates = &self.fates;
            make_room_for_sha256(&mut self.found.tree.entries, |nth| !matches!(fates[nth], Fate::Same(_)));
        }
        let content = self.content()?;
        let (Placed { entries, positions, expected }, lives) = self.place(&content)?;
        if !lives.weak.is_empty() {
            self.found.tree.entries = entries;
            return Ok(Way::Anew(Anew::Weak(lives.weak_sets)));
        }
        let mut digests = old.digests().to_vec();
        lives.mark_lost(old, &mut digests);
        let stats = self.found.stats();
        if positions == 0 && self.is_same(&entries, &stats) {
            return Ok(Way::Nothing);
        }
        let mut catalog = Catalog {
            block: old.catalog.block,
            areas: old.catalog.areas.clone(),
            groups: old.catalog.groups.clone(),
            entries,
        };
        if plan::block_len(catalog.files_len()) > 2 * catalog.block {
            self.found.tree.entries = catalog.entries;
            return Ok(Way::Anew(Anew::SmallBlocks));
        }
        let block = u64::from(catalog.block);
        let all = Positions::of(&catalog).len(0..old.catalog.positions() + positions);
        let lives = all.div_ceil(block).max(positions);
        let stats_len = stats.to_bytes().len() as u64;
        let geometry = self.add_area(&mut catalog, positions, lives, stats_len).map_err(refused)?;
        let area_len = catalog.areas[catalog.areas.len() - 1].len(block).unwrap_or(u64::MAX);
        let new_len = self.end.saturating_add(area_len);
        let len_anew = plan::len_anew(&catalog, lives, self.redundancy(), stats_len).map_err(refused)?;
        if new_len > 2 * len_anew {
            self.found.tree.entries = catalog.entries;
            return Ok(Way::Anew(Anew::Long));
        }
        let twins = content.twins;
        let extension =
            Extension { catalog, digests, stats, geometry, positions, expected, twins, area_len, len_anew };
        Ok(Way::Append(Box::new(extension)))
    }

    /// Finds what takes no positions of its own.
    fn content(&self) -> Result<Content> {
        let Update { old, found, fates, context, .. } = self;
        let (base, seen) = (&found.base, &found.tree.seen);
        let block = old.catalog.block.into();
        let contents = Contents { base, entries: &found.tree.entries, seen, block, context };
        let mut known = HashMap::new();
        for (nth, fate) in fates.iter().enumerate() {
            if let Fate::Same(of) = fate {
                let was = file(&old.catalog, *of);
                known.entry((was.size, was.blake3)).or_insert(nth);
            }
        }
        let new = fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::New));
        let mut content = contents.find(&new.map(|(nth, _)| nth).collect::<Vec<_>>(), &known)?;
        content.twins.extend(place::shared(&old.catalog, fates));
        Ok(content)
    }

    /// Assigns positions to all bytes. The living bytes of a few weak groups go to the new group. If there are many,
    /// these groups stay weak in the result.
    fn place(&mut self, content: &Content) -> Result<(Placed, Lives)> {
        let old = self.old;
        let mut weak = Vec::new();
        loop {
            let tails = Tails::of(old, &self.found.base, &self.fates, &self.found.tree.entries, &weak);
            let displaced = self.check_displaced(&tails)?;
            let entries = std::mem::take(&mut self.found.tree.entries);
            let placed = place::place(old, entries, &self.fates, &tails, (&displaced, content), &weak);
            let lives = Lives::of(old, &placed);
            if lives.weak.is_empty() || !weak.is_empty() || lives.in_weak * 8 > lives.all {
                return Ok((placed, lives));
            }
            self.found.tree.entries = placed.entries;
            weak = lives.weak;
        }
    }

    /// Adds a group for the new positions and the area behind the old sidecar to the catalog. `lives` is the number of
    /// positions that hold bytes. Returns the geometry of the metadata.
    fn add_area(
        &self,
        catalog: &mut Catalog,
        positions: u64,
        lives: u64,
        stats_len: u64,
    ) -> std::result::Result<GroupGeometry, FormatError> {
        let mut blocks = 0;
        if positions > 0 {
            let (code, sets) =
                self.redundancy().of_few(positions, lives).shape(positions, catalog.block.into());
            let group = plan::group(code, sets, catalog.areas.len() as u32)?;
            blocks = group.recovery();
            catalog.groups.push(group);
        }
        catalog.areas.push(Area { start: self.end, blocks, pieces: 2, piece_len: 0 });
        plan::fit_pieces(catalog, stats_len)
    }

    /// Codes the new bytes, and writes their recovery shards and the new metadata behind the old sidecar.
    fn append(self, mut new: Extension, has_sha256: bool) -> Result<Updated> {
        let Update { job, old, context, .. } = self;
        check_room(job.output, new.area_len.saturating_sub(old.len - self.end))?;
        check_memory(&new.catalog, context)?;

        let policy = readers(job, &self.found.base, &new.catalog, &self.found.tree.stats);
        let out = UpdatedSidecar::new(old, self.end, job.output, policy, job.sealing)?;
        let NewBytes { coded_len, anchors } =
            self.code(&mut new, &|at, bytes| out.put(at, bytes, job.output))?;
        let seen = &self.found.tree.seen;
        if has_sha256 {
            let is_new = |nth: usize| !matches!(self.fates[nth], Fate::Same(_));
            add_sha256(&mut new.catalog, &self.found.base, seen, &is_new, context)?;
        }
        let anchors = place::anchors(old, &new.catalog, &anchors);
        check_unchanged(&self.found.base, &new.catalog, seen)?;
        let generation = old.generation().checked_add(1);
        let generation =
            generation.ok_or_else(|| Error::at(Action::Update, job.output, SidecarError::Displaced))?;
        let (root, of) = self.write_metadata(&new, &anchors, generation, &out)?;
        let sealed = out.finish(self.end + new.area_len, job.output, policy, context)?;
        let spare = spare(&new.catalog, &new.digests);
        let report = self.found.report(&new.catalog, (root, Some(of.root)), spare).sealed(sealed);
        let len_anew = Some(new.len_anew);
        Ok(Updated { len_anew, ..self.counts.report(report, generation, true, None, coded_len) })
    }

    /// Codes the new positions, and hands their recovery shards to `put`. Gives new files their digests.
    fn code(&self, new: &mut Extension, put: &Put<'_>) -> Result<NewBytes> {
        let Extension { catalog, digests, positions, expected, twins, .. } = new;
        let (base, seen) = (&self.found.base, &self.found.tree.seen);
        let first = self.old.catalog.positions();
        let coded_len = Positions::of(catalog).len(first..catalog.positions());
        let meter = self.context.meter(Action::Update, Some(coded_len));
        let coded = match *positions {
            0 => Coded::nothing(catalog.entries.len()),
            _ => Coding::new(base, catalog, seen, put, self.context, &meter).run()?,
        };
        seen.check(base)?;
        self.check_again(catalog, first, expected, &coded)?;
        let Coded { values, digests: of_group, tails, mut anchors } = coded;
        digests.extend(of_group);
        anchors.sort_unstable();
        let is_new = |nth: usize| matches!(self.fates[nth], Fate::New);
        give_digests(catalog, twins, (&values, first), &tails, (&is_new, &meter))?;
        meter.finish();
        Ok(NewBytes { coded_len, anchors })
    }

    /// Writes the metadata behind everything else. Returns the root, and the identity of the metadata.
    fn write_metadata(
        &self,
        new: &Extension,
        anchors: &[u64],
        generation: u64,
        out: &UpdatedSidecar<'_>,
    ) -> Result<(Digest, Generation)> {
        let (path, settings) = (self.job.output, &self.context.settings);
        let fail = |e| Error::io(Action::Write, path, e);
        let before = (self.old.of.root, generation);
        let (metadata, layout, root) =
            metadata_bytes(&new.catalog, (&new.digests, anchors), &new.stats.to_bytes(), before);
        // A catalog that no reader accepts is never written.
        Catalog::parse(&metadata[..layout.catalog_len as usize]).map_err(refused)?;
        let sync = || match settings.sync {
            true => out.sync().map_err(fail),
            false => Ok(()),
        };
        sync()?;
        // With its full length set, the pieces of an interrupted update are in their places.
        out.set_len(self.end + new.area_len).map_err(fail)?;
        let area = new.catalog.areas[new.catalog.areas.len() - 1];
        let put = |at: u64, piece: &[u8]| out.put(at, piece, path);
        let of = metadata::write(metadata, new.geometry, layout, &area, settings, put)?;
        sync()?;
        Ok((root, of))
    }

    /// The redundancy that was asked for, or that of the old sidecar.
    fn redundancy(&self) -> Redundancy {
        let group = self.old.catalog.groups[0];
        self.job.redundancy.unwrap_or_else(|| Redundancy::of(group.code))
    }

    /// Compares unchanged files that are to be coded again with their records. Returns their tails.
    fn check_displaced(&self, tails: &Tails) -> Result<HashMap<usize, Option<Digest>>> {
        let Update { old, found, context, .. } = self;
        let compare = Compare { old, base: &found.base, tree: &found.tree, context };
        let checked = compare.check(&tails.displaced)?;
        let mut rotten = Vec::new();
        let mut displaced = HashMap::new();
        for ((nth, _), tail) in tails.displaced.iter().zip(checked) {
            match tail {
                Some(tail) => drop(displaced.insert(*nth, tail)),
                None => rotten.push(found.tree.entries[*nth].path.to_vec()),
            }
        }
        if !rotten.is_empty() {
            return Err(Error::at(Action::Update, self.job.output, SidecarError::Rotten(rotten)));
        }
        Ok(displaced)
    }

    /// Fails when coding read other bytes than comparing did.
    fn check_again(
        &self,
        catalog: &Catalog,
        first: u64,
        expected: &HashMap<usize, Expected>,
        coded: &Coded,
    ) -> Result<()> {
        let mut rotten = Vec::new();
        for (nth, expected) in expected {
            let entry = &catalog.entries[*nth];
            let EntryKind::File(file) = &entry.kind else { continue };
            let mut check = PlainHasher::new(HashKind::Blake3);
            let mut is_rotten = false;
            for run in &file.runs {
                for at in (0..run.count).filter(|at| run.start + at >= first) {
                    let digest = coded.digests[(run.start + at - first) as usize];
                    match expected.displaced.get(&(run.block + at)) {
                        // The block is unchanged, unless it rotted.
                        Some(was) => is_rotten |= *was != digest,
                        None => check.update(&digest),
                    }
                }
            }
            let found = check.finish();
            if expected.tail != coded.tails[*nth] || expected.check.is_some_and(|sum| sum != found) {
                let changed = std::io::ErrorKind::UnexpectedEof.into();
                return Err(self.found.tree.seen.fail(&self.found.base, &entry.path, changed));
            }
            if is_rotten {
                rotten.push(entry.path.to_vec());
            }
        }
        match rotten.is_empty() {
            true => Ok(()),
            false => Err(Error::at(Action::Update, self.job.output, SidecarError::Rotten(rotten))),
        }
    }

    /// Tells whether all entries and their permissions are unchanged, and the times of all but folders. If only the
    /// root is proved, the times of folders count too, since the next signature binds them.
    fn is_same(&self, entries: &[Entry], stats: &Stats) -> bool {
        let old = self.old;
        let is_old = |nth: usize| {
            let (now, then) = (stats.entries[nth], old.stats.entries[nth]);
            let is_lenient = entries[nth].kind == EntryKind::Folder && old.proof() != Proof::Root;
            now == then || is_lenient && now.mode == then.mode
        };
        *entries == *old.catalog.entries
            && old.stats.base == stats.base
            && old.stats.marks == stats.marks
            && old.stats.exclusion == stats.exclusion
            && old.stats.omitted == stats.omitted
            && (0..entries.len()).all(is_old)
    }

    /// Ends an update that finds no change.
    fn nothing(self) -> Result<Updated> {
        let old = self.old;
        let fail = |e| Error::io(Action::Write, self.job.output, e);
        let is_damaged = old.pieces.intact < old.pieces.all;
        if !old.was_sealed() && (old.len > self.end || is_damaged) {
            let file = old.open_to_write(Action::Update)?;
            if old.len > self.end {
                // The rest is of an interrupted update.
                file.set_len(self.end).map_err(fail)?;
            }
            if is_damaged {
                // The update was interrupted between its pieces, or some were damaged later.
                let area = old.catalog.areas[old.catalog.areas.len() - 1];
                let put = |at: u64, piece: &[u8]| file.write_all_at(piece, at).map_err(fail);
                let (of, settings) = (&old.of, &self.context.settings);
                metadata::write(old.metadata(), of.geometry, of.layout, &area, settings, put)?;
                if settings.sync {
                    file.sync_data().map_err(fail)?;
                }
            }
        }
        let spare = spare(&old.catalog, old.digests());
        let report = self.found.report(&old.catalog, (old.root(), old.metadata_root()), spare);
        Ok(self.counts.report(report, old.generation(), false, None, 0))
    }

    /// Makes the sidecar anew. Refuses files with their recorded size and time but other bytes.
    fn anew(self, why: Anew, sha256: bool) -> Result<Updated> {
        let redundancy = self.redundancy();
        let Update { job, old, mut found, fates, counts, context, .. } = self;
        // A new sidecar keeps nothing of what cannot be read.
        let seen = &found.tree.seen;
        for (_, entry) in found.tree.entries.iter().enumerate().filter(|(nth, _)| !seen.has(*nth)) {
            if let (EntryKind::File(_), Some(reason)) = (&entry.kind, found.tree.kept.get(&entry.path)) {
                seen.note(&entry.path, *reason);
            }
        }
        seen.check(&found.base)?;
        // The findings on entries so far do not count for the new sidecar.
        for entry in &mut found.tree.entries {
            if let EntryKind::File(file) = &mut entry.kind {
                (file.blake3, file.sha256, file.runs, file.tail) = ([0; 32], None, Vec::new(), 0);
            }
        }
        let check = |catalog: &Catalog| {
            let is_rotten = |(nth, new): &(usize, &FileEntry)| match fates[*nth] {
                Fate::Same(of) => file(&old.catalog, of).blake3 != new.blake3,
                _ => false,
            };
            let rotten = catalog.files().filter(is_rotten);
            let rotten: Vec<Vec<u8>> = rotten.map(|(nth, _)| catalog.entries[nth].path.to_vec()).collect();
            match rotten.is_empty() {
                true => Ok(()),
                false => Err(Error::at(Action::Update, job.output, SidecarError::Rotten(rotten))),
            }
        };
        let job = Protect { policy: job.policy.with_force(true), ..*job };
        let report = anew(&job, found, redundancy, sha256, &check, context)?;
        let coded_len = report.files_len;
        Ok(counts.report(report, 1, true, Some(why), coded_len))
    }
}

fn refused(e: FormatError) -> Error {
    Error::new(Action::Update, ErrorKind::Format(e))
}

/// The bytes that could be lost of files with these digests.
fn spare(catalog: &Catalog, digests: &[ShortDigest]) -> Spare {
    let mut lost = Bits::new(catalog.positions());
    let (mut first, mut first_digest) = (0, 0);
    for group in &catalog.groups {
        for nth in 0..group.positions() {
            if digests[(first_digest + nth) as usize] == LOST {
                lost.set(first + nth);
            }
        }
        first += group.positions();
        first_digest += group.positions() + group.recovery();
    }
    margin(catalog, &Positions::of(catalog), (&lost, None), &|_| (0, 0)).spare
}
