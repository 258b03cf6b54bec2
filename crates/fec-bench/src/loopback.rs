//! The best that the transport alone can do: packets over loopback, in runs that the kernel cuts and joins (GSO and
//! GRO) against a system call for each packet.

use fec_live::Chunk;
use fec_live::udp::{PacketReceiver, PacketSender, enlarge};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Packets that arrived, and the time from the first to the last.
#[derive(Debug)]
pub struct Rate {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Packets that arrived per second.
    pub per_second: f64,
}

/// The way packets are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// In runs of packets, as `fec` does.
    Batched,
    /// A packet for each `sendto` and `recv`.
    Single,
}

/// Sends packets of `len` bytes over loopback for `time`, as fast as possible, and counts those that arrive.
///
/// # Errors
/// Errors of the system's sockets.
pub fn measure(transport: Transport, len: usize, time: Duration) -> std::io::Result<Rate> {
    let inward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let to = inward.local_addr()?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| match transport {
            Transport::Batched => receive_batched(PacketReceiver::new(inward)?, len, &done),
            Transport::Single => receive_single(inward, len, &done),
        });
        let outward = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let packet = vec![0x5A; len];
        let started = Instant::now();
        let mut sent = 0;
        match transport {
            Transport::Batched => {
                let mut sender = PacketSender::new(outward, to)?;
                while started.elapsed() < time {
                    for _ in 0..64 {
                        sender.send(&packet)?;
                    }
                    sent += 64;
                }
                sender.flush()?;
            }
            Transport::Single => {
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

fn receive_batched(receiver: PacketReceiver, len: usize, done: &AtomicBool) -> std::io::Result<u64> {
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
    // The receive buffer is as large as that of the other way.
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

    /// The number of arrivals on a busy machine is chance; that any arrive is not.
    #[test]
    fn packets_are_sent_and_arrive() {
        for transport in [Transport::Batched, Transport::Single] {
            let rate = measure(transport, 1350, Duration::from_millis(50)).expect("a loopback network");
            assert!(0 < rate.received && rate.received <= rate.sent && rate.per_second > 0.0, "{rate:?}");
        }
    }
}
