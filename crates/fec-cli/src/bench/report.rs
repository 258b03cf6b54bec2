//! The figures of `bench`, as a table and JSON from one struct.

use super::Rounds;
use fec_core::observe::Phase;
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) schema_version: u32,
    pub(super) command: &'static str,
    pub(super) cpu: String,
    pub(super) backend: &'static str,
    /// How the encoder computes: `matrix` or `fft`, and what that takes for each column of bytes.
    pub(super) engine: &'static str,
    pub(super) multiplications_per_column: usize,
    pub(super) additions_per_column: usize,
    pub(super) threads: usize,
    pub(super) hash: &'static str,
    pub(super) k: usize,
    pub(super) m: usize,
    pub(super) payload_bytes: u64,
    pub(super) shard_bytes: usize,
    pub(super) rounds: u32,
    /// Originals that decoding has to compute.
    pub(super) lost_originals: usize,
    pub(super) encode: Section,
    pub(super) decode: Section,
}

/// One direction.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    /// Making the plan, once; not part of the total.
    setup_ms: f64,
    phases: Vec<Row>,
    total: Row,
}

/// The figures of one phase over all rounds.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    name: &'static str,
    median_ms: f64,
    min_ms: f64,
    /// Payload bits a second, in millions, at the median.
    megabits_per_second: f64,
    /// Share of the total's median.
    share: f64,
}

fn name(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Encode => Some("encode"),
        Phase::Digest => Some("digest"),
        Phase::Tree => Some("tree"),
        Phase::Check => Some("check"),
        Phase::Decode => Some("decode"),
        Phase::Reencode => Some("re-encode"),
        Phase::Plan => None,
    }
}

fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn row(name: &'static str, times: &[Duration], payload: u64, total: Duration) -> Row {
    let median = median(times).as_secs_f64();
    let min = times.iter().min().copied().unwrap_or_default().as_secs_f64();
    Row {
        name,
        median_ms: median * 1e3,
        min_ms: min * 1e3,
        megabits_per_second: payload as f64 * 8e-6 / median.max(1e-12),
        share: median / total.as_secs_f64().max(1e-12),
    }
}

impl Section {
    pub(super) fn new(rounds: &Rounds, payload: u64, setup: Duration) -> Section {
        let total = median(&rounds.totals);
        // In the order of the work, which is that of the enum but for the second digest and tree.
        let order = [Phase::Check, Phase::Encode, Phase::Decode, Phase::Reencode, Phase::Digest, Phase::Tree];
        let phases: Vec<Row> = order
            .iter()
            .filter_map(|phase| Some(row(name(*phase)?, rounds.phases.get(phase)?, payload, total)))
            .collect();
        let mut other = Vec::new();
        for (nth, total) in rounds.totals.iter().enumerate() {
            let known: Duration = rounds.phases.values().filter_map(|times| times.get(nth)).sum();
            other.push(total.saturating_sub(known));
        }
        let phases = phases.into_iter().chain([row("other", &other, payload, total)]).collect();
        Section {
            setup_ms: setup.as_secs_f64() * 1e3,
            phases,
            total: row("total", &rounds.totals, payload, total),
        }
    }

    fn table(&self, title: &str, out: &mut String) {
        out.push_str(&format!(
            "\n{title:<12}{:>10}{:>10}{:>12}{:>8}\n",
            "median ms", "min ms", "Mb/s", "share"
        ));
        for row in self.phases.iter().chain([&self.total]) {
            out.push_str(&format!(
                "  {:<10}{:>10.3}{:>10.3}{:>12.0}{:>7.1}%\n",
                row.name,
                row.median_ms,
                row.min_ms,
                row.megabits_per_second,
                row.share * 100.0
            ));
        }
        out.push_str(&format!("  plan, once{:>10.3}\n", self.setup_ms));
    }
}

impl Report {
    pub(super) fn table(&self) -> String {
        let mut out = format!(
            "backend {}, {} engine ({} multiplications and {} additions a column), {} thread{}, {}\n{}\n{} + {} shards of {} bytes, {} bytes of payload, {} rounds\n",
            self.backend,
            self.engine,
            self.multiplications_per_column,
            self.additions_per_column,
            self.threads,
            if self.threads == 1 { "" } else { "s" },
            self.hash,
            self.cpu,
            self.k,
            self.m,
            self.shard_bytes,
            self.payload_bytes,
            self.rounds
        );
        self.encode.table("encode", &mut out);
        self.decode.table("decode", &mut out);
        out.push_str(&format!(
            "\ndecode starts from {} shards; {} of {} originals are lost; Mb/s are payload bits\n",
            self.k, self.lost_originals, self.k
        ));
        out
    }
}

/// The processor's name as the system tells it.
pub(super) fn cpu_name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    // ARM kernels name no model, but the implementer and part numbers of the core.
    let arm = || Some(format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(arm).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}
