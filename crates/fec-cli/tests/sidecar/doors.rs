//! Links, FIFOs and lying files that others put under names which `fec` uses, in folders that they may write to.

use super::*;
use fec_core::digest::HashKind;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::{chown, lchown};

const LIST: &str = "d.fecp.repairing";
/// Bytes of a block, and so of a piece, of so small a tree.
const BLOCK: usize = 1024;
/// Another user.
const OTHER: u32 = 12_345;

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("a FIFO");
}

fn is_root() -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        eprintln!("skipped in part: only root gives files away");
    }
    is
}

/// The words of the message about a planted object, and the action that plants it.
type Plant = (&'static str, Box<dyn Fn()>);

/// Every object that somebody may put under a name, with the words about it.
fn plants(arena: &Arena, path: &Path) -> Vec<Plant> {
    arena.write("victim", b"precious");
    let (at, victim) = (path.to_path_buf(), arena.path("victim"));
    let plant = |put: fn(&Path, &Path)| -> Box<dyn Fn()> {
        let (at, victim) = (at.clone(), victim.clone());
        Box::new(move || put(&at, &victim))
    };
    let mut all = vec![
        ("symbolic link", plant(|at, _| symlink("/dev/full", at).unwrap())),
        ("symbolic link", plant(|at, victim| symlink(victim, at).unwrap())),
        ("symbolic link", plant(|at, _| symlink("nowhere", at).unwrap())),
        ("no regular file", plant(|at, _| fifo(at))),
        ("no regular file", plant(|at, _| fs::create_dir(at).unwrap())),
        ("other names", plant(|at, victim| fs::hard_link(victim, at).unwrap())),
    ];
    if is_root() {
        all.push((
            "another user",
            plant(|at, _| {
                fs::write(at, b"").unwrap();
                chown(at, Some(OTHER), None).unwrap();
            }),
        ));
    }
    all
}

fn take_away(path: &Path) {
    fs::remove_file(path).or_else(|_| fs::remove_dir(path)).expect("it was planted");
}

/// The line of a list for the damaged pieces of a file, by the specification.
pub(super) fn line(entry: usize, bytes: &[u8], pieces: &[usize], piece_len: usize) -> String {
    let word = |nth: &usize| {
        let piece = &bytes[nth * piece_len..bytes.len().min((nth + 1) * piece_len)];
        let digest: String =
            HashKind::Blake3.digest(piece)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!(" {}:{digest}", nth * piece_len)
    };
    format!("{entry}{}\n", pieces.iter().map(word).collect::<String>())
}

/// Waits, so that later changes have a later time.
pub(super) fn tick() {
    std::thread::sleep(Duration::from_millis(20));
}

/// A folder of two files. The second is entry number 2.
fn two() -> (Arena, String) {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 5000)), 1);
    age(&arena.write("d/b", &payload(2, 9500)), 2);
    let root = protect(&arena, &["d", "-r", "200%"]);
    (arena, root)
}

#[test]
fn what_stands_in_the_place_of_the_list_is_neither_followed_nor_waited_for() {
    let (arena, _) = two();
    rot(&arena.path("d/b"), 2000, b"rotten");
    for (said, plant) in plants(&arena, &arena.path(LIST)) {
        plant();
        for args in
            [&["repair", "d.fecp"][..], &["repair", "d.fecp", "-n"], &["repair", "d.fecp", "--revert"]]
        {
            let told = changes_nothing(&arena, args, 2);
            assert!(told.contains(said) && told.contains(LIST) && told.contains("remove it"), "{told}");
        }
        changes_nothing(&arena, &["verify", "d.fecp"], 1);
        take_away(&arena.path(LIST));
    }
    // A file that is no list belongs to somebody.
    arena.write(LIST, b"a letter to my aunt");
    assert!(changes_nothing(&arena, &["repair", "d.fecp"], 2).contains("no list"));
    fs::remove_file(arena.path(LIST)).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    assert_eq!(arena.read("victim"), b"precious");
}

/// A run that writes no list is not harmed.
#[test]
fn what_stands_in_the_place_of_the_list_does_not_matter_where_none_is_needed() {
    let (arena, _) = two();
    fs::remove_file(arena.path("d/a")).unwrap();
    symlink("/dev/full", arena.path(LIST)).unwrap();
    arena.expect(["repair", "d.fecp"], 0);
    arena.expect(["protect", "--update", "d"], 0);
    assert!(arena.path(LIST).is_symlink());
}

