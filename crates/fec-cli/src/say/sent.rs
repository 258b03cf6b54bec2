//! The final report of `encode --stream`, as text and JSON.

use crate::line::stream::{Rate, Send};
use crate::run::target::{input_name, output_name};
use crate::say::stream::percent;
use crate::settings::Settings;
use fec_base::names::{bytes, counted, show};
use fec_core::window::Ratio;
use fec_keys::cipher::Cipher;
use fec_live::LiveError;
use fec_live::address::Address;
use fec_live::paths::WaySent;
use fec_live::send::{FeedbackOutcome, ReceiverOutcome, SendOptions, Sent};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// The reports of receivers.
#[derive(Debug, Serialize)]
struct Feedback {
    calls: u64,
    reports: u64,
    /// Datagrams that came back and were no reports that count.
    refused: u64,
    /// Repair packets that were sent because a report lacked them.
    demanded: u64,
    /// Repair packets for a source packet in the end.
    ratio: f64,
    round_trip_ms: Option<f64>,
    receivers: Vec<Receiver>,
}

/// The last report of a receiver.
#[derive(Debug, Serialize)]
struct Receiver {
    receiver: String,
    loss_before: f64,
    lost: u64,
    bursts: u32,
    longest_burst: u32,
    delay_p99_ms: f64,
    /// How far the receiver's clock is ahead.
    clock_ahead_ms: f64,
}

impl Feedback {
    fn new(of: &FeedbackOutcome) -> Feedback {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let receiver = |of: &ReceiverOutcome| Receiver {
            receiver: format!("{:016x}", of.receiver),
            loss_before: (of.loss_before * 1e6).round() / 1e6,
            lost: of.lost,
            bursts: of.bursts,
            longest_burst: of.longest_burst,
            delay_p99_ms: milliseconds(of.delay),
            clock_ahead_ms: of.clock_ahead as f64 / 1e3,
        };
        Feedback {
            calls: of.calls,
            reports: of.reports,
            refused: of.refused,
            demanded: of.demanded,
            ratio: f64::from(of.ratio.repair()) / f64::from(of.ratio.source()),
            round_trip_ms: of.round_trip.map(milliseconds),
            receivers: of.receivers.iter().map(receiver).collect(),
        }
    }

    fn describe(&self) -> String {
        if self.reports == 0 {
            return "no receiver reported: the rate was 1/6\n".to_owned();
        }
        let lost = self.receivers.iter().map(|of| of.loss_before).fold(0.0, f64::max);
        format!(
            "{} from {}: {} of the packets did not come; there and back in {:.0} ms; {} on demand\n",
            counted(self.reports, "report"),
            counted(self.receivers.len() as u64, "receiver"),
            percent(lost),
            self.round_trip_ms.unwrap_or(0.0),
            counted(self.demanded, "repair packet"),
        )
    }
}

fn ratio(of: Ratio) -> String {
    format!("{}/{}", of.repair(), of.source())
}

/// A way to the receivers.
#[derive(Debug, Serialize)]
struct WayRow {
    address: String,
    /// The interface that was chosen with --interface.
    interface: Option<String>,
    /// Packets that did not go out this way.
    unsent: u64,
    /// How often the network answered that nobody receives there, or that there is no route.
    refused: u64,
    unreachable: u64,
}

impl WayRow {
    fn new(way: &WaySent) -> WayRow {
        WayRow {
            address: way.address.to_string(),
            interface: way.interface.as_deref().map(show),
            unsent: way.unsent,
            refused: way.replies.refused,
            unreachable: way.replies.unreachable,
        }
    }

    fn describe(&self) -> String {
        let through = self.interface.as_ref().map_or_else(String::new, |name| format!(" through {name}"));
        format!("way to {}{through}: {} not sent\n", self.address, counted(self.unsent, "packet"))
    }
}

