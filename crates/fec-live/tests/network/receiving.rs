//! The end of streams, their beginning, what is given up, and who is told.

use crate::{MS, address, bytes, kind, packets_of, play, receiving, send_to, small};
use fec_base::error::Class;
use fec_keys::cipher::Cipher;
use fec_live::key::StreamKey;
use fec_live::receive::{Deadline, GapPolicy, MAX_AGE, Opening, ReceiveOptions};
use fec_live::send::{Sealing, SendOptions};
use fec_live::udp::{Interface, PacketReceiver};
use fec_live::{Chunk, LiveError, Received};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

/// Neither silence nor a first packet that does not come ends it.
fn patient() -> ReceiveOptions {
    ReceiveOptions { idle: Some(30 * SECOND), wait: Some(30 * SECOND), ..ReceiveOptions::default() }
}

/// The stream that was announced to be over is not waited for longer, and every count adds up.
#[test]
fn a_stream_arrives_whole_and_ends_soon_after_its_end() {
    let payload = bytes(200_000);
    let (mut sent, mut begun) = (None, Instant::now());
    let (received, out, told) = receiving(&patient(), |to, _| {
        sent = Some(send_to(to, &payload, &SendOptions { mbps: Some(20.0), ..small() }));
        begun = Instant::now();
    });
    let (received, sent) = (received.expect("it comes"), sent.expect("it was sent"));
    assert!(begun.elapsed() < 5 * SECOND, "{:?} after the end", begun.elapsed());
    assert!(out == payload && received.is_whole() && received.class().is_none());
    assert_eq!((received.packets, received.payload_bytes, received.rebuilt), (2000, 200_000, 0));
    assert_eq!((received.joined_at, received.ended, received.lost), (Some(0), true, 0));
    assert_eq!((received.parameters, received.kernel_drops), (Some(sent.parameters), Some(0)));
    assert_eq!((received.foreign, received.damaged, received.statistics.received), (0, 0, 2000));
    assert!(received.time >= 50 * MS && received.time < 10 * SECOND, "{:?}", received.time);
    assert!(told.so_far.is_empty() && told.over.is_empty() && told.not_accepted.is_empty());
}

/// Progress is told again and again while a stream runs, with the counts of then.
#[test]
fn progress_is_told_as_often_as_asked() {
    let payload = bytes(60_000);
    let options = ReceiveOptions { tell_every: Some(50 * MS), ..patient() };
    let (received, out, told) = receiving(&options, |to, _| {
        let _ = send_to(to, &payload, &SendOptions { mbps: Some(2.0), ..small() });
    });
    let received = received.expect("it comes");
    assert!(out == payload && received.is_whole());
    assert!(told.so_far.len() >= 3 && told.so_far.len() as u128 <= received.time.as_millis() / 50);
    assert!(told.so_far.is_sorted_by_key(|so_far| (so_far.packets, so_far.time)));
    let first = told.so_far.iter().find(|so_far| so_far.packets > 0).expect("a quarter of a second is long");
    assert!(first.packets < received.packets && !first.ended && first.time >= 50 * MS, "{first:?}");
    assert_eq!((first.joined_at, first.parameters), (Some(0), received.parameters));
}

/// Silence ends a stream whose end does not come; the rest is not waited for, and nothing is called whole.
#[test]
fn silence_ends_a_stream_without_an_end() {
    let payload = bytes(20_000);
    let packets = packets_of(&payload, &small());
    let options = ReceiveOptions { idle: Some(600 * MS), ..patient() };
    let begun = Instant::now();
    let (received, out, _) =
        receiving(&options, |to, _| play(packets.iter().filter(|packet| kind(packet) == 0), to));
    let received = received.expect("it comes");
    assert!(begun.elapsed() >= 600 * MS && begun.elapsed() < 10 * SECOND);
    assert!(out == payload && !received.ended && !received.is_whole());
    assert_eq!(received.class(), Some(Class::Lost));
}

