//! A disk that fails to read some bytes (EIO): the system call itself fails, for one thread and those that it starts.

use crate::arena::*;
use fec_base::error::Action;
use fec_core::format::sidecar::parts::Reason;
use fec_sidecar::examine::{Scope, State, examine};
use fec_sidecar::protect::Prune;
use fec_sidecar::repair::Mend;
use fec_sidecar::scrub::{Scrub, scrub};
use fec_sidecar::update::Updated;
use fecfile::Class;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::fs;
use std::time::Duration;

/// Reads have multiples of this many bytes, or end where a block of a disk does.
const STEP: u64 = 1024;

/// Runs `work` while each read of the byte at `at`, of whatever file, fails. `None` where the system allows no such
/// filter.
#[must_use]
fn without_byte<T: Send>(at: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
    let condition = |argument, operator, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, value).expect("pread64 has four")
    };
    // A read that begins up to so many steps in front, and has as many, ends behind the byte.
    let reaches = |steps: u64| {
        let (count, offset) = (2, 3);
        let first = (at + 1).saturating_sub(steps * STEP);
        SeccompRule::new(vec![
            condition(offset, SeccompCmpOp::Ge, first),
            condition(offset, SeccompCmpOp::Le, at - (steps - 1) * STEP),
            condition(count, SeccompCmpOp::Ge, (at + 1 - first).next_multiple_of(STEP)),
        ])
        .expect("it has conditions")
    };
    let starts = (1..=at / STEP + 1).take(300).map(reaches);
    let filter = SeccompFilter::new(
        [(libc::SYS_pread64, starts.collect())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EIO as u32),
        std::env::consts::ARCH.try_into().expect("a processor with filters"),
    );
    let program: BpfProgram = filter.and_then(TryInto::try_into).expect("a filter");
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| apply_filter(&program).is_ok().then(work));
        ran.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A byte of `d/big` alone, which is longer than all other files and than the sidecar.
const BAD: u64 = 150_005;

fn with_big() -> Arena {
    let arena = Arena::furnished();
    arena.write("d/big", &payload(9, 200_000));
    age(&arena.path("d/big"), 50);
    arena
}

/// The paths that an update has kept, and why.
fn kept(updated: &Updated) -> Vec<(Vec<u8>, Reason)> {
    updated.sidecar.kept.iter().map(|one| (one.path.to_vec(), one.reason)).collect()
}

fn of_big() -> (Vec<u8>, Reason) {
    (b"d/big".to_vec(), Reason::Unreadable)
}

fn told<T>(ran: Option<T>) {
    if ran.is_none() {
        println!("skipped: no filter of system calls can be set here");
    }
}

/// Bytes that cannot be read are lost, and no others.
#[test]
fn a_verdict_names_what_cannot_be_read() {
    let arena = with_big();
    arena.protect(&How::default());
    told(without_byte(BAD, || {
        assert_eq!(arena.states(), [pair("d/big", State::Unreadable)]);
        // Disks and systems give up 4 KiB at a time.
        let start = BAD / 4096 * 4096;
        assert_eq!(arena.damage("d/big"), [(start, start + 4096)]);
        let (_, found) = arena.examine();
        assert!(found.is_mendable() && found.denied().next().is_none());
        // The file's look is that of before, so names and times tell nothing.
        let sidecar = arena.open(None).unwrap();
        assert!(examine(&sidecar, &arena.base(), Scope::Quick, &context()).unwrap().is_intact());
    }));
    arena.is_intact();
}

/// A repair writes computed bytes to the bad place, and is honest when it cannot read them back. All else is mended.
#[test]
fn a_repair_over_a_disk_error_keeps_the_bytes() {
    let arena = with_big();
    arena.protect(&How::default());
    flip(&arena.path("d/small"), 5);
    let out = arena.path("copy");
    told(without_byte(BAD, || {
        let planned = arena.try_mend(&Mend { dry_run: true, ..Mend::default() }).unwrap();
        assert_eq!((planned.mended.len(), planned.written), (2, 0));
        let error = arena.try_mend(&Mend::default()).unwrap_err();
        assert_eq!((error.action, error.class()), (Action::Read, Class::Io), "{error}");
        assert!(fs::read(arena.path("d/small")).unwrap() == payload(2, 700));
        // The copy has the computed bytes.
        assert!(arena.try_mend(&Mend { out: Some(&out), ..Mend::default() }).unwrap().failed.is_empty());
    }));
    if out.exists() {
        assert!(tree(&out.join("d")) == tree(&arena.path("d")));
        assert!(arena.read("d/big") == payload(9, 200_000));
        arena.is_intact();
    }
}

/// A file that cannot be read is not protected, and the rest is.
#[test]
fn protecting_names_what_cannot_be_read() {
    let arena = with_big();
    told(without_byte(BAD, || {
        let protected = arena.protect(&How::default());
        let omitted: Vec<_> = protected.omitted.iter().map(|one| (&*one.path, one.reason)).collect();
        assert_eq!(omitted, [(&b"d/big"[..], Reason::Unreadable)]);
        assert_eq!(protected.files, 6);
        assert!(arena.states().is_empty());
    }));
}

