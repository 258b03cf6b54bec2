//! Counters of the processor, by perf_event_open.
//!
//! Each is opened for this process in user mode only, and separately, so that a missing one takes no other with it. At
//! most six count at a time. Counts that the system shared out in time are scaled, and the share is told. A missing
//! counter is `None`, never 0.

use crate::table::{Cell, FigureColumn, figure};
use std::collections::BTreeMap;

/// Most counters at a time: as many as small cores have.
const AT_A_TIME: usize = 6;

/// The result of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScaledCount {
    pub(crate) value: f64,
    /// The share of the time in which it really counted; `value` is scaled by it.
    pub(crate) share: f64,
}

/// Counts of some calls of the same work, by name, per call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts(BTreeMap<&'static str, ScaledCount>);

/// An event, and the column that shows it.
struct CounterEvent {
    name: &'static str,
    label: &'static str,
    per: Per,
    hardware: bool,
}

/// The unit that a count is divided by.
enum Per {
    Byte,
    KiB,
    Call,
}

const fn event(name: &'static str, label: &'static str, per: Per, hardware: bool) -> CounterEvent {
    CounterEvent { name, label, per, hardware }
}

const EVENTS: [CounterEvent; 11] = [
    event("cycles", "cycles/B", Per::Byte, true),
    event("instructions", "instr/B", Per::Byte, true),
    event("cache_references", "refs/KiB", Per::KiB, true),
    event("cache_misses", "misses/KiB", Per::KiB, true),
    event("l2_accesses", "L2/KiB", Per::KiB, true),
    event("l2_misses", "L2 miss/KiB", Per::KiB, true),
    event("dtlb_misses", "dTLB miss/KiB", Per::KiB, true),
    event("stalled_cycles", "stalls/B", Per::Byte, true),
    event("branch_misses", "br miss/KiB", Per::KiB, true),
    event("page_faults", "faults", Per::Call, false),
    event("context_switches", "switches", Per::Call, false),
];

/// The columns of counters in a table.
pub(crate) fn columns() -> Vec<FigureColumn> {
    let counted = EVENTS.iter().map(|event| figure(column(event), event.label, 2));
    counted.chain([figure("counted_share", "counted", 2)]).collect()
}

fn column(event: &CounterEvent) -> &'static str {
    match event.name {
        "cycles" => "cycles_per_byte",
        "instructions" => "instructions_per_byte",
        "cache_references" => "cache_references_per_kib",
        "cache_misses" => "cache_misses_per_kib",
        "l2_accesses" => "l2_accesses_per_kib",
        "l2_misses" => "l2_misses_per_kib",
        "dtlb_misses" => "dtlb_misses_per_kib",
        "stalled_cycles" => "stalled_cycles_per_byte",
        "branch_misses" => "branch_misses_per_kib",
        "page_faults" => "page_faults_per_call",
        _ => "context_switches_per_call",
    }
}

