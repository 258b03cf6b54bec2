//! The result of a test, from the accounts of both sides: one struct for JSON, and its text.

use super::message::{Arrived, Sent};
use super::terms::{UNKNOWN, told};
use crate::grid::table_text;
use crate::report::SCHEMA_VERSION;
use crate::table::{Cell, FigureTable, figure, key};
use crate::words::{count, wrap_all};
use fec_core::format::packet::{REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use serde::Serialize;
use std::net::SocketAddr;

/// The side that reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The side that sent.
    Sender,
    /// The side that listened.
    Listener,
}

/// The result of a test. Unknown values are `None`.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// The version of these fields; it changes when one changes its meaning.
    pub schema_version: u32,
    /// `bench`.
    pub command: &'static str,
    /// `link`.
    pub preset: &'static str,
    /// The result in a sentence.
    pub headline: String,
    /// The side that reports.
    pub role: Role,
    /// The other side.
    pub peer: String,
    /// True if both sides reported all; otherwise the sender fell silent.
    pub complete: bool,
    /// True if either side ended the test early.
    pub interrupted: bool,
    /// Seconds of sending.
    pub seconds: f64,
    /// The requested rate, in Mb/s.
    pub mbps_limit: Option<f64>,
    /// Bytes of a payload.
    pub packet: Option<u64>,
    /// Repair packets for source packets; `None` without recovery.
    pub rate: Option<String>,
    /// The window, in packets.
    pub window: Option<u64>,
    /// Bytes of the largest datagram that came whole.
    pub largest_datagram: Option<u64>,
    /// The largest `--packet` of a live stream over this link.
    pub largest_packet: Option<u64>,
    /// The time of the quickest answer.
    pub round_trip_ms: Option<f64>,
    /// Datagrams to be sent.
    pub sent: u64,
    /// Datagrams that were lost on purpose.
    pub lost_on_purpose: Option<u64>,
    /// Datagrams that the sender's system did not take.
    pub unsent: Option<u64>,
    /// Datagrams that arrived, without copies.
    pub received: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Their share of the datagrams to be sent, from 0 to 1.
    pub loss: Option<f64>,
    /// Runs of lost datagrams.
    pub lost_bursts: u64,
    /// Datagrams of the longest run.
    pub longest_burst: u64,
    /// Number of times that the listener's system dropped a datagram, or several at once, that was not read in time.
    pub listener_drops: Option<u64>,
    /// Datagrams that came behind a later one.
    pub reordered: u64,
    /// The most datagrams that such a datagram came behind.
    pub reordered_by: u64,
    /// Copies of datagrams.
    pub doubled: u64,
    /// Sending rate in Mb/s: datagrams, without headers of UDP and IP.
    pub sent_mbps: Option<f64>,
    /// Arrival rate in Mb/s, counted the same way.
    pub received_mbps: Option<f64>,
    /// Datagrams sent per second.
    pub sent_per_second: Option<f64>,
    /// Datagrams that arrived per second.
    pub received_per_second: Option<f64>,
    /// Payloads that were sent.
    pub payloads: Option<u64>,
    /// Payloads that did not arrive.
    pub payloads_lost_before: Option<u64>,
    /// Payloads that did not come out after recovery.
    pub payloads_lost_after: Option<u64>,
    /// Payloads that came out with other bytes than were sent.
    pub payloads_wrong: u64,
    /// Payload that arrived, in Mb/s.
    pub goodput_before_mbps: Option<f64>,
    /// The same after recovery.
    pub goodput_after_mbps: Option<f64>,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ms: Option<f64>,
    /// Delays of datagrams, until the listener's system received them.
    pub delay_before_ms: Option<Delays>,
    /// Delays of payloads, until they came out in order.
    pub delay_after_ms: Option<Delays>,
    /// Time on cores for each datagram sent.
    pub sender_cpu_us: Option<f64>,
    /// Time on cores for each datagram that arrived.
    pub listener_cpu_us: Option<f64>,
}

