//! A channel that loses, reorders and doubles packets, the same way each time. It shows recovery without a lossy
//! network, and measures how much a stream can stand.
//!
//! ```text
//! packet ─▶ lost by any of the loss models? ─▶ a copy too? ─▶ held back for up to `reorder` packets ─▶ out
//! ```

use super::loss::{ImpairmentError, Loss, LossModel, share};
use fec_core::random::SplitMix64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// The most packets that a packet may be held back for.
const MAX_REORDER: u32 = 65_536;

/// All that a channel does to packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Impairment {
    /// A packet is lost if any of these loses it.
    pub losses: Vec<Loss>,
    /// A packet is overtaken by at most this many others.
    pub reorder: u32,
    /// The share of packets that come twice.
    pub dup: f64,
    /// The seed of all randomness.
    pub seed: u64,
}

/// Reads a list like `random:0.05,reorder:16,dup:0.01,seed:1`.
impl FromStr for Impairment {
    type Err = ImpairmentError;

    fn from_str(text: &str) -> Result<Impairment, ImpairmentError> {
        let mut impairment = Impairment { losses: Vec::new(), reorder: 0, dup: 0.0, seed: 1 };
        for item in items(text) {
            let (kind, value) =
                item.split_once(':').ok_or_else(|| ImpairmentError::NoItem(item.to_owned()))?;
            match kind {
                "reorder" => {
                    let most = value.parse().ok().filter(|n| *n <= MAX_REORDER);
                    impairment.reorder = most.ok_or(ImpairmentError::Reorder { most: MAX_REORDER })?;
                }
                "dup" => impairment.dup = share(value)?,
                "seed" => {
                    impairment.seed =
                        value.parse().map_err(|_| ImpairmentError::NotASeed(value.to_owned()))?;
                }
                _ => impairment.losses.push(item.parse()?),
            }
        }
        Ok(impairment)
    }
}

impl Impairment {
    /// The channel, started.
    ///
    /// # Errors
    /// As [`Loss::start`].
    pub fn start(&self) -> fec_base::Result<Channel> {
        let seeds = (1..).map(|i: u64| self.seed.wrapping_add(i.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let losses =
            self.losses.iter().zip(seeds).map(|(l, seed)| l.start(seed)).collect::<fec_base::Result<_>>()?;
        Ok(Channel {
            losses,
            reorder: self.reorder,
            dup: self.dup,
            random: SplitMix64::new(self.seed),
            arrived: 0,
            placed: 0,
            held: BinaryHeap::new(),
            lost: 0,
        })
    }
}

/// The items of a list with commas. Text after a comma is an item only if it has a kind: the second number of
/// `ge:0.05,50` has none.
fn items(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(',') {
        let next = text[at + 1..].split(',').next().unwrap_or("");
        if next.contains(':') {
            items.push(&text[start..at]);
            start = at + 1;
        }
    }
    items.push(&text[start..]);
    items
}

/// The channel: packets go in, and come out later, twice or not at all.
#[derive(Debug)]
pub struct Channel {
    losses: Vec<LossModel>,
    reorder: u32,
    dup: f64,
    random: SplitMix64,
    /// Packets that were sent.
    arrived: u64,
    /// Packets that passed, copies included. It keeps the order of packets with the same turn.
    placed: u64,
    /// Packets held back, by the turn at which they come out. They are never more than twice `reorder` + 2.
    held: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    lost: u64,
}

impl Channel {
    /// Sends a packet, and gives `out` the packets whose turn it is.
    pub fn send(&mut self, packet: &[u8], out: &mut dyn FnMut(&[u8])) {
        // Every model sees every packet, so that no pattern depends on the other models.
        let lost = self.losses.iter_mut().fold(false, |lost, model| model.next_is_lost() | lost);
        self.lost += u64::from(lost);
        let copies = if lost { 0 } else { 1 + u32::from(self.dup > 0.0 && self.random.chance(self.dup)) };
        for _ in 0..copies {
            if self.reorder == 0 {
                out(packet);
                continue;
            }
            let wait = self.random.next() % (u64::from(self.reorder) + 1);
            self.held.push(Reverse((self.arrived + wait, self.placed, packet.to_vec())));
            self.placed += 1;
        }
        self.release(self.arrived, out);
        self.arrived += 1;
    }

    /// Gives out all packets that are held back.
    pub fn flush(&mut self, out: &mut dyn FnMut(&[u8])) {
        self.release(u64::MAX, out);
    }

    /// Packets that were lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn release(&mut self, turn: u64, out: &mut dyn FnMut(&[u8])) {
        while self.held.peek().is_some_and(|Reverse((at, ..))| *at <= turn) {
            if let Some(Reverse((_, _, packet))) = self.held.pop() {
                out(&packet);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_strictly() {
        let all =
            Impairment::from_str("ge:0.05,50,reorder:16,dup:0.01,burst:41,7,random:0.5,seed:9").unwrap();
        let losses = [
            Loss::Bursts { mean: 0.05, length: 50.0 },
            Loss::Once { packets: 41, start: 7 },
            Loss::Random(0.5),
        ];
        assert_eq!(all, Impairment { losses: losses.into(), reorder: 16, dup: 0.01, seed: 9 });
        for bad in [
            "",
            "random",
            "random:1",
            "random:-0.1",
            "random:nan",
            "random:",
            "ge:0.1",
            "ge:0.1,0",
            "ge:0.1,x",
            "ge:0.9,1",
            "burst:x",
            "burst:1,",
            "reorder:70000",
            "reorder:-1",
            "dup:2",
            "seed:x",
            "what:1",
            "random:0.1,,seed:1",
            "random:0.1,",
        ] {
            assert!(Impairment::from_str(bad).is_err(), "{bad}");
        }
    }

    fn through(text: &str, packets: u32) -> (Vec<u32>, u64) {
        let mut channel = Impairment::from_str(text).unwrap().start().unwrap();
        let mut out = Vec::new();
        let mut collect = |p: &[u8]| out.push(u32::from_le_bytes(p.try_into().unwrap()));
        for i in 0..packets {
            channel.send(&i.to_le_bytes(), &mut collect);
        }
        channel.flush(&mut collect);
        let lost = channel.lost();
        (out, lost)
    }

    #[test]
    fn nothing_overtakes_by_more_than_was_asked_for_and_nothing_stays_behind() {
        let (out, lost) = through("reorder:16,seed:3", 10_000);
        assert_eq!((out.len(), lost), (10_000, 0));
        assert!(!out.is_sorted());
        for (at, packet) in out.iter().enumerate() {
            assert!(packet.abs_diff(at as u32) <= 16, "{packet} at {at}");
        }
        let mut sorted = out;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..10_000));
    }

    #[test]
    fn the_seed_tells_everything() {
        let text = "random:0.1,ge:0.05,10,reorder:9,dup:0.1,seed:";
        let run = |seed: u32| through(&format!("{text}{seed}"), 5000);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let (out, lost) = run(1);
        let mut kinds = out.clone();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len() as u64, 5000 - lost);
        assert!(out.len() > kinds.len(), "some come twice");
    }
}
