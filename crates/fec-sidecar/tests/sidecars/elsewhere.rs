//! Files whose content stands whole at another path, while another file stands at theirs.

use crate::arena::*;
use fec_sidecar::examine::State;
use fec_sidecar::repair::Mend;
use std::fs;

/// More files than the recovery data could make anew, most of them with a tail.
const FILES: u64 = 30;
/// The first of them are edited.
const EDITED: u64 = 20;

fn name(nth: u64) -> String {
    format!("d/{nth:02}")
}

fn content(nth: u64) -> Vec<u8> {
    payload(nth, 300 + 211 * nth as usize)
}

fn rename(arena: &Arena, from: &str, to: &str) {
    fs::rename(arena.path(from), arena.path(to)).expect("it can be renamed");
}

fn swap(arena: &Arena) {
    for nth in (0..EDITED).step_by(2) {
        rename(arena, &name(nth), "d/x");
        rename(arena, &name(nth + 1), &name(nth));
        rename(arena, "d/x", &name(nth + 1));
    }
}

fn rotate(arena: &Arena) {
    for nth in 0..EDITED {
        rename(arena, &name(nth), &format!("{}.1", name(nth)));
        arena.write(name(nth), &payload(100 + nth, 50 + 97 * nth as usize));
    }
}

#[test]
fn what_was_swapped_or_rotated_is_no_loss() {
    for change in [swap, rotate] {
        let arena = Arena::new();
        for nth in 0..FILES {
            arena.write(name(nth), &content(nth));
            age(&arena.path(name(nth)), 1000 + 10 * nth);
        }
        arena.protect(&How::of_percent(8));
        change(&arena);
        let lost = name(FILES - 2);
        fs::remove_file(arena.path(&lost)).unwrap();
        let mut expected: Vec<_> = (0..EDITED).map(|nth| pair(&name(nth), State::Edited)).collect();
        expected.push(pair(&lost, State::Missing));
        assert_eq!(arena.states(), expected);
        let before: Vec<Vec<u8>> = (0..EDITED).map(|nth| arena.read(name(nth))).collect();
        assert_eq!(arena.mend(&Mend::default()).left.len(), EDITED as usize);
        assert_eq!(arena.read(&lost), content(FILES - 2));
        assert!((0..EDITED).zip(&before).all(|(nth, before)| arena.read(name(nth)) == *before), "edits stay");
        arena.mend(&reverting());
        assert!((0..FILES).all(|nth| arena.read(name(nth)) == content(nth)));
        arena.is_intact();
    }
}

/// The content of a missing file that stands at the path of another one serves; the file is missing all the same.
#[test]
fn a_file_that_was_moved_over_another_one_is_made_from_there() {
    let arena = Arena::new();
    let files = [("d/a", 1), ("d/b", 2), ("d/c", 3), ("d/d", 4)];
    for (name, seed) in files {
        arena.write(name, &payload(seed, 20_000 + 100 * seed as usize));
        age(&arena.path(name), 1000 + seed);
    }
    arena.protect(&How::of_percent(30));
    rename(&arena, "d/a", "d/b");
    assert_eq!(arena.states(), [pair("d/a", State::Missing), pair("d/b", State::Edited)]);
    assert_eq!(arena.mend(&Mend::default()).left.len(), 1);
    assert_eq!([arena.read("d/a"), arena.read("d/b")], [payload(1, 20_100), payload(1, 20_100)]);
    arena.mend(&reverting());
    assert!(
        files.iter().all(|&(name, seed)| arena.read(name) == payload(seed, 20_000 + 100 * seed as usize))
    );
    arena.is_intact();
}