/// The cells of a row whose calls go through `bytes` bytes each. The share is the smallest of all counters, and only
/// shown if a count was scaled.
pub(crate) fn cells(counts: &Counts, bytes: u64) -> Vec<(&'static str, Cell)> {
    let mut cells: Vec<(&'static str, Cell)> = Vec::new();
    for event in &EVENTS {
        let per = match event.per {
            Per::Byte => bytes as f64,
            Per::KiB => bytes as f64 / 1024.0,
            Per::Call => 1.0,
        };
        cells.push((column(event), counts.0.get(event.name).map(|count| count.value / per).into()));
    }
    let share = counts.0.values().map(|count| count.share).reduce(f64::min).filter(|share| *share < 0.999);
    cells.push(("counted_share", share.into()));
    cells
}

/// The counters of this process.
pub(crate) struct Counters {
    open: Vec<(&'static str, system::Counter)>,
    /// `ok`, or the reason why not, by name.
    pub(crate) status: BTreeMap<String, String>,
    /// `hw`, `software …`, or `none: …`.
    pub(crate) source: String,
}

impl Counters {
    /// Opens the counters that exist.
    pub(crate) fn new() -> Counters {
        let mut counters = Counters { open: Vec::new(), status: BTreeMap::new(), source: String::new() };
        // If cycles, the plainest of all, cannot be counted, the reason holds for the others too.
        let mut reasons: [Option<String>; 2] = [None, None];
        let mut counted = [false; 2];
        for event in &EVENTS {
            match system::open(event.name) {
                Ok(counter) => {
                    counters.open.push((event.name, counter));
                    counters.status.insert(event.name.to_owned(), "ok".to_owned());
                    counted[usize::from(event.hardware)] = true;
                }
                Err(reason) => {
                    reasons[usize::from(event.hardware)].get_or_insert_with(|| reason.clone());
                    counters.status.insert(event.name.to_owned(), reason);
                }
            }
        }
        let [software, hardware] = reasons.map(Option::unwrap_or_default);
        counters.source = match counted {
            [_, true] => "hw".to_owned(),
            [true, false] => format!("software and model; no hardware counters: {hardware}"),
            [false, false] if software == hardware => format!("none: {hardware}"),
            [false, false] => format!("none: {hardware}; software events: {software}"),
        };
        counters
    }

    /// Counts `calls` calls of the work for each six counters.
    pub(crate) fn count(&mut self, calls: u32, work: &mut dyn FnMut()) -> Counts {
        let mut counts = Counts::default();
        for some in self.open.chunks_mut(AT_A_TIME) {
            let before: Vec<Option<CounterReading>> =
                some.iter_mut().map(|(_, counter)| system::start(counter)).collect();
            for _ in 0..calls {
                work();
            }
            let after: Vec<Option<CounterReading>> =
                some.iter_mut().map(|(_, counter)| system::stop(counter)).collect();
            for (((name, _), before), after) in some.iter().zip(before).zip(after) {
                if let Some(count) = before.zip(after).and_then(|(before, after)| after.since(before)) {
                    let count = ScaledCount { value: count.value / f64::from(calls.max(1)), ..count };
                    counts.0.insert(name, count);
                }
            }
        }
        counts
    }

    /// Tells whether there is any counter.
    pub(crate) fn any(&self) -> bool {
        !self.open.is_empty()
    }
}

/// A reading of a counter: events, and the nanoseconds for which it was enabled and for which it really counted.
#[derive(Clone, Copy, Debug)]
struct CounterReading {
    value: u64,
    enabled: u64,
    running: u64,
}

impl CounterReading {
    /// The count since an earlier reading, scaled to the whole time; `None` if the counter had none of it.
    fn since(self, before: CounterReading) -> Option<ScaledCount> {
        let value = self.value.checked_sub(before.value)? as f64;
        let running = self.running.checked_sub(before.running).filter(|running| *running > 0)? as f64;
        let share = (running / self.enabled.saturating_sub(before.enabled).max(1) as f64).min(1.0);
        Some(ScaledCount { value: value / share, share })
    }
}

/// Events of ARM's common architecture (PMUv3), and of the Cortex-A53 alone.
const L2D_CACHE: u64 = 0x16;
const L2D_CACHE_REFILL: u64 = 0x17;
const STALL_BACKEND: u64 = 0x24;
const A53_STALL_ON_LOAD_MISS: u64 = 0xe7;
const A53_PART: &str = "0xd03";

/// The code of an event that the system has no name for, on the ARM core with this part number.
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86", target_arch = "x86_64")
    )),
    allow(dead_code)
)]
fn arm_event(name: &str, part: Option<&str>) -> Option<u64> {
    match name {
        "l2_accesses" => Some(L2D_CACHE),
        "l2_misses" => Some(L2D_CACHE_REFILL),
        // The Cortex-A53 does not count the common event.
        "stalled_cycles" if part == Some(A53_PART) => Some(A53_STALL_ON_LOAD_MISS),
        "stalled_cycles" => Some(STALL_BACKEND),
        _ => None,
    }
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86", target_arch = "x86_64")
))]
mod system {
    use super::{CounterReading, arm_event};
    use crate::machine::arm_part;
    use perf_event::Builder;
    pub(super) use perf_event::Counter;
    use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Raw, Software};
    use std::io;

    pub(super) fn open(name: &str) -> Result<Counter, String> {
        let raw = if cfg!(target_arch = "aarch64") { arm_event(name, arm_part().as_deref()) } else { None };
        let dtlb = Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
        if let Some(code) = raw {
            return build(Raw::new(code)).map_err(|error| reason(&error));
        }
        let opened = match name {
            "cycles" => build(Hardware::CPU_CYCLES),
            "instructions" => build(Hardware::INSTRUCTIONS),
            "cache_references" => build(Hardware::CACHE_REFERENCES),
            "cache_misses" => build(Hardware::CACHE_MISSES),
            // Each x86 processor has a code of its own for them, and a wrong code counts other events.
            "l2_accesses" | "l2_misses" => return Err("no code for this processor".to_owned()),
            "dtlb_misses" => build(dtlb),
            "stalled_cycles" => build(Hardware::STALLED_CYCLES_BACKEND),
            "branch_misses" => build(Hardware::BRANCH_MISSES),
            "page_faults" => build(Software::PAGE_FAULTS),
            _ => build(Software::CONTEXT_SWITCHES),
        };
        opened.map_err(|error| reason(&error))
    }

    /// User mode only, with threads started later.
    fn build<E: Event>(event: E) -> io::Result<Counter> {
        Builder::new(event).exclude_kernel(true).exclude_hv(true).inherit(true).build()
    }

    fn reason(error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => format!("ENOENT no PMU ({error})"),
            Some(libc::EACCES) => "EACCES perf_event_paranoid forbids it".to_owned(),
            Some(libc::EPERM) => "EPERM a container or a policy forbids it".to_owned(),
            Some(libc::ENOSYS) => "ENOSYS no perf_event_open here (emulated)".to_owned(),
            _ => error.to_string(),
        }
    }

    /// A counter that cannot be switched on has no reading.
    pub(super) fn start(counter: &mut Counter) -> Option<CounterReading> {
        counter.enable().ok()?;
        read(counter)
    }

    pub(super) fn stop(counter: &mut Counter) -> Option<CounterReading> {
        let reading = read(counter)?;
        counter.disable().ok()?;
        Some(reading)
    }

    fn read(counter: &mut Counter) -> Option<CounterReading> {
        let data = counter.read_full().ok()?;
        let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
        let (enabled, running) = (nanoseconds(data.time_enabled()?), nanoseconds(data.time_running()?));
        Some(CounterReading { value: data.count(), enabled, running })
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86", target_arch = "x86_64")
)))]
mod system {
    use super::CounterReading;