/// The outcome of `encode --stream`.
#[derive(Debug, Serialize)]
pub(crate) struct SentReport {
    form: &'static str,
    input: String,
    output: String,
    stream_id: String,
    profile: &'static str,
    /// Repair packets / source packets, auto, or @FILE.
    rate: String,
    window: u32,
    block: u16,
    /// Most payload bytes of a packet.
    packet: u16,
    payload_bytes: u64,
    source_packets: u64,
    repair_packets: u64,
    marks: u64,
    /// Bytes of all packets, without frames and network headers.
    sent_bytes: u64,
    /// The cipher that seals packets, if any.
    cipher: Option<&'static str>,
    /// Packets that --impair lost on purpose.
    impaired_lost: u64,
    /// Packets that the system did not take while the network was away.
    unsent: u64,
    /// The ways to the receivers; none to a file or pipe.
    ways: Vec<WayRow>,
    /// How often the network answered that nobody receives there, or that there is no route.
    refused: u64,
    unreachable: u64,
    /// The reports of receivers, if reports were called for.
    feedback: Option<Feedback>,
    backend: &'static str,
    seconds: f64,
}

/// A way whose network is away, in words.
pub(crate) fn network_away(to: &Address, why: &LiveError) -> String {
    let group = if to.is_group() { "; for multicast, name the network with --interface" } else { "" };
    format!(
        "{to}: the network is away ({why}): it is waited for, and what is not sent meanwhile is counted{group}"
    )
}

impl SentReport {
    pub(crate) fn new(
        (input, live): (&Path, &Send),
        output: String,
        sent: &Sent,
        settings: &Settings,
        time: Duration,
    ) -> SentReport {
        let parameters = &sent.parameters;
        SentReport {
            form: "stream",
            input: show(input),
            output,
            stream_id: format!("{:016x}", parameters.stream_id),
            profile: parameters.profile.name(),
            rate: match &live.rate {
                Some(Rate::Fixed(rate)) => ratio(*rate),
                Some(Rate::File(path)) => format!("@{}", show(path)),
                _ if sent.feedback.is_some() => "auto".to_owned(),
                _ => ratio(SendOptions::default().ratio),
            },
            window: parameters.window,
            block: parameters.block,
            packet: parameters.payload,
            payload_bytes: sent.payload_bytes,
            source_packets: sent.source_packets,
            repair_packets: sent.repair_packets,
            marks: sent.marks,
            sent_bytes: sent.sent_bytes,
            cipher: sent.cipher.map(Cipher::name),
            impaired_lost: sent.impaired_lost,
            unsent: sent.unsent,
            ways: sent.ways.iter().map(WayRow::new).collect(),
            refused: sent.replies.refused,
            unreachable: sent.replies.unreachable,
            feedback: sent.feedback.as_ref().map(Feedback::new),
            backend: settings.library.backend.name(),
            seconds: time.as_secs_f64(),
        }
    }

    pub(crate) fn is_on_stdout(&self) -> bool {
        self.output == "-"
    }

    /// The report in words. `is_verbose` tells of several ways where nothing is amiss.
    pub(crate) fn describe(&self, is_verbose: bool) -> String {
        let output = output_name(&self.output);
        let mut out = format!(
            "{}: {} in {} packets, and {} repair packets -> {output} ({})\n",
            input_name(&self.input),
            bytes(self.payload_bytes),
            self.source_packets,
            self.repair_packets,
            bytes(self.sent_bytes)
        );
        out.push_str(&format!(
            "stream {}: {}, {} repair packets for source packets over a window of {}{}; {:.2} s, {} kernel\n",
            self.stream_id,
            self.profile,
            self.rate,
            self.window,
            self.cipher.map_or_else(String::new, |cipher| format!(", {cipher}")),
            self.seconds,
            self.backend
        ));
        self.feedback.iter().for_each(|feedback| out.push_str(&feedback.describe()));
        if self.impaired_lost > 0 {
            out.push_str(&format!("--impair lost {} on purpose\n", counted(self.impaired_lost, "packet")));
        }
        if self.unsent > 0 {
            out.push_str(&format!(
                "not sent, since the network was away: {}\n",
                counted(self.unsent, "packet")
            ));
        }
        if self.ways.len() > 1 && (self.unsent > 0 || is_verbose) {
            out.extend(self.ways.iter().map(WayRow::describe));
        }
        if self.refused > 0 {
            out.push_str("nobody received, or not all the time: the network said so\n");
        }
        if self.unreachable > 0 {
            out.push_str("there was no way there, or not all the time: the network said so\n");
        }
        out
    }
}
