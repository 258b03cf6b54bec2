use super::folder::replace_folder;
use super::*;
use fec_core::format::shard_file;
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;

const QUICK: Policy = Policy::new().with_sync(false);
const FORCED: Policy = QUICK.with_force(true);

/// More bytes than the final length may have been written, or fewer.
#[test]
fn a_file_has_the_length_that_it_is_given() {
    let place = tempfile::tempdir().unwrap();
    for (len, expected) in [(4, &b"payl"[..]), (7, b"payload"), (9, b"payload\0\0"), (0, b"")] {
        let target = place.path().join(len.to_string());
        let out = FileOut::create(&target, QUICK).unwrap();
        out.put(0, b"payload").unwrap();
        out.commit(len).unwrap();
        assert_eq!(fs::read(&target).unwrap(), expected);
    }
}

/// A process that is being started has all open files of its parent, until its program begins.
#[test]
fn an_output_with_its_name_is_free_although_it_is_open_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let (file, folder) = (place.path().join("file"), place.path().join("folder"));
    let out = FileOut::create(&file, QUICK).unwrap();
    let inherited = out.file().try_clone().unwrap();
    assert!(system::lock_alone(&File::open(out.temporary.path()).unwrap()).is_err(), "it is in use");
    out.commit(0).unwrap();
    system::lock_alone(&File::open(&file).unwrap()).expect("nobody works on it");
    let out = FolderOut::create(&folder, &["a".into()], QUICK).unwrap();
    let also_inherited = out.lock.as_ref().unwrap().try_clone().unwrap();
    out.commit().unwrap();
    system::lock_alone(&open_folder(&folder).unwrap()).expect("nobody works on it");
    drop((inherited, also_inherited));
}

/// The file was not there when the work began.
#[test]
fn a_file_that_appears_meanwhile_is_not_replaced() {
    for policy in [QUICK, FORCED] {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let out = FileOut::create(&target, policy).unwrap();
        out.put(0, b"new").unwrap();
        fs::write(&target, b"precious").unwrap();
        let done = out.commit(3);
        let is_refused = done.is_err_and(|error| matches!(error.kind, ErrorKind::Exists));
        assert_eq!(is_refused, !policy.force);
        let expected = if policy.force { &b"new"[..] } else { b"precious" };
        assert_eq!(fs::read(&target).unwrap(), expected);
        assert_eq!(list(place.path()).unwrap(), ["out"], "nothing temporary is left");
    }
}

/// The error names the file in the way and does not blame the disk.
#[test]
fn a_file_that_appears_in_the_folder_meanwhile_is_named() {
    for policy in [QUICK, FORCED] {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        fs::create_dir(&target).unwrap();
        let out = FolderOut::create(&target, &["a".into()], policy).unwrap();
        let precious = target.join("precious");
        fs::write(&precious, b"precious").unwrap();
        match out.commit().unwrap_err().kind {
            ErrorKind::NotAShardFile(path) if policy.force => assert_eq!(path, precious),
            ErrorKind::FolderNotEmpty if !policy.force => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
        assert_eq!(list(place.path()).unwrap(), ["out"], "nothing temporary is left");
    }
}

/// A file appears in the output folder between the last check and the rename.
#[test]
fn a_folder_that_fills_up_meanwhile_is_not_replaced() {
    for force in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        for folder in [&from, &to] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(to.join("precious"), b"precious").unwrap();
        fs::write(from.join("new"), b"new").unwrap();
        let done = replace_folder(&from, &to, Policy::new().with_force(force).with_sync(false), None);
        assert_eq!(done.unwrap_err().kind(), io::ErrorKind::DirectoryNotEmpty);
        assert_eq!(fs::read(to.join("precious")).unwrap(), b"precious");
        assert!(from.join("new").exists());
    }
}

