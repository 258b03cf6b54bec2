//! Data on the disk at the moment a command reports success, observed by strace. Skipped where strace cannot be used.

#[path = "common/mod.rs"]
mod common;

use common::{Arena, can_trace, payload, text, traced};
use std::collections::BTreeSet;
use std::process::Output;

/// The relevant system calls: (name, arguments), with the paths of descriptors in `<…>`.
struct Calls(Vec<(String, String)>);

impl Calls {
    /// The calls of a run of `fec` that ends with 0.
    #[track_caller]
    fn of(arena: &Arena, args: &[&str]) -> Calls {
        let options = ["-y", "-s", "4096", "-o", "../calls"];
        let calls = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,linkat";
        let mut command = traced(arena, &[&options[..], &["-e", calls]].concat(), args);
        let output = command.output().expect("strace starts");
        common::expect(&output, 0);
        let log = std::fs::read(arena.work.join("../calls")).expect("strace has written it");
        // A call during which another thread makes one is logged in two parts.
        let mut begun = std::collections::BTreeMap::new();
        let mut calls = Vec::new();
        for line in text(&log).lines() {
            let (thread, rest) = line.split_once(' ').expect("the number of a thread");
            let rest = rest.trim_start();
            if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
                begun.insert(thread.to_owned(), start.to_owned());
                continue;
            }
            let whole = match rest.split_once(" resumed>") {
                Some((_, end)) => begun.remove(thread).expect("it was begun") + end,
                None => rest.to_owned(),
            };
            if let Some((name, args)) = whole.split_once('(')
                && args.ends_with("= 0")
            {
                calls.push((name.to_owned(), args.to_owned()));
            }
        }
        Calls(calls)
    }

    /// The index of the only rename to this name.
    #[track_caller]
    fn rename_to(&self, name: &str) -> usize {
        let quoted = format!("{name}\"");
        let is_it = |(call, args): &(String, String)| call.starts_with("rename") && args.contains(&quoted);
        let found: Vec<usize> = (0..self.0.len()).filter(|at| is_it(&self.0[*at])).collect();
        assert_eq!(found.len(), 1, "{name}: {:#?}", self.0);
        found[0]
    }

    /// The paths that are synced in a part of the calls.
    fn synced(&self, part: std::ops::Range<usize>) -> BTreeSet<String> {
        let syncs = self.0[part].iter().filter(|(call, _)| call == "fsync");
        syncs.filter_map(|(_, args)| Some(args.split_once('<')?.1.split_once('>')?.0.to_owned())).collect()
    }
}

/// An arena that is not below a link, because strace reports the targets of links.
fn arena() -> (Arena, String) {
    let arena = Arena::new();
    arena.write("in", &payload(5, 50_000));
    let work = std::fs::canonicalize(&arena.work).expect("it is there");
    (arena, work.to_str().expect("a plain path").to_owned())
}

#[test]
fn a_file_is_on_the_disk_before_it_has_its_name_and_the_name_before_the_end() {
    if !can_trace() {
        return;
    }
    let (arena, work) = arena();
    arena.expect(["encode", "in", "-k", "3", "-m", "2", "-o", "s/", "--no-sync"], 0);
    for args in [
        &["encode", "in", "-o", "out"][..],
        &["decode", "s", "-o", "out"],
        &["decode", "s", "-o", "out", "-f"],
    ] {
        let _ = std::fs::remove_file(arena.path("out"));
        let calls = Calls::of(&arena, args);
        let named = calls.rename_to("out");
        let before = calls.synced(0..named);
        assert!(before.iter().any(|path| path.starts_with(&format!("{work}/.fec-"))), "{args:?}: {before:?}");
        assert!(calls.synced(named..calls.0.len()).contains(&work), "{args:?}");
        // A file that appeared after the check is not replaced either.
        assert_eq!(calls.0[named].1.contains("RENAME_NOREPLACE"), !args.contains(&"-f"), "{args:?}");
    }
}

#[test]
fn a_folder_and_all_files_in_it_are_on_the_disk_before_it_has_its_name() {
    if !can_trace() {
        return;
    }
    let (arena, work) = arena();
    let calls = Calls::of(&arena, &["encode", "in", "-k", "3", "-m", "2", "-o", "s/"]);
    let named = calls.rename_to("s");
    let before = calls.synced(0..named);
    let of = |name: &str| before.iter().filter(|path| path.ends_with(name)).count();
    for nth in 0..5 {
        assert_eq!(of(&format!(".tmp/in.{nth:03}.shard")), 1, "{before:?}");
    }
    assert_eq!(of(".tmp"), 1, "the names of the files: {before:?}");
    assert!(calls.synced(named..calls.0.len()).contains(&work));
}

