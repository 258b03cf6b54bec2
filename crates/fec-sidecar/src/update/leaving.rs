//! The positions that are to be taken out of the recovery data.

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::metadata::{LOST, NOTHING};
use crate::catalog::positions::Positions;
use crate::catalog::sources::Sources;
use std::ops::Range;

/// The positions that are to be taken out.
pub(super) struct Leaving {
    pub(super) positions: Bits,
    /// Bytes of files in them.
    pub(super) len: u64,
}

impl Leaving {
    /// The positions that are not `covered` any more, and whose bytes are all there. `None` if there are none.
    pub(super) fn of(old: &Sidecar, sources: &Sources, covered: &Bits) -> Option<Leaving> {
        let all = Positions::of(&old.catalog);
        let there = all.only(|span| sources.have(span));
        let mut leaving = Leaving { positions: Bits::new(old.catalog.positions()), len: 0 };
        for position in 0..old.catalog.positions() {
            let digest = old.digest_of(position);
            if covered.get(position) || digest == NOTHING || digest == LOST {
                continue;
            }
            let at = position..position + 1;
            let len = all.len(at.clone());
            if len > 0 && there.len(at) == len {
                leaving.positions.set(position);
                leaving.len += len;
            }
        }
        (leaving.len > 0).then_some(leaving)
    }

    /// The part of them in the positions `within` that is not `covered`: a file that is read again may have another
    /// fate.
    pub(super) fn part(&self, old: &Sidecar, covered: &Bits, within: &[Range<u64>]) -> Option<Leaving> {
        let all = Positions::of(&old.catalog);
        let mut part = Leaving { positions: Bits::new(old.catalog.positions()), len: 0 };
        let is_left = |position: &u64| self.has(*position) && !covered.get(*position);
        for position in within.iter().cloned().flatten().filter(is_left) {
            part.positions.set(position);
            part.len += all.len(position..position + 1);
        }
        (part.len > 0).then_some(part)
    }

    pub(super) fn has(&self, position: u64) -> bool {
        self.positions.get(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protect::{Protect, protect};
    use fec_base::context::Context;
    use fec_base::io::output::Policy;
    use std::fs;

    /// A file that fails once and is read later still has its positions.
    #[test]
    fn covered_positions_and_those_of_other_groups_do_not_leave() {
        let home = tempfile::tempdir().unwrap();
        let (paths, output) = ([home.path().join("d")], home.path().join("d.fecp"));
        fs::create_dir(&paths[0]).unwrap();
        fs::write(
            paths[0].join("a"),
            (0..20_480u32).map(|at| at as u8 ^ (at >> 7) as u8).collect::<Vec<_>>(),
        )
        .unwrap();
        let job = Protect { policy: Policy::new().with_sync(false), ..Protect::new(&paths, &output) };
        let context = Context::default();
        let _ = protect(&job, &context).unwrap();
        let old = Sidecar::open(&output, None, &context.settings).unwrap();
        let bits = |positions: &[u64]| {
            let mut bits = Bits::new(old.catalog.positions());
            positions.iter().for_each(|position| bits.set(*position));
            bits
        };
        let leaving = Leaving { positions: bits(&[1, 2, 3, 7]), len: 4096 };
        let part = leaving.part(&old, &bits(&[2, 9]), &[0..2, 2..7]).expect("two are left");
        assert_eq!((part.positions.ones().collect::<Vec<_>>(), part.len), (vec![1, 3], 2048));
        assert!(leaving.part(&old, &bits(&[1, 2, 3]), &[0..2, 2..7]).is_none());
    }
}
