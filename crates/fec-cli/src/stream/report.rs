//! What `decode` says of a stream: at its end, as text and JSON from one struct, and while it runs.

use crate::failure::Exit;
use crate::settings::{SCHEMA_VERSION, Settings};
use fec_core::format::packet::{PacketError, Parameters};
use fec_core::window::{Received as Fate, Statistics};
use serde::Serialize;
use std::time::Duration;

/// Gaps are listed up to this number, and counted beyond.
const MAX_GAPS: usize = 1000;
/// Gaps that are told in words.
const LINES: usize = 10;

/// Where a receiver listens, as a line of JSON.
pub(super) fn listening(address: &str) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        address: &'a str,
    }
    serde_json::to_string(&Line { event: "listening", address }).unwrap_or_default()
}

/// Packets that are lost for good.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Lost {
    first: u64,
    count: u64,
}

/// What came, counted as it comes.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// Packets of this stream, of any kind.
    pub(super) of_stream: u64,
    pub(super) broken_frames: u64,
    /// The number of the first packet that was delivered.
    joined_at: Option<u64>,
    delivered: u64,
    bytes: u64,
    rebuilt: u64,
    lost: u64,
    gaps: Vec<Lost>,
    gap_count: u64,
    /// Behind the last gap, as long as nothing was delivered there.
    gap_end: Option<u64>,
    foreign: u64,
    mismatched: u64,
    damaged: u64,
    /// Packets that this build does not accept although they are intact.
    refused: u64,
    /// Why the first of them was refused.
    refusal: Option<String>,
}

/// What is known only at the end, or when statistics are printed.
pub(super) struct Sums {
    /// The sender has said that the stream has ended, and everything before was delivered or named.
    pub(super) ended: bool,
    pub(super) kernel_drops: Option<u64>,
    pub(super) parameters: Option<Parameters>,
    pub(super) statistics: Statistics,
}

impl Arrived {
    /// Counts a packet by what became of it.
    pub(super) fn count(&mut self, fate: &Fate) {
        match fate {
            Fate::Foreign => self.foreign += 1,
            Fate::Mismatch => self.mismatched += 1,
            Fate::Rejected(PacketError::Damaged | PacketError::Magic) => self.damaged += 1,
            Fate::Rejected(error) => self.refuse(|| error.to_string()),
            Fate::Refused { bytes } => self.refuse(|| format!("the window takes {bytes} bytes")),
            _ => self.of_stream += 1,
        }
    }

    fn refuse(&mut self, why: impl FnOnce() -> String) {
        self.refused += 1;
        self.refusal.get_or_insert_with(why);
    }

    /// Counts a packet of a stream that is not wanted.
    pub(super) fn count_other(&mut self) {
        self.foreign += 1;
    }

    /// Counts a payload that is delivered.
    pub(super) fn packet(&mut self, seq: u64, len: usize, rebuilt: bool) {
        self.joined_at.get_or_insert(seq);
        self.delivered += 1;
        self.bytes += len as u64;
        self.rebuilt += u64::from(rebuilt);
    }

    /// Notes packets that are lost for good.
    pub(super) fn gap(&mut self, first: u64, count: u64) {
        self.joined_at.get_or_insert(first);
        self.lost += count;
        let continues = self.gap_end == Some(first);
        self.gap_end = Some(first + count);
        if !continues {
            self.gap_count += 1;
            if self.gaps.len() < MAX_GAPS {
                self.gaps.push(Lost { first, count });
            }
        } else if self.gap_count <= MAX_GAPS as u64
            && let Some(last) = self.gaps.last_mut()
        {
            last.count += count;
        }
    }

    /// Running statistics as a line of JSON.
    pub(super) fn line(&self, sums: &Sums, time: Duration) -> String {
        #[derive(Serialize)]
        struct Line {
            event: &'static str,
            seconds: f64,
            payload_bytes: u64,
            packets: u64,
            rebuilt: u64,
            lost: u64,
            arrived: u64,
            duplicates: u64,
            late: u64,
            damaged: u64,
            foreign: u64,
            broken_frames: u64,
            kernel_drops: Option<u64>,
        }
        let line = Line {
            event: "statistics",
            seconds: time.as_secs_f64(),
            payload_bytes: self.bytes,
            packets: self.delivered,
            rebuilt: self.rebuilt,
            lost: self.lost,
            arrived: self.of_stream,
            duplicates: sums.statistics.duplicates,
            late: sums.statistics.late,
            damaged: self.damaged,
            foreign: self.foreign,
            broken_frames: self.broken_frames,
            kernel_drops: sums.kernel_drops,
        };
        serde_json::to_string(&line).unwrap_or_default()
    }