/// A file of this mode, whatever the umask.
fn file_of(path: PathBuf, mode: u32) -> PathBuf {
    fs::write(&path, b"old").unwrap();
    set_mode(&path, mode);
    path
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn who_may_not_read_a_file_may_not_read_what_is_made_of_it() {
    for (mode, expected) in [
        (0o100_644, 0o666),
        (0o100_640, 0o660),
        (0o100_604, 0o606),
        (0o100_600, 0o600),
        (0o100_733, 0o600),
        (0o100_000, 0o600),
        (0o100_777, 0o666),
    ] {
        assert_eq!(QUICK.made_of(mode).permissions, expected, "{mode:o}");
        assert_eq!(FORCED.with_permissions(OWNER_ALONE).made_of(mode).permissions, OWNER_ALONE);
        assert!(FORCED.made_of(mode).force && !QUICK.made_of(mode).force);
    }
}

/// A folder's own permissions count as well as those of its files. Entries that are neither files nor folders do not
/// count.
#[test]
fn what_is_made_of_several_files_is_for_those_who_may_read_all() {
    let place = tempfile::tempdir().unwrap();
    let made_of = |paths: &[&Path]| QUICK.made_of_paths(paths.iter().copied()).permissions;
    let shared = file_of(place.path().join("shared"), 0o644);
    let of_group = file_of(place.path().join("of group"), 0o640);
    let programme = file_of(place.path().join("programme"), 0o711);
    let socket = place.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    set_mode(&socket, 0o600);
    for (paths, expected) in [
        (&[][..], 0o666),
        (&[&*shared], 0o666),
        (&[&*shared, &*of_group], 0o660),
        (&[&*of_group, &*shared], 0o660),
        (&[&*programme], 0o600),
        (&[&*socket], 0o666),
        (&[Path::new("/nowhere")], 0o666),
    ] {
        assert_eq!(made_of(paths), expected, "{paths:?}");
    }
    let folder = place.path().join("folder");
    fs::create_dir(&folder).unwrap();
    file_of(folder.join("a"), 0o644);
    for (mode, expected) in [
        (0o755, 0o666),
        // Permission to search gives access to files with known names. Permission to list gives only the names.
        (0o711, 0o666),
        (0o744, 0o666),
        (0o750, 0o660),
        (0o700, 0o600),
        (0o722, 0o600),
    ] {
        set_mode(&folder, mode);
        assert_eq!(made_of(&[&folder]), expected, "{mode:o}");
    }
    set_mode(&folder, 0o755);
    file_of(folder.join("b"), 0o640);
    assert_eq!(made_of(&[&folder]), 0o660);
    fs::create_dir(folder.join("inner")).unwrap();
    set_mode(&folder.join("inner"), 0o700);
    assert_eq!(made_of(&[&folder]), 0o660, "a folder in it is not read");
}

#[test]
fn devices_pipes_and_sockets_are_special() {
    let place = tempfile::tempdir().unwrap();
    let socket = place.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let fifo = place.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let file = file_of(place.path().join("file"), 0o644);
    for (path, expected) in [
        (&*socket, true),
        (&fifo, true),
        (Path::new("/dev/null"), true),
        (&file, false),
        (place.path(), false),
        (Path::new("/nowhere"), false),
    ] {
        assert_eq!(is_special(path), expected, "{}", path.display());
    }
}

#[test]
fn what_stands_in_the_way_of_a_file_is_told() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink("file", &link).unwrap();
    let file = file_of(place.path().join("file"), 0o644);
    let kind = |path: &Path, policy| check_absent(path, policy).map_err(|error| error.kind);
    for policy in [QUICK, FORCED] {
        assert!(matches!(kind(place.path(), policy), Err(ErrorKind::IsFolder)));
        assert!(matches!(kind(&link, policy), Err(ErrorKind::IsSymlink)));
        assert!(kind(&place.path().join("new"), policy).is_ok());
    }
    assert!(matches!(kind(&file, QUICK), Err(ErrorKind::Exists)));
    assert!(kind(&file, FORCED).is_ok());
    assert!(check_folder(&place.path().join("new")).is_ok());
    assert!(check_folder(&place.path().join("no folder/new")).is_err());
}

#[test]
fn one_place_has_several_names() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    file_of(at("file"), 0o644);
    file_of(at("other"), 0o644);
    fs::hard_link(at("file"), at("linked")).unwrap();
    for (a, b, expected) in [
        ("file", "file", true),
        ("file", "folder/../file", true),
        ("file", "linked", true),
        ("file", "other", false),
        ("new", "folder/../new", true),
        ("new", "newer", false),
        ("new", "folder/new", false),
        ("new", "file", false),
        ("no folder/new", "no folder/new", false),
    ] {
        assert_eq!(is_same(&at(a), &at(b)), expected, "{a} {b}");
    }
}

#[test]
fn room_that_is_clearly_too_small_is_told() {
    assert!(!lacks_room(1, 10, 10));
    assert!(lacks_room(1, 9, 10));
    assert!(!lacks_room(0, 0, 10), "it does not count");
    let place = tempfile::tempdir().unwrap();
    check_room(&place.path().join("out"), 0).unwrap();
    let refused = check_room(&place.path().join("out"), u64::MAX).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::NoRoom { needed: u64::MAX, .. }));
}

/// Setuid, setgid and sticky bits are dropped.
#[test]
fn a_file_has_the_permissions_of_the_one_that_it_replaces() {
    let place = tempfile::tempdir().unwrap();
    for (old, expected) in [(0o640, 0o640), (0o604, 0o604), (0o4750, 0o750), (0o1777, 0o777)] {
        let target = file_of(place.path().join(format!("{old:o}")), old);
        let out = FileOut::create(&target, FORCED).unwrap();
        out.put(0, b"new").unwrap();
        out.commit(3).unwrap();
        assert_eq!(mode(&target), expected);
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }
}

