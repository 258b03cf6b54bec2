//! Outages longer than a window can repair, and receivers that join late: nothing is waited for in vain.

use super::common::*;
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Decoder, Encoder, Event, Limits, Profile, Ratio, StreamSettings};

/// Bytes of the largest payload.
const MOST: u16 = 400;

/// The course of a receiver: its lag after each packet that came, and the number of packets named as lost.
struct Course {
    /// The number of source packets sent, and how many of them were neither given out nor named.
    behind: Vec<(u64, u64)>,
    lost: u64,
}

/// Receives the packets from `join` on that are not lost.
fn receive_live(prompt: bool, count: u64, join: u64, lost: impl Fn(u64, usize) -> bool) -> Course {
    let settings = settings(Profile::Bounded, 6000, MOST);
    let mut decoder = Decoder::new(Limits { prompt, ..Limits::default() }, Backend::best());
    let mut course = Course { behind: Vec::new(), lost: 0 };
    let (mut sent, mut done) = (0, join);
    for (nth, packet) in packets(&settings, Backend::best(), count).iter().enumerate() {
        sent += u64::from(packet[5] == 0);
        if sent <= join || lost(sent, nth) {
            continue;
        }
        decoder.receive(packet);
        while let Some(event) = decoder.next() {
            match event {
                Event::Packet { seq, payload: bytes, .. } => {
                    assert!(bytes == payload(seq, MOST));
                    done = seq + 1;
                }
                Event::Gap { first, count } => (done, course.lost) = (first + count, course.lost + count),
                Event::End => {}
            }
        }
        course.behind.push((sent, sent - done.min(sent)));
    }
    course
}

impl Course {
    /// The longest time without output, in packets, from packet `from` on.
    fn longest(&self, from: u64) -> u64 {
        self.behind.iter().filter(|(sent, _)| *sent >= from).map(|(_, behind)| *behind).max().unwrap()
    }
}

/// Every twentieth packet of any kind is lost.
fn some(nth: usize) -> bool {
    nth % 20 == 7
}

#[test]
fn an_outage_beyond_the_window_costs_itself_and_no_more() {
    // 1852 packets are two seconds at 10 Mb/s.
    let outage = |sent: u64, nth: usize| (10_000..11_852).contains(&sent) || some(nth);
    let patient = receive_live(false, 30_000, 0, outage);
    assert!(patient.longest(11_900) > 4000, "it waits for what cannot come: {}", patient.longest(11_900));
    let prompt = receive_live(true, 30_000, 0, outage);
    assert!(prompt.longest(11_900) < 100, "{}", prompt.longest(11_900));
    // Everything is repaired again when the window has left the outage.
    let later = receive_live(true, 60_000, 0, outage);
    assert_eq!(later.lost, prompt.lost);
    assert!(prompt.lost < 1852 + 10_000 / 20, "{} are lost", prompt.lost);
}

#[test]
fn an_outage_that_can_be_mended_is() {
    for len in [300, 800] {
        let outage = |sent: u64, _: usize| (10_000..10_000 + len).contains(&sent);
        assert_eq!(receive_live(true, 30_000, 0, outage).lost, 0, "of {len}");
    }
    // The first packets of a longer outage leave the window before there are rows enough: only the outage is lost,
    // without a window of silence.
    for len in [900, 1000, 1100] {
        let outage = |sent: u64, _: usize| (10_000..10_000 + len).contains(&sent);
        let outcome = receive_live(true, 30_000, 0, outage);
        assert!(outcome.lost <= len && outcome.longest(0) < len + 100, "{} of {len}", outcome.longest(0));
    }
    assert_eq!(receive_live(true, 30_000, 0, |_, nth| some(nth)).lost, 0);
}