    /// Running statistics in words.
    pub(super) fn text(&self, sums: &Sums, time: Duration) -> String {
        let mut out = format!(
            "{:.0} s: {} packets ({} bytes), {} rebuilt, {} lost",
            time.as_secs_f64(),
            self.delivered,
            self.bytes,
            self.rebuilt,
            self.lost
        );
        if let Some(drops) = sums.kernel_drops.filter(|drops| *drops > 0) {
            out.push_str(&format!(", {drops} dropped by the kernel"));
        }
        out
    }
}

/// What `decode` made of a stream.
#[derive(Debug, Serialize)]
pub(super) struct Received {
    schema_version: u32,
    command: &'static str,
    form: &'static str,
    pub(super) input: String,
    output: String,
    /// Whether everything that was sent came out, and nothing else came in.
    pub(super) whole: bool,
    /// Whether the sender's end was seen.
    ended: bool,
    stream_id: Option<String>,
    profile: Option<&'static str>,
    window: Option<u32>,
    block: Option<u16>,
    packet: Option<u16>,
    /// The number of the first packet that came out, or is missing; what was sent before it is not known.
    joined_at: Option<u64>,
    payload_bytes: u64,
    /// Packets that came out.
    packets: u64,
    /// Of those, the ones that were lost and rebuilt.
    rebuilt: u64,
    /// Packets that are lost for good.
    lost: u64,
    gaps: Vec<Lost>,
    /// Gaps; the list above has 1000 at most.
    gap_count: u64,
    /// Packets of this stream that arrived, of any kind.
    arrived: u64,
    repair_packets: u64,
    useful_repair_packets: u64,
    duplicates: u64,
    late: u64,
    conflicts: u64,
    /// Rebuilt packets whose checksum was wrong.
    disbelieved: u64,
    /// Packets whose checksum was wrong.
    damaged: u64,
    /// Packets of other streams.
    foreign: u64,
    /// Packets of this stream with other parameters.
    mismatched: u64,
    /// Packets of a version, type or size that this build does not accept.
    refused: u64,
    refusal: Option<String>,
    /// Pieces of a byte stream that were no frames.
    broken_frames: u64,
    /// Packets that the kernel had no room for.
    kernel_drops: Option<u64>,
    backend: &'static str,
    seconds: f64,
    #[serde(skip)]
    foreign_is_loss: bool,
}

impl Received {
    pub(super) fn new(
        input: String,
        output: String,
        settings: &Settings,
        arrived: &Arrived,
        sums: &Sums,
        foreign_is_loss: bool,
        time: Duration,
    ) -> Received {
        let Sums { ended, kernel_drops, parameters, statistics } = sums;
        let joined_at = arrived.joined_at;
        // An empty stream has no first packet.
        let from_start = joined_at.is_none_or(|at| at == 0);
        let whole = *ended && arrived.lost == 0 && from_start && !(foreign_is_loss && arrived.foreign > 0);
        Received {
            schema_version: SCHEMA_VERSION,
            command: "decode",
            form: "stream",
            input,
            output,
            whole,
            ended: *ended,
            stream_id: parameters.map(|p| format!("{:016x}", p.stream_id)),
            profile: parameters.map(|p| p.profile.name()),
            window: parameters.map(|p| p.window),
            block: parameters.map(|p| p.block),
            packet: parameters.map(|p| p.payload),
            joined_at,
            payload_bytes: arrived.bytes,
            packets: arrived.delivered,
            rebuilt: arrived.rebuilt,
            lost: arrived.lost,
            gaps: arrived.gaps.clone(),
            gap_count: arrived.gap_count,
            arrived: arrived.of_stream,
            repair_packets: statistics.repairs,
            useful_repair_packets: statistics.useful_repairs,
            duplicates: statistics.duplicates,
            late: statistics.late,
            conflicts: statistics.conflicts,
            disbelieved: statistics.disbelieved,
            damaged: arrived.damaged,
            foreign: arrived.foreign,
            mismatched: arrived.mismatched,
            refused: arrived.refused,
            refusal: arrived.refusal.clone(),
            broken_frames: arrived.broken_frames,
            kernel_drops: *kernel_drops,
            backend: settings.backend.name(),
            seconds: time.as_secs_f64(),
            foreign_is_loss,
        }
    }

