//! The packet code against the ideal random code, on coefficients alone and on the same loss traces.
//!
//! Arguments: source packets of a trace (200000), and seeds of the traces of long bursts (1).

use fec_core::random::SplitMix64;
use fec_core::window::simulate::{Generator, Outcome, stream};
use fec_core::window::{Profile, Ratio, StreamSettings};

/// Gilbert-Elliott: loss in the bad state only.
fn gilbert_elliott(seed: u64, loss: f64, burst: f64) -> impl FnMut() -> bool {
    let mut noise = SplitMix64::new(seed);
    let (leave, enter) = (1.0 / burst, loss / burst / (1.0 - loss));
    let mut bad = false;
    move || {
        let chance = if bad { leave } else { enter };
        bad ^= noise.chance(chance);
        bad
    }
}

fn settings() -> StreamSettings {
    StreamSettings {
        stream_id: 1,
        window: 6000,
        block: 240,
        payload: 16,
        profile: Profile::Bounded,
        ratio: Ratio::new(1, 6).expect("a ratio"),
        limit: 64 << 20,
    }
}

fn percent(outcome: &Outcome, count: u64) -> f64 {
    100.0 * outcome.lost.len() as f64 / count as f64
}

fn p99(outcome: &Outcome) -> u32 {
    let mut delays = outcome.delays.clone();
    delays.sort_unstable();
    delays.get(delays.len() * 99 / 100).copied().unwrap_or(0)
}

/// The generators that are compared: the ideal code, and ours.
const GENERATORS: [Generator; 2] = [Generator::Ideal, Generator::Profile];

/// Source packets of a trace with one burst.
const BURST_TRACE: u64 = 24_000;

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let seeds: u64 = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    let settings = settings();
    println!(
        "| trace | lost %, ideal | bounded | delay p99, ideal | bounded | most open |\n|---|---|---|---|---|---|"
    );
    random_losses(&settings, count);
    random_bursts(&settings, count, seeds);
    for burst in [41, 257, 500, 850, 990] {
        let [ideal, ours] = burst_at(&settings, 9000, burst);
        row(&format!("burst of {burst}"), &ideal, &ours, BURST_TRACE);
    }
    bursts_anywhere(&settings);
    println!("\n| lost | overhead mean, ideal | bounded | p99, ideal | bounded |\n|---|---|---|---|---|");
    overheads(&settings, count);
}

/// Losses of single packets, independent of each other.
fn random_losses(settings: &StreamSettings, count: u64) {
    for loss in [0.01, 0.05, 0.10, 0.12, 0.13, 0.14] {
        let [ideal, ours] = GENERATORS.map(|generator| {
            let mut noise = SplitMix64::new(7);
            stream(generator, settings, count, || noise.chance(loss)).expect("settings")
        });
        row(&format!("r {}", loss * 100.0), &ideal, &ours, count);
    }
}

/// Losses in bursts, for each seed, and their means.
fn random_bursts(settings: &StreamSettings, count: u64, seeds: u64) {
    for (loss, burst) in [(0.05, 50.0), (0.05, 150.0), (0.10, 20.0)] {
        let mut sums = [0.0, 0.0];
        for seed in 7..7 + seeds {
            let [ideal, ours] = GENERATORS.map(|generator| {
                stream(generator, settings, count, gilbert_elliott(seed, loss, burst)).expect("settings")
            });
            row(&format!("GE {}/{burst}, seed {seed}", loss * 100.0), &ideal, &ours, count);
            sums = [sums[0] + percent(&ideal, count), sums[1] + percent(&ours, count)];
        }
        let [ideal, ours] = sums.map(|sum| sum / seeds as f64);
        println!("| GE {}/{burst}, mean of seeds | {ideal:.3} | {ours:.3} | | | |", loss * 100.0);
    }
}

/// The outcomes of both generators for a single burst that begins behind transmission `start`.
fn burst_at(settings: &StreamSettings, start: u64, burst: u64) -> [Outcome; 2] {
    GENERATORS.map(|generator| {
        let mut at = 0;
        let lost = || {
            at += 1;
            (start..start + burst).contains(&at)
        };
        stream(generator, settings, BURST_TRACE, lost).expect("settings")
    })
}

/// Bursts that begin anywhere: the number of differences, and the worst of all.
fn bursts_anywhere(settings: &StreamSettings) {
    let (places, mut worst) = ((1..13_000).step_by(230), (0.0, 0));
    for start in places.clone() {
        let [ideal, ours] = burst_at(settings, start, 850);
        let late = f64::from(p99(&ours)) / f64::from(p99(&ideal));
        worst = if late > worst.0 { (late, start) } else { worst };
        if late > 1.005 || !ours.lost.is_empty() {
            row(&format!("burst of 850 from transmission {start} on"), &ideal, &ours, BURST_TRACE);
        }
    }
    println!(
        "| burst of 850 at {} places | | | at most {:.3} times, from transmission {} on | | |",
        places.count(),
        worst.0,
        worst.1
    );
}

/// Repair packets beyond the losses that they repair, for losses of several shapes and sizes.
fn overheads(settings: &StreamSettings, count: u64) {
    for (name, span, chance) in [("burst", 1.0, 1.1), ("a half", 2.0, 0.5), ("a tenth", 10.0, 0.1)] {
        for lost in [1, 2, 5, 20, 50, 100, 250] {
            let period = 7 * lost as u64 * span as u64 + 300;
            let [ideal, ours] = GENERATORS.map(|generator| {
                let (mut at, mut noise) = (0, SplitMix64::new(11));
                let trace = || {
                    at += 1;
                    let inside = (at % period) as f64 <= span * lost as f64;
                    inside && noise.chance(chance)
                };
                let mut overheads = stream(generator, settings, count, trace).expect("settings").overheads;
                overheads.sort_unstable();
                let mean = f64::from(overheads.iter().sum::<u32>()) / overheads.len() as f64;
                (mean, overheads[overheads.len() * 99 / 100])
            });
            println!("| {name} {lost} | {:.4} | {:.4} | {} | {} |", ideal.0, ours.0, ideal.1, ours.1);
        }
    }
}

fn row(name: &str, ideal: &Outcome, ours: &Outcome, count: u64) {
    println!(
        "| {name} | {:.3} | {:.3} | {} | {} | {} |",
        percent(ideal, count),
        percent(ours, count),
        p99(ideal),
        p99(ours),
        ours.most_open
    );
}
