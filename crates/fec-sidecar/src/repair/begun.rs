//! Finds the files that an interrupted repair has half mended: its list names them, and their bytes must agree.
//!
//! A file counts if it has its recorded size and was changed after the list. Each damaged piece of it must be as the
//! list has it, or as the repair would have written it, which is computed. An edit made since the repair therefore
//! shows. A list forged after an edit is younger than the edit and proves nothing.

use crate::Sidecar;
use crate::catalog::fingerprint::fingerprint_of_stat;
use crate::catalog::hashing::Padded;
use crate::catalog::journal::{Closed, Journal, Lines, List, PieceDigest, Pieces, piece_digest};
use crate::catalog::permissions::umask;
use crate::catalog::positions::{Positions, Span};
use crate::error::SidecarError;
use crate::examine::rebuild::{Rebuild, Sink, Wants};
use crate::examine::{Cause, Examined};
use crate::repair::actions::EntryAction;
use fec_base::context::Context;
use fec_base::error::{Action, Error, Result};
use fec_base::io::ReadAt;
use fec_base::io::base::{self, Base, file_type};
use fec_core::format::sidecar::{EntryKind, FileEntry};
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, ErrorKind as IoKind};
use std::ops::Range;

/// The position of blocks that have none, since they are zeros.
const NOWHERE: u64 = u64::MAX;

/// A file that the list names.
struct Claim {
    look: u64,
    /// Positions with pieces that differ from the list, not yet compared with the right bytes.
    torn: HashSet<u64>,
}

/// The damage that was found, and the files that have it.
pub(crate) struct Begun<'a> {
    pub(crate) sidecar: &'a Sidecar,
    pub(crate) base: &'a Base,
    pub(crate) positions: &'a Positions,
    pub(crate) found: &'a Examined,
}

