//! `fec protect --update` amid rot, kills, full disks and other updates.

use super::update::{
    BLOCK, FILES, anew, appended, counts, is_protected, note, plant, protected, report, state,
};
use super::update_limits::refused;
use super::*;
use common::Random;
use rustix::fs::{FlockOperation, flock};

/// Edits a block of one file.
fn edit_a_block(arena: &Arena, name: &str, nth: u64) {
    rot(&arena.path(name), nth * BLOCK as u64, &payload(nth, 100));
    age(&arena.path(name), 4000 + nth);
}

#[test]
fn rot_is_not_blessed() {
    let (arena, _) = protected(&[]);
    let before = state(&arena);
    flip(&arena.path("d/big"), 70_000);
    flip(&arena.path("d/middle"), 70_000);
    edit_a_block(&arena, "d/other", 5);
    edit_a_block(&arena, "d/big", 120);
    fs::rename(arena.path("d/sub/one"), arena.path("d/sub/moved")).unwrap();
    // An edited file counts as it is now: nobody can tell rot in it from the edit.
    let update = appended(&arena, &[]);
    assert_eq!(counts(&update), [FILES - 3, 2, 0, 1, 0]);
    assert_eq!(states(&arena, &["d.fecp"], 1), [pair("d/middle", "rotten")]);
    let kept = state(&arena);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    let middle = Path::new("middle");
    assert!(state(&arena)[middle] == before[middle], "the bytes of old");
    let others = |mut all: BTreeMap<PathBuf, _>| all.remove(middle).map(|_| all);
    assert!(others(state(&arena)) == others(kept));
    is_protected(&arena);
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

/// A file that is coded anew with its neighbour is compared first.
#[test]
fn rot_beside_what_changes_is_refused() {
    for (rotten, at, edited) in
        [("d/notes/03", 5, "d/notes/04"), ("d/middle", 100 * BLOCK as u64 + 3, "d/notes/00")]
    {
        let (arena, _) = protected(&[]);
        let before = arena.read(rotten);
        flip(&arena.path(rotten), at);
        edit(&arena.path(edited), b"edited");
        refused(&arena, &[], 1, "repair");
        refused(&arena, &["-f"], 1, "repair");
        fs::remove_file(arena.path(edited)).unwrap();
        refused(&arena, &[], 1, "repair");
        arena.write(edited, b"edited");
        arena.expect(["repair", "d.fecp", "--no-sync"], 1);
        assert_eq!(arena.read(rotten), before);
        assert_eq!(counts(&appended(&arena, &[])), [FILES - 1, 1, 0, 0, 0]);
        is_protected(&arena);
    }
}

#[test]
fn rot_is_not_blessed_by_a_sidecar_that_is_made_anew() {
    for (path, at) in [("d/big", 70_000), ("d/notes/03", 5), ("d/sub/one", 50 * BLOCK as u64 + 1)] {
        let (arena, _) = protected(&["-r", "20%"]);
        let before = arena.read(path);
        flip(&arena.path(path), at);
        refused(&arena, &["--sha256"], 1, "repair");
        edit(&arena.path("d/other"), &payload(9, 150 * BLOCK));
        refused(&arena, &[], 1, "repair");
        refused(&arena, &["-f"], 1, "repair");
        edit(&arena.path("d/other"), &payload(3, 150 * BLOCK + 500));
        arena.expect(["repair", "d.fecp", "--no-sync"], 0);
        assert_eq!(arena.read(path), before);
        edit(&arena.path("d/other"), &payload(9, 150 * BLOCK));
        anew(&arena, &[]);
        is_protected(&arena);
    }
}

/// A moved file that rotted on the way is not the earlier file.
#[test]
fn a_damaged_copy_is_not_what_was_moved() {
    let (arena, _) = protected(&[]);
    fs::rename(arena.path("d/sub/tool"), arena.path("d/sub/copy")).unwrap();
    flip(&arena.path("d/sub/copy"), 100);
    assert_eq!(counts(&report(&arena, &[])["update"]), [FILES - 1, 0, 1, 0, 1]);
    is_protected(&arena);
}

/// Changes a random file, which stays small. Its name is an old or a new one.
fn change(arena: &Arena, random: &mut Random) {
    let name = match random.below(3) {
        0 => note(random.below(20)),
        1 => ["d/big", "d/other"][random.below(2)].to_owned(),
        _ => format!("d/sub/new {}", random.below(4)),
    };
    let path = arena.path(&name);
    let mut bytes = fs::read(&path).unwrap_or_default();
    match random.below(6) {
        _ if bytes.is_empty() => {
            let len = 1 + random.below(9000);
            bytes = random.bytes(len);
        }
        0 if bytes.len() < 10_000 => return fs::remove_file(&path).unwrap(),
        1 if bytes.len() < 10_000 => {
            return fs::rename(&path, arena.path(format!("d/void/{}", random.next()))).unwrap();
        }
        2 => bytes.truncate(bytes.len() - random.below(bytes.len().min(9000))),
        3 => {
            let len = 1 + random.below(6000);
            bytes.extend_from_slice(&random.bytes(len));
        }
        _ => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1;
        }
    }
    fs::write(&path, bytes).unwrap();
    age(&path, 10_000 + random.next() % 100_000);
}

