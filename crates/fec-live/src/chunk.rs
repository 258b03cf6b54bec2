//! A buffer for one read: a piece of a byte stream, or datagrams.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The result of one read.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The buffer; `pieces` tells its content.
    pub bytes: Vec<u8>,
    /// Consecutive pieces in `bytes`, each with the length of its datagrams, of which the last may be shorter. A byte
    /// stream has a single, undivided piece.
    pub pieces: Vec<(Range<usize>, usize)>,
    /// The origin and time of each piece of datagrams.
    pub arrivals: Vec<Arrival>,
    /// The time at which no datagram was there, before these or now: all earlier ones were handed on. `None` if there
    /// always was one, or for bytes of a stream.
    pub empty_at: Option<Instant>,
}

/// The origin and time of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The sender, as the datagrams claim.
    pub from: SocketAddr,
    /// The address of this machine that they came to, if the system tells.
    pub to: Option<IpAddr>,
    /// Time at which the system received the first of them, since 1970, if it tells.
    pub at: Option<Duration>,
}

impl Chunk {
    /// The datagrams, or the bytes that were read.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().flat_map(|(range, stride)| self.bytes[range.clone()].chunks((*stride).max(1)))
    }

    /// The datagrams, each with its origin and time.
    pub fn datagrams(&self) -> impl Iterator<Item = (&Arrival, &[u8])> {
        self.pieces.iter().zip(&self.arrivals).flat_map(|((range, stride), arrival)| {
            self.bytes[range.clone()].chunks((*stride).max(1)).map(move |bytes| (arrival, bytes))
        })
    }

    /// The same, to be changed in place.
    pub fn datagrams_mut(&mut self) -> impl Iterator<Item = (&Arrival, &mut [u8])> {
        let (mut rest, mut at) = (&mut self.bytes[..], 0);
        self.pieces.iter().zip(&self.arrivals).flat_map(move |((range, stride), arrival)| {
            let (piece, behind) = std::mem::take(&mut rest)[range.start - at..].split_at_mut(range.len());
            (rest, at) = (behind, range.end);
            piece.chunks_mut((*stride).max(1)).map(move |bytes| (arrival, bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces stand in slots of a buffer, with room behind each; of a piece only the last datagram may be shorter.
    #[test]
    fn datagrams_are_told_apart_each_with_its_origin() {
        let arrival = |port: u16| Arrival { from: ([127, 0, 0, 1], port).into(), to: None, at: None };
        let mut chunk = Chunk {
            bytes: (0..40).collect(),
            pieces: vec![(0..7, 3), (10..12, 2), (20..20, 0), (30..31, 100)],
            arrivals: vec![arrival(1), arrival(2), arrival(3), arrival(4)],
            empty_at: None,
        };
        let parts: Vec<Vec<u8>> = chunk.parts().map(<[u8]>::to_vec).collect();
        assert_eq!(parts, [vec![0, 1, 2], vec![3, 4, 5], vec![6], vec![10, 11], vec![30]]);
        let told: Vec<u16> = chunk.datagrams().map(|(from, _)| from.from.port()).collect();
        assert_eq!(told, [1, 1, 1, 2, 4]);
        assert!(chunk.datagrams().map(|(_, bytes)| bytes).eq(parts.iter().map(Vec::as_slice)));
        for (from, bytes) in chunk.datagrams_mut() {
            bytes.fill(from.from.port() as u8);
        }
        let parts: Vec<Vec<u8>> = chunk.parts().map(<[u8]>::to_vec).collect();
        assert_eq!(parts, [vec![1, 1, 1], vec![1, 1, 1], vec![1], vec![2, 2], vec![4]]);
        assert_eq!((chunk.bytes[7], chunk.bytes[12], chunk.bytes[31]), (7, 12, 31), "the room is left");
    }
}
