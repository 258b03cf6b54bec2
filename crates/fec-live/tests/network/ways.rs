//! Networks that are away, interfaces that are not named, and the counts of each way.

use crate::{MS, address, bytes, receiving, send_over, send_to, small, way};
use fec_base::context::Silent;
use fec_base::error::Class;
use fec_keys::cipher::Cipher;
use fec_live::LiveError;
use fec_live::address::Address;
use fec_live::key::StreamKey;
use fec_live::paths::Way;
use fec_live::receive::{Opening, ReceiveOptions};
use fec_live::send::{NETWORK_PAYLOAD, Sealing, SendOptions, SendWatcher, Sent, payload_for};
use fec_live::udp::{Interface, PacketReceiver};
use std::io::Cursor;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A way without a route, whatever networks a machine has: nothing of that address is behind the loopback interface.
fn routeless() -> Way {
    let interface = Interface { name: Some("lo".into()), ..Interface::default() };
    Way { address: address("udp://[2001:db8::1]:9"), interface }
}

#[derive(Default)]
struct Watch {
    away: Vec<String>,
    so_far: Vec<Sent>,
}

impl SendWatcher for Watch {
    fn network_away(&mut self, to: &Address, why: &LiveError) {
        assert!(matches!(why, LiveError::Unreachable(_)), "{why}");
        self.away.push(to.to_string());
    }

    fn so_far(&mut self, sent: &Sent) {
        self.so_far.push(sent.clone());
    }
}

/// A slow input, so that there are several looks at the network.
fn slow() -> SendOptions {
    SendOptions { mbps: Some(1.0), ..small() }
}

/// A network that is away is waited for; if it was away to the end, that is an error.
#[test]
fn a_network_that_never_comes_is_an_error_at_the_end() {
    let mut watch = Watch::default();
    let options = SendOptions { tell_every: Some(20 * MS), ..slow() };
    let input = std::io::Read::chain(Cursor::new(bytes(20_000)), Late(300 * MS));
    let error = send_over(vec![routeless()], input, &options, &mut watch).unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::Unreachable(_))), "{error}");
    assert!(error.class() == Class::Io && error.to_string().contains("udp://[2001:db8::1]:9"), "{error}");
    assert_eq!(watch.away, ["udp://[2001:db8::1]:9"], "it is told once");
    let last = watch.so_far.last().expect("it was told meanwhile");
    assert!(last.unsent > 0 && last.unsent == last.ways[0].unsent, "{last:?}");
}

/// An end of the input that comes later.
struct Late(Duration);

impl std::io::Read for Late {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        std::thread::sleep(self.0);
        Ok(0)
    }
}

/// A way whose network is away costs the others nothing, and its packets are counted.
#[test]
fn a_way_that_is_away_is_counted_by_itself() {
    let payload = bytes(20_000);
    let (mut sent, mut watch) = (None, Watch::default());
    let (received, out, _) = receiving(&ReceiveOptions::default(), |to, _| {
        let ways = vec![routeless(), way(to)];
        let input = std::io::Read::chain(Cursor::new(payload.clone()), Late(300 * MS));
        sent = Some(send_over(ways, input, &slow(), &mut watch).expect("one works"));
    });
    let (received, sent) = (received.expect("it comes"), sent.expect("it was sent"));
    assert!(out == payload && received.is_whole());
    let all = sent.source_packets + sent.repair_packets + sent.marks;
    let unsent: Vec<u64> = sent.ways.iter().map(|way| way.unsent).collect();
    assert_eq!((unsent, sent.unsent), (vec![all, 0], all));
    assert_eq!(sent.ways[0].interface.as_deref(), Some("lo"));
    assert_eq!(watch.away.len(), 1);
}

/// The length of packets is chosen without a network too.
#[test]
fn a_network_that_is_away_says_nothing_of_its_packets() {
    assert_eq!(payload_for(&[routeless()], false).expect("it is waited for"), NETWORK_PAYLOAD);
}

