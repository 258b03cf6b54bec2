//! Where loads and stores that tell addresses leave them.
//!
//! The loops pass no context to a load, so a thread keeps one list. It is handed over often, which keeps it short.
//! Loops that write need rows of their own to write to; nothing is written, so rows that were never touched stand in
//! for the caller's, and cost addresses alone. What is told of them is told of the caller's.

use super::access::{Access, AccessKind, Visitor};
use crate::gf256::kernel::aligned::AlignedBytes;
use std::cell::RefCell;

/// A row that the loops see, and where it really is.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedRow {
    /// Where the loops see it.
    seen: usize,
    len: usize,
    /// Where it is.
    real: usize,
    /// Where a list holds its address and its length, if one does: that is read with each piece of the row.
    entry: Option<Access>,
}

impl WatchedRow {
    /// A row of a list, seen where it is.
    pub(super) fn listed(row: &&[u8]) -> WatchedRow {
        let address = row.as_ptr().addr();
        WatchedRow {
            seen: address,
            len: row.len(),
            real: address,
            entry: Some(Access::of(row, AccessKind::Read)),
        }
    }

    /// The address at which the loops see it.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// A row for which another one stands in.
    pub(super) fn behind(row: &[u8], standing: &[u8]) -> WatchedRow {
        let (seen, real) = (standing.as_ptr().addr(), row.as_ptr().addr());
        WatchedRow { seen, len: row.len(), real, entry: None }
    }
}

/// Rows of one length that stand in for others.
pub(super) struct StandIns {
    bytes: AlignedBytes,
    row_len: usize,
}

impl StandIns {
    pub(super) fn new(rows: usize, row_len: usize) -> StandIns {
        StandIns { bytes: AlignedBytes::zeroed(rows * row_len), row_len }
    }

    /// All of them.
    pub(super) fn all(&mut self) -> Vec<&mut [u8]> {
        self.bytes.chunks_exact_mut(self.row_len.max(1)).collect()
    }

    /// What the loops will see, in the order of addresses: sources, and these in place of `dst`.
    pub(super) fn rows(&self, src: &[&[u8]], dst: &[&[u8]]) -> Vec<WatchedRow> {
        let standing = self.bytes.chunks_exact(self.row_len.max(1));
        let standing = dst.iter().zip(standing).map(|(row, standing)| WatchedRow {
            entry: Some(Access::of(row, AccessKind::Read)),
            ..WatchedRow::behind(row, standing)
        });
        let mut rows: Vec<WatchedRow> = src.iter().map(WatchedRow::listed).chain(standing).collect();
        rows.sort_by_key(WatchedRow::seen);
        rows
    }
}

/// So many accesses, about those of one column, lie between two times that the stack is told.
const BETWEEN: usize = 16;

#[derive(Default)]
struct Recorder {
    accesses: Vec<Access>,
    /// In the order of the addresses at which they are seen.
    rows: Vec<WatchedRow>,
    /// A stretch of the stack that is used all the time.
    stack: Option<Access>,
    /// Accesses since it was told.
    since: usize,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::default();
}

/// Tells `visit` what `body` tells here, and again and again a stretch of the stack. `rows` are in the order of
/// addresses.
pub(super) fn recorded(
    rows: &[WatchedRow],
    stack: Option<Access>,
    visit: &mut Visitor<'_>,
    body: impl FnOnce(),
) {
    RECORDER.with_borrow_mut(|recorder| {
        recorder.rows.clear();
        recorder.rows.extend_from_slice(rows);
        recorder.stack = stack;
        recorder.since = 0;
    });
    body();
    let mut accesses = RECORDER.with_borrow_mut(|recorder| std::mem::take(&mut recorder.accesses));
    accesses.drain(..).for_each(&mut *visit);
    // Its room is used again.
    RECORDER.with_borrow_mut(|recorder| recorder.accesses = accesses);
}

/// Tells of one access by the loops. Out of line: it stands behind every load and store of them, and only their order
/// matters, not the time it takes.
#[inline(never)]
pub(super) fn tell(bytes: &[u8], kind: AccessKind) {
    RECORDER.with_borrow_mut(|recorder| recorder.tell(Access::of(bytes, kind)));
}

impl Recorder {
    fn tell(&mut self, mut access: Access) {
        if let Some(stack) = self.stack {
            if self.since == 0 {
                self.accesses.push(stack);
            }
            self.since = (self.since + 1) % BETWEEN;
        }
        let row = self.rows[..self.rows.partition_point(|row| row.seen <= access.address)].last();
        let row = row.filter(|row| access.address < row.seen + row.len);
        if let Some(row) = row {
            access.address = access.address - row.seen + row.real;
        }
        match self.accesses.last_mut() {
            // The next piece of the same bytes.
            Some(last) if last.kind == access.kind && last.address + last.len == access.address => {
                last.len += access.len;
            }
            _ => {
                self.accesses.extend(row.and_then(|row| row.entry));
                self.accesses.push(access);
            }
        }
    }
}
