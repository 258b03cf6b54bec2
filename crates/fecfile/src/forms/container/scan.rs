//! Runs the scanner over an input, file or pipe, with a window that holds one record at most.

use crate::error::{Action, Error, Result};
use fec_base::context::Gauge;
use fec_base::program::stages::{self, Stage};
use fec_base::ranges::Ranges;
use fec_core::digest::Digest;
use fec_core::error::FormatError;
use fec_core::format::container::{HEADER_LEN, Index, IndexHeader, MetaFrame, RecordHeader};
use fec_core::format::scan::{ScanStep, Scanner};
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at a time, at least.
const CHUNK: usize = 1 << 20;

/// An input that is scanned from front to back.
pub(crate) trait ScanInput: Read {
    /// Skips a hole that begins here, if there is one; returns its length. Its bytes are zeros.
    fn skip_hole(&mut self) -> u64;
}

/// An input that is read once and as a whole.
pub(crate) struct Piped<R>(pub R);

impl<R: Read> Read for Piped<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl<R: Read> ScanInput for Piped<R> {
    fn skip_hole(&mut self) -> u64 {
        0
    }
}

/// A finding of the scanner at a position.
pub(crate) enum ScanEvent<'w> {
    Record {
        header: RecordHeader,
        /// X of its group.
        tree: Digest,
        proof: &'w [u8],
        body: &'w [u8],
    },
    Meta(Box<MetaFrame>),
    /// Meta that a reader must not use: its hash, and the broken rule.
    BadMeta(Digest, FormatError),
    Index(Box<Index>),
    /// An index header whose body may be in front of it. The callback decides, and may look if the flag is set.
    IndexHeader(IndexHeader, bool),
    /// A whole annex: its type, its data, and its length in bytes.
    Annex(u32, &'w [u8], u64),
    Rejected(FormatError),
}

/// The callback's decision about an index header; all other findings are decided by the scanner.
pub(crate) enum Taken {
    Yes,
    No {
        /// True if a body in front of it was looked at.
        looked_before: bool,
    },
}

/// Results of a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Bytes of the input.
    pub len: u64,
    /// Bytes outside of all accepted findings; at most [`MAX_GAPS`] ranges.
    pub gaps: Ranges,
}

/// Most gaps listed. Beyond that the last gap extends over all later ones.
const MAX_GAPS: usize = 10_000;

/// Scans all of `input`, calling `on` with the position and kind of everything found.
pub(crate) fn scan(
    mut input: impl ScanInput,
    path: &Path,
    wanted: Option<Digest>,
    meter: &Gauge<'_>,
    mut on: impl FnMut(u64, ScanEvent<'_>) -> Result<Taken>,
) -> Result<Scanned> {
    let mut scanner = Scanner::new(wanted);
    let mut window = Window::default();
    let mut scanned = Scanned::default();
    // The end of accepted bytes. The scan may go on inside an accepted record, whose bytes are no gap.
    let mut covered = 0;
    loop {
        meter.check()?;
        let at = window.position;
        let (drop, accepted) = match scanner.step(window.bytes(), window.at_end, at) {
            ScanStep::More(needed) => {
                // Nothing begins with zeros.
                let is_zero = window.bytes().iter().all(|byte| *byte == 0);
                let hole = if is_zero && !window.at_end { input.skip_hole() } else { 0 };
                if hole > 0 {
                    let passed = window.bytes().len() as u64 + hole;
                    scanned.add_gap(at.max(covered), at + passed);
                    meter.add(passed);
                    window.pass(passed);
                    continue;
                }
                window.fill(&mut input, needed).map_err(|e| Error::io(Action::Read, path, e))?;
                continue;
            }
            ScanStep::Skip(0) => break,
            step => pass_on(step, at, &mut scanner, &mut on)?,
        };
        covered = covered.max(at + accepted as u64);
        scanned.add_gap(at.max(covered), at + drop as u64);
        meter.add(drop as u64);
        window.drop_front(drop);
    }
    scanned.len = window.position;
    Ok(scanned)
}

/// Passes a finding at `at` on to the callback. Returns the bytes to be dropped, and the accepted ones.
fn pass_on(
    step: ScanStep<'_>,
    at: u64,
    scanner: &mut Scanner,
    on: &mut impl FnMut(u64, ScanEvent<'_>) -> Result<Taken>,
) -> Result<(usize, usize)> {
    Ok(match step {
        ScanStep::More(_) => (0, 0),
        ScanStep::Skip(bytes) => (bytes, 0),
        ScanStep::Record { header, tree, proof, body, len, drop } => {
            on(at, ScanEvent::Record { header, tree, proof, body })?;
            (drop, len)
        }
        ScanStep::Meta { frame, drop } => {
            on(at, ScanEvent::Meta(frame))?;
            (drop, drop)
        }
        ScanStep::BadMeta { meta_hash, error, drop } => {
            on(at, ScanEvent::BadMeta(meta_hash, error))?;
            (drop, 0)
        }
        ScanStep::Index { index, drop } => {
            on(at, ScanEvent::Index(index))?;
            (drop, drop)
        }
        ScanStep::IndexHeader { header, len } => {
            let may_look = scanner.may_look_before(&header, at);
            match on(at, ScanEvent::IndexHeader(header, may_look))? {
                Taken::Yes => (HEADER_LEN, HEADER_LEN),
                Taken::No { looked_before } => (scanner.index_in_vain(&header, looked_before, at, len), 0),
            }
        }
        ScanStep::Annex { kind, data, len, drop } => {
            on(at, ScanEvent::Annex(kind, data, len as u64))?;
            (drop, len)
        }
        ScanStep::Rejected { error, drop } => {
            on(at, ScanEvent::Rejected(error))?;
            (drop, 0)
        }
    })
}

impl Scanned {
    fn add_gap(&mut self, start: u64, end: u64) {
        let start = if self.gaps.len() < MAX_GAPS { start } else { self.gaps.end().unwrap_or(start) };
        self.gaps.add(start, end);
    }
}

/// A part of the input: bytes `start..end` of `buffer`.
#[derive(Default)]
struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Position in the input of the window's first byte.
    position: u64,
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

    /// Empties the window and moves its start by this many bytes.
    fn pass(&mut self, bytes: u64) {
        self.start = self.end;
        self.position += bytes;
    }

    /// Reads until the window holds `needed` bytes or the input ends. The buffer grows only with bytes that exist,
    /// never by a length that a header claims.
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
            stages::add_bytes(*read.as_ref().unwrap_or(&0) as u64);
            drop(stage);
            match read {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}
