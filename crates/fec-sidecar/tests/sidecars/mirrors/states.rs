//! Copies in other states than the sidecar records, and in part unreadable.

use super::*;

/// A tree of many files, and a copy of it.
fn many(files: u64, len: usize) -> (Arena, Arena) {
    let (arena, copy) = (Arena::new(), Arena::new());
    for nth in 0..files {
        for place in [&arena, &copy] {
            age(&place.write(format!("d/{nth:03}"), &payload(nth + 10, len)), nth);
        }
    }
    arena.protect(&How::of_percent(1));
    (arena, copy)
}

/// The files of a tree that are as in its copy.
fn back(arena: &Arena, copy: &Arena) -> usize {
    let names = fs::read_dir(copy.path("d")).expect("a folder").map(|entry| entry.expect("an entry").path());
    names
        .filter(|path| fs::read(arena.path("d").join(path.file_name().unwrap())).ok() == fs::read(path).ok())
        .count()
}

/// Some files of a copy are in another state, refuse to be read, or are not there: the others are fetched. A run that
/// is unlucky leaves the copy, and the next one begins elsewhere.
#[test]
fn a_copy_serves_as_far_as_it_goes() {
    for what in 0..3 {
        let (arena, copy) = many(40, 20_480);
        lose_all(&arena);
        let mut double = Double::of(copy.home.path());
        let mut kept = 0;
        for (nth, key) in double.files.keys().cloned().collect::<Vec<_>>().into_iter().enumerate() {
            match what {
                0 if nth < 12 => double.files.get_mut(&key).unwrap().insert(0, 7),
                1 if nth < 12 => drop(double.denied.insert(key)),
                2 if nth < 36 => drop(double.files.remove(&key)),
                _ => kept += 1,
            }
        }
        let partial = Mend { partial: true, ..Mend::default() };
        for _ in 0..30 {
            let _ = mend_from(&arena, &partial, &[&double]).0.expect("a part of it");
            if arena.path("d").exists() && back(&arena, &copy) == kept {
                break;
            }
        }
        assert_eq!(back(&arena, &copy), kept, "{what}");
    }
}

/// A byte that cannot be read costs its block.
#[test]
fn a_bad_sector_costs_a_block() {
    for conduct in [Conduct::Honest, Conduct::Lies] {
        let (arena, copy) = many(3, 3_000_000);
        lose_all(&arena);
        let mut double = Double::of(copy.home.path());
        double.bad = Some((b"d/001".to_vec(), 1_500_000));
        let honest = Double::of(copy.home.path()).only(|_| conduct == Conduct::Lies);
        let (done, fetched) =
            mend_from(&arena, &Mend { partial: true, ..Mend::default() }, &[&double, &honest]);
        assert!(done.is_ok());
        let block = u64::from(arena.open(None).expect("it opens").catalog().block);
        assert!(fetched.lacking <= block, "{fetched:?}");
        // The recovery data makes the block.
        assert_eq!(back(&arena, &copy), 3, "{fetched:?}");
    }
}

#[test]
fn a_part_leaves_what_was_fetched_for_others() {
    let (arena, copy) = many(20, 50_000);
    lose_all(&arena);
    let lacks = Double::of(copy.home.path()).only(|key| key != "d/015");
    assert_eq!(
        mend_from(&arena, &Mend::default(), &[&lacks]).0.expect_err("one is nowhere").class(),
        Class::Lost
    );
    let sidecar = arena.open(None).unwrap();
    let only = Selection::of(&sidecar, [&b"d/002"[..]]).unwrap();
    let whole = Double::of(copy.home.path());
    let (done, _) = mend_from(&arena, &Mend { only: Some(&only), ..Mend::default() }, &[&whole]);
    assert!(done.expect("the part").failed.is_empty());
    assert!(arena.path("d.fecp.fetched").exists());
    let fetched = mends_from(&arena, &copy, &[&whole]);
    assert!(fetched.kept > 17 * 50_000, "{fetched:?}");
}

/// Blocks that were fetched serve a repair without mirrors too, which removes the stash.
#[test]
fn a_stash_serves_without_mirrors() {
    let (arena, copy) = many(6, 50_000);
    lose_all(&arena);
    let lacks = Double::of(copy.home.path()).only(|key| key != "d/005");
    assert!(mend_from(&arena, &Mend::default(), &[&lacks]).0.is_err());
    age(&arena.write("d/005", &copy.read("d/005")), 5);
    arena.mend_all();
    assert_eq!(back(&arena, &copy), 6);
    assert!(!arena.path("d.fecp.fetched").exists());
    // The stash of another root stays as it is, and stops no repair that fetches nothing.
    let mut other = b"fec fetched ".to_vec();
    other.resize(200, b'0');
    arena.write("d.fecp.fetched", &other);
    flip(&arena.path("d/002"), 7);
    arena.mend_all();
    assert!(arena.read("d.fecp.fetched") == other);
    // A repair that needs nothing fetched does not mind what somebody has put there.
    arena.write("d.fecp.fetched", b"somebody's");
    flip(&arena.path("d/001"), 7);
    let (done, fetched) = mend_from(&arena, &Mend::default(), &[&Double::of(copy.home.path())]);
    assert!(done.expect("it is mended").failed.is_empty());
    assert_eq!((fetched.wanted, arena.read("d.fecp.fetched")), (0, b"somebody's".to_vec()));
}

/// Identical files are asked for under each of their names.
#[test]
fn a_block_is_asked_for_under_all_names() {
    let (arena, copy) = (Arena::new(), Arena::new());
    for nth in 0..9 {
        for place in [&arena, &copy] {
            age(&place.write(format!("d/{nth}"), &payload(1, 40_960)), nth);
        }
    }
    arena.protect(&How::of_percent(1));
    lose_all(&arena);
    mends_from(&arena, &copy, &[&Double::of(copy.home.path()).only(|key| key == "d/8")]);
}

/// A file that lies loose at the address, or is the address, does not lead the way to others.
#[test]
fn the_way_to_one_file_is_not_that_to_all() {
    let (arena, copy) = many(10, 40_960);
    lose_all(&arena);
    let mut loose = Double::of(copy.home.path());
    let bytes = loose.files.remove(&b"d/003"[..]).expect("it is there");
    loose.files.insert(b"003".to_vec(), bytes);
    mends_from(&arena, &copy, &[&loose]);
    lose_all(&arena);
    let mut single = Double::of(copy.home.path()).only(|_| false);
    single.files.insert(Vec::new(), copy.read("d/004"));
    single.last_part = b"004".to_vec();
    let (done, fetched) = mend_from(&arena, &Mend { partial: true, ..Mend::default() }, &[&single]);
    assert!(done.is_ok());
    assert_eq!((fetched.mirrors[0].wrong, back(&arena, &copy)), (0, 1), "{fetched:?}");
}