#[test]
fn a_planted_list_reverts_nothing() {
    let (arena, root) = two();
    let edited = b"what I have written".repeat(500);
    fs::write(arena.path("d/b"), &edited).unwrap();
    let mut blocks = payload(2, 9500);
    blocks[3000..3100].fill(7);
    let time = |path: &str| fs::metadata(arena.path(path)).and_then(|meta| meta.modified()).unwrap();
    // The second edit has the old size, and the third a single block.
    for now in [&edited[..], &edited[..9500], &blocks] {
        fs::write(arena.path("d/b"), now).unwrap();
        let all: Vec<usize> = (0..now.len().div_ceil(BLOCK)).collect();
        for lines in
            ["2\n".to_owned(), "0\n1\n2\n".into(), line(2, now, &all, BLOCK), line(2, now, &[2, 3], BLOCK)]
        {
            for is_later in [false, true] {
                if is_later {
                    tick();
                }
                arena.write(LIST, format!("fec repair of {root}\n{lines}").as_bytes());
                // The list is as old as the edit that it would undo.
                File::open(arena.path(LIST)).and_then(|file| file.set_modified(time("d/b"))).unwrap();
                let told = changes_nothing(&arena, &["repair", "d.fecp", "--root", &root, "-n"], 1);
                assert!(told.contains("left d/b (edited)"), "{lines}: {told}");
                arena.expect(["repair", "d.fecp", "--root", &root], 1);
                assert!(arena.read("d/b") == now, "{lines}");
                fs::remove_file(arena.path(LIST)).ok();
            }
        }
        // The list existed before and records other bytes of the file.
        arena.write(
            LIST,
            format!("fec repair of {root}\n{}", line(2, &payload(9, 9500), &all[..9], BLOCK)).as_bytes(),
        );
        tick();
        fs::write(arena.path("d/b"), now).unwrap();
        arena.expect(["repair", "d.fecp", "--root", &root], 1);
        assert!(arena.read("d/b") == now);
        fs::remove_file(arena.path(LIST)).ok();
    }
}

/// The state after a repair was killed while it wrote: its list, and a file with a new time, in which some blocks are
/// right and some unchanged. Any other bytes in the file are somebody's edit.
#[test]
fn what_a_repair_has_half_mended_is_mended() {
    for (foreign, exit) in [(None, 0), (Some(5001), 1), (Some(20), 1), (Some(9499), 1), (Some(3100), 1)] {
        let (arena, root) = two();
        let right = payload(2, 9500);
        let mut now = right.clone();
        [1500, 4000, 5000, 8000, 9400].into_iter().for_each(|at| now[at] ^= 0x55);
        // The end of a file longer than a block counts as a block.
        let list = format!("fec repair of {root}\n{}", line(2, &now, &[1, 3, 4, 7, 9], BLOCK));
        set_mode(&arena.write(LIST, list.as_bytes()), 0o600);
        tick();
        now[BLOCK..2 * BLOCK].copy_from_slice(&right[BLOCK..2 * BLOCK]);
        foreign.into_iter().for_each(|at: usize| now[at] ^= 1);
        fs::write(arena.path("d/b"), &now).unwrap();
        changes_nothing(&arena, &["protect", "--update", "d"], 1);
        arena.expect(["repair", "d.fecp"], exit);
        assert!(arena.read("d/b") == if exit == 0 { &right[..] } else { &now[..] }, "{foreign:?}");
        if exit > 0 {
            arena.expect(["repair", "d.fecp", "--revert"], 0);
        }
        is_intact(&arena, "d.fecp");
        assert!(!arena.path(LIST).exists());
    }
}

/// A larger block has several pieces, and a write that was cut off may have reached only some of them.
#[test]
fn a_block_that_was_half_written_is_known_by_its_pieces() {
    const PIECE: usize = 4096;
    let arena = Arena::new();
    // A file of this length has blocks of 8 KiB.
    let len = (1 << 30) + (1 << 20);
    let file = File::create_new(arena.write("d/a", b"").with_file_name("b")).unwrap();
    file.set_len(len).unwrap();
    let right = payload(7, 2 * PIECE);
    file.write_all_at(&right, 1 << 20).unwrap();
    age(&arena.path("d/b"), 2);
    let root = protect(&arena, &["d", "--no-sync", "-r", "1%"]);
    let mut rotten = right.clone();
    [100, 5000].into_iter().for_each(|at| rotten[at] ^= 1);
    for (foreign, exit) in [(Some(5001), 1), (Some(200), 1), (None, 0)] {
        let line =
            line(2, &rotten, &[0, 1], PIECE).replace(" 0:", " 1048576:").replace(" 4096:", " 1052672:");
        let list = format!("fec repair of {root}\n{line}");
        set_mode(&arena.write(LIST, list.as_bytes()), 0o600);
        tick();
        let mut now = rotten.clone();
        now[..PIECE].copy_from_slice(&right[..PIECE]);
        foreign.into_iter().for_each(|at: usize| now[at] ^= 0x40);
        file.write_all_at(&now, 1 << 20).unwrap();
        arena.expect(["repair", "d.fecp", "--no-sync"], exit);
        let mut found = vec![0; now.len()];
        file.read_exact_at(&mut found, 1 << 20).unwrap();
        assert!(found == if exit == 0 { &right[..] } else { &now[..] }, "{foreign:?}");
        fs::remove_file(arena.path(LIST)).ok();
    }
}

