//! Where a receiver joins a stream, and whose packets it refuses.

use super::common::*;
use fec_core::format::packet::{self, Parameters, RowHeader};
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Decoder, Event, Limits, Order, Profile, Prospect, Received};

const MOST: u16 = 64;

fn parameters() -> Parameters {
    let parameters = settings(Profile::Bounded, 960, MOST).parameters().unwrap();
    assert_eq!(parameters.block, 240);
    parameters
}

fn source(parameters: &Parameters, seq: u64) -> Vec<u8> {
    let (mut out, bytes) = (Vec::new(), payload(seq, MOST));
    let sum = packet::payload_checksum(parameters.stream_id, seq, &bytes);
    packet::write_source(&mut out, parameters, seq, &bytes, sum);
    out
}

/// A repair packet over `count` packets from `first` on; its content does not matter here.
fn repair(parameters: &Parameters, first: u64, count: u32) -> Vec<u8> {
    row(parameters, 0, first, count)
}

/// The same with the number of its row.
fn row(parameters: &Parameters, row: u64, first: u64, count: u32) -> Vec<u8> {
    let mut out = Vec::new();
    packet::write_repair(&mut out, parameters, &RowHeader { row, first, count, part: 0 }, &[7; 70]);
    out
}

/// Number of packets, from 0 on, that a receiver of this packet alone names as lost when it stops waiting.
fn named(packet: &[u8]) -> u64 {
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(packet);
    decoder.give_up_before(u64::MAX);
    let mut named = 0;
    while let Some(event) = decoder.next() {
        if let Event::Gap { first, count } = event {
            assert_eq!(first, named, "gaps follow each other");
            named += count;
        }
    }
    named
}

/// A receiver whose first packet is of the first block has missed the stream's beginning, and names what went before. A
/// later one has joined the stream, and names nothing.
#[test]
fn whoever_joins_after_the_first_block_misses_nothing() {
    let parameters = parameters();
    for (seq, missed) in [(0, 0), (1, 1), (239, 239), (240, 0), (241, 0), (5000, 0)] {
        assert_eq!(named(&source(&parameters, seq)), missed, "packet {seq}");
    }
    for (sent, missed) in [(1, 1), (240, 240), (241, 0), (5000, 0)] {
        assert_eq!(named(&packet::mark(&parameters, sent, false)), missed, "a mark of {sent}");
    }
    for (first, count, missed) in [(0, 100, 100), (0, 240, 240), (0, 241, 0), (240, 100, 0)] {
        assert_eq!(named(&repair(&parameters, first, count)), missed, "a row over {count} from {first} on");
    }
}

/// Packets of another stream, and of this one with other parameters, are told apart and counted together.
#[test]
fn strangers_are_counted() {
    let ours = parameters();
    let foreign = Parameters { stream_id: ours.stream_id ^ 1, ..ours };
    let mismatched = Parameters { window: 961, ..ours };
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    assert_eq!(decoder.receive(&source(&ours, 0)), Received::Accepted);
    for (nth, (parameters, expected)) in (1..).zip([
        (foreign, Received::Foreign),
        (mismatched, Received::Mismatch),
        (foreign, Received::Foreign),
    ]) {
        assert_eq!(decoder.receive(&source(&parameters, nth)), expected);
        assert_eq!(decoder.statistics().foreign, nth);
    }
    assert_eq!((decoder.statistics().received, decoder.statistics().rejected), (1, 0));
}

/// A packet that arrives after its rebuilding is overtaken, and only on its first arrival.
#[test]
fn packets_that_come_after_they_were_rebuilt_are_overtaken_once() {
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 480, MOST), Backend::best(), 1000);
        let is_late = |packet: &&Vec<u8>| [100, 300].iter().any(|&seq| **packet == source_of(&sent, seq));
        let late: Vec<&Vec<u8>> = sent.iter().filter(is_late).collect();
        assert_eq!(late.len(), 2);
        let mut decoder =
            Decoder::new(Limits { order: Order::Immediate, ..Limits::default() }, Backend::best());
        let mut output = Output::default();
        // Up to the point where both have been rebuilt, and neither is forgotten.
        let until = sent.iter().position(|packet| *packet == source_of(&sent, 500)).unwrap();
        for packet in sent[..until].iter().filter(|packet| !is_late(packet)) {
            decoder.receive(packet);
            output.drain(&mut decoder, MOST);
        }
        let rebuilt = decoder.statistics().rebuilt;
        for times in 1..=2u64 {
            for packet in &late {
                assert_eq!(decoder.receive(packet), Received::Duplicate, "{profile:?}");
            }
            let statistics = decoder.statistics();
            assert_eq!((statistics.rebuilt, statistics.duplicates), (rebuilt, 2 * times), "{profile:?}");
            assert_eq!(statistics.overtaken, 2, "{profile:?}");
        }
    }
}

