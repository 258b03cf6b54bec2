//! The blocks that are lost and to be fetched, and the bytes in them that are lacking.

use crate::catalog::bits::Bits;
use crate::catalog::moved::{MovedSpan, STASH};
use crate::catalog::positions::Span;
use crate::examine::{EntryReport, beyond_repair};
use crate::repair::task::{Damage, Task};

/// The lost positions whose bytes are to be fetched: those of entries that a repair writes, in sets that have lost more
/// than they can mend.
pub(super) fn wanted(task: &Task<'_>, damage: &Damage) -> Bits {
    let Task { sidecar, how, .. } = *task;
    let found = &damage.found;
    let reverts = how.revert || how.out.is_some();
    let is_written = |report: &EntryReport| !report.is_denied() && (reverts || report.state.is_damage());
    let is_wanted = |span: Span| {
        let is_there = || found.moved.covers(span.at..span.end());
        found.report(span.entry as usize).is_some_and(|report| is_written(report) && !report.is_right)
            && !is_there()
    };
    let mut wanted = Bits::new(sidecar.catalog.positions());
    let beyond = beyond_repair(&sidecar.catalog, &found.erased, &found.recovery_erased);
    let lost =
        beyond.ones().filter(|position| damage.positions.within(*position..position + 1).any(is_wanted));
    lost.for_each(|position| wanted.set(position));
    wanted
}

/// Tells whether the bytes of a span may be lacking: its file is not whole, or nothing is known of it since it was not
/// selected; and they were not found elsewhere.
fn is_lacking(damage: &Damage, span: &Span, is_part: bool) -> bool {
    let report = damage.found.report(span.entry as usize);
    report.map_or(is_part, |report| !report.is_right) && !damage.found.moved.covers(span.at..span.end())
}

/// Adds where the bytes of a position stand, as far as they are lacking: its block is at `offset` of the stash.
pub(super) fn add_lacking(
    task: &Task<'_>,
    damage: &Damage,
    (position, offset): (u64, u64),
    spans: &mut Vec<MovedSpan>,
) {
    let block = u64::from(task.sidecar.catalog.block);
    let base = position * block;
    let mut end = 0;
    for span in lacking(damage, position, task.how.only.is_some()) {
        // Files that share a block have it once.
        if span.at < end {
            continue;
        }
        end = span.end();
        let offset = offset + (span.at - base);
        let span = MovedSpan { at: span.at, len: span.len, source: STASH, offset, is_twin: true };
        span.add_to(spans);
    }
}

/// The spans in a position whose bytes may be lacking.
pub(super) fn lacking(damage: &Damage, position: u64, is_part: bool) -> impl Iterator<Item = Span> {
    let spans = damage.positions.within(position..position + 1);
    spans.filter(move |span| is_lacking(damage, span, is_part))
}
