//! The harm that lines and strangers do to packets. No wrong byte comes out: [`Output::drain`] compares each payload.

use super::common::{Output, packets, payload, receive, settings};
use fec_core::format::packet::{self, Body, HEADER, PacketError, Parameters, RowHeader};
use fec_core::gf256::kernel::{Backend, Walk};
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Event, Limits, Order, Profile, Ratio, Received, StreamSettings};

const MOST: u16 = 64;

fn slices(packets: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    packets.iter().map(|packet| &packet[..])
}

/// Sequence number of a source packet.
fn source_seq(packet: &[u8]) -> Option<u64> {
    match packet::parse(packet).unwrap().1 {
        Body::Source { seq, .. } => Some(seq),
        _ => None,
    }
}

#[test]
fn every_backend_and_walk_makes_the_same_packets() {
    for profile in Profile::ALL {
        let settings = settings(profile, 500, 133);
        let expected = packets(&settings, Backend::by_name("scalar").unwrap(), 1300);
        for backend in Backend::available() {
            for walk in Walk::ALL {
                let tuning = backend.tuning().changed(&format!("walk={}", walk.name())).unwrap();
                let backend = backend.with_tuning(tuning);
                assert!(packets(&settings, backend, 1300) == expected, "{profile:?} {backend:?}");
            }
        }
    }
}

#[test]
fn reordered_and_repeated() {
    for profile in Profile::ALL {
        let mut noise = SplitMix64::new(5);
        let sent = packets(&settings(profile, 960, MOST), Backend::best(), 6000);
        let mut line: Vec<(usize, &[u8])> = Vec::new();
        for (i, packet) in slices(&sent).enumerate() {
            if !noise.chance(0.04) {
                line.push((i + noise.index(17), packet));
            }
            if noise.chance(0.05) {
                line.push((i + noise.index(40), packet));
            }
        }
        line.sort_by_key(|(at, _)| *at);
        for order in [Order::InOrder, Order::Immediate] {
            let arrived = line.iter().map(|(_, packet)| *packet);
            let (output, decoder) = receive(arrived, Backend::best(), order, MOST);
            output.assert_complete(6000, order);
            assert_eq!(output.lost(), 0, "{profile:?} {order:?}");
            assert!(decoder.statistics().duplicates > 100);
            assert_eq!(decoder.statistics().conflicts, 0);
        }
    }
}

#[test]
fn damaged_packets_are_erasures() {
    for profile in Profile::ALL {
        let mut noise = SplitMix64::new(6);
        let mut sent = packets(&settings(profile, 960, MOST), Backend::best(), 4000);
        let mut hit = 0;
        for packet in &mut sent {
            if noise.chance(0.03) {
                hit += 1;
                match noise.index(4) {
                    0 => packet.truncate(noise.index(packet.len())),
                    1 => packet.extend([0; 3]),
                    _ => {
                        let at = noise.index(packet.len());
                        packet[at] ^= 1 << noise.index(8);
                    }
                }
            }
        }
        let (output, decoder) = receive(slices(&sent), Backend::best(), Order::InOrder, MOST);
        output.assert_complete(4000, Order::InOrder);
        assert_eq!(output.lost(), 0, "{profile:?}");
        let statistics = decoder.statistics();
        assert_eq!(statistics.damaged + statistics.rejected, hit);
    }
}

#[test]
fn an_outage_is_named_and_the_stream_goes_on() {
    let sent = packets(&settings(Profile::Bounded, 6000, 400), Backend::best(), 20_000);
    let first = sent.iter().position(|packet| source_seq(packet) == Some(5000)).unwrap();
    for outage in [2000, 5000, 9000] {
        let arrived = sent.iter().enumerate().filter(|(i, _)| !(first..first + outage).contains(i));
        let (output, _) = receive(arrived.map(|(_, p)| &p[..]), Backend::best(), Order::InOrder, 400);
        output.assert_complete(20_000, Order::InOrder);
        let lost: Vec<u64> = slices(&sent[first..first + outage]).filter_map(source_seq).collect();
        assert_eq!(output.gaps, [(5000, lost.len() as u64)], "outage of {outage}");
    }
}

