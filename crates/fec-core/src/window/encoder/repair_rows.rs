//! The interface of a profile's own rules.

use super::super::operation::Perform;
use super::sender::{Emit, Sender};

/// Makes the repair packets of a stream, by the rules of its profile. `on` performs the steps.
///
/// A packet takes two or three calls through this trait, which cost nothing next to its bytes.
pub(super) trait RepairRows<P: Perform> {
    /// Takes in the newest source packet. If it completes a block or window, first emits the rows that the one before
    /// still lacks.
    fn absorb(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>);

    /// The longest payload that the next row covers, in bytes.
    fn longest(&self) -> usize;

    /// Emits the next row: over the sliding window, or of the last complete block or window if it lacks one.
    /// Returns whether there was one.
    fn emit_row(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>) -> bool;

    /// Gets ready for the next row while there is time.
    fn look_ahead(&mut self, _sender: &Sender, _on: &mut P) {}

    /// Emits rows before the ratio owes them, and spends their cost. The rows cover the last `sources` packets, which
    /// no row covers yet.
    fn emit_early(&mut self, sources: u64, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>);

    /// Emits the rows that the last packets still lack at the end of the stream.
    fn finish(&mut self, sender: &mut Sender, on: &mut P, emit: &mut Emit<'_>);

    /// Notes that the receiver needs nothing before this packet, which was sent or comes next.
    fn acknowledge(&mut self, _oldest_needed: u64) {}
}
