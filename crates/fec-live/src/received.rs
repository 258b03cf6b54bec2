//! Counts of a stream, kept as it is received.

use super::origins::{Origins, WayReceived};
use super::quality::Quality;
use super::seal::NotOpened;
use super::timers::Deadline;
use super::{LiveError, LostPackets, Refusal};
use fec_base::error::{Cause, Class};
use fec_core::format::packet::{PacketError, Parameters};
use fec_core::window::{Received as Fate, Statistics};
use std::time::{Duration, Instant};

/// The most gaps that are listed; the others are only counted.
pub(crate) const MOST_GAPS: usize = 1000;

/// Numbers of packets that are intact but of no use here.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Refusals {
    refused: u64,
    stale: u64,
    forged: u64,
    unsealed: u64,
}

impl Refusals {
    pub(super) fn count(&self) -> u64 {
        self.refused + self.stale + self.forged + self.unsealed
    }
}

/// Counts of a received stream, until now or in all.
#[must_use = "packets may be lost"]
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// The parameters that the packets name; `None` before the first packet.
    pub parameters: Option<Parameters>,
    /// True if the sender has announced the end, and everything before it was delivered or listed as lost.
    pub ended: bool,
    /// The packet from which on the stream is received; earlier packets are unknown, and belong to no gap. `None` if no
    /// packet tells.
    pub joined_at: Option<u64>,
    /// Bytes of payload that were delivered.
    pub payload_bytes: u64,
    /// Packets that were delivered.
    pub packets: u64,
    /// Delivered packets that were lost and rebuilt.
    pub rebuilt: u64,
    /// Packets that are lost for good.
    pub lost: u64,
    /// The first thousand gaps.
    pub gaps: Vec<LostPackets>,
    /// The number of all gaps.
    pub gap_count: u64,
    /// Packets of this stream that arrived, of any kind.
    pub arrived: u64,
    /// Packets whose checksum was wrong.
    pub damaged: u64,
    /// Packets of other streams.
    pub foreign: u64,
    /// True if packets of other streams count as a loss. On a network anybody may send. In a file or pipe every packet
    /// was meant for its reader, unless the reader asked for a single stream.
    pub foreign_is_loss: bool,
    /// Packets of this stream with other parameters.
    pub mismatched: u64,
    /// Packets of streams that had ended before.
    pub after_end: u64,
    /// Streams that were received before this one.
    pub streams_before: u64,
    /// Streams before this one that were not whole.
    pub not_whole_before: u64,
    /// Intact packets that are not accepted.
    pub refused: u64,
    /// The reason why the first of them was refused.
    pub refusal: Option<Refusal>,
    /// Packets that were forged, or sealed with another key.
    pub forged: u64,
    /// Packets that were not sealed, where they had to be.
    pub unsealed: u64,
    /// Authentic packets that were sealed too long ago, or in the future.
    pub stale: u64,
    /// Age of the last stale packet, in seconds; negative for the future.
    pub stale_by: i32,
    /// Sealed packets that had come before: over another way, or repeated by an attacker.
    pub copies: u64,
    /// Pieces of a byte stream that were no frames.
    pub broken_frames: u64,
    /// Packets that the kernel had no room for, if the kernel tells.
    pub kernel_drops: Option<u64>,
    /// Reports that were sent to senders that called for them.
    pub reports: u64,
    /// The decoder's counts.
    pub statistics: Statistics,
    /// The quality of the link.
    pub quality: Quality,
    /// Time since the start.
    pub time: Duration,
    /// The end of the last gap: a gap that begins there continues it.
    gap_end: Option<u64>,
    /// The ways by which packets came.
    pub(super) origins: Origins,
}

impl Received {
    /// Counts before the first packet.
    pub(super) fn new(foreign_is_loss: bool, deadline: Option<Deadline>) -> Received {
        Received { foreign_is_loss, quality: Quality::new(deadline), ..Received::default() }
    }

    /// Tells whether every sent packet was delivered, and no packet contradicts another.
    pub fn is_whole(&self) -> bool {
        let from_start = self.joined_at == Some(0);
        let is_agreed = self.statistics.conflicts == 0 && self.mismatched == 0;
        self.ended && self.lost == 0 && from_start && is_agreed && !(self.foreign_is_loss && self.foreign > 0)
    }

    /// The class of the error if this stream, or a stream before it, is not whole; `None` if all are.
    pub fn class(&self) -> Option<Class> {
        if self.streams_before > 0 && self.arrived == 0 {
            // No further stream came, so only the streams before count.
            return (self.not_whole_before > 0).then_some(Class::Lost);
        }
        let is_whole = self.is_whole() && self.not_whole_before == 0;
        (!is_whole).then(|| self.why_nothing().map_or(Class::Lost, |cause| cause.class()))
    }

