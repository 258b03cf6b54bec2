//! Lost blocks come from copies of the files elsewhere, whatever these are like.

mod double;
mod rounds;
mod states;

use crate::arena::*;
use double::{Conduct, Double};
use fec_base::context::Context;
use fec_sidecar::examine::{Scope, Selection, State, base_of, examine};
use fec_sidecar::mirrors::{Fetched, LocalMirror, Mirror, Mirrors, NoAnswer};
use fec_sidecar::repair::{Mend, Mended, repair};
use fecfile::{Class, Error};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

/// A tree of which almost nothing can be mended, and a copy of it.
fn fragile() -> (Arena, Arena) {
    let (arena, copy) = (Arena::new(), Arena::new());
    for (path, seed, len) in [
        ("d/large", 1, 300_000),
        ("d/medium", 2, 70_111),
        ("d/sub/one", 3, 700),
        ("d/sub/two", 4, 900),
        ("d/sub/three", 5, 333),
        ("d/sub/four", 6, 5000),
        ("d/sub/empty", 7, 0),
    ] {
        for place in [&arena, &copy] {
            age(&place.write(path, &payload(seed, len)), seed);
        }
    }
    arena.protect(&How::of_percent(1));
    (arena, copy)
}

fn lose(arena: &Arena, paths: &[&str]) {
    paths.iter().for_each(|path| fs::remove_file(arena.path(path)).expect("it is there"));
}

fn lose_all(arena: &Arena) {
    let _ = fs::remove_dir_all(arena.path("d"));
}

/// Repairs from these mirrors. Returns what came of it, and what was fetched.
fn mend_from(arena: &Arena, how: &Mend<'_>, doubles: &[&Double]) -> (Result<Mended, Error>, Fetched) {
    let list = doubles.iter().map(|double| *double as &dyn Mirror).collect();
    let mirrors = Mirrors::new(list, None);
    let done = arena.try_mend(&Mend { mirrors: Some(&mirrors), ..*how });
    (done, mirrors.fetched())
}

/// A repair from these mirrors that must mend all, and leave nothing behind.
#[track_caller]
fn mends_from(arena: &Arena, copy: &Arena, doubles: &[&Double]) -> Fetched {
    let (done, fetched) = mend_from(arena, &Mend::default(), doubles);
    let mended = done.unwrap_or_else(|error| panic!("{error}: {fetched:?}"));
    assert!(mended.failed.is_empty() && mended.left.is_empty(), "{mended:?}");
    assert!(tree(&arena.path("d")) == tree(&copy.path("d")), "{fetched:?}");
    arena.is_intact();
    assert!(!arena.path("d.fecp.fetched").exists());
    assert_eq!(fetched.lacking, 0);
    fetched
}

#[test]
fn everything_comes_back_from_a_copy() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    arena.refuses(Class::Lost, || arena.try_mend(&Mend::default()));
    let double = Double::of(copy.home.path());
    let fetched = mends_from(&arena, &copy, &[&double]);
    assert_eq!((fetched.mirrors[0].wrong, fetched.mirrors[0].left.as_ref()), (0, None));
    assert_eq!(fetched.mirrors[0].received, double.given());
    let all: usize = double.files.values().map(Vec::len).sum();
    assert!(double.given() <= all as u64, "{} of {all} bytes", double.given());
}

#[test]
fn no_more_is_asked_for_than_what_cannot_be_mended() {
    let (arena, copy) = fragile();
    // Half of what the recovery data mends.
    rot(&arena.path("d/large"), 100_000, &[1; 1]);
    let double = Double::of(copy.home.path());
    let fetched = mends_from(&arena, &copy, &[&double]);
    assert_eq!((double.calls(), fetched.wanted), (0, 0));
    // Ten blocks of more than three hundred.
    for at in 0..10 {
        flip(&arena.path("d/large"), at * 30_000 + 5);
    }
    let fetched = mends_from(&arena, &copy, &[&double]);
    let block = u64::from(arena.open(None).expect("it opens").catalog().block);
    assert_eq!((fetched.wanted, double.given(), double.calls()), (10 * block, 10 * block, 10));
}

