//! A row at a time by the crate `sha2`, which uses the instructions for SHA-256 that it knows, or none.

use super::contract::Kernel;
use super::standard::{BLOCK, State};

pub(super) static KERNEL: Kernel = Kernel { name: "sha2", features: &[], lanes: 1, compress };

fn compress(states: &mut [State], rows: &[&[u8]]) {
    for (state, row) in states.iter_mut().zip(rows) {
        sha2::block_api::compress256(state, row.as_chunks::<BLOCK>().0);
    }
}
