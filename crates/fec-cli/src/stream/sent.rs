//! What `encode --stream` says at its end, as text and JSON from one struct.

use serde::Serialize;

/// What `encode --stream` did.
#[derive(Debug, Serialize)]
pub(super) struct Sent {
    pub(super) schema_version: u32,
    pub(super) command: &'static str,
    pub(super) form: &'static str,
    pub(super) input: String,
    pub(super) output: String,
    pub(super) stream_id: String,
    pub(super) profile: &'static str,
    /// Repair packets / source packets.
    pub(super) rate: String,
    pub(super) window: u32,
    pub(super) block: u16,
    /// Most payload bytes of a packet.
    pub(super) packet: u16,
    pub(super) payload_bytes: u64,
    pub(super) source_packets: u64,
    pub(super) repair_packets: u64,
    pub(super) marks: u64,
    /// Bytes of all packets, without frames and network headers.
    pub(super) sent_bytes: u64,
    /// Packets that --impair lost on purpose.
    pub(super) impaired_lost: u64,
    /// Packets that the system did not take while the network was away.
    pub(super) unsent: u64,
    pub(super) backend: &'static str,
    pub(super) seconds: f64,
}

impl Sent {
    pub(super) fn describe(&self) -> String {
        let output = if self.output == "-" { "standard output" } else { &self.output };
        let mut out = format!(
            "{}: {} bytes in {} packets, and {} repair packets -> {output} ({} bytes)\n",
            self.input, self.payload_bytes, self.source_packets, self.repair_packets, self.sent_bytes
        );
        out.push_str(&format!(
            "stream {}: {}, {} repair packets for source packets over a window of {}; {:.2} s, {} kernel\n",
            self.stream_id, self.profile, self.rate, self.window, self.seconds, self.backend
        ));
        if self.impaired_lost > 0 {
            out.push_str(&format!("--impair lost {} packets on purpose\n", self.impaired_lost));
        }
        if self.unsent > 0 {
            out.push_str(&format!("{} packets were not sent: the network was away\n", self.unsent));
        }
        out
    }
}
