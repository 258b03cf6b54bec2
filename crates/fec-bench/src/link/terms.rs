//! What both sides of a test agree on.

use super::error::LinkError;
use fec_core::random::SplitMix64;
use rustix::time::{ClockId, clock_gettime};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Where a listener listens if nothing else is said.
pub const PORT: u16 = 5205;
/// How long a test may send, in seconds.
pub const SECONDS: RangeInclusive<f64> = 0.1..=3600.0;
/// The longest test that a listener takes.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// When nothing is heard for so long, nobody is there any more.
pub const SILENCE: Duration = Duration::from_secs(5);
/// How often a listener says that it is there.
pub(super) const ALIVE: Duration = Duration::from_millis(200);

/// The type of result.
pub(super) type Result<T> = std::result::Result<T, LinkError>;

/// What stands in all payloads behind number and time. It looks random, because some links compress.
pub(super) fn filler(len: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(1);
    std::iter::repeat_with(|| random.next().to_le_bytes()).flatten().take(len).collect()
}

/// The time that all threads of this process had on a core.
pub(super) fn on_cores() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A duration in ns, of which 64 bits have 584 years.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
