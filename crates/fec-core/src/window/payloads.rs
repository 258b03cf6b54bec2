//! The right-hand sides of the equations over lost packets.
//!
//! Few equations are solved in the moment in which they come: as long as columns lack equations, nothing is. Their
//! payloads are *deferred*, and several are summed up together, so that each term is read once for all of them. A
//! payload is finished before it is read.

use crate::gf256::kernel::{AlignedBytes, Backend};

/// Most payloads that are summed up together.
const DEFERRED: usize = 8;

/// Most terms that are read for them together: they and their tables stay in the first cache.
const TERMS: usize = 64;

/// Fewest terms for which payloads are summed up together.
const WORTH: usize = 16;

/// The place of a row that is no term.
const NONE: usize = usize::MAX;

/// The place of a row that is deferred itself.
const OWN: usize = NONE - 1;

/// A row times a factor.
pub(super) type Term = (usize, u8);

/// A payload that lacks terms.
#[derive(Default)]
struct Deferred {
    row: usize,
    terms: Vec<Term>,
    /// The factor of the payload with its terms.
    scale: u8,
}

/// Scratch for sums of several payloads.
#[derive(Default)]
struct Scratch {
    /// A sum for each payload.
    sums: Vec<AlignedBytes>,
    /// Place of each row among the common terms, or [`NONE`], or [`OWN`].
    places: Vec<usize>,
    /// The rows that are common terms.
    terms: Vec<usize>,
    /// For each portion of the terms, for each payload, a factor for each term.
    factors: Vec<u8>,
    tables: Option<AlignedBytes>,
}

/// The payloads of all rows.
pub(super) struct Payloads {
    backend: Backend,
    len: usize,
    rows: Vec<AlignedBytes>,
    /// The payloads that lack terms: the first `waiting`.
    deferred: [Deferred; DEFERRED],
    waiting: usize,
    scratch: Scratch,
}

impl Payloads {
    /// No rows. Payloads have `len` bytes, in whole lines; without a byte nothing is done.
    pub(super) fn new(backend: Backend, len: usize) -> Payloads {
        Payloads {
            backend,
            len,
            rows: Vec::new(),
            deferred: Default::default(),
            waiting: 0,
            scratch: Scratch::default(),
        }
    }

    /// Adds a row, and returns its number.
    pub(super) fn push_row(&mut self) -> usize {
        self.rows.push(AlignedBytes::zeroed(self.len));
        self.rows.len() - 1
    }

    /// The payload of a row that is not deferred, to be filled.
    pub(super) fn unfinished(&mut self, row: usize) -> &mut [u8] {
        &mut self.rows[row]
    }

    /// The finished payload of a row.
    pub(super) fn finished(&mut self, row: usize) -> &[u8] {
        self.finish();
        &self.rows[row]
    }

    /// Takes the finished payload of a row away, until it is [put back](Self::put_back).
    pub(super) fn take(&mut self, row: usize) -> AlignedBytes {
        self.finish();
        std::mem::replace(&mut self.rows[row], AlignedBytes::zeroed(0))
    }

    /// Puts back a payload that was [taken](Self::take), as the row's buffer.
    pub(super) fn put_back(&mut self, row: usize, payload: AlignedBytes) {
        self.rows[row] = payload;
    }

    /// The empty list of the terms that the next deferred payload lacks.
    pub(super) fn new_terms(&mut self) -> &mut Vec<Term> {
        let terms = &mut self.deferred[self.waiting].terms;
        terms.clear();
        terms
    }

    /// Notes that the payload of a row lacks the [new terms](Self::new_terms), and is to be multiplied by `scale` then.
    pub(super) fn defer(&mut self, row: usize, scale: u8) {
        if self.len == 0 {
            return;
        }
        let deferred = &mut self.deferred[self.waiting];
        (deferred.row, deferred.scale) = (row, scale);
        self.waiting += 1;
        if self.waiting == DEFERRED {
            self.finish();
        }
    }