/// The source packet with this number.
fn source_of(sent: &[Vec<u8>], wanted: u64) -> Vec<u8> {
    let is_it = |packet: &&Vec<u8>| matches!(packet::parse(packet).unwrap().1, packet::Body::Source { seq, .. } if seq == wanted);
    sent.iter().find(is_it).expect("it was sent").clone()
}

/// A packet from before the window that was never there is late each time it comes.
#[test]
fn packets_from_before_the_window_are_late() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&source(&parameters, 5000));
    for times in 1..=3 {
        assert_eq!(decoder.receive(&source(&parameters, 2000 + times)), Received::Late);
        assert_eq!((decoder.statistics().late, decoder.statistics().received), (times, 1));
    }
    // The same holds between there and the joining point.
    assert_eq!(decoder.receive(&source(&parameters, 4999)), Received::Late);
    assert_eq!(decoder.statistics().late, 4);
}

/// A receiver that joined cannot use rows over packets from before; each of them is counted, and once.
#[test]
fn rows_from_before_it_joined_are_unusable() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    for seq in [5000, 5002] {
        assert_eq!(decoder.receive(&source(&parameters, seq)), Received::Accepted);
    }
    for times in 1..=3 {
        let packet = row(&parameters, times, 4320, 960);
        assert_eq!(decoder.receive(&packet), Received::Unusable);
        assert_eq!(decoder.receive(&packet), Received::Duplicate);
        let statistics = decoder.statistics();
        assert_eq!(
            (statistics.repairs, statistics.unusable_repairs, statistics.useful_repairs),
            (times, times, 0)
        );
        assert_eq!(statistics.duplicates, times);
    }
}

/// A packet that comes again counts as a duplicate, of whatever kind it is.
#[test]
fn a_repair_packet_counts_once_however_often_it_comes() {
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 480, MOST), Backend::best(), 3000);
        let rows = sent.iter().filter(|packet| packet[5] == 1).count() as u64;
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        let mut output = Output::default();
        for packet in &sent {
            for _ in 0..3 {
                decoder.receive(packet);
            }
            output.drain(&mut decoder, MOST);
        }
        let statistics = decoder.statistics();
        assert_eq!((statistics.received, statistics.repairs), (3000, rows), "{profile:?}");
        assert_eq!(statistics.duplicates, 2 * (3000 + rows), "{profile:?}");
    }
}

/// A forged number of a row hides no row that is useful.
#[test]
fn a_row_from_far_beyond_makes_none_a_duplicate_that_is_useful() {
    let sent = packets(&settings(Profile::Bounded, 480, MOST), Backend::best(), 2000);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let mut output = Output::default();
    for (nth, packet) in sent.iter().enumerate() {
        if nth == 400 {
            decoder.receive(&row(decoder.parameters().cloned().as_ref().unwrap(), 1 << 62, 240, 48));
        }
        if packet[5] != 0 || nth % 50 != 7 {
            decoder.receive(packet);
        }
        output.drain(&mut decoder, MOST);
    }
    let statistics = decoder.statistics();
    assert!(statistics.rebuilt > 30 && output.lost() == 0, "{statistics:?}");
    assert!(statistics.useful_repairs > 30 && statistics.repairs >= statistics.useful_repairs);
}

/// No end can lie before a packet that has come.
#[test]
fn an_end_before_what_came_is_a_conflict() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&source(&parameters, 0));
    decoder.receive(&source(&parameters, 1));
    for times in 1..=4 {
        decoder.receive(&packet::mark(&parameters, 1, true));
        assert_eq!((decoder.statistics().conflicts, decoder.has_ended()), (times, false));
    }
    // An end behind it is believed when it comes again.
    for _ in 0..4 {
        decoder.receive(&packet::mark(&parameters, 2, true));
    }
    while decoder.next().is_some() {}
    assert_eq!((decoder.statistics().conflicts, decoder.has_ended()), (4, true));
}

/// A row that begins with the stream does not tell the length of the sender's window; a later one tells it to within a
/// block.
#[test]
fn rows_tell_how_long_the_window_is() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&source(&parameters, 0));
    for (first, count, window) in [(0, 100, 960), (0, 480, 960), (240, 360, 600), (240, 800, 960)] {
        decoder.receive(&repair(&parameters, first, count));
        assert_eq!(
            decoder.prospect().map(|prospect| prospect.window),
            Some(window),
            "{count} from {first} on"
        );
    }
}

