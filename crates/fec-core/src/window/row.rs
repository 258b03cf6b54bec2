//! The way in which a repair row is made of source packets (format specification, sections 14.2 and 14.3), from the
//! numbers in its packet alone.
//!
//! A *column* is a source packet, by its number. A row is a sum of *lane sums* and of *taps*. Each of these terms has
//! a *class* k, and is multiplied by the k-th power of the row's *factor*.
//!
//! - **Lane sums.** Each column belongs to one lane, and a lane keeps three sums of its columns, each with other
//!   multipliers. A row takes one or more of the sums of each lane, so that it covers the whole window with a few
//!   additions. Rows made of 48 sums alone could repair no more than 48 losses, though.
//! - **Taps** add single columns once more, so that rows differ in more than their sums. Four columns of a block that
//!   lie a quarter of it apart are a *group*. Once a group is complete, a tap at one of its columns is the sum of the
//!   other three: three columns for one addition, because the sender replaces the symbols of a complete group by
//!   these sums. Elsewhere a tap is the column itself.
//! - **Ages.** With *bounded*, the ages of taps are spread evenly over a logarithm, because most losses that rows
//!   repair are recent: one tap in each *stratum* of ages. Every column gets its share: four columns in a row are a
//!   *four*, successive rows take different fours of a stratum, and neighbouring strata take different columns of their
//!   fours.
//!
//! This module knows neither packets nor bytes: it gives coefficients, which encoder and decoder apply.

use crate::format::packet::{Parameters, Profile};
use crate::gf256::{EXP, mul, products_of};
use crate::random::{GOLDEN, SplitMix64, mix};

/// Sums that a lane keeps.
pub(super) const SUMS: usize = 3;
/// Classes of a row's terms. The class is the power of the row's factor that a term is multiplied by.
pub(super) const CLASSES: usize = 4;
/// Most lanes of any profile.
const MAX_LANES: usize = 16;
/// Strata of ages of a bounded row over a window that is not small.
const STRATA: usize = 20;
/// Number of strata, from the youngest on, that are halved: each half has a tap of its own.
const HALVED: usize = 2;
/// The age at which the density of taps begins to fall.
const KNEE: u32 = 1024;
/// Columns of a four.
const DEAL: u32 = 4;
/// Columns of a group.
pub(super) const GROUP: usize = 4;

/// Number of lanes of a profile's rows.
pub(super) fn lanes(profile: Profile) -> usize {
    match profile {
        Profile::Bounded => 16,
        Profile::Classic | Profile::ClassicBlocks | Profile::Blocks => 8,
    }
}

/// The first column of a sliding window that ends before column `end`: a multiple of the block, and not more than the
/// window away.
pub(super) fn window_start(parameters: &Parameters, end: u64) -> u64 {
    let block = u64::from(parameters.block);
    end.saturating_sub(u64::from(parameters.window)).div_ceil(block) * block
}

/// The lane of a column, out of `lanes`, a power of two.
pub(super) fn lane_of(lanes: usize, column: u64) -> usize {
    (column & (lanes as u64 - 1)) as usize
}

/// The multipliers of a column in the three sums of its lane. None is 0.
pub(super) fn column_values(lanes: usize, column: u64) -> [u8; SUMS] {
    let index = column >> lanes.ilog2();
    let power = |exponent: u64| EXP[(exponent % 255) as usize];
    [1, power(index), power(2 * index + index / 255)]
}

/// The terms of a row, a list for each class.
pub(super) type Sources<'a> = [Vec<&'a [u8]>; CLASSES];

/// The same lists, emptied for other sources: their memory is kept.
pub(super) fn emptied<'a>(sources: Sources<'_>) -> Sources<'a> {
    sources.map(|mut list| {
        list.clear();
        // Collecting in place keeps the allocation.
        list.into_iter().map(|_| -> &'a [u8] { &[] }).collect()
    })
}

/// The group of a column in blocks of `block` columns, in ascending order: the columns that lie a quarter of the block
/// apart. `None` for the last columns of a block that is no multiple of four.
fn group_of(block: u16, column: u64) -> Option<[u64; GROUP]> {
    group_at(block, column, column % u64::from(block))
}

/// As [`group_of`], for a column whose place in its block is known.
pub(super) fn group_at(block: u16, column: u64, place: u64) -> Option<[u64; GROUP]> {
    let step = u64::from(block / GROUP as u16);
    (place < GROUP as u64 * step)
        .then(|| std::array::from_fn(|i| column - place + place % step + i as u64 * step))
}

