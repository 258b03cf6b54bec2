//! The text `udp://HOST:PORT`, and the address of a socket.

use super::LiveError;
use super::system::no_interface;
use fec_base::error::{Action, Error, Place, Result};
use fec_base::names::show_bytes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// A place on the network, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// `None` for `udp://:PORT`: any of this machine's addresses.
    host: Option<String>,
    /// The interface behind `%`, by its name or number: an address of each network alone does not say on which.
    scope: Option<String>,
    port: u16,
    /// True for `udp://@...`, by which VLC means a place to receive at.
    listens: bool,
}

/// Most names of options in one message.
const MOST_NAMES: usize = 16;

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

    /// Tells whether `path` reads as `HOST:PORT`, `[IPV6]:PORT` or `:PORT`, an address without `udp://`. A file may
    /// have such a name too.
    pub fn is_bare(path: &Path) -> bool {
        let Some(text) = path.to_str() else { return false };
        let is_name = |host: &str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        let parsed = Address::parsed(text).filter(|address| address.port > 0);
        parsed.is_some_and(|address| address.host.is_none_or(|host| text.contains('[') || is_name(&host)))
    }

    /// Reads `udp://HOST:PORT`, `udp://[IPV6]:PORT`, `udp://[IPV6%INTERFACE]:PORT` or `udp://:PORT`, and each with `@`
    /// in front of the host, for a place to receive at.
    ///
    /// # Errors
    /// [`LiveError::OtherScheme`], [`LiveError::OptionsInAddress`], [`LiveError::LargePort`], and
    /// [`LiveError::NotAnAddress`] for anything else.
    pub fn parse(path: &Path) -> std::result::Result<Address, LiveError> {
        if Address::is_other(path) {
            return Err(LiveError::OtherScheme(path.to_path_buf()));
        }
        let text = path.to_str().and_then(|text| text.strip_prefix("udp://"));
        if let Some((place, options)) = text.and_then(|text| text.split_once('?'))
            && let Some(address) = Address::parsed(place)
        {
            let names = options.split('&').map(|option| option.split('=').next().unwrap_or_default());
            let names = names.filter(|name| !name.is_empty()).take(MOST_NAMES).map(str::to_owned);
            let (address, names) = (address.to_string(), names.collect::<Vec<String>>());
            if !names.is_empty() {
                return Err(LiveError::OptionsInAddress { address, names });
            }
        }
        text.and_then(Address::parsed).ok_or_else(|| {
            match path.to_str().and_then(|text| text.rsplit_once(':')) {
                Some((_, port)) if port.len() > 4 && port.bytes().all(|b| b.is_ascii_digit()) => {
                    LiveError::LargePort { port: port.to_owned() }
                }
                _ => LiveError::NotAnAddress(path.to_path_buf()),
            }
        })
    }

    /// Reads what stands behind `udp://`.
    fn parsed(text: &str) -> Option<Address> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|_| port.bytes().all(|b| b.is_ascii_digit()))?;
        let (listens, host) = host.strip_prefix('@').map_or((false, host), |host| (true, host));
        let Some(v6) = host.strip_prefix('[') else {
            // An IPv6 address without brackets has no clear end.
            let host = Some(host).filter(|host| !host.contains([':', '/', '@', '?', '%', ']']))?;
            return Some(Address {
                host: (!host.is_empty()).then(|| host.to_owned()),
                scope: None,
                port,
                listens,
            });
        };
        let v6 = v6.strip_suffix(']')?;
        let (v6, scope) = v6.split_once('%').map_or((v6, None), |(v6, scope)| (v6, Some(scope)));
        let ip: Ipv6Addr = v6.parse().ok()?;
        // Other addresses exist once, and no interface belongs to them.
        let has_use = |scope: &str| !scope.is_empty() && !scope.contains('/') && is_of_each_network(ip);
        if scope.is_some_and(|scope| !has_use(scope)) {
            return None;
        }
        Some(Address { host: Some(ip.to_string()), scope: scope.map(str::to_owned), port, listens })
    }

    /// The address that packets are sent to.
    ///
    /// # Errors
    /// [`LiveError::IncompleteAddress`], [`LiveError::PlaceToReceive`], [`LiveError::Unresolved`],
    /// [`LiveError::NoAddress`], [`LiveError::Interface`].
    pub fn destination(&self) -> Result<SocketAddr> {
        let fail = |cause| Err(Error::at(Action::SendTo, self, cause));
        if self.host.is_none() && self.listens || self.host.is_some() && self.listens && !self.is_group() {
            return fail(LiveError::PlaceToReceive);
        }
        if self.host.is_none() || self.port == 0 {
            return fail(LiveError::IncompleteAddress);
        }
        self.resolve(Action::SendTo)
    }

    /// The address that a receiving socket is bound to; `None` is any address of this machine.
    ///
    /// # Errors
    /// [`LiveError::Unresolved`], [`LiveError::NoAddress`], [`LiveError::Interface`].
    pub fn local(&self) -> Result<Option<SocketAddr>> {
        match self.host {
            None => Ok(None),
            Some(_) => self.resolve(Action::ReceiveOn).map(Some),
        }
    }

    /// Tells whether the host is written as the address of a group: one of multicast, or of broadcast.
    pub fn is_group(&self) -> bool {
        let ip = self.host.as_deref().and_then(|host| host.parse::<IpAddr>().ok());
        ip.is_some_and(is_group)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The interface behind `%`, if one stands there.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    fn resolve(&self, action: Action) -> Result<SocketAddr> {
        let host = self.host.as_deref().unwrap_or_default();
        let fail = |cause| Error::at(action, self, cause);
        let Some(scope) = &self.scope else {
            let mut found =
                (host, self.port).to_socket_addrs().map_err(|e| fail(LiveError::Unresolved(e)))?;
            return found.next().ok_or_else(|| fail(LiveError::NoAddress));
        };
        // The number can be read, and so only the interface can be what the system does not find.
        let unknown = || LiveError::Interface { name: scope.clone(), cause: no_interface() };
        let mut found =
            (format!("{host}%{scope}"), self.port).to_socket_addrs().map_err(|_| fail(unknown()))?;
        found.next().ok_or_else(|| fail(unknown()))
    }
}