/// After an outage beyond repair, all packets come out again within a window.
#[test]
fn later_packets_flow_within_one_window() {
    let window = 960;
    let sent = packets(&settings(Profile::Bounded, window, MOST), Backend::best(), 5000);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let mut output = Output::default();
    for packet in &sent {
        let seq = source_seq(packet);
        if seq.is_some_and(|seq| (1000..1400).contains(&seq)) {
            continue;
        }
        decoder.receive(packet);
        output.drain(&mut decoder, MOST);
        if seq.is_some_and(|seq| seq == 1400 + u64::from(window)) {
            assert_eq!(output.gaps, [(1000, 400)]);
            assert_eq!(output.delivered.last(), Some(&(1400 + u64::from(window))));
        }
    }
}

#[test]
fn joining_in_the_middle() {
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 960, MOST), Backend::best(), 6000);
        let from = sent.iter().position(|packet| source_seq(packet) == Some(2500)).unwrap();
        let mut noise = SplitMix64::new(8);
        let arrived = slices(&sent).enumerate().filter(|(i, _)| {
            // It has losses to repair from 5000 on, past the windows that reach back to before it joined.
            *i == from || (*i > from && (*i < 5000 || !noise.chance(0.03)))
        });
        let (output, decoder) = receive(arrived.map(|(_, p)| p), Backend::best(), Order::InOrder, MOST);
        assert!(output.delivered.iter().copied().eq(2500..6000), "{profile:?}");
        assert_eq!((output.lost(), output.ended), (0, true));
        assert!(decoder.statistics().rebuilt > 20);
    }
}

#[test]
fn strangers_are_ignored_until_unlocked() {
    let ours = packets(&settings(Profile::Bounded, 480, MOST), Backend::best(), 1000);
    let mut other = settings(Profile::Bounded, 480, MOST);
    other.stream_id ^= 1;
    let theirs = packets(&other, Backend::best(), 1000);
    let mut changed = settings(Profile::Bounded, 480, MOST);
    changed.window = 481;
    let mismatched = packets(&changed, Backend::best(), 10);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let mut output = Output::default();
    for (a, b) in ours.iter().zip(&theirs) {
        decoder.receive(a);
        assert_eq!(decoder.receive(b), Received::Foreign);
        assert_eq!(decoder.receive(&mismatched[0]), Received::Mismatch);
        output.drain(&mut decoder, MOST);
    }
    output.assert_complete(1000, Order::InOrder);
    decoder.unlock();
    assert_eq!(decoder.receive(&theirs[0]), Received::Accepted);
    assert_eq!(decoder.parameters().unwrap().stream_id, other.stream_id);
}

/// A valid packet that differs from the one that came first.
#[test]
fn conflicts_are_counted_and_the_first_wins() {
    let settings = settings(Profile::Bounded, 480, MOST);
    let parameters = settings.parameters().unwrap();
    let sent = packets(&settings, Backend::best(), 100);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&sent[0]);
    let mut forged = Vec::new();
    let sum = packet::payload_checksum(settings.stream_id, 0, b"other");
    packet::write_source(&mut forged, &parameters, 0, b"other", sum);
    for times in 1..=2 {
        assert_eq!(decoder.receive(&forged), Received::Conflict);
        assert_eq!(decoder.statistics().conflicts, times);
    }
    assert_eq!(decoder.receive(&sent[0]), Received::Duplicate);
    assert!(matches!(
        decoder.next(),
        Some(Event::Packet { seq: 0, payload: bytes, rebuilt: false }) if bytes == payload(0, MOST)
    ));
}

