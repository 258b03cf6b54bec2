//! `fec protect`, and `verify` and `repair` of sidecars, as users, broken disks and attackers meet them.

mod advice;
mod campaign;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod doors;
mod everyday;
mod forge;
mod hostile;
mod interrupted;
mod limits;
mod links;
mod places;
#[path = "../../../fec-sidecar/tests/recode/mod.rs"]
mod recode;
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

use common::{Arena, expect, payload, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime};

/// The object at a path, as far as a sidecar records it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Folder,
    File { bytes: Vec<u8>, may_execute: bool },
    Link(PathBuf),
    Special,
}

/// The object at a path, with its mode, times and inode.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    what: What,
    mode: u32,
    modified: SystemTime,
    changed: (i64, i64),
    inode: u64,
}

/// All entries of a folder by relative path, without following links. Empty if the folder does not exist.
fn seen(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(place) = left.pop().filter(|place| place.exists()) {
        for entry in fs::read_dir(&place).expect("a folder") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let what = if meta.is_dir() {
                left.push(path.clone());
                What::Folder
            } else if meta.is_symlink() {
                What::Link(fs::read_link(&path).expect("a link"))
            } else if meta.is_file() {
                let bytes = fs::read(&path).expect("a file");
                What::File { bytes, may_execute: meta.mode() & 0o100 != 0 }
            } else {
                What::Special
            };
            let seen = Seen {
                what,
                mode: meta.mode() & 0o7777,
                modified: meta.modified().expect("a time"),
                changed: (meta.ctime(), meta.ctime_nsec()),
                inode: meta.ino(),
            };
            found.insert(path.strip_prefix(folder).expect("it lies in it").to_path_buf(), seen);
        }
    }
    found
}

/// All that a sidecar protects in a folder, without times and inodes.
fn tree(folder: &Path) -> BTreeMap<PathBuf, What> {
    seen(folder).into_iter().map(|(path, seen)| (path, seen.what)).collect()
}

/// Changes bytes of a file as a broken disk would: the file keeps its time.
fn rot(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().read(true).write(true).open(path).expect("the file is there");
    let modified = file.metadata().and_then(|meta| meta.modified()).expect("a time");
    file.write_all_at(bytes, at).expect("the file can be written");
    file.set_modified(modified).expect("its time can be set");
}

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

/// Flips a bit of a file, which keeps its time.
fn flip(path: &Path, at: u64) {
    let mut byte = [0];
    File::open(path).and_then(|file| file.read_exact_at(&mut byte, at)).expect("the byte is there");
    rot(path, at, &[byte[0] ^ 0x10]);
}

/// Changes a file as a user would: its time changes.
fn edit(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("the file can be written");
    age(path, 1000);
}

/// Sets the time of a file to some seconds after a fixed time in the past.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000 + seconds);
    File::open(path).and_then(|file| file.set_modified(time)).expect("its time can be set");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode can be set");
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
