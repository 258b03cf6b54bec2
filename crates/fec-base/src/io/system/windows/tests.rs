use super::*;
use crate::io::look::Over;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        list(folder).unwrap().into_iter().map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

fn look_at(path: &Path) -> Look {
    look(&File::open(path).unwrap()).unwrap().unwrap()
}

fn kind<T: std::fmt::Debug>(done: io::Result<T>) -> io::ErrorKind {
    done.unwrap_err().kind()
}

#[test]
fn a_taken_name_is_not_given() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("new"), b"new").unwrap();
    fs::write(at("old"), b"precious").unwrap();
    fs::create_dir_all(at("folder/with")).unwrap();
    for taken in ["old", "OLD", "folder"] {
        assert_eq!(
            kind(rename(&at("new"), &at(taken), Over::Nothing)),
            io::ErrorKind::AlreadyExists,
            "{taken}"
        );
    }
    assert_eq!(kind(rename(&at("nothing"), &at("at all"), Over::Nothing)), io::ErrorKind::NotFound);
    rename(&at("new"), &at("free"), Over::Nothing).unwrap();
    rename(&at("folder"), &at("other"), Over::Nothing).unwrap();
    assert_eq!(names(place.path()), ["free", "old", "other"]);
    assert_eq!(
        (fs::read(at("old")).unwrap(), fs::read(at("free")).unwrap()),
        (b"precious".to_vec(), b"new".to_vec())
    );
}

/// Files that are open elsewhere, and the new file itself, are renamed and replaced all the same.
#[test]
fn any_file_is_replaced_although_it_is_open() {
    for is_open in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("old"), b"old").unwrap();
        fs::create_dir(at("folder")).unwrap();
        let new = create_new(&at("new"), 0o666).unwrap();
        write_all_at(&new, b"new", 0).unwrap();
        let open = is_open.then(|| File::open(at("old")).unwrap());
        rename(&at("new"), &at("old"), Over::Anything).unwrap();
        assert_eq!(fs::read(at("old")).unwrap(), b"new");
        if let Some(mut open) = open {
            let mut bytes = Vec::new();
            open.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, b"old", "who has it open has it still");
        }
        assert_eq!(names(place.path()), ["folder", "old"]);
        rename(&at("old"), &at("folder"), Over::Anything).unwrap_err();
        assert_eq!(names(place.path()), ["folder", "old"]);
    }
}

#[test]
fn only_the_known_file_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("new"), b"new").unwrap();
    fs::write(at("old"), b"examined").unwrap();
    let reader = File::open(at("old")).unwrap();
    let known = look(&reader).unwrap().unwrap();
    fs::write(at("saved"), b"preciouS").unwrap();
    fs::remove_file(at("old")).ok();
    drop(reader);
    fs::rename(at("saved"), at("old")).unwrap();
    let replace = |known| rename(&at("new"), &at("old"), Over::Known(known));
    assert_eq!(kind(replace(known)), io::ErrorKind::AlreadyExists, "another file is there");
    let known = look_at(&at("old"));
    fs::write(at("old"), b"preciouZ").unwrap();
    assert_eq!(kind(replace(known)), io::ErrorKind::AlreadyExists, "it was written to");
    assert_eq!(fs::read(at("old")).unwrap(), b"preciouZ");
    let known = look_at(&at("old"));
    let writer = OpenOptions::new().append(true).open(at("old")).unwrap();
    replace(known).unwrap_err();
    drop(writer);
    assert_eq!(fs::read(at("old")).unwrap(), b"preciouZ", "somebody has it open for writing");
    replace(look_at(&at("old"))).unwrap();
    assert_eq!(
        (names(place.path()), fs::read(at("old")).unwrap()),
        (vec!["old".to_owned()], b"new".to_vec())
    );
    fs::write(at("newer"), b"newer").unwrap();
    fs::remove_file(at("old")).unwrap();
    rename(&at("newer"), &at("old"), Over::Known(known)).unwrap();
    assert_eq!(names(place.path()), ["old"]);
}

