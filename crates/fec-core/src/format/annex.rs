//! Annexes: frames behind an encoding that the root does not bind (format specification, section 9.4).

use super::{array_at, checksum_of, is_zero, u32_at, u64_at};

/// The first eight bytes of both headers of an annex.
pub const MAGIC: [u8; 8] = *b"\x89fecA\r\n\x1a";
/// Bytes of the header, which stands at both ends.
pub const HEADER_LEN: usize = 32;
/// The type of an annex whose data is a signature over the root (section 19).
pub const SIGNATURE: u32 = 1;
/// The type of an annex whose data are outlines of shards (section 9.5).
pub const OUTLINES: u32 = 2;
/// The type of an annex between the records of a sealed container, whose data is a copy of its meta frame (section 9).
pub const META_COPY: u32 = 4;
/// The most bytes of data.
pub const MAX_DATA: u64 = 1 << 20;

/// An annex's header. The data stands between its two copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnexHeader {
    /// The type of the data.
    pub kind: u32,
    /// Bytes of data.
    pub data_len: u64,
}

impl AnnexHeader {
    /// Reads a header; `None` if the bytes are none. The checksum needs the data too, so it is not compared here.
    pub fn read(bytes: &[u8; HEADER_LEN]) -> Option<AnnexHeader> {
        let header = AnnexHeader { kind: u32_at(bytes, 12), data_len: u64_at(bytes, 16) };
        let is_one = bytes.starts_with(&MAGIC) && is_zero(&bytes[24..]) && header.data_len <= MAX_DATA;
        is_one.then_some(header)
    }

    /// Bytes of the whole annex.
    pub fn annex_len(&self) -> usize {
        2 * HEADER_LEN + self.data_len as usize
    }

    /// Tells whether these are the bytes of the whole annex.
    pub fn opens(&self, annex: &[u8]) -> bool {
        let Some((head, rest)) = annex.split_first_chunk::<HEADER_LEN>() else { return false };
        let Some((data, tail)) = rest.split_last_chunk::<HEADER_LEN>() else { return false };
        head == tail
            && AnnexHeader::read(head) == Some(*self)
            && data.len() as u64 == self.data_len
            && u32_at(head, 8) == checksum_of(&[&head[12..], data])
    }
}

/// The bytes of an annex.
///
/// # Panics
/// If there is more data than [`MAX_DATA`].
pub fn write(kind: u32, data: &[u8]) -> Vec<u8> {
    let header = header(kind, &[data]);
    [&header[..], data, &header].concat()
}

/// The header of an annex, for both ends; `parts` are its data, one after the other.
///
/// # Panics
/// As [`write`](write()).
pub fn header(kind: u32, parts: &[&[u8]]) -> [u8; HEADER_LEN] {
    let len: u64 = parts.iter().map(|part| part.len() as u64).sum();
    assert!(len <= MAX_DATA, "larger things take several annexes");
    let mut header = [0u8; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[12..16].copy_from_slice(&kind.to_le_bytes());
    header[16..24].copy_from_slice(&len.to_le_bytes());
    let (start, fields) = header.split_at_mut(12);
    let summed: Vec<&[u8]> = std::iter::once(&*fields).chain(parts.iter().copied()).collect();
    start[8..].copy_from_slice(&checksum_of(&summed).to_le_bytes());
    header
}

/// The data of a whole annex.
pub fn data(annex: &[u8]) -> &[u8] {
    let header: [u8; HEADER_LEN] = array_at(annex, 0);
    let len = AnnexHeader::read(&header).map_or(0, |header| header.data_len as usize);
    &annex[HEADER_LEN..][..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_annexes_open_and_nothing_else_does() {
        for bytes in [&b""[..], b"x", &[7; 1000]] {
            let annex = write(9, bytes);
            let header = AnnexHeader::read(annex.first_chunk().unwrap()).unwrap();
            assert_eq!((header.kind, header.annex_len()), (9, annex.len()));
            assert!(header.opens(&annex));
            assert_eq!(data(&annex), bytes);
            assert!(!header.opens(&annex[..annex.len() - 1]) && !header.opens(&annex[1..]));
            for place in 0..annex.len() {
                let mut flipped = annex.clone();
                flipped[place] ^= 1;
                assert!(!header.opens(&flipped), "{place}");
            }
        }
        let mut long = *write(9, b"").first_chunk::<HEADER_LEN>().unwrap();
        long[16..24].copy_from_slice(&(MAX_DATA + 1).to_le_bytes());
        assert_eq!(AnnexHeader::read(&long), None);
    }
}
