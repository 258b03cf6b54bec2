//! Receives packets, many with one system call where the kernel can.

use super::super::LiveError;
use super::super::address::Address;
use super::super::chunk::{Arrival, Chunk};
use super::socket::{Interface, any, bind, enlarge, wait_for};
use fec_base::error::{Action, Error, Result};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::PollFlags;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Bytes of a receive buffer: one datagram, or as many small ones as the kernel joins.
const SLOT: usize = 65_536;

/// Receives packets.
pub struct PacketReceiver {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl PacketReceiver {
    /// A socket for packets that come to `address`; a multicast group is joined.
    ///
    /// # Errors
    /// Those of [`Address::local`]; [`LiveError::AddressInUse`], [`LiveError::NotLocal`], [`LiveError::Interface`],
    /// [`LiveError::InterfaceMissing`], [`LiveError::TwoInterfaces`]; errors of the system.
    pub fn open(address: &Address, interface: &Interface) -> Result<PacketReceiver> {
        let local = address.local()?;
        if let Some(local) = local {
            interface.check(address, local).map_err(|e| Error::at(Action::ReceiveOn, address, e))?;
        }
        let open = || -> io::Result<PacketReceiver> {
            let wanted = [local.unwrap_or_else(|| any(false, address.port()))];
            // A machine without IPv6 has no address for both.
            let fallback = local.is_none().then(|| any(true, address.port()));
            let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
            for to in wanted.into_iter().chain(fallback) {
                result = bind(to, interface);
                if result.is_ok() {
                    break;
                }
            }
            PacketReceiver::new(result?)
        };
        open().map_err(|e| {
            let cause = match e.kind() {
                io::ErrorKind::AddrInUse => LiveError::AddressInUse(e).into(),
                io::ErrorKind::AddrNotAvailable => LiveError::NotLocal(e).into(),
                _ => interface.refusal(e),
            };
            Error::at(Action::ReceiveOn, address, cause)
        })
    }

    /// Receives through a bound socket.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn new(socket: UdpSocket) -> io::Result<PacketReceiver> {
        enlarge(&socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(PacketReceiver { socket, state })
    }

    /// The address at which packets are received.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// A handle for the number of packets that the kernel had to drop.
    pub fn drops(&self) -> Drops {
        use std::os::fd::AsFd;
        let inode = rustix::fs::fstat(self.socket.as_fd()).ok().map(|stat| stat.st_ino);
        Drops { inode, v4: self.local_addr().is_ok_and(|a| a.is_ipv4()) }
    }

    /// Waits for packets, at most `limit`, and reads those that are there into `chunk`, which is empty if none came.
    /// Its [`empty_at`](Chunk::empty_at) is the time of the last look that found none; there is a last look after
    /// `limit`.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn receive(&self, chunk: &mut Chunk, limit: Duration) -> io::Result<()> {
        chunk.empty_at = None;
        let mut is_over = false;
        loop {
            let looked = Instant::now();
            match self.receive_now(chunk) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    chunk.empty_at = Some(looked);
                    if is_over {
                        return Ok(());
                    }
                    is_over = !self.wait(limit)?;
                }
                // An earlier packet of ours was refused; none was sent here, and it would change nothing.
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {}
                done => return done,
            }
        }
    }

    /// Waits until there is a packet to receive, at most `limit`. Returns whether there is.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        wait_for(&self.socket, PollFlags::IN, Some(limit))
    }

    /// Reads packets that are there into `chunk`, without waiting. A fresh buffer takes no memory before one is there.
    ///
    /// # Errors
    /// `WouldBlock` if there are none. Errors of the socket; for a connected one also the network's replies to sent
    /// packets.
    pub fn receive_now(&self, chunk: &mut Chunk) -> io::Result<()> {
        chunk.pieces.clear();
        chunk.arrivals.clear();
        if chunk.bytes.is_empty() && !self.wait(Duration::ZERO)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let slots = quinn_udp::BATCH_SIZE;
        // Offload gives many packets in each slot; without it a slot holds one.
        chunk.bytes.resize(slots * SLOT, 0);
        let mut metas = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
        let mut buffers: Vec<IoSliceMut<'_>> = chunk.bytes.chunks_mut(SLOT).map(IoSliceMut::new).collect();
        let count = self.state.recv((&self.socket).into(), &mut buffers, &mut metas)?;
        for (slot, meta) in metas.iter().enumerate().take(count) {
            let start = slot * SLOT;
            chunk.pieces.push((start..start + meta.len.min(SLOT), meta.stride));
            chunk.arrivals.push(Arrival { from: meta.addr, to: meta.dst_ip, at: meta.timestamp });
        }
        Ok(())
    }

    /// Sends a packet back to the origin of others, from the address that they came to.
    ///
    /// # Errors
    /// Errors of the system; the call never waits until it takes more.
    pub fn answer(&self, arrival: &Arrival, packet: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: arrival.from,
            ecn: None,
            contents: packet,
            segment_size: None,
            src_ip: arrival.to,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

/// Reads the kernel's count of dropped packets of one socket.
#[derive(Clone, Copy, Debug)]
pub struct Drops {
    inode: Option<u64>,
    v4: bool,
}

impl Drops {
    /// Packets that came while the receive buffer was full; `None` if the system does not tell.
    pub fn count(&self) -> Option<u64> {
        let inode = self.inode?.to_string();
        let table = std::fs::read_to_string(if self.v4 { "/proc/net/udp" } else { "/proc/net/udp6" }).ok()?;
        // sl local remote st queues tr:when retrnsmt uid timeout inode ref pointer drops
        let line = table.lines().find(|line| line.split_ascii_whitespace().nth(9) == Some(&inode))?;
        line.split_ascii_whitespace().nth(12)?.parse().ok()
    }
}
