//! Kernels: one file for each instruction set, and the parts that several of them share.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512_gfni;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
pub(crate) mod nibble;
pub(crate) mod scalar;
#[cfg(target_feature = "simd128")]
pub(crate) mod simd128;
#[cfg(target_arch = "x86_64")]
pub(crate) mod ssse3;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