#[test]
fn a_liar_costs_two_answers() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    let liar = Double::of(copy.home.path()).with(Conduct::Lies);
    let honest = Double::of(copy.home.path());
    let fetched = mends_from(&arena, &copy, &[&liar, &honest]);
    assert!(liar.calls() <= 2, "{fetched:?}");
    assert_eq!(fetched.mirrors[0].taken, 0);
    // Alone it gets nothing written.
    lose_all(&arena);
    let before = seen(arena.home.path());
    let (done, fetched) = mend_from(&arena, &Mend::default(), &[&liar]);
    assert_eq!(done.expect_err("it lies").class(), Class::Lost);
    assert_eq!((fetched.lacking, fetched.mirrors[0].wrong), (fetched.wanted, 2));
    assert!(fetched.mirrors[0].left.as_ref().is_some_and(|why| why.contains("not those")));
    let mut after = seen(arena.home.path());
    after.remove(Path::new("d.fecp.fetched"));
    assert!(after == before);
}

#[test]
fn a_mirror_that_fails_is_left_and_one_that_hangs_is_not_waited_for() {
    let (arena, copy) = fragile();
    for conduct in [
        Conduct::Fails,
        Conduct::FailsAfter(1),
        Conduct::FailsAfter(3),
        Conduct::HangsAfter(0),
        Conduct::HangsAfter(2),
    ] {
        lose_all(&arena);
        let (bad, good) = (Double::of(copy.home.path()).with(conduct), Double::of(copy.home.path()));
        for order in [[&bad, &good], [&good, &bad]] {
            let started = Instant::now();
            mends_from(&arena, &copy, &order);
            assert!(started.elapsed() < Duration::from_secs(20), "{conduct:?}");
            lose_all(&arena);
        }
        let (done, fetched) = match conduct {
            Conduct::HangsAfter(_) => continue,
            _ => mend_from(&arena, &Mend::default(), &[&bad]),
        };
        assert_eq!(done.expect_err("it fails").class(), Class::Lost, "{fetched:?}");
        assert!(fetched.mirrors[0].left.is_some());
        assert_eq!(arena.path("d.fecp.fetched").exists(), fetched.lacking < fetched.wanted, "{fetched:?}");
        let _ = fs::remove_file(arena.path("d.fecp.fetched"));
        mends_from(&arena, &copy, &[&good]);
    }
}

#[test]
fn copies_complete_each_other() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    let mut first = Double::of(copy.home.path()).only(|key| key != "d/sub/two" && key != "d/medium");
    first.files.get_mut(&b"d/large"[..]).expect("it is there").truncate(120_001);
    let mut second = Double::of(copy.home.path()).only(|key| key != "d/sub/one" && key != "d/sub/three");
    second.files.get_mut(&b"d/large"[..]).expect("it is there")[..110_000].fill(9);
    mends_from(&arena, &copy, &[&first, &second]);
    lose_all(&arena);
    mends_from(&arena, &copy, &[&second, &first]);
    // Neither has the third part.
    lose_all(&arena);
    first.files.get_mut(&b"d/large"[..]).expect("it is there").truncate(100_000);
    let (done, fetched) = mend_from(&arena, &Mend::default(), &[&first, &second]);
    assert_eq!(done.expect_err("a part is nowhere").class(), Class::Lost);
    assert!((10_000..13_000).contains(&fetched.lacking), "{fetched:?}");
    let (done, _) = mend_from(&arena, &Mend { partial: true, ..Mend::default() }, &[&first, &second]);
    let mended = done.expect("the others");
    assert_eq!(
        mended.failed.iter().map(|nth| path_of(&arena.open(None).unwrap(), *nth)).collect::<Vec<_>>(),
        ["d/large"]
    );
    assert_eq!(arena.read("d/medium"), copy.read("d/medium"));
}

/// Tails of longer files share a block, and only all of them prove each other.
#[test]
fn tails_come_from_several_copies() {
    let (arena, copy) = (Arena::new(), Arena::new());
    for nth in 0..6 {
        let bytes = payload(nth, 40_100 + nth as usize);
        for place in [&arena, &copy] {
            age(&place.write(format!("d/{nth}"), &bytes), nth);
        }
    }
    arena.protect(&How::of_percent(1));
    lose_all(&arena);
    // Each copy has two files with right ends.
    let of = |right: [&str; 2]| {
        let mut double = Double::of(copy.home.path());
        for (key, bytes) in &mut double.files {
            if !right.iter().any(|right| key.ends_with(right.as_bytes())) {
                *bytes.last_mut().expect("a byte") ^= 1;
            }
        }
        double
    };
    let doubles = [of(["0", "1"]), of(["2", "3"]), of(["4", "5"])];
    mends_from(&arena, &copy, &[&doubles[0], &doubles[1], &doubles[2]]);
    lose_all(&arena);
    // Two ends are nowhere, and the recovery data makes the block of all ends.
    let fetched = mend_from(&arena, &Mend::default(), &[&doubles[0], &doubles[1]]).1;
    assert!(fetched.lacking > 0 && fetched.lacking < 5000, "{fetched:?}");
}

