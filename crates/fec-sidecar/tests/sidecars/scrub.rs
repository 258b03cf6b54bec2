//! Checks in parts: by age, by a budget of time, by sample, and by what a state remembers.

use crate::arena::*;
use fec_sidecar::examine::{Examined, State};
use fec_sidecar::scrub::{Scrub, Scrubbed, scrub};
use fec_sidecar::{Sidecar, SidecarError};
use fecfile::{Class, Error};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// Bytes of a chunk, the smallest part of a file that is checked at once.
const CHUNK: u64 = 4 << 20;
const DAY: Duration = Duration::from_secs(86_400);

/// A folder with two files, one of several chunks, and its sidecar.
fn furnished() -> Arena {
    let arena = Arena::new();
    arena.write("d/large", &payload(1, 9_000_000));
    arena.write("d/small", &payload(2, 5000));
    age(&arena.path("d/large"), 0);
    age(&arena.path("d/small"), 0);
    arena.protect(&How::default());
    arena
}

fn try_scrub(arena: &Arena, how: &Scrub<'_>) -> Result<(Sidecar, Examined, Scrubbed), Error> {
    let sidecar = arena.open(None)?;
    let (found, done) = scrub(&sidecar, &arena.base(), how, &context())?;
    Ok((sidecar, found, done))
}

/// The states that a scrub with the state file finds, and its numbers.
#[track_caller]
fn scrubbed(arena: &Arena, how: Scrub<'_>) -> (Vec<(String, State)>, Scrubbed) {
    let state = arena.path("state");
    let done = try_scrub(arena, &Scrub { state: Some(&state), ..how });
    let (sidecar, found, done) = done.unwrap_or_else(|error| panic!("it scrubs: {error}"));
    (states_of(&sidecar, &found), done)
}

/// A scrub that must find all intact.
#[track_caller]
fn intact(arena: &Arena, how: Scrub<'_>) -> Scrubbed {
    let (states, done) = scrubbed(arena, how);
    assert_eq!((states, done.damaged_before, done.sidecar_was_damaged), (vec![], 0, false));
    done
}

fn older() -> Scrub<'static> {
    Scrub { older_than: Some(30 * DAY), ..Scrub::default() }
}

fn nothing_begun() -> Scrub<'static> {
    Scrub { budget: Some(Duration::ZERO), ..Scrub::default() }
}

fn lines(arena: &Arena) -> Vec<String> {
    let state = fs::read_to_string(arena.path("state")).expect("a state");
    state.lines().skip(1).map(str::to_owned).collect()
}

/// Changes the words of each line of the state: time, chunk, finding, digest and path.
fn rewrite(arena: &Arena, change: impl Fn([&str; 5]) -> String) {
    let lines: Vec<String> = lines(arena)
        .iter()
        .map(|line| {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            change(words.try_into().expect("five words"))
        })
        .collect();
    fs::write(arena.path("state"), format!("fec scrub state 1\n{}\n", lines.join("\n"))).unwrap();
}

/// Sets the times of the last checks to some seconds after a time in 2017.
fn long_ago(arena: &Arena, seconds: &[(&str, u64)]) {
    rewrite(arena, |[_, next, finding, digest, path]| {
        let after = seconds.iter().find(|(of, _)| *of == path).map_or(0, |(_, after)| *after);
        format!("{} {next} {finding} {digest} {path}", 1_500_000_000 + after)
    });
}

/// Sets the state of an entry: where the next check continues, and the finding.
fn find(arena: &Arena, of: &str, from: u64, found: &str) {
    rewrite(arena, |[time, next, finding, digest, path]| match path == of {
        true => format!("{time} {from} {found} {digest} {path}"),
        false => format!("{time} {next} {finding} {digest} {path}"),
    });
}

/// Bytes of the recovery shards, which a scrub of the sidecar reads.
fn recovery_len(arena: &Arena) -> u64 {
    arena.examine().1.recovery * 4096
}

