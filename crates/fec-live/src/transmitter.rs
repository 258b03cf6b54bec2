//! The way of packets from the encoder: impairment, pacing, and a byte stream or a network.

use super::LiveError;
use super::address::Address;
use super::frame::{DELIMITER, Framer};
use super::impair::Channel;
use super::output::Output;
use super::pace::Pace;
use super::paths::{WaySent, Ways};
use super::seal::Sealer;
use super::sent::Sent;
use super::udp::Replies;
use fec_base::context::Silent;
use fec_base::error::{Error, Result};
use fec_core::window::Ratio;
use fec_keys::cipher::Cipher;
use std::time::{Duration, Instant};

/// Time in which a sender that waits for its pace notices that it must stop.
const NOTICE: Duration = Duration::from_millis(20);
/// Time for which a stopped sender keeps its pace. After that, its end goes out at once, without the repair packets in
/// front of it.
const GRACE: Duration = Duration::from_millis(50);

/// Receives events while a stream is sent.
pub trait SendWatcher {
    /// Tells whether sending must end: data that was read is sent, as far as the pace does not delay it, and then the
    /// end. It is called between chunks, and while the pace waits.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Tells that the network has reported, for the first time, that nobody receives the packets or that there is no
    /// route to them. The stream goes on.
    fn not_received(&mut self, _replies: &Replies) {}

    /// The ratio of repair packets to source packets from now on, if it is to change; see
    /// [`Encoder::set_ratio`](fec_core::window::Encoder::set_ratio). It is called between chunks of the input, at least
    /// 20 times a second.
    fn ratio(&mut self) -> Option<Ratio> {
        None
    }

    /// Tells, once for each way, that its network is away, and why. The stream goes on: packets count as not sent
    /// until the network is there.
    fn network_away(&mut self, _to: &Address, _why: &LiveError) {}

    /// Tells the counts until now.
    fn so_far(&mut self, _sent: &Sent) {}
}

impl SendWatcher for Silent {}

/// Packets that went out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentPackets {
    pub(super) source: u64,
    pub(super) repair: u64,
    pub(super) marks: u64,
    pub(super) calls: u64,
    /// Bytes of all of them.
    pub(super) bytes: u64,
}

/// Takes packets from an encoder, which cannot fail, and keeps the failure for later.
pub(super) struct Transmitter<'a> {
    sealer: Option<Sealer>,
    channel: Option<Channel>,
    pace: Option<Pace>,
    link: Link<'a>,
    watcher: &'a mut dyn SendWatcher,
    /// True if the watcher knows that packets are not received.
    is_told: bool,
    /// Time at which a pause of the pace ended because sending must end.
    hurried_since: Option<Instant>,
    sent: SentPackets,
    /// The first failure; nothing is sent after it.
    failed: Option<Error>,
    /// True if a packet was sent since the last flush.
    busy: bool,
    /// Time of the last packet, noted at the flush after it.
    last_sent: Instant,
}

