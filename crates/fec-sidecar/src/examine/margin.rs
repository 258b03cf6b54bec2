//! Counts the bytes that may still be lost: in one piece, anywhere, and at random.

use crate::catalog::bits::Bits;
use crate::catalog::positions::{Positions, Span};
use crate::examine::findings::{Margin, Spare};
use fec_core::format::sidecar::catalog::Catalog;
use fec_core::format::sidecar::group::SidecarGroup;
use std::collections::BTreeMap;

/// The margin, set by set, when these positions and recovery shards are lost. `lost` tells the lost bytes of a span in
/// a lost set, and those of them that nobody has changed.
pub(crate) fn margin(
    catalog: &Catalog,
    positions: &Positions,
    (erased, recovery_erased): (&Bits, Option<&Bits>),
    lost: &dyn Fn(&Span) -> (u64, u64),
) -> Margin {
    let block = u64::from(catalog.block);
    let mut margin = Margin::default();
    let mut one_piece = None;
    let mut odds = Odds::default();
    let covered = positions.covered(catalog.positions());
    let (mut first, mut first_recovery) = (0, 0);
    for group in &catalog.groups {
        let (sets, k, m) = (group.sets, group.code.k(), group.code.m());
        let used = used(group, (first, first_recovery), (erased, recovery_erased));
        let mut lives = vec![0u64; sets as usize];
        for index in 0..group.positions() {
            lives[group.original(index).0 as usize] += u64::from(covered.get(first + index));
        }
        let mut least = m;
        // A set whose files are all gone has nothing to lose.
        for (set, used) in used.iter().enumerate().filter(|(set, _)| lives[*set] > 0) {
            if *used > m {
                margin.lost_sets += 1;
                let of_set = (0..k).map(|original| first + group.position(set as u64, original));
                let of_set = of_set.filter(|position| erased.get(*position));
                for span in of_set.flat_map(|position| positions.within(position..position + 1)) {
                    let (lost, damaged) = lost(&span);
                    margin.lost_bytes += lost;
                    margin.damaged_bytes += damaged;
                    if damaged > 0 {
                        margin.damaged_entries.insert(span.entry);
                    }
                }
            }
            let spare = m.saturating_sub(*used);
            least = least.min(spare);
            odds.add(lives[set], spare);
            // Keeps the set that has used the greatest part of its shards.
            if margin.of == 0 || *used * margin.of > margin.used * m {
                (margin.of, margin.used) = (m, *used);
            }
        }
        // A group with as many spare recovery shards as originals may lose all its originals.
        if least < k && lives.iter().any(|lives| *lives > 0) {
            one_piece = Some(one_piece.unwrap_or(u64::MAX).min(group.most_neighbours(least) * block));
        }
        first += group.positions();
        first_recovery += group.recovery();
    }
    margin.spare = Spare {
        one_piece: one_piece.unwrap_or(first * block),
        anywhere: odds.anywhere() * block,
        scattered: odds.scattered() * block,
        of: odds.lives() * block,
    };
    if margin.of == 0 {
        margin.of = catalog.groups[0].code.m();
    }
    margin
}

/// The losses of each set of a group: positions and recovery shards. The firsts of both are given, over all groups.
fn used(
    group: &SidecarGroup,
    (first, first_recovery): (u64, u64),
    (erased, recovery_erased): (&Bits, Option<&Bits>),
) -> Vec<u64> {
    let mut used = vec![0u64; group.sets as usize];
    for index in 0..group.positions() {
        used[group.original(index).0 as usize] += u64::from(erased.get(first + index));
    }
    for index in 0..recovery_erased.map_or(0, |_| group.recovery()) {
        let is_erased = recovery_erased.is_some_and(|erased| erased.get(first_recovery + index));
        used[group.set_of_shard(index) as usize] += u64::from(is_erased);
    }
    used
}

/// The lost positions of sets that have lost more than they can mend.
pub(crate) fn beyond_repair(catalog: &Catalog, erased: &Bits, recovery_erased: &Bits) -> Bits {
    let mut beyond = Bits::new(catalog.positions());
    let (mut first, mut first_recovery) = (0, 0);
    for group in &catalog.groups {
        let used = used(group, (first, first_recovery), (erased, Some(recovery_erased)));
        let is_beyond = |index: u64| used[group.original(index).0 as usize] > group.code.m();
        let lost = (0..group.positions()).filter(|index| erased.get(first + index) && is_beyond(*index));
        lost.for_each(|index| beyond.set(first + index));
        first += group.positions();
        first_recovery += group.recovery();
    }
    beyond
}

/// Sets with anything to lose, by their living positions and spare recovery shards.
#[derive(Default)]
struct Odds(BTreeMap<(u64, u64), u64>);

impl Odds {
    fn add(&mut self, lives: u64, spare: u64) {
        if lives > 0 {
            *self.0.entry((lives, spare)).or_default() += 1;
        }
    }

