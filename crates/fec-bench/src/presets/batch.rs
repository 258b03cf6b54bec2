//! Many sets of short shards: singly, in one batch, and with a new plan for each.

use crate::error::Result;
use crate::lab::{Lab, megabits};
use crate::rows::{aligned, filled};
use crate::table::{FigureTable, Findings, figure, key};
use fec_core::block::{Code, Plan, Rows, ShardBuf};
use fec_core::digest::HashKind;

/// The number of sets, and the length of their shards.
const CASES: [(usize, usize); 7] =
    [(2, 64), (2, 256), (64, 64), (64, 128), (64, 256), (64, 1024), (16, 4096)];

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let code = lab.options.code()?;
    let mut table = FigureTable::new(
        "batch",
        format!("{} + {} shards, one thread: time of one set, Mb/s are payload bits", code.k(), code.m()),
        [
            key("operation", "operation"),
            key("sets", "sets"),
            key("shard_bytes", "shard B"),
            key("way", "way"),
            figure("time_us", "median µs", 3),
            figure("megabits_per_second", "Mb/s", 0),
            figure("speedup", "against one by one", 2),
        ],
    );
    let patterns = patterns(code);
    lab.plan(CASES.len() * patterns.len());
    for (operation, known, wanted) in patterns {
        for (sets, len) in CASES {
            let backend = lab.settings.backend;
            let plan = Plan::new(code, backend, &known, &wanted).expect("k shards of the code");
            let mut work = Sets::new(&plan, sets, len);
            let name = format!("{operation}, {sets} sets of {len} B");
            let [mut one, mut two, mut three] = std::array::from_fn(|_| work.twin());
            let mut one_by_one = || one.each(&plan);
            let mut batched = || two.batched(&plan);
            let anew = || Plan::new(code, backend, &known, &wanted).expect("k shards of the code");
            let mut rebuilt = || three.rebuilt(anew);
            let works: &mut [&mut dyn FnMut()] = &mut [&mut one_by_one, &mut batched, &mut rebuilt];
            let Some(measured) = lab.race(&name, false, works) else { continue };
            let base = measured[0].time.median;
            for (way, measured) in ["one by one", "batched", "plan for each"].into_iter().zip(&measured) {
                let seconds = measured.time.median / sets as f64;
                table.row([
                    ("operation", operation.as_str().into()),
                    ("sets", sets.into()),
                    ("shard_bytes", len.into()),
                    ("way", way.into()),
                    ("time_us", measured.time.scaled(1e6 / sets as f64).into()),
                    ("megabits_per_second", megabits((code.k() * len) as u64, seconds).into()),
                    ("speedup", (base / measured.time.median).into()),
                ]);
            }
        }
    }
    Ok(Findings::new(vec![table], Vec::new()))
}

/// A name, the known shards and the wanted ones.
type LossPattern = (String, Vec<u8>, Vec<u8>);

/// Encoding, and restoring the originals that a random loss takes.
fn patterns(code: Code) -> Vec<LossPattern> {
    let (k, n) = (code.k(), code.n());
    let indices = |range: std::ops::Range<usize>| -> Vec<u8> { range.map(|i| i as u8).collect() };
    let lost = (k - k / 3).min(code.m());
    let mut patterns = Vec::new();
    if code.m() > 0 {
        patterns.push(("encode".to_owned(), indices(0..k), indices(k..n)));
        let name = format!("decode, {lost} originals lost");
        patterns.push((name, indices(lost..k + lost), indices(0..lost)));
    }
    patterns
}

/// Sources and destinations of some sets.
pub(crate) struct Sets {
    all: Vec<(ShardBuf, ShardBuf)>,
    shape: (usize, usize, usize),
}

impl Sets {
    pub(crate) fn new(plan: &Plan, sets: usize, len: usize) -> Sets {
        let shape = (plan.known().len(), plan.wanted().len(), len);
        Sets { all: (0..sets).map(|_| Sets::one(shape)).collect(), shape }
    }

    fn one((known, wanted, len): (usize, usize, usize)) -> (ShardBuf, ShardBuf) {
        (filled(known, len), aligned(wanted, len))
    }

    /// Sets of the same shape, for another way of the work.
    fn twin(&mut self) -> Sets {
        Sets { all: self.all.iter().map(|_| Sets::one(self.shape)).collect(), shape: self.shape }
    }

    fn each(&mut self, plan: &Plan) {
        for (src, dst) in &mut self.all {
            let src: Vec<&[u8]> = src.iter().collect();
            plan.run(&src, &mut dst.iter_mut().collect::<Vec<_>>());
        }
    }

    fn rebuilt(&mut self, plan: impl Fn() -> Plan) {
        for (src, dst) in &mut self.all {
            let src: Vec<&[u8]> = src.iter().collect();
            plan().run(&src, &mut dst.iter_mut().collect::<Vec<_>>());
        }
    }

    /// Runs set by set, with the digests of each set's destinations, as commands do.
    pub(crate) fn each_and_hash(&mut self, plan: &Plan) {
        for (src, dst) in &mut self.all {
            let src: Vec<&[u8]> = src.iter().collect();
            plan.run(&src, &mut dst.iter_mut().collect::<Vec<_>>());
            std::hint::black_box(HashKind::Blake3.digests(&dst.iter().collect::<Vec<_>>()));
        }
    }

    /// Runs all sets in one batch, then reads a word of each line of their destinations: digests of such short rows
    /// would take longer than the coding.
    pub(crate) fn batched_and_read(&mut self, plan: &Plan) {
        self.batched(plan);
        let rows = self.all.iter().flat_map(|(_, dst)| dst.iter());
        let words = rows.flat_map(|row| row.as_chunks::<64>().0).map(|line| u64::from(line[0]));
        std::hint::black_box(words.sum::<u64>());
    }

    fn batched(&mut self, plan: &Plan) {
        /// Sources and destinations of one set.
        type SetSlices<'a> = (Vec<&'a [u8]>, Vec<&'a mut [u8]>);
        let mut rows: Vec<SetSlices> =
            self.all.iter_mut().map(|(src, dst)| (src.iter().collect(), dst.iter_mut().collect())).collect();
        let mut sets: Vec<Rows> = rows.iter_mut().map(|(src, dst)| (&src[..], &mut dst[..])).collect();
        plan.run_batch(&mut sets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fec_core::gf256::kernel::Backend;

    #[test]
    fn all_ways_give_the_same_bytes() {
        let code = Code::new(5, 4).expect("a code");
        for (_, known, wanted) in patterns(code) {
            let plan = Plan::new(code, Backend::best(), &known, &wanted).expect("a plan");
            let mut one = Sets::new(&plan, 3, 128);
            let [mut two, mut three] = std::array::from_fn(|_| one.twin());
            one.each(&plan);
            two.batched(&plan);
            three.rebuilt(|| Plan::new(code, Backend::best(), &known, &wanted).expect("a plan"));
            for other in [two, three] {
                for ((_, a), (_, b)) in one.all.iter().zip(&other.all) {
                    assert!(a.iter().eq(b.iter()));
                    assert!(a.iter().all(|row| row.iter().any(|byte| *byte != 0)));
                }
            }
        }
    }
}
