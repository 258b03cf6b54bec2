//! What the transport alone can do: packets over loopback, in runs that the kernel cuts and joins (GSO and GRO)
//! against one system call for each packet.

use super::feed::Chunk;
use super::udp::{Receiver, Sender, enlarge};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Packets that arrived, and the time from the first to the last.
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) per_second: f64,
}

/// How the packets are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As `fec` does: runs of packets.
    Batched,
    /// `sendto` and `recv`, a packet each.
    Single,
}

/// Sends packets of `len` bytes over loopback for `time`, as fast as it goes, and counts those that arrive.
pub(crate) fn measure(way: Way, len: usize, time: Duration) -> std::io::Result<Rate> {
    let inward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = inward.local_addr()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| match way {
            Way::Batched => receive_batched(Receiver::new(inward)?, len, &done),
            Way::Single => receive_single(inward, len, &done),
        });
        let outward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let packet = vec![0x5A; len];
        let started = Instant::now();
        let mut sent = 0;
        match way {
            Way::Batched => {
                let mut sender = Sender::new(outward, to)?;
                while started.elapsed() < time {
                    for _ in 0..64 {
                        sender.send(&packet)?;
                    }
                    sent += 64;
                }
                sender.flush()?;
            }
            Way::Single => {
                while started.elapsed() < time {
                    for _ in 0..64 {
                        outward.send_to(&packet, to)?;
                    }
                    sent += 64;
                }
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let received = receiving.join().map_err(|_| std::io::ErrorKind::Other)??;
        Ok(Rate { sent, received, per_second: received as f64 / seconds })
    })
}

fn receive_batched(receiver: Receiver, len: usize, done: &AtomicBool) -> std::io::Result<u64> {
    let (mut chunk, mut count) = (Chunk::default(), 0);
    loop {
        receiver.receive(&mut chunk, Duration::from_millis(20))?;
        count += chunk.parts().filter(|part| part.len() == len).count() as u64;
        if chunk.pieces.is_empty() && done.load(Ordering::Relaxed) {
            return Ok(count);
        }
    }
}

fn receive_single(socket: UdpSocket, len: usize, done: &AtomicBool) -> std::io::Result<u64> {
    // The same receive buffer as the other way has.
    enlarge(&socket);
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let (mut buffer, mut count) = (vec![0; 65_536], 0);
    loop {
        match socket.recv(&mut buffer) {
            Ok(n) => count += u64::from(n == len),
            Err(_) if done.load(Ordering::Relaxed) => return Ok(count),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every packet arrives unchanged through both ways of sending, lengths mixed.
    #[test]
    fn packets_survive_being_cut_and_joined() {
        for offload in [true, false] {
            let inward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let to = inward.local_addr().unwrap();
            let receiver = Receiver::new(inward).unwrap();
            let sender = Sender::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), to).unwrap();
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
}
