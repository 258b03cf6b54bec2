//! Framed byte streams, as `fec decode` reads them: any bytes; and our own stream with pieces lost, repeated and
//! changed. The output is the payload that was sent, without the packets named as lost.
#![no_main]

use fec_core::window::{Profile, Ratio};
use fec_fuzz::edit;
use fec_live::Output;
use fec_live::receive::{PacketSource, ReceiveOptions, receive};
use fec_live::send::{PacketDestination, SendOptions, send};
use fecfile::error::Place;
use fecfile::{Context, Settings};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::sync::LazyLock;

/// The payload: packets of 16 bytes, each of which begins with its number.
static PAYLOAD: LazyLock<Vec<u8>> =
    LazyLock::new(|| (0..150u32).flat_map(|number| [number; 4]).flat_map(u32::to_le_bytes).collect());

/// The payload as a stream of each profile.
static STREAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    Profile::ALL
        .into_iter()
        .map(|profile| {
            let mut out = Vec::new();
            let ratio = Ratio::new(1, 3).expect("neither is 0");
            let options = SendOptions {
                stream_id: Some(1),
                window: 60,
                block: 12,
                payload: 16,
                profile,
                ratio,
                ..Default::default()
            };
            let to = PacketDestination::Bytes(Output::stream(Place::Output, &mut out));
            let sent = send(Cursor::new(PAYLOAD.clone()), Place::Output, to, &options, &context())
                .expect("it is sent");
            assert_eq!(sent.payload_bytes, PAYLOAD.len() as u64);
            out
        })
        .collect()
});

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    if *first >= 0x80 {
        let _ = received(bytes.to_vec());
        return;
    }
    let mut stream = STREAMS[usize::from(*first) % STREAMS.len()].clone();
    edit(&mut stream, rest);
    let Some(out) = received(stream) else { return };
    // A checksum of 32 bits lets none of so few errors through: every packet is one that was sent, and they are in
    // order.
    let numbers: Vec<u32> = out
        .as_chunks::<16>()
        .0
        .iter()
        .map(|packet| {
            let number = u32::from_le_bytes(packet[..4].try_into().expect("four bytes"));
            assert_eq!(PAYLOAD[number as usize * 16..][..16], packet[..], "packet {number}");
            number
        })
        .collect();
    assert!(out.len().is_multiple_of(16) && numbers.is_sorted_by(|a, b| a < b), "in order, and each once");
});

fn context() -> Context<'static> {
    Context::new(Settings { threads: 1, ..Settings::new() }.with_memory(Some(4 << 20)))
}

fn received(stream: Vec<u8>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let source =
        PacketSource::Bytes { place: Place::Output, head: Vec::new(), input: Box::new(Cursor::new(stream)) };
    let output = Output::stream(Place::Output, &mut out);
    let result =
        receive(source, output, &ReceiveOptions::default(), &mut fec_base::context::Silent, &context());
    if let Err(error) = &result {
        assert!(!error.to_string().is_empty());
    }
    result.ok().map(|_| out)
}
