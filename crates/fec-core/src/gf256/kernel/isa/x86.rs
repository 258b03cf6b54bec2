//! Instructions that every x86-64 processor has and all its kernels use: prefetches, a fence, and CPUID.

// All of them are unsafe to call up to Rust 1.92 or so. Later some are safe, and the blocks are unused there.
#![allow(unsafe_code, unused_unsafe)]

use std::arch::asm;
use std::arch::x86_64::{__cpuid, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm_sfence};
use std::sync::OnceLock;

/// Prefetches the line that holds byte `at` of `row`, which need not lie within the row.
#[inline]
pub(crate) fn prefetch(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).cast();
    // SAFETY: a prefetch reads nothing the program could see and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) }
}

/// The same, past the first cache: rows a power of two apart share few of its sets, and would push each other out.
#[inline]
pub(crate) fn prefetch_past_l1(row: &[u8], at: usize) {
    let address = row.as_ptr().wrapping_add(at).cast();
    // SAFETY: a prefetch reads nothing the program could see and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address) }
}

/// The same as [`prefetch`] for a line that will be written.
#[inline]
pub(crate) fn prefetch_write(row: &[u8], at: usize) {
    // Miri has no assembly.
    if cfg!(miri) {
        return;
    }
    let address = row.as_ptr().wrapping_add(at).addr();
    // SAFETY: a prefetch changes nothing the program could see and never faults, whatever the address; 64-bit
    // processors without this instruction take it for no operation. (The intrinsic is a plain prefetch unless the whole
    // program is compiled for newer processors.)
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nomem, nostack, preserves_flags)) }
}

/// Orders all earlier stores, those past the caches too, before all later ones.
#[inline]
pub(crate) fn fence() {
    // SAFETY: a fence touches no memory; SSE, which it needs, is part of x86-64.
    unsafe { _mm_sfence() }
}

/// The identity that a processor reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identity {
    vendor: [u8; 12],
    family: u32,
    model: u32,
    /// True if it has matrix registers (AMX).
    tiles: bool,
}

/// This processor. Each question takes microseconds under a hypervisor, so the answer is kept.
pub(crate) fn identity() -> Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    // Miri is no known processor.
    if cfg!(miri) {
        return Identity::new([0; 12], 0, false);
    }
    *IDENTITY.get_or_init(|| {
        let ask = |leaf| {
            // SAFETY: every x86-64 processor has the instruction, which touches no memory.
            unsafe { __cpuid(leaf) }
        };
        let zero = ask(0);
        let mut vendor = [0; 12];
        for (place, part) in vendor.as_chunks_mut().0.iter_mut().zip([zero.ebx, zero.edx, zero.ecx]) {
            *place = part.to_le_bytes();
        }
        let signature = ask(1).eax;
        let tiles = zero.eax >= 7 && ask(7).edx >> 24 & 1 == 1;
        Identity::new(vendor, signature, tiles)
    })
}

impl Identity {
    /// The identity from the answer to leaf 1: a family, to which an extension is added where it is 15, and a model,
    /// which has upper bits where the family is 6 or 15 (Intel, Software Developer's Manual, volume 2, CPUID).
    fn new(vendor: [u8; 12], signature: u32, tiles: bool) -> Identity {
        let (base, extension) = (signature >> 8 & 15, signature >> 20 & 255);
        let upper = if matches!(base, 6 | 15) { signature >> 16 & 15 } else { 0 };
        let family = if base == 15 { base + extension } else { base };
        Identity { vendor, family, model: upper << 4 | signature >> 4 & 15, tiles }
    }

    /// The entry in the table of processors.
    pub(crate) fn entry(self) -> &'static str {
        match (&self.vendor, self.family, self.model) {
            // Hypervisors may report another model; only these have matrix registers.
            (b"GenuineIntel", _, _) if self.tiles => "sapphire-rapids",
            (b"GenuineIntel", 6, 0x8F | 0xCF | 0xAD | 0xAE) => "sapphire-rapids",
            (b"GenuineIntel", 6, 0x6A | 0x6C | 0x7D | 0x7E | 0x8C | 0x8D | 0xA7) => "ice-lake",
            (b"GenuineIntel", 6, 0x55) => "skylake-x",
            (b"GenuineIntel", 6, 0x3C | 0x3D | 0x3F | 0x45..=0x47 | 0x4E | 0x4F | 0x56 | 0x5E) => "haswell",
            (b"GenuineIntel", 6, 0x8E | 0x9E | 0xA5 | 0xA6) => "haswell",
            (b"AuthenticAMD", 0x17, 0x30..) => "zen2",
            (b"AuthenticAMD", 0x19, 0x10..=0x1F | 0x60..=0x7F | 0xA0..=0xAF) => "zen4",
            (b"AuthenticAMD", 0x19, _) => "zen3",
            (b"AuthenticAMD", 0x1A, _) => "zen5",
            _ => "generic",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_known_processors() {
        for (vendor, signature, tiles, entry) in [
            (b"GenuineIntel", 0x806F8, true, "sapphire-rapids"),
            (b"GenuineIntel", 0xA0671, true, "sapphire-rapids"),
            (b"GenuineIntel", 0xA0671, false, "ice-lake"),
            (b"GenuineIntel", 0x606A6, false, "ice-lake"),
            (b"GenuineIntel", 0x50654, false, "skylake-x"),
            (b"GenuineIntel", 0x306C3, false, "haswell"),
            (b"GenuineIntel", 0x106A5, false, "generic"),
            (b"AuthenticAMD", 0x830F10, false, "zen2"),
            (b"AuthenticAMD", 0x800F11, false, "generic"),
            (b"AuthenticAMD", 0xA20F10, false, "zen3"),
            (b"AuthenticAMD", 0xA60F12, false, "zen4"),
            (b"AuthenticAMD", 0xA10F11, false, "zen4"),
            (b"AuthenticAMD", 0xB40F40, false, "zen5"),
            (b"CentaurHauls", 0x806F8, true, "generic"),
        ] {
            assert_eq!(Identity::new(*vendor, signature, tiles).entry(), entry, "{signature:#X}");
        }
    }
}
