//! Against the ideal random code on the same losses; `examples/stream-quality.rs` runs longer traces.

use super::common::{Output, packets, settings};
use fec_core::gf256::kernel::Backend;
use fec_core::random::SplitMix64;
use fec_core::window::simulate::{Generator, Outcome, stream};
use fec_core::window::{Decoder, Limits, Profile};

const COUNT: u64 = 40_000;

/// Returns whether a transmission is lost, for each in turn.
type Trace = Box<dyn FnMut() -> bool>;
type Case = (&'static str, fn() -> Trace);

fn both(trace: impl Fn() -> Trace) -> [Outcome; 2] {
    [Generator::Ideal, Generator::Profile].map(|generator| outcome(generator, COUNT, trace()))
}

fn outcome(generator: Generator, count: u64, trace: Trace) -> Outcome {
    stream(generator, &settings(Profile::Bounded, 6000, 16), count, trace).unwrap()
}

fn random(loss: f64) -> Trace {
    let mut noise = SplitMix64::new(7);
    Box::new(move || noise.chance(loss))
}

/// Gilbert-Elliott with losses in the bad state only.
fn gilbert_elliott(loss: f64, burst: f64) -> Trace {
    let (mut noise, mut bad) = (SplitMix64::new(7), false);
    Box::new(move || {
        bad ^= noise.chance(if bad { 1.0 / burst } else { loss / burst / (1.0 - loss) });
        bad
    })
}

fn p99(outcome: &Outcome) -> f64 {
    let mut delays = outcome.delays.clone();
    delays.sort_unstable();
    f64::from(delays[delays.len() * 99 / 100])
}

#[test]
fn residual_loss_and_delay() {
    let traces: [Case; 7] = [
        ("r 5", || random(0.05)),
        ("r 10", || random(0.10)),
        ("r 12", || random(0.12)),
        ("r 13", || random(0.13)),
        ("GE 5/50", || gilbert_elliott(0.05, 50.0)),
        ("GE 5/150", || gilbert_elliott(0.05, 150.0)),
        ("GE 10/20", || gilbert_elliott(0.10, 20.0)),
    ];
    for (name, trace) in traces {
        let [ideal, ours] = both(trace);
        let limit = ideal.lost.len() as f64 + COUNT as f64 * 0.0001;
        assert!(ours.lost.len() as f64 <= limit, "{name}: {} of {}", ours.lost.len(), ideal.lost.len());
        assert!(p99(&ours) <= 1.05 * p99(&ideal), "{name}: {} to {}", p99(&ours), p99(&ideal));
    }
}

/// A burst is repaired wherever it lies, no later than by the ideal code: also at the beginning, where it stays the
/// oldest of the window for long.
#[test]
fn bursts_anywhere() {
    for start in [1, 100, 500, 1000, 2000, 2500, 3000, 4000, 5000, 7000, 9000] {
        for len in [41, 257, 500, 850] {
            let [ideal, ours] = [Generator::Ideal, Generator::Profile].map(|generator| {
                let mut at = 0;
                let trace = Box::new(move || {
                    at += 1;
                    (start..start + len).contains(&at)
                });
                outcome(generator, 20_000, trace)
            });
            assert!(ours.lost.is_empty(), "{len} from transmission {start} on: {} lost", ours.lost.len());
            let (ideal, ours) = (p99(&ideal), p99(&ours));
            assert!(ours <= 1.05 * ideal, "{len} from transmission {start} on: {ours} to {ideal}");
        }
    }
}

#[test]
fn rows_in_vain() {
    for losses in [1, 2, 5, 20, 50, 100, 250] {
        let (mut at, period) = (0, 7 * losses + 300);
        let trace = Box::new(move || {
            at += 1;
            at % period < losses
        });
        let mut vain = outcome(Generator::Profile, 5 * COUNT, trace).overheads;
        vain.sort_unstable();
        let mean = f64::from(vain.iter().sum::<u32>()) / vain.len() as f64;
        assert!(mean <= 0.02, "bursts of {losses}: {mean}");
        assert!(vain[vain.len() * 99 / 100] <= 1, "bursts of {losses}");
    }
}

/// The decoder recovers all that the simulation recovers: it loses no equation on the way.
#[test]
fn the_decoder_recovers_what_the_equations_allow() {
    let settings = settings(Profile::Bounded, 960, 400);
    let packets = packets(&settings, Backend::best(), COUNT);
    for loss in [0.10, 0.13, 0.14, 0.15] {
        let simulated = stream(Generator::Profile, &settings, COUNT, random(loss)).unwrap();
        let (mut decoder, mut output) = (Decoder::new(Limits::default(), Backend::best()), Output::default());
        let mut lost = random(loss);
        for packet in packets.iter().take((COUNT + COUNT / 6) as usize) {
            if !lost() {
                decoder.receive(packet);
                output.drain(&mut decoder, 400);
            }
        }
        decoder.give_up_before(u64::MAX);
        output.drain(&mut decoder, 400);
        let gaps: Vec<u64> = output.gaps.iter().flat_map(|&(first, count)| first..first + count).collect();
        assert_eq!(gaps, simulated.lost, "{loss}");
        assert!(output.rebuilt > 0, "{loss}: {}", output.rebuilt);
    }
}

/// Loses the transmissions with these numbers; a row follows each six source packets.
fn exactly(lost: &'static [u32]) -> Trace {
    let mut number = 0;
    Box::new(move || {
        number += 1;
        lost.contains(&(number - 1))
    })
}

#[test]
fn what_is_counted_of_single_losses() {
    for generator in [Generator::Ideal, Generator::Profile] {
        assert_eq!(
            outcome(generator, 600, exactly(&[])),
            Outcome::default(),
            "nothing to repair, and no row in vain"
        );
        // Packet 10 is transmission 11, and the row behind packet 11 brings it back.
        let expected = Outcome { delays: vec![2], overheads: vec![0], ..Outcome::default() };
        assert_eq!(outcome(generator, 600, exactly(&[11])), expected);
        // That row is lost too: the next one brings it back.
        let expected = Outcome { delays: vec![8], overheads: vec![0], ..Outcome::default() };
        assert_eq!(outcome(generator, 600, exactly(&[11, 13])), expected);
        // Two lost packets need two rows, and both are there then.
        let expected = Outcome { delays: vec![9, 8], overheads: vec![0], most_open: 2, ..Outcome::default() };
        let two = outcome(generator, 600, exactly(&[10, 11]));
        assert_eq!(
            Outcome {
                delays: {
                    let mut d = two.delays.clone();
                    d.sort_unstable_by(|a, b| b.cmp(a));
                    d
                },
                ..two
            },
            expected
        );
        // No row follows it any more.
        let expected = Outcome { lost: vec![598], ..Outcome::default() };
        assert_eq!(outcome(generator, 599, exactly(&[598 + 99])), expected);
    }
}
