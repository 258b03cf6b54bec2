//! Restoring: a visitor that writes the payload of each set; to a file, at positions, or to a writer, from front to
//! back.

use crate::archive::Archive;
use crate::context::Context;
use crate::error::{Error, Place, Result, WriteFailure};
use crate::forms::encoded::Encoded;
use crate::io::output::{self, FileOut, Policy};
use crate::io::spool::Spool;
use crate::report::{Outcome, Restored};
use crate::sets::{Nobody, SetEntry, SetVisitor, SetWalk};
use crate::stages::{self, Stage};
use fec_core::executor::lock;
use fec_core::set::{Decoded, Reading};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

/// Writes bytes at a position of the payload.
pub type Put<'a> = dyn Fn(u64, &[u8]) -> Result<()> + Sync + 'a;

/// Writes the payload of each set; with `partial` also what is proved by its own path of sets that cannot be decoded.
pub struct PayloadOut<'a> {
    /// Where bytes go.
    pub put: &'a Put<'a>,
    /// Whether proved parts of sets that cannot be decoded go out too.
    pub partial: bool,
}

impl SetVisitor for PayloadOut<'_> {
    fn decoded(&self, set: &SetEntry<'_>, rows: &Decoded<'_>) -> Result<()> {
        for (offset, bytes) in rows.payload() {
            let _stage = stages::enter(Stage::Write, bytes.len() as u64);
            (self.put)(set.group.start + offset, bytes)?;
        }
        Ok(())
    }

    fn undecoded(&self, set: &SetEntry<'_>, rows: &Reading<'_>) -> Result<()> {
        for (index, start, len) in set.originals().filter(|_| self.partial) {
            if let Some(row) = rows.row(index) {
                (self.put)(start, &row[..len])?;
            }
        }
        Ok(())
    }
}

impl Archive {
    /// Restores the payload to a file, which appears when it is whole; or with `partial` with zeros for what is lost.
    ///
    /// # Errors
    /// Those of the file, and [`SetMemory`](crate::ErrorKind::SetMemory). What is lost, or untrue, is in the result.
    pub fn restore_to_file(
        &self,
        path: &Path,
        policy: Policy,
        partial: bool,
        context: &Context<'_>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        if let Some(outcome) = self.hopeless(&encoded, partial, context)? {
            return self.restored(&encoded, outcome, false);
        }
        encoded.check_memory(&context.settings)?;
        let len = encoded.known_len();
        let meter = context.meter("decode", Some(len));
        let mut walk = SetWalk::new(context, self.plans());
        walk.meter = Some(meter.as_ref());
        output::check_room(path, len)?;
        let out = FileOut::create(path, policy)?;
        let put = |offset, bytes: &[u8]| out.put(offset, bytes);
        let visitor = PayloadOut { put: &put, partial };
        let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &visitor)?;
        let keep = outcome.untrue.is_none() && (outcome.is_whole() || partial);
        meter.finish();
        if keep {
            let _stage = stages::enter(Stage::Sync, 0);
            out.commit(len)?;
        }
        self.restored(&encoded, outcome, keep)
    }

    /// Restores the payload to a writer, from front to back. An encoding of several groups goes out group after group,
    /// each as soon as it is proved; one of a single group through a temporary file.
    ///
    /// # Errors
    /// Those of the writer, named `place`, and of the temporary file. What is lost, or untrue, is in the result.
    pub fn restore_to_writer(
        &self,
        out: &mut dyn Write,
        place: &Place,
        partial: bool,
        context: &Context<'_>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        if let Some(outcome) = self.hopeless(&encoded, partial, context)? {
            return self.restored(&encoded, outcome, false);
        }
        encoded.check_memory(&context.settings)?;
        let meter = context.meter("decode", Some(encoded.known_len()));
        let mut walk = SetWalk::new(context, self.plans());
        walk.meter = Some(meter.as_ref());
        let fail = |e| Error::io("write", place.clone(), e);
        let (outcome, written) = match encoded.groups.len() {
            1 => spooled(&encoded, &walk, partial, out, &fail)?,
            _ => by_group(&encoded, &mut walk, partial, out, &fail)?,
        };
        meter.finish();
        self.restored(&encoded, outcome, written)
    }

    /// What is lost, if it is known beforehand that something is, and only the whole payload is wanted: nothing is
    /// written then.
    fn hopeless(&self, encoded: &Encoded, partial: bool, context: &Context<'_>) -> Result<Option<Outcome>> {
        if partial || self.is_restorable() != Some(false) {
            return Ok(None);
        }
        SetWalk::new(context, self.plans()).run(encoded.records.as_ref(), &encoded.groups, &Nobody).map(Some)
    }
}

/// One group, of any size: its first bytes need every set, so it goes through a temporary file.
fn spooled(
    encoded: &Encoded,
    walk: &SetWalk,
    partial: bool,
    out: &mut dyn Write,
    fail: &WriteFailure<'_>,
) -> Result<(Outcome, bool)> {
    let spool = Spool::new()?;
    let put = |offset, bytes: &[u8]| spool.put(offset, bytes);
    let visitor = PayloadOut { put: &put, partial };
    let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &visitor)?;
    let keep = outcome.untrue.is_none() && (outcome.is_whole() || partial);
    if keep {
        spool.copy_to(encoded.known_len(), out, fail)?;
    }
    Ok((outcome, keep))
}

/// Group after group, each from memory, as soon as it is proved.
fn by_group(
    encoded: &Encoded,
    walk: &mut SetWalk,
    partial: bool,
    out: &mut dyn Write,
    fail: &WriteFailure<'_>,
) -> Result<(Outcome, bool)> {
    walk.budget = walk.context.settings.max_memory.saturating_sub(encoded.shape().capacity());
    let mut outcome = Outcome::default();
    let buffer = Mutex::new(Vec::new());
    for group in &encoded.groups {
        {
            let mut bytes = lock(&buffer);
            bytes.clear();
            bytes.resize(group.geometry.payload_len() as usize, 0);
        }
        let put = |offset: u64, bytes: &[u8]| {
            put_in_memory(&buffer, offset - group.start, bytes);
            Ok(())
        };
        let visitor = PayloadOut { put: &put, partial };
        let done = walk.run(encoded.records.as_ref(), std::slice::from_ref(group), &visitor)?;
        let stop = done.untrue.is_some() || !(done.is_whole() || partial);
        outcome.absorb(done);
        if stop {
            return Ok((outcome, false));
        }
        out.write_all(&lock(&buffer)).map_err(fail)?;
    }
    Ok((outcome, true))
}

/// Copies bytes to a place of a group's payload.
pub(crate) fn put_in_memory(buffer: &Mutex<Vec<u8>>, at: u64, bytes: &[u8]) {
    lock(buffer)[at as usize..][..bytes.len()].copy_from_slice(bytes);
}