/// Tells whether packets to an address may reach several receivers.
pub(super) fn is_group(ip: IpAddr) -> bool {
    ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST)
}

/// Tells whether an address exists on each network, so that an interface has to say on which.
pub(crate) fn is_of_each_network(ip: Ipv6Addr) -> bool {
    // Multicast of an interface, or of a link.
    let of_link = matches!(ip.segments()[0] & 0xff0f, 0xff01 | 0xff02);
    ip.is_unicast_link_local() || of_link
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = show_bytes(self.host.as_deref().unwrap_or_default().as_bytes());
        match (&self.scope, host.parse::<Ipv6Addr>()) {
            (Some(scope), _) => write!(f, "udp://[{host}%{}]:{}", show_bytes(scope.as_bytes()), self.port),
            (None, Ok(v6)) => write!(f, "udp://[{v6}]:{}", self.port),
            (None, Err(_)) => write!(f, "udp://{host}:{}", self.port),
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
            "udp://@@host:1",
            "udp://host:1/x",
            "udp://[host]:1",
            "udp://[fe80::1%]:1",
            "udp://[fe80::1%a/b]:1",
            "udp://[2001:db8::1%lo]:1",
            "udp://fe80::1%lo:1",
            "udp://host%lo:1",
            "tcp://host:1",
        ] {
            assert!(Address::parse(Path::new(bad)).is_err(), "{bad}");
        }
        let to = |text| Address::parse(Path::new(text)).unwrap().destination();
        assert_eq!(to("udp://127.0.0.1:9").unwrap().to_string(), "127.0.0.1:9");
        assert_eq!(to("udp://[::1]:9").unwrap().to_string(), "[::1]:9");
        assert!(to("udp://:9").is_err() && to("udp://127.0.0.1:0").is_err());
    }

    /// VLC writes a place to receive at with `@`. A group is the same place for both ends.
    #[test]
    fn an_at_sign_is_for_receivers_and_groups() {
        let parse = |text: &str| Address::parse(Path::new(text)).expect("an address");
        assert_eq!(parse("udp://@:5000").local().expect("any"), None);
        assert_eq!(parse("udp://@:5000").to_string(), "udp://:5000");
        for (text, at) in [("udp://@127.0.0.1:5000", "127.0.0.1:5000"), ("udp://@[::1]:5000", "[::1]:5000")] {
            assert_eq!(parse(text).local().expect("it resolves").expect("an address").to_string(), at);
            let refused = parse(text).destination().unwrap_err();
            assert!(matches!(refused.cause(), Some(LiveError::PlaceToReceive)), "{refused}");
        }
        let refused = parse("udp://@:5000").destination().unwrap_err();
        assert!(matches!(refused.cause(), Some(LiveError::PlaceToReceive)), "{refused}");
        assert_eq!(
            parse("udp://@239.1.1.1:5000").destination().expect("a group").to_string(),
            "239.1.1.1:5000"
        );
        assert_eq!(parse("udp://@239.1.1.1:5000").to_string(), "udp://239.1.1.1:5000");
    }

    /// An address has no options; each that somebody writes is named, and its value is not repeated.
    #[test]
    fn options_in_an_address_are_named() {
        let fault = |text: &str| Address::parse(Path::new(text)).unwrap_err();
        let refused = fault("udp://@:5000?pkt_size=1316&ttl=4&&reuse&passphrase=secret");
        let LiveError::OptionsInAddress { address, names } = &refused else { panic!("{refused}") };
        assert_eq!(names, &["pkt_size", "ttl", "reuse", "passphrase"]);
        assert_eq!(address.to_string(), "udp://:5000");
        assert!(!refused.to_string().contains("secret"), "{refused}");
        let many = format!("udp://:1?{}", "a=1&".repeat(1000));
        assert!(
            matches!(fault(&many), LiveError::OptionsInAddress { names, .. } if names.len() == MOST_NAMES)
        );
        assert!(matches!(fault("udp://host?x:1"), LiveError::NotAnAddress(_)));
    }

    /// An address of each network has an interface, which messages show as it was written.
    #[test]
    fn an_interface_stands_behind_the_address() {
        let parse = |text: &str| Address::parse(Path::new(text)).expect("an address");
        for text in ["udp://[fe80::1%lo]:5000", "udp://[ff02::9%lo]:5000", "udp://[fe80::1%1]:5000"] {
            let to = parse(text).destination().expect("it resolves");
            assert!(matches!(to, SocketAddr::V6(to) if to.scope_id() == 1), "{text}: {to}");
            assert_eq!(parse(text).to_string(), text);
        }
        let unknown = parse("udp://[fe80::1%none0]:5000");
        for error in [unknown.destination().unwrap_err(), unknown.local().unwrap_err()] {
            assert!(
                matches!(error.cause(), Some(LiveError::Interface { name, .. }) if name == "none0"),
                "{error}"
            );
            assert!(error.to_string().contains("udp://[fe80::1%none0]:5000"), "{error}");
        }
        for (ip, needs) in
            [("fe80::1", true), ("ff02::9", true), ("ff01::9", true), ("ff05::9", false), ("::1", false)]
        {
            assert_eq!(is_of_each_network(ip.parse().expect("an address")), needs, "{ip}");
        }
    }

    #[test]
    fn addresses_without_their_beginning_are_known() {
        for text in
            ["127.0.0.1:5000", "host:5000", "a-b.lan:1", ":5000", "@:5000", "[::1]:5000", "[fe80::1%lo]:5000"]
        {
            assert!(Address::is_bare(Path::new(text)), "{text}");
        }
        for text in [
            "udp://host:5000",
            "host",
            "host:",
            "host:0",
            "host:65536",
            "host:+1",
            "./host:5000",
            "a b:5000",
            "::1",
            "fe80::1:5000",
            "[host]:1",
            "12:30:00",
            "a:b",
        ] {
            assert!(!Address::is_bare(Path::new(text)), "{text}");
        }
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