/// Somebody saves another file under the name, at any moment of the renaming. It is there in the end, never the new
/// one.
#[test]
fn a_file_that_somebody_saves_in_the_middle_is_not_replaced() {
    for round in 0..40u32 {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("old"), b"examined").unwrap();
        fs::write(at("new"), b"new").unwrap();
        let known = look_at(&at("old"));
        let has_begun = AtomicBool::new(false);
        let (done, saved) = std::thread::scope(|scope| {
            let saver = scope.spawn(|| {
                fs::write(at("saved"), b"saved").unwrap();
                has_begun.store(true, Ordering::SeqCst);
                (0..round * 100).for_each(|_| std::hint::spin_loop());
                // A program saves over what is there, or fails and tells its user.
                fs::rename(at("saved"), at("old")).is_ok()
            });
            while !has_begun.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            (rename(&at("new"), &at("old"), Over::Known(known)), saver.join().unwrap())
        });
        let found = fs::read(at("old")).unwrap_or_default();
        match (&done, saved) {
            // Saved before or after: what was saved is never lost.
            (_, true) => assert_eq!(found, b"saved", "{done:?}"),
            (Ok(()), false) => assert_eq!(found, b"new"),
            (Err(_), false) => assert_eq!(found, b"examined"),
        }
    }
}

#[test]
fn two_threads_cannot_both_get_a_name() {
    for _ in 0..40 {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["a", "b"] {
            fs::write(at(name), name).unwrap();
        }
        let won: Vec<bool> = std::thread::scope(|scope| {
            let give = |name| scope.spawn(move || rename(&at(name), &at("name"), Over::Nothing).is_ok());
            ["a", "b"].map(give).into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
        let expected = if won[0] { ("a", "b") } else { ("b", "a") };
        assert_eq!(fs::read_to_string(at("name")).unwrap(), expected.0);
        assert_eq!(fs::read_to_string(at(expected.1)).unwrap(), expected.1);
    }
}

#[test]
fn a_folder_takes_the_place_of_an_empty_one_alone() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in ["new", "empty", "full"] {
        fs::create_dir(at(folder)).unwrap();
    }
    fs::write(at("new/a"), b"a").unwrap();
    fs::write(at("full/precious"), b"precious").unwrap();
    assert_eq!(kind(rename_folder(&at("new"), &at("full"))), io::ErrorKind::DirectoryNotEmpty);
    let open = open_folder(&at("new")).unwrap();
    rename_folder(&at("new"), &at("empty")).unwrap();
    assert!(at("empty/a").exists() && at("full/precious").exists() && !at("new").exists());
    drop(open);
    exchange(&at("empty"), &at("full")).unwrap();
    assert!(at("full/a").exists() && at("empty/precious").exists());
    assert_eq!(names(place.path()), ["empty", "full"]);
    // A file in it is open without leave to move it.
    let _open = OpenOptions::new().read(true).share_mode(0).open(at("empty/precious")).unwrap();
    if exchange(&at("full"), &at("empty")).is_err() {
        assert!(at("full/a").exists() && at("empty/precious").exists());
    }
    assert_eq!(names(place.path()), ["empty", "full"]);
    assert_eq!(kind(exchange(&at("nothing"), &at("full"))), io::ErrorKind::NotFound);
}

#[test]
fn files_move_between_folders() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in ["from", "to"] {
        fs::create_dir(at(folder)).unwrap();
    }
    let moved: Vec<OsString> = ["a", "b"].map(OsString::from).into();
    moved.iter().for_each(|name| fs::write(at("from").join(name), b"new").unwrap());
    fs::write(at("to/b"), b"old").unwrap();
    let to = |over| move_files(&moved, &at("from"), &at("to"), over);
    assert_eq!(kind(to(Over::Nothing)), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(at("to/b")).unwrap(), b"old");
    move_files(&moved[1..], &at("from"), &at("to"), Over::Anything).unwrap();
    assert_eq!((names(&at("from")), names(&at("to"))), (vec![], vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(fs::read(at("to/b")).unwrap(), b"new");
    move_files(&moved, &at("to/a"), &at("to"), Over::Nothing).unwrap_err();
}

#[test]
fn names_that_lead_elsewhere_get_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("file"), b"bytes").unwrap();
    for name in ["file:stream", "NUL", "con.txt", "dot.", "space ", "what?"] {
        let refused = io::ErrorKind::InvalidInput;
        assert_eq!(kind(create_new(&at(name), 0o666)), refused, "{name}");
        assert_eq!(kind(create_new(&at(name), 0o600)), refused, "{name}");
        assert_eq!(kind(create_folder(&at(name), 0o777)), refused, "{name}");
        assert_eq!(kind(create_folders(&at(name).join("deep"), 0o777)), refused, "{name}");
        assert_eq!(kind(rename(&at("file"), &at(name), Over::Anything)), refused, "{name}");
    }
    assert_eq!(name_of(b"a:b".to_vec()), None);
    assert_eq!(name_of(vec![0xff]), None);
    assert_eq!(name_of(b"fine".to_vec()), Some("fine".into()));
    assert_eq!(path_of(b"C:\\folder\\file".to_vec()), Some("C:\\folder\\file".into()));
    assert_eq!(names(place.path()), ["file"]);
    let is_same = |one: &str, other: &str| folded(one.as_ref()) == folded(other.as_ref());
    assert!(is_same("größe.TAR", "GRößE.tar") && !is_same("größe", "GRÖSSE") && !is_same("a", "b"));
    assert!(open_at_once(Path::new("NUL")).is_err(), "it is no file");
    assert!(room(Path::new(r"\\.\NUL")).is_err());
}

