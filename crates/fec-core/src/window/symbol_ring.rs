//! The symbols of a window: a place for each source packet, by its number modulo the number of places.

use crate::format::packet::{HEADER, SUM, SUMMED_HEAD, SYMBOL_OVERHEAD, summed_checksum};
use crate::gf256::kernel::{AlignedBytes, LINE};

/// A ring of symbols.
///
/// Symbols begin on cache lines and are padded with zeros to whole ones. The line in front of each has room for a
/// packet's header, so that a packet can be sent from here. Places stand an odd number of lines apart, so that they do
/// not compete for the same sets of a cache. (In the places of a complete group, the sender keeps the sums that taps
/// add there, not the packets: see `row.rs`.)
#[derive(Debug)]
pub(super) struct SymbolRing {
    bytes: AlignedBytes,
    places: u64,
    stride: usize,
    symbol_len: usize,
    /// The packet that was put last, and its place.
    last: u64,
    last_place: u64,
}

impl SymbolRing {
    /// A ring for `places` symbols of `symbol_len` bytes.
    pub(super) fn new(places: u64, symbol_len: usize) -> SymbolRing {
        let stride = ((LINE + symbol_len).div_ceil(LINE) | 1) * LINE;
        let len = usize::try_from(places).ok().and_then(|places| places.checked_mul(stride));
        let bytes = AlignedBytes::zeroed(len.expect("the window's memory was checked"));
        SymbolRing { bytes, places, stride, symbol_len, last: 0, last_place: 0 }
    }

    /// Number of places.
    pub(super) fn places(&self) -> u64 {
        self.places
    }

    fn place(&self, seq: u64) -> u64 {
        // The place is mostly near the last one, which saves a division.
        let (back, ahead) = (self.last.wrapping_sub(seq), seq.wrapping_sub(self.last));
        if back <= self.last_place {
            self.last_place - back
        } else if ahead < self.places - self.last_place {
            self.last_place + ahead
        } else {
            seq % self.places
        }
    }

    /// Start of the symbol of packet `seq`.
    fn at(&self, seq: u64) -> usize {
        self.place(seq) as usize * self.stride + LINE
    }

    /// Start of the symbol of packet `seq`, which is about to be put there.
    fn turn_to(&mut self, seq: u64) -> usize {
        (self.last_place, self.last) = (self.place(seq), seq);
        self.at(seq)
    }

    /// The symbol in the place of packet `seq`, padded to whole lines.
    pub(super) fn symbol(&self, seq: u64) -> &[u8] {
        &self.bytes[self.at(seq)..][..self.symbol_len.next_multiple_of(LINE)]
    }

    /// The symbols of packets from `first` on, for reading many of them.
    pub(super) fn symbols_from(&self, first: u64) -> SymbolsFrom<'_> {
        let len = self.symbol_len.next_multiple_of(LINE);
        SymbolsFrom {
            bytes: &self.bytes,
            places: self.places,
            stride: self.stride,
            len,
            first,
            place: self.place(first),
        }
    }

    /// The payload in the place of packet `seq`. A symbol must stand there.
    pub(super) fn payload(&self, seq: u64) -> &[u8] {
        &self.symbol(seq)[SYMBOL_OVERHEAD..self.used(seq)]
    }

    /// Bytes of the symbol in the place of packet `seq` without its padding. A symbol must stand there.
    fn used(&self, seq: u64) -> usize {
        let at = self.at(seq) + SUM;
        SYMBOL_OVERHEAD + usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    /// The symbol in the place of packet `seq`, padded to whole lines instead of full length. A symbol must stand
    /// there.
    pub(super) fn short_symbol(&self, seq: u64) -> &[u8] {
        &self.symbol(seq)[..self.used(seq).next_multiple_of(LINE)]
    }

    /// Puts the symbol of a payload in its place.
    pub(super) fn put(&mut self, seq: u64, payload: &[u8], checksum: u32) {
        let at = self.turn_to(seq);
        let symbol = &mut self.bytes[at..][..self.symbol_len];
        let (head, room) = symbol.split_at_mut(SYMBOL_OVERHEAD);
        let (sum, len) = head.split_at_mut(SUM);
        sum.copy_from_slice(&checksum.to_le_bytes());
        len.copy_from_slice(&(payload.len() as u16).to_le_bytes());
        let (bytes, padding) = room.split_at_mut(payload.len());
        bytes.copy_from_slice(payload);
        padding.fill(0);
    }

    /// As [`put`](Self::put), and computes the checksum in place.
    pub(super) fn put_new(&mut self, stream_id: u64, seq: u64, payload: &[u8]) {
        self.put(seq, payload, 0);
        // The checksum also covers stream and number: they stand for now where it and the header will be.
        let sum = self.at(seq);
        let summed = sum + SUM - SUMMED_HEAD;
        let (id, number) = self.bytes[summed..sum + SUM].split_at_mut(8);
        id.copy_from_slice(&stream_id.to_le_bytes());
        number.copy_from_slice(&seq.to_le_bytes());
        let checksum = summed_checksum(&self.bytes[summed..sum + SYMBOL_OVERHEAD + payload.len()]);
        self.bytes[sum..sum + SUM].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Puts a symbol, or the beginning of a padded one, in its place.
    pub(super) fn put_symbol(&mut self, seq: u64, symbol: &[u8]) {
        let at = self.at(seq);
        self.bytes[at..][..self.symbol_len].copy_from_slice(&symbol[..self.symbol_len]);
    }

    /// The symbols in the places of different packets, padded to whole lines.
    ///
    /// # Panics
    /// When two of them have one place.
    pub(super) fn symbols_mut<const N: usize>(&mut self, seqs: [u64; N]) -> [&mut [u8]; N] {
        let len = self.symbol_len.next_multiple_of(LINE);
        let ranges = seqs.map(|seq| self.at(seq)..self.at(seq) + len);
        self.bytes.get_disjoint_mut(ranges).expect("the packets have places of their own")
    }

    /// The packet in the place of packet `seq`: its header and its symbol without padding, contiguous.
    pub(super) fn packet(&mut self, seq: u64, header: &[u8; HEADER]) -> &[u8] {
        let (at, used) = (self.at(seq) - HEADER, self.used(seq));
        let packet = &mut self.bytes[at..][..HEADER + used];
        packet[..HEADER].copy_from_slice(header);
        packet
    }

    /// Bytes of a payload of full length.
    pub(super) fn full_payload(&self) -> usize {
        self.symbol_len - SYMBOL_OVERHEAD
    }
}

/// The symbols from some packet on: a look-up takes no division.
#[derive(Clone, Copy)]
pub(super) struct SymbolsFrom<'a> {
    bytes: &'a [u8],
    places: u64,
    stride: usize,
    len: usize,
    first: u64,
    place: u64,
}

impl<'a> SymbolsFrom<'a> {
    /// The symbol in the place of packet `seq`, which lies less than the number of places after the first.
    pub(super) fn symbol(&self, seq: u64) -> &'a [u8] {
        let place = self.place + (seq - self.first);
        let place = if place < self.places { place } else { place - self.places };
        let at = place as usize * self.stride + LINE;
        &self.bytes[at..at + self.len]
    }
}

#[cfg(all(test, feature = "trace"))]
impl SymbolRing {
    /// The memory of all places.
    pub(super) fn memory(&self) -> &[u8] {
        &self.bytes
    }
}
