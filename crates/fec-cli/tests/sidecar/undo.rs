//! `fec repair --undo`: overwritten files are kept first.

use super::*;
use std::process::Command;

/// A folder with its sidecar, edited in every way that repair writes over.
fn edited() -> Arena {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["-r", "100%", "d"]);
    let shifted = [&b"in front"[..], &payload(1, 20_481)].concat();
    edit(&arena.path("d/large"), &shifted);
    edit(&arena.path("d/sub/tool"), b"shorter");
    set_mode(&arena.path("d/sub/tool"), 0o600);
    flip(&arena.path("d/sub/deep/nested"), 77);
    fs::remove_file(arena.path("d/small")).unwrap();
    fs::remove_file(arena.path("d/link")).unwrap();
    symlink("somewhere else", arena.path("d/link")).unwrap();
    arena
}

fn untar(arena: &Arena, archive: &str) {
    let done = Command::new("tar").current_dir(&arena.work).args(["-xpf", archive]).status();
    assert!(done.expect("tar is there").success());
}

#[test]
fn tar_puts_back_what_was_written_over() {
    let arena = edited();
    let before = seen(&arena.path("d"));
    let output = arena.run(["repair", "--revert", "--undo", "undo.tar", "d.fecp"]);
    expect(&output, 0);
    assert!(text(&output.stderr).contains("tar -xpf undo.tar -C ."), "{}", text(&output.stderr));
    is_intact(&arena, "d.fecp");
    untar(&arena, "undo.tar");
    for (path, was) in before.iter().filter(|(_, was)| was.what != What::Folder) {
        let is = &seen(&arena.path("d"))[path];
        assert_eq!((&is.what, is.modified), (&was.what, was.modified), "{}", path.display());
        assert!(is.mode == was.mode || matches!(was.what, What::Link(_)), "{}", path.display());
    }
    // The missing file was made, not written over: it stays.
    assert!(arena.path("d/small").exists());
}

#[test]
fn an_archive_is_never_written_over() {
    let arena = edited();
    arena.write("undo.tar", b"of another repair");
    let told = changes_nothing(&arena, &["repair", "--revert", "--undo", "undo.tar", "d.fecp"], 2);
    assert!(told.contains("choose another name with --undo"), "{told}");
    expect(&arena.run(["repair", "--undo", "undo.tar", "-n", "d.fecp"]), 2);
    expect(&arena.run(["repair", "--undo", "undo.tar", "-o", "out", "d.fecp"]), 2);
}
