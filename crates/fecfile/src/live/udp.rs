//! Packets over UDP, many with one system call where the kernel can: segmentation offload on the way out, `recvmmsg`
//! and receive offload on the way in. Otherwise they go singly.
//!
//! A packet is a datagram. Streams never send anything back; a measurement of the route may
//! ([`PacketReceiver::answer`]).

use super::LiveError;
use super::address::Address;
use super::chunk::{Arrival, Chunk};
use crate::error::{Error, ErrorKind, Result};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The largest payload of a UDP datagram (over IPv4).
pub const MAX_DATAGRAM: usize = 65_507;
/// Requested bytes of a receive buffer; the system may give fewer.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Requested bytes of a send buffer.
const SEND_BUFFER: usize = 2 << 20;
/// Bytes of a receive buffer: one datagram, or as many small ones as the kernel joins.
const SLOT: usize = 65_536;
/// Number of different packet lengths that are gathered at the same time.
const LENGTHS: usize = 4;
/// Bytes of the headers of UDP and IP in front of a datagram.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;
/// Number of times that packets are sent again because the system reported on others instead.
const REPLIES: u32 = 16;
/// Number of attempts at a full queue of the system, 1 ms apart, before the packets count as not sent.
const RETRIES: u32 = 50;

/// Options of the network interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Name of the interface to use, for multicast above all.
    pub name: Option<String>,
    /// Reach of multicast packets: 0 stays on this machine, 1 on this network, more crosses routers.
    pub hops: u32,
}

impl Default for Interface {
    /// The system's choice of interface, and this network only.
    fn default() -> Interface {
        Interface { name: None, hops: 1 }
    }
}

impl Interface {
    fn bind(&self, socket: &Socket) -> io::Result<()> {
        match &self.name {
            None => Ok(()),
            Some(name) => socket.bind_device(Some(name.as_bytes())),
        }
    }

    /// The interface's number, from the system, by any socket; 0 if none is named, for the system's choice.
    fn index(&self, socket: &Socket) -> io::Result<u32> {
        let Some(name) = &self.name else { return Ok(0) };
        Ok(rustix::net::netdevice::name_to_index(socket, name)?)
    }

    /// The reason why no socket could be opened: the interface, if one is named.
    fn refusal(&self, cause: io::Error) -> ErrorKind {
        match &self.name {
            Some(name) => LiveError::Interface { name: name.clone(), cause }.into(),
            None => ErrorKind::Io(cause),
        }
    }
}

/// The network's replies to sent packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replies {
    /// Number of reports by a machine that nobody receives there.
    pub refused: u64,
    /// Number of reports on the way that there is no route.
    pub unreachable: u64,
    /// The most bytes of a datagram that pass, if a reply said that one was too long.
    pub most: Option<usize>,
}

/// Sends packets to one place.
pub struct PacketSender {
    socket: UdpSocket,
    state: UdpSocketState,
    to: SocketAddr,
    replies: Replies,
    /// Bytes of the longest packet sent.
    longest: usize,
    /// Waiting packets, grouped by length, as the kernel wants them.
    waiting: Vec<Run>,
    /// True if segmentation offload may be used.
    offload: bool,
    any_sent: bool,
    /// Packets that the system did not take because the network was down.
    unsent: u64,
}

/// Packets of one length.
struct Run {
    len: usize,
    bytes: Vec<u8>,
}

impl PacketSender {
    /// A socket for packets to `address`.
    ///
    /// # Errors
    /// Those of [`Address::destination`]; [`LiveError::Interface`]; errors of the system.
    pub fn open(address: &Address, interface: &Interface) -> Result<PacketSender> {
        let to = address.destination()?;
        let open = || -> io::Result<PacketSender> {
            let mut to = to;
            let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
            if let SocketAddr::V6(to) = &mut to
                && to.scope_id() == 0
            {
                // An address that exists on every network needs the interface to say on which.
                to.set_scope_id(interface.index(&socket)?);
            }
            interface.bind(&socket)?;
            match to.ip() {
                IpAddr::V4(ip) if ip.is_multicast() => socket.set_multicast_ttl_v4(interface.hops)?,
                IpAddr::V6(ip) if ip.is_multicast() => {
                    socket.set_multicast_hops_v6(interface.hops)?;
                    socket.set_multicast_if_v6(interface.index(&socket)?)?;
                }
                _ => {}
            }
            socket.bind(&any(to.is_ipv4(), 0).into())?;
            // A smaller buffer is only slower.
            let _ = socket.set_send_buffer_size(SEND_BUFFER);
            let sender = PacketSender::new(socket.into(), to)?;
            // A system that cannot do this tells less of the route.
            as_far_as_possible(sender.learn_path())?;
            Ok(sender)
        };
        open().map_err(|e| Error::at("send to", address, interface.refusal(e)))
    }

