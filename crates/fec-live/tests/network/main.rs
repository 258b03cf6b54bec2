//! Streams over loopback, by calls: what a sender puts on a network, and what a receiver makes of it.

mod receiving;
mod reports;
mod sending;
mod ways;

use fec_base::context::{Context, Silent};
use fec_base::error::{Place, Result};
use fec_core::format::packet::{Body, parse};
use fec_live::address::Address;
use fec_live::paths::Way;
use fec_live::receive::{PacketSource, ReceiveOptions, ReceptionWatcher, receive};
use fec_live::send::{PacketDestination, SendOptions, SendWatcher, Sent, StreamSender};
use fec_live::udp::Interface;
use fec_live::{LiveError, Output, Received};
use std::io::{Cursor, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn address(text: &str) -> Address {
    Address::parse(Path::new(text)).expect("an address")
}

pub(crate) fn way(to: SocketAddr) -> Way {
    Way { address: address(&format!("udp://{to}")), interface: Interface::default() }
}

pub(crate) fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 % 251) as u8).collect()
}

/// Small packets and windows.
pub(crate) fn small() -> SendOptions {
    SendOptions { payload: 100, window: 600, block: 60, ..SendOptions::default() }
}

/// Sends all of an input over these ways.
pub(crate) fn send_over(
    ways: Vec<Way>,
    input: impl Read + Send + 'static,
    options: &SendOptions,
    watcher: &mut dyn SendWatcher,
) -> Result<Sent> {
    let context = Context::default();
    let sender = StreamSender::new(options, &context.settings)?;
    sender.send(input, Place::Nowhere, PacketDestination::Udp(ways), watcher, &context)
}

pub(crate) fn send_to(to: SocketAddr, payload: &[u8], options: &SendOptions) -> Sent {
    send_over(vec![way(to)], Cursor::new(payload.to_vec()), options, &mut Silent).expect("it is sent")
}

/// A packet with the time at which it came.
pub(crate) type Timed = (Duration, Vec<u8>);

/// The packets that `send` sends to an address, in order, up to its last end. `seen` gets those that came until now.
pub(crate) fn collected(send: impl FnOnce(SocketAddr) + Send, mut seen: impl FnMut(&[Timed])) -> Vec<Timed> {
    let inward = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    fec_live::udp::enlarge(&inward);
    inward.set_read_timeout(Some(20_000 * MS)).expect("it has one");
    let to = inward.local_addr().expect("its address");
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || send(to));
        let (mut came, mut buffer) = (Vec::new(), [0; 2048]);
        let mut ends = 0;
        // The end is told three times, and on a network five times more.
        while ends < 8 {
            seen(&came);
            let len = inward.recv(&mut buffer).expect("an end");
            let is_end = matches!(parse(&buffer[..len]), Ok((_, Body::Mark { end: true, .. })));
            ends += u32::from(is_end);
            came.push((begun.elapsed(), buffer[..len].to_vec()));
        }
        sender.join().expect("it ends");
        came
    })
}

/// The packets of a stream, in order.
pub(crate) fn packets_of(payload: &[u8], options: &SendOptions) -> Vec<Vec<u8>> {
    let came = collected(
        |to| {
            let _ = send_to(to, payload, options);
        },
        |_| {},
    );
    came.into_iter().map(|(_, packet)| packet).collect()
}

/// The type of a packet: 0 has a part of the payload, 1 repairs, 2 tells the progress or the end.
pub(crate) fn kind(packet: &[u8]) -> u8 {
    packet[5]
}

/// The events that a receiver told its watcher.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) so_far: Vec<Received>,
    pub(crate) over: Vec<Received>,
    pub(crate) not_accepted: Vec<String>,
}

/// The state that the test and its receiver share.
#[derive(Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    told: Mutex<Told>,
}

impl Control {
    /// Ends the receiver.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until the receiver has told this, however busy the machine is.
    pub(crate) fn until(&self, is: impl Fn(&Told) -> bool) {
        let begun = Instant::now();
        while !is(&self.told.lock().expect("no panic")) {
            assert!(begun.elapsed() < 20_000 * MS, "{:?}", self.told);
            std::thread::sleep(5 * MS);
        }
    }

    /// Waits until so many packets of the stream have come.
    pub(crate) fn until_arrived(&self, packets: usize) {
        self.until(|told| told.so_far.last().is_some_and(|so_far| so_far.arrived == packets as u64));
    }

    fn tell(&self, tell: impl FnOnce(&mut Told)) {
        tell(&mut self.told.lock().expect("no panic"));
    }
}

struct Watch<'a>(Sender<SocketAddr>, &'a Control);

impl ReceptionWatcher for Watch<'_> {
    fn listening(&mut self, address: SocketAddr) {
        self.0.send(address).expect("the test waits");
    }

    fn not_accepted(&mut self, _: &Received, why: &LiveError) {
        self.1.tell(|told| told.not_accepted.push(why.to_string()));
    }

    fn so_far(&mut self, received: &Received) {
        self.1.tell(|told| told.so_far.push(received.clone()));
    }

    fn over(&mut self, received: &Received) {
        self.1.tell(|told| told.over.push(received.clone()));
    }

    fn is_stopped(&self) -> bool {
        self.1.stop.load(Ordering::Relaxed)
    }
}

/// Receives on loopback while `act` runs with the receiver's address. Gives the result, the bytes that came out, and
/// what was told meanwhile.
pub(crate) fn receiving(
    options: &ReceiveOptions,
    act: impl FnOnce(SocketAddr, &Control),
) -> (Result<Received>, Vec<u8>, Told) {
    let control = Control::default();
    let (listening, at) = channel();
    let receiver = || {
        let mut watch = Watch(listening, &control);
        let mut out = Vec::new();
        let source =
            PacketSource::Udp { address: address("udp://127.0.0.1:0"), interface: Interface::default() };
        let output = Output::stream(Place::Nowhere, &mut out);
        let received = receive(source, output, options, &mut watch, &Context::default());
        (received, out)
    };
    let (received, out) = std::thread::scope(|scope| {
        let receiver = scope.spawn(receiver);
        act(at.recv().expect("it listens"), &control);
        receiver.join().expect("it ends")
    });
    (received, out, control.told.into_inner().expect("no panic"))
}

/// Sends packets as they are.
pub(crate) fn play<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>, to: SocketAddr) {
    let outward = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    for (nth, packet) in packets.into_iter().enumerate() {
        outward.send_to(packet, to).expect("it is sent");
        // A receive buffer may be small.
        if nth % 64 == 63 {
            std::thread::sleep(MS);
        }
    }
}
