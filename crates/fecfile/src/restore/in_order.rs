//! Restores a payload from front to back, without temporary files.

use crate::archive::Archive;
use crate::error::{Action, Error, Place, Result};
use crate::range::{PayloadPart, PayloadRange, part};
use crate::report::{Outcome, Restored};
use crate::seal::open::{End, Opener};
use fec_base::context::Context;
use fec_base::ranges::ByteRange;
use fec_core::executor::lock;
use std::io::Write;
use std::sync::Mutex;

/// The fewest bytes of payload that are restored at a time, where a set holds fewer.
const PIECE: u64 = 4 << 20;

impl Archive {
    /// Restores a range of the payload to a writer, piece by piece: each piece is proved before it goes out, and waits
    /// in memory, in as much as a set holds, or 4 MiB. Takes the time of [`restore`](Archive::restore).
    ///
    /// # Errors
    /// As [`restore_range`](Archive::restore_range). The pieces in front of a lost one went out by then: whoever wants
    /// all or nothing discards them.
    pub fn restore_in_order(
        &self,
        range: PayloadRange,
        opener: Option<&Opener>,
        (out, place): (&mut dyn Write, Place),
        context: &Context<'_>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        self.check_seal(&encoded)?;
        encoded.check_memory(&context.settings)?;
        let wanted = PayloadPart::new(range, opener, encoded.extent())?;
        let fail = |e| Error::io(Action::Write, place.clone(), e);
        // A set that lies in two pieces would be decoded twice.
        let set = (encoded.shape().code.k() * encoded.shape().shard_len) as u64;
        let piece = set * (PIECE / set).max(1);
        let meter = context.meter(Action::Decode, Some(wanted.encoded.end - wanted.encoded.start));
        let mut cut = wanted.cut(out);
        let mut unsealed = wanted.unsealed(&mut cut);
        let held = Mutex::new(Vec::new());
        let mut outcome = Outcome::default();
        let mut at = wanted.encoded.start;
        // An empty payload has a piece too: the end of a seal. An empty part behind the last chunk has none.
        while !wanted.encoded.is_empty() || encoded.known_len() == 0 {
            let end = wanted.encoded.end.min(at / piece * piece + piece);
            lock(&held).resize((end - at) as usize, 0);
            let put = |offset: u64, bytes: &[u8]| {
                lock(&held)[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            };
            outcome.absorb(part(&encoded, self.plans(), &(at..end), &put, context)?);
            if !outcome.is_whole() {
                break;
            }
            let is_last = end == wanted.encoded.end;
            let ends = if is_last { wanted.end() } else { End::Nothing };
            unsealed.release(ends, &mut |to| to.write_all(&lock(&held)).map_err(fail), &fail)?;
            meter.add(end - at);
            at = end;
            if is_last {
                break;
            }
        }
        meter.finish();
        let is_whole = outcome.is_whole();
        let part = Some(ByteRange { start: wanted.bytes.start, end: wanted.bytes.end });
        let part = part.filter(|_| range != PayloadRange::ALL);
        let opened = opener.filter(|_| is_whole).map(|_| wanted.part_len());
        let restored = Restored { part, opened, ..self.restored(&encoded, outcome, is_whole)? };
        if part.is_some() { self.part_of(restored) } else { self.whole_of(restored) }
    }
}
