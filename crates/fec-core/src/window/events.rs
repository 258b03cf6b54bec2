//! What a receiver allows, and what it tells of packets and payloads.

use super::settings::WINDOW_LIMIT;
use crate::format::packet::PacketError;

/// When a payload is given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In order: a payload waits for those before it until they are there or lost for good.
    #[default]
    InOrder,
    /// At once, when it comes or is rebuilt. Gaps are named when they are final.
    Immediate,
}

/// What a receiver allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that the symbols of a window may take; streams that want more are not received. The decoder as
    /// a whole takes up to three times as much ([`Profile::Blocks`](super::Profile::Blocks): four times), and 10 MiB
    /// for equations.
    pub window_bytes: u64,
    /// Most lost packets in equations at a time. More make a packet more work: it is in proportion to this
    /// number times a row (1.5 coefficients for each, and the symbol), and in proportion to its square when
    /// everything is rebuilt at once.
    pub columns: u16,
    /// When payloads are given out.
    pub order: Order,
    /// Whether packets are named as lost as soon as no repair packet that comes soon can rebuild them: after an outage
    /// that is longer than the window can mend, or after joining a stream. Otherwise they are waited for until they leave the
    /// window. For live streams: at the end of a stream a few repair packets more come than are expected.
    pub prompt: bool,
}

impl Default for Limits {
    /// 64 MiB, 2048 lost packets, in order, not prompt.
    fn default() -> Limits {
        Limits { window_bytes: WINDOW_LIMIT, columns: 2048, order: Order::InOrder, prompt: false }
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Received {
    /// A source packet that was not there, a repair packet that tells something new, or a mark.
    Accepted,
    /// A repair packet that tells nothing new.
    Redundant,
    /// A source packet that is there already, with the same content.
    Duplicate,
    /// A source packet that is there already with other content, or a repair packet that contradicts what is
    /// known. It was dropped.
    Conflict,
    /// A source packet whose number was named as lost, or that is older than anything remembered.
    Late,
    /// Far beyond the newest packet: kept until others agree.
    Ahead,
    /// A repair packet over packets that are lost for good, or from before this receiver joined.
    Unusable,
    /// A packet of another stream.
    Foreign,
    /// A packet of this stream with other parameters than those before.
    Mismatch,
    /// The stream's window takes more memory than the limits allow.
    Refused {
        /// Bytes of its symbols.
        bytes: u64,
    },
    /// Not a packet that this build accepts.
    Rejected(PacketError),
}

/// Something for the application.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A payload.
    Packet {
        /// Its number.
        seq: u64,
        /// Its bytes, valid until the decoder is used again.
        payload: &'a [u8],
        /// Whether it was lost and rebuilt.
        rebuilt: bool,
    },
    /// Packets that are lost for good. Each is named once.
    Gap {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// The stream has ended, and everything from where it is received on was given out or named: see
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
    /// Repair packets that were valid.
    pub repairs: u64,
    /// Of those, the ones that told something new.
    pub useful_repairs: u64,
    /// Of those, the ones that could not be used; see [`Received::Unusable`].
    pub unusable_repairs: u64,
    /// Packets that were rebuilt.
    pub rebuilt: u64,
    /// Packets named as lost.
    pub lost: u64,
    /// Source packets that were there already.
    pub duplicates: u64,
    /// Of those, the ones that had been rebuilt before they came.
    pub overtaken: u64,
    /// Packets that contradicted others, or what was said of the end.
    pub conflicts: u64,
    /// Source packets that came too late.
    pub late: u64,
    /// Packets that were damaged.
    pub damaged: u64,
    /// Packets that were rejected for another reason: see [`PacketError`].
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
