//! Reports over loopback: who gets them, what a sender makes of them, and what strangers can do.

use super::*;
use fec_core::format::packet::{Parameters, Profile};
use fec_core::format::report::{Call, Report};
use fec_keys::cipher::Cipher;
use fec_live::key::StreamKey;
use fec_live::receive::Opening;
use fec_live::send::{RateBounds, Sealing};
use std::sync::Arc;

/// Options of a sender that calls for reports, at a rate at which a test sees some.
fn calling(impairment: &str) -> SendOptions {
    SendOptions {
        reports: Some(RateBounds::default()),
        mbps: Some(4.0),
        impairment: Some(impairment.parse().expect("an impairment")),
        ..small()
    }
}

fn reporting() -> ReceiveOptions {
    ReceiveOptions { reports: true, idle: Some(3000 * MS), ..ReceiveOptions::default() }
}

/// Receives while `act` sends to the receiver's address.
fn received_while<T>(options: &ReceiveOptions, act: impl FnOnce(SocketAddr) -> T) -> (Received, Vec<u8>, T) {
    let mut acted = None;
    let (received, back, _) = receiving(options, |to, _| acted = Some(act(to)));
    (received.expect("it is received"), back, acted.expect("it acted"))
}

/// Both ends over loopback.
fn sent_and_received(len: usize, send: &SendOptions, options: &ReceiveOptions) -> (Sent, Received, bool) {
    let payload = bytes(len);
    let (received, back, sent) = received_while(options, |to| send_to(to, &payload, send));
    (sent, received, back == payload)
}

#[test]
fn receivers_report_and_the_rate_follows() {
    let (sent, received, same) = sent_and_received(1_200_000, &calling("random:0.02,seed:1"), &reporting());
    assert!(received.is_whole() && same);
    let feedback = sent.feedback.clone().expect("it called");
    assert!(feedback.reports >= 5 && received.reports >= feedback.reports, "{feedback:?}");
    let [of] = feedback.receivers[..] else { panic!("{feedback:?}") };
    assert!(of.loss_before > 0.005 && of.loss_before < 0.05 && of.lost == 0, "{of:?}");
    assert!(of.clock_ahead.abs() < 1_000_000, "both have one clock: {of:?}");
    assert!(feedback.round_trip.is_some_and(|time| time < 2000 * MS));
    // The fixed ratio of 1/6 would be 2000 rows.
    assert!(sent.repair_packets < sent.source_packets / 7, "{sent:?}");
    assert_eq!(received.refused, 0, "calls are no packets that are refused");
}

/// A stream that ends before its reports have told much is whole all the same: they go on until nothing is lacking.
#[test]
fn a_short_stream_is_helped_after_its_end() {
    for seed in 1..6 {
        let impairment = format!("random:0.12,seed:{seed}");
        let send = SendOptions { mbps: Some(50.0), ..calling(&impairment) };
        let (sent, received, same) = sent_and_received(150_000, &send, &reporting());
        assert!(received.is_whole() && same, "{seed}: {} lost, {sent:?}", received.lost);
    }
}

#[test]
fn without_reports_the_rate_is_the_fixed_one() {
    let silent = ReceiveOptions { reports: false, ..reporting() };
    let (sent, received, same) = sent_and_received(600_000, &calling("random:0.02,seed:1"), &silent);
    assert!(received.is_whole() && same && received.reports == 0 && received.refused == 0);
    let feedback = sent.feedback.clone().expect("it called");
    assert_eq!((feedback.reports, feedback.demanded, feedback.receivers.len()), (0, 0, 0));
    assert!(sent.repair_packets > sent.source_packets / 7);
    let fixed = SendOptions { reports: None, ..calling("random:0.02,seed:1") };
    let (sent, received, same) = sent_and_received(600_000, &fixed, &reporting());
    assert!(received.is_whole() && same && received.reports == 0 && sent.feedback.is_none());
}

