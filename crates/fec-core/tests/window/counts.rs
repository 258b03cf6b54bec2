//! The counts of senders and receivers.

use super::common::*;
use fec_core::format::packet;
use fec_core::gf256::kernel::Backend;
use fec_core::window::{
    Decoder, Encoder, Event, Limits, Order, Profile, Received, SettingsError, Statistics,
};

/// Packets that nobody asks for in time are dropped and counted: each packet is either given out or overrun.
#[test]
fn packets_that_nobody_asks_for_are_overrun() {
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 480, 64), Backend::best(), 5000);
        for order in [Order::InOrder, Order::Immediate] {
            for asked_every in [2000, usize::MAX] {
                let mut decoder = Decoder::new(Limits { order, ..Limits::default() }, Backend::best());
                let mut output = Output::default();
                for (nth, packet) in (1..).zip(sent.iter().filter(|packet| packet[5] == 0)) {
                    decoder.receive(packet);
                    if nth % asked_every == 0 {
                        output.drain(&mut decoder, 64);
                    }
                }
                output.drain(&mut decoder, 64);
                let Statistics { received, overrun, lost, .. } = decoder.statistics();
                let case = format!("{profile:?} {order:?} {asked_every}");
                assert_eq!((received, lost, output.lost()), (5000, 0, 0), "{case}");
                assert_eq!(output.delivered.len() as u64 + overrun, 5000, "{case}");
                assert!(overrun > 0 && output.delivered.is_sorted() && output.rebuilt == 0, "{case}");
            }
        }
    }
}

/// W·(P + 6) bytes, or one fewer.
#[test]
fn streams_of_larger_windows_are_refused() {
    let sent = packets(&settings(Profile::Bounded, 1000, 100), Backend::best(), 10);
    let parameters = packet::parse(&sent[0]).unwrap().0;
    let bytes = u64::from(parameters.window) * (u64::from(parameters.payload) + 6);
    assert_eq!(bytes, 106_000);
    for (window_bytes, expected) in [(bytes - 1, Received::Refused { bytes }), (bytes, Received::Accepted)] {
        let mut decoder = Decoder::new(Limits { window_bytes, ..Limits::default() }, Backend::best());
        for times in 1..=2 {
            let received = decoder.receive(&sent[0]);
            let rejected = decoder.statistics().rejected;
            match expected {
                Received::Accepted if times == 2 => {
                    assert_eq!((received, rejected), (Received::Duplicate, 0))
                }
                Received::Accepted => assert_eq!((received, rejected), (expected, 0)),
                _ => assert_eq!((received, rejected), (expected, times)),
            }
        }
        assert_eq!(matches!(decoder.next(), Some(Event::Packet { seq: 0, .. })), window_bytes == bytes);
    }
}

/// The same at the sender.
#[test]
fn streams_of_larger_windows_are_not_sent() {
    let mut settings = settings(Profile::Bounded, 1000, 100);
    let parameters = settings.parameters().unwrap();
    let bytes = 1000 * parameters.symbol_len() as u64;
    settings.limit = bytes;
    assert_eq!(settings.parameters(), Ok(parameters));
    settings.limit = bytes - 1;
    assert_eq!(settings.parameters(), Err(SettingsError::Memory { bytes, limit: bytes - 1 }));
}

/// A flush protects unprotected packets, and does nothing if there are none.
#[test]
fn a_flush_with_nothing_to_protect_sends_nothing() {
    for profile in Profile::ALL {
        let mut encoder = Encoder::new(&settings(profile, 960, 64), Backend::best()).unwrap();
        let flushed = |encoder: &mut Encoder| {
            let (is_uncovered, mut count) = (encoder.is_uncovered(), 0);
            encoder.flush(&mut |_: &[u8]| count += 1);
            assert_eq!(is_uncovered, count > 0, "{profile:?}: {count} packets");
            count
        };
        assert_eq!(flushed(&mut encoder), 0, "{profile:?}: nothing was sent");
        for seq in 0..3 {
            encoder.push(&payload(seq, 64), &mut |_: &[u8]| {}).unwrap();
        }
        assert!(flushed(&mut encoder) > 0, "{profile:?}");
        assert_eq!(flushed(&mut encoder), 0, "{profile:?}: it was flushed just before");
    }
}

/// If windows do not slide, rows of complete blocks protect nothing of the last one.
#[test]
fn packets_are_uncovered_until_a_row_covers_them() {
    for profile in Profile::ALL {
        let mut encoder = Encoder::new(&settings(profile, 960, 64), Backend::best()).unwrap();
        let slides = matches!(profile, Profile::Bounded | Profile::Classic);
        let mut rows = 0;
        for seq in 0..2000 {
            let mut repairs = 0;
            let mut count = |packet: &[u8]| repairs += usize::from(packet[5] != 0);
            encoder.push(&payload(seq, 64), &mut count).unwrap();
            assert_eq!(encoder.is_uncovered(), !(slides && repairs > 0), "{profile:?} {seq}");
            rows += repairs;
        }
        assert!(rows > 100, "{profile:?}: {rows}");
    }
}

/// There are places for the window, two blocks of late rows and a line of states. If nobody asks, a packet more waits,
/// and the next one drops all that were not asked for.
#[test]
fn packets_wait_while_there_are_places() {
    let sent = packets(&settings(Profile::Bounded, 960, 64), Backend::best(), 3000);
    let places = 960 + 2 * 240 + 64;
    for (count, overrun) in [(places, 0), (places + 1, 0), (places + 2, places + 1)] {
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        for packet in sent.iter().filter(|packet| packet[5] == 0).take(count) {
            assert_eq!(decoder.receive(packet), Received::Accepted);
        }
        let mut output = Output::default();
        output.drain(&mut decoder, 64);
        assert!(output.delivered.iter().copied().eq(overrun as u64..count as u64), "{count}: {output:?}");
        assert_eq!(decoder.statistics().overrun, overrun as u64);
    }
}

/// Section 14.2: a row over a long window is added up from sixteen sums and 22 taps. Section 14.3: it is added up from
/// sums of eight lanes and an eighth of the packets. A tap may stand for three packets, which are one sum.
#[test]
fn what_rows_cost_is_counted() {
    let settings = settings(Profile::Bounded, 960, 64);
    let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
    let mut before = (0, 0);
    for seq in 0..3000 {
        encoder.push(&payload(seq, 64), &mut |_| {}).unwrap();
        let (rows, added) = (encoder.repaired() - before.0, encoder.added() - before.1);
        before = (encoder.repaired(), encoder.added());
        if seq > 1000 {
            assert!((38 * rows..=(16 + 3 * 22) * rows).contains(&added), "{added} for {rows} at {seq}");
        }
    }
    assert!(before.0 > 400);
}
