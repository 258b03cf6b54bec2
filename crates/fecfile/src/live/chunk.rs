//! A buffer of what was read at a time: a piece of a byte stream, or datagrams.

use std::ops::Range;

/// What was read at a time.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The buffer; what it holds is told by `pieces`.
    pub bytes: Vec<u8>,
    /// Where in `bytes` something stands, and how it is divided: into datagrams of so many bytes each, the last one
    /// perhaps shorter. A byte stream has one piece that is not divided.
    pub pieces: Vec<(Range<usize>, usize)>,
}

impl Chunk {
    /// The datagrams, or the bytes that were read.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|(range, stride)| self.bytes[range.clone()].chunks((*stride).max(1)))
    }
}
