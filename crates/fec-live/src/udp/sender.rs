//! Sends packets, many with one system call where the kernel can.

use super::super::address::Address;
use super::super::system::{self, Reply};
use super::socket::{Bound, HEADERS_V4, HEADERS_V6, Interface, MAX_DATAGRAM};
use super::socket::{any, as_far_as_possible, moved_to, wait};
use fec_base::error::{Action, Error, Result};
use quinn_udp::{Transmit, UdpSocketState};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Requested bytes of a send buffer.
const SEND_BUFFER: usize = 2 << 20;
/// Number of different packet lengths that are gathered at the same time.
const LENGTHS: usize = 4;
/// Most datagrams that are read to find one that counts.
const MOST_READ: u32 = 64;
/// Number of times that packets are sent again because the system reported on others instead.
const REPLIES: u32 = 16;
/// Number of attempts at a full queue of the system, 1 ms apart, before the packets count as not sent.
const RETRIES: u32 = 50;

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
    /// The system's number of the error because of which the last packets did not go out.
    away: Option<i32>,
    /// The interface that packets go through, if one was named.
    through: Option<(Interface, Bound)>,
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
    /// Those of [`Address::destination`]; [`Interface`](crate::LiveError::Interface),
    /// [`InterfaceMissing`](crate::LiveError::InterfaceMissing), [`TwoInterfaces`](crate::LiveError::TwoInterfaces);
    /// errors of the system.
    pub fn open(address: &Address, interface: &Interface) -> Result<PacketSender> {
        let to = address.destination()?;
        interface.check(address, to).map_err(|e| Error::at(Action::SendTo, address, e))?;
        let mut sender = PacketSender::open_at(to, interface)
            .map_err(|e| Error::at(Action::SendTo, address, interface.refusal(e)))?;
        if let (None, Some(scope)) = (&sender.through, address.scope()) {
            sender.through = Bound::new(scope).map(|bound| (interface.clone(), bound));
        }
        Ok(sender)
    }

    /// A socket for packets to `to`.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn open_at(mut to: SocketAddr, interface: &Interface) -> io::Result<PacketSender> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        if let SocketAddr::V6(to) = &mut to
            && to.scope_id() == 0
        {
            // An address that exists on every network needs the interface to say on which.
            to.set_scope_id(interface.index(&socket)?);
        }
        interface.bind(&socket)?;
        match to {
            SocketAddr::V4(to) if to.ip().is_multicast() => socket.set_multicast_ttl_v4(interface.hops)?,
            SocketAddr::V6(to) if to.ip().is_multicast() => {
                socket.set_multicast_hops_v6(interface.hops)?;
                socket.set_multicast_if_v6(to.scope_id())?;
            }
            _ => {}
        }
        socket.bind(&any(to.is_ipv4(), 0).into())?;
        // A smaller buffer is only slower.
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        let mut sender = PacketSender::new(socket.into(), to)?;
        let bound = interface.name.as_deref().and_then(Bound::new);
        sender.through = bound.map(|bound| (interface.clone(), bound));
        // A system that cannot do this tells less of the route.
        as_far_as_possible(sender.learn_path())?;
        Ok(sender)
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
            away: None,
            through: None,
        })
    }

    /// Makes the system refuse packets that are too long for a part of the route, as soon as that part says so, and
    /// report the network's replies.
    fn learn_path(&self) -> io::Result<()> {
        as_far_as_possible(system::refuse_too_long(&self.socket, self.to.is_ipv4()))?;
        system::report_replies(&self.state, &self.socket)
    }

    /// The address that packets go to.
    pub fn destination(&self) -> SocketAddr {
        self.to
    }

    /// Reads a datagram that came back from the packets' destination, without waiting; datagrams from elsewhere are
    /// dropped. Returns its length, cut to that of `buffer`; `None` if none is there, or none of the next 64.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        for _ in 0..MOST_READ {
            match self.socket.recv_from(buffer) {
                Ok((len, from)) if self.is_destination(from) => return Some(len),
                // An error is the network's reply to an earlier packet, which `listen` takes in.
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        None
    }

    fn is_destination(&self, from: SocketAddr) -> bool {
        (from.ip(), from.port()) == (self.to.ip(), self.to.port())
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
            Some(most) if most < self.longest => Err(system::too_long()),
            _ => Ok(()),
        }
    }

    /// Takes in the network's replies. Returns whether there was any.
    fn hear(&mut self) -> bool {
        let mut any = false;
        while let Some(reply) = system::reply(&self.state, &self.socket) {
            any = true;
            match reply {
                Reply::Longest(longest) => {
                    let headers = if self.to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
                    self.hear_of(longest.saturating_sub(headers));
                }
                Reply::Refused => self.replies.refused += 1,
                Reply::Unreachable => self.replies.unreachable += 1,
            }
        }
        any
    }

    /// Takes in a reply that so many bytes of a datagram pass.
    pub(crate) fn hear_of(&mut self, most: usize) {
        self.replies.most = Some(self.replies.most.map_or(most, |known| known.min(most)));
    }

    /// Sends every packet with a system call of its own from now on.
    #[cfg(test)]
    pub(super) fn without_offload(mut self) -> PacketSender {
        self.offload = false;
        self
    }

    /// Takes a packet, which is on its way by the return of [`PacketSender::flush`].
    ///
    /// # Errors
    /// Errors of this packet, or of waiting ones. A network that is down, or not there yet, is no error: its packets
    /// count as [`unsent`](PacketSender::unsent).
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
        for run in waiting.iter_mut().filter(|run| !run.bytes.is_empty()) {
            match done {
                Ok(()) => done = self.transmit(&run.bytes, run.len),
                Err(_) => self.unsent += (run.bytes.len() / run.len) as u64,
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

    /// Counts packets that came before this sender was open.
    pub(super) fn count_unsent(&mut self, packets: u64) {
        self.unsent += packets;
    }

    /// The error because of which the last packets did not go out, if the network is away.
    pub fn away(&self) -> Option<io::Error> {
        self.away.map(io::Error::from_raw_os_error)
    }

    /// Tells whether the system has taken any packet.
    pub fn any_sent(&self) -> bool {
        self.any_sent
    }

    /// Opens another socket in place of one whose interface has come back under another number.
    fn follow_interface(&mut self) {
        let Some((interface, bound)) = &mut self.through else { return };
        let Some(number) = bound.new_number(Instant::now()) else { return };
        let to = moved_to(number, self.to);
        // An interface that is not ready yet, or gone again, is looked for again.
        if let Ok(opened) = PacketSender::open_at(to, interface) {
            bound.follow(number);
            (self.socket, self.state, self.to) = (opened.socket, opened.state, to);
        }
    }

    /// Sends consecutive packets of `len` bytes each. Those that an error leaves count as not sent.
    fn transmit(&mut self, mut packets: &[u8], len: usize) -> io::Result<()> {
        if self.away.is_some() {
            self.follow_interface();
        }
        let done = self.transmit_all(&mut packets, len);
        self.unsent += (packets.len() / len.max(1)) as u64;
        done
    }

    /// Sends packets; `rest` has those that are left.
    fn transmit_all(&mut self, rest: &mut &[u8], len: usize) -> io::Result<()> {
        let (mut retries, mut replies) = (0, 0);
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
                Ok(()) => (self.any_sent, self.away) = (true, None),
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
                Err(e) if system::is_full(&e) && retries < RETRIES => {
                    retries += 1;
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                }
                // A network that goes down is a loss like any other, and so is one that is not there yet.
                Err(e) if may_come_back(&e, self.any_sent) => {
                    self.away = e.raw_os_error();
                    self.unsent += (now / len) as u64;
                }
                Err(e) => return Err(e),
            }
            *rest = &rest[now..];
        }
        Ok(())
    }
}