    /// Adds a symbol times a factor to the payload of a row.
    pub(super) fn add_symbol(&mut self, row: usize, symbol: &[u8], factor: u8) {
        if self.len > 0 {
            self.finish();
            self.backend.add_products(&mut self.rows[row], &[symbol], &[factor]);
        }
    }

    /// Adds terms to the payload of a row.
    pub(super) fn add_terms(&mut self, row: usize, terms: &[Term]) {
        const AT_ONCE: usize = 16;
        if self.len == 0 {
            return;
        }
        self.finish();
        let mut payload = self.take(row);
        for terms in terms.chunks(AT_ONCE) {
            let mut sources: [&[u8]; AT_ONCE] = [&[]; AT_ONCE];
            let mut factors = [0; AT_ONCE];
            for ((source, factor), &(row, by)) in sources.iter_mut().zip(&mut factors).zip(terms) {
                (*source, *factor) = (&self.rows[row], by);
            }
            self.backend.add_products(&mut payload, &sources[..terms.len()], &factors[..terms.len()]);
        }
        self.put_back(row, payload);
    }

    /// Adds what the deferred payloads lack. Rows may be let go after that.
    pub(super) fn finish(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        let most = self.deferred[..waiting].iter().map(|deferred| deferred.terms.len()).max().unwrap_or(0);
        if waiting > 1 && most >= WORTH {
            self.add_common_terms(waiting);
        }
        for i in 0..waiting {
            let Deferred { row, scale, .. } = self.deferred[i];
            let terms = std::mem::take(&mut self.deferred[i].terms);
            self.add_terms(row, &terms);
            self.deferred[i].terms = terms;
            multiply(self.backend, &mut self.rows[row], scale);
        }
    }

    /// Adds the terms that are not deferred themselves to the first `waiting` deferred payloads, and leaves the others.
    fn add_common_terms(&mut self, waiting: usize) {
        let Payloads { backend, rows, deferred, scratch, .. } = self;
        let Scratch { sums, places, terms, factors, tables } = scratch;
        let deferred = &mut deferred[..waiting];
        find_common_terms(deferred, rows.len(), places, terms);
        fill_factors(deferred, places, terms.len(), factors);
        while sums.len() < waiting {
            sums.push(AlignedBytes::zeroed(self.len));
        }
        let sums = &mut sums[..waiting];
        for (portion, factors) in terms.chunks(TERMS).zip(factors.chunks(TERMS * waiting)) {
            let mut sources: [&[u8]; TERMS] = [&[]; TERMS];
            for (source, &row) in sources.iter_mut().zip(portion) {
                *source = &rows[row];
            }
            let mut outputs: [&mut [u8]; DEFERRED] = Default::default();
            for (output, sum) in outputs.iter_mut().zip(&mut *sums) {
                *output = sum;
            }
            backend.combine(&mut outputs[..waiting], &sources[..portion.len()], factors, tables);
            for (deferred, sum) in deferred.iter().zip(&*sums) {
                backend.add(backend.walk(), &mut rows[deferred.row], sum);
            }
        }
        for deferred in deferred {
            deferred.terms.retain(|&(row, _)| places[row] == OWN);
        }
    }
}

/// Lists the rows that are terms of deferred payloads and not deferred themselves, and notes their places.
fn find_common_terms(deferred: &[Deferred], rows: usize, places: &mut Vec<usize>, terms: &mut Vec<usize>) {
    places.clear();
    places.resize(rows, NONE);
    terms.clear();
    for deferred in deferred {
        places[deferred.row] = OWN;
    }
    for &(row, _) in deferred.iter().flat_map(|deferred| &deferred.terms) {
        if places[row] == NONE {
            places[row] = terms.len();
            terms.push(row);
        }
    }
}

/// Fills the factors of `count` common terms, portion by portion.
fn fill_factors(deferred: &[Deferred], places: &[usize], count: usize, factors: &mut Vec<u8>) {
    factors.clear();
    factors.resize(deferred.len() * count, 0);
    for (nth, Deferred { terms, .. }) in deferred.iter().enumerate() {
        for &(row, factor) in terms.iter().filter(|&&(row, _)| places[row] < OWN) {
            let first = places[row] / TERMS * TERMS;
            let portion = TERMS.min(count - first);
            factors[first * deferred.len() + nth * portion + places[row] - first] = factor;
        }
    }
}