    /// Sends through an open socket.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn new(socket: UdpSocket, to: SocketAddr) -> io::Result<PacketSender> {
        let state = UdpSocketState::new((&socket).into())?;
        let waiting = Vec::with_capacity(LENGTHS);
        let replies = Replies::default();
        Ok(PacketSender {
            socket,
            state,
            to,
            replies,
            longest: 0,
            waiting,
            offload: true,
            any_sent: false,
            unsent: 0,
        })
    }

    /// Makes the system refuse packets that are too long for a part of the route, as soon as that part says so, and
    /// report the network's replies.
    fn learn_path(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
            use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
            let set = match self.to.is_ipv4() {
                true => set_ip_mtu_discover(&self.socket, Ipv4PathMtuDiscovery::DO),
                false => set_ipv6_mtu_discover(&self.socket, Ipv6PathMtuDiscovery::DO),
            };
            as_far_as_possible(set.map_err(io::Error::from))?;
        }
        self.state.enable_transport_errors((&self.socket).into())
    }

    /// The network's replies until now.
    pub fn replies(&self) -> Replies {
        self.replies
    }

    /// Takes in the network's replies to all packets.
    ///
    /// # Errors
    /// `EMSGSIZE` if a packet was too long for a part of the route.
    pub fn listen(&mut self) -> io::Result<()> {
        self.hear();
        self.check_path()
    }

    fn check_path(&self) -> io::Result<()> {
        match self.replies.most {
            Some(most) if most < self.longest => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
            _ => Ok(()),
        }
    }

    /// Takes in the network's replies. Returns whether there was any.
    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Ok(Some(error)) = self.state.recv_transport_error((&self.socket).into()) {
            any = true;
            match (error.mtu(), error.raw_errno) {
                (Some(mtu), _) => {
                    let headers = if self.to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
                    let most = (mtu as usize).saturating_sub(headers);
                    self.replies.most = Some(self.replies.most.map_or(most, |known| known.min(most)));
                }
                (None, libc::ECONNREFUSED) => self.replies.refused += 1,
                _ => self.replies.unreachable += 1,
            }
        }
        any
    }

    /// Sends every packet with a system call of its own from now on.
    #[cfg(test)]
    fn without_offload(mut self) -> PacketSender {
        self.offload = false;
        self
    }

    /// Takes a packet, which is on its way by the return of [`PacketSender::flush`].
    ///
    /// # Errors
    /// Errors of this packet, or of waiting ones. A network that goes down is no error: its packets count as
    /// [`unsent`](PacketSender::unsent).
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let most = if self.offload {
            self.state.max_gso_segments().min(MAX_DATAGRAM / packet.len().max(1))
        } else {
            1
        };
        if most <= 1 {
            return self.transmit(packet, packet.len());
        }
        let run = match self.waiting.iter().position(|run| run.len == packet.len() || run.bytes.is_empty()) {
            Some(run) => run,
            None if self.waiting.len() < LENGTHS => {
                self.waiting.push(Run { len: 0, bytes: Vec::with_capacity(MAX_DATAGRAM) });
                self.waiting.len() - 1
            }
            None => {
                self.flush()?;
                0
            }
        };
        let run = &mut self.waiting[run];
        run.len = packet.len();
        run.bytes.extend_from_slice(packet);
        // All lengths are sent together, so that no packet waits for more than one full run of another length.
        if run.bytes.len() >= most * packet.len() {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends all waiting packets.
    ///
    /// # Errors
    /// As [`PacketSender::send`].
    pub fn flush(&mut self) -> io::Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut done = Ok(());
        // Repair packets are the longest, and should not overtake the packets that they cover.
        waiting.sort_unstable_by_key(|run| run.len);
        for run in &mut waiting {
            if done.is_ok() && !run.bytes.is_empty() {
                done = self.transmit(&run.bytes, run.len);
            }
            run.bytes.clear();
        }
        self.waiting = waiting;
        done
    }

    /// Packets that the system did not take.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Sends consecutive packets of `len` bytes each.
    fn transmit(&mut self, packets: &[u8], len: usize) -> io::Result<()> {
        let (mut rest, mut retries, mut replies) = (packets, 0, 0);
        self.longest = self.longest.max(len);
        while !rest.is_empty() {
            // The offload may turn out not to work here, or no longer after a change of route.
            let segments = self.state.max_gso_segments().max(1);
            let now = if segments > 1 { rest.len() } else { len };
            let segment_size = (now > len).then_some(len);
            let transmit = Transmit {
                destination: self.to,
                ecn: None,
                contents: &rest[..now],
                segment_size,
                src_ip: None,
            };
            match self.state.try_send((&self.socket).into(), &transmit) {
                Ok(()) => self.any_sent = true,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    wait(&self.socket, PollFlags::OUT)?;
                    continue;
                }
                // The error is about earlier packets: these were not sent yet.
                Err(_) if replies < REPLIES && self.hear() => {
                    self.check_path()?;
                    replies += 1;
                    continue;
                }
                Err(_) if now > len && self.state.max_gso_segments() <= 1 => continue,
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) && retries < RETRIES => {
                    retries += 1;
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                // A network that goes down is a loss like any other; a network that was never there is an error.
                Err(e) if self.any_sent && is_outage(&e) => self.unsent += (now / len) as u64,
                Err(e) => return Err(e),
            }
            rest = &rest[now..];
        }
        Ok(())
    }
}

