//! Finding records and indexes in any bytes (format specification, section 9.1).
//!
//! The scanner is a function of a window of bytes; the caller reads, keeps and drops bytes. So the
//! same code serves pipes and files, and a record costs only the bytes that hit it.

use super::container::{
    HEADER_LEN, INDEX_MAGIC, Index, IndexHeader, RECORD_MAGIC, RecordHeader, record_head_len,
};
use crate::error::FormatError;
use crate::set::shard_is_proved;

/// How many times the bytes read may be hashed without a record coming of it.
const VAIN_FACTOR: u64 = 8;

/// What stands at the start of the window.
#[derive(Debug)]
pub enum ScanStep<'w> {
    /// Nothing starts in this many bytes: drop them.
    Skip(usize),
    /// The window must hold at least this many bytes (or the input's end) to tell.
    More(usize),
    /// A record whose body leads to its group's root. Drop `len` bytes.
    Record {
        /// Its header.
        header: RecordHeader,
        /// Its proof.
        proof: &'w [u8],
        /// Its shard.
        body: &'w [u8],
        /// Bytes of the record.
        len: usize,
    },
    /// An index header and the good body behind it. Drop `len` bytes.
    Index {
        /// The index.
        index: Box<Index>,
        /// Bytes of both.
        len: usize,
    },
    /// An index header without a good body behind it; one may stand before it. Drop 8 bytes.
    IndexHeader(IndexHeader),
    /// Something that starts like a record or an index and is not one. Drop 8 bytes.
    Rejected(FormatError),
}

/// The input makes the reader hash far more than it holds (specification, section 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{vain} bytes were hashed in vain for {received} bytes read: the input imitates records")]
pub struct TooMuchVain {
    /// Bytes hashed without result.
    pub vain: u64,
    /// Bytes read.
    pub received: u64,
}

/// Scans windows of one input. Keeps only the count of bytes hashed in vain.
#[derive(Debug)]
pub struct Scanner {
    max_group: u64,
    vain: u64,
}

impl Scanner {
    /// A scanner that accepts groups of up to `max_group` bytes (n·G·L).
    pub fn new(max_group: u64) -> Scanner {
        Scanner { max_group, vain: 0 }
    }

    /// Looks at the start of `window`. `at_end` says that no byte follows it; `received` is how many
    /// bytes of the input were read so far, the window's included.
    ///
    /// # Errors
    /// [`TooMuchVain`]: stop reading this input.
    pub fn step<'w>(
        &mut self,
        window: &'w [u8],
        at_end: bool,
        received: u64,
    ) -> Result<ScanStep<'w>, TooMuchVain> {
        let start = memchr::memmem::find(window, &RECORD_MAGIC[..4]);
        match start {
            Some(0) => {}
            Some(start) => return Ok(ScanStep::Skip(start)),
            None if at_end => return Ok(ScanStep::Skip(window.len())),
            // The first bytes of a magic may stand at the window's end.
            None if window.len() > 3 => return Ok(ScanStep::Skip(window.len() - 3)),
            None => return Ok(ScanStep::More(8)),
        }
        if window.len() < HEADER_LEN {
            return Ok(if at_end { ScanStep::Skip(window.len().min(4)) } else { ScanStep::More(HEADER_LEN) });
        }
        if window.starts_with(&RECORD_MAGIC) {
            self.record(window, at_end, received)
        } else if window.starts_with(&INDEX_MAGIC) {
            self.index(window, at_end, received)
        } else {
            Ok(ScanStep::Skip(4))
        }
    }

    fn record<'w>(
        &mut self,
        window: &'w [u8],
        at_end: bool,
        received: u64,
    ) -> Result<ScanStep<'w>, TooMuchVain> {
        let (fixed, _) = window.split_first_chunk::<HEADER_LEN>().expect("the caller checked the length");
        let head_len = record_head_len(fixed);
        let cut_short = ScanStep::Rejected(FormatError::Damaged("the length of a record that is cut short"));
        let Some(head) = window.get(..head_len) else {
            return Ok(if at_end { cut_short } else { ScanStep::More(head_len) });
        };
        let header = match RecordHeader::parse(head, self.max_group) {
            Ok(header) => header,
            Err(error) => return Ok(ScanStep::Rejected(error)),
        };
        let Some(proof) = header.proof(head) else {
            return Ok(ScanStep::Rejected(FormatError::Damaged("the padding of a proof")));
        };
        let geometry = &header.group.geometry;
        let len = head_len + geometry.shape().shard_len;
        let Some(body) = window.get(head_len..len) else {
            return Ok(if at_end { cut_short } else { ScanStep::More(len) });
        };
        if !shard_is_proved(geometry, &header.group.root, header.set, header.index, body, proof) {
            self.count_vain(body.len(), received)?;
            return Ok(ScanStep::Rejected(FormatError::Damaged("the digest of a record")));
        }
        Ok(ScanStep::Record { header, proof, body, len })
    }

    fn index<'w>(
        &mut self,
        window: &'w [u8],
        at_end: bool,
        received: u64,
    ) -> Result<ScanStep<'w>, TooMuchVain> {
        let (fixed, rest) = window.split_first_chunk::<HEADER_LEN>().expect("the caller checked the length");
        let header = match IndexHeader::parse(fixed, self.max_group) {
            Ok(header) => header,
            Err(error) => return Ok(ScanStep::Rejected(error)),
        };
        let body = match rest.get(..header.body_len()) {
            None if !at_end => return Ok(ScanStep::More(HEADER_LEN + header.body_len())),
            None => return Ok(ScanStep::IndexHeader(header)),
            Some(body) => body,
        };
        let error = match header.open(body) {
            Ok(index) => return Ok(ScanStep::Index { index: Box::new(index), len: HEADER_LEN + body.len() }),
            Err(error) => error,
        };
        self.count_vain(body.len(), received)?;
        Ok(match error {
            FormatError::Damaged(_) => ScanStep::IndexHeader(header),
            error => ScanStep::Rejected(error),
        })
    }

    /// Counts a body that was hashed and not accepted: the scanner's own, and one that the caller
    /// looked at before an index header.
    ///
    /// # Errors
    /// [`TooMuchVain`]: stop reading this input.
    pub fn count_vain(&mut self, bytes: usize, received: u64) -> Result<(), TooMuchVain> {
        self.vain += bytes as u64;
        if self.vain > received.saturating_mul(VAIN_FACTOR) {
            return Err(TooMuchVain { vain: self.vain, received });
        }
        Ok(())
    }
}