#[test]
fn paths_are_whole_and_of_any_length() {
    let text = |path: &str| wide_text(Path::new(path));
    assert_eq!(text(r"C:\a\b"), r"\\?\C:\a\b");
    assert_eq!(text(r"C:/a/../b/"), r"\\?\C:\b");
    assert_eq!(text(r"C:\"), r"\\?\C:\");
    assert_eq!(text(r"\\server\share\a"), r"\\?\UNC\server\share\a");
    assert_eq!(text(r"\\?\C:\a"), r"\\?\C:\a");
    assert!(handle::wide(Path::new(r"\\.\NUL")).is_err());
    assert!(handle::wide(Path::new("a\0b")).is_err());
    let place = tempfile::tempdir().unwrap();
    let deep = (0..5).fold(place.path().to_path_buf(), |path, _| path.join("x".repeat(80)));
    create_folders(&deep, 0o777).unwrap();
    drop(create_new(&deep.join("secret"), 0o600).unwrap());
    rename(&deep.join("secret"), &deep.join("moved"), Over::Nothing).unwrap();
    assert_eq!(names(&deep), ["moved"]);
}

fn wide_text(path: &Path) -> String {
    let units = handle::wide(path).unwrap();
    String::from_utf16(units.strip_suffix(&[0]).unwrap()).unwrap()
}

#[test]
fn a_file_is_its_owner_s_and_a_secret_its_owner_s_alone() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let mut secret = create_new(&at("secret"), 0o600).unwrap();
    secret.write_all(b"key").unwrap();
    assert_eq!(kind(create_new(&at("secret"), 0o600)), io::ErrorKind::AlreadyExists);
    drop(secret);
    assert_eq!(fs::read(at("secret")).unwrap(), b"key");
    let shared = create_new(&at("shared"), 0o666).unwrap();
    create_folder(&at("private"), 0o700).unwrap();
    create_folders(&at("a/b/c"), 0o700).unwrap();
    drop(create_new(&at("a/b/c/file"), 0o640).unwrap());
    let is_alone =
        |name: &str| security::is_for_owner_alone(&open_itself(&at(name), GENERIC_READ, ALL).unwrap());
    for name in ["secret", "private", "a", "a/b/c", "a/b/c/file"] {
        assert!(is_alone(name).unwrap(), "{name}");
        let file = open_itself(&at(name), GENERIC_READ, ALL).unwrap();
        assert!(is_own(&file.metadata().unwrap(), Some(&file)).unwrap(), "{name}");
    }
    assert!(!is_alone("shared").unwrap());
    set_mode(&shared, 0o600).unwrap();
    assert!(is_alone("shared").unwrap());
    assert_eq!(kind(set_mode(&shared, 0o644)), io::ErrorKind::Unsupported);
    let meta = fs::metadata(at("secret")).unwrap();
    let new = create_new(&at("new"), 0o666).unwrap();
    keep_mode(&new, (&at("secret"), &meta)).unwrap();
    assert!(is_alone("new").unwrap(), "it is as secret as what it replaces");
    keep_mode_of_folder(&at("a"), (&at("private"), &meta)).unwrap();
    assert!(is_alone("a").unwrap());
}

#[test]
fn a_file_that_may_only_be_read_is_not_replaced() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("old");
    fs::write(&path, b"old").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions.clone()).unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(mode(&meta), 0o100_444);
    let new = create_new(&place.path().join("new"), 0o600).unwrap();
    assert_eq!(kind(keep_mode(&new, (&path, &meta))), io::ErrorKind::PermissionDenied);
    #[allow(clippy::permissions_set_readonly_false, reason = "there are no classes of users here")]
    permissions.set_readonly(false);
    fs::set_permissions(&path, permissions).unwrap();
}

