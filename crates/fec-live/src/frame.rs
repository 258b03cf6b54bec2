//! Packets in a byte stream: framing that finds its way back after any damage.
//!
//! A packet is stuffed so that the two bytes FE FD never occur in it, and these two end the frame (docs/FORMAT.md,
//! "Framed byte stream"). The method is consistent overhead byte stuffing with a delimiter of two bytes: nearly all
//! packets grow by 5 bytes and are copied in long runs. After any damage, insertion or deletion the next delimiter
//! starts anew. Nothing inside a packet can look like a delimiter, not even a payload that is a framed stream itself.
//! Every byte is read once.
//!
//! This module knows nothing of a packet's content: the packet's own checksum tells whether it is whole.

use fec_core::format::packet::{REPAIR_OVERHEAD, SYMBOL_OVERHEAD};
use fec_core::format::sealed_packet;
use memchr::memmem::Finder;

/// The two bytes that end every frame, and stand in front of the first.
pub(super) const DELIMITER: [u8; 2] = [0xFE, 0xFD];

/// Bytes of the longest packet: a sealed repair packet of payloads of 65,535 bytes.
const MAX_PACKET: usize = REPAIR_OVERHEAD + SYMBOL_OVERHEAD + 65_535 + sealed_packet::OVERHEAD;
/// Most bytes of its frame, without the delimiter.
const MAX_FRAME: usize = MAX_PACKET + 1 + 3 * 2;

/// Bound of the digits of run lengths, so that these never look like a part of the delimiter.
const RADIX: usize = 0xFD;
/// The longest first run, whose length is one digit.
const FIRST_RUN: usize = RADIX - 1;
/// The longest later run, whose length has two digits.
const LATER_RUN: usize = RADIX * RADIX - 1;

/// Writes frames.
pub(super) struct Framer {
    delimiter: Finder<'static>,
}

impl Framer {
    pub(super) fn new() -> Framer {
        Framer { delimiter: Finder::new(&DELIMITER) }
    }

    /// Appends the frame of `packet` to `out`.
    pub(super) fn frame(&self, packet: &[u8], out: &mut Vec<u8>) {
        // The packet is encoded as if a delimiter followed it: a run shorter than the longest means a delimiter.
        let (mut rest, mut longest) = (packet, FIRST_RUN);
        loop {
            let window = &rest[..rest.len().min(longest + 1)];
            let found = self.delimiter.find(window).filter(|at| *at < longest);
            let run = found.unwrap_or_else(|| rest.len().min(longest));
            out.push((run % RADIX) as u8);
            if longest == LATER_RUN {
                out.push((run / RADIX) as u8);
            }
            out.extend_from_slice(&rest[..run]);
            if found.is_some() {
                rest = &rest[run + DELIMITER.len()..];
            } else if run == longest {
                rest = &rest[run..];
            } else {
                break;
            }
            longest = LATER_RUN;
        }
        out.extend_from_slice(&DELIMITER);
    }
}

/// Undoes the stuffing of the bytes between two delimiters; `None` if they are no packet's.
fn unstuff(mut frame: &[u8], packet: &mut Vec<u8>) -> Option<()> {
    packet.clear();
    let mut longest = FIRST_RUN;
    loop {
        let run = match (longest, frame) {
            (FIRST_RUN, [low, rest @ ..]) => {
                frame = rest;
                usize::from(*low)
            }
            (LATER_RUN, [low, high, rest @ ..]) if usize::from((*low).max(*high)) < RADIX => {
                frame = rest;
                usize::from(*low) + usize::from(*high) * RADIX
            }
            _ => return None,
        };
        if run > longest {
            return None;
        }
        let (bytes, rest) = frame.split_at_checked(run)?;
        packet.extend_from_slice(bytes);
        frame = rest;
        // A run that ends at a delimiter is shorter than the longest; the last one's delimiter is not part of the
        // packet.
        match (run < longest, frame.is_empty()) {
            (true, true) => return Some(()),
            (true, false) => packet.extend_from_slice(&DELIMITER),
            (false, _) => {}
        }
        if packet.len() > MAX_PACKET {
            return None;
        }
        longest = LATER_RUN;
    }
}

