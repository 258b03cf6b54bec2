//! Patterns of what is left out: what they match, who remembers them, and who may believe them.

use crate::arena::*;
use crate::recode::Recoded;
use fec_core::format::sidecar::parts::Exclusion;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::{Scope, examine};
use std::fs;
use std::os::unix::fs::symlink;

/// A folder with files, and two folders of which the deeper one is named alike.
fn with_caches() -> Arena {
    let arena = Arena::new();
    for (nth, name) in ["d/a", "d/b.tmp", "d/cache/c", "d/deep/cache/e", "d/deep/f"].iter().enumerate() {
        arena.write(name, &payload(nth as u64, 3000));
    }
    arena
}

fn excluding<'a>(exclude: &'a [&'a str]) -> How<'a> {
    How { exclude, force: true, ..How::default() }
}

/// The files that the sidecar protects.
fn files(arena: &Arena) -> Vec<String> {
    let sidecar = arena.open(None).expect("it opens");
    sidecar.catalog().files().map(|(nth, _)| path_of(&sidecar, nth)).collect()
}

fn remembered(arena: &Arena) -> Exclusion {
    arena.open(None).expect("it opens").stats().exclusion.clone()
}

/// Items in protected folders that are new, and that patterns leave out, under this root.
fn not_protected(arena: &Arena, is_by_root: bool) -> (u64, u64) {
    let root = is_by_root.then(|| arena.root());
    let sidecar = arena.open(root).expect("it opens");
    let found = examine(&sidecar, &arena.base(), Scope::Quick, &context()).expect("it is examined");
    (found.unprotected.count, found.unprotected.left_out)
}

#[test]
fn each_spelling_of_a_folder_leaves_it_out() {
    let arena = with_caches();
    let both = ["d/a", "d/b.tmp", "d/deep/f"];
    let one = ["d/a", "d/b.tmp", "d/deep/cache/e", "d/deep/f"];
    for (pattern, left) in [
        ("d/cache", &one[..]),
        ("./d/cache", &one),
        ("/d/cache", &one),
        ("d/cache/", &one),
        ("/cache", &one),
        ("cache/", &both),
        ("cache", &both),
        ("./cache", &both),
        ("deep/cache", &["d/a", "d/b.tmp", "d/cache/c", "d/deep/f"]),
        ("*.tmp", &["d/a", "d/cache/c", "d/deep/cache/e", "d/deep/f"]),
    ] {
        let protected = arena.protect(&excluding(&[pattern]));
        assert_eq!(files(&arena), left, "{pattern}");
        assert!(protected.excluded.unmatched.is_empty(), "{pattern}");
        assert_eq!(not_protected(&arena, false), (0, protected.excluded.count), "{pattern}");
    }
    let protected = arena.protect(&excluding(&["c/", "none", "cache"]));
    assert_eq!(protected.excluded.unmatched, ["c/", "none"], "a file is no folder");
    // Several folders: patterns with a slash count from the base alone.
    let two = How { paths: &["d/deep", "d/cache"], ..excluding(&["/cache"]) };
    assert_eq!(arena.protect(&two).excluded.unmatched, ["/cache"]);
    for wrong in ["", "/", "[a"] {
        let error = arena.try_protect(&excluding(&[wrong])).expect_err("it is refused");
        assert!(matches!(error.cause(), Some(SidecarError::Pattern { .. })), "{error}");
    }
    let many: Vec<String> = (0..5000).map(|nth| format!("{nth:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = arena.try_protect(&excluding(&many)).expect_err("it is refused");
    assert!(matches!(error.cause(), Some(SidecarError::ManyPatterns)), "{error}");
}

/// Only a regular file with the signature is the tag of a cache.
#[test]
fn tagged_caches_are_left_out() {
    const TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";
    let arena = with_caches();
    arena.write("d/cache/CACHEDIR.TAG", &[TAG, b"\n# made by a test\n"].concat());
    arena.write("d/deep/CACHEDIR.TAG", &TAG[..42]);
    arena.write("d/linked/in", b"1");
    symlink("../cache/CACHEDIR.TAG", arena.path("d/linked/CACHEDIR.TAG")).unwrap();
    arena.write("d/tagged/CACHEDIR.TAG/in", TAG);
    let how = How { exclude_caches: true, ..How::forced() };
    assert_eq!(arena.protect(&how).excluded.count, 1);
    assert!(!files(&arena).iter().any(|path| path.starts_with("d/cache/")));
    assert_eq!(files(&arena).len(), 7);
    assert_eq!(not_protected(&arena, false), (0, 1));
    // The sidecar remembers it.
    let updated = arena.update(&How::default());
    assert!(!updated.written && updated.sidecar.excluded.remembered.caches);
    let forgotten = arena.update(&How { forget_excludes: true, ..How::default() });
    assert_eq!((forgotten.added, remembered(&arena)), (2, Exclusion::default()));
}

#[test]
fn an_update_leaves_out_what_was_left_out() {
    let arena = with_caches();
    arena.protect(&excluding(&["*.tmp", "cache/"]));
    arena.write("d/new.tmp", b"1");
    arena.write("d/new", b"2");
    let updated = arena.update(&How::default());
    assert_eq!((updated.added, updated.gone.len()), (1, 0));
    assert_eq!(updated.sidecar.excluded.remembered.patterns, ["*.tmp", "cache/"]);
    assert_eq!(updated.sidecar.excluded.count, 4);
    assert_eq!(not_protected(&arena, false), (0, 4));
    // More patterns are remembered too, also when they leave out nothing yet; those are no news.
    let more = arena.update(&How { exclude: &["later"], ..How::default() });
    assert_eq!((more.written, &more.sidecar.excluded.unmatched[..]), (true, &["later".to_owned()][..]));
    let again = arena.update(&How { exclude: &["./later", "*.tmp"], ..How::default() });
    assert!(!again.written);
    assert_eq!(remembered(&arena).patterns, ["*.tmp", "cache/", "later"]);
    assert_eq!(again.sidecar.excluded.remembered.patterns, ["cache/"]);
    // An anchored pattern counts from the folder that the update names.
    fs::rename(arena.path("d"), arena.path("e")).unwrap();
    let renamed = How { paths: &["e"], ..excluding(&["/new"]) };
    assert_eq!(arena.try_update(&renamed).unwrap().gone.len(), 1);
    assert_eq!(remembered(&arena).anchor, b"e");
    let others = How { forget_excludes: true, ..renamed };
    assert_eq!(arena.try_update(&others).unwrap().added, 4);
    assert_eq!(remembered(&arena).patterns, ["/new"]);
}

/// Nothing under a root proves the patterns: they are told, and not used unless they are given again.
#[test]
fn patterns_that_nothing_proves_are_not_used() {
    let arena = with_caches();
    arena.protect(&excluding(&["*.tmp", "cache"]));
    let by_root = How { root: Some(arena.root()), ..How::default() };
    assert_eq!(not_protected(&arena, true), (3, 0), "they would hide what is new");
    let updated = arena.update(&How { exclude: &["cache"], ..by_root });
    let excluded = &updated.sidecar.excluded;
    assert_eq!(excluded.unproved.patterns, ["*.tmp"]);
    assert_eq!((updated.added, excluded.count), (1, 2));
    assert_eq!(remembered(&arena).patterns, ["cache"]);
    // The user who made the sidecar knows what belongs to the root.
    let protected = arena.protect(&excluding(&["*.tmp"]));
    let known = [protected.metadata.expect("E")];
    let updated = arena.update(&How { root: Some(protected.root), known: &known, ..How::default() });
    assert!(!updated.written && updated.sidecar.excluded.remembered.patterns == ["*.tmp"]);
}

/// Whoever may write to the sidecar plants a pattern, under the same root.
#[test]
fn a_planted_pattern_is_told() {
    let planted = |pattern: &[u8]| {
        let arena = Arena::new();
        for nth in 0..20 {
            arena.write(format!("d/file {nth:02}"), &payload(nth, 3000));
        }
        arena.protect(&excluding(&["none 99"]));
        let root = arena.root();
        let forged = Recoded::of(&arena.read("d.fecp")).with(b"\x07none 99", pattern).build();
        arena.write("d.fecp", &forged);
        assert_eq!(arena.root(), root);
        arena
    };
    let arena = planted(b"\x07file 07");
    let updated = arena.update(&How::default());
    assert_eq!(updated.gone, [Box::from(&b"d/file 07"[..])]);
    assert_eq!(updated.sidecar.excluded.remembered.patterns, ["file 07"]);
    assert_eq!(updated.sidecar.excluded.count, 1);
    let arena = planted(b"\x07file 0?");
    let many = arena.refuses_update(&How::default(), fecfile::Class::Usage);
    assert!(many.contains("are gone"), "{many}");
    let kept = arena.update(&How { root: Some(arena.root()), ..How::default() });
    assert!(!kept.sidecar.excluded.unproved.is_empty() && kept.gone.is_empty());
}
