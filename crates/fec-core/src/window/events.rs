//! The limits of a receiver, and its reports on packets and payloads.

use super::settings::WINDOW_LIMIT;
use crate::format::packet::PacketError;

/// Time at which a payload is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In order: a payload waits for those before it until they are there or lost for good.
    #[default]
    InOrder,
    /// At once, when it comes or is rebuilt. Gaps are named once they are final.
    Immediate,
}

/// The limits of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that the symbols of a window may take; streams with larger windows are refused. The decoder as a
    /// whole takes up to three times as much ([`Profile::Blocks`](super::Profile::Blocks): four times), and 10 MiB for
    /// equations.
    pub window_bytes: u64,
    /// Most lost packets in equations at a time. A higher number makes a packet more work: in proportion to this number
    /// times a row (1.5 coefficients for each, and the symbol), and in proportion to its square when everything is
    /// rebuilt at once.
    pub columns: u16,
    /// The order in which payloads are given out.
    pub order: Order,
    /// True if packets are named as lost as soon as no repair packet can rebuild them soon: after an outage that the
    /// window cannot repair, or after joining a stream. Otherwise the decoder waits for them until they leave the
    /// window. This is for live streams: at the end of a stream a few more repair packets come than expected.
    pub prompt: bool,
}

impl Default for Limits {
    /// 64 MiB, 2048 lost packets, in order, not prompt.
    fn default() -> Limits {
        Limits { window_bytes: WINDOW_LIMIT, columns: 2048, order: Order::InOrder, prompt: false }
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// A new source packet, a repair packet with new information, or a mark.
    Accepted,
    /// A repair packet without new information.
    Redundant,
    /// A source packet that is already there, with the same content, or a repair packet that came before.
    Duplicate,
    /// A source packet that is already there with other content, or a repair packet that contradicts known packets. It
    /// was dropped.
    Conflict,
    /// A source packet whose number was named as lost, or that is older than all remembered ones.
    Late,
    /// A packet far beyond the newest one, kept until others agree.
    Ahead,
    /// A repair packet over packets that are lost for good, or from before this receiver joined.
    Unusable,
    /// A packet of another stream.
    Foreign,
    /// A packet of this stream with other parameters than before.
    Mismatch,
    /// The stream's window takes more memory than the limits allow.
    Refused {
        /// Bytes of its symbols.
        bytes: u64,
    },
    /// A packet that this build does not accept.
    Rejected(PacketError),
}

/// An event for the application.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A payload.
    Packet {
        /// Its number.
        seq: u64,
        /// Its bytes, valid until the decoder is used again.
        payload: &'a [u8],
        /// True if it was lost and rebuilt.
        rebuilt: bool,
    },
    /// Packets that are lost for good. Each is named once.
    Gap {
        /// The first packet.
        first: u64,
        /// Number of packets.
        count: u64,
    },
    /// The stream has ended, and all packets from its beginning on were given out or named: see
    /// [`begins_at`](super::Decoder::begins_at). A packet from behind the end takes that back: see
    /// [`has_ended`](super::Decoder::has_ended).
    End,
}

/// Counts since the decoder was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Source packets accepted.
    pub received: u64,
    /// Valid repair packets, each counted once.
    pub repairs: u64,
    /// Valid repair packets with new information.
    pub useful_repairs: u64,
    /// Valid repair packets that could not be used; see [`Received::Unusable`].
    pub unusable_repairs: u64,
    /// Rebuilt packets.
    pub rebuilt: u64,
    /// Packets named as lost.
    pub lost: u64,
    /// Source packets that were already there, and repair packets that came before.
    pub duplicates: u64,
    /// Source packets among them that had been rebuilt before they came.
    pub overtaken: u64,
    /// Packets that contradicted others, or the announced end.
    pub conflicts: u64,
    /// Source packets that came too late.
    pub late: u64,
    /// Damaged packets.
    pub damaged: u64,
    /// Packets rejected for another reason: see [`PacketError`].
    pub rejected: u64,
    /// Packets of other streams, or with other parameters.
    pub foreign: u64,
    /// Rebuilt symbols whose checksum, length or padding was wrong: their packets stayed lost.
    pub disbelieved: u64,
    /// Times that the receiver followed the stream to a place far beyond.
    pub jumps: u64,
    /// Packets that were dropped because the caller did not ask for them in time.
    pub overrun: u64,
}