/// Finds frames in bytes that come in pieces of any size. It holds a frame at most.
pub(super) struct Deframer {
    delimiter: Finder<'static>,
    /// The frame that is still incomplete.
    partial: Vec<u8>,
    /// True if the partial frame is too long to be one: bytes up to the next delimiter are dropped.
    overlong: bool,
    packet: Vec<u8>,
    /// Pieces between delimiters that are no frames.
    broken: u64,
}

impl Deframer {
    pub(super) fn new() -> Deframer {
        let (partial, packet) = (Vec::new(), Vec::new());
        Deframer { delimiter: Finder::new(&DELIMITER), partial, overlong: false, packet, broken: 0 }
    }

    /// Takes the next bytes and gives each packet that is complete now to `on`, which may change it.
    pub(super) fn feed<E>(
        &mut self,
        mut bytes: &[u8],
        mut on: impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The pieces' ends cut a delimiter in two.
        if self.partial.last() == Some(&DELIMITER[0]) && bytes.first() == Some(&DELIMITER[1]) {
            self.partial.pop();
            bytes = &bytes[1..];
            self.end_of_frame(&[], &mut on)?;
        }
        while let Some(at) = self.delimiter.find(bytes) {
            self.end_of_frame(&bytes[..at], &mut on)?;
            bytes = &bytes[at + DELIMITER.len()..];
        }
        if self.partial.len() + bytes.len() > MAX_FRAME {
            // The last byte may be the first half of a delimiter.
            self.overlong = true;
            self.partial.clear();
            bytes = &bytes[bytes.len().saturating_sub(1)..];
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Ends the input. The rest is a cut frame, which counts as broken.
    pub(super) fn finish(&mut self) {
        self.broken += u64::from(self.overlong || !self.partial.is_empty());
        self.partial.clear();
        self.overlong = false;
    }

    /// Pieces between delimiters that were no frames.
    pub(super) fn broken(&self) -> u64 {
        self.broken
    }

    fn end_of_frame<E>(
        &mut self,
        tail: &[u8],
        on: &mut impl FnMut(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let len = self.partial.len() + tail.len();
        if std::mem::take(&mut self.overlong) || len > MAX_FRAME {
            self.partial.clear();
            self.broken += 1;
            return Ok(());
        }
        // Two delimiters in a row mean the start of a stream behind the end of another.
        if len == 0 {
            return Ok(());
        }
        let frame = match self.partial.is_empty() {
            true => tail,
            false => {
                self.partial.extend_from_slice(tail);
                &self.partial
            }
        };
        let unstuffed = unstuff(frame, &mut self.packet);
        self.partial.clear();
        match unstuffed {
            Some(()) => on(&mut self.packet),
            None => {
                self.broken += 1;
                Ok(())
            }
        }
    }
}

/// The packet in the frame at the very start of a stream. The error says whether it may still follow, because no frame
/// has ended yet and more bytes could hold one.
pub(super) fn first_packet(bytes: &[u8]) -> Result<Vec<u8>, bool> {
    let Some(frame) = bytes.strip_prefix(&DELIMITER) else { return Err(DELIMITER.starts_with(bytes)) };
    let most = &frame[..frame.len().min(MAX_FRAME + DELIMITER.len())];
    let Some(end) = memchr::memmem::find(most, &DELIMITER) else { return Err(most.len() == frame.len()) };
    let mut packet = Vec::new();
    unstuff(&frame[..end], &mut packet).map(|()| packet).ok_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn framed(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut out = DELIMITER.to_vec();
        packets.iter().for_each(|p| Framer::new().frame(p, &mut out));
        out
    }

    fn deframed(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, u64) {
        let (mut deframer, mut packets) = (Deframer::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            let Ok(()) = deframer.feed(piece, |p| {
                packets.push(p.to_vec());
                Ok::<(), Infallible>(())
            });
        }
        deframer.finish();
        (packets, deframer.broken())
    }

    /// Packets in which delimiters, halves of them and run lengths at their limits are frequent.
    fn awkward() -> Vec<Vec<u8>> {
        let mut packets: Vec<Vec<u8>> = (1..9).map(|n| DELIMITER.repeat(n)).collect();
        packets.extend([vec![0xFE], vec![0xFD], vec![0xFE; 700], vec![0xFD; 700], vec![0; 1]]);
        for len in [0, 1, 250, 251, 252, 253, 254, 255, 256, 1350, 64_007, 64_008, 64_009, MAX_PACKET] {
            let plain = vec![7u8; len];
            for at in [len, len.saturating_sub(1), len.saturating_sub(2), 0, 251, 252, 253, 254] {
                let mut packet = plain.clone();
                packet.splice(at.min(len)..(at + 2).min(len), DELIMITER);
                packet.truncate(MAX_PACKET);
                packets.push(packet);
            }
            packets.push(plain);
        }
        let mut x = 1u32;
        for len in 0..600 {
            let byte = |_| {
                x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                [0xFE, 0xFD, 0xFC, 0][(x >> 30) as usize]
            };
            packets.push((0..len).map(byte).collect());
        }
        packets
    }

    #[test]
    fn packets_come_back_and_hold_no_delimiter() {
        let packets = awkward();
        for packet in &packets {
            let mut frame = Vec::new();
            Framer::new().frame(packet, &mut frame);
            assert!(frame.len() <= MAX_FRAME + DELIMITER.len());
            assert_eq!(memchr::memmem::find(&frame, &DELIMITER), Some(frame.len() - 2), "only at the end");
        }
        let bytes = framed(&packets);
        for piece in [1, 2, 3, 1000, bytes.len()] {
            let (back, broken) = deframed(&bytes, piece);
            assert!(back == packets && broken == 0, "pieces of {piece}");
        }
    }

    #[test]
    fn the_specification_s_example() {
        let packet: Vec<u8> = [0x11, 0xFE, 0xFD, 0x22].into();
        assert_eq!(framed(&[packet]), [0xFE, 0xFD, 1, 0x11, 1, 0, 0x22, 0xFE, 0xFD]);
    }

    /// Every single change costs the frames that it touches, two at most, and no others.
    #[test]
    fn damage_costs_the_frames_it_touches() {
        let packets: Vec<Vec<u8>> = (0..7u8).map(|i| vec![i; 20 + usize::from(i)]).collect();
        let bytes = framed(&packets);
        let check = |changed: &[u8], what: &str, at: usize| {
            let (back, _) = deframed(changed, changed.len().max(1));
            let kept = packets.iter().filter(|p| back.contains(p)).count();
            assert!(kept >= packets.len() - 2, "{what} at {at}: {kept}");
        };
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                check(&changed, "flip", at);
            }
            for cut in 1..18 {
                let end = (at + cut).min(bytes.len());
                check(&[&bytes[..at], &bytes[end..]].concat(), "deletion", at);
            }
            for extra in [&b"x"[..], &DELIMITER, &[0xFE], &[0xFD], &[0; 500]] {
                check(&[&bytes[..at], extra, &bytes[at..]].concat(), "insertion", at);
            }
        }
    }

    /// A frame without an end is dropped, with bounded memory, and the one after it is found.
    #[test]
    fn endless_frames_are_dropped() {
        let packets = [vec![1; 30], vec![2; 30]];
        let mut bytes = framed(&packets[..1]);
        bytes.extend(std::iter::repeat_n(9, 3 * MAX_FRAME));
        bytes.extend(framed(&packets[1..]));
        for piece in [1, 1000, 2 * MAX_FRAME, bytes.len()] {
            let (mut deframer, mut back) = (Deframer::new(), Vec::new());
            for piece in bytes.chunks(piece) {
                let Ok(()) = deframer.feed(piece, |p| {
                    back.push(p.to_vec());
                    Ok::<(), Infallible>(())
                });
                assert!(deframer.partial.len() <= MAX_FRAME);
            }
            assert!(back == packets, "pieces of {piece}");
            assert_eq!(deframer.broken(), 1);
        }
    }
}
