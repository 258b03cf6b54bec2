//! Files that cannot be read, or change each time: the rest is protected, and they are told.

use crate::arena::*;
use crate::denied::{as_nobody, give_away};
use fec_base::context::{Meter, Notice, Progress};
use fec_base::error::Action;
use fec_core::format::sidecar::parts::{Omitted, Reason};
use fec_sidecar::examine::{Scope, State, examine};
use fec_sidecar::protect::protect;
use fec_sidecar::repair::Mend;
use fec_sidecar::update::update;
use fecfile::{Class, Context, ErrorKind};
use std::fs;
use std::path::{Path, PathBuf};

/// The paths and reasons of what is not protected.
fn told(omitted: &[Omitted]) -> Vec<(String, Reason)> {
    let path = |omitted: &Omitted| String::from_utf8_lossy(&omitted.path).into_owned();
    omitted.iter().map(|omitted| (path(omitted), omitted.reason)).collect()
}

fn of(path: &str, reason: Reason) -> (String, Reason) {
    (path.to_owned(), reason)
}

/// The omitted paths that the sidecar records, and those that are told when it is examined.
#[track_caller]
fn recorded(arena: &Arena) -> Vec<(String, Reason)> {
    let sidecar = arena.open(None).unwrap();
    let found = examine(&sidecar, &arena.base(), Scope::All, &context()).unwrap();
    assert_eq!(told(&found.unprotected.omitted), told(&sidecar.stats().omitted));
    assert_eq!(found.unprotected.count, 0, "what is omitted is not new");
    told(&found.unprotected.omitted)
}

/// A folder that belongs to another user, with folders that may not be listed or entered, and a closed file.
fn closed() -> Arena {
    let arena = Arena::furnished();
    arena.write("d/locked/in", b"1");
    arena.write("d/hidden/in", b"2");
    give_away(&arena);
    close(&arena);
    arena
}

fn close(arena: &Arena) {
    for (path, mode) in [("d/locked", 0), ("d/hidden", 0o600), ("d/small", 0)] {
        set_mode(&arena.path(path), mode);
    }
}

const CLOSED: [&str; 3] = ["d/hidden/in", "d/locked", "d/small"];

#[test]
fn the_rest_is_protected() {
    let arena = closed();
    as_nobody(|| {
        let protected = arena.protect(&How::default());
        let denied = CLOSED.map(|path| of(path, Reason::Denied));
        assert_eq!(told(&protected.omitted), denied);
        assert_eq!((protected.files, protected.folders), (5, 6));
        assert_eq!(recorded(&arena), denied);
        assert!(arena.states().is_empty());
        // An update tells it again, and protects what has become readable.
        let updated = arena.try_update(&How::default()).unwrap();
        assert_eq!((updated.written, told(&updated.sidecar.omitted)), (false, denied.to_vec()));
        set_mode(&arena.path("d/locked"), 0o700);
        set_mode(&arena.path("d/small"), 0o600);
        let updated = arena.try_update(&How::default()).unwrap();
        assert_eq!(
            (updated.added, told(&updated.sidecar.omitted)),
            (2, vec![of("d/hidden/in", Reason::Denied)])
        );
        fs::set_permissions(arena.path("d/hidden"), fs::metadata(arena.path("d")).unwrap().permissions())
            .unwrap();
        fs::remove_file(arena.path("d/hidden/in")).unwrap();
        let sidecar = arena.open(None).unwrap();
        let found = examine(&sidecar, &arena.base(), Scope::Quick, &context()).unwrap();
        assert!(found.unprotected.omitted.is_empty(), "what is gone is not told");
    });
}

/// Nothing is written when no file can be read.
#[test]
fn without_any_file_nothing_is_protected() {
    let arena = closed();
    as_nobody(|| {
        for (path, names) in [("d/small", "d/small"), ("d/locked", "d/locked"), ("d/hidden", "d/hidden/in")] {
            let how = How { paths: &[path], ..How::default() };
            let error = arena.try_protect(&how).unwrap_err();
            let ErrorKind::NotAllowed(paths) = &error.kind else { panic!("{error}") };
            assert_eq!((error.class(), &paths[..]), (Class::Io, &[arena.path(names)][..]));
            assert!(!arena.path("d.fecp").exists());
        }
    });
}

