//! `fec protect`, and `verify` and `repair` of sidecars, as users, broken disks and attackers meet them.

mod advice;
mod campaign;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod doors;
mod everyday;
#[path = "../../../fec-sidecar/tests/support/files.rs"]
mod files;
mod forge;
mod grows;
mod hostile;
mod interrupted;
mod left_out;
mod limits;
mod parts;
mod permissions;
mod places;
mod policy;
#[path = "../../../fec-sidecar/tests/recode/mod.rs"]
mod recode;
mod renamed;
mod retired;
mod scrub;
mod sealed;
mod several;
mod sidecars;
mod trust;
mod undo;
mod update;
mod update_attacks;
mod update_limits;
mod update_sidecars;
mod verdicts;

use common::{Arena, expect, payload, text};
use files::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

/// Makes a sidecar younger than all files in a folder. The system records the writes of [`rot`], but not those of a
/// broken disk.
fn make_younger(arena: &Arena, sidecar: &str, folder: &str) {
    let path = arena.path(sidecar);
    let latest = seen(&arena.path(folder)).values().map(|seen| seen.changed).max();
    let changed = || fs::metadata(&path).map(|meta| (meta.ctime(), meta.ctime_nsec())).expect("it is there");
    while Some(changed()) <= latest {
        std::thread::sleep(Duration::from_millis(2));
        let permissions = fs::metadata(&path).expect("it is there").permissions();
        fs::set_permissions(&path, permissions).expect("it is one's own");
    }
}

/// The JSON object that a run printed.
#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// The paths and states of entries that verify reports as not intact. Asserts the exit code.
#[track_caller]
fn states(arena: &Arena, args: &[&str], exit: i32) -> Vec<(String, String)> {
    let output = arena.run([&["verify", "--json"], args].concat());
    expect(&output, exit);
    let report = json(&output);
    let word = |file: &Value, key: &str| file[key].as_str().expect("a word").to_owned();
    let files = report["files"].as_array().expect("a list").iter();
    files.map(|file| (word(file, "path"), word(file, "state"))).collect()
}

#[track_caller]
fn is_intact(arena: &Arena, sidecar: &str) {
    expect(&arena.run(["verify", sidecar, "-q"]), 0);
}

/// A path and a state, as [`states`] returns them.
fn pair(path: &str, state: &str) -> (String, String) {
    (path.to_owned(), state.to_owned())
}

/// Runs `fec`, which must end with this code and change nothing below the work folder.
#[track_caller]
fn changes_nothing(arena: &Arena, args: &[&str], exit: i32) -> String {
    let before = seen(&arena.work);
    let output = arena.run(args);
    expect(&output, exit);
    assert!(seen(&arena.work) == before, "{args:?} changed something");
    text(&output.stderr) + &text(&output.stdout)
}

/// The root that `protect` prints.
#[track_caller]
fn protect(arena: &Arena, args: &[&str]) -> String {
    common::root(&arena.run([&["protect", "-q"], args].concat()))
}

/// Makes a folder `d` with entries of all kinds: six files, one of them of 20 blocks, folders and links.
fn furnish(arena: &Arena) {
    arena.write("d/large", &payload(1, 20_481));
    arena.write("d/small", &payload(2, 700));
    arena.write("d/empty", b"");
    arena.write("d/sub/deep/nested", &payload(3, 5000));
    arena.write("d/sub/tool", &payload(4, 1024));
    arena.write("d/sub/twin", &payload(1, 20_481));
    set_mode(&arena.path("d/sub/tool"), 0o750);
    fs::create_dir(arena.path("d/void")).unwrap();
    symlink("small", arena.path("d/link")).unwrap();
    symlink("nowhere/at all", arena.path("d/dangling")).unwrap();
    symlink("sub", arena.path("d/way")).unwrap();
    for (seconds, (path, seen)) in seen(&arena.path("d")).iter().enumerate() {
        if !matches!(seen.what, What::Link(_)) {
            age(&arena.path("d").join(path), seconds as u64);
        }
    }
}
