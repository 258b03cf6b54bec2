//! Sends a stream: from a file or pipe to packets.
//!
//! Packets are sealed if there is a key, impaired on request, paced, and framed or sent by UDP, many with one system
//! call.

use super::LiveError;
use super::ages::Ages;
use super::feedback::{Feedback, Wanted};
pub use super::feedback::{FeedbackOutcome, ReceiverOutcome};
use super::impair::{Channel, Impairment};
use super::key::StreamKey;
use super::output::Output;
use super::packetizer::Packetizer;
use super::paths::{Way, Ways};
pub use super::rate::RateBounds;
use super::reader_thread::{Next, ReaderThread};
use super::seal::{ReportOpener, Sealer};
pub use super::sent::Sent;
use super::system::may_pass;
pub use super::transmitter::SendWatcher;
use super::transmitter::{Link, Transmitter};
use super::udp::{self, MAX_DATAGRAM};
use fec_base::context::{Context, Settings, Silent};
use fec_base::error::{Action, Error, Place, Result};
use fec_base::io::system;
use fec_core::format::packet::{MIN_PAYLOAD, Parameters, REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use fec_core::format::sealed_packet;
use fec_core::window::{Encoder, Profile, Ratio, StreamSettings};
use fec_keys::cipher::Cipher;
use std::io::Read;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Time in which a sender that waits for input notices that it must stop.
const NOTICE: Duration = Duration::from_millis(50);

/// Payload bytes of a packet that passes nearly everywhere. With all headers the packet has 1280 bytes, which every
/// link of IPv6 has to carry, and tunnels do carry.
pub const NETWORK_PAYLOAD: u16 = 1174;

/// Payload bytes of packets over these ways: [`NETWORK_PAYLOAD`], or fewer if this machine knows that such packets do
/// not pass; 24 fewer if packets are sealed.
///
/// # Errors
/// Those of [`Address::destination`](super::address::Address::destination), and those of the system for an interface.
pub fn payload_for(ways: &[Way], is_sealed: bool) -> Result<u16> {
    let mut most = usize::from(NETWORK_PAYLOAD) + overhead(false);
    for Way { address, interface } in ways {
        match udp::most_bytes(address, interface) {
            Ok(passing) => most = most.min(passing),
            // A network that is not there yet says nothing of its packets.
            Err(e) if e.cause().is_some_and(may_pass) => {}
            Err(e) => return Err(e),
        }
    }
    let payload = most.saturating_sub(overhead(is_sealed)) as u16;
    Ok(payload.max(MIN_PAYLOAD))
}

/// The most bytes of a packet beyond its payload: those of a repair packet.
fn overhead(is_sealed: bool) -> usize {
    SYMBOL_OVERHEAD + REPAIR_OVERHEAD + if is_sealed { sealed_packet::OVERHEAD } else { 0 }
}

/// The sealing of packets: they are encrypted, and authentic for holders of the key.
#[derive(Clone, Debug)]
pub struct Sealing {
    /// The key that the receivers have.
    pub key: StreamKey,
    /// The cipher.
    pub cipher: Cipher,
}

/// A sensible [`latency`](SendOptions::latency) over networks: a viewer waits no longer than this.
pub const NETWORK_LATENCY: Duration = Duration::from_secs(3);

/// The rates that can be kept, in Mb/s.
pub const RATES: RangeInclusive<f64> = 0.001..=1e6;

/// The options of sending a stream.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The number that identifies the stream; `None` for a random one.
    pub stream_id: Option<u64>,
    /// The most source packets that a repair packet covers, up to 65,536.
    pub window: u32,
    /// The packets by which the window moves at a time; or the packets of an independent block or set.
    pub block: u16,
    /// The most payload bytes of a packet, 16 to 65,535; headers add 42 to 58 bytes.
    pub payload: u16,
    /// The way repair packets are made.
    pub profile: Profile,
    /// The number of repair packets; with [`reports`](Self::reports), as long as nobody reports.
    pub ratio: Ratio,
    /// The bounds in which the number of repair packets follows the loss that receivers report; `None` calls for no
    /// reports. It needs a network, no group of receivers, and a profile whose window slides; elsewhere nothing is
    /// called for.
    pub reports: Option<RateBounds>,
    /// The age after which packets are not protected any more: lost ones are repaired by then or never. `None` protects
    /// packets as long as they are in the window, however slow the stream is. A packet leaves the window only with its
    /// block, so a slow stream protects packets beyond this age.
    pub latency: Option<Duration>,
    /// The longest time for which bytes wait for a full packet, and a packet for its repair packet, as long as repair
    /// packets stay within the ratio. Each repair packet beyond the ratio waits four times as long as the one before.
    pub flush: Duration,
    /// The highest rate in Mb/s, one of [`RATES`], without headers of UDP and IP; `None` for the fastest possible.
    pub mbps: Option<f64>,
    /// The sealing of packets; `None` lets anybody read them, and anybody who can send to a receiver forge them.
    pub sealing: Option<Sealing>,
    /// The losses and delays that packets suffer on purpose.
    pub impairment: Option<Impairment>,
    /// Interval of [`SendWatcher::so_far`]; `None` for never.
    pub tell_every: Option<Duration>,
}