/// The coefficients of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairRow {
    number: u64,
    /// The first column covered.
    pub(super) first: u64,
    /// Number of columns covered.
    pub(super) count: u32,
    /// The factor, never 0.
    pub(super) factor: u8,
    lanes: usize,
    /// Packets of a block, if taps are sums of groups.
    block: Option<u16>,
    /// The sums of a lane in each class, for each lane: bit p stands for sum p.
    masks: [[u8; CLASSES]; MAX_LANES],
    strata: Strata,
    /// Column and class of each tap. A column may occur several times. Its coefficients add up as in the field: twice
    /// in one class is nothing.
    pub(super) taps: Vec<(u64, u8)>,
}

impl RepairRow {
    /// Makes this the row with these numbers of a stream, in place of its old coefficients.
    ///
    /// The rows of the stream's profile must have lanes.
    pub(super) fn generate(&mut self, parameters: &Parameters, number: u64, first: u64, count: u32) {
        let profile = parameters.profile;
        let mut random = SplitMix64::new(number);
        self.number = number;
        self.first = first;
        self.count = count;
        self.lanes = lanes(profile);
        self.block = (profile == Profile::Bounded).then_some(parameters.block);
        self.taps.clear();
        self.factor = 2 + random.below(254) as u8;
        match profile {
            Profile::Bounded => self.bounded(number, &mut random),
            _ => self.classic(&mut random),
        }
    }

    /// The number of the row.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Tells whether this is the row with these numbers.
    pub(super) fn is(&self, number: u64, first: u64, count: u32) -> bool {
        (self.number, self.first, self.count) == (number, first, count)
    }

    /// A sum of each lane, and taps whose ages are spread evenly over the logarithm.
    fn bounded(&mut self, number: u64, random: &mut SplitMix64) {
        let mut taken = [0; MAX_LANES];
        let lanes = self.masks.as_chunks_mut::<8>().0.iter_mut().zip(taken.as_chunks_mut::<8>().0);
        for (masks, taken) in lanes {
            let bits = random.next();
            for (lane, (masks, taken)) in masks.iter_mut().zip(taken).enumerate() {
                let choice = bits >> (8 * lane) & 255;
                *taken = choice & 3;
                *masks = [0; CLASSES];
                masks[*taken as usize] = 1 << ((choice >> 2) % 3);
            }
        }
        let classes = [random.next(), random.next()];
        let end = self.first + u64::from(self.count);
        self.strata.fit(self.count);
        let mut near = 0;
        for (tap, stratum) in self.strata.list[..self.strata.len].iter_mut().enumerate() {
            let far = stratum.end.min(self.count);
            let (first, width) = (end - u64::from(far), far - near);
            let last = tap + 1 == self.strata.len;
            let column = match stratum.run {
                Some(log) if !last => {
                    // The newest run of fours that lies in the stratum and begins at a multiple of its own length.
                    let run = ((end - u64::from(near)) >> (log + DEAL.ilog2())) - 1;
                    let of = run << 8 | tap as u64;
                    if stratum.key_of != of {
                        (stratum.key_of, stratum.key) = (of, mix(of));
                    }
                    let key = stratum.key;
                    let turn = number.wrapping_mul(key | 1).wrapping_add(key >> 32);
                    let four = run << log | turn & ((1 << log) - 1);
                    // While the window grows, a stratum stays in place: each round over the fours takes another of
                    // their columns. When strata move with the packets, the next stratum takes it.
                    let round = if self.first == 0 { number >> log } else { 0 };
                    let shift = (four.wrapping_mul(GOLDEN) >> (u64::BITS - DEAL.ilog2())) + round;
                    four * u64::from(DEAL) + (tap as u64 + shift) % u64::from(DEAL)
                }
                _ => first + u64::from(random.below(width)),
            };
            near = far;
            // The class differs from the lane's, so that the two do not cancel.
            let other = classes[tap / 16] >> (4 * (tap % 16)) & 15;
            let class = (taken[lane_of(MAX_LANES, column)] + 1 + other % 3) % CLASSES as u64;
            self.taps.push((column, class as u8));
        }
    }

