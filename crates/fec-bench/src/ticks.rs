//! The processor's own tick counter. It times nothing here, but its rate belongs to a report.

// Only an instruction reads these registers.
#![allow(unsafe_code, unused_unsafe)]

/// The counter now, and its name; `None` if it cannot be read.
#[cfg(target_arch = "x86_64")]
pub(crate) fn now() -> Option<(u64, &'static str)> {
    // SAFETY: the instruction reads a register and nothing else; every x86-64 processor has it, and Linux does
    // not forbid it unless a process asks for that itself.
    Some((unsafe { std::arch::x86_64::_rdtsc() }, "TSC"))
}

/// The counter now, and its name; `None` if it cannot be read.
#[cfg(target_arch = "aarch64")]
pub(crate) fn now() -> Option<(u64, &'static str)> {
    let ticks: u64;
    // SAFETY: the instruction reads a register and nothing else; Linux lets processes read this one.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    Some((ticks, "CNTVCT"))
}

/// The counter now, and its name; `None` if it cannot be read.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn now() -> Option<(u64, &'static str)> {
    None
}
