//! The verdict on files whose times, modes, times of change and inodes say something, or nothing any more.

use crate::arena::*;
use fec_base::context::{Meter, Progress};
use fec_base::error::Action;
use fec_sidecar::examine::{Scope, State, examine};
use fec_sidecar::repair::Mend;
use fecfile::{Class, Context, Settings};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A folder of ten files, protected with marks.
fn marked() -> Arena {
    let arena = Arena::new();
    for nth in 0..10 {
        let path = arena.write(format!("d/{nth}"), &payload(nth, 30_000 + nth as usize));
        set_time(&path, Duration::new(1_600_000_000 + nth, 123_456_789));
    }
    arena.protect(&MARKED);
    arena.is_intact();
    arena
}

fn files(arena: &Arena) -> Vec<PathBuf> {
    (0..10).map(|nth| arena.path(format!("d/{nth}"))).collect()
}

/// Puts another file with these bytes in the place of one, with the time of the old one.
fn replace(path: &Path, bytes: &[u8]) {
    let time = modified(path);
    let new = path.with_extension("new");
    fs::write(&new, bytes).unwrap();
    fs::rename(&new, path).unwrap();
    fs::File::open(path).and_then(|file| file.set_modified(time)).unwrap();
}

#[test]
fn a_mode_alone_is_no_edit_and_hides_no_rot() {
    for how in [How::default(), MARKED] {
        let arena = marked();
        arena.protect(&How { force: true, ..how });
        files(&arena).iter().for_each(|path| set_mode(path, 0o755));
        let (_, found) = arena.examine();
        assert!(found.is_intact() && found.count(State::Mode) == 10);
        assert!(arena.leaves(&Mend::default()).mended.is_empty());
        flip(&arena.path("d/5"), 5000);
        assert!(arena.states().contains(&pair("d/5", State::Rotten)));
        assert_eq!(arena.mend_all().mended.len(), 1);
        assert_eq!(arena.read("d/5"), payload(5, 30_005));
        assert_eq!(arena.mend(&reverting()).mended.len(), 9);
        assert_eq!(arena.states(), [], "the right to execute is what it was");
    }
}

#[test]
fn rot_under_shifted_times_is_rot_and_is_never_protected() {
    // Daylight saving on FAT, and rounding to two seconds: all files get other times, and keep their bytes.
    for shift in [
        |time: Duration| time + Duration::from_secs(3600),
        |time: Duration| Duration::from_secs(time.as_secs() & !1),
    ] {
        let arena = marked();
        for (nth, path) in (0..).zip(files(&arena)) {
            set_time(&path, shift(Duration::new(1_600_000_000 + nth, 123_456_789)));
        }
        let (_, found) = arena.examine();
        assert!(found.is_intact() && found.touched == 10 && !found.is_copy());
        flip(&arena.path("d/5"), 5000);
        assert_eq!(arena.states(), [pair("d/5", State::Rotten)]);
        assert!(arena.refuses_update(&How { force: true, ..MARKED }, Class::Mendable).contains("rotten"));
        arena.mend_all();
        arena.update(&MARKED);
        let (_, found) = arena.examine();
        assert!(found.is_intact() && found.touched == 0, "the times are recorded");
    }
}

#[test]
fn an_edit_that_keeps_its_time_is_left_and_named() {
    let arena = marked();
    let edited = payload(77, 30_005);
    replace(&arena.path("d/5"), &edited);
    assert_eq!(arena.states(), [pair("d/5", State::Changed)]);
    arena.leaves(&Mend::default());
    assert!(arena.refuses_update(&MARKED, Class::Mendable).contains("damaged or edited"));
    assert_eq!(arena.read("d/5"), edited);
    // On request it is made what it was, or taken as it is.
    arena.mend(&reverting());
    assert_eq!(arena.read("d/5"), payload(5, 30_005));
    replace(&arena.path("d/6"), &edited);
    arena.update(&How { force: true, ..MARKED });
    arena.is_intact();
    assert_eq!(arena.read("d/6"), edited);
}

#[test]
fn all_files_edited_by_such_a_program_are_no_copy() {
    let arena = marked();
    for (nth, path) in (0..).zip(files(&arena)) {
        replace(&path, &payload(100 + nth, 30_000 + nth as usize));
    }
    assert!(arena.states().iter().all(|(_, state)| *state == State::Changed));
}