#[test]
fn a_file_that_changes_is_known_by_its_look_and_its_times() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    fs::write(&path, b"one").unwrap();
    let file = File::open(&path).unwrap();
    let meta = file.metadata().unwrap();
    let (look_before, times_before) = (look(&file).unwrap(), times(&file, &meta).unwrap());
    assert_eq!((look(&file).unwrap(), times(&file, &meta).unwrap()), (look_before, times_before));
    std::thread::sleep(std::time::Duration::from_millis(30));
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    write_all_at(&writer, b"two", 0).unwrap();
    drop(writer);
    assert_ne!(look(&file).unwrap(), look_before);
    assert_ne!(times(&file, &meta).unwrap(), times_before);
    let other = place.path().join("other");
    fs::write(&other, b"two").unwrap();
    assert_ne!(identity(&path), identity(&other));
    assert_eq!(identity(&path), identity(&place.path().join("FILE")));
    fs::hard_link(&path, place.path().join("second")).unwrap();
    assert_eq!((identity(&path), links(&meta, Some(&file))), (identity(&place.path().join("second")), 2));
    assert!(
        !is_mount(place.path()) && is_mount(Path::new("C:\\")) && identity(Path::new("nothing")).is_none()
    );
}

#[test]
fn who_has_the_lock_has_it_alone_and_others_read_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("file");
    let file = create_new(&path, 0o666).unwrap();
    lock_alone(&file).unwrap();
    write_all_at(&file, b"bytes", 0).unwrap();
    let other = open_unfollowed(&path).unwrap().unwrap();
    lock_alone(&other).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), b"bytes");
    let moved = place.path().join("moved");
    rename(&path, &moved, Over::Nothing).unwrap();
    unlock(&file);
    lock_alone(&other).unwrap();
    drop(other);
    lock_alone(&file).unwrap();
    assert!(open_unfollowed(place.path()).unwrap().is_some_and(|folder| lock_alone(&folder).is_err()));
}

