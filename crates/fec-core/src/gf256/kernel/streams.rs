//! The operations of live streams on a backend: sums over whole rows, of any length and at any address.
//!
//! A kernel's loops do the whole vectors (`stream_loops.rs`); this file does the rest of a row, byte by byte.

// A loop may only run on a CPU that has its features. Each method below holds one such call.
#![allow(unsafe_code)]

use super::aligned::{AlignedBytes, LINE};
use super::backend::{Backend, pack_to, run};
use super::tuning::Walk;
use crate::gf256::products_of;

/// Most sources that one pass of [`Backend::add_products`] takes.
const PASS: usize = 16;

/// The longest packed table of a coefficient.
const MAX_TABLE: usize = 32;

#[cfg(test)]
pub(super) use work::note as note_work;

#[cfg(not(test))]
#[inline(always)]
pub(super) fn note_work(_amount: usize) {}

impl Backend {
    /// Writes `dst = Σ classes[0] + factor · Σ classes[1] + factor² · Σ classes[2] + …`, by Horner's rule.
    ///
    /// Rows may have any length and begin anywhere. Sources are at least as long as `dst`, and bytes beyond its length
    /// are not read. Each source is read once, `dst` only written.
    ///
    /// # Panics
    ///
    /// When a source is shorter than `dst`.
    pub fn sum(self, walk: Walk, classes: &[&[&[u8]]], factor: u8, dst: &mut [u8]) {
        note_work(dst.len() * classes.iter().map(|class| class.len()).sum::<usize>());
        let (table, len) = self.table(factor);
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        let done = unsafe { (self.kernel.stream.sum)(classes, &table[..len], dst, walk) };
        let product = products_of(factor);
        for (i, byte) in dst.iter_mut().enumerate().skip(done) {
            *byte = classes
                .iter()
                .rev()
                .fold(0, |sum, class| class.iter().fold(product[usize::from(sum)], |sum, row| sum ^ row[i]));
        }
    }

    /// Bytes that a load of the stream code's loops takes.
    pub fn vector_len(self) -> usize {
        self.kernel.stream.width
    }

    /// The sum by this processor's walk.
    pub(crate) fn gather(self, classes: &[&[&[u8]]], factor: u8, dst: &mut [u8]) {
        self.sum(self.walk(), classes, factor, dst);
    }

    /// Prefetches a row that will be read soon.
    pub(crate) fn prefetch(self, row: &[u8]) {
        (self.kernel.stream.prefetch)(row);
    }

    /// Adds `src` to `dst`.
    ///
    /// # Panics
    ///
    /// When `src` is shorter than `dst`.
    pub fn add(self, walk: Walk, dst: &mut [u8], src: &[u8]) {
        note_work(dst.len());
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        let done = unsafe { (self.kernel.stream.add)(dst, src, walk) };
        for (sum, byte) in dst.iter_mut().zip(src).skip(done) {
            *sum ^= byte;
        }
    }

    /// Adds `src` to the first of three rows, `src` times a factor to each of the others. `src` is read once.
    ///
    /// # Panics
    ///
    /// When the rows differ in length.
    pub fn spread(self, dst: [&mut [u8]; 3], src: &[u8], factors: [u8; 2]) {
        note_work(3 * src.len());
        assert!(dst.iter().all(|row| row.len() == src.len()));
        let [(first, len), (second, _)] = factors.map(|factor| self.table(factor));
        let [a, b, c] = dst;
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        let done = unsafe { (self.kernel.stream.spread)([a, b, c], src, [&first[..len], &second[..len]]) };
        let [second, third] = factors.map(products_of);
        for i in done..src.len() {
            a[i] ^= src[i];
            b[i] ^= second[usize::from(src[i])];
            c[i] ^= third[usize::from(src[i])];
        }
    }

    /// Makes of four rows the four sums of three of them: each becomes the sum of the others. Two calls restore the
    /// rows.
    ///
    /// # Panics
    ///
    /// When the rows differ in length.
    pub fn mix(self, rows: [&mut [u8]; 4]) {
        let [a, b, c, d] = rows;
        assert!([&*b, &*c, &*d].iter().all(|row| row.len() == a.len()));
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        let done = unsafe { (self.kernel.stream.mix)([a, b, c, d]) };
        for i in done..a.len() {
            let sum = a[i] ^ b[i] ^ c[i] ^ d[i];
            for byte in [&mut a[i], &mut b[i], &mut c[i], &mut d[i]] {
                *byte ^= sum;
            }
        }
    }

