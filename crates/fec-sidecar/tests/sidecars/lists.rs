//! Repairs that ended early: the list that they leave, and those that others plant.

use crate::arena::*;
use crate::update::{BLOCK, appended, is_protected, note, plant};
use fec_core::digest::{Digest, HashKind};
use fec_sidecar::SidecarError;
use fec_sidecar::examine::State;
use fec_sidecar::repair::Mend;
use fecfile::Class;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::{Duration, SystemTime};

pub(crate) const LIST: &str = "d.fecp.repairing";

/// The line of a list for the damaged pieces of a file, by the specification.
pub(crate) fn line(entry: usize, bytes: &[u8], pieces: &[usize], piece_len: usize) -> String {
    let word = |nth: &usize| {
        let piece = &bytes[nth * piece_len..bytes.len().min((nth + 1) * piece_len)];
        let digest: String =
            HashKind::Blake3.digest(piece)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!(" {}:{digest}", nth * piece_len)
    };
    format!("{entry}{}\n", pieces.iter().map(word).collect::<String>())
}

pub(crate) fn leave_list(arena: &Arena, root: &Digest, lines: &str) {
    let root: String = root.iter().map(|byte| format!("{byte:02x}")).collect();
    arena.write(LIST, format!("fec repair of {root}\n{lines}").as_bytes());
    tick();
}

/// Waits, so that later changes have a later time.
fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The number of an entry.
fn entry_of(arena: &Arena, path: &str) -> usize {
    let sidecar = arena.open(None).unwrap();
    sidecar
        .catalog()
        .entries
        .iter()
        .position(|entry| *entry.path == *path.as_bytes())
        .expect("it is protected")
}

pub(crate) fn touch(arena: &Arena, path: &str) {
    File::open(arena.path(path)).and_then(|file| file.set_modified(SystemTime::now())).unwrap();
}

/// A file that a repair has half mended has another time, but is no edit, for an update or a repair.
#[test]
fn what_a_repair_has_begun_is_no_edit() {
    let arena = Arena::new();
    plant(&arena);
    let root = arena.protect(&How::default()).root;
    let before = tree(&arena.path("d"));
    let times = modified(&arena.path("d/big"));
    let damaged = [70_000 / BLOCK, 80_000 / BLOCK, 199];
    damaged.iter().for_each(|block| flip(&arena.path("d/big"), (block * BLOCK + 9) as u64));
    leave_list(&arena, &root, &line(entry_of(&arena, "d/big"), &arena.read("d/big"), &damaged, BLOCK));
    // The second of three blocks was mended.
    flip(&arena.path("d/big"), (damaged[1] * BLOCK + 9) as u64);
    touch(&arena, "d/big");
    edit(&arena.path(note(3)), b"edited");
    for how in [How::default(), How { sha256: true, ..How::forced() }] {
        let said = arena.refuses_update(&how, Class::Mendable);
        assert!(said.contains(LIST), "{said}");
    }
    arena.refuses(Class::Mendable, || arena.try_protect(&How::forced()));
    assert_eq!(arena.leaves(&Mend { dry_run: true, ..Mend::default() }).mended.len(), 1);
    let mended = arena.mend(&Mend::default());
    assert_eq!((mended.mended.len(), mended.left.len()), (1, 1));
    let big = std::path::Path::new("big");
    assert!(tree(&arena.path("d"))[big] == before[big] && modified(&arena.path("d/big")) == times);
    assert!(!arena.path(LIST).exists());
    appended(&arena);
    is_protected(&arena);
}

/// A file that somebody edited after a repair had begun on it stays theirs, and a list that is younger than an edit
/// proves nothing.
#[test]
fn an_edit_never_becomes_what_a_repair_had_begun() {
    for is_younger in [false, true] {
        let arena = Arena::new();
        age(&arena.write("d/a", &payload(1, 100_000)), 1);
        age(&arena.write("d/z", &payload(2, 300_000)), 2);
        let root = arena.protect(&How::default()).root;
        let rotten = [&[0xee; 1024][..], &payload(1, 100_000)[1024..]].concat();
        let edited = if is_younger { rotten.clone() } else { [b"edited", &rotten[6..]].concat() };
        let lines = line(1, &rotten, &[0], 1024);
        if is_younger {
            fs::write(arena.path("d/a"), &edited).unwrap();
            tick();
            leave_list(&arena, &root, &lines);
        } else {
            leave_list(&arena, &root, &lines);
            fs::write(arena.path("d/a"), &edited).unwrap();
        }
        rot(&arena.path("d/z"), 250_000, &[0xee; 3000]);
        let mended = arena.mend(&Mend::default());
        assert_eq!((mended.left.len(), mended.mended.len()), (1, 1));
        assert!(arena.read("d/a") == edited && arena.read("d/z") == payload(2, 300_000));
    }
}

