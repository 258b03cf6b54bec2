//! Restores payloads: a visitor writes the payload of each set, to a file at positions or to a writer from front to
//! back.

mod in_order;

use crate::archive::Archive;
use crate::error::{Action, EncodingError, Error, Place, Result, WriteFailure};
use crate::forms::encoded::Encoded;
use crate::payload::{self, Payload, PayloadDigests};
use crate::report::{Outcome, Restored};
use crate::seal::open::{End, Opener, Opening, Unsealed};
use crate::sets::{Nobody, SetEntry, SetVisitor, SetWalk};
use fec_base::context::Context;
use fec_base::io::ReadAt;
use fec_base::io::output::{self, Destination, FileOut, Policy};
use fec_base::io::spool::Spool;
use fec_base::io::temporary::{parent, remove_stale};
use fec_base::program::stages::{self, Stage};
use fec_base::threads::Threads;
use fec_core::executor::lock;
use fec_core::params::BOUNDED_GROUP_BYTES;
use fec_core::set::{Decoded, Reading};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Mutex;

/// Writes bytes at a position of the payload.
pub type Put<'a> = dyn Fn(u64, &[u8]) -> Result<()> + Sync + 'a;

/// Writes the payload of each set. With `partial`, originals of undecodable sets that their own paths prove go out too.
pub struct PayloadOut<'a> {
    /// The receiver of the bytes.
    pub put: &'a Put<'a>,
    /// True if proved parts of sets that cannot be decoded go out too.
    pub partial: bool,
}

impl SetVisitor for PayloadOut<'_> {
    fn decoded(&self, set: &SetEntry, rows: &Decoded<'_>) -> Result<()> {
        for (offset, bytes) in rows.payload() {
            let _stage = stages::enter(Stage::Write, bytes.len() as u64);
            (self.put)(set.group.start + offset, bytes)?;
        }
        Ok(())
    }

    fn undecoded(&self, set: &SetEntry, rows: &Reading<'_>) -> Result<()> {
        for (index, start, len) in set.originals().filter(|_| self.partial) {
            if let Some(row) = rows.row(index) {
                (self.put)(start, &row[..len])?;
            }
        }
        Ok(())
    }
}

/// The options of restoring.
#[derive(Clone, Copy, Default)]
pub struct Wish<'a> {
    /// Restore the proved bytes, with zeros in place of lost ones, even if the payload is not whole.
    pub partial: bool,
    /// Require every set to be a codeword, recovery shards included.
    pub strict: bool,
    /// The opener of the payload, from [`Archive::opener`]. Without it a sealed payload is restored sealed.
    pub opener: Option<&'a Opener>,
}

impl Archive {
    /// Restores the payload. A file appears when it is whole; with `partial` also with zeros in place of lost bytes. A
    /// writer gets an encoding of several groups group after group, each as soon as it is proved; an only group goes
    /// through a temporary file.
    ///
    /// # Errors
    /// [`Lost`](EncodingError::Lost), with the parts that are left, when the payload cannot be restored whole and
    /// `partial` is not set: no file appears then, but a writer may have got the groups in front of a lost one.
    /// [`Untrue`](EncodingError::Untrue) and [`OtherDigest`](EncodingError::OtherDigest) when the root binds something
    /// that breaks a rule. [`SealError`](crate::seal::SealError) when the seal is lost or does not open. Those of the
    /// destination and of temporary files; [`SetMemory`](fec_base::ErrorKind::SetMemory); for a writer, with `partial`,
    /// [`FewLeft`](EncodingError::FewLeft).
    pub fn restore(
        &self,
        destination: Destination<'_>,
        wish: Wish<'_>,
        context: &Context<'_>,
    ) -> Result<Restored> {
        let restored = self.attempt(wish, context, |encoded, walk| match destination {
            Destination::File(path, policy) => to_file(encoded, walk, wish, (path, policy)),
            Destination::Writer(out, place) => to_writer(encoded, walk, wish, (out, place)),
        })?;
        if wish.partial { Ok(restored) } else { self.whole_of(restored) }
    }

