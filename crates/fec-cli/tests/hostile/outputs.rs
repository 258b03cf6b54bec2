//! Existing outputs, and folders that hold more than shard files.

use super::*;

#[test]
fn output_that_exists() {
    let arena = Arena::new();
    let (_, files) = shard_files(&SMALL, &small_rows(27), &forge::meta(b"name"));
    arena.write_all("s", &files);
    arena.write("c.fec", &as_container(&SMALL, &small_rows(27)).bytes());
    arena.write("input", b"input");
    for there in ["name", "c", "out", "root"] {
        arena.write(there, b"precious");
    }
    std::os::unix::fs::symlink("nowhere", arena.path("link")).unwrap();
    let boxed = arena.read("c.fec");
    arena.refuses(["decode", "s"], 2);
    arena.refuses(["decode", "s", "-o", "out"], 2);
    arena.refuses(["decode", "s", "-o", "link"], 2);
    arena.refuses(["decode", "c.fec"], 2);
    arena.refuses(["decode", "c.fec", "-o", "out"], 2);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &boxed, 2);
    arena.refuses(["encode", "input", "-o", "out"], 2);
    arena.refuses(["encode", "input", "-o", "out/"], 2);
    arena.refuses_pipe(["encode", "-", "-o", "out"], b"input", 2);
    arena.refuses(["encode", "input", "-o", "new.fec", "--root-file", "root"], 2);
    arena.refuses(["encode", "input", "-o", "s/"], 2);
    arena.refuses(["encode", "input", "-o", "s"], 2);
    // Outputs are checked first, even if the input is hopeless.
    arena.write("t/0", &files[0]);
    arena.refuses(["decode", "t", "-o", "out"], 2);
    // -f replaces existing outputs.
    arena.expect(["decode", "s", "-f"], 0);
    assert!(arena.read("name") == payload(27, LEN));
    arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == payload(27, LEN));
    arena.expect(["encode", "input", "-o", "out", "-f", "--root-file", "root"], 0);
    assert_eq!(arena.read("root").len(), 65);
    arena.expect(["decode", "out", "-o", "back", "--root", "@root"], 0);
    assert_eq!(arena.read("back"), b"input");
    arena.expect(["encode", "input", "-o", "s/", "-f", "-k", "2", "-m", "1"], 0);
    assert_eq!(common::listing(&arena.path("s")).len(), 3, "the whole folder is replaced");
    // A failed decode with -f leaves the old file.
    arena.write("t/0", &files[0]);
    arena.refuses(["decode", "t", "-o", "back", "-f"], 3);
    arena.nothing_temporary();
}

/// -f does not allow it either: --partial, or encoding shards, would destroy the input.
#[test]
fn output_that_is_the_input() {
    let arena = Arena::new();
    arena.write("input", b"input");
    arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
    arena.expect(["encode", "input", "-o", "c.fec"], 0);
    std::os::unix::fs::symlink("c.fec", arena.path("link")).unwrap();
    arena.refuses(["encode", "input", "-o", "input", "-f"], 2);
    arena.refuses(["encode", "input", "-o", "./input", "-f"], 2);
    arena.refuses(["encode", "input.shards/input.000.shard", "-o", "input.shards", "-f"], 2);
    arena.refuses(["decode", "c.fec", "-o", "c.fec", "-f", "--partial"], 2);
    arena.refuses(["decode", "link", "-o", "c.fec", "-f"], 2);
    arena.refuses(["decode", "c.fec", "-o", "link", "-f"], 2);
    let shards = ["input.shards/input.000.shard", "input.shards/input.001.shard"];
    arena.refuses(["decode", shards[0], shards[1], "-o", shards[1], "-f"], 2);
}

#[test]
fn root_file_that_is_the_output() {
    let arena = Arena::new();
    arena.write("input", b"input");
    arena.refuses(["encode", "input", "-o", "out.fec", "--root-file", "out.fec"], 2);
    arena.refuses(["encode", "input", "-o", "out.fec", "--root-file", "./out.fec", "-f"], 2);
    arena.refuses(["encode", "input", "-o", "out.fec", "--root-file", "input", "-f"], 2);
    arena.refuses(["encode", "input", "-o", "out.fec", "--root-file", "no/such/folder"], 4);
}

#[test]
fn forced_folder_with_foreign_files() {
    let arena = Arena::new();
    arena.write("input", b"input");
    arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
    arena.write("input.shards/notes.txt", b"precious");
    arena.refuses(["encode", "input", "-f"], 2);
    fs::remove_file(arena.path("input.shards/notes.txt")).unwrap();
    fs::create_dir(arena.path("input.shards/sub")).unwrap();
    arena.refuses(["encode", "input", "-f"], 2);
    fs::remove_dir(arena.path("input.shards/sub")).unwrap();
    std::os::unix::fs::symlink("input.000.shard", arena.path("input.shards/link")).unwrap();
    arena.refuses(["encode", "input", "-f"], 2);
    fs::remove_file(arena.path("input.shards/link")).unwrap();
    arena.expect(["encode", "input", "-f", "-k", "1", "-m", "1"], 0);
    assert_eq!(common::listing(&arena.path("input.shards")).len(), 2);
}