/// Multiplies bytes by a factor.
pub(super) fn multiply(backend: Backend, bytes: &mut [u8], factor: u8) {
    // x + (f + 1)·x = f·x, in pieces, because source and sum cannot be the same bytes.
    let mut copy = [0; 1024];
    for piece in bytes.chunks_mut(copy.len()) {
        let copy = &mut copy[..piece.len()];
        copy.copy_from_slice(piece);
        backend.add_products(piece, &[copy], &[factor ^ 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gf256::{kernel::work, mul};
    use crate::random::SplitMix64;

    const LEN: usize = 192;

    /// Some finished rows, then rows whose terms are earlier ones, whichever they are: each is what its terms make of
    /// it, on every backend, and no more bytes are read than there are terms.
    #[test]
    fn deferred_payloads_are_the_sums_of_their_terms() {
        for backend in Backend::available() {
            for (finished, count) in [(0, 3), (1, 1), (15, 9), (16, 8), (64, 7), (65, 17), (300, 20)] {
                let mut noise = SplitMix64::new(finished as u64);
                let mut payloads = Payloads::new(backend, LEN);
                let mut expected: Vec<Vec<u8>> = Vec::new();
                for row in 0..finished + count {
                    assert_eq!(payloads.push_row(), row);
                    let own: Vec<u8> = (0..LEN).map(|_| noise.next() as u8).collect();
                    payloads.unfinished(row).copy_from_slice(&own);
                    expected.push(own);
                }
                for row in finished..finished + count {
                    let scale = 1 + noise.index(255) as u8;
                    let terms = payloads.new_terms();
                    for term in 0..row {
                        if noise.index(8) > 0 {
                            terms.push((term, noise.next() as u8));
                        }
                    }
                    let mut sum = expected[row].clone();
                    for &(term, factor) in &*terms {
                        sum.iter_mut()
                            .zip(&expected[term])
                            .for_each(|(sum, byte)| *sum ^= mul(factor, *byte));
                    }
                    expected[row] = sum.into_iter().map(|byte| mul(scale, byte)).collect();
                    payloads.defer(row, scale);
                }
                for (row, expected) in expected.iter().enumerate() {
                    assert_eq!(payloads.finished(row), expected, "{backend:?} {finished} {count} {row}");
                }
            }
        }
    }

    #[test]
    fn a_payload_is_finished_before_a_symbol_is_added_and_terms_are_read() {
        let mut payloads = Payloads::new(Backend::best(), LEN);
        for byte in [1, 2, 4] {
            let row = payloads.push_row();
            payloads.unfinished(row).fill(byte);
        }
        payloads.new_terms().push((0, 1));
        payloads.defer(1, 1);
        payloads.add_symbol(0, &[8; LEN], 1);
        assert_eq!(payloads.finished(1), [3; LEN], "row 0 was read as it was");
        payloads.new_terms().push((0, 1));
        payloads.defer(1, 1);
        payloads.add_terms(2, &[(1, 1)]);
        assert_eq!(payloads.finished(2), [4 ^ 3 ^ 9; LEN]);
    }

    /// A term costs its bytes once for each payload that it goes into, whether payloads are deferred or not.
    #[test]
    fn a_payload_costs_a_symbol_for_each_term() {
        const TERMS: usize = 500;
        let mut payloads = Payloads::new(Backend::best(), LEN);
        (0..TERMS + DEFERRED).for_each(|row| assert_eq!(payloads.push_row(), row));
        work::take();
        for row in TERMS..TERMS + DEFERRED {
            payloads.new_terms().extend((0..TERMS).map(|term| (term, 3)));
            payloads.defer(row, 1);
        }
        let symbols = work::take().div_ceil(LEN * DEFERRED);
        // The sums of each portion are added, and the payload is scaled.
        assert_eq!(symbols, TERMS + TERMS.div_ceil(super::TERMS) + 1);
    }
}