    /// Restores the payload by `put`. The result tells whether `put` got all of the payload, or only a part.
    ///
    /// # Errors
    /// As [`restore`](Archive::restore), but for [`Lost`](EncodingError::Lost).
    #[doc(hidden)]
    pub fn restore_by(&self, put: &Put<'_>, context: &Context<'_>) -> Result<Restored> {
        self.attempt(Wish::default(), context, |encoded, walk| {
            let visitor = PayloadOut { put, partial: false };
            let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &visitor)?;
            let is_whole = outcome.is_whole();
            Ok((outcome, is_whole))
        })
    }

    /// The result, if the payload was restored whole.
    fn whole_of(&self, restored: Restored) -> Result<Restored> {
        match restored.is_whole() && restored.written {
            true => Ok(restored),
            false => {
                Err(Error::at(Action::Decode, self.place.clone(), EncodingError::Lost(Box::new(restored))))
            }
        }
    }

    /// Restores the payload with `write`, which returns the outcome and whether the payload was written.
    fn attempt(
        &self,
        wish: Wish<'_>,
        context: &Context<'_>,
        write: impl FnOnce(&Encoded<'_>, &mut SetWalk<'_>) -> Result<(Outcome, bool)>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        self.check_seal(&encoded)?;
        if let Some(outcome) = self.hopeless(&encoded, wish, context)? {
            return self.restored(&encoded, outcome, false);
        }
        encoded.check_memory(&context.settings)?;
        let meter = context.meter(Action::Decode, Some(encoded.known_len()));
        let mut walk = SetWalk::new(context, self.plans());
        walk.meter = Some(&meter);
        walk.strict = wish.strict;
        let (outcome, written) = write(&encoded, &mut walk)?;
        meter.finish();
        let opened = match wish.opener.filter(|_| written) {
            None => None,
            Some(opener) => Some(opener.opened_len(encoded.extent())?),
        };
        Ok(Restored { opened, ..self.restored(&encoded, outcome, written)? })
    }

    /// The outcome, if the payload is known to be lost before anything is written, and only the whole payload is
    /// wanted.
    fn hopeless(&self, encoded: &Encoded, wish: Wish<'_>, context: &Context<'_>) -> Result<Option<Outcome>> {
        if wish.partial || self.is_restorable() != Some(false) {
            return Ok(None);
        }
        // An untrue set is graver than a lost one, and a strict reader sees more of them.
        let mut walk = SetWalk::new(context, self.plans());
        walk.strict = wish.strict;
        walk.run(encoded.records.as_ref(), &encoded.groups, &Nobody).map(Some)
    }
}

fn to_file(
    encoded: &Encoded<'_>,
    walk: &SetWalk<'_>,
    wish: Wish<'_>,
    (path, policy): (&Path, Policy),
) -> Result<(Outcome, bool)> {
    let len = encoded.known_len();
    output::check_room(path, len)?;
    remove_stale(parent(path), walk.context.progress);
    let out = FileOut::create(path, policy)?;
    let put = |offset, bytes: &[u8]| out.put(offset, bytes);
    let visitor = PayloadOut { put: &put, partial: wish.partial };
    let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &visitor)?;
    let keep = outcome.untrue.is_none() && (outcome.is_whole() || wish.partial);
    if keep && wish.strict && outcome.is_whole() {
        let written = WrittenPayload { bytes: out.file(), len, place: path.into() };
        check_digests(encoded, &written, &walk.context)?;
    }
    if keep {
        let len = match wish.opener {
            None => len,
            Some(opener) => {
                let file = out.file();
                file.set_len(len).map_err(|e| out.failure(e))?;
                let extent = encoded.extent();
                let gaps = !outcome.is_whole() || extent.is_cut;
                let threads = Threads(walk.context.settings.threads);
                let plain = opener.opened_len(extent)?;
                opener.open_file(file, (extent, &(0..plain)), gaps, threads, &|e| out.failure(e))?;
                plain
            }
        };
        let _stage = stages::enter(Stage::Write, 0);
        out.commit(len)?;
    }
    Ok((outcome, keep))
}