/// A first packet is waited for as long as asked, and its absence is an error.
#[test]
fn nothing_is_an_error_after_the_wait() {
    let options = ReceiveOptions { wait: Some(150 * MS), ..patient() };
    let begun = Instant::now();
    let (received, out, _) = receiving(&options, |_, _| {});
    let error = received.expect_err("nothing came");
    assert!(begun.elapsed() >= 150 * MS && begun.elapsed() < 5 * SECOND);
    assert!(matches!(error.cause(), Some(LiveError::NothingCame { foreign: 0, damaged: 0 })), "{error}");
    assert!(out.is_empty() && error.class() == Class::Lost);
}

/// A receiver that is stopped gives out what came, and names what did not.
#[test]
fn a_stop_is_as_good_as_an_end() {
    let payload = bytes(20_000);
    let packets = packets_of(&payload, &small());
    let options = ReceiveOptions { tell_every: Some(20 * MS), ..patient() };
    let (received, out, _) = receiving(&options, |to, control| {
        let sources: Vec<_> = packets.iter().filter(|packet| kind(packet) == 0).collect();
        play(sources.iter().take(50).chain(sources.iter().skip(60)).copied(), to);
        control.until_arrived(190);
        control.stop();
    });
    let received = received.expect("it was stopped");
    assert_eq!((received.packets, received.lost, received.ended), (190, 10, false));
    assert_eq!((received.gaps[0].first, received.gaps[0].count, received.gap_count), (50, 10, 1));
    assert!(out == [&payload[..5000], &payload[6000..]].concat());
}

/// A late receiver gets all packets from then on. The beginning is no gap, even where gaps are refused, and the stream
/// is not whole.
#[test]
fn late_receivers_get_the_rest() {
    let payload = bytes(300_000);
    let packets = packets_of(&payload, &small());
    let options = ReceiveOptions { gaps: GapPolicy::Fail, ..patient() };
    let (received, out, _) = receiving(&options, |to, _| play(&packets[2400..], to));
    let received = received.expect("late joining is normal");
    let joined = received.joined_at.expect("it is told") as usize;
    assert!((1800..2400).contains(&joined), "{joined}");
    assert!(out == payload[100 * joined..] && received.ended && received.gap_count == 0);
    assert_eq!(received.class(), Some(Class::Lost));
}

/// Lost packets are given up in time, while the stream goes on: a viewer does not wait for the end.
#[test]
fn lost_packets_are_given_up_at_their_deadline() {
    let payload = bytes(40_000);
    let sources: Vec<_> =
        packets_of(&payload, &small()).into_iter().filter(|packet| kind(packet) == 0).collect();
    let deadline = Some(Deadline { after: 100 * MS, packets: 20 });
    let look = |options: ReceiveOptions, later: usize, gives_up: bool| {
        let options = ReceiveOptions { tell_every: Some(20 * MS), ..options };
        let (received, _, told) = receiving(&options, |to, control| {
            play(&sources[..50], to);
            control.until_arrived(50);
            // The first packet behind the gap, and then the others.
            play(&sources[60..61], to);
            control.until_arrived(51);
            play(&sources[61..60 + later], to);
            control.until_arrived(50 + later);
            match gives_up {
                true => control.until(|told| told.so_far.last().is_some_and(|so_far| so_far.lost > 0)),
                false => std::thread::sleep(300 * MS),
            }
            control.stop();
        });
        let received = received.expect("it came");
        let before = told.so_far.last().expect("progress was told");
        let what = format!("{:?}, {:?}, {later}", options.deadline, options.deadline_packets);
        assert_eq!(before.lost, if gives_up { 10 } else { 0 }, "{what}");
        assert_eq!(before.packets, if gives_up { 50 + later as u64 } else { 50 }, "{what}");
        assert_eq!((received.lost, received.packets), (10, 50 + later as u64), "{what}");
    };
    let look = &look;
    std::thread::scope(|scope| {
        scope.spawn(|| look(ReceiveOptions { deadline, ..patient() }, 40, true));
        scope.spawn(|| look(ReceiveOptions { deadline, ..patient() }, 12, false));
        scope.spawn(|| look(ReceiveOptions { deadline_packets: Some(30), ..patient() }, 40, true));
        scope.spawn(|| look(ReceiveOptions { deadline_packets: Some(50), ..patient() }, 40, false));
        scope.spawn(|| look(patient(), 40, false));
    });
}

