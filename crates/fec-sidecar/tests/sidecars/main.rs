//! Sidecars by calls: the vectors, what guards the work, and what proves and contradicts them.

mod cancel;
#[path = "../../../fecfile/tests/support/cancelled.rs"]
mod cancelled;
mod golden;
mod guards;
mod proof;
#[path = "../recode/mod.rs"]
mod recode;
#[path = "../../../fecfile/tests/vectors/mod.rs"]
mod vectors;

/// Bytes without repetition.
pub(crate) fn bytes(seed: u8, len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761).rotate_left(9) as u8) ^ seed).collect()
}
