//! Attacks on the binary. A test is named after its attack; the inputs come from a malicious encoder
//! that signs whatever it likes. Every attack must end with its exit code, without a panic, and leave
//! nothing behind.

mod claims;
#[path = "../common/mod.rs"]
mod common;
mod containers;
mod detection;
mod encoders;
mod headers;
mod limits;
mod outputs;
mod system;

use common::forge::{self, Block, Container, Rows, container, hex, honest_rows, shard_files};
use common::{Arena, LIMIT, Random, expect, finish, make_fifo, payload, text};
use fec_core::digest::Digest;
use serde_json::Value;
use sha2::Digest as _;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SIGBUS: i32 = 7;
const SIGPIPE: i32 = 13;

/// Pg of 3 + 3 shards in two sets, with the fewest bytes that two sets may have. The payload is ten bytes short of the
/// capacity.
const SMALL: Block = Block {
    version: 1,
    hash: 1,
    form: 1,
    flags: 1,
    k: 3,
    m: 3,
    shard_len: 2112,
    sets: 2,
    payload: 12_662,
    tail: 0,
};

/// P of the same payload in a container.
const SMALL_P: Block = Block { form: 2, flags: 0, tail: 1, ..SMALL };

/// Bytes of the payload, and of a shard.
const LEN: usize = SMALL.payload as usize;
const SHARD: usize = SMALL.shard_len as usize;

/// Bytes of a shard file's header.
const HEADER: usize = 192;

/// Offsets of the proofs, the body and the rear proofs in shard files of [`SMALL`] with a short name. A proof has 128
/// bytes.
const PROOFS: usize = HEADER + 64;
const BODY: usize = PROOFS + 2 * 128;
const TAIL: usize = BODY + 2 * SHARD;

/// Pg of the only group of a payload whose P is `p`.
fn only_group(p: &Block) -> Block {
    Block { flags: p.flags | 1, tail: 0, ..*p }
}

/// A container over the only group `pg`.
fn as_container(pg: &Block, rows: &Rows) -> Container {
    let pg = Block { form: 2, ..*pg };
    let p = Block { flags: pg.flags & !1, tail: 1, ..pg };
    container(&p, &[(pg, rows.clone())], b"")
}

fn small_rows(seed: u64) -> Rows {
    honest_rows(&payload(seed, LEN), 3, 3, SHARD, 2)
}

/// P of a container of 3 + 3 shards with two groups: the first has two full sets, the last 100 bytes.
const TWO_P: Block = Block { shard_len: 4096, payload: 24_576 + 100, tail: 2, ..SMALL_P };

/// The groups of [`TWO_P`] over this payload.
fn two_groups(bytes: &[u8]) -> [(Block, Rows); 2] {
    let first = Block { tail: 0, payload: 24_576, ..TWO_P };
    let last = Block { flags: 1, tail: 1, payload: 100, sets: 1, shard_len: 64, ..TWO_P };
    let (head, rest) = bytes.split_at(24_576);
    [(first, honest_rows(head, 3, 3, 4096, 2)), (last, honest_rows(rest, 3, 3, 64, 1))]
}

/// Encodes a payload into a container. Returns its root and bytes.
fn encoded(arena: &Arena, seed: u64, len: usize, options: &[&str]) -> (String, Vec<u8>) {
    arena.write("p", &payload(seed, len));
    let root = common::root(&arena.run([&["encode", "p", "-o", "p.fec"], options].concat()));
    let bytes = arena.read("p.fec");
    fs::remove_file(arena.path("p")).unwrap();
    fs::remove_file(arena.path("p.fec")).unwrap();
    (root, bytes)
}

/// Changes the head of a record and signs it again.
fn resign_record(record: &mut [u8], change: impl Fn(&mut [u8])) {
    let head = record.len() - u32::from_le_bytes(record[40..44].try_into().unwrap()) as usize;
    change(&mut record[..head]);
    let sum = crc32c::crc32c(&record[12..head]);
    record[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Changes both headers of a shard file and signs them again.
fn resign_shard(file: &mut [u8], change: impl Fn(&mut [u8])) {
    let last = file.len() - HEADER;
    for at in [0, last] {
        let header = &mut file[at..at + HEADER];
        change(header);
        let sum = crc32c::crc32c(&header[12..]);
        header[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

#[track_caller]
fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let out = work();
    assert!(started.elapsed() < Duration::from_secs(30), "it took {:?}", started.elapsed());
    out
}

/// The resources that a run of `fec` took.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    /// The most bytes of memory at once.
    memory: u64,
    /// Processor time: on a busy machine the run itself takes longer.
    time: Duration,
}

/// The resources that a process took so far. The kernel keeps the peak of its memory.
fn usage_of(pid: u32) -> Option<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Usage { memory: kib << 10, time: Duration::from_millis(10 * ticks) })
}

/// Runs `fec` with `input` in a pipe. Also returns the resources it took.
#[track_caller]
fn measured(arena: &Arena, args: &[&str], input: &[u8]) -> (Output, Usage) {
    use std::sync::atomic::{AtomicBool, Ordering};
    let child = arena.spawn(args);
    let pid = child.id();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut usage = Usage::default();
            while !is_done.load(Ordering::Relaxed) {
                usage = usage_of(pid).unwrap_or(usage);
                std::thread::sleep(Duration::from_micros(500));
            }
            usage
        });
        let output = finish(child, input, LIMIT).expect("fec ends in time");
        is_done.store(true, Ordering::Relaxed);
        assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
        (output, watcher.join().expect("it watches"))
    })
}

/// The JSON object that `fec --json` printed.
#[track_caller]
fn json(output: &Output) -> Value {
    let said = if output.stdout.starts_with(b"{") { &output.stdout } else { &output.stderr };
    serde_json::from_slice(said).unwrap_or_else(|e| panic!("{e}: {}", text(said)))
}