    /// The counts of each way by which packets came, the first [`MOST_WAYS`](crate::MOST_WAYS) and the rest as one;
    /// none for a byte stream.
    pub fn ways(&self) -> Vec<WayReceived> {
        self.origins.counts(self.packets + self.lost)
    }

    /// Counts of the next stream, before its first packet.
    pub(super) fn next(&self) -> Received {
        Received {
            streams_before: self.streams_before + 1,
            not_whole_before: self.not_whole_before + u64::from(!self.is_whole()),
            ..Received::new(self.foreign_is_loss, self.quality.deadline())
        }
    }

    /// The reason why no packet of a stream came, as far as it is known; `None` if a packet came.
    pub fn why_nothing(&self) -> Option<LiveError> {
        (self.arrived == 0 && self.streams_before == 0).then(|| self.why_not_accepted())
    }

    /// The reason why none of the packets that came was accepted.
    pub fn why_not_accepted(&self) -> LiveError {
        let damaged = self.damaged + self.broken_frames;
        let nothing = LiveError::NothingCame { foreign: self.foreign, damaged };
        self.why_refused(&Refusals::default()).unwrap_or(nothing)
    }

    /// The reason why packets were refused since the counts `before`; `None` if none was refused.
    pub(super) fn why_refused(&self, before: &Refusals) -> Option<LiveError> {
        let (forged, unsealed) = (self.forged - before.forged, self.unsealed - before.unsealed);
        match self.refusal {
            Some(refusal) if self.refused > before.refused => Some(LiveError::NothingAccepted(refusal)),
            _ if self.stale > before.stale => Some(LiveError::Stale(self.stale_by)),
            _ if forged + unsealed > 0 => Some(LiveError::NothingOpened { forged, unsealed }),
            _ => None,
        }
    }

