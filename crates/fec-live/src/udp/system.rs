//! Differences between Unixes in sockets, each with its reason. Linux is what live streams are made for and tested on.
//! An option that a system lacks is the error that Linux has for an unknown one.

use super::super::LiveError;
use socket2::Socket;
use std::io;
use std::net::UdpSocket;

/// The error of an option that the system lacks.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn unknown() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOPROTOOPT)
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

/// Tells whether an address cannot be reached now, and perhaps later: no route, or a network that is down.
pub(crate) fn is_away(error: &io::Error) -> bool {
    let away = [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ENETDOWN, libc::EADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|code| away.contains(&code))
}

/// Tells whether a name cannot be resolved now, and perhaps later (`EAI_AGAIN`). The standard library keeps only the
/// words of the C library; with other words a name counts as one that there is not.
pub(super) fn is_unresolved_yet(error: &io::Error) -> bool {
    const AGAIN: [&str; 2] = ["Temporary failure in name resolution", "Try again"];
    let words = error.to_string();
    AGAIN.iter().any(|again| words.ends_with(again))
}

/// Tells whether an error may pass with time: the network is away, or a name cannot be resolved without it.
pub(crate) fn may_pass(error: &LiveError) -> bool {
    match error {
        LiveError::Unreachable(_) => true,
        LiveError::Unresolved(why) => is_unresolved_yet(why),
        _ => false,
    }
}
