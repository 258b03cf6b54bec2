//! The rows of a decoder's buffer, and which shard of a set has which.

use crate::block::ShardBuf;
use std::collections::VecDeque;

/// Rows for the shards of one set at a time. The first `own` shards have a row each; the others share the rest.
#[derive(Debug)]
pub(super) struct Places {
    rows: ShardBuf,
    own: usize,
    /// The row of each shard, if it has one.
    places: Vec<Option<usize>>,
    /// Rows that no shard has.
    spare: Vec<usize>,
    /// Shards that have a shared row and are not known to be intact; the first is the one that was read into first.
    waiting: VecDeque<u32>,
}

impl Places {
    /// Rows for sets of `n` shards of up to `shard_len` bytes: one for each of the first `own` shards, and `shared`
    /// for the others together.
    pub(super) fn new(n: usize, own: usize, shared: usize, shard_len: usize) -> Places {
        Places {
            rows: ShardBuf::new(own + shared, shard_len),
            own,
            places: vec![None; n],
            spare: Vec::with_capacity(shared),
            waiting: VecDeque::with_capacity(shared),
        }
    }

    /// Forgets the set before; shards have this length from now on.
    pub(super) fn begin(&mut self, shard_len: usize) {
        self.rows.set_row_len(shard_len);
        let own = self.own;
        (0..).zip(&mut self.places).for_each(|(i, place)| *place = Some(i).filter(|i| *i < own));
        self.spare.clear();
        self.spare.extend(own..self.rows.rows());
        self.waiting.clear();
    }

    /// A row to read shard `index` into. Another shard may get it until [`keep`](Places::keep) is called.
    ///
    /// # Panics
    /// If all shared rows are kept.
    pub(super) fn slot(&mut self, index: u32) -> &mut [u8] {
        let i = index as usize;
        if i >= self.own {
            if self.places[i].is_some() {
                self.keep(index);
            }
            let place =
                self.places[i].or_else(|| self.spare.pop()).unwrap_or_else(|| self.take_from_oldest());
            self.places[i] = Some(place);
            self.waiting.push_back(index);
        }
        self.rows.row_mut(self.places[i].expect("it has a row of its own or just got one"))
    }

    fn take_from_oldest(&mut self) -> usize {
        let oldest = self.waiting.pop_front().expect("fewer than k recovery shards are intact");
        self.places[oldest as usize].take().expect("a shard that waits has a row")
    }

    /// Shard `index`, which has a row, is intact: no other shard takes that row.
    pub(super) fn keep(&mut self, index: u32) {
        if let Some(at) = self.waiting.iter().position(|waiting| *waiting == index) {
            self.waiting.remove(at);
        }
    }

    /// The row of shard `index`, if it has one.
    pub(super) fn row(&self, index: u32) -> Option<&[u8]> {
        self.places[index as usize].map(|place| self.rows.row(place))
    }

    /// Bytes of each row.
    pub(super) fn row_len(&self) -> usize {
        self.rows.row_len()
    }

    /// A function that gives each shard's row once, if it has one.
    pub(super) fn take_rows<'a>(&'a mut self) -> impl FnMut(usize) -> Option<&'a mut [u8]> {
        let places = &self.places;
        let mut rows: Vec<Option<&mut [u8]>> = self.rows.iter_mut().map(Some).collect();
        move |i| places[i].and_then(|place| rows[place].take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 + 6 shards with three shared rows: a batch that fits beside the kept rows takes no row from itself, whatever
    /// was read before and in whatever order.
    #[test]
    fn a_batch_takes_rows_only_from_what_was_read_before_it() {
        let mut places = Places::new(9, 3, 3, 64);
        places.begin(64);
        for index in [8, 7, 6] {
            places.slot(index).fill(index as u8);
        }
        places.keep(7);
        // Read again, or for the first time: two rows are left.
        for index in [6, 3] {
            places.slot(index).fill(index as u8);
        }
        let rows = |places: &Places| (0..9).map(|i| places.row(i).map(|row| row[0])).collect::<Vec<_>>();
        assert_eq!(rows(&places)[3..], [Some(3), None, None, Some(6), Some(7), None]);
        for index in [5, 4] {
            places.slot(index).fill(index as u8);
        }
        assert_eq!(rows(&places)[3..], [None, Some(4), Some(5), None, Some(7), None]);
        places.begin(64);
        assert!(rows(&places)[3..].iter().all(Option::is_none), "a new set has read nothing");
    }
}
