//! The part that the senders of all profiles share: the stream so far, and the packets.

use super::super::operation::{Operation, Perform};
use super::super::settings::Ratio;
use super::super::symbol_ring::SymbolRing;
use super::owed::Owed;
use crate::format::packet::{self, MAX_SEQ, Parameters, REPAIR_OVERHEAD, RowHeader};
use crate::gf256::kernel::Backend;
use thiserror::Error;

/// Receiver of packets.
pub(super) type Emit<'a> = dyn FnMut(&[u8]) + 'a;

/// A stream, as far as it was sent.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) parameters: Parameters,
    pub(super) ratio: Ratio,
    /// The balance of rows that the ratio owes.
    pub(super) owed: Owed,
    pub(super) backend: Backend,
    pub(super) store: SymbolRing,
    /// Number of source packets so far.
    pub(super) sent: u64,
    /// Number of rows so far.
    pub(super) rows: u64,
    /// Number of sums and symbols that rows were added up from so far.
    pub(super) added: u64,
    /// Bytes of the last payload.
    last_len: usize,
    /// Scratch: a repair packet.
    pub(super) out: Vec<u8>,
}

impl Sender {
    /// A sender without packets, with room for the symbols of the last `places` packets.
    pub(super) fn new(parameters: Parameters, ratio: Ratio, backend: Backend, places: u64) -> Sender {
        let symbol_len = parameters.symbol_len();
        Sender {
            parameters,
            ratio,
            backend,
            store: SymbolRing::new(places, symbol_len),
            sent: 0,
            rows: 0,
            added: 0,
            owed: Owed::new(ratio, parameters.profile),
            last_len: 0,
            out: Vec::with_capacity(REPAIR_OVERHEAD + symbol_len),
        }
    }

    /// Tells whether the payload may be sent.
    pub(super) fn admit(&self, payload: &[u8]) -> Result<(), PushError> {
        if payload.len() > self.store.full_payload() {
            return Err(PushError::TooLong { len: payload.len(), most: self.parameters.payload });
        }
        if self.sent >= MAX_SEQ - u64::from(self.parameters.window) - 1 {
            return Err(PushError::Full);
        }
        Ok(())
    }

    /// Emits the source packet of a payload, and keeps its symbol.
    pub(super) fn emit_source(&mut self, payload: &[u8], emit: &mut Emit<'_>) {
        let seq = self.sent;
        self.store.put_new(self.parameters.stream_id, seq, payload);
        // The next packet's place was last used a window ago.
        self.backend.prefetch(self.store.symbol(seq + 1));
        self.sent += 1;
        self.last_len = payload.len();
        self.owed.earn(payload.len());
        emit(self.store.packet(seq, &packet::source_header(&self.parameters, seq)));
    }

    /// Number of source packets like the last one until the ratio owes the next row over payloads of up to `longest`
    /// bytes.
    pub(super) fn until_next_row(&self, longest: usize) -> u64 {
        self.owed.until_next_row(self.last_len, longest)
    }

    /// Emits a repair packet as the next row, over `count` packets from `first` on.
    pub(super) fn emit_repair(
        &mut self,
        (first, count, part): (u64, u32, u32),
        symbol: &[u8],
        on: &mut impl Perform,
        emit: &mut Emit<'_>,
    ) {
        let header = RowHeader { row: self.rows, first, count, part };
        self.rows += 1;
        let (out, parameters) = (&mut self.out, &self.parameters);
        on.perform(Operation::Write { out, parameters, header: &header, symbol });
        emit(&self.out);
    }
}

/// The reason why a payload is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PushError {
    /// The payload is longer than the settings allow.
    #[error("a payload of {len} bytes is longer than the stream's largest of {most}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The most bytes allowed.
        most: u16,
    },
    /// The stream has used all its numbers.
    #[error("the stream has no sequence number left")]
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::packet::Profile;

    /// The marks of the end need a number larger than all others, and so do windows behind it.
    #[test]
    fn a_stream_is_full_before_numbers_end() {
        let parameters =
            Parameters { profile: Profile::Bounded, stream_id: 1, window: 100, payload: 20, block: 25 };
        let mut sender = Sender::new(parameters, Ratio::new(1, 6).unwrap(), Backend::best(), 200);
        for (sent, expected) in [
            (0, Ok(())),
            (MAX_SEQ - 102, Ok(())),
            (MAX_SEQ - 101, Err(PushError::Full)),
            (MAX_SEQ, Err(PushError::Full)),
        ] {
            sender.sent = sent;
            assert_eq!(sender.admit(&[0; 20]), expected, "{sent}");
        }
        assert_eq!(sender.admit(&[0; 21]), Err(PushError::TooLong { len: 21, most: 20 }));
    }
}
