//! Runs one hot operation a given number of times, for tools that count instructions or model a processor. The
//! difference of two runs with different numbers of rounds is the operation alone.
//!
//! ```text
//! columns encode|matrix|decode BACKEND K M SHARD_LEN ROUNDS
//! columns sum|add|spread BACKEND K 0 SHARD_LEN ROUNDS
//! ```
//!
//! `encode` makes all recovery shards from all originals by the engine that the plan picks, `matrix` by the matrix;
//! `decode` restores as many originals as the recovery shards allow. The others are the loops of the packet code, in
//! every walk: `sum` adds K rows to one, `add` adds one row to another K times, `spread` adds K rows to three sums.
//! BACKEND may be `best`.

use fec_core::block::{Code, Engine, Plan, ShardBuf};
use fec_core::gf256::kernel::{Backend, Walk};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [operation, backend, k, m, len, rounds] = &words[..] else {
        return Err("usage: columns OPERATION BACKEND K M SHARD_LEN ROUNDS".into());
    };
    let (k, m, len): (usize, usize, usize) = (k.parse()?, m.parse()?, len.parse()?);
    let rounds: usize = rounds.parse()?;
    let backend = if backend == "best" { Backend::best() } else { Backend::by_name(backend)? };
    if ["sum", "add", "spread"].contains(&operation.as_str()) {
        packets(operation, backend, k, len, rounds);
        return Ok(());
    }
    let code = Code::new(k, m)?;
    let indices: Vec<u8> = (0..code.n()).map(|index| index as u8).collect();
    let lost = k.min(m);
    let plan = match operation.as_str() {
        "encode" => Plan::encode(code, backend),
        "matrix" => Plan::with_engine(code, backend, &indices[..k], &indices[k..], Engine::Matrix)?,
        "decode" => Plan::new(code, backend, &indices[lost..lost + k], &indices[..lost])?,
        other => return Err(format!("no operation is called {other}").into()),
    };
    let known = filled(k, len);
    let mut wanted = ShardBuf::new(plan.wanted().len(), len);
    let sources: Vec<&[u8]> = known.iter().collect();
    let mut destinations: Vec<&mut [u8]> = wanted.iter_mut().collect();
    for _ in 0..rounds {
        plan.run(&sources, &mut destinations);
    }
    let operations = plan.operations();
    println!(
        "{} {} {k}+{m} x {len} B: {} engine, {} multiplications and {} additions a column, {rounds} rounds",
        backend.name(),
        operation,
        plan.engine().name(),
        operations.multiplications,
        operations.additions
    );
    Ok(())
}

/// Rows with different bytes.
fn filled(rows: usize, len: usize) -> ShardBuf {
    let mut filled = ShardBuf::new(rows, len);
    for (seed, row) in (0u8..).zip(filled.iter_mut()) {
        row.iter_mut().zip((0u8..=255).cycle()).for_each(|(byte, i)| *byte = i ^ seed);
    }
    filled
}

/// Runs a loop of the packet code.
fn packets(operation: &str, backend: Backend, rows: usize, len: usize, rounds: usize) {
    let sources = filled(rows, len);
    let sources: Vec<&[u8]> = sources.iter().collect();
    let mut sums = [vec![0; len], vec![0; len], vec![0; len]];
    for _ in 0..rounds {
        let [a, b, c] = &mut sums;
        match operation {
            "spread" => sources.iter().for_each(|row| backend.spread([a, b, c], row, [2, 3])),
            "add" => {
                Walk::ALL.iter().for_each(|&walk| sources.iter().for_each(|row| backend.add(walk, a, row)))
            }
            _ => Walk::ALL.iter().for_each(|&walk| backend.sum(walk, &[&sources], 2, a)),
        }
    }
    println!("{} {operation}: {rows} rows x {len} B, {rounds} rounds, {:?}", backend.name(), &sums[0][..8]);
}
