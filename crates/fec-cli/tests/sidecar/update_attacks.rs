//! `fec protect --update` amid rot, kills, full disks and other updates.

use super::update::{BLOCK, FILES, appended, counts, is_protected, note, plant, protected, report};
use super::update_limits::refused;
use super::*;
use rustix::fs::{FlockOperation, flock};

/// Edits a block of one file.
fn edit_a_block(arena: &Arena, name: &str, nth: u64) {
    rot(&arena.path(name), nth * BLOCK as u64, &payload(nth, 100));
    age(&arena.path(name), 4000 + nth);
}

/// A file that a repair has half mended has another time, but is no edit.
#[test]
fn what_a_repair_has_begun_is_not_blessed() {
    let arena = Arena::new();
    plant(&arena);
    let root = protect(&arena, &["d"]);
    let before = tree(&arena.path("d"));
    flip(&arena.path("d/big"), 70_000);
    // The state after a killed repair: its list, and the file with the time of its last write.
    let mut paths: Vec<Vec<u8>> = before.keys().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
    paths.sort_unstable();
    // The folder is the first entry.
    let big = 1 + paths.iter().position(|path| path == b"big").unwrap();
    let line = doors::line(big, &arena.read("d/big"), &[70_000 / BLOCK], BLOCK);
    arena.write("d.fecp.repairing", format!("fec repair of {root}\n{line}").as_bytes());
    doors::tick();
    File::open(arena.path("d/big")).and_then(|file| file.set_modified(SystemTime::now())).unwrap();
    edit(&arena.path(note(3)), b"edited");
    refused(&arena, &[], 1, "repair");
    refused(&arena, &["-f", "--sha256"], 1, "repair");
    arena.expect(["repair", "d.fecp", "--no-sync"], 1);
    assert!(tree(&arena.path("d"))[Path::new("big")] == before[Path::new("big")]);
    appended(&arena, &[]);
    is_protected(&arena);
}

/// At any moment the sidecar is the old one, perhaps with bytes behind it, or the new one.
#[test]
fn an_update_that_was_killed_can_be_run_again() {
    for is_anew in [false, true] {
        let (arena, old) = protected(&["-r", "50%"]);
        edit_a_block(&arena, "d/big", 3);
        fs::rename(arena.path("d/other"), arena.path("d/moved")).unwrap();
        arena.write("d/new", &payload(1, 30 * BLOCK));
        if is_anew {
            edit(&arena.path("d/big"), &payload(9, 300 * BLOCK));
        }
        let edited = states(&arena, &["d.fecp"], 1);
        assert_eq!(report(&arena, &[])["update"]["anew"].is_string(), is_anew);
        let new = arena.read("d.fecp");
        let (mut killed, mut half) = (0, 0);
        for nth in 0..40u64 {
            arena.write("d.fecp", &old);
            let mut child = arena.spawn(["protect", "--update", "d"]);
            std::thread::sleep(Duration::from_micros(nth * if is_anew { 1500 } else { 600 }));
            child.kill().unwrap();
            killed += u32::from(!child.wait().unwrap().success());
            let left = arena.read("d.fecp");
            half += u32::from(left != old && left != new);
            assert!(left == new || (left.starts_with(&old) && !is_anew) || left == old, "after {nth} steps");
            let output = arena.run(["verify", "d.fecp", "--json"]);
            let exit = common::code(&output);
            let found = states(&arena, &["d.fecp"], exit);
            // Some of its last pieces may not be written yet.
            let is_new = found.is_empty() && (exit == 0 || (exit == 1 && left != new));
            assert!(is_new || (exit == 1 && found == edited), "{nth}: {exit}, {found:?}");
            arena.expect(["protect", "--update", "d", "--no-sync"], 0);
            assert!(arena.read("d.fecp") == new, "killed after {nth} steps");
            is_intact(&arena, "d.fecp");
            for name in common::listing(&arena.work).iter().filter(|name| name.starts_with(".fec-")) {
                fs::remove_file(arena.path(name)).unwrap();
            }
        }
        assert!(killed > 0, "each was faster than the first kill");
        println!("{killed} were killed, {half} of them while they wrote");
        is_protected(&arena);
    }
}

/// A run that ends by a signal it can catch leaves nothing of its own.
#[test]
fn an_update_that_is_told_to_end_takes_its_bytes_back() {
    let (arena, old) = protected(&["-r", "50%"]);
    arena.write("d/new", &payload(1, 100 * BLOCK));
    report(&arena, &[]);
    let (new, signals) = (arena.read("d.fecp"), common::signals());
    let mut ended = 0;
    for nth in 0..40u64 {
        arena.write("d.fecp", &old);
        let mut child = arena.spawn(["protect", "--update", "d"]);
        std::thread::sleep(Duration::from_micros(2000 + nth * 600));
        let pid = rustix::process::Pid::from_child(&child);
        let signal = signals[nth as usize % signals.len()];
        rustix::process::kill_process(pid, signal).ok();
        let exit = child.wait().unwrap();
        ended += u32::from(!exit.success());
        let left = arena.read("d.fecp");
        assert!(left == if exit.success() { &*new } else { &*old } || left == new, "{exit}: {}", left.len());
        arena.nothing_temporary();
    }
    println!("{ended} of 40 ended before they were done");
}

/// The disk has room for only a part of the update, up to several points.
#[test]
fn a_full_disk_changes_nothing() {
    let (arena, old) = protected(&[]);
    arena.write("d/new", &payload(1, 30 * BLOCK));
    report(&arena, &[]);
    let new = arena.read("d.fecp");
    let halves = |len: usize| len.div_ceil(512);
    let step = (halves(new.len()) - halves(old.len())) / 6;
    assert!(step > 0);
    for limit in (halves(old.len())..halves(new.len()) - 1).step_by(step) {
        arena.write("d.fecp", &old);
        let fec = arena.fec(["protect", "--update", "d"]);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f $1; shift; exec \"$@\"", "sh", &limit.to_string()]);
        shell.arg(fec.get_program()).args(fec.get_args()).current_dir(&arena.work);
        let output = shell.output().unwrap();
        expect(&output, 4);
        assert!(arena.read("d.fecp") == old, "{limit}: {} bytes are left", arena.read("d.fecp").len());
        arena.nothing_temporary();
    }
    report(&arena, &[]);
    assert!(arena.read("d.fecp") == new);
}

#[test]
fn two_updates_do_not_write_to_one_sidecar() {
    let (arena, _) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    let other = File::open(arena.path("d.fecp")).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    refused(&arena, &[], 2, "");
    refused(&arena, &["-f", "--sha256"], 2, "");
    // A process that another test is starting may hold the file a moment longer.
    flock(&other, FlockOperation::Unlock).unwrap();
    let mut refusals = 0;
    for nth in 0..10u64 {
        edit_a_block(&arena, "d/big", nth);
        let both = [0; 2].map(|_| arena.spawn(["protect", "--update", "d", "--no-sync"]));
        for child in both {
            let exit = child.wait_with_output().unwrap();
            refusals += u32::from(common::code(&exit) == 2);
            assert!([0, 2].contains(&common::code(&exit)), "{}", text(&exit.stderr));
        }
        arena.expect(["verify", "d.fecp"], 0);
    }
    println!("{refusals} of 20 were refused");
    let update = report(&arena, &[])["update"].clone();
    assert_eq!((&update["written"], counts(&update)[0]), (&false.into(), FILES));
    is_protected(&arena);
}
