//! The end of a stream: announcements by marks, and contradictions.

use super::common::*;
use fec_core::format::packet;
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::{Decoder, Encoder, Event, Limits, Order, Profile, PushError, Received};

/// The source packets of a stream, and its parameters.
fn sources() -> (Vec<Vec<u8>>, packet::Parameters) {
    let packets = packets(&settings(Profile::Bounded, 1000, 100), Backend::best(), 100);
    let parameters = packet::parse(&packets[0]).unwrap().0;
    (packets.into_iter().filter(|packet| packet[5] == 0).collect(), parameters)
}

/// Hands packets to the decoder.
fn take(decoder: &mut Decoder, packets: &[impl AsRef<[u8]>]) {
    for packet in packets {
        decoder.receive(packet.as_ref());
    }
}

/// Takes all events. Returns the number of packets, and whether the end came.
fn drained(decoder: &mut Decoder) -> (u64, bool) {
    let (mut packets, mut ended) = (0, false);
    while let Some(event) = decoder.next() {
        match event {
            Event::Packet { .. } => packets += 1,
            Event::Gap { first, count } => panic!("{count} packets from {first} on are named as lost"),
            Event::End => ended = true,
        }
    }
    (packets, ended)
}

#[test]
fn one_mark_is_no_end_and_two_are() {
    let (sources, parameters) = sources();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    take(&mut decoder, &sources);
    let end = packet::mark(&parameters, 100, true);
    assert_eq!(drained(&mut decoder), (100, false));
    assert_eq!(decoder.receive(&end), Received::Accepted);
    assert_eq!((drained(&mut decoder), decoder.has_ended()), ((0, false), false));
    decoder.receive(&end);
    assert_eq!((drained(&mut decoder), decoder.has_ended()), ((0, true), true));
    assert_eq!(decoder.statistics().conflicts, 0);
    // A single mark is enough if nothing more can come.
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    take(&mut decoder, &sources);
    decoder.receive(&end);
    decoder.give_up_before(u64::MAX);
    assert_eq!((drained(&mut decoder), decoder.has_ended()), ((100, true), true));
}

/// A caller that waits for the rest must know that there is an end.
#[test]
fn an_end_is_told_before_everything_is_there() {
    let (sources, parameters) = sources();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    assert!(!decoder.is_told_end());
    take(&mut decoder, &sources[..50]);
    assert!(!decoder.is_told_end());
    let end = packet::mark(&parameters, 100, true);
    take(&mut decoder, &[&end, &end]);
    assert_eq!(
        (drained(&mut decoder), decoder.has_ended(), decoder.is_told_end()),
        ((50, false), false, true)
    );
}

/// A packet that comes after it was named as lost is late, each time.
#[test]
fn packets_that_come_after_they_were_given_up_are_late() {
    let (sources, _) = sources();
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    take(&mut decoder, &sources[2..]);
    decoder.give_up_before(2);
    assert!(matches!(decoder.next(), Some(Event::Gap { first: 0, count: 2 })));
    assert_eq!(drained(&mut decoder), (98, false));
    for late in 1..=2 {
        assert_eq!(decoder.receive(&sources[late as usize - 1]), Received::Late);
        assert_eq!((decoder.statistics().late, decoder.statistics().lost), (late, 2));
    }
}

#[test]
fn a_payload_that_is_too_long_is_not_sent() {
    let settings = settings(Profile::Bounded, 1000, 100);
    let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
    let most = encoder.parameters().payload;
    let mut emitted = 0;
    encoder.push(&vec![1; most.into()], &mut |_| emitted += 1).unwrap();
    let len = usize::from(most) + 1;
    let refused = encoder.push(&vec![1; len], &mut |_| unreachable!("nothing is emitted"));
    assert_eq!(refused, Err(PushError::TooLong { len, most }));
    encoder.push(b"", &mut |_| emitted += 1).unwrap();
    assert_eq!((encoder.sent(), emitted >= 2), (2, true));
}

/// Packets behind an announced end come out, whatever the mark says, and the contradiction is counted.
#[test]
fn packets_behind_an_end_take_it_back() {
    let (sources, parameters) = sources();
    for told in [10, 50, 60, 99] {
        for times in [1, 2, 5] {
            let mut decoder = Decoder::new(Limits::default(), Backend::best());
            take(&mut decoder, &sources[..50]);
            take(&mut decoder, &vec![packet::mark(&parameters, told, true); times]);
            assert_eq!(drained(&mut decoder), (50, told == 50 && times > 1), "{told}, {times}");
            let mut delivered = 50;
            for packet in &sources[50..] {
                decoder.receive(packet);
                delivered += drained(&mut decoder).0;
            }
            assert_eq!(delivered, 100, "{told}, {times}");
            assert!(!decoder.has_ended() && decoder.statistics().conflicts > 0, "{told}, {times}");
            take(&mut decoder, &[packet::mark(&parameters, 100, true); 2]);
            assert_eq!((drained(&mut decoder), decoder.has_ended()), ((0, true), true));
        }
    }
}