#[test]
fn what_was_looked_at_is_left_out() {
    let arena = furnished();
    let first = intact(&arena, older());
    let all = 9_005_000 + recovery_len(&arena);
    assert_eq!((first.looked_files, first.looked_len, first.due_files), (2, all, 0));
    assert!(first.oldest.is_some_and(|age| age < DAY));
    assert_eq!(intact(&arena, older()).looked_len, 0);
    long_ago(&arena, &[]);
    assert_eq!(intact(&arena, older()).looked_len, all);
    // An age that is not over yet: what was checked a day ago is due after a day, and not after two.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let a_day_ago = now - DAY.as_secs() - 100;
    rewrite(&arena, |[_, next, finding, digest, path]| {
        format!("{a_day_ago} {next} {finding} {digest} {path}")
    });
    let aged = |days: u32| Scrub { older_than: Some(days * DAY), ..Scrub::default() };
    let none = intact(&arena, aged(2));
    assert_eq!((none.looked_len, none.due_files), (0, 0));
    assert!(none.oldest.is_some_and(|age| (DAY..2 * DAY).contains(&age)), "{:?}", none.oldest);
    let due = intact(&arena, Scrub { budget: Some(Duration::ZERO), ..aged(1) });
    assert_eq!((due.looked_len, due.due_files), (0, 2));
    assert_eq!(intact(&arena, aged(1)).looked_len, all);
}

#[test]
fn the_oldest_comes_first_and_the_next_run_goes_on() {
    let arena = furnished();
    intact(&arena, Scrub::default());
    long_ago(&arena, &[("", 7), ("d/small", 9), ("d/large", 8)]);
    let before = lines(&arena);
    let none = intact(&arena, nothing_begun());
    assert_eq!((none.looked_len, none.looked_files, none.due_files), (0, 0, 2));
    assert_eq!(lines(&arena), before);
    // With small budgets the file is checked in pieces: each byte is read once, wherever the cuts are.
    find(&arena, "d/large", 2, "ok");
    let rest = intact(&arena, Scrub::default());
    assert_eq!(rest.looked_len, recovery_len(&arena) + 5000 + (9_000_000 - 2 * CHUNK));
    assert_eq!((rest.looked_files, rest.due_files), (2, 0));
    assert!(lines(&arena).iter().all(|line| line.contains(" 0 ok ")));
    // The place to go on from lies behind the end: the check begins anew.
    find(&arena, "d/large", 99, "ok");
    let all = intact(&arena, Scrub::default()).looked_len;
    assert!(all >= 5000 + recovery_len(&arena), "{all}");
    assert_eq!(intact(&arena, Scrub::default()).looked_len, 9_005_000 + recovery_len(&arena));
}

#[test]
fn damage_is_told_until_it_is_mended() {
    let arena = furnished();
    intact(&arena, Scrub::default());
    long_ago(&arena, &[]);
    flip(&arena.path("d/small"), 4000);
    assert_eq!(scrubbed(&arena, Scrub::default()).0, [pair("d/small", State::Rotten)]);
    // The report repeats known damage without reading.
    let (states, done) = scrubbed(&arena, Scrub { budget: Some(Duration::ZERO), ..older() });
    assert_eq!((states, done.damaged_before, done.looked_len), (vec![], 1, 0));
    arena.mend_all();
    // A damaged file is due, whatever its age.
    assert_eq!(intact(&arena, older()).looked_len, 5000);
    assert!(lines(&arena).iter().all(|line| line.contains(" ok ")));
}

/// Damage lies in the last chunk of a file whose first chunks an earlier run has checked: in its blocks, and behind
/// them.
#[test]
fn what_goes_on_within_a_file_finds_damage() {
    for at in [8_400_000, 8_999_999] {
        let arena = furnished();
        intact(&arena, Scrub::default());
        rewrite(&arena, |[time, next, finding, digest, path]| match path == "d/large" {
            true => format!("1500000000 2 {finding} {digest} {path}"),
            false => format!("{time} {next} {finding} {digest} {path}"),
        });
        flip(&arena.path("d/large"), at);
        let (states, done) = scrubbed(&arena, older());
        assert_eq!(states, [pair("d/large", State::Rotten)], "{at}");
        assert_eq!(done.looked_len, 9_000_000 - 2 * CHUNK);
    }
}

