//! The positions that are to be taken out of the recovery data.

use crate::Sidecar;
use crate::catalog::bits::Bits;
use crate::catalog::metadata::{LOST, NOTHING};
use crate::catalog::positions::Positions;
use crate::catalog::sources::Sources;

/// The positions that are to be taken out.
pub(super) struct Leaving {
    pub(super) positions: Bits,
    /// Bytes of files in them.
    pub(super) len: u64,
}

impl Leaving {
    /// Those that are not `covered` any more, and whose bytes are all there. `None` if there are none.
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

    pub(super) fn has(&self, position: u64) -> bool {
        self.positions.get(position)
    }
}
