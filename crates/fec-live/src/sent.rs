//! Counts of a sent stream.

use super::feedback::FeedbackOutcome;
use super::paths::WaySent;
use super::udp::Replies;
use fec_core::format::packet::Parameters;
use fec_keys::cipher::Cipher;

/// Counts of a sent stream, until now or in all.
#[must_use = "packets may not have gone out"]
#[derive(Clone, Debug)]
pub struct Sent {
    /// The parameters that the packets name.
    pub parameters: Parameters,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Packets with a part of the payload.
    pub source_packets: u64,
    /// Repair packets.
    pub repair_packets: u64,
    /// Packets that tell the progress of the stream, or its end.
    pub marks: u64,
    /// Bytes of all packets, without frames and network headers.
    pub sent_bytes: u64,
    /// The cipher that sealed the packets.
    pub cipher: Option<Cipher>,
    /// Packets that the impairment lost on purpose.
    pub impaired_lost: u64,
    /// Packets that the system did not take while the network was away.
    pub unsent: u64,
    /// The counts of each way of a network.
    pub ways: Vec<WaySent>,
    /// True if sending was stopped before the input had ended.
    pub stopped: bool,
    /// The network's replies to the packets.
    pub replies: Replies,
    /// The outcome of calling for reports; `None` if none were called for.
    pub feedback: Option<FeedbackOutcome>,
}