impl Default for SendOptions {
    /// Packets of 1350 bytes, which pass on a local network (see [`payload_for`]); a repair packet for six packets,
    /// over a window of 6000; a pause of the input is noticed after 20 ms.
    fn default() -> SendOptions {
        SendOptions {
            stream_id: None,
            window: 6000,
            block: 240,
            payload: 1350,
            profile: Profile::Bounded,
            ratio: Ratio::new(1, 6).expect("neither is 0"),
            reports: None,
            latency: None,
            flush: Duration::from_millis(20),
            mbps: None,
            sealing: None,
            impairment: None,
            tell_every: None,
        }
    }
}

/// The destination of packets.
pub enum PacketDestination<'a> {
    /// Frames in a byte stream.
    Bytes(Output<'a>),
    /// Datagrams, each sent over all of these ways.
    Udp(Vec<Way>),
}

/// Sends all of `input` as it comes; errors name it `place`.
///
/// # Errors
/// As [`StreamSender::new`] and [`StreamSender::send`].
pub fn send(
    input: impl Read + Send + 'static,
    place: Place,
    destination: PacketDestination<'_>,
    options: &SendOptions,
    context: &Context<'_>,
) -> Result<Sent> {
    StreamSender::new(options, &context.settings)?.send(input, place, destination, &mut Silent, context)
}

/// A stream that is ready to be sent. Its settings are checked before anything is opened.
pub struct StreamSender {
    encoder: Encoder,
    sealer: Option<Sealer>,
    feedback: Option<Wanted>,
    channel: Option<Channel>,
    latency: Option<Duration>,
    flush: Duration,
    mbps: Option<f64>,
    tell_every: Option<Duration>,
}

impl StreamSender {
    /// Checks the settings of a stream.
    ///
    /// # Errors
    /// [`LiveError::Settings`], [`LiveError::Rate`], [`LiveError::StreamIdOfSealed`]; those of [`Impairment::start`].
    pub fn new(options: &SendOptions, settings: &Settings) -> Result<StreamSender> {
        if options.sealing.is_some() && options.stream_id.is_some() {
            return Err(Error::new(Action::Encode, LiveError::StreamIdOfSealed));
        }
        let stream_id = options.stream_id.map_or_else(random_id, Ok)?;
        let wanted = StreamSettings {
            stream_id,
            window: options.window,
            block: options.block,
            payload: options.payload,
            profile: options.profile,
            ratio: options.ratio,
            limit: settings.max_window,
        };
        let encoder = Encoder::new(&wanted, settings.backend)
            .map_err(|e| Error::new(Action::Encode, LiveError::from(e)))?;
        if let Some(rate) = options.mbps.filter(|rate| !RATES.contains(rate)) {
            return Err(Error::new(Action::Encode, LiveError::Rate(rate)));
        }
        let channel = options.impairment.as_ref().map(Impairment::start).transpose()?;
        let seal = |Sealing { key, cipher }: &Sealing| Sealer::new(key, *cipher, stream_id);
        let sealer = options.sealing.as_ref().map(seal);
        let feedback = match options.reports.filter(|_| encoder.slides()) {
            Some(bounds) => Some(Wanted {
                fixed: options.ratio,
                bounds,
                token: random_id()?.max(1),
                opener: options.sealing.as_ref().map(|of| ReportOpener::new(&of.key, of.cipher, stream_id)),
            }),
            None => None,
        };
        let &SendOptions { latency, flush, mbps, tell_every, .. } = options;
        Ok(StreamSender { encoder, sealer, feedback, channel, latency, flush, mbps, tell_every })
    }

