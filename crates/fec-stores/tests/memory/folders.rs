//! Folders as stores: what is put is there whole or not at all, and nothing is made where nothing was mounted.

use fec_stores::StoreError;
use fec_stores::call::{Call, CallOptions, Cancel, Pace};
use fec_stores::folder::FolderStore;
use fec_stores::object::{ObjectInfo, ObjectStore, Put};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// Runs a call with these permissions for new objects.
fn call<T>(permissions: u32, cancel: &Cancel, run: impl FnOnce(&Call<'_>) -> T) -> T {
    let (options, pace) = (CallOptions::default(), Pace::default());
    run(&Call { options: &options, cancel, pace: &pace, permissions })
}

fn plain<T>(run: impl FnOnce(&Call<'_>) -> T) -> T {
    call(0o644, &Cancel::default(), run)
}

/// A store in a folder, and the folder above it.
fn store() -> (tempfile::TempDir, FolderStore, PathBuf) {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("store");
    (home, FolderStore::new("shelf", &path, false), path)
}

fn put(store: &FolderStore, key: &str, bytes: &[u8]) -> Result<Put, StoreError> {
    plain(|call| store.put(key, &bytes, bytes.len() as u64, call))
}

fn listed(store: &FolderStore, prefix: &str) -> Result<Vec<(String, u64)>, StoreError> {
    let found = plain(|call| store.list(prefix, call))?;
    let mut found: Vec<_> = found.into_iter().map(|ObjectInfo { key, size, .. }| (key, size)).collect();
    found.sort();
    Ok(found)
}

#[test]
fn objects_come_back_whole_and_in_part() {
    let (_home, store, path) = store();
    let bytes: Vec<u8> = (0..2_500_000u32).map(|at| (at >> 3) as u8).collect();
    assert_eq!(store.name(), "shelf");
    assert_eq!(put(&store, "ab/cd/object", &bytes), Ok(Put::Created));
    assert!(fs::read(path.join("ab/cd/object")).unwrap() == bytes);
    // An object that is there stays as it is.
    assert_eq!(put(&store, "ab/cd/object", b"other"), Ok(Put::Existed));
    let head = plain(|call| store.head("ab/cd/object", call)).unwrap();
    assert_eq!((head.key.as_str(), head.size, head.etag), ("ab/cd/object", 2_500_000, None));
    let (mega, all) = (1u64 << 20, bytes.len() as u64);
    for range in [0..0, 0..1, 0..all, mega - 1..mega + 1, mega..2 * mega, all - 1..all, 7..2 * mega + 9] {
        let part = plain(|call| store.read("ab/cd/object", range.clone(), call)).unwrap();
        assert!(part == bytes[range.start as usize..range.end as usize], "{range:?}");
    }
    assert!(plain(|call| store.read("ab/cd/object", 0..all + 1, call)).is_err(), "it is shorter");
    // A receiver that has enough ends it with its own words.
    let mut stop = |_: &[u8]| Err(io::Error::other("no room here"));
    let ended = plain(|call| store.get("ab/cd/object", 0..10, &mut stop, call));
    assert!(matches!(ended, Err(StoreError::Sink(why)) if why.contains("no room here")));
    assert_eq!(plain(|call| store.delete("ab/cd/object", call)), Ok(()));
    assert_eq!(plain(|call| store.delete("ab/cd/object", call)), Ok(()), "it is gone already");
    assert_eq!(plain(|call| store.head("ab/cd/object", call)), Err(StoreError::NotFound));
    assert_eq!(put(&store, "empty", b""), Ok(Put::Created));
    assert_eq!(plain(|call| store.head("empty", call)).unwrap().size, 0);
}

#[test]
fn lists_have_what_is_wanted_and_nothing_else() {
    let (home, store, path) = store();
    assert_eq!(listed(&store, "a/"), Err(StoreError::NotFound), "the place itself is not there");
    for key in ["a/1", "a/b/2", "a/b/c/3", "d/4"] {
        put(&store, key, key.as_bytes()).unwrap();
    }
    // Unfinished puts, links, and folders that are too deep are no objects.
    fs::write(path.join("a/.fec-1.tmp"), b"half").unwrap();
    symlink("1", path.join("a/link")).unwrap();
    let deep = path.join("a").join("x/".repeat(9));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("lost"), b"").unwrap();
    let shallow = path.join("a").join("y/".repeat(8));
    fs::create_dir_all(&shallow).unwrap();
    fs::write(shallow.join("found"), b"1234567").unwrap();
    let expected = [("a/1", 3), ("a/b/2", 5), ("a/b/c/3", 7), ("a/y/y/y/y/y/y/y/y/found", 7)];
    assert_eq!(listed(&store, "a/").unwrap(), expected.map(|(key, size)| (key.to_owned(), size)));
    assert_eq!(listed(&store, "absent/"), Ok(vec![]), "an encoding that is not there is no error");
    let some = plain(|call| store.list_wanted("a/", |key| key.ends_with('2'), call)).unwrap();
    assert_eq!(some.iter().map(|object| object.key.as_str()).collect::<Vec<_>>(), ["a/b/2"]);
    // The place is a file, or is gone.
    fs::write(home.path().join("file"), b"").unwrap();
    let file = FolderStore::new("file", home.path().join("file"), false);
    assert!(matches!(listed(&file, "a/"), Err(StoreError::Failed(why)) if why == "it is no folder"));
    // A stopped list is none.
    let cancel = Cancel::default();
    cancel.cancel();
    assert_eq!(call(0o644, &cancel, |call| store.list("a/", call)), Err(StoreError::Cancelled));
}

/// Nothing is made above the store's own folder: a disk that is not mounted must be noticed.
#[test]
fn a_place_that_is_not_mounted_is_noticed() {
    let home = tempfile::tempdir().unwrap();
    let store = FolderStore::new("disk", home.path().join("mnt/disk"), false);
    assert_eq!(put(&store, "a/1", b"bytes"), Err(StoreError::NotFound));
    assert!(!home.path().join("mnt").exists());
    fs::create_dir(home.path().join("mnt")).unwrap();
    assert_eq!(put(&store, "a/1", b"bytes"), Ok(Put::Created), "the last folder is made");
}

/// Readers of the objects may search the folders, and nobody else may.
#[test]
fn folders_are_as_open_as_the_objects_in_them() {
    for (permissions, folder) in [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755), (0o400, 0o700)] {
        let (_home, store, path) = store();
        let done = call(permissions, &Cancel::default(), |call| store.put("new/object", &&b"1"[..], 1, call));
        assert_eq!(done, Ok(Put::Created));
        let mode = |name: &str| fs::metadata(path.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("new"), mode("new/object")), (folder, permissions), "{permissions:o}");
    }
}

/// Leftovers of killed runs go with the next put into their folder. A put that is stopped leaves none.
#[test]
fn nothing_half_done_stays() {
    let (_home, store, path) = store();
    put(&store, "a/1", b"1").unwrap();
    let cancel = Cancel::default();
    cancel.cancel();
    let bytes = vec![7u8; 3 << 20];
    let stopped = call(0o644, &cancel, |call| store.put("a/2", &&bytes[..], bytes.len() as u64, call));
    assert_eq!(stopped, Err(StoreError::Cancelled));
    let got = call(0o644, &cancel, |call| store.read("a/1", 0..1, call));
    assert_eq!(got, Err(StoreError::Cancelled));
    let names: Vec<_> =
        fs::read_dir(path.join("a")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["1"]);
    // A body that is shorter than it claims is no object.
    assert!(matches!(plain(|call| store.put("a/3", &&b"12"[..], 3, call)), Err(StoreError::Sink(_))));
    assert!(!path.join("a/3").exists());
    // A folder in the place of the object is a failure, not the object.
    fs::create_dir(path.join("a/folder")).unwrap();
    assert!(plain(|call| store.delete("a/folder", call)).is_err());
    assert_eq!(plain(|call| store.head("a/folder", call)), Err(StoreError::NotFound));
}
