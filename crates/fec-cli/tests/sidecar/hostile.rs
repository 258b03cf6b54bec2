//! Sidecars that lie, and objects that are no sidecars. Nothing outside the base is ever touched, and the message names
//! the fault.

use super::forge::Forged;
use super::*;
use fec_core::format::sidecar::stat::Stat;
use fec_core::format::sidecar::{EntryKind, FileEntry};

const COMMANDS: [&[&str]; 5] = [
    &["verify", "in/x.fecp"],
    &["repair", "in/x.fecp"],
    &["repair", "in/x.fecp", "--revert", "--partial"],
    &["repair", "in/x.fecp", "-o", "in/new"],
    &["verify", "in/x.fecp", "--base", "in"],
];

/// A work folder with a folder `in` for the sidecar, and a file outside of it.
fn arena() -> Arena {
    let arena = Arena::new();
    arena.write("outside/file", b"outside");
    fs::create_dir(arena.path("in")).unwrap();
    symlink("../outside", arena.path("in/way")).unwrap();
    arena
}

/// Asserts that every command refuses the forged sidecar with this code and changes nothing.
#[track_caller]
fn refused(arena: &Arena, forged: &Forged, exit: i32) {
    arena.write("in/x.fecp", &forged.build().0);
    for args in COMMANDS {
        let said = changes_nothing(arena, args, exit);
        assert!(!said.is_empty(), "it says why");
    }
}

#[test]
fn a_forger_is_honest_first() {
    let arena = arena();
    let forged = Forged::new().file(b"a", b"alpha").with(b"d", EntryKind::Folder).file(b"d/b", b"bravo");
    arena.write("in/x.fecp", &forged.build().0);
    arena.expect(["repair", "in/x.fecp"], 0);
    assert_eq!((arena.read("in/a"), arena.read("in/d/b")), (b"alpha".to_vec(), b"bravo".to_vec()));
    is_intact(&arena, "in/x.fecp");
}

#[test]
fn paths_that_lead_out_are_invalid() {
    let arena = arena();
    let absolute = arena.path("outside/new");
    let long = [b'a'; 256];
    let deep = vec![b"a/".to_vec(); 2100].concat();
    for path in [
        &b"../outside/new"[..],
        absolute.as_os_str().as_bytes(),
        b"a/../../outside/new",
        b"..",
        b".",
        b"./a",
        b"a/./b",
        b"a//b",
        b"a/",
        b"/",
        b"",
        b"a\0b",
        &long,
        &deep[..deep.len() - 1],
    ] {
        refused(&arena, &Forged::new().file(path, b"evil"), 5);
        refused(&arena, &Forged::new().with(path, EntryKind::Symlink(b"target"[..].into())), 5);
    }
}

/// A catalog may neither make a link and lead through it, nor repeat a name, nor be out of order.
#[test]
fn entries_that_contradict_each_other_are_invalid() {
    let arena = arena();
    let link = |target: &[u8]| EntryKind::Symlink(target.into());
    refused(&arena, &Forged::new().with(b"a", link(b"../outside")).file(b"a/new", b"evil"), 5);
    refused(&arena, &Forged::new().file(b"a", b"1").file(b"a/new", b"evil"), 5);
    refused(&arena, &Forged::new().file(b"a", b"1").file(b"a", b"2"), 5);
    refused(&arena, &Forged::new().file(b"b", b"1").file(b"a", b"2"), 5);
    refused(&arena, &Forged::new().with(b"a", link(b"")), 5);
    refused(&arena, &Forged::new().with(b"a", link(b"x\0y")), 5);
    refused(&arena, &Forged::new().with(b"a", EntryKind::HardLink(0)), 5);
    refused(&arena, &Forged::new().with(b"a", EntryKind::HardLink(1)).file(b"b", b"1"), 5);
    refused(&arena, &Forged::new().with(b"a", link(b"b")).with(b"c", EntryKind::HardLink(0)), 5);
    let mut shared = Forged::new().file(b"a", b"alpha").file(b"b", b"bravo");
    let EntryKind::File(FileEntry { tail, .. }) = &mut shared.entries[1].kind else { unreachable!() };
    *tail = 2;
    refused(&arena, &shared, 5);
}

