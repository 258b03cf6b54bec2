//! The packets that go out: their pace, their timers, several ways, and what the network replies.

use crate::{
    MS, Timed, address, bytes, collected, kind, packets_of, receiving, send_over, send_to, small, way,
};
use fec_base::context::Silent;
use fec_base::error::Class;
use fec_core::format::packet::{Body, parse};
use fec_keys::cipher::Cipher;
use fec_live::LiveError;
use fec_live::key::StreamKey;
use fec_live::paths::Way;
use fec_live::receive::ReceiveOptions;
use fec_live::send::{NETWORK_PAYLOAD, Sealing, SendOptions, SendWatcher, payload_for};
use fec_live::udp::{Interface, MAX_DATAGRAM, Replies};
use std::io::{self, Cursor, Read};
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// An input that pauses before each of its pieces.
struct Pausing(Vec<(Duration, Vec<u8>)>);

impl Read for Pausing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let (pause, piece) = self.0.remove(0);
        std::thread::sleep(pause);
        out[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// An input whose next piece comes when it is released.
struct Released(Receiver<Vec<u8>>);

impl Read for Released {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let piece = self.0.recv().unwrap_or_default();
        out[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// The packets that a sender of these pieces puts on the network. The next piece is there once `is_next` says so of the
/// packets that came.
fn timed(
    pieces: Vec<Vec<u8>>,
    options: &SendOptions,
    is_next: impl Fn(&[Timed], usize) -> bool,
) -> Vec<Timed> {
    let (release, released) = channel();
    let mut pieces = pieces.into_iter().enumerate().peekable();
    let mut release = Some(release);
    let send = |to| {
        let _ = send_over(vec![way(to)], Released(released), options, &mut Silent).expect("it is sent");
    };
    collected(send, |came| {
        while let Some((nth, _)) = pieces.peek()
            && is_next(came, *nth)
        {
            let (_, piece) = pieces.next().expect("it is there");
            release.as_ref().expect("pieces are left").send(piece).expect("it is read");
        }
        if pieces.peek().is_none() {
            release = None;
        }
    })
}

fn sources(packets: &[Timed]) -> Vec<(Duration, Vec<u8>)> {
    let payload = |packet: &[u8]| match parse(packet) {
        Ok((_, Body::Source { payload, .. })) => Some(payload.to_vec()),
        _ => None,
    };
    packets.iter().filter_map(|(at, packet)| Some((*at, payload(packet)?))).collect()
}

/// Bytes wait for a full packet no longer than asked, and their repair comes soon: a talk has pauses.
#[test]
fn what_is_said_before_a_pause_goes_out_at_once() {
    let pieces = vec![bytes(250), bytes(30), bytes(20)];
    let is_repair = |(_, packet): &&Timed| kind(packet) == 1;
    let come = |came: &[Timed], nth: usize| {
        // Nothing more is said before all of it has come, with its repair.
        nth == 0 || sources(came).len() >= 3 && came.iter().any(|packet| is_repair(&packet))
    };
    let came = timed(pieces, &SendOptions { flush: 200 * MS, ..small() }, come);
    let sources = sources(&came);
    let lens: Vec<usize> = sources.iter().map(|(_, payload)| payload.len()).collect();
    assert_eq!((&lens[..3], lens[3..].iter().sum::<usize>()), (&[100, 100, 50][..], 50));
    assert!(sources[2].0 >= 200 * MS, "it may be filled until then: {:?}", sources[2].0);
    let repair = came.iter().find(is_repair).expect("a repair packet");
    let Ok((_, Body::Repair { first, count, .. })) = parse(&repair.1) else { panic!("a repair packet") };
    assert!(first == 0 && count >= 2, "{first}, {count}");
}

/// Without a wait every piece of the input is a packet of its own.
#[test]
fn a_sender_that_does_not_wait_sends_each_piece() {
    let pieces = (1..5).map(|len| bytes(10 * len)).collect();
    let options = SendOptions { flush: Duration::ZERO, ..small() };
    let came = timed(pieces, &options, |came, nth| sources(came).len() == nth);
    let lens: Vec<usize> = sources(&came).iter().map(|(_, payload)| payload.len()).collect();
    assert_eq!(lens, [10, 20, 30, 40]);
}

/// A quiet sender shows its presence every second, so that receivers do not take it for gone.
#[test]
fn a_quiet_sender_shows_its_presence() {
    let is_alive = |packet: &[u8]| matches!(parse(packet), Ok((_, Body::Mark { sent: 1, end: false })));
    let alive = |came: &[Timed]| came.iter().find(|(_, packet)| is_alive(packet)).map(|(at, _)| *at);
    let pieces = vec![bytes(100), bytes(100)];
    let came = timed(pieces, &small(), |came, nth| nth == 0 || alive(came).is_some());
    assert!(alive(&came).is_some_and(|at| at >= 1000 * MS));
    assert_eq!(sources(&came).len(), 2);
}

/// The rate is kept on the whole, counts are those of what went out, and the end is told several times.
#[test]
fn the_rate_is_kept_and_what_went_out_is_counted() {
    let payload = bytes(60_000);
    let (mut sent, begun) = (None, Instant::now());
    let options = SendOptions { mbps: Some(2.0), ..small() };
    let came = collected(|to| sent = Some(send_to(to, &payload, &options)), |_| {});
    let (took, sent) = (begun.elapsed().as_secs_f64(), sent.expect("it was sent"));
    let least = (sent.sent_bytes * 8) as f64 / 2e6;
    assert!(took >= 0.9 * least && took < least + 10.0, "{took} s for {} bytes", sent.sent_bytes);
    let (mut counts, mut sum) = ([0; 3], 0);
    for (_, packet) in &came {
        counts[usize::from(kind(packet))] += 1;
        sum += packet.len() as u64;
    }
    assert_eq!(counts, [sent.source_packets, sent.repair_packets, sent.marks]);
    assert_eq!((sent.sent_bytes, sent.source_packets, sent.payload_bytes), (sum, 600, 60_000));
    assert_eq!((sent.marks, sent.stopped, sent.unsent, sent.impaired_lost), (8, false, 0, 0));
    assert!(sent.repair_packets >= 100, "{}", sent.repair_packets);
}

/// Packets that a sender loses on purpose are counted, and do not go out. The end does.
#[test]
fn losses_on_purpose_are_counted() {
    let impairment = Some("burst:50,100,reorder:9".parse().expect("an impairment"));
    let payload = bytes(60_000);
    let (mut sent, options) = (None, SendOptions { impairment, ..small() });
    let receive = ReceiveOptions { idle: Some(10 * Duration::from_secs(1)), ..ReceiveOptions::default() };
    let (received, out, _) = receiving(&receive, |to, _| sent = Some(send_to(to, &payload, &options)));
    let (received, sent) = (received.expect("it comes"), sent.expect("it was sent"));
    assert_eq!(sent.impaired_lost, 50);
    assert!(out == payload && received.is_whole() && received.rebuilt > 30, "{received:?}");
}

/// The age of packets bounds what repair packets cover: a viewer waits no longer.
#[test]
fn old_packets_are_not_protected_any_more() {
    let covered = |latency: Option<Duration>| {
        let options = SendOptions { latency, mbps: Some(2.0), window: 6000, block: 60, ..small() };
        let repair = |packet: &Vec<u8>| match parse(packet) {
            Ok((_, Body::Repair { count, .. })) => Some(count),
            _ => None,
        };
        packets_of(&bytes(60_000), &options).iter().filter_map(repair).max().expect("repair packets")
    };
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(covered(None), 600));
        // Some 200 packets go out in a tenth of a second, and a packet leaves with its block.
        let most = covered(Some(100 * MS));
        assert!((60..450).contains(&most), "{most}");
    });
}