/// Delays beyond that of the quickest datagram, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// The median.
    pub median: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl LinkReport {
    /// The report of the known values. `sent` is `None` if the sender fell silent.
    pub(super) fn new(
        role: Role,
        peer: SocketAddr,
        sent: Option<&Sent>,
        arrived: &Arrived,
        mbps_limit: Option<f64>,
    ) -> LinkReport {
        let mut report = LinkReport { mbps_limit, ..LinkReport::of_arrived(role, peer, arrived) };
        if let Some(sent) = sent {
            report.add_sent(sent, arrived);
        }
        report.lost = report.sent - arrived.received;
        report.loss = share(report.lost as f64, report.sent);
        report.headline = report.sentence();
        report
    }

    /// The values that the listener's account alone tells.
    fn of_arrived(role: Role, peer: SocketAddr, arrived: &Arrived) -> LinkReport {
        LinkReport {
            schema_version: SCHEMA_VERSION,
            headline: String::new(),
            command: "bench",
            preset: "link",
            role,
            // An IPv4 address is shown as such, also if the socket is for both.
            peer: SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string(),
            complete: false,
            interrupted: arrived.interrupted == 1,
            seconds: arrived.time as f64 / 1e9,
            mbps_limit: None,
            packet: None,
            rate: None,
            window: None,
            largest_datagram: None,
            largest_packet: None,
            round_trip_ms: None,
            sent: arrived.highest.max(arrived.received),
            lost_on_purpose: None,
            unsent: None,
            received: arrived.received,
            lost: 0,
            loss: None,
            lost_bursts: arrived.bursts,
            longest_burst: arrived.longest_burst,
            listener_drops: told(arrived.dropped),
            reordered: arrived.reordered,
            reordered_by: arrived.reordered_by,
            doubled: arrived.doubled,
            sent_mbps: None,
            received_mbps: mbps(arrived.bytes, arrived.time),
            sent_per_second: None,
            received_per_second: per_second(arrived.received, arrived.time),
            payloads: None,
            payloads_lost_before: None,
            payloads_lost_after: None,
            payloads_wrong: arrived.wrong,
            goodput_before_mbps: None,
            goodput_after_mbps: None,
            jitter_ms: positive(arrived.received).map(|_| milliseconds(arrived.jitter)),
            delay_before_ms: delays([arrived.delay_median, arrived.delay_high, arrived.delay_most]),
            delay_after_ms: delays([arrived.after_median, arrived.after_high, arrived.after_most]),
            sender_cpu_us: None,
            listener_cpu_us: told(arrived.on_cores)
                .and_then(|time| share(time as f64 / 1e3, arrived.received)),
        }
    }

    /// Adds the values that the sender's account tells, alone or together with the listener's.
    fn add_sent(&mut self, sent: &Sent, arrived: &Arrived) {
        let has_recovery = sent.window > 0;
        let payload_mbps = |payloads: u64| mbps(payloads.saturating_mul(sent.payload), arrived.time);
        let lost_of = |arrived: u64| sent.payloads.saturating_sub(arrived);
        self.complete = true;
        self.interrupted |= sent.interrupted == 1;
        self.seconds = sent.time as f64 / 1e9;
        self.packet = Some(sent.payload);
        self.window = positive(sent.window);
        self.largest_datagram = positive(sent.largest);
        let largest = sent.largest.checked_sub((REPAIR_OVERHEAD + SYMBOL_OVERHEAD) as u64);
        self.largest_packet = largest.map(|most| most.min(u16::MAX.into()));
        self.round_trip_ms = positive(sent.round_trip).map(milliseconds);
        self.sent = sent.sent.max(arrived.received);
        self.lost_on_purpose = Some(sent.impaired);
        self.unsent = Some(sent.unsent);
        self.sent_mbps = mbps(sent.bytes, sent.time);
        self.sent_per_second = per_second(sent.sent, sent.time);
        self.payloads = Some(sent.payloads);
        self.payloads_lost_before = Some(lost_of(arrived.payloads_before));
        self.goodput_before_mbps = payload_mbps(arrived.payloads_before);
        if has_recovery {
            self.rate = Some(format!("{}/{}", sent.repair, sent.source));
            self.payloads_lost_after = Some(lost_of(arrived.payloads_after));
            self.goodput_after_mbps = payload_mbps(arrived.payloads_after);
        }
        self.sender_cpu_us = told(sent.on_cores).and_then(|time| share(time as f64 / 1e3, sent.sent));
    }

    /// For people, in lines of at most `width` columns.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut out = wrap_all(&self.head(), width);
        for table in [self.datagrams(), self.payloads(), self.sides()] {
            if !table.rows.is_empty() {
                out.push_str(&format!("\n\n{}", table_text(&table, width).trim_end()));
            }
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out.push_str(&format!("\n\n{}", wrap_all(&notes, width)));
        }
        out
    }

    /// The result in a sentence.
    fn sentence(&self) -> String {
        let goodput = self.goodput_after_mbps.or(self.goodput_before_mbps).or(self.received_mbps);
        let lost = self.loss.map_or("nothing was sent".to_owned(), |loss| match self.lost {
            0 => "no datagram was lost".to_owned(),
            _ => format!("{:.2} % of the datagrams were lost", loss * 100.0),
        });
        let recovered = match self.payloads_lost_after {
            Some(0) if self.lost > 0 => ", and recovery gave all back",
            Some(1..) => ", more than recovery could give back",
            _ => "",
        };
        let rate = goodput.map_or(String::new(), |mbps| format!("the link brings {mbps:.1} Mb/s; "));
        format!("{rate}{lost}{recovered}")
    }

    fn head(&self) -> Vec<String> {
        let way = match self.role {
            Role::Sender => format!("link to {}", self.peer),
            Role::Listener => format!("link from {}", self.peer),
        };
        let mut what = format!("{way}: {:.1} s", self.seconds);
        if let Some(packet) = self.packet {
            what.push_str(&format!(", payloads of {packet} bytes"));
        }
        match (&self.rate, self.window) {
            (Some(rate), Some(window)) => {
                what.push_str(&format!(", {rate} repair packets over a window of {window}"));
            }
            _ if self.complete => what.push_str(", without recovery"),
            _ => {}
        }
        let mut lines = vec![self.headline.clone(), what];
        if let (Some(datagram), Some(packet)) = (self.largest_datagram, self.largest_packet) {
            lines.push(format!(
                "the largest datagram that fits has {datagram} bytes: streams may have --packet {packet}"
            ));
        }
        if let Some(time) = self.round_trip_ms {
            lines.push(format!("the quickest answer took {time:.3} ms"));
        }
        lines
    }

    fn datagrams(&self) -> FigureTable {
        let columns = [
            key("datagrams", "datagrams"),
            figure("count", "count", 0),
            figure("per_cent", "%", 2),
            key("remark", ""),
        ];
        let mut table = FigureTable::new("datagrams", "The link: datagrams, whatever is in them", columns);
        let mut row = |name: &str, count: u64, share: bool, remark: String| {
            let per_cent = (share && self.sent > 0).then(|| count as f64 * 100.0 / self.sent as f64);
            table.row([
                ("datagrams", name.into()),
                ("count", Cell::Whole(count)),
                ("per_cent", per_cent.into()),
                ("remark", remark.into()),
            ]);
        };
        let positive = |count: Option<u64>| count.filter(|count| *count > 0);
        row("sent", self.sent, false, String::new());
        if let Some(count) = positive(self.lost_on_purpose) {
            row("  lost on purpose", count, true, String::new());
        }
        if let Some(count) = positive(self.unsent) {
            row("  not taken by the sender's system", count, true, String::new());
        }
        row("received", self.received, true, String::new());
        let bursts = match self.lost_bursts {
            0 => String::new(),
            1 => format!("in one run of {}", self.longest_burst),
            runs => format!("in {runs} runs, the longest of {}", self.longest_burst),
        };
        row("lost", self.lost, true, bursts);
        let by = (self.reordered > 0).then(|| format!("by up to {}", self.reordered_by));
        row("reordered", self.reordered, true, by.unwrap_or_default());
        row("doubled", self.doubled, true, String::new());
        table
    }

    fn payloads(&self) -> FigureTable {
        let columns = [
            key("payloads", "payloads"),
            figure("goodput_mbps", "goodput Mb/s", 2),
            figure("lost", "lost", 0),
            figure("per_cent", "%", 3),
            figure("delay_median_ms", "delay ms: median", 2),
            figure("delay_p99_ms", "99 %", 2),
            figure("delay_max_ms", "most", 2),
        ];
        let title = "The payload: delays are beyond that of the quickest datagram";
        let mut table = FigureTable::new("payloads", title, columns);
        let mut row = |name: &str, goodput: f64, lost: Option<u64>, delays: Option<Delays>| {
            let share = lost.zip(self.payloads.filter(|of| *of > 0));
            table.row([
                ("payloads", name.into()),
                ("goodput_mbps", goodput.into()),
                ("lost", lost.map(Cell::Whole).into()),
                ("per_cent", share.map(|(lost, of)| lost as f64 * 100.0 / of as f64).into()),
                ("delay_median_ms", delays.map(|delays| delays.median).into()),
                ("delay_p99_ms", delays.map(|delays| delays.p99).into()),
                ("delay_max_ms", delays.map(|delays| delays.max).into()),
            ]);
        };
        if let Some(goodput) = self.goodput_before_mbps {
            let name = if self.rate.is_some() { "before recovery" } else { "as they came" };
            row(name, goodput, self.payloads_lost_before, self.delay_before_ms);
        }
        if let Some(goodput) = self.goodput_after_mbps {
            row("after recovery, in order", goodput, self.payloads_lost_after, self.delay_after_ms);
        }
        table
    }

    fn sides(&self) -> FigureTable {
        let columns = [
            key("side", "side"),
            figure("mbps", "Mb/s", 2),
            figure("datagrams_per_second", "datagrams/s", 0),
            figure("cpu_us", "processor µs/datagram", 2),
        ];
        let title = "The two sides: Mb/s are those of datagrams, without headers of UDP and IP";
        let mut table = FigureTable::new("sides", title, columns);
        let mut row = |name: &str, mbps: Option<f64>, per_second: Option<f64>, cpu: Option<f64>| {
            table.row([
                ("side", name.into()),
                ("mbps", mbps.into()),
                ("datagrams_per_second", per_second.into()),
                ("cpu_us", cpu.into()),
            ]);
        };
        if self.complete {
            row("sender", self.sent_mbps, self.sent_per_second, self.sender_cpu_us);
        }
        row("listener", self.received_mbps, self.received_per_second, self.listener_cpu_us);
        table
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(jitter) = self.jitter_ms {
            notes.push(format!("jitter (RFC 3550, at the end): {jitter:.3} ms"));
        }
        if let Some(times) = self.listener_drops.filter(|times| *times > 0) {
            notes.push(format!(
                "the listener's system dropped what was not read in time, {}, one datagram or many: the listener is \
                 too slow for so much, or its receive buffer (net.core.rmem_max) too small; --mbps sends less",
                count(times, "time", "times")
            ));
        }
        if self.payloads_wrong > 0 {
            notes.push(format!(
                "{} came out with other bytes than went in",
                count(self.payloads_wrong, "payload", "payloads")
            ));
        }
        if !self.complete {
            notes.push("the sender fell silent: this is what arrived until then".to_owned());
        } else if self.interrupted {
            notes.push("interrupted: this is what was measured until then".to_owned());
        }
        notes
    }
}