#[test]
fn what_repair_puts_in_place_is_on_the_disk_first() {
    if !can_trace() {
        return;
    }
    let (arena, work) = arena();
    arena.expect(["encode", "in", "-k", "3", "-m", "2", "-o", "s/", "--no-sync"], 0);
    std::fs::remove_file(arena.path("s/in.001.shard")).expect("it is there");
    let calls = Calls::of(&arena, &["repair", "s"]);
    let named = calls.rename_to("in.001.shard");
    let is_temporary = |path: &String| path.starts_with(&format!("{work}/s/.fec-"));
    assert!(calls.synced(0..named).iter().any(is_temporary));
    assert!(calls.synced(named..calls.0.len()).contains(&format!("{work}/s")));
}

/// The existing file may come from a writer that did not wait for the disk.
#[test]
fn what_is_kept_already_is_put_on_the_disk() {
    if !can_trace() {
        return;
    }
    let (arena, work) = arena();
    let keep = ["encode", "in", "-k", "3", "-m", "2", "-o", "s/", "--keep"];
    arena.expect([&keep[..], &["--no-sync"]].concat(), 0);
    let calls = Calls::of(&arena, &keep);
    let mut expected: BTreeSet<String> = (0..5).map(|nth| format!("{work}/s/in.{nth:03}.shard")).collect();
    expected.extend([format!("{work}/s"), work]);
    assert_eq!(calls.synced(0..calls.0.len()), expected);
}

#[test]
fn nothing_is_waited_for_without_a_wish() {
    if !can_trace() {
        return;
    }
    let (arena, _) = arena();
    for output in ["s/", "out"] {
        let calls = Calls::of(&arena, &["encode", "in", "-k", "3", "-m", "2", "-o", output, "--no-sync"]);
        assert_eq!(calls.synced(0..calls.0.len()), BTreeSet::new());
    }
}

/// Runs `fec` under strace. Closing some files fails, as on a network file system without room.
fn refusing(arena: &Arena, refused: &[&str], args: &[&str]) -> Output {
    let options = [&["-y", "-o", "../calls", "-e", "trace=close"], refused].concat();
    traced(arena, &options, args).output().expect("strace starts")
}

#[test]
fn what_the_system_tells_when_a_file_is_closed_is_an_error() {
    if !can_trace() {
        return;
    }
    let (arena, work) = arena();
    arena.expect(["encode", "in", "-k", "3", "-m", "2", "-o", "s/", "--no-sync"], 0);
    let before = common::listing(&arena.work);
    for args in [
        &["encode", "in", "-k", "3", "-m", "2", "-o", "t/", "--no-sync", "-j", "1"][..],
        &["encode", "in", "-o", "out", "--no-sync", "-j", "1"],
        &["decode", "s", "-o", "out", "--no-sync", "-j", "1"],
    ] {
        common::expect(&refusing(&arena, &[], args), 0);
        let log = std::fs::read_to_string(arena.work.join("../calls")).expect("strace has written it");
        let _ = std::fs::remove_file(arena.path("out"));
        let _ = std::fs::remove_dir_all(arena.path("t"));
        // The number of the first close of a written file, among all closes.
        let nth =
            log.lines().position(|line| line.contains(&format!("<{work}/.fec-")) && !line.contains(".tmp>"));
        let nth = nth.or_else(|| log.lines().position(|line| line.contains(&format!("<{work}/.fec-"))));
        let inject = format!("inject=close:error=EDQUOT:when={}", nth.expect("it is closed") + 1);
        let output = refusing(&arena, &["-e", &inject], args);
        common::expect(&output, 4);
        assert!(text(&output.stderr).contains("quota"), "{args:?}: {}", text(&output.stderr));
        assert_eq!(common::listing(&arena.work), before, "{args:?}");
    }
    // Standard output, whose file this process keeps open.
    let file = std::fs::File::create(arena.path("restored")).expect("a new file");
    let path = format!("{work}/restored");
    let options = ["-o", "../calls", "-e", "trace=close", "-e", "inject=close:error=EDQUOT", "-P", &path];
    let mut command = traced(&arena, &options, &["decode", "s", "-o", "-"]);
    let output = command.stdout(file).output().expect("strace starts");
    common::expect(&output, 4);
    assert!(text(&output.stderr).contains("quota"), "{}", text(&output.stderr));
}

/// A file system that cannot exchange names, like those over a network.
#[test]
fn a_folder_that_cannot_be_replaced_in_one_step_stays() {
    if !can_trace() {
        return;
    }
    let (arena, _) = arena();
    arena.expect(["encode", "in", "-k", "3", "-m", "2", "-o", "s/", "--no-sync"], 0);
    let before = common::listing(&arena.path("s"));
    let options = ["-o", "../calls", "-e", "trace=renameat2", "-e", "inject=renameat2:error=EINVAL"];
    let args = ["encode", "in", "-k", "4", "-m", "2", "-o", "s/", "-f"];
    let output = traced(&arena, &options, &args).output().expect("strace starts");
    common::expect(&output, 4);
    assert!(text(&output.stderr).contains("cannot exchange two folders"), "{}", text(&output.stderr));
    assert_eq!(common::listing(&arena.path("s")), before);
    arena.nothing_temporary();
}
