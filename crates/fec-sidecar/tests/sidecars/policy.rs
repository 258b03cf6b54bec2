//! Policies: what is damage by them, what may go, what an update holds, and who may believe them.

use crate::arena::*;
use crate::recode::Recoded;
use fec_core::format::sidecar::policy::Rules;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::{Scope, Selection, State, examine};
use fec_sidecar::protect::{Prune, rules_of};
use fec_sidecar::repair::Mend;
use fec_sidecar::update::{Updated, Why};
use fecfile::Class;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

const TEXT: &str = "
once stays: /packs/
once goes: /mail/
changes goes: /packs/info/
out: /locks/
busy: /at-work
";

fn rules() -> Rules {
    rules_of(TEXT).expect("a policy")
}

fn under(rules: &Rules) -> How<'_> {
    How { rules: Some(rules), ..MARKED }
}

/// A store with packs that are not all of one size, its policy, and a sidecar.
fn store() -> Arena {
    let arena = Arena::new();
    for nth in 0..24 {
        arena.write(format!("d/packs/{:02}/{nth}", nth % 3), &payload(nth, 40_000 + 777 * nth as usize));
    }
    for nth in 0..4 {
        arena.write(format!("d/mail/{nth}"), &payload(50 + nth, 3000));
    }
    arena.write("d/packs/alone/1", &payload(60, 5000));
    arena.write("d/packs/alone/2", &payload(61, 6000));
    arena.write("d/packs/info/list", b"24 packs");
    arena.write("d/locks/1", b"locked");
    arena.write("d/notes", &payload(70, 9000));
    arena.protect(&under(&rules()));
    arena
}

/// Cuts a file, as a full disk does: it gets a new time.
fn cut(path: &Path, len: u64) {
    File::options().write(true).open(path).and_then(|file| file.set_len(len)).expect("it is cut");
}

fn held(updated: &Updated) -> Vec<(String, bool)> {
    let path = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    updated.held.iter().map(|held| (path(&held.path), held.why == Why::Gone)).collect()
}

fn pair_held(path: &str, is_gone: bool) -> (String, bool) {
    (path.to_owned(), is_gone)
}

#[test]
fn every_difference_of_what_is_written_once_is_damage() {
    let arena = store();
    let before = tree(&arena.path("d"));
    cut(&arena.path("d/packs/00/0"), 20_000);
    cut(&arena.path("d/packs/00/3"), 0);
    fs::write(arena.path("d/packs/01/1"), payload(99, 50_000)).unwrap();
    let same_size = fs::metadata(arena.path("d/packs/01/4")).unwrap().len();
    fs::write(arena.path("d/packs/01/4"), payload(98, same_size as usize)).unwrap();
    flip(&arena.path("d/packs/02/2"), 777);
    fs::remove_file(arena.path("d/packs/02/5")).unwrap();
    let rotten = ["d/packs/00/0", "d/packs/00/3", "d/packs/01/1", "d/packs/01/4", "d/packs/02/2"];
    let mut expected: Vec<_> = rotten.iter().map(|path| pair(path, State::Rotten)).collect();
    expected.push(pair("d/packs/02/5", State::Missing));
    assert_eq!(arena.states(), expected);
    let (_, found) = arena.examine();
    let by_policy: Vec<bool> = found.entries.iter().map(|report| report.is_by_policy).collect();
    assert_eq!(
        by_policy,
        [true, true, true, true, true, false],
        "the mark of rot that a test makes is another"
    );
    let quick = examine(&arena.open(None).unwrap(), &arena.base(), Scope::Quick, &context()).unwrap();
    let sidecar = arena.open(None).unwrap();
    // A longer one may have grown, and nothing tells of those with their sizes.
    let states = states_of(&sidecar, &quick);
    assert_eq!(states[..2], expected[..2]);
    assert!(states.contains(&pair("d/packs/01/1", State::Edited)), "{states:?}");
    let mended = arena.try_mend(&Mend { partial: true, ..Mend::default() }).expect("it is mended");
    assert!(mended.left.is_empty());
    // Less was lost than the sidecar can mend.
    let arena = store();
    cut(&arena.path("d/packs/00/0"), 20_000);
    flip(&arena.path("d/packs/02/2"), 777);
    arena.mend_all();
    assert!(tree(&arena.path("d")) == before);
    arena.is_intact();
}