    /// Updates the sums of a window when one block ends and the first one leaves: adds `total` to `ended`, then `left`
    /// to `total`, and writes the new `total` to `begun` too. Each row is read once.
    ///
    /// # Panics
    ///
    /// When the rows differ in length.
    pub fn turn(self, total: &mut [u8], ended: &mut [u8], begun: &mut [u8], left: &[u8]) {
        note_work(3 * left.len());
        assert!([&*total, &*ended, &*begun].iter().all(|row| row.len() == left.len()));
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        let done = unsafe { (self.kernel.stream.turn)([total, ended, begun], left) };
        for i in done..left.len() {
            ended[i] ^= total[i];
            total[i] ^= left[i];
        }
        begun[done..].copy_from_slice(&total[done..]);
    }

    /// Adds to `dst` the sum of rows, each times a factor.
    ///
    /// # Panics
    ///
    /// When there are not as many factors as rows, or a row is shorter than `dst`.
    pub fn add_products(self, dst: &mut [u8], src: &[&[u8]], factors: &[u8]) {
        note_work(dst.len() * src.len());
        assert_eq!(src.len(), factors.len());
        let table_len = self.kernel.table_len;
        for (src, factors) in src.chunks(PASS).zip(factors.chunks(PASS)) {
            let mut tables = [0; PASS * MAX_TABLE];
            for (&factor, table) in factors.iter().zip(tables.chunks_exact_mut(table_len)) {
                (self.kernel.pack)(factor, table);
            }
            let tables = &tables[..factors.len() * table_len];
            // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
            let done = unsafe { (self.kernel.stream.add_products)(dst, src, tables) };
            for (row, &factor) in src.iter().zip(factors) {
                let product = products_of(factor);
                for (sum, byte) in dst.iter_mut().zip(*row).skip(done) {
                    *sum ^= product[usize::from(*byte)];
                }
            }
        }
    }

    /// Reduces `dst` by rows, one after the other: notes the byte of `dst` at the row's position as its factor, and
    /// adds the row times its factor. A row begins at the line of its position.
    ///
    /// # Panics
    ///
    /// When there are fewer factors than rows, `dst` or a row is not of whole lines, or a row ends beyond `dst`.
    pub fn eliminate(self, dst: &mut [u8], rows: &[(usize, &[u8])], factors: &mut [u8]) {
        let fits = |&(position, row): &(usize, &[u8])| {
            row.len().is_multiple_of(LINE) && position / LINE * LINE + row.len() <= dst.len()
        };
        assert!(factors.len() >= rows.len() && dst.len().is_multiple_of(LINE) && rows.iter().all(fits));
        note_work(rows.iter().map(|(_, row)| row.len()).sum());
        // SAFETY: a `Backend` is only made by detection, which has tested every feature this kernel needs.
        unsafe { (self.kernel.stream.eliminate)(dst, rows, factors) }
    }

    /// Writes sums of rows, each times a factor: `dst[i] = Σ factors[i · src.len() + j] · src[j]`. `tables` is
    /// scratch.
    ///
    /// # Panics
    ///
    /// When there is not a factor for each pair, or rows differ in length or are not of whole lines.
    pub(crate) fn combine(
        self,
        dst: &mut [&mut [u8]],
        src: &[&[u8]],
        factors: &[u8],
        tables: &mut Option<AlignedBytes>,
    ) {
        assert_eq!(factors.len(), dst.len() * src.len());
        note_work(dst.iter().map(|row| row.len() * src.len()).sum());
        let len = factors.len() * self.kernel.table_len;
        if tables.as_ref().is_none_or(|tables| tables.len() < len) {
            *tables = Some(AlignedBytes::zeroed(len));
        }
        let tables = tables.as_mut().expect("made above");
        pack_to(self, src.len(), factors, tables);
        run(self, src.len(), dst.len(), tables, &mut [(src, dst)]);
    }

    /// The packed table of a factor, and its length.
    pub(super) fn table(self, factor: u8) -> ([u8; MAX_TABLE], usize) {
        let kernel = self.kernel;
        let mut table = [0; MAX_TABLE];
        (kernel.pack)(factor, &mut table[..kernel.table_len]);
        (table, kernel.table_len)
    }
}

/// Bytes that these loops have added up on this thread, for tests of what a packet costs.
#[cfg(test)]
pub(crate) mod work {
    use std::cell::Cell;

    thread_local! {
        static BYTES: Cell<usize> = const { Cell::new(0) };
    }

    pub(in crate::gf256::kernel) fn note(bytes: usize) {
        BYTES.set(BYTES.get() + bytes);
    }

    /// Bytes since the last call.
    pub(crate) fn take() -> usize {
        BYTES.take()
    }
}
