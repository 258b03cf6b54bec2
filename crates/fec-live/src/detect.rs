//! Recognises a framed byte stream by a whole valid packet at its very start (docs/FORMAT.md, sections 9.3 and 16). A
//! magic alone proves nothing: payloads and damaged containers hold magics too. A sealed packet cannot be checked
//! without its key: bytes that look like one only help to explain why nothing else was found.

use super::frame::first_packet;
use fec_base::beginning::Beginning;
use fec_base::io::ReadAt;
use fec_base::io::bad_blocks::is_bad_place;
use fec_core::format::{packet, sealed_packet};
use fec_keys::cipher::Cipher;
use std::io::{self, Read};

/// Bytes read at a time: more than a frame of the usual length.
const STEP: usize = 4 << 10;

/// The kind of bytes that start like `head`; `None` if it cannot be told yet.
fn told(head: &[u8], at_end: bool) -> Option<Beginning> {
    match first_packet(head) {
        Ok(packet) if packet::parse(&packet).is_ok() => Some(Beginning::Stream),
        Ok(packet) => {
            let is_sealed = sealed_packet::parse(&packet)
                .is_ok_and(|sealed| Cipher::from_number(sealed.authentication).is_some());
            Some(if is_sealed { Beginning::Sealed } else { Beginning::Other })
        }
        Err(may_follow) => (at_end || !may_follow).then_some(Beginning::Other),
    }
}

/// Reads as little as possible of the beginning of an input, and returns its kind.
fn beginning(mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<(Vec<u8>, Beginning)> {
    let mut head = Vec::new();
    loop {
        let filled = head.len();
        head.resize(filled + STEP, 0);
        let count = loop {
            match read(&mut head[filled..], filled as u64) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        head.truncate(filled + count);
        if let Some(told) = told(&head, count == 0) {
            return Ok((head, told));
        }
    }
}

/// Tells whether an object is a stream. An object that cannot be read at this place is none.
///
/// # Errors
/// Those of the object.
pub fn object(object: &dyn ReadAt) -> io::Result<Beginning> {
    match beginning(|out, at| object.read_at(at, out)) {
        Ok((_, beginning)) => Ok(beginning),
        Err(e) if is_bad_place(&e) => Ok(Beginning::Other),
        Err(e) => Err(e),
    }
}

/// Reads the beginning of a pipe, and tells whether it is a stream.
///
/// # Errors
/// Those of the pipe.
pub fn pipe(input: &mut impl Read) -> io::Result<(Vec<u8>, Beginning)> {
    beginning(|out, _| input.read(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DELIMITER, Framer};
    use fec_core::format::packet::Profile;
    use fec_core::gf256::kernel::Backend;
    use fec_core::window::{Encoder, Ratio, StreamSettings, WINDOW_LIMIT};

    #[test]
    fn only_a_whole_valid_packet_at_the_very_start_tells_a_stream() {
        let mut stream = DELIMITER.to_vec();
        let settings = StreamSettings {
            stream_id: 1,
            window: 100,
            block: 48,
            payload: 100,
            profile: Profile::Bounded,
            ratio: Ratio::new(1, 6).unwrap(),
            limit: WINDOW_LIMIT,
        };
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        encoder.push(&[0xFE, 0xFD, 7, 0xFE], &mut |packet| Framer::new().frame(packet, &mut stream)).unwrap();
        assert_eq!(told(&stream, false), Some(Beginning::Stream));
        assert_eq!(told(&[&stream[..], b"whatever follows"].concat(), false), Some(Beginning::Stream));
        for len in 0..stream.len() {
            assert_eq!(told(&stream[..len], false), None, "{len}");
            assert_eq!(told(&stream[..len], true), Some(Beginning::Other), "{len}");
        }
        for bit in 0..8 * stream.len() {
            let mut damaged = stream.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // (Each bit of the last delimiter makes the frame longer: nothing can be told yet.)
            assert_ne!(told(&damaged, false), Some(Beginning::Stream), "{bit}");
            // (The input is too short for a sealed one.)
            assert_eq!(told(&damaged, true), Some(Beginning::Other), "{bit}");
        }
        assert_eq!(
            told(&[b"x", &stream[..]].concat(), false),
            Some(Beginning::Other),
            "not at the very start"
        );
        assert_eq!(told(&[0xFE; 70_000], false), Some(Beginning::Other));
        let endless = [&DELIMITER[..], &[1; 70_000]].concat();
        assert_eq!(told(&endless, false), Some(Beginning::Other), "no frame is so long");
    }
}