#[test]
fn damage_of_the_sidecar_is_told_until_it_is_mended() {
    let arena = furnished();
    let len = fs::metadata(arena.path("d.fecp")).unwrap().len();
    rot(&arena.path("d.fecp"), len / 2, &[7; 20_000]);
    let state = arena.path("state");
    let with = |how: Scrub<'_>| try_scrub(&arena, &Scrub { state: Some(&state), ..how }).unwrap();
    assert!(with(Scrub::default()).1.recovery_damaged > 0);
    let (_, found, done) = with(Scrub { budget: Some(Duration::ZERO), ..older() });
    assert_eq!((found.recovery_damaged, done.sidecar_was_damaged), (0, true));
    arena.mend_all();
    assert_eq!(intact(&arena, older()).looked_len, recovery_len(&arena));
}

#[test]
fn a_state_is_believed_for_what_it_was_written_of() {
    let arena = furnished();
    intact(&arena, Scrub::default());
    // The time lies in the future, the content is another, or the line is invalid.
    let state = fs::read_to_string(arena.path("state")).unwrap();
    let digest = state.lines().find(|line| line.ends_with("d/small")).unwrap().split(' ').nth(3).unwrap();
    let future = state
        .lines()
        .map(|line| if line.starts_with("fec") { format!("{line}\n") } else { format!("9{line}\n") });
    for wrong in [
        state.replace(" ok ", " good "),
        state.replace(digest, "0123456789abcdef"),
        state.replace(digest, &digest[..15]),
        future.collect(),
        "fec scrub state 1\n".to_owned(),
    ] {
        fs::write(arena.path("state"), &wrong).unwrap();
        let again = intact(&arena, older());
        assert!(again.looked_len >= 5000 && again.oldest.is_some(), "{wrong}");
    }
    arena.write("state", b"a letter to my aunt\n");
    let is_refused = |name: &str, cause: fn(&SidecarError) -> bool| {
        let state = arena.path(name);
        let run = || try_scrub(&arena, &Scrub { state: Some(&state), ..Scrub::default() });
        arena.refuses(Class::Usage, run);
        assert!(run().is_err_and(|error| error.cause().is_some_and(cause)));
    };
    is_refused("state", |cause| matches!(cause, SidecarError::NotAState));
    // The state of another sidecar.
    let other = How { paths: &["e"], output: "e.fecp", ..How::default() };
    arena.write("e/other", &payload(3, 5000));
    arena.protect(&other);
    let sidecar = arena.open_at("e.fecp", None).unwrap();
    let state = arena.path("other");
    let how = Scrub { state: Some(&state), ..Scrub::default() };
    scrub(&sidecar, &arena.base(), &how, &context()).unwrap();
    is_refused("other", |cause| matches!(cause, SidecarError::OtherState));
    // The state is a file of one's own.
    make_fifo(&arena.path("fifo"));
    let state = arena.path("fifo");
    arena.refuses(Class::Usage, || try_scrub(&arena, &Scrub { state: Some(&state), ..Scrub::default() }));
}

/// A state that knows nothing of files yet is one of this sidecar.
#[test]
fn a_state_of_nothing_is_no_state_of_another() {
    let arena = furnished();
    for _ in 0..2 {
        let done = intact(&arena, nothing_begun());
        assert_eq!((done.oldest, done.due_files), (None, 2));
    }
    assert_eq!(lines(&arena).len(), 1);
}