/// Tells whether packets may pass again after an error.
fn may_come_back(error: &io::Error, any_sent: bool) -> bool {
    system::is_away(error) || system::is_gone(error) || any_sent && system::is_outage(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets go out again through an interface that comes back, which a sender finds by its name.
    #[test]
    fn an_interface_that_comes_back_is_followed() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = receiver.local_addr().expect("its address");
        let interface = Interface { name: Some("lo".into()), ..Interface::default() };
        let mut sender = PacketSender::open_at(to, &interface).expect("it opens");
        let from = |sender: &PacketSender| sender.socket.local_addr().expect("its address").port();
        let first = from(&sender);
        let send = |sender: &mut PacketSender| {
            sender.away = Some(libc::ENODEV);
            sender.send(b"packet").and_then(|()| sender.flush()).expect("it is taken");
            receiver.recv_from(&mut [0; 9]).expect("it comes").1.port()
        };
        sender.through.as_mut().expect("it has a name").1.look_now();
        assert_eq!(send(&mut sender), from(&sender));
        assert_eq!(from(&sender), first, "the interface is the same, and so is the socket");
        let bound = &mut sender.through.as_mut().expect("it has a name").1;
        bound.follow(77_777);
        bound.look_now();
        let second = send(&mut sender);
        assert!(second != first && second == from(&sender) && sender.away.is_none());
        assert_eq!(send(&mut sender), second, "once");
    }
}
