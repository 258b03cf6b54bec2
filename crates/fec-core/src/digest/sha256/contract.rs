//! The contract of a kernel file. Kernels know this file and not the list of them.

use super::standard::State;

/// A kernel, as its file offers it.
pub(super) struct Kernel {
    /// Its name.
    pub(super) name: &'static str,
    /// The CPU features it needs: the test of each at run time.
    pub(super) features: &'static [fn() -> bool],
    /// Most rows it takes at once.
    pub(super) lanes: usize,
    /// Compresses the blocks of each row into its state. Rows and states are equal in number, 1 to `lanes`, and rows
    /// have one length, a multiple of 64. Otherwise the call panics or hashes only a part. Calling it is sound exactly
    /// when the CPU has all of `features`.
    pub(super) compress: unsafe fn(&mut [State], &[&[u8]]),
}