/// Repair packets with valid checksums and wrong symbols: packets rebuilt from them are not believed.
#[test]
fn wrong_rebuilds_become_gaps() {
    for profile in Profile::ALL {
        let settings = settings(profile, 480, MOST);
        let parameters = settings.parameters().unwrap();
        let mut sent = packets(&settings, Backend::best(), 3000);
        let mut forged = 0;
        for packet in &mut sent {
            let parsed = packet::parse(packet).unwrap().1;
            if let Body::Repair { row, first, count, part, symbol } = parsed
                && (row / 80).is_multiple_of(2)
            {
                let mut symbol = symbol.to_vec();
                symbol[9] ^= 0x40;
                packet::write_repair(packet, &parameters, &RowHeader { row, first, count, part }, &symbol);
                forged += 1;
            }
        }
        assert!(forged > 200);
        let mut noise = SplitMix64::new(9);
        let arrived = slices(&sent).filter(|_| !noise.chance(0.02));
        let (output, decoder) = receive(arrived, Backend::best(), Order::InOrder, MOST);
        output.assert_complete(3000, Order::InOrder);
        assert!(decoder.statistics().disbelieved > 0, "{profile:?}");
    }
}

/// The checksum covers neither the padding of a symbol nor bytes behind the length, so these are compared by
/// themselves.
#[test]
fn symbols_are_what_a_sender_makes_to_the_last_bit() {
    let (stream_id, seq, bytes) = (7, 11, b"payload");
    let mut symbol = packet::payload_checksum(stream_id, seq, bytes).to_le_bytes().to_vec();
    symbol.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    symbol.extend_from_slice(bytes);
    symbol.resize(40, 0);
    let open =
        |symbol: &[u8]| packet::open_symbol(stream_id, seq, symbol).map(|(payload, _)| payload.to_vec());
    assert_eq!(open(&symbol).as_deref(), Some(&bytes[..]));
    for bit in 0..8 * symbol.len() {
        let mut other = symbol.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(open(&other), None, "bit {bit}");
    }
    for len in 0..6 + bytes.len() {
        assert_eq!(open(&symbol[..len]), None, "{len} bytes");
    }
    assert!(packet::open_symbol(stream_id, seq + 1, &symbol).is_none());
}

/// A row may come late, as long as the newest row ends at most two blocks after it: beyond that it would take more work
/// than it is worth.
#[test]
fn rows_that_come_late_are_used_up_to_two_blocks() {
    let settings =
        StreamSettings { ratio: Ratio::new(1, 1).unwrap(), ..settings(Profile::Bounded, 2400, MOST) };
    let sent = packets(&settings, Backend::best(), 1400);
    let ends_at = |packet: &[u8], end: u64| match packet::parse(packet).unwrap().1 {
        Body::Repair { first, count, .. } => first + u64::from(count) == end,
        _ => false,
    };
    let row = |end: u64| slices(&sent).find(|packet| ends_at(packet, end)).expect("a row for each packet");
    let lost = [500, 501];
    for (newest, is_used) in [(600 + 2 * 240, true), (600 + 2 * 240 + 1, false)] {
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        let mut output = Output::default();
        for packet in slices(&sent).filter(|p| source_seq(p).is_some_and(|seq| !lost.contains(&seq))) {
            decoder.receive(packet);
        }
        assert_eq!(decoder.receive(row(newest)), Received::Accepted);
        let expected = if is_used { Received::Accepted } else { Received::Unusable };
        assert_eq!(decoder.receive(row(600)), expected, "{newest}");
        output.drain(&mut decoder, MOST);
        assert_eq!(output.delivered.len(), if is_used { 1400 } else { 500 }, "{newest}");
    }
}

/// More lost packets than there may be unknowns: the oldest is given up, with all that depends on it.
#[test]
fn equations_have_as_many_unknowns_as_they_may() {
    let settings = settings(Profile::Bounded, 1200, MOST);
    let sent = packets(&settings, Backend::best(), 3000);
    for (lost, is_mended) in [(8, true), (9, false)] {
        let limits = Limits { columns: 8, ..Limits::default() };
        let mut decoder = Decoder::new(limits, Backend::best());
        let mut output = Output::default();
        let burst = 1000..1000 + lost;
        for packet in slices(&sent).filter(|p| source_seq(p).is_none_or(|seq| !burst.contains(&seq))) {
            decoder.receive(packet);
            output.drain(&mut decoder, MOST);
            let room = decoder.prospect().map_or(8, |prospect| prospect.room);
            assert!(room <= 8, "{room}");
        }
        decoder.give_up_before(u64::MAX);
        output.drain(&mut decoder, MOST);
        output.assert_complete(3000, Order::InOrder);
        assert_eq!(output.lost() == 0, is_mended, "{lost} lost: {:?}", output.gaps);
        assert!(is_mended || output.gaps[0].0 == 1000);
    }
}

