//! The sender's talk with one listener: questions are repeated until they are answered or their time is over.

use super::error::LinkError;
use super::message::{Message, Reason};
use super::terms::Result;
use fec_live::Chunk;
use fec_live::address::Address;
use fec_live::udp::{MAX_DATAGRAM, PacketReceiver, is_refused, most_bytes_through};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Interval after which a question is repeated.
const AGAIN: Duration = Duration::from_millis(250);
/// Pause before the next attempt, if nobody listens yet and the sender is patient.
const NOBODY_YET: Duration = Duration::from_millis(100);

/// A socket for one listener: the system drops datagrams of others.
pub(super) struct Conversation {
    socket: UdpSocket,
    receiver: PacketReceiver,
    chunk: Chunk,
    pub(super) peer: SocketAddr,
    /// The session of all messages.
    pub(super) session: u64,
    /// True if the sender waits for somebody to listen.
    is_patient: bool,
    /// The round trip of the quickest answer.
    pub(super) round_trip: Option<Duration>,
}

impl Conversation {
    /// A talk with the listener at an address of one machine.
    pub(super) fn open(to: &Address, nonce: u64, is_patient: bool) -> Result<Conversation> {
        let peer = to.destination()?;
        check_one_machine(peer)?;
        let fail = |cause: io::Error| match Errno::from_io_error(&cause) {
            // The address is a broadcast address, which only the system can tell from others.
            Some(Errno::ACCESS) => LinkError::NotOneMachine(peer),
            _ => LinkError::Network { address: peer, cause },
        };
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).map_err(fail)?;
        socket.connect(peer).map_err(fail)?;
        // No datagram is cut on its way from here on.
        let receiver = socket.try_clone().and_then(PacketReceiver::new).map_err(fail)?;
        let chunk = Chunk::default();
        Ok(Conversation { socket, receiver, chunk, peer, session: nonce, is_patient, round_trip: None })
    }

    /// The socket, to send through.
    pub(super) fn socket(&self) -> Result<UdpSocket> {
        self.socket.try_clone().map_err(|e| self.network(e))
    }

    /// Most bytes of a datagram, by this machine's knowledge.
    pub(super) fn most_bytes(&self) -> usize {
        most_bytes_through(&self.socket).map_or(MAX_DATAGRAM, |most| most.min(MAX_DATAGRAM))
    }

    pub(super) fn network(&self, cause: io::Error) -> LinkError {
        match is_refused(&cause) {
            true => LinkError::NobodyListens(self.peer),
            false => LinkError::Network { address: self.peer, cause },
        }
    }

    /// Sends a message; `false` if the system says that it is too long.
    pub(super) fn say(&self, message: &Message) -> Result<bool> {
        match self.socket.send(&message.bytes(self.session)) {
            Ok(_) => Ok(true),
            Err(e) => match Errno::from_io_error(&e) {
                Some(Errno::MSGSIZE) => Ok(false),
                // This counts as a loss.
                Some(Errno::WOULDBLOCK | Errno::NOBUFS) => Ok(true),
                _ if self.is_patient && is_refused(&e) => Ok(true),
                _ => Err(self.network(e)),
            },
        }
    }

    /// Tells the listener that nothing more comes. The listener ends without them too: they are a courtesy.
    pub(super) fn bye(&self) {
        (0..3).for_each(|_| drop(self.say(&Message::Bye)));
    }

    /// The messages that come within `limit`, if any.
    pub(super) fn hear(&mut self, limit: Duration) -> Result<Vec<Message>> {
        let until = Instant::now() + limit;
        loop {
            match self.receiver.receive_now(&mut self.chunk) {
                Ok(()) => {
                    let heard: Vec<Message> = (self.chunk.parts().filter_map(Message::parse))
                        .filter(|(session, _)| *session == self.session)
                        .map(|(_, message)| message)
                        .collect();
                    if !heard.is_empty() {
                        return Ok(heard);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let left = until.saturating_duration_since(Instant::now());
                    if !self.receiver.wait(left).map_err(|e| self.network(e))? {
                        return Ok(Vec::new());
                    }
                }
                Err(e) if is_refused(&e) => {
                    if !self.is_patient {
                        return Err(self.network(e));
                    }
                    std::thread::sleep(NOBODY_YET.min(until.saturating_duration_since(Instant::now())));
                }
                // Errors of earlier datagrams that were too long, or of a route that was away for a moment.
                Err(e) if is_passing(&e) => {}
                Err(e) => return Err(self.network(e)),
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
        }
    }

    /// Asks until the answer comes, at most for `limit`, and not beyond `silence` without any message.
    pub(super) fn ask<T>(
        &mut self,
        question: &Message,
        limit: Duration,
        silence: Duration,
        mut answer: impl FnMut(&Message) -> Option<T>,
    ) -> Result<T> {
        let began = Instant::now();
        let (mut is_first, mut heard) = (true, began);
        while began.elapsed() < limit && heard.elapsed() < silence {
            if fec_base::program::interrupt::interrupted() && !matches!(question, Message::Finish(_)) {
                return Err(LinkError::Interrupted);
            }
            let asked = Instant::now();
            self.say(question)?;
            let again = asked + AGAIN.min(limit.saturating_sub(began.elapsed()));
            let mut is_over = false;
            while !is_over {
                // Answers that wait are heard in any case: whoever was stopped has missed nothing.
                let left = again.saturating_duration_since(Instant::now());
                is_over = left.is_zero();
                for message in self.hear(left)? {
                    heard = Instant::now();
                    if let Message::Refused(reason) = message {
                        return Err(self.refusal(reason));
                    }
                    if let Some(answer) = answer(&message) {
                        if is_first {
                            self.note_round_trip(asked.elapsed());
                        }
                        return Ok(answer);
                    }
                }
            }
            is_first = false;
        }
        Err(LinkError::NoAnswer { address: self.peer, waited: limit })
    }

    pub(super) fn note_round_trip(&mut self, time: Duration) {
        self.round_trip = Some(self.round_trip.map_or(time, |known| known.min(time)));
    }

    /// Notes that a listener answered, and is not waited for any more.
    pub(super) fn has_met(&mut self, session: u64) {
        self.session = session;
        self.is_patient = false;
    }

    fn refusal(&self, reason: Reason) -> LinkError {
        let address = self.peer;
        match reason {
            Reason::Busy => LinkError::Busy(address),
            Reason::Window(most) => LinkError::Window { address, most },
            Reason::Long(seconds) => LinkError::Long { address, seconds },
            Reason::Version(version) => LinkError::Version { address, version },
        }
    }
}

/// Tells whether an error belongs to earlier datagrams, and sending can go on.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::MSGSIZE, Errno::HOSTUNREACH, Errno::NETUNREACH, Errno::NETDOWN, Errno::INTR];
    Errno::from_io_error(error).is_some_and(|code| passing.contains(&code))
}

/// Refuses groups, the broadcast address, and addresses that cannot be sent to.
pub(super) fn check_one_machine(address: SocketAddr) -> Result<()> {
    let ip = address.ip().to_canonical();
    let is_broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    match ip.is_multicast() || is_broadcast || ip.is_unspecified() {
        true => Err(LinkError::NotOneMachine(address)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_machine_is_an_address_to_test() {
        for bad in
            ["239.1.2.3:1", "255.255.255.255:1", "0.0.0.0:1", "[::]:1", "[ff02::1]:1", "[::ffff:224.0.0.1]:1"]
        {
            assert!(check_one_machine(bad.parse().expect("an address")).is_err(), "{bad}");
        }
        for good in ["127.0.0.1:1", "192.168.1.255:1", "[fe80::1]:1"] {
            assert!(check_one_machine(good.parse().expect("an address")).is_ok(), "{good}");
        }
    }
}
