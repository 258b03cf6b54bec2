//! A sender whose name cannot be resolved yet, because there is no network. A thread of its own looks it up again and
//! again: a lookup may take many seconds, and the other ways of a stream do not wait for it.

use super::super::LiveError;
use super::super::address::Address;
use super::super::system::is_unresolved_yet;
use super::sender::{PacketSender, Replies};
use super::socket::Interface;
use fec_base::error::{Action, Error, Result};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause between lookups of a name.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends packets to one place, as soon as its name is resolved.
pub(crate) enum WaySender {
    /// The address is known.
    Open(PacketSender),
    /// The name is looked up.
    Unresolved(Lookup),
}

/// A name that is looked up.
pub(crate) struct Lookup {
    interface: Interface,
    /// The last reason why the name could not be resolved.
    why: io::Error,
    found: Receiver<Found>,
    /// Ends the thread when it is dropped.
    _wanted: Arc<()>,
    /// Packets that came before the name was resolved.
    unsent: u64,
}

/// The result of a lookup.
type Found = std::result::Result<SocketAddr, io::Error>;

impl WaySender {
    /// A sender of packets to `address`.
    ///
    /// # Errors
    /// Those of [`PacketSender::open`], but for a name that cannot be resolved yet.
    pub(crate) fn open(address: &Address, interface: &Interface) -> Result<WaySender> {
        match PacketSender::open(address, interface) {
            Err(error) => match later(error) {
                Ok(why) => Lookup::start(address, interface, why).map(WaySender::Unresolved),
                Err(error) => Err(error),
            },
            Ok(sender) => Ok(WaySender::Open(sender)),
        }
    }

    /// As [`PacketSender::send`]; a packet without an address counts as unsent.
    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        if let WaySender::Unresolved(lookup) = self {
            match lookup.opened()? {
                Some(sender) => *self = WaySender::Open(sender),
                None => lookup.unsent += 1,
            }
        }
        match self {
            WaySender::Open(sender) => sender.send(packet),
            WaySender::Unresolved(_) => Ok(()),
        }
    }

    /// As [`PacketSender::flush`].
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.open_now().map_or(Ok(()), PacketSender::flush)
    }

    /// As [`PacketSender::listen`].
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        self.open_now().map_or(Ok(()), PacketSender::listen)
    }

    /// As [`PacketSender::receive`]; nothing comes from a place whose address is not known.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.open_now()?.receive(buffer)
    }

    /// The address that packets go to, if it is known.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        self.open_already().map(PacketSender::destination)
    }

    /// As [`PacketSender::replies`].
    pub(crate) fn replies(&self) -> Replies {
        match self {
            WaySender::Open(sender) => sender.replies(),
            WaySender::Unresolved(_) => Replies::default(),
        }
    }

    /// Packets that the system did not take, or that had no address.
    pub(crate) fn unsent(&self) -> u64 {
        match self {
            WaySender::Open(sender) => sender.unsent(),
            WaySender::Unresolved(lookup) => lookup.unsent,
        }
    }

    /// The reason why the last packets did not go out, if the network is away.
    pub(crate) fn away(&self) -> Option<LiveError> {
        match self {
            WaySender::Open(sender) => sender.away().map(LiveError::Unreachable),
            WaySender::Unresolved(lookup) => {
                let Lookup { why, unsent, .. } = lookup;
                (*unsent > 0).then(|| LiveError::Unresolved(io::Error::new(why.kind(), why.to_string())))
            }
        }
    }

    /// Tells whether the system has taken any packet.
    pub(crate) fn any_sent(&self) -> bool {
        self.open_already().is_some_and(PacketSender::any_sent)
    }

    fn open_already(&self) -> Option<&PacketSender> {
        match self {
            WaySender::Open(sender) => Some(sender),
            WaySender::Unresolved(_) => None,
        }
    }

    fn open_now(&mut self) -> Option<&mut PacketSender> {
        match self {
            WaySender::Open(sender) => Some(sender),
            WaySender::Unresolved(_) => None,
        }
    }
}

/// The reason why a name may be resolved later, or else the error.
fn later(mut error: Error) -> std::result::Result<io::Error, Error> {
    match error.cause_mut() {
        Some(LiveError::Unresolved(why)) if is_unresolved_yet(why) => {
            Ok(std::mem::replace(why, io::ErrorKind::Other.into()))
        }
        _ => Err(error),
    }
}

impl Lookup {
    /// Starts to look a name up that could not be resolved for the reason `why`.
    fn start(address: &Address, interface: &Interface, why: io::Error) -> Result<Lookup> {
        let fail = |e| Error::at(Action::SendTo, address, interface.refusal(e));
        // An interface that there is not is told now.
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).map_err(fail)?;
        interface.index(&socket).map_err(fail)?;
        let (tell, found) = channel();
        let wanted = Arc::new(());
        let (address, is_wanted) = (address.clone(), Arc::downgrade(&wanted));
        let look = move || look_up(&address, &is_wanted, |result| drop(tell.send(result)));
        std::thread::Builder::new().name("lookup".into()).spawn(look).map_err(fail)?;
        Ok(Lookup { interface: interface.clone(), why, found, _wanted: wanted, unsent: 0 })
    }

    /// The sender, if the name is resolved by now.
    fn opened(&mut self) -> io::Result<Option<PacketSender>> {
        match self.found.try_recv() {
            Ok(Ok(to)) => {
                let mut sender = PacketSender::open_at(to, &self.interface)?;
                sender.count_unsent(self.unsent);
                Ok(Some(sender))
            }
            Ok(Err(why)) => Err(why),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }
}

/// Looks a name up until it is resolved, turns out not to exist, or is not wanted any more.
fn look_up(address: &Address, is_wanted: &Weak<()>, tell: impl Fn(Found)) {
    while is_wanted.strong_count() > 0 {
        std::thread::sleep(PAUSE);
        match address.destination().map_err(later) {
            Ok(to) => return tell(Ok(to)),
            Err(Ok(_)) => {}
            Err(Err(error)) => return tell(Err(io::Error::other(error.to_string()))),
        }
    }
}
