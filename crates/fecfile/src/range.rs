//! Restores a part of the payload, and reads only the shards that the part needs.
//!
//! An original whose own path proves it is payload, so intact originals cost only their own bytes and proofs, and those
//! with outlines only the leaves that hold the part. If an original that the part touches is lost, k shards of its set
//! are read, and the set is decoded.

use crate::archive::Archive;
use crate::error::{Action, EncodingError, Error, Result, WriteFailure};
use crate::forms::encoded::{Encoded, Load};
use crate::groups::{GroupEntry, Groups};
use crate::losses;
use crate::report::{Outcome, Restored};
use crate::restore::Put;
use crate::seal::open::{End, Extent, Opener, Opening, Unsealed};
use crate::sets::{SetEntry, untrue};
use fec_base::context::Context;
use fec_base::io::output::{Destination, FileOut};
use fec_base::io::spool::Spool;
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Observed, Stage};
use fec_base::ranges::ByteRange;
use fec_base::threads::{Threads, share};
use fec_core::executor::{Executor, into_value, lock};
use fec_core::format::outline::LEAF;
use fec_core::format::seal::CHUNK;
use fec_core::set::{PlanCache, Reading, Run, SetDecoder, SetError};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Mutex;

/// A wanted range of payload bytes; the end may be left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadRange {
    /// The first byte.
    pub start: u64,
    /// The byte behind the last; `None` for the end of the payload.
    pub end: Option<u64>,
}

impl PayloadRange {
    /// The whole payload.
    pub const ALL: PayloadRange = PayloadRange { start: 0, end: None };

    /// The range within a payload of this length.
    pub fn of(self, len: u64) -> Result<Range<u64>> {
        let end = self.end.unwrap_or(len);
        if self.start > end || end > len {
            return Err(Error::new(Action::Decode, EncodingError::OutOfPayload(len)));
        }
        Ok(self.start..end)
    }
}

impl Archive {
    /// Restores a range of the payload: to a file, which appears when the whole range is proved, or through a temporary
    /// file to a writer.
    ///
    /// # Errors
    /// [`OutOfPayload`](EncodingError::OutOfPayload), and as [`Archive::restore`]: [`Lost`](EncodingError::Lost) when
    /// not all of the range can be restored.
    pub fn restore_range(
        &self,
        range: PayloadRange,
        opener: Option<&Opener>,
        destination: Destination<'_>,
        context: &Context<'_>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        self.check_seal(&encoded)?;
        let wanted = PayloadPart::new(range, opener, encoded.extent())?;
        let get = |put: &Put<'_>| part(&encoded, self.plans(), &wanted.encoded, put, context);
        let outcome = match destination {
            Destination::File(path, policy) => {
                remove_stale(parent(path), context.progress);
                let out = FileOut::create(path, policy)?;
                let outcome = get(&|offset, part| out.put(offset, part))?;
                if outcome.is_whole() {
                    wanted.open(out.file(), context, &|e| out.failure(e))?;
                    let _stage = stages::enter(Stage::Write, 0);
                    out.commit(wanted.part_len())?;
                }
                outcome
            }
            Destination::Writer(out, place) => {
                let spool = Spool::new()?;
                let outcome = get(&|offset, part| spool.put(offset, part))?;
                if outcome.is_whole() {
                    wanted.copy(&spool, out, &|e| Error::io(Action::Write, place.clone(), e))?;
                }
                outcome
            }
        };
        let written = outcome.is_whole();
        let bytes = &wanted.bytes;
        let part = Some(ByteRange { start: bytes.start, end: bytes.end });
        let opened = opener.filter(|_| written).map(|_| wanted.part_len());
        let restored = Restored { part, opened, ..self.restored(&encoded, outcome, written)? };
        self.part_of(restored)
    }

    /// The result, if the whole part was restored; losses elsewhere in the payload do not matter.
    pub(crate) fn part_of(&self, restored: Restored) -> Result<Restored> {
        match restored.written {
            true => Ok(restored),
            false => {
                Err(Error::at(Action::Decode, self.place.clone(), EncodingError::Lost(Box::new(restored))))
            }
        }
    }
}

/// A part of a payload, and how it is opened.
pub struct PayloadPart<'a> {
    /// Bytes of the payload.
    pub bytes: Range<u64>,
    /// Bytes of the encoded payload: if it is sealed, the chunks that hold any of `bytes`.
    pub encoded: Range<u64>,
    extent: Extent,
    opener: Option<&'a Opener>,
}

