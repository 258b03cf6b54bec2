//! The loops of live streams, by a tracing kernel, and the rest of a row after the whole vectors.

use super::access::{Access, AccessKind, Visitor};
use super::kernels;
use super::recorder::{WatchedRow, recorded};
use crate::gf256::kernel::backend::Backend;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
use crate::gf256::kernel::isa::nibble;
use crate::gf256::kernel::tuning::Walk;

/// The accesses of [`Backend::gather`].
pub(crate) fn gather(
    backend: Backend,
    classes: &[&[&[u8]]],
    factor: u8,
    dst: &[u8],
    visit: &mut Visitor<'_>,
) {
    let (table, len) = backend.table(factor);
    packed(backend, factor, visit);
    let sources = classes.iter().copied().flatten();
    let listed = sources.clone().map(WatchedRow::listed).collect();
    let done = standing_in([dst], listed, visit, |[dst]| {
        (kernels::of(backend).sum)(classes, &table[..len], dst, backend.walk())
    });
    let sources: Vec<&[u8]> = sources.copied().collect();
    rest(done, &sources, &[dst], visit);
}

/// The accesses of [`Backend::add`].
pub(crate) fn add(backend: Backend, walk: Walk, dst: &[u8], src: &[u8], visit: &mut Visitor<'_>) {
    let done = standing_in([dst], vec![], visit, |[dst]| (kernels::of(backend).add)(dst, src, walk));
    rest(done, &[dst, src], &[dst], visit);
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
    let [(first, len), (second, _)] = factors.map(|factor| backend.table(factor));
    let done = standing_in(dst, vec![], visit, |dst| {
        (kernels::of(backend).spread)(dst, src, [&first[..len], &second[..len]])
    });
    rest(done, &[src, dst[0], dst[1], dst[2]], &dst, visit);
}

/// The accesses of [`Backend::mix`].
pub(crate) fn mix(backend: Backend, rows: [&[u8]; 4], visit: &mut Visitor<'_>) {
    let done = standing_in(rows, vec![], visit, |rows| (kernels::of(backend).mix)(rows));
    rest(done, &rows, &rows, visit);
}

/// The accesses of [`Backend::turn`]; `rows` are `total`, `ended` and `begun`.
pub(crate) fn turn(backend: Backend, rows: [&[u8]; 3], left: &[u8], visit: &mut Visitor<'_>) {
    let done = standing_in(rows, vec![], visit, |rows| (kernels::of(backend).turn)(rows, left));
    rest(done, &[rows[0], rows[1], left], &rows, visit);
}

/// Calls loops with rows of their own to write to, and tells their accesses as accesses to `dst`.
fn standing_in<const N: usize>(
    dst: [&[u8]; N],
    mut listed: Vec<WatchedRow>,
    visit: &mut Visitor<'_>,
    loops: impl FnOnce([&mut [u8]; N]) -> usize,
) -> usize {
    let mut standing = dst.map(|row| vec![0; row.len()]);
    listed.extend(dst.iter().zip(&standing).map(|(row, standing)| WatchedRow::behind(row, standing)));
    listed.sort_by_key(WatchedRow::seen);
    let mut done = 0;
    recorded(&listed, None, visit, || done = loops(standing.each_mut().map(|row| &mut row[..])));
    done
}

/// The bytes behind the whole vectors.
fn rest(done: usize, read: &[&[u8]], written: &[&[u8]], visit: &mut Visitor<'_>) {
    if written[0].len() > done {
        let tell = |rows: &[&[u8]], kind, visit: &mut Visitor<'_>| {
            rows.iter().for_each(|row| visit(Access::of(&row[done..written[0].len()], kind)));
        };
        tell(read, AccessKind::Read, visit);
        tell(written, AccessKind::Write, visit);
    }
}

/// The read of a factor's packed table, once for all of a row.
fn packed(backend: Backend, factor: u8, visit: &mut Visitor<'_>) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_feature = "simd128"))]
    if backend.kernel.table_len == nibble::TABLE_LEN {
        visit(Access::of(nibble::table(factor), AccessKind::Read));
    }
    // Other tables are a coefficient, or fit one register.
    let _ = (backend, factor, visit);
}
