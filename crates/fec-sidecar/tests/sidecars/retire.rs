//! Taking what has left out of the recovery data, while another folder still has it.

use crate::arena::*;
use fec_sidecar::examine::examine_deep;
use fec_sidecar::protect::Prune;
use fec_sidecar::repair::Mend;
use fec_sidecar::update::{NotRetired, Updated};
use std::fs;
use std::path::{Path, PathBuf};

/// The way to update a tree of which much has left for this folder.
fn leaving(left: &Path) -> How<'_> {
    How { prune: Prune::Done, retired: Some(left), ..USUAL }
}

/// A tree of large and small files, protected, and the folder that they leave for. Small files share positions.
fn tree(sizes: &[usize]) -> (Arena, PathBuf) {
    let arena = Arena::new();
    for (nth, size) in sizes.iter().enumerate() {
        arena.write(format!("d/{nth:02}"), &payload(nth as u64, *size));
    }
    arena.protect(&USUAL);
    let left = arena.path("left");
    fs::create_dir_all(left.join("d")).unwrap();
    (arena, left)
}

fn leave(arena: &Arena, names: &[&str]) {
    for name in names {
        fs::rename(arena.path(format!("d/{name}")), arena.path(format!("left/d/{name}"))).unwrap();
    }
}

/// Asserts that all recovery shards are those of what is there.
#[track_caller]
fn is_right(arena: &Arena) {
    arena.is_intact();
    let sidecar = arena.open(None).unwrap();
    let found = examine_deep(&sidecar, &arena.base(), &context()).unwrap();
    assert!(found.is_intact(), "{:?}", states_of(&sidecar, &found));
}

/// An update that takes out what has left, and codes next to nothing.
#[track_caller]
fn retires(arena: &Arena, left: &Path) -> Updated {
    let updated = arena.update(&leaving(left));
    assert!(updated.retired_len > 0 && updated.is_joined && updated.anew.is_none(), "{updated:?}");
    assert_eq!(updated.not_retired, None);
    is_right(arena);
    updated
}

/// Sizes for a set of at most 256 blocks, for one wide set, and for several sets.
const SMALL: [usize; 8] = [30_000, 500, 40_001, 700, 1024, 20_000, 333, 60_000];
const WIDE: [usize; 9] = [1_400_000, 900, 2_000_001, 1000, 4096, 1_300_000, 50, 700_000, 2];

#[test]
fn a_half_leaves_and_its_recovery_data_serve_the_rest() {
    for sizes in [&SMALL[..], &WIDE] {
        let (arena, left) = tree(sizes);
        leave(&arena, &["00", "01", "05"]);
        let updated = retires(&arena, &left);
        let gone = (sizes[0] + sizes[1] + sizes[5]) as u64;
        // Positions with several tails leave as a whole, and what stays of them is packed anew.
        assert!((gone..gone + 4096).contains(&updated.retired_len), "{} of {gone}", updated.retired_len);
        assert!(updated.coded_len < 6000, "{}", updated.coded_len);
        // An eighth of what was protected at first may be lost of what is left, which is half as much.
        let lost = sizes.iter().sum::<usize>() / 8;
        assert!(updated.sidecar.spare.anywhere > lost as u64, "{:?}", updated.sidecar.spare);
        let whole = arena.read("d/02");
        rot(&arena.path("d/02"), 0, &payload(80, lost));
        arena.mend_all();
        assert!(arena.read("d/02") == whole);
        is_right(&arena);
    }
}

#[test]
fn the_same_without_another_folder_is_lost() {
    let (arena, left) = tree(&WIDE);
    leave(&arena, &["00", "01", "05"]);
    let updated = arena.update(&How { retired: None, ..leaving(&left) });
    assert_eq!((updated.retired_len, &updated.not_retired), (0, &None));
    assert!(updated.anew.is_some() || updated.coded_len > 1_000_000, "{updated:?}");
}

#[test]
fn edits_are_taken_out_where_the_folder_has_what_they_were() {
    let (arena, left) = tree(&WIDE);
    let was = arena.read("d/02");
    fs::copy(arena.path("d/02"), left.join("d/02")).unwrap();
    let mut now = was.clone();
    now[500_000..900_000].fill(7);
    arena.write("d/02", &now);
    let updated = retires(&arena, &left);
    assert!((400_000..420_000).contains(&updated.retired_len), "{}", updated.retired_len);
    flip(&arena.path("d/02"), 600_000);
    flip(&arena.path("d/00"), 600_000);
    arena.mend_all();
    assert!(arena.read("d/02") == now);
}

/// The tail of an edited file is another one, though the folder still has the one that was protected.
#[test]
fn edited_tails_are_coded() {
    for at in [1_299_999, 1_299_999 - 2000, 5] {
        let (arena, left) = tree(&WIDE);
        fs::copy(arena.path("d/05"), left.join("d/05")).unwrap();
        let mut now = arena.read("d/05");
        now[at] ^= 1;
        arena.write("d/05", &now);
        retires(&arena, &left);
        flip(&arena.path("d/05"), 1_299_990);
        arena.mend_all();
        assert!(arena.read("d/05") == now);
    }
}

