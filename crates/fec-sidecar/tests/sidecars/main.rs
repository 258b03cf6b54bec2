//! Sidecars by calls: the vectors, what guards the work, what proves and contradicts them, and everything that happens
//! to files and sidecars between two looks.

#![allow(unused_must_use, reason = "the arena looks at every report; a test looks once more where it has to")]

mod appends;
mod arena;
mod cancel;
#[path = "../../../fecfile/tests/support/cancelled.rs"]
mod cancelled;
mod content;
mod damage;
mod denied;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod disk_errors;
mod elsewhere;
mod excludes;
mod folder;
mod golden;
mod guards;
mod joined;
mod links;
mod lists;
mod mirrors;
mod omitted;
mod others;
mod owner;
mod parts;
mod policy;
mod proof;
mod read_only;
#[path = "../recode/mod.rs"]
mod recode;
mod renamed;
mod retire;
mod scrub;
mod sealed;
mod twins;
mod undo;
mod update;
mod update_limits;
mod update_rot;
mod update_sidecars;
#[path = "../../../fecfile/tests/vectors/mod.rs"]
mod vectors;
mod verdicts;
mod wide;

/// Bytes without repetition.
pub(crate) fn bytes(seed: u8, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).rotate_left(9) as u8) ^ seed).collect()
}
