//! Statistics of live streams in the text format of Prometheus, for a file that other programs read.

use fec_live::paths::WaySent;
use fec_live::quality::Quality;
use fec_live::send::{FeedbackOutcome, Sent};
use fec_live::{Received, WayReceived};
use std::fmt::Display;

/// The beginning of each of these files, by which an older one is known.
pub(crate) const BEGINNING: &str = "# HELP fec_";

/// A text that is being made.
struct Text {
    out: String,
    /// The labels of every sample, as they stand in braces.
    labels: String,
}

/// A value for a label, between quotation marks.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A label.
fn label(name: &str, value: &str) -> String {
    format!("{name}=\"{}\"", escaped(value))
}

impl Text {
    /// A text about the stream with this number, as far as it is known, at this address or file.
    fn new(stream_id: Option<u64>, place: &str) -> Text {
        let id = stream_id.map(|id| label("stream_id", &format!("{id:016x}")));
        let labels: Vec<String> = id.into_iter().chain([label("address", place)]).collect();
        Text { out: String::new(), labels: labels.join(",") }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.out.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn sample(&mut self, name: &str, more: &str, value: impl Display) {
        let comma = if more.is_empty() { "" } else { "," };
        self.out.push_str(&format!("{name}{{{}{comma}{more}}} {value}\n", self.labels));
    }

    /// A number that only grows.
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.sample(name, "", value);
    }

    /// Numbers that only grow, told apart by a label.
    fn counters(&mut self, name: &str, help: &str, by: &str, values: &[(&str, u64)]) {
        self.head(name, "counter", help);
        values.iter().for_each(|(of, value)| self.sample(name, &label(by, of), value));
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.sample(name, "", value);
    }

    /// The state: whether the command has ended, and how.
    fn end(&mut self, name: &str, is_over: bool) {
        self.gauge(name, "1 when the command has ended, and these are its last numbers.", u8::from(is_over));
    }
}

/// The statistics of a sender. `is_over`: they are the last.
pub(crate) fn sent(output: &str, sent: &Sent, is_over: bool) -> String {
    let mut text = Text::new(Some(sent.parameters.stream_id), output);
    text.counter("fec_send_payload_bytes_total", "Bytes of the payload that went out.", sent.payload_bytes);
    text.counter(
        "fec_send_bytes_total",
        "Bytes of all packets, without frames and network headers.",
        sent.sent_bytes,
    );
    let kinds = [("source", sent.source_packets), ("repair", sent.repair_packets), ("mark", sent.marks)];
    text.counters("fec_send_packets_total", "Packets that were made.", "kind", &kinds);
    let help = "Packets that did not go out, since the network was away, counted for each way.";
    text.counter("fec_send_unsent_packets_total", help, sent.unsent);
    text.counter(
        "fec_send_impaired_packets_total",
        "Packets that --impair lost on purpose.",
        sent.impaired_lost,
    );
    if !sent.ways.is_empty() {
        ways_sent(&mut text, sent);
    }
    if let Some(of) = &sent.feedback {
        feedback(&mut text, of);
    }
    text.end("fec_send_ended", is_over);
    text.out
}

/// The reports of receivers.
fn feedback(text: &mut Text, of: &FeedbackOutcome) {
    text.counter("fec_send_reports_total", "Reports of receivers that counted.", of.reports);
    let help = "Repair packets that were sent because a report lacked them.";
    text.counter("fec_send_demanded_packets_total", help, of.demanded);
    let ratio = f64::from(of.ratio.repair()) / f64::from(of.ratio.source());
    text.gauge("fec_send_rate_ratio", "Repair packets for a source packet.", ratio);
    let loss = of.receivers.iter().map(|receiver| receiver.loss_before).fold(0.0, f64::max);
    text.gauge("fec_send_reported_loss_ratio", "The highest loss that a receiver reports.", loss);
}

fn ways_sent(text: &mut Text, sent: &Sent) {
    type Count = fn(&WaySent) -> u64;
    let families: [(&str, &str, Count); 3] = [
        ("fec_send_way_unsent_packets_total", "Packets that did not go out this way.", |way| way.unsent),
        ("fec_send_way_refused_total", "Replies that nobody receives there.", |way| way.replies.refused),
        ("fec_send_way_unreachable_total", "Replies that there is no route.", |way| way.replies.unreachable),
    ];
    for (name, help, value) in families {
        text.head(name, "counter", help);
        for (nth, way) in sent.ways.iter().enumerate() {
            // Two ways may go to one address, through two interfaces.
            let interface = way.interface.as_deref().map(|of| label("interface", of));
            let labels = [label("way", &(nth + 1).to_string()), label("to", &way.address.to_string())];
            let labels: Vec<String> = labels.into_iter().chain(interface).collect();
            text.sample(name, &labels.join(","), value(way));
        }
    }
}