/// The end that is announced twice is believed, and not the other.
#[test]
fn a_stray_end_does_not_take_the_place_of_the_true_one() {
    let (sources, parameters) = sources();
    for stray in [0, 99, 101, 1000, 1 << 40] {
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        take(&mut decoder, &sources);
        let mut ended = false;
        for told in [stray, 100, 100, 100] {
            decoder.receive(&packet::mark(&parameters, told, true));
            ended |= drained(&mut decoder).1;
        }
        assert!(ended && decoder.has_ended() && decoder.statistics().conflicts > 0, "{stray}");
    }
}

/// Tells whether a stream is whole whose packets come in this order, and then no more; the number of payloads that came
/// out; and where it begins.
fn said_of<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>, most: u16) -> (bool, usize, Option<u64>) {
    let packets = packets.into_iter().map(Vec::as_slice);
    let (output, decoder) = receive(packets, Backend::best(), Order::InOrder, most);
    let begins_at = decoder.begins_at();
    assert!(output.delivered.first().is_none_or(|first| Some(*first) >= begins_at));
    let is_whole = output.ended && begins_at == Some(0) && output.gaps.is_empty();
    (is_whole && decoder.statistics().conflicts == 0, output.delivered.len(), begins_at)
}

/// Marks in front of all packets tell the sender's progress. They cut no packet that follows.
#[test]
fn marks_in_front_cut_nothing() {
    for profile in Profile::ALL {
        for count in [1, 240, 241, 700, 3000] {
            let sent = packets(&settings(profile, 960, 100), Backend::best(), count);
            let (marks, others): (Vec<_>, Vec<_>) = sent.iter().partition(|packet| packet[5] == 2);
            for times in 1..=3 {
                let order = marks.iter().take(times).chain(&others).copied();
                assert_eq!(
                    said_of(order, 100),
                    (true, count as usize, Some(0)),
                    "{profile:?}, {count}, {times}"
                );
            }
        }
    }
}

/// A stream is whole only if it begins at packet 0 and reaches the end, wherever it is cut and however its parts are
/// ordered.
#[test]
fn a_stream_is_whole_when_everything_came_out_and_only_then() {
    const COUNT: usize = 420;
    for profile in Profile::ALL {
        let sent = packets(&settings(profile, 480, 64), Backend::best(), COUNT as u64);
        let mut seen = [0; 2];
        let mut look = |packets: &[&Vec<u8>], what: &str| {
            let (is_whole, delivered, begins_at) = said_of(packets.iter().copied(), 64);
            assert!(!is_whole || delivered == COUNT, "{profile:?}: {delivered} of {COUNT} are whole: {what}");
            seen[usize::from(is_whole)] += 1;
            (is_whole, begins_at)
        };
        let all: Vec<&Vec<u8>> = sent.iter().collect();
        for cut in 0..all.len() {
            let (is_whole, begins_at) = look(&all[cut..], &format!("cut before {cut}"));
            assert!(is_whole || cut > 0 && begins_at.is_some());
            look(&all[..cut], &format!("cut behind {cut}"));
            look(&[&all[cut..], &all[..cut]].concat(), &format!("turned by {cut}"));
            let backwards: Vec<_> = all[cut..].iter().rev().copied().collect();
            look(&backwards, &format!("backwards from {cut}"));
        }
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            // Pieces come in any order, and some are missing.
            let mut pieces: Vec<&[&Vec<u8>]> = all.chunks(1 + random.index(200)).collect();
            for at in 0..pieces.len() {
                pieces.swap(at, random.index(at + 1));
            }
            pieces.truncate(1 + random.index(2 * pieces.len()));
            look(&pieces.concat(), &format!("in pieces, seed {seed}"));
        }
        assert!(seen[0] > 500 && seen[1] > 20, "{seen:?}");
    }
}

/// Only the marks of an end are left: the end is known, and no packet in front of it came.
#[test]
fn an_end_alone_is_not_whole() {
    let (_, parameters) = sources();
    for total in [0, 1, 240, 241, 1 << 40, (1 << 63) - 1] {
        let marks = vec![packet::mark(&parameters, total, true); 3];
        let mut decoder = Decoder::new(Limits::default(), Backend::best());
        take(&mut decoder, &marks);
        let tells = total <= 240;
        assert_eq!(decoder.begins_at(), tells.then_some(0), "{total}");
        assert!(decoder.is_told_end() && !decoder.has_ended());
        decoder.give_up_before(u64::MAX - 1);
        assert!(tells || decoder.next().is_none(), "{total}: whoever joined late misses nothing");
        decoder.give_up_before(u64::MAX);
        let mut lost = 0;
        while let Some(event) = decoder.next() {
            lost += if let Event::Gap { count, .. } = event { count } else { 0 };
        }
        assert_eq!(lost, if tells { total } else { 0 });
        assert!(decoder.has_ended());
        assert_eq!(decoder.begins_at(), Some(if tells { 0 } else { total }), "{total}");
    }
    // A mark that is no end leaves the beginning open, and a packet then tells it.
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    take(&mut decoder, &[packet::mark(&parameters, 5000, false)]);
    decoder.give_up_before(u64::MAX);
    assert_eq!((decoder.begins_at(), decoder.has_ended(), decoder.next()), (None, false, None));
    let (sources, _) = self::sources();
    take(&mut decoder, &sources);
    assert_eq!((decoder.begins_at(), drained(&mut decoder)), (Some(0), (100, false)));
}