    /// Sends `input` as it comes, until it ends or `watcher` stops it, and then announces the end. Errors name the
    /// input `place`.
    ///
    /// # Errors
    /// Those of the input and of the output; [`LiveError::PacketsTooLong`] and those of
    /// [`PacketSender`](super::udp::PacketSender) for a network, of which a missing route is an error only if nothing
    /// went out to the end; [`LiveError::Push`] when the stream is so long that
    /// packets have no more numbers.
    pub fn send(
        self,
        input: impl Read + Send + 'static,
        place: Place,
        destination: PacketDestination<'_>,
        watcher: &mut dyn SendWatcher,
        context: &Context<'_>,
    ) -> Result<Sent> {
        let StreamSender { encoder, sealer, feedback, channel, latency, flush, mbps, tell_every } = self;
        let parameters = *encoder.parameters();
        let link = open(destination, &parameters, sealer.is_some())?;
        let transmitter = Transmitter::new(sealer, channel, mbps, link, watcher);
        let fail = |e| Error::io(Action::Read, place.clone(), e);
        let reader = ReaderThread::of_bytes(Vec::new(), input).map_err(fail)?;
        let meter = context.meter(Action::Encode, None);
        let feedback = feedback.filter(|_| transmitter.is_unicast());
        let feedback =
            feedback.map(|of| Feedback::new(of, parameters, transmitter.way_count(), Instant::now()));
        let mut packets = Packetizer::new(encoder, transmitter, feedback, latency.map(Ages::new), flush);
        packets.tell_every(tell_every);
        let mut stopped = false;
        while !stopped {
            let next = match reader.try_next() {
                // All waiting packets go out before a wait.
                Next::Nothing => {
                    packets.transmitter.flush()?;
                    reader.next(Some(packets.deadline().min(Instant::now() + NOTICE)))
                }
                ready => ready,
            };
            stopped = packets.transmitter.is_stopped();
            packets.transmitter.tell();
            if let Some(ratio) = packets.transmitter.wanted_ratio() {
                packets.set_ratio(ratio);
            }
            packets.tell();
            match next {
                Next::Chunk(chunk) => {
                    packets.take(&chunk)?;
                    meter.add(chunk.parts().map(|part| part.len() as u64).sum());
                    reader.give_back(chunk);
                }
                Next::Nothing => packets.timer()?,
                Next::Failed(e) => return Err(fail(e)),
                Next::End => break,
            }
        }
        packets.finish()?;
        if !stopped {
            packets.transmitter.check_any_sent()?;
        }
        meter.finish();
        let sent = Sent { stopped, ..packets.sent() };
        packets.transmitter.commit()?;
        Ok(sent)
    }
}

/// A random number, which no other stream has.
fn random_id() -> Result<u64> {
    let mut id = [0; 8];
    system::random(&mut id).map_err(|e| Error::io(Action::ChooseStreamNumber, Place::Nowhere, e))?;
    Ok(u64::from_le_bytes(id))
}

/// Opens the link to a destination.
fn open<'a>(
    destination: PacketDestination<'a>,
    parameters: &Parameters,
    is_sealed: bool,
) -> Result<Link<'a>> {
    match destination {
        PacketDestination::Bytes(output) => Link::bytes(output),
        PacketDestination::Udp(ways) => {
            let overhead = overhead(is_sealed);
            if usize::from(parameters.payload) + overhead > MAX_DATAGRAM {
                let most = MAX_DATAGRAM - overhead;
                let place = ways.first().map_or(Place::Nowhere, |way| (&way.address).into());
                return Err(Error::at(Action::SendTo, place, LiveError::PacketsTooLong { most }));
            }
            Ways::open(ways, overhead).map(Link::Udp)
        }
    }
}