/// Folders and links that an interrupted repair has made get their time and permissions from the next one.
#[test]
fn what_a_repair_has_made_is_finished() {
    let arena = Arena::furnished();
    set_mode(&arena.path("d/sub"), 0o510);
    age(&arena.path("d/sub"), 77);
    let root = arena.protect(&How::of_percent(100)).root;
    let time = modified(&arena.path("d/sub"));
    let lines: String = ["d/sub", "d/link"].map(|path| format!("+{}\n", entry_of(&arena, path))).concat();
    leave_list(&arena, &root, &lines);
    // The files in the folder are there, and it has the time and the permissions of a new one.
    set_mode(&arena.path("d/sub"), 0o710);
    touch(&arena, "d/sub");
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("small", arena.path("d/link")).unwrap();
    arena.is_intact();
    let files = tree(&arena.path("d"));
    arena.mend_all();
    let meta = fs::metadata(arena.path("d/sub")).unwrap();
    assert_eq!((meta.mode() & 0o777, meta.modified().unwrap()), (0o510, time));
    assert!(tree(&arena.path("d")) == files && !arena.path(LIST).exists());
}

/// The list of a finished repair goes, and hinders an update until then.
#[test]
fn a_list_of_what_is_done_goes() {
    let arena = Arena::furnished();
    let root = arena.protect(&How::default()).root;
    leave_list(&arena, &root, "0\n1\n2\n3\nnonsense\n+\n99999 7:zz\n");
    arena.leaves(&Mend { dry_run: true, ..Mend::default() });
    arena.refuses_update(&How::default(), Class::Mendable);
    edit(&arena.path("d/small"), b"edited");
    assert_eq!(arena.mend(&Mend::default()).left.len(), 1);
    assert!(!arena.path(LIST).exists());
    assert_eq!(arena.read("d/small"), b"edited");
    arena.update(&How::default());
    arena.is_intact();
}

/// The list of a repair for another state stays known, and so do its half-mended files.
#[test]
fn a_repair_of_another_state_is_finished_first() {
    let arena = Arena::furnished();
    let first = arena.protect(&How::default()).root;
    arena.write("d/new", b"new");
    arena.update(&How::default());
    leave_list(&arena, &first, "1\n");
    flip(&arena.path("d/large"), 0);
    type Run<'a> = (&'a str, &'a dyn Fn() -> Option<fecfile::Error>);
    let runs: [Run<'_>; 4] = [
        ("repair", &|| arena.try_mend(&Mend::default()).err()),
        ("revert", &|| arena.try_mend(&reverting()).err()),
        ("update", &|| arena.try_update(&How::default()).err()),
        ("protect", &|| arena.try_protect(&How::forced()).err()),
    ];
    for (name, run) in runs {
        let said = arena.refuses(Class::Mendable, || run().map_or(Ok(()), Err));
        assert!(said.contains(LIST), "{name}: {said}");
        let error = run().unwrap();
        let Some(SidecarError::RepairBegun { root, .. }) = error.cause() else { panic!("{error}") };
        assert_eq!(*root, first.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    }
    fs::remove_file(arena.path(LIST)).unwrap();
    arena.mend_all();
}

/// Links, FIFOs and files of others in the place of the list are neither followed nor waited for.
#[test]
fn what_stands_in_the_place_of_the_list_is_left_alone() {
    let arena = Arena::furnished();
    arena.protect(&How::default());
    flip(&arena.path("d/large"), 2000);
    let victim = arena.write("victim", b"precious");
    let list = arena.path(LIST);
    let plants: [(&str, &dyn Fn()); 6] = [
        ("a link", &|| symlink("victim", &list).unwrap()),
        ("a link to nothing", &|| symlink("nowhere", &list).unwrap()),
        ("a FIFO", &|| make_fifo(&list)),
        ("a folder", &|| fs::create_dir(&list).unwrap()),
        ("another name", &|| fs::hard_link(&victim, &list).unwrap()),
        ("no list", &|| drop(arena.write(LIST, b"a letter to my aunt"))),
    ];
    for (name, plant) in plants {
        plant();
        for how in [Mend::default(), Mend { dry_run: true, ..Mend::default() }, reverting()] {
            let said = arena.refuses(Class::Usage, || arena.try_mend(&how));
            assert!(said.contains(LIST), "{name}: {said}");
        }
        assert_eq!(arena.states(), [pair("d/large", State::Rotten)]);
        fs::remove_file(&list).or_else(|_| fs::remove_dir(&list)).unwrap();
    }
    // A run that writes no list is not harmed.
    symlink("/dev/full", &list).unwrap();
    arena.write("d/large", &payload(1, 20_481));
    fs::remove_file(arena.path("d/small")).unwrap();
    arena.mend_all();
    arena.update(&How::default());
    assert!(list.is_symlink() && arena.read("victim") == b"precious");
}