#[test]
fn sealed_streams_have_sealed_reports() {
    let key = StreamKey::new([7; 32]);
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let sealing = Some(Sealing { key: key.clone(), cipher });
        let send = SendOptions { sealing, ..calling("random:0.02,seed:1") };
        let opening = Some(Opening { key: key.clone(), max_age: Some(10) });
        let (sent, received, same) =
            sent_and_received(800_000, &send, &ReceiveOptions { opening, ..reporting() });
        assert!(received.is_whole() && same && received.forged == 0);
        let feedback = sent.feedback.clone().expect("it called");
        assert!(feedback.reports >= 3 && feedback.refused == 0, "{feedback:?}");
    }
}

/// Whoever sees the stream's destination but not the stream, or sees it all but has no key, changes no rate.
#[test]
fn forged_reports_do_not_count() {
    let key = StreamKey::new([7; 32]);
    for sealing in [None, Some(Sealing { key, cipher: Cipher::Aes256Gcm })] {
        let is_sealed = sealing.is_some();
        let inward = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        fec_live::udp::enlarge(&inward);
        inward.set_read_timeout(Some(1000 * MS)).expect("it has one");
        let to = inward.local_addr().expect("its address");
        let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        stranger.set_nonblocking(true).expect("it does not wait");
        let done = Arc::new(AtomicBool::new(false));
        let attack = {
            let done = done.clone();
            move || {
                let (mut buffer, mut forged, mut bytes_back) = ([0; 2048], 0u64, 0usize);
                while !done.load(Ordering::Relaxed) {
                    let Ok((len, from)) = inward.recv_from(&mut buffer) else { continue };
                    // The header is in the clear, whatever the stream.
                    let stream_id = u64::from_le_bytes(buffer[8..16].try_into().expect("8 bytes"));
                    let parameters = Parameters {
                        profile: Profile::Bounded,
                        stream_id,
                        window: 600,
                        payload: 100,
                        block: 60,
                    };
                    assert!(len >= 36);
                    forged += 1;
                    let of = Report {
                        receiver: forged,
                        // Nobody guesses the token of 64 bits.
                        token: forged,
                        challenge: 1,
                        number: forged,
                        heard: 1 << 40,
                        oldest: 0,
                        lacking: 65_536,
                        ..Report::default()
                    };
                    // Another port, and the right one.
                    let _ = stranger.send_to(&of.to_bytes(&parameters), from);
                    let _ = inward.send_to(&of.to_bytes(&parameters), from);
                    bytes_back += stranger.recv_from(&mut [0; 2048]).map_or(0, |(len, _)| len);
                }
                (forged, bytes_back)
            }
        };
        let attacker = std::thread::spawn(attack);
        let send = SendOptions { sealing, ..calling("random:0.02,seed:1") };
        let sent = send_to(to, &bytes(400_000), &send);
        done.store(true, Ordering::Relaxed);
        let (forged, bytes_back) = attacker.join().expect("it ends");
        let feedback = sent.feedback.clone().expect("it called");
        assert_eq!((feedback.reports, feedback.demanded, bytes_back), (0, 0, 0), "{feedback:?}");
        assert!(forged > 1000 && feedback.refused > 500, "{forged} forged, {is_sealed}: {feedback:?}");
        assert!(sent.repair_packets <= sent.source_packets / 6 + 200, "{sent:?}");
    }
}

/// An address that calls for a stream that somebody else sends gets nothing.
#[test]
fn strangers_who_call_get_no_report() {
    let payload = bytes(300_000);
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    stranger.set_read_timeout(Some(200 * MS)).expect("it has one");
    let (received, back, ()) = received_while(&reporting(), |to| {
        let came = packets_of(&payload, &small());
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for packet in &came {
            sender.send_to(packet, to).expect("it is sent");
            let Ok((parameters, _)) = parse(packet) else { continue };
            let call = Call { number: 1, time: 1, token: 5, answers: vec![] };
            stranger.send_to(&call.to_bytes(&parameters), to).expect("it is sent");
            std::thread::sleep(Duration::from_micros(300));
        }
    });
    assert!(received.is_whole() && back == payload && received.reports == 0);
    assert!(stranger.recv_from(&mut [0; 2048]).is_err(), "no packet of the stream came from there");
}