#[test]
fn a_planted_mark_gives_no_folder_away() {
    let (arena, root) = two();
    arena.write("out/d/a", b"my only copy");
    arena.write("mark", format!("fec repair of {root}\n").as_bytes());
    let mark = arena.path("out/.fec-restoring");
    for (said, plant) in plants(&arena, &mark) {
        plant();
        // Objects that can hold bytes hold those of a mark.
        if !mark.is_symlink() && mark.is_file() {
            fs::write(&mark, arena.read("mark")).unwrap();
        }
        let told = changes_nothing(&arena, &["repair", "d.fecp", "-o", "out"], 2);
        assert!(told.contains("not empty"), "{said}: {told}");
        take_away(&mark);
    }
    symlink("../mark", &mark).unwrap();
    changes_nothing(&arena, &["repair", "d.fecp", "-o", "out"], 2);
}

#[test]
fn a_planted_state_does_not_say_that_all_was_looked_at() {
    let (arena, _) = two();
    arena.expect(["verify", "d.fecp", "--state", "own"], 0);
    flip(&arena.path("d/b"), 100);
    let args = ["verify", "d.fecp", "--state", "state", "--older-than", "30d"];
    for (said, plant) in plants(&arena, &arena.path("state")) {
        plant();
        if !arena.path("state").is_symlink() && arena.path("state").is_file() {
            fs::write(arena.path("state"), arena.read("own")).unwrap();
        }
        let told = changes_nothing(&arena, &args, 2);
        assert!(told.contains(said) && told.contains("remove it"), "{told}");
        take_away(&arena.path("state"));
    }
    arena.expect(args, 1);
}

/// An archive or a list is never readable for more users than the files it describes.
#[test]
fn what_tells_of_private_files_is_private() {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    for (file, folder, sidecar, undo) in [
        (0o600, 0o755, 0o600, 0o600),
        (0o644, 0o700, 0o600, 0o600),
        (0o640, 0o750, 0o640, 0o640),
        (0o644, 0o755, 0o644, 0o644),
    ] {
        let arena = Arena::new();
        set_mode(&arena.work, 0o755);
        age(&arena.write("d/private", b"secret"), 1);
        set_mode(&arena.path("d/private"), file);
        set_mode(&arena.path("d"), folder);
        protect(&arena, &["d", "-r", "100%"]);
        assert_eq!(mode(&arena.path("d.fecp")), sidecar);
        // The state file existed before, readable for everybody.
        arena.write("state", b"fec scrub state 1\n");
        set_mode(&arena.path("state"), 0o644);
        for state in ["state", "new"] {
            arena.expect(["verify", "d.fecp", "--state", state], 0);
            assert_eq!(mode(&arena.path(state)), sidecar, "{state}");
        }
        edit(&arena.path("d/private"), b"another secret");
        arena.expect(["repair", "d.fecp", "--revert", "--undo", "undo.tar"], 0);
        assert_eq!(mode(&arena.path("undo.tar")), undo, "{file:o} {folder:o}");
    }
}

/// A sidecar that exists already is narrowed before it gets the bytes of a file that fewer users may read.
#[test]
fn a_sidecar_becomes_as_private_as_what_it_protects() {
    let mode = |arena: &Arena| fs::metadata(arena.path("d.fecp")).unwrap().mode() & 0o7777;
    let arena = Arena::new();
    set_mode(&arena.work, 0o755);
    age(&arena.write("d/public", &payload(1, 5000)), 1);
    set_mode(&arena.path("d"), 0o755);
    let recipient = text(&arena.expect(["keygen", "-o", "other"], 0).stdout).trim().to_owned();
    let sealed = ["--recipient", &recipient, "-i", "other"];
    for (first, then) in [
        (&[][..], &["--update"][..]),
        (&[], &["-f"]),
        (&sealed[..2], &[&["--update"], &sealed[..]].concat()),
        (&sealed[..2], &[&["-f"], &sealed[..2]].concat()),
    ] {
        for (private, folder) in [(0o600, 0o755), (0o644, 0o700)] {
            fs::remove_file(arena.path("d.fecp")).ok();
            fs::remove_dir_all(arena.path("d/new")).ok();
            protect(&arena, &[&["d"], first].concat());
            set_mode(&arena.path("d.fecp"), 0o4664);
            arena.write("d/new/private", b"secret");
            set_mode(&arena.path("d/new/private"), private);
            set_mode(&arena.path("d/new"), folder);
            protect(&arena, &[then, &["d"]].concat());
            assert_eq!(mode(&arena), 0o600, "{then:?} {private:o} {folder:o}");
        }
    }
    // A sidecar elsewhere is as private as the folders that it does not lie in.
    fs::remove_dir_all(arena.path("d/new")).unwrap();
    for (outer, expected) in [(0o700, 0o600), (0o755, 0o644)] {
        arena.write("outer/tree/d/file", &payload(2, 3000));
        ["outer/tree", "outer/tree/d"].iter().for_each(|path| set_mode(&arena.path(path), 0o755));
        set_mode(&arena.path("outer"), outer);
        protect(&arena, &["outer/tree/d", "--base", "outer/tree", "-f", "-o", "out.fecp"]);
        assert_eq!(fs::metadata(arena.path("out.fecp")).unwrap().mode() & 0o777, expected, "{outer:o}");
        fs::remove_file(arena.path("out.fecp")).unwrap();
    }
}

