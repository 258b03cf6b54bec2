//! Files that only grow: no more is read than their old end and what is new, and nothing in front of it is taken for
//! good.

use crate::arena::*;
use crate::recode::Recoded;
use crate::update::counts;
use fec_core::digest::HashKind;
use fec_sidecar::examine::State;
use fec_sidecar::update::Why;
use fecfile::Class;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// The way of files that grow.
const GROWING: How<'static> = How { appends: true, marks: true, ..USUAL };

/// A folder with a log of this length, a small file and another log, protected.
fn protected(len: usize, how: &How<'_>) -> Arena {
    let arena = Arena::new();
    arena.write("d/log", &payload(1, len));
    arena.write("d/other", &payload(2, 600_000));
    arena.write("d/small", &payload(3, 700));
    arena.protect(how);
    arena
}

fn append(arena: &Arena, name: &str, bytes: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(arena.path(name)).expect("a file");
    file.write_all(bytes).expect("it grows");
}

/// Flips a bit; the time becomes another one.
fn rot(arena: &Arena, name: &str, at: usize) {
    let mut bytes = arena.read(name);
    bytes[at] ^= 4;
    arena.write(name, &bytes);
}

/// The paths that an update holds, and why.
fn held(arena: &Arena, how: &How<'_>) -> Vec<(String, Why)> {
    let updated = arena.update(how);
    let path = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    updated.held.iter().map(|held| (path(&held.path), held.why)).collect()
}

/// Asserts that all is intact, and that the sidecar has the BLAKE3 of the log.
#[track_caller]
fn is_right(arena: &Arena, name: &str) {
    arena.is_intact();
    let sidecar = arena.open(None).unwrap();
    let (_, file) = sidecar
        .catalog()
        .files()
        .find(|(nth, _)| path_of(&sidecar, *nth) == name)
        .unwrap_or_else(|| panic!("{name} is protected"));
    assert_eq!(file.blake3, HashKind::Blake3.digest(&arena.read(name)), "{name}");
}

#[test]
fn rot_in_front_of_the_old_end_is_not_read_and_stays_rot() {
    for len in [400_000, 65 * 4096, 66 * 4096, 128 * 4096 + 1, 129 * 4096] {
        let arena = protected(len, &GROWING);
        let mut whole = arena.read("d/log");
        for (nth, more) in [50_000, 1, 4096, 300_000].into_iter().enumerate() {
            let more = payload(10 + nth as u64, more);
            rot(&arena, "d/log", 20_000);
            append(&arena, "d/log", &more);
            whole.extend_from_slice(&more);
            let updated = arena.update(&GROWING);
            assert_eq!((counts(&updated), updated.held.len()), ([2, 1, 0, 0, 0], 0), "{len}");
            assert!(updated.coded_len <= 2 * more.len() as u64 + 150_000, "{}", updated.coded_len);
            // The file should be what was recorded, and the rot is damage, in place.
            assert_eq!(arena.states(), [pair("d/log", State::Rotten)]);
            assert_eq!(arena.damage("d/log"), [(16_384, 20_480)]);
            arena.mend_all();
            assert!(arena.read("d/log") == whole, "{len}: {nth}");
            // A repair gives the file its time, and it goes on.
            is_right(&arena, "d/log");
        }
    }
}

#[test]
fn a_file_whose_old_end_is_another_is_held() {
    let at_the_end = 399_999;
    let in_the_last_block = 400_000 / 4096 * 4096 - 4096;
    for at in [at_the_end, in_the_last_block] {
        let arena = protected(400_000, &GROWING);
        let before = arena.read("d/log");
        rot(&arena, "d/log", at);
        append(&arena, "d/log", b"more");
        append(&arena, "d/other", b"more too");
        assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)], "{at}");
        // The rest is protected, and the file as it was.
        assert_eq!(arena.states(), [pair("d/log", State::Edited)]);
        arena.mend(&reverting());
        assert!(arena.read("d/log") == before);
        arena.is_intact();
        // The owner may say that it is an edit.
        rot(&arena, "d/log", at);
        append(&arena, "d/log", b"more");
        assert_eq!(counts(&arena.update(&MARKED)), [2, 1, 0, 0, 0]);
        is_right(&arena, "d/log");
    }
}

#[test]
fn a_file_without_a_stack_is_compared_whole() {
    let arena = protected(400_000, &MARKED);
    append(&arena, "d/log", &payload(5, 10_000));
    assert_eq!(counts(&arena.update(&GROWING)), [2, 1, 0, 0, 0]);
    is_right(&arena, "d/log");
    // From now on it has one.
    let good = arena.read("d/log");
    rot(&arena, "d/log", 0);
    append(&arena, "d/log", b"more");
    assert_eq!(held(&arena, &GROWING), []);
    arena.mend_all();
    assert!(arena.read("d/log") == [&good[..], b"more"].concat());

    let arena = protected(400_000, &MARKED);
    rot(&arena, "d/log", 0);
    append(&arena, "d/log", b"more");
    assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)]);
    // A small file has none, and neither has one with SHA-256, of which all bytes have to be read.
    let arena = protected(400_000, &GROWING);
    rot(&arena, "d/small", 5);
    append(&arena, "d/small", b"more");
    assert_eq!(held(&arena, &GROWING), [("d/small".to_owned(), Why::Rewritten)]);
    let arena = protected(400_000, &How { sha256: true, ..GROWING });
    append(&arena, "d/log", b"more");
    assert_eq!(held(&arena, &GROWING), []);
    rot(&arena, "d/log", 0);
    append(&arena, "d/log", b"more");
    assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)]);
}