#[test]
fn the_blocks_that_an_older_copy_has_are_taken() {
    let (arena, copy) = fragile();
    lose(&arena, &["d/large", "d/medium"]);
    let mut old = Double::of(copy.home.path());
    for (key, bytes) in &mut old.files {
        if key.ends_with(b"large") {
            bytes[200_000..230_000].fill(1);
        }
    }
    let new = Double::of(copy.home.path());
    let fetched = mends_from(&arena, &copy, &[&old, &new]);
    assert_eq!(fetched.mirrors[0].left, None);
    assert!(fetched.mirrors[0].taken + fetched.mirrors[1].taken >= fetched.wanted);
}

/// A fetch from a mirror that breaks off when a part has come.
fn interrupted(arena: &Arena, copy: &Arena) -> Fetched {
    // Requests for tails alone may give no block.
    for _ in 0..100 {
        let breaks = Double::of(copy.home.path()).with(Conduct::FailsAfter(6));
        let (done, fetched) = mend_from(arena, &Mend::default(), &[&breaks]);
        // The recovery data may make the rest.
        if let (Err(error), true) = (done, fetched.lacking < fetched.wanted) {
            assert_eq!(error.class(), Class::Lost);
            return fetched;
        }
        lose_all(arena);
        let _ = fs::remove_file(arena.path("d.fecp.fetched"));
    }
    panic!("it never breaks off in the middle");
}

#[test]
fn an_interrupted_fetch_goes_on() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    let first = interrupted(&arena, &copy);
    // A run that was killed has written half of what comes next.
    let stash = arena.path("d.fecp.fetched");
    let mut torn = fs::read(&stash).expect("a stash");
    torn.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9]);
    fs::write(&stash, &torn).unwrap();
    let double = Double::of(copy.home.path());
    let fetched = mends_from(&arena, &copy, &[&double]);
    assert_eq!(fetched.kept, first.wanted - first.lacking);
    assert_eq!(fetched.mirrors[0].taken, first.lacking);
}

/// A stash that somebody else wrote gives no byte, and no link is followed.
#[test]
fn a_planted_stash_is_not_believed() {
    let (arena, copy) = fragile();
    let double = Double::of(copy.home.path());
    let stash = arena.path("d.fecp.fetched");
    lose_all(&arena);
    interrupted(&arena, &copy);
    let whole = fs::read(&stash).expect("a stash");
    for damage in 0..5 {
        let mut forged = whole.clone();
        match damage {
            0 => forged.iter_mut().skip(128 + 16).step_by(100).for_each(|byte| *byte ^= 1),
            // Positions of other blocks, endless runs, and another root.
            1 => forged[128] ^= 3,
            2 => forged[136..144].fill(255),
            3 => forged[20] ^= 1,
            _ => forged.truncate(60),
        }
        fs::write(&stash, forged).unwrap();
        mends_from(&arena, &copy, &[&double]);
        lose_all(&arena);
    }
    fs::write(arena.path("other"), b"somebody's").unwrap();
    for plant in 0..4 {
        let _ = fs::remove_file(&stash);
        match plant {
            0 => symlink("other", &stash).unwrap(),
            1 => fs::hard_link(arena.path("other"), &stash).unwrap(),
            2 => fs::write(&stash, b"somebody's").unwrap(),
            _ => make_fifo(&stash),
        }
        let before = double.calls();
        let words = arena.refuses(Class::Usage, || mend_from(&arena, &Mend::default(), &[&double]).0);
        assert!(words.contains("d.fecp.fetched"), "{words}");
        assert_eq!(double.calls(), before);
        assert_eq!(arena.read("other"), b"somebody's");
    }
}

#[test]
fn edits_stay_and_a_part_takes_a_part() {
    let (arena, copy) = fragile();
    edit(&arena.path("d/medium"), b"mine");
    lose(&arena, &["d/large", "d/sub/four"]);
    let double = Double::of(copy.home.path());
    let sidecar = arena.open(None).unwrap();
    let only = Selection::of(&sidecar, [&b"d/sub"[..]]).unwrap();
    let (done, _) = mend_from(&arena, &Mend { only: Some(&only), ..Mend::default() }, &[&double]);
    assert!(done.expect("the part").failed.is_empty());
    assert_eq!(arena.read("d/sub/four"), copy.read("d/sub/four"));
    assert!(!arena.path("d/large").exists());
    assert!(double.given() < 20_000, "{}", double.given());
    let (done, _) = mend_from(&arena, &Mend::default(), &[&double]);
    assert_eq!(done.expect("the rest").left.len(), 1);
    assert_eq!((arena.read("d/medium"), arena.read("d/large")), (b"mine".to_vec(), copy.read("d/large")));
    let (done, _) = mend_from(&arena, &reverting(), &[&double]);
    assert!(done.expect("all").left.is_empty());
    assert_eq!(arena.read("d/medium"), copy.read("d/medium"));
    arena.is_intact();
}

