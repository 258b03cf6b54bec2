//! Annexes at the end of an object (docs/FORMAT.md, section 9.4).

use crate::io::ReadAt;
use fec_core::format::annex::{self, AnnexHeader};
use std::io;

/// The length of an object without the annexes at its end.
pub(crate) fn without(bytes: &dyn ReadAt, len: u64) -> io::Result<u64> {
    let mut end = len;
    loop {
        let Some(at) = end.checked_sub(annex::HEADER_LEN as u64) else { return Ok(end) };
        let mut tail = [0; annex::HEADER_LEN];
        bytes.read_exact_at(at, &mut tail)?;
        let Some(header) = AnnexHeader::read(&tail) else { return Ok(end) };
        let Some(start) = end.checked_sub(header.annex_len() as u64) else { return Ok(end) };
        let mut whole = vec![0; header.annex_len()];
        bytes.read_exact_at(start, &mut whole)?;
        if !header.opens(&whole) {
            return Ok(end);
        }
        end = start;
    }
}
