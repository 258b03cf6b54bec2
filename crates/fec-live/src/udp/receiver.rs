//! Receives packets, many with one system call where the kernel can.

use super::super::LiveError;
use super::super::address::Address;
use super::super::chunk::{Arrival, Chunk};
use super::super::system;
use super::socket::{Bound, Interface, any, bind, enlarge, join, moved_to, wait_for};
use fec_base::error::{Action, Error, Result};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::PollFlags;
use socket2::SockRef;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Bytes of a receive buffer: one datagram, or as many small ones as the kernel joins.
const SLOT: usize = 65_536;

/// Receives packets.
pub struct PacketReceiver {
    open: Arc<RwLock<Open>>,
    /// The way to open the socket again, if there is one.
    again: Option<Again>,
}

/// An open socket.
struct Open {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Packets that the kernel dropped of earlier sockets.
    dropped_before: u64,
}

impl Open {
    fn new(socket: UdpSocket, dropped_before: u64) -> io::Result<Open> {
        enlarge(&socket);
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Open { socket, state, dropped_before })
    }

    /// Packets that came while the receive buffer was full; `None` if the system does not tell.
    fn dropped(&self) -> Option<u64> {
        Some(self.dropped_before + system::dropped(&self.socket)?)
    }
}

/// The address and the interface of a socket whose interface may be taken away and come back.
struct Again {
    at: SocketAddr,
    interface: Interface,
    /// The interface, if it was named; else the system chose one for the group.
    bound: Option<Mutex<Bound>>,
}

impl Again {
    /// The way to open a socket for `address` again that is bound to `at`; `None` if no interface was chosen for it.
    fn new(at: SocketAddr, address: &Address, interface: &Interface) -> Option<Again> {
        let name = interface.name.as_deref().or(address.scope());
        let bound = name.and_then(Bound::new).map(Mutex::new);
        let again = Again { at, interface: interface.clone(), bound };
        (again.bound.is_some() || at.ip().is_multicast()).then_some(again)
    }
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
            let wanted = local.unwrap_or_else(|| any(false, address.port()));
            // A machine without IPv6 has no address for both.
            let fallback = local.is_none().then(|| any(true, address.port()));
            let (mut at, mut result) = (wanted, bind(wanted, interface));
            if let (Err(_), Some(fallback)) = (&result, fallback) {
                (at, result) = (fallback, bind(fallback, interface));
            }
            let receiver = PacketReceiver::new(result?)?;
            at.set_port(receiver.local_addr()?.port());
            Ok(PacketReceiver { again: Again::new(at, address, interface), ..receiver })
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
        Ok(PacketReceiver { open: Arc::new(RwLock::new(Open::new(socket, 0)?)), again: None })
    }

    fn open_now(&self) -> RwLockReadGuard<'_, Open> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Listens anew where the interface has come back under another number, or where the system may have left the group
    /// with it.
    fn renew(&self) {
        let Some(again) = &self.again else { return };
        let Some(bound) = &again.bound else {
            // A member of the group is told so, and stays one.
            let _ = join(&SockRef::from(&self.open_now().socket), again.at, 0);
            return;
        };
        let mut bound = bound.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(number) = bound.new_number(Instant::now()) else { return };
        // An interface that is not ready yet, or gone again, is looked for again.
        let dropped = self.open_now().dropped().unwrap_or(0);
        let opened = bind(moved_to(number, again.at), &again.interface);
        if let Ok(open) = opened.and_then(|socket| Open::new(socket, dropped)) {
            bound.follow(number);
            *self.open.write().unwrap_or_else(PoisonError::into_inner) = open;
        }
    }

    /// The address at which packets are received.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.open_now().socket.local_addr()
    }

    /// A handle for the number of packets that the kernel had to drop.
    pub fn drops(&self) -> Drops {
        Drops(self.open.clone())
    }

    /// Waits for packets, at most `limit`, and reads those that are there into `chunk`, which is empty if none came.
    /// A receiver that hears nothing for so long looks whether its interface was taken away and has come back.
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
                    if is_over {
                        self.renew();
                    }
                }
                // An earlier packet of ours was refused; none was sent here, and it would change nothing.
                Err(e) if system::is_refused(&e) => {}
                done => return done,
            }
        }
    }

    /// Waits until there is a packet to receive, at most `limit`. Returns whether there is.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn wait(&self, limit: Duration) -> io::Result<bool> {
        wait_for(&self.open_now().socket, PollFlags::IN, Some(limit))
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
        let open = self.open_now();
        let count = open.state.recv((&open.socket).into(), &mut buffers, &mut metas)?;
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
        let open = self.open_now();
        open.state.try_send((&open.socket).into(), &transmit)
    }
}

/// Reads the kernel's count of the packets that it had to drop of one receiver.
#[derive(Clone)]
pub struct Drops(Arc<RwLock<Open>>);

impl Drops {
    /// Packets that came while the receive buffer was full; `None` if the system does not tell.
    pub fn count(&self) -> Option<u64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).dropped()
    }
}