/// An update keeps what it cannot read as it was, and does not read what has not changed.
#[test]
fn an_update_keeps_what_cannot_be_read() {
    let arena = with_big();
    arena.protect(&How::of_percent(100));
    told(without_byte(BAD, || {
        edit(&arena.path("d/sub/tool"), b"edited");
        assert!(arena.update(&How::default()).sidecar.kept.is_empty(), "it is not read");
        age(&arena.path("d/big"), 60);
        edit(&arena.path("d/sub/tool"), b"edited too");
        let updated = arena.update(&How::default());
        assert_eq!((kept(&updated), updated.changed), (vec![of_big()], 1));
        // Its time is another.
        assert_eq!(arena.states(), [pair("d/big", State::Edited)]);
    }));
    fs::remove_file(arena.path("d/big")).unwrap();
    arena.mend_all();
    assert!(arena.read("d/big") == payload(9, 200_000));
}

/// A file whose tail stands in one block with a tail that changes would have to be read. It is not given up unasked.
#[test]
fn an_update_gives_nothing_up_that_cannot_be_read() {
    let arena = with_big();
    arena.protect(&How::default());
    let tail = |path: &str| {
        let sidecar = arena.open(None).unwrap();
        let catalog = sidecar.catalog();
        let (_, file) =
            catalog.files().find(|(nth, _)| *catalog.entries[*nth].path == *path.as_bytes()).unwrap();
        file.tail / u64::from(catalog.block)
    };
    assert_eq!(tail("d/big"), tail("d/small"), "they share a block");
    edit(&arena.path("d/small"), b"edited");
    told(without_byte(BAD, || {
        let error = arena.refuses_update(&How::default(), Class::Io);
        assert!(error.contains("d/big") && error.contains("could not stay protected"), "{error}");
        let updated = arena.update(&How::forced());
        assert_eq!((updated.sidecar.omitted.len(), updated.changed), (1, 1));
    }));
}

/// Groups with bytes that cannot be read are not joined with others, and nothing is made anew.
#[test]
fn what_cannot_be_read_stays_where_it_is() {
    let arena = Arena::new();
    for nth in 0..20 {
        arena.write(format!("d/{nth}"), &payload(nth, 100_000));
    }
    arena.protect(&How::default());
    arena.write("d/big", &payload(9, 200_000));
    age(&arena.path("d/big"), 50);
    arena.update(&How::default());
    let before = arena.open(None).unwrap().catalog().groups.len();
    let big = |arena: &Arena| {
        let sidecar = arena.open(None).unwrap();
        let catalog = sidecar.catalog();
        catalog.files().find(|(nth, _)| *catalog.entries[*nth].path == *b"d/big").unwrap().1.clone()
    };
    let placed = big(&arena).runs;
    assert_eq!(before, 2);
    told(without_byte(BAD, || {
        age(&arena.path("d/big"), 60);
        let mut joins = 0;
        for nth in 30..70 {
            arena.write(format!("d/{nth}"), &payload(nth, 20_000));
            if nth % 16 == 0 {
                fs::remove_file(arena.path(format!("d/{}", nth / 16))).unwrap();
            }
            let updated = arena.update(&How { prune: Prune::Done, ..How::default() });
            assert_eq!((kept(&updated), updated.anew), (vec![of_big()], None), "{nth}");
            joins += usize::from(updated.is_joined);
            assert_eq!(arena.states(), [pair("d/big", State::Edited)], "{nth}");
        }
        assert!(joins > 0);
    }));
    assert_eq!(big(&arena).runs.len(), placed.len());
    age(&arena.path("d/big"), 50);
    rot(&arena.path("d/big"), 40_000, &[0; 10_000]);
    arena.mend_all();
    assert!(arena.read("d/big") == payload(9, 200_000));
}

/// A scrub comes back to what could not be read, before all that is not due.
#[test]
fn a_scrub_comes_back_to_what_cannot_be_read() {
    let arena = with_big();
    arena.protect(&How::default());
    let state = arena.path("state");
    told(without_byte(BAD, || {
        let sidecar = arena.open(None).unwrap();
        let how = Scrub { state: Some(&state), ..Scrub::default() };
        let later = Scrub { older_than: Some(Duration::from_secs(86_400)), ..how };
        for (how, looked) in [(how, 7), (later, 1)] {
            let (found, done) = scrub(&sidecar, &arena.base(), &how, &context()).unwrap();
            assert_eq!(states_of(&sidecar, &found), [pair("d/big", State::Unreadable)]);
            assert_eq!((done.looked_files, done.damaged_before), (looked, 0));
        }
    }));
}

/// The sidecar's own bytes may be what cannot be read: recovery blocks are lost, or one piece of its metadata.
#[test]
fn a_sidecar_that_cannot_be_read_everywhere_serves_with_the_rest() {
    let arena = Arena::furnished();
    let len = arena.protect(&How::of_percent(200)).sidecar_len;
    flip(&arena.path("d/large"), 5000);
    for at in (21_000..len).step_by(7_777) {
        told(without_byte(at, || {
            let (_, found) = arena.examine();
            assert!(found.is_mendable(), "{at}");
            assert_eq!((found.recovery_damaged, &*found.sidecar_damage), (1, &[][..]), "{at} of {len}");
        }));
    }
    let ran = without_byte(len - 1, || arena.try_mend(&Mend::default()).unwrap());
    if let Some(mended) = &ran {
        assert_eq!((mended.mended.len(), mended.failed.len()), (1, 0));
        assert!(arena.read("d/large") == payload(1, 20_481));
    }
    told(ran);
}