/// Entries that an update cannot look at stay as they were, and come back from recovery data as they were.
#[test]
fn an_update_keeps_what_it_cannot_read() {
    let arena = Arena::furnished();
    arena.write("d/locked/in", &payload(7, 5000));
    arena.write("d/locked/deep/twin", b"3");
    fs::hard_link(arena.path("d/locked/in"), arena.path("d/locked/link")).unwrap();
    fs::hard_link(arena.path("d/large"), arena.path("d/locked/other")).unwrap();
    arena.protect(&How { redundancy: Some(100), ..MARKED });
    let before = arena.open(None).unwrap().catalog().entries.len();
    edit(&arena.path("d/sub/tool"), &payload(8, 1024));
    give_away(&arena);
    set_mode(&arena.path("d/locked"), 0);
    set_mode(&arena.path("d/small"), 0);
    as_nobody(|| {
        let updated = arena.try_update(&How::default()).unwrap();
        assert_eq!((updated.written, updated.changed, updated.gone.len()), (true, 1, 0));
        let kept: Vec<String> = told(&updated.sidecar.kept).into_iter().map(|(path, _)| path).collect();
        let below = ["d/locked/deep", "d/locked/deep/twin", "d/locked/in", "d/locked/link", "d/small"];
        assert_eq!(kept, below);
        // The first name of the file of this link is not kept, since it can be read.
        let omitted = ["d/locked", "d/locked/other"].map(|path| of(path, Reason::Denied));
        assert_eq!(told(&updated.sidecar.omitted), omitted);
        assert_eq!(arena.open(None).unwrap().catalog().entries.len(), before - 1);
        let again = arena.try_update(&How::default()).unwrap();
        assert_eq!((again.written, again.sidecar.kept.len()), (false, 5));
        assert_eq!(told(&again.sidecar.omitted), omitted[..1]);
    });
    set_mode(&arena.path("d/locked"), 0o755);
    set_mode(&arena.path("d/small"), 0o644);
    fs::remove_file(arena.path("d/locked/deep/twin")).unwrap();
    fs::remove_file(arena.path("d/small")).unwrap();
    arena.mend(&Mend::default());
    assert_eq!((arena.read("d/locked/deep/twin"), arena.read("d/small")), (b"3".to_vec(), payload(2, 700)));
}

/// A sidecar that is made anew, or whose record nothing proves, keeps nothing of what cannot be read.
#[test]
fn what_cannot_be_kept_is_told() {
    for by_root in [false, true] {
        let arena = Arena::furnished();
        let protected = arena.protect(&How::default());
        give_away(&arena);
        set_mode(&arena.path("d/empty"), 0);
        let how = match by_root {
            true => How { root: Some(protected.root), ..How::forced() },
            false => How { sha256: true, ..How::forced() },
        };
        as_nobody(|| {
            let updated = arena.try_update(&how).unwrap();
            assert_eq!(told(&updated.sidecar.omitted), [of("d/empty", Reason::Denied)], "{by_root}");
            assert!(updated.sidecar.kept.is_empty());
            assert_eq!(updated.gone, [], "it is told once");
        });
    }
}

/// Much that cannot be read and kept is no reason to give up its protection.
#[test]
fn an_update_does_not_give_up_much() {
    let arena = Arena::furnished();
    let protected = arena.protect(&How::default());
    give_away(&arena);
    set_mode(&arena.path("d/sub"), 0);
    as_nobody(|| {
        let by_root = How { root: Some(protected.root), ..How::default() };
        let error = arena.try_update(&by_root).unwrap_err();
        assert_eq!((error.action, error.class()), (Action::Read, Class::Io), "{error}");
        let updated = arena.try_update(&How { force: true, ..by_root }).unwrap();
        let denied = ["d/sub", "d/sub/deep/nested", "d/sub/tool", "d/sub/twin"];
        assert_eq!(told(&updated.sidecar.omitted), denied.map(|path| of(path, Reason::Denied)));
        assert_eq!(updated.gone, []);
    });
}

/// Writes to these files each time that something is read, so many times.
struct Writer<'a> {
    files: &'a [PathBuf],
    times: std::sync::atomic::AtomicU32,
}

struct Silent;

impl Meter for Silent {
    fn add(&self, _bytes: u64) {}
}

impl Progress for Writer<'_> {
    fn begin(&self, action: Action, _total: Option<u64>) -> Box<dyn Meter + '_> {
        use std::sync::atomic::Ordering;
        let left = self.times.load(Ordering::Relaxed);
        if left > 0 && matches!(action, Action::Protect | Action::Compare | Action::Update) {
            self.times.store(left - 1, Ordering::Relaxed);
            for file in self.files {
                let len = fs::metadata(file).map_or(0, |meta| meta.len());
                edit(file, &payload(left.into(), len as usize + 1));
            }
        }
        Box::new(Silent)
    }
    fn note(&self, _notice: Notice<'_>) {}
}

