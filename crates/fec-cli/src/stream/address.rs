//! `udp://HOST:PORT` in words, and as the address of a socket.

use crate::failure::{Exit, Failure, Result};
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// A place on the network, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// `None` for `udp://:PORT`: any of this machine's addresses.
    host: Option<String>,
    port: u16,
}

impl Address {
    /// Whether `path` is meant as a place on the network.
    pub(crate) fn is_one(path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().starts_with(b"udp://")
    }

    /// Reads `udp://HOST:PORT`, `udp://[IPV6]:PORT` or `udp://:PORT`.
    pub(crate) fn parse(path: &Path) -> Result<Address> {
        let parsed = path.to_str().and_then(|text| text.strip_prefix("udp://")).and_then(|text| {
            let (host, port) = text.rsplit_once(':')?;
            let port = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit()))?;
            let host = match host.strip_prefix('[').map(|h| h.strip_suffix(']')) {
                Some(Some(v6)) => v6,
                Some(None) => return None,
                // Of an IPv6 address without brackets nobody knows where it ends.
                None if host.contains([':', '/', '@']) => return None,
                None => host,
            };
            Some(Address { host: (!host.is_empty()).then(|| host.to_owned()), port })
        });
        parsed.ok_or_else(|| {
            Failure::usage(format!("{}: not an address", crate::failure::show(path)))
                .help("write udp://HOST:PORT, udp://[::1]:PORT or, to receive on all interfaces, udp://:PORT")
        })
    }

    /// Where packets are sent to.
    pub(crate) fn destination(&self) -> Result<SocketAddr> {
        if self.host.is_none() || self.port == 0 {
            return Err(Failure::usage(format!("send to {self}: host or port is missing"))
                .help("name both: -o udp://HOST:PORT"));
        }
        self.resolve("send to")
    }

    /// Where packets are received, for a socket to be bound to; `None`: any address of this machine.
    pub(crate) fn local(&self) -> Result<Option<SocketAddr>> {
        match self.host {
            None => Ok(None),
            Some(_) => self.resolve("receive on").map(Some),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn resolve(&self, action: &str) -> Result<SocketAddr> {
        let host = self.host.as_deref().unwrap_or_default();
        let fail = |cause: String| {
            Failure::new(Exit::Io, format!("{action} {self}: {cause}"))
                .help("give a name that resolves, or an IP address")
        };
        let mut found = (host, self.port).to_socket_addrs().map_err(|e| fail(e.to_string()))?;
        found.next().ok_or_else(|| fail("the name has no address".to_owned()))
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or_default();
        let host = crate::failure::show_bytes(host.as_bytes());
        match host.parse::<Ipv6Addr>() {
            Ok(v6) => write!(f, "udp://[{v6}]:{}", self.port),
            Err(_) => write!(f, "udp://{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_strictly() {
        for good in ["udp://:5000", "udp://127.0.0.1:1", "udp://[::1]:65535", "udp://example.org:80"] {
            assert_eq!(Address::parse(Path::new(good)).unwrap().to_string(), good);
        }
        for bad in [
            "udp://",
            "udp://host",
            "udp://host:",
            "udp://host:65536",
            "udp://host:+1",
            "udp://::1:5000",
            "udp://[::1:5000",
            "udp://user@host:1",
            "udp://host:1/x",
            "tcp://host:1",
        ] {
            assert!(Address::parse(Path::new(bad)).is_err(), "{bad}");
        }
        let to = |text| Address::parse(Path::new(text)).unwrap().destination();
        assert_eq!(to("udp://127.0.0.1:9").unwrap().to_string(), "127.0.0.1:9");
        assert_eq!(to("udp://[::1]:9").unwrap().to_string(), "[::1]:9");
        assert!(to("udp://:9").is_err() && to("udp://127.0.0.1:0").is_err());
    }
}
