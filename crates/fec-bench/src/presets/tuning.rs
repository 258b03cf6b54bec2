//! A test of the settings for this processor: each of their neighbours, and each other entry of the table of
//! processors, runs against them in turn, on the same rows.
//!
//! The same settings serve rows that were just read, which the caches hold, and rows of mapped files, which come from
//! memory. Both are cases, and settings are judged over all of them.

use super::batch::Sets;
use crate::lab::{Lab, megabits};
use crate::machine::Caches;
use crate::stats::Summary;
use crate::table::{FigureTable, Findings, figure, key};
use fec_core::block::{Code, Plan};
use fec_core::gf256::kernel::Tuning;
use std::cell::RefCell;

/// The number of encoded sets.
#[derive(Clone, Copy)]
enum Amount {
    /// A single set, whose rows the caches hold if they are large enough.
    One,
    /// As many sets as exceed the caches, one by one: the rows of each come from memory.
    BeyondCaches,
    /// This many in one batch.
    Batch(usize),
}

/// A case: originals, recovery shards, bytes of a shard, and number of sets. All but the last are sets of 4 MiB.
type Case = (usize, usize, usize, Amount);

const CASES: [Case; 5] = [
    (33, 67, 127_104, Amount::One),
    (86, 14, 48_832, Amount::One),
    (33, 67, 127_104, Amount::BeyondCaches),
    (86, 14, 48_832, Amount::BeyondCaches),
    (33, 67, 256, Amount::Batch(64)),
];

/// The cases that serve where there is little time: rows in the caches, and rows from memory.
const FEW: [Case; 2] = [CASES[0], CASES[2]];

/// Bytes of rows beyond the caches: a multiple of the last cache, the least bytes and the most.
const BEYOND: (u64, u64, u64) = (2, 16 << 20, 128 << 20);

/// Factor by which the chosen settings may be slower than the best ones.
const ALLOWED: f64 = 1.05;

/// Factor from which other settings are worth having.
const WORTH: f64 = 1.01;

pub(crate) fn run(lab: &mut Lab) -> Findings {
    let chosen = lab.settings.backend.tuning();
    let rivals = rivals(chosen);
    let mut table = table(chosen);
    // Cases that can be judged, rather than the beginning of all.
    let cases = if lab.options.quick { &FEW[..] } else { &CASES[..] };
    // The best settings of each case, and the best combination, are measured once more.
    lab.plan(cases.len() * (rivals.len() + 2));
    let mut notes = Vec::new();
    let mut ratios = vec![Vec::new(); rivals.len()];
    for case in cases {
        notes.push(tournament(lab, &mut table, *case, &rivals, &mut ratios));
    }
    let is_complete = ratios.iter().all(|ratios| ratios.len() == cases.len());
    let best = together(chosen, &rivals, &ratios, cases.len())
        .map(|tuning| (tuning, over_all_cases(lab, &mut table, cases, tuning, &mut notes)));
    let verdict = match &best {
        None if is_complete => Verdict::Within,
        None => Verdict::Unclear,
        Some((_, overall)) => overall.as_ref().map_or(Verdict::Unclear, |overall| overall.verdict),
    };
    let answer = match verdict {
        Verdict::Within => "is within 5 % of the best",
        Verdict::Beyond | Verdict::Unclear => "is not shown to be within 5 % of the best",
    };
    let which = if lab.options.quick { "two of the five cases (--quick)" } else { "all cases" };
    notes.push(format!("the chosen entry, {chosen}, {answer} over {which}"));
    // Better settings in two cases may be worse ones in the others.
    let is_worth = |overall: &Option<Overall>| overall.as_ref().is_some_and(|overall| overall.is_better);
    let better = best.filter(|(_, overall)| !lab.options.quick && is_worth(overall));
    Findings { better: better.map(|(tuning, _)| tuning), ..Findings::new(vec![table], notes) }
}