/// A link in the tree is no folder: a path through it counts as missing, and nothing is put there.
#[test]
fn a_path_through_a_link_of_the_tree_is_not_taken() {
    let arena = arena();
    let outside = seen(&arena.path("outside"));
    arena.write("in/x.fecp", &Forged::new().file(b"way/file", b"evil").file(b"way/new", b"evil").build().0);
    assert_eq!(states(&arena, &["in/x.fecp"], 1), [pair("way/file", "missing"), pair("way/new", "missing")]);
    for options in [&[][..], &["--revert"], &["--partial"], &["--revert", "--partial"]] {
        let output = arena.run([&["repair", "in/x.fecp"], options].concat());
        assert_ne!(common::code(&output), 0, "{options:?}");
        assert!(seen(&arena.path("outside")) == outside, "{options:?}");
        arena.nothing_temporary();
    }
}

/// Names that other systems treat as equal, or as devices, are ordinary names here.
#[test]
fn odd_names_are_only_names() {
    let arena = arena();
    let mut names: Vec<&[u8]> = vec![
        b"A",
        b"a",
        b"aux.txt",
        b"CON",
        b"nul",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"C:evil",
        b"a\\..\\b",
        b"dot.",
        b" ",
        b"-rf",
        b"\n\x1b[31m",
        b"\xff\xfe",
        b"~",
        b"$HOME",
        b"*",
    ];
    names.sort();
    let forged = names.iter().fold(Forged::new(), |forged, name| forged.file(name, name));
    arena.write("in/x.fecp", &forged.build().0);
    let said = text(&arena.expect(["verify", "in/x.fecp"], 1).stdout);
    assert!(!said.contains('\x1b'), "no name speaks to the terminal: {said:?}");
    arena.expect(["repair", "in/x.fecp"], 0);
    for name in &names {
        assert_eq!(fs::read(arena.path("in").join(std::ffi::OsStr::from_bytes(name))).unwrap(), **name);
    }
    is_intact(&arena, "in/x.fecp");
}

/// Values that the root does not bind grant no rights: neither the owner's permissions nor impossible times.
#[test]
fn forged_permissions_and_times_are_harmless() {
    let arena = arena();
    let times = [i64::MAX, i64::MIN, -1, 0];
    let mut forged =
        [b"a", b"b", b"c", b"d"].iter().fold(Forged::new(), |forged, name| forged.file(*name, *name));
    forged.stats = times.map(|seconds| Stat { seconds, nanos: 999_999_999, mode: 0o7777 }).to_vec();
    arena.write("in/x.fecp", &forged.build().0);
    arena.expect(["repair", "in/x.fecp"], 0);
    arena.write("new", b"");
    let umask = 0o666 & !fs::metadata(arena.path("new")).unwrap().mode();
    for name in ["in/a", "in/b", "in/c", "in/d"] {
        let mode = fs::metadata(arena.path(name)).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o666 & !umask, "{name}: neither set-user-ID, nor a right to execute");
    }
}

/// The recorded base is never used: the user names it.
#[test]
fn a_recorded_base_is_not_followed() {
    let arena = arena();
    let outside = arena.path("outside");
    for base in [&b".."[..], b"../outside", outside.as_os_str().as_bytes(), b".", b"way", b"nowhere"] {
        let mut forged = Forged::new().file(b"file", b"evil").file(b"new", b"evil");
        forged.base = base.to_vec();
        arena.write("in/x.fecp", &forged.build().0);
        for args in &COMMANDS[..3] {
            let said = changes_nothing(&arena, args, 2);
            assert!(said.contains("do not lie in its folder"), "{said}");
        }
        arena.expect(["repair", "in/x.fecp", "--base", "in"], 0);
        assert_eq!(
            (arena.read("in/new"), arena.read("outside/file")),
            (b"evil".to_vec(), b"outside".to_vec())
        );
        fs::remove_file(arena.path("in/new")).unwrap();
        fs::remove_file(arena.path("in/file")).unwrap();
        assert!(!arena.path("new").exists() && !arena.path("outside/new").exists());
    }
}

