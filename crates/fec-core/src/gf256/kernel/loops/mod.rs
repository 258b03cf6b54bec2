//! The loops that all kernels share: macros, which each file of `isa/` expands with its own instructions.

pub(crate) mod area;
pub(crate) mod area_far;
pub(crate) mod area_near;
pub(crate) mod area_passes;
#[cfg(target_arch = "x86_64")]
pub(crate) mod area_planes;
pub(crate) mod area_rows;
pub(crate) mod each;
pub(crate) mod four_layers;
pub(crate) mod matrix;
pub(crate) mod parts;
pub(crate) mod passes;
pub(crate) mod runner;
pub(crate) mod stream_loops;
pub(crate) mod tail;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
pub(crate) mod two_layers;

pub(crate) use area_far::area_far;
pub(crate) use area_near::area_near;
pub(crate) use area_passes::area_passes;
#[cfg(target_arch = "x86_64")]
pub(crate) use area_planes::area_planes;
pub(crate) use area_rows::area_rows;
pub(crate) use four_layers::four_layers;
pub(crate) use matrix::matrix;
pub(crate) use parts::parts;
pub(crate) use passes::passes;
pub(crate) use runner::runner;
pub(crate) use stream_loops::stream_loops;
pub(crate) use tail::tail;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
pub(crate) use two_layers::two_layers;
