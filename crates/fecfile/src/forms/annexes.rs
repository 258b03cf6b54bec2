//! Annexes at the end of an object (docs/FORMAT.md, section 9.4), and the signatures in them (section 19).

use fec_base::io::ReadAt;
use fec_core::format::annex::{self, AnnexHeader};
use fec_keys::sign::{MOST_OF_ONE, Signatures};
use std::io;
use std::ops::Range;

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

/// An object without the annexes at its end, and what these hold.
pub(crate) struct Stripped {
    /// Bytes of the object without them.
    pub(crate) len: u64,
    /// The signatures in them, the last annex first.
    pub(crate) signatures: Signatures,
    /// True if one of them holds outlines.
    pub(crate) has_outlines: bool,
}

impl Stripped {
    /// An object of `len` bytes without annexes.
    pub(crate) fn bare(len: u64) -> Stripped {
        Stripped { len, signatures: Signatures::default(), has_outlines: false }
    }
}

/// Takes the annexes off the end of an object of `len` bytes, as long as a whole one stands there.
pub(crate) fn stripped(bytes: &dyn ReadAt, len: u64) -> io::Result<Stripped> {
    stripped_by(bytes, len, true)
}

/// Takes the annexes off the end of an object of `len` bytes, as long as one with equal headers stands there. Only
/// signatures are read: whoever verifies the object compares the checksums of others.
pub(crate) fn stripped_by_headers(bytes: &dyn ReadAt, len: u64) -> io::Result<Stripped> {
    stripped_by(bytes, len, false)
}

/// Takes the annexes off the end of an object, of which the checksums must be right if they `are_checked`.
fn stripped_by(bytes: &dyn ReadAt, len: u64, are_checked: bool) -> io::Result<Stripped> {
    let (mut end, mut has_outlines) = (len, false);
    let mut signatures = OfOne::default();
    while let Some(at) = end.checked_sub(annex::HEADER_LEN as u64) {
        let mut tail = [0; annex::HEADER_LEN];
        bytes.read_exact_at(at, &mut tail)?;
        let Some(header) = AnnexHeader::read(&tail) else { break };
        let Some(start) = end.checked_sub(header.annex_len() as u64) else { break };
        if are_checked || header.kind == annex::SIGNATURE {
            let whole = read(bytes, start, &header)?;
            match header.opens(&whole) {
                true => signatures.add(header.kind, annex::data(&whole)),
                false if are_checked => break,
                false => {}
            }
        }
        let mut head = [0; annex::HEADER_LEN];
        bytes.read_exact_at(start, &mut head)?;
        if head != tail {
            break;
        }
        has_outlines |= header.kind == annex::OUTLINES;
        end = start;
    }
    Ok(Stripped { len: end, signatures: signatures.list, has_outlines })
}

/// An annex behind an object.
pub(crate) struct Annex {
    pub(crate) kind: u32,
    pub(crate) place: Range<u64>,
    /// Its bytes; `None` if it is damaged.
    pub(crate) whole: Option<Vec<u8>>,
}

/// The annex that begins at `at` in an object of `len` bytes; `None` if none does.
///
/// # Errors
/// Those of the object.
pub(crate) fn annex_at(bytes: &dyn ReadAt, at: u64, len: u64) -> io::Result<Option<Annex>> {
    if at + annex::HEADER_LEN as u64 > len {
        return Ok(None);
    }
    let mut head = [0; annex::HEADER_LEN];
    bytes.read_exact_at(at, &mut head)?;
    let Some(header) = AnnexHeader::read(&head) else { return Ok(None) };
    let end = at + header.annex_len() as u64;
    let whole = if end <= len { Some(read(bytes, at, &header)?) } else { None };
    let whole = whole.filter(|whole| header.opens(whole));
    Ok(Some(Annex { kind: header.kind, place: at..end.min(len), whole }))
}

/// The bytes of the annex at `at`, unchecked.
fn read(bytes: &dyn ReadAt, at: u64, header: &AnnexHeader) -> io::Result<Vec<u8>> {
    let mut whole = vec![0; header.annex_len()];
    bytes.read_exact_at(at, &mut whole)?;
    Ok(whole)
}

/// The annex that holds a signature.
pub(crate) fn of_signature(text: &str) -> Vec<u8> {
    annex::write(annex::SIGNATURE, text.as_bytes())
}
