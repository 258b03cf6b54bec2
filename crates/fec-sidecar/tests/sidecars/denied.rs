//! Files that the caller may not read or write. As root, the calls are made as another user; without root, files of
//! one's own deny access just as well.

use crate::arena::*;
use crate::update::{note, protected};
use fec_core::digest::HashKind;
use fec_sidecar::SidecarError;
use fec_sidecar::examine::{Scope, State, examine};
use fec_sidecar::repair::Mend;
use fec_sidecar::scrub::{Scrub, scrub};
use fecfile::{Class, ErrorKind};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use std::fs;
use std::os::unix::fs::{chown, lchown};

/// A user who owns nothing.
const NOBODY: u32 = 65_534;

/// Gives a folder and all in it to the other user.
pub(crate) fn give_away(arena: &Arena) {
    if geteuid().is_root() {
        chown(arena.home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        for path in seen(arena.home.path()).into_keys() {
            lchown(arena.path(path), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

/// Runs `work` as a user without rights of root. Only its thread changes, and the threads that it starts.
pub(crate) fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| {
            if geteuid().is_root() {
                set_thread_groups(&[]).expect("root may");
                set_thread_gid(Gid::from_raw(NOBODY)).expect("root may");
                set_thread_uid(Uid::from_raw(NOBODY)).expect("root may");
            }
            work()
        });
        ran.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A folder that belongs to the other user, with a sidecar, and these files that nobody may read.
fn with_closed(paths: &[&str]) -> Arena {
    let arena = Arena::furnished();
    arena.protect(&How::of_percent(100));
    give_away(&arena);
    paths.iter().for_each(|path| set_mode(&arena.path(path), 0));
    arena
}

/// A file that may not be read is neither lost nor damaged.
#[test]
fn what_may_not_be_read_is_told_and_nothing_is_written() {
    let arena = with_closed(&["d/small", "d/sub/tool"]);
    flip(&arena.path("d/large"), 5000);
    as_nobody(|| {
        let sidecar = arena.open(None).unwrap();
        let found = examine(&sidecar, &arena.base(), Scope::All, &context()).unwrap();
        let denied: Vec<_> = found.denied().map(|entry| path_of(&sidecar, entry)).collect();
        assert_eq!(denied, ["d/small", "d/sub/tool"]);
        assert_eq!(found.count(State::Unreadable), 2);
        assert!(found.entries.iter().all(|report| report.is_denied() == report.cause.is_some()));
        assert!(!found.is_intact() && found.is_mendable());
        let named = |error: fecfile::Error| match error.kind {
            ErrorKind::NotAllowed(paths) => paths,
            _ => panic!("{error}"),
        };
        let before = fs::read(arena.path("d/large")).unwrap();
        let paths = named(arena.try_mend(&Mend::default()).unwrap_err());
        assert_eq!(paths, ["d/small", "d/sub/tool"].map(|path| arena.path(path)));
        assert!(fs::read(arena.path("d/large")).unwrap() == before);
        // With partial the others are mended, and these fail.
        let mended = arena.try_mend(&Mend { partial: true, ..Mend::default() }).unwrap();
        assert_eq!((mended.mended.len(), mended.failed.len(), mended.is_denied), (1, 2, true));
        assert!(fs::read(arena.path("d/large")).unwrap() == payload(1, 20_481));
        arena.nothing_temporary_at_top();
    });
}

/// A copy takes the bytes of what may not be read from recovery data, if that was asked for.
#[test]
fn a_copy_has_what_may_not_be_read() {
    let arena = with_closed(&["d/small"]);
    as_nobody(|| {
        let out = arena.path("copy");
        let elsewhere = Mend { out: Some(&out), ..Mend::default() };
        let error = arena.try_mend(&elsewhere).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::NotAllowed(_)) && !out.exists(), "{error}");
        let mended = arena.try_mend(&Mend { partial: true, ..elsewhere }).unwrap();
        assert!(mended.failed.is_empty());
        assert!(fs::read(out.join("d/small")).unwrap() == payload(2, 700));
    });
}

/// A rotten file that may be read and not written keeps no other from being mended.
#[test]
fn what_may_not_be_written_is_told_and_the_rest_is_mended() {
    let arena = with_closed(&[]);
    flip(&arena.path("d/large"), 5000);
    flip(&arena.path("d/small"), 5);
    if geteuid().is_root() {
        chown(arena.path("d/small"), Some(0), Some(0)).unwrap();
    } else {
        return println!("skipped: a file of another user takes root");
    }
    set_mode(&arena.path("d/small"), 0o444);
    as_nobody(|| {
        let before = (arena.read("d/large"), arena.read("d/small"));
        for dry_run in [true, false] {
            assert!((arena.read("d/large"), arena.read("d/small")) == before);
            let mended = arena.try_mend(&Mend { dry_run, ..Mend::default() }).unwrap();
            assert_eq!((mended.mended.len(), mended.failed.len(), mended.is_denied), (1, 1, true));
            let cause = mended.cause.unwrap();
            assert!(matches!(cause.cause(), Some(SidecarError::ReadOnly)), "{cause}");
        }
        assert!(arena.read("d/large") == payload(1, 20_481) && arena.read("d/small") == before.1);
    });
}

/// A list of a repair that may not be read may name anything: nothing is protected past it.
#[test]
fn a_list_that_may_not_be_read_is_not_passed_over() {
    let (arena, _) = protected(&How::default());
    arena.write("d.fecp.repairing", b"something");
    edit(&arena.path(note(3)), b"edited");
    give_away(&arena);
    set_mode(&arena.path("d.fecp.repairing"), 0);
    as_nobody(|| {
        for error in [arena.try_update(&How::default()).err(), arena.try_protect(&How::forced()).err()] {
            assert_eq!(error.expect("it is refused").class(), Class::Io);
        }
    });
}

/// A scrub takes what may not be read for no damage, and does not call it looked at.
#[test]
fn a_scrub_leaves_what_may_not_be_read() {
    let arena = with_closed(&["d/small"]);
    as_nobody(|| {
        let (state, sidecar) = (arena.path("state"), arena.open(None).unwrap());
        let how = Scrub { state: Some(&state), ..Scrub::default() };
        for _ in 0..2 {
            let (found, done) = scrub(&sidecar, &arena.base(), &how, &context()).unwrap();
            assert_eq!(states_of(&sidecar, &found), [pair("d/small", State::Unreadable)]);
            assert_eq!((done.damaged_before, done.oldest), (0, None));
        }
        let lines = fs::read_to_string(&state).unwrap();
        assert!(!lines.contains("d/small") && lines.contains("d/large"), "{lines}");
    });
}

/// The first name of a file is gone, and the bytes under its other name decide: those may be denied, or others.
#[test]
fn a_further_name_is_judged_by_its_bytes() {
    for (bytes, state) in [(None, State::Unreadable), (Some(&b"short"[..]), State::Edited)] {
        let arena = Arena::furnished();
        fs::hard_link(arena.path("d/small"), arena.path("d/zoo")).unwrap();
        arena.protect(&How::of_percent(100));
        fs::remove_file(arena.path("d/small")).unwrap();
        give_away(&arena);
        match bytes {
            None => set_mode(&arena.path("d/zoo"), 0),
            Some(bytes) => edit(&arena.path("d/zoo"), bytes),
        }
        as_nobody(|| {
            let found = arena.states();
            assert!(found.contains(&pair("d/zoo", state)), "{found:?}");
        });
        let digest = HashKind::Blake3.digest(&payload(2, 700));
        assert!(arena.open(None).unwrap().catalog().files().any(|(_, file)| file.blake3 == digest));
    }
}