#[test]
fn each_kind_of_damage_is_mended_by_a_plain_repair() {
    let damage: [&dyn Fn(&Path); 6] = [
        &|path| fs::remove_file(path).unwrap(),
        &|path| cut(path, 30_000),
        &|path| cut(path, 0),
        &|path| fs::write(path, payload(99, 50_000)).unwrap(),
        &|path| fs::write(path, payload(99, 30_000)).unwrap(),
        &|path| flip(path, 1),
    ];
    for (nth, damage) in damage.iter().enumerate() {
        let arena = store();
        let before = tree(&arena.path("d"));
        damage(&arena.path("d/packs/01/7"));
        let mended = arena.mend_all();
        assert_eq!(mended.mended.len(), 1, "{nth}");
        assert!(tree(&arena.path("d")) == before, "{nth}");
        arena.is_intact();
    }
}

/// A file that was not whole when it was recorded is longer later. Damage makes no file longer and keeps the rest.
#[test]
fn a_file_that_has_grown_is_no_damage() {
    let arena = store();
    let path = arena.path("d/packs/01/7");
    let grown = [fs::read(&path).unwrap(), payload(3, 5000)].concat();
    fs::write(&path, &grown).unwrap();
    assert_eq!(arena.states(), [pair("d/packs/01/7", State::Edited)]);
    arena.leaves(&Mend::default());
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), []);
    assert!(arena.read("d/packs/01/7") == grown);
    arena.is_intact();
    // A small file too, of which no block says anything.
    let arena = store();
    let path = arena.path("d/mail/1");
    fs::write(&path, [fs::read(&path).unwrap(), payload(3, 9)].concat()).unwrap();
    assert_eq!(arena.states(), [pair("d/mail/1", State::Edited)]);
    fs::write(&path, payload(4, 3009)).unwrap();
    assert_eq!(arena.states(), [pair("d/mail/1", State::Rotten)]);
}

#[test]
fn an_update_holds_what_is_damaged_or_gone_and_protects_the_rest() {
    let arena = store();
    let before = tree(&arena.path("d"));
    fs::remove_file(arena.path("d/packs/00/0")).unwrap();
    cut(&arena.path("d/packs/01/1"), 0);
    arena.write("d/packs/03/new", &payload(80, 20_000));
    arena.write("d/notes", &payload(71, 9500));
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), [pair_held("d/packs/00/0", true), pair_held("d/packs/01/1", false)]);
    assert!(updated.written && updated.sidecar.kept.is_empty() && updated.gone.is_empty());
    assert_eq!((updated.added, updated.changed), (1, 1));
    let expected = [pair("d/packs/00/0", State::Missing), pair("d/packs/01/1", State::Rotten)];
    assert_eq!(arena.states(), expected);
    // Once more, with nothing new.
    let updated = arena.update(&MARKED);
    assert!(!updated.written && updated.held.len() == 2);
    arena.mend_all();
    let after = tree(&arena.path("d"));
    assert!(
        ["packs/00/0", "packs/01/1"].iter().all(|path| before[Path::new(path)] == after[Path::new(path)])
    );
    assert_eq!(held(&arena.update(&MARKED)), []);
    arena.is_intact();
}

/// A folder comes back with the files that were in it.
#[test]
fn a_folder_that_is_gone_is_held_with_its_files() {
    let arena = store();
    let before = tree(&arena.path("d"));
    fs::remove_dir_all(arena.path("d/packs/alone")).unwrap();
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), [pair_held("d/packs/alone/1", true), pair_held("d/packs/alone/2", true)]);
    assert!(updated.sidecar.kept.is_empty(), "{:?}", updated.sidecar.kept);
    assert_eq!(arena.states()[0], pair("d/packs/alone", State::Missing));
    arena.mend_all();
    assert!(tree(&arena.path("d")) == before);
}

