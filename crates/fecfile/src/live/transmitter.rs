//! From the encoder into the world: impairment, pacing, and a byte stream or a network.

use super::frame::{DELIMITER, Framer};
use super::impair::Channel;
use super::output::Output;
use super::pace::Pace;
use super::paths::Ways;
use super::seal::{Cipher, Sealer};
use super::udp::Replies;
use crate::error::{Error, Result};
use std::time::Instant;

/// Packets that went out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentPackets {
    pub(super) source: u64,
    pub(super) repair: u64,
    pub(super) marks: u64,
    /// Bytes of all of them.
    pub(super) bytes: u64,
}

/// Takes packets from an encoder, which cannot fail, and keeps the failure for later.
pub(super) struct Transmitter<'a> {
    sealer: Option<Sealer>,
    channel: Option<Channel>,
    pace: Option<Pace>,
    link: Link<'a>,
    sent: SentPackets,
    /// The first failure; after it nothing is sent.
    failed: Option<Error>,
    /// Something was sent since the last flush.
    busy: bool,
    /// When something was sent last, seen at the flush after it.
    last_sent: Instant,
}

impl<'a> Transmitter<'a> {
    /// Sends over `link`, sealed, through what loses packets on purpose and at `mbps` million bits a second.
    pub(super) fn new(
        sealer: Option<Sealer>,
        channel: Option<Channel>,
        mbps: Option<f64>,
        link: Link<'a>,
    ) -> Transmitter<'a> {
        let now = Instant::now();
        let pace = mbps.map(|mbps| Pace::new(mbps, now));
        let sent = SentPackets::default();
        Transmitter { sealer, channel, pace, link, sent, failed: None, busy: false, last_sent: now }
    }

    /// Sends a packet. A failure is kept for [`Transmitter::result`].
    pub(super) fn send(&mut self, packet: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // The type of a packet is its sixth byte.
        match packet.get(5) {
            Some(0) => self.sent.source += 1,
            Some(1) => self.sent.repair += 1,
            _ => self.sent.marks += 1,
        }
        let packet = match &mut self.sealer {
            Some(sealer) => sealer.seal(packet),
            None => packet,
        };
        self.sent.bytes += packet.len() as u64;
        let (link, failed) = (&mut self.link, &mut self.failed);
        let mut out = |packet: &[u8]| {
            if let (None, Err(e)) = (&failed, link.send(packet)) {
                *failed = Some(e);
            }
        };
        match &mut self.channel {
            Some(channel) => channel.send(packet, &mut out),
            None => out(packet),
        }
        self.busy = true;
        if let Some(wait) = self.pace.as_mut().and_then(|pace| pace.sent(packet.len(), Instant::now())) {
            if let Err(e) = self.link.flush() {
                self.failed.get_or_insert(e);
            }
            std::thread::sleep(wait);
        }
    }

    /// Sends what the impairment holds back, and all else that waits.
    pub(super) fn release(&mut self) -> Result<()> {
        let (link, failed) = (&mut self.link, &mut self.failed);
        if let Some(channel) = &mut self.channel {
            channel.flush(&mut |packet| {
                if let (None, Err(e)) = (&failed, link.send(packet)) {
                    *failed = Some(e);
                }
            });
        }
        self.flush()
    }

    /// Sends all that waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) {
            self.last_sent = Instant::now();
        }
        self.result()?;
        self.link.flush()
    }

    /// The failure of what was sent before.
    pub(super) fn result(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Gives a file its name.
    pub(super) fn commit(self) -> Result<()> {
        match self.link {
            Link::Bytes { output, .. } => output.commit(),
            Link::Udp(_) => Ok(()),
        }
    }

    /// What was sent.
    pub(super) fn sent(&self) -> SentPackets {
        self.sent
    }

    /// What seals the packets.
    pub(super) fn cipher(&self) -> Option<Cipher> {
        self.sealer.as_ref().map(Sealer::cipher)
    }

    /// When something was sent last.
    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// Packets that the impairment lost.
    pub(super) fn lost(&self) -> u64 {
        self.channel.as_ref().map_or(0, Channel::lost)
    }

    /// Packets that the system did not take.
    pub(super) fn unsent(&self) -> u64 {
        match &self.link {
            Link::Bytes { .. } => 0,
            Link::Udp(ways) => ways.unsent(),
        }
    }

    /// Hears what the network has said of all that was sent.
    pub(super) fn listen(&mut self) -> Result<()> {
        match &mut self.link {
            Link::Bytes { .. } => Ok(()),
            Link::Udp(ways) => ways.listen(),
        }
    }

    /// What the network said of packets.
    pub(super) fn replies(&self) -> Replies {
        match &self.link {
            Link::Bytes { .. } => Replies::default(),
            Link::Udp(ways) => ways.replies(),
        }
    }

    /// Whether packets go over a network, where every one of them may be lost.
    pub(super) fn is_network(&self) -> bool {
        matches!(self.link, Link::Udp(_))
    }
}

/// Where packets go.
pub(super) enum Link<'a> {
    Bytes { framer: Box<Framer>, frame: Vec<u8>, output: Output<'a> },
    Udp(Ways),
}

impl<'a> Link<'a> {
    /// Frames in a byte stream.
    pub(super) fn bytes(mut output: Output<'a>) -> Result<Link<'a>> {
        // Whatever stands before, perhaps the end of a stream that was cut: here a frame begins.
        output.write(&DELIMITER)?;
        Ok(Link::Bytes { framer: Box::new(Framer::new()), frame: Vec::new(), output })
    }

    fn send(&mut self, packet: &[u8]) -> Result<()> {
        match self {
            Link::Bytes { framer, frame, output } => {
                frame.clear();
                framer.frame(packet, frame);
                output.write(frame)
            }
            Link::Udp(ways) => ways.send(packet),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Link::Bytes { output, .. } => output.flush(),
            Link::Udp(ways) => ways.flush(),
        }
    }
}
