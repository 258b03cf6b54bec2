//! `fec protect --update`: only changes are coded, and the new state is protected.

use super::*;
use std::ffi::OsStr;

/// Bytes of a block of these sidecars.
pub(super) const BLOCK: usize = 4096;
/// The number of files that [`plant`] makes.
pub(super) const FILES: u64 = 22;

/// Makes a folder `d` of 22 files, links and folders. With 16 %, its 504 blocks are in three sets, and each set may
/// lose 27.
pub(super) fn plant(arena: &Arena) {
    arena.write("d/big", &payload(1, 200 * BLOCK));
    arena.write("d/middle", &payload(2, 100 * BLOCK + 1000));
    arena.write("d/other", &payload(3, 150 * BLOCK + 500));
    arena.write("d/sub/one", &payload(4, 50 * BLOCK + 2000));
    arena.write("d/sub/tool", &payload(5, 5000));
    arena.write("d/sub/empty", b"");
    (0..16).for_each(|nth| drop(arena.write(note(nth), &payload(100 + nth as u64, 300 + nth))));
    fs::create_dir(arena.path("d/void")).unwrap();
    symlink("big", arena.path("d/link")).unwrap();
    symlink("sub", arena.path("d/way")).unwrap();
    set_mode(&arena.path("d/sub/tool"), 0o750);
    for (nth, path) in files(arena).enumerate() {
        age(&path, nth as u64);
    }
}

/// The path of a small file, 0 to 15.
pub(super) fn note(nth: usize) -> String {
    format!("d/notes/{nth:02}")
}

/// The paths of all files.
fn files(arena: &Arena) -> impl Iterator<Item = PathBuf> {
    let (folder, all) = (arena.path("d"), seen(&arena.path("d")));
    let files = all.into_iter().filter(|(_, seen)| matches!(seen.what, What::File { .. }));
    files.map(move |(path, _)| folder.join(path))
}

/// Everything that a sidecar records of the folder: names, bytes and links, and the modes and times of files.
pub(super) fn state(arena: &Arena) -> BTreeMap<PathBuf, (What, Option<(u32, SystemTime)>)> {
    let stat = |seen: &Seen| match seen.what {
        What::File { .. } => Some((seen.mode, seen.modified)),
        _ => None,
    };
    seen(&arena.path("d")).into_iter().map(|(path, seen)| (path, (seen.what.clone(), stat(&seen)))).collect()
}

/// A planted folder and its sidecar.
pub(super) fn protected(options: &[&str]) -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    plant(&arena);
    protect(&arena, &[&["d"], options].concat());
    let sidecar = arena.read("d.fecp");
    (arena, sidecar)
}

/// Runs an update, which must succeed and only read `d`. Returns its report.
#[track_caller]
pub(super) fn report(arena: &Arena, options: &[&str]) -> Value {
    let args = [&["protect", "--update", "d", "--json", "--no-sync"], options].concat();
    let before = seen(&arena.path("d"));
    let report = json(&arena.expect(args, 0));
    assert!(seen(&arena.path("d")) == before, "what is protected is only read");
    arena.nothing_temporary();
    report
}

/// Runs an update, which must succeed and only append to the sidecar. Returns its report.
#[track_caller]
pub(super) fn appended(arena: &Arena, options: &[&str]) -> Value {
    let before = arena.read("d.fecp");
    let update = report(arena, options)["update"].clone();
    assert_eq!((&update["written"], &update["anew"]), (&true.into(), &Value::Null), "{update}");
    let after = arena.read("d.fecp");
    assert!(after.len() > before.len() && after.starts_with(&before), "nothing old is written again");
    assert!(after.len() < before.len() + before.len() / 4, "{} -> {}", before.len(), after.len());
    update
}

/// Runs an update that makes the sidecar anew. Returns the reason.
#[track_caller]
pub(super) fn anew(arena: &Arena, options: &[&str]) -> String {
    let update = report(arena, options)["update"].clone();
    assert_eq!((&update["written"], &update["generation"]), (&true.into(), &1.into()), "{update}");
    update["anew"].as_str().unwrap_or_else(|| panic!("{update}")).to_owned()
}

/// The numbers of files that are unchanged, changed, added, moved and gone.
pub(super) fn counts(update: &Value) -> [u64; 5] {
    ["unchanged", "changed", "added", "moved", "gone"].map(|key| update[key].as_u64().expect("a number"))
}

fn coded(update: &Value) -> u64 {
    update["coded_bytes"].as_u64().expect("a number")
}