/// Its program looks for a pack by its name. Two may have the same bytes, as the empty segments of borg.
#[test]
fn a_pack_that_has_another_name_is_missing() {
    let arena = store();
    let before = tree(&arena.path("d"));
    fs::rename(arena.path("d/packs/alone"), arena.path("d/packs/away")).unwrap();
    fs::rename(arena.path("d/mail/1"), arena.path("d/mail/1,S")).unwrap();
    let missing =
        ["d/packs/alone", "d/packs/alone/1", "d/packs/alone/2"].map(|path| pair(path, State::Missing));
    assert_eq!(arena.states(), [&[pair("d/mail/1", State::Moved)][..], &missing].concat());
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), [pair_held("d/packs/alone/1", true), pair_held("d/packs/alone/2", true)]);
    assert_eq!((updated.moved, updated.added, updated.coded_len), (1, 2, 0), "the same bytes are coded once");
    arena.mend_all();
    fs::remove_dir_all(arena.path("d/packs/away")).unwrap();
    fs::rename(arena.path("d/mail/1,S"), arena.path("d/mail/1")).unwrap();
    assert!(tree(&arena.path("d")) == before);
}

/// A link or a folder in the place of a pack is held too, and nothing behind it is protected.
#[test]
fn another_kind_of_entry_in_the_place_of_what_stays_is_held() {
    let arena = store();
    fs::remove_file(arena.path("d/packs/00/0")).unwrap();
    symlink("3", arena.path("d/packs/00/0")).unwrap();
    fs::remove_file(arena.path("d/packs/01/1")).unwrap();
    arena.write("d/packs/01/1/inside", b"new");
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), [pair_held("d/packs/00/0", true), pair_held("d/packs/01/1", true)]);
    assert_eq!(updated.added, 0);
}

#[test]
fn what_the_owner_has_pruned_is_let_go_and_nothing_else() {
    let prune = |arena: &Arena| {
        for nth in [0, 3, 6, 9, 1, 4, 7] {
            fs::remove_file(arena.path(format!("d/packs/{:02}/{nth}", nth % 3))).unwrap();
        }
        arena.write("d/packs/02/repacked", &payload(90, 60_000));
    };
    let pruned = How { prune: Prune::Done, ..MARKED };
    let arena = store();
    prune(&arena);
    cut(&arena.path("d/packs/02/2"), 100);
    // More is gone than can be held beside what has to be coded again.
    let refused = arena.try_update(&MARKED);
    assert!(refused.is_err() || !refused.unwrap().held.is_empty());
    let error = arena.try_update(&pruned);
    match error {
        Ok(updated) => assert_eq!(held(&updated), [pair_held("d/packs/02/2", false)]),
        Err(error) => {
            assert!(matches!(error.cause(), Some(SidecarError::Held(paths)) if paths.len() == 1), "{error}")
        }
    }
    let arena = store();
    prune(&arena);
    let updated = arena.update(&pruned);
    assert_eq!((updated.gone.len(), updated.held.len()), (7, 0));
    arena.is_intact();
}

