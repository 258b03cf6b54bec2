//! Computes lost shards: originals from the intact shards of their sets, and recovery shards from the originals.
//!
//! A shard that is computed from intact shards but lacks its digest proves that the set is no codeword: the maker of
//! the sidecar erred. Hashing the sources again tells this from files that change meanwhile.

mod small;
mod wide;

use crate::Sidecar;
use crate::catalog::hashing::digest_of_file;
use crate::catalog::metadata::LOST;
use crate::catalog::positions::{Any, PositionReader, Positions, Span};
use crate::catalog::proved::{digest_at, proved};
use crate::catalog::wide::memory;
use crate::error::SidecarError;
use crate::examine::Examined;
use crate::examine::recovery::serving;
use fec_base::context::{Context, Gauge};
use fec_base::error::{Action, Error, ErrorKind, Result};
use fec_base::io::base::Base;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::group::{GroupCode, SidecarGroup};

/// Takes computed shards, each proved by its digest.
pub(crate) trait Sink {
    /// Takes the bytes of a position, over all groups.
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()>;

    /// Takes the bytes of the positions from `first` on, of `block` bytes each.
    fn positions(&mut self, first: u64, bytes: &[u8], block: u32) -> Result<()> {
        let mut each = (first..).zip(bytes.chunks_exact(block as usize));
        each.try_for_each(|(position, bytes)| self.position(position, bytes))
    }

    /// Takes recovery shard `shard` of a group.
    fn recovery(&mut self, group: usize, shard: u64, bytes: &[u8]) -> Result<()>;
}

/// Computes all erased shards of the sets in which anything is wanted.
pub(crate) struct Rebuild<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) positions: &'a Positions,
    pub(crate) examined: &'a Examined,
    pub(crate) context: &'a Context<'a>,
    pub(crate) meter: &'a Gauge<'a>,
}

/// The shards to compute.
pub(crate) struct Wants<'a> {
    /// Tells whether a lost position is wanted.
    pub(crate) position: &'a dyn Fn(u64) -> bool,
    /// True if lost recovery shards are wanted.
    pub(crate) recovery: bool,
    /// True if every set that can mend anything is computed in full, only to compare it with its digests.
    pub(crate) check: bool,
}

/// The group under work.
struct Group {
    nth: usize,
    of: SidecarGroup,
    /// The first position and the first recovery shard of the group, over all groups.
    first: u64,
    first_recovery: u64,
}

