//! Updates a sidecar after files were changed: codes only the changes.
//!
//! ```text
//! compare: the fate of each file ─▶ place: unchanged bytes keep their positions ─▶ code new bytes ─▶ append
//! ```
//!
//! Nothing of the old sidecar is written over: the new recovery shards and metadata go behind it. The old ones stay
//! valid until the new ones are on the disk, and rot cannot pass for an edit. Positions whose bytes are gone are marked
//! as lost in their sets. If a set has lost too much this way, or too much of the sidecar is unused, the sidecar is
//! made anew, and every file is compared with its record.

mod compare;
mod place;

use crate::catalog::bits::Bits;
use crate::catalog::journal;
use crate::catalog::metadata::{self, LOST};
use crate::catalog::plan::{self, Redundancy};
use crate::catalog::positions::Positions;
use crate::error::SidecarError;
use crate::examine::margin;
use crate::protect::coding::{Coded, Coding};
use crate::protect::outputs::UpdatedSidecar;
use crate::protect::{
    Found, Protect, Protected, add_sha256, all_denied, anew, check_memory, check_unchanged, digest_of,
    make_room_for_sha256, metadata_bytes, readers,
};
use crate::{Proof, Sidecar};
use compare::{Compare, Fate, file};
use fec_base::context::Context;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::output::{check_absent, check_room};
use fec_base::io::temporary::{parent, remove_stale};
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::format::sidecar::area::Area;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use fec_keys::sign::Trust;
use fecfile::seal::SealError;
use place::{Expected, Lives, Placed, Tails};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;

/// The result of an update.
#[must_use = "files may be left out or damaged"]
#[derive(Clone, Debug)]
pub struct Updated {
    /// The sidecar after the update.
    pub sidecar: Protected,
    /// The generation of the sidecar.
    pub generation: u64,
    /// True if the sidecar was written to; otherwise nothing had changed.
    pub written: bool,
    /// Why the sidecar was made anew, if it was.
    pub anew: Option<Anew>,
    /// Unchanged files.
    pub unchanged: u64,
    /// Files with other bytes than before.
    pub changed: u64,
    /// Files that were not protected before.
    pub added: u64,
    /// Files that have other paths.
    pub moved: u64,
    /// Paths, relative to the base, of files that are gone.
    pub gone: Vec<Box<[u8]>>,
    /// Bytes of files that were coded.
    pub coded_len: u64,
}

/// Why a sidecar is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anew {
    /// This many sets would have more than a quarter of their recovery shards used up by bytes that are gone.
    Weak(u64),
    /// The updated sidecar would be more than twice as long as a new one.
    Long,
    /// The blocks are too small for the bytes of all files.
    SmallBlocks,
    /// SHA-256 is to be recorded, and was not before.
    Sha256,
}

/// Updates the sidecar `job.output` to the present files. The sidecar must have the root `wanted`, or a signature by
/// somebody in `trust`, if either is given.
///
/// A file with its recorded size and time is not read. With a root or a signature everything is read: the root does not
/// prove the times, and the new root may be signed. With `job.policy.force`, many files may be gone.
///
/// Memory: as that of [`protect`](crate::protect::protect), for the old and the new files.
///
/// # Errors
/// [`SidecarError`], among them [`SidecarError::Rotten`] and [`SidecarError::ManyGone`]; [`ErrorKind::Changed`] when a
/// file changes meanwhile; those of the system. An error leaves the sidecar as it was.
pub fn update(
    job: &Protect<'_>,
    asked: (Option<Digest>, Option<&Trust>),
    context: &Context<'_>,
) -> Result<Updated> {
    update_readable(job, asked, context).map_err(|error| all_denied(job, error))
}

