//! The amount of recovery data, and the code that it takes.

use fec_core::area::AreaCode;
use fec_core::block::Code;
use fec_core::format::sidecar::group::GroupCode;

/// Originals of each of several sets of a wide code are a multiple of this number, and so of the runs.
const MULTIPLE: u64 = 128;

/// Recovery data for each original byte, in parts of 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redundancy(u32);

impl Redundancy {
    /// The default: 16 %.
    pub const DEFAULT: Redundancy = Redundancy(1600);

    /// Recovery data in parts of 10,000, from 1 to 1,270,000, which is 127 times the originals; `None` beyond.
    pub fn new(parts: u32) -> Option<Redundancy> {
        (1..=1_270_000).contains(&parts).then_some(Redundancy(parts))
    }

    /// The redundancy of a sidecar with sets of this code: the default if it gives this code, else the ratio of
    /// recovery shards to originals.
    pub(crate) fn of(code: GroupCode) -> Redundancy {
        let (k, m) = (code.k(), code.m());
        if Redundancy::DEFAULT.recovery(k) == m {
            return Redundancy::DEFAULT;
        }
        Redundancy(((m * 10_000 / k) as u32).clamp(1, 1_270_000))
    }

    /// The redundancy of an update with `new` positions among `all` living ones. It gives as many recovery shards as
    /// the whole tree would get, but at most one per new original, so that an added file can be lost whole as an old
    /// one can; and at most `room`, unless fewer were asked for.
    pub(crate) fn of_few(self, new: u64, all: u64, room: u64) -> Redundancy {
        let new = u128::from(new.max(1));
        let as_all = u128::from(self.0) * u128::from(all) / new;
        let in_room = u128::from(room) * 10_000 / new;
        Redundancy(self.0.max(as_all.min(10_000).min(in_room) as u32))
    }

    /// The redundancy of `new` positions that files have grown by. Damage that hits this share of all blocks at random
    /// hits few blocks unevenly: they get four standard deviations more, up to 16 shards, but at most one recovery
    /// shard per original, unless more were asked for.
    pub(crate) fn of_grown(self, new: u64) -> Redundancy {
        const MOST_MORE: u64 = 16;
        let new = new.max(1);
        let share = (new * u64::from(self.0)).div_ceil(10_000);
        let more = (4 * share.isqrt() + 2).min(MOST_MORE);
        let parts = (share + more).min(new) * 10_000 / new;
        Redundancy(self.0.max(parts as u32))
    }

    /// Recovery shards for k originals: ⌈k·r⌉.
    fn recovery(self, k: u64) -> u64 {
        (k * u64::from(self.0)).div_ceil(10_000)
    }

    /// The most originals of a set with at most `m` recovery shards and `n` shards.
    fn most(self, m: u64, n: u64) -> u64 {
        let by_recovery = m * 10_000 / u64::from(self.0);
        // Without the ceiling of the recovery shards the second bound may be one too many.
        let by_shards = n * 10_000 / (10_000 + u64::from(self.0));
        let most = by_recovery.min(by_shards);
        if most + self.recovery(most) > n { most - 1 } else { most }
    }

    /// The code, and the number of its sets, for this number of positions of `block` bytes (docs/FORMAT.md, section
    /// 17.8).
    pub(crate) fn shape(self, positions: u64, block: u64) -> (GroupCode, u64) {
        let small = self.most(255, 256).max(1);
        let most = self.most(most_recovery(block), 1 << 16);
        let most_of_several = most / MULTIPLE * MULTIPLE;
        let (sets, k) = match positions {
            _ if positions <= small => (1, positions.max(1)),
            _ if positions <= most => (1, positions),
            _ if most_of_several > small => {
                let sets = positions.div_ceil(most_of_several);
                (sets, positions.div_ceil(sets).next_multiple_of(MULTIPLE))
            }
            _ => {
                let sets = positions.div_ceil(small);
                (sets, positions.div_ceil(sets))
            }
        };
        let m = self.recovery(k);
        let code = match k <= small {
            true => GroupCode::Small(Code::new(k as usize, m as usize).expect("k + m is at most 256")),
            false => GroupCode::Wide(AreaCode::new(k as usize, m as usize).expect("it is at most 65,536")),
        };
        (code, sets)
    }
}

/// The most recovery shards of a set: they fit into a third of the memory that is allowed by default.
fn most_recovery(block: u64) -> u64 {
    const MOST: u64 = 8192;
    const MEMORY: u64 = 32 << 20;
    (MEMORY / block).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redundancy_is_at_least_what_was_asked_for() {
        for (parts, positions, block, k, m, sets) in [
            (1600, 0, 4096, 1, 1, 1),
            (1600, 3, 4096, 3, 1, 1),
            (1600, 220, 1024, 220, 36, 1),
            (1600, 221, 1024, 221, 36, 1),
            (1600, 51_200, 4096, 51_200, 8192, 1),
            (1600, 51_201, 4096, 25_728, 4117, 2),
            (1600, 2_621_440, 4096, 50_432, 8070, 52),
            (1600, 1 << 20, 65_536, 3200, 512, 328),
            (500, 1000, 4096, 1000, 50, 1),
            (1, 1 << 20, 4096, 61_696, 7, 17),
            (10_000, 256, 4096, 256, 256, 1),
            (20_000, 85, 4096, 85, 170, 1),
            (1_270_000, 1000, 4096, 2, 254, 500),
            (1_270_000, 1000, 65_536, 2, 254, 500),
        ] {
            let (code, found) = Redundancy(parts).shape(positions, block);
            assert_eq!((code.k(), code.m(), found), (k, m, sets), "{parts} of {positions}");
        }
    }

    #[test]
    fn what_files_have_grown_by_can_lose_as_much_as_the_rest() {
        for (parts, new, m) in [
            (1600, 0, 1),
            (1600, 1, 1),
            (1600, 5, 5),
            (1600, 50, 8 + 4 * 2 + 2),
            (1600, 5000, 800 + 16),
            (10_000, 50, 50),
            (20_000, 50, 100),
        ] {
            let (code, _) = Redundancy(parts).of_grown(new).shape(new, 4096);
            assert_eq!(code.m(), m, "{parts} of {new}");
        }
    }
}
