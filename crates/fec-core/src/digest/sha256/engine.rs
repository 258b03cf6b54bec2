//! The list of kernels, and of engines: kernels that this CPU can run, each with the number of rows from which it is
//! used.
//!
//! A vector kernel takes as long for one row as for all its lanes. After rows that filled lanes, a small rest therefore
//! goes to another kernel. On Zen 5 sixteen lanes of AVX-512 take as long as seven rows by SHA-NI (`bench/record`).
//! Where 512 bits go through units of 256, or only one unit rotates, ten or so would be right (not measured). Nine is
//! never far off.

// A kernel may only run on a CPU that has its features. This file holds the call that depends on it.
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
use super::aarch64;
use super::contract::Kernel;
use super::scalar;
use super::standard::{BLOCK, State, to_bytes};
#[cfg(target_arch = "x86_64")]
use super::{x86_avx2, x86_avx512, x86_shani};
use crate::digest::hash::Digest;
use std::fmt;

/// Blocks that [`compress_each`] hands over at a time: as many as the widest vectors have lanes.
const WIDEST: usize = 16;

/// A kernel, and the fewest rows that it gets.
type Step = (&'static Kernel, usize);

/// The engines of this target architecture, fastest first. Each lists its kernels, most lanes first. The last kernel of
/// each takes a single row, and the last engine needs no feature.
static ENGINES: &[&[Step]] = &[
    #[cfg(target_arch = "x86_64")]
    &[(&x86_avx512::KERNEL, 9), (&x86_shani::KERNEL, 1)],
    #[cfg(target_arch = "x86_64")]
    &[(&x86_shani::KERNEL, 1)],
    #[cfg(target_arch = "x86_64")]
    &[(&x86_avx512::KERNEL, 3), (&scalar::KERNEL, 1)],
    #[cfg(target_arch = "x86_64")]
    &[(&x86_avx2::KERNEL, 3), (&scalar::KERNEL, 1)],
    #[cfg(target_arch = "aarch64")]
    &[(&aarch64::KERNEL, 1)],
    &[(&scalar::KERNEL, 1)],
];

/// Kernels that this CPU can run. Only detection makes one, so whoever holds an engine may use it.
#[derive(Clone, Copy)]
pub(super) struct Engine {
    steps: &'static [Step],
}

impl Engine {
    /// The fastest engine of this CPU.
    pub(super) fn best() -> Engine {
        Engine::available().next().expect("the last engine needs no feature")
    }

    /// All engines of this CPU, fastest first. No other function makes an engine.
    pub(super) fn available() -> impl Iterator<Item = Engine> {
        // Miri lacks some instructions of the others.
        let is_there =
            |(kernel, _): &Step| kernel.features.iter().all(|is_present| is_present() && !cfg!(miri));
        ENGINES.iter().filter(move |steps| steps.iter().all(is_there)).map(|steps| Engine { steps })
    }

    /// Compresses the blocks of every row into its state.
    ///
    /// # Panics
    /// If there is not one row for each state, or if they are not of one length, a multiple of 64.
    pub(super) fn compress(self, mut states: &mut [State], mut rows: &[&[u8]]) {
        assert_eq!(rows.len(), states.len(), "one piece of each row");
        let len = rows.first().map_or(0, |row| row.len());
        assert!(
            len.is_multiple_of(BLOCK) && rows.iter().all(|row| row.len() == len),
            "whole blocks of one length"
        );
        for (kernel, least) in self.steps {
            while rows.len() >= *least {
                let count = rows.len().min(kernel.lanes);
                let ((now, later), (taken, rest)) = (states.split_at_mut(count), rows.split_at(count));
                // SAFETY: an `Engine` is only made by `available`, which has tested every feature of its kernels.
                unsafe { (kernel.compress)(now, taken) }
                (states, rows) = (later, rest);
            }
        }
    }

    /// As [`compress_each`].
    pub(super) fn compress_each(self, start: &State, blocks: &[[u8; BLOCK]], out: &mut [Digest]) {
        assert_eq!(blocks.len(), out.len(), "a place for each block");
        if let ([block], [out]) = (blocks, &mut *out) {
            // Paths are climbed so: filling a place for each lane would take half as long as the node.
            let mut state = *start;
            self.compress(std::slice::from_mut(&mut state), &[block]);
            *out = to_bytes(&state);
            return;
        }
        for (blocks, out) in blocks.chunks(WIDEST).zip(out.chunks_mut(WIDEST)) {
            let (mut states, mut rows) = ([*start; WIDEST], [&blocks[0][..]; WIDEST]);
            rows.iter_mut().zip(blocks).for_each(|(row, block)| *row = block);
            self.compress(&mut states[..blocks.len()], &rows[..blocks.len()]);
            out.iter_mut().zip(&states).for_each(|(out, state)| *out = to_bytes(state));
        }
    }
}

/// Compresses each block from `start`, and writes the words that come out of it.
///
/// # Panics
/// If `out` does not have a place for each block.
pub(in crate::digest) fn compress_each(start: &State, blocks: &[[u8; BLOCK]], out: &mut [Digest]) {
    Engine::best().compress_each(start, blocks, out);
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.steps.iter().map(|(kernel, _)| kernel.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise rows would be left out.
    #[test]
    fn every_engine_takes_any_number_of_rows() {
        for steps in ENGINES {
            assert!(steps.iter().all(|(kernel, least)| (1..=kernel.lanes).contains(least)));
            assert!(steps.is_sorted_by(|(wide, least_wide), (narrow, least)| {
                wide.lanes > narrow.lanes && least_wide > least
            }));
            assert_eq!(steps.last().expect("a kernel").1, 1);
        }
        let last = ENGINES.last().expect("an engine");
        assert!(last.iter().all(|(kernel, _)| kernel.features.is_empty()), "some engine is always there");
    }
}
