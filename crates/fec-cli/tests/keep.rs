//! `fec encode --keep` and `--files-from` as a job engine runs them: repeatedly, and killed in between.

mod common;

use common::{Arena, expect, flip, listing, payload, root, text};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::Output;

/// Small sets, several of them.
const SHAPE: [&str; 6] = ["-k", "5", "-m", "4", "--set-size", "20K"];

/// The forms of an output.
const FORMS: [&str; 2] = ["s/", "c.fec"];

fn encode(arena: &Arena, output: &str, more: &[&str]) -> Output {
    arena.run([&["encode", "in", "-o", output, "-q"], &SHAPE[..], more].concat())
}

/// The JSON lines of a run.
#[track_caller]
fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// The single JSON object of a run, which must end with 0.
#[track_caller]
fn report(output: &Output) -> Value {
    expect(output, 0);
    let mut lines = lines(output);
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// An arena with an input, and its root in each form.
fn with_input() -> (Arena, [String; 2]) {
    let arena = Arena::new();
    arena.write("in", &payload(81, 200_000));
    let roots = FORMS.map(|form| root(&encode(&arena, form, &[])));
    (arena, roots)
}

/// The files at `path`, and when each was written.
fn stamps(arena: &Arena) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let files = arena.state().into_iter().map(|(path, _)| path);
    files.map(|path| (path.clone(), fs::metadata(path).unwrap().modified().unwrap())).collect()
}

#[test]
fn an_intact_encoding_is_kept() {
    let (arena, roots) = with_input();
    let before = (arena.state(), stamps(&arena));
    for (form, root_of_form) in FORMS.iter().zip(&roots) {
        for more in [&["--keep"][..], &["--keep", "-f"], &["--keep", "--no-sync"], &["--keep", "-j", "1"]] {
            assert_eq!(root(&encode(&arena, form, more)), *root_of_form);
        }
        let report = report(&encode(&arena, form, &["--keep", "--json"]));
        assert_eq!((&report["kept"], &report["root"]), (&true.into(), &root_of_form.as_str().into()));
    }
    arena.unchanged(&before.0);
    assert_eq!(stamps(&arena), before.1, "nothing is written, not even the same bytes");
    // The first run makes the output.
    for form in ["new/", "new.fec"] {
        assert_eq!(report(&encode(&arena, form, &["--keep", "--json"]))["kept"], false);
        assert_eq!(report(&encode(&arena, form, &["--keep", "--json"]))["kept"], true);
    }
}