/// Readers of a folder's files may search the folder.
#[test]
fn a_folder_has_the_permissions_of_its_files() {
    let place = tempfile::tempdir().unwrap();
    for (permissions, of_folder) in [(0o666, 0o777), (0o660, 0o770), (0o606, 0o707), (0o600, 0o700)] {
        let (target, like) = (
            place.path().join(format!("{permissions:o}")),
            place.path().join(format!("like {permissions:o}")),
        );
        // The umask applies to this folder in the same way.
        DirBuilder::new().mode(of_folder).create(&like).unwrap();
        drop(OpenOptions::new().write(true).create_new(true).mode(permissions).open(like.join("a")).unwrap());
        FolderOut::create(&target, &["a".into()], QUICK.with_permissions(permissions))
            .unwrap()
            .commit()
            .unwrap();
        assert_eq!(mode(&target), mode(&like));
        assert_eq!(mode(&target.join("a")), mode(&like.join("a")));
    }
    for old in [0o750, 0o1770, 0o705] {
        let target = place.path().join(format!("old {old:o}"));
        fs::create_dir(&target).unwrap();
        set_mode(&target, old);
        FolderOut::create(&target, &["a".into()], QUICK).unwrap().commit().unwrap();
        assert_eq!(mode(&target), old);
    }
}

#[test]
fn a_folder_of_shard_files_alone_is_replaced_with_force() {
    let shard = shard_file::MAGIC;
    for (names, force, expected) in [
        (&[][..], false, "new"),
        (&[("s", &shard[..])], false, "not empty"),
        (&[("s", &shard[..])], true, "new"),
        (&[("s", &shard[..]), ("short", &shard[..7])], true, "not a shard file"),
        (&[("s", &shard[..]), ("other", b"precious")], true, "not a shard file"),
    ] {
        for sync in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let target = place.path().join("out");
            fs::create_dir(&target).unwrap();
            for (name, bytes) in names {
                fs::write(target.join(name), bytes).unwrap();
            }
            let policy = Policy::new().with_force(force).with_sync(sync);
            let made = FolderOut::create(&target, &["a".into(), "b".into()], policy).and_then(|out| {
                out.write_at(1, 2, &mut [IoSlice::new(b"pay"), IoSlice::new(b"load")]).unwrap();
                let mut back = [0; 9];
                assert_eq!(out.read_back(1, 4, &mut back).unwrap(), 5);
                assert_eq!(&back[..5], b"yload");
                assert_eq!(NewObjects::place(&out).to_string(), Place::from(&*target).to_string());
                NewObjects::commit(Box::new(out))
            });
            let said = made.map_or_else(|error| error.to_string(), |()| "new".to_owned());
            assert!(said.contains(expected), "{said}");
            let mut left = list(&target).unwrap();
            left.sort();
            if expected == "new" {
                assert_eq!(left, ["a", "b"]);
                assert_eq!(fs::read(target.join("a")).unwrap(), b"");
                assert_eq!(fs::read(target.join("b")).unwrap(), b"\0\0payload");
            } else {
                assert_eq!(left.len(), names.len());
            }
            assert_eq!(list(place.path()).unwrap(), ["out"], "nothing temporary is left");
        }
    }
    let place = tempfile::tempdir().unwrap();
    let file = file_of(place.path().join("file"), 0o644);
    let refused = FolderOut::check(&file, FORCED).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::NotAFolder));
}

