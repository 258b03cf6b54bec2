//! Sockets of datagrams: their interface, their buffers, the length that passes, and waiting for them.

use super::super::LiveError;
use super::super::address::{Address, is_of_each_network};
use super::super::system;
use fec_base::error::{Action, Error, ErrorKind};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The largest payload of a UDP datagram (over IPv4).
pub const MAX_DATAGRAM: usize = 65_507;
/// Requested bytes of a receive buffer; the system may give fewer.
const RECEIVE_BUFFER: usize = 32 << 20;
/// Bytes of the headers of UDP and IP in front of a datagram.
pub(super) const HEADERS_V4: usize = 28;
pub(super) const HEADERS_V6: usize = 48;

/// Time between two looks for an interface that was taken away.
const LOOK: Duration = Duration::from_secs(1);

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
    /// Checks that one interface is named where `at`, to which `address` was resolved, needs it, and not two.
    pub(super) fn check(&self, address: &Address, at: SocketAddr) -> Result<(), LiveError> {
        if let (Some(scope), Some(name)) = (address.scope(), &self.name)
            && scope != name
        {
            return Err(LiveError::TwoInterfaces(scope.to_owned()));
        }
        match at {
            SocketAddr::V6(at)
                if at.scope_id() == 0 && self.name.is_none() && is_of_each_network(*at.ip()) =>
            {
                Err(LiveError::InterfaceMissing)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn bind(&self, socket: &Socket) -> io::Result<()> {
        match &self.name {
            None => Ok(()),
            Some(name) => system::bind_to(socket, name),
        }
    }

    /// The interface's number, from the system, by any socket; 0 if none is named, for the system's choice.
    pub(super) fn index(&self, socket: &Socket) -> io::Result<u32> {
        let Some(name) = &self.name else { return Ok(0) };
        system::number_of(socket, name)
    }

    /// The reason why no socket could be opened: a network that is away, or the interface, if one is named.
    pub(super) fn refusal(&self, cause: io::Error) -> ErrorKind {
        match &self.name {
            _ if system::is_away(&cause) => LiveError::Unreachable(cause).into(),
            Some(name) => LiveError::Interface { name: name.clone(), cause }.into(),
            None => ErrorKind::Io(cause),
        }
    }
}

/// The interface that a socket is bound to. A modem that is unplugged comes back with its name and another number; a
/// socket stays with the number.
pub(super) struct Bound {
    name: String,
    number: u32,
    looked: Instant,
}

impl Bound {
    /// The interface of this name as it is now; `None` where it cannot be found by its name.
    pub(super) fn new(name: &str) -> Option<Bound> {
        Some(Bound { name: name.to_owned(), number: number_of(name).ok()?, looked: Instant::now() })
    }

    /// Looks, once a second at most, whether the interface has come back. Returns its new number.
    pub(super) fn new_number(&mut self, now: Instant) -> Option<u32> {
        if now < self.looked + LOOK {
            return None;
        }
        self.looked = now;
        number_of(&self.name).ok().filter(|number| *number != self.number)
    }

    /// Looks at the next chance.
    #[cfg(test)]
    pub(super) fn look_now(&mut self) {
        self.looked = Instant::now().checked_sub(LOOK).expect("this machine runs for a second");
    }

    /// Notes that another socket is bound to the interface's new number.
    pub(super) fn follow(&mut self, number: u32) {
        self.number = number;
    }
}

/// The same address on the interface of another number, if it is of one interface.
pub(super) fn moved_to(number: u32, mut at: SocketAddr) -> SocketAddr {
    if let SocketAddr::V6(at) = &mut at
        && at.scope_id() > 0
    {
        at.set_scope_id(number);
    }
    at
}

fn number_of(name: &str) -> io::Result<u32> {
    system::number_of(&Socket::new(Domain::IPV4, Type::DGRAM, None)?, name)
}

/// Most bytes of a datagram that pass on the route to an address, by this machine's knowledge: its own network, or a
/// recent reply on the route.
///
/// # Errors
/// Those of [`Address::destination`]; [`LiveError::Interface`], [`LiveError::InterfaceMissing`],
/// [`LiveError::TwoInterfaces`]; errors of the system.
pub fn most_bytes(address: &Address, interface: &Interface) -> fec_base::Result<usize> {
    let to = address.destination()?;
    interface.check(address, to).map_err(|e| Error::at(Action::SendTo, address, e))?;
    let ask = || -> io::Result<usize> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        interface.bind(&socket)?;
        socket.connect(&to.into())?;
        most_bytes_through(&socket.into())
    };
    ask().map_err(|e| Error::at(Action::SendTo, address, interface.refusal(e)))
}

/// [`most_bytes`] on the route to a socket's connected address.
///
/// # Errors
/// Errors of the socket.
pub fn most_bytes_through(socket: &UdpSocket) -> io::Result<usize> {
    let is_v4 = socket.peer_addr()?.is_ipv4();
    let headers = if is_v4 { HEADERS_V4 } else { HEADERS_V6 };
    match system::longest(socket, is_v4) {
        Err(e) if system::is_unknown_option(&e) => Ok(MAX_DATAGRAM),
        longest => longest.map(|longest| longest.saturating_sub(headers)),
    }
}

pub(super) fn as_far_as_possible(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(e) if system::is_unknown_option(&e) => Ok(()),
        done => done,
    }
}

/// Requests a large receive buffer, for bursts that come while nobody reads.
pub fn enlarge(socket: &UdpSocket) {
    // Only administrators get more than the system's limit; if both fail, the system's own size stays.
    if system::force_receive_buffer(socket, RECEIVE_BUFFER).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    }
}

/// Any address of this machine.
pub(super) fn any(v4: bool, port: u16) -> SocketAddr {
    match v4 {
        true => (Ipv4Addr::UNSPECIFIED, port).into(),
        false => (Ipv6Addr::UNSPECIFIED, port).into(),
    }
}

pub(super) fn bind(to: SocketAddr, interface: &Interface) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    interface.bind(&socket)?;
    if to.is_ipv6() && to.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    if to.ip().is_multicast() {
        system::check_groups()?;
        // Several receivers of one group on a machine all get its packets.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&to.into())?;
    join(&socket, to, interface.index(&socket)?)?;
    Ok(socket.into())
}

/// Joins the group at `to`, if it is one, on the interface of this number, or on the system's choice if that is 0.
///
/// # Errors
/// Those of the system; `EADDRINUSE` if the socket is a member already.
pub(super) fn join(socket: &Socket, to: SocketAddr, number: u32) -> io::Result<()> {
    match to {
        SocketAddr::V4(to) if to.ip().is_multicast() => {
            socket.join_multicast_v4_n(to.ip(), &InterfaceIndexOrAddress::Index(number))
        }
        SocketAddr::V6(to) if to.ip().is_multicast() => {
            socket.join_multicast_v6(to.ip(), if to.scope_id() > 0 { to.scope_id() } else { number })
        }
        _ => Ok(()),
    }
}

/// Waits until the socket can be used.
pub(super) fn wait(socket: &UdpSocket, flags: PollFlags) -> io::Result<()> {
    wait_for(socket, flags, None).map(|_| ())
}

/// Waits until the socket can be used, at most `limit`. Returns false if it cannot by then.
pub(super) fn wait_for(socket: &UdpSocket, flags: PollFlags, limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.and_then(|limit| rustix::event::Timespec::try_from(limit).ok());
    loop {
        match poll(&mut [PollFd::new(socket, flags)], limit.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}