struct Watch {
    stop: Arc<AtomicBool>,
    replies: Vec<Replies>,
}

impl SendWatcher for Watch {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn not_received(&mut self, replies: &Replies) {
        self.replies.push(*replies);
    }
}

/// A sender that is stopped ends its stream, within the pace or soon: receivers know at once.
#[test]
fn a_sender_that_is_stopped_ends_its_stream() {
    let stop_it = |mbps: Option<f64>, input: Vec<u8>| {
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = Watch { stop: stop.clone(), replies: Vec::new() };
        let options = SendOptions { mbps, ..small() };
        let mut sent = None;
        let receive = ReceiveOptions { tell_every: Some(20 * MS), ..ReceiveOptions::default() };
        let begun = Instant::now();
        let (received, out, _) = receiving(&receive, |to, control| {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    control.until(|told| told.so_far.last().is_some_and(|so_far| so_far.packets > 0));
                    stop.store(true, Ordering::Relaxed);
                });
                // The input does not end by itself.
                let pieces = vec![(Duration::ZERO, input.clone()), (60_000 * MS, Vec::new())];
                let done = send_over(vec![way(to)], Pausing(pieces), &options, &mut watch);
                sent = Some(done.expect("it is sent"));
            });
        });
        let (received, sent) = (received.expect("it comes"), sent.expect("it was sent"));
        assert!(begun.elapsed() < 30_000 * MS, "{mbps:?}: {:?}", begun.elapsed());
        assert!(sent.stopped && received.ended && received.is_whole(), "{mbps:?}: {received:?}");
        assert!(input.starts_with(&out) && out.len() >= 100, "{mbps:?}: {} bytes", out.len());
        assert_eq!(sent.payload_bytes, out.len() as u64, "{mbps:?}");
        assert_eq!(mbps.is_some(), out.len() < input.len(), "the rest would have had to wait for its pace");
    };
    let stop_it = &stop_it;
    std::thread::scope(|scope| {
        scope.spawn(|| stop_it(None, bytes(100)));
        scope.spawn(|| stop_it(Some(0.05), bytes(50_000)));
    });
}

