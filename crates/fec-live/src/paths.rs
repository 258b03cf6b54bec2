//! A stream over one or several ways through networks: each packet goes over all of them. The stream goes on as long as
//! one of them takes packets.

use super::LiveError;
use super::address::{Address, is_group};
use super::system::{is_away, is_too_long};
use super::udp::{Interface, Replies, WaySender};
use fec_base::error::{Action, Error, ErrorKind, Result};
use std::io;
use std::time::{Duration, Instant};

/// Time for which a way that takes no packets is left alone, before the next attempt.
const REST: Duration = Duration::from_secs(1);

/// Bytes of a buffer for datagrams that come back: more than a report has, so that a longer one is noticed.
const LONGEST_REPORT: usize = 512;
/// Most datagrams of a way that are read at a time.
const MOST_REPORTS: u32 = 64;

/// A place in a network, and the interface through which it is reached.
#[derive(Clone, Debug)]
pub struct Way {
    /// The receiver, or a multicast group.
    pub address: Address,
    /// The interface to send through.
    pub interface: Interface,
}

/// Counts of one way.
#[derive(Clone, Debug)]
pub struct WaySent {
    /// The receiver, or a multicast group.
    pub address: Address,
    /// The name of the interface to send through, if one was chosen.
    pub interface: Option<String>,
    /// Packets that did not go out this way, since the network was away or took none.
    pub unsent: u64,
    /// The network's replies to packets that did.
    pub replies: Replies,
}

/// An open way.
struct OpenWay {
    address: Address,
    interface: Option<String>,
    sender: WaySender,
    /// True if its absence was told.
    is_told: bool,
    /// The end of its rest, if it took no packets.
    rests_until: Option<Instant>,
    /// Packets that it missed by resting.
    missed: u64,
}

/// All ways of a stream.
pub(super) struct Ways {
    ways: Vec<OpenWay>,
    /// Bytes of the longest packet beyond its payload.
    overhead: usize,
}

impl Ways {
    /// Opens the ways. A packet has up to `overhead` bytes more than its payload.
    ///
    /// # Errors
    /// Those of [`PacketSender::open`](super::udp::PacketSender::open), but for a name that cannot be resolved yet.
    pub(super) fn open(ways: Vec<Way>, overhead: usize) -> Result<Ways> {
        let open = |Way { address, interface }| {
            let sender = WaySender::open(&address, &interface)?;
            let interface = interface.name;
            Ok(OpenWay { address, interface, sender, is_told: false, rests_until: None, missed: 0 })
        };
        Ok(Ways { ways: ways.into_iter().map(open).collect::<Result<_>>()?, overhead })
    }

    /// Sends a packet over all ways.
    ///
    /// # Errors
    /// The error of the last way that took packets; a single way reports every error.
    pub(super) fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.on_each(|way| way.sender.send(packet), 1)
    }

    /// Sends all waiting packets.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.on_each(|way| way.sender.flush(), 0)
    }

    /// Calls `act` on each way that does not rest. It fails when no way is left. `packets` is the number of packets
    /// that a resting way misses.
    fn on_each(&mut self, mut act: impl FnMut(&mut OpenWay) -> io::Result<()>, packets: u64) -> Result<()> {
        let (is_only, overhead) = (self.ways.len() == 1, self.overhead);
        let mut failed = None;
        let mut any = false;
        for way in &mut self.ways {
            if way.rests_until.is_some_and(|until| Instant::now() < until) {
                way.missed += packets;
                continue;
            }
            way.rests_until = None;
            match act(way) {
                Ok(()) => any = true,
                Err(e) => {
                    let error = way.error(e, overhead);
                    if is_only {
                        return Err(error);
                    }
                    way.rests_until = Some(Instant::now() + REST);
                    failed = Some(error);
                }
            }
        }
        // Resting ways may come back.
        match failed {
            Some(error) if !any && self.ways.iter().all(|way| way.rests_until.is_some()) => Err(error),
            _ => Ok(()),
        }
    }

    /// Hands each datagram that came back over a way, from where its packets go, to `on` with the number of the way.
    pub(super) fn receive(&mut self, on: &mut dyn FnMut(usize, &mut [u8])) {
        let mut buffer = [0; LONGEST_REPORT];
        for (nth, way) in self.ways.iter_mut().enumerate() {
            for _ in 0..MOST_REPORTS {
                let Some(len) = way.sender.receive(&mut buffer) else { break };
                on(nth, &mut buffer[..len]);
            }
        }
    }

    /// Number of ways.
    pub(super) fn count(&self) -> usize {
        self.ways.len()
    }

    /// Tells whether no way leads to a group.
    pub(super) fn are_unicast(&self) -> bool {
        let is_group = |way: &OpenWay| match way.sender.destination() {
            Some(to) => is_group(to.ip()),
            None => way.address.is_group(),
        };
        !self.ways.iter().any(is_group)
    }

    /// Takes in the networks' replies to all packets.
    ///
    /// # Errors
    /// The error of a way that takes smaller packets only, if no other way took them.
    pub(super) fn listen(&mut self) -> Result<()> {
        let overhead = self.overhead;
        let heard: Vec<_> =
            self.ways.iter_mut().map(|way| way.sender.listen().map_err(|e| way.error(e, overhead))).collect();
        match heard.iter().any(Result::is_ok) {
            true => Ok(()),
            false => heard.into_iter().find(Result::is_err).unwrap_or(Ok(())),
        }
    }

    /// The networks' replies to packets.
    pub(super) fn replies(&self) -> Replies {
        self.ways.iter().map(|way| way.sender.replies()).fold(Replies::default(), |all, of_one| Replies {
            refused: all.refused + of_one.refused,
            unreachable: all.unreachable + of_one.unreachable,
            most: all.most.into_iter().chain(of_one.most).min(),
        })
    }

    /// Packets that the system did not take, counted for each way.
    pub(super) fn unsent(&self) -> u64 {
        self.ways.iter().map(OpenWay::unsent).sum()
    }

    /// The counts of each way.
    pub(super) fn counts(&self) -> Vec<WaySent> {
        self.ways.iter().map(OpenWay::count).collect()
    }

    /// The next way whose network is away, and of which this was not told yet.
    pub(super) fn newly_away(&mut self) -> Option<(&Address, LiveError)> {
        let away = self.ways.iter_mut().filter(|way| !way.is_told);
        let (way, why) = away.map(|way| (way.sender.away(), way)).find_map(|(why, way)| Some((way, why?)))?;
        way.is_told = true;
        Some((&way.address, why))
    }

    /// Checks that any packet went out.
    ///
    /// # Errors
    /// The reason why none did, if a network was away all the time: [`LiveError::Unreachable`],
    /// [`LiveError::Unresolved`].
    pub(super) fn check_any_sent(&self) -> Result<()> {
        if self.ways.iter().any(|way| way.sender.any_sent()) {
            return Ok(());
        }
        let away = self.ways.iter().find_map(|way| Some((way, way.sender.away()?)));
        away.map_or(Ok(()), |(way, why)| Err(Error::at(Action::SendTo, &way.address, why)))
    }
}

