//! Packets of live streams, sealed ones and their symbols: an accepted packet is written as the same bytes.
#![no_main]

use fec_core::format::packet::{self, Body, HEADER, RowHeader, open_symbol, payload_checksum};
use fec_core::format::sealed_packet;
use libfuzzer_sys::fuzz_target;

/// Offset, in a source packet, of the payload's checksum, which its length and bytes follow.
const SYMBOL: usize = HEADER;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut restored = bytes.to_vec();
    if restored.len() >= HEADER {
        // A source packet has the checksum of its payload inside.
        if restored[5] == 0 && restored.len() >= SYMBOL + 6 {
            let number =
                |at: usize| u64::from_le_bytes(restored[at..at + 8].try_into().expect("eight bytes"));
            let sum = payload_checksum(number(8), number(16), &restored[SYMBOL + 6..]);
            let len = (restored.len() - SYMBOL - 6) as u16;
            restored[SYMBOL..SYMBOL + 4].copy_from_slice(&sum.to_le_bytes());
            restored[SYMBOL + 4..SYMBOL + 6].copy_from_slice(&len.to_le_bytes());
        }
        packet::restore_checksum(&mut restored);
        check(&restored);
    }
    check_sealed(bytes);
});

fn check(bytes: &[u8]) {
    let (parameters, body) = match packet::parse(bytes) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    parameters.check().expect("parsed parameters obey the rules");
    let mut out = Vec::new();
    match body {
        Body::Source { seq, payload, checksum } => {
            packet::write_source(&mut out, &parameters, seq, payload, checksum);
            let mut symbol = bytes[HEADER..].to_vec();
            symbol.resize(parameters.symbol_len(), 0);
            assert_eq!(open_symbol(parameters.stream_id, seq, &symbol), Some((payload, checksum)));
        }
        Body::Repair { row, first, count, part, symbol } => {
            packet::write_repair(&mut out, &parameters, &RowHeader { row, first, count, part }, symbol);
        }
        Body::Mark { sent, end } => out.extend_from_slice(&packet::mark(&parameters, sent, end)),
    }
    assert_eq!(out, bytes, "written as it was read");
}

fn check_sealed(bytes: &[u8]) {
    let Ok(sealed) = sealed_packet::parse(bytes) else { return };
    assert_eq!(sealed_packet::is_sealed(bytes), Some(true));
    assert_eq!(sealed.nonce(), sealed_packet::nonce(&sealed.head));
    // The bytes as the cipher would open them: the packet inside is accepted or refused.
    let mut opened = bytes.to_vec();
    let packet = sealed.packet(&mut opened);
    assert_eq!(sealed_packet::is_sealed(packet), Some(false));
    let head = sealed_packet::head(packet, sealed.authentication, sealed.time, sealed.counter);
    assert_eq!(head, sealed.head, "the head goes there and back");
    check(packet);
}
