//! Sidecars that ask for more memory or time than they are worth.

use super::forge::{Forged, geometry};
use super::recode::pieces;
use super::*;
use common::{LIMIT, finish};
use fec_core::block::Code;
use fec_core::digest::HashKind;
use fec_core::format::sidecar::EntryKind;
use fec_core::format::sidecar::piece::{Generation, Layout, Piece};
use fec_core::params::{Form, GroupGeometry};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most memory in bytes, and most processor time, for a worthless sidecar.
const MEMORY: u64 = 150 << 20;
const TIME: Duration = Duration::from_secs(10);

/// The resources that a process took so far.
fn usage_of(pid: u32) -> Option<(u64, Duration)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((kib << 10, Duration::from_millis(10 * ticks)))
}

/// Runs `fec` within [`TIME`] and [`MEMORY`], and allows only these exit codes.
#[track_caller]
fn modestly(arena: &Arena, args: &[&str], exits: &[i32]) -> Output {
    let child = arena.spawn(args);
    let (pid, is_done) = (child.id(), AtomicBool::new(false));
    let (output, (memory, time)) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut usage = (0, Duration::ZERO);
            while !is_done.load(Ordering::Relaxed) {
                usage = usage_of(pid).unwrap_or(usage);
                std::thread::sleep(Duration::from_micros(500));
            }
            usage
        });
        let output = finish(child, b"", LIMIT);
        is_done.store(true, Ordering::Relaxed);
        (output.expect("fec ends in time"), watcher.join().expect("it watches"))
    });
    assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
    assert!(exits.contains(&common::code(&output)), "{args:?}: {}", text(&output.stderr));
    assert!(memory < MEMORY && time < TIME, "{args:?}: {} MiB, {time:?}", memory >> 20);
    output
}

/// A layout for forged pieces of metadata.
fn layout(generation: u64, catalog_len: u64) -> Layout {
    let before = if generation == 1 { [0; 32] } else { [7; 32] };
    Layout { before, generation, start: 0, blocks: 1, catalog_len, block: 1024 }
}

/// Entries of few bytes each that stand for paths of thousands of bytes.
#[test]
fn many_entries_in_deep_paths() {
    let arena = Arena::new();
    let deep = [b"deep/".repeat(780), vec![b'x']].concat();
    for (count, exits) in [(20, &[1][..]), (50_000, &[6])] {
        let mut forged = Forged::new();
        for nth in 0..count {
            forged = forged.with(&[&deep[..], format!("{nth:08}").as_bytes()].concat(), EntryKind::Folder);
        }
        arena.write("x.fecp", &forged.build().0);
        modestly(&arena, &["verify", "x.fecp"], exits);
        modestly(&arena, &["repair", "x.fecp", "-n"], exits);
    }
    // A sidecar that is worth its cost: many entries with bytes of their own.
    let flat =
        (0..20_000).fold(Forged::new(), |forged, nth| forged.file(format!("{nth:08}").as_bytes(), b""));
    arena.write("x.fecp", &flat.build().0);
    modestly(&arena, &["verify", "x.fecp"], &[1]);
}

/// A gigabyte of holes behind a sidecar, before it, and in it.
#[test]
fn sparse_sidecars() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    let whole = arena.read("d.fecp");
    let file = File::options().write(true).open(arena.path("d.fecp")).unwrap();
    file.set_len(5 << 28).unwrap();
    modestly(&arena, &["verify", "d.fecp"], &[1]);
    file.set_len(0).unwrap();
    file.write_all_at(&whole, 1 << 27).unwrap();
    modestly(&arena, &["verify", "d.fecp"], &[1]);
    modestly(&arena, &["repair", "d.fecp", "--no-sync"], &[0]);
    assert!(arena.read("d.fecp") == whole);
    // The file is one hole.
    File::create(arena.path("d.fecp")).unwrap().set_len(1 << 27).unwrap();
    modestly(&arena, &["repair", "d.fecp"], &[3]);
}