/// Numbers that promise more than there is, and values that this version does not know.
#[test]
fn forged_counts_are_refused() {
    let arena = arena();
    type Tweak = fn(&mut Vec<u8>);
    let tweaks: [(Tweak, i32); 15] = [
        (|catalog| catalog[0] = 2, 6),
        (|catalog| catalog[4] = 4, 6),
        (|catalog| catalog[8..12].fill(0xff), 5),
        (|catalog| catalog[8..12].copy_from_slice(&512u32.to_le_bytes()), 5),
        (|catalog| catalog[12..16].fill(0xff), 5),
        (|catalog| catalog[12..16].fill(0), 5),
        (|catalog| catalog[16..20].fill(0xff), 5),
        (|catalog| catalog[20..24].fill(0xff), 5),
        (|catalog| catalog[24..32].fill(0xff), 5),
        (|catalog| catalog[32..40].fill(0xff), 5),
        (|catalog| catalog[63] = 1, 5),
        // The extent: its start, its blocks, its pieces.
        (|catalog| catalog[64..72].fill(0xff), 5),
        (|catalog| catalog[72..80].fill(0xff), 5),
        (|catalog| catalog[80..84].fill(0xff), 5),
        // The sets of the group.
        (|catalog| catalog[100..104].fill(0xff), 5),
    ];
    for (nth, (tweak, exit)) in tweaks.into_iter().enumerate() {
        let forged = Forged { tweak, ..Forged::new().file(b"a", b"alpha") };
        arena.write("in/x.fecp", &forged.build().0);
        for args in COMMANDS {
            let output = arena.run(args);
            assert_eq!(common::code(&output), exit, "{nth}: {args:?}: {}", text(&output.stderr));
        }
    }
    assert!(!arena.path("in/a").exists());
}

/// A catalog describes a file that its blocks do not match: no other bytes appear under its name.
#[test]
fn a_file_that_cannot_be_is_not_made() {
    let arena = arena();
    let mut wrong_file = Forged::new().file(b"a", b"alpha").file(b"b", b"bravo");
    let EntryKind::File(FileEntry { blake3, .. }) = &mut wrong_file.entries[0].kind else { unreachable!() };
    blake3[0] ^= 1;
    let wrong_block = Forged {
        // The digest of the first position.
        tweak: |catalog| {
            let at = catalog.len() - 4 * 16;
            catalog[at] ^= 1;
        },
        ..Forged::new().file(b"a", b"alpha").file(b"b", b"bravo")
    };
    for forged in [wrong_file, wrong_block] {
        arena.write("in/x.fecp", &forged.build().0);
        for options in [&[][..], &["--revert"], &["--partial"]] {
            let output = arena.run([&["repair", "in/x.fecp"], options].concat());
            assert!(![0, 1].contains(&common::code(&output)), "{options:?}: {}", text(&output.stdout));
            assert!(!arena.path("in/a").exists(), "{options:?}");
            arena.nothing_temporary();
        }
    }
}

/// An appended generation is believed without a root, but not with one.
#[test]
fn a_root_keeps_a_forged_generation_out() {
    let arena = arena();
    arena.write("in/a", b"alpha");
    let honest = Forged::new().file(b"a", b"alpha");
    let (whole, before) = honest.build();
    arena.write("in/x.fecp", &whole);
    let root = json(&arena.expect(["verify", "in/x.fecp", "--json"], 0))["root"].as_str().unwrap().to_owned();
    let start = whole.len() as u64;
    let (forged, _) = Forged { before, start, ..Forged::new().file(b"a", b"evil!") }.build();
    arena.write("in/x.fecp", &[&whole[..], &forged].concat());
    age(&arena.path("in/a"), 0);
    let believed = json(&arena.expect(["verify", "in/x.fecp", "--json"], 1));
    assert_eq!((&believed["generation"], &believed["files"][0]["path"]), (&2.into(), &"a".into()));
    changes_nothing(&arena, &["verify", "in/x.fecp", "--root", &root], 1);
    arena.expect(["repair", "in/x.fecp", "--root", &root, "--revert"], 0);
    assert!(arena.read("in/x.fecp") == whole, "what is not of it is cut off");
    assert_eq!(arena.read("in/a"), b"alpha");
}