/// A state has names: it is no more open than the sidecar. Names of any bytes come back.
#[test]
fn a_state_is_as_private_as_the_sidecar_and_knows_all_names() {
    let arena = Arena::new();
    let names = ["d/a\nb", "d/a\\nb", "d/a\rb", "d/ok 0", "d/plain"];
    for (nth, name) in names.iter().enumerate() {
        arena.write(name, &payload(nth as u64, 3000));
    }
    arena.protect(&How::default());
    for mode in [0o600, 0o644] {
        set_mode(&arena.path("d.fecp"), mode);
        fs::remove_file(arena.path("state")).ok();
        assert_eq!(intact(&arena, older()).looked_files, 5);
        assert_eq!(fs::metadata(arena.path("state")).unwrap().mode() & 0o777, mode);
        assert_eq!(intact(&arena, older()).looked_files, 0, "each is known again");
    }
    // A state that cannot be written fails before anything is read.
    let state = arena.path("absent/state");
    arena.refuses(Class::Io, || try_scrub(&arena, &Scrub { state: Some(&state), ..Scrub::default() }));
}

#[test]
fn a_sample_finds_what_it_hits() {
    let arena = furnished();
    let sampled = |parts: u32| try_scrub(&arena, &Scrub { sample: Some(parts), ..Scrub::default() }).unwrap();
    let all = 9_005_000 + recovery_len(&arena);
    for _ in 0..5 {
        let (_, found, done) = sampled(5000);
        assert!(found.is_intact() && done.looked_len <= all && done.looked_len > 0, "{done:?}");
    }
    assert_eq!(sampled(10_000).2.looked_len, all);
    // With a budget the parts come in random order, and are all of them if there is time.
    let hour = Scrub { sample: Some(10_000), budget: Some(DAY / 24), ..Scrub::default() };
    assert_eq!(try_scrub(&arena, &hour).unwrap().2.looked_len, all);
    let none = Scrub { budget: Some(Duration::ZERO), ..hour };
    assert_eq!(try_scrub(&arena, &none).unwrap().2.looked_len, 0);
    rot(&arena.path("d/large"), 0, &vec![1; 9_000_000]);
    flip(&arena.path("d/small"), 1);
    // A sample of all reads everything and reports all damage.
    let (sidecar, found, _) = sampled(10_000);
    assert_eq!(states_of(&sidecar, &found), ["d/large", "d/small"].map(|path| pair(path, State::Rotten)));
    assert!(!found.is_mendable() && !arena.path("state").exists());
}

/// The end of a large file was checked. A small file rots whose end shares the block.
#[test]
fn the_small_file_is_named_and_not_the_large_one_beside_it() {
    let arena = Arena::new();
    arena.write("d/large", &payload(1, (9 << 20) + 300));
    arena.write("d/small", &payload(2, 82_320));
    arena.protect(&How::default());
    flip(&arena.path("d/small"), 82_319);
    let mut found = 0;
    for _ in 0..20 {
        let (sidecar, seen, _) =
            try_scrub(&arena, &Scrub { sample: Some(4000), ..Scrub::default() }).unwrap();
        match states_of(&sidecar, &seen).as_slice() {
            [] => {}
            [one] => {
                assert_eq!(
                    (one, seen.entries[0].damage.list()[0].start),
                    (&pair("d/small", State::Rotten), 81_920)
                );
                found += 1;
            }
            more => panic!("{more:?}"),
        }
    }
    assert!((1..20).contains(&found), "{found}");
}

/// A tree that was copied without its times is checked all the same.
#[test]
fn what_has_another_time_is_looked_at() {
    let arena = furnished();
    age(&arena.path("d/large"), 5);
    let (states, done) = scrubbed(&arena, Scrub::default());
    assert_eq!((states, done.looked_files), (vec![pair("d/large", State::Edited)], 2));
    // As a whole it is looked at in one go, and its bytes decide.
    arena.is_intact();
}

