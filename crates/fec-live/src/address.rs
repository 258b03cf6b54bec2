//! The text `udp://HOST:PORT`, and the address of a socket.

use super::LiveError;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::names::show_bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// A place on the network, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `None` for `udp://:PORT`: any of this machine's addresses.
    host: Option<String>,
    port: u16,
}

impl Address {
    /// Tells whether `path` names a place on the network.
    pub fn is_one(path: &Path) -> bool {
        path.as_os_str().as_encoded_bytes().starts_with(b"udp://")
    }

    /// Tells whether `path` names a place on the network that packets cannot be sent to, such as tcp:// or srt://.
    pub fn is_other(path: &Path) -> bool {
        let Some((scheme, _)) = path.to_str().and_then(|text| text.split_once("://")) else { return false };
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        is_scheme && scheme != "udp" && !path.parent().is_some_and(Path::is_dir)
    }

    /// Reads `udp://HOST:PORT`, `udp://[IPV6]:PORT` or `udp://:PORT`.
    ///
    /// # Errors
    /// [`LiveError::OtherScheme`], [`LiveError::LargePort`], and [`LiveError::NotAnAddress`] for anything else.
    pub fn parse(path: &Path) -> std::result::Result<Address, LiveError> {
        if Address::is_other(path) {
            return Err(LiveError::OtherScheme(path.to_path_buf()));
        }
        let parsed = path.to_str().and_then(|text| text.strip_prefix("udp://")).and_then(|text| {
            let (host, port) = text.rsplit_once(':')?;
            let port = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit()))?;
            let host = match host.strip_prefix('[').map(|h| h.strip_suffix(']')) {
                Some(Some(v6)) => v6,
                Some(None) => return None,
                // An IPv6 address without brackets has no clear end.
                None if host.contains([':', '/', '@']) => return None,
                None => host,
            };
            Some(Address { host: (!host.is_empty()).then(|| host.to_owned()), port })
        });
        parsed.ok_or_else(|| match path.to_str().and_then(|text| text.rsplit_once(':')) {
            Some((_, port)) if port.len() > 4 && port.bytes().all(|b| b.is_ascii_digit()) => {
                LiveError::LargePort { port: port.to_owned() }
            }
            _ => LiveError::NotAnAddress(path.to_path_buf()),
        })
    }

    /// The address that packets are sent to.
    ///
    /// # Errors
    /// [`LiveError::IncompleteAddress`], [`LiveError::Unresolved`], [`LiveError::NoAddress`].
    pub fn destination(&self) -> Result<SocketAddr> {
        if self.host.is_none() || self.port == 0 {
            return Err(Error::at(Action::SendTo, self, LiveError::IncompleteAddress));
        }
        self.resolve(Action::SendTo)
    }

    /// The address that a receiving socket is bound to; `None` is any address of this machine.
    ///
    /// # Errors
    /// [`LiveError::Unresolved`], [`LiveError::NoAddress`].
    pub fn local(&self) -> Result<Option<SocketAddr>> {
        match self.host {
            None => Ok(None),
            Some(_) => self.resolve(Action::ReceiveOn).map(Some),
        }
    }

    /// Tells whether the host is written as the address of a group: one of multicast, or of broadcast.
    pub fn is_group(&self) -> bool {
        let host = self.host.as_deref().unwrap_or_default().split('%').next().unwrap_or_default();
        match host.parse::<IpAddr>() {
            Ok(ip) => is_group(ip),
            Err(_) => false,
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn resolve(&self, action: Action) -> Result<SocketAddr> {
        let host = self.host.as_deref().unwrap_or_default();
        let fail = |cause| Error::at(action, self, cause);
        let mut found = (host, self.port).to_socket_addrs().map_err(|e| fail(LiveError::Unresolved(e)))?;
        found.next().ok_or_else(|| fail(LiveError::NoAddress))
    }
}

/// Tells whether packets to an address may reach several receivers.
pub(super) fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = self.host.as_deref().unwrap_or_default();
        let host = show_bytes(host.as_bytes());
        match host.parse::<Ipv6Addr>() {
            Ok(v6) => write!(f, "udp://[{v6}]:{}", self.port),
            Err(_) => write!(f, "udp://{host}:{}", self.port),
        }
    }
}

impl From<&Address> for Place {
    fn from(address: &Address) -> Place {
        Place::Address(address.to_string())
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

    #[test]
    fn what_is_no_address_is_told_by_its_fault() {
        let fault = |text: &str| Address::parse(Path::new(text)).unwrap_err();
        for text in ["udp://host:65536", "udp://host:99999", "udp://host:123456789"] {
            assert!(matches!(fault(text), LiveError::LargePort { port } if text.ends_with(&port)), "{text}");
        }
        for text in
            ["udp://host:1234x", "udp://host:+12345", "udp://host:", "udp://user@host:1", "udp://host"]
        {
            assert!(matches!(fault(text), LiveError::NotAnAddress(_)), "{text}");
        }
        for text in ["tcp://host:1", "srt://host:99999", "a+b-c.1://x"] {
            assert!(Address::is_other(Path::new(text)), "{text}");
            assert!(matches!(fault(text), LiveError::OtherScheme(_)), "{text}");
        }
        for text in ["udp://host:1", "file", "/a://b", "1tcp://host", "://host", "a b://host"] {
            assert!(!Address::is_other(Path::new(text)), "{text}");
        }
        let local = |text: &str| Address::parse(Path::new(text)).unwrap().local().unwrap();
        assert_eq!(
            (local("udp://:5000"), local("udp://127.0.0.1:5000").map(|at| at.port())),
            (None, Some(5000))
        );
        assert_eq!(Address::parse(Path::new("udp://:5000")).unwrap().port(), 5000);
    }
}