/// Somebody who has planted a pipe would read everything written to it.
#[test]
fn an_output_that_somebody_else_has_planted_is_not_written_to() {
    if !is_root() {
        return;
    }
    let arena = Arena::new();
    let secret = arena.write("secret", &payload(1, 5000));
    arena.expect(["encode", "secret", "-o", "secret.fec", "-q"], 0);
    fs::create_dir(arena.path("shared")).unwrap();
    set_mode(&arena.path("shared"), 0o1777);
    let out = arena.path("shared/out");
    for is_link in [false, true] {
        match is_link {
            true => symlink("/dev/null", &out).unwrap(),
            false => fifo(&out),
        }
        lchown(&out, Some(OTHER), None).unwrap();
        for args in [
            &["decode", "secret.fec", "-o", "shared/out"][..],
            &["encode", "secret", "-o", "shared/out"],
            &["encode", "secret", "-o", "new.fec", "--root-file", "shared/out"],
        ] {
            let told = text(&arena.expect(args, 2).stderr);
            // A system with fs.protected_symlinks does not follow this link either.
            let is_told = told.contains("another user") || is_link && told.contains("it is a symbolic link");
            assert!(is_told && told.contains("shared/out"), "{told}");
            fs::remove_file(arena.path("new.fec")).ok();
        }
        fs::remove_file(&out).unwrap();
    }
    // The user's own objects, and those of root, are trusted.
    symlink("/dev/null", &out).unwrap();
    arena.expect(["decode", "secret.fec", "-o", "shared/out"], 0);
    arena.expect(["decode", "secret.fec", "-o", "/dev/null"], 0);
    assert!(secret.exists());
}

/// No command waits for a FIFO in the place of a sidecar.
#[test]
fn a_fifo_in_the_place_of_a_sidecar_is_not_waited_for() {
    let (arena, _) = two();
    fs::remove_file(arena.path("d.fecp")).unwrap();
    fifo(&arena.path("d.fecp"));
    for args in [
        &["protect", "d"][..],
        &["protect", "-f", "d"],
        &["protect", "--update", "d"],
        &["manifest", "d.fecp"],
    ] {
        let output = arena.run(args);
        assert!([2, 3, 4].contains(&common::code(&output)), "{args:?}: {}", text(&output.stderr));
    }
}

/// The test also allows only few descriptors.
#[test]
fn however_many_files_are_half_mended_all_are_mended() {
    const FILES: usize = 150;
    let arena = Arena::new();
    let name = |nth: usize| format!("d/{nth:03}");
    for nth in 0..FILES {
        age(&arena.write(name(nth), &payload(nth as u64, 1500)), 1);
    }
    let root = protect(&arena, &["d", "-r", "200%"]);
    let rotten = |nth: usize| {
        let mut bytes = payload(nth as u64, 1500);
        bytes[100] ^= 1;
        bytes[1400] ^= 1;
        bytes
    };
    let lines: String = (0..FILES).map(|nth| line(1 + nth, &rotten(nth), &[0, 1], BLOCK)).collect();
    set_mode(&arena.write(LIST, format!("fec repair of {root}\n{lines}").as_bytes()), 0o600);
    tick();
    for nth in 0..FILES {
        let mut now = rotten(nth);
        now[100] ^= 1;
        fs::write(arena.path(name(nth)), now).unwrap();
    }
    let limited = format!("ulimit -n 40; exec {} repair d.fecp -j 1", common::fec_words());
    let output = std::process::Command::new("sh").args(["-c", &limited]).current_dir(&arena.work).output();
    expect(&output.unwrap(), 0);
    is_intact(&arena, "d.fecp");
}