impl Begun<'_> {
    /// Finds the files that an interrupted repair has half mended, and notes them in `journal`.
    ///
    /// # Errors
    /// Those of the base.
    pub(crate) fn bear_out(&self, journal: &mut Journal, context: &Context<'_>) -> Result<()> {
        let mut claims: BTreeMap<u32, Claim> = BTreeMap::new();
        let mut torn: HashSet<u64> = HashSet::new();
        let list = std::mem::take(&mut journal.list);
        let closed = list.closed.keys().map(|(entry, _)| entry);
        for entry in list.files.keys().chain(&list.made).chain(closed) {
            if let Some(unseen) = self.unseen(*entry) {
                journal.unseen.insert(*entry, unseen.map(|stat| journal.is_older_than(&stat)));
            }
        }
        for (nth, pieces) in &list.files {
            let Some((file, stat)) = self.as_long_as_it_was(*nth)? else { continue };
            let odd = self.odd_positions(*nth, &file, pieces, journal.piece);
            if odd.is_empty() {
                journal.listed.insert(*nth);
            }
            if journal.is_older_than(&stat) {
                torn.extend(&odd);
                claims.insert(*nth as u32, Claim { look: fingerprint_of_stat(&stat), torn: odd });
            }
        }
        if !torn.is_empty() {
            let meter = context.silent().meter(Action::Repair, None);
            let mut compare = Compare { of: self, list: &list, claims, piece: journal.piece, open: None };
            let rebuild = Rebuild {
                sidecar: self.sidecar,
                base: self.base,
                positions: self.positions,
                examined: self.found,
                context,
                meter: &meter,
            };
            // A block that cannot be computed proves nothing, so its file does not count.
            let wants =
                Wants { position: &|position| torn.contains(&position), recovery: false, check: false };
            let _ = rebuild.run(&wants, &mut compare);
            claims = compare.claims;
        }
        journal.list = list;
        for (nth, claim) in claims.into_iter().filter(|(_, claim)| claim.torn.is_empty()) {
            journal.listed.insert(nth as usize);
            journal.own.insert(nth as usize, claim.look);
        }
        Ok(())
    }

    /// The stat, if there is one, of an entry that the system does not let be looked at. `None`: the entry can be
    /// looked at, is gone, or is no regular file.
    fn unseen(&self, nth: usize) -> Option<Option<Stat>> {
        let entry = self.sidecar.catalog.entries.get(nth)?;
        let stat = self.base.stat(&entry.path);
        let looked = match entry.kind {
            EntryKind::File(_) => self.base.read(&entry.path).map(|_| ()),
            _ => stat.as_ref().map(|_| ()).map_err(|e| Cause::from(e).into()),
        };
        let is_unseen = looked.is_err_and(|e| !is_gone(&e));
        // Opening fails in its own way for sockets and devices.
        let is_other = |stat: &Stat| {
            matches!(entry.kind, EntryKind::File(_)) && file_type(stat) != FileType::RegularFile
        };
        (is_unseen && !stat.as_ref().is_ok_and(is_other)).then_some(stat.ok())
    }

    /// The regular file of an entry, if it has its recorded size.
    fn as_long_as_it_was(&self, nth: usize) -> Result<Option<(File, Stat)>> {
        let Some(entry) = self.sidecar.catalog.entries.get(nth) else { return Ok(None) };
        let EntryKind::File(of) = &entry.kind else { return Ok(None) };
        // A file that cannot be opened cannot be mended in place either.
        let Ok(file) = self.base.read(&entry.path) else { return Ok(None) };
        let stat = rustix::fs::fstat(&file);
        let stat =
            stat.map_err(|e| Error::io(Action::Read, self.base.place(&entry.path).as_path(), e.into()))?;
        // The integer type differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let size = stat.st_size as u64;
        Ok((size == of.size).then_some((file, stat)))
    }

    /// The damaged positions of a file where a piece differs from the list.
    fn odd_positions(&self, nth: usize, file: &File, pieces: &Pieces, piece: u64) -> HashSet<u64> {
        let block = u64::from(self.sidecar.catalog.block);
        let is_as_it_was =
            |(offset, digest): &(u64, Option<PieceDigest>)| digest.is_some() && pieces.at(*offset) == *digest;
        // A block without a position is mended where it is zeros.
        let zeros = piece_digest(&vec![0; piece as usize]);
        let nowhere: HashSet<u64> =
            self.damaged(nth).filter(|(at, _)| *at == NOWHERE).map(|(_, range)| range.start).collect();
        let is_mended = |(offset, digest): &(u64, Option<PieceDigest>)| {
            *digest == Some(zeros) && nowhere.contains(&(offset / block * block))
        };
        let odd =
            self.damaged_pieces(nth, file, piece).filter(|piece| !is_as_it_was(piece) && !is_mended(piece));
        let odd: HashSet<u64> = odd.map(|(offset, _)| offset / block).collect();
        let damaged = self.damaged(nth).filter(|(_, range)| odd.contains(&(range.start / block)));
        damaged.map(|(position, _)| position).collect()
    }

    /// The damaged pieces of a file, in order. Neighbours are read together.
    fn damaged_pieces<'f>(
        &self,
        nth: usize,
        file: &'f File,
        piece: u64,
    ) -> impl Iterator<Item = (u64, Option<PieceDigest>)> + use<'_, 'f> {
        let mut ranges = self.damaged(nth).map(|(_, range)| range).peekable();
        let mut runs = std::iter::from_fn(move || {
            let mut run = ranges.next()?;
            while let Some(next) =
                ranges.next_if(|next| next.start == run.end && run.end - run.start < TOGETHER)
            {
                run.end = next.end;
            }
            Some(run)
        });
        std::iter::from_fn(move || runs.next()).flat_map(move |run| pieces_of(file, run, piece))
    }

    /// The damaged positions of a file, each with its byte range in the file, in order.
    fn damaged(&self, nth: usize) -> impl Iterator<Item = (u64, Range<u64>)> {
        let block = u64::from(self.sidecar.catalog.block);
        let of = match &self.sidecar.catalog.entries[nth].kind {
            EntryKind::File(of) => Some(of),
            _ => None,
        };
        let moved = &self.found.moved;
        let is_moved =
            move |position: u64| moved.within(position * block..(position + 1) * block).next().is_some();
        let is_damaged =
            move |position: u64| position == NOWHERE || self.found.erased.get(position) || is_moved(position);
        let whole = of.map_or(0, |of| FileEntry::whole_blocks(of.size, block));
        let runs = of.iter().flat_map(|of| &of.runs).map(|run| (run.block..run.block + run.count, run.start));
        let no_zeros = self.found.report(nth).into_iter().flat_map(|report| &report.no_zeros);
        let mut runs: Vec<_> = runs.chain(no_zeros.map(|range| (range.clone(), NOWHERE))).collect();
        runs.sort_unstable_by_key(|(blocks, _)| blocks.start);
        let blocks = runs.into_iter().flat_map(move |(blocks, start)| {
            let position = move |n| if start == NOWHERE { NOWHERE } else { start + n };
            (blocks.clone()).map(move |n| (position(n - blocks.start), n * block..(n + 1) * block))
        });
        let tail = of.filter(|of| of.tail_len(block) > 0);
        let tail = tail.map(|of| (of.tail / block, whole * block..of.size));
        blocks.chain(tail).filter(move |(position, _)| is_damaged(*position))
    }

    /// Fails if [`Begun::begin`] could not write a list: something else is in its place, or an entry of an old list
    /// cannot be looked at.
    ///
    /// # Errors
    /// [`ErrorKind::NotOwn`](fec_base::ErrorKind::NotOwn); [`SidecarError::MayBeBegun`].
    pub(crate) fn check(
        &self,
        journal: &mut Journal,
        actions: &[EntryAction],
        (made, closed): (&HashSet<usize>, &Closed),
    ) -> Result<()> {
        journal.check_place()?;
        match journal.has(mended(actions), made, closed) {
            true => Ok(()),
            false => journal.look_again(self.sidecar, self.base),
        }
    }

    /// Writes the list of everything that the actions are about to write to, unless the list that was found has all of
    /// it. Entries of that list that could not be looked at or cannot be mended now stay in the list.
    ///
    /// # Errors
    /// Those of the base, and of the list.
    pub(crate) fn begin(
        &self,
        journal: &mut Journal,
        actions: &[EntryAction],
        (made, closed): (&HashSet<usize>, &Closed),
    ) -> Result<()> {
        let files: HashSet<usize> = mended(actions).collect();
        if journal.has(files.iter().copied(), made, closed) {
            return Ok(());
        }
        let (old_files, old_made) = journal.carried(&files, made);
        let piece = journal.piece;
        let mut lines = Lines::default();
        made.iter().chain(&old_made).for_each(|entry| lines.add_made(*entry));
        let unseen = |key: &(usize, usize)| journal.unseen.contains_key(&key.0) && !closed.contains_key(key);
        let old_closed = journal.list.closed.iter().filter(|(key, _)| unseen(key));
        closed.iter().chain(old_closed).for_each(|(key, mode)| lines.add_closed(*key, *mode));
        for nth in &old_files {
            lines.add_file(*nth, journal.list.files[nth].0.iter().copied(), piece);
        }
        for nth in actions.iter().enumerate().filter(|(nth, _)| files.contains(nth)).map(|(nth, _)| nth) {
            let path = &self.sidecar.catalog.entries[nth].path;
            let file = self.base.read(path);
            let file = file.map_err(|e| Error::io(Action::Read, self.base.place(path).as_path(), e))?;
            let pieces = self.damaged_pieces(nth, &file, piece);
            lines.add_file(nth, pieces.filter_map(|(offset, digest)| Some((offset, digest?))), piece);
        }
        journal.begin(lines)?;
        journal.take_over(self.sidecar, self.base);
        Ok(())
    }
}

