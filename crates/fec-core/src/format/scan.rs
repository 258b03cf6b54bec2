//! Finding records, meta frames, indexes and annexes in any bytes (format specification, section 9.1).
//!
//! The scanner is a function of a window of bytes; the caller reads, keeps and drops bytes. The same code therefore
//! serves pipes and files, and a record costs only its own bytes.

use super::annex::{self, AnnexHeader};
use super::container::{
    GroupId, HEADER_LEN, INDEX_MAGIC, Index, IndexHeader, META_MAGIC, MetaFrame, RECORD_MAGIC, RecordHeader,
    record_head_len,
};
use super::{VERSION_AT, check_start};
use crate::digest::Digest;
use crate::error::FormatError;
use crate::set::tree_of_shard;

/// Times that each byte of the input may be hashed in vain, beside [`VAIN_ALLOWANCE`].
const VAIN_FACTOR: u64 = 4;
/// Bytes that may be hashed in vain for any input.
const VAIN_ALLOWANCE: u64 = 1 << 30;
/// Bytes in front of those that a checksum covers: the magic and the checksum.
const BEFORE_CHECKSUM: usize = 12;
/// The longest body of an index that the scan examines: 2^20 groups and the longest meta. Longer bodies are skipped,
/// which costs no payload.
pub const MAX_INDEX_BODY: u64 = (32 << 20) + (64 << 10);
/// Weight of the bytes of an index body, for the nodes that are made of them.
const INDEX_WORK: u64 = 4;

/// The finding at the start of the window. `drop` is the number of bytes to drop before the next step.
#[derive(Debug)]
pub enum ScanStep<'w> {
    /// Nothing starts in this many bytes.
    Skip(usize),
    /// The window must hold at least this many bytes (or the input's end) to tell.
    More(usize),
    /// A record whose body leads to its group's root.
    Record {
        /// Its header.
        header: RecordHeader,
        /// X of its group, as its proof shows.
        tree: Digest,
        /// Its proof.
        proof: &'w [u8],
        /// Its shard.
        body: &'w [u8],
        /// Bytes of the record.
        len: usize,
        /// Bytes to drop: all of the record, or fewer where it hides nothing.
        drop: usize,
    },
    /// A meta frame.
    Meta {
        /// The frame.
        frame: Box<MetaFrame>,
        /// Bytes to drop: all of the frame.
        drop: usize,
    },
    /// Meta whose copies are all the same, and which breaks a rule or is unknown. No reader may use it, or restore its
    /// encoding as if the meta were absent.
    BadMeta {
        /// M.
        meta_hash: Digest,
        /// The rule.
        error: FormatError,
        /// Bytes to drop.
        drop: usize,
    },
    /// An index header and the good body behind it.
    Index {
        /// The index.
        index: Box<Index>,
        /// Bytes to drop: header and body.
        drop: usize,
    },
    /// An index header without a good body behind it; a good body may stand before it. [`Scanner::index_in_vain`] tells
    /// how many bytes to drop.
    IndexHeader {
        /// The header.
        header: IndexHeader,
        /// Bytes of the header and of the presumed body.
        len: usize,
    },
    /// A whole annex; the scan goes on inside it.
    Annex {
        /// The type of its data.
        kind: u32,
        /// Its data.
        data: &'w [u8],
        /// Bytes of the annex.
        len: usize,
        /// Bytes to drop, fewer than `len`.
        drop: usize,
    },
    /// Bytes that start like one of these and are none.
    Rejected {
        /// The reason.
        error: FormatError,
        /// Bytes to drop.
        drop: usize,
    },
}

/// Scans windows of one input.
#[derive(Debug)]
pub struct Scanner {
    /// The root that was asked for: only its records hide bytes.
    wanted: Option<Digest>,
    /// Bytes of checksums and hashes after which the scan did not skip what they cover.
    vain: u64,
    /// End of the annex that the scan is in; no annex counts before it.
    annex_end: u64,
}

impl Scanner {
    /// A scanner of an input. `wanted` is the root that was asked for.
    pub fn new(wanted: Option<Digest>) -> Scanner {
        Scanner { wanted, vain: 0, annex_end: 0 }
    }