impl OpenWay {
    fn unsent(&self) -> u64 {
        self.sender.unsent() + self.missed
    }

    fn count(&self) -> WaySent {
        let (address, interface) = (self.address.clone(), self.interface.clone());
        WaySent { address, interface, unsent: self.unsent(), replies: self.sender.replies() }
    }

    fn error(&self, cause: io::Error, overhead: usize) -> Error {
        let kind = if is_too_long(&cause) {
            let most = self.sender.replies().most.and_then(|most| most.checked_sub(overhead));
            LiveError::DatagramTooLong { cause, most }.into()
        } else if is_away(&cause) {
            LiveError::Unreachable(cause).into()
        } else {
            ErrorKind::Io(cause)
        };
        Error::at(Action::SendTo, &self.address, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The system's numbers say whether other packets, another route or another time may help.
    #[test]
    fn errors_of_a_way_say_what_is_wrong_with_it() {
        let address = Address::parse(Path::new("udp://127.0.0.1:9")).expect("an address");
        let interface = Interface::default();
        let way = |overhead: usize| {
            let ways =
                Ways::open(vec![Way { address: address.clone(), interface: interface.clone() }], overhead);
            ways.expect("it opens")
        };
        let mut ways = way(58);
        let error = |code: i32| ways.ways[0].error(io::Error::from_raw_os_error(code), 58);
        assert!(matches!(error(libc::EMSGSIZE).cause(), Some(LiveError::DatagramTooLong { most: None, .. })));
        for code in [libc::ENETUNREACH, libc::EHOSTUNREACH] {
            assert!(matches!(error(code).cause(), Some(LiveError::Unreachable(_))), "{code}");
        }
        let other = error(libc::EACCES);
        assert!(matches!(other.kind, ErrorKind::Io(_)) && other.to_string().contains("udp://127.0.0.1:9"));
        // A reply that names the most bytes of a datagram leaves so many for a payload.
        let WaySender::Open(sender) = &mut ways.ways[0].sender else { panic!("it is open") };
        sender.hear_of(1000);
        sender.hear_of(1200);
        assert_eq!(ways.replies().most, Some(1000));
        for (overhead, left) in [(58, Some(942)), (1000, Some(0)), (1001, None)] {
            let error = ways.ways[0].error(io::Error::from_raw_os_error(libc::EMSGSIZE), overhead);
            let told =
                matches!(error.cause(), Some(LiveError::DatagramTooLong { most, .. }) if *most == left);
            assert!(told, "{overhead}: {error}");
        }
        // Packets up to that length pass; a longer one ends a stream that has no other way.
        ways.send(&[7; 1000]).expect("it is taken");
        ways.flush().expect("it is taken");
        ways.listen().expect("it passes");
        ways.send(&[7; 1001]).expect("it is taken");
        ways.flush().expect("loopback takes it");
        let error = ways.listen().expect_err("the route does not");
        assert!(matches!(error.cause(), Some(LiveError::DatagramTooLong { most: Some(942), .. })), "{error}");
        ways.ways.extend(way(58).ways);
        ways.listen().expect("the other way takes it");
    }
}
