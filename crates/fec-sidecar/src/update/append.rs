//! Goes on with an update after all files were compared: adds what is new, or makes the sidecar anew.

use super::compare::{Fate, file};
use super::layout::{Extension, Way, refused};
use super::out::Out;
use super::place::{self, Expected};
use super::retire::Filled;
use super::updated::{Anew, Updated};
use super::updating::Update;
use crate::catalog::bits::Bits;
use crate::catalog::metadata::{self, LOST};
use crate::catalog::positions::Positions;
use crate::catalog::proof::Proof;
use crate::error::SidecarError;
use crate::examine::{Spare, margin};
use crate::protect::coding::{Coded, Coding, Put, give_digests};
use crate::protect::sha256::add_sha256;
use crate::protect::{Protect, anew, check_memory, check_unchanged, metadata_bytes, readers};
use fec_base::error::{Action, Error, Result};
use fec_base::io::output::check_room;
use fec_core::digest::{Digest, HashKind, PlainHasher};
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest, shortened};
use fec_core::format::sidecar::piece::Generation;
use fec_core::format::sidecar::stat::Stats;
use fec_core::format::sidecar::{Entry, EntryKind, FileEntry};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;

/// The values that coding collects, beside digests.
#[derive(Default)]
struct NewBytes {
    /// Bytes of files that were coded.
    coded_len: u64,
    /// Positions of new blocks with their anchors, in order.
    anchors: Vec<(u64, u64)>,
}

/// The blocks that were coded: those at positions of old groups, and those behind these.
struct NewBlocks {
    /// The number of positions of old groups.
    first: u64,
    coded: Coded,
    filled: Filled,
}

impl NewBlocks {
    /// The chaining value of a block, if it was coded.
    fn get(&self, position: u64) -> Option<Digest> {
        match position.checked_sub(self.first) {
            Some(behind) => Some(self.coded.values[behind as usize]),
            None => self.filled.values.get(&position).copied(),
        }
    }

    fn value_of(&self, position: u64) -> Digest {
        self.get(position).expect("the blocks of new files are coded")
    }
}

