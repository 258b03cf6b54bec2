//! The source of a received stream, the options of receiving it, and who watches.

use crate::LiveError;
use crate::address::Address;
use crate::key::StreamKey;
use crate::received::Received;
use crate::timers::Deadline;
use crate::udp::Interface;
use fec_base::context::Silent;
use fec_base::error::Place;
use std::io::Read;
use std::net::SocketAddr;
use std::time::Duration;

/// Silence that is a good sign of the end of a network stream.
pub const NETWORK_IDLE: Duration = Duration::from_secs(10);

/// The source of packets.
pub enum PacketSource {
    /// A framed byte stream.
    Bytes {
        /// Its name.
        place: Place,
        /// Its beginning, which was read before.
        head: Vec<u8>,
        /// The rest.
        input: Box<dyn Read + Send>,
    },
    /// Datagrams.
    Udp {
        /// The address that they come to.
        address: Address,
        /// The interface that they come through.
        interface: Interface,
    },
}

impl PacketSource {
    /// The place in errors.
    pub(super) fn place(&self) -> Place {
        match self {
            PacketSource::Bytes { place, .. } => place.clone(),
            PacketSource::Udp { address, .. } => address.into(),
        }
    }
}

/// The way a stream is received.
#[derive(Clone, Debug, Default)]
pub struct ReceiveOptions {
    /// The number of the stream; `None` for the first one that comes.
    pub stream_id: Option<u64>,
    /// The opening of sealed packets, if only these are accepted. `None` if packets are not sealed.
    pub opening: Option<Opening>,
    /// The time at which a lost packet is given up; `None` if only when no repair packet covers it any more.
    pub deadline: Option<Deadline>,
    /// Number of later packets after which a lost packet is given up.
    pub deadline_packets: Option<u32>,
    /// The output for packets that are lost for good.
    pub gaps: GapPolicy,
    /// Silence after a packet that ends the stream: see [`NETWORK_IDLE`]. `None` to wait for ever, unless the sender of
    /// datagrams has announced the end. Time in which the process was stopped does not count, here and below.
    pub idle: Option<Duration>,
    /// Time for the first packet, after which receiving ends; `None` to wait for ever.
    pub wait: Option<Duration>,
    /// True if the next stream of the network is received once a stream is over, because it has ended, is silent, or
    /// another takes its place. Only [`wait`](Self::wait) and the watcher then end it.
    pub follow: bool,
    /// True if senders on a network that call for reports get them: few and small ones, to the address that the stream
    /// comes from. Never for a multicast group.
    pub reports: bool,
    /// Interval of [`ReceptionWatcher::so_far`]; `None` for never.
    pub tell_every: Option<Duration>,
}

/// The opening of sealed packets.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The sender's key.
    pub key: StreamKey,
    /// Seconds, by the clocks of both ends, by which a network's packet may have been sealed in the past or in the
    /// future: others are refused, since they may be a recording. `None` accepts all.
    pub max_age: Option<u32>,
}

/// Seconds that suffice for a network, and for clocks that a network sets.
pub const MAX_AGE: u32 = 10;

/// The treatment of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapPolicy {
    /// The payload goes on behind it.
    #[default]
    Skip,
    /// Zeros, as many as in a full packet for each.
    Zero,
    /// Receiving ends; for a byte stream also if its beginning is missing.
    Fail,
}

/// Receives events while a stream is received.
pub trait ReceptionWatcher {
    /// Datagrams are received at this address from now on.
    fn listening(&mut self, _address: SocketAddr) {}

    /// Tells that packets come that are not accepted, and why. None was accepted until now, or for a second or so (if
    /// [`Received::arrived`] is not 0).
    fn not_accepted(&mut self, _received: &Received, _why: &LiveError) {}

    /// Tells the totals until now.
    fn so_far(&mut self, _received: &Received) {}

    /// Tells that a stream is over, and that the next one is waited for.
    fn over(&mut self, _received: &Received) {}

    /// Tells whether receiving must end as if the stream had ended.
    fn is_stopped(&self) -> bool {
        false
    }
}

impl ReceptionWatcher for Silent {}