/// The entries that are mended in place.
fn mended(actions: &[EntryAction]) -> impl Iterator<Item = usize> {
    actions.iter().enumerate().filter(|(_, action)| **action == EntryAction::Mend).map(|(nth, _)| nth)
}

/// Tells whether an error says that no file, folder or link of an entry is there.
fn is_gone(error: &io::Error) -> bool {
    const GONE: [IoKind; 3] = [IoKind::NotFound, IoKind::NotADirectory, IoKind::InvalidInput];
    GONE.contains(&error.kind()) || error.raw_os_error() == Some(libc::ELOOP)
}

/// Bytes that are read at a time.
const TOGETHER: u64 = 128 << 10;

/// The pieces in a range of a file that begins at a piece, each with its offset and digest. A piece that cannot be read
/// has no digest.
fn pieces_of(file: &File, range: Range<u64>, piece: u64) -> impl Iterator<Item = (u64, Option<PieceDigest>)> {
    let step = (TOGETHER / piece).max(1) * piece;
    range.clone().step_by(step as usize).flat_map(move |start| {
        let mut bytes = vec![0; (range.end - start).min(step) as usize];
        let is_read = Padded(file).read_exact_at(start, &mut bytes).is_ok();
        let pieces = (start..).step_by(piece as usize).zip(bytes.chunks_mut(piece as usize));
        let digests = pieces.map(|(offset, bytes)| {
            // A piece that cannot be read keeps no other from being read.
            let is_read = is_read || Padded(file).read_exact_at(offset, bytes).is_ok();
            (offset, is_read.then(|| piece_digest(bytes)))
        });
        digests.collect::<Vec<_>>()
    })
}

