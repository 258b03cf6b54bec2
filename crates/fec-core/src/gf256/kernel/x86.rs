//! What every x86-64 processor has and all its kernels use: a prefetch and a fence.

// Both are unsafe to call up to Rust 1.92 or so, and safe after, where the blocks are no longer needed.
#![allow(unsafe_code, unused_unsafe)]

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch, _mm_sfence};

/// Asks for the line that holds byte `at` of `row`, which need not lie within it.
#[inline]
pub(super) fn prefetch(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).cast();
    // SAFETY: a prefetch reads nothing the program could see and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

/// Orders all earlier stores, those past the caches too, before all later ones.
#[inline]
pub(super) fn fence() {
    // SAFETY: a fence touches no memory; SSE, which it needs, is part of x86-64.
    unsafe { _mm_sfence() }
}
