//! The cache model alone, for an encode plan or a live stream, and a fixed number of its rounds that another program
//! may count: `scripts/checks/model.sh` runs it under cachegrind, and `perf stat` serves as well.

use super::window;
use crate::error::Result;
use crate::lab::Lab;
use crate::model::{self, Misses, Pair};
use crate::rows::{aligned, filled};
use crate::table::{Cell, FigureColumn, FigureTable, Findings, figure, key};
use fec_core::block::Plan;
use fec_core::gf256::kernel::Backend;
use fec_core::window::Profile;

/// Window and block of a stream. A round is a block of source packets, with their repair packets.
const WINDOW: u32 = 6000;
const BLOCK: u16 = 240;

/// Rounds over which the model takes the mean.
const ROUNDS: u64 = 4;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    match lab.options.profile {
        Some(profile) => stream(lab, profile),
        None => set(lab),
    }
}

/// The kernel whose loops are modelled: the one that was asked for, or one like that of the modelled processor.
fn backend(lab: &Lab) -> Backend {
    let chosen = lab.settings.backend;
    if lab.options.only_this_backend { chosen } else { lab.options.model.backend(chosen) }
}

fn set(lab: &Lab) -> Result<Findings> {
    let (code, backend) = (lab.options.code()?, backend(lab));
    let plan = Plan::encode(code, backend);
    let payload = lab.options.set_size.unwrap_or(1 << 20);
    let row_len = (payload.min(lab.settings.max_memory / 2) as usize).div_ceil(64 * code.k()) * 64;
    let src = filled(code.k(), row_len);
    let mut dst = aligned(code.m(), row_len);
    let src: Vec<&[u8]> = src.iter().collect();
    let misses = model::of_plan(&lab.options.model, &plan, &src, &dst.iter().collect::<Vec<_>>());
    let rounds = lab.options.rounds.unwrap_or(1);
    for _ in 0..rounds {
        plan.run(&src, &mut dst.iter_mut().collect::<Vec<_>>());
    }
    let columns =
        [key("k", "k"), key("m", "m"), key("shard_bytes", "shard B"), figure("engine", "engine", 0)];
    let cells = [
        ("k", code.k().into()),
        ("m", code.m().into()),
        ("shard_bytes", row_len.into()),
        ("engine", plan.engine().name().into()),
    ];
    let mut findings = outcome(lab, "a set", columns, cells, &misses, (row_len * code.k()) as u64);
    if lab.options.set_size.is_none() {
        findings.notes.push(
            "a set of 1 MiB, since modelling is slow: --set-size 4M is the one of `fec bench reference`"
                .to_owned(),
        );
    }
    Ok(findings)
}

fn stream(lab: &Lab, profile: Profile) -> Result<Findings> {
    let (settings, caches, backend) = (lab.settings, &lab.options.model, backend(lab));
    let new = || window::FullWindow::new(settings, backend, profile, WINDOW, BLOCK);
    let (block, stages) = model::apart(|| -> Result<_> {
        let mut work = new()?;
        let block: u64 = work.encoder.parameters().block.into();
        let mut caches = Pair::new(caches, 64);
        work.traced(block, false, &mut caches);
        Ok((block, work.traced(ROUNDS * block, false, &mut caches)))
    })?;
    let sum = |of: fn(&Misses) -> u64| stages.iter().map(|stage| of(&stage.misses)).sum::<u64>() / ROUNDS;
    let misses = Misses {
        l1: sum(|misses| misses.l1),
        l2: sum(|misses| misses.l2),
        l1_prefetched: sum(|misses| misses.l1_prefetched),
        l2_prefetched: sum(|misses| misses.l2_prefetched),
    };
    // The rounds have the same packets.
    let mut work = new()?;
    for _ in 0..lab.options.rounds.unwrap_or(1) {
        work.packets(block);
    }
    let columns = [
        key("window", "window"),
        key("block", "block"),
        key("payload_bytes", "payload B"),
        key("profile", "profile"),
    ];
    let cells = [
        ("window", (WINDOW as usize).into()),
        ("block", (block as usize).into()),
        ("payload_bytes", window::PAYLOAD.into()),
        ("profile", profile.name().into()),
    ];
    Ok(outcome(lab, "a block of a stream", columns, cells, &misses, block * window::PAYLOAD as u64))
}

/// A table of a single row: the coded data, and its misses.
fn outcome(
    lab: &Lab,
    of: &str,
    columns: [FigureColumn; 4],
    cells: [(&'static str, Cell); 4],
    misses: &Misses,
    bytes: u64,
) -> Findings {
    let columns = columns.into_iter().chain([
        figure("rounds", "rounds run", 0),
        figure("l1_misses", "L1 misses a round", 0),
        figure("l2_misses", "L2 misses a round", 0),
    ]);
    let columns = columns.chain(model::columns());
    let mut table = FigureTable::new(
        "model",
        format!(
            "Modelled misses of encoding {of} by the loops of {}: {}",
            backend(lab).name(),
            lab.options.model
        ),
        columns,
    );
    let counted = [
        ("rounds", (lab.options.rounds.unwrap_or(1) as usize).into()),
        ("l1_misses", (misses.l1 as usize).into()),
        ("l2_misses", (misses.l2 as usize).into()),
    ];
    table.row(cells.into_iter().chain(counted).chain(model::cells(misses, bytes)));
    Findings::new(vec![table], vec![model::LEGEND.to_owned()])
}
