//! Tests of stores that are folders.

use crate::common::{self, Arena, expect, listing, payload, text};
use crate::{LEN, PLACES, Sent, encode, flip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_was_sent_comes_back_without_any_two_places() {
    let sent = Sent::new(&[]);
    assert_eq!(
        sent.shards("p0").len() + sent.shards("p4").len(),
        2 * 4 * 2,
        "four segments, two shards each"
    );
    sent.comes_back();
    expect(&sent.fec("verify", &[]), 0);
    for (a, b) in [("p0", "p1"), ("p1", "p4"), ("p2", "p3")] {
        for place in [a, b] {
            fs::rename(sent.arena.path(place), sent.arena.path("away".to_owned() + place)).unwrap();
        }
        // The folders do not exist, like an unmounted disk.
        let said = sent.comes_back();
        assert!(said.contains("did no harm"), "{said}");
        for place in [a, b] {
            fs::create_dir(sent.arena.path(place)).unwrap();
        }
        // The folders are empty.
        sent.comes_back();
        let report = sent.json("verify", &[], 1);
        assert_eq!((&report["margin"]["shards"], &report["enough"]), (&0.into(), &true.into()));
        for place in [a, b] {
            fs::remove_dir(sent.arena.path(place)).unwrap();
            fs::rename(sent.arena.path("away".to_owned() + place), sent.arena.path(place)).unwrap();
        }
    }
    for place in ["p0", "p1", "p2"] {
        fs::remove_dir_all(sent.arena.path(place)).unwrap();
        fs::create_dir(sent.arena.path(place)).unwrap();
    }
    sent.is_refused(3);
    expect(&sent.fec("verify", &[]), 3);
    expect(&sent.fec("repair", &["--now"]), 3);
}

#[test]
fn the_second_run_sends_only_what_is_missing() {
    let sent = Sent::new(&[]);
    let before = sent.arena.state();
    let report = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).expect("a report");
    let again = encode(&sent.arena, &["--json"]);
    expect(&again, 0);
    assert_eq!((&report(&again)["sent"], &report(&again)["kept"]), (&0.into(), &45.into()));
    sent.arena.unchanged(&before);
    // Shards that are missing, cut, or of another number are made anew.
    let shards = sent.shards("p2");
    fs::remove_file(&shards[0]).unwrap();
    fs::write(&shards[1], b"cut").unwrap();
    fs::copy(&shards[3], &shards[2]).unwrap();
    fs::write(sent.manifest("p3"), b"no manifest").unwrap();
    let again = encode(&sent.arena, &["--json"]);
    expect(&again, 0);
    assert_eq!((&report(&again)["sent"], &report(&again)["kept"]), (&4.into(), &41.into()));
    sent.arena.unchanged(&before);
}

#[test]
fn places_that_fail_are_told_and_made_up_for_later() {
    let arena = Arena::new();
    let bytes = payload(8, LEN);
    arena.write("in", &bytes);
    // A folder below a missing one, like a disk that is not mounted.
    let to = |last: &'static str| ["p0", "p1", "p2", "p3", last];
    let send = |places: [&str; 5], options: &[&str]| {
        let to = places.iter().flat_map(|place| ["--to", place]);
        let shape = ["encode", "in", "-k", "6", "-m", "4", "--retries", "0"];
        arena.fec(shape.into_iter().chain(to).chain(options.iter().copied())).output().expect("fec starts")
    };
    let output = send(to("disk/p4"), &["--json"]);
    expect(&output, 1);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["missing"].as_array().unwrap().len(), &report["weakest"]), (3, &8.into()));
    let root = report["root"].as_str().unwrap().to_owned();
    let sent = Sent { arena, bytes, root };
    sent.comes_back();
    fs::create_dir(sent.arena.path("disk")).unwrap();
    let from = ["p0", "p1", "p2", "p3", "disk/p4"];
    expect(&sent.fec_at("repair", &from, &[]), 0);
    expect(&sent.fec_at("verify", &from, &["--deep"]), 0);
    // Two of five places are too many: nothing is promised, and no root is printed.
    fs::write(sent.arena.path("file"), b"").unwrap();
    sent.arena.write("in", &payload(9, LEN));
    let to = ["p0", "p1", "p2", "file/p3", "nowhere/p4"].into_iter().flat_map(|place| ["--to", place]);
    let output =
        sent.arena.fec(["encode", "in", "-k", "6", "-m", "4"].into_iter().chain(to)).output().unwrap();
    expect(&output, 4);
    assert!(output.stdout.is_empty(), "a root went out");
}