    /// Any of the six sums of each lane, at least one; and pairs of taps anywhere in the window.
    fn classic(&mut self, random: &mut SplitMix64) {
        let bits = random.next();
        for (lane, masks) in self.masks[..8].iter_mut().enumerate() {
            let choice = (bits >> (6 * lane) & 63) as u8;
            *masks = if choice == 0 { [1 << 2, 0, 0, 0] } else { [choice & 7, choice >> 3, 0, 0] };
        }
        for _ in 0..self.count.div_ceil(16) {
            for class in [0, 1] {
                self.taps.push((self.first + u64::from(random.below(self.count)), class));
            }
        }
    }

    /// The sums of lane `lane` in each class: bit p stands for sum p.
    pub(super) fn masks(&self, lane: usize) -> [u8; CLASSES] {
        self.masks[lane]
    }

    /// The coefficient of a column, without taps.
    pub(super) fn dense(&self, column: u64) -> u8 {
        let weights = self.weights(lane_of(self.lanes, column));
        weights
            .iter()
            .zip(column_values(self.lanes, column))
            .fold(0, |sum, (&weight, value)| sum ^ mul(weight, value))
    }

    /// The factors of a lane's sums.
    fn weights(&self, lane: usize) -> [u8; SUMS] {
        let masks = &self.masks[lane];
        std::array::from_fn(|p| {
            masks.iter().rev().fold(0, |value, mask| mul(value, self.factor) ^ (mask >> p & 1))
        })
    }

    /// The coefficients of columns that the caller asks for in ascending order, each with its [`column_values`].
    /// `open_taps` are the taps among them; they are sorted here.
    pub(super) fn coefficients<'a>(
        &'a self,
        open_taps: &'a mut [(u64, u8)],
    ) -> impl FnMut(u64, [u8; SUMS]) -> u8 + 'a {
        open_taps.sort_unstable_by_key(|&(column, _)| column);
        let mut taps = open_taps.iter().peekable();
        let columns = self.first..self.first + u64::from(self.count);
        // The products of a lane's factors, once a column needs them.
        let mut products = [None; MAX_LANES];
        move |column, values| {
            if !columns.contains(&column) {
                return 0;
            }
            let lane = lane_of(self.lanes, column);
            let products = products[lane].get_or_insert_with(|| self.weights(lane).map(products_of));
            let mut coefficient = products
                .iter()
                .zip(values)
                .fold(0, |sum, (products, value)| sum ^ products[usize::from(value)]);
            while let Some(&(at, class)) = taps.next_if(|&&(at, _)| at <= column) {
                if at == column {
                    coefficient ^= self.tap(class);
                }
            }
            coefficient
        }
    }

    /// The columns whose sums are taps, with the taps' classes.
    pub(super) fn tapped(&self) -> impl Iterator<Item = (u64, u8)> {
        let end = self.first + u64::from(self.count);
        self.taps.iter().flat_map(move |&(column, class)| {
            let group = self.block.and_then(|block| group_of(block, column));
            let group = group.filter(|group| group[GROUP - 1] < end);
            let alone = group.is_none().then_some(column);
            let others = group.into_iter().flatten().filter(move |&other| other != column);
            others.chain(alone).map(move |column| (column, class))
        })
    }

    /// The coefficient that a tap of a class adds to its columns.
    fn tap(&self, class: u8) -> u8 {
        (0..class).fold(1, |value, _| mul(value, self.factor))
    }
}

/// The strata of ages that taps are drawn from. They serve windows of nearly the same length.
#[derive(Clone, Debug, Default)]
struct Strata {
    /// The window length that the strata were made for, rounded up.
    rounded: u32,
    len: usize,
    list: [Stratum; STRATA + HALVED],
}

/// A stratum. It begins where the one before ends.
#[derive(Clone, Copy, Debug, Default)]
struct Stratum {
    /// The age at which it ends.
    end: u32,
    /// The logarithm of the number of fours in a run, if the stratum is wide enough for one.
    run: Option<u32>,
    /// The key of the last row's run, and the value it was made from: the next row mostly has the same run.
    key_of: u64,
    key: u64,
}

