//! Every backend of this processor on hot shapes, with working sets for each cache and for memory.

use super::walks;
use crate::counters;
use crate::lab::{Lab, megabits};
use crate::model;
use crate::rows::{PlanOnRows, levels};
use crate::table::{ESTIMATED_CYCLES, FigureTable, Findings, estimated_cycles, figure, key};
use fec_core::block::{Code, Engine, Plan};
use fec_core::gf256::kernel::Backend;

/// Codes in use, and the founding workload. The first two serve where there is little time.
const SHAPES: [(usize, usize); 5] = [(33, 67), (10, 4), (86, 14), (50, 50), (100, 100)];
const FEW: usize = 2;

/// A plan to be measured.
struct KernelCase {
    operation: String,
    plan: Plan,
}

pub(crate) fn run(lab: &mut Lab) -> Findings {
    let quick = lab.options.quick;
    // A part that can be measured well, rather than the beginning of all.
    let backends = if quick { vec![lab.settings.backend] } else { lab.options.backends() };
    let levels = &levels(lab.options);
    let shapes = if quick { &SHAPES[..FEW] } else { &SHAPES[..] };
    let columns = [
        key("backend", "backend"),
        key("operation", "operation"),
        key("level", "in"),
        figure("row_bytes", "row B", 0),
        figure("time_us", "median µs", 2),
        figure("megabytes_per_second", "MB/s", 0),
        figure("megabits_per_second", "Mb/s", 0),
        estimated_cycles(),
    ];
    let mut table = FigureTable::new(
        "kernels",
        "Kernels, one thread, without hashing: MB/s and Mb/s are bytes and bits of source rows",
        columns.into_iter().chain(counters::columns()).chain(model::columns()),
    );
    let plans = backends.iter().map(|backend| cases(*backend, shapes).len()).sum::<usize>();
    lab.plan(plans * levels.len() + backends.len() * walks::figures(levels));
    // The walks come first, because they are few and short.
    let walks = walks::table(lab, &backends, levels);
    for &backend in &backends {
        for KernelCase { operation, plan } in cases(backend, shapes) {
            for level in levels {
                let rows = plan.known().len() + plan.wanted().len();
                let row_len = (level.bytes / rows / 64 * 64).max(64);
                let mut work = PlanOnRows::new(&plan, row_len);
                let bytes = work.bytes();
                let name = format!("{} {operation} in {}", backend.name(), level.name);
                let Some(measured) = lab.measure(&name, false, || work.run()) else { continue };
                let seconds = measured.time.median;
                let (misses, whole) = work.model(&lab.options.model);
                let cells = [
                    ("backend", backend.name().into()),
                    ("operation", operation.as_str().into()),
                    ("level", level.name.as_str().into()),
                    ("row_bytes", row_len.into()),
                    ("time_us", measured.time.scaled(1e6).into()),
                    ("megabytes_per_second", (bytes as f64 / 1e6 / seconds).into()),
                    ("megabits_per_second", megabits(bytes, seconds).into()),
                    (ESTIMATED_CYCLES, lab.estimated_cycles(bytes, seconds).into()),
                ];
                let counted = counters::cells(&measured.counts, bytes);
                table.row(cells.into_iter().chain(counted).chain(model::cells(&misses, whole)));
            }
        }
    }
    let mut notes = vec![model::LEGEND.to_owned(), taken(lab.settings.backend, shapes)];
    if quick {
        notes.push("--quick: one kernel and two codes; without it, all of them".to_owned());
    }
    Findings::new(vec![table, walks], notes)
}

/// The engine that an encode takes, for each code.
fn taken(backend: Backend, shapes: &[(usize, usize)]) -> String {
    let engines = shapes.iter().map(|(k, m)| {
        let plan = Plan::encode(Code::new(*k, *m).expect("at most 256 shards"), backend);
        format!("{k}+{m} by {}", plan.engine().name())
    });
    format!("fec encodes {}", engines.collect::<Vec<_>>().join(", "))
}

/// A product added to a product, and both engines for each shape.
fn cases(backend: Backend, shapes: &[(usize, usize)]) -> Vec<KernelCase> {
    let code = Code::new(2, 1).expect("three shards");
    let plan =
        |code, known: &[u8], wanted: &[u8], engine| Plan::with_engine(code, backend, known, wanted, engine);
    let product = plan(code, &[0, 1], &[2], Engine::Matrix).expect("a matrix serves any shards");
    let mut cases = vec![KernelCase { operation: "product-add".to_owned(), plan: product }];
    for &(k, m) in shapes {
        let code = Code::new(k, m).expect("at most 256 shards");
        let indices: Vec<u8> = (0..code.n()).map(|i| i as u8).collect();
        let (known, wanted) = indices.split_at(k);
        for engine in [Engine::Fft, Engine::Matrix] {
            if let Ok(plan) = plan(code, known, wanted, engine) {
                cases.push(KernelCase { operation: format!("{} {k}+{m}", engine.name()), plan });
            }
        }
    }
    cases
}
