//! Sidecars in a folder `.fec`, which protect the folder around it by their place.

use crate::arena::*;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::{Scope, base_of, examine};
use fec_sidecar::repair::{Mend, repair};
use fecfile::{Class, Error};
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

const WITHIN: How<'static> = How { output: "d/.fec/x.fecp", redundancy: Some(100), ..USUAL };

/// The base of the sidecar at a path, as far as its place tells.
fn base_at(arena: &Arena, sidecar: &str) -> Result<PathBuf, Error> {
    let sidecar = arena.open_at(sidecar, None).unwrap();
    base_of(&sidecar, None).map(|base| base.path().to_path_buf())
}

#[track_caller]
fn needs_base(arena: &Arena, sidecar: &str) {
    let error = base_at(arena, sidecar).expect_err("it is not believed");
    assert!(matches!(error.cause(), Some(SidecarError::BaseNeeded(way)) if way == b".."), "{error}");
}

#[test]
fn a_sidecar_in_its_folder_moves_with_what_it_protects() {
    let arena = Arena::furnished();
    let protected = arena.protect(&WITHIN);
    assert!(protected.is_beside && protected.base == fs::canonicalize(arena.path("d")).unwrap());
    let before = tree(&arena.path("d"));
    fs::rename(arena.path("d"), arena.path("moved")).unwrap();
    fs::remove_file(arena.path("moved/sub/tool")).unwrap();
    let sidecar = arena.open_at("moved/.fec/x.fecp", None).unwrap();
    let base = base_of(&sidecar, None).unwrap();
    assert_eq!(base.path(), arena.path("moved"));
    assert!(repair(&sidecar, &base, &Mend::default(), &context()).unwrap().failed.is_empty());
    assert!(tree(&arena.path("moved")) == before);
    let found = examine(&sidecar, &base, Scope::All, &context()).unwrap();
    assert!(found.is_intact() && found.unprotected.count == 0);
    // The folder of the sidecar is none of what it protects.
    assert!(sidecar.catalog().entries.iter().all(|entry| !entry.path.starts_with(b".fec")));
    arena.write("moved/new", b"new");
    let updated =
        arena.try_update(&How { output: "moved/.fec/x.fecp", paths: &["moved"], ..WITHIN }).unwrap();
    assert_eq!((updated.added, updated.unchanged), (1, 6));
}

#[test]
fn no_folder_is_left_where_nothing_is_protected() {
    let arena = Arena::new();
    fs::create_dir(arena.path("d")).unwrap();
    assert_eq!(arena.try_protect(&WITHIN).unwrap_err().class(), Class::Usage);
    assert!(!arena.path("d/.fec").exists());
    arena.refuses(Class::Io, || arena.try_protect(&How { output: "none/x.fecp", ..WITHIN }));
    arena.refuses(Class::Io, || arena.try_protect(&How { output: "none/.fec/x.fecp", ..WITHIN }));
}

/// Elsewhere the record alone says where the files are, and whoever can write to the sidecar wrote that.
#[test]
fn the_record_alone_names_no_base() {
    let arena = Arena::furnished();
    arena.protect(&WITHIN);
    fs::create_dir_all(arena.path("other/.fec/deeper")).unwrap();
    for place in ["x.fecp", "other/x.fecp", "d/sub/x.fecp", "other/.fec/deeper/x.fecp"] {
        fs::copy(arena.path("d/.fec/x.fecp"), arena.path(place)).unwrap();
        needs_base(&arena, place);
    }
    // A link does not make a folder what it is not, and hides no folder that is one.
    symlink("../../other", arena.path("d/sub/.fec")).unwrap();
    needs_base(&arena, "d/sub/.fec/x.fecp");
    symlink("../d/.fec", arena.path("other/way")).unwrap();
    let base = base_at(&arena, "other/way/x.fecp").unwrap();
    assert_eq!(base, fs::canonicalize(arena.path("d")).unwrap());
    // A base that lies further up is not believed in such a folder either.
    arena.write("far/away/.fec/x", b"");
    arena.protect(&How { output: "far/away/.fec/x.fecp", ..WITHIN });
    let error = base_at(&arena, "far/away/.fec/x.fecp").expect_err("it is not believed");
    assert!(matches!(error.cause(), Some(SidecarError::BaseNeeded(_))), "{error}");
}

/// Whoever may write to the folder of the sidecar gets nothing written around it.
#[test]
fn a_folder_that_others_may_write_to_leads_nowhere() {
    let arena = Arena::furnished();
    arena.protect(&WITHIN);
    let (around, folder) = (arena.path("d"), arena.path("d/.fec"));
    let is_known = || base_at(&arena, "d/.fec/x.fecp").is_ok();
    for (mode_around, mode, known) in [
        (0o755, 0o755, true),
        (0o755, 0o775, false),
        (0o755, 0o777, false),
        (0o775, 0o775, true),
        (0o775, 0o777, false),
        (0o777, 0o777, true),
        (0o777, 0o775, true),
        (0o1777, 0o777, false),
        (0o1777, 0o755, true),
    ] {
        set_mode(&around, mode_around);
        set_mode(&folder, mode);
        assert_eq!(is_known(), known, "{mode_around:o} {mode:o}");
    }
    if geteuid().is_root() {
        set_mode(&around, 0o755);
        set_mode(&folder, 0o755);
        let give = |path: &Path, user| chown(path, Some(user), None).unwrap();
        give(&folder, 12_345);
        assert!(!is_known());
        give(&around, 12_345);
        assert!(is_known());
        give(&folder, 0);
        assert!(is_known());
    }
}