fn to_writer(
    encoded: &Encoded<'_>,
    walk: &mut SetWalk<'_>,
    wish: Wish<'_>,
    (out, place): (&mut dyn Write, Place),
) -> Result<(Outcome, bool)> {
    if wish.partial {
        check_left(encoded)?;
    }
    let fail = |e| Error::io(Action::Write, place.clone(), e);
    let as_a_whole = wish.opener.is_some() && wish.partial;
    if as_a_whole || wish.strict && has_digests(encoded) {
        return whole(encoded, walk, wish, out, &fail);
    }
    let mut out = Unsealed::new(wish.opener, out, Opening::default());
    by_group(encoded, walk, wish.partial, &mut out, &fail)
}

/// A payload that was just written and is read again.
struct WrittenPayload<'a> {
    bytes: &'a dyn ReadAt,
    len: u64,
    place: Place,
}

impl Payload for WrittenPayload<'_> {
    fn size(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.bytes.read_exact_at(offset, out).map_err(|e| Error::io(Action::Read, self.place.clone(), e))
    }

    fn place(&self) -> Place {
        self.place.clone()
    }
}

/// Zeros that may go out in place of lost bytes: this many, and this many more for each byte that may be left.
const ZEROS: u64 = 1 << 30;
const ZEROS_FOR_EACH: u64 = 1024;

/// The most bytes that may go out if `left` bytes may be left.
fn most_for(left: u64) -> u64 {
    left.saturating_mul(ZEROS_FOR_EACH).saturating_add(ZEROS)
}

/// Refuses to write endless zeros for a payload that a few records claim to be huge.
fn check_left(encoded: &Encoded) -> Result<()> {
    let left: u64 = (0..encoded.groups.len())
        .map(|nth| {
            let geometry = encoded.groups.get(nth).geometry;
            let shape = geometry.shape();
            let sets = encoded.records.present(geometry.number(), shape.sets);
            let sets: u64 = sets.iter().map(|sets| u64::from(sets.end - sets.start)).sum();
            geometry.payload_len().min(sets * (shape.code.k() * shape.shard_len) as u64)
        })
        .sum();
    let len = encoded.known_len();
    if len > most_for(left) {
        return Err(Error::new(Action::Decode, EncodingError::FewLeft { left, len }));
    }
    Ok(())
}

/// Tells whether the meta records digests of the payload.
fn has_digests(encoded: &Encoded) -> bool {
    encoded.meta.is_some_and(|meta| meta.sha256.is_some() || meta.blake3.is_some())
}

/// Compares the recorded digests with those of a whole payload.
fn check_digests(encoded: &Encoded, payload: &WrittenPayload<'_>, context: &Context<'_>) -> Result<()> {
    let Some(meta) = encoded.meta.filter(|_| has_digests(encoded)) else { return Ok(()) };
    let wanted = PayloadDigests { sha256: meta.sha256.is_some(), blake3: meta.blake3.is_some() };
    let (sha256, blake3) = payload::digests(payload, wanted, context)?;
    for (name, is, recorded) in [("SHA-256", sha256, meta.sha256), ("BLAKE3", blake3, meta.blake3)] {
        if is != recorded {
            return Err(Error::new(Action::Decode, EncodingError::OtherDigest(name)));
        }
    }
    Ok(())
}

