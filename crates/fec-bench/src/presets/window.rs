//! The sliding-window packet code over windows and blocks: the additions of a repair packet, and their cost.

use crate::counters;
use crate::error::Result;
use crate::lab::{Lab, megabits};
use crate::model::{self, CacheUse, Pair};
use crate::rows::filled;
use crate::table::{ESTIMATED_CYCLES, FigureColumn, FigureTable, Findings, estimated_cycles, figure, key};
use fec_base::program::interrupt::interrupted;
use fec_core::block::{Access, ShardBuf};
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Encoder, Profile, Ratio, Stage, StreamSettings, Trace};
use fecfile::Settings;

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

/// Bytes of a payload, and source packets for a repair packet.
pub(crate) const PAYLOAD: usize = 1350;
pub(crate) const SOURCES: usize = 6;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let columns = [
        key("profile", "profile"),
        key("window", "window"),
        key("block", "block"),
        figure("dense_additions", "dense/row", 0),
        figure("budgeted_additions", "budgeted/row", 1),
        figure("observed_additions", "observed/row", 1),
        figure("time_us", "median µs a packet", 3),
        figure("megabits_per_second", "Mb/s", 0),
        estimated_cycles(),
    ];
    let mut table = FigureTable::new(
        "window",
        format!(
            "Encoding packets of {PAYLOAD} B, one repair packet for {SOURCES}, one thread: Mb/s are payload bits"
        ),
        columns.into_iter().chain(counters::columns()),
    );
    lab.plan(CASES.len());
    for (profile, window, block) in CASES {
        let mut work = FullWindow::new(lab.settings, lab.settings.backend, profile, window, block)?;
        let block = usize::from(work.encoder.parameters().block);
        let name = format!("{} {window}, blocks of {block}", profile.name());
        let Some(measured) = lab.measure(&name, false, || work.run()) else { continue };
        let (bytes, seconds) = ((SOURCES * PAYLOAD) as u64, measured.time.median);
        // A row covers the window, or a block if blocks are independent.
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
            (ESTIMATED_CYCLES, lab.estimated_cycles(bytes, seconds).into()),
        ];
        table.row(cells.into_iter().chain(counters::cells(&measured.counts, bytes)));
    }
    let mut notes = vec![
        "additions of packets and sums of packets to one repair packet: dense: every packet that it covers; budgeted: what the format's rule gives on the average; observed: counted. Each source packet is also added to three sums, once, and with bounded its group of four is mixed, once".to_owned(),
    ];
    let model = model(lab, &mut notes)?;
    Ok(Findings::new(vec![table, model], notes))
}

/// The cache model's figures for the same streams, and for blocks of 240 with one addition at a time.
fn model(lab: &Lab, notes: &mut Vec<String>) -> Result<FigureTable> {
    let backend = lab.options.model.backend(lab.settings.backend);
    let mut table = FigureTable::new(
        "window_model",
        format!("Model of caches, for each source packet of {PAYLOAD} B: {}", lab.options.model),
        model_columns(),
    );
    let compared = (Profile::ClassicBlocks, 6000, 240);
    let cases = CASES.map(|case| (case, false)).into_iter().chain([(compared, true)]);
    for (case, one_at_a_time) in cases {
        model_row(lab, &mut table, backend, case, one_at_a_time)?;
    }
    notes.push(format!(
        "model: the encoder's own accesses, with the loops of {}; a reference is a load or a store of {} bytes, a miss a line of 64 bytes; prefetched: where the next line always comes in time. From memory: packets read from there for each source packet; with the prefetcher, what it brings counts too. For each addition: misses of rows alone. One at a time: as encoders work that add each packet to a sum in memory",
        backend.name(),
        backend.vector_len()
    ));
    Ok(table)
}