/// Most bytes of a datagram that pass on the route to an address, by this machine's knowledge: its own network, or a
/// recent reply on the route.
///
/// # Errors
/// Those of [`Address::destination`]; [`LiveError::Interface`]; errors of the system.
pub fn most_bytes(address: &Address, interface: &Interface) -> Result<usize> {
    let to = address.destination()?;
    let ask = || -> io::Result<usize> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        interface.bind(&socket)?;
        socket.connect(&to.into())?;
        most_bytes_through(&socket.into())
    };
    ask().map_err(|e| Error::at("send to", address, interface.refusal(e)))
}

/// [`most_bytes`] on the route to a socket's connected address.
///
/// # Errors
/// Errors of the socket.
pub fn most_bytes_through(socket: &UdpSocket) -> io::Result<usize> {
    #[cfg(target_os = "linux")]
    let asked = match socket.peer_addr()?.is_ipv4() {
        true => rustix::net::sockopt::ip_mtu(socket).map(|mtu| (mtu as usize).saturating_sub(HEADERS_V4)),
        false => rustix::net::sockopt::ipv6_mtu(socket).map(|mtu| (mtu as usize).saturating_sub(HEADERS_V6)),
    };
    #[cfg(not(target_os = "linux"))]
    let asked: io::Result<usize> = Ok(MAX_DATAGRAM);
    match asked.map_err(io::Error::from) {
        Err(e) if is_unknown_option(&e) => Ok(MAX_DATAGRAM),
        asked => asked,
    }
}

/// Tells whether a system does not know an option of sockets.
fn is_unknown_option(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOPROTOOPT | libc::EOPNOTSUPP | libc::EINVAL | libc::ENOSYS))
}

fn as_far_as_possible(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if is_unknown_option(&e) => Ok(()),
        done => done,
    }
}

fn is_outage(error: &io::Error) -> bool {
    let outages = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ENETDOWN, libc::EPERM, libc::ENOBUFS];
    error.raw_os_error().is_some_and(|code| outages.contains(&code))
}

/// Receives packets.
pub struct PacketReceiver {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl PacketReceiver {
    /// A socket for packets that come to `address`; a multicast group is joined.
    ///
    /// # Errors
    /// Those of [`Address::local`]; [`LiveError::AddressInUse`], [`LiveError::NotLocal`], [`LiveError::Interface`];
    /// errors of the system.
    pub fn open(address: &Address, interface: &Interface) -> Result<PacketReceiver> {
        let local = address.local()?;
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
            Error::at("receive on", address, cause)
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

/// Requests a large receive buffer, for bursts that come while nobody reads.
pub fn enlarge(socket: &UdpSocket) {
    // Only administrators get more than the system's limit; if both fail, the system's own size stays.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BUFFER).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

/// Any address of this machine.
fn any(v4: bool, port: u16) -> SocketAddr {
    match v4 {
        true => (Ipv4Addr::UNSPECIFIED, port).into(),
        false => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

fn bind(to: SocketAddr, interface: &Interface) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    interface.bind(&socket)?;
    if to.is_ipv6() && to.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    if to.ip().is_multicast() {
        // Several receivers of one group on a machine all get its packets.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&to.into())?;
    match to.ip() {
        IpAddr::V4(group) if group.is_multicast() => {
            socket.join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(interface.index(&socket)?))?;
        }
        IpAddr::V6(group) if group.is_multicast() => {
            socket.join_multicast_v6(&group, interface.index(&socket)?)?
        }
        _ => {}
    }
    Ok(socket.into())
}

/// Waits until the socket can be used.
fn wait(socket: &UdpSocket, flags: PollFlags) -> io::Result<()> {
    wait_for(socket, flags, None).map(|_| ())
}

/// Waits until the socket can be used, at most `limit`. Returns false if it cannot by then.
fn wait_for(socket: &UdpSocket, flags: PollFlags, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.and_then(|limit| rustix::event::Timespec::try_from(limit).ok());
    loop {
        match poll(&mut [PollFd::new(socket, flags)], limit.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
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
}
