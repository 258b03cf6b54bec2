//! Groups: positions and recovery shards that share a code, in sets (section 17.1).

use super::extent::Extent;
use crate::area::AreaCode;
use crate::block::Code;
use crate::error::FormatError;
use crate::format::{is_zero, u32_at, u64_at};

/// Bytes of the record of an extent or a group.
pub(super) const RECORD_LEN: usize = 32;
/// Neighbouring positions that stay in one set of a wide code, where the group does not say how many.
const UNSAID_RUN: u64 = 128;

/// The code of the sets of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCode {
    /// The code of section 2, with at most 256 shards.
    Small(Code),
    /// The code of section 22, with at most 65,536 shards.
    Wide(AreaCode),
}

impl GroupCode {
    /// Originals of a set.
    pub fn k(self) -> u64 {
        match self {
            GroupCode::Small(code) => code.k() as u64,
            GroupCode::Wide(code) => code.k() as u64,
        }
    }

    /// Recovery shards of a set.
    pub fn m(self) -> u64 {
        match self {
            GroupCode::Small(code) => code.m() as u64,
            GroupCode::Wide(code) => code.m() as u64,
        }
    }

    /// The number that the record has for the code.
    fn number(self) -> u16 {
        match self {
            GroupCode::Small(_) => 0,
            GroupCode::Wide(_) => 1,
        }
    }
}

/// A group: G sets of one code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidecarGroup {
    /// The code, with k and m.
    pub code: GroupCode,
    /// G.
    pub sets: u32,
    /// L: neighbouring positions of one set; 1 with a small code, and k if G is 1.
    pub run: u64,
    /// The extent of the group's recovery shards.
    pub extent: u32,
    /// The block of the extent at which they begin.
    pub first: u64,
}

impl SidecarGroup {
    /// A group whose recovery shards begin at block `first` of an extent. Several sets of a wide code get runs of `run`
    /// positions, which has to divide k.
    pub fn new(code: GroupCode, sets: u32, run: u64, (extent, first): (u32, u64)) -> SidecarGroup {
        let run = match code {
            GroupCode::Small(_) => 1,
            GroupCode::Wide(_) if sets == 1 => code.k(),
            GroupCode::Wide(_) => run,
        };
        SidecarGroup { code, sets, run, extent, first }
    }

    /// The number of positions: k·G.
    pub fn positions(&self) -> u64 {
        self.code.k() * u64::from(self.sets)
    }

    /// The number of recovery shards: m·G.
    pub fn recovery(&self) -> u64 {
        self.code.m() * u64::from(self.sets)
    }

    /// Tells whether the runs have to be recorded.
    pub(super) fn says_run(&self) -> bool {
        self.has_runs() && self.run != UNSAID_RUN
    }

    /// Tells whether the length of the runs is a choice.
    fn has_runs(&self) -> bool {
        matches!(self.code, GroupCode::Wide(_)) && self.sets > 1
    }

    /// The set of a position of the group, and its number among the originals of the set.
    pub fn original(&self, position: u64) -> (u64, u64) {
        let (run, sets) = (self.run, u64::from(self.sets));
        (position / run % sets, position / (run * sets) * run + position % run)
    }

    /// The position in the group of an original of a set.
    pub fn position(&self, set: u64, original: u64) -> u64 {
        let run = self.run;
        (original / run * u64::from(self.sets) + set) * run + original % run
    }

    /// The number in the group of recovery shard `shard` of a set.
    pub fn shard(&self, set: u64, shard: u64) -> u64 {
        shard * u64::from(self.sets) + set
    }

    /// The set of a recovery shard of the group.
    pub fn set_of_shard(&self, shard: u64) -> u64 {
        shard % u64::from(self.sets)
    }

    /// The most neighbouring positions, wherever they begin, of which no set has more than `count`.
    pub fn most_neighbours(&self, count: u64) -> u64 {
        let run = self.run;
        (count / run * run * u64::from(self.sets) + count % run).min(self.positions())
    }