/// Compares torn pieces with the computed bytes.
struct Compare<'a> {
    of: &'a Begun<'a>,
    list: &'a List,
    claims: BTreeMap<u32, Claim>,
    piece: u64,
    /// The file that was read last.
    open: Option<(u32, File)>,
}

impl Compare<'_> {
    /// The bytes that a file has in a span; `None` if they cannot be read.
    fn now(&mut self, span: &Span) -> Option<Vec<u8>> {
        if self.open.as_ref().is_none_or(|(entry, _)| *entry != span.entry) {
            let path = &self.of.sidecar.catalog.entries[span.entry as usize].path;
            self.open = self.of.base.read(path).ok().map(|file| (span.entry, file));
        }
        let mut now = vec![0; span.len as usize];
        let (_, file) = self.open.as_ref()?;
        file.read_exact_at(span.offset, &mut now).ok().map(|()| now)
    }

    /// Tells whether each piece of a span is either as the list has it or right.
    fn is_borne_out(&mut self, span: &Span, right: &[u8]) -> bool {
        let Some(listed) = self.list.files.get(&(span.entry as usize)) else { return false };
        let Some(now) = self.now(span) else { return false };
        let piece = self.piece as usize;
        let mut pieces = (span.offset..).step_by(piece).zip(now.chunks(piece).zip(right.chunks(piece)));
        pieces.all(|(offset, (now, right))| {
            now == right || listed.at(offset).is_some_and(|digest| digest == piece_digest(now))
        })
    }
}

