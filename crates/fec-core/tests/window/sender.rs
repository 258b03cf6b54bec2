//! The promises of the sender: when rows go out, how long they are, and what they cover.

use super::common::{Output, payload, settings};
use fec_core::format::packet::{self, Body};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Limits, Profile};

const MOST: u16 = 64;

#[test]
fn slow_streams_are_flushed() {
    for profile in Profile::ALL {
        let settings = settings(profile, 480, MOST);
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        let mut output = Output::default();
        let mut late = 0;
        for seq in 0..2000 {
            let mut line = Vec::new();
            encoder.push(&payload(seq, MOST), &mut |p: &[u8]| line.push(p.to_vec())).unwrap();
            if seq % 7 == 3 {
                line.remove(0);
            }
            if seq % 3 == 0 {
                encoder.flush(&mut |p: &[u8]| line.push(p.to_vec()));
                encoder.keep_alive(&mut |p: &[u8]| line.push(p.to_vec()));
            }
            for packet in &line {
                decoder.receive(packet);
            }
            output.drain(&mut decoder, MOST);
            if seq % 3 == 0 {
                // A row in 256 has no new information: the next one helps then.
                late += u32::from(output.delivered.len() as u64 + 3 <= seq);
                assert!(output.delivered.len() as u64 + 9 > seq, "{profile:?} {seq}");
            }
        }
        assert!(output.gaps.is_empty() && late < 10, "{profile:?}: {late}");
    }
}

/// An input that comes a little at a time: early rows are made up for, so the bytes of rows stay near the ratio.
#[test]
fn early_rows_count_against_the_ratio() {
    for profile in [Profile::Bounded, Profile::Classic, Profile::ClassicBlocks] {
        // Bytes of each payload, in turn.
        for lens in [&[64][..], &[20], &[64, 3, 5, 7, 1, 2], &[0]] {
            let settings = settings(profile, 480, MOST);
            let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
            let mut bytes = [0; 3];
            for (seq, &len) in lens.iter().cycle().take(3000).enumerate() {
                let mut count = |packet: &[u8]| bytes[usize::from(packet[5])] += packet.len();
                encoder.push(&vec![seq as u8; len], &mut count).unwrap();
                if encoder.ahead() < 2.0 {
                    encoder.flush(&mut count);
                }
            }
            let share = bytes[1] as f64 / bytes[0] as f64 * 6.0;
            let longest = lens.iter().max().unwrap();
            // Blocks get their rows by the packet, however lengths differ.
            if profile != Profile::ClassicBlocks || lens.len() == 1 && *longest > 20 {
                assert!(
                    share < if profile == Profile::ClassicBlocks { 1.26 } else { 1.14 },
                    "{profile:?} {lens:?}: {share}"
                );
            }
            assert!(share > 1.0, "{profile:?} {lens:?}: {share}");
        }
    }
}

/// A row is as long as the longest payload that it covers, and no shorter.
#[test]
fn rows_are_as_long_as_the_longest_payload() {
    for profile in Profile::ALL {
        let settings = settings(profile, 480, MOST);
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        let lens: Vec<usize> = (0..4000).map(|seq| if seq % 900 == 700 { 60 } else { seq % 9 }).collect();
        let (mut rows, mut short) = (0, 0);
        for (seq, &len) in lens.iter().enumerate() {
            let mut check = |packet: &[u8]| {
                if let Body::Repair { first, count, symbol, .. } = packet::parse(packet).unwrap().1 {
                    let longest = lens[first as usize..][..count as usize].iter().max().unwrap();
                    // The longest payload of a single set may be shorter.
                    assert!(
                        symbol.len() == 6 + longest
                            || profile == Profile::Blocks && symbol.len() <= 6 + longest
                    );
                    rows += 1;
                    short += u32::from(symbol.len() < 66);
                }
            };
            encoder.push(&vec![seq as u8; len], &mut check).unwrap();
            if seq % 50 == 0 {
                encoder.flush(&mut check);
            }
        }
        assert!(rows > 100 && short > rows / 10, "{profile:?}: {short} of {rows}");
    }
}

/// An acknowledgement shrinks the windows of later rows, in whole blocks, and never makes them wrong.
#[test]
fn acknowledged_packets_are_not_covered_any_more() {
    let settings = settings(Profile::Bounded, 960, MOST);
    let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let mut output = Output::default();
    let mut noise = SplitMix64::new(10);
    for seq in 0..4000 {
        let mut line = Vec::new();
        encoder.push(&payload(seq, MOST), &mut |p: &[u8]| line.push(p.to_vec())).unwrap();
        for packet in &line {
            if let Body::Repair { first, count, .. } = packet::parse(packet).unwrap().1 {
                assert!(first + u64::from(count) == seq + 1 && first + 480 > seq, "{first} at {seq}");
            }
            if !noise.chance(0.03) {
                decoder.receive(packet);
            }
        }
        output.drain(&mut decoder, MOST);
        encoder.acknowledge(decoder.pending().map_or(seq, |pending| pending.start));
        encoder.acknowledge(3);
    }
    assert!(output.gaps.is_empty() && output.rebuilt > 80);
}

/// Each packet is covered by a row before it is let go, however soon that is.
#[test]
fn what_is_let_go_was_covered() {
    for (latency, every) in [(1, 9), (40, 3), (300, 60)] {
        let settings =
            fec_core::window::StreamSettings { block: 48, ..settings(Profile::Bounded, 6000, MOST) };
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        let mut covered = 0;
        for seq in 0..3000u64 {
            let len = if seq % every == 0 { 64 } else { 1 };
            let mut check = |packet: &[u8]| {
                if let Body::Repair { first, count, .. } = packet::parse(packet).unwrap().1 {
                    assert!(first <= covered, "{covered} to {first} were never covered");
                    covered = first + u64::from(count);
                }
            };
            encoder.push(&vec![seq as u8; len], &mut check).unwrap();
            encoder.acknowledge(seq.saturating_sub(latency));
        }
        assert!(covered > 2900, "{covered}");
    }
}