    /// Appends the record, with L if `says_runs`.
    pub(super) fn put(&self, out: &mut Vec<u8>, says_runs: bool) {
        let run = if says_runs && self.has_runs() { self.run } else { 0 };
        out.extend_from_slice(&(self.code.k() as u16).to_le_bytes());
        out.extend_from_slice(&(self.code.m() as u16).to_le_bytes());
        out.extend_from_slice(&self.sets.to_le_bytes());
        out.extend_from_slice(&self.extent.to_le_bytes());
        out.extend_from_slice(&self.code.number().to_le_bytes());
        out.extend_from_slice(&(run as u16).to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
    }

    /// Parses a record. `has_wide` tells whether the code may be a wide one, `says_runs` whether L stands in it.
    pub(super) fn parse(
        bytes: &[u8],
        extents: &[Extent],
        (has_wide, says_runs): (bool, bool),
    ) -> Result<SidecarGroup, FormatError> {
        const WRONG: FormatError = FormatError::Catalog("a group is not possible");
        let (counts, number) = (u32_at(bytes, 0) as usize, u32_at(bytes, 12));
        let (number, said) = (number & 0xffff, u64::from(number >> 16));
        let (k, m) = (counts & 0xffff, counts >> 16);
        let (sets, extent, first) = (u32_at(bytes, 4), u32_at(bytes, 8), u64_at(bytes, 16));
        let code = match number {
            0 => Code::new(k, m).ok().map(GroupCode::Small),
            1 if has_wide => AreaCode::new(k, m).ok().map(GroupCode::Wide),
            _ => None,
        };
        let run = if says_runs { said } else { UNSAID_RUN };
        let group = SidecarGroup::new(code.ok_or(WRONG)?, sets, run, (extent, first));
        let blocks = extents.get(extent as usize).ok_or(WRONG)?.blocks;
        let is_possible = m > 0
            && sets > 0
            && (says_runs && group.has_runs() || said == 0)
            && group.run > 0
            && group.code.k().is_multiple_of(group.run)
            && first.checked_add(group.recovery()).is_some_and(|end| end <= blocks)
            && is_zero(&bytes[24..]);
        is_possible.then_some(group).ok_or(WRONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(code: GroupCode, sets: u32) -> SidecarGroup {
        SidecarGroup::new(code, sets, 128, (0, 0))
    }

    fn groups() -> [SidecarGroup; 6] {
        let small = GroupCode::Small(Code::new(5, 2).unwrap());
        let wide = |k| GroupCode::Wide(AreaCode::new(k, 100).unwrap());
        let run = |run| SidecarGroup::new(wide(96), 4, run, (0, 0));
        [group(small, 3), group(small, 1), group(wide(300), 1), group(wide(256), 3), run(32), run(1)]
    }

    /// Each position is one original of one set.
    #[test]
    fn positions_and_originals_are_the_same() {
        for group in groups() {
            let mut seen = vec![false; group.positions() as usize];
            for set in 0..u64::from(group.sets) {
                for original in 0..group.code.k() {
                    let position = group.position(set, original);
                    assert_eq!(group.original(position), (set, original));
                    assert!(!std::mem::replace(&mut seen[position as usize], true));
                }
            }
            assert!(seen.iter().all(|seen| *seen));
        }
    }

    /// No window of so many positions has more of one set, and some window of one more has.
    #[test]
    fn neighbours_are_spread_over_the_sets() {
        for group in groups() {
            for count in [0, 1, 2, 4, 5, 127, 128, 129, 200] {
                let count = count.min(group.code.k());
                let most_of_a_set = |window: u64| {
                    let starts = 0..=group.positions() - window;
                    let in_set = |start: u64, set| {
                        (start..start + window).filter(|position| group.original(*position).0 == set).count()
                    };
                    starts.map(|start| (0..u64::from(group.sets)).map(|set| in_set(start, set)).max()).max()
                };
                let most = group.most_neighbours(count);
                assert!(most_of_a_set(most).flatten().unwrap_or(0) as u64 <= count);
                if most < group.positions() {
                    assert!(most_of_a_set(most + 1).flatten().unwrap() as u64 > count, "{group:?} {count}");
                }
            }
        }
    }
}
