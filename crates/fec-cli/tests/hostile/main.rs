//! Attacks on the binary. A test is named after its attack; the inputs come from a malicious encoder
//! that signs whatever it likes. Every attack must end with its exit code, without a panic, and leave
//! nothing behind.

#[path = "../common/mod.rs"]
mod common;
mod containers;
mod detection;
mod encoders;
mod headers;
mod outputs;
mod system;

use common::forge::{self, Block, Container, Rows, container, hex, honest_rows, shard_files};
use common::{Arena, LIMIT, Random, expect, finish, make_fifo, payload, text};
use fec_core::digest::Digest;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIGBUS: i32 = 7;
const SIGPIPE: i32 = 13;

/// 3 + 3 shards of 64 bytes in two sets, which hold all but the last ten bytes of their capacity.
const SMALL: Block = Block {
    version: 1,
    hash: 1,
    form: 1,
    flags: 0,
    k: 3,
    m: 3,
    shard_len: 64,
    sets: 2,
    payload: 374,
    tail: 1,
};

/// Pg of the only group of a payload whose P is `p`.
fn only_group(p: &Block) -> Block {
    Block { flags: 1, tail: 0, ..*p }
}

fn as_container(p: &Block, rows: &Rows) -> Container {
    let p = Block { form: 2, ..*p };
    container(&p, &[(only_group(&p), rows.clone())], b"")
}

fn small_rows(seed: u64) -> Rows {
    honest_rows(&payload(seed, SMALL.payload as usize), 3, 3, 64, 2)
}

/// Encodes a payload into a container; returns its root and bytes.
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
    let head = record.len() - 64;
    change(&mut record[..head]);
    let sum = crc32c::crc32c(&record[12..head]);
    record[8..12].copy_from_slice(&sum.to_le_bytes());
}

/// Changes both headers of a shard file and signs them again.
fn resign_shard(file: &mut [u8], change: impl Fn(&mut [u8])) {
    let last = file.len() - 512;
    for at in [0, last] {
        let header = &mut file[at..at + 512];
        change(header);
        let sum = crc32c::crc32c(&header[12..]);
        header[8..12].copy_from_slice(&sum.to_le_bytes());
    }
}

#[track_caller]
fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let out = work();
    assert!(started.elapsed() < Duration::from_secs(10), "it took {:?}", started.elapsed());
    out
}
