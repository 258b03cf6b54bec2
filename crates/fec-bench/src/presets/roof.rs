//! The best that the machine can do: memory by cache level, hashes, reading and writing files.

use crate::error::Result;
use crate::lab::Lab;
use crate::random::Mmix;
use crate::rows::{Level, levels};
use crate::table::{FigureTable, Findings, figure, key};
use crate::words;
use fec_base::error::Action;
use fec_base::io::ReadAt;
use fec_base::io::system::write_all_at;
use fec_base::io::temporary::Temporary;
use fec_core::block::{Code, Engine, Plan, ShardBuf};
use fec_core::digest::HashKind;
use std::fs::File;
use std::hint::black_box;
use std::path::Path;

/// Bytes of a write to a file.
const WRITE: usize = 1 << 20;

/// Bytes of the file, which stays in the page cache and exceeds the caches of a core.
const FILE: usize = 16 << 20;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    let columns = || {
        [
            key("what", "what"),
            key("level", "in"),
            key("threads", "threads"),
            figure("time_us", "median µs", 2),
            figure("gigabytes_per_second", "GB/s", 2),
        ]
    };
    let mut table = FigureTable::new(
        "roof",
        "What the machine can do at best: GB/s of bytes read, written or hashed",
        columns(),
    );
    let all = lab.settings.threads;
    let levels = levels(lab.options);
    lab.plan(3 * levels.len() + 1 + if all > 1 { 3 } else { 0 } + 4 + 4);
    for level in &levels {
        memory(lab, &mut table, level, 1);
    }
    let [.., largest] = &levels;
    past_caches(lab, &mut table, largest);
    if all > 1 {
        memory(lab, &mut table, largest, all);
    }
    for hash in [HashKind::Blake3, HashKind::Sha256] {
        for (level, len) in [("L2", 128 << 10), (largest.name.as_str(), largest.bytes)] {
            let mut bytes = vec![0; len];
            Mmix(1).fill(&mut bytes);
            // Shards are hashed side by side, as the codec does.
            let shard_len = (len / 16).min(128 << 10);
            let shards: Vec<&[u8]> = bytes.chunks_exact(shard_len).collect();
            // Each call takes the next ones: all would take too long.
            let mut next = shards.chunks_exact(16).cycle();
            let work = || {
                black_box(hash.digests(black_box(next.next().expect("sixteen shards"))));
            };
            row(lab, &mut table, hash.name(), level, 1, 16 * shard_len, work);
        }
    }
    files(lab, &mut table)?;
    let notes = vec![
        format!(
            "in {}: {} MiB are gone through; read: a search for a byte that is not there; write: fill; copy: of half to half; past caches: a copy by the kernel, whose stores leave the caches out",
            largest.name,
            largest.bytes >> 20
        ),
        "files: `again` writes over pages that are there, `anew` needs new ones, as outputs do; `anew, and sync` also waits until the disk has them, as far as it tells. `fec bench files` writes anew, and waits once for each of many files".to_owned(),
    ];
    Ok(Findings::new(vec![table], notes))
}

/// Measures a row; `bytes` are those of each call.
fn row(
    lab: &mut Lab,
    table: &mut FigureTable,
    what: &str,
    level: &str,
    threads: usize,
    bytes: usize,
    work: impl FnMut(),
) {
    let name = format!("{what} in {level}, {}", words::threads(threads));
    let Some(measured) = lab.measure(&name, threads > 1, work) else { return };
    let rate = bytes as f64 / measured.time.median / 1e9;
    table.row([
        ("what", what.into()),
        ("level", level.into()),
        ("threads", threads.into()),
        ("time_us", measured.time.scaled(1e6).into()),
        ("gigabytes_per_second", rate.into()),
    ]);
}

/// Read, write and copy on a working set, of which each thread has a part.
fn memory(lab: &mut Lab, table: &mut FigureTable, level: &Level, threads: usize) {
    let part = level.bytes / threads / 128 * 128;
    let mut parts: Vec<Vec<u8>> = (0..threads).map(|_| vec![1; part]).collect();
    let bytes = part * threads;
    let mut each = |what: &str, counted: usize, work: &(dyn Fn(&mut [u8]) + Sync)| {
        let run = || match &mut parts[..] {
            [only] => work(only),
            parts => std::thread::scope(|scope| {
                let (first, others) = parts.split_first_mut().expect("there are threads");
                others.iter_mut().for_each(|part| {
                    scope.spawn(|| work(part));
                });
                work(first);
            }),
        };
        row(lab, table, what, &level.name, threads, counted, run);
    };
    each("read", bytes, &|part| {
        // No byte is 0: a loop that only loads, vector by vector.
        black_box(memchr::memchr(0, black_box(part)));
    });
    each("write", bytes, &|part| black_box(part).fill(7));
    each("copy", bytes / 2, &|part| {
        let half = part.len() / 2;
        let (from, to) = black_box(part).split_at_mut(half);
        to.copy_from_slice(from);
    });
}

/// A copy by the kernel: a row times 1, so large that its stores go past the caches.
fn past_caches(lab: &mut Lab, table: &mut FigureTable, level: &Level) {
    let len = (level.bytes / 2).max(5 << 20) / 64 * 64;
    let code = Code::new(1, 1).expect("two shards");
    let plan = Plan::with_engine(code, lab.settings.backend, &[0], &[1], Engine::Matrix).expect("a matrix");
    let mut rows = ShardBuf::new(2, len);
    row(lab, table, "copy past caches", &level.name, 1, len, || {
        let (src, mut dst) = rows.split_rows(|i| i == 1);
        plan.run(&src, &mut dst);
    });
}

/// Writing a file that is in the page cache again, reading it, writing it anew, and bringing it to the disk.
fn files(lab: &mut Lab, table: &mut FigureTable) -> Result<()> {
    let options = lab.options;
    let folder = options.folder.as_path();
    let failed = |e: std::io::Error| fecfile::Error::io(Action::WriteFileIn, folder, e);
    let (guard, file) =
        Temporary::beside(&folder.join("bench"), |path| File::create_new(path)).map_err(failed)?;
    let mut buffer = vec![0; WRITE];
    Mmix(1).fill(&mut buffer);
    let mut outcome = Ok(());
    let mut write = |file: &File| {
        for at in (0..FILE).step_by(WRITE) {
            outcome =
                std::mem::replace(&mut outcome, Ok(())).and_then(|()| write_all_at(file, &buffer, at as u64));
        }
    };
    write(&file);
    row(lab, table, "file write, again", "page cache", 1, FILE, || write(&file));
    let path: &Path = guard.path();
    let mut synced = Ok(());
    for (what, level, is_synced) in
        [("file write, anew", "page cache", false), ("file write, anew, and sync", "disk", true)]
    {
        row(lab, table, what, level, 1, FILE, || {
            // The file stays, without its pages.
            synced = std::mem::replace(&mut synced, Ok(())).and_then(|()| file.set_len(0));
            write(&file);
            if is_synced {
                synced = std::mem::replace(&mut synced, Ok(())).and_then(|()| file.sync_data());
            }
        });
    }
    outcome.and(synced).map_err(failed)?;
    let read = File::open(path).map_err(failed)?;
    let mut outcome = Ok(());
    row(lab, table, "file read", "page cache", 1, FILE, || {
        for at in (0..FILE).step_by(WRITE) {
            outcome = std::mem::replace(&mut outcome, Ok(()))
                .and_then(|()| read.read_exact_at(at as u64, &mut buffer));
        }
    });
    Ok(outcome.map_err(failed)?)
}