impl Update<'_> {
    pub(crate) fn run(mut self) -> Result<Updated> {
        let has_sha256 = self.old.catalog.files().any(|(_, file)| file.sha256.is_some());
        match self.choose(has_sha256)? {
            Way::Nothing => self.nothing(),
            Way::Anew(why) => self.anew(why, has_sha256 || why == Anew::Sha256),
            Way::Extend(extension) => self.extend(*extension, has_sha256),
        }
    }

    /// Codes the new bytes, and writes their recovery shards and the new metadata: behind the old sidecar, or into a
    /// new one with copies of what is kept.
    fn extend(self, mut new: Extension, has_sha256: bool) -> Result<Updated> {
        let Update { job, old, context, .. } = self;
        let more =
            if new.is_joined { new.len } else { (new.len - self.end).saturating_sub(old.len - self.end) };
        check_room(job.output, more)?;
        check_memory(&new.catalog, context)?;

        let policy = readers(job, &self.found.base, &new.catalog, &self.found.tree.stats);
        let out = Out::new(&new, (old, self.end), job, policy)?;
        let put = |at: u64, bytes: &[u8]| out.put(at, bytes);
        let NewBytes { coded_len, anchors } = self.code(&mut new, &put)?;
        let seen = &self.found.tree.seen;
        if has_sha256 {
            let is_new = |nth: usize| !matches!(self.fates[nth], Fate::Same(_));
            add_sha256(&mut new.catalog, &self.found.base, seen, &is_new, context)?;
        }
        let anchors = place::anchors(old, (&new.kept, &new.filled), &new.catalog, &anchors);
        check_unchanged(&self.found.base, &new.catalog, seen)?;
        let before = match new.is_joined {
            // Nothing of the generations before is left.
            true => ([0; 32], 1),
            false => {
                let generation = old.generation().checked_add(1);
                let displaced = || Error::at(Action::Update, job.output, SidecarError::Displaced);
                (old.of.root, generation.ok_or_else(displaced)?)
            }
        };
        let (root, of) = self.write_metadata(&new, &anchors, before, &out)?;
        let sealed = out.finish(new.len, policy, context)?;
        let spare = spare(&new.catalog, &new.digests);
        let report = self.found.report(&new.catalog, (root, Some(of.root)), spare).sealed(sealed);
        let updated = self.counts.report(report, before.1, true, None, coded_len);
        let retired_len = self.leaving.map_or(0, |leaving| leaving.len);
        Ok(Updated { is_joined: new.is_joined, retired_len, ..updated })
    }

    /// Codes the new positions, and those that are filled, and hands recovery shards to `put`. Gives new files their
    /// digests.
    fn code(&self, new: &mut Extension, put: &Put<'_>) -> Result<NewBytes> {
        let filled = self.retire(new, put)?;
        let Extension { catalog, digests, positions, expected, twins, kept, stats, .. } = new;
        let (base, seen) = (&self.found.base, &self.found.tree.seen);
        let first = kept.positions();
        let coded_len = Positions::of(catalog).len(first..catalog.positions());
        let meter = self.context.meter(Action::Update, Some(coded_len));
        let mut coded = match *positions {
            0 => Coded::nothing(catalog.entries.len()),
            _ => Coding::new(base, catalog, seen, put, self.context, &meter).run()?,
        };
        seen.check(base)?;
        filled.tails.iter().for_each(|(entry, tail)| coded.tails[*entry] = Some(*tail));
        let coded = NewBlocks { first, coded, filled };
        self.check_again(catalog, expected, &coded)?;
        let is_new = |nth: usize| matches!(self.fates[nth], Fate::New);
        let (stacks, tails) = (&mut stats.stacks, &coded.coded.tails);
        let value_of = |position| coded.value_of(position);
        give_digests(catalog, twins, &value_of, tails, (&is_new, &meter), stacks)?;
        meter.finish();
        let NewBlocks { coded, filled, .. } = coded;
        digests.extend(coded.digests);
        let mut anchors = [coded.anchors, filled.anchors].concat();
        anchors.sort_unstable();
        Ok(NewBytes { coded_len: coded_len + filled.len, anchors })
    }

    /// Writes the metadata behind everything else. `before` has E of the generation before, and the number of this one.
    /// Returns the root, and the identity of the metadata.
    fn write_metadata(
        &self,
        new: &Extension,
        anchors: &[u64],
        before: (Digest, u64),
        out: &Out<'_>,
    ) -> Result<(Digest, Generation)> {
        let settings = &self.context.settings;
        let (mut payload, mut layout, root) =
            metadata_bytes(&new.catalog, (&new.digests, anchors), &new.stats.to_bytes(), before);
        // A catalog that no reader accepts is never written.
        Catalog::parse(&payload[..layout.catalog_len as usize]).map_err(refused)?;
        if let Some(difference) = &new.difference {
            payload = difference.bytes(layout.catalog_len, &payload).map_err(refused)?;
            layout.catalog_len = payload.len() as u64;
        }
        let extent = new.catalog.extents[new.catalog.extents.len() - 1];
        out.before_pieces(new.len, settings.sync)?;
        let of = metadata::write(payload, new.geometry, layout, &extent, settings, |at, piece| {
            out.put(at, piece)
        })?;
        out.behind_pieces(settings.sync)?;
        Ok((root, of))
    }

    /// Fails when coding read other bytes than comparing did.
    fn check_again(
        &self,
        catalog: &Catalog,
        expected: &HashMap<usize, Expected>,
        coded: &NewBlocks,
    ) -> Result<()> {
        let mut rotten = Vec::new();
        for (nth, expected) in expected {
            let entry = &catalog.entries[*nth];
            let EntryKind::File(file) = &entry.kind else { continue };
            let mut check = PlainHasher::new(HashKind::Blake3);
            let mut is_rotten = false;
            for run in &file.runs {
                for (at, value) in (0..run.count).filter_map(|at| Some((at, coded.get(run.start + at)?))) {
                    let digest = shortened(&value);
                    match expected.displaced.get(&(run.block + at)) {
                        // The block is unchanged, unless it rotted.
                        Some(was) => is_rotten |= *was != digest,
                        None => check.update(&digest),
                    }
                }
            }
            let found = check.finish();
            if expected.tail != coded.coded.tails[*nth] || expected.check.is_some_and(|sum| sum != found) {
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
    pub(super) fn is_same(&self, entries: &[Entry], stats: &Stats) -> bool {
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
            && old.stats.policy == stats.policy
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
                let settings = &self.context.settings;
                old.write_pieces(false, settings, |at, piece| file.write_all_at(piece, at).map_err(fail))?;
                if settings.sync {
                    fec_base::io::system::sync_data(&file).map_err(fail)?;
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