/// For each beginning of a burst in its block, each window and each ratio, the promised length is repaired, and not
/// much more.
#[test]
fn a_burst_that_is_said_to_be_mended_is() {
    for (window, block, ratio, latency) in [
        (6000, 240, (1, 6), None),
        (6000, 48, (1, 6), None),
        (2000, 240, (1, 3), None),
        (500, 240, (1, 2), None),
        (4001, 201, (2, 7), None),
        (6000, 240, (1, 6), Some(1000)),
        (6000, 240, (1, 6), Some(3000)),
        (6000, 240, (1, 4), Some(5800)),
    ] {
        let ratio = Ratio::new(ratio.0, ratio.1).unwrap();
        let settings = StreamSettings { block, ratio, ..settings(Profile::Bounded, window, MOST) };
        let count = 3 * u64::from(window) + 500;
        let mut encoder = Encoder::new(&settings, Backend::best()).unwrap();
        let mut packets = Vec::new();
        for seq in 0..count {
            if let Some(latency) = latency {
                encoder.acknowledge(seq.saturating_sub(latency));
            }
            let payload = payload(seq, MOST);
            encoder.push(&payload, &mut |p: &[u8]| packets.push((seq, p.to_vec()))).unwrap();
        }
        let stride = usize::from(block) / 4 + 1;
        for from in (u64::from(window)..).step_by(stride).take(4) {
            let mut decoder = Decoder::new(Limits { prompt: true, ..Limits::default() }, Backend::best());
            let mut packets = packets.iter().peekable();
            while let Some((_, packet)) = packets.next_if(|(seq, _)| *seq < from) {
                decoder.receive(packet);
                while decoder.next().is_some() {}
            }
            let margin = decoder.prospect().unwrap().burst();
            let ideal =
                |window: u64| window * u64::from(ratio.repair()) / u64::from(ratio.repair() + ratio.source());
            let blocks = if latency.is_some() { 2 } else { 1 };
            let least = ideal(latency.unwrap_or(window.into()) - blocks * u64::from(block));
            assert!(margin + 6 >= least, "{settings:?} at {from}: only {margin}, of {least}");
            let mut lost = 0;
            for (_, packet) in packets.filter(|(seq, _)| *seq >= from + margin) {
                decoder.receive(packet);
                while let Some(event) = decoder.next() {
                    if let Event::Gap { count, .. } = event {
                        lost += count;
                    }
                }
            }
            assert_eq!(lost, 0, "{settings:?}, {latency:?} at {from}: of {margin}");
        }
    }
}

#[test]
fn whoever_joins_late_does_not_wait_for_what_was_before() {
    let patient = receive_live(false, 30_000, 12_345, |_, nth| some(nth));
    assert!(patient.longest(12_400) > 4000, "{}", patient.longest(12_400));
    let prompt = receive_live(true, 30_000, 12_345, |_, nth| some(nth));
    assert!(prompt.longest(12_400) < 100, "{}", prompt.longest(12_400));
    assert_eq!(receive_live(true, 60_000, 12_345, |_, nth| some(nth)).lost, prompt.lost);
}

/// A sender lets go of packets older than a thousand: its window is short, and so is the harm of an outage.
#[test]
fn a_short_window_forgets_an_outage_soon() {
    let settings = settings(Profile::Bounded, 6000, MOST);
    let outcome = |latency: Option<u64>| {
        let mut encoder = fec_core::window::Encoder::new(&settings, Backend::best()).unwrap();
        let mut decoder = Decoder::new(Limits { prompt: true, ..Limits::default() }, Backend::best());
        let (mut nth, mut lost, mut late, mut done) = (0, Vec::new(), 0, 0);
        for seq in 0..20_000u64 {
            let mut send = |packet: &[u8]| {
                nth += 1;
                if !(8000..10_000).contains(&seq) && !some(nth) {
                    decoder.receive(packet);
                }
            };
            encoder.push(&payload(seq, MOST), &mut send).unwrap();
            if let Some(latency) = latency {
                encoder.acknowledge(seq.saturating_sub(latency));
            }
            while let Some(event) = decoder.next() {
                match event {
                    Event::Packet { seq: number, payload: bytes, .. } => {
                        assert!(bytes == payload(number, MOST));
                        done = number + 1;
                    }
                    Event::Gap { first, count } => {
                        lost.extend(first..first + count);
                        done = first + count;
                    }
                    Event::End => {}
                }
            }
            if !(8000..10_100).contains(&seq) {
                late = late.max(seq + 1 - done);
            }
        }
        (lost, late)
    };
    let (lost, late) = outcome(Some(1000));
    assert!(lost.iter().all(|seq| (8000..11_600).contains(seq)), "{:?}", lost.last());
    assert!(late < 300, "{late}");
    let (lost, _) = outcome(None);
    assert!(
        lost.iter().any(|seq| *seq > 13_000),
        "a whole window cannot mend for as long as it is: {:?}",
        lost.last()
    );
}