fn update_readable(
    job: &Protect<'_>,
    (wanted, trust): (Option<Digest>, Option<&Trust>),
    context: &Context<'_>,
) -> Result<Updated> {
    if !job.output.exists() {
        return Err(Error::at(Action::Update, job.output, SidecarError::NothingToUpdate));
    }
    check_absent(job.output, job.policy.with_force(true))
        .map_err(|e| Error { action: Action::Update, ..e })?;
    let _lock = metadata::lock_file(job.output, Action::Update)?;
    remove_stale(parent(job.output));
    let old = match job.keys {
        Some(keys) => Sidecar::open_sealed(job.output, (wanted, trust), keys, &context.settings)?.0,
        None if !Sidecar::starts(job.output)? && Sidecar::is_sealed(job.output)? => {
            return Err(Error::at(Action::Update, job.output, SealError::NoKey));
        }
        None => match trust {
            None => Sidecar::open(job.output, wanted, &context.settings)?,
            Some(trust) => Sidecar::open_signed(job.output, wanted, trust, &context.settings)?.0,
        },
    };
    // Refused before any work.
    match (old.was_sealed(), job.sealing) {
        (true, None) => return Err(Error::at(Action::Update, job.output, SealError::NobodyNamed)),
        (false, Some(_)) => return Err(Error::at(Action::Update, job.output, SealError::StaysPlain)),
        _ => {}
    }
    if let Some(newest) = old.replaced_by {
        return Err(Error::at(Action::Update, job.output, SidecarError::OtherRoot(vec![newest])));
    }
    old.check_end(job.policy.force)?;
    let displaced = Error::at(Action::Update, job.output, SidecarError::Displaced);
    let end = match old.expected_len() {
        Some(end) if end <= old.len && old.shifts.is_empty() => end,
        _ => return Err(displaced),
    };
    // A half-mended file has another time, and is no edit.
    journal::check_none(job.output, Action::Update)?;
    let found = Found::of(job)?;
    let compare = Compare { old: &old, base: &found.base, tree: &found.tree, context };
    let (fates, taken) = compare.run()?;
    if old.proof() != Proof::Nothing {
        let rotten = compare.find_rotten(&fates)?;
        if !rotten.is_empty() {
            return Err(Error::at(Action::Update, job.output, SidecarError::Rotten(rotten)));
        }
    }
    let counts = Counts::of(&compare, &fates, &taken);
    if !job.policy.force {
        if let Some((now, was)) = compare.find_suspect(&fates) {
            let now = found.tree.entries[now].path.to_vec();
            let was = old.catalog.entries[was as usize].path.to_vec();
            return Err(Error::at(Action::Update, job.output, SidecarError::RottenOrNew { now, was }));
        }
        counts.check(&old, job)?;
    }
    Update { job, old: &old, end, found, fates, counts, context }.run()
}

/// The fates of files, in numbers.
#[derive(Debug, Default)]
struct Counts {
    unchanged: u64,
    changed: u64,
    added: u64,
    moved: u64,
    gone: Vec<Box<[u8]>>,
    /// Bytes of the files that are gone.
    gone_len: u64,
    emptied: Option<Vec<u8>>,
}

impl Counts {
    fn of(compare: &Compare<'_>, fates: &[Fate], taken: &[bool]) -> Counts {
        let mut counts = Counts::default();
        let (old, entries) = (compare.old, &compare.tree.entries);
        for (entry, fate) in entries.iter().zip(fates) {
            match fate {
                Fate::NoFile => {}
                Fate::Same(of) if compare.old_at(&entry.path) == Some(*of) => counts.unchanged += 1,
                Fate::Same(_) => counts.moved += 1,
                Fate::Changed(..) => counts.changed += 1,
                Fate::New => {
                    // An empty file is compared with nothing.
                    let was = compare.old_at(&entry.path).filter(|of| !taken[*of as usize]);
                    match was {
                        Some(of) => {
                            counts.changed += 1;
                            let is_empty = matches!(&entry.kind, EntryKind::File(file) if file.size == 0);
                            if is_empty && file(&old.catalog, of).size > 0 {
                                counts.emptied.get_or_insert_with(|| entry.path.to_vec());
                            }
                        }
                        None => counts.added += 1,
                    }
                }
            }
        }
        let is_there = |path: &[u8]| {
            let at = entries.binary_search_by(|entry| (*entry.path).cmp(path)).ok();
            at.is_some_and(|at| matches!(entries[at].kind, EntryKind::File(_) | EntryKind::HardLink(_)))
        };
        let gone = old.catalog.files().filter(|(nth, _)| !taken[*nth]);
        for (nth, file) in gone.filter(|(nth, _)| !is_there(&old.catalog.entries[*nth].path)) {
            counts.gone.push(old.catalog.entries[nth].path.clone());
            counts.gone_len += file.size;
        }
        counts
    }

    fn report(
        self,
        sidecar: Protected,
        generation: u64,
        written: bool,
        anew: Option<Anew>,
        coded_len: u64,
    ) -> Updated {
        let Counts { unchanged, changed, added, moved, gone, .. } = self;
        Updated { sidecar, generation, written, anew, unchanged, changed, added, moved, gone, coded_len }
    }

