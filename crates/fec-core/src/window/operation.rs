//! The steps of an encoder as values, so that the performer can also tell their memory accesses.
//!
//! Encoder and lane sums describe each walk over the bytes of packets as an [`Operation`] and leave it to a
//! [`Perform`]. The [`Backend`] only performs it, and compiles to the plain call. With the feature `trace`, a tracer
//! performs it and tells a model of caches. Both therefore do the same.

use super::row::RepairRow;
use crate::block::Plan;
use crate::format::packet::{self, Parameters, RowHeader};
use crate::gf256::kernel::Backend;

/// A step over whole rows of bytes.
pub(super) enum Operation<'a> {
    /// Fills a row with zeros.
    Clear { dst: &'a mut [u8] },
    /// Copies a row to one of the same length.
    Copy { dst: &'a mut [u8], src: &'a [u8] },
    /// Adds a row to another: [`Backend::add`] by the processor's walk.
    Add { dst: &'a mut [u8], src: &'a [u8] },
    /// Adds a row to three, times factors: [`Backend::spread`].
    Spread { dst: [&'a mut [u8]; 3], src: &'a [u8], factors: [u8; 2] },
    /// Makes sums of three of four rows: [`Backend::mix`].
    Mix { rows: [&'a mut [u8]; 4] },
    /// Ends a block of sums and takes another away: [`Backend::turn`].
    Turn { total: &'a mut [u8], ended: &'a mut [u8], begun: &'a mut [u8], left: &'a [u8] },
    /// Generates the coefficients of a row: [`RepairRow::generate`].
    Generate { row: &'a mut RepairRow, parameters: &'a Parameters, number: u64, first: u64, count: u32 },
    /// Adds up the terms of a row: [`Backend::gather`].
    Gather { classes: &'a [&'a [&'a [u8]]], factor: u8, dst: &'a mut [u8] },
    /// Makes the repair symbols of a set: [`Plan::run`].
    Encode { plan: &'a Plan, src: &'a [&'a [u8]], dst: &'a mut [&'a mut [u8]] },
    /// Writes a repair packet to `out`, whose old content is dropped: [`packet::write_repair`].
    Write { out: &'a mut Vec<u8>, parameters: &'a Parameters, header: &'a RowHeader, symbol: &'a [u8] },
}

impl Operation<'_> {
    /// Performs the operation. (The compiler sees the variant where the value is made: nothing is left of the value.)
    #[inline(always)]
    pub(super) fn run(&mut self, backend: Backend) {
        match self {
            Operation::Clear { dst } => dst.fill(0),
            Operation::Copy { dst, src } => dst.copy_from_slice(src),
            Operation::Add { dst, src } => backend.add(backend.walk(), dst, src),
            Operation::Spread { dst: [a, b, c], src, factors } => backend.spread([a, b, c], src, *factors),
            Operation::Mix { rows: [a, b, c, d] } => backend.mix([a, b, c, d]),
            Operation::Turn { total, ended, begun, left } => backend.turn(total, ended, begun, left),
            Operation::Generate { row, parameters, number, first, count } => {
                row.generate(parameters, *number, *first, *count);
            }
            Operation::Gather { classes, factor, dst } => backend.gather(classes, *factor, dst),
            Operation::Encode { plan, src, dst } => plan.run(src, dst),
            Operation::Write { out, parameters, header, symbol } => {
                packet::write_repair(out, parameters, header, symbol);
            }
        }
    }
}

/// Performs operations.
pub(super) trait Perform {
    fn perform(&mut self, operation: Operation<'_>);
}

impl Perform for Backend {
    #[inline(always)]
    fn perform(&mut self, mut operation: Operation<'_>) {
        operation.run(*self);
    }
}