#[test]
fn after_an_announcement_a_prune_is_no_damage_until_the_next_update() {
    let arena = store();
    let announced = How { prune: Prune::Announced, ..MARKED };
    let updated = arena.update(&announced);
    assert!(updated.written, "the announcement is recorded");
    assert!(!arena.update(&announced).written, "once");
    for nth in [0, 3, 6, 9, 12, 15, 18, 21, 1, 4, 7] {
        fs::remove_file(arena.path(format!("d/packs/{:02}/{nth}", nth % 3))).unwrap();
    }
    fs::remove_dir(arena.path("d/packs/00")).unwrap();
    let (sidecar, found) = arena.examine();
    let states = states_of(&sidecar, &found);
    assert!(states.len() == 12 && states.iter().all(|(_, state)| *state == State::Gone), "{states:?}");
    assert!(found.is_mendable(), "nothing is lost");
    let mended = arena.leaves(&Mend::default());
    assert_eq!((mended.mended.len(), mended.left.len()), (0, 12));
    // A kill between the prune and the update changes nothing.
    let updated = arena.update(&MARKED);
    assert_eq!((updated.gone.len(), updated.held.len()), (11, 0));
    arena.is_intact();
    assert!(!arena.open(None).unwrap().stats().policy.is_announced);
    fs::remove_file(arena.path("d/packs/02/2")).unwrap();
    assert_eq!(arena.states(), [pair("d/packs/02/2", State::Missing)], "it stays again");
}

/// `git gc` writes packs that repeat nearly all of an old one, with its size, and takes the old one away.
#[test]
fn a_pack_that_repeats_another_is_it_not_moved() {
    let replaced = |arena: &Arena| {
        let mut bytes = fs::read(arena.path("d/packs/01/22")).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        arena.write("d/packs/01/new", &bytes);
        // The program gives it the time of the old one.
        let time = fs::metadata(arena.path("d/packs/01/22")).unwrap().modified().unwrap();
        File::options().write(true).open(arena.path("d/packs/01/new")).unwrap().set_modified(time).unwrap();
        fs::remove_file(arena.path("d/packs/01/22")).unwrap();
    };
    let arena = store();
    replaced(&arena);
    assert_eq!(arena.states(), [pair("d/packs/01/22", State::Missing)], "it stays");
    let updated = arena.update(&MARKED);
    assert_eq!(held(&updated), [pair_held("d/packs/01/22", true)]);
    assert_eq!(arena.mend(&Mend::default()).mended.len(), 1);
    arena.is_intact();

    let arena = store();
    arena.update(&How { prune: Prune::Announced, ..MARKED });
    replaced(&arena);
    let (sidecar, found) = arena.examine();
    assert_eq!(states_of(&sidecar, &found), [pair("d/packs/01/22", State::Gone)]);
    assert!(found.is_mendable(), "nothing is lost");
    let updated = arena.update(&MARKED);
    assert_eq!((updated.gone.len(), updated.held.len()), (1, 0));
    arena.is_intact();
}

#[test]
fn what_may_go_comes_back_by_its_name_alone() {
    let arena = store();
    let before = tree(&arena.path("d"));
    ["d/mail/1", "d/mail/2", "d/packs/info/list"]
        .iter()
        .for_each(|path| fs::remove_file(arena.path(path)).unwrap());
    let gone = ["d/mail/1", "d/mail/2", "d/packs/info/list"].map(|path| pair(path, State::Gone));
    assert_eq!(arena.states(), gone);
    for how in [Mend::default(), reverting()] {
        assert_eq!(arena.leaves(&how).left.len(), 3);
    }
    let sidecar = arena.open(None).unwrap();
    let only = Selection::of(&sidecar, [&b"d/mail"[..]]).expect("a selection");
    let mended = arena.try_mend(&Mend { only: Some(&only), ..Mend::default() }).expect("it is mended");
    assert_eq!(mended.mended.len(), 2);
    assert_eq!(arena.states(), [pair("d/packs/info/list", State::Gone)]);
    // Into another folder everything is written as it was.
    let out = arena.path("out");
    arena.mend(&Mend { out: Some(&out), ..Mend::default() });
    let mut whole = before;
    whole.retain(|path, _| !path.starts_with("locks"));
    assert!(tree(&out.join("d")) == whole);
    assert_eq!(arena.update(&MARKED).gone.len(), 1);
    arena.is_intact();
}