/// Asserts that all files are intact, and that every third file comes back with its mode and time: small files from
/// nothing, others from rot.
#[track_caller]
pub(super) fn is_protected(arena: &Arena) {
    is_intact(arena, "d.fecp");
    let before = state(arena);
    // Each call tests other files.
    let first = arena.read("d.fecp").len() / 64 % 3;
    for path in files(arena).skip(first).step_by(3) {
        let (len, is_linked) = fs::metadata(&path).map(|meta| (meta.len(), meta.nlink() > 1)).unwrap();
        match len {
            0..8192 if !is_linked => fs::remove_file(&path).unwrap(),
            0 => {}
            _ => [0, len / 2, len - 1].into_iter().for_each(|at| flip(&path, at)),
        }
        let output = arena.run(["repair", "d.fecp", "--no-sync"]);
        assert_eq!(common::code(&output), 0, "{}: {}", path.display(), text(&output.stderr));
        assert!(state(arena) == before, "{} is another", path.display());
    }
    is_intact(arena, "d.fecp");
}

#[test]
fn nothing_changed_leaves_every_byte() {
    let (arena, _) = protected(&[]);
    let root = json(&arena.expect(["verify", "d.fecp", "--json"], 0))["root"].clone();
    let before = seen(&arena.work);
    let said = report(&arena, &[]);
    assert!(seen(&arena.work) == before);
    assert_eq!(said["root"], root);
    let update = &said["update"];
    assert_eq!((&update["written"], &update["generation"]), (&false.into(), &1.into()));
    assert_eq!((counts(update), coded(update)), ([FILES, 0, 0, 0, 0], 0));
    assert_eq!(root, changes_nothing(&arena, &["protect", "--update", "d", "-q"], 0).trim());
    edit(&arena.path(note(3)), b"edited");
    appended(&arena, &[]);
    let said = changes_nothing(&arena, &["protect", "--update", "d", "--json"], 0);
    let again: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&again["update"]["written"], &again["update"]["generation"]), (&false.into(), &2.into()));
}

#[test]
fn what_it_says_is_what_protect_says_and_more() {
    let (arena, _) = protected(&[]);
    edit(&arena.path(note(3)), b"edited");
    let said = report(&arena, &[]);
    let fresh = json(&arena.expect(["protect", "d", "-o", "fresh.fecp", "--json"], 0));
    let mut missing: Vec<_> =
        fresh.as_object().unwrap().keys().filter(|key| said.get(key).is_none()).collect();
    missing.retain(|key| *key != "seconds");
    assert!(missing.is_empty(), "{missing:?}");
    for key in
        ["files", "folders", "links", "payload_bytes", "block_bytes", "base", "command", "schema_version"]
    {
        assert_eq!(said[key], fresh[key], "{key}");
    }
    assert_eq!(said["sidecar_bytes"], arena.read("d.fecp").len());
    assert_eq!(said["root"], json(&arena.expect(["verify", "d.fecp", "--json"], 0))["root"]);
    let mut keys: Vec<_> = said["update"].as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let all = [
        "added",
        "anew",
        "changed",
        "coded_bytes",
        "generation",
        "gone",
        "gone_files",
        "moved",
        "unchanged",
        "written",
    ];
    assert_eq!(keys, all);
    arena.expect(["verify", "d.fecp", "--root", said["root"].as_str().unwrap()], 0);
}

/// The same bytes at another time are no change. Repair restores the new time.
#[test]
fn what_was_touched_is_unchanged_and_has_its_new_time() {
    let (arena, _) = protected(&[]);
    for path in ["d/big", "d/notes/03", "d/sub/empty"] {
        age(&arena.path(path), 5000);
    }
    let update = appended(&arena, &[]);
    assert_eq!(update["generation"], 2);
    assert_eq!((counts(&update), coded(&update)), ([FILES, 0, 0, 0, 0], 0));
    is_protected(&arena);
}

#[test]
fn an_edit_costs_the_blocks_that_it_hits() {
    let (arena, before) = protected(&[]);
    for (nth, block) in [7, 90, 150, 199].into_iter().enumerate() {
        let bytes = payload(9, if block == 90 { 2 * BLOCK } else { 10 });
        rot(&arena.path("d/big"), (block * BLOCK) as u64, &bytes);
        age(&arena.path("d/big"), 1000 + nth as u64);
        let update = appended(&arena, &[]);
        let blocks = if block == 90 { 2 } else { 1 };
        assert_eq!(counts(&update), [FILES - 1, 1, 0, 0, 0]);
        assert_eq!(coded(&update), blocks * BLOCK as u64, "block {block}");
        assert_eq!(update["generation"], nth + 2);
    }
    assert!(
        arena.read("d.fecp").len() < before.len() + 4 * (6 * BLOCK + 20_000),
        "the index, and the blocks"
    );
    is_protected(&arena);
}