/// The statistics of a receiver. `is_over`: they are the last.
pub(crate) fn received(input: &str, received: &Received, is_over: bool) -> String {
    let (of, statistics) = (received, &received.statistics);
    let mut text = Text::new(of.parameters.map(|parameters| parameters.stream_id), input);
    for (name, help, value) in [
        ("fec_receive_payload_bytes_total", "Bytes of the payload that came out.", of.payload_bytes),
        ("fec_receive_packets_total", "Source packets that came out.", of.packets),
        ("fec_receive_rebuilt_packets_total", "Source packets that came out rebuilt.", of.rebuilt),
        ("fec_receive_lost_packets_total", "Source packets that are lost for good.", of.lost),
        ("fec_receive_gaps_total", "Gaps of packets that are lost for good.", of.gap_count),
        ("fec_receive_arrived_packets_total", "Packets of the stream that arrived, of any kind.", of.arrived),
        ("fec_receive_repair_packets_total", "Repair packets, each counted once.", statistics.repairs),
        (
            "fec_receive_duplicate_packets_total",
            "Packets that came again.",
            statistics.duplicates + of.copies,
        ),
        ("fec_receive_late_packets_total", "Packets that came too late.", statistics.late),
        (
            "fec_receive_streams_before_total",
            "Streams that were followed before this one.",
            of.streams_before,
        ),
    ] {
        text.counter(name, help, value);
    }
    let reasons = [
        ("damaged", of.damaged),
        ("broken_frame", of.broken_frames),
        ("foreign", of.foreign),
        ("mismatched", of.mismatched),
        ("contradictory", statistics.conflicts),
        ("after_end", of.after_end),
        ("forged", of.forged),
        ("unsealed", of.unsealed),
        ("stale", of.stale),
        ("refused", of.refused),
    ];
    text.counters("fec_receive_rejected_packets_total", "Packets that were not taken.", "reason", &reasons);
    if let Some(drops) = of.kernel_drops {
        text.counter("fec_receive_kernel_drops_total", "Packets that the kernel had no room for.", drops);
    }
    quality(&mut text, &of.quality);
    ways_received(&mut text, received);
    text.end("fec_receive_ended", is_over);
    let whole = "1 when everything that was sent came out, and its end is known.";
    text.gauge("fec_receive_whole", whole, u8::from(of.is_whole()));
    text.out
}

fn quality(text: &mut Text, quality: &Quality) {
    for (name, help, value) in [
        ("fec_receive_loss_ratio", "Share of source packets that did not come.", quality.loss_before()),
        (
            "fec_receive_loss_after_repair_ratio",
            "Share of source packets that are lost.",
            quality.loss_after(),
        ),
        (
            "fec_receive_delay_median_seconds",
            "Time that half of the payloads waited for packets before them, or repair, at most.",
            quality.delay(0.5).as_secs_f64(),
        ),
        ("fec_receive_delay_p99_seconds", "The same for 99 of 100.", quality.delay(0.99).as_secs_f64()),
    ] {
        text.gauge(name, help, value);
    }
    let bursts = "Most source packets in a row that did not come.";
    text.gauge("fec_receive_longest_burst_packets", bursts, quality.longest_burst());
    if let Some(margin) = quality.margin() {
        text.gauge("fec_receive_margin_packets", "The longest burst that would be mended now.", margin);
    }
}

fn ways_received(text: &mut Text, received: &Received) {
    let ways = received.ways();
    if ways.is_empty() {
        return;
    }
    let labels = |way: &WayReceived| {
        let from = label("from", &way.from.map_or_else(|| "others".to_owned(), |from| from.to_string()));
        let to = way.to.map(|to| label("to", &to.to_string()));
        [from].into_iter().chain(to).collect::<Vec<String>>().join(",")
    };
    let name = "fec_receive_way_packets_total";
    text.head(name, "counter", "Packets that came from this address, of any kind.");
    ways.iter().for_each(|way| text.sample(name, &labels(way), way.packets));
    let name = "fec_receive_way_loss_ratio";
    text.head(name, "gauge", "Share of the stream's source packets that did not come from this address.");
    ways.iter().for_each(|way| text.sample(name, &labels(way), way.loss));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules of the text format: a head before its samples, each family once, names and labels of its alphabet, and
    /// no sample twice.
    fn assert_valid(text: &str) {
        let mut families = Vec::new();
        let mut samples = std::collections::HashSet::new();
        let is_name = |name: &str| {
            name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
                && !name.is_empty()
        };
        assert!(text.starts_with(BEGINNING) && text.ends_with('\n'));
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').expect("a text");
                assert!(
                    is_name(name) && help.ends_with('.') && !families.contains(&name.to_owned()),
                    "{line}"
                );
                families.push(name.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').expect("a type");
                assert_eq!(Some(name), families.last().map(String::as_str), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let (name, labels) = series.split_once('{').expect("labels");
                assert_eq!(Some(name), families.last().map(String::as_str), "{line}");
                assert!(labels.ends_with("\"}") && value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
                assert!(samples.insert(series.to_owned()), "twice: {line}");
            }
        }
    }

    #[test]
    fn a_text_is_what_prometheus_reads() {
        let mut of = Received::default();
        (of.packets, of.lost, of.damaged, of.statistics.duplicates) = (7, 1, 3, 2);
        let text = received("udp://:5000", &of, false);
        assert_valid(&text);
        for line in [
            "fec_receive_packets_total{address=\"udp://:5000\"} 7\n",
            "fec_receive_duplicate_packets_total{address=\"udp://:5000\"} 2\n",
            "fec_receive_rejected_packets_total{address=\"udp://:5000\",reason=\"damaged\"} 3\n",
            "fec_receive_ended{address=\"udp://:5000\"} 0\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        assert!(received("x", &of, true).contains("fec_receive_ended{address=\"x\"} 1\n"));
    }

    /// A name may hold whatever a file's name may.
    #[test]
    fn names_in_labels_are_escaped() {
        let text = received("a\"b\\c\nd", &Received::default(), true);
        assert_valid(&text);
        assert!(text.contains(r#"fec_receive_ended{address="a\"b\\c\nd"} 1"#), "{text}");
    }
}
