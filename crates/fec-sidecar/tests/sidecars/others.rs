//! Several sidecars in the folder that they protect, which leave each other out.

use crate::arena::*;
use fec_base::io::base::Base;
use fec_sidecar::examine::{Scope, State, examine};
use std::fs;
use std::os::unix::fs::symlink;

/// Protects `d` by a sidecar within it.
fn within(output: &str) -> How<'_> {
    How { output, base: Some("d"), ..How::default() }
}

fn states_at(arena: &Arena, sidecar: &str) -> (Vec<(String, State)>, u64) {
    let sidecar = arena.open_at(sidecar, None).unwrap();
    let base = Base::open(&arena.path("d")).unwrap();
    let found = examine(&sidecar, &base, Scope::All, &context());
    let found = found.unwrap();
    (states_of(&sidecar, &found), found.unprotected.count)
}

#[test]
fn sidecars_within_what_they_protect_do_not_see_each_other() {
    let arena = Arena::furnished();
    let (one, two) = ("d/one.fecp", "d/sub/two.fecp");
    arena.protect(&within(one));
    arena.write("d/one.fecp.minisig", b"a signature");
    assert_eq!(arena.protect(&within(two)).sidecars, [arena.path(one), arena.path("d/one.fecp.minisig")]);
    for bytes in [&b"edited"[..], b"edited again"] {
        edit(&arena.path("d/small"), bytes);
        for sidecar in [one, two] {
            assert!(arena.try_update(&within(sidecar)).unwrap().written);
        }
        for sidecar in [one, two] {
            assert_eq!(states_at(&arena, sidecar), (vec![], 0));
        }
    }
}

/// The name alone makes no sidecar, and neither do the bytes of a link's target.
#[test]
fn what_is_only_called_a_sidecar_is_protected() {
    let arena = Arena::furnished();
    arena.protect(&How::default());
    arena.write("d/false.fecp", b"no sidecar");
    arena.write("d/false.fecp.minisig", b"of none");
    symlink("../d.fecp", arena.path("d/link.fecp")).unwrap();
    fs::copy(arena.path("d.fecp"), arena.path("d/true.name")).unwrap();
    let protected = arena.protect(&How { output: "x.fecp", ..How::default() });
    assert!(protected.sidecars.is_empty());
    let sidecar = arena.open_at("x.fecp", None).unwrap();
    let paths: Vec<_> = (0..sidecar.catalog().entries.len()).map(|nth| path_of(&sidecar, nth)).collect();
    for name in ["false.fecp", "false.fecp.minisig", "link.fecp", "true.name"] {
        assert!(paths.contains(&format!("d/{name}")), "{name}: {paths:?}");
    }
}

/// Whoever names a sidecar means it.
#[test]
fn a_sidecar_that_is_named_is_protected() {
    let arena = Arena::furnished();
    arena.protect(&within("d/one.fecp"));
    let named = How { paths: &["d", "d/one.fecp"], output: "x.fecp", ..How::default() };
    assert!(arena.protect(&named).sidecars.is_empty());
    let sidecar = arena.open_at("x.fecp", None).unwrap();
    assert!(sidecar.catalog().entries.iter().any(|entry| *entry.path == *b"d/one.fecp"));
    // An update that names the folder alone leaves it out, although much of what was protected is gone by that.
    let updated = arena.try_update(&How { output: "x.fecp", ..How::default() }).unwrap();
    assert!(updated.gone.is_empty() && updated.sidecar.sidecars == [arena.path("d/one.fecp")]);
}