/// Only tails that share a block with a changed file are coded anew.
#[test]
fn what_is_appended_or_cut_off_costs_no_more() {
    let (arena, _) = protected(&[]);
    let grown = [arena.read("d/big"), payload(8, BLOCK + 900)].concat();
    edit(&arena.path("d/big"), &grown);
    assert_eq!(coded(&appended(&arena, &[])), (BLOCK + 900) as u64);
    edit(&arena.path("d/middle"), &[arena.read("d/middle"), payload(8, 10)].concat());
    let update = appended(&arena, &[]);
    assert_eq!(counts(&update), [FILES - 1, 1, 0, 0, 0]);
    assert!((1010..=BLOCK as u64).contains(&coded(&update)), "{update}");
    edit(&arena.path("d/other"), &arena.read("d/other")[..148 * BLOCK + 7]);
    let update = appended(&arena, &[]);
    assert_eq!(counts(&update), [FILES - 1, 1, 0, 0, 0]);
    assert!((7..=BLOCK as u64).contains(&coded(&update)), "{update}");
    // The file shrinks to less than a tail, and to whole blocks.
    edit(&arena.path("d/sub/tool"), &payload(5, 5000)[..10]);
    appended(&arena, &[]);
    edit(&arena.path("d/sub/tool"), &payload(5, 5000)[..4096]);
    appended(&arena, &[]);
    is_protected(&arena);
}

#[test]
fn small_files_share_blocks_and_change_apart() {
    let (arena, _) = protected(&[]);
    for nth in [0, 5, 15] {
        edit(&arena.path(note(nth)), &payload(9, 200 + nth));
        let update = appended(&arena, &[]);
        assert_eq!(counts(&update), [FILES - 1, 1, 0, 0, 0]);
        assert!(coded(&update) <= BLOCK as u64, "{update}");
        is_intact(&arena, "d.fecp");
    }
    (0..16).for_each(|nth| edit(&arena.path(note(nth)), &payload(50 + nth as u64, 310)));
    assert_eq!(counts(&appended(&arena, &[])), [FILES - 16, 16, 0, 0, 0]);
    is_protected(&arena);
}

#[test]
fn what_is_new_is_added() {
    let (arena, _) = protected(&[]);
    arena.write("d/new/whole", &payload(20, 8 * BLOCK));
    arena.write("d/new/small", b"small");
    arena.write("d/new/empty", b"");
    fs::create_dir(arena.path("d/new/folder")).unwrap();
    symlink("whole", arena.path("d/new/link")).unwrap();
    fs::hard_link(arena.path("d/new/whole"), arena.path("d/new/again")).unwrap();
    let said = report(&arena, &[]);
    let [unchanged, changed, _, moved, gone] = counts(&said["update"]);
    assert_eq!([unchanged, changed, moved, gone], [FILES, 0, 0, 0]);
    assert_eq!(coded(&said["update"]), 8 * BLOCK as u64 + 5);
    assert_eq!((&said["folders"], &said["links"]), (&6.into(), &4.into()));
    is_protected(&arena);
    // Only links and folders change.
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("other", arena.path("d/link")).unwrap();
    fs::remove_dir(arena.path("d/void")).unwrap();
    assert_eq!(coded(&appended(&arena, &[])), 0);
    is_protected(&arena);
}

#[test]
fn what_was_moved_keeps_its_blocks() {
    let (arena, _) = protected(&[]);
    let rename = |from: &str, to: &str| fs::rename(arena.path(from), arena.path(to)).unwrap();
    rename("d/big", "d/renamed");
    rename("d/notes/03", "d/sub/03");
    let update = appended(&arena, &[]);
    assert_eq!((counts(&update), coded(&update)), ([FILES - 2, 0, 0, 2, 0], 0));
    is_protected(&arena);
    // A folder moves with all that is in it.
    rename("d/notes", "d/void/notes");
    let update = appended(&arena, &[]);
    assert_eq!((counts(&update), coded(&update)), ([FILES - 15, 0, 0, 15, 0], 0));
    is_protected(&arena);
}

/// A folder with empty files may be moved like any other.
#[test]
fn empty_files_that_were_moved_are_not_gone() {
    let arena = Arena::new();
    plant(&arena);
    (0..10).for_each(|nth| drop(arena.write(format!("d/package/{nth}/empty"), b"")));
    protect(&arena, &["d"]);
    fs::rename(arena.path("d/package"), arena.path("d/renamed")).unwrap();
    let update = appended(&arena, &[]);
    assert_eq!(counts(&update)[4], 0, "{update}");
    is_protected(&arena);
}

#[test]
fn names_may_be_swapped() {
    let (arena, _) = protected(&[]);
    for (one, two) in [("d/big", "d/other"), ("d/notes/01", "d/notes/02")] {
        fs::rename(arena.path(one), arena.path("d/x")).unwrap();
        fs::rename(arena.path(two), arena.path(one)).unwrap();
        fs::rename(arena.path("d/x"), arena.path(two)).unwrap();
        let update = appended(&arena, &[]);
        assert_eq!((counts(&update), coded(&update)), ([FILES - 2, 0, 0, 2, 0], 0));
        is_protected(&arena);
    }
}

