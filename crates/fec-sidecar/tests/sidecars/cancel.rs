//! Every operation ends soon after the caller has cancelled it; the sidecar and the files are as before, and a repair
//! that was cancelled between two writes is ended by the next one.

use crate::bytes;
use crate::cancelled::{After, ends};
use fec_base::io::base::Base;
use fec_base::io::output::Policy;
use fec_sidecar::Redundancy;
use fec_sidecar::Sidecar;
use fec_sidecar::examine::{Scope, examine, examine_deep};
use fec_sidecar::protect::{Protect, protect};
use fec_sidecar::repair::{Mend, repair};
use fec_sidecar::scrub::{Scrub, scrub};
use fec_sidecar::update::update;
use fecfile::{Context, ErrorKind, Settings};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

fn job<'a>(paths: &'a [PathBuf], output: &'a Path, sha256: bool) -> Protect<'a> {
    Protect {
        redundancy: Redundancy::new(2_500),
        sha256,
        policy: Policy::new().with_force(true).with_sync(false),
        ..Protect::new(paths, output)
    }
}

/// Damages a file, and keeps its time.
fn rot(path: &Path) {
    let file = File::options().write(true).open(path).expect("a file");
    let time = file.metadata().and_then(|meta| meta.modified()).expect("a time");
    file.write_all_at(&[0x5a; 5000], 70_000).expect("it is written");
    file.set_modified(time).expect("a time");
}

#[test]
fn every_operation_can_be_cancelled() {
    let (home, saved) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let (home, saved) = (home.path(), saved.path().join("d.fecp"));
    let (paths, output) = ([home.join("d")], home.join("d.fecp"));
    fs::create_dir(&paths[0]).expect("a folder");
    for (name, seed) in NAMES.iter().zip(1..) {
        fs::write(paths[0].join(name), bytes(seed, 400_000)).expect("a file");
    }
    let _ = protect(&job(&paths, &output, false), &Context::default()).expect("it is protected");
    fs::copy(&output, &saved).expect("a copy");
    let base = Base::open(home).expect("a base");
    let open = |context: &Context<'_>| Sidecar::open(&output, None, &context.settings);

    for sha256 in [false, true] {
        ends("protect", home, |context, out| protect(&job(&paths, out, sha256), context).map(drop));
    }
    ends("verify", home, |context, _| examine(&open(context)?, &base, Scope::All, context).map(drop));
    ends("verify, deep", home, |context, _| examine_deep(&open(context)?, &base, context).map(drop));
    ends("a sample", home, |context, _| {
        let how = Scrub { sample: Some(9_900), ..Scrub::default() };
        scrub(&open(context)?, &base, &how, context).map(drop)
    });
    ends("files elsewhere", home, |context, out| {
        fs::create_dir_all(out).expect("a folder");
        let how = Mend { out: Some(out), ..Mend::default() };
        let done = repair(&open(context)?, &base, &how, context).map(drop);
        let _ = fs::remove_dir(out);
        done
    });
    fs::write(paths[0].join("c"), bytes(99, 1_400_000)).expect("an edit");
    ends("an update", home, |context, _| {
        fs::copy(&saved, &output).expect("a copy");
        let done = update(&job(&paths, &output, false), (None, None), context).map(drop);
        assert!(done.is_ok() || fs::read(&saved).expect("a file") == fs::read(&output).expect("a file"));
        done
    });
}

#[test]
fn a_cancelled_repair_is_ended_by_the_next() {
    let home = tempfile::tempdir().expect("a folder");
    let home = home.path();
    let (paths, output) = ([home.join("d")], home.join("d.fecp"));
    fs::create_dir(&paths[0]).expect("a folder");
    for (name, seed) in NAMES.iter().zip(1..) {
        fs::write(paths[0].join(name), bytes(seed, 400_000)).expect("a file");
    }
    let _ = protect(&job(&paths, &output, false), &Context::default()).expect("it is protected");
    let base = Base::open(home).expect("a base");
    let sidecar = || Sidecar::open(&output, None, &Settings::new()).expect("it opens");
    let how = Mend::default();
    let run = |after: &After| {
        NAMES.iter().for_each(|name| rot(&paths[0].join(name)));
        let settings = Settings { threads: 1, ..Settings::new() };
        repair(
            &sidecar(),
            &base,
            &how,
            &Context::new(settings).with_progress(after).with_cancel(&after.cancel),
        )
    };
    let all = After::new(u64::MAX);
    let _ = run(&all).expect("it mends");
    let all = all.bytes();
    for tenth in 0..10 {
        if let Err(error) = run(&After::new(all * tenth / 10)) {
            assert!(matches!(error.kind, ErrorKind::Cancelled), "{tenth}: {error}");
        }
        let _ = repair(&sidecar(), &base, &how, &Context::default()).expect("it mends");
        assert!(examine(&sidecar(), &base, Scope::All, &Context::default()).expect("a look").is_intact());
        for (name, seed) in NAMES.iter().zip(1..) {
            assert!(
                fs::read(paths[0].join(name)).expect("a file") == bytes(seed, 400_000),
                "{tenth}: {name}"
            );
        }
        let names: Vec<_> = fs::read_dir(home).expect("a folder").collect();
        assert_eq!(names.len(), 2, "{tenth}: {names:?}");
    }
}
