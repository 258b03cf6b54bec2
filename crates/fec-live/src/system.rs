//! Differences between systems in sockets, each with its reason. Linux is what live streams are made for and tested on.
//! An option that a system lacks is the error that Linux has for an unknown one.

use super::LiveError;
use quinn_udp::UdpSocketState;
use rustix::io::Errno;
use socket2::Socket;
use std::io;
use std::net::UdpSocket;

/// Errors of an option that the system does not know.
#[cfg(unix)]
const UNKNOWN: &[Errno] = &[Errno::NOPROTOOPT, Errno::OPNOTSUPP, Errno::INVAL, Errno::NOSYS];
#[cfg(not(unix))]
const UNKNOWN: &[Errno] = &[Errno::NOPROTOOPT, Errno::OPNOTSUPP, Errno::INVAL];

/// Errors of a socket whose interface was taken away. Windows says that there is no route.
#[cfg(unix)]
const GONE: &[Errno] = &[Errno::NODEV, Errno::NXIO];
#[cfg(not(unix))]
const GONE: &[Errno] = &[];

/// Errors that may pass where packets have passed before. On Unix a firewall says that it is not permitted.
#[cfg(unix)]
const OUTAGES: &[Errno] = &[Errno::PERM, Errno::NOBUFS];
#[cfg(not(unix))]
const OUTAGES: &[Errno] = &[Errno::NOBUFS];

/// A reply of the network to a packet that was sent earlier.
#[cfg_attr(
    not(any(target_os = "linux", target_os = "android")),
    allow(dead_code, reason = "only Linux tells of them")
)]
pub(super) enum Reply {
    /// It was too long: a packet of so many bytes passes, headers included.
    Longest(usize),
    /// Nobody receives there.
    Refused,
    /// There is no route.
    Unreachable,
}

/// Tells whether an error of the system is one of these.
fn is_one_of(error: &io::Error, codes: &[Errno]) -> bool {
    Errno::from_io_error(error).is_some_and(|code| codes.contains(&code))
}

/// The error of an option that the system lacks.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn unknown() -> io::Error {
    Errno::NOPROTOOPT.into()
}

/// The error of an interface that is named where only Linux can find it by its name.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn no_interfaces() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "on this system fec cannot choose an interface by its name")
}

/// Binds a socket to the network interface of this name.
///
/// # Errors
/// Those of the system; `Unsupported` on others than Linux.
pub(super) fn bind_to(socket: &Socket, name: &str) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return socket.bind_device(Some(name.as_bytes()));
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, name);
        Err(no_interfaces())
    }
}

/// The number of the network interface of this name, asked by any socket.
///
/// # Errors
/// Those of the system; `Unsupported` on others than Linux.
pub(super) fn number_of(socket: &Socket, name: &str) -> io::Result<u32> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return Ok(rustix::net::netdevice::name_to_index(socket, name)?);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, name);
        Err(no_interfaces())
    }
}

/// The longest packet that passes to the address that a socket is connected to, headers included, by what the system
/// knows of the route.
///
/// # Errors
/// Those of the system; `ENOPROTOOPT` on others than Linux, which do not tell.
pub(super) fn longest(socket: &UdpSocket, is_v4: bool) -> io::Result<usize> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
        let longest = if is_v4 { ip_mtu(socket)? } else { ipv6_mtu(socket)? };
        Ok(longest as usize)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, is_v4);
        Err(unknown())
    }
}

/// Makes the system refuse packets that are too long for a part of the route, in place of cutting them.
///
/// # Errors
/// Those of the system; `ENOPROTOOPT` on others than Linux, which cut them.
pub(super) fn refuse_too_long(socket: &UdpSocket, is_v4: bool) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
        use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover};
        let set = match is_v4 {
            true => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO),
            false => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO),
        };
        Ok(set?)
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, is_v4);
        Err(unknown())
    }
}

/// Sets the receive buffer of a socket beyond the system's limit, as an administrator may.
///
/// # Errors
/// Those of the system; `ENOPROTOOPT` on others than Linux, where nobody may.
pub(super) fn force_receive_buffer(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return Ok(rustix::net::sockopt::set_socket_recv_buffer_size_force(socket, bytes)?);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (socket, bytes);
        Err(unknown())
    }
}