#[test]
fn logs_are_rotated() {
    let (arena, _) = protected(&[]);
    for (nth, log) in ["d/sub/one", "d/notes/07", "d/sub/one"].into_iter().enumerate() {
        (0..nth).rev().for_each(|old| {
            fs::rename(arena.path(format!("{log}.{old}")), arena.path(format!("{log}.{}", old + 1))).ok();
        });
        fs::rename(arena.path(log), arena.path(format!("{log}.0"))).unwrap();
        fs::write(arena.path(log), payload(60 + nth as u64, 700)).unwrap();
        age(&arena.path(log), 1000 + nth as u64);
        let update = appended(&arena, &[]);
        assert!(coded(&update) <= 700, "{update}");
        let [_, changed, added, moved, gone] = counts(&update);
        assert!(changed + added == 1 && moved >= 1 && gone == 0, "{update}");
        is_protected(&arena);
    }
}

/// A file becomes a folder, a link and another name of a file. Each becomes a file again.
#[test]
fn what_changes_its_kind_is_protected_as_what_it_is() {
    let (arena, _) = protected(&[]);
    let path = arena.path("d/notes/04");
    let (bytes, time) = (arena.read("d/notes/04"), fs::metadata(&path).unwrap().modified().unwrap());
    let kinds: [&dyn Fn(); 3] = [
        &|| fs::create_dir(&path).and_then(|()| fs::write(path.join("inside"), b"inside")).unwrap(),
        &|| symlink("../big", &path).unwrap(),
        &|| fs::hard_link(arena.path("d/other"), &path).unwrap(),
    ];
    for (nth, kind) in kinds.iter().enumerate() {
        fs::remove_file(&path).unwrap();
        kind();
        report(&arena, &[]);
        is_protected(&arena);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        arena.write("d/notes/04", &bytes);
        File::open(&path).and_then(|file| file.set_modified(time)).unwrap();
        report(&arena, &[]);
        is_protected(&arena);
        assert_eq!(arena.read("d/notes/04"), bytes, "kind {nth}");
    }
}

#[test]
fn a_file_with_two_names_may_lose_the_first() {
    let arena = Arena::new();
    plant(&arena);
    for (name, again) in [("d/big", "d/void/big"), ("d/notes/02", "d/void/02")] {
        fs::hard_link(arena.path(name), arena.path(again)).unwrap();
    }
    protect(&arena, &["d"]);
    fs::remove_file(arena.path("d/big")).unwrap();
    fs::remove_file(arena.path("d/notes/02")).unwrap();
    assert_eq!(coded(&appended(&arena, &[])), 0, "its bytes are there");
    is_protected(&arena);
    // A name is added before it, and a name behind it.
    fs::hard_link(arena.path("d/void/big"), arena.path("d/a")).unwrap();
    fs::hard_link(arena.path("d/void/big"), arena.path("d/zoo")).unwrap();
    assert_eq!(coded(&appended(&arena, &[])), 0);
    is_protected(&arena);
    assert_eq!(fs::metadata(arena.path("d/zoo")).unwrap().nlink(), 3);
}

#[test]
fn permissions_are_recorded_anew() {
    let (arena, _) = protected(&[]);
    set_mode(&arena.path("d/notes/01"), 0o600);
    set_mode(&arena.path("d/big"), 0o640);
    assert_eq!(coded(&appended(&arena, &[])), 0);
    is_protected(&arena);
    // Only the right to execute changes.
    set_mode(&arena.path("d/notes/01"), 0o700);
    set_mode(&arena.path("d/sub/tool"), 0o640);
    assert_eq!(coded(&appended(&arena, &[])), 0);
    is_protected(&arena);
}

#[test]
fn names_may_be_any_bytes() {
    let (arena, _) = protected(&[]);
    let odd = [&b"caf\xe9"[..], b"\xff\xfe\n", b"a\\b", b" "]
        .map(|name| arena.path("d/notes").join(OsStr::from_bytes(name)));
    for (nth, path) in odd.iter().enumerate() {
        fs::write(path, payload(80 + nth as u64, 3000 * nth + 10)).unwrap();
    }
    assert_eq!(counts(&appended(&arena, &[])), [FILES, 0, 4, 0, 0]);
    is_protected(&arena);
    fs::write(&odd[0], b"edited").unwrap();
    fs::rename(&odd[1], arena.path("d").join(OsStr::from_bytes(b"\x80"))).unwrap();
    fs::remove_file(&odd[2]).unwrap();
    assert_eq!(counts(&report(&arena, &[])["update"]), [FILES + 1, 1, 0, 1, 1]);
    is_protected(&arena);
}
