//! `fec protect --update`: its options, its refusals, and the reasons for a new sidecar.

use super::update::{
    BLOCK, FILES, anew, appended, counts, is_protected, note, plant, protected, report, state,
};
use super::*;
use sha2::{Digest, Sha256};

/// Asserts that the update is refused with this code and this word in the reason, and changes nothing.
#[track_caller]
pub(super) fn refused(arena: &Arena, options: &[&str], exit: i32, word: &str) {
    let said = changes_nothing(arena, &[&["protect", "--update", "d"], options].concat(), exit);
    assert!(said.contains(word), "{said}");
    arena.nothing_temporary();
}

/// Asserts that the sidecar equals a new one of the current files.
#[track_caller]
fn is_fresh(arena: &Arena, options: &[&str]) {
    protect(arena, &[&["d", "-o", "fresh.fecp"], options].concat());
    assert!(arena.read("d.fecp") == arena.read("fresh.fecp"), "it is another than a new one");
}

#[test]
fn there_has_to_be_a_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    refused(&arena, &[], 2, "--update");
    refused(&arena, &["-f"], 2, "--update");
    arena.write("d.fecp", b"something else");
    assert_ne!(common::code(&arena.run(["protect", "--update", "d"])), 0);
    assert_ne!(common::code(&arena.run(["protect", "--update", "d", "-f"])), 0);
    assert_eq!(arena.read("d.fecp"), b"something else");
    let (arena, _) = protected(&[]);
    changes_nothing(&arena, &["protect", "--update", "absent"], 2);
    changes_nothing(&arena, &["protect", "--update"], 2);
}

#[test]
fn what_was_deleted_is_let_go() {
    let (arena, _) = protected(&[]);
    for nth in [2, 9] {
        fs::remove_file(arena.path(note(nth))).unwrap();
    }
    assert_eq!(counts(&appended(&arena, &[])), [FILES - 2, 0, 0, 0, 2]);
    is_protected(&arena);
    fs::remove_file(arena.path("d/sub/tool")).unwrap();
    assert_eq!(counts(&appended(&arena, &[])), [FILES - 3, 0, 0, 0, 1]);
    is_protected(&arena);
}

/// A tenth of 22 files is two. A folder that is not mounted is more.
#[test]
fn more_than_a_tenth_may_not_vanish_unseen() {
    let (arena, _) = protected(&[]);
    (0..3).for_each(|nth| fs::remove_file(arena.path(note(nth))).unwrap());
    refused(&arena, &[], 2, "-f");
    fs::rename(arena.path("d/notes"), arena.path("d/moved")).unwrap();
    refused(&arena, &[], 2, "-f");
    arena.write(note(0), &payload(100, 300));
    let [.., gone] = counts(&report(&arena, &[])["update"]);
    assert_eq!(gone, 2, "what was moved is there");
    is_protected(&arena);
    let (arena, _) = protected(&[]);
    fs::remove_dir_all(arena.path("d/notes")).unwrap();
    refused(&arena, &[], 2, "-f");
    assert_eq!(counts(&report(&arena, &["-f"])["update"]), [FILES - 16, 0, 0, 0, 16]);
    is_protected(&arena);
    fs::remove_dir_all(arena.path("d")).unwrap();
    fs::create_dir(arena.path("d")).unwrap();
    refused(&arena, &[], 2, "-f");
    report(&arena, &["-f"]);
    is_protected(&arena);
}

#[test]
fn what_is_empty_now_has_to_be_meant() {
    for path in ["d/notes/03", "d/sub/tool"] {
        let (arena, _) = protected(&[]);
        edit(&arena.path(path), b"");
        refused(&arena, &[], 2, "-f");
        assert_eq!(counts(&appended(&arena, &["-f"])), [FILES - 1, 1, 0, 0, 0]);
        is_protected(&arena);
        refused(&arena, &["--root", &"07".repeat(32)], 5, "");
        edit(&arena.path(path), b"full again");
        appended(&arena, &[]);
        is_protected(&arena);
    }
}