/// Fails where a socket cannot be bound to the address of a group. Windows has sockets only for all that comes to a
/// port, and packets to other groups, or to the machine itself, would pass for packets of the stream.
///
/// # Errors
/// `Unsupported` on others than Unix.
pub(super) fn check_groups() -> io::Result<()> {
    #[cfg(unix)]
    return Ok(());
    #[cfg(not(unix))]
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "on this system fec cannot receive what is sent to a group",
    ))
}

/// Makes the system keep the network's replies for [`reply`]. Only Linux has them; elsewhere nothing happens.
///
/// # Errors
/// Those of the system.
pub(super) fn report_replies(state: &UdpSocketState, socket: &UdpSocket) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return state.enable_transport_errors(socket.into());
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (state, socket);
        Ok(())
    }
}

/// The network's next reply to packets that were sent; `None` if there is none, or the system does not tell.
pub(super) fn reply(state: &UdpSocketState, socket: &UdpSocket) -> Option<Reply> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let error = state.recv_transport_error(socket.into()).ok()??;
        Some(match error.mtu() {
            Some(mtu) => Reply::Longest(mtu as usize),
            None if error.raw_errno == Errno::CONNREFUSED.raw_os_error() => Reply::Refused,
            None => Reply::Unreachable,
        })
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = (state, socket);
        None
    }
}

/// Packets that came to a socket while its receive buffer was full; `None` if the system does not tell.
pub(super) fn dropped(socket: &UdpSocket) -> Option<u64> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let inode = rustix::fs::fstat(socket).ok()?.st_ino.to_string();
        let is_v4 = socket.local_addr().is_ok_and(|at| at.is_ipv4());
        let table = std::fs::read_to_string(if is_v4 { "/proc/net/udp" } else { "/proc/net/udp6" }).ok()?;
        // sl local remote st queues tr:when retrnsmt uid timeout inode ref pointer drops
        let line = table.lines().find(|line| line.split_ascii_whitespace().nth(9) == Some(&inode))?;
        line.split_ascii_whitespace().nth(12)?.parse().ok()
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    {
        let _ = socket;
        None
    }
}

/// The error of an interface that there is not.
pub(super) fn no_interface() -> io::Error {
    #[cfg(unix)]
    return Errno::NODEV.into();
    #[cfg(not(unix))]
    io::Error::new(io::ErrorKind::NotFound, "there is no such interface")
}

/// The error of a packet that is too long for the route.
pub(super) fn too_long() -> io::Error {
    Errno::MSGSIZE.into()
}

/// Tells whether a packet is too long for the route.
pub(super) fn is_too_long(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::MSGSIZE])
}

/// Tells whether the system does not know an option of sockets.
pub(super) fn is_unknown_option(error: &io::Error) -> bool {
    is_one_of(error, UNKNOWN)
}

/// Tells whether the system's queue of packets is full.
pub(super) fn is_full(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NOBUFS])
}

/// Tells whether the interface of an open socket was taken away.
pub(super) fn is_gone(error: &io::Error) -> bool {
    is_one_of(error, GONE)
}

/// Tells whether an error may pass where packets have passed before.
pub(super) fn is_outage(error: &io::Error) -> bool {
    is_one_of(error, OUTAGES)
}

/// Tells whether an earlier packet found nobody. Windows says that of a connection that was reset.
pub fn is_refused(error: &io::Error) -> bool {
    let is_reset = cfg!(not(unix)) && error.kind() == io::ErrorKind::ConnectionReset;
    is_reset || error.kind() == io::ErrorKind::ConnectionRefused
}

/// Tells whether an address cannot be reached now, and perhaps later: no route, or a network that is down.
pub(super) fn is_away(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::NETDOWN, Errno::ADDRNOTAVAIL])
}

/// Tells whether a name cannot be resolved now, and perhaps later (`EAI_AGAIN`). On Unix the standard library keeps
/// only the words of the C library; with other words a name counts as one that there is not. Windows has a number
/// (`WSATRY_AGAIN`), and words of every language.
pub(super) fn is_unresolved_yet(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        const AGAIN: [&str; 2] = ["Temporary failure in name resolution", "Try again"];
        let words = error.to_string();
        AGAIN.iter().any(|again| words.ends_with(again))
    }
    #[cfg(not(unix))]
    {
        error.raw_os_error() == Some(11_002)
    }
}

/// Tells whether an error may pass with time: the network is away, or a name cannot be resolved without it.
pub(super) fn may_pass(error: &LiveError) -> bool {
    match error {
        LiveError::Unreachable(_) => true,
        LiveError::Unresolved(why) => is_unresolved_yet(why),
        _ => false,
    }
}
