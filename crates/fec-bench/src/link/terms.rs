//! The constants that both sides of a test agree on.

use super::error::LinkError;
use crate::system::process_time;
use fec_core::random::SplitMix64;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The port of a listener, unless the caller says otherwise.
pub const PORT: u16 = 5205;
/// Allowed duration of a test's sending, in seconds.
pub const SECONDS: RangeInclusive<f64> = 0.1..=3600.0;
/// The longest test that a listener accepts.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// Silence after which the other side counts as gone.
pub const SILENCE: Duration = Duration::from_secs(5);
/// Interval at which a listener shows its presence.
pub(super) const ALIVE: Duration = Duration::from_millis(200);

/// Stands for an unknown number.
pub(super) const UNKNOWN: u64 = u64::MAX;

/// A number, if it is known.
pub(super) fn told(number: u64) -> Option<u64> {
    (number != UNKNOWN).then_some(number)
}

/// The type of result.
pub(super) type Result<T> = std::result::Result<T, LinkError>;

/// The bytes of all payloads behind number and time. They look random, because some links compress.
pub(super) fn filler(len: usize) -> Vec<u8> {
    let mut random = SplitMix64::new(1);
    std::iter::repeat_with(|| random.next().to_le_bytes()).flatten().take(len).collect()
}

/// Time on a core of all threads of this process, in ns, since it was `before`; [`UNKNOWN`] if the system does not
/// tell.
pub(super) fn on_cores_since(before: Option<Duration>) -> u64 {
    process_time().zip(before).map_or(UNKNOWN, |(now, before)| nanoseconds(now.saturating_sub(before)))
}

/// A duration in ns; 64 bits hold 584 years.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