/// A part for each of a number; `None` if there are none.
fn share(part: f64, of: u64) -> Option<f64> {
    (of > 0).then(|| part / of as f64)
}

/// A rate in Mb/s: bits per microsecond.
fn mbps(bytes: u64, nanoseconds: u64) -> Option<f64> {
    share(bytes as f64 * 8e3, nanoseconds)
}

/// A number for each second.
fn per_second(count: u64, nanoseconds: u64) -> Option<f64> {
    share(count as f64 * 1e9, nanoseconds)
}

/// A number that stands for nothing if it is 0.
fn positive(number: u64) -> Option<u64> {
    (number > 0).then_some(number)
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn delays(nanoseconds: [u64; 3]) -> Option<Delays> {
    let [median, p99, max] = nanoseconds.map(milliseconds);
    (!nanoseconds.contains(&UNKNOWN)).then_some(Delays { median, p99, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_from_what_both_sides_know() {
        let sent = Sent {
            sent: 1000,
            impaired: 40,
            bytes: 1_000_000,
            time: 1_000_000_000,
            on_cores: 2_000_000,
            payloads: 800,
            payload: 1000,
            window: 100,
            repair: 1,
            source: 4,
            largest: 1472,
            ..Sent::default()
        };
        let arrived = Arrived {
            received: 950,
            bytes: 950_000,
            time: 500_000_000,
            payloads_before: 760,
            payloads_after: 800,
            dropped: UNKNOWN,
            after_median: UNKNOWN,
            delay_most: 3_000_000,
            ..Arrived::default()
        };
        let to = SocketAddr::from(([127, 0, 0, 1], 1));
        let report = LinkReport::new(Role::Sender, to, Some(&sent), &arrived, None);
        assert_eq!((report.lost, report.loss), (50, Some(0.05)));
        assert_eq!((report.sent_mbps, report.received_mbps), (Some(8.0), Some(15.2)));
        assert_eq!((report.payloads_lost_before, report.payloads_lost_after), (Some(40), Some(0)));
        assert_eq!(report.goodput_before_mbps, Some(12.16));
        assert_eq!((report.sender_cpu_us, report.listener_drops), (Some(2.0), None));
        assert_eq!(report.delay_before_ms, Some(Delays { median: 0.0, p99: 0.0, max: 3.0 }));
        assert_eq!((report.delay_after_ms, report.largest_packet), (None, Some(1414)));
        assert!(report.text(None).contains("before recovery"), "{}", report.text(None));
        assert_eq!(
            report.headline,
            "the link brings 12.8 Mb/s; 5.00 % of the datagrams were lost, and recovery gave all back"
        );
        let narrow = report.text(Some(80));
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        assert!(
            narrow.starts_with("the link brings 12.8 Mb/s; 5.00 %") && narrow.contains("1000"),
            "{narrow}"
        );
        // No account of either side makes a report panic.
        let wild = Sent::default();
        let nonsense = Arrived { received: u64::MAX, payloads_before: u64::MAX, time: 0, ..arrived };
        for sent in [None, Some(&wild)] {
            let report = LinkReport::new(Role::Listener, to, sent, &nonsense, None);
            assert_eq!((report.sent, report.received_mbps), (u64::MAX, None));
            assert!(!report.text(None).is_empty());
        }
    }
}
