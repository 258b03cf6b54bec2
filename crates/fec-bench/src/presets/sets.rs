//! A sweep over k, m and the length of shards.

use crate::counters;
use crate::lab::{Lab, megabits};
use crate::model;
use crate::rows::PlanOnRows;
use crate::table::{ESTIMATED_CYCLES, FigureTable, Findings, estimated_cycles, figure, key};
use fec_core::block::{Code, Plan};

const SHAPES: [(usize, usize); 10] =
    [(4, 2), (10, 4), (17, 3), (33, 67), (50, 50), (86, 14), (100, 100), (128, 128), (200, 56), (255, 1)];

const LENGTHS: [usize; 5] = [64, 256, 2048, 16 << 10, 128 << 10];

pub(crate) fn run(lab: &mut Lab) -> Findings {
    let columns = [
        key("k", "k"),
        key("m", "m"),
        key("shard_bytes", "shard B"),
        figure("engine", "engine", 0),
        figure("multiplications", "mul/column", 0),
        figure("time_us", "median µs", 2),
        figure("megabits_per_second", "Mb/s", 0),
        estimated_cycles(),
    ];
    let mut table = FigureTable::new(
        "sets",
        "Encoding one set, one thread: Mb/s are payload bits",
        columns.into_iter().chain(counters::columns()).chain(model::columns()),
    );
    let fits = |(k, m): (usize, usize), len: usize| ((k + m) * len) as u64 <= lab.settings.max_memory;
    let cases: Vec<_> = SHAPES
        .into_iter()
        .flat_map(|shape| LENGTHS.map(|len| (shape, len)))
        .filter(|(shape, len)| fits(*shape, *len))
        .collect();
    lab.plan(cases.len());
    for ((k, m), len) in cases {
        let plan = Plan::encode(Code::new(k, m).expect("at most 256 shards"), lab.settings.backend);
        let mut work = PlanOnRows::new(&plan, len);
        let bytes = work.bytes();
        let Some(measured) = lab.measure(&format!("{k} + {m} x {len} B"), false, || work.run()) else {
            continue;
        };
        let seconds = measured.time.median;
        let (misses, whole) = work.model(&lab.options.model);
        let cells = [
            ("k", k.into()),
            ("m", m.into()),
            ("shard_bytes", len.into()),
            ("engine", plan.engine().name().into()),
            ("multiplications", plan.multiplications().into()),
            ("time_us", measured.time.scaled(1e6).into()),
            ("megabits_per_second", megabits(bytes, seconds).into()),
            (ESTIMATED_CYCLES, lab.estimated_cycles(bytes, seconds).into()),
        ];
        let counted = counters::cells(&measured.counts, bytes);
        table.row(cells.into_iter().chain(counted).chain(model::cells(&misses, whole)));
    }
    let columns = "a set that takes long is coded some columns at a time: the time is of those";
    let notes = vec![model::LEGEND.to_owned(), columns.to_owned()];
    Findings::new(vec![table], notes)
}
