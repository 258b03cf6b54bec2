//! A buffer of what was read at a time: a piece of a byte stream, or datagrams.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

/// What was read at a time.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The buffer; what it holds is told by `pieces`.
    pub bytes: Vec<u8>,
    /// Where in `bytes` something stands, one behind the other, and how it is divided: into datagrams of so many bytes each, the last one
    /// perhaps shorter. A byte stream has one piece that is not divided.
    pub pieces: Vec<(Range<usize>, usize)>,
    /// Of each piece of datagrams, where and when it came.
    pub arrivals: Vec<Arrival>,
    /// When no datagram was there before these came, or now: all that came earlier was handed on. `None`: there always
    /// was one, or these are bytes of a stream.
    pub empty_at: Option<Instant>,
}

/// Where and when datagrams came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who sent them, or says so.
    pub from: SocketAddr,
    /// The address of this machine that they came to, where the system tells.
    pub to: Option<IpAddr>,
    /// When the system received the first of them, since 1970, where it tells.
    pub at: Option<Duration>,
}

impl Chunk {
    /// The datagrams, or the bytes that were read.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|(range, stride)| self.bytes[range.clone()].chunks((*stride).max(1)))
    }

    /// The datagrams, each with where and when it came.
    pub fn datagrams(&self) -> impl Iterator<Item = (&Arrival, &[u8])> {
        self.pieces.iter().zip(&self.arrivals).flat_map(|((range, stride), arrival)| {
            self.bytes[range.clone()].chunks((*stride).max(1)).map(move |bytes| (arrival, bytes))
        })
    }

    /// The same, for whoever changes them where they stand.
    pub fn datagrams_mut(&mut self) -> impl Iterator<Item = (&Arrival, &mut [u8])> {
        let (mut rest, mut at) = (&mut self.bytes[..], 0);
        self.pieces.iter().zip(&self.arrivals).flat_map(move |((range, stride), arrival)| {
            let (piece, behind) = std::mem::take(&mut rest)[range.start - at..].split_at_mut(range.len());
            (rest, at) = (behind, range.end);
            piece.chunks_mut((*stride).max(1)).map(move |bytes| (arrival, bytes))
        })
    }
}