fn model_columns() -> [FigureColumn; 21] {
    [
        key("profile", "profile"),
        key("window", "window"),
        key("block", "block"),
        key("additions", "additions"),
        figure("additions_per_row", "per row", 1),
        figure("model_references_per_packet", "refs/packet", 0),
        figure("model_references_of_packets", "of packets", 0),
        figure("model_references_of_sums", "of sums", 0),
        figure("model_references_of_rows", "of rows", 0),
        figure("model_l1_misses_per_packet", "L1/packet", 1),
        figure("model_l1_misses_per_packet_prefetched", "L1 prefetched", 1),
        figure("model_l1_misses_per_kib", "L1/KiB", 1),
        figure("model_l1_misses_per_kib_prefetched", "L1 prefetched", 1),
        figure("model_l2_misses_per_packet", "L2/packet", 1),
        figure("model_l2_misses_per_packet_prefetched", "L2 prefetched", 1),
        figure("model_l2_misses_per_kib", "L2/KiB", 1),
        figure("model_l2_misses_per_kib_prefetched", "L2 prefetched", 1),
        figure("model_l1_misses_per_addition", "L1/addition", 1),
        figure("model_l2_misses_per_addition", "L2/addition", 1),
        figure("model_packets_from_memory", "from memory", 2),
        figure("model_packets_from_memory_prefetched", "prefetched", 2),
    ]
}

/// The cache model's figures for a stream.
fn model_row(
    lab: &Lab,
    table: &mut FigureTable,
    backend: Backend,
    (profile, window, block): (Profile, u32, u16),
    one_at_a_time: bool,
) -> Result<()> {
    let (settings, caches) = (lab.settings, &lab.options.model);
    let (work, stages) = model::apart(|| -> Result<_> {
        let mut work = FullWindow::new(settings, backend, profile, window, block)?;
        let mut caches = Pair::new(caches, backend.vector_len());
        // A block warms the caches; some whole blocks follow, so that rare events happen too.
        work.traced(work.encoder.parameters().block.into(), one_at_a_time, &mut caches);
        work.before = (work.encoder.repaired(), work.encoder.added());
        let stages = work.traced(modelled(&work), one_at_a_time, &mut caches);
        Ok((work, stages))
    })?;
    let (block, packets) = (work.encoder.parameters().block, modelled(&work));
    let mut all = CacheUse::default();
    stages.iter().for_each(|stage| all += *stage);
    let CacheUse { references, misses, fetched } = all;
    let [of_packets, of_sums, of_rows] = stages.map(|stage| stage.references);
    let rows = stages[Stage::Row as usize];
    let per = |count: u64, unit: f64| (count as f64 * unit / packets as f64).into();
    let kib = 1024.0 / PAYLOAD as f64;
    let additions = packets as f64 / (work.encoder.added() - work.before.1) as f64;
    table.row([
        ("profile", profile.name().into()),
        ("window", (window as usize).into()),
        ("block", usize::from(block).into()),
        ("additions", if one_at_a_time { "one at a time" } else { "gathered" }.into()),
        ("additions_per_row", work.observed().into()),
        ("model_references_per_packet", per(references, 1.0)),
        ("model_references_of_packets", per(of_packets, 1.0)),
        ("model_references_of_sums", per(of_sums, 1.0)),
        ("model_references_of_rows", per(of_rows, 1.0)),
        ("model_l1_misses_per_packet", per(misses.l1, 1.0)),
        ("model_l1_misses_per_packet_prefetched", per(misses.l1_prefetched, 1.0)),
        ("model_l1_misses_per_kib", per(misses.l1, kib)),
        ("model_l1_misses_per_kib_prefetched", per(misses.l1_prefetched, kib)),
        ("model_l2_misses_per_packet", per(misses.l2, 1.0)),
        ("model_l2_misses_per_packet_prefetched", per(misses.l2_prefetched, 1.0)),
        ("model_l2_misses_per_kib", per(misses.l2, kib)),
        ("model_l2_misses_per_kib_prefetched", per(misses.l2_prefetched, kib)),
        ("model_l1_misses_per_addition", per(rows.misses.l1, additions)),
        ("model_l2_misses_per_addition", per(rows.misses.l2, additions)),
        ("model_packets_from_memory", per(fetched[0], 64.0 / PAYLOAD as f64)),
        ("model_packets_from_memory_prefetched", per(fetched[1], 64.0 / PAYLOAD as f64)),
    ]);
    Ok(())
}

