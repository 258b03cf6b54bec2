//! The sliding-window packet code over windows and blocks: what a repair packet adds up, and what that costs.

use super::super::counters;
use super::super::lab::Lab;
use super::super::report::{Table, figure, key};
use super::rows::filled;
use super::{Outcome, estimated_cycles, megabits};
use crate::failure::{Failure, Result};
use fec_core::block::ShardBuf;
use fec_core::window::{Encoder, Profile, Ratio, Settings};

/// Profile, window and block.
const CASES: [(Profile, u32, u16); 8] = [
    (Profile::Classic, 500, 240),
    (Profile::Classic, 3000, 240),
    (Profile::Classic, 6000, 240),
    (Profile::ClassicBlocks, 6000, 3000),
    (Profile::ClassicBlocks, 6000, 500),
    (Profile::ClassicBlocks, 6000, 300),
    (Profile::ClassicBlocks, 6000, 240),
    (Profile::Bounded, 6000, 240),
];

/// Bytes of a payload, and source packets for one repair packet.
pub(super) const PAYLOAD: usize = 1350;
pub(super) const SOURCES: usize = 6;

pub(super) fn run(lab: &mut Lab) -> Result<Outcome> {
    let columns = [
        key("profile", "profile"),
        key("window", "window"),
        key("block", "block"),
        figure("dense_additions", "dense/row", 0),
        figure("budgeted_additions", "budgeted/row", 1),
        figure("observed_additions", "observed/row", 1),
        figure("time_us", "median µs a packet", 3),
        figure("megabits_per_second", "Mb/s", 0),
        figure("estimated_cycles_per_byte", "est. c/B", 3),
    ];
    let mut table = Table::new(
        "window",
        format!(
            "Encoding packets of {PAYLOAD} B, one repair packet for {SOURCES}, one thread: Mb/s are payload bits"
        ),
        columns.into_iter().chain(counters::columns()),
    );
    lab.plan(CASES.len());
    for (profile, window, block) in CASES {
        let mut work = Work::new(lab, profile, window, block)?;
        let block = usize::from(work.encoder.parameters().block);
        let name = format!("{} {window}, blocks of {block}", profile.name());
        let Some(measured) = lab.measure(&name, false, || work.run()) else { continue };
        let (bytes, seconds) = ((SOURCES * PAYLOAD) as u64, measured.time.median);
        // A row covers the window, or a block where blocks are on their own.
        let covered = if profile == Profile::ClassicBlocks { block } else { window as usize };
        let cells = [
            ("profile", profile.name().into()),
            ("window", (window as usize).into()),
            ("block", block.into()),
            ("dense_additions", covered.into()),
            ("budgeted_additions", budgeted(profile, covered).into()),
            ("observed_additions", work.observed().into()),
            ("time_us", measured.time.scaled(1e6 / SOURCES as f64).into()),
            ("megabits_per_second", megabits(bytes, seconds).into()),
            ("estimated_cycles_per_byte", estimated_cycles(lab, bytes, seconds).into()),
        ];
        table.row(cells.into_iter().chain(counters::cells(&measured.counts, bytes)));
    }
    let notes = vec![
        "additions of packets and sums of packets to one repair packet: dense: every packet that it covers; budgeted: what the format's rule gives on the average; observed: counted. Each source packet is also added to three sums, once".to_owned(),
    ];
    Ok(Outcome { tables: vec![table], notes })
}

/// How many additions the rule of a profile gives a row over so many packets, on the average (format
/// specification, sections 14.2 and 14.3).
fn budgeted(profile: Profile, covered: usize) -> f64 {
    match profile {
        // One sum of each of sixteen lanes, and 32 taps.
        Profile::Bounded => 16.0 + covered.min(64) as f64 / 2.0,
        // Half of six sums of each of eight lanes, one where that is none; and pairs of taps.
        _ => 8.0 * (3.0 + 1.0 / 64.0) + 2.0 * covered.div_ceil(16) as f64,
    }
}

/// An encoder whose window is full, at work.
struct Work {
    encoder: Encoder,
    /// Payloads that come from a cache, as they do from a socket.
    payloads: ShardBuf,
    /// Rows, and what they had added up, when the window was full.
    before: (u64, u64),
}

impl Work {
    fn new(lab: &Lab, profile: Profile, window: u32, block: u16) -> Result<Work> {
        let ratio = Ratio::new(1, SOURCES as u16).expect("neither is 0");
        let settings = Settings {
            stream_id: 1,
            window,
            block,
            payload: PAYLOAD as u16,
            profile,
            ratio,
            limit: lab.settings.max_window,
        };
        let encoder =
            Encoder::new(&settings, lab.settings.backend).map_err(|e| Failure::usage(e.to_string()))?;
        let payloads = filled(SOURCES, PAYLOAD.next_multiple_of(64));
        let mut work = Work { encoder, payloads, before: (0, 0) };
        // The window is full, and its beginning has moved; blocks follow one another.
        while work.encoder.sent() < u64::from(window) + u64::from(block) && !lab.stopped() {
            work.run();
        }
        work.before = (work.encoder.repaired(), work.encoder.added());
        Ok(work)
    }

    /// Sends as many source packets as are followed by a repair packet.
    fn run(&mut self) {
        for payload in self.payloads.iter() {
            let pushed = self.encoder.push(&payload[..PAYLOAD], &mut |packet| {
                std::hint::black_box(packet);
            });
            pushed.expect("the payload fits, and the stream never has 2^63 packets");
        }
    }

    /// Additions for each row since the window was full.
    fn observed(&self) -> Option<f64> {
        let (rows, added) = (self.encoder.repaired() - self.before.0, self.encoder.added() - self.before.1);
        (rows > 0).then(|| added as f64 / rows as f64)
    }
}