/// Heads of pieces with valid checksums: all of one encoding, or each of another.
#[test]
fn thousands_of_forged_pieces() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    let whole = arena.read("d.fecp");
    let metadata = vec![0; 1 << 18];
    let geometry = geometry(metadata.len() as u64);
    let (of, one) = pieces(&metadata, geometry, layout(1, 100));
    let head = &one[0][..of.head_len()];
    let same = head.repeat(5000);
    let others: Vec<u8> = (1..300u64)
        .flat_map(|generation| {
            let mut head = head.to_vec();
            head[128 + 32..128 + 40].copy_from_slice(&generation.to_le_bytes());
            head[128] = u8::from(generation > 1);
            let of_layout = HashKind::Blake3.digest(&head[128..224]);
            head[96..128].copy_from_slice(&of_layout);
            let sum = crc32c::crc32c(&head[12..]);
            head[8..12].copy_from_slice(&sum.to_le_bytes());
            head
        })
        .collect();
    // Heads of greater generations could be remains of one: only --revert cuts them off.
    for (forged, options) in [(same, &[][..]), (others, &["--revert"])] {
        arena.write("d.fecp", &[&whole[..], &forged].concat());
        modestly(&arena, &["verify", "d.fecp"], &[1]);
        arena.write("d.fecp", &[&forged[..], &whole].concat());
        modestly(&arena, &["verify", "d.fecp"], &[1]);
        let exit = i32::from(!options.is_empty());
        modestly(&arena, &["repair", "d.fecp", "--no-sync"], &[exit]);
        modestly(&arena, &[&["repair", "d.fecp", "--no-sync"], options].concat(), &[0]);
        assert!(arena.read("d.fecp") == whole);
        arena.write("d.fecp", &forged);
        modestly(&arena, &["verify", "d.fecp"], &[3]);
    }
}

/// Nested encodings: each has all bytes of the inner ones as its metadata, and all are valid.
#[test]
fn encodings_within_each_other() {
    let arena = Arena::new();
    let mut bytes = vec![0; 1 << 18];
    for generation in 1..200 {
        let (_, all) = pieces(&bytes, geometry(bytes.len() as u64), layout(generation, 100));
        bytes = all.into_iter().next().unwrap();
    }
    arena.write("x.fecp", &bytes);
    modestly(&arena, &["verify", "x.fecp"], &[2]);
}

/// The head of one piece promises a quarter of a million pieces, in a file that is mostly holes.
#[test]
fn one_piece_of_very_many() {
    let arena = Arena::new();
    let (code, len) = (Code::new(1, 255).unwrap(), 4 << 20);
    let geometry = GroupGeometry::whole(Form::Sidecar, HashKind::Blake3, code, 4096, len).unwrap();
    let of = Generation::new(geometry, layout(1, 100), &[1; 32]);
    let mut head = vec![0; of.head_len()];
    Piece { set: 0, index: 0, of }.seal(&mut head);
    arena.write("x.fecp", &[&head[..], &vec![0xaa; 2 << 20]].concat());
    let file = File::options().write(true).open(arena.path("x.fecp")).unwrap();
    file.set_len(of.pieces() * of.piece_len() + 1024).unwrap();
    assert!(of.pieces() == 1 << 18);
    modestly(&arena, &["verify", "x.fecp"], &[3]);
}

/// 128 + 128 blocks of a quarter of a megabyte: nearly all are zeros, and so holes of the file.
#[test]
fn large_blocks() {
    let arena = Arena::new();
    let block = 1 << 18;
    let forged = Forged { block: block as u32, nothing: 127, recovery: 128, ..Forged::new() };
    let (bytes, _) = forged.file(b"a", &vec![0; block]).build();
    let file = File::create(arena.path("x.fecp")).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (nth, part) in bytes.chunks(4096).enumerate().filter(|(_, part)| part.iter().any(|b| *b != 0)) {
        file.write_all_at(part, nth as u64 * 4096).unwrap();
    }
    for lost in [0, 100] {
        (1..=lost).for_each(|nth| file.write_all_at(b"x", (nth * block + block / 2) as u64).unwrap());
        modestly(&arena, &["verify", "x.fecp"], &[1]);
        modestly(&arena, &["repair", "x.fecp", "--no-sync"], &[0]);
        assert!(arena.read("a") == vec![0; block] && arena.read("x.fecp") == bytes);
        fs::remove_file(arena.path("a")).unwrap();
    }
}
