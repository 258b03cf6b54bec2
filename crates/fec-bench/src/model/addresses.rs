//! Addresses that are the same at each run.
//!
//! The system puts stack, heap and mappings somewhere else each time, so that other lines share a set of a cache. Here
//! each stretch of memory that is touched gets a place of its own, in the order in which it is first touched. Distances
//! within a stretch stay.

/// Bytes of a page: the system moves nothing by less.
const PAGE: usize = 4096;

/// Pages around a stretch that belong to it too. Parts of an allocation are touched in any order.
const NEAR: usize = 64;

/// Pages between the places of stretches. It is no multiple of what caches repeat at.
const APART: usize = 65_537;

/// Pages that belong together.
#[derive(Clone, Copy)]
struct Stretch {
    first: usize,
    last: usize,
    /// Pages around it that belong to it.
    near: usize,
    /// The page that stands at the middle of its place.
    origin: usize,
}

impl Stretch {
    fn takes(&self, page: usize) -> bool {
        page + self.near >= self.first && page <= self.last + self.near
    }
}

/// The stretches that were touched so far.
#[derive(Default)]
pub(super) struct Addresses {
    stretches: Vec<Stretch>,
    /// The last page, and its number: most accesses stay in one.
    last: Option<(usize, usize)>,
}

impl Addresses {
    /// The address that stands for a real one.
    pub(super) fn of(&mut self, address: usize) -> usize {
        let page = address / PAGE;
        let number = match self.last {
            Some((last, number)) if last == page => number,
            _ => self.number(page),
        };
        self.last = Some((page, number));
        number * PAGE + address % PAGE
    }

    fn number(&mut self, page: usize) -> usize {
        let at = self.stretches.iter().position(|stretch| stretch.takes(page));
        let at = at.unwrap_or_else(|| {
            self.stretches.push(Stretch { first: page, last: page, near: NEAR, origin: page });
            self.stretches.len() - 1
        });
        let stretch = &mut self.stretches[at];
        stretch.first = stretch.first.min(page);
        stretch.last = stretch.last.max(page);
        (at + 1) * APART + page - stretch.origin
    }

    /// Gives a place to rows, which lie one behind the other, and to nothing around them.
    pub(super) fn lay_out(&mut self, rows: &[&[u8]]) {
        let pages = |row: &&[u8]| [row.as_ptr().addr() / PAGE, (row.as_ptr().addr() + row.len()) / PAGE];
        let (Some(first), Some(last)) =
            (rows.iter().flat_map(pages).min(), rows.iter().flat_map(pages).max())
        else {
            return;
        };
        self.stretches.push(Stretch { first, last, near: 0, origin: first });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_accesses_have_the_same_addresses_wherever_they_are() {
        let offsets = [9000, 70, 4096, 4100, 3 << 30, (3 << 30) + 4096, 9000, 1 << 21, 4095];
        let of = |base: usize| {
            let mut addresses = Addresses::default();
            offsets.map(|offset| addresses.of(base + offset))
        };
        let first = of(0x5555_0000_0000);
        assert_eq!(first, of(0x7fff_1234_5000));
        assert_eq!(first[0], first[6], "a place keeps its address");
        assert_eq!((first[0] - first[1], first[2] - first[1]), (8930, 4026), "distances stay");
    }

    #[test]
    fn what_lies_beside_rows_is_not_theirs() {
        let memory = vec![0u8; 8 * PAGE];
        let rows: Vec<&[u8]> = memory[..4 * PAGE].chunks(1000).collect();
        let start = memory.as_ptr().addr();
        let mut addresses = Addresses::default();
        addresses.lay_out(&rows);
        assert_eq!(addresses.of(start + 5000) - addresses.of(start), 5000);
        assert!(addresses.of(start + 6 * PAGE).abs_diff(addresses.of(start)) > 1000 * PAGE);
    }
}