/// A sender tells once that nobody receives, and counts it. The stream goes on: somebody may come.
#[test]
fn that_nobody_receives_is_told() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut watch = Watch { stop: Arc::default(), replies: Vec::new() };
    let pieces = (0..6).map(|_| (60 * MS, bytes(100))).collect();
    let sent = send_over(vec![way(closed)], Pausing(pieces), &small(), &mut watch).expect("no error");
    assert!(sent.replies.refused > 0 && sent.replies.unreachable == 0, "{:?}", sent.replies);
    assert_eq!(watch.replies.len(), 1, "{:?}", watch.replies);
    assert!(watch.replies[0].refused > 0);
    assert_eq!((sent.source_packets, sent.unsent), (6, 0));
}

/// A way that this machine does not send to: broadcasts take a permission.
fn forbidden() -> Way {
    Way { address: address("udp://255.255.255.255:9"), interface: Interface::default() }
}

/// A stream goes on as long as one of its ways takes packets. Packets that the others missed are counted.
#[test]
fn one_way_that_works_is_enough() {
    let payload = bytes(20_000);
    for turned in [false, true] {
        let mut sent = None;
        let options = ReceiveOptions { idle: Some(10 * Duration::from_secs(1)), ..ReceiveOptions::default() };
        let (received, out, _) = receiving(&options, |to, _| {
            let mut ways = vec![forbidden(), way(to), way(to)];
            ways.rotate_left(usize::from(turned));
            let input = Cursor::new(payload.clone());
            sent = Some(send_over(ways, input, &small(), &mut Silent).expect("two ways work"));
        });
        let (received, sent) = (received.expect("it comes"), sent.expect("it was sent"));
        assert!(out == payload && received.is_whole(), "{received:?}");
        // Each packet came twice, and counts once.
        let statistics = &received.statistics;
        assert_eq!((statistics.received, statistics.repairs), (200, sent.repair_packets));
        // The end may come before the copies of the last repair packets.
        assert!((200..=200 + sent.repair_packets).contains(&statistics.duplicates), "{statistics:?}");
        assert_eq!(sent.unsent, sent.source_packets + sent.repair_packets + sent.marks);
    }
}

/// A way that alone is left, and takes nothing, ends the stream with its error, which names it.
#[test]
fn ways_that_take_nothing_are_an_error() {
    for ways in [vec![forbidden()], vec![forbidden(), forbidden()]] {
        let error = send_over(ways, Cursor::new(bytes(1000)), &small(), &mut Silent).unwrap_err();
        assert_eq!(error.class(), Class::Io, "{error}");
        assert!(error.to_string().contains("udp://255.255.255.255:9"), "{error}");
    }
    let named = Interface { name: Some("no-such-thing".into()), ..Interface::default() };
    let nowhere = Way { address: address("udp://127.0.0.1:9"), interface: named };
    let error =
        send_over(vec![nowhere.clone()], Cursor::new(bytes(1000)), &small(), &mut Silent).unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::Interface { name, .. }) if name == "no-such-thing"));
    assert!(payload_for(&[nowhere], false).is_err());
}

/// Payloads are as long as passes nearly everywhere. A seal takes its bytes from them.
#[test]
fn payloads_fit_the_ways() {
    let ways = [way("127.0.0.1:9".parse().unwrap()), way("127.0.0.1:10".parse().unwrap())];
    assert_eq!(payload_for(&ways, false).unwrap(), NETWORK_PAYLOAD);
    assert_eq!(payload_for(&ways, true).unwrap(), NETWORK_PAYLOAD - 24);
    assert_eq!(payload_for(&[], true).unwrap(), NETWORK_PAYLOAD - 24);
    let sealing = Sealing { key: StreamKey::new([7; 32]), cipher: Cipher::best() };
    for (sealing, overhead) in [(None, 58), (Some(sealing), 82)] {
        let send = |payload: usize| {
            let options = SendOptions { payload: payload as u16, sealing: sealing.clone(), ..small() };
            let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            send_over(vec![way(closed)], Cursor::new(bytes(10)), &options, &mut Silent)
        };
        let most = MAX_DATAGRAM - overhead;
        assert!(send(most).is_ok(), "{overhead}");
        let error = send(most + 1).unwrap_err();
        let told = matches!(error.cause(), Some(LiveError::PacketsTooLong { most: told }) if *told == most);
        assert!(told && error.class() == Class::Usage, "{error}");
    }
}
