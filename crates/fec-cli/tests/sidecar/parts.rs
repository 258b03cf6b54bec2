//! Parts of what a sidecar protects, named behind it.

use crate::common::{Arena, payload, text};
use crate::files::rot;
use std::fs;

fn arena() -> Arena {
    let arena = Arena::new();
    for nth in 0..8 {
        arena.write(format!("photos/a/{nth}.jpg"), &payload(nth, 20_000));
        arena.write(format!("photos/b/{nth}.jpg"), &payload(20 + nth, 20_000));
    }
    arena.expect(["protect", "photos", "-q"], 0);
    arena
}

fn told(arena: &Arena, args: &[&str], exit: i32) -> String {
    let output = arena.expect(args, exit);
    text(&output.stdout) + &text(&output.stderr)
}

/// The advice of a part names the part, and mends no more.
#[test]
fn a_part_is_checked_and_mended_alone() {
    let arena = arena();
    let [first, second] = ["photos/a/1.jpg", "photos/b/2.jpg"].map(|name| (name, arena.read(name)));
    [first.0, second.0].iter().for_each(|name| rot(&arena.path(name), 100, b"rotten"));
    let said = told(&arena, &["verify", "photos.fecp", "photos/a/0.jpg"], 0);
    assert!(said.contains("1 file, 2 folders: all intact; nothing else was looked at"), "{said}");
    for parts in [&["photos/a"][..], &["photos/a/1.jpg", "photos/a/3.jpg"]] {
        let said = told(&arena, &[&["verify", "photos.fecp"], parts].concat(), 1);
        let advice = format!("fec repair photos.fecp {}", parts.join(" "));
        assert!(said.contains(&format!("what is damaged can be mended:\n  {advice}\n")), "{said}");
        assert!(said.contains("rotten     photos/a/1.jpg") && !said.contains(second.0), "{said}");
    }
    told(&arena, &["repair", "photos.fecp", "photos/a"], 0);
    assert!(arena.read(first.0) == first.1 && arena.read(second.0) != second.1);
    told(&arena, &["verify", "photos.fecp"], 1);
    // All parts are the whole, and its sidecar is looked at too.
    let said = told(&arena, &["verify", "photos.fecp", "photos/a", "photos/b"], 1);
    assert!(said.contains("recovery blocks: all intact"), "{said}");
    fs::remove_file(arena.path(second.0)).unwrap();
    let said = told(&arena, &["repair", "photos.fecp", second.0], 0);
    assert!(said.contains("restored photos/b/2.jpg") && arena.read(second.0) == second.1, "{said}");
}

/// A part is named from the working folder, by whatever way, or as reports name it.
#[test]
fn a_part_is_found_by_all_its_names() {
    let arena = arena();
    std::os::unix::fs::symlink("photos", arena.path("way")).unwrap();
    let absolute = arena.path("photos/a/1.jpg");
    for name in ["./photos/a/1.jpg", "photos/b/../a/1.jpg", "way/a/1.jpg", absolute.to_str().unwrap()] {
        let said = told(&arena, &["verify", "photos.fecp", name], 0);
        assert!(said.starts_with("1 file, 2 folders: all intact"), "{name}: {said}");
    }
    for (folder, name) in [("photos/a", "1.jpg"), ("photos/b", "photos/a/1.jpg"), ("photos/a", ".")] {
        let mut command = crate::common::fec();
        command.current_dir(arena.path(folder)).args(["verify", "../../photos.fecp", name]);
        let output = command.output().unwrap();
        assert!(output.status.success() && text(&output.stdout).contains("nothing else"), "{output:?}");
    }
}

#[test]
fn no_part_is_passed_over() {
    let arena = arena();
    arena.write("photos/new.jpg", b"not protected");
    arena.write("else", b"something else");
    for part in ["photos/new.jpg", "photos/none", "else", "photos/a/1.jpg/x", "../photos"] {
        for command in ["verify", "repair"] {
            let said = arena.refuses([command, "photos.fecp", "photos/a", part], 2);
            assert!(said.contains(&format!("{command} {part}: photos.fecp does not protect it")), "{said}");
        }
    }
    for name in ["none", "photos/none"] {
        arena.refuses(["verify", "photos.fecp", name], 2);
    }
    // Without any part of it, the sidecar is looked at as a whole, and the rest by itself.
    let said = told(&arena, &["verify", "photos.fecp", "else"], 2);
    assert!(said.contains("photos.fecp: damaged") || said.contains("photos.fecp: intact"), "{said}");
    assert!(said.contains("else: failed"), "{said}");
    // A sidecar that another protects is looked at as a sidecar.
    arena.expect(["protect", "photos/a", "-q"], 0);
    arena.expect(["protect", "photos", "photos/a.fecp", "-o", "all.fecp", "-q"], 0);
    fs::remove_file(arena.path("photos/a/3.jpg")).unwrap();
    let said = told(&arena, &["verify", "all.fecp", "photos/a.fecp"], 1);
    assert!(said.contains("photos/a.fecp: damaged: 8 files, 1 folder: 1 missing"), "{said}");
    for option in ["--quick", "--deep", "--sidecar-only", "--sample=5%", "--state=state"] {
        arena.refuses(["verify", "photos.fecp", "photos/b", option], 2);
    }
}
