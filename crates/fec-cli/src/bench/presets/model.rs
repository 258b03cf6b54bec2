//! The cache model alone, for one encode plan, and a fixed number of rounds of it that somebody else may count:
//! `scripts/check-model.sh` runs it under cachegrind, and `perf stat` serves as well.

use super::super::lab::Lab;
use super::super::model;
use super::super::report::{Table, figure, key};
use super::rows::{aligned, filled};
use super::{Outcome, code};
use crate::failure::Result;
use fec_core::block::Plan;

pub(super) fn run(lab: &mut Lab) -> Result<Outcome> {
    let code = code(lab)?;
    let plan = Plan::encode(code, lab.settings.backend);
    let payload = lab.args.set_size.unwrap_or(1 << 20);
    let row_len = (payload.min(lab.settings.max_memory / 2) as usize).div_ceil(64 * code.k()) * 64;
    let src = filled(code.k(), row_len);
    let mut dst = aligned(code.m(), row_len);
    let src: Vec<&[u8]> = src.iter().collect();
    let misses = model::of_plan(&lab.model, &plan, &src, &dst.iter().collect::<Vec<_>>());
    let rounds = lab.args.rounds.unwrap_or(1);
    for _ in 0..rounds {
        plan.run(&src, &mut dst.iter_mut().collect::<Vec<_>>());
    }
    let columns = [
        key("k", "k"),
        key("m", "m"),
        key("shard_bytes", "shard B"),
        figure("engine", "engine", 0),
        figure("rounds", "rounds run", 0),
        figure("l1_misses", "L1 misses a round", 0),
        figure("l2_misses", "L2 misses a round", 0),
    ];
    let columns = columns.into_iter().chain(model::columns());
    let mut table = Table::new("model", format!("Modelled misses of encoding: {}", lab.model), columns);
    let cells = [
        ("k", code.k().into()),
        ("m", code.m().into()),
        ("shard_bytes", row_len.into()),
        ("engine", plan.engine().name().into()),
        ("rounds", (rounds as usize).into()),
        ("l1_misses", (misses.l1 as usize).into()),
        ("l2_misses", (misses.l2 as usize).into()),
    ];
    table.row(cells.into_iter().chain(model::cells(&misses, (row_len * code.k()) as u64)));
    Ok(Outcome { tables: vec![table], notes: Vec::new() })
}