fn while_written<T>(files: &[PathBuf], times: u32, run: impl FnOnce(&Context<'_>) -> T) -> T {
    let writer = Writer { files, times: times.into() };
    run(&context().with_progress(&writer))
}

#[test]
fn a_file_that_changes_is_read_twice() {
    let arena = Arena::furnished();
    let log = [arena.path("d/small")];
    let run = |times, how: &How<'_>| {
        while_written(&log, times, |context| arena.with_job(how, |job| protect(job, context))).unwrap()
    };
    let once = run(1, &How::forced());
    assert!(once.omitted.is_empty() && once.files == 6);
    assert!(arena.states().is_empty(), "it is protected as it is now");
    let always = run(100, &How::forced());
    assert_eq!((told(&always.omitted), always.files), (vec![of("d/small", Reason::Changing)], 5));
    assert_eq!(recorded(&arena), told(&always.omitted));
    // An update adds it when nobody writes to it.
    let updated = arena.update(&How::default());
    assert_eq!((updated.added, updated.sidecar.omitted.len()), (1, 0));
    // A file that is protected already, and changes all the while, stays so as it was.
    edit(&log[0], b"another");
    let updated =
        while_written(&log, 100, |context| arena.with_job(&USUAL, |job| update(job, (None, None), context)));
    let updated = updated.unwrap();
    assert_eq!(
        (told(&updated.sidecar.kept), updated.written),
        (vec![of("d/small", Reason::Changing)], false)
    );
    assert_eq!(arena.states(), [pair("d/small", State::Edited)]);
    // Only the sidecar of before is left when every file changes.
    let all: Vec<PathBuf> = ["large", "small", "empty", "sub/deep/nested", "sub/tool", "sub/twin"]
        .map(|name| arena.path("d").join(name))
        .into();
    let before = arena.read("d.fecp");
    let error =
        while_written(&all, 100, |context| arena.with_job(&How::forced(), |job| protect(job, context)));
    assert!(matches!(error.unwrap_err().kind, ErrorKind::Changed));
    assert!(arena.read("d.fecp") == before);
    arena.nothing_temporary();
}

/// A small file is read in one go: an edit afterwards is one that verify tells, and costs no other attempt.
#[test]
fn what_was_read_may_be_edited() {
    struct AtTheEnd<'a>(&'a Path, std::sync::atomic::AtomicU64);
    struct Left<'a>(&'a Path, u64, std::sync::atomic::AtomicU64);
    impl Meter for Left<'_> {
        fn add(&self, bytes: u64) {
            if self.2.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed) + bytes == self.1 {
                edit(self.0, b"after all was read");
            }
        }
    }
    impl Progress for AtTheEnd<'_> {
        fn begin(&self, action: Action, total: Option<u64>) -> Box<dyn Meter + '_> {
            if action != Action::Protect {
                return Box::new(Silent);
            }
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Box::new(Left(self.0, total.unwrap_or(0), 0.into()))
        }
    }
    // The large file, which is read bit by bit, is a small one in the second attempt, and gets the same bytes again.
    for (name, attempts, states) in
        [("d/small", 1, vec![pair("d/small", State::Edited)]), ("d/large", 2, vec![])]
    {
        let arena = Arena::furnished();
        let file = arena.path(name);
        let progress = AtTheEnd(&file, 0.into());
        let context = context().with_progress(&progress);
        let protected = arena.with_job(&How::default(), |job| protect(job, &context)).unwrap();
        let began = progress.1.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!((protected.omitted.len(), began), (0, attempts), "{name}");
        assert_eq!(arena.states(), states);
    }
}

/// Makes folders within each other, deeper than a path can name them.
fn dig(from: &Path, name: &str, levels: usize) {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let mut at = openat(CWD, from, flags, Mode::empty()).expect("a folder");
    for _ in 0..levels {
        mkdirat(&at, name, Mode::from_raw_mode(0o755)).expect("a folder");
        at = openat(&at, name, flags, Mode::empty()).expect("a folder");
    }
}

#[test]
fn what_lies_too_deep_is_left_out_by_name() {
    for (name, levels) in [("level", 1500), ("l", 1500), (&*"x".repeat(200), 30)] {
        let arena = Arena::furnished();
        dig(&arena.path("d"), name, levels);
        let protected = arena.protect(&How::default());
        let [Omitted { path, reason: Reason::TooLong }] = &protected.omitted[..] else {
            panic!("{:?}", told(&protected.omitted))
        };
        assert!(path.starts_with(b"d/") && path.len() <= 4352, "{}", path.len());
        assert_eq!((protected.files, recorded(&arena).len()), (6, 1));
        assert!(protected.folders > 20 && protected.folders < 1500, "{}", protected.folders);
        assert!(!arena.try_update(&How::default()).unwrap().written);
        remove_deep(arena.path("d"));
    }
}

/// Removes a folder that is too deep for paths.
fn remove_deep(folder: PathBuf) {
    std::process::Command::new("rm").arg("-rf").arg(folder).status().expect("rm runs");
}