/// Windows move by blocks, so the part that left the window between two consecutive rows tells how long each packet is
/// covered.
#[test]
fn rows_tell_for_how_long_they_cover_a_packet() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&source(&parameters, 0));
    let mut covered = |row, first, count| {
        let mut out = Vec::new();
        packet::write_repair(&mut out, &parameters, &RowHeader { row, first, count, part: 0 }, &[7; 70]);
        decoder.receive(&out);
        decoder.prospect().expect("a row came").covered
    };
    covered(0, 0, 800);
    assert_eq!(covered(1, 240, 561), 800 + 1 - 240);
    // The window stays in place, or a row is missing: nothing new is known.
    assert_eq!(covered(2, 240, 567), 800 + 1 - 240);
    assert_eq!(covered(4, 480, 500), 800 + 1 - 240);
    // The sender lets go of packets early, and not all at the same age: a block less is certain.
    assert_eq!(covered(5, 720, 300), 480 + 500 + 1 - 720 - 240);
}

/// A packet up to a window beyond the newest one is accepted, and from there on kept aside.
#[test]
fn a_window_beyond_the_newest_packet_is_ahead() {
    let parameters = parameters();
    for (seq, expected) in [(960, Received::Accepted), (961, Received::Ahead)] {
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        decoder.receive(&source(&parameters, 0));
        assert_eq!(decoder.receive(&source(&parameters, seq)), expected, "packet {seq}");
    }
}

/// A receiver that follows a stream behind its announced end was told a wrong end.
#[test]
fn a_jump_behind_an_end_takes_it_back() {
    let parameters = parameters();
    for (total, conflicts) in [(30_000, 0), (20_005, 1), (20, 1)] {
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        decoder.receive(&source(&parameters, 0));
        decoder.receive(&packet::mark(&parameters, total, true));
        let mut seq = 20_000;
        while decoder.statistics().jumps == 0 {
            assert_eq!(decoder.receive(&source(&parameters, seq)), Received::Ahead);
            seq += 1;
        }
        assert_eq!(
            decoder.statistics().conflicts,
            conflicts,
            "an end of {total}, packets 20,000 to {}",
            seq - 1
        );
    }
}

/// Rows that are still needed, and four that may have no new information, do not help with the next losses.
#[test]
fn rows_to_come_mend_what_is_not_lacking_yet() {
    let prospect = Prospect { window: 960, covered: 720, rows_per_packet: 0.5, lacking: 10, room: 1000 };
    assert_eq!(prospect.rows(100.0), 36.0);
    assert_eq!(prospect.rows(20.0), 0.0);
    // Each packet of the burst costs 1.5 rows: its own, and its half of a row that is lost with it.
    assert_eq!(prospect.burst(), ((720.0 * 0.5 - 14.0) / 1.5) as u64);
    assert_eq!(Prospect { room: 7, ..prospect }.burst(), 7);
}

/// A receiver that stops waiting names all that is missing up to the end, also where the end lies far beyond its last
/// packet.
#[test]
fn waiting_no_longer_leads_to_a_far_end() {
    let parameters = parameters();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&source(&parameters, 0));
    for _ in 0..2 {
        assert_eq!(decoder.receive(&packet::mark(&parameters, 5000, true)), Received::Ahead);
    }
    let mut output = Output::default();
    // A packet less: nothing is known of what follows.
    decoder.give_up_before(4999);
    output.drain(&mut decoder, MOST);
    assert_eq!((&output.delivered[..], &output.gaps[..], output.ended), (&[0][..], &[][..], false));
    decoder.give_up_before(5000);
    output.drain(&mut decoder, MOST);
    assert_eq!((&output.gaps[..], output.ended), (&[(1, 4999)][..], true));
    assert_eq!(decoder.statistics().lost, 4999);
}

/// Repair packets of a window that was given up are of no use.
#[test]
fn rows_of_windows_that_are_gone_are_redundant() {
    let parameters = settings(Profile::Blocks, 480, MOST).parameters().unwrap();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    for window in 0..4 {
        // A single packet of each window comes.
        decoder.receive(&source(&parameters, window * 480 + 100));
    }
    assert_eq!(decoder.receive(&repair(&parameters, 480, 480)), Received::Redundant);
    assert_eq!(decoder.receive(&repair(&parameters, 960, 480)), Received::Accepted);
    assert_eq!(decoder.receive(&repair(&parameters, 1440, 480)), Received::Accepted);
    assert_eq!((decoder.statistics().repairs, decoder.statistics().useful_repairs), (3, 2));
}