#[test]
fn one_night_after_the_other() {
    let (arena, left) = tree(&WIDE);
    for (nth, name) in ["06", "00", "03", "01", "08"].into_iter().enumerate() {
        leave(&arena, &[name]);
        arena.write(format!("d/new-{nth}"), &payload(50 + nth as u64, 40_000 + nth));
        retires(&arena, &left);
        // A night in which nothing leaves is one as any other.
        arena.write(format!("d/more-{nth}"), &payload(90 + nth as u64, 5000));
        let updated = arena.update(&leaving(&left));
        assert_eq!((updated.retired_len, updated.not_retired), (0, Some(NotRetired::Nothing)));
        is_right(&arena);
    }
    let whole = arena.read("d/05");
    for block in 0..200 {
        flip(&arena.path("d/05"), block * 4096 + 7);
    }
    arena.mend_all();
    assert!(arena.read("d/05") == whole);
}

/// The files of the folder are believed by their digests alone.
#[test]
fn a_folder_with_other_bytes_is_told_and_changes_nothing() {
    for twist in [
        |left: &Path| flip(&left.join("d/00"), 700_000),
        |left: &Path| flip(&left.join("d/01"), 3),
        // The tail in a position with others.
        |left: &Path| flip(&left.join("d/05"), 1_299_999),
    ] {
        let (arena, left) = tree(&WIDE);
        leave(&arena, &["00", "01", "05"]);
        twist(&left);
        let updated = arena.update(&leaving(&left));
        assert_eq!(updated.retired_len, 0);
        assert!(matches!(updated.not_retired, Some(NotRetired::Other(_))), "{:?}", updated.not_retired);
        is_right(&arena);
    }
}

/// Files of other sizes, links and folders are none of them.
#[test]
fn only_files_of_the_same_size_count() {
    let (arena, left) = tree(&WIDE);
    fs::rename(arena.path("d/03"), arena.path("away")).unwrap();
    std::os::unix::fs::symlink("../../away", left.join("d/03")).unwrap();
    fs::remove_file(arena.path("d/01")).unwrap();
    fs::create_dir(left.join("d/01")).unwrap();
    fs::remove_file(arena.path("d/06")).unwrap();
    fs::write(left.join("d/06"), payload(6, 49)).unwrap();
    let updated = arena.update(&leaving(&left));
    assert_eq!((updated.retired_len, updated.not_retired), (0, Some(NotRetired::Nothing)));
    is_right(&arena);
}

/// New files take the places of what has left, and the sidecar does not grow.
#[test]
fn new_blocks_take_the_places_of_what_has_left() {
    for (sizes, new) in [(&SMALL[..], 29_000), (&WIDE, 1_399_000)] {
        let (arena, left) = tree(sizes);
        let before = arena.read("d.fecp").len();
        leave(&arena, &["00"]);
        let whole = payload(70, new);
        arena.write("d/new", &whole);
        // The same bytes share these places, and zeros take none.
        arena.write("d/twin", &whole);
        arena.write("d/small", &payload(74, 300));
        let updated = retires(&arena, &left);
        assert!((new as u64..new as u64 + 9000).contains(&updated.coded_len), "{}", updated.coded_len);
        let now = arena.read("d.fecp").len();
        assert!(now < before + before / 8, "{now} bytes, {before} before");
        rot(&arena.path("d/new"), 5000, &payload(71, new / 8));
        rot(&arena.path("d/twin"), 5000, &payload(72, new / 8));
        flip(&arena.path("d/07"), 300);
        arena.mend_all();
        assert!(arena.read("d/new") == whole && arena.read("d/twin") == whole);
        // An edit of such a file, and its end.
        arena.write("d/new", &[&whole[..new / 2], b"between", &whole[new / 2..]].concat());
        leave(&arena, &["twin"]);
        retires(&arena, &left);
        fs::remove_dir_all(arena.path("left")).unwrap();
        arena.write("d/last", &payload(73, 3000));
        let updated = arena.update(&USUAL);
        assert_eq!(updated.added, 1);
        is_right(&arena);
    }
}

/// Whole blocks that find no free position stand behind all others, and so do tails.
#[test]
fn more_comes_than_leaves() {
    let (arena, left) = tree(&WIDE);
    for (nth, (name, len)) in [("00", 3_000_000), ("07", 2_100_000), ("02", 900_000)].into_iter().enumerate()
    {
        leave(&arena, &[name]);
        let whole = payload(80 + nth as u64, len);
        arena.write(format!("d/new-{nth}"), &whole);
        retires(&arena, &left);
        rot(&arena.path(format!("d/new-{nth}")), (len / 2) as u64, &payload(90, len / 16));
        arena.mend_all();
        assert!(arena.read(format!("d/new-{nth}")) == whole);
        is_right(&arena);
    }
}

