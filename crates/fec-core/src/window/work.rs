//! The cost of packets that a sender made to cost much, in bytes added up: never times.
//!
//! [`Decoder`](super::Decoder) states the bounds.

use super::{Decoder, Limits, Profile, Received};
use crate::format::packet::{self, Parameters, RowHeader, payload_checksum};
use crate::gf256::kernel::{Backend, work};

/// The largest window, in the smallest blocks: its parts are the most.
const WINDOW: u32 = 65_536;

fn parameters(profile: Profile, block: u16) -> Parameters {
    Parameters { profile, stream_id: 7, window: WINDOW, payload: 500, block }
}

fn repair(parameters: &Parameters, row: u64, first: u64, count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    packet::write_repair(&mut out, parameters, &RowHeader { row, first, count, part: 0 }, &[1; 6]);
    out
}

fn source(parameters: &Parameters, seq: u64) -> Vec<u8> {
    let (mut out, payload) = (Vec::new(), [seq as u8; 500]);
    let sum = payload_checksum(parameters.stream_id, seq, &payload);
    packet::write_source(&mut out, parameters, seq, &payload, sum);
    out
}

/// Bytes that one call adds up.
fn cost(decoder: &mut Decoder, packet: &[u8]) -> (Received, usize) {
    work::take();
    let received = decoder.receive(packet);
    while decoder.next().is_some() {}
    (received, work::take())
}

/// Each packet leads further over packets that never come, and covers them all. It does not cost a walk over the sums
/// of each block.
#[test]
fn a_window_of_which_nothing_came_costs_a_row() {
    for profile in [Profile::Bounded, Profile::Classic] {
        for columns in [2048, u16::MAX] {
            let parameters = parameters(profile, 48);
            let limits = Limits { columns, ..Limits::default() };
            let mut decoder = Decoder::new(limits, Backend::best());
            decoder.receive(&packet::mark(&parameters, 0, false));
            let step = u64::from(columns / 48 * 48);
            for row in 0..40 {
                let packet = repair(&parameters, row, row * step, step as u32);
                let (received, bytes) = cost(&mut decoder, &packet);
                assert_eq!(received, Received::Accepted, "the row is used");
                // The row's sums, no tap, and its equation.
                let most = 120 * parameters.symbol_len() + 2 * usize::from(columns);
                assert!(bytes < most, "{profile:?}, row {row}: {bytes} bytes");
            }
        }
    }
}

/// A packet of each block came, so each block has sums: these packets pay for the window's work on them.
#[test]
fn the_sums_of_a_block_are_paid_by_its_packets() {
    let parameters = parameters(Profile::Bounded, 48);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let step = u64::from(WINDOW) / 48 * 48;
    // Three sums of sixteen lanes, in whole lines.
    let sums = 48 * (parameters.symbol_len().next_multiple_of(64) + 64);
    let (mut packets, mut bytes) = (0, 0);
    for row in 0..4 {
        for seq in (row * step..(row + 1) * step).step_by(48) {
            packets += 1;
            bytes += cost(&mut decoder, &source(&parameters, seq)).1;
        }
        packets += 1;
        bytes += cost(&mut decoder, &repair(&parameters, row, row * step, step as u32)).1;
    }
    assert!(packets > 5000 && bytes < 6 * sums * packets, "{} bytes a packet", bytes / packets);
}

/// A late row is corrected by the columns that the sums have beyond it, a symbol for each packet.
#[test]
fn a_late_row_costs_no_more_symbols_than_there_may_be_columns() {
    const COLUMNS: u16 = 100;
    let parameters = parameters(Profile::Bounded, 4096);
    let limits = Limits { columns: COLUMNS, ..Limits::default() };
    let mut decoder = Decoder::new(limits, Backend::best());
    for seq in (0..12_000).filter(|seq| *seq != 5) {
        decoder.receive(&source(&parameters, seq));
    }
    assert_eq!(decoder.receive(&repair(&parameters, 9000, 0, 12_000)), Received::Accepted);
    let mut used = 0;
    for (row, end) in (1..).zip((4000..12_000).step_by(10)) {
        let (received, bytes) = cost(&mut decoder, &repair(&parameters, row, 0, end));
        used += usize::from(received != Received::Unusable);
        // The row's sums and taps, two equations, and the packets beyond.
        let symbols = 100 + 2 * 2 + usize::from(COLUMNS);
        assert!(
            bytes <= symbols * parameters.symbol_len().next_multiple_of(64),
            "up to {end}: {bytes} bytes"
        );
    }
    assert!((5..=11).contains(&used), "{used} of them were not too late");
}