/// Copies the folder, with its times or without.
fn copied(arena: &Arena, with_times: bool) {
    for path in files(arena) {
        let bytes = fs::read(&path).unwrap();
        match with_times {
            true => replace(&path, &bytes),
            false => {
                fs::remove_file(&path).unwrap();
                fs::write(&path, bytes).unwrap();
            }
        }
    }
}

#[test]
fn rot_in_a_copy_is_rot() {
    let arena = marked();
    copied(&arena, true);
    let (_, found) = arena.examine();
    assert!(found.is_intact() && !found.is_copy() && found.touched == 10);
    flip(&arena.path("d/5"), 5000);
    assert_eq!(arena.states(), [pair("d/5", State::Rotten)]);
    arena.refuses_update(&MARKED, Class::Mendable);
    arena.mend_all();
    arena.update(&MARKED);
    // Its own times of change and inodes are known again.
    replace(&arena.path("d/3"), &payload(99, 30_003));
    assert_eq!(arena.states(), [pair("d/3", State::Changed)]);
}

#[test]
fn a_duplicate_of_the_old_bytes_hides_no_rot() {
    let arena = marked();
    copied(&arena, true);
    fs::copy(arena.path("d/2"), arena.path("d/2.bak")).unwrap();
    flip(&arena.path("d/2"), 5000);
    assert_eq!(arena.states(), [pair("d/2", State::Rotten)]);
    assert!(arena.refuses_update(&How { force: true, ..MARKED }, Class::Mendable).contains("d/2"));
    // An intact file whose bytes another name has taken is no damage.
    arena.mend_all();
    arena.update(&MARKED);
    arena.is_intact();
}

#[test]
fn an_edit_a_day_later_is_an_edit() {
    let arena = marked();
    copied(&arena, true);
    let edited = payload(66, 30_005);
    fs::write(arena.path("d/5"), &edited).unwrap();
    set_time(&arena.path("d/5"), Duration::new(1_600_000_005 + 24 * 3600, 123_456_789));
    assert_eq!(arena.states(), [pair("d/5", State::Edited)], "no other file is shifted");
    arena.leaves(&Mend::default());
    arena.update(&MARKED);
    assert_eq!(arena.read("d/5"), edited);
}

#[test]
fn a_copy_without_times_is_not_protected_with_what_may_be_damage() {
    let arena = marked();
    copied(&arena, false);
    let (_, found) = arena.examine();
    assert!(found.is_intact() && found.is_copy());
    flip(&arena.path("d/5"), 5000);
    let (_, found) = arena.examine();
    assert!(
        found.entries.len() == 1 && found.entries[0].state == State::Edited && found.entries[0].may_be_damage
    );
    arena.refuses_update(&MARKED, Class::Mendable);
    // Under another name too.
    fs::rename(arena.path("d/5"), arena.path("d/other")).unwrap();
    arena.refuses_update(&MARKED, Class::Mendable);
    fs::rename(arena.path("d/other"), arena.path("d/5")).unwrap();
    arena.mend(&reverting());
    assert_eq!(arena.read("d/5"), payload(5, 30_005));
    arena.update(&MARKED);
    arena.is_intact();
}

/// A file that was restored in a copy has its time again, and tells nothing of the others.
#[test]
fn rot_in_a_copy_is_not_protected_after_a_repair() {
    for how in [How::default(), MARKED] {
        let arena = marked();
        arena.protect(&How { force: true, ..how });
        copied(&arena, false);
        fs::remove_file(arena.path("d/7")).unwrap();
        arena.mend_all();
        flip(&arena.path("d/5"), 5000);
        let (_, mut found) = arena.examine();
        assert!(found.is_copy() && found.entries[0].is_unclear);
        found.leave_out([State::Edited].iter(), true);
        assert_eq!(found.entries.len(), 1, "it is said every night");
        assert!(arena.refuses_update(&how, Class::Mendable).contains("d/5"));
        arena.mend(&reverting());
        arena.update(&how);
        arena.is_intact();
    }
}