#[test]
fn locks_are_left_out_and_while_somebody_is_at_work_nothing_is_done() {
    let arena = store();
    assert_eq!(arena.open(None).unwrap().catalog().files().filter(|(nth, _)| *nth == 0).count(), 0);
    let sidecar = arena.open(None).unwrap();
    let paths: Vec<String> = sidecar.catalog().files().map(|(nth, _)| path_of(&sidecar, nth)).collect();
    assert!(!paths.iter().any(|path| path.contains("locks")), "{paths:?}");
    fs::remove_dir_all(arena.path("d/locks")).unwrap();
    arena.is_intact();
    flip(&arena.path("d/packs/01/7"), 3);
    arena.write("d/at-work/pid", b"1");
    arena.refuses_update(&MARKED, Class::Io);
    arena.refuses(Class::Io, || arena.try_mend(&Mend::default()));
    let only = Selection::of(&sidecar, [&b"d/packs/01/7"[..]]).expect("a selection");
    arena.refuses(Class::Io, || arena.try_mend(&Mend { only: Some(&only), ..Mend::default() }));
    assert!(arena.try_mend(&Mend { dry_run: true, ..Mend::default() }).is_ok());
    // Deeper down it is a name like any other.
    fs::rename(arena.path("d/at-work"), arena.path("d/packs/at-work")).unwrap();
    arena.mend_all();
    arena.update(&MARKED);
}

/// Whoever writes to the sidecar must not make damage of an edit, nor an edit of damage.
#[test]
fn a_policy_that_nothing_proves_is_not_used() {
    let arena = store();
    let root = arena.root();
    cut(&arena.path("d/packs/00/0"), 20_000);
    fs::remove_file(arena.path("d/mail/1")).unwrap();
    let of_root = |known: bool| {
        let sidecar = match known {
            true => {
                let e = arena.open(None).unwrap().metadata_root().expect("it is not sealed");
                fec_sidecar::Sidecar::open_known(&arena.path("d.fecp"), root, &[e], &context().settings)
            }
            false => arena.open(Some(root)),
        };
        let sidecar = sidecar.expect("it opens");
        let found = examine(&sidecar, &arena.base(), Scope::All, &context()).expect("it is examined");
        states_of(&sidecar, &found)
    };
    assert_eq!(of_root(true), [pair("d/mail/1", State::Gone), pair("d/packs/00/0", State::Rotten)]);
    let plain = [pair("d/mail/1", State::Missing), pair("d/packs/00/0", State::Edited)];
    assert_eq!(of_root(false), plain);
    let by_root = How { root: Some(root), ..MARKED };
    let error = arena.try_update(&by_root).expect_err("it is refused");
    assert!(matches!(error.cause(), Some(SidecarError::PolicyUnproved)), "{error}");
    // A policy that is given again holds what it should, and nothing is kept that only the root proves.
    let policy = rules();
    let error = arena.try_update(&How { rules: Some(&policy), ..by_root }).expect_err("it is refused");
    assert!(matches!(error.cause(), Some(SidecarError::Held(_))), "{error}");
    let nothing = Rules::default();
    arena.update(&How { rules: Some(&nothing), ..by_root });
    assert!(arena.open(None).unwrap().stats().policy.is_empty());
}

/// A looser policy under the same root, as somebody would plant it who can write to the sidecar.
#[test]
fn a_planted_policy_loosens_nothing_under_a_root() {
    let arena = Arena::new();
    (0..30).for_each(|nth| drop(arena.write(format!("d/{nth}"), &payload(nth, 20_000))));
    arena.protect(&under(&rules_of("once: nn\nchanges goes: mm").expect("a policy")));
    let root = arena.root();
    let planted = Recoded::of(&arena.read("d.fecp")).with(b"\x02nn", b"\x02/*").with(b"\x02mm", b"\x02/7");
    arena.write("d.fecp", &planted.build());
    assert_eq!(arena.root(), root);
    fs::write(arena.path("d/1"), payload(40, 20_000)).unwrap();
    fs::remove_file(arena.path("d/7")).unwrap();
    assert_eq!(arena.states(), [pair("d/1", State::Rotten), pair("d/7", State::Gone)], "without a root");
    let sidecar = arena.open(Some(root)).expect("it has the root");
    let found = examine(&sidecar, &arena.base(), Scope::All, &context()).expect("it is examined");
    assert_eq!(states_of(&sidecar, &found), [pair("d/1", State::Edited), pair("d/7", State::Missing)]);
    let mended = arena.try_mend_at(Some(root), &Mend::default()).expect("it is mended");
    assert_eq!(mended.left.len(), 1, "the edit stays");
    assert!(arena.read("d/1") == payload(40, 20_000) && arena.path("d/7").exists());
}