    fn lives(&self) -> u64 {
        self.0.iter().map(|((lives, _), count)| lives * count).sum()
    }

    /// The most positions that may be lost, whichever they are.
    fn anywhere(&self) -> u64 {
        let least = self.0.keys().filter(|(lives, spare)| spare < lives).map(|(_, spare)| *spare).min();
        least.unwrap_or_else(|| self.lives())
    }

    /// The most positions that may be lost at random, so that all are mended in 999 of 1,000 cases (docs/FORMAT.md,
    /// section 17.8).
    fn scattered(&self) -> u64 {
        const RISK: f64 = 0.001;
        let (anywhere, lives) = (self.anywhere(), self.lives());
        let tails: Vec<(Tail, f64)> =
            self.0.iter().map(|(of, count)| (Tail::new(*of), *count as f64)).collect();
        let risk = |lost: u64| -> f64 {
            let share = lost as f64 / lives as f64;
            tails.iter().map(|(tail, count)| count * tail.of(share)).sum()
        };
        let can_lose = self.0.iter().filter(|((lives, spare), _)| spare < lives);
        if can_lose.map(|(_, count)| count).sum::<u64>() <= 1 {
            return anywhere;
        }
        let (mut good, mut bad) = (anywhere, lives);
        while good + 1 < bad {
            let middle = good.midpoint(bad);
            if risk(middle) <= RISK { good = middle } else { bad = middle }
        }
        good
    }
}

/// The chance that a set loses more than it has to spare.
struct Tail {
    lives: u64,
    spare: u64,
    /// The logarithm of the ways to choose one more than the spare from the living.
    ways: f64,
}

impl Tail {
    fn new((lives, spare): (u64, u64)) -> Tail {
        let lost = (spare + 1).min(lives);
        let ways = (0..lost).map(|nth| ((lives - nth) as f64 / (nth + 1) as f64).ln()).sum();
        Tail { lives, spare, ways }
    }

    /// The chance when each position is lost with this chance: the upper tail of the binomial distribution.
    fn of(&self, share: f64) -> f64 {
        let lost = self.spare + 1;
        if lost > self.lives || share <= 0.0 {
            return 0.0;
        }
        if share >= lost as f64 / self.lives as f64 {
            return 1.0;
        }
        let first =
            (self.ways + lost as f64 * share.ln() + (self.lives - lost) as f64 * (-share).ln_1p()).exp();
        // Each further term is less than a fixed part of the one before.
        let (mut term, mut sum) = (first, first);
        for nth in lost..self.lives {
            term *= (self.lives - nth) as f64 / (nth + 1) as f64 * share / (1.0 - share);
            if term < sum * 1e-9 {
                break;
            }
            sum += term;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn odds(sets: &[(u64, u64, u64)]) -> Odds {
        Odds(sets.iter().map(|(lives, spare, count)| ((*lives, *spare), *count)).collect())
    }

    /// The chances of small sets, counted out.
    #[test]
    fn tails_are_those_of_the_binomial_distribution() {
        for (lives, spare, share) in [(4u64, 1u64, 0.1f64), (10, 3, 0.2), (20, 0, 0.01), (5, 5, 0.5)] {
            let chance = |lost: u64| {
                let ways: f64 = (0..lost).map(|nth| (lives - nth) as f64 / (nth + 1) as f64).product();
                ways * share.powi(lost as i32) * (1.0 - share).powi((lives - lost) as i32)
            };
            let expected: f64 = (spare + 1..=lives).map(chance).sum();
            let found = Tail::new((lives, spare)).of(share);
            assert!((found - expected).abs() < 1e-7, "{lives} {spare} {share}: {found} {expected}");
        }
    }

    #[test]
    fn one_set_may_lose_any_of_its_positions() {
        assert_eq!(
            (odds(&[(48_829, 7813, 1)]).anywhere(), odds(&[(48_829, 7813, 1)]).scattered()),
            (7813, 7813)
        );
        // A set with as many spare shards as positions can lose everything.
        assert_eq!((odds(&[(10, 12, 1)]).anywhere(), odds(&[(10, 12, 1)]).scattered()), (10, 10));
        assert_eq!((odds(&[]).anywhere(), odds(&[]).scattered()), (0, 0));
    }

    /// Shares that sums of the hypergeometric distribution give.
    #[test]
    fn many_sets_lose_less_at_random_than_in_the_worst_case_and_more_than_the_least() {
        for (lives, spare, count, least, most) in
            [(48_829, 7994, 5, 0.157, 0.159), (49_825, 8157, 49, 0.156, 0.158), (220, 36, 1184, 0.070, 0.072)]
        {
            let odds = odds(&[(lives, spare, count)]);
            let share = odds.scattered() as f64 / (lives * count) as f64;
            assert!((least..most).contains(&share), "{lives} {spare} {count}: {share}");
            assert_eq!(odds.anywhere(), spare);
        }
    }
}