#[test]
fn edits_are_never_lost() {
    let arena = marked();
    for nth in 0..6 {
        edit(&arena.path(format!("d/{nth}")), &payload(200 + nth, 30_000 + nth as usize));
    }
    let (_, found) = arena.examine();
    assert!(found.is_mendable() && !found.is_revertible() && found.margin.lost_bytes > 0);
    assert_eq!(found.count(State::Edited), 6);
    arena.leaves(&Mend::default());
    // A revert that cannot be done is refused, and nothing is written.
    arena.refuses(Class::Lost, || arena.try_mend(&reverting()));
    arena.update(&MARKED);
    arena.is_intact();
    // Rot beside that many edits is lost, and only its bytes are.
    let arena = marked();
    for nth in 0..6 {
        edit(&arena.path(format!("d/{nth}")), &payload(200 + nth, 30_000 + nth as usize));
    }
    copied_time(&arena);
    flip(&arena.path("d/8"), 5000);
    let (_, found) = arena.examine();
    assert!(!found.is_mendable() && found.margin.damaged_bytes < found.margin.lost_bytes);
}

/// Gives the untouched files new inodes, so that rot in one does not look written.
fn copied_time(arena: &Arena) {
    for path in &files(arena)[6..] {
        replace(path, &fs::read(path).unwrap());
    }
}

/// Runs an action when this many bytes have been looked at.
struct Behind {
    left: AtomicI64,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Progress for Behind {
    fn begin(&self, _: Action, _: Option<u64>) -> Box<dyn Meter + '_> {
        Box::new(self)
    }
}

impl Meter for &Behind {
    fn add(&self, bytes: u64) {
        let left = self.left.fetch_sub(bytes as i64, Ordering::Relaxed) - bytes as i64;
        if left <= 0
            && let Some(act) = self.act.lock().unwrap().take()
        {
            act();
        }
    }
}

#[test]
fn what_is_written_while_it_is_looked_at_is_no_rot() {
    type Change = fn(&Path);
    let changes: [(Change, State); 3] = [
        (|path| edit(path, &payload(50, 30_009)), State::Edited),
        (|path| fs::remove_file(path).unwrap(), State::Missing),
        (|path| replace(path, &fs::read(path).unwrap()), State::Intact),
    ];
    for (change, state) in changes {
        let arena = marked();
        let path = arena.path("d/9");
        // The last file has other bytes when it is looked at first, and the change comes behind that look.
        let right = fs::read(&path).unwrap();
        replace(&path, &payload(60, 30_009));
        let act = move || {
            if state == State::Intact {
                fs::write(&path, &right).unwrap();
            }
            change(&path);
        };
        let all = (0..10).map(|nth| 30_000 + nth).sum::<i64>();
        let progress = Behind { left: AtomicI64::new(all), act: Mutex::new(Some(Box::new(act))) };
        let context = Context::new(Settings { threads: 1, ..Settings::new() }).with_progress(&progress);
        let sidecar = arena.open(None).unwrap();
        let found = examine(&sidecar, &arena.base(), Scope::All, &context).unwrap();
        assert_eq!(found.state(10), state, "{:?}", states_of(&sidecar, &found));
        assert_eq!(found.count(State::Rotten), 0);
    }
}

/// A renamed folder is no damage: nothing of it is made again.
#[test]
fn a_renamed_folder_is_moved_with_all_that_it_holds() {
    let arena = Arena::furnished();
    fs::hard_link(arena.path("d/sub/tool"), arena.path("d/sub/zweit")).unwrap();
    fs::create_dir(arena.path("d/sub/hollow")).unwrap();
    symlink("tool", arena.path("d/sub/way")).unwrap();
    arena.protect(&MARKED);
    fs::rename(arena.path("d/sub"), arena.path("d/away")).unwrap();
    let (sidecar, found) = arena.examine();
    let to = |path: &str| path.replace("d/sub", "d/away");
    let now = found.entries.iter().map(|report| {
        let to = report.moved_to.as_deref().map(|to| String::from_utf8_lossy(to).into_owned());
        (path_of(&sidecar, report.entry), report.state, to)
    });
    let all = ["", "/deep", "/deep/nested", "/hollow", "/tool", "/twin", "/way", "/zweit"];
    let all = all.map(|name| format!("d/sub{name}"));
    assert!(now.eq(all.iter().map(|path| (path.clone(), State::Moved, Some(to(path))))));
    assert_eq!(found.unprotected.count, 0);
    assert_eq!(arena.leaves(&Mend::default()).left.len(), all.len());
    // A folder is made for what is lost in it, and where a link has another target it is not the same.
    fs::remove_file(arena.path("d/away/deep/nested")).unwrap();
    fs::remove_file(arena.path("d/away/way")).unwrap();
    symlink("twin", arena.path("d/away/way")).unwrap();
    let lost = ["d/sub", "d/sub/deep", "d/sub/deep/nested", "d/sub/way"];
    let missing = |states: Vec<(String, State)>| {
        states
            .into_iter()
            .filter(|(_, state)| *state == State::Missing)
            .map(|(path, _)| path)
            .collect::<Vec<_>>()
    };
    assert_eq!(missing(arena.states()), lost);
    assert_eq!(arena.mend(&Mend::default()).mended.len(), lost.len());
    assert_eq!(arena.read("d/sub/deep/nested"), payload(3, 5000));
}