/// Damage stays known until a full pass over the file has found none, in however many runs.
#[test]
fn a_pass_over_several_runs_forgets_nothing() {
    let arena = furnished();
    intact(&arena, Scrub::default());
    let day = Scrub { older_than: Some(DAY), ..Scrub::default() };
    for (of, next) in [("d/large", 1), ("", 3)] {
        let was_damaged = |how: Scrub<'_>| {
            let (states, done) = scrubbed(&arena, how);
            assert!(states.is_empty(), "{of}");
            if of.is_empty() { done.sidecar_was_damaged } else { done.damaged_before == 1 }
        };
        // Damage was found in the first part of this pass: the end of the pass reads only the rest.
        find(&arena, of, next, "damaged");
        assert!(was_damaged(day));
        // The next pass reads the whole file and finds nothing.
        assert!(!was_damaged(day));
        // Damage was found in the previous pass, and none in the first part of this one.
        find(&arena, of, next, "recheck");
        assert!(!was_damaged(day));
        // The pass has not begun.
        find(&arena, of, 0, "damaged");
        assert!(was_damaged(nothing_begun()));
        assert!(was_damaged(nothing_begun()));
        assert!(!was_damaged(Scrub::default()));
    }
}

/// A file that is checked in two parts, because many small files come before it, hides no later damage.
#[test]
fn damage_in_a_file_of_two_goes_hides_nothing() {
    let arena = Arena::new();
    (0..1023).for_each(|nth| drop(arena.write(format!("d/a/{nth:04}"), &[nth as u8; 10])));
    arena.write("d/b", &payload(1, 8 << 20));
    arena.write("d/c", &payload(2, 5000));
    seen(&arena.path("d")).into_iter().for_each(|(path, _)| age(&arena.path("d").join(path), 7));
    arena.protect(&How::default());
    flip(&arena.path("d/b"), 1 << 20);
    flip(&arena.path("d/b"), 5 << 20);
    flip(&arena.path("d/c"), 7);
    let (states, _) = scrubbed(&arena, Scrub::default());
    assert_eq!(states, ["d/b", "d/c"].map(|path| pair(path, State::Rotten)));
    assert_eq!(arena.damage("d/b").len(), 2);
    assert_eq!(lines(&arena).iter().filter(|line| line.contains(" damaged ")).count(), 2);
    arena.mend_all();
    let mended = scrubbed(&arena, Scrub::default());
    assert_eq!((mended.0, mended.1.damaged_before), (vec![], 0));
}

/// An edited neighbour in the same block is no damage of a file that is checked in parts.
#[test]
fn an_edited_neighbour_is_no_damage() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 1000)), 1);
    age(&arena.write("d/large", &payload(2, 9_000_100)), 2);
    arena.protect(&How::default());
    edit(&arena.path("d/a"), b"edited");
    for next in 0..3 {
        scrubbed(&arena, Scrub::default());
        find(&arena, "d/large", next, "ok");
        assert_eq!(scrubbed(&arena, Scrub::default()).0, [pair("d/a", State::Edited)]);
        assert!(lines(&arena).iter().all(|line| line.contains(" ok ")), "{next}");
    }
}

/// A night that reads nothing takes nothing back: damage beyond repair stays so until it is looked at again.
#[test]
fn what_could_not_be_mended_is_remembered() {
    let arena = furnished();
    let large = arena.read("d/large");
    intact(&arena, Scrub::default());
    rot(&arena.path("d/large"), 4096, &vec![0xee; 4_000_000]);
    let (states, done) = scrubbed(&arena, Scrub::default());
    assert_eq!((states, done.lost_before), (vec![pair("d/large", State::Rotten)], 0));
    assert!(lines(&arena).iter().any(|line| line.contains(" damaged-lost ")));
    for _ in 0..2 {
        let (states, done) = scrubbed(&arena, nothing_begun());
        assert_eq!((states, done.damaged_before, done.lost_before), (vec![], 1, 1));
    }
    // Less damage can be mended again, and is known as that.
    rot(&arena.path("d/large"), 0, &large[..4_000_000]);
    let (states, _) = scrubbed(&arena, Scrub::default());
    assert_eq!(states, [pair("d/large", State::Rotten)]);
    let (_, done) = scrubbed(&arena, nothing_begun());
    assert_eq!((done.damaged_before, done.lost_before), (1, 0));
    arena.mend_all();
    intact(&arena, Scrub::default());
    assert!(lines(&arena).iter().all(|line| line.contains(" ok ")));
}
