//! Runs the scanner over an input, file or pipe, with a window that holds one record at most.

use crate::context::Meter;
use crate::error::{Error, ErrorKind, Result};
use crate::ranges::Ranges;
use crate::stages::{self, Stage};
use fec_core::error::FormatError;
use fec_core::format::container::{HEADER_LEN, Index, IndexHeader, RecordHeader};
use fec_core::format::scan::{ScanStep, Scanner, TooMuchVain};
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at a time, at least.
const CHUNK: usize = 1 << 20;

/// What the scanner found at a position.
pub(crate) enum ScanEvent<'w> {
    Record {
        header: RecordHeader,
        proof: &'w [u8],
        body: &'w [u8],
    },
    Index(Box<Index>),
    /// A header whose body may stand before it; whether that is so is for the callback to say.
    IndexHeader(IndexHeader),
    Rejected(FormatError),
}

/// What the callback makes of an index header; for everything else the scanner has decided.
pub(crate) enum Taken {
    Yes,
    No {
        /// Bytes of an index body that were hashed for it.
        hashed: usize,
    },
}

/// What a scan tells at its end.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Bytes of the input.
    pub len: u64,
    /// Bytes that belong to nothing that was accepted; at most [`MAX_GAPS`] ranges.
    pub gaps: Ranges,
}

/// Gaps are listed up to this number; the last one then runs to the end of all later ones.
const MAX_GAPS: usize = 10_000;

/// Scans all of `input`, calling `on` with the position and kind of everything found.
pub(crate) fn scan(
    mut input: impl Read,
    path: &Path,
    max_group: u64,
    meter: &dyn Meter,
    mut on: impl FnMut(u64, ScanEvent<'_>) -> Result<Taken>,
) -> Result<Scanned> {
    let mut scanner = Scanner::new(max_group);
    let mut window = Window::default();
    let mut scanned = Scanned::default();
    let refuse = |e: TooMuchVain| Error::at("read", path, ErrorKind::Imitation(e));
    // Bytes of the window are dropped with `gap` when nothing was accepted there.
    loop {
        let received = window.received;
        let step = scanner.step(window.bytes(), window.at_end, received).map_err(refuse)?;
        let at = window.position;
        let (dropped, gap) = match step {
            ScanStep::More(needed) => {
                window.fill(&mut input, needed).map_err(|e| Error::io("read", path, e))?;
                continue;
            }
            ScanStep::Skip(0) => break,
            ScanStep::Skip(bytes) => (bytes, true),
            ScanStep::Record { header, proof, body, len } => {
                on(at, ScanEvent::Record { header, proof, body })?;
                (len, false)
            }
            ScanStep::Index { index, len } => {
                on(at, ScanEvent::Index(index))?;
                (len, false)
            }
            ScanStep::IndexHeader(header) => match on(at, ScanEvent::IndexHeader(header))? {
                Taken::Yes => (HEADER_LEN, false),
                Taken::No { hashed } => {
                    scanner.count_vain(hashed, received).map_err(refuse)?;
                    (8, true)
                }
            },
            ScanStep::Rejected(error) => {
                on(at, ScanEvent::Rejected(error))?;
                (8, true)
            }
        };
        if gap {
            scanned.add_gap(at, at + dropped as u64);
        }
        meter.add(dropped as u64);
        window.drop_front(dropped);
    }
    scanned.len = window.position;
    Ok(scanned)
}

impl Scanned {
    fn add_gap(&mut self, start: u64, end: u64) {
        let start = if self.gaps.len() < MAX_GAPS { start } else { self.gaps.end().unwrap_or(start) };
        self.gaps.add(start, end);
    }
}

/// A piece of the input: bytes `start..end` of `buffer`.
#[derive(Default)]
struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the input of the window's first byte.
    position: u64,
    /// Bytes read of the input.
    received: u64,
    at_end: bool,
}

impl Window {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn drop_front(&mut self, bytes: usize) {
        self.start += bytes;
        self.position += bytes as u64;
    }

    /// Reads until the window holds `needed` bytes or the input ends. The buffer grows with what is
    /// really there: never by a length that only a header states.
    fn fill(&mut self, input: &mut impl Read, needed: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < needed && !self.at_end {
            let room = (self.end + CHUNK).min(needed.max(CHUNK));
            if self.buffer.len() < room {
                self.buffer.resize(room, 0);
            }
            let stage = stages::enter(Stage::Read, 0);
            let read = input.read(&mut self.buffer[self.end..]);
            drop(stage);
            match read {
                Ok(0) => self.at_end = true,
                Ok(n) => {
                    self.end += n;
                    self.received += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