/// The best combination. It takes the value of each setting that was fastest over all cases, if by more than [`WORTH`].
/// An entry of the table is taken instead if it was faster than each of these.
fn together(
    chosen: Tuning,
    rivals: &[(String, Tuning)],
    ratios: &[Vec<f64>],
    cases: usize,
) -> Option<Tuning> {
    let all = rivals.iter().zip(ratios).filter(|(_, ratios)| ratios.len() == cases);
    let scores = all.map(|((name, tuning), ratios)| (mean(ratios), name.split_once('='), name, *tuning));
    let mut worth: Vec<_> = scores.filter(|(score, ..)| *score > WORTH).collect();
    worth.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (_, setting, _, tuning) = worth.first()?;
    if setting.is_none() {
        return Some(*tuning);
    }
    let (mut tuning, mut done) = (chosen, Vec::new());
    for (_, setting, change, _) in &worth {
        // The first value of each setting is its fastest.
        if let Some((field, _)) = setting
            && !done.contains(field)
        {
            done.push(field);
            tuning = tuning.changed(change).ok()?;
        }
    }
    Some(tuning)
}

/// The geometric mean.
fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

/// The result of settings in all cases.
struct Overall {
    /// Tells whether the chosen settings are good enough beside these.
    verdict: Verdict,
    /// True if these are shown to be faster over all cases, and slower by more than [`ALLOWED`] in none.
    is_better: bool,
}

/// Runs settings against the chosen ones, once more in each case. `None` if there was no time for it.
fn over_all_cases(
    lab: &mut Lab,
    table: &mut FigureTable,
    cases: &[Case],
    tuning: Tuning,
    notes: &mut Vec<String>,
) -> Option<Overall> {
    let rival = (tuning.to_string(), tuning);
    let (mut ratios, mut squares, mut is_slower) = (Vec::new(), 0.0, false);
    for case in cases {
        let shape = Shape::of(*case);
        let rows = RefCell::new(shape.rows(lab));
        let duel = duel(lab, &shape, &rows, &rival)?;
        duel.row(table, &shape, &format!("{}, together", rival.0));
        is_slower |= duel.ratio + duel.noise < 1.0 / ALLOWED;
        squares += (duel.noise / duel.ratio).powi(2);
        ratios.push(duel.ratio);
    }
    let ratio = mean(&ratios);
    let noise = ratio * squares.sqrt() / ratios.len() as f64;
    let is_better = ratio > WORTH && !is_slower;
    let words = if is_better { "faster over all cases" } else { "not shown to be faster over all cases" };
    notes.push(format!(
        "{}: {ratio:.3} times as fast as chosen over all cases (noise {noise:.3}): {words}",
        rival.0
    ));
    Some(Overall { verdict: Verdict::of(ratio, noise), is_better })
}

fn table(chosen: Tuning) -> FigureTable {
    FigureTable::new(
        "tuning",
        format!(
            "Settings of {} against {chosen}, one thread: more than 1 is faster than chosen",
            chosen.name()
        ),
        [
            key("case", "encode"),
            key("settings", "settings"),
            figure("chosen_us", "chosen µs", 1),
            figure("time_us", "these µs", 1),
            figure("megabits_per_second", "Mb/s", 0),
            figure("ratio", "against chosen", 3),
            figure("noise", "noise", 3),
        ],
    )
}

/// A case, with derived values.
struct Shape {
    name: String,
    code: Code,
    len: usize,
    sets: usize,
    in_one_batch: bool,
}

impl Shape {
    fn of((k, m, len, amount): Case) -> Shape {
        let code = Code::new(k, m).expect("at most 256 shards");
        let set = format!("{k}+{m} x {len} B");
        let (name, sets, in_one_batch) = match amount {
            Amount::One => (set, 1, false),
            Amount::BeyondCaches => {
                let (times, from, to) = BEYOND;
                let caches = Caches::host();
                let bytes = (times * caches.l3_bytes.unwrap_or(caches.l2_bytes)).clamp(from, to);
                let sets = bytes.div_ceil(((k + m) * len) as u64) as usize;
                (format!("{set}, from memory"), sets, false)
            }
            Amount::Batch(sets) => (format!("{sets} sets of {set}"), sets, true),
        };
        Shape { name, code, len, sets, in_one_batch }
    }