    pub(super) fn exit(&self) -> Exit {
        match (self.whole, self.arrived, self.refused) {
            (true, ..) => Exit::Done,
            (false, 0, 1..) => Exit::Refused,
            (false, ..) => Exit::Lost,
        }
    }

    /// Whether nothing of a stream came.
    pub(super) fn is_nothing(&self) -> bool {
        self.arrived == 0
    }

    /// Why nothing came, as far as can be told.
    pub(super) fn why_nothing(&self) -> (String, String) {
        if let Some(refusal) = &self.refusal {
            return (refusal.clone(), "a newer fec, or --max-memory for a large window, may help".to_owned());
        }
        let help = match (self.foreign, self.damaged + self.broken_frames) {
            (0, 0) => "is it what fec encode --stream writes, or where it sends to?".to_owned(),
            (0, bad) => format!("{bad} packets or frames came that are damaged or none"),
            (other, _) => format!("{other} packets of other streams came: see --stream-id"),
        };
        ("no packet of a stream came".to_owned(), help)
    }

    pub(super) fn describe(&self) -> String {
        let mut out = String::new();
        if self.whole {
            out.push_str(&format!(
                "{}: {} bytes in {} packets, {} of them rebuilt, {:.2} s\n",
                self.output, self.payload_bytes, self.packets, self.rebuilt, self.seconds
            ));
        } else {
            out.push_str(&format!("fec: decode {}: the stream is not whole\n", self.input));
            if let Some(at) = self.joined_at.filter(|at| *at > 0) {
                out.push_str(&format!("  joined at packet {at}: what was before did not come\n"));
            }
            for gap in self.gaps.iter().take(LINES) {
                out.push_str(&format!("  lost: {}\n", numbers(gap.first, gap.count)));
            }
            if self.gap_count > LINES as u64 {
                out.push_str(&format!("  and {} more gaps\n", self.gap_count - LINES as u64));
            }
            if !self.ended {
                out.push_str("  its end did not come: how much follows is not known\n");
            }
            if self.foreign_is_loss && self.foreign > 0 {
                out.push_str(&format!(
                    "  {} packets of other streams are here too; --stream-id chooses one\n",
                    self.foreign
                ));
            }
            out.push_str(&format!(
                "{}: {} bytes in {} packets, {} of them rebuilt, {} lost, {:.2} s\n",
                self.output, self.payload_bytes, self.packets, self.rebuilt, self.lost, self.seconds
            ));
        }
        let mut noted = Vec::new();
        for (count, what) in [
            (self.damaged, "damaged"),
            (self.broken_frames, "frames broken"),
            (if self.foreign_is_loss { 0 } else { self.foreign }, "of other streams"),
            (self.mismatched, "with other parameters"),
            (self.conflicts, "contradictory"),
            (self.refused, "not known to this build"),
            (self.kernel_drops.unwrap_or(0), "dropped by the kernel, whose receive buffer was full"),
        ] {
            if count > 0 {
                noted.push(format!("{count} {what}"));
            }
        }
        if !noted.is_empty() {
            out.push_str(&format!("packets: {}\n", noted.join(", ")));
        }
        if let Some(id) = &self.stream_id {
            let profile = self.profile.unwrap_or_default();
            out.push_str(&format!("stream {id}: {profile}, window of {}\n", self.window.unwrap_or(0)));
        }
        out
    }
}

/// Packet numbers in words.
pub(super) fn numbers(first: u64, count: u64) -> String {
    match count {
        1 => format!("packet {first}"),
        _ => format!("packets {first} to {}", first.saturating_add(count - 1)),
    }
}
