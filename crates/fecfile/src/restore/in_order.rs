//! Restores a payload from front to back, without temporary files.

use crate::archive::Archive;
use crate::error::{Action, Error, Place, Result};
use crate::range::part;
use crate::report::{Outcome, Restored};
use crate::seal::open::{End, Opener, Opening, Unsealed};
use fec_base::context::Context;
use fec_core::executor::lock;
use std::io::Write;
use std::sync::Mutex;

/// The fewest bytes of payload that are restored at a time, where a set holds fewer.
const PIECE: u64 = 4 << 20;

impl Archive {
    /// Restores the payload to a writer, piece by piece: each piece is proved before it goes out, and waits in memory,
    /// in as much as a set holds, or 4 MiB. Takes the time of [`restore`](Archive::restore) on one thread.
    ///
    /// # Errors
    /// As [`restore`](Archive::restore). The pieces in front of a lost one went out by then: whoever wants all or
    /// nothing discards them.
    pub fn restore_in_order(
        &self,
        opener: Option<&Opener>,
        (out, place): (&mut dyn Write, Place),
        context: &Context<'_>,
    ) -> Result<Restored> {
        let encoded = self.encoded();
        self.check_seal(&encoded)?;
        encoded.check_memory(&context.settings)?;
        let fail = |e| Error::io(Action::Write, place.clone(), e);
        let len = encoded.known_len();
        // A set that lies in two pieces would be decoded twice.
        let set = (encoded.shape().code.k() * encoded.shape().shard_len) as u64;
        let piece = set * (PIECE / set).max(1);
        let meter = context.meter(Action::Decode, Some(len));
        let mut unsealed = Unsealed::new(opener, out, Opening::default());
        let held = Mutex::new(Vec::new());
        let mut outcome = Outcome::default();
        let mut at = 0;
        // An empty payload has a piece too: the end of a seal.
        loop {
            let range = at..len.min(at + piece);
            lock(&held).resize((range.end - range.start) as usize, 0);
            let put = |offset: u64, bytes: &[u8]| {
                lock(&held)[offset as usize..][..bytes.len()].copy_from_slice(bytes);
                Ok(())
            };
            outcome.absorb(part(&encoded, self.plans(), &range, &put, context)?);
            if !outcome.is_whole() {
                break;
            }
            let is_last = range.end == len;
            let end = match is_last {
                true if encoded.extent().is_cut => End::Part,
                true => End::Payload,
                false => End::Nothing,
            };
            unsealed.release(end, &mut |to| to.write_all(&lock(&held)).map_err(fail), &fail)?;
            meter.add(range.end - range.start);
            at = range.end;
            if is_last {
                break;
            }
        }
        meter.finish();
        let is_whole = outcome.is_whole();
        let opened = unsealed.plain_len().filter(|_| is_whole);
        self.whole_of(Restored { opened, ..self.restored(&encoded, outcome, is_whole)? })
    }
}