impl<'a> PayloadPart<'a> {
    /// The part for a range of the payload, which is encoded as `extent`.
    ///
    /// # Errors
    /// [`OutOfPayload`](EncodingError::OutOfPayload); [`SealError::Length`](crate::seal::SealError::Length).
    pub fn new(range: PayloadRange, opener: Option<&'a Opener>, extent: Extent) -> Result<PayloadPart<'a>> {
        let encoded_len = extent.sealed_len;
        let bytes = range.of(opener.map_or(Ok(encoded_len), |opener| opener.opened_len(extent))?)?;
        let encoded = match opener {
            None => bytes.clone(),
            Some(_) => Opener::sealed_range(&bytes, encoded_len),
        };
        Ok(PayloadPart { bytes, encoded, extent, opener })
    }

    /// The number of bytes in the part.
    pub fn part_len(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Opens a sealed part in place, in a file that holds it from byte 0 on.
    ///
    /// # Errors
    /// [`SealError::Chunk`](crate::seal::SealError::Chunk); those of the file by `fail`.
    pub fn open(&self, file: &File, context: &Context<'_>, fail: &WriteFailure<'_>) -> Result<()> {
        let Some(opener) = self.opener else { return Ok(()) };
        let threads = Threads(context.settings.threads);
        opener.open_file(file, (self.extent, &self.bytes), false, threads, fail)
    }

    /// Writes the part from a temporary file, opened.
    ///
    /// # Errors
    /// [`SealError::Chunk`](crate::seal::SealError::Chunk); those of the file, and of `out` by `fail`.
    pub fn copy(&self, spool: &Spool, out: &mut dyn Write, fail: &WriteFailure<'_>) -> Result<()> {
        if self.encoded.is_empty() {
            // An empty part behind the last chunk has nothing to open.
            return Ok(());
        }
        let mut cut = self.cut(out);
        let mut opened = self.unsealed(&mut cut);
        let encoded_len = self.encoded.end - self.encoded.start;
        opened.release(self.end(), &mut |to| spool.copy_to(encoded_len, to, fail), fail)
    }

    /// The end of the part.
    pub(crate) fn end(&self) -> End {
        let is_last = self.encoded.end == self.extent.sealed_len && !self.extent.is_cut;
        if is_last { End::Payload } else { End::Part }
    }

    /// A writer that passes on the part alone, of the chunks that hold any of it.
    pub(crate) fn cut<'o>(&self, out: &'o mut dyn Write) -> Cut<'o> {
        let in_chunk = if self.opener.is_some() { self.bytes.start % CHUNK as u64 } else { 0 };
        Cut { out, skip: in_chunk, left: self.part_len() }
    }

    /// A writer that opens the part from front to back.
    pub(crate) fn unsealed<'o>(&'o self, out: &'o mut Cut<'_>) -> Unsealed<'o> {
        Unsealed::new(self.opener, out, Opening::from_chunk(self.bytes.start / CHUNK as u64))
    }
}

/// A writer that passes on only a part of its bytes.
pub(crate) struct Cut<'a> {
    out: &'a mut dyn Write,
    /// Bytes in front that are still to be skipped.
    skip: u64,
    /// Bytes that are still to be passed on.
    left: u64,
}

impl Write for Cut<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skip = self.skip.min(bytes.len() as u64) as usize;
        self.skip -= skip as u64;
        let take = self.left.min((bytes.len() - skip) as u64) as usize;
        self.out.write_all(&bytes[skip..skip + take])?;
        self.left -= take as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Restores these bytes; `put` gets each piece with its position in the part.
pub fn part(
    encoded: &Encoded<'_>,
    plans: &PlanCache,
    bytes: &Range<u64>,
    put: &Put<'_>,
    context: &Context<'_>,
) -> Result<Outcome> {
    encoded.check_memory(&context.settings)?;
    let largest = encoded.shape();
    let sets = touched_sets(&encoded.groups, bytes);
    let decoder_bytes = SetDecoder::payload_bytes(largest);
    let settings = &context.settings;
    let (workers, inner) = share(settings.threads, sets.count, decoder_bytes, settings.max_memory);
    let part = Part { plans, encoded, bytes, put, inner };
    let queue = Mutex::new(sets);
    let total: Mutex<Result<Outcome>> = Mutex::new(Ok(Outcome::default()));
    Threads(workers).run(workers, &|_| {
        let mut decoder = SetDecoder::for_payload(largest);
        loop {
            let Some(set) = lock(&queue).next() else { break };
            let mut outcome = Outcome::default();
            let result =
                context.check(Action::Decode).and_then(|()| part.set(&set, &mut decoder, &mut outcome));
            let mut total = lock(&total);
            match (&mut *total, result) {
                (Ok(sum), Ok(())) => sum.absorb(outcome),
                (Ok(_), Err(error)) => *total = Err(error),
                (Err(_), _) => break,
            }
        }
    });
    let mut outcome = into_value(total)?;
    let losses = std::mem::take(&mut outcome.losses);
    outcome.lost_sets += losses.sets();
    let (lost, by_path) = losses.payload(&encoded.groups);
    outcome.lost.absorb(&lost);
    outcome.by_path.absorb(&by_path);
    Ok(outcome)
}