/// A folder that was emptied file by file, and removed, is not made again either.
#[test]
fn a_folder_whose_files_are_elsewhere_is_not_made_again() {
    let arena = Arena::furnished();
    arena.protect(&MARKED);
    fs::rename(arena.path("d/sub/deep/nested"), arena.path("d/other name")).unwrap();
    fs::remove_dir(arena.path("d/sub/deep")).unwrap();
    assert_eq!(arena.states(), ["d/sub/deep", "d/sub/deep/nested"].map(|path| pair(path, State::Moved)));
    arena.leaves(&Mend::default());
    assert!(!arena.path("d/sub/deep").exists());
}

/// A file that was moved and then rotted is named with both of its paths, made whole under the old one, and not written
/// over: an edit that keeps its time looks alike. No update takes it, before the repair or after it.
#[test]
fn what_was_moved_and_then_rotted_is_known() {
    for how in [How::default(), MARKED] {
        let arena = marked();
        // A file of less than a block is known by its name and time.
        arena.write("d/small", &payload(50, 900));
        age(&arena.path("d/small"), 77);
        arena.protect(&How { force: true, ..how });
        fs::create_dir(arena.path("d/new")).unwrap();
        for name in ["5", "6", "small"] {
            fs::rename(arena.path(format!("d/{name}")), arena.path(format!("d/new/{name}"))).unwrap();
        }
        flip(&arena.path("d/new/5"), 9000);
        flip(&arena.path("d/new/small"), 800);
        let (sidecar, found) = arena.examine();
        let state = State::MovedDamaged;
        let expected = [pair("d/5", state), pair("d/6", State::Moved), pair("d/small", state)];
        assert_eq!(states_of(&sidecar, &found), expected);
        assert_eq!(found.entries[0].moved_to.as_deref(), Some(&b"d/new/5"[..]));
        assert_eq!(arena.damage("d/5"), [(8192, 12_288)]);
        assert_eq!(found.unprotected.count, 0);
        arena.refuses_update(&how, Class::Mendable);
        let rotten = arena.read("d/new/5");
        assert_eq!(arena.mend(&Mend::default()).mended.len(), 2);
        assert_eq!([arena.read("d/5"), arena.read("d/small")], [payload(5, 30_005), payload(50, 900)]);
        assert_eq!(arena.read("d/new/5"), rotten);
        assert!(
            arena.refuses_update(&how, Class::Mendable).contains("d/new/5"),
            "a damaged copy is no new file"
        );
        for name in ["5", "small"] {
            fs::rename(arena.path(format!("d/{name}")), arena.path(format!("d/new/{name}"))).unwrap();
        }
        arena.update(&how);
        arena.is_intact();
    }
}

/// A new file of the same size is no damaged one.
#[test]
fn a_new_file_of_the_same_size_is_not_taken_for_a_moved_one() {
    let arena = marked();
    fs::remove_file(arena.path("d/5")).unwrap();
    arena.write("d/other", &payload(60, 30_005));
    let (sidecar, found) = arena.examine();
    assert_eq!(states_of(&sidecar, &found), [pair("d/5", State::Missing)]);
    assert_eq!(found.unprotected.count, 1);
    // The one with its blocks is found before another.
    fs::write(arena.path("d/zz"), payload(5, 30_005)).unwrap();
    flip(&arena.path("d/zz"), 100);
    let (sidecar, found) = arena.examine();
    assert_eq!(states_of(&sidecar, &found), [pair("d/5", State::MovedDamaged)]);
    assert_eq!(found.entries[0].moved_to.as_deref(), Some(&b"d/zz"[..]));
}
