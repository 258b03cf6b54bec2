//! What a kernel touches in memory, in its order: for models of caches.
//!
//! The same loops as the walk of the matrix kernels, the runner of programs and the stream code, with addresses in
//! place of loads and stores. What the compiler keeps on the stack is taken to be as many lines, in as many places, as
//! in the code for SSSE3; prefetches are left out.

mod gather;
mod program;

pub(crate) use gather::{add, gather, mix, spread, turn};
pub(crate) use program::program;

use super::aligned::{AlignedBytes, LINE};
use super::backend::Backend;
use super::scalar::CHUNK;
use super::tuning::Store;
use super::walk::groups;
use crate::gf256::PRODUCTS;

/// One stretch of memory that a kernel touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Where it begins.
    pub address: usize,
    /// Its length in bytes, at least 1.
    pub len: usize,
    /// What is done to it.
    pub kind: AccessKind,
}

/// `N` bytes of the stack that a call of an inner function uses: spilled registers, bounds, pointers.
#[repr(align(64))]
pub(crate) struct Frame<const N: usize>([u8; N]);

/// Bytes that a group of outputs of a matrix uses.
const GROUP_FRAME: usize = 512;

impl<const N: usize> Frame<N> {
    pub(crate) const fn new() -> Self {
        Frame([0; N])
    }

    pub(crate) fn enter(&self, visit: &mut Visitor<'_>) {
        visit(Access { address: self.0.as_ptr().addr(), len: N, kind: AccessKind::Stack });
    }
}

/// What a kernel does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store, by way of the caches.
    Write,
    /// A store past the caches.
    Stream,
    /// Lines of the stack: spilled registers, bounds, pointers. How many loads and stores that makes is left open.
    Stack,
}

/// Told of each access.
pub(crate) type Visitor<'a> = dyn FnMut(Access) + 'a;

pub(super) fn read(visit: &mut Visitor<'_>, bytes: &[u8], at: usize, len: usize) {
    let address = bytes.as_ptr().addr() + at;
    visit(Access { address, len, kind: AccessKind::Read });
}

pub(super) fn write(visit: &mut Visitor<'_>, bytes: &[u8], at: usize, len: usize, stream: bool) {
    let address = bytes.as_ptr().addr() + at;
    let kind = if stream { AccessKind::Stream } else { AccessKind::Write };
    visit(Access { address, len, kind });
}

/// A load of all of a value.
fn value<T>(visit: &mut Visitor<'_>, value: &T) {
    visit(Access { address: std::ptr::from_ref(value).addr(), len: size_of::<T>(), kind: AccessKind::Read });
}

/// A row's own bytes, behind the place where its address stands.
pub(super) fn row<'a>(visit: &mut Visitor<'_>, rows: &[&'a [u8]], i: usize) -> &'a [u8] {
    let address = std::ptr::from_ref(&rows[i]).addr();
    visit(Access { address, len: size_of::<&[u8]>(), kind: AccessKind::Read });
    rows[i]
}

/// A load from source row `i`.
fn source(visit: &mut Visitor<'_>, src: &[&[u8]], i: usize, at: usize, len: usize) {
    let row = row(visit, src, i);
    read(visit, row, at, len);
}

/// The accesses of a matrix with these packed tables.
pub(crate) fn matrix(
    backend: Backend,
    tables: &AlignedBytes,
    src: &[&[u8]],
    dst: &[&[u8]],
    visit: &mut Visitor<'_>,
) {
    let kernel = backend.kernel;
    let (k, row_len) = (src.len(), src[0].len());
    let Some(step) = kernel.step else { return scalar_matrix(tables, src, dst, visit) };
    let frame = Frame::<GROUP_FRAME>::new();
    let cut = super::walk::Cut::new(backend.tuning, k, row_len, row_len * dst.len());
    let stream = cut.store == Store::Stream;
    for start in (0..row_len).step_by(cut.tile_len) {
        for group in groups(dst.len(), backend.sums()) {
            frame.enter(visit);
            let table_len = group.len() * kernel.table_len;
            for at in (start..row_len.min(start + cut.tile_len)).step_by(step) {
                for j in 0..k {
                    source(visit, src, j, at, step);
                    read(visit, tables, group.start * k * kernel.table_len + j * table_len, table_len);
                }
                for i in group.clone() {
                    let to = row(visit, dst, i);
                    write(visit, to, at, step, stream);
                }
            }
        }
    }
}

/// What the matrix of the portable kernel touches. Which bytes of a row of products it looks up depends on the data; all lines
/// of the row are told.
fn scalar_matrix(tables: &[u8], src: &[&[u8]], dst: &[&[u8]], visit: &mut Visitor<'_>) {
    let row_len = src[0].len();
    for start in (0..row_len).step_by(CHUNK) {
        let columns = || (start..row_len.min(start + CHUNK)).step_by(LINE);
        for (coefficients, out) in tables.chunks_exact(src.len()).zip(dst) {
            columns().for_each(|at| write(visit, out, at, LINE, false));
            for (i, &coefficient) in coefficients.iter().enumerate() {
                let row = row(visit, src, i);
                for at in columns() {
                    read(visit, row, at, LINE);
                    read(visit, &PRODUCTS[usize::from(coefficient)], 0, 256);
                    write(visit, out, at, LINE, false);
                }
            }
        }
    }
}