/// The workers' shared state.
struct Part<'a> {
    plans: &'a PlanCache,
    encoded: &'a Encoded<'a>,
    bytes: &'a Range<u64>,
    put: &'a (dyn Fn(u64, &[u8]) -> Result<()> + Sync),
    inner: Threads,
}

impl Part<'_> {
    fn set(&self, set: &SetEntry, decoder: &mut SetDecoder, outcome: &mut Outcome) -> Result<()> {
        let (geometry, tree) = (&set.group.geometry, &set.group.tree);
        let records = self.encoded.records.as_ref();
        let touched = self.touched(set);
        if let Some(parts) = self.by_leaves(set, &touched) {
            for (at, part) in parts {
                self.put(at, &part, outcome)?;
            }
            outcome.proved_sets += 1;
            return Ok(());
        }
        let mut reading = decoder.begin(geometry, tree, set.set);
        let wanted: Vec<u32> = touched.iter().map(|(index, ..)| *index).collect();
        records.load(geometry.number(), set.set, &wanted, &mut reading);
        if wanted.iter().any(|index| !reading.is_intact(*index)) {
            return self.decode(set, reading, &touched, outcome);
        }
        let rows = touched.iter().map(|(index, at, len)| {
            let row = reading.row(*index).expect("it is intact");
            (*at, *len, row)
        });
        self.put_all(set, rows, outcome)
    }

    /// The wanted bytes of a set, each piece with its position in the payload, if they are a small part of their
    /// originals and outlines prove them.
    fn by_leaves(&self, set: &SetEntry, touched: &[(u32, u64, usize)]) -> Option<Vec<(u64, Vec<u8>)>> {
        let shard_len = set.group.geometry.shape().shard_len;
        let wanted = |(_, at, len): &(u32, u64, usize)| {
            let (from, to) = (self.bytes.start.max(*at), self.bytes.end.min(at + *len as u64));
            (from - at) as usize..(to - at) as usize
        };
        let is_small = |of: &(u32, u64, usize)| wanted(of).len() + 2 * LEAF <= shard_len / 2;
        if !touched.iter().all(is_small) {
            return None;
        }
        let records = self.encoded.records.as_ref();
        let part = |of: &(u32, u64, usize)| {
            let bytes = wanted(of);
            let part = records.load_part(&set.group, set.set, of.0, &bytes)?;
            Some((of.1 + bytes.start as u64, part))
        };
        touched.iter().map(part).collect()
    }

    /// Decodes a set in which a wanted original is lost.
    fn decode(
        &self,
        set: &SetEntry,
        mut reading: Reading<'_>,
        touched: &[(u32, u64, usize)],
        outcome: &mut Outcome,
    ) -> Result<()> {
        let (geometry, tree) = (&set.group.geometry, &set.group.tree);
        let (code, number) = (geometry.shape().code, geometry.number());
        let records = self.encoded.records.as_ref();
        let run = Run { executor: &self.inner, observer: &Observed };
        let plans = self.plans;
        let mut rest = (0..code.n() as u32).filter(|i| !touched.iter().any(|(index, ..)| index == i));
        loop {
            let batch: Vec<u32> = rest.by_ref().take(code.k() - reading.intact()).collect();
            if batch.is_empty() {
                break;
            }
            let states = records.load(number, set.set, &batch, &mut reading);
            let unreadable = states.into_iter().find_map(|state| match state {
                Load::Unreadable(e) => Some(e.to_string()),
                _ => None,
            });
            outcome.unreadable = outcome.unreadable.take().or(unreadable);
        }
        let mut larger;
        let decoded = match reading.decode(plans, run) {
            Err(undecoded) if undecoded.error == SetError::NotACodeword => {
                larger = SetDecoder::for_payload_from_all(geometry.shape());
                let mut reading = larger.begin(geometry, tree, set.set);
                records.load(number, set.set, &(0..code.n() as u32).collect::<Vec<_>>(), &mut reading);
                reading.decode(plans, run)
            }
            other => other,
        };
        match decoded {
            Ok(rows) => {
                outcome.mended_sets += 1;
                let rows = touched.iter().map(|(index, at, len)| (*at, *len, rows.row(*index)));
                self.put_all(set, rows, outcome)
            }
            Err(undecoded) => match undecoded.error {
                SetError::TooFew { .. } => {
                    let lost = touched.iter().map(|(index, ..)| *index);
                    let lost = lost.filter(|index| !undecoded.reading.is_intact(*index));
                    outcome.losses.add(number, set.set..set.set + 1, losses::originals(lost));
                    Ok(())
                }
                error => Err(untrue((number, set.set, error))),
            },
        }
    }

    /// The originals of a set that the part touches: index, position of the payload in the whole payload, and bytes of
    /// payload.
    fn touched(&self, set: &SetEntry) -> Vec<(u32, u64, usize)> {
        let overlaps =
            |(_, at, len): &(u32, u64, usize)| *at < self.bytes.end && self.bytes.start < at + *len as u64;
        set.originals().filter(overlaps).collect()
    }

    /// Puts out the bytes of rows that the part needs. Each row comes with the position of its payload and its bytes of
    /// payload.
    fn put_all<'r>(
        &self,
        set: &SetEntry,
        rows: impl Iterator<Item = (u64, usize, &'r [u8])>,
        outcome: &mut Outcome,
    ) -> Result<()> {
        for (at, len, row) in rows {
            if row[len..].iter().any(|byte| *byte != 0) {
                return Err(untrue((set.group.geometry.number(), set.set, SetError::Padding)));
            }
            let from = at.max(self.bytes.start);
            let to = (at + len as u64).min(self.bytes.end);
            self.put(from, &row[(from - at) as usize..(to - at) as usize], outcome)?;
        }
        outcome.proved_sets += 1;
        Ok(())
    }

    /// Puts out bytes of the payload from position `at` on.
    fn put(&self, at: u64, bytes: &[u8], outcome: &mut Outcome) -> Result<()> {
        let _stage = stages::enter(Stage::Write, bytes.len() as u64);
        (self.put)(at - self.bytes.start, bytes)?;
        outcome.restored += bytes.len() as u64;
        Ok(())
    }
}

