//! `fec protect --update`: only changes are coded, and the new state is protected.

#[path = "../../../fec-sidecar/tests/support/planted.rs"]
mod planted;

use super::*;
pub(super) use planted::{BLOCK, FILES, every_third_comes_back, note, plant};

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
    every_third_comes_back(arena, |path| {
        let output = arena.run(["repair", "d.fecp", "--no-sync"]);
        assert_eq!(common::code(&output), 0, "{}: {}", path.display(), text(&output.stderr));
    });
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
        "held",
        "joined",
        "moved",
        "not_retired",
        "retired_bytes",
        "unchanged",
        "written",
    ];
    assert_eq!(keys, all);
    arena.expect(["verify", "d.fecp", "--root", said["root"].as_str().unwrap()], 0);
}