/// Ten generations follow each other. After each one, the tree comes back from damage to files and sidecar.
#[test]
fn an_update_of_an_update_of_an_update() {
    let mut appends = 0;
    for seed in 0..3 {
        let (arena, random) = (protected(&["-r", "30%"]).0, &mut Random::new(seed));
        for generation in 2..=11 {
            (0..1 + random.below(3)).for_each(|_| change(&arena, random));
            let update = report(&arena, &["-f"])["update"].clone();
            appends += u32::from(update["generation"].as_u64() > Some(1) && update["written"] == true);
            is_intact(&arena, "d.fecp");
            let (before, sidecar) = (state(&arena), arena.read("d.fecp"));
            // Damages 20 blocks of the first group at once, and one bit of any file, and last a bit of the sidecar.
            let at = random.below(70) * BLOCK;
            rot(&arena.path("d/middle"), at as u64, &vec![0x66; 20 * BLOCK]);
            arena.expect(["repair", "d.fecp", "--no-sync"], 0);
            assert!(state(&arena) == before, "seed {seed}, generation {generation}");
            flip(&arena.path("d.fecp"), random.below(sidecar.len()) as u64);
            let output = arena.run(["repair", "d.fecp", "--no-sync"]);
            assert_eq!(
                common::code(&output),
                0,
                "seed {seed}, generation {generation}: {}",
                text(&output.stderr)
            );
            assert!(arena.read("d.fecp").len() == sidecar.len(), "seed {seed}, generation {generation}");
            is_intact(&arena, "d.fecp");
        }
        is_protected(&arena);
    }
    assert!(appends > 15, "{appends} of 30 updates were appended");
}

