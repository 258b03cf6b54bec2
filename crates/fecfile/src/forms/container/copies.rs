//! Copies of the meta between the records of a sealed container (docs/FORMAT.md, section 9): the seal is lost no sooner
//! than the payload.

use fec_core::block::Code;
use fec_core::format::annex;
use fec_core::format::meta::Meta;
use fec_core::params::Shape;
use std::ops::Range;

/// Places of the copies: a copy is in front of the first record of each of m + 1 shards of group 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// Shards of a set.
    n: u64,
    count: u64,
    /// Bytes of a copy.
    len: u64,
}

impl Copies {
    /// No copies.
    pub(crate) const NONE: Copies = Copies { n: 1, count: 0, len: 0 };

    /// The copies in a new container of this shape whose meta frame has `front` bytes.
    pub(crate) fn of(shape: &Shape, meta: &[u8], front: usize) -> Copies {
        match Meta::parse(meta) {
            Ok(meta) if holds_seal(shape, &meta) => Copies::framed(shape.code, front as u64),
            _ => Copies::NONE,
        }
    }

    /// Copies of a meta frame of `front` bytes.
    pub(crate) fn framed(code: Code, front: u64) -> Copies {
        let len = front + 2 * annex::HEADER_LEN as u64;
        Copies { n: code.n() as u64, count: code.m() as u64 + 1, len }
    }

    /// Number of copies.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of a copy.
    pub(crate) fn each_len(&self) -> u64 {
        self.len
    }

    /// Bytes of all copies.
    pub(crate) fn total(&self) -> u64 {
        self.count * self.len
    }

    /// The shard whose first record follows copy number `nth`; copies count from 1.
    pub(crate) fn shard(&self, nth: u64) -> u64 {
        (nth * self.n).div_ceil(self.count) - 1
    }

    /// Bytes of all copies in front of the records of a shard.
    pub(crate) fn shift(&self, index: u64) -> u64 {
        (index + 1) * self.count / self.n * self.len
    }

    /// Tells whether a copy is directly in front of the first record of a shard.
    pub(crate) fn is_before(&self, index: u64) -> bool {
        self.shift(index) > index.checked_sub(1).map_or(0, |before| self.shift(before))
    }

    /// Ranges of shards that no copy interrupts, of `n` shards in all.
    pub(crate) fn stretches_of(&self, n: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let copies = *self;
        let start = move |nth| if nth == 0 { 0 } else { copies.shard(nth) };
        let end = move |nth| if nth == copies.count { n } else { copies.shard(nth + 1) };
        (0..=copies.count).map(move |nth| start(nth)..end(nth)).filter(|stretch| !stretch.is_empty())
    }
}

/// Tells whether this meta holds the seal of the payload.
pub(crate) fn holds_seal(shape: &Shape, meta: &Meta) -> bool {
    shape.is_sealed() && meta.seal.is_some()
}

/// The annex that holds a copy of the meta frame.
pub(crate) fn annex_of(front: &[u8]) -> Vec<u8> {
    annex::write(annex::META_COPY, front)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy remains after the loss of any m shards together with the copies in front of them.
    #[test]
    fn copies_stand_in_front_of_more_shards_than_may_be_lost() {
        for (k, m) in [
            (1, 0),
            (1, 1),
            (1, 255),
            (2, 0),
            (2, 1),
            (10, 4),
            (33, 67),
            (86, 14),
            (200, 56),
            (255, 1),
            (256, 0),
        ] {
            let copies = Copies::framed(Code::new(k, m).unwrap(), 640);
            let mut shards: Vec<u64> = (1..=copies.count()).map(|nth| copies.shard(nth)).collect();
            assert_eq!((copies.count(), copies.total()), (m as u64 + 1, (m as u64 + 1) * 704));
            shards.dedup();
            assert_eq!(shards.len(), m + 1, "{k} + {m}");
            // The loss of the frame at the front may take the first records too, so the first copy is behind them.
            assert!((shards[0] > 0 || k == 1) && *shards.last().unwrap() == (k + m - 1) as u64);
            for index in 0..(k + m) as u64 {
                let before = shards.iter().filter(|shard| **shard <= index).count() as u64;
                assert_eq!(copies.shift(index), before * 704);
                assert_eq!(copies.is_before(index), shards.contains(&index));
            }
            let mut starts: Vec<u64> = [&[0], &shards[..]].concat();
            starts.dedup();
            let stretches: Vec<Range<u64>> = copies.stretches_of((k + m) as u64).collect();
            assert_eq!(stretches.iter().map(|stretch| stretch.start).collect::<Vec<_>>(), starts);
            assert_eq!(
                stretches.iter().map(|stretch| stretch.end - stretch.start).sum::<u64>(),
                (k + m) as u64
            );
        }
        assert_eq!((Copies::NONE.total(), Copies::NONE.shift(7), Copies::NONE.is_before(7)), (0, 0, false));
        assert!(Copies::NONE.stretches_of(9).eq(std::iter::once(0..9)));
    }
}