/// The sets that hold any byte of a range of payload.
struct TouchedSets<'a> {
    groups: &'a Groups<'a>,
    bytes: Range<u64>,
    /// The current group, and its sets that are still to come: two ranges if the part wraps around the end of a row of
    /// shards.
    nth: usize,
    sets: [Range<u32>; 2],
    count: u64,
}

fn touched_sets<'a>(groups: &'a Groups<'a>, bytes: &Range<u64>) -> TouchedSets<'a> {
    let mut sets = TouchedSets { groups, bytes: bytes.clone(), nth: 0, sets: [0..0, 0..0], count: 0 };
    sets.count = (0..groups.len())
        .map(|nth| sets.of_group(&groups.get(nth)).iter().map(|range| range.len() as u64).sum::<u64>())
        .sum();
    if !groups.is_empty() {
        sets.sets = sets.of_group(&groups.get(0));
    }
    sets
}

impl TouchedSets<'_> {
    /// The sets of a group that hold any byte of the range.
    fn of_group(&self, group: &GroupEntry) -> [Range<u32>; 2] {
        let (sets, len) = (u64::from(group.geometry.shape().sets), group.geometry.shape().shard_len as u64);
        let from = self.bytes.start.max(group.start) - group.start;
        let to = self.bytes.end.min(group.start + group.geometry.payload_len()).saturating_sub(group.start);
        if from >= to {
            return [0..0, 0..0];
        }
        // Shards follow the order of the payload: shard q is that of set q mod G.
        let (first, count) = (from / len, (to - 1) / len - from / len + 1);
        if count >= sets {
            return [0..sets as u32, 0..0];
        }
        let (start, end) = (first % sets, first % sets + count);
        [start as u32..end.min(sets) as u32, 0..end.saturating_sub(sets) as u32]
    }

    fn next(&mut self) -> Option<SetEntry> {
        while self.nth < self.groups.len() {
            let group = self.groups.get(self.nth);
            if let Some(set) = self.sets.iter_mut().find_map(Iterator::next) {
                return Some(SetEntry { group, set });
            }
            self.nth += 1;
            if self.nth < self.groups.len() {
                self.sets = self.of_group(&self.groups.get(self.nth));
            }
        }
        None
    }
}