    /// Fails when the changes look like an accident.
    fn check(&self, old: &Sidecar, job: &Protect<'_>) -> Result<()> {
        let of = old.catalog.files().count() as u64;
        let (gone, gone_len, of_len) = (self.gone.len() as u64, self.gone_len, old.catalog.files_len());
        let fail = |cause| Err(Error::at(Action::Update, job.output, cause));
        if let Some(path) = &self.emptied {
            return fail(SidecarError::Emptied(path.clone()));
        }
        if gone * 10 > of || u128::from(gone_len) * 10 > u128::from(of_len) {
            return fail(SidecarError::ManyGone { gone, of, gone_len, of_len });
        }
        Ok(())
    }
}

/// An update in progress.
struct Update<'a> {
    job: &'a Protect<'a>,
    old: &'a Sidecar,
    /// The end of the old sidecar.
    end: u64,
    found: Found,
    fates: Vec<Fate>,
    counts: Counts,
    context: &'a Context<'a>,
}

impl Update<'_> {
    fn run(mut self) -> Result<Updated> {
        let old = self.old;
        let has_sha256 = old.catalog.files().any(|(_, file)| file.sha256.is_some());
        let block = u64::from(old.catalog.block);
        if self.job.sha256 && !has_sha256 {
            return self.anew(Anew::Sha256, true);
        }
        if has_sha256 {
            let fates = &self.fates;
            make_room_for_sha256(&mut self.found.tree.entries, |nth| !matches!(fates[nth], Fate::Same(_)));
        }
        let mut weak = Vec::new();
        let mut digests = old.digests().to_vec();
        let Placed { entries, positions, expected } = loop {
            let tails = Tails::of(old, &self.found.base, &self.fates, &self.found.tree.entries, &weak);
            let displaced = self.check_displaced(&tails)?;
            let entries = std::mem::take(&mut self.found.tree.entries);
            let placed = place::place(old, entries, &self.fates, &tails, &displaced, &weak);
            let lives = Lives::of(old, &placed);
            if lives.weak.is_empty() {
                lives.mark_lost(old, &mut digests);
                break placed;
            }
            self.found.tree.entries = placed.entries;
            // The living bytes of a few weak groups go to the new group. If there are many, the sidecar is made anew
            // instead.
            if !weak.is_empty() || lives.in_weak * 8 > lives.all {
                return self.anew(Anew::Weak(lives.weak_sets), has_sha256);
            }
            weak = lives.weak;
        };
        let way = self.found.way();
        if positions == 0 && self.is_same(&entries, &way) {
            return self.nothing();
        }
        let mut catalog = Catalog {
            block: old.catalog.block,
            areas: old.catalog.areas.clone(),
            groups: old.catalog.groups.clone(),
            entries,
        };
        if plan::block_len(catalog.files_len()) > 2 * catalog.block {
            self.found.tree.entries = catalog.entries;
            return self.anew(Anew::SmallBlocks, has_sha256);
        }
        let redundancy = self.redundancy();
        let lives = catalog.files_len().div_ceil(block).max(positions);
        let refused = |e| Error::new(Action::Update, ErrorKind::Format(e));
        let area = catalog.areas.len() as u32;
        let mut blocks = 0;
        if positions > 0 {
            let (code, sets) = redundancy.of_few(positions, lives).shape(positions);
            let group = plan::group(code, sets, area).map_err(refused)?;
            blocks = group.recovery();
            catalog.groups.push(group);
        }
        catalog.areas.push(Area { start: self.end, blocks, pieces: 2, piece_len: 0 });
        let stats = Stats { entries: self.found.tree.stats.clone(), base: way };
        let stats_len = Stats::len_for(catalog.entries.len(), &stats.base) as u64;
        let geometry = plan::fit_pieces(&mut catalog, stats_len).map_err(refused)?;
        let area = catalog.areas[area as usize];
        let area_len = area.len(block).unwrap_or(u64::MAX);
        let new_len = self.end.saturating_add(area_len);
        if new_len > 2 * plan::len_anew(&catalog, lives, redundancy, stats_len).map_err(refused)? {
            self.found.tree.entries = catalog.entries;
            return self.anew(Anew::Long, has_sha256);
        }
        check_room(self.job.output, area_len.saturating_sub(old.len - self.end))?;
        check_memory(&catalog, self.context)?;

        let fail = |e| Error::io(Action::Write, self.job.output, e);
        let policy = readers(self.job, &self.found.base, &catalog, &self.found.tree.stats);
        let out = UpdatedSidecar::new(old, self.end, self.job.output, policy, self.job.sealing)?;
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes, self.job.output);
        let seen = &self.found.tree.seen;
        let mut coded_len = 0;
        let mut anchors = Vec::new();
        if positions > 0 {
            let first = old.catalog.positions();
            coded_len = Positions::of(&catalog).within(first..catalog.positions()).map(|span| span.len).sum();
            let meter = self.context.meter(Action::Update, Some(coded_len));
            let base = &self.found.base;
            let coded = Coding::new(base, &catalog, seen, &put, self.context, &meter).run()?;
            meter.finish();
            self.check_again(&catalog, first, &expected, &coded)?;
            let Coded { values, digests: of_group, tails, anchors: of_new } = coded;
            digests.extend(of_group);
            anchors = of_new;
            anchors.sort_unstable();
            for ((entry, fate), tail) in catalog.entries.iter_mut().zip(&self.fates).zip(tails) {
                if let (EntryKind::File(file), Fate::New) = (&mut entry.kind, fate) {
                    file.blake3 = digest_of(file, &values, first, tail);
                }
            }
        } else {
            give_empty_files_their_digest(&mut catalog);
        }
        if has_sha256 {
            let is_new = |nth: usize| !matches!(self.fates[nth], Fate::Same(_));
            add_sha256(&mut catalog, &self.found.base, seen, &is_new, self.context)?;
        }
        let anchors = place::anchors(old, &catalog, &self.fates, &anchors);
        check_unchanged(&self.found.base, &catalog, seen)?;
        let generation = old.generation().checked_add(1);
        let generation =
            generation.ok_or_else(|| Error::at(Action::Update, self.job.output, SidecarError::Displaced))?;
        let before = (old.of.root, generation);
        let (metadata, layout, root) = metadata_bytes(&catalog, (&digests, &anchors), &stats, before);
        // A catalog that no reader accepts is never written.
        Catalog::parse(&metadata[..layout.catalog_len as usize]).map_err(refused)?;
        let sync = || match self.context.settings.sync {
            true => out.sync().map_err(fail),
            false => Ok(()),
        };
        sync()?;
        // With its full length set, the pieces of an interrupted update are in their places.
        out.set_len(new_len).map_err(fail)?;
        let of = metadata::write(metadata, geometry, layout, &area, &self.context.settings, put)?;
        sync()?;
        let sealed = out.finish(new_len, self.job.output, policy, self.context)?;
        let margin = one_piece(&catalog, &digests);
        let report = self.found.report(&catalog, (root, Some(of.root)), margin).sealed(sealed);
        Ok(self.counts.report(report, generation, true, None, coded_len))
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
            let (mut before, mut is_rotten) = (0, false);
            for run in &file.runs {
                for at in (0..run.count).filter(|at| run.start + at >= first) {
                    let digest = coded.digests[(run.start + at - first) as usize];
                    match expected.displaced.get(&(before + at)) {
                        // The block is unchanged, unless it rotted.
                        Some(was) => is_rotten |= *was != digest,
                        None => check.update(&digest),
                    }
                }
                before += run.count;
            }
            let found = check.finish();
            if expected.tail != coded.tails[*nth] || expected.check.is_some_and(|sum| sum != found) {
                let place = self.found.base.place(&entry.path);
                return Err(Error::at(Action::Read, place.as_path(), ErrorKind::Changed));
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
    fn is_same(&self, entries: &[Entry], way: &[u8]) -> bool {
        let old = self.old;
        let is_old = |nth: usize| {
            let (now, then) = (self.found.tree.stats[nth], old.stats.entries[nth]);
            let is_lenient = entries[nth].kind == EntryKind::Folder && old.proof() != Proof::Root;
            now == then || is_lenient && now.mode == then.mode
        };
        *entries == *old.catalog.entries && old.stats.base == way && (0..entries.len()).all(is_old)
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
        let margin = one_piece(&old.catalog, old.digests());
        let report = self.found.report(&old.catalog, (old.root(), old.metadata_root()), margin);
        Ok(self.counts.report(report, old.generation(), false, None, 0))
    }

    /// Makes the sidecar anew. Refuses files with their recorded size and time but other bytes.
    fn anew(self, why: Anew, sha256: bool) -> Result<Updated> {
        let redundancy = self.redundancy();
        let Update { job, old, mut found, fates, counts, context, .. } = self;
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

/// Empty files get a digest too.
fn give_empty_files_their_digest(catalog: &mut Catalog) {
    for entry in &mut catalog.entries {
        if let EntryKind::File(file) = &mut entry.kind
            && file.size == 0
        {
            file.blake3 = HashKind::Blake3.digest(b"");
        }
    }
}

/// The bytes that could be lost in one piece of files with these digests.
fn one_piece(catalog: &Catalog, digests: &[ShortDigest]) -> u64 {
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
    margin(catalog, &Positions::of(catalog), &lost, None).one_piece
}
