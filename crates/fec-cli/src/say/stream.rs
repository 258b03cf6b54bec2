//! Reports on streams that are received: meanwhile as text or JSON lines, and at the end from one struct.

use crate::run::target::{Target, input_name, output_name};
use crate::say::state::Margin;
use crate::settings::Settings;
use fec_base::names::{bytes, counted};
use fec_live::LostPackets;
use fec_live::quality::{Advice, Quality};
use fec_live::{Received, WayReceived};
use serde::Serialize;
use std::time::Duration;

/// Most gaps that the text lists.
const LINES: usize = 10;

/// The address of a listening receiver, as a line of JSON.
pub(crate) fn listening(address: &str) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'static str,
        address: &'a str,
    }
    serde_json::to_string(&Line { event: "listening", address }).unwrap_or_default()
}

/// The quality of a link.
#[derive(Debug, Serialize)]
struct Link {
    /// The share of source packets that did not arrive, and the share that was not mended either.
    loss_before: f64,
    loss_after: f64,
    /// Bursts of source packets that did not arrive: the longest, and the length that nine of ten do not exceed.
    longest_burst: u64,
    usual_burst: u64,
    /// How long payloads waited for earlier packets, or to be mended.
    delay_p50_ms: f64,
    delay_p99_ms: f64,
    /// The longest burst that would be mended now.
    margin_packets: Option<u64>,
    /// The option that would have mended the losses.
    advice: Option<String>,
}

impl Link {
    fn new(received: &Received) -> Link {
        let (quality, window) = (&received.quality, received.parameters.map_or(0, |p| p.window));
        let delay = |part| (quality.delay(part).as_secs_f64() * 1e6).round() / 1e3;
        let share = |share: f64| (share * 1e6).round() / 1e6;
        Link {
            loss_before: share(quality.loss_before()),
            loss_after: share(quality.loss_after()),
            longest_burst: quality.longest_burst(),
            usual_burst: quality.usual_burst(),
            delay_p50_ms: delay(0.5),
            delay_p99_ms: delay(0.99),
            margin_packets: quality.margin(),
            advice: quality.advice(window).map(option),
        }
    }
}

/// The advice as an option of `encode`.
fn option(advice: Advice) -> String {
    match advice {
        Advice::Window(packets) => format!("--window {packets}"),
        Advice::Latency => "a longer --latency".to_owned(),
        Advice::Patience => "a longer --latency at the receiver".to_owned(),
        Advice::Rate(0) => "--rate 2/1".to_owned(),
        Advice::Rate(source) => format!("--rate 1/{source}"),
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.01 => "<0.01 %".to_owned(),
        percent => format!("{percent:.2} %"),
    }
}

