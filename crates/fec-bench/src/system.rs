//! The border to the operating system: clocks that count work alone. Files of the system that a machine lacks, such as
//! those of `/proc`, need nothing here: their values are not known then. The counters of processors stand in
//! `counters.rs`.

use std::time::Duration;

/// True if the system tells how long a core has worked for a thread, so that disturbances are seen. The clock of
/// Windows for that stands still for 16 ms at a time, longer than a slice.
pub(crate) const TELLS_DISTURBANCES: bool = cfg!(unix);

/// The calling thread's time on a core; `None` if the system does not tell it exactly.
pub(crate) fn thread_time() -> Option<Duration> {
    #[cfg(unix)]
    return Some(unix::time(rustix::time::ClockId::ThreadCPUTime));
    #[cfg(not(unix))]
    None
}

/// Time on a core of all threads of this process; `None` if the system does not tell.
pub(crate) fn process_time() -> Option<Duration> {
    #[cfg(unix)]
    return Some(unix::time(rustix::time::ClockId::ProcessCPUTime));
    #[cfg(not(unix))]
    None
}

#[cfg(unix)]
mod unix {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    pub(super) fn time(clock: ClockId) -> Duration {
        let now = clock_gettime(clock);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_s_time_is_told_or_nothing_is_called_undisturbed() {
        assert_eq!(thread_time().is_some(), TELLS_DISTURBANCES);
        if let (Some(thread), Some(process)) = (thread_time(), process_time()) {
            assert!(thread <= process, "{thread:?} {process:?}");
        }
    }
}