/// The packet with number `seq` of a stream.
fn source_packet(parameters: &Parameters, seq: u64) -> Vec<u8> {
    let (mut out, bytes) = (Vec::new(), payload(seq, MOST));
    let sum = packet::payload_checksum(parameters.stream_id, seq, &bytes);
    packet::write_source(&mut out, parameters, seq, &bytes, sum);
    out
}

/// A single packet far ahead that comes again and again is one witness, not sixteen.
#[test]
fn repeating_a_packet_far_ahead_moves_nothing() {
    let settings = settings(Profile::Bounded, 480, MOST);
    let parameters = settings.parameters().unwrap();
    let far = |seq: u64| source_packet(&parameters, seq);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    decoder.receive(&far(0));
    for nth in 0..100 {
        assert_eq!(decoder.receive(&far((1 << 40) + nth % 15)), Received::Ahead);
    }
    assert_eq!(decoder.statistics().jumps, 0);
    assert_eq!(decoder.receive(&far((1 << 40) + 15)), Received::Ahead);
    assert_eq!(decoder.statistics().jumps, 1, "sixteen different ones agree");
}

/// Section 15: numbers are below 2^63, and so is the end of a row's window.
#[test]
fn numbers_end_below_two_to_the_63() {
    const END: u64 = 1 << 63;
    let settings = StreamSettings { block: 64, ..settings(Profile::Bounded, 480, MOST) };
    let parameters = settings.parameters().unwrap();
    let source = |seq| {
        let mut out = Vec::new();
        packet::write_source(
            &mut out,
            &parameters,
            seq,
            b"x",
            packet::payload_checksum(settings.stream_id, seq, b"x"),
        );
        packet::parse(&out).map(|_| ())
    };
    assert_eq!(source(END - 1), Ok(()));
    assert!(matches!(source(END), Err(PacketError::Invalid(_))));
    let row = |count| {
        let mut out = Vec::new();
        let header = RowHeader { row: 0, first: END - 64, count, part: 0 };
        packet::write_repair(&mut out, &parameters, &header, &vec![0; parameters.symbol_len()]);
        packet::parse(&out).map(|_| ())
    };
    assert_eq!(row(63), Ok(()));
    assert!(matches!(row(64), Err(PacketError::Invalid(_))));
}

/// A packet far ahead moves nothing; sixteen that agree do.
#[test]
fn jumps_need_agreement() {
    let settings = settings(Profile::Bounded, 480, MOST);
    let parameters = settings.parameters().unwrap();
    let source = |seq: u64| source_packet(&parameters, seq);
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    let mut output = Output::default();
    for seq in 0..100 {
        decoder.receive(&source(seq));
        assert_eq!(decoder.receive(&source((1 << 40) + 7 * seq)), Received::Ahead);
        output.drain(&mut decoder, MOST);
    }
    assert_eq!(output.delivered.len(), 100);
    for seq in 0..16 {
        assert_eq!(decoder.receive(&source((1 << 50) + seq)), Received::Ahead);
        output.drain(&mut decoder, MOST);
    }
    assert_eq!(output.gaps, [(100, (1 << 50) - 100)]);
    assert_eq!(output.delivered.len(), 116);
    assert_eq!(decoder.statistics().jumps, 1);
}