    /// No counter exists.
    pub(super) enum Counter {}

    pub(super) fn open(_: &str) -> Result<Counter, String> {
        Err("this build reads no counters: they are for Linux on x86, 64-bit ARM and RISC-V".to_owned())
    }

    pub(super) fn start(counter: &mut Counter) -> Option<CounterReading> {
        match *counter {}
    }

    pub(super) fn stop(counter: &mut Counter) -> Option<CounterReading> {
        match *counter {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_had_half_the_time_is_scaled_and_one_that_had_none_is_missing() {
        let before = CounterReading { value: 7, enabled: 100, running: 100 };
        let after = |running| CounterReading { value: 57, enabled: 1100, running };
        assert_eq!(after(600).since(before), Some(ScaledCount { value: 100.0, share: 0.5 }));
        assert_eq!(after(1100).since(before), Some(ScaledCount { value: 50.0, share: 1.0 }));
        assert_eq!(after(100).since(before), None);
    }

    #[test]
    fn arm_cores_are_asked_for_their_own_events() {
        let names = ["l2_accesses", "l2_misses", "stalled_cycles", "cycles", "page_faults"];
        let asked = |part| names.map(|name| arm_event(name, part));
        let (a53, a55) = (asked(Some("0xd03")), asked(Some("0xd05")));
        assert_eq!(a53, [Some(0x16), Some(0x17), Some(0xe7), None, None]);
        assert_eq!(a55, [Some(0x16), Some(0x17), Some(0x24), None, None]);
        assert_eq!(asked(None), a55);
    }

    #[test]
    fn what_is_missing_is_no_number() {
        let counts = Counts(BTreeMap::from([("cycles", ScaledCount { value: 4096.0, share: 1.0 })]));
        let cells: BTreeMap<_, _> = cells(&counts, 2048).into_iter().collect();
        assert_eq!(cells["cycles_per_byte"], Cell::Real(2.0));
        assert_eq!(cells["instructions_per_byte"], Cell::Missing);
        assert_eq!(cells["counted_share"], Cell::Missing);
        assert_eq!(cells.len(), columns().len());
    }

    /// Page faults are counted wherever software events are allowed: fresh memory causes some.
    #[test]
    fn software_events_count_what_happens() {
        let mut counters = Counters::new();
        assert_eq!(counters.status.len(), EVENTS.len());
        if counters.status["page_faults"] == "ok" {
            let counts = counters.count(1, &mut || {
                // More than an allocator may keep of what was freed.
                std::hint::black_box(vec![1u8; 33 << 20]);
            });
            assert!(counts.0["page_faults"].value >= 1.0, "{counts:?}");
        } else {
            assert_eq!(counters.count(1, &mut || {}), Counts::default());
        }
    }
}
