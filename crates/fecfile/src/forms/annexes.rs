//! Annexes at the end of an object (docs/FORMAT.md, section 9.4), and the signatures in them (section 19).

use fec_base::io::ReadAt;
use fec_core::format::annex::{self, AnnexHeader};
use fec_keys::sign::{MOST_OF_ONE, Signatures};
use std::io;

/// The signatures in an object's annexes: at most [`MOST_OF_ONE`] annexes are read, whatever they contain.
#[derive(Debug, Default)]
pub(crate) struct OfOne {
    seen: usize,
    pub(crate) list: Signatures,
}

impl OfOne {
    /// Takes the signatures of an annex.
    pub(crate) fn add(&mut self, kind: u32, data: &[u8]) {
        if kind == annex::SIGNATURE && self.seen < MOST_OF_ONE {
            self.seen += 1;
            self.list.add(data);
        }
    }
}

/// The length of an object without the annexes at its end, and the signatures in these annexes, the last annex first.
pub(crate) fn stripped(bytes: &dyn ReadAt, len: u64) -> io::Result<(u64, Signatures)> {
    let mut end = len;
    let mut signatures = OfOne::default();
    while let Some(at) = end.checked_sub(annex::HEADER_LEN as u64) {
        let mut tail = [0; annex::HEADER_LEN];
        bytes.read_exact_at(at, &mut tail)?;
        let Some(header) = AnnexHeader::read(&tail) else { break };
        let Some(start) = end.checked_sub(header.annex_len() as u64) else { break };
        let mut whole = vec![0; header.annex_len()];
        bytes.read_exact_at(start, &mut whole)?;
        if !header.opens(&whole) {
            break;
        }
        signatures.add(header.kind, annex::data(&whole));
        end = start;
    }
    Ok((end, signatures.list))
}

/// The offset of the first annex between `at` and `end` that is no copy of the meta.
pub(crate) fn behind_copies(bytes: &dyn ReadAt, mut at: u64, end: u64) -> io::Result<u64> {
    while at < end {
        let mut head = [0; annex::HEADER_LEN];
        bytes.read_exact_at(at, &mut head)?;
        match AnnexHeader::read(&head) {
            Some(header) if header.kind == annex::META_COPY => at += header.annex_len() as u64,
            _ => break,
        }
    }
    Ok(at)
}

/// The annex that holds a signature.
pub(crate) fn of_signature(text: &str) -> Vec<u8> {
    annex::write(annex::SIGNATURE, text.as_bytes())
}