/// Packets of other streams do no harm to the one that was chosen, and are counted.
#[test]
fn a_chosen_stream_is_received_among_others() {
    let (payload, other) = (bytes(20_000), bytes(5000));
    let [one, two] = [(1, &payload), (2, &other)]
        .map(|(id, payload)| packets_of(payload, &SendOptions { stream_id: Some(id), ..small() }));
    let choose = |stream_id: u64, expected: &Vec<u8>| {
        let options = ReceiveOptions { stream_id: Some(stream_id), ..patient() };
        let (received, out, _) = receiving(&options, |to, _| {
            let longest = one.len().max(two.len());
            (0..longest).for_each(|at| play(one.get(at).into_iter().chain(two.get(at)), to));
        });
        let received = received.expect("it comes");
        assert!(out == *expected && received.is_whole(), "{stream_id}: {received:?}");
        assert!(received.foreign >= 40, "{stream_id}: {}", received.foreign);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| choose(1, &payload));
        scope.spawn(|| choose(2, &other));
    });
}

/// A stream follows the other: each is told when it is over, and late packets of the first begin nothing anew.
#[test]
fn streams_are_followed_one_after_the_other() {
    let payloads = [bytes(20_000), bytes(5000), bytes(3000)];
    let options = ReceiveOptions { follow: true, ..patient() };
    let [one, two, three] = payloads.clone().map(|payload| packets_of(&payload, &small()));
    let (received, out, told) = receiving(&options, |to, control| {
        play(&one, to);
        control.until(|told| told.over.len() == 1);
        play(&one[..30], to);
        play(&two[..20], to);
        play(&one[..10], to);
        play(&two[20..], to);
        // The third takes the place of the second, which has ended, before its end was silent for long.
        play(&three, to);
        control.until(|told| told.over.len() == 3);
        control.stop();
    });
    let received = received.expect("they come");
    assert!(out == payloads.concat(), "{} bytes", out.len());
    assert_eq!(told.over.len(), 3, "{:?}", told.over);
    assert!(told.over.iter().all(|over| over.is_whole()), "{:?}", told.over);
    assert_eq!(packets(&told.over), [200, 50, 30]);
    assert_eq!(told.over.iter().map(|over| over.after_end).collect::<Vec<_>>(), [0, 40, 0]);
    assert!(told.over.iter().all(|over| over.foreign == 0), "they belong to the next: {:?}", told.over);
    assert_eq!((received.streams_before, received.not_whole_before, received.class()), (3, 0, None));
}

/// Packets that came out of each.
fn packets(streams: &[Received]) -> Vec<u64> {
    streams.iter().map(|received| received.packets).collect()
}

/// A sender that begins anew without an end takes its own place, once the old stream has been silent for long enough.
#[test]
fn a_sender_that_begins_anew_is_followed() {
    let (payload, anew) = (bytes(10_000), bytes(5000));
    let [one, two] = [&payload, &anew].map(|payload| packets_of(payload, &small()));
    let options = ReceiveOptions { follow: true, wait: Some(300 * MS), ..patient() };
    let begun = Instant::now();
    let (received, out, told) = receiving(&options, |to, _| {
        play(one.iter().filter(|packet| kind(packet) == 0).take(80), to);
        play(&two, to);
    });
    let received = received.expect("they come");
    assert!(out == [&payload[..8000], &anew].concat());
    assert_eq!(packets(&told.over), [80, 50]);
    assert!(!told.over[0].ended && told.over[1].is_whole());
    assert_eq!((received.not_whole_before, received.class()), (1, Some(Class::Lost)));
    // A further stream is waited for as the first one is, and not as long as a silence.
    assert!(begun.elapsed() < 20 * SECOND, "{:?}", begun.elapsed());
}

