//! How a stream ends: what marks say of it, and what speaks against them.

use super::common::*;
use fec_core::format::packet;
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, PushError, Received};

/// The source packets of a stream, and its parameters.
fn sources() -> (Vec<Vec<u8>>, packet::Parameters) {
    let packets = packets(&settings(Profile::Bounded, 1000, 100), Backend::best(), 100);
    let parameters = packet::parse(&packets[0]).unwrap().0;
    (packets.into_iter().filter(|packet| packet[5] == 0).collect(), parameters)
}

/// Gives the decoder packets.
fn take(decoder: &mut Decoder, packets: &[impl AsRef<[u8]>]) {
    for packet in packets {
        decoder.receive(packet.as_ref());
    }
}

/// Takes what is there; whether the end is.
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
    // When nothing more can come, one is enough.
    let mut decoder = Decoder::new(Limits::default(), Backend::best());
    take(&mut decoder, &sources);
    decoder.receive(&end);
    decoder.give_up_before(u64::MAX);
    assert_eq!((drained(&mut decoder), decoder.has_ended()), ((100, true), true));
}

/// Somebody who waits for the rest has to know that there is an end.
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

/// What was named as lost and comes after all is late, each time.
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

/// Whatever an end mark says, packets behind it come out, and somebody is told.
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

/// Of two ends the one that is told again is believed.
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
