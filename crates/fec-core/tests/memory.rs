//! The memory bounds that a stream's sender and receiver state, counted by the allocator.

// An allocator needs unsafe code.
#![allow(unsafe_code)]

use fec_core::gf256::kernel::Backend;
use fec_core::window::{Decoder, Encoder, Limits, Profile, Ratio, Received, StreamSettings};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, and the number of bytes in use.
struct Counted;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: both functions only pass on their arguments, and the answer of the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller vouches for the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, bytes: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller vouches that `alloc` above gave these bytes for this layout.
        unsafe { System.dealloc(bytes, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const WINDOW: u32 = 12_000;
const PAYLOAD: u16 = 1350;
const MIB: usize = 1 << 20;

/// Most bytes in use while `run` runs, beyond those before.
fn peak(run: impl FnOnce()) -> usize {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    run();
    MOST.load(Relaxed) - before
}

/// All packets of three windows, made anew each time so that they are not kept.
fn send(settings: &StreamSettings, mut emit: impl FnMut(&[u8])) {
    let mut encoder = Encoder::new(settings, Backend::best()).unwrap();
    let mut payload = [0; PAYLOAD as usize];
    for seq in 0..3 * WINDOW {
        payload[..4].copy_from_slice(&seq.to_le_bytes());
        encoder.push(&payload, &mut emit).unwrap();
    }
    encoder.finish(&mut emit);
}

fn is_repair(packet: &[u8]) -> bool {
    packet[5] == 1
}

/// The most memory that sender and receiver take together. The line is a clean one, one that loses half, one that loses
/// nearly all source packets, an outage, or one that damages about every 700th packet.
fn peak_of_receiver(settings: &StreamSettings, window_bytes: u64, line: u32) -> usize {
    let limits = Limits { window_bytes, ..Limits::default() };
    let mut decoder = Decoder::new(limits, Backend::best());
    let (mut sent, mut damaged) = (0u32, 0);
    let receiver = peak(|| {
        send(settings, |packet| {
            sent += 1;
            let noise = sent.wrapping_mul(0x9E37_79B1) >> 8;
            let arrives = match line {
                0 | 4 => true,
                1 => noise & 1 == 1,
                2 => is_repair(packet) || sent.is_multiple_of(200),
                _ => !(5000..18_000).contains(&sent),
            };
            if !arrives {
                return;
            }
            if line == 4 && noise.is_multiple_of(700) {
                let mut packet = packet.to_vec();
                let at = noise as usize / 700 % packet.len();
                packet[at] ^= 0x10;
                damaged += u32::from(matches!(decoder.receive(&packet), Received::Rejected(_)));
            } else {
                decoder.receive(packet);
            }
            // The caller asks only now and then.
            if sent.is_multiple_of(50) {
                while decoder.next().is_some() {}
            }
        });
    });
    assert!(line != 4 || damaged > 20, "{damaged}");
    receiver
}

/// Number of symbols that a sender may keep.
fn symbols_of_sender(settings: &StreamSettings) -> usize {
    let (block, ratio) = (usize::from(settings.parameters().unwrap().block), settings.ratio);
    match settings.profile {
        Profile::Bounded => WINDOW as usize + 48 * (WINDOW as usize / block + 4),
        Profile::Blocks => {
            let repairs = u32::from(ratio.repair()) * WINDOW / u32::from(ratio.source());
            (2 * WINDOW + repairs * 11 / 10) as usize
        }
        _ => 2 * block + 8 * 24,
    }
}

/// A single test, because the count is the whole program's.
#[test]
fn senders_and_receivers_stay_within_their_bounds() {
    // The rows of `classic` take long, and the rest is as with `bounded`.
    for profile in [Profile::Bounded, Profile::ClassicBlocks, Profile::Blocks] {
        // With as many repair packets as source packets in sets of 128, repair packets alone could fill the memory.
        for (block, ratio) in [(240, (1, 6)), (128, (1, 1))] {
            let ratio = Ratio::new(ratio.0, ratio.1).unwrap();
            let settings = StreamSettings {
                stream_id: 1,
                window: WINDOW,
                block,
                payload: PAYLOAD,
                profile,
                ratio,
                limit: u64::MAX,
            };
            let window = WINDOW as usize * settings.parameters().unwrap().symbol_len();
            let sender = peak(|| send(&settings, |_| {}));
            let mut of_lines = Vec::new();
            for line in 0..5 {
                of_lines.push(peak_of_receiver(&settings, window as u64, line) - sender);
            }
            println!(
                "{}, {block}: window {:.1} MiB, sender {:.1}, receiver {:.1?}",
                profile.name(),
                window as f64 / MIB as f64,
                sender as f64 / MIB as f64,
                of_lines.iter().map(|bytes| *bytes as f64 / MIB as f64).collect::<Vec<_>>(),
            );
            let one = settings.parameters().unwrap().symbol_len() + 192;
            let symbols = symbols_of_sender(&settings);
            assert!(sender < symbols * one + MIB, "{profile:?}: {sender}");
            let windows = if profile == Profile::Blocks { 4 } else { 3 };
            assert!(
                of_lines.iter().all(|&bytes| bytes < windows * window + 10 * MIB),
                "{profile:?}: {of_lines:?}"
            );
        }
    }
}
