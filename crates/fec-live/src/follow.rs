//! Following a sender from one stream to the next: packets of other streams are kept until it is clear that the
//! received one is over.

use super::chunk::Arrival;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Silence after which a stream is over, if packets of another come. An idle stream shows its presence every second.
const OVER: Duration = Duration::from_millis(2500);
/// Most packets of other streams that are kept, and their most bytes.
const MOST_PACKETS: usize = 16_384;
const MOST_BYTES: usize = 16 << 20;
/// Most ended streams that are remembered, so that their late packets start no new stream.
const MOST_ENDED: usize = 64;

/// The knowledge about other streams than the received one.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// The packets of other streams since the received one was last heard, each with its origin.
    aside: Vec<(Vec<u8>, Option<Arrival>)>,
    bytes: usize,
    /// Streams that were received to their end.
    ended: VecDeque<[u8; 8]>,
}

impl Follow {
    /// Keeps a packet of another stream. Several streams may wait, one behind the other.
    pub(super) fn keep(&mut self, packet: &[u8], arrival: Option<Arrival>) {
        if self.aside.len() < MOST_PACKETS && self.bytes + packet.len() <= MOST_BYTES {
            self.bytes += packet.len();
            self.aside.push((packet.to_vec(), arrival));
        }
    }

    /// Drops the packets, because the received stream goes on.
    pub(super) fn forget(&mut self) {
        self.aside.clear();
        self.bytes = 0;
    }

    /// The time at which the stream is over that was last heard at `last_heard`, because another has begun; `has_ended`
    /// says that it has an end.
    pub(super) fn deadline(&self, last_heard: Option<Instant>, has_ended: bool) -> Option<Instant> {
        let last = last_heard.filter(|_| !self.aside.is_empty())?;
        Some(if has_ended { last } else { last + OVER })
    }

    /// Takes the kept packets; the first one chooses the stream to receive.
    pub(super) fn take(&mut self) -> Vec<(Vec<u8>, Option<Arrival>)> {
        self.bytes = 0;
        std::mem::take(&mut self.aside)
    }

    /// Notes that a stream has ended. (A stream that fell silent may be heard again.)
    pub(super) fn note_end(&mut self, id: u64) {
        if self.ended.len() == MOST_ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(id.to_le_bytes());
    }

    /// Tells whether a packet belongs to a stream that is over.
    pub(super) fn is_of_ended(&self, id: [u8; 8]) -> bool {
        self.ended.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_in_order_and_bounded() {
        let mut follow = Follow::default();
        let now = Instant::now();
        assert_eq!(follow.deadline(Some(now), true), None);
        for packet in [b"a", b"b", b"c"] {
            follow.keep(packet, None);
        }
        assert_eq!(follow.deadline(None, true), None);
        assert_eq!(follow.deadline(Some(now), true), Some(now));
        assert_eq!(follow.deadline(Some(now), false), Some(now + OVER));
        let kept: Vec<Vec<u8>> = follow.take().into_iter().map(|(packet, _)| packet).collect();
        assert_eq!(kept, [b"a", b"b", b"c"]);
        assert_eq!(follow.deadline(Some(now), true), None);
        (0..2 * MOST_PACKETS).for_each(|_| follow.keep(&[0; 2000], None));
        assert!(follow.aside.len() <= MOST_BYTES / 2000);
        follow.forget();
        assert!(follow.take().is_empty());
        (0..100).for_each(|id| follow.note_end(id));
        assert!(follow.is_of_ended(99u64.to_le_bytes()) && !follow.is_of_ended(0u64.to_le_bytes()));
    }
}