impl Rebuild<'_> {
    /// Hands all wanted shards to `sink`. A set that is no codeword hands over no wrong shard. The first such set is
    /// returned, since it means that the sidecar contradicts itself.
    ///
    /// Memory: at most half of what the settings allow, but no less than one set.
    ///
    /// # Errors
    /// [`ErrorKind::Changed`] when the bytes read differ from those examined, because somebody wrote to the files
    /// meanwhile. Those of the sink.
    pub(crate) fn run(&self, wants: &Wants<'_>, sink: &mut dyn Sink) -> Result<Option<SidecarError>> {
        let block = u64::from(self.sidecar.catalog.block);
        let need = self.sidecar.catalog.groups.iter().map(|of| match of.code {
            GroupCode::Small(code) => (code.k() + code.n()) as u64 * block,
            GroupCode::Wide(code) => memory(code, block),
        });
        let (need, most) = (need.max().unwrap_or(0), self.context.settings.max_memory);
        if need > most {
            return Err(Error::at(Action::Repair, self.sidecar.path(), ErrorKind::SetMemory { need, most }));
        }
        self.known(wants, sink)?;
        let serves = serving(self.sidecar, self.positions);
        let (mut first, mut first_recovery) = (0, 0);
        let mut contradiction = None;
        for (nth, of) in self.sidecar.catalog.groups.iter().enumerate() {
            let group = Group { nth, of: *of, first, first_recovery };
            let serves = |set: u64| serves.get(first_recovery + set);
            let is_wanted = self.wanted_sets(&group, wants, &serves);
            let found = match of.code {
                _ if !is_wanted.contains(&true) => None,
                GroupCode::Small(code) => self.small_sets((&group, code), &is_wanted, wants, sink)?,
                GroupCode::Wide(code) => self.wide_sets((&group, code), &is_wanted, wants, sink)?,
            };
            contradiction = contradiction.or(found);
            first += of.positions();
            first_recovery += of.recovery();
        }
        Ok(contradiction)
    }

    /// Hands over the wanted positions that are known without recovery shards.
    fn known(&self, wants: &Wants<'_>, sink: &mut dyn Sink) -> Result<()> {
        /// Bytes that are read and handed over at a time.
        const PIECE: u64 = 256 << 10;
        let block = u64::from(self.sidecar.catalog.block);
        let mut reader = self.reader();
        let mut bytes = vec![0; (PIECE / block).max(1) as usize * block as usize];
        let mut wanted = self.examined.known.ones().filter(|position| (wants.position)(*position)).peekable();
        while let Some(first) = wanted.next() {
            self.meter.check()?;
            let mut end = first + 1;
            while end < first + (bytes.len() as u64 / block) && wanted.next_if_eq(&end).is_some() {
                end += 1;
            }
            let bytes = &mut bytes[..((end - first) * block) as usize];
            let _ = reader.fill(first, bytes, |_, _| Ok::<(), ()>(()));
            // A file that has changed meanwhile gives nothing, and what needs it is not whole at the end.
            let mut position = first;
            for run in proved(self.sidecar, self.positions, first, bytes).chunk_by(|a, b| a == b) {
                let next = position + run.len() as u64;
                if run[0] {
                    let of_run = ((position - first) * block) as usize..((next - first) * block) as usize;
                    sink.positions(position, &bytes[of_run], self.sidecar.catalog.block)?;
                }
                position = next;
            }
        }
        Ok(())
    }

    /// Reads positions from where their bytes stand.
    fn reader(&self) -> PositionReader<'_> {
        PositionReader::new(self.base, &self.sidecar.catalog, self.positions, &Any).with(&self.examined.moved)
    }

    /// The sets of a group in which anything is wanted.
    fn wanted_sets(&self, group: &Group, wants: &Wants<'_>, serves: &dyn Fn(u64) -> bool) -> Vec<bool> {
        let sets = u64::from(group.of.sets);
        let mut is_wanted: Vec<bool> = (0..sets).map(|set| wants.check && serves(set)).collect();
        for index in 0..group.of.positions() {
            let position = group.first + index;
            if self.examined.erased.get(position) && (wants.position)(position) {
                is_wanted[group.of.original(index).0 as usize] = true;
            }
        }
        if wants.recovery {
            let erased = &self.examined.recovery_erased;
            let of_group = (0..group.of.recovery()).filter(|index| erased.get(group.first_recovery + index));
            of_group.for_each(|index| is_wanted[group.of.set_of_shard(index) as usize] = true);
        }
        is_wanted
    }

    /// Tells whether bytes have the digest of their position. A position that was lost for good has no digest.
    fn is_right(&self, position: u64, bytes: &[u8]) -> bool {
        let expected = self.sidecar.digest_of(position);
        expected == LOST || expected == digest_at(self.positions, position, bytes)
    }

    /// The meaning of a computed shard without its digest, perhaps at `needed`: the sidecar contradicts itself, unless
    /// an original has changed since it was found intact. `wrong` is the position of the first known one that has other
    /// bytes now, if there is one.
    fn verdict(&self, wrong: Option<u64>, needed: Option<u64>) -> Result<SidecarError> {
        let entries = &self.sidecar.catalog.entries;
        if let Some(position) = wrong {
            // The files are whole although a digest of their bytes is wrong: the sidecar contradicts itself.
            let spans = || self.positions.within(position..position + 1);
            let first = spans().next().filter(|_| spans().all(|span| self.is_right_file(&span)));
            return first
                .map(|span| SidecarError::Contradiction(entries[span.entry as usize].path.to_vec()))
                .ok_or_else(|| Error::at(Action::Repair, self.base.path(), ErrorKind::Changed));
        }
        let needs = needed.and_then(|position| self.positions.within(position..position + 1).next());
        Ok(SidecarError::NotACodeword(needs.map(|span| entries[span.entry as usize].path.to_vec())))
    }

    /// Tells whether the examination did not compare a position block by block: packed bytes, and files that stand
    /// elsewhere as a whole.
    fn is_unseen(&self, position: u64) -> bool {
        let block = u64::from(self.sidecar.catalog.block);
        let is_elsewhere =
            || self.examined.moved.within(position * block..(position + 1) * block).next().is_some();
        self.positions.whole_block(position).is_none() || is_elsewhere()
    }

    /// Tells whether the file behind a span has the digest of its entry: the entry's own file, or the source that all
    /// of it stands in.
    fn is_right_file(&self, span: &Span) -> bool {
        let entry = &self.sidecar.catalog.entries[span.entry as usize];
        let moved = &self.examined.moved;
        let elsewhere = moved.within(span.at..span.end()).next().filter(|part| !part.is_twin);
        let path = elsewhere.map_or(&entry.path, |part| &moved.sources[part.source as usize]);
        match &entry.kind {
            EntryKind::File(file) => {
                let block = self.sidecar.catalog.block.into();
                let digest = self.base.read(path).and_then(|found| digest_of_file(&found, file, block));
                digest.is_ok_and(|digest| digest == file.blake3)
            }
            _ => false,
        }
    }
}