#[test]
fn no_domain_holds_more_than_may_be_lost() {
    let arena = Arena::new();
    arena.write("in", &payload(8, 1000));
    let crowded = ["encode", "in", "-k", "6", "-m", "2", "--to", "p0", "--to", "p1"];
    let said = arena.refuses(crowded, 2);
    assert!(said.contains("4 domains are needed") && said.contains("--crowded"), "{said}");
    assert!(!arena.path("p0").exists());
    let one = [
        "encode",
        "in",
        "-k",
        "6",
        "-m",
        "4",
        "--to",
        "p0,domain=x",
        "--to",
        "p1,domain=x",
        "--to",
        "p2,domain=x",
    ];
    arena.refuses(one, 2);
    let said = text(&arena.expect([&crowded[..], &["--crowded"]].concat(), 0).stderr);
    assert!(said.contains("any 2 shards, but no whole domain"), "{said}");
    arena.write("list", b"# places\np0,domain=a\n\np1,domain=b\np2,domain=c\n");
    let said = text(&arena.expect(["encode", "in", "-k", "3", "-m", "3", "--to", "@list"], 0).stderr);
    assert!(said.contains("any 1 of 3 domains, plus 1 shard"), "{said}");
    // A line of any length is not looked through for what a message may tell.
    arena.write("noise", &[b':'; 60_000]);
    let said = arena.refuses(["encode", "in", "-k", "3", "-m", "3", "--to", "@noise"], 2);
    assert!(said.contains("a line has more than 4096 bytes") && said.len() < 300, "{said}");
}

/// Whoever holds a store may put anything there: it costs time, and never a wrong byte.
#[test]
fn liars_cost_nothing_but_time() {
    let sent = Sent::new(&[]);
    // Another payload, well encoded, lies under the keys of this one, with its manifest.
    let other = Sent::new(&["--segment-size", "300K", "--set-size", "64K"]);
    for place in ["p0", "p1"] {
        for (ours, theirs) in sent.shards(place).iter().zip(other.shards(place)) {
            fs::copy(theirs, ours).unwrap();
        }
        fs::copy(other.manifest(place), sent.manifest(place)).unwrap();
    }
    sent.comes_back();
    expect(&sent.fec("verify", &[]), 1);
    expect(&sent.fec("repair", &["--now"]), 0);
    expect(&sent.fec("verify", &["--deep"]), 0);
    // Replays of other shards of the same segment, all kinds of lengths, holes, folders, and dangling links.
    let shards = sent.shards("p2");
    fs::copy(&sent.shards("p3")[0], &shards[0]).unwrap();
    fs::write(&shards[1], b"").unwrap();
    fs::write(&shards[2], [fs::read(&shards[2]).unwrap(), vec![7; 100_000]].concat()).unwrap();
    fs::remove_file(&shards[3]).unwrap();
    std::os::unix::fs::symlink("/nowhere", &shards[3]).unwrap();
    fs::File::options().write(true).open(&shards[4]).unwrap().set_len(1 << 40).unwrap();
    let len = fs::metadata(&shards[5]).unwrap().len();
    fs::File::create(&shards[5]).unwrap().set_len(len).unwrap();
    fs::remove_file(&shards[6]).unwrap();
    fs::create_dir(&shards[6]).unwrap();
    fs::remove_file(sent.manifest("p2")).unwrap();
    fs::File::create(sent.manifest("p2")).unwrap().set_len(1 << 40).unwrap();
    sent.comes_back();
    expect(&sent.fec("verify", &["--deep"]), 1);
}

