//! The coefficients of a word whose values are zero behind its first rows.
//!
//! The m highest of 2^a coefficients are known, and the values behind the first m are zero. Halves, w the skew of the
//! widest layer, c0 and c1 the halves of the coefficients:
//!
//! - m ≥ half: u = c0 + (w + 1)·c1 are the coefficients of the upper half. Their m − half highest are known, and the
//!   same holds for the upper half alone. Then c0 = u + (w + 1)·c1.
//! - m < half: the upper half is zero, so c0 = (w + 1)·c1, and c1 are the coefficients of the lower half, to which the
//!   same applies.

use super::sums::Shape;
use crate::gf256::kernel::{Backend, GROUP, LINE, Stretches, Unit};
use crate::gf65536::point;

/// A node on the way down: the place of its coefficients among all rows.
#[derive(Clone, Copy)]
struct Node {
    start: usize,
    half: usize,
    /// w + 1.
    factor: u16,
    /// True if half of the values or more are not zero.
    is_more: bool,
}

/// Completes the coefficients of a word at position 0, of which the `m` highest are known. They stand in the order of
/// tiles.
pub(super) fn fill(backend: Backend, shape: Shape, sums: &mut [Unit], m: usize) {
    let (mut start, mut len, mut base, mut m) = (0, shape.rows, 0, m);
    let mut nodes = [None; 16];
    let mut depth = 0;
    while m > 0 && m < len {
        let half = len / 2;
        let factor = point((base >> half.trailing_zeros()) as u16) ^ 1;
        let node = Node { start, half, factor, is_more: m >= half };
        nodes[depth] = Some(node);
        depth += 1;
        len = half;
        if node.is_more {
            node.multiply(backend, shape, sums, true);
            (base, m) = (base + half, m - half);
        } else {
            start += half;
        }
    }
    if m == 0 {
        rows_of(shape, sums, start, len).for_each(|unit| *unit = [[0; LINE]; 2]);
    }
    for node in nodes.iter().rev().flatten() {
        node.multiply(backend, shape, sums, node.is_more);
    }
}

impl Node {
    /// c0 + `factor` · c1 to the place of c0, or the product alone.
    fn multiply(self, backend: Backend, shape: Shape, sums: &mut [Unit], add: bool) {
        let groups = shape.groups();
        let place = |row: usize| row % GROUP * groups + row / GROUP;
        let (to, from) = (place(self.start), place(self.start + self.half));
        if self.half >= GROUP {
            let count = sums.len() / groups;
            let stretches = Stretches { to, from, len: self.half / GROUP, distance: groups, count };
            return backend.add_multiples(sums, stretches, self.factor, add);
        }
        let stretches = Stretches { to, from, len: 1, distance: groups, count: self.half };
        for unit in sums.chunks_exact_mut(groups * GROUP) {
            backend.add_multiples(unit, stretches, self.factor, add);
        }
    }
}

/// All units of rows that stand side by side.
fn rows_of(shape: Shape, sums: &mut [Unit], start: usize, len: usize) -> impl Iterator<Item = &mut Unit> {
    let groups = shape.groups();
    sums.iter_mut().enumerate().filter_map(move |(i, unit)| {
        let row = i % groups * GROUP + i / groups % GROUP;
        (start..start + len).contains(&row).then_some(unit)
    })
}