#[test]
fn too_many_changes_make_it_anew() {
    for (redundancy, blocks) in [("16%", 60), ("100%", 300)] {
        let (arena, _) = protected(&["-r", redundancy]);
        edit(&arena.path("d/other"), &payload(70, blocks * BLOCK));
        if blocks > 200 {
            edit(&arena.path("d/big"), &payload(71, blocks * BLOCK));
        }
        assert!(!anew(&arena, &[]).is_empty());
        is_fresh(&arena, &["-r", redundancy]);
        is_protected(&arena);
    }
}

#[test]
fn a_sidecar_is_never_more_than_twice_as_large_as_a_new_one() {
    let (arena, _) = protected(&["-r", "1%"]);
    let (mut made_anew, mut most) = (0, 0);
    for nth in 0..40 {
        edit(&arena.path(note(nth % 16)), &payload(nth as u64, 290 + nth));
        let update = report(&arena, &[])["update"].clone();
        made_anew += u32::from(!update["anew"].is_null());
        most = arena.read("d.fecp").len().max(most);
        is_intact(&arena, "d.fecp");
    }
    protect(&arena, &["d", "-o", "fresh.fecp", "-r", "1%"]);
    assert!(made_anew > 0 && most <= 2 * arena.read("fresh.fecp").len() + 1000, "{made_anew}, {most}");
    is_protected(&arena);
}

#[test]
fn blocks_that_are_too_small_make_it_anew() {
    let arena = Arena::new();
    arena.write("d/small", &payload(1, 9000));
    protect(&arena, &["d"]);
    arena.write("d/large", &payload(2, 5_000_000));
    let said = report(&arena, &[]);
    assert!(said["update"]["anew"].is_string());
    assert_eq!((&said["block_bytes"], &said["update"]["generation"]), (&BLOCK.into(), &1.into()));
    is_fresh(&arena, &[]);
    is_protected(&arena);
}

/// Edits a few blocks of alternating files: at any moment a tenth of the folder may be lost.
#[test]
fn what_may_be_lost_stays_about_as_much() {
    let (arena, _) = protected(&[]);
    let mut random = common::Random::new(5);
    for nth in 0..12 {
        let path = arena.path(["d/big", "d/other"][nth % 2]);
        rot(&path, (random.below(140) * BLOCK) as u64, &random.bytes(5 * BLOCK));
        age(&path, 2000 + nth as u64);
        report(&arena, &[]);
        is_intact(&arena, "d.fecp");
        let before = state(&arena);
        let lost = random.below(130);
        // 40 of 504 blocks are lost, and at most five of them belong to a younger group.
        let path = arena.path("d/middle");
        rot(&path, (lost % 60 * BLOCK) as u64, &vec![0x77; 40 * BLOCK]);
        arena.expect(["repair", "d.fecp", "--no-sync"], 0);
        assert!(state(&arena) == before);
    }
}

#[test]
fn redundancy_is_that_of_the_sidecar_or_what_is_asked_for() {
    let grown = |blocks: usize, made: &[&str], updated: &[&str]| {
        let (arena, _) = protected(made);
        arena.write("d/new", &payload(30, blocks * BLOCK));
        let said = report(&arena, updated);
        let recovery = said["recovery_bytes"].as_u64().unwrap();
        is_protected(&arena);
        recovery / BLOCK as u64
    };
    // 16 % means 81 blocks for 504 blocks, and 100 % means 504. Another 200 blocks get the redundancy of 704 blocks
    // together.
    let default = grown(200, &[], &[]);
    assert_eq!(default, grown(200, &[], &["-r", "16%"]));
    assert!((81 + 113..81 + 116).contains(&default), "{default}");
    assert_eq!(grown(200, &[], &["-r", "100%"]), 81 + 200);
    assert_eq!(grown(200, &["-r", "100%"], &[]), 504 + 200);
    // The redundancy is far below the existing one: the sidecar is made anew.
    assert_eq!(grown(200, &["-r", "100%"], &["-r", "5%"]), 36);
}

