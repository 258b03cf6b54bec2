//! The recorder, which collects the addresses that loads and stores tell.
//!
//! The loops pass no context to a load, so each thread keeps one list, which is handed over often and stays short.
//! Loops that write need rows of their own. Nothing is written, so rows that were never touched stand in for the
//! caller's, and cost addresses alone. Accesses to a stand-in are told as accesses to the caller's row.

use super::access::{Access, AccessKind, Visitor};
use crate::gf256::kernel::aligned::AlignedBytes;
use std::cell::RefCell;

/// A row that the loops see, and its real place.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedRow {
    /// The address that the loops see.
    seen: usize,
    len: usize,
    /// The real address.
    real: usize,
    /// The list entry with its address and length, if there is one: each piece of the row reads it.
    entry: Option<Access>,
}

impl WatchedRow {
    /// A row of a list, seen at its real address.
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

    /// A row that `standing` stands in for.
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

    /// The rows that the loops will see, in the order of addresses: the sources, and stand-ins in place of `dst`.
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

/// Accesses, about those of one column, between two reports of the stack.
const BETWEEN: usize = 16;

#[derive(Default)]
struct Recorder {
    accesses: Vec<Access>,
    /// The rows, in the order of the addresses that the loops see.
    rows: Vec<WatchedRow>,
    /// A stretch of the stack that is in use all the time.
    stack: Option<Access>,
    /// Accesses since the stack was told.
    since: usize,
}

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::default();
}

/// Tells `visit` the accesses that `body` makes on this thread, and again and again a stretch of the stack. `rows` are
/// in the order of addresses.
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
    // The allocation is reused.
    RECORDER.with_borrow_mut(|recorder| recorder.accesses = accesses);
}

/// Tells an access by the loops. The function is out of line, since it stands behind every load and store of them; only
/// their order matters, not its time.
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
