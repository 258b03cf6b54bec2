//! The reports of a receiver, over the socket that packets come through.

use crate::chunk::Arrival;
use crate::reporter::{Reporter, State};
use crate::seal::Opener;
use crate::udp::PacketReceiver;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::system::{random, since_1970};
use fec_core::format::report::{self, Control};
use fec_core::window::Decoder;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reports on the stream that is received.
pub(super) struct Reporting {
    socket: Arc<PacketReceiver>,
    reporter: Reporter,
    /// Random numbers that were drawn before they are needed, so that a packet cannot fail.
    drawn: Vec<u64>,
}

/// Random numbers for one stream: the receiver's, and one for each sender's address.
const DRAWN: usize = 64;

impl Reporting {
    /// Reports that go through `socket`.
    ///
    /// # Errors
    /// Those of the system's source of randomness.
    pub(super) fn new(socket: Arc<PacketReceiver>) -> Result<Reporting> {
        let mut drawn = draw()?;
        let reporter = Reporter::new(&mut || next(&mut drawn));
        Ok(Reporting { socket, reporter, drawn })
    }

    /// Turns to another stream.
    pub(super) fn restart(&mut self) {
        // Without new numbers the old ones stay in use: nothing is secret between the streams of one sender.
        if let Ok(drawn) = draw() {
            self.drawn = drawn;
        }
        let drawn = &mut self.drawn;
        self.reporter = Reporter::new(&mut || next(drawn));
    }

    /// Takes a call, in the clear. Calls of other streams are no affair of this one.
    pub(super) fn take(
        &mut self,
        packet: &[u8],
        arrival: &Arrival,
        decoder: &Decoder,
        opener: Option<&Opener>,
        now: Instant,
    ) {
        let Ok((parameters, Control::Call(call))) = report::parse(packet) else { return };
        if decoder.parameters() != Some(&parameters) {
            return;
        }
        if let Some(opener) = opener {
            self.reporter.seal_with(|receiver| opener.report_sealer(parameters.stream_id, receiver));
        }
        let drawn = &mut self.drawn;
        self.reporter.take(arrival, &call, packet.len() as u64, now, &mut || next(drawn));
    }

    /// Notes that a packet of the stream came.
    pub(super) fn hear(&mut self, arrival: &Arrival, bytes: usize) {
        self.reporter.hear(arrival.from, bytes as u64);
    }

    /// Sends the reports that are due on this state, whose delay `delay` tells.
    pub(super) fn send(
        &mut self,
        state: State,
        delay: impl FnOnce() -> Duration,
        decoder: &Decoder,
        now: Instant,
    ) {
        let Some(parameters) = decoder.parameters() else { return };
        self.reporter.note(state, now);
        if self.reporter.next(now).is_none_or(|at| at > now) {
            return;
        }
        self.reporter.note_delay(delay());
        let socket = &self.socket;
        self.reporter.send_due(parameters, now, since_1970(), |to, report| {
            // A report that cannot go out is lost, like one that is lost on the way.
            let _ = socket.answer(to, report);
        });
    }

    /// The time of the next report.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        self.reporter.next(now)
    }

    /// Tells whether a sender gets the reports.
    pub(super) fn is_heard(&self, now: Instant) -> bool {
        self.reporter.is_heard(now)
    }

    /// Reports so far.
    pub(super) fn sent(&self) -> u64 {
        self.reporter.sent()
    }
}

fn draw() -> Result<Vec<u64>> {
    let mut bytes = [0; 8 * DRAWN];
    random(&mut bytes).map_err(|e| Error::io(Action::ChooseStreamNumber, Place::Nowhere, e))?;
    Ok(bytes
        .chunks_exact(8)
        .map(|of| of.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)).max(1))
        .collect())
}

/// The next of the drawn numbers. The first one comes again when all were used: by then many addresses have come and
/// gone.
fn next(drawn: &mut [u64]) -> u64 {
    drawn.rotate_left(1);
    drawn.last().copied().unwrap_or(1)
}