/// Tails find places among many too: a few of them in a group of their own would be lost soonest.
#[test]
fn small_files_that_came_are_mended_when_all_are_lost() {
    for more in [0, 2_000_000] {
        let (arena, left) = tree(&WIDE);
        leave(&arena, &["00"]);
        let names: Vec<_> = (0..12).map(|nth| format!("d/small-{nth}")).collect();
        names.iter().zip(100..).for_each(|(name, seed)| drop(arena.write(name, &payload(seed, 1900))));
        arena.write("d/new", &payload(99, more));
        retires(&arena, &left);
        names.iter().for_each(|name| fs::remove_file(arena.path(name)).unwrap());
        arena.mend_all();
        assert!(names.iter().zip(100..).all(|(name, seed)| arena.read(name) == payload(seed, 1900)));
    }
}

#[test]
fn nothing_is_taken_out_of_damaged_recovery_shards() {
    let (arena, left) = tree(&WIDE);
    leave(&arena, &["00"]);
    let middle = arena.read("d.fecp").len() as u64 / 2;
    (0..20).for_each(|nth| flip(&arena.path("d.fecp"), middle + nth * 4096));
    let updated = arena.update(&leaving(&left));
    assert_eq!((updated.retired_len, updated.not_retired), (0, Some(NotRetired::Damaged)));
    arena.mend(&Mend::default());
    is_right(&arena);
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let (arena, left) = tree(&SMALL);
    leave(&arena, &["00"]);
    let nowhere = left.join("nowhere");
    arena.refuses_update(&leaving(&nowhere), fec_base::error::Class::Io);
}

/// A draw below `of`.
fn draw(state: &mut u64, of: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % of
}

/// Bytes of a file: any, some that other files have, or zeros.
fn content(state: &mut u64) -> Vec<u8> {
    let len = [0, 1, 900, 4096, 5000, 60_000, 300_000][draw(state, 7)] + draw(state, 3000);
    match draw(state, 8) {
        0 => vec![0; len],
        1 => payload(1, len),
        _ => payload(draw(state, 1 << 30) as u64, len),
    }
}

/// Flips a bit in some files, and asserts that a repair brings all back.
fn rots_and_comes_back(arena: &Arena, state: &mut u64) {
    for file in fs::read_dir(arena.path("d")).unwrap() {
        let path = file.unwrap().path();
        let whole = fs::read(&path).unwrap();
        if whole.is_empty() || draw(state, 3) > 0 {
            continue;
        }
        flip(&path, draw(state, whole.len()) as u64);
        arena.mend_all();
        assert!(fs::read(&path).unwrap() == whole);
    }
}

/// Nights in which files come, go, change and move, with a snapshot of the evening before, whole or in part.
fn nights(seed: u64) -> u64 {
    let mut state = seed.wrapping_mul(977);
    let arena = Arena::new();
    (0..14).for_each(|nth| drop(arena.write(format!("d/{nth}"), &content(&mut state))));
    arena.protect(&USUAL);
    let (left, mut retired) = (arena.path("left"), 0);
    for night in 0..6 {
        let _ = fs::remove_dir_all(&left);
        fs::create_dir_all(left.join("d")).unwrap();
        let names: Vec<_> =
            fs::read_dir(arena.path("d")).unwrap().map(|file| file.unwrap().file_name()).collect();
        for name in &names {
            let path = arena.path("d").join(name);
            if draw(&mut state, 8) > 0 {
                fs::copy(&path, left.join("d").join(name)).unwrap();
            }
            match draw(&mut state, 12) {
                0 | 1 => fs::remove_file(&path).unwrap(),
                2 => fs::rename(&path, path.with_extension(format!("{night}"))).unwrap(),
                3 => fs::write(&path, content(&mut state)).unwrap(),
                4 | 5 => {
                    let mut bytes = fs::read(&path).unwrap();
                    let at = draw(&mut state, bytes.len() + 1);
                    bytes.drain(at..bytes.len().min(at + draw(&mut state, 3)));
                    let flips = bytes.len().min(draw(&mut state, 3));
                    (0..flips).for_each(|_| bytes[draw(&mut state, flips)] ^= 1);
                    fs::write(&path, bytes).unwrap();
                }
                _ => {}
            }
        }
        for nth in 0..draw(&mut state, 4) {
            arena.write(format!("d/new-{night}-{nth}"), &content(&mut state));
        }
        let updated = arena.update(&How { force: true, ..leaving(&left) });
        let not_retired = &updated.not_retired;
        assert!(
            matches!(not_retired, None | Some(NotRetired::Nothing | NotRetired::Much)),
            "{seed}: {not_retired:?}"
        );
        retired += updated.retired_len;
        is_right(&arena);
        rots_and_comes_back(&arena, &mut state);
    }
    retired
}

#[test]
fn any_nights() {
    let seeds = std::env::var("FEC_ROUNDS").map_or(20, |rounds| rounds.parse().expect("a number"));
    let first: u64 = std::env::var("FEC_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let retired: u64 = (first..first + seeds).map(nights).sum();
    assert!(retired > seeds * 100_000, "{retired} bytes were taken out");
}
