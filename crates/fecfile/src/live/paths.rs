//! One stream over one or several ways through networks: each packet goes over all of them. As long as one of them takes
//! packets the stream goes on.

use super::LiveError;
use super::address::Address;
use super::udp::{Interface, PacketSender, Replies};
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::time::{Duration, Instant};

/// How long a way that takes no packets is left alone, before it is tried again.
const REST: Duration = Duration::from_secs(1);

/// A place in a network, and the interface through which it is reached.
#[derive(Clone, Debug)]
pub struct Way {
    /// The receiver, or a multicast group.
    pub address: Address,
    /// Through this interface.
    pub interface: Interface,
}

/// A way that is open.
struct OpenWay {
    address: Address,
    sender: PacketSender,
    /// It took no packets, and rests until then.
    rests_until: Option<Instant>,
    /// Packets that it did not get meanwhile.
    missed: u64,
}

/// All ways of a stream.
pub(super) struct Ways {
    ways: Vec<OpenWay>,
    /// Bytes of the longest packet beyond its payload.
    overhead: usize,
}

impl Ways {
    /// Opens them. A packet has up to `overhead` bytes more than its payload.
    ///
    /// # Errors
    /// Those of [`PacketSender::open`].
    pub(super) fn open(ways: Vec<Way>, overhead: usize) -> Result<Ways> {
        let open = |Way { address, interface }| {
            let sender = PacketSender::open(&address, &interface)?;
            Ok(OpenWay { address, sender, rests_until: None, missed: 0 })
        };
        Ok(Ways { ways: ways.into_iter().map(open).collect::<Result<_>>()?, overhead })
    }

    /// Sends a packet over all ways.
    ///
    /// # Errors
    /// That of the last way that took packets; of one way alone all.
    pub(super) fn send(&mut self, packet: &[u8]) -> Result<()> {
        self.on_each(|way| way.sender.send(packet), 1)
    }

    /// Sends all that waits.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.on_each(|way| way.sender.flush(), 0)
    }

    /// Does something on each way that does not rest; fails when none is left. `packets` are what the others miss.
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
                    way.missed += packets;
                    way.rests_until = Some(Instant::now() + REST);
                    failed = Some(error);
                }
            }
        }
        // Those that rest may come back.
        match failed {
            Some(error) if !any && self.ways.iter().all(|way| way.rests_until.is_some()) => Err(error),
            _ => Ok(()),
        }
    }

    /// Hears what the networks have said of all that was sent.
    ///
    /// # Errors
    /// That of a way that takes smaller packets only, if no other took them.
    pub(super) fn listen(&mut self) -> Result<()> {
        let overhead = self.overhead;
        let heard: Vec<_> =
            self.ways.iter_mut().map(|way| way.sender.listen().map_err(|e| way.error(e, overhead))).collect();
        match heard.iter().any(Result::is_ok) {
            true => Ok(()),
            false => heard.into_iter().find(Result::is_err).unwrap_or(Ok(())),
        }
    }

    /// What the networks said of packets.
    pub(super) fn replies(&self) -> Replies {
        self.ways.iter().map(|way| way.sender.replies()).fold(Replies::default(), |all, of_one| Replies {
            refused: all.refused + of_one.refused,
            unreachable: all.unreachable + of_one.unreachable,
            most: all.most.into_iter().chain(of_one.most).min(),
        })
    }

    /// Packets that the system did not take, counted for each way.
    pub(super) fn unsent(&self) -> u64 {
        self.ways.iter().map(|way| way.sender.unsent() + way.missed).sum()
    }
}

impl OpenWay {
    fn error(&self, cause: io::Error, overhead: usize) -> Error {
        let kind = match cause.raw_os_error() {
            Some(libc::EMSGSIZE) => {
                let most = self.sender.replies().most.and_then(|most| most.checked_sub(overhead));
                LiveError::DatagramTooLong { cause, most }.into()
            }
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH) => LiveError::Unreachable(cause).into(),
            _ => ErrorKind::Io(cause),
        };
        Error::at("send to", &self.address, kind)
    }
}
