//! Copies of the meta between the records of a sealed container (docs/FORMAT.md, section 9): what opens the payload is lost
//! no sooner than the payload.

use fec_core::block::Code;
use fec_core::format::annex;
use fec_core::format::meta::Meta;
use fec_core::params::Shape;
use std::ops::Range;

/// Where the copies stand: one in front of the first record of each of m + 1 shards of group 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// Shards.
    n: u64,
    count: u64,
    /// Bytes of one.
    len: u64,
}

impl Copies {
    /// No copies.
    pub(crate) const NONE: Copies = Copies { n: 1, count: 0, len: 0 };

    /// The copies that a writer puts into a container of this shape, with a meta frame of `front` bytes.
    pub(crate) fn of(shape: &Shape, meta: &[u8], front: usize) -> Copies {
        match Meta::parse(meta) {
            Ok(meta) if holds_seal(shape, &meta) => Copies::framed(shape.code, front as u64),
            _ => Copies::NONE,
        }
    }

    /// Copies of a frame of so many bytes.
    pub(crate) fn framed(code: Code, front: u64) -> Copies {
        let len = front + 2 * annex::HEADER_LEN as u64;
        Copies { n: code.n() as u64, count: code.m() as u64 + 1, len }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of one.
    pub(crate) fn each_len(&self) -> u64 {
        self.len
    }

    /// Bytes of all.
    pub(crate) fn total(&self) -> u64 {
        self.count * self.len
    }

    /// The shard whose first record copy number `nth`, from 1 on, stands in front of.
    pub(crate) fn shard(&self, nth: u64) -> u64 {
        (nth * self.n).div_ceil(self.count) - 1
    }

    /// Bytes of the copies that stand in front of the records of a shard.
    pub(crate) fn shift(&self, index: u64) -> u64 {
        (index + 1) * self.count / self.n * self.len
    }

    /// Whether a copy stands in front of the first record of a shard.
    pub(crate) fn is_before(&self, index: u64) -> bool {
        self.shift(index) > index.checked_sub(1).map_or(0, |before| self.shift(before))
    }

    /// The shards between two copies, each time, of `n` shards in all.
    pub(crate) fn stretches_of(&self, n: u64) -> impl Iterator<Item = Range<u64>> + use<> {
        let copies = *self;
        let start = move |nth| if nth == 0 { 0 } else { copies.shard(nth) };
        let end = move |nth| if nth == copies.count { n } else { copies.shard(nth + 1) };
        (0..=copies.count).map(move |nth| start(nth)..end(nth)).filter(|stretch| !stretch.is_empty())
    }
}

/// Whether what opens the payload stands in this meta.
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

    /// Whatever m shards are lost with what stands in front of them, a copy is left between the others.
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
            // The front may be lost with whatever stands near it.
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