    fn rows(&self, lab: &Lab) -> Sets {
        Sets::new(&Plan::encode(self.code, lab.settings.backend), self.sets, self.len)
    }

    /// Bytes of payload.
    fn payload(&self) -> u64 {
        (self.sets * self.code.k() * self.len) as u64
    }
}

/// Runs the chosen settings against all others, and against the best of these once more. Returns the note about it.
fn tournament(
    lab: &mut Lab,
    table: &mut FigureTable,
    case: Case,
    rivals: &[(String, Tuning)],
    ratios: &mut [Vec<f64>],
) -> String {
    let shape = Shape::of(case);
    let case = &shape.name;
    let rows = RefCell::new(shape.rows(lab));
    let mut found: Vec<(f64, &(String, Tuning))> = Vec::new();
    for (rival, ratios) in rivals.iter().zip(ratios) {
        let Some(duel) = duel(lab, &shape, &rows, rival) else { continue };
        ratios.push(duel.ratio);
        found.push((duel.ratio, rival));
        duel.row(table, &shape, &rival.0);
    }
    let Some((_, best)) = found.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return format!("{case}: not measured");
    };
    // The largest of many figures is large by chance too; a second measurement is not.
    let Some(again) = duel(lab, &shape, &rows, best) else {
        return format!("{case}: {} looked best, and was not measured again", best.0);
    };
    again.row(table, &shape, &format!("{}, again", best.0));
    format!(
        "{case}: the best of {} of {} was {}, {:.3} times as fast as chosen when measured again (noise {:.3}): {}",
        found.len(),
        rivals.len(),
        best.0,
        again.ratio,
        again.noise,
        Verdict::of(again.ratio, again.noise).text(),
    )
}

/// Settings to try, each with its difference from the chosen ones: neighbours, then entries that differ in a value.
fn rivals(chosen: Tuning) -> Vec<(String, Tuning)> {
    let values = |tuning: Tuning| tuning.settings().collect::<Vec<_>>();
    let mut rivals: Vec<(String, Tuning)> = chosen.neighbours().collect();
    for (name, tuning) in Tuning::names().filter_map(|name| Some((name, Tuning::named(name)?))) {
        let known = rivals.iter().map(|(_, rival)| *rival).chain([chosen]);
        if known.into_iter().all(|other| values(other) != values(tuning)) {
            rivals.push((name.to_owned(), tuning));
        }
    }
    rivals
}

/// The result of the chosen settings against others.
struct Duel {
    chosen: Summary,
    rival: Summary,
    /// The median with the chosen settings over the median with the others.
    ratio: f64,
    /// Possible error of the ratio.
    noise: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Within,
    Beyond,
    Unclear,
}

impl Verdict {
    fn of(ratio: f64, noise: f64) -> Verdict {
        match () {
            () if ratio + noise <= ALLOWED => Verdict::Within,
            () if ratio - noise > ALLOWED => Verdict::Beyond,
            () => Verdict::Unclear,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Verdict::Within => "the chosen settings are within 5 % of it",
            Verdict::Beyond => "the chosen settings are slower by more than 5 %",
            Verdict::Unclear => {
                "too close to 5 % to tell by this measurement; give it more time with --budget"
            }
        }
    }
}

impl Duel {
    fn row(&self, table: &mut FigureTable, shape: &Shape, settings: &str) {
        table.row([
            ("case", shape.name.as_str().into()),
            ("settings", settings.into()),
            ("chosen_us", self.chosen.scaled(1e6).into()),
            ("time_us", self.rival.scaled(1e6).into()),
            ("megabits_per_second", megabits(shape.payload(), self.rival.median).into()),
            ("ratio", self.ratio.into()),
            ("noise", self.noise.into()),
        ]);
    }
}