#[test]
fn another_folder_takes_everything_too() {
    let (arena, copy) = fragile();
    edit(&arena.path("d/medium"), b"mine");
    lose(&arena, &["d/large"]);
    let (double, out) = (Double::of(copy.home.path()), arena.path("out"));
    let (done, _) = mend_from(&arena, &Mend { out: Some(&out), ..Mend::default() }, &[&double]);
    assert!(done.expect("a copy").failed.is_empty());
    assert!(tree(&out.join("d")) == tree(&copy.path("d")));
    assert!(!arena.path("d/large").exists() && arena.read("d/medium") == b"mine");
}

#[test]
fn a_dry_run_asks_nobody() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    let double = Double::of(copy.home.path());
    let before = seen(arena.home.path());
    let (done, fetched) = mend_from(&arena, &Mend { dry_run: true, ..Mend::default() }, &[&double]);
    let mended = done.expect("a plan");
    assert!(mended.failed.is_empty() && mended.mended.len() >= 7, "{mended:?}");
    assert!(fetched.wanted > 370_000 && double.calls() == 0);
    assert!(seen(arena.home.path()) == before);
}

/// The stash in a protected folder is nothing new, no place that blocks were moved to, and is not protected.
#[test]
fn a_stash_among_the_files_is_none_of_them() {
    let (arena, copy) = (Arena::new(), Arena::new());
    for (path, seed) in [("d/one", 1), ("d/two", 2), ("d/three", 3)] {
        for place in [&arena, &copy] {
            age(&place.write(path, &payload(seed, 102_400)), seed);
        }
    }
    arena.protect(&How { output: "d/s.fecp", redundancy: Some(1), ..How::default() });
    lose(&arena, &["d/one", "d/two"]);
    let breaks = Double::of(&copy.path("d")).with(Conduct::FailsAfter(1));
    let sidecar = arena.open_at("d/s.fecp", None).expect("it opens");
    let base = base_of(&sidecar, None).expect("its folder");
    let list: Vec<&dyn Mirror> = vec![&breaks];
    let mirrors = Mirrors::new(list, None);
    let how = Mend { mirrors: Some(&mirrors), ..Mend::default() };
    assert_eq!(repair(&sidecar, &base, &how, &context()).expect_err("it breaks off").class(), Class::Lost);
    assert!(arena.path("d/s.fecp.fetched").exists());
    let found = examine(&sidecar, &base, Scope::All, &context()).expect("it is examined");
    assert_eq!(
        (found.unprotected.count, found.count(State::Missing), found.entries.len()),
        (0, 2, 2),
        "{found:?}"
    );
    drop(sidecar);
    let how = How { output: "d/s.fecp", force: true, ..How::default() };
    arena.try_update(&how).expect("it is updated");
    let sidecar = arena.open_at("d/s.fecp", None).expect("it opens");
    assert!(sidecar.catalog().entries.iter().all(|entry| !entry.path.ends_with(b"fetched")));
    let found = examine(&sidecar, &base, Scope::All, &context()).expect("it is examined");
    assert!(found.is_intact() && found.unprotected.count == 0, "{found:?}");
}

#[test]
fn the_address_may_be_that_of_the_file_its_folder_or_the_one_around() {
    let (arena, copy) = fragile();
    for from in ["", "d"] {
        lose_all(&arena);
        let local = LocalMirror::new("a copy", copy.path(from));
        let mirrors = Mirrors::new(vec![&local], None);
        assert!(arena.mend(&Mend { mirrors: Some(&mirrors), ..Mend::default() }).left.is_empty());
        assert!(tree(&arena.path("d")) == tree(&copy.path("d")), "{from}");
    }
    let arena = Arena::new();
    let path = arena.write("photo", &payload(3, 50_001));
    age(&path, 0);
    arena.protect(&How { paths: &["photo"], ..How::of_percent(1) });
    for (from, is_file) in [("photo", true), ("renamed", true), ("folder", false)] {
        let copy = Arena::new();
        let at = if is_file { from.to_owned() } else { format!("{from}/photo") };
        copy.write(&at, &payload(3, 50_001));
        let _ = fs::remove_file(&path);
        let local = LocalMirror::new("a copy", copy.path(from));
        let mirrors = Mirrors::new(vec![&local], None);
        arena.mend(&Mend { mirrors: Some(&mirrors), ..Mend::default() });
        assert_eq!(arena.read("photo"), payload(3, 50_001), "{from}");
    }
}

