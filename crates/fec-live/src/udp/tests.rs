//! Packets over loopback.

use super::super::chunk::Chunk;
use super::socket::any;
use super::{PacketReceiver, PacketSender};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Every packet arrives unchanged through both ways of sending, lengths mixed.
#[test]
fn packets_survive_being_cut_and_joined() {
    for offload in [true, false] {
        let inward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = inward.local_addr().unwrap();
        let receiver = PacketReceiver::new(inward).unwrap();
        let sender = PacketSender::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), to).unwrap();
        let mut sender = if offload { sender } else { sender.without_offload() };
        let lens = [1404, 1404, 1392, 1404, 36, 100, 1404, 7, 1, 1404, 9000, 1392];
        let mut wanted = Vec::new();
        for i in 0..300u32 {
            let mut packet = vec![i as u8; lens[i as usize % lens.len()]];
            packet[0] = (i >> 8) as u8;
            sender.send(&packet).unwrap();
            wanted.push(packet);
        }
        sender.flush().unwrap();
        let (mut chunk, mut got) = (Chunk::default(), Vec::new());
        while got.len() < wanted.len() {
            receiver.receive(&mut chunk, Duration::from_secs(5)).unwrap();
            assert!(!chunk.pieces.is_empty(), "only {} of {} arrived", got.len(), wanted.len());
            got.extend(chunk.parts().map(<[u8]>::to_vec));
        }
        wanted.sort();
        got.sort();
        assert!(got == wanted, "offload {offload}");
        assert_eq!(receiver.drops().count(), Some(0));
    }
}

/// Silence follows from a socket that was empty after the time was over, and not from a clock alone.
#[test]
fn an_empty_socket_tells_when_it_was_empty() {
    let receiver = PacketReceiver::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (mut chunk, limit) = (Chunk::default(), Duration::from_millis(30));
    let asked = Instant::now();
    receiver.receive(&mut chunk, limit).unwrap();
    assert!(chunk.pieces.is_empty());
    assert_eq!(chunk.bytes.capacity(), 0, "idle receivers have twelve buffers of 2 MiB");
    assert!(chunk.empty_at.is_some_and(|at| at >= asked + limit), "it looked after the wait");
    // A waiting packet was there before the first look.
    sender.send_to(b"packet", receiver.local_addr().unwrap()).unwrap();
    receiver.receive(&mut chunk, limit).unwrap();
    assert_eq!((chunk.parts().count(), chunk.empty_at), (1, None));
    let asked = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(limit);
            sender.send_to(b"packet", receiver.local_addr().unwrap()).unwrap();
        });
        receiver.receive(&mut chunk, Duration::from_secs(60)).unwrap();
    });
    assert_eq!(chunk.parts().count(), 1);
    assert!(chunk.empty_at.is_some_and(|at| at >= asked), "before that one came");
}

/// A measurement answers from the address that it was asked at.
#[test]
fn an_answer_goes_back_the_way_that_the_question_came() {
    for (place, asked_at) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.2"), ("[::]:0", "::1")] {
        let receiver = PacketReceiver::new(UdpSocket::bind(place).unwrap()).unwrap();
        let port = receiver.local_addr().unwrap().port();
        let asked_at = SocketAddr::new(asked_at.parse().unwrap(), port);
        let asker = UdpSocket::bind(any(asked_at.is_ipv4(), 0)).unwrap();
        // The asker is connected: an answer from elsewhere would not get in.
        asker.connect(asked_at).unwrap();
        asker.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        asker.send(b"question").unwrap();
        let mut chunk = Chunk::default();
        receiver.receive(&mut chunk, Duration::from_secs(5)).unwrap();
        let (arrival, bytes) = chunk.datagrams().next().expect("it came");
        assert_eq!((bytes, arrival.from.port()), (&b"question"[..], asker.local_addr().unwrap().port()));
        receiver.answer(arrival, b"answer").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(asker.recv(&mut buffer).unwrap(), 6, "{place} {asked_at}");
    }
}

/// Whoever receives is not told that a packet of its own found nobody.
#[test]
fn a_refusal_is_no_error_of_receiving() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.connect(closed).unwrap();
    socket.send(b"packet").unwrap();
    let receiver = PacketReceiver::new(socket).unwrap();
    let mut chunk = Chunk::default();
    receiver.receive(&mut chunk, Duration::from_millis(30)).expect("nothing came");
    assert!(chunk.pieces.is_empty() && chunk.empty_at.is_some());
}

/// A system that does not know an option tells less. Any other refusal is an error.
#[test]
fn only_options_that_are_not_known_are_done_without() {
    use super::socket::as_far_as_possible;
    let error = |code| Err(std::io::Error::from_raw_os_error(code));
    for code in [libc::ENOPROTOOPT, libc::EOPNOTSUPP, libc::EINVAL, libc::ENOSYS] {
        assert!(as_far_as_possible(error(code)).is_ok(), "{code}");
    }
    for code in [libc::EACCES, libc::EPERM, libc::ENODEV] {
        assert!(as_far_as_possible(error(code)).is_err(), "{code}");
    }
    assert!(as_far_as_possible(Ok(())).is_ok());
}
