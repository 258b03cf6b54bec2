//! Lays out an updated sidecar, and chooses how the update goes on.

use super::compare::{Compare, Fate, file};
use super::difference::Payload;
use super::kept::{Kept, KeptGroup};
use super::leaving::Leaving;
use super::lives::Lives;
use super::place::{self, Expected, Placed, Tails};
use super::refill::{free, refill};
use super::updated::{Anew, NotRetired};
use super::updating::Update;
use crate::catalog::bits::Bits;
use crate::catalog::hashing::room_for_stack;
use crate::catalog::plan::{self, Apart, Content};
use crate::catalog::positions::{Positions, anchored};
use crate::error::SidecarError;
use crate::protect::content::Contents;
use crate::protect::sha256::make_room_for_sha256;
use crate::redundancy::Redundancy;
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::executor::lock;
use fec_core::format::sidecar::Entry;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::catalog::{Catalog, ShortDigest};
use fec_core::format::sidecar::extent::Extent;
use fec_core::format::sidecar::stack::Stack;
use fec_core::format::sidecar::stat::Stats;
use fec_core::params::GroupGeometry;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A sidecar may be a sixth longer than a new one before it is written again, or a sixteenth where files grow: what was
/// appended is a small part of one file, and gets no more recovery data than the rest,
const SLACK: u64 = 6;
const SLACK_OF_GROWING: u64 = 16;
/// and a short one as much as this: it keeps some generations.
const LEAST_SLACK: u64 = 128 << 10;
/// The most generations of a sidecar: each is read whenever it is opened.
const MOST_GENERATIONS: usize = 64;
/// A difference of more than an eighth of the metadata is not worth its dependence on a generation before.
const MOST_DIFFERENCE: u64 = 8;
/// Much has left where that is an eighth of what stays.
const MUCH: u64 = 8;
/// A group of what is left over, where positions of old ones were filled, may take a 64th of a new sidecar.
const LEFT_OVER: u64 = 64;
/// A group with up to an eighth of the bytes is small.
const SMALL: u64 = 8;

/// The way that an update goes on.
pub(super) enum Way {
    /// Nothing has changed.
    Nothing,
    /// The sidecar is made anew.
    Anew(Anew),
    /// New recovery shards and metadata go behind the old ones, or beside copies of them.
    Extend(Box<Extension>),
}

/// The layout of an updated sidecar.
pub(super) struct Extension {
    pub(super) catalog: Catalog,
    /// Digests of all old shards that are kept; those of new ones follow when they are coded.
    pub(super) digests: Vec<ShortDigest>,
    pub(super) stats: Stats,
    /// The geometry of the metadata.
    pub(super) geometry: GroupGeometry,
    /// The old groups that it keeps. New positions stand behind theirs.
    pub(super) kept: Kept,
    /// The number of new positions.
    pub(super) positions: u64,
    /// Hashes that coding must find again, by entry.
    pub(super) expected: HashMap<usize, Expected>,
    /// Positions of old groups that get what is new.
    pub(super) filled: Bits,
    /// For each group that is kept, whether its recovery shards are computed anew.
    pub(super) summed: Vec<bool>,
    /// Files that share the places of others.
    pub(super) twins: BTreeMap<usize, usize>,
    /// The difference that its pieces code, if these are not the whole metadata.
    pub(super) difference: Option<Payload>,
    /// True if the sidecar is written again, with copies of the recovery shards that are kept.
    pub(super) is_joined: bool,
    /// Bytes of the sidecar.
    pub(super) len: u64,
    /// Bytes of a sidecar that is made anew.
    pub(super) len_anew: u64,
}