/// The only request there is hangs, and another mirror has to take it.
#[test]
fn a_mirror_that_hangs_with_the_last_request_is_not_waited_for() {
    for len in [300, 102_400] {
        let (arena, copy) = (Arena::new(), Arena::new());
        for place in [&arena, &copy] {
            age(&place.write("d/one", &payload(1, len)), 1);
        }
        arena.write("d/other", &payload(2, 60_000));
        copy.write("d/other", &payload(2, 60_000));
        age(&arena.path("d/other"), 2);
        arena.protect(&How::of_percent(1));
        lose(&arena, &["d/one"]);
        rot(&arena.path("d.fecp"), 3000, &[7; 3000]);
        let hangs = Double::of(copy.home.path()).with(Conduct::HangsAfter(0));
        let good = Double::of(copy.home.path());
        let started = Instant::now();
        let (done, fetched) = mend_from(&arena, &Mend::default(), &[&hangs, &good]);
        assert!(done.expect("it is mended").failed.is_empty(), "{fetched:?}");
        assert!(arena.read("d/one") == copy.read("d/one"));
        assert!(started.elapsed() < Duration::from_secs(20), "{fetched:?}");
    }
}

/// A mirror that panics ends the repair, and nobody waits for it.
#[test]
#[should_panic]
fn a_mirror_that_panics_ends_the_repair() {
    struct Faulty;
    impl Mirror for Faulty {
        fn name(&self) -> &str {
            "faulty"
        }
        fn last_part(&self) -> &[u8] {
            b""
        }
        fn len(&self, _: &[u8], _: &fec_base::context::Cancel) -> Result<u64, NoAnswer> {
            Ok(0)
        }
        fn read(
            &self,
            _: &[u8],
            _: u64,
            _: &mut [u8],
            _: &fec_base::context::Cancel,
        ) -> Result<(), NoAnswer> {
            panic!("a mirror with a fault");
        }
    }
    let (arena, copy) = fragile();
    lose_all(&arena);
    let hangs = Double::of(copy.home.path()).with(Conduct::HangsAfter(0));
    let list: Vec<&dyn Mirror> = vec![&Faulty, &hangs];
    let mirrors = Mirrors::new(list, None);
    let _ = arena.try_mend(&Mend { mirrors: Some(&mirrors), ..Mend::default() });
}

#[test]
fn the_caller_ends_a_fetch() {
    let (arena, copy) = fragile();
    lose_all(&arena);
    let hangs = Double::of(copy.home.path()).with(Conduct::HangsAfter(1));
    let cancel = fec_base::context::Cancel::default();
    let list: Vec<&dyn Mirror> = vec![&hangs];
    let mirrors = Mirrors::new(list, None);
    let how = Mend { mirrors: Some(&mirrors), ..Mend::default() };
    let sidecar = arena.open(None).unwrap();
    let settings = context().settings;
    std::thread::scope(|threads| {
        let of = cancel.clone();
        threads.spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            of.cancel();
        });
        let done = repair(&sidecar, &arena.base(), &how, &Context::new(settings).with_cancel(&cancel));
        assert!(matches!(done.expect_err("it was ended").kind, fecfile::ErrorKind::Cancelled));
    });
    drop(sidecar);
    mends_from(&arena, &copy, &[&Double::of(copy.home.path())]);
}

/// The tail of a rotten file is known from its twin, and lies in a block that has lost more than can be computed.
#[test]
fn a_rotten_file_with_a_known_tail_in_a_lost_block_is_made_anew() {
    let arena = Arena::new();
    for (path, seed, len) in [("d/a", 1, 20_300), ("d/b", 1, 20_300), ("d/c", 2, 600), ("d/z", 3, 60_000)] {
        age(&arena.write(path, &payload(seed, len)), 0);
    }
    arena.protect(&How::of_percent(1));
    flip(&arena.path("d/a"), 20_290);
    fs::remove_file(arena.path("d/c")).unwrap();
    rot(&arena.path("d/z"), 0, &[7; 30_000]);
    let mended = arena.try_mend(&Mend { partial: true, ..Mend::default() }).expect("what can be mended");
    assert_eq!(arena.read("d/a"), payload(1, 20_300), "{mended:?}");
}