/// Encodes with the chosen settings and with others, in turn. Both work on the same rows: their place in memory matters
/// more than most settings. The work includes the digests of recovery shards: stores past the caches look better if
/// nobody reads the rows, and worse if somebody only reads.
fn duel(
    lab: &mut Lab,
    shape: &Shape,
    rows: &RefCell<Sets>,
    (name, tuning): &(String, Tuning),
) -> Option<Duel> {
    let backend = lab.settings.backend;
    let [chosen, other] =
        [backend, backend.with_tuning(*tuning)].map(|backend| Plan::encode(shape.code, backend));
    let with = |plan: &Plan| {
        let mut rows = rows.borrow_mut();
        if shape.in_one_batch { rows.batched_and_read(plan) } else { rows.each_and_hash(plan) }
    };
    let (mut with_chosen, mut with_other) = (|| with(&chosen), || with(&other));
    let works: &mut [&mut dyn FnMut()] = &mut [&mut with_chosen, &mut with_other];
    let measured = lab.race(&format!("{}, {name}", shape.name), false, works)?;
    let [chosen, rival] = <[_; 2]>::try_from(measured).ok()?.map(|measured| measured.time);
    let (ratio, noise) = (chosen.median / rival.median, chosen.noise().hypot(rival.noise()));
    Some(Duel { chosen, rival, ratio, noise: ratio * noise })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::gf256::kernel::Backend;

    #[test]
    fn rivals_differ_from_the_chosen_settings_and_from_one_another() {
        let chosen = Backend::best().tuning();
        let rivals = rivals(chosen);
        assert!(rivals.iter().any(|(name, _)| name.contains('=')) && rivals.len() > 10, "{rivals:?}");
        let values = |tuning: &Tuning| tuning.settings().collect::<Vec<_>>();
        for (i, (name, rival)) in rivals.iter().enumerate() {
            assert_ne!(values(rival), values(&chosen), "{name}");
            let twin = rivals[..i].iter().find(|(_, other)| values(other) == values(rival));
            assert!(twin.is_none(), "{name} and {twin:?}");
        }
    }

    #[test]
    fn the_fastest_values_of_all_settings_go_together() {
        let chosen = Tuning::named("zen4").unwrap();
        let rivals = |changes: &[&str]| {
            changes
                .iter()
                .map(|change| (change.to_string(), chosen.changed(change).unwrap()))
                .collect::<Vec<_>>()
        };
        let changes = rivals(&["tile=65536", "tile=98304", "prefetch=0", "store=plain"]);
        let ratios =
            [[1.10, 1.0, 1.1, 1.0, 1.1], [1.2, 1.0, 1.1, 1.0, 1.1], [1.0, 1.08, 1.0, 1.0, 1.0], [1.0; 5]]
                .map(Vec::from);
        let found = together(chosen, &changes, &ratios, 5).unwrap();
        assert_eq!(found, chosen.changed("tile=98304,prefetch=0").unwrap());
        // Settings that were not measured in all cases, or gain too little, do not count.
        assert_eq!(together(chosen, &changes[2..3], &[vec![1.5]], 5), None);
        assert_eq!(together(chosen, &changes[3..], &[vec![1.01, 1.0, 1.0, 1.0, 1.0]], 5), None);
        let entry = rivals(&["zen3"]);
        assert_eq!(together(chosen, &entry, &[vec![1.1; 5]], 5), Some(entry[0].1));
    }

    #[test]
    fn a_verdict_takes_the_noise_into_account() {
        assert_eq!(Verdict::of(1.02, 0.01), Verdict::Within);
        assert_eq!(Verdict::of(1.04, 0.02), Verdict::Unclear);
        assert_eq!(Verdict::of(1.06, 0.02), Verdict::Unclear);
        assert_eq!(Verdict::of(1.10, 0.02), Verdict::Beyond);
        assert_eq!(Verdict::of(0.80, 0.10), Verdict::Within);
    }
}