    /// Examines the start of `window`, which stands at `position` of the input. `at_end` says that no byte follows it.
    pub fn step<'w>(&mut self, window: &'w [u8], at_end: bool, position: u64) -> ScanStep<'w> {
        let start = memchr::memmem::find(window, &RECORD_MAGIC[..4]);
        match start {
            Some(0) => {}
            Some(start) => return ScanStep::Skip(start),
            None if at_end => return ScanStep::Skip(window.len()),
            // The first bytes of a magic may stand at the window's end.
            None if window.len() > 3 => return ScanStep::Skip(window.len() - 3),
            None => return ScanStep::More(8),
        }
        if window.starts_with(&annex::MAGIC) {
            return self.annex(window, at_end, position);
        }
        let Some((fixed, rest)) = window.split_first_chunk::<HEADER_LEN>() else {
            return if at_end { start_of_none(window) } else { ScanStep::More(HEADER_LEN) };
        };
        let is = |magic: &[u8; 8]| window.starts_with(magic);
        let magic = match [RECORD_MAGIC, META_MAGIC, INDEX_MAGIC].into_iter().find(is) {
            Some(magic) => magic,
            None => return ScanStep::Skip(4),
        };
        if let Err(error) = check_start(fixed, &magic) {
            return ScanStep::Rejected { error, drop: 8 };
        }
        match magic {
            RECORD_MAGIC => self.record(fixed, window, at_end, position),
            META_MAGIC => self.meta(fixed, window, at_end, position),
            _ => self.index(fixed, rest, at_end, position),
        }
    }

    fn record<'w>(
        &mut self,
        fixed: &[u8; HEADER_LEN],
        window: &'w [u8],
        at_end: bool,
        position: u64,
    ) -> ScanStep<'w> {
        let head_len = record_head_len(fixed);
        let Some(head) = window.get(..head_len) else {
            return if at_end { no_checksum("a record that is cut short") } else { ScanStep::More(head_len) };
        };
        let summed = (head_len - BEFORE_CHECKSUM) as u64;
        let header = match RecordHeader::parse(head) {
            Ok(header) => header,
            Err(error) => return self.reject(error, summed, position, head_len),
        };
        let Some(proof) = header.proof(head) else {
            return self.reject(FormatError::Damaged("the padding of a proof"), summed, position, head_len);
        };
        let GroupId { geometry, root, before } = &header.group;
        let len = head_len + geometry.shape().shard_len;
        let Some(body) = window.get(head_len..len) else {
            return if at_end {
                cut_short(self.in_vain(summed, position, head_len))
            } else {
                ScanStep::More(len)
            };
        };
        let work = summed + body.len() as u64;
        let tree = tree_of_shard(geometry, header.set, header.index, body, proof);
        match tree.filter(|tree| geometry.root(tree, before) == *root) {
            None => self.reject(FormatError::Damaged("the digest of a record"), work, position, len),
            Some(tree) => {
                let hides = self.wanted.is_none_or(|wanted| wanted == *root);
                let drop = if hides { len } else { self.in_vain(work, position, len) };
                ScanStep::Record { header, tree, proof, body, len, drop }
            }
        }
    }

    fn meta<'w>(
        &mut self,
        fixed: &[u8; HEADER_LEN],
        window: &'w [u8],
        at_end: bool,
        position: u64,
    ) -> ScanStep<'w> {
        let len = MetaFrame::frame_len(fixed);
        let Some(frame) = window.get(..len) else {
            return if at_end { no_checksum("a meta frame that is cut short") } else { ScanStep::More(len) };
        };
        match MetaFrame::open(frame) {
            Ok(frame) => ScanStep::Meta { frame: Box::new(frame), drop: len },
            Err((error, hashed, meta_hash)) => {
                let drop = self.in_vain((len - BEFORE_CHECKSUM + hashed) as u64, position, len);
                match meta_hash {
                    Some(meta_hash) => ScanStep::BadMeta { meta_hash, error, drop },
                    None => ScanStep::Rejected { error, drop },
                }
            }
        }
    }

    fn index<'w>(
        &mut self,
        fixed: &[u8; HEADER_LEN],
        rest: &'w [u8],
        at_end: bool,
        position: u64,
    ) -> ScanStep<'w> {
        let summed = (HEADER_LEN - BEFORE_CHECKSUM) as u64;
        let header = match IndexHeader::parse(fixed) {
            Ok(header) => header,
            Err(error) => return self.reject(error, summed, position, HEADER_LEN),
        };
        let alone = ScanStep::IndexHeader { header, len: HEADER_LEN };
        if header.body_len() > MAX_INDEX_BODY {
            return alone;
        }
        let body_len = header.body_len() as usize;
        let body = match rest.get(..body_len) {
            None if !at_end => return ScanStep::More(HEADER_LEN + body_len),
            None => return alone,
            Some(body) => body,
        };
        let len = HEADER_LEN + body_len;
        match header.open(body) {
            Ok(index) => ScanStep::Index { index: Box::new(index), drop: len },
            Err(FormatError::Damaged(_)) => {
                self.vain += INDEX_WORK * header.body_len();
                ScanStep::IndexHeader { header, len }
            }
            Err(error) => {
                let drop = self.in_vain(summed + INDEX_WORK * header.body_len(), position, len);
                ScanStep::BadMeta { meta_hash: header.meta_hash, error, drop }
            }
        }
    }

    fn annex<'w>(&mut self, window: &'w [u8], at_end: bool, position: u64) -> ScanStep<'w> {
        let Some(fixed) = window.first_chunk::<{ annex::HEADER_LEN }>() else {
            return if at_end {
                ScanStep::Skip(window.len().min(8))
            } else {
                ScanStep::More(annex::HEADER_LEN)
            };
        };
        let inside = position < self.annex_end;
        let Some(header) = AnnexHeader::read(fixed).filter(|_| !inside) else { return ScanStep::Skip(8) };
        let len = header.annex_len();
        let Some(whole) = window.get(..len) else {
            return if at_end { ScanStep::Skip(8) } else { ScanStep::More(len) };
        };
        let is_whole = header.opens(whole);
        let drop = self.in_vain((len - BEFORE_CHECKSUM - annex::HEADER_LEN) as u64, position, len);
        if !is_whole {
            return ScanStep::Skip(drop);
        }
        self.annex_end = position + len as u64;
        // No annex counts within it, and everything else in it is looked for.
        ScanStep::Annex { kind: header.kind, data: annex::data(whole), len, drop: 8 }
    }

    fn reject(&mut self, error: FormatError, work: u64, position: u64, len: usize) -> ScanStep<'static> {
        let drop = self.in_vain(work, position, len);
        ScanStep::Rejected { error, drop }
    }

    /// Counts `work` bytes of checksums and hashes over `len` bytes from `position` on that the scan cannot skip.
    /// Returns how many bytes to drop: the magic, or all of them if too much work was in vain.
    pub fn in_vain(&mut self, work: u64, position: u64, len: usize) -> usize {
        self.vain += work;
        let end = position + len as u64;
        if self.vain > VAIN_FACTOR * end + VAIN_ALLOWANCE { len } else { 8 }
    }

    /// Tells whether a body before an index header at `position` may be examined. It may not if too much work would be
    /// in vain.
    pub fn may_look_before(&self, header: &IndexHeader, position: u64) -> bool {
        let work = INDEX_WORK * header.body_len();
        self.vain + work <= VAIN_FACTOR * (position + HEADER_LEN as u64) + VAIN_ALLOWANCE
    }

    /// As [`in_vain`](Self::in_vain), for an index header at `position` that was returned with `len` bytes and has no
    /// good body before it either. `looked_before` says whether a body before it was examined.
    pub fn index_in_vain(
        &mut self,
        header: &IndexHeader,
        looked_before: bool,
        position: u64,
        len: usize,
    ) -> usize {
        let work = if looked_before { INDEX_WORK * header.body_len() } else { 0 };
        self.in_vain(work + (HEADER_LEN - BEFORE_CHECKSUM) as u64, position, len)
    }
}

/// The end of an input, too short for any header: at most its version can be read.
fn start_of_none(window: &[u8]) -> ScanStep<'static> {
    let magics = [RECORD_MAGIC, META_MAGIC, INDEX_MAGIC];
    match magics.iter().find(|magic| window.len() > VERSION_AT && window.starts_with(*magic)) {
        Some(magic) => match check_start(window, magic) {
            Err(error) => ScanStep::Rejected { error, drop: 8 },
            Ok(()) => ScanStep::Skip(8),
        },
        None => ScanStep::Skip(window.len().min(4)),
    }
}

/// The rejection of bytes that begin like a header but end before the bytes that its checksum covers: they may be no
/// header at all.
fn no_checksum(what: &'static str) -> ScanStep<'static> {
    ScanStep::Rejected { error: FormatError::Checksum(what), drop: 8 }
}

fn cut_short(drop: usize) -> ScanStep<'static> {
    let error = FormatError::Damaged("the length of a record that is cut short");
    ScanStep::Rejected { error, drop }
}