/// A late packet from before a jump is late. It was once compared with a packet of an earlier window that had its
/// place. (Fuzzing found this.)
#[test]
fn what_was_before_a_jump_is_late_and_no_conflict() {
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 60, MOST), Backend::best(), 4000);
        let sources: Vec<&[u8]> = slices(&sent).filter(|packet| source_seq(packet).is_some()).collect();
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        let mut output = Output::default();
        let mut receive = |seqs: std::ops::Range<usize>, expected: Received| {
            for seq in seqs {
                assert_eq!(decoder.receive(sources[seq]), expected, "{profile:?}, packet {seq}");
                output.drain(&mut decoder, MOST);
            }
        };
        receive(0..1000, Received::Accepted);
        receive(3000..3016, Received::Ahead);
        receive(3016..3020, Received::Accepted);
        receive(2000..3000, Received::Late);
        receive(3020..3100, Received::Accepted);
        assert_eq!(decoder.statistics().conflicts, 0);
        assert_eq!(output.gaps, [(1000, 2000)]);
    }
}

/// Any bytes, and any mixture of streams, parameters, replays and forgeries: nothing panics, and no number is given out
/// twice.
#[test]
fn anything_at_all() {
    for seed in 0..60 {
        let mut noise = SplitMix64::new(seed);
        let mut pool: Vec<Vec<u8>> = Vec::new();
        for profile in Profile::ALL {
            let mut chosen = settings(profile, [1, 2, 7, 48, 500][noise.index(5)], MOST);
            chosen.block = [1, 3, 48, 240][noise.index(4)];
            pool.extend(packets(&chosen, Backend::best(), noise.index(900) as u64));
        }
        let first = noise.index(pool.len());
        let order = [Order::InOrder, Order::Immediate][noise.index(2)];
        let columns = [1, 5, 2048][noise.index(3)];
        let mut decoder = Decoder::new(Limits { order, columns, ..Limits::default() }, Backend::best());
        decoder.receive(&pool[first]);
        let parameters = *decoder.parameters().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..3000 {
            let mut bytes = pool[noise.index(pool.len())].clone();
            if noise.chance(0.3) {
                let number = [noise.index(2000) as u64, noise.next() >> noise.index(64)][noise.index(2)] >> 1;
                let symbol = vec![noise.next() as u8; parameters.symbol_len()];
                let (first, count) = (number - number % 240, noise.next() as u32 % 600);
                let row = RowHeader { row: number, first, count, part: noise.index(90) as u32 };
                match noise.index(3) {
                    0 => packet::write_repair(&mut bytes, &parameters, &row, &symbol),
                    1 => bytes = packet::mark(&parameters, number, noise.chance(0.1)).to_vec(),
                    _ => {
                        let body = payload(number, MOST);
                        let sum = packet::payload_checksum(parameters.stream_id, number, &body);
                        packet::write_source(&mut bytes, &parameters, number, &body, sum);
                    }
                }
            } else if noise.chance(0.2) {
                let (at, len) = (noise.index(bytes.len()), bytes.len());
                bytes[at] = noise.next() as u8;
                bytes.truncate(len - noise.index(2) * noise.index(len));
            }
            decoder.receive(&bytes);
            if noise.chance(0.02) {
                decoder.give_up_before(noise.index(2000) as u64);
            }
            while noise.chance(0.97)
                && let Some(event) = decoder.next()
            {
                match event {
                    Event::Packet { seq, .. } => assert!(seen.insert(seq), "{seq} twice"),
                    Event::Gap { first, count } => assert!(count > 0 && first < packet::MAX_SEQ),
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn packets_are_parsed_strictly() {
    let sent = packets(&settings(Profile::Bounded, 480, MOST), Backend::best(), 30);
    for packet in &sent {
        for len in 0..packet.len() {
            assert!(packet::parse(&packet[..len]).is_err());
        }
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x10;
            assert!(packet::parse(&changed).is_err(), "byte {at}");
        }
    }
    let patched = |at: usize, value: u8| {
        let mut changed = sent[0].clone();
        changed[at] = value;
        packet::parse(&changed).map(|_| ()).unwrap_err()
    };
    assert_eq!(patched(0, 0), PacketError::Magic);
    assert_eq!(patched(4, 2), PacketError::Version(2));
    assert_eq!(patched(5, 3), PacketError::Type(3));
    assert_eq!(patched(6, 1), PacketError::Authentication(1));
    assert_eq!(patched(HEADER + 7, 0xAA), PacketError::Damaged);
}
