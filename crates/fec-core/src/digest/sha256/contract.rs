//! What a kernel file offers. Kernels know this file and not the list of them.

use super::standard::State;

/// What a kernel file offers.
pub(super) struct Kernel {
    /// Its name.
    pub(super) name: &'static str,
    /// The CPU features it needs: the test of each at run time.
    pub(super) features: &'static [fn() -> bool],
    /// Most rows it takes at once.
    pub(super) lanes: usize,
    /// Compresses the blocks of each row into its state. There are as many rows as states, 1 to `lanes`, all of one
    /// length, a multiple of 64; others panic or are hashed in part. Calling it is sound exactly when the CPU has all
    /// of `features`.
    pub(super) compress: unsafe fn(&mut [State], &[&[u8]]),
}