/// The redundancy applies to the whole tree: a few added files are protected as well as they would be among the others.
#[test]
fn what_was_added_may_be_lost_whole() {
    let (arena, _) = protected(&[]);
    arena.write("d/new", &payload(30, 15 * BLOCK + 100));
    report(&arena, &[]);
    let before = state(&arena);
    fs::remove_file(arena.path("d/new")).unwrap();
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    assert!(state(&arena) == before);
}

/// Asserts that `manifest --sha256` lists the digests of the files.
#[track_caller]
fn has_sha256(arena: &Arena) {
    let listed = text(&arena.expect(["manifest", "d.fecp", "--sha256"], 0).stdout);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let is_file = |what: &What| matches!(what, What::File { .. });
    let all: Vec<_> = tree(&arena.path("d")).into_iter().filter(|(_, what)| is_file(what)).collect();
    assert_eq!(listed.lines().count(), all.len());
    for (path, what) in all {
        let What::File { bytes, .. } = what else { unreachable!() };
        let line = format!("{}  d/{}", hex(&Sha256::digest(&bytes)), path.display());
        assert!(listed.lines().any(|listed| listed == line), "{line}\n{listed}");
    }
}

#[test]
fn sha256_is_kept_for_all_files() {
    let (arena, _) = protected(&["--sha256"]);
    edit(&arena.path("d/big"), &[payload(1, 199 * BLOCK), payload(2, 50)].concat());
    edit(&arena.path(note(1)), b"edited");
    age(&arena.path(note(2)), 7777);
    fs::rename(arena.path("d/other"), arena.path("d/moved")).unwrap();
    arena.write("d/new", &payload(40, 5000));
    appended(&arena, &[]);
    has_sha256(&arena);
    rot(&arena.path("d/big"), 0, b"edited");
    age(&arena.path("d/big"), 8888);
    appended(&arena, &["--sha256"]);
    has_sha256(&arena);
    is_protected(&arena);
    edit(&arena.path("d/moved"), &payload(41, 200 * BLOCK));
    assert!(!anew(&arena, &[]).is_empty());
    has_sha256(&arena);
    // A sidecar without SHA-256 digests is made anew to have them.
    let (arena, _) = protected(&[]);
    edit(&arena.path(note(1)), b"edited");
    assert!(!anew(&arena, &["--sha256"]).is_empty());
    is_fresh(&arena, &["--sha256"]);
    has_sha256(&arena);
}

/// Files that are too large to be read for nothing. Times are compared to the nanosecond.
#[test]
fn a_large_file_that_was_moved_is_known_again_and_another_in_its_place_is_not() {
    let arena = Arena::new();
    plant(&arena);
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, 123_456_789);
    let put = |name: &str, bytes: &[u8]| {
        let path = arena.write(name, bytes);
        File::open(path).and_then(|file| file.set_modified(time)).unwrap();
    };
    let len = 400 * BLOCK;
    put("d/huge", &payload(90, len));
    arena.write("d/mass", &payload(91, 6_000_000));
    protect(&arena, &["d", "-r", "100%"]);
    let root = |update: &Value| (counts(update), update["coded_bytes"].as_u64().unwrap());
    fs::create_dir(arena.path("d/deep")).unwrap();
    fs::rename(arena.path("d/huge"), arena.path("d/deep/huge")).unwrap();
    assert_eq!(root(&appended(&arena, &[])), ([FILES + 1, 0, 0, 1, 0], 0));
    is_protected(&arena);
    // Another file of this size and time may be the old one, renamed and then damaged: the user has to say that it is
    // new.
    fs::remove_file(arena.path("d/deep/huge")).unwrap();
    put("d/impostor", &payload(92, len));
    refused(&arena, &[], 1, "moved");
    assert_eq!(root(&report(&arena, &["-f"])["update"]), ([FILES + 1, 0, 1, 0, 1], len as u64));
    is_protected(&arena);
    // A file that differs in one byte lies beside the moved one.
    fs::rename(arena.path("d/impostor"), arena.path("d/sub/honest")).unwrap();
    let mut bytes = payload(92, len);
    bytes[len / 2] ^= 1;
    put("d/a", &bytes);
    let [unchanged, changed, added, moved, gone] = counts(&report(&arena, &[])["update"]);
    assert_eq!([unchanged, changed, added, moved, gone], [FILES + 1, 0, 1, 1, 0]);
    is_protected(&arena);
}

