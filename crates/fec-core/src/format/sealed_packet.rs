//! Sealed packets of a live stream (format specification, section 13.3): encrypted, and authentic for holders of the
//! key.
//!
//! This module knows their layout. The caller has the cipher.

use super::packet::{HEADER, MAGIC, PacketError, SUM_AT, TYPE_REPORT, VERSION, restore_checksum};
use super::{array_at, u32_at, u64_at};

/// Bytes in front of the encrypted ones. They are authentic, and in the clear.
pub const HEAD: usize = SUM_AT + 4 + 8;
/// Bytes of the tag behind the encrypted bytes.
pub const TAG: usize = 16;
/// Bytes of a sealed packet beyond those of the packet in it.
pub const OVERHEAD: usize = HEAD + TAG - HEADER;
/// Offset of the number that says how a packet is sealed; 0 if it is not.
const AUTHENTICATION_AT: usize = 6;
const STREAM_ID_AT: usize = 8;
const NUMBER_AT: usize = 16;
const COUNTER_AT: usize = SUM_AT + 4;

/// The clear part of a sealed packet. Nothing of it may be believed before the tag has been compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The number of the cipher, which is not 0.
    pub authentication: u8,
    /// The number of the stream.
    pub stream_id: u64,
    /// The number in the header; of a report, its receiver's.
    pub number: u64,
    /// Time of sealing by the sender's clock, in seconds since 1970, modulo 2^32.
    pub time: u32,
    /// Number of packets of the stream sealed before this one.
    pub counter: u64,
    /// The authentic bytes that are not encrypted: the associated data.
    pub head: [u8; HEAD],
}

impl Sealed {
    /// The nonce: no two packets under a stream's key have the same.
    pub fn nonce(&self) -> [u8; 12] {
        nonce(&self.head)
    }

    /// The packet inside `bytes`, whose encrypted part was decrypted in place. The packet's header is shorter than the
    /// head of a sealed one, and is written right before the body. The cost is O(header), and O(body) for repair
    /// packets.
    ///
    /// # Panics
    /// When `bytes` are not the bytes that were parsed.
    pub fn packet<'a>(&self, bytes: &'a mut [u8]) -> &'a mut [u8] {
        let end = bytes.len() - TAG;
        let packet = &mut bytes[HEAD - HEADER..end];
        packet[..SUM_AT].copy_from_slice(&self.head[..SUM_AT]);
        packet[AUTHENTICATION_AT] = 0;
        restore_checksum(packet);
        packet
    }
}

/// Tells whether `packet` begins like a sealed packet; `Some(false)` is one that is not sealed, `None` no packet.
pub fn is_sealed(packet: &[u8]) -> Option<bool> {
    let authentication = packet.get(AUTHENTICATION_AT).filter(|_| packet.starts_with(&MAGIC))?;
    Some(*authentication != 0)
}

/// The head in front of the sealed body of `packet`, which is a whole packet that is not sealed.
///
/// # Panics
/// When `packet` has no header.
pub fn head(packet: &[u8], authentication: u8, time: u32, counter: u64) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..SUM_AT].copy_from_slice(&packet[..SUM_AT]);
    head[AUTHENTICATION_AT] = authentication;
    head[SUM_AT..COUNTER_AT].copy_from_slice(&time.to_le_bytes());
    head[COUNTER_AT..].copy_from_slice(&counter.to_le_bytes());
    head
}

/// The nonce of a packet with this head: time and counter.
pub fn nonce(head: &[u8; HEAD]) -> [u8; 12] {
    array_at(head, SUM_AT)
}

/// Parses a sealed packet, which must be the whole of `bytes`. Total: any bytes give a packet or an error.
///
/// # Errors
/// [`PacketError`] by the rules of section 13.3; [`PacketError::Authentication`] for one that is not sealed. Calls and
/// reports are sealed like packets of the stream.
pub fn parse(bytes: &[u8]) -> Result<Sealed, PacketError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(PacketError::Magic);
    }
    let Some((head, _)) = bytes.split_first_chunk::<HEAD>().filter(|(_, sealed)| sealed.len() >= TAG) else {
        return Err(PacketError::Damaged);
    };
    let [version, kind, authentication] = array_at(head, MAGIC.len());
    if version != VERSION {
        return Err(PacketError::Version(version));
    }
    if kind > TYPE_REPORT {
        return Err(PacketError::Type(kind));
    }
    if authentication == 0 {
        return Err(PacketError::Authentication(0));
    }
    Ok(Sealed {
        authentication,
        stream_id: u64_at(head, STREAM_ID_AT),
        number: u64_at(head, NUMBER_AT),
        time: u32_at(head, SUM_AT),
        counter: u64_at(head, COUNTER_AT),
        head: *head,
    })
}

#[cfg(test)]
mod tests {
    use super::super::packet::{self, Parameters, Profile};
    use super::*;

    #[test]
    fn the_packet_within_comes_back() {
        let parameters =
            Parameters { profile: Profile::Bounded, stream_id: 7, window: 60, payload: 20, block: 15 };
        let mut source = Vec::new();
        packet::write_source(&mut source, &parameters, 3, b"text", packet::payload_checksum(7, 3, b"text"));
        for plain in [&source[..], &packet::mark(&parameters, 9, true)] {
            let head = head(plain, 2, 5, 6);
            let bytes = [&head[..], &plain[HEADER..], &[1; TAG]].concat();
            assert_eq!(bytes.len(), plain.len() + OVERHEAD);
            assert_eq!(
                (is_sealed(&bytes), is_sealed(plain), is_sealed(b"else")),
                (Some(true), Some(false), None)
            );
            let sealed = parse(&bytes).expect("a sealed packet");
            assert_eq!((sealed.authentication, sealed.stream_id, sealed.time, sealed.counter), (2, 7, 5, 6));
            assert_eq!(sealed.nonce(), [5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(sealed.packet(&mut bytes.clone()), plain);
            assert_eq!(
                parse(plain).map(|_| ()),
                Err(if plain.len() < HEAD + TAG {
                    PacketError::Damaged
                } else {
                    PacketError::Authentication(0)
                })
            );
            for len in 0..bytes.len() {
                assert!(parse(&bytes[..len]).is_err() == (len < HEAD + TAG));
            }
        }
    }
}
