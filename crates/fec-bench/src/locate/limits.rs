//! The best that this machine can do for each kind of work on one thread, measured in some hundredths of a second after
//! the command is done.

use fec_base::io::ReadAt;
use fec_base::io::system::{memory_file, write_all_at};
use fec_base::program::stages::{Stage, Work};
use fec_core::block::{Plan, ShardBuf};
use std::fs::File;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Time of measuring each kind of work.
const TIME: Duration = Duration::from_millis(25);

/// Bytes per second; `None` if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineLimits {
    /// The kernel on rows that stay in the second cache: bytes of output rows.
    pub code_cached: Option<f64>,
    /// The kernel on rows in memory: bytes of output rows.
    pub code_memory: Option<f64>,
    /// The hash.
    pub hash: Option<f64>,
    /// Reading from the page cache.
    pub read: Option<f64>,
    /// Writing new files to the page cache.
    pub write: Option<f64>,
}

impl MachineLimits {
    /// Measures the limits.
    pub fn measure(work: Option<Work>) -> MachineLimits {
        let mut limits = MachineLimits::default();
        if let Some(work) = work {
            limits.code_cached = code(&work, 4 << 10);
            limits.code_memory = code(&work, (12 << 20) / work.code.n() / 64 * 64);
            // As many shards at a time as there are lanes.
            let bytes = vec![1u8; 256 << 10];
            let rows: Vec<&[u8]> = bytes.chunks(bytes.len() / 16).collect();
            limits.hash = rate(bytes.len(), || {
                black_box(work.hash.digests(black_box(&rows)));
            });
        }
        match memory_file("fec-limits") {
            Ok(file) => limits.with_file(&file),
            Err(_) => limits,
        }
    }

    /// The limits of reading and writing, by this file, whose content is lost.
    #[must_use]
    pub(crate) fn with_file(self, file: &File) -> MachineLimits {
        // More than the caches of a core, and into new pages, as outputs are.
        let mut buffer = vec![1u8; 8 << 20];
        let write = rate(buffer.len(), || {
            black_box(file.set_len(0).and_then(|()| write_all_at(file, &buffer, 0)).is_ok());
        });
        let read = rate(buffer.len(), || {
            black_box(file.read_exact_at(0, &mut buffer).is_ok());
        });
        MachineLimits { read, write, ..self }
    }

    /// The limit of a stage.
    pub fn of(&self, stage: Stage) -> Option<f64> {
        match stage {
            Stage::Read => self.read,
            Stage::Code => self.code_cached,
            Stage::Hash => self.hash,
            Stage::Write => self.write,
            Stage::Tree | Stage::Sync | Stage::Other | Stage::Wait => None,
        }
    }
}

/// The kernel on rows of this length.
fn code(work: &Work, row_len: usize) -> Option<f64> {
    if work.code.m() == 0 {
        return None;
    }
    let plan = Plan::encode(work.code, work.backend);
    let mut rows = ShardBuf::new(work.code.n(), row_len.max(64));
    rows.iter_mut().for_each(|row| row.fill(1));
    let k = work.code.k();
    // The codec's phases count output rows too.
    let bytes = rows.row_len() * work.code.m();
    let (src, mut dst) = rows.split_rows(|i| i >= k);
    rate(bytes, || plan.run(&src, &mut dst))
}

/// Bytes per second of the best call.
fn rate(bytes: usize, mut work: impl FnMut()) -> Option<f64> {
    work();
    let began = Instant::now();
    let mut best = Duration::MAX;
    let mut calls = 0;
    while calls < 3 || began.elapsed() < TIME {
        let call = Instant::now();
        work();
        best = best.min(call.elapsed());
        calls += 1;
    }
    Some(bytes as f64 / best.as_secs_f64().max(1e-9))
}