#[test]
fn damage_deep_inside_is_found_by_deep_and_mended() {
    let sent = Sent::new(&[]);
    let before = sent.arena.state();
    for place in ["p0", "p3"] {
        let shards = sent.shards(place);
        let middle = fs::metadata(&shards[1]).unwrap().len() as usize / 2;
        flip(&shards[1], middle);
    }
    // Without --deep the verdict says what was looked at.
    let told = sent.fec("verify", &[]);
    expect(&told, 0);
    assert!(
        text(&told.stdout).contains("as far as sizes and first bytes tell, it can be restored"),
        "{told:?}"
    );
    let table = |more: &[&str]| text(&sent.fec("verify", &[&["--format", "markdown"], more].concat()).stdout);
    assert!(table(&[]).contains("| intact, by sizes and first bytes | "), "{}", table(&[]));
    assert!(table(&["--deep"]).contains("| **damaged**, can be restored | "), "{}", table(&["--deep"]));
    let report = sent.json("verify", &["--deep"], 1);
    let damaged: usize =
        report["segments"].as_array().unwrap().iter().map(|s| s["damaged"].as_array().unwrap().len()).sum();
    assert_eq!(damaged, 2);
    sent.comes_back();
    assert!(text(&sent.fec("repair", &["--now"]).stderr).contains("nothing is missing, as far as"));
    let told = text(&sent.fec("repair", &["--now", "--deep", "-n"]).stderr);
    assert!(told.contains("2 shards would be made anew"), "{told}");
    expect(&sent.fec("repair", &["--now", "--deep"]), 0);
    fs::remove_file(sent.arena.path("out")).unwrap();
    expect(&sent.fec("verify", &["--deep"]), 0);
    // A shard that is made anew may go to another place: in the end all are there, and balanced.
    drop(before);
    sent.comes_back();
}

#[test]
fn shards_move_from_a_place_that_goes_away() {
    let sent = Sent::new(&[]);
    let to = ["--to", "p0", "--to", "p1", "--to", "p2", "--to", "p3", "--to", "new"];
    // A single lost shard of four can wait, but two cannot.
    fs::remove_file(&sent.shards("p1")[0]).unwrap();
    let output = sent.fec("repair", &[]);
    expect(&output, 1);
    assert!(text(&output.stderr).contains("--now"), "{}", text(&output.stderr));
    expect(&sent.fec("repair", &to), 0);
    fs::remove_dir_all(sent.arena.path("p4")).unwrap();
    let places = ["p0", "p1", "p2", "p3", "new"];
    expect(&sent.fec_at("verify", &places, &["--deep"]), 0);
    let output = sent.fec_at("decode", &["new", "p0", "p1"], &["-o", "out"]);
    expect(&output, 0);
    assert!(sent.arena.read("out") == sent.bytes);
}

/// A range fetches only the records that it touches.
#[test]
fn parts_of_the_payload_cost_their_records() {
    let sent = Sent::new(&["--set-size", "32K"]);
    let record = (32 << 10) / 6 + 64;
    for (from, to) in [(0, 1), (307_000, 307_500), (999_000, 1_000_000), (5, 5), (100_000, 900_000)] {
        let range = format!("{from}..{to}");
        let report = sent.json("decode", &["--range", &range, "-o", "part", "-f"], 0);
        assert!(sent.arena.read("part") == sent.bytes[from..to], "{range}");
        let fetched = report["fetched_bytes"].as_u64().unwrap() as usize;
        // The manifest may come from all five places.
        let manifest = 5 * fs::metadata(sent.manifest("p0")).unwrap().len() as usize;
        assert!(to - from > 1000 || fetched <= manifest + 2 * (record + 500), "{range}: {fetched}");
        let piped = sent.fec("decode", &["--range", &range, "-o", "-"]);
        assert!(piped.stdout == sent.bytes[from..to]);
    }
    expect(&sent.fec("decode", &["--range", "5..2000000", "-o", "never"]), 2);
    // The wanted record is damaged or gone: others restore it.
    for place in ["p0", "p1"] {
        for shard in sent.shards(place) {
            let middle = fs::metadata(&shard).unwrap().len() as usize / 2;
            flip(&shard, middle);
        }
        fs::rename(&sent.shards(place)[0], sent.arena.path("gone")).unwrap();
    }
    for (from, to) in [(0, 400_000), (600_000, 1_000_000)] {
        let output = sent.fec("decode", &["--range", &format!("{from}..{to}"), "-o", "-"]);
        expect(&output, 0);
        assert!(output.stdout == sent.bytes[from..to]);
    }
    ["p2", "p3", "p4"].iter().for_each(|place| fs::remove_dir_all(sent.arena.path(place)).unwrap());
    expect(&sent.fec("decode", &["--range", "0..1000000", "-o", "never"]), 4);
    assert!(!sent.arena.path("never").exists());
}