/// A file holds one sidecar behind another: the user has to say which is meant.
#[test]
fn two_sidecars_in_one_file_are_ambiguous() {
    let arena = arena();
    arena.write("in/a", b"alpha");
    let two = [&b"alpha"[..], b"other"].map(|bytes| Forged::new().file(b"a", bytes).build().0);
    let roots = two.each_ref().map(|bytes| {
        arena.write("in/x.fecp", bytes);
        json(&arena.run(["verify", "in/x.fecp", "--json"]))["root"].as_str().unwrap().to_owned()
    });
    let joined = two.concat();
    for (nth, root) in roots.iter().enumerate() {
        arena.write("in/x.fecp", &joined);
        for args in &COMMANDS[..4] {
            let said = changes_nothing(&arena, args, 2);
            assert!(roots.iter().all(|root| said.contains(root)), "{said}");
        }
        let found = states(&arena, &["in/x.fecp", "--root", root], 1);
        assert_eq!(found.len(), nth, "{found:?}");
        arena.expect(["repair", "in/x.fecp", "--root", root, "--revert"], 0);
        assert!(arena.read("in/x.fecp") == two[nth]);
        assert_eq!(arena.read("in/a"), [&b"alpha"[..], b"other"][nth]);
    }
}

/// Files that are no sidecars, under any name, and sidecars where none belongs.
#[test]
fn what_is_no_sidecar_is_refused() {
    let arena = Arena::new();
    furnish(&arena);
    protect(&arena, &["d"]);
    for command in ["decode", "decode --partial", "verify --deep"] {
        let args: Vec<&str> = command.split(' ').chain(["d.fecp"]).collect();
        let exit = common::code(&arena.run(&args));
        assert!(command.starts_with("verify") || [2, 3].contains(&exit), "{command}: {exit}");
    }
    arena.expect(["encode", "d/large", "-o", "c.fec", "-q"], 0);
    fs::rename(arena.path("c.fec"), arena.path("c.fecp")).unwrap();
    arena.write("empty.fecp", b"");
    fs::create_dir(arena.path("folder.fecp")).unwrap();
    for name in ["c.fecp", "empty.fecp", "folder.fecp", "d/large", "/dev/null"] {
        changes_nothing(&arena, &["verify", name], if name == "d/large" { 2 } else { 3 });
        changes_nothing(&arena, &["repair", name], if name.contains(".fecp") { 3 } else { 2 });
    }
    // The kind of a file is told by its bytes.
    fs::rename(arena.path("d.fecp"), arena.path("noname")).unwrap();
    is_intact(&arena, "noname");
    // A senseless list of a repair changes nothing.
    let root = json(&arena.expect(["verify", "noname", "--json"], 0))["root"].as_str().unwrap().to_owned();
    edit(&arena.path("d/small"), b"edited");
    let other = "0".repeat(64);
    for list in [format!("fec repair of {other}\nsince 1\n0\n1\n2\n"), "\0\n0\n1\n2\n".into()] {
        arena.write("noname.repairing", list.as_bytes());
        changes_nothing(&arena, &["repair", "noname"], 1);
    }
    let list = format!("fec repair of {root}\nsince 1\n99999999\n-1\nx\n18446744073709551616\n");
    arena.write("noname.repairing", list.as_bytes());
    let before = seen(&arena.path("d"));
    arena.expect(["repair", "noname"], 1);
    assert!(seen(&arena.path("d")) == before && !arena.path("noname.repairing").exists());
}

/// A sidecar claims to protect itself, or the files that repair writes beside it. No command panics or touches more
/// than the named files.
#[test]
fn a_sidecar_that_names_itself() {
    let arena = arena();
    for name in [&b"x.fecp"[..], b"x.fecp.repairing", b"x.fecp/inside"] {
        arena.write("in/x.fecp", &Forged::new().file(name, b"evil").file(b"y", b"other").build().0);
        for options in [&["-n"][..], &[], &["--partial"], &["--revert"], &["--revert", "--partial"]] {
            let exit = common::code(&arena.run([&["repair", "in/x.fecp"], options].concat()));
            assert!([0, 1, 3, 4].contains(&exit), "{options:?}: {exit}");
        }
        let left = common::listing(&arena.path("in"));
        let known = |name: &String| ["way", "x.fecp", "x.fecp.repairing", "y"].contains(&name.as_str());
        assert!(left.iter().all(known), "{left:?}");
        fs::remove_file(arena.path("in/x.fecp.repairing")).ok();
    }
}