/// Nothing of the previous generation goes away: its root names the old files, and restores them.
#[test]
fn the_root_of_before_is_readable() {
    let arena = Arena::new();
    plant(&arena);
    let old = protect(&arena, &["d"]);
    let (before, sidecar) = (tree(&arena.path("d")), arena.read("d.fecp"));
    arena.write("d/new", &payload(33, 20_000));
    appended(&arena, &[]);
    // Exit code 1 only tells of the newer bytes, which are no part of that generation.
    assert_eq!(states(&arena, &["d.fecp", "--root", &old], 1), []);
    edit_a_block(&arena, "d/big", 44);
    edit(&arena.path(note(2)), b"edited");
    let new = report(&arena, &[])["root"].as_str().unwrap().to_owned();
    is_protected(&arena);
    arena.expect(["verify", "d.fecp", "--root", &new], 0);
    let found = states(&arena, &["d.fecp", "--root", &old], 1);
    assert_eq!(found, [pair("d/big", "edited"), pair("d/notes/02", "edited")]);
    arena.expect(["repair", "d.fecp", "--root", &old, "--revert", "--no-sync"], 0);
    fs::remove_file(arena.path("d/new")).unwrap();
    assert!(tree(&arena.path("d")) == before && arena.read("d.fecp") == sidecar);
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

/// A file that was renamed and then rotted is no new file.
#[test]
fn rot_is_not_blessed_by_another_name() {
    let (arena, _) = protected(&[]);
    let was = arena.read("d/big");
    flip(&arena.path("d/big"), 70_000);
    fs::rename(arena.path("d/big"), arena.path("d/renamed")).unwrap();
    refused(&arena, &[], 1, "d/big");
    fs::rename(arena.path("d/renamed"), arena.path("d/big")).unwrap();
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d/big") == was);
}

/// A file that was moved and then rotted does not pass for new content, even if its old name is in use again.
#[test]
fn rot_is_not_blessed_where_names_are_used_again() {
    let nanos = |arena: &Arena, name: &str, nanos: u32| {
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, nanos);
        File::open(arena.path(name)).and_then(|file| file.set_modified(time)).unwrap();
    };
    let moves: [fn(&Arena) -> &'static str; 3] = [
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/x")).unwrap();
            fs::rename(arena.path("d/other"), arena.path("d/big")).unwrap();
            fs::rename(arena.path("d/x"), arena.path("d/other")).unwrap();
            "d/other"
        },
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/big.1")).unwrap();
            edit(&arena.path("d/big"), b"a new log");
            "d/big.1"
        },
        |arena| {
            fs::rename(arena.path("d/big"), arena.path("d/x")).unwrap();
            fs::hard_link(arena.path("d/other"), arena.path("d/big")).unwrap();
            "d/x"
        },
    ];
    for moves in moves {
        for time in [123, 0] {
            let arena = Arena::new();
            plant(&arena);
            // Two files have the same size and time.
            arena.write("d/twin", &payload(7, 200 * BLOCK));
            ["d/big", "d/twin"].iter().for_each(|name| nanos(&arena, name, time));
            nanos(&arena, "d/other", 500);
            protect(&arena, &["d"]);
            let moved = moves(&arena);
            flip(&arena.path(moved), 70_000);
            refused(&arena, &[], 1, moved);
        }
    }
}

/// The tail of a changed file keeps its place only if it was read there.
#[test]
fn a_tail_is_kept_only_where_it_was_read() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 3000));
    fs::hard_link(arena.path("d/a"), arena.path("d/b")).unwrap();
    arena.write("d/z", &payload(2, 200_000));
    protect(&arena, &["d"]);
    // The old file has another name and other bytes, and another file has its name with bytes of its own.
    fs::copy(arena.path("d/a"), arena.path("d/0")).unwrap();
    rot(&arena.path("d/0"), 10, b"four");
    fs::remove_file(arena.path("d/a")).unwrap();
    fs::remove_file(arena.path("d/b")).unwrap();
    fs::hard_link(arena.path("d/0"), arena.path("d/a")).unwrap();
    arena.write("d/b", &payload(9, 3000));
    report(&arena, &["-f"]);
    flip(&arena.path("d/b"), 2900);
    flip(&arena.path("d/a"), 2900);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d/b") == payload(9, 3000));
    assert!(arena.read("d/a") == [&payload(1, 3000)[..10], b"four", &payload(1, 3000)[14..]].concat());
}

/// An update writes to the named file, never through a link in its place.
#[test]
fn a_link_in_place_of_the_sidecar_is_not_followed() {
    let (arena, _) = protected(&[]);
    fs::rename(arena.path("d.fecp"), arena.path("elsewhere")).unwrap();
    symlink("elsewhere", arena.path("d.fecp")).unwrap();
    edit(&arena.path(note(3)), b"edited");
    refused(&arena, &[], 2, "symbolic link");
}

/// A copy of a file, with its time, does not pass for another old file of this size and time.
#[test]
fn a_copy_is_not_the_file_that_is_gone() {
    let arena = Arena::new();
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, 123_456_789);
    let put = |name: &str, bytes: &[u8]| {
        File::open(arena.write(name, bytes)).and_then(|file| file.set_modified(time)).unwrap();
    };
    let bytes = payload(1, 8_000_000);
    let mut other = bytes.clone();
    other[5_100_000..5_100_009].copy_from_slice(b"different");
    put("d/a1", &bytes);
    put("d/a2", &other);
    arena.write("d/pad", &payload(3, 90_000_000));
    protect(&arena, &["d", "--no-sync"]);
    fs::remove_file(arena.path("d/a2")).unwrap();
    put("d/b", &bytes);
    arena.expect(["protect", "--update", "d", "-f", "--no-sync"], 0);
    is_intact(&arena, "d.fecp");
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(arena.read("d/b") == bytes);
}