/// Whoever has the key gets the stream. Others are told why nothing comes out, once, while it runs.
#[test]
fn sealed_streams_are_for_those_with_the_key() {
    let payload = bytes(20_000);
    let key = StreamKey::new([7; 32]);
    let sealing = || Some(Sealing { key: key.clone(), cipher: Cipher::best() });
    let open = |key: &StreamKey| Some(Opening { key: key.clone(), max_age: Some(MAX_AGE) });
    let options = ReceiveOptions { opening: open(&key), ..patient() };
    let (received, out, told) = receiving(&options, |to, _| {
        let sent = send_to(to, &payload, &SendOptions { sealing: sealing(), ..small() });
        assert_eq!(sent.cipher, Some(Cipher::best()));
    });
    assert!(received.expect("it opens").is_whole() && out == payload && told.not_accepted.is_empty());
    let wrong = StreamKey::new([8; 32]);
    let refuse = |opening, sealing: Option<Sealing>| {
        let is_sealed = sealing.is_some();
        let options = ReceiveOptions { opening, ..patient() };
        let (received, out, told) = receiving(&options, |to, control| {
            let _ = send_to(to, &payload, &SendOptions { sealing, ..small() });
            control.until(|told| !told.not_accepted.is_empty());
            control.stop();
        });
        let error = received.expect_err("it does not open");
        let Some(LiveError::NothingOpened { forged, unsealed }) = error.cause() else { panic!("{error}") };
        assert_eq!((*forged > 0, *unsealed > 0), (is_sealed, !is_sealed));
        assert_eq!(told.not_accepted, ["no packet that came is of this key"]);
        assert!(out.is_empty() && error.class() == Class::Untrue);
    };
    let refuse = &refuse;
    std::thread::scope(|scope| {
        scope.spawn(|| refuse(open(&wrong), sealing()));
        scope.spawn(|| refuse(open(&key), None));
    });
}

/// A receiver that cannot have its address says why.
#[test]
fn an_address_that_cannot_be_had_is_told() {
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let at = taken.local_addr().expect("its address");
    let open = |text: &str, name: Option<&str>| {
        let interface = Interface { name: name.map(str::to_owned), ..Interface::default() };
        PacketReceiver::open(&address(text), &interface).map(drop)
    };
    let error = open(&format!("udp://{at}"), None).expect_err("it is taken");
    assert!(matches!(error.cause(), Some(LiveError::AddressInUse(_))), "{error}");
    assert!(error.to_string().contains(&at.to_string()) && error.class() == Class::Io, "{error}");
    let error = open("udp://192.0.2.1:5000", None).expect_err("it is nobody's");
    assert!(matches!(error.cause(), Some(LiveError::NotLocal(_))), "{error}");
    let error = open("udp://127.0.0.1:0", Some("no-such-thing")).expect_err("there is none");
    assert!(matches!(error.cause(), Some(LiveError::Interface { name, .. }) if name == "no-such-thing"));
    // Any address is all of this machine's, of both kinds.
    let any = PacketReceiver::open(&address("udp://:0"), &Interface::default()).expect("it opens");
    let port = any.local_addr().expect("its address").port();
    for from in ["127.0.0.1", "::1"] {
        let Ok(outward) = UdpSocket::bind((from, 0)) else { continue };
        outward.send_to(b"packet", (from, port)).expect("it is sent");
        let mut chunk = Chunk::default();
        any.receive(&mut chunk, 5 * SECOND).expect("it comes");
        assert!(chunk.parts().eq([b"packet"]), "{from}");
    }
    assert_eq!(any.drops().count(), Some(0));
}