impl Update<'_> {
    /// Lays out the updated sidecar, and chooses how the update goes on. `has_sha256` tells whether the old sidecar
    /// records SHA-256. The entries that were found move into the layout, unless the sidecar is made anew.
    pub(super) fn choose(&mut self, has_sha256: bool) -> Result<Way> {
        let old = self.old;
        if self.job.sha256 && !has_sha256 {
            return Ok(Way::Anew(Anew::Sha256));
        }
        if has_sha256 {
            let fates = &self.fates;
            make_room_for_sha256(&mut self.found.tree.entries, |nth| !matches!(fates[nth], Fate::Same(_)));
        }
        let content = self.content()?;
        self.found.stacks = self.stacks(&content);
        let stats = self.found.stats();
        if let Some(retired) = self.without_what_left(&content, &stats)? {
            return Ok(Way::Extend(Box::new(retired)));
        }
        let (mut placed, mut lives) = self.place(&content)?;
        // Nothing is made anew while bytes cannot be read: they would not be protected any more.
        let is_pinned = lives.groups.iter().any(|group| group.is_pinned);
        if !lives.weak.is_empty() {
            let why = Anew::Weak(lives.weak_sets);
            self.found.tree.entries = placed.entries;
            match self.join(&content, &lives, stats.clone())? {
                Some(joined) if joined.len <= too_long(joined.len_anew) => {
                    return Ok(Way::Extend(Box::new(joined)));
                }
                _ if is_pinned => (placed, lives) = self.place(&content)?,
                _ => return Ok(Way::Anew(why)),
            }
        }
        if placed.positions == 0 && self.is_same(&placed.entries, &stats) {
            return Ok(Way::Nothing);
        }
        if self.has_small_blocks(&placed.entries) && !is_pinned {
            self.found.tree.entries = placed.entries;
            return Ok(Way::Anew(Anew::SmallBlocks));
        }
        let appended = self.appended(placed, &content, &lives, stats)?;
        if appended.len <= self.longest(appended.len_anew) && old.generations_before() + 1 < MOST_GENERATIONS
        {
            return Ok(Way::Extend(Box::new(appended)));
        }
        self.found.tree.entries = appended.catalog.entries.clone();
        Ok(match self.join(&content, &lives, appended.stats.clone())? {
            Some(joined) if joined.len <= self.longest(joined.len_anew) => Way::Extend(Box::new(joined)),
            _ if is_pinned || appended.len <= too_long(appended.len_anew) => Way::Extend(Box::new(appended)),
            _ => Way::Anew(Anew::Long),
        })
    }

    /// The layout of a sidecar whose recovery shards are without what has left, if another folder has any of that.
    fn without_what_left(&mut self, content: &Content, stats: &Stats) -> Result<Option<Extension>> {
        self.sources = self.sources()?;
        if !self.sources.have_other() {
            return Ok(None);
        }
        let (placed, lives) = self.place_but(content, &[])?;
        self.leaving = Leaving::of(self.old, &self.sources, &lives.covered);
        let lives = Lives::of(self.old, &placed, &self.pinned(), self.leaving.as_ref());
        self.found.tree.entries = placed.entries;
        if self.leaving.is_none() {
            return Ok(None);
        }
        let joined = self.join(content, &lives, stats.clone())?;
        let is_much = |leaving: &Leaving| leaving.len * MUCH >= lives.all * u64::from(self.old.catalog.block);
        // The next update makes a sidecar anew that is too long since much has left. All stays protected until then.
        let is_short = |joined: &Extension, leaving: &Leaving| {
            joined.len <= too_long(joined.len_anew)
                || is_much(leaving) && joined.len <= self.end + self.end / SLACK
        };
        let is_right = |joined: &Extension| {
            let is_short = self.leaving.as_ref().is_some_and(|leaving| is_short(joined, leaving));
            is_short && !self.has_small_blocks(&joined.catalog.entries)
        };
        let retired = joined.filter(is_right);
        if retired.is_none() {
            self.leaving = None;
            lock(&self.notes.not_retired).get_or_insert(NotRetired::Much);
        }
        Ok(retired)
    }

    /// Tells whether the blocks are too small for the bytes of these files.
    fn has_small_blocks(&self, entries: &[Entry]) -> bool {
        let files_len = entries.iter().map(|entry| match &entry.kind {
            EntryKind::File(file) => file.size,
            _ => 0,
        });
        plan::block_len(files_len.sum()) > 2 * self.old.catalog.block
    }

    /// The layout of a sidecar that new recovery shards and metadata are appended to.
    fn appended(&self, placed: Placed, content: &Content, lives: &Lives, stats: Stats) -> Result<Extension> {
        let old = self.old;
        let mut digests = old.digests().to_vec();
        lives.mark_lost(old, self.leaving.as_ref(), &mut digests);
        let mut extension = self.extension((placed, Kept::all(old), digests), content, stats);
        extension.catalog.extents = old.catalog.extents.clone();
        extension.catalog.groups = old.catalog.groups.clone();
        self.fit(&mut extension, self.end)?;
        Ok(extension)
    }

    /// Lays out a sidecar with copies of the recovery shards of old groups that are neither weak nor small. The bytes
    /// of other groups get a new one, with what is new. `None` when that is more than a half of all: then the sidecar
    /// is better made anew. The entries that were found stay.
    fn join(&mut self, content: &Content, lives: &Lives, stats: Stats) -> Result<Option<Extension>> {
        let old = self.old;
        let merged = self.merged(lives);
        let (mut placed, mut lives) = self.place_but(content, &merged)?;
        let mut filled = Vec::new();
        if let Some(leaving) = &self.leaving {
            let ranges = Kept::ranges(old).into_iter().zip(&lives.groups);
            let kept: Vec<_> = ranges.filter(|(_, group)| group.left > 0).map(|(range, _)| range).collect();
            self.leaving = leaving.part(old, &lives.covered, &kept);
        }
        if let Some(leaving) = &self.leaving {
            let free = free(old, &lives, leaving);
            filled = refill(&mut placed, (old.catalog.positions(), old.catalog.block.into()), &free);
            lives = Lives::of(old, &placed, &self.pinned(), Some(leaving));
        }
        self.found.tree.entries = placed.entries.clone();
        let kept = Kept::living(old, |group| lives.groups[group].left > 0);
        if kept.groups.is_empty() || placed.positions * 2 > lives.all {
            return Ok(None);
        }
        kept.renumber(old, &mut placed.entries);
        let mut digests = old.digests().to_vec();
        lives.mark_lost(old, self.leaving.as_ref(), &mut digests);
        let digests = kept.digests(old, &digests);
        let mut extension = self.extension((placed, kept, digests), content, stats);
        extension.is_joined = true;
        extension.catalog.groups = extension.kept.groups(old);
        extension.filled = Bits::new(extension.kept.positions());
        let now = filled.into_iter().flatten().filter_map(|position| extension.kept.position(position));
        now.for_each(|position| extension.filled.set(position));
        extension.summed = self.summed(&extension);
        self.fit(&mut extension, 0)?;
        Ok(Some(extension))
    }

    /// Tells of each group that is kept whether something leaves it or comes to it.
    fn summed(&self, new: &Extension) -> Vec<bool> {
        let mut first = 0;
        let is_summed = |kept: &KeptGroup| {
            let group = &self.old.catalog.groups[kept.nth];
            let now = first..first + group.positions();
            first = now.end;
            let leaves = |leaving: &Leaving| kept.was.clone().any(|position| leaving.has(position));
            self.leaving.as_ref().is_some_and(leaves)
                || now.into_iter().any(|position| new.filled.has(position))
        };
        new.kept.groups.iter().map(is_summed).collect()
    }

    /// The positions of the groups whose bytes get a new group: weak ones, and small ones, of which all bytes can be
    /// read. A small group stays if it
    /// is larger than a third of all smaller ones and the new bytes together: a byte is moved each time that its group
    /// gets four times as large. Small ones are joined up to a half of all bytes.
    fn merged(&self, lives: &Lives) -> Vec<Range<u64>> {
        let mut small: Vec<(u64, Range<u64>)> = Vec::new();
        let mut merged = Vec::new();
        for (nth, range) in Kept::ranges(self.old).into_iter().enumerate() {
            let group = &lives.groups[nth];
            // Nothing is left of weak groups whose bytes have moved already, and they must not come back.
            if group.is_weak || group.left == 0 {
                merged.push(range);
            } else if group.left * SMALL <= lives.all && !group.is_pinned {
                small.push((group.left, range));
            }
        }
        small.sort_unstable_by_key(|(left, _)| *left);
        let mut sum = lives.new;
        let mut together = 0;
        for (nth, (left, _)) in small.iter().enumerate() {
            let is_much = (lives.in_weak + sum + left) * 2 > lives.all;
            if *left * 3 <= sum && !is_much {
                together = nth + 1;
            }
            sum += left;
        }
        merged.extend(small.into_iter().take(together).map(|(_, range)| range));
        merged.sort_unstable_by_key(|range| range.start);
        merged
    }

    /// A layout without extents and groups.
    fn extension(
        &self,
        (placed, kept, digests): (Placed, Kept, Vec<ShortDigest>),
        content: &Content,
        stats: Stats,
    ) -> Extension {
        let Placed { entries, positions, expected } = placed;
        let block = self.old.catalog.block;
        let catalog = Catalog { block, extents: Vec::new(), groups: Vec::new(), entries };
        let geometry = self.old.of.geometry;
        let (difference, is_joined, len, len_anew) = (None, false, 0, 0);
        let twins = content.twins.clone();
        Extension {
            catalog,
            digests,
            stats,
            geometry,
            kept,
            positions,
            expected,
            filled: Bits::default(),
            summed: Vec::new(),
            twins,
            difference,
            is_joined,
            len,
            len_anew,
        }
    }

    /// Adds the group of the new positions, and the last extent, which starts at `start`.
    fn fit(&self, extension: &mut Extension, start: u64) -> Result<()> {
        let Extension { catalog, kept, positions, stats, is_joined, len_anew, .. } = &mut *extension;
        let (positions, block) = (*positions, u64::from(catalog.block));
        let stats_len = stats.to_bytes().len() as u64;
        let all = Positions::of(catalog).len(0..kept.positions() + positions);
        let lives = all.div_ceil(block).max(positions);
        *len_anew = plan::len_anew(catalog, lives, self.redundancy(), stats_len).map_err(refused)?;
        // Groups that are kept stand in this extent only if their shards are copied into it.
        let copied = if *is_joined { catalog.groups.iter().map(|group| group.recovery()).sum() } else { 0 };
        let mut blocks = copied;
        if positions > 0 {
            // Half of the room goes to new files, which are likely to be lost whole.
            // Few positions behind those that were filled would be lost soonest.
            let least = if self.leaving.is_some() { *len_anew / LEFT_OVER } else { 0 };
            let left = (self.longest(*len_anew).saturating_sub(start + copied * block) / 2).max(least);
            let redundancy = match self.job.appends {
                true => self.redundancy().of_grown(positions),
                false => self.redundancy().of_few(positions, lives, left / block),
            };
            let (code, sets) = redundancy.shape(positions, block);
            let group = plan::group(code, sets, (catalog.extents.len() as u32, copied)).map_err(refused)?;
            blocks += group.recovery();
            catalog.groups.push(group);
        }
        catalog.extents.push(Extent { start, blocks, pieces: 2, piece_len: 0 });
        extension.geometry = plan::fit_pieces(catalog, stats_len).map_err(refused)?;
        if !extension.is_joined {
            self.fit_difference(extension)?;
        }
        let extent = &extension.catalog.extents[extension.catalog.extents.len() - 1];
        extension.len = extent.len(block).map_or(u64::MAX, |len| start.saturating_add(len));
        Ok(())
    }

    /// Lets the pieces code a difference, if that is much shorter than the metadata.
    fn fit_difference(&self, extension: &mut Extension) -> Result<()> {
        let Some((whole, metadata)) = self.old.whole(&self.context.settings)? else { return Ok(()) };
        let drafts = [0, 0xff].map(|fill| self.draft(extension, fill));
        let [(first, catalog_len), (second, _)] = &drafts;
        let payload = Payload::between((&whole, metadata), *catalog_len, [first, second]);
        if payload.len * MOST_DIFFERENCE > first.len() as u64 {
            return Ok(());
        }
        extension.geometry = plan::fit_difference(&mut extension.catalog, payload.len).map_err(refused)?;
        extension.difference = Some(payload);
        Ok(())
    }

    /// The metadata, with `fill` in place of all bytes that coding gives; and the bytes of the catalog.
    fn draft(&self, extension: &Extension, fill: u8) -> (Vec<u8>, u64) {
        let Extension { catalog, digests, stats, kept, filled, .. } = extension;
        let mut catalog = catalog.clone();
        if let Some(extent) = catalog.extents.last_mut() {
            (extent.pieces, extent.piece_len) =
                (u32::from_le_bytes([fill; 4]), u32::from_le_bytes([fill; 4]));
        }
        for (nth, entry) in catalog.entries.iter_mut().enumerate() {
            if let EntryKind::File(file) = &mut entry.kind
                && !matches!(self.fates[nth], Fate::Same(_))
            {
                file.blake3 = [fill; 32];
                file.sha256 = file.sha256.as_ref().map(|_| Box::new([fill; 32]));
            }
        }
        let mut digests = digests.clone();
        digests.resize(catalog.digests() as usize, [fill; 16]);
        let new = catalog.files().flat_map(|(_, file)| anchored(file, catalog.block.into()));
        let new = new.filter(|(_, position)| *position >= kept.positions());
        let mut new: Vec<(u64, u64)> =
            new.map(|(_, position)| (position, u64::from_le_bytes([fill; 8]))).collect();
        new.sort_unstable();
        let anchors = place::anchors(self.old, (kept, filled), &catalog, &new);
        let mut bytes = catalog.head_bytes();
        bytes.extend_from_slice(digests.as_flattened());
        anchors.iter().for_each(|anchor| bytes.extend_from_slice(&anchor.to_le_bytes()));
        let catalog_len = bytes.len() as u64;
        let mut stats = stats.clone();
        for stack in &mut stats.stacks {
            if matches!(self.fates[stack.entry as usize], Fate::New) {
                stack.values.fill([fill; 32]);
            }
        }
        bytes.extend_from_slice(&stats.to_bytes());
        (bytes, catalog_len)
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
        content.apart = found.apart(&found.tree.entries, old.catalog.block, self.job.appends);
        // A file that grew grows again, and takes the position of its tail with it.
        let grew = |(_, fate): &(usize, &Fate)| matches!(fate, Fate::Changed(_, read) if read.continues);
        content.apart.extend(fates.iter().enumerate().filter(grew).map(|(nth, _)| (nth, Apart::Alone)));
        Ok(content)
    }

    /// Assigns positions to all bytes. The living bytes of a few weak groups go to the new group. If there are many,
    /// these groups stay weak in the result.
    fn place(&mut self, content: &Content) -> Result<(Placed, Lives)> {
        let (placed, lives) = self.place_but(content, &[])?;
        if lives.weak.is_empty() || lives.in_weak * 8 > lives.all {
            return Ok((placed, lives));
        }
        self.found.tree.entries = placed.entries;
        self.place_but(content, &lives.weak)
    }

    /// Assigns positions to all bytes, none of them in the positions `merged`.
    fn place_but(&mut self, content: &Content, merged: &[Range<u64>]) -> Result<(Placed, Lives)> {
        let old = self.old;
        let places = (&self.found.base, &self.sources);
        let tails = Tails::of(old, places, &self.fates, &self.found.tree.entries, merged);
        let displaced = self.check_displaced(&tails)?;
        let entries = std::mem::take(&mut self.found.tree.entries);
        let placed = place::place(old, entries, &self.fates, &tails, (&displaced, content), merged);
        let lives = Lives::of(old, &placed, &self.pinned(), self.leaving.as_ref());
        Ok((placed, lives))
    }

    /// The stacks of files that have or get one; room for those that only coding knows.
    fn stacks(&self, content: &Content) -> Vec<Stack> {
        let (entries, appends) = (&self.found.tree.entries, self.job.appends);
        let stack = |(nth, fate): (usize, &Fate)| {
            let of = |values: &[Digest]| Stack { entry: nth as u32, values: values.to_vec() };
            match fate {
                Fate::Same(was) => self.old.stack_of(*was).map(of),
                Fate::Changed(was, read) => {
                    let is_kept = appends || self.old.stack_of(*was).is_some();
                    (is_kept && !read.stack.is_empty()).then(|| of(&read.stack))
                }
                Fate::New if appends && !content.twins.contains_key(&nth) => {
                    room_for_stack(nth, &entries[nth], self.old.catalog.block)
                }
                _ => None,
            }
        };
        self.fates.iter().enumerate().filter_map(stack).collect()
    }

    /// The positions of files that are protected as they were, since they cannot be read or are held.
    fn pinned(&self) -> Vec<Range<u64>> {
        let block = u64::from(self.old.catalog.block);
        let mut pinned = Vec::new();
        for (nth, fate) in self.fates.iter().enumerate() {
            if let Fate::Same(of) = fate
                && !self.found.tree.seen.has(nth)
            {
                let file = file(&self.old.catalog, *of);
                pinned.extend(file.runs.iter().map(|run| run.start..run.start + run.count));
                let tail = file.tail / block;
                pinned.extend((file.tail_len(block) > 0).then(|| tail..tail + 1));
            }
        }
        pinned
    }

    /// The most bytes of the sidecar, if a new one would have `len_anew`.
    fn longest(&self, len_anew: u64) -> u64 {
        let slack = if self.job.appends { SLACK_OF_GROWING } else { SLACK };
        len_anew + (len_anew / slack).max(len_anew.min(LEAST_SLACK))
    }

    /// The redundancy that was asked for, or that of the old sidecar: of the group with the most positions.
    pub(super) fn redundancy(&self) -> Redundancy {
        let groups = self.old.catalog.groups.iter().rev();
        let group = groups.max_by_key(|group| group.positions()).expect("a catalog has a group");
        self.job.redundancy.unwrap_or_else(|| Redundancy::of(group.code))
    }

    /// Compares unchanged files that are to be coded again with their records. Returns their tails.
    fn check_displaced(&self, tails: &Tails) -> Result<HashMap<usize, Option<Digest>>> {
        let Update { old, found, context, .. } = self;
        let (base, tree) = (&found.base, &found.tree);
        let checked = Compare { old, base, tree, appends: false, context }.check(&tails.displaced)?;
        let mut rotten = Vec::new();
        let mut displaced: HashMap<_, _> =
            tails.proved.iter().map(|(nth, tail)| (*nth, Some(*tail))).collect();
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
}

/// The bytes from which on a sidecar is too long, where groups that are kept have much that is gone.
fn too_long(len_anew: u64) -> u64 {
    len_anew + len_anew / 2
}

pub(super) fn refused(e: FormatError) -> Error {
    Error::new(Action::Update, ErrorKind::Format(e))
}