/// The paths, base and exclusions are the same as before.
#[test]
fn it_takes_what_protect_takes() {
    let arena = Arena::new();
    plant(&arena);
    let options = ["d/big", "d/notes", "-o", "d/x.fecp", "--base", "d", "--exclude", "1*"];
    protect(&arena, &options);
    edit(&arena.path(note(3)), b"edited");
    edit(&arena.path(note(13)), b"left out");
    let update = |options: &[&str]| {
        json(&arena.expect([&["protect", "--update", "--json"], options].concat(), 0))["update"].clone()
    };
    assert_eq!(counts(&update(&options)), [10, 1, 0, 0, 0]);
    assert_eq!(states(&arena, &["d/x.fecp"], 0), []);
    // The sidecar is inside the folder: neither it nor anything beside it is included.
    let within = ["d", "-o", "d/within.fecp"];
    fs::remove_file(arena.path("d/x.fecp")).unwrap();
    protect(&arena, &within);
    assert_eq!(update(&within)["written"], false);
    edit(&arena.path(note(3)), b"edited again");
    assert_eq!(counts(&update(&within)), [FILES - 1, 1, 0, 0, 0]);
    is_intact(&arena, "d/within.fecp");
    assert_eq!(update(&within)["written"], false);
    // A list, and a named base.
    arena.write("list", b"d/big\nd/middle\n");
    fs::create_dir(arena.path("away")).unwrap();
    let listed = ["--files-from", "list", "-o", "away/y.fecp", "--base", "."];
    protect(&arena, &listed);
    edit(&arena.path("d/middle"), &payload(2, 100 * BLOCK + 999));
    assert_eq!(counts(&update(&listed)), [1, 1, 0, 0, 0]);
    assert_eq!(states(&arena, &["away/y.fecp", "--base", "."], 0), []);
    // A new pattern that excludes protected files drops them, unless they are too many.
    let (arena, _) = protected(&[]);
    refused(&arena, &["--exclude", "notes"], 2, "-f");
    assert_eq!(
        counts(&appended(&arena, &["--exclude", "notes/../*3", "--exclude", "03"])),
        [FILES - 1, 0, 0, 0, 1]
    );
}

/// The sidecar lists names that not everybody may know.
#[test]
fn a_sidecar_keeps_its_permissions() {
    let (arena, _) = protected(&[]);
    set_mode(&arena.path("d.fecp"), 0o600);
    edit(&arena.path(note(1)), b"edited");
    appended(&arena, &[]);
    assert_eq!(fs::metadata(arena.path("d.fecp")).unwrap().mode() & 0o777, 0o600);
    anew(&arena, &["--sha256"]);
    assert_eq!(fs::metadata(arena.path("d.fecp")).unwrap().mode() & 0o777, 0o600, "made anew");
}

/// If a root is given, the sidecar has to have it now.
#[test]
fn a_root_has_to_be_that_of_the_sidecar() {
    let arena = Arena::new();
    plant(&arena);
    let old = protect(&arena, &["d"]);
    edit(&arena.path(note(3)), b"edited");
    refused(&arena, &["--root", &"07".repeat(32)], 5, "");
    let said = report(&arena, &["--root", &old]);
    let new = said["root"].as_str().unwrap();
    assert_ne!(new, old);
    let first = arena.read("d.fecp");
    edit(&arena.path(note(3)), b"edited again");
    arena.write("root", new.as_bytes());
    report(&arena, &["--root", "@root"]);
    is_protected(&arena);
    // The root of an earlier generation is not the current one, and nothing of the newer generation is cut off.
    edit(&arena.path(note(3)), b"edited once more");
    for before in [&old, new] {
        refused(&arena, &["--root", before], 5, "");
        let kept = arena.read("d.fecp");
        arena.run(["repair", "d.fecp", "--root", before]);
        assert!(arena.read("d.fecp") == kept);
    }
    // An earlier sidecar does not have that root.
    arena.write("d.fecp", &first);
    refused(&arena, &["--root", &"08".repeat(32)], 5, "");
}