impl<'a> Transmitter<'a> {
    /// Sends over `link`: sealed, through the channel that loses packets on purpose, and at `mbps` Mb/s, until
    /// `watcher` says that sending must end.
    pub(super) fn new(
        sealer: Option<Sealer>,
        channel: Option<Channel>,
        mbps: Option<f64>,
        link: Link<'a>,
        watcher: &'a mut dyn SendWatcher,
    ) -> Transmitter<'a> {
        let now = Instant::now();
        let pace = mbps.map(|mbps| Pace::new(mbps, now));
        Transmitter {
            sealer,
            channel,
            pace,
            link,
            watcher,
            is_told: false,
            hurried_since: None,
            sent: SentPackets::default(),
            failed: None,
            busy: false,
            last_sent: now,
        }
    }

    /// Tells whether sending must end.
    pub(super) fn is_stopped(&self) -> bool {
        self.watcher.is_stopped()
    }

    /// Tells the watcher, once, that packets are not received, or not sent.
    pub(super) fn tell(&mut self) {
        let replies = self.replies();
        if !self.is_told && replies.refused + replies.unreachable > 0 {
            self.is_told = true;
            self.watcher.not_received(&replies);
        }
        if let Link::Udp(ways) = &mut self.link {
            while let Some((address, why)) = ways.newly_away() {
                self.watcher.network_away(address, &why);
            }
        }
    }

    /// Tells the watcher the counts until now.
    pub(super) fn so_far(&mut self, sent: &Sent) {
        self.watcher.so_far(sent);
    }

    /// The ratio that the watcher wants from now on.
    pub(super) fn wanted_ratio(&mut self) -> Option<Ratio> {
        self.watcher.ratio()
    }

    /// Hands each datagram that came back over a way to `on`, with the number of the way.
    pub(super) fn receive(&mut self, on: &mut dyn FnMut(usize, &mut [u8])) {
        if let Link::Udp(ways) = &mut self.link {
            ways.receive(on);
        }
    }

    /// Number of ways; 0 for a byte stream.
    pub(super) fn way_count(&self) -> usize {
        match &self.link {
            Link::Bytes { .. } => 0,
            Link::Udp(ways) => ways.count(),
        }
    }

    /// Tells whether packets go over a network, each way to one place.
    pub(super) fn is_unicast(&self) -> bool {
        matches!(&self.link, Link::Udp(ways) if ways.are_unicast())
    }

    /// Tells whether sending must end, and the pace had to wait: there is no time for all that was read.
    pub(super) fn is_cut_short(&self) -> bool {
        self.hurried_since.is_some()
    }

    /// Tells whether there is time for the end alone.
    fn is_hurried(&self) -> bool {
        self.hurried_since.is_some_and(|since| since.elapsed() >= GRACE)
    }

    /// Waits for the pace, unless sending must end.
    fn wait(&mut self, wait: Duration) {
        let until = Instant::now() + wait;
        loop {
            let now = Instant::now();
            let until = match self.hurried_since {
                Some(since) => until.min(since + GRACE),
                None => until,
            };
            if now >= until {
                return;
            }
            std::thread::sleep(NOTICE.min(until - now));
            if self.hurried_since.is_none() && self.is_stopped() {
                self.hurried_since = Some(Instant::now());
            }
        }
    }

    /// Sends a packet. A failure is kept for [`Transmitter::result`].
    pub(super) fn send(&mut self, packet: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        // The type of a packet is its sixth byte.
        match packet.get(5) {
            Some(1) if self.is_hurried() => return,
            Some(0) => self.sent.source += 1,
            Some(1) => self.sent.repair += 1,
            Some(3) => self.sent.calls += 1,
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
            self.wait(wait);
        }
    }

    /// Sends the packets that the impairment holds back, and all other waiting data.
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

    /// Sends all waiting data.
    pub(super) fn flush(&mut self) -> Result<()> {
        if std::mem::take(&mut self.busy) {
            self.last_sent = Instant::now();
        }
        self.result()?;
        self.link.flush()
    }

    /// The failure of an earlier packet.
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

    /// The packets sent so far.
    pub(super) fn sent(&self) -> SentPackets {
        self.sent
    }

    /// The cipher that seals the packets.
    pub(super) fn cipher(&self) -> Option<Cipher> {
        self.sealer.as_ref().map(Sealer::cipher)
    }

    /// Time of the last packet.
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

    /// The counts of each way of a network.
    pub(super) fn ways(&self) -> Vec<WaySent> {
        match &self.link {
            Link::Bytes { .. } => Vec::new(),
            Link::Udp(ways) => ways.counts(),
        }
    }

    /// Checks that any packet went out.
    ///
    /// # Errors
    /// The reason why none did, if the network was away all the time.
    pub(super) fn check_any_sent(&self) -> Result<()> {
        match &self.link {
            Link::Bytes { .. } => Ok(()),
            Link::Udp(ways) => ways.check_any_sent(),
        }
    }

    /// Takes in the network's replies to all packets.
    pub(super) fn listen(&mut self) -> Result<()> {
        match &mut self.link {
            Link::Bytes { .. } => Ok(()),
            Link::Udp(ways) => ways.listen(),
        }
    }

    /// The network's replies to packets.
    pub(super) fn replies(&self) -> Replies {
        match &self.link {
            Link::Bytes { .. } => Replies::default(),
            Link::Udp(ways) => ways.replies(),
        }
    }

    /// Tells whether packets go over a network, where every one of them may be lost.
    pub(super) fn is_network(&self) -> bool {
        matches!(self.link, Link::Udp(_))
    }
}

/// The destination of packets.
pub(super) enum Link<'a> {
    Bytes { framer: Box<Framer>, frame: Vec<u8>, output: Output<'a> },
    Udp(Ways),
}

impl<'a> Link<'a> {
    /// Frames in a byte stream.
    pub(super) fn bytes(mut output: Output<'a>) -> Result<Link<'a>> {
        // A frame begins here, whatever stands before, such as the end of a stream that was cut.
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