/// An address of each network needs an interface, at both ends, and one only.
#[test]
fn an_address_of_each_network_needs_an_interface() {
    let named = |name: Option<&str>| Interface { name: name.map(str::to_owned), ..Interface::default() };
    let send = |text: &str, name: Option<&str>| {
        let ways = vec![Way { address: address(text), interface: named(name) }];
        send_over(ways, Cursor::new(bytes(10)), &small(), &mut Silent).map(drop)
    };
    let receive = |text: &str, name| PacketReceiver::open(&address(text), &named(name)).map(drop);
    for text in ["udp://[fe80::1]:9", "udp://[ff02::9]:9"] {
        for error in [send(text, None).unwrap_err(), receive(text, None).unwrap_err()] {
            assert!(matches!(error.cause(), Some(LiveError::InterfaceMissing)), "{error}");
            assert!(error.class() == Class::Usage && error.to_string().contains(text), "{error}");
        }
    }
    for text in ["udp://[ff02::9%lo]:0", "udp://[ff02::9]:0"] {
        let name = (!text.contains('%')).then_some("lo");
        receive(text, name).unwrap_or_else(|e| panic!("{e}"));
    }
    receive("udp://[ff02::9%lo]:0", Some("lo")).expect("they agree");
    let two = [send("udp://[ff02::9%lo]:9", Some("eth0")), receive("udp://[ff02::9%lo]:9", Some("eth0"))];
    for error in two.map(Result::unwrap_err) {
        assert!(matches!(error.cause(), Some(LiveError::TwoInterfaces(scope)) if scope == "lo"), "{error}");
    }
    let error = send("udp://[ff02::9%none0]:9", None).unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::Interface { name, .. }) if name == "none0"), "{error}");
}

/// The packets of a stream, sealed or not, of which the end cannot be read here.
fn recorded(payload: &[u8], options: &SendOptions) -> Vec<Vec<u8>> {
    let inward = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    fec_live::udp::enlarge(&inward);
    let sent = send_to(inward.local_addr().expect("its address"), payload, options);
    let mut buffer = [0; 2048];
    let mut next = || {
        let len = inward.recv(&mut buffer).expect("it waits in the socket");
        buffer[..len].to_vec()
    };
    (0..sent.source_packets + sent.repair_packets + sent.marks).map(|_| next()).collect()
}

/// A receiver tells what each way lost, sealed or not: of a copy only the header is looked at.
#[test]
fn each_way_has_the_share_that_it_lost() {
    let key = StreamKey::new([5; 32]);
    for is_sealed in [false, true] {
        let sealing = is_sealed.then(|| Sealing { key: key.clone(), cipher: Cipher::best() });
        let opening = is_sealed.then(|| Opening { key: key.clone(), max_age: None });
        let packets = recorded(&bytes(40_000), &SendOptions { sealing, mbps: Some(20.0), ..small() });
        let is_sparse = |nth: usize| nth.is_multiple_of(4);
        let sparse = packets.iter().enumerate().filter(|(nth, packet)| is_sparse(*nth) && packet[5] == 0);
        let expected = 1.0 - sparse.count() as f64 / 400.0;
        let options = ReceiveOptions { opening, ..ReceiveOptions::default() };
        let (received, _, _) = receiving(&options, |to, _| {
            let [bad, good] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
            for (nth, packet) in packets.iter().enumerate() {
                if is_sparse(nth) {
                    bad.send_to(packet, to).expect("it is sent");
                }
                good.send_to(packet, to).expect("it is sent");
                // A receive buffer may be small.
                std::thread::sleep(if nth % 64 == 63 { MS } else { Duration::ZERO });
            }
        });
        let received = received.expect("it comes");
        assert!(received.is_whole());
        let ways = received.ways();
        assert_eq!((ways.len(), ways[1].loss), (2, 0.0), "{ways:?}");
        assert!((ways[0].loss - expected).abs() < 0.01, "{ways:?}, not {expected}");
        assert!(
            ways.iter().all(|way| way.from.is_some() && way.to == Some([127, 0, 0, 1].into())),
            "{ways:?}"
        );
    }
}

/// The counts until now are told as often as asked, also while a slow pace holds one piece of the input back.
#[test]
fn a_sender_tells_its_counts() {
    let mut watch = Watch::default();
    let options = SendOptions { tell_every: Some(30 * MS), ..slow() };
    let begun = Instant::now();
    let mut sent = None;
    let (received, ..) = receiving(&ReceiveOptions::default(), |to, _| {
        let input = Cursor::new(bytes(40_000));
        sent = Some(send_over(vec![way(to)], input, &options, &mut watch).expect("it is sent"));
    });
    assert!(received.expect("it comes").is_whole());
    let most = begun.elapsed().as_millis() / 30;
    let told = &watch.so_far;
    assert!(told.len() >= 3 && told.len() as u128 <= most, "{} of {most}", told.len());
    assert!(told.is_sorted_by_key(|sent| (sent.source_packets, sent.sent_bytes)));
    let sent = sent.expect("it was sent");
    assert!(told[0].payload_bytes > 0 && told[0].payload_bytes < sent.payload_bytes);
    assert_eq!(told[0].parameters, sent.parameters);
}