#[test]
fn of_shard_files_only_what_is_missing_or_damaged_is_made_anew() {
    let (arena, _) = with_input();
    let shard = |i: usize| format!("s/in.{i:03}.shard");
    let before = arena.state();
    let annex = fec_core::format::annex::write(1 << 31, b"signed");
    arena.write(shard(8), &[arena.read(shard(8)), annex.clone()].concat());
    arena.write("s/notes", b"mine");
    let stamp = |i| fs::metadata(arena.path(shard(i))).unwrap().modified().unwrap();
    let untouched = (stamp(2), stamp(8));
    fs::remove_file(arena.path(shard(0))).unwrap();
    flip(&arena.path(shard(3)), 20_000);
    arena.write(shard(5), b"");
    let cut = arena.read(shard(6));
    arena.write(shard(6), &cut[..cut.len() - 1]);
    let done = report(&encode(&arena, "s/", &["--keep", "--json"]));
    let made: Vec<&str> = done["made_anew"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
    assert_eq!(made, [shard(0), shard(3), shard(5), shard(6)]);
    assert_eq!(done["kept"], false);
    assert_eq!((stamp(2), stamp(8)), untouched, "what is intact is not written");
    assert!(arena.read(shard(8)).ends_with(&annex), "annexes are kept");
    fs::remove_file(arena.path("s/notes")).unwrap();
    let whole = arena.read(shard(8));
    arena.write(shard(8), &whole[..whole.len() - annex.len()]);
    arena.unchanged(&before);
    // Even when the remaining shard could restore no payload.
    (0..8).for_each(|i| fs::remove_file(arena.path(shard(i))).unwrap());
    assert_eq!(
        report(&encode(&arena, "s/", &["--keep", "--json"]))["made_anew"].as_array().unwrap().len(),
        8
    );
    arena.unchanged(&before);
    // Another file has the name of a missing shard: only -f replaces it.
    arena.write(shard(7), b"not a shard");
    let changed = arena.state();
    expect(&encode(&arena, "s/", &["--keep"]), 2);
    arena.unchanged(&changed);
    expect(&encode(&arena, "s/", &["--keep", "-f"]), 0);
    arena.unchanged(&before);
}

/// An intact encoding of other bytes, with the same length, name and parameters.
#[test]
fn an_encoding_of_another_payload_is_never_kept() {
    let (arena, roots) = with_input();
    let old = arena.read("in");
    let times = fs::metadata(arena.path("in")).unwrap().modified().unwrap();
    for at in [0, 100_000, 199_999] {
        arena.write("in", &old);
        flip(&arena.path("in"), at);
        // Not even the file's time tells the difference.
        fs::File::options().write(true).open(arena.path("in")).unwrap().set_modified(times).unwrap();
        for (form, root) in FORMS.iter().zip(&roots) {
            let said = arena.refuses([&["encode", "in", "-o", form, "--keep"], &SHAPE[..]].concat(), 2);
            assert!(said.contains(root) && said.contains("other bytes") && said.contains("-f"), "{said}");
        }
    }
    // No part of it is used, damaged or not. With -f all of it goes away.
    fs::remove_file(arena.path("s/in.001.shard")).unwrap();
    expect(&encode(&arena, "s/", &["--keep"]), 2);
    for form in FORMS {
        assert_eq!(report(&encode(&arena, form, &["--keep", "-f", "--json"]))["kept"], false);
        assert_eq!(report(&encode(&arena, form, &["--keep", "--json"]))["kept"], true);
    }
    arena.expect(["decode", "s", "-o", "back"], 0);
    assert!(arena.read("back") == arena.read("in"));
}

#[test]
fn an_encoding_with_other_parameters_is_named_and_left() {
    let (arena, _) = with_input();
    for (form, more, words) in [
        ("s/", &["-m", "3"][..], "m: 4 there, 3 wanted"),
        ("s/", &["--hash", "sha256"], "hash: blake3 there, sha256 wanted"),
        ("s/", &["--set-size", "40K"], "shard bytes: "),
        ("s/", &["--payload-digest"], "the parameters are the same"),
        ("c.fec", &["-k", "4"], "k: 5 there, 4 wanted"),
        ("c.fec", &["--group-size", "2"], "wanted: root"),
    ] {
        let shape: Vec<&str> =
            SHAPE.chunks(2).filter(|pair| !more.contains(&pair[0])).flatten().copied().collect();
        let said = arena.refuses([&["encode", "in", "-o", form, "--keep"], &shape[..], more].concat(), 2);
        assert!(said.contains(words), "{said}");
    }
    // The same bytes have another name, which the shards would record.
    fs::copy(arena.path("in"), arena.path("other")).unwrap();
    let said = arena.refuses([&["encode", "other", "-o", "s/", "--keep"], &SHAPE[..]].concat(), 2);
    assert!(said.contains("name: in there, other wanted"), "{said}");
    expect(&arena.run([&["encode", "other", "-o", "c.fec", "--keep", "-q"], &SHAPE[..]].concat()), 0);
}

#[test]
fn what_is_no_encoding_is_left() {
    let arena = Arena::new();
    arena.write("in", &payload(81, 20_000));
    arena.write("c.fec", b"a letter");
    arena.write("s/letter", b"a letter");
    arena.write("file", b"a letter");
    symlink("s", arena.path("link")).unwrap();
    symlink("c.fec", arena.path("link.fec")).unwrap();
    for output in ["c.fec", "s/", "file/", "link/", "link.fec"] {
        arena.refuses(["encode", "in", "-o", output, "--keep"], 2);
    }
    // -f replaces it only if it would without --keep.
    arena.refuses(["encode", "in", "-o", "s/", "--keep", "-f"], 2);
    arena.refuses(["encode", "in", "-o", "link/", "--keep", "-f"], 2);
    expect(&arena.run(["encode", "in", "-o", "c.fec", "--keep", "-f", "-q"]), 0);
    // These outputs cannot be examined, or the input cannot be read twice.
    for args in [&["encode", "in", "-o", "-", "--keep"][..], &["encode", "in", "-o", "/dev/null", "--keep"]] {
        arena.refuses(args, 2);
    }
    arena.refuses_pipe(["encode", "-", "-o", "p.fec", "--keep"], b"bytes", 2);
}

/// All shards of today's encoding are intact, and a shard of another encoding lies beside them. Without the root nobody
/// could tell which is meant.
#[test]
fn shards_of_two_encodings_in_one_folder() {
    let (arena, _) = with_input();
    arena.write("two", &payload(5, 100_000));
    expect(&arena.run([&["encode", "two", "-o", "t/", "-q"], &SHAPE[..]].concat()), 0);
    fs::copy(arena.path("t/two.001.shard"), arena.path("s/two.001.shard")).unwrap();
    let said = arena.refuses([&["encode", "in", "-o", "s/", "--keep"], &SHAPE[..]].concat(), 2);
    assert!(said.contains("another encoding") && said.contains("-f"), "{said}");
    expect(&encode(&arena, "s/", &["--keep", "-f"]), 0);
    assert_eq!(listing(&arena.path("s")).len(), 9);
    let joined = [arena.read("c.fec"), {
        arena.run([&["encode", "two", "-o", "two.fec", "-q"], &SHAPE[..]].concat());
        arena.read("two.fec")
    }]
    .concat();
    arena.write("c.fec", &joined);
    arena.refuses([&["encode", "in", "-o", "c.fec", "--keep"], &SHAPE[..]].concat(), 2);
}

#[test]
fn the_input_is_a_link_or_empty_or_has_an_odd_name() {
    let arena = Arena::new();
    arena.write("first", b"first");
    arena.write("second", b"other");
    arena.write("empty", b"");
    let odd = OsStr::from_bytes(b"a b\n\xff");
    arena.write(odd, &payload(1, 5000));
    symlink("first", arena.path("link")).unwrap();
    let run = |name: &OsStr, more: &[&str]| {
        let args = ["encode", "-k", "2", "-m", "1"].map(OsStr::new).into_iter().chain([name]);
        arena.run(args.chain(more.iter().map(OsStr::new)))
    };
    for name in ["link".as_ref(), "empty".as_ref(), odd] {
        for kept in [false, true] {
            assert_eq!(report(&run(name, &["--keep", "--json"]))["kept"], kept);
        }
        let mut folder = name.to_owned();
        folder.push(".shards");
        // Here the input itself has a name that readers of shards never use unasked.
        let mut shard = name.to_owned();
        shard.push(".001.shard");
        fs::remove_file(arena.path(&folder).join(shard)).unwrap();
        assert_eq!(report(&run(name, &["--keep", "--json"]))["made_anew"].as_array().unwrap().len(), 1);
        assert_eq!(report(&run(name, &["--keep", "--json"]))["kept"], true);
    }
    // The target of the link counts.
    fs::remove_file(arena.path("link")).unwrap();
    symlink("second", arena.path("link")).unwrap();
    expect(&run("link".as_ref(), &["--keep"]), 2);
}

#[test]
fn the_root_file_is_kept_too() {
    let (arena, roots) = with_input();
    let with = |more: &[&str]| encode(&arena, "s/", &[&["--keep", "--root-file", "root"], more].concat());
    for _ in 0..2 {
        expect(&with(&[]), 0);
        assert_eq!(arena.read("root"), format!("{}\n", roots[0]).as_bytes());
    }
    // The root file is lost: a run was killed before it was written.
    fs::remove_file(arena.path("root")).unwrap();
    expect(&with(&[]), 0);
    arena.write("root", b"mine");
    let said = text(&with(&[]).stderr);
    assert!(said.contains(&roots[0]) && arena.read("root") == b"mine", "{said}");
    expect(&with(&["-f"]), 0);
    assert_eq!(arena.read("root"), format!("{}\n", roots[0]).as_bytes());
}

/// The run is killed in the middle of its work, repeatedly, until one gets through.
#[test]
fn killed_runs_leave_nothing_that_the_next_one_does_not_mend() {
    let arena = Arena::new();
    let bytes = payload(9, 20_000_000);
    arena.write("in", &bytes);
    for output in ["in.shards/", "in.fec"] {
        let args = ["encode", "in", "-o", output, "--keep", "-q", "--no-sync"];
        for _ in 0..3 {
            let mut child = arena.spawn(args);
            arena.wait_for_temporary();
            child.kill().unwrap();
            child.wait().unwrap();
        }
        arena.expect(args, 0);
        arena.nothing_temporary();
        assert_eq!(report(&arena.run(args.into_iter().chain(["--json"])))["kept"], true);
        arena.expect(["decode", output, "-o", "back", "-f"], 0);
        assert!(arena.read("back") == bytes);
    }
    // The run is killed while it makes shards anew in the folder itself.
    for _ in 0..3 {
        for i in 0..60 {
            let _ = fs::remove_file(arena.path(format!("in.shards/in.{i:03}.shard")));
        }
        let mut child = arena.spawn(["encode", "in", "--keep", "-q", "--no-sync"]);
        let is_begun = || listing(&arena.path("in.shards")).iter().any(|name| name.starts_with(".fec-"));
        common::wait_until(is_begun);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    arena.expect(["encode", "in", "--keep", "-q", "--no-sync"], 0);
    assert_eq!(listing(&arena.path("in.shards")).len(), 100, "and nothing else");
    arena.expect(["verify", "in.shards"], 0);
}

/// Temporary files of living processes stay, and files with such names in the folder do not count as shards.
#[test]
fn temporary_files_of_others_are_left() {
    let (arena, _) = with_input();
    let alive = format!(".fec-{}-0.tmp", std::process::id());
    fs::rename(arena.path("s/in.004.shard"), arena.path("s").join(&alive)).unwrap();
    let done = report(&encode(&arena, "s/", &["--keep", "--json"]));
    assert_eq!(done["made_anew"].as_array().unwrap().len(), 1);
    assert!(arena.path("s").join(&alive).exists() && arena.path("s/in.004.shard").exists());
}

#[test]
fn two_runs_at_once_on_one_output() {
    let arena = Arena::new();
    arena.write("in", &payload(9, 3_000_000));
    for output in ["s/", "c.fec"] {
        for round in 0..8 {
            if round % 2 == 0 {
                let _ = fs::remove_dir_all(arena.path("s"));
                let _ = fs::remove_file(arena.path("c.fec"));
            } else if output == "s/" {
                (0..50).for_each(|i| fs::remove_file(arena.path(format!("s/in.{i:03}.shard"))).unwrap());
            } else {
                flip(&arena.path("c.fec"), 100_000);
            }
            let args = ["encode", "in", "-o", output, "--keep", "-q", "--no-sync"];
            let children: Vec<_> = (0..3).map(|_| arena.spawn(args)).collect();
            let roots: Vec<String> =
                children.into_iter().map(|child| root(&child.wait_with_output().unwrap())).collect();
            assert!(roots.iter().all(|root| *root == roots[0]));
            arena.expect(["verify", output], 0);
            arena.nothing_temporary();
        }
    }
}

/// Somebody writes to the input all the time: every kept or made output belongs to the bytes that were read.
#[test]
fn an_input_that_changes_meanwhile() {
    let arena = Arena::new();
    arena.write("in", &payload(9, 4_000_000));
    expect(&arena.run(["encode", "in", "-q", "--no-sync"]), 0);
    for round in 0..6 {
        let mut child = arena.spawn(["encode", "in", "--keep", "-f", "-q", "--no-sync", "--json"]);
        let mut writes = 0u64;
        while child.try_wait().unwrap().is_none() {
            flip(&arena.path("in"), (round * 600_000 + writes as usize * 7919) % 4_000_000);
            writes += 1;
        }
        let ended = child.wait_with_output().unwrap();
        let exit = ended.status.code().unwrap();
        assert!(exit == 0 || exit == 4, "{exit}: {}", text(&ended.stderr));
    }
    // A run after the last change finds out what is there.
    let settled = arena.run(["encode", "in", "--keep", "-f", "-q", "--no-sync"]);
    expect(&settled, 0);
    arena.expect(["decode", "in.shards", "-o", "back"], 0);
    assert!(arena.read("back") == arena.read("in"));
}

/// Root ignores permissions, and tests often run as root: then nothing is tested.
#[test]
fn what_may_not_be_read_is_an_error_and_no_reason_to_make_it_anew() {
    use std::os::unix::fs::PermissionsExt;
    let (arena, _) = with_input();
    let shard = arena.path("s/in.002.shard");
    fs::set_permissions(&shard, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::File::open(&shard).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    expect(&encode(&arena, "s/", &["--keep"]), 4);
    expect(&encode(&arena, "s/", &["--keep", "-f"]), 4);
    fs::set_permissions(&shard, fs::Permissions::from_mode(0o600)).unwrap();
    expect(&encode(&arena, "s/", &["--keep"]), 0);
}

/// Five files, one of them in a folder.
fn with_files() -> (Arena, Vec<&'static str>) {
    let arena = Arena::new();
    let names = vec!["a", "b c", "deep/d", "e\nf", "g"];
    for (seed, name) in (1..).zip(&names) {
        arena.write(name, &payload(seed, 10_000 + seed as usize));
    }
    (arena, names)
}

#[test]
fn a_list_is_encoded_file_by_file() {
    let (arena, names) = with_files();
    let list = names.iter().flat_map(|name| [name.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
    let args = ["encode", "--files-from", "-", "-0", "--keep", "--json", "-o", "out/{/}.fec"];
    fs::create_dir(arena.path("out")).unwrap();
    for kept in [false, true] {
        let output = arena.pipe(args, &list);
        expect(&output, 0);
        let lines = lines(&output);
        assert_eq!(lines.len(), 5);
        for (line, shown) in lines.iter().zip(["a", "b c", "deep/d", "e\\nf", "g"]) {
            assert_eq!((&line["kept"], &line["input"]), (&kept.into(), &shown.into()));
        }
    }
    for name in &names {
        let last = name.rsplit('/').next().unwrap();
        arena.expect(["decode", &format!("out/{last}.fec"), "-o", "back", "-f"], 0);
        assert!(arena.read("back") == arena.read(name), "{name:?}");
    }
    // As text: a line with root and name for each file. Zero bytes are recognized without -0, and lines serve if names
    // have no line ends.
    fs::remove_file(arena.path("out/g.fec")).unwrap();
    let output = arena.pipe(["encode", "--files-from", "-", "--keep", "-o", "out/{/}.fec"], &list);
    expect(&output, 0);
    assert!(text(&output.stderr).contains("5 files: 1 encoded, 4 kept, 0 failed"), "{output:?}");
    // As with sha256sum, a line begins with a backslash if its name has escapes.
    let lines = text(&output.stdout);
    let is_listed =
        |line: &str| line.trim_start_matches('\\').get(64..).is_some_and(|rest| rest.starts_with("  out/"));
    assert!(lines.lines().count() == 5 && lines.lines().all(is_listed), "{lines}");
    arena.write("list", b"a\nb c\n\ndeep/d\n");
    arena.expect(["encode", "--files-from", "list"], 0);
    assert!(arena.path("a.shards").is_dir() && arena.path("deep/d.shards").is_dir());
}

#[test]
fn one_file_that_fails_does_not_stop_the_others() {
    let (arena, _) = with_files();
    arena.write("taken.fec", b"a letter");
    arena.write("taken", b"bytes");
    common::make_fifo(&arena.path("fifo"));
    let list = b"nosuch\na\ndeep\ntaken\nfifo\n-\ng\n";
    let args = ["encode", "--files-from", "-", "--json", "-o", "{}.fec"];
    let output = arena.pipe(args, list);
    expect(&output, 4);
    let told: Vec<(Value, Value)> =
        lines(&output).iter().map(|line| (line["input"].clone(), line["exit_code"].clone())).collect();
    let expected = [
        ("nosuch", Value::from(4)),
        ("a", 0.into()),
        ("deep", 2.into()),
        ("taken", 2.into()),
        ("fifo", 2.into()),
        ("./-", 4.into()),
        ("g", 0.into()),
    ];
    assert_eq!(told, expected.map(|(name, exit)| (Value::from(name), exit)));
    assert_eq!(arena.read("taken.fec"), b"a letter");
    // A missing file alone gives 4. With --keep, a second run only has to do what failed.
    let again = arena.pipe(args.into_iter().chain(["--keep"]), b"nosuch\na\ng\n");
    expect(&again, 4);
    assert_eq!(lines(&again).iter().filter(|line| line["kept"] == true).count(), 2);
    arena.write("nosuch", b"it is there now");
    expect(&arena.pipe(args.into_iter().chain(["--keep"]), b"nosuch\na\ng\n"), 0);
}

#[test]
fn lists_that_are_empty_or_cannot_be_meant() {
    let (arena, _) = with_files();
    for empty in [&b""[..], b"\n\n", b"\0"] {
        assert!(arena.refuses_pipe(["encode", "--files-from", "-"], empty, 2).contains("it lists nothing"));
        assert!(arena.refuses_pipe(["protect", "--files-from", "-"], empty, 2).contains("it lists nothing"));
    }
    arena.refuses(["encode", "--files-from", "nosuch"], 4);
    for bad in [
        &["-o", "one.fec"][..],
        &["-o", "-"],
        &["a"],
        &["--root-file", "r"],
        &["--stream"],
        &["--to", "x"],
        &["-k", "0"],
    ] {
        arena.refuses_pipe([&["encode", "--files-from", "-"], bad].concat(), b"a\n", 2);
    }
    arena.refuses(["encode", "a", "-0"], 2);
}

/// The output of a listed file, and any listed file itself, is never overwritten, even with -f.
#[test]
fn outputs_of_a_list_do_not_meet() {
    let (arena, _) = with_files();
    arena.write("other/a", b"another a");
    arena.write("a.fec", b"a payload of that name");
    let run = |list: &[u8], output: &str| {
        arena.pipe(["encode", "--files-from", "-", "-f", "--keep", "-q", "-o", output], list)
    };
    let input = arena.read("a.fec");
    expect(&run(b"a\na.fec\n", "{}.fec"), 2);
    assert!(arena.read("a.fec") == input);
    fs::create_dir(arena.path("out")).unwrap();
    let output = run(b"a\nother/a\ndeep/../a\n", "out/{/}.fec");
    expect(&output, 2);
    assert_eq!(text(&output.stdout).lines().count(), 1);
    arena.expect(["decode", "out/a.fec", "-o", "back"], 0);
    assert!(arena.read("back") == arena.read("a"));
    // The replaced folder would take an input with it.
    expect(&arena.run(["encode", "a", "-q", "-k", "2", "-m", "1"]), 0);
    let list: OsString = "a.shards/a.000.shard\na\n".into();
    let before = arena.state();
    let output = arena.pipe(
        ["encode", "--files-from", "-", "-f", "-q", "-o", "{}.shards/", "-k", "1", "-m", "1"],
        list.as_bytes(),
    );
    expect(&output, 2);
    assert!(
        arena.read("a.shards/a.000.shard")
            == before.iter().find(|(p, _)| p.ends_with("a.000.shard")).unwrap().1
    );
}