/// The packets that are modelled: whole blocks.
fn modelled(work: &FullWindow) -> u64 {
    let block = u64::from(work.encoder.parameters().block);
    block * 960u64.div_ceil(block).max(2)
}

/// Average additions that a profile's rule gives a row over `covered` packets (format specification, sections 14.2 and
/// 14.3).
fn budgeted(profile: Profile, covered: usize) -> f64 {
    match profile {
        // A sum of each of sixteen lanes, and a tap for each stratum, with two in the first two.
        Profile::Bounded => {
            let strata = (covered / 2).min(20);
            (16 + strata + strata.min(2)) as f64
        }
        // Half of six sums of each of eight lanes, one if that is none; and pairs of taps.
        _ => 8.0 * (3.0 + 1.0 / 64.0) + 2.0 * covered.div_ceil(16) as f64,
    }
}

/// An encoder whose window is full, at work.
pub(crate) struct FullWindow {
    pub(crate) encoder: Encoder,
    /// Payloads, which come from a cache as they do from a socket.
    payloads: ShardBuf,
    /// Number of rows, and of their additions, when the window was full.
    before: (u64, u64),
}

impl FullWindow {
    pub(crate) fn new(
        settings: &Settings,
        backend: Backend,
        profile: Profile,
        window: u32,
        block: u16,
    ) -> Result<FullWindow> {
        let ratio = Ratio::new(1, SOURCES as u16).expect("neither is 0");
        let stream = StreamSettings {
            stream_id: 1,
            window,
            block,
            payload: PAYLOAD as u16,
            profile,
            ratio,
            limit: settings.max_window,
        };
        let encoder = Encoder::new(&stream, backend)?;
        let payloads = filled(SOURCES, PAYLOAD.next_multiple_of(64));
        let mut work = FullWindow { encoder, payloads, before: (0, 0) };
        // The window is full, and its beginning has moved; blocks follow one another.
        while work.encoder.sent() < u64::from(window) + u64::from(block) && !interrupted() {
            work.run();
        }
        work.before = (work.encoder.repaired(), work.encoder.added());
        Ok(work)
    }

    /// Sends as many source packets as precede a repair packet.
    pub(crate) fn run(&mut self) {
        for payload in self.payloads.iter() {
            let pushed = self.encoder.push(&payload[..PAYLOAD], &mut |packet| {
                std::hint::black_box(packet);
            });
            pushed.expect("the payload fits, and the stream never has 2^63 packets");
        }
    }

    /// Sends `packets` source packets, and tells the caches their accesses. Returns the use of caches by each stage.
    pub(crate) fn traced(&mut self, packets: u64, one_at_a_time: bool, caches: &mut Pair) -> [CacheUse; 3] {
        let mut stages = [CacheUse::default(); 3];
        let visit = &mut |access: Access, stage: Stage| {
            caches.access(access);
            stages[stage as usize] += caches.take();
        };
        let mut trace = if one_at_a_time { Trace::one_at_a_time(visit) } else { Trace::new(visit) };
        for nth in 0..packets as usize {
            let payload = &self.payloads.row(nth % SOURCES)[..PAYLOAD];
            let pushed = self.encoder.push_traced(payload, &mut |_| {}, &mut trace);
            pushed.expect("the payload fits, and the stream never has 2^63 packets");
        }
        stages
    }

    /// Sends `packets` source packets.
    pub(crate) fn packets(&mut self, packets: u64) {
        for _ in 0..packets / SOURCES as u64 {
            self.run();
        }
    }

    /// Additions for each row since the window was full.
    fn observed(&self) -> Option<f64> {
        let (rows, added) = (self.encoder.repaired() - self.before.0, self.encoder.added() - self.before.1);
        (rows > 0).then(|| added as f64 / rows as f64)
    }
}
