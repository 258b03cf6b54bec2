//! The ways by which the packets of a stream come, told by the address that they come from: a sender with several ways
//! has a socket for each, and so an address and port of its own, also behind a network that translates addresses.
//!
//! Addresses are claims. Whoever can send packets to a receiver can falsify these counts, and nothing else by it.

use super::chunk::Arrival;
use fec_core::format::packet::HEADER;
use fec_core::window::Replays;
use std::net::{IpAddr, SocketAddr};

/// Most ways that are told apart; the others are counted as one.
pub const MOST_WAYS: usize = 16;

/// Counts of one way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WayReceived {
    /// The address that packets came from; `None` for all ways beyond [`MOST_WAYS`] together.
    pub from: Option<SocketAddr>,
    /// The address of this machine that the first of them came to, if the system tells.
    pub to: Option<IpAddr>,
    /// Packets that came by it, of any kind, and repeated ones too.
    pub packets: u64,
    /// The share of the stream's source packets that did not come by it, 0 to 1.
    pub loss: f64,
}

/// The ways of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Origins {
    ways: Vec<Way>,
    /// The end of the source packets that came.
    end: u64,
}

#[derive(Clone, Debug)]
struct Way {
    from: Option<SocketAddr>,
    to: Option<IpAddr>,
    packets: u64,
    /// Different source packets.
    sources: u64,
    seen: Replays,
}

/// The reason why a packet is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// It is a packet of the stream.
    First,
    /// It claims to be one that came before.
    Again,
    /// It is far from all others.
    Ahead,
}

/// The number of a source packet, by its header.
fn number(packet: &[u8]) -> Option<u64> {
    let header = packet.get(..HEADER).filter(|header| header[5] == 0)?;
    Some(u64::from_le_bytes(header[16..24].try_into().ok()?))
}

impl Origins {
    /// Counts a packet of the stream.
    pub(super) fn note(&mut self, arrival: &Arrival, packet: &[u8], came: Came) {
        let from = SocketAddr::new(arrival.from.ip().to_canonical(), arrival.from.port());
        let known = self.ways.iter().position(|way| way.from == Some(from));
        let at = known.unwrap_or_else(|| self.add(from, arrival.to.map(|to| to.to_canonical())));
        let way = &mut self.ways[at];
        way.packets += 1;
        // A number that nothing vouches for must not make others look old.
        let is_sound = |seq: &u64| came == Came::First || came == Came::Again && *seq < self.end;
        if let Some(seq) = number(packet).filter(is_sound) {
            self.end = self.end.max(seq.saturating_add(1));
            if !way.seen.is_known(seq) {
                way.seen.note(seq);
                way.sources += 1;
            }
        }
    }

    /// Adds a way, or finds the one that stands for the rest. Returns its place.
    fn add(&mut self, from: SocketAddr, to: Option<IpAddr>) -> usize {
        let is_rest = self.ways.len() >= MOST_WAYS;
        if self.ways.len() <= MOST_WAYS {
            let (from, to) = if is_rest { (None, None) } else { (Some(from), to) };
            self.ways.push(Way { from, to, packets: 0, sources: 0, seen: Replays::default() });
        }
        self.ways.len() - 1
    }

    /// The counts of each way, for a stream of so many source packets.
    pub(super) fn counts(&self, packets: u64) -> Vec<WayReceived> {
        let loss = |way: &Way| match packets {
            0 => 0.0,
            _ => packets.saturating_sub(way.sources) as f64 / packets as f64,
        };
        let count =
            |way: &Way| WayReceived { from: way.from, to: way.to, packets: way.packets, loss: loss(way) };
        self.ways.iter().map(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(port: u16) -> Arrival {
        let from = SocketAddr::new("::ffff:10.0.0.1".parse().expect("an address"), port);
        Arrival { from, to: Some("::ffff:10.0.0.2".parse().expect("an address")), at: None }
    }

    fn packet(kind: u8, number: u64) -> Vec<u8> {
        let mut packet = vec![0; HEADER];
        packet[5] = kind;
        packet[16..24].copy_from_slice(&number.to_le_bytes());
        packet
    }

    /// Copies of a packet count once, and repair packets make no share.
    #[test]
    fn each_way_has_its_own_loss() {
        let mut origins = Origins::default();
        for seq in 0..1000 {
            origins.note(&arrival(1), &packet(0, seq), Came::First);
            if seq % 4 == 0 {
                origins.note(&arrival(2), &packet(0, seq), Came::Again);
                origins.note(&arrival(2), &packet(0, seq), Came::Again);
            }
            origins.note(&arrival(2), &packet(1, seq), Came::First);
        }
        let counts = origins.counts(1000);
        assert_eq!(counts.len(), 2);
        assert_eq!((counts[0].packets, counts[0].loss), (1000, 0.0));
        assert_eq!((counts[1].packets, counts[1].loss), (1500, 0.75));
        assert_eq!(counts[0].from.expect("it is known").to_string(), "10.0.0.1:1");
        assert_eq!(counts[0].to.expect("it is known").to_string(), "10.0.0.2");
        assert_eq!(origins.counts(0)[0].loss, 0.0);
        assert_eq!(origins.counts(10)[0].loss, 0.0, "packets that are on their way out are no loss");
    }

    #[test]
    fn ways_beyond_the_most_are_one() {
        let mut origins = Origins::default();
        for port in 0..100 {
            origins.note(&arrival(port), &packet(0, 0), Came::First);
        }
        let counts = origins.counts(1);
        assert_eq!(counts.len(), MOST_WAYS + 1);
        assert!(counts[..MOST_WAYS].iter().all(|way| way.from.is_some() && way.packets == 1));
        assert_eq!((counts[MOST_WAYS].from, counts[MOST_WAYS].packets), (None, 84));
    }

    /// A number that somebody made up does not end the count of a way.
    #[test]
    fn a_number_from_nowhere_changes_no_share() {
        let mut origins = Origins::default();
        for seq in 0..100 {
            origins.note(&arrival(1), &packet(0, seq), Came::First);
            origins.note(&arrival(1), &packet(0, u64::MAX - seq), Came::Again);
            origins.note(&arrival(1), &packet(0, 1 << 40), Came::Ahead);
        }
        origins.note(&arrival(1), &[], Came::First);
        assert_eq!(origins.counts(100)[0].loss, 0.0);
        assert_eq!(origins.counts(100)[0].packets, 301);
    }
}
