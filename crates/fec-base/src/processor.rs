//! The processor as the system describes it: cores and caches, and the kernel's settings that suit them.

use fec_core::gf256::kernel::Tuning;
use std::fs;
use std::sync::LazyLock;

/// The first line of a file, if there is one.
pub fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The first value of a field of `/proc/cpuinfo`, whose text is `info`.
pub fn field(info: &str, name: &str) -> Option<String> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// The processor's name from the system, with the board's name where there is one. ARM kernels give numbers instead of
/// names.
pub fn name() -> String {
    name_in(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn name_in(info: &str) -> String {
    let arm = || {
        let (implementer, part) = (field(info, "CPU implementer")?, field(info, "CPU part")?);
        let name = match (implementer.as_str(), part.as_str()) {
            ("0x41", "0xd03") => "Cortex-A53",
            ("0x41", "0xd05") => "Cortex-A55",
            ("0x41", "0xd08") => "Cortex-A72",
            ("0x41", "0xd09") => "Cortex-A73",
            ("0x41", "0xd0b") => "Cortex-A76",
            ("0x41", "0xd0c") => "Neoverse N1",
            _ => return Some(format!("ARM implementer {implementer} part {part}")),
        };
        Some(format!("ARM {name}"))
    };
    let model = || fs::read("/proc/device-tree/model").ok().and_then(|m| String::from_utf8(m).ok());
    let board = |cpu: String| match model() {
        Some(model) => format!("{cpu} ({})", model.trim_end_matches('\0')),
        None => cpu,
    };
    field(info, "model name").or_else(arm).map_or_else(|| std::env::consts::ARCH.to_owned(), board)
}

/// Bytes and ways of the data caches of a CPU, by level; 0 ways means unknown.
pub fn data_caches(cpu: usize) -> [Option<(u64, u64)>; 4] {
    let mut found = [None; 4];
    for index in 0..8 {
        let read = |name: &str| line(&format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}"));
        let level = read("level").and_then(|level| level.parse::<usize>().ok());
        let data = read("type").is_some_and(|kind| kind != "Instruction");
        let bytes = read("size").and_then(|size| kibibytes(&size));
        let ways = read("ways_of_associativity").and_then(|ways| ways.parse().ok()).unwrap_or(0);
        if let (Some(level @ 1..=3), true, Some(bytes)) = (level, data, bytes) {
            found[level] = Some((bytes, ways));
        }
    }
    found
}

/// Bytes of `32K` or `1M`, as the system writes sizes of caches.
fn kibibytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The kernel's settings for this machine. `found` are the settings that the processor itself identifies: on x86-64 a
/// row of the table, if the processor is known. ARM cores identify themselves only to the system, which is asked once.
///
/// Cores may differ, as on big.LITTLE boards, and any of them may run any part of the work: tiles are cut for the
/// smallest caches among them.
pub fn tuning(found: Tuning) -> Tuning {
    if cfg!(target_arch = "x86_64") && found.name() != "generic" {
        return found;
    }
    let cores = &*CORES;
    let base = match cores.arm {
        Some((implementer, part)) => Tuning::of_arm_core(implementer, part),
        // Under emulation the system describes another machine.
        None if cfg!(not(target_arch = "x86_64")) => return found,
        None => found,
    };
    base.with_caches(cores.caches[0], cores.caches[1])
}

/// The cores of this machine.
struct Cores {
    /// Implementer and part of the first ARM core.
    arm: Option<(u8, u16)>,
    /// Bytes of the smallest first and second data caches; 0 if the system does not tell.
    caches: [usize; 2],
}

static CORES: LazyLock<Cores> = LazyLock::new(|| {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let caches: Vec<_> = (0..cpus).map(data_caches).collect();
    let smallest = |level: usize| {
        let sizes = caches.iter().filter_map(|caches| caches[level].map(|(bytes, _)| bytes));
        sizes.min().and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0)
    };
    Cores { arm: arm_cores(&info).first().copied(), caches: [smallest(1), smallest(2)] }
});

/// The settings in words: the processor's name, and the values.
pub fn listed(tuning: Tuning) -> String {
    let values: Vec<String> = tuning.settings().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}: {}", tuning.name(), values.join(","))
}

/// Implementer and part of each ARM core, as /proc/cpuinfo lists them.
fn arm_cores(info: &str) -> Vec<(u8, u16)> {
    let fields = |name: &'static str| {
        info.lines().filter_map(move |line| {
            let (key, value) = line.split_once(':')?;
            let digits = value.trim().strip_prefix("0x")?;
            (key.trim() == name).then(|| u16::from_str_radix(digits, 16).ok()).flatten()
        })
    };
    let implementers = fields("CPU implementer").map(|number| u8::try_from(number).unwrap_or(0));
    implementers.zip(fields("CPU part")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_caches_have_the_system_s_units() {
        assert_eq!(kibibytes("32K"), Some(32 << 10));
        assert_eq!(kibibytes("2M"), Some(2 << 20));
        assert_eq!(kibibytes("64"), Some(64));
        assert_eq!(kibibytes("32X"), None);
        assert_eq!(kibibytes("K"), None);
    }

    #[test]
    fn arm_cores_are_known_by_their_numbers() {
        let info = "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n";
        assert!(name_in(info).starts_with("ARM Cortex-A53"));
        assert_eq!(name_in("model name : A Thing\n").split(" (").next(), Some("A Thing"));
    }

    #[test]
    fn arm_cores_are_found_in_what_the_system_lists() {
        let board = "processor\t: 0\nBogoMIPS\t: 38.40\nCPU implementer\t: 0x41\nCPU architecture: 8\n\
                     CPU variant\t: 0x0\nCPU part\t: 0xd03\nCPU revision\t: 4\n\n\
                     processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n";
        assert_eq!(arm_cores(board), [(0x41, 0xd03), (0x41, 0xd08)]);
        assert_eq!(Tuning::of_arm_core(0x41, 0xd03).name(), "cortex-a53");
        assert!(arm_cores("vendor_id\t: GenuineIntel\nmodel name\t: x\n").is_empty());
    }
}