fn milliseconds(delay: Duration) -> String {
    let ms = delay.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// Running statistics as a line of JSON. `mbps` is the payload rate since the previous line.
pub(crate) fn line(received: &Received, mbps: f64) -> String {
    #[derive(Serialize)]
    struct Line {
        event: &'static str,
        seconds: f64,
        payload_bytes: u64,
        mbps: f64,
        packets: u64,
        rebuilt: u64,
        lost: u64,
        #[serde(flatten)]
        link: Link,
        arrived: u64,
        duplicates: u64,
        late: u64,
        damaged: u64,
        foreign: u64,
        /// Forged, not sealed, or stale.
        not_authentic: u64,
        broken_frames: u64,
        kernel_drops: Option<u64>,
    }
    let line = Line {
        event: "statistics",
        seconds: received.time.as_secs_f64(),
        payload_bytes: received.payload_bytes,
        mbps: (mbps * 1e3).round() / 1e3,
        packets: received.packets,
        rebuilt: received.rebuilt,
        lost: received.lost,
        link: Link::new(received),
        arrived: received.arrived,
        duplicates: received.statistics.duplicates + received.copies,
        not_authentic: received.forged + received.unsealed + received.stale,
        late: received.statistics.late,
        damaged: received.damaged,
        foreign: received.foreign,
        broken_frames: received.broken_frames,
        kernel_drops: received.kernel_drops,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

/// The end of a stream, as a line of JSON.
pub(crate) fn over_line(received: &Received) -> String {
    #[derive(Serialize)]
    struct Line {
        event: &'static str,
        stream_id: Option<String>,
        whole: bool,
        ended: bool,
        payload_bytes: u64,
        packets: u64,
        lost: u64,
    }
    let line = Line {
        event: "over",
        stream_id: received.parameters.map(|p| format!("{:016x}", p.stream_id)),
        whole: received.is_whole(),
        ended: received.ended,
        payload_bytes: received.payload_bytes,
        packets: received.packets,
        lost: received.lost,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

/// The end of a stream, in words.
pub(crate) fn over(input: &str, received: &Received) -> String {
    let id = received.parameters.map_or_else(String::new, |p| format!(" {:016x}", p.stream_id));
    let how = match (received.is_whole(), received.ended) {
        (true, _) => "is whole",
        (false, true) => "has ended, and is not whole",
        (false, false) => "is over without an end",
    };
    format!(
        "{input}: stream{id} {how}: {} in {} packets, {} lost; the next one is waited for",
        bytes(received.payload_bytes),
        received.packets,
        received.lost
    )
}

/// Running statistics in words. `mbps` is the payload rate since the previous line.
pub(crate) fn text(received: &Received, mbps: f64) -> String {
    let quality = &received.quality;
    let mut out = format!(
        "{:.0} s: {mbps:.2} Mb/s; {} packets, {} did not come, {} lost; waited {}/{} ms (p50/p99)",
        received.time.as_secs_f64(),
        received.packets,
        percent(quality.loss_before()),
        received.lost,
        milliseconds(quality.delay(0.5)),
        milliseconds(quality.delay(0.99)),
    );
    if let Some(margin) = quality.margin() {
        out.push_str(&format!("; a burst of {margin} more would be mended"));
    }
    if let Some(drops) = received.kernel_drops.filter(|drops| *drops > 0) {
        out.push_str(&format!(", {drops} dropped by the kernel"));
    }
    out
}

/// Packets that are lost for good.
#[derive(Clone, Copy, Debug, Serialize)]
struct Gap {
    first: u64,
    count: u64,
}

/// A way by which packets came.
#[derive(Debug, Serialize)]
struct WayRow {
    /// The address that they came from; null for all ways beyond the first 16 together.
    from: Option<String>,
    /// The address of this machine that they came to.
    to: Option<String>,
    /// Packets of any kind, and repeated ones too.
    packets: u64,
    /// The share of the stream's source packets that did not come by it.
    loss: f64,
}

impl WayRow {
    fn new(way: &WayReceived) -> WayRow {
        WayRow {
            from: way.from.map(|from| from.to_string()),
            to: way.to.map(|to| to.to_string()),
            packets: way.packets,
            loss: (way.loss * 1e6).round() / 1e6,
        }
    }

    fn describe(&self) -> String {
        let from = self.from.as_deref().unwrap_or("others together");
        let to = self.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
        let packets = counted(self.packets, "packet");
        format!("way from {from}{to}: {packets}; {} of the stream did not come by it\n", percent(self.loss))
    }
}

/// The outcome of `decode` for a stream.
#[derive(Debug, Serialize)]
pub(crate) struct ReceivedReport {
    form: &'static str,
    input: String,
    output: String,
    /// True if everything that was sent came out, and nothing else came in.
    whole: bool,
    /// True if the sender's end mark was seen.
    ended: bool,
    stream_id: Option<String>,
    profile: Option<&'static str>,
    window: Option<u32>,
    block: Option<u16>,
    packet: Option<u16>,
    /// The packet at which reception began. Earlier packets are unknown.
    joined_at: Option<u64>,
    payload_bytes: u64,
    /// Packets that came out.
    packets: u64,
    /// Packets that were lost and came out because they were rebuilt.
    rebuilt: u64,
    /// Packets that are lost for good.
    lost: u64,
    /// How much longer a burst could have been.
    margin: Margin,
    #[serde(flatten)]
    link: Link,
    /// The ways by which packets came; none in a file or pipe.
    ways: Vec<WayRow>,
    gaps: Vec<Gap>,
    /// The number of gaps. `gaps` lists at most 1000.
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
    /// Packets of streams that were over before this one.
    after_end: u64,
    /// Streams that were followed before this one. The rest of this report leaves them out.
    streams_before: u64,
    not_whole_before: u64,
    /// Packets of a version, type or size that this build does not accept.
    refused: u64,
    refusal: Option<String>,
    /// Packets that were forged or sealed with another key, packets that were not sealed, and packets sealed too long
    /// ago.
    forged: u64,
    unsealed: u64,
    stale: u64,
    /// Pieces of a byte stream that were no frames.
    broken_frames: u64,
    /// Packets that the kernel dropped for lack of room.
    kernel_drops: Option<u64>,
    /// Reports that were sent to senders that called for them.
    reports: u64,
    backend: &'static str,
    seconds: f64,
}

impl ReceivedReport {
    pub(crate) fn new(
        input: &str,
        target: &Target,
        received: &Received,
        settings: &Settings,
    ) -> ReceivedReport {
        let (parameters, statistics) = (received.parameters.as_ref(), &received.statistics);
        ReceivedReport {
            form: "stream",
            input: input.to_owned(),
            output: target.to_string(),
            whole: received.is_whole(),
            ended: received.ended,
            stream_id: parameters.map(|p| format!("{:016x}", p.stream_id)),
            profile: parameters.map(|p| p.profile.name()),
            window: parameters.map(|p| p.window),
            block: parameters.map(|p| p.block),
            packet: parameters.map(|p| p.payload),
            joined_at: received.joined_at,
            payload_bytes: received.payload_bytes,
            packets: received.packets,
            rebuilt: received.rebuilt,
            lost: received.lost,
            margin: Margin { packets: Link::new(received).margin_packets, ..Margin::default() },
            link: Link::new(received),
            ways: received.ways().iter().map(WayRow::new).collect(),
            gaps: received.gaps.iter().map(|&LostPackets { first, count }| Gap { first, count }).collect(),
            gap_count: received.gap_count,
            arrived: received.arrived,
            repair_packets: statistics.repairs,
            useful_repair_packets: statistics.useful_repairs,
            duplicates: statistics.duplicates + received.copies,
            late: statistics.late,
            conflicts: statistics.conflicts,
            disbelieved: statistics.disbelieved,
            damaged: received.damaged,
            foreign: received.foreign,
            mismatched: received.mismatched,
            after_end: received.after_end,
            streams_before: received.streams_before,
            not_whole_before: received.not_whole_before,
            refused: received.refused,
            refusal: received.refusal.map(|refusal| refusal.to_string()),
            forged: received.forged,
            unsealed: received.unsealed,
            stale: received.stale,
            broken_frames: received.broken_frames,
            kernel_drops: received.kernel_drops,
            reports: received.reports,
            backend: settings.library.backend.name(),
            seconds: received.time.as_secs_f64(),
        }
    }

    /// The report in words. `is_verbose` tells of the way where there is only one.
    pub(crate) fn describe(&self, received: &Received, is_verbose: bool) -> String {
        let mut out = String::new();
        if received.streams_before > 0 {
            out.push_str(&format!(
                "streams before: {}, of which {} were not whole\n",
                received.streams_before, received.not_whole_before
            ));
            if received.arrived == 0 {
                return out;
            }
        }
        if self.whole {
            out.push_str(&format!(
                "{}: {} in {} packets, {} of them rebuilt, {:.2} s\n",
                output_name(&self.output),
                bytes(self.payload_bytes),
                self.packets,
                self.rebuilt,
                self.seconds
            ));
        } else {
            self.describe_loss(received, &mut out);
        }
        let noted: Vec<String> = [
            (self.damaged, "damaged"),
            (self.broken_frames, "frames broken"),
            (if received.foreign_is_loss { 0 } else { self.foreign }, "of other streams"),
            (self.mismatched, "with other parameters"),
            (self.conflicts, "contradictory"),
            (self.after_end, "of streams that were over"),
            (self.forged, "forged, or sealed with another key"),
            (self.unsealed, "not sealed"),
            (self.stale, "sealed too long ago, or in the future"),
            (self.refused, "not known to this build"),
            (self.kernel_drops.unwrap_or(0), "dropped by the kernel, whose receive buffer was full"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if !noted.is_empty() {
            out.push_str(&format!("packets: {}\n", noted.join(", ")));
        }
        self.describe_link(&received.quality, &mut out);
        if self.ways.len() > 1 || is_verbose {
            out.extend(self.ways.iter().map(WayRow::describe));
        }
        if let Some(id) = &self.stream_id {
            let profile = self.profile.unwrap_or_default();
            out.push_str(&format!("stream {id}: {profile}, window of {}\n", self.window.unwrap_or(0)));
        }
        out
    }

    /// Describes the quality of the link, if it was not perfect.
    fn describe_link(&self, quality: &Quality, out: &mut String) {
        if quality.longest_burst() == 0 {
            return;
        }
        out.push_str(&format!(
            "link: {} of the packets did not come, {} after mending; bursts of up to {} packets; payloads waited {} ms (p50), {} ms (p99)\n",
            percent(quality.loss_before()),
            percent(quality.loss_after()),
            quality.longest_burst(),
            milliseconds(quality.delay(0.5)),
            milliseconds(quality.delay(0.99)),
        ));
        if let Some(advice) = quality.advice(self.window.unwrap_or(0)) {
            let by_whom = if advice == Advice::Patience { "" } else { " at the sender" };
            out.push_str(&format!("{}{by_whom} would have mended what was lost\n", option(advice)));
        }
    }

    /// Describes what a stream lacks that is not whole.
    fn describe_loss(&self, received: &Received, out: &mut String) {
        out.push_str(&format!("fec: decode {}: the stream is not whole\n", input_name(&self.input)));
        if self.conflicts + self.mismatched > 0 {
            out.push_str(
                "  packets contradict each other: two senders use one number, or somebody forges packets\n",
            );
        }
        if let Some(at) = self.joined_at.filter(|at| *at > 0) {
            out.push_str(&format!("  joined at packet {at}: what was before did not come\n"));
        }
        for gap in received.gaps.iter().take(LINES) {
            out.push_str(&format!("  lost: {gap}\n"));
        }
        if self.gap_count > LINES as u64 {
            out.push_str(&format!("  and {}\n", counted(self.gap_count - LINES as u64, "more gap")));
        }
        if !self.ended {
            out.push_str("  its end did not come: how much follows is not known\n");
        }
        if received.foreign_is_loss && self.foreign > 0 {
            out.push_str(&format!(
                "  {} packets of other streams are here too; --stream-id chooses one\n",
                self.foreign
            ));
        }
        out.push_str(&format!(
            "{}: {} in {} packets, {} of them rebuilt, {} lost, {:.2} s\n",
            output_name(&self.output),
            bytes(self.payload_bytes),
            self.packets,
            self.rebuilt,
            self.lost,
            self.seconds
        ));
    }
}