impl Strata {
    /// Fits the strata to a window of `count` columns. The last one may end beyond it.
    fn fit(&mut self, count: u32) {
        let rounded = count.next_multiple_of(1 << count.ilog2().saturating_sub(5));
        if rounded == self.rounded {
            return;
        }
        self.rounded = rounded;
        let degree = (STRATA as u32).min(rounded / 2);
        let low = pseudo_log(KNEE);
        let span = pseudo_log(rounded + KNEE) - low;
        let age = |stratum: u32| pseudo_exp(low + span * stratum / degree) - KNEE;
        let halves = (0..degree.min(HALVED as u32))
            .flat_map(|stratum| [(age(stratum) + age(stratum + 1)) / 2, age(stratum + 1)]);
        let ends = halves.chain((HALVED as u32..degree).map(|stratum| age(stratum + 1)));
        let mut near = 0;
        self.len = 0;
        for (stratum, end) in self.list.iter_mut().zip(ends) {
            *stratum =
                Stratum { end, run: ((end - near) / (2 * DEAL)).checked_ilog2(), key_of: u64::MAX, key: 0 };
            near = end;
            self.len += 1;
        }
    }
}

/// A logarithm to base 2 with 16 bits of fraction, exact at powers of two and straight between them. `of` is
/// not 0 and at most 2^17.
fn pseudo_log(of: u32) -> u32 {
    let whole = of.ilog2();
    let fraction = (u64::from(of) << 16 >> whole) as u32 - (1 << 16);
    whole << 16 | fraction
}

/// The inverse of [`pseudo_log`], rounded down.
fn pseudo_exp(of: u32) -> u32 {
    ((1 << 16 | u64::from(of & 0xFFFF)) << (of >> 16) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_power_are_inverse() {
        for n in 1..=65_600 {
            assert_eq!(pseudo_exp(pseudo_log(n)), n);
            assert!(pseudo_exp(pseudo_log(n + 1) - 1) <= n, "{n}");
        }
    }

    #[test]
    fn no_stratum_is_empty() {
        let mut strata = Strata::default();
        for count in 1..=65_536 {
            strata.fit(count);
            let ends: Vec<u32> = strata.list[..strata.len].iter().map(|stratum| stratum.end).collect();
            assert!(ends.is_sorted_by(|a, b| a < b), "{count}");
            assert!(
                ends.iter().rev().skip(1).all(|&end| end < count)
                    && ends.last().is_none_or(|&end| end >= count)
            );
            assert_eq!(
                ends.len(),
                if count < 2 { 0 } else { (count as usize / 2).min(20) + (count as usize / 2).min(2) }
            );
        }
    }

    #[test]
    fn emptied_lists_keep_their_memory() {
        let mut sources: Sources<'_> = std::array::from_fn(|_| Vec::with_capacity(50));
        sources[1].push(b"some");
        let sources = emptied(sources);
        assert!(sources.iter().all(|list| list.is_empty() && list.capacity() >= 50));
    }

    fn parameters(profile: Profile, block: u16) -> Parameters {
        Parameters { profile, stream_id: 1, window: 65_536, payload: 16, block }
    }

    #[test]
    fn rows_stay_in_their_window() {
        let mut row = RepairRow::default();
        for (profile, block) in [(Profile::Bounded, 240), (Profile::Bounded, 7), (Profile::Classic, 240)] {
            for count in (1..300).chain([1000, 6000, 65_536]) {
                for number in 0..20 {
                    row.generate(&parameters(profile, block), number, 7 * 240, count);
                    let columns = row.first..row.first + u64::from(count);
                    let all = row.tapped().chain(row.taps.iter().copied());
                    assert!(all.map(|(column, _)| column).all(|column| columns.contains(&column)));
                    assert!(columns.clone().all(|c| row.dense(c) != 0) || profile != Profile::Bounded);
                }
            }
        }
    }

    /// Every column is in one group, whose columns all give the same group, or is one of the last of its block.
    #[test]
    fn groups_divide_a_block() {
        for block in 1..=300u16 {
            let alone = (0..u64::from(block))
                .filter(|&place| group_of(block, 5 * u64::from(block) + place).is_none());
            assert!(alone.eq(u64::from(block / 4 * 4)..u64::from(block)), "{block}");
            for column in 5 * u64::from(block)..6 * u64::from(block) {
                let Some(group) = group_of(block, column) else { continue };
                assert!(group.contains(&column) && group.is_sorted_by(|a, b| a < b));
                assert!(group.iter().all(|&other| group_of(block, other) == Some(group)));
                assert!(group.iter().all(|&other| other / u64::from(block) == 5));
            }
        }
    }
}