/// Restores the payload through a temporary file. Recorded digests are compared before a byte goes out, and it is known
/// whether anything of a sealed payload is lost.
fn whole(
    encoded: &Encoded,
    walk: &SetWalk,
    wish: Wish<'_>,
    out: &mut dyn Write,
    fail: &WriteFailure<'_>,
) -> Result<(Outcome, bool)> {
    let partial = wish.partial;
    let spool = Spool::new()?;
    let put = |offset, bytes: &[u8]| spool.put(offset, bytes);
    let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &PayloadOut { put: &put, partial })?;
    let keep = outcome.untrue.is_none() && (outcome.is_whole() || partial);
    let len = encoded.known_len();
    if keep && outcome.is_whole() {
        let written = WrittenPayload { bytes: spool.bytes(), len, place: Place::Temporary };
        check_digests(encoded, &written, &walk.context)?;
    }
    if keep {
        // The payload is opened as it goes out, so that no plaintext is put into a temporary file.
        let is_cut = encoded.extent().is_cut;
        let gaps = !outcome.is_whole() || is_cut;
        let mut out = Unsealed::new(wish.opener, out, Opening::with_gaps(gaps));
        let end = if is_cut { End::Part } else { End::Payload };
        out.release(end, &mut |to| spool.copy_to(len, to, fail), fail)?;
    }
    Ok((outcome, keep))
}

/// Restores group after group, each as soon as it is proved. Small groups wait in memory, others in a temporary file:
/// the first bytes of a group need all its sets.
fn by_group(
    encoded: &Encoded,
    walk: &mut SetWalk,
    partial: bool,
    out: &mut Unsealed<'_>,
    fail: &WriteFailure<'_>,
) -> Result<(Outcome, bool)> {
    let most = walk.context.settings.max_memory;
    let mut outcome = Outcome::default();
    let buffer = Mutex::new(Vec::new());
    if partial {
        // The payload before the first known group is lost.
        let zeros = encoded.groups.start();
        let mut write =
            |to: &mut dyn Write| io::copy(&mut io::repeat(0).take(zeros), to).map(|_| ()).map_err(fail);
        out.release(End::Nothing, &mut write, fail)?;
    }
    for nth in 0..encoded.groups.len() {
        let (group, only) = (encoded.groups.get(nth), encoded.groups.only(nth));
        let len = group.geometry.payload_len();
        let capacity = group.geometry.shape().capacity();
        let is_small = waits_in_memory(capacity, encoded.groups.len());
        let spool = if is_small { None } else { Some(Spool::new()?) };
        walk.budget = if is_small { most.saturating_sub(capacity) } else { most };
        if is_small {
            let mut bytes = lock(&buffer);
            bytes.clear();
            bytes.resize(len as usize, 0);
        }
        let put = |offset: u64, bytes: &[u8]| match &spool {
            Some(spool) => spool.put(offset - group.start, bytes),
            None => {
                put_in_memory(&buffer, offset - group.start, bytes);
                Ok(())
            }
        };
        let done = walk.run(encoded.records.as_ref(), &only, &PayloadOut { put: &put, partial })?;
        let stop = done.untrue.is_some() || !(done.is_whole() || partial);
        outcome.absorb(done);
        if stop {
            return Ok((outcome, false));
        }
        let end = if group.geometry.is_last() { End::Payload } else { End::Nothing };
        let mut write = |to: &mut dyn Write| match &spool {
            Some(spool) => spool.copy_to(len, to, fail),
            None => to.write_all(&lock(&buffer)).map_err(fail),
        };
        out.release(end, &mut write, fail)?;
    }
    Ok((outcome, true))
}

/// Tells whether a group of this capacity waits in memory. An only group does not: it may be a whole file.
fn waits_in_memory(capacity: u64, groups: usize) -> bool {
    capacity <= BOUNDED_GROUP_BYTES && groups > 1
}

/// Copies bytes to a place of a group's payload.
pub(crate) fn put_in_memory(buffer: &Mutex<Vec<u8>>, at: u64, bytes: &[u8]) {
    lock(buffer)[at as usize..][..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests;