    /// Counts a packet by its fate in the decoder.
    pub(super) fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Foreign => self.foreign += 1,
            Fate::Mismatch => self.mismatched += 1,
            Fate::Rejected(PacketError::Damaged | PacketError::Magic) => self.damaged += 1,
            Fate::Rejected(error) => self.refuse(Refusal::Packet(error)),
            Fate::Refused { bytes } => self.refuse(Refusal::Window { bytes }),
            _ => self.arrived += 1,
        }
    }

    /// Counts a packet that could not be opened.
    pub(super) fn count_not_opened(&mut self, why: NotOpened) {
        match why {
            NotOpened::NoPacket(PacketError::Damaged | PacketError::Magic) => self.damaged += 1,
            NotOpened::NoPacket(error) => self.refuse(Refusal::Packet(error)),
            NotOpened::Unsealed => self.unsealed += 1,
            NotOpened::Forged => self.forged += 1,
            NotOpened::Copy => self.copies += 1,
            NotOpened::Stale(by) => (self.stale, self.stale_by) = (self.stale + 1, by),
        }
    }

    /// Numbers of packets that are intact but of no use here.
    pub(super) fn refusals(&self) -> Refusals {
        let &Received { refused, stale, forged, unsealed, .. } = self;
        Refusals { refused, stale, forged, unsealed }
    }

    fn refuse(&mut self, why: Refusal) {
        self.refused += 1;
        self.refusal.get_or_insert(why);
    }

    /// Counts a delivered payload.
    pub(super) fn packet(&mut self, seq: u64, len: usize, rebuilt: bool, now: Instant) {
        self.quality.packet(seq, rebuilt, now);
        self.packets += 1;
        self.payload_bytes += len as u64;
        self.rebuilt += u64::from(rebuilt);
    }

    /// Notes packets that are lost for good; `is_overdue` says that the deadline was the cause.
    pub(super) fn gap(&mut self, packets: LostPackets, is_overdue: bool) {
        let LostPackets { first, count } = packets;
        self.quality.gap(count, is_overdue);
        self.lost += count;
        let continues = self.gap_end == Some(first);
        self.gap_end = Some(first + count);
        if !continues {
            self.gap_count += 1;
            if self.gaps.len() < MOST_GAPS {
                self.gaps.push(packets);
            }
        } else if self.gap_count <= MOST_GAPS as u64
            && let Some(last) = self.gaps.last_mut()
        {
            last.count += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_touch_are_one_and_the_list_has_an_end() {
        let mut received = Received::new(false, None);
        received.packet(0, 10, false, Instant::now());
        for first in [1, 2, 3] {
            received.gap(LostPackets { first, count: 1 }, false);
        }
        assert_eq!(received.gaps, [LostPackets { first: 1, count: 3 }]);
        for gap in 1..2 * MOST_GAPS as u64 {
            received.gap(LostPackets { first: 10 * gap, count: 2 }, false);
            received.gap(LostPackets { first: 10 * gap + 2, count: 1 }, false);
        }
        assert_eq!((received.gap_count, received.lost), (2 * MOST_GAPS as u64, 6 * MOST_GAPS as u64));
        assert_eq!(received.gaps.len(), MOST_GAPS);
        assert!(received.gaps.iter().all(|gap| gap.count == 3));
    }

    #[test]
    fn a_stream_is_whole_from_its_start_to_its_end() {
        let whole = || Received { ended: true, arrived: 1, joined_at: Some(0), ..Received::new(true, None) };
        assert!(whole().is_whole());
        for not in [
            Received { ended: false, ..whole() },
            Received { joined_at: Some(1), ..whole() },
            Received { joined_at: None, ..whole() },
            Received { lost: 1, ..whole() },
            Received { foreign: 1, ..whole() },
            Received { mismatched: 1, ..whole() },
            Received { not_whole_before: 1, ..whole() },
        ] {
            assert_eq!(not.class(), Some(Class::Lost), "{not:?}");
        }
        assert!(Received { foreign: 1, foreign_is_loss: false, ..whole() }.is_whole());
        let mut refused = Received::new(true, None);
        refused.count(Fate::Refused { bytes: 7 });
        assert_eq!(refused.class(), Some(Class::Refused));
    }

    /// The next stream begins with the counts of those before it alone.
    #[test]
    fn streams_are_counted_one_after_the_other() {
        let whole = || Received { ended: true, arrived: 1, joined_at: Some(0), ..Received::new(true, None) };
        let next = Received { packets: 7, damaged: 3, ..whole() }.next();
        assert_eq!((next.streams_before, next.not_whole_before), (1, 0));
        assert_eq!((next.packets, next.damaged, next.foreign_is_loss), (0, 0, true));
        // No further stream came: those before count.
        assert!(next.class().is_none() && next.why_nothing().is_none());
        let lost = Received { lost: 1, ..whole() }.next().next();
        assert_eq!((lost.streams_before, lost.not_whole_before, lost.class()), (2, 2, Some(Class::Lost)));
        let mut conflicting = whole();
        conflicting.statistics.conflicts = 1;
        assert_eq!(conflicting.class(), Some(Class::Lost));
        assert!(Received { streams_before: 1, ..whole() }.class().is_none());
    }

    /// A packet adds to one count, and the reason why nothing came follows from the counts.
    #[test]
    fn packets_are_counted_by_what_became_of_them() {
        let mut of = Received::new(false, None);
        for _ in 0..2 {
            of.count(Fate::Foreign);
            of.count(Fate::Mismatch);
            of.count(Fate::Rejected(PacketError::Damaged));
            of.count(Fate::Rejected(PacketError::Magic));
        }
        assert_eq!((of.foreign, of.mismatched, of.damaged, of.arrived, of.refused), (2, 2, 4, 0, 0));
        of.broken_frames = 3;
        assert!(matches!(of.why_nothing(), Some(LiveError::NothingCame { foreign: 2, damaged: 7 })));
        for _ in 0..2 {
            of.count_not_opened(NotOpened::Unsealed);
            of.count_not_opened(NotOpened::Forged);
            of.count_not_opened(NotOpened::Copy);
            of.count_not_opened(NotOpened::Stale(-5));
            of.count_not_opened(NotOpened::NoPacket(PacketError::Damaged));
        }
        assert_eq!(
            (of.unsealed, of.forged, of.copies, of.stale, of.stale_by, of.damaged),
            (2, 2, 2, 2, -5, 6)
        );
        assert_eq!(of.refusals().count(), 6);
        assert!(matches!(of.why_nothing(), Some(LiveError::Stale(-5))), "the gravest reason counts");
        of.stale = 0;
        assert!(matches!(of.why_nothing(), Some(LiveError::NothingOpened { forged: 2, unsealed: 2 })));
        let before = of.refusals();
        assert!(of.why_refused(&before).is_none(), "nothing was refused since");
        of.count(Fate::Refused { bytes: 1 << 40 });
        of.count(Fate::Refused { bytes: 1 << 41 });
        assert_eq!(of.refused, 2);
        let first = Refusal::Window { bytes: 1 << 40 };
        let why = of.why_refused(&before);
        assert!(matches!(why, Some(LiveError::NothingAccepted(refusal)) if refusal == first));
        assert_eq!(of.class(), of.why_nothing().map(|cause| cause.class()));
    }
}