impl Sink for Compare<'_> {
    fn position(&mut self, position: u64, bytes: &[u8]) -> Result<()> {
        let spans: Vec<Span> = self.of.positions.within(position..position + 1).collect();
        let base = position * bytes.len() as u64;
        for span in spans {
            let right = &bytes[(span.at - base) as usize..][..span.len as usize];
            if self.claims.contains_key(&span.entry)
                && self.is_borne_out(&span, right)
                && let Some(claim) = self.claims.get_mut(&span.entry)
            {
                claim.torn.remove(&position);
            }
        }
        Ok(())
    }

    fn recovery(&mut self, _group: usize, _shard: u64, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Journal {
    /// Tells whether an interrupted repair has half mended a file that nobody has written to since [`Begun::bear_out`]
    /// saw it.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn has_begun(&self, entry: usize, base: &Base, path: &[u8]) -> Result<bool> {
        if !self.own.contains_key(&entry) {
            return Ok(false);
        }
        match base.stat(path) {
            Ok(stat) => Ok(self.is_own(entry, &stat)),
            Err(e) if is_gone(&e) => Ok(false),
            Err(e) => Err(Error::io(Action::Read, base.place(path).as_path(), e)),
        }
    }

    /// Tells whether a half-mended file still looks as [`Begun::bear_out`] saw it.
    pub(crate) fn is_own(&self, entry: usize, stat: &Stat) -> bool {
        self.own.get(&entry).is_some_and(|look| *look == fingerprint_of_stat(stat))
    }

    /// Tells whether an interrupted repair made a folder or a symbolic link, which may not have its time and
    /// permissions yet. The entry must have changed after the list. A folder must have its recorded permissions, or
    /// those it was made with.
    pub(crate) fn has_made(&self, entry: usize, sidecar: &Sidecar, base: &Base) -> bool {
        let Ok(stat) = base.stat(&sidecar.catalog.entries[entry].path) else { return false };
        let umask = umask();
        let restored = sidecar.permissions(entry, umask);
        // The integer type differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let now = stat.st_mode as u32 & 0o7777;
        let is_as_made = || now == restored || now == (restored | 0o700) & !umask;
        self.list.made.contains(&entry)
            && self.is_older_than(&stat)
            && (file_type(&stat) != FileType::Directory || is_as_made())
    }

    /// Gives half-mended files their recorded time back: they count as rotten again, and need no list.
    pub(crate) fn give_times_back(&mut self, sidecar: &Sidecar, base: &Base) {
        let own = std::mem::take(&mut self.own);
        for (entry, look) in own {
            let recorded = sidecar.stats.entries[entry];
            let given = base.read(&sidecar.catalog.entries[entry].path).and_then(|file| {
                if fingerprint_of_stat(&rustix::fs::fstat(&file)?) != look {
                    return Err(IoKind::Other.into());
                }
                // Somebody with the right to write to a file may lack the right to set its time.
                let _ = base::set_modified(&file, recorded.seconds, recorded.nanos);
                Ok(fingerprint_of_stat(&rustix::fs::fstat(&file)?))
            });
            // A file that somebody has since written to or replaced is theirs.
            self.own.extend(given.ok().map(|look| (entry, look)));
        }
    }

    /// Fails while an entry of the list has no stat: whether it was changed later than the list, nobody knows, and
    /// [`Journal::take_over`] cannot touch it. Once it can be looked at, a new list would be later than its mending.
    fn look_again(&mut self, sidecar: &Sidecar, base: &Base) -> Result<()> {
        let blind = self.unseen.iter().filter(|(_, is_later)| is_later.is_none()).map(|(entry, _)| *entry);
        for entry in blind.collect::<Vec<_>>() {
            let path = &sidecar.catalog.entries[entry].path;
            let is_later = match base.stat(path) {
                Ok(stat) => self.is_older_than(&stat),
                Err(e) if is_gone(&e) => false,
                Err(e) => {
                    let (place, list) = (base.place(path), self.path.clone());
                    let cause = SidecarError::MayBeBegun { cause: e, list };
                    return Err(Error::at(Action::Repair, place.as_path(), cause));
                }
            };
            self.unseen.insert(entry, Some(is_later));
        }
        Ok(())
    }

    /// Touches everything that the old list proved, so that it is younger than a new list.
    pub(crate) fn take_over(&mut self, sidecar: &Sidecar, base: &Base) {
        self.give_times_back(sidecar, base);
        let unseen =
            self.unseen.iter().filter(|(_, is_later)| **is_later == Some(true)).map(|(entry, _)| entry);
        for entry in self.list.made.iter().chain(unseen) {
            let holder = sidecar.catalog.entries.get(*entry).map(|of| base.holder(&of.path));
            if let Some(Ok(holder)) = holder
                && let Ok(stat) = holder.stat()
            {
                // The integer types differ between systems.
                #[allow(clippy::unnecessary_cast)]
                let _ = holder.set_modified(stat.st_mtime as i64, stat.st_mtime_nsec as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests;