/// Without a manifest, the root of a segment serves.
#[test]
fn a_segment_is_found_by_its_own_root() {
    let mut sent = Sent::new(&["--segment-size", "2M"]);
    let segment = listing(&sent.arena.path("p0")).into_iter().find(|root| *root != sent.root).unwrap();
    for place in PLACES {
        fs::remove_file(sent.manifest(place)).unwrap();
    }
    sent.is_refused(3);
    sent.root = segment;
    sent.comes_back();
    expect(&sent.fec("verify", &["--deep"]), 0);
    sent.root = "00".repeat(32);
    sent.is_refused(3);
}

#[test]
fn a_killed_run_is_gone_on_with() {
    let arena = Arena::new();
    let bytes = payload(8, 20_000_000);
    arena.write("in", &bytes);
    fs::create_dir(arena.path("spool")).unwrap();
    let to = PLACES.iter().flat_map(|place| ["--to", place]);
    let args: Vec<&str> =
        ["encode", "in", "-k", "6", "-m", "4", "--segment-size", "1M", "--spool", "spool", "--json"]
            .into_iter()
            .chain(to)
            .collect();
    for milliseconds in [5, 20, 40, 80, 120] {
        let mut child = arena.spawn(args.iter().copied());
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = arena.expect(args.iter().copied(), 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (sent, kept) = (report["sent"].as_u64().unwrap(), report["kept"].as_u64().unwrap());
    assert_eq!(sent + kept, 20 * 10 + 5);
    assert!(kept > 0, "nothing was kept of what the killed runs sent");
    let sent = Sent { root: report["root"].as_str().unwrap().to_owned(), arena, bytes };
    sent.comes_back();
    expect(&sent.fec("verify", &["--deep"]), 0);
    assert_eq!(listing(&sent.arena.path("spool")), Vec::<String>::new(), "rooms of killed runs are left");
    for place in PLACES.map(|place| sent.arena.path(place)) {
        for root in listing(&place) {
            let unfinished = listing(&place.join(root)).into_iter().find(|name| name.starts_with(".fec-"));
            assert_eq!(unfinished, None, "objects of killed runs are left");
        }
    }
}

/// Places that a manifest cannot record are refused before anything is sent: nobody would get the payload back by that
/// root.
#[test]
fn places_that_cannot_be_recorded() {
    let arena = Arena::new();
    arena.write("in", &payload(9, 10_000));
    let long = ["x".repeat(200).as_str(); 11].join("/");
    let many: String = (0..1025).map(|nth| format!("many/{nth}\n")).collect();
    arena.write("many.list", &many.as_bytes()[..many.len() / 2]);
    for bad in ["x\ty", "b,domain=a\u{1b}[31mb", "x\ny", &long] {
        let output = arena.expect(["encode", "in", "-k", "2", "-m", "2", "--to", "a", "--to", bad], 2);
        let said = text(&output.stderr);
        assert!(said.contains("the manifest cannot name it") && !said.contains('\u{1b}'), "{said}");
    }
    let (front, behind) = many.split_at(many.find("many/600\n").unwrap());
    arena.write("front.list", front.as_bytes());
    arena.write("behind.list", behind.as_bytes());
    let args = ["encode", "in", "-k", "2", "-m", "2", "--to", "@front.list", "--to", "@behind.list"];
    assert!(text(&arena.expect(args, 2).stderr).contains("more than 1024 places"));
    let args = ["encode", "in", "-k", "1", "-m", "1", "--segment-size", "1", "--to", "a", "--to", "b"];
    arena.write("in", &payload(9, 90_000));
    assert!(text(&arena.expect(args, 2).stderr).contains("choose a larger --segment-size"));
    assert!(!arena.path("a").exists(), "something was sent");
}

/// A folder under two names is one domain.
#[test]
fn a_place_that_is_named_twice() {
    let sent = Sent::new(&[]);
    std::os::unix::fs::symlink("p0", sent.arena.path("link")).unwrap();
    let whole = sent.arena.path("p0").display().to_string();
    let file = format!("file://{whole}");
    for other in ["./p0", "p0/", "link", &whole, &file, "p1/../p0"] {
        let to = ["encode", "in", "-k", "2", "-m", "2", "--to", "p0", "--to", other];
        assert!(text(&sent.arena.expect(to, 2).stderr).contains("twice"), "{other}");
        expect(&sent.fec_at("verify", &["p0", other], &[]), 2);
    }
}

/// The domains of the manifest hold unless the command line names others.
#[test]
fn domains_are_those_of_the_encoding() {
    let arena = Arena::new();
    let bytes = payload(9, 100_000);
    arena.write("in", &bytes);
    let to = ["a,domain=X", "b,domain=X", "c,domain=Y", "d,domain=Y"];
    let args =
        ["encode", "in", "-k", "2", "-m", "2"].into_iter().chain(to.iter().flat_map(|to| ["--to", to]));
    let sent = Sent { root: common::root(&arena.expect(args, 0)), arena, bytes };
    let verify = |places: &[&str]| {
        let output = sent.fec_at("verify", places, &["--json"]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()["segments"][0].clone()
    };
    assert_eq!(verify(&["a", "b", "c", "d"])["survives"], "any 1 of 2 domains");
    assert_eq!(
        verify(&["a,domain=1", "b,domain=2", "c,domain=3", "d,domain=4"])["survives"],
        "any 2 of 4 domains"
    );
    for place in ["c", "d"] {
        fs::remove_dir_all(sent.arena.path(place)).unwrap();
    }
    // At most two shards go to X, which already has two.
    expect(&sent.fec_at("repair", &["a", "b", "c"], &["--now"]), 0);
    assert_eq!(verify(&["a", "b", "c"])["held"], serde_json::json!({"X": 2, "Y": 2}));
    let told = sent.fec_at("repair", &["a", "b", "c"], &["--to", "a", "--to", "b", "--now"]);
    assert!(
        text(&told.stderr).contains("the loss of one domain may be the loss of all"),
        "{}",
        text(&told.stderr)
    );
}

/// All waiting data stands in the named folder, and in no other.
#[test]
fn the_spool_is_where_it_is_told() {
    let sent = Sent::new(&[]);
    fs::create_dir(sent.arena.path("spool")).unwrap();
    for options in [&["-o", "-"][..], &["-o", "-", "--range", "1000..900000"]] {
        let from = PLACES.iter().flat_map(|place| ["--from", place]);
        let args = ["decode", "--root", &sent.root, "--spool", "spool"].into_iter().chain(from);
        let mut command = sent.arena.fec(args.chain(options.iter().copied()));
        let output = command.env("TMPDIR", sent.arena.path("nowhere")).output().unwrap();
        expect(&output, 0);
        assert!(
            output.stdout == if options.len() == 2 { &sent.bytes[..] } else { &sent.bytes[1000..900_000] }
        );
    }
}

#[test]
fn wrong_use_is_told_and_secrets_are_not() {
    let arena = Arena::new();
    arena.write("in", b"bytes");
    arena.write("many", "p\n".repeat(1025).as_bytes());
    let root = "00".repeat(32);
    for (args, said) in [
        (&["encode", "in", "--to", "ftp://host/x"][..], "ftp:// is not known"),
        (&["encode", "in", "--to", "s3://me:hunter2@bucket/x"], "credentials come from the environment"),
        (&["encode", "in", "--to", "https://host/x?token=hunter2"], "a query does not belong"),
        (&["encode", "in", "--to", "https://host/x", "-k", "1", "-m", "1"], ""),
        (&["encode", "in", "--to", "p0", "--to", "p0/", "-k", "1", "-m", "1"], "named twice"),
        (&["encode", "in", "--to", "p0", "-o", "x"], "cannot be used with"),
        (&["encode", "in", "--segment-size", "1M"], "--to"),
        (&["decode", "--from", "p0"], "--root"),
        (&["decode", "--root", &root, "--from", "p0", "--partial"], "--partial"),
        (&["verify", "--root", &root, "--from", "@nothing"], ""),
        (&["repair", "--root", &root, "--from", "https://host/x"], "can be written to"),
        (&["repair", "--root", &root, "--from", "p0", "-o", "x"], "--output: it does nothing with stores"),
        (&["encode", "in", "--to", "s3:bucket"], "a folder that is called so is ./s3:bucket"),
        (&["encode", "in", "--to", "s3//bucket/x"], "write s3://"),
        (&["encode", "in", "--to", "s3:me:hunter2@bucket"], "write s3://"),
        (&["encode", "in", "--to", "s3://bucket/x,secret=hunter2"], "s3://bucket/x: secret=: "),
        (&["encode", "in", "--to", "s3://bucket/x,hunter2"], "behind the comma"),
        (&["encode", "in", "--to", "@many"], "more than 1024 places"),
    ] {
        let output = arena.fec(args.iter().copied()).output().unwrap();
        assert!(matches!(output.status.code(), Some(2 | 4)), "{args:?}: {output:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(said), "{args:?}: {stderr}");
        assert!(!stderr.contains("hunter2"), "{args:?}: {stderr}");
    }
    assert_eq!(listing(&arena.path(".")), ["in", "many"]);
}

#[test]
fn folders_full_of_other_things_are_asked_for_what_is_wanted() {
    let sent = Sent::new(&["--segment-size", "2M"]);
    let segment = listing(&sent.arena.path("p0")).into_iter().find(|root| *root != sent.root).unwrap();
    for number in 0..100_001 {
        fs::write(sent.arena.path(format!("p0/{segment}/{number}")), b"").unwrap();
    }
    expect(&sent.fec("verify", &[]), 0);
    sent.comes_back();
}

/// The first signal soon ends a run that waits for a pipe, and nothing is left.
#[test]
fn one_signal_ends_a_run_that_waits_for_a_pipe() {
    // The runs only wait, so they do that side by side.
    std::thread::scope(|scope| {
        for signal in common::signals() {
            for command in ["encode", "decode"] {
                scope.spawn(move || one_signal_ends(signal, command));
            }
        }
    });
}

fn one_signal_ends(signal: Signal, command: &str) {
    let sent = Sent::new(&[]);
    fs::create_dir(sent.arena.path("spool")).unwrap();
    let to = PLACES.iter().flat_map(|place| ["--to", place]);
    let from = PLACES.iter().flat_map(|place| ["--from", place]);
    let encode = ["encode", "-", "-k", "6", "-m", "4", "--segment-size", "300K", "--spool", "spool"];
    let decode = ["decode", "-o", "-", "--root", &sent.root, "--spool", "spool"];
    let args: Vec<&str> = match command {
        "encode" => encode.into_iter().chain(to).collect(),
        _ => decode.into_iter().chain(from).collect(),
    };
    let mut run = sent.arena.fec(args.iter().copied());
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    // The input stays open without more bytes, and nobody reads the output.
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    if command == "encode" {
        stdin.write_all(&sent.bytes[..700_000]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(700));
    let started = Instant::now();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    assert!(started.elapsed() < common::LIMIT, "{:?}", started.elapsed());
    assert_eq!(status.code(), Some(130), "{args:?}");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr.matches("interrupted").count(), 1, "{stderr}");
    assert!(!stderr.contains("stopped"), "{stderr}");
    drop((stdin, stdout));
    assert_eq!(listing(&sent.arena.path("spool")), Vec::<String>::new(), "{args:?}");
}