#[test]
fn an_update_keeps_the_policy_until_another_is_given() {
    let arena = store();
    let policy = || arena.open(None).unwrap().stats().policy.clone();
    let first = policy();
    assert_eq!((&first.rules, &*first.anchor), (&rules().rules, &b"d"[..]));
    arena.write("d/notes", &payload(73, 9100));
    arena.update(&MARKED);
    assert_eq!(policy(), first);
    let other = rules_of("once: /notes").expect("a policy");
    assert!(arena.update(&under(&other)).written, "a policy alone is worth a generation");
    assert_eq!(policy().rules, other.rules);
    // The announcement is not a part of what is given.
    let announced = How { prune: Prune::Announced, ..under(&other) };
    arena.update(&announced);
    assert!(policy().is_announced);
    arena.update(&under(&Rules { is_announced: true, ..other }));
    assert!(!policy().is_announced);
    arena.update(&under(&Rules::default()));
    assert!(policy().is_empty());
    let error = arena.try_update(&How { prune: Prune::Announced, ..MARKED }).expect_err("it is refused");
    assert!(matches!(error.cause(), Some(SidecarError::NoPolicy)), "{error}");
    let rules = rules();
    let two = How { paths: &["d/packs", "d/mail"], force: true, ..under(&rules) };
    let error = arena.try_protect(&two).expect_err("it is refused");
    assert!(matches!(error.cause(), Some(SidecarError::PolicyOfOne)), "{error}");
}

/// Without `-f` a wiped store is never taken for a pruned one.
#[test]
fn a_store_that_is_gone_as_a_whole_is_not_given_up() {
    let arena = store();
    fs::remove_dir_all(arena.path("d")).unwrap();
    fs::create_dir(arena.path("d")).unwrap();
    arena.refuses_update(&MARKED, Class::Mendable);
    assert!(arena.update(&How { force: true, ..MARKED }).gone.len() > 24);
}

/// The tail of a file that changes shares no position with those of files that are written once: a damaged one of these
/// keeps its entry while the other gets a new one.
#[test]
fn a_damaged_file_is_held_while_small_ones_beside_it_change() {
    let arena = Arena::new();
    for nth in 0..6u64 {
        arena.write(format!("d/packs/{nth}"), &payload(nth, 9000 + 10 * nth as usize));
        arena.write(format!("d/refs/{nth}"), &payload(nth, 41));
    }
    let rules = rules_of("once stays: /packs/").unwrap();
    let how = How { rules: Some(&rules), ..MARKED };
    arena.protect(&how);
    for nth in 0..6u64 {
        let path = arena.path(format!("d/packs/{nth}"));
        let whole = fs::read(&path).unwrap();
        cut(&path, 3000);
        arena.write(format!("d/refs/{nth}"), &payload(40 + nth, 41));
        arena.write("d/packs/new", &payload(50 + nth, 700));
        let updated = arena.update(&MARKED);
        assert_eq!(held(&updated), [pair_held(&format!("d/packs/{nth}"), false)]);
        arena.mend_all();
        assert!(fs::read(&path).unwrap() == whole);
        fs::remove_file(arena.path("d/packs/new")).unwrap();
        arena.update(&How { prune: Prune::Done, ..MARKED });
        arena.is_intact();
    }
}
