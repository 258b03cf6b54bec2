//! The loops of the stream code, as in `gather.rs` of the kernels.

use super::{Visitor, read, source, write};
use crate::gf256::PRODUCTS;
use crate::gf256::kernel::backend::Backend;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::gf256::kernel::nibble;
use crate::gf256::kernel::tuning::Walk;
use std::ops::Range;

/// The accesses of [`Backend::gather`].
pub(crate) fn gather(
    backend: Backend,
    classes: &[&[&[u8]]],
    factor: u8,
    dst: &[u8],
    visit: &mut Visitor<'_>,
) {
    packed(backend, factor, visit);
    for range in steps(backend, backend.walk(), dst.len()) {
        for (power, class) in classes.iter().enumerate().rev() {
            (0..class.len()).for_each(|i| source(visit, class, i, range.start, range.len()));
            if power > 0 {
                product(backend, factor, visit);
            }
        }
        write(visit, dst, range.start, range.len(), false);
    }
}

/// The accesses of [`Backend::add`].
pub(crate) fn add(backend: Backend, walk: Walk, dst: &[u8], src: &[u8], visit: &mut Visitor<'_>) {
    for range in steps(backend, walk, dst.len()) {
        read(visit, dst, range.start, range.len());
        read(visit, src, range.start, range.len());
        write(visit, dst, range.start, range.len(), false);
    }
}

/// The accesses of [`Backend::spread`].
pub(crate) fn spread(
    backend: Backend,
    dst: [&[u8]; 3],
    src: &[u8],
    factors: [u8; 2],
    visit: &mut Visitor<'_>,
) {
    factors.iter().for_each(|&factor| packed(backend, factor, visit));
    let width = backend.vector_len();
    for at in (0..src.len()).step_by(width) {
        let len = width.min(src.len() - at);
        read(visit, src, at, len);
        dst.iter().for_each(|dst| read(visit, dst, at, len));
        factors.iter().for_each(|&factor| product(backend, factor, visit));
        dst.iter().for_each(|dst| write(visit, dst, at, len, false));
    }
}

/// The accesses of [`Backend::mix`].
pub(crate) fn mix(backend: Backend, rows: [&[u8]; 4], visit: &mut Visitor<'_>) {
    let width = backend.vector_len();
    for at in (0..rows[0].len()).step_by(width) {
        let len = width.min(rows[0].len() - at);
        rows.iter().for_each(|row| read(visit, row, at, len));
        rows.iter().for_each(|row| write(visit, row, at, len, false));
    }
}

/// The accesses of [`Backend::turn`]; `rows` are `total`, `ended` and `begun`.
pub(crate) fn turn(backend: Backend, rows: [&[u8]; 3], left: &[u8], visit: &mut Visitor<'_>) {
    let width = backend.vector_len();
    let [total, ended, begun] = rows;
    for at in (0..left.len()).step_by(width) {
        let len = width.min(left.len() - at);
        [total, ended, left].iter().for_each(|row| read(visit, row, at, len));
        [ended, total, begun].iter().for_each(|row| write(visit, row, at, len, false));
    }
}

/// The pieces of a row that a walk takes: as long as it says, then vectors, then what is left.
fn steps(backend: Backend, walk: Walk, len: usize) -> impl Iterator<Item = Range<usize>> {
    let width = backend.vector_len();
    let long = walk.bytes(width).max(width);
    let mut at = 0;
    std::iter::from_fn(move || {
        let step = [long, width, len - at].into_iter().find(|step| at + step <= len)?;
        let range = at..at + step;
        at += step;
        (!range.is_empty()).then_some(range)
    })
}

/// Where the packed table of a factor is taken from, once for all of a row.
fn packed(backend: Backend, factor: u8, visit: &mut Visitor<'_>) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if backend.kernel.table_len == nibble::TABLE_LEN {
        read(visit, nibble::table(factor), 0, nibble::TABLE_LEN);
    }
    // The other tables are a coefficient, or no longer than one register.
    let _ = (backend, factor, visit);
}

/// What a product of a piece of a row looks up: without vectors, in the table of all products.
fn product(backend: Backend, factor: u8, visit: &mut Visitor<'_>) {
    if backend.kernel.table_len == 1 {
        read(visit, &PRODUCTS[usize::from(factor)], 0, 256);
    }
}