#[test]
fn file_of_another_root() {
    let arena = Arena::new();
    let (root, files) = shard_files(&SMALL, &small_rows(28), &forge::meta(b"name"));
    let (_, others) = shard_files(&SMALL, &small_rows(29), &forge::meta(b"name"));
    let root = hex(&root);
    arena.write_all("other", &others);
    arena.write_all("s", &files);
    arena.refuses(["decode", "other", "-o", "out", "--root", &root], 5);
    arena.refuses(["decode", "other/0", "-o", "out", "--root", &root], 5);
    arena.refuses(["decode", "other/4", "-o", "out", "--root", &root], 5);
    arena.refuses(["verify", "other", "--root", &root], 5);
    arena.refuses(["verify", "other/0", "--root", &root], 5);
    // Among enough other shards, the stray ones change nothing.
    arena.expect(["decode", "s", "other/0", "other/1", "-o", "out", "--root", &root], 0);
    assert!(arena.read("out") == payload(28, LEN));
    arena.write("c.fec", &as_container(&SMALL, &small_rows(29)).bytes());
    arena.refuses(["decode", "c.fec", "-o", "out2", "--root", &root], 5);
    arena.refuses(["verify", "c.fec", "--root", &root], 5);
    // A single shard file alone.
    arena.expect(["verify", "s/4", "--root", &root], 0);
    let mut damaged = files[4].clone();
    for at in [100, 200, PROOFS + 9, BODY + 88, 2000, TAIL + 10, TAIL + 260, TAIL + 300, TAIL + 400] {
        damaged[at] ^= 1;
        arena.write("one", &damaged);
        expect(&arena.run(["verify", "one", "--root", &root]), 5);
        damaged[at] ^= 1;
    }
    arena.write("one", &damaged[..damaged.len() - 1]);
    expect(&arena.run(["verify", "one", "--root", &root]), 5);
    // Nothing of a shard file is left: it may have been anything.
    arena.write("one", b"");
    expect(&arena.run(["verify", "one", "--root", &root]), 3);
}

#[test]
fn unreadable_shard_file() {
    use std::os::unix::fs::PermissionsExt;
    let arena = Arena::new();
    let (_, files) = shard_files(&SMALL, &small_rows(30), &forge::meta(b"name"));
    arena.write_all("s", &files[..4]);
    fs::set_permissions(arena.path("s/0"), fs::Permissions::from_mode(0o0)).unwrap();
    if File::open(arena.path("s/0")).is_ok() {
        println!("skipped: this user can read everything");
        return;
    }
    arena.expect(["decode", "s", "-o", "out"], 0);
    fs::remove_file(arena.path("s/1")).unwrap();
    let output = arena.run(["decode", "s", "-o", "out2"]);
    expect(&output, 4);
}

/// More files than a process may usually have open.
#[test]
fn more_shard_files_than_open_files_allowed() {
    let arena = Arena::new();
    let (root, files) = shard_files(&SMALL, &small_rows(31), &forge::meta(b"name"));
    for i in 0..300 {
        arena.write(format!("s/a{i:03}"), &files[i % 2]);
    }
    arena.write_all("s", &files[2..3]);
    fs::rename(arena.path("s/0"), arena.path("s/z")).unwrap();
    let mut command = Command::new("sh");
    let limited = format!("ulimit -S -n 128; exec {} \"$@\"", common::fec_words());
    command
        .args(["-c", &limited, "sh", "decode", "s", "-o", "out", "--root", &hex(&root)])
        .current_dir(&arena.work);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = finish(command.spawn().unwrap(), b"", LIMIT).unwrap();
    expect(&output, 0);
    assert!(arena.read("out") == payload(31, LEN));
}

/// A symbolic link is neither followed nor replaced: /dev/stdout is one.
#[test]
fn output_that_is_a_symbolic_link() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), b"payload").unwrap();
    std::fs::write(folder.path().join("real"), b"precious").unwrap();
    std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
    let output = common::run(folder.path(), ["encode", "x", "-o", "link", "-f"]);
    common::expect(&output, 2);
    assert_eq!(std::fs::read(folder.path().join("real")).unwrap(), b"precious");
    assert!(std::fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
}

/// -f does not allow it either: the shard would be gone, and the others may be too few.
#[test]
fn output_that_is_a_shard_of_the_input_folder() {
    let (folder, _) = common::scratch("x", &payload(3, 5000));
    let encoded = common::run(folder.path(), ["encode", "x", "-k", "2", "-m", "1", "-q"]);
    expect(&encoded, 0);
    let shard = folder.path().join("x.shards/x.001.shard");
    let before = fs::read(&shard).unwrap();
    let output = common::run(folder.path(), ["decode", "x.shards", "-o", "x.shards/x.001.shard", "-f"]);
    expect(&output, 2);
    assert!(fs::read(&shard).unwrap() == before);
}