#[test]
fn threads_do_not_move_each_other_s_position() {
    let place = tempfile::tempdir().unwrap();
    let file = create_new(&place.path().join("file"), 0o666).unwrap();
    std::thread::scope(|scope| {
        for nth in 0..4u8 {
            let file = &file;
            scope.spawn(move || {
                for at in (u64::from(nth)..4000).step_by(4) {
                    assert_eq!(write_at(file, &[IoSlice::new(&[]), IoSlice::new(&[nth])], at).unwrap(), 1);
                    let mut byte = [9];
                    assert_eq!((read_at(file, &mut byte, at).unwrap(), byte), (1, [nth]));
                }
            });
        }
    });
    let mut all = vec![0; 5000];
    assert_eq!(read_at(&file, &mut all, 0).unwrap(), 4000);
    assert!(all[..4000].iter().zip((0..4).cycle()).all(|(byte, nth)| *byte == nth));
    assert_eq!(read_at(&file, &mut all, 4000).unwrap(), 0);
    sync(&file).unwrap();
    sync_data(&file).unwrap();
    sync_names(place.path(), Some(&file)).unwrap();
    close_copy(&file).unwrap();
    close(file).unwrap();
}

#[test]
fn a_temporary_file_has_no_name_in_the_end() {
    let place = tempfile::tempdir().unwrap();
    let file = nameless_file(Some(place.path())).unwrap();
    write_all_at(&file, b"bytes", 0).unwrap();
    for name in list(place.path()).unwrap() {
        File::open(place.path().join(name)).expect_err("nobody else opens it");
    }
    let mut bytes = [0; 5];
    assert_eq!((read_at(&file, &mut bytes, 0).unwrap(), &bytes), (5, b"bytes"));
    drop(file);
    assert!(list(place.path()).unwrap().is_empty());
    nameless_file(None).unwrap();
}

#[test]
fn a_hole_reads_as_zeros_or_is_none() {
    let place = tempfile::tempdir().unwrap();
    let file = create_new(&place.path().join("file"), 0o666).unwrap();
    let len = 1 << 20;
    write_all_at(&file, &vec![7; len], 0).unwrap();
    assert_eq!(next_data(&file, 5).map(|range| range.start), Some(5));
    assert_eq!(next_data(&file, len as u64), None);
    let is_made = make_hole(&file, 0, len as u64 / 2);
    let mut bytes = vec![1; len];
    assert_eq!(read_at(&file, &mut bytes, 0).unwrap(), len);
    let expected = if is_made { 0 } else { 7 };
    assert!(
        bytes[..len / 2].iter().all(|byte| *byte == expected)
            && bytes[len / 2..].iter().all(|byte| *byte == 7)
    );
    assert!(
        next_data(&file, 0).is_some_and(|data| data.start <= len as u64 / 2 && data.end > len as u64 / 2)
    );
}

#[test]
fn processes_end_and_threads_work() {
    assert!(!is_gone(process().cast_signed()));
    let mut child = std::process::Command::new("cmd").args(["/c", "exit"]).spawn().unwrap();
    let number = child.id().cast_signed();
    child.wait().unwrap();
    assert!(is_gone(number), "its handle is open, and it has ended");
    drop(child);
    assert!(is_gone(i32::MAX - 1) && !is_gone(-1));
    let before = thread_time();
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_millis(200) {
        std::hint::spin_loop();
    }
    assert!(thread_time() > before);
    assert!(since_1970().as_secs() > 1_700_000_000);
    assert!(room(Path::new(".")).unwrap().0 > 0);
}

#[test]
fn links_are_not_followed() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("folder/precious"), b"precious").unwrap();
    let made = std::os::windows::fs::symlink_dir(at("folder"), at("link"))
        .and_then(|()| std::os::windows::fs::symlink_file(at("folder/precious"), at("file")))
        .and_then(|()| fs::symlink_metadata(at("link")));
    if made.is_err() {
        eprintln!("skipped: links take a privilege, and a system that has them");
        return;
    }
    assert!(open_folder(&at("link")).is_err() && open_unfollowed(&at("file")).unwrap().is_none());
    remove_folder(&at("link")).unwrap_err();
    fs::create_dir(at("outer")).unwrap();
    std::os::windows::fs::symlink_dir(at("folder"), at("outer/link")).unwrap();
    remove_folder(&at("outer")).unwrap();
    assert!(at("folder/precious").exists() && !at("outer").exists());
}