#[test]
fn a_rename_without_force_replaces_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let renamed = |from: &str, to: &str| system::rename(&at(from), &at(to), Over::Nothing);
    for name in ["file", "other"] {
        fs::write(at(name), name).unwrap();
    }
    assert_eq!(renamed("file", "other").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read(at("other")).unwrap(), b"other");
    renamed("file", "new").unwrap();
    assert!(!at("file").exists());
    assert_eq!(fs::read(at("new")).unwrap(), b"file");
    for name in ["folder", "empty"] {
        fs::create_dir(at(name)).unwrap();
    }
    fs::write(at("folder/a"), "a").unwrap();
    renamed("folder", "empty").unwrap_err();
    assert!(at("folder/a").exists() && !at("empty/a").exists());
    renamed("folder", "moved").unwrap();
    assert!(at("moved/a").exists() && !at("folder").exists());
    assert_eq!(renamed("nothing", "at all").unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_folder_that_cannot_be_synced_is_an_error_unless_there_is_nothing_to_sync() {
    let place = tempfile::tempdir().unwrap();
    let synced = QUICK.with_sync(true);
    let gone = place.path().join("gone");
    let of = File::open(place.path()).unwrap();
    sync(place.path()).unwrap();
    assert!(matches!(sync(&gone).unwrap_err().kind, ErrorKind::Io(_)));
    sync_folder(&gone, QUICK, None).unwrap();
    let of_folder = sync_folder(&gone, synced, Some(&of)).unwrap_err();
    assert!(matches!(of_folder.kind, ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::NotFound));
    // The output exists, so the error must not sound like a loss.
    let named = sync_named(&gone.join("out"), synced, &of).unwrap_err();
    assert!(matches!(named.kind, ErrorKind::NotSynced(cause) if cause.kind() == io::ErrorKind::NotFound));
    sync_named(&gone.join("out"), QUICK, &of).unwrap();
    // /proc is a file system that cannot sync folders.
    if Path::new("/proc/self").exists() {
        sync(Path::new("/proc")).unwrap();
    }
}

#[test]
fn a_shard_file_is_told_by_its_first_bytes() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        fs::write(place.path().join(name), bytes).unwrap();
        is_shard_file(&place.path().join(name)).unwrap()
    };
    assert!(at("magic", &shard_file::MAGIC));
    assert!(at("longer", &[&shard_file::MAGIC[..], b"payload"].concat()));
    assert!(!at("short", &shard_file::MAGIC[..7]));
    assert!(!at("empty", b""));
    assert!(!at("other", b"precious"));
    assert!(!is_shard_file(place.path()).unwrap());
    assert!(is_shard_file(&place.path().join("gone")).is_err());
    // This file cannot be read: there is no page at address 0.
    let memory = Path::new("/proc/self/mem");
    if memory.exists() {
        assert!(is_shard_file(memory).is_err(), "it may be anything");
    }
}

#[test]
fn rows_are_written_one_behind_the_other_and_read_back() {
    // More rows than the system takes in a single call; some are empty.
    let bytes: Vec<Vec<u8>> = (0..3000usize).map(|i| vec![i as u8; i % 3]).collect();
    let place = tempfile::tempdir().unwrap();
    let target = place.path().join("out");
    let out = FileOut::create(&target, QUICK).unwrap();
    let mut rows: Vec<IoSlice<'_>> = bytes.iter().map(|row| IoSlice::new(row)).collect();
    NewObjects::write_at(&out, 0, 5, &mut rows).unwrap();
    NewObjects::write_at(&out, 0, 1, &mut [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"")])
        .unwrap();
    NewObjects::write_at(&out, 0, 0, &mut []).unwrap();
    NewObjects::write_at(&out, 0, 0, &mut [IoSlice::new(b"")]).unwrap();
    let whole = [&b"\0ab\0\0"[..], &bytes.concat()].concat();
    for (offset, room) in
        [(0, whole.len()), (0, whole.len() + 9), (1, whole.len()), (3, 4), (2990, 50), (9, 0), (9999, 5)]
    {
        let mut back = vec![7; room];
        let expected = &whole[offset.min(whole.len())..(offset + room).min(whole.len())];
        assert_eq!(out.read_back(0, offset as u64, &mut back).unwrap(), expected.len());
        assert_eq!(&back[..expected.len()], expected);
        assert!(back[expected.len()..].iter().all(|byte| *byte == 7));
    }
    assert_eq!(NewObjects::place(&out).to_string(), Place::from(&*target).to_string());
    NewObjects::commit(Box::new(out)).unwrap();
    assert_eq!(fs::read(&target).unwrap(), whole);
    let only_for_writing = OpenOptions::new().write(true).open(&target).unwrap();
    assert!(read_full_at(&only_for_writing, 0, &mut [0; 5]).is_err());
    let only_for_reading = File::open(&target).unwrap();
    assert!(write_all_vectored_at(&only_for_reading, &mut [IoSlice::new(b"a")], 0).is_err());
}

#[test]
fn texts_and_secrets_are_written_whole() {
    let place = tempfile::tempdir().unwrap();
    let (text, secret) = (place.path().join("text"), place.path().join("secret"));
    write_text(&text, "words", QUICK).unwrap();
    assert_eq!(fs::read(&text).unwrap(), b"words");
    assert!(matches!(write_text(&text, "others", QUICK).unwrap_err().kind, ErrorKind::Exists));
    write_text(&text, "few", FORCED).unwrap();
    assert_eq!(fs::read(&text).unwrap(), b"few");
    write_text(Path::new("/dev/null"), "words", QUICK).unwrap();
    write_secret(&secret, b"key").unwrap();
    assert_eq!(fs::read(&secret).unwrap(), b"key");
    assert_eq!(mode(&secret), 0o600);
    assert!(write_secret(&secret, b"other").is_err());
    assert_eq!(fs::read(&secret).unwrap(), b"key");
}
