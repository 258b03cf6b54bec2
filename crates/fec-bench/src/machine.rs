//! The header of every report: the machine, the system, the compiler, the revision, the clocks.

use crate::clock::Clocks;
use fec_base::processor::{self, data_caches, field, line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The place and tools of a measurement. An unreadable value is `None`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Date and time, in UTC.
    pub date: String,
    /// The name of the machine.
    pub host: Option<String>,
    /// The processor's name.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// The revision of the microcode; `masked` if a hypervisor shows a made-up one.
    pub microcode: Option<String>,
    /// The features that kernels and hashes ask for, as far as this processor has them.
    pub flags: Vec<String>,
    /// True if the system says that it runs under a hypervisor.
    pub virtual_machine: bool,
    /// The emulator that translates the instructions, if they are not the processor's own: speeds then mean nothing.
    pub emulated: Option<String>,
    /// The data caches.
    pub caches: Caches,
    /// The release of the system's kernel.
    pub kernel: Option<String>,
    /// The governor of the core's clock.
    pub governor: Option<String>,
    /// The hottest sensor.
    pub temperature_celsius: Option<f64>,
    /// The compiler that built this.
    pub compiler: String,
    /// The target that it was built for.
    pub target: String,
    /// The revision that it was built from.
    pub revision: String,
    /// The version of fec.
    pub version: String,
    /// The clocks.
    pub clocks: Clocks,
}

/// Bytes and ways of the data caches that one core sees.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Caches {
    /// Bytes of the first cache.
    pub l1_bytes: u64,
    /// Its ways.
    pub l1_ways: u64,
    /// Bytes of the second cache.
    pub l2_bytes: u64,
    /// Its ways.
    pub l2_ways: u64,
    /// Bytes of the third cache, if there is one.
    pub l3_bytes: Option<u64>,
    /// True if the system told these sizes; otherwise they are those of a small core.
    pub known: bool,
}

/// The features that matter here, in the words of x86 and of ARM.
const FLAGS: [&str; 22] = [
    "ssse3",
    "sse4_1",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512vl",
    "avx512vbmi",
    "gfni",
    "vaes",
    "vpclmulqdq",
    "sha_ni",
    "hypervisor",
    "asimd",
    "pmull",
    "aes",
    "sha1",
    "sha2",
    "sha3",
    "crc32",
    "sve",
    "sve2",
    "atomics",
];

impl Machine {
    /// The readable facts about this machine now.
    pub(crate) fn new() -> Machine {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = field(&info, "flags").or_else(|| field(&info, "Features")).unwrap_or_default();
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let virtual_machine = flags.contains(&"hypervisor");
        let emulated = emulator(&info);
        Machine {
            date: date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())),
            host: line("/proc/sys/kernel/hostname"),
            cpu: match &emulated {
                Some(_) => format!("{} emulated on {}", std::env::consts::ARCH, processor::name()),
                None => processor::name(),
            },
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            microcode: field(&info, "microcode")
                .filter(|_| emulated.is_none())
                .map(|m| microcode(m, virtual_machine)),
            flags: FLAGS
                .into_iter()
                .filter(|f| flags.contains(f) && emulated.is_none())
                .map(str::to_owned)
                .collect(),
            virtual_machine,
            caches: Caches::host(),
            kernel: line("/proc/sys/kernel/osrelease"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            temperature_celsius: temperature(),
            compiler: env!("FEC_COMPILER").to_owned(),
            target: env!("FEC_TARGET").to_owned(),
            revision: env!("FEC_REVISION").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            clocks: Clocks::new(emulated.is_some()),
            emulated,
        }
    }
}

impl Caches {
    /// The caches of a core of this machine.
    pub(crate) fn host() -> Caches {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        caches(emulator(&info).is_some())
    }
}

/// The part number of an ARM core, as the system tells it.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "x86", target_arch = "x86_64")
))]
pub(crate) fn arm_part() -> Option<String> {
    field(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default(), "CPU part")
}

/// Hypervisors show 0x1, or all ones, in place of the processor's real revision.
fn microcode(revision: String, virtual_machine: bool) -> String {
    let made_up = matches!(revision.as_str(), "0x1" | "0xffffffff");
    if virtual_machine && made_up { format!("masked ({revision})") } else { revision }
}

/// qemu's user mode keeps its own name for the process, and shows the processor of its host.
fn emulator(info: &str) -> Option<String> {
    let process = line("/proc/self/comm").filter(|name| name.starts_with("qemu-"));
    let other = match std::env::consts::ARCH {
        "aarch64" => info.contains("vendor_id"),
        "x86_64" => info.contains("CPU implementer"),
        _ => false,
    };
    process.or_else(|| other.then(|| "another architecture's processor".to_owned()))
}

/// The sizes that the system tells; an emulator tells those of its host.
fn caches(emulated: bool) -> Caches {
    let small = Caches {
        l1_bytes: 32 << 10,
        l1_ways: 4,
        l2_bytes: 512 << 10,
        l2_ways: 16,
        l3_bytes: None,
        known: false,
    };
    match data_caches(0) {
        [_, Some((l1_bytes, l1_ways @ 1..)), Some((l2_bytes, l2_ways @ 1..)), l3] if !emulated => {
            Caches { l1_bytes, l1_ways, l2_bytes, l2_ways, l3_bytes: l3.map(|(bytes, _)| bytes), known: true }
        }
        _ => small,
    }
}

/// The hottest of the sensors.
pub(crate) fn temperature() -> Option<f64> {
    let zones = fs::read_dir("/sys/class/thermal").ok()?;
    let read = |zone: fs::DirEntry| {
        let text = fs::read_to_string(zone.path().join("temp")).ok()?;
        text.trim().parse::<f64>().ok().map(|milli| milli / 1000.0)
    };
    zones.flatten().filter_map(read).filter(|t| (-50.0..200.0).contains(t)).reduce(f64::max)
}

/// Seconds since 1970 as a date and time (the calendar of Howard Hinnant's `civil_from_days`).
pub(crate) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, (shifted + 2) % 12 + 1);
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (4_102_444_800, "2100-01-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn made_up_microcode_is_called_masked() {
        assert_eq!(microcode("0x1".into(), true), "masked (0x1)");
        assert_eq!(microcode("0x1".into(), false), "0x1");
        assert_eq!(microcode("0x2b000590".into(), true), "0x2b000590");
    }
}