#[test]
fn what_is_cut_or_edited_in_place_is_held() {
    for cut in [0, 1, 100_000, 399_999] {
        let arena = protected(400_000, &GROWING);
        let bytes = arena.read("d/log");
        arena.write("d/log", &bytes[..cut]);
        assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)], "{cut}");
    }
    let arena = protected(400_000, &GROWING);
    rot(&arena, "d/log", 1000);
    assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)]);
}

#[test]
fn a_log_that_was_rotated_is_not_held() {
    for grown in [&b""[..], b"a few lines more", &payload(7, 9000)] {
        for new in [&b""[..], b"the first line", &payload(8, 500_000)] {
            let arena = protected(400_000, &GROWING);
            append(&arena, "d/log", grown);
            fs::rename(arena.path("d/log"), arena.path("d/log.1")).unwrap();
            arena.write("d/log", new);
            let how = How { force: new.is_empty(), ..GROWING };
            assert_eq!(held(&arena, &how), []);
            is_right(&arena, "d/log.1");
            is_right(&arena, "d/log");
        }
    }
    // With rot in it, it is the old one no more.
    let arena = protected(400_000, &GROWING);
    rot(&arena, "d/log", 1000);
    append(&arena, "d/log", b"more");
    fs::rename(arena.path("d/log"), arena.path("d/log.1")).unwrap();
    arena.write("d/log", b"the first line");
    assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)]);
}

#[test]
fn a_stack_that_somebody_changed_is_not_believed() {
    let arena = protected(400_000, &GROWING);
    let bytes = arena.read("d.fecp");
    let stack = arena.open(None).unwrap().stats().stacks[0].values[1];
    let forged = Recoded::of(&bytes).with(&stack, &[9; 32]).build();
    arena.write("d.fecp", &forged);
    append(&arena, "d/log", &payload(5, 10_000));
    assert_eq!(held(&arena, &GROWING), []);
    is_right(&arena, "d/log");
    // Rot in front is found by reading all of it.
    let arena = protected(400_000, &GROWING);
    arena.write("d.fecp", &Recoded::of(&arena.read("d.fecp")).with(&stack, &[9; 32]).build());
    rot(&arena, "d/log", 0);
    append(&arena, "d/log", b"more");
    assert_eq!(held(&arena, &GROWING), [("d/log".to_owned(), Why::Rewritten)]);
}

#[test]
fn a_file_grows_on_while_it_is_read() {
    let arena = protected(400_000, &GROWING);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                append(&arena, "d/log", b"a line that follows the others\n");
            }
        });
        let started = std::time::Instant::now();
        for _ in 0..12 {
            let updated = arena.try_update(&GROWING).unwrap();
            assert_eq!((updated.held.len(), updated.sidecar.omitted.len()), (0, 0));
            assert_eq!(updated.sidecar.kept, []);
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(started.elapsed().as_secs() < 60);
    });
    arena.update(&GROWING);
    is_right(&arena, "d/log");
}

#[test]
fn many_appends_lead_to_the_same_as_one() {
    let arena = protected(300_000, &GROWING);
    for nth in 0..70u64 {
        let more = match nth % 7 {
            0 => vec![0; 20_000],
            1 => payload(nth, 4096 - arena.read("d/log").len() % 4096),
            2 => payload(nth, 1),
            _ => payload(nth, (nth * 7919 % 60_000) as usize),
        };
        append(&arena, "d/log", &more);
        if nth % 3 == 0 {
            append(&arena, "d/other", &payload(nth, 5000));
        }
        let root = arena.root();
        let how = How { root: (nth % 10 == 9).then_some(root), ..GROWING };
        assert_eq!(held(&arena, &how), [], "{nth}");
        if nth % 9 == 0 {
            is_right(&arena, "d/log");
        }
    }
    is_right(&arena, "d/log");
    is_right(&arena, "d/other");
    let stacks = |arena: &Arena| {
        let sidecar = arena.open(None).unwrap();
        sidecar.stats().stacks.clone()
    };
    let grown = stacks(&arena);
    let bytes = arena.read("d/log");
    arena.protect(&How { force: true, ..GROWING });
    assert!(grown == stacks(&arena) && !grown.is_empty(), "the stacks of all at once");
    fs::remove_file(arena.path("d/log")).unwrap();
    fs::remove_file(arena.path("d/small")).unwrap();
    drop(arena.try_mend(&fec_sidecar::repair::Mend::default()));
    assert!(!arena.path("d/log").exists() || arena.read("d/log") == bytes);
}

/// A file beside a log, whose end shares a block with that of the log, is not read each time.
#[test]
fn what_stands_beside_a_growing_file_is_not_read() {
    let growing = How { marks: false, ..GROWING };
    let arena = protected(400_000, &growing);
    let mut whole = arena.read("d/log");
    // Rot that keeps its time is not seen, since nobody reads the file.
    let modified = arena.path("d/other").metadata().unwrap().modified().unwrap();
    for nth in 0..3u8 {
        rot(&arena, "d/other", 4096 * usize::from(nth));
        let file = OpenOptions::new().write(true).open(arena.path("d/other")).unwrap();
        file.set_modified(modified).unwrap();
        append(&arena, "d/log", &[nth; 5000]);
        whole.extend_from_slice(&[nth; 5000]);
        assert_eq!(held(&arena, &growing), []);
    }
    assert_eq!(arena.states(), [pair("d/other", State::Rotten)]);
    arena.mend_all();
    assert!(arena.read("d/log") == whole);
}

#[test]
fn nothing_but_rewritten_files_is_refused() {
    let arena = Arena::new();
    arena.write("d/log", &payload(1, 400_000));
    arena.protect(&GROWING);
    rot(&arena, "d/log", 399_999);
    let said = arena.refuses_update(&GROWING, Class::Mendable);
    assert!(said.contains("d/log"), "{said}");
}
