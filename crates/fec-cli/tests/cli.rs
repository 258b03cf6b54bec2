//! The command line: inputs and outputs, default names, options, reports.

mod common;

use common::{Arena, LIMIT, code, expect, finish, listing, make_fifo, payload, root, text, wait_until};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::{Output, Stdio};

/// An arena with a file `input` of `len` bytes.
fn with_input(len: usize) -> (Arena, Vec<u8>) {
    let arena = Arena::new();
    let bytes = payload(1, len);
    arena.write("input", &bytes);
    (arena, bytes)
}

fn says(output: &Output, words: &[&str]) {
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

/// The single JSON object in a stream.
#[track_caller]
fn json(stream: &[u8]) -> Value {
    let said = text(stream);
    assert_eq!(said.lines().count(), 1, "one object: {said}");
    let value: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(value["schema_version"], 1);
    value
}

#[test]
fn encode_file_makes_a_folder_of_shards() {
    let (arena, bytes) = with_input(10_000);
    let encoded = arena.expect(["encode", "input"], 0);
    assert_eq!(text(&encoded.stdout).len(), 65, "the root and a newline, nothing else");
    let names = listing(&arena.path("input.shards"));
    assert_eq!(names.len(), 100);
    assert_eq!((names[0].as_str(), names[99].as_str()), ("input.000.shard", "input.099.shard"));
    fs::remove_file(arena.path("input")).unwrap();
    arena.expect(["decode", "input.shards"], 0);
    assert!(arena.read("input") == bytes, "the recorded name in the current folder");
    let said = arena.refuses(["encode", "input"], 2);
    assert!(said.contains("not empty") && said.contains("-f"));
}

#[test]
fn encode_output_tells_the_form() {
    let (arena, bytes) = with_input(5000);
    let options = ["-k", "3", "-m", "2"];
    arena.expect(["encode", "input", "-o", "new/"].into_iter().chain(options), 0);
    fs::create_dir(arena.path("there")).unwrap();
    arena.expect(["encode", "input", "-o", "there"].into_iter().chain(options), 0);
    for folder in ["new", "there"] {
        assert_eq!(listing(&arena.path(folder)).len(), 5);
    }
    arena.expect(["encode", "input", "-o", "box"].into_iter().chain(options), 0);
    assert!(arena.read("box").starts_with(b"\x89fecR\r\n\x1a"));
    let streamed = arena.expect(["encode", "input", "-o", "-"].into_iter().chain(options), 0);
    assert!(streamed.stdout == arena.read("box"), "a file and a stream are the same bytes");
    assert_eq!(text(&streamed.stderr).lines().last().unwrap().len(), 64, "the root goes to standard error");
    let piped = arena.pipe(["encode", "-"].into_iter().chain(options), &bytes);
    expect(&piped, 0);
    assert!(piped.stdout == arena.read("box"));
    let piped = arena.pipe(["encode", "-", "-o", "piped.fec"].into_iter().chain(options), &bytes);
    assert_eq!(root(&piped).len(), 64);
    assert!(arena.read("piped.fec") == arena.read("box"));
    let said = arena.refuses_pipe(["encode", "-", "-o", "dir/"], &bytes, 2);
    assert!(said.contains("length") && said.contains("container"));
}

#[test]
fn encode_standard_input_that_is_a_file() {
    let (arena, bytes) = with_input(5000);
    let output = arena.fec(["encode", "-"]).stdin(File::open(arena.path("input")).unwrap()).output().unwrap();
    expect(&output, 0);
    let back = arena.pipe(["decode", "-"], &output.stdout);
    expect(&back, 0);
    assert!(back.stdout == bytes);
    arena.write("c.fec", &output.stdout);
    let back = arena.fec(["decode", "-"]).stdin(File::open(arena.path("c.fec")).unwrap()).output().unwrap();
    expect(&back, 0);
    assert!(back.stdout == bytes);
    let shard = {
        arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
        File::open(arena.path("input.shards/input.000.shard")).unwrap()
    };
    expect(&arena.fec(["decode", "-"]).stdin(shard).output().unwrap(), 2);
    let folder = File::open(&arena.work).unwrap();
    expect(&arena.fec(["decode", "-"]).stdin(folder).output().unwrap(), 2);
}

/// A file that claims to be empty and is not, as files in /proc do.
#[test]
fn encode_a_file_of_the_system() {
    let arena = Arena::new();
    let path = "/proc/self/limits";
    if !fs::read(path).is_ok_and(|b| !b.is_empty()) {
        println!("skipped: there is no such file");
        return;
    }
    let encoded = arena.expect(["encode", path], 0);
    let back = arena.pipe(["decode", "-"], &encoded.stdout);
    expect(&back, 0);
    assert!(text(&back.stdout).contains("Max open files"));
    assert!(arena.refuses(["encode", path, "-o", "s/"], 2).contains("length"));
}

#[test]
fn fifo_as_input() {
    let (arena, bytes) = with_input(50_000);
    make_fifo(&arena.path("fifo"));
    let feed = |bytes: Vec<u8>| {
        let path = arena.path("fifo");
        std::thread::spawn(move || File::options().write(true).open(path).unwrap().write_all(&bytes))
    };
    let feeder = feed(bytes.clone());
    let encoded = arena.expect(["encode", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    let feeder = feed(encoded.stdout.clone());
    let decoded = arena.expect(["decode", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    assert!(decoded.stdout == bytes);
    let feeder = feed(encoded.stdout.clone());
    arena.expect(["verify", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    // FIFOs serve as outputs too.
    let reader = {
        let path = arena.path("fifo");
        std::thread::spawn(move || fs::read(path))
    };
    arena.expect(["encode", "input", "-o", "fifo"], 0);
    assert!(reader.join().unwrap().unwrap() == encoded.stdout);
}

#[test]
fn dev_null_as_output() {
    let (arena, _) = with_input(5000);
    arena.expect(["encode", "input", "-o", "/dev/null"], 0);
    arena.expect(["encode", "input", "-o", "c.fec", "--root-file", "/dev/null"], 0);
    arena.expect(["decode", "c.fec", "-o", "/dev/null"], 0);
    let empty = arena.pipe(["encode", "/dev/null"], b"");
    expect(&empty, 0);
    let back = arena.pipe(["decode", "-"], &empty.stdout);
    expect(&back, 0);
    assert!(back.stdout.is_empty());
    arena.nothing_temporary();
}

#[test]
fn folder_as_input() {
    let (arena, _) = with_input(10);
    fs::create_dir(arena.path("photos")).unwrap();
    for name in ["photos", "photos/", "."] {
        assert!(arena.refuses(["encode", name], 2).contains("tar c"));
    }
    arena.refuses(["decode", "photos", "-o", "out"], 3);
    arena.refuses(["verify", "photos"], 3);
}

#[test]
fn empty_file() {
    let (arena, _) = with_input(0);
    let shards = root(&arena.expect(["encode", "input", "-k", "3", "-m", "2"], 0));
    let boxed = root(&arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "c.fec"], 0));
    let piped = arena.pipe(["encode", "-", "-k", "3", "-m", "2"], b"");
    assert!(piped.stdout == arena.read("c.fec"));
    for (input, root) in [("input.shards", shards), ("c.fec", boxed)] {
        arena.expect(["decode", input, "-o", "out", "-f", "--root", &root], 0);
        assert!(arena.read("out").is_empty());
        arena.expect(["verify", input, "--deep"], 0);
    }
}

/// An empty payload has no bytes to lose, but too few shards prove nothing: no output, and not exit 0.
#[test]
fn empty_file_with_too_few_shards() {
    let (arena, _) = with_input(0);
    arena.expect(["encode", "input", "-k", "3", "-m", "2"], 0);
    arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "c.fec"], 0);
    for index in 0..3 {
        fs::remove_file(arena.path(format!("input.shards/input.{index:03}.shard"))).unwrap();
    }
    let boxed = arena.read("c.fec");
    let record = 128 + 128 + 64;
    arena.write("c.fec", &boxed[3 * record..]);
    arena.refuses(["decode", "input.shards", "-o", "out"], 3);
    arena.refuses(["decode", "c.fec", "-o", "out"], 3);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &boxed[3 * record..], 3);
    for input in ["input.shards", "c.fec"] {
        expect(&arena.run(["verify", input]), 3);
    }
}

#[test]
fn file_names_that_are_not_text() {
    let arena = Arena::new();
    let name = OsStr::from_bytes(b"caf\xe9 \n\xff");
    arena.write(name, b"payload");
    let encode = ["encode", "-k", "2", "-m", "1"].map(OsStr::new).into_iter().chain([name]);
    let output = arena.expect(encode, 0);
    assert!(text(&output.stderr).contains("caf\\xe9 \\n\\xff"));
    let mut folder = name.to_owned();
    folder.push(".shards");
    fs::remove_file(arena.path(name)).unwrap();
    // A name with a control character is escaped when shown, and never used unasked.
    let said = arena.refuses([OsStr::new("decode"), &folder], 2);
    assert!(said.contains("caf\\xe9 \\n\\xff") && said.contains("-o"), "{said}");
    let output = arena.run([OsStr::new("decode"), &folder, OsStr::new("--json"), OsStr::new("-o"), name]);
    expect(&output, 0);
    assert_eq!(json(&output.stdout)["recorded_name"], "caf\\xe9 \\n\\xff");
    assert_eq!(arena.read(name), b"payload");
    // A name that is merely not UTF-8 is used.
    let name = OsStr::from_bytes(b"caf\xe9\xff");
    arena.write(name, b"another");
    let options = ["-k", "2", "-m", "1", "-o", "s/"].map(OsStr::new);
    arena.expect([OsStr::new("encode"), name].into_iter().chain(options), 0);
    fs::remove_file(arena.path(name)).unwrap();
    arena.expect(["decode", "s"], 0);
    assert_eq!(arena.read(name), b"another");
}

#[test]
fn file_names_of_255_bytes() {
    let arena = Arena::new();
    for name in ["n".repeat(255), "é".repeat(127) + "e"] {
        arena.write(&name, b"payload");
        // FILE.shards would be too long a name. The names of shards are shortened.
        arena.refuses(["encode", &name], 4);
        arena.expect(["encode", &name, "-o", "s/", "-k", "2", "-m", "1", "-f"], 0);
        assert!(listing(&arena.path("s")).iter().all(|n| n.len() <= 255 && n.ends_with(".shard")));
        fs::remove_file(arena.path(&name)).unwrap();
        arena.expect(["decode", "s"], 0);
        assert_eq!(arena.read(&name), b"payload");
        fs::remove_file(arena.path(&name)).unwrap();
    }
    let long = OsString::from_vec(vec![b'n'; 256]);
    arena.refuses([OsStr::new("encode"), &long], 4);
}

#[test]
fn decode_targets() {
    let (arena, bytes) = with_input(5000);
    arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
    fs::create_dir(arena.path("boxes")).unwrap();
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "boxes/photo.tar.fec"], 0);
    fs::create_dir(arena.path("out")).unwrap();
    for (args, made) in [
        (&["decode", "input.shards", "-o", "out"][..], "out/input"),
        (&["decode", "input.shards", "-o", "out/", "-f"], "out/input"),
        (&["decode", "input.shards", "-o", "out/other"], "out/other"),
        (&["decode", "boxes/photo.tar.fec"], "boxes/photo.tar"),
        (&["decode", "boxes/photo.tar.fec", "-o", "out"], "out/photo.tar"),
    ] {
        arena.expect(args, 0);
        assert!(arena.read(made) == bytes, "{args:?}");
        fs::remove_file(arena.path(made)).unwrap();
    }
    fs::rename(arena.path("boxes/photo.tar.fec"), arena.path("noname")).unwrap();
    assert!(arena.refuses(["decode", "noname"], 2).contains("-o"));
    let noname = arena.read("noname");
    fs::write(arena.path(".fec"), &noname).unwrap();
    assert!(arena.refuses(["decode", ".fec"], 2).contains("-o"));
    assert!(arena.refuses_pipe(["decode", "-", "-o", "out/"], &noname, 2).contains("-o"));
    let out = arena.expect(["decode", "noname", "-o", "-"], 0);
    assert!(out.stdout == bytes);
    let out = arena.expect(["decode", "input.shards", "-o", "-"], 0);
    assert!(out.stdout == bytes);
    arena.refuses(["decode", "noname", "-o", "no/such/folder"], 4);
    arena.refuses(["decode", "nosuch", "-o", "x"], 4);
    arena.refuses(["decode", "noname", "-o", ""], 2);
}

/// The bytes of a file tell its kind, never its name.
#[test]
fn names_say_nothing() {
    let (arena, bytes) = with_input(5000);
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "s/"], 0);
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "a.shard"], 0);
    fs::rename(arena.path("s/input.001.shard"), arena.path("s/x.fec")).unwrap();
    fs::rename(arena.path("s/input.002.shard"), arena.path("y.txt")).unwrap();
    arena.expect(["decode", "y.txt", "s/x.fec", "-o", "out"], 0);
    assert!(arena.read("out") == bytes);
    arena.expect(["decode", "a.shard", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == bytes);
    assert!(
        arena.refuses(["decode", "y.txt", "a.shard", "-o", "out2"], 3).contains("no shard file: a.shard")
    );
    assert!(arena.refuses(["decode", "y.txt", "-", "-o", "out2"], 2).contains("alone"));
}

#[test]
fn code_parameters() {
    let (arena, _) = with_input(200_000);
    for (percent, k) in [("17%", 85), ("200%", 33), ("0%", 100), ("12.5%", 88), ("100%", 50)] {
        let output = arena.expect(["encode", "input", "-o", "-", "-r", percent, "--json"], 0);
        let report = json(&output.stderr);
        assert_eq!((&report["k"], &report["m"]), (&Value::from(k), &Value::from(100 - k)), "{percent}");
    }
    let report = |options: &[&str]| {
        let output = arena.run([&["encode", "input", "-o", "/dev/null", "--json"], options].concat());
        expect(&output, 0);
        json(&output.stdout)
    };
    let default = report(&[]);
    assert_eq!((&default["k"], &default["m"], &default["hash"]), (&33.into(), &67.into(), &"blake3".into()));
    assert_eq!(report(&["-k", "256", "-m", "0"])["m"], 0);
    assert_eq!(report(&["-k", "1", "-m", "255"])["k"], 1);
    let sha = report(&["--hash", "sha256"]);
    assert_eq!(sha["hash"], "sha256");
    assert_ne!(sha["root"], default["root"]);
    let small = report(&["-k", "4", "-m", "2", "--set-size", "16K"]);
    assert_eq!((&small["shard_bytes"], &small["sets"]), (&3904.into(), &13.into()));
    let grouped = report(&["-k", "4", "-m", "2", "--set-size", "16KiB", "--group-size", "2"]);
    assert_eq!(grouped["groups"], 7);
    for bad in [
        &["-k", "0"][..],
        &["-k", "200", "-m", "57"],
        &["-k", "-1"],
        &["-r", "17"],
        &["-r", "17%", "-k", "3"],
        &["-r", "10000%"],
        &["--set-size", "0"],
        &["--set-size", "4X"],
        &["--group-size", "0"],
        &["--hash", "md5"],
        &["-j", "0"],
        &["--backend", "nosuch"],
        &["--max-memory", "-1"],
        &["--progress", "often"],
        &["--nosuch"],
    ] {
        arena.refuses([&["encode", "input", "-o", "c.fec"], bad].concat(), 2);
    }
    arena.refuses(["encode", "input", "--group-size", "3"], 2);
    // A pipe needs memory for a set of that size. For a file, the set is only as large as the file.
    arena.refuses_pipe(["encode", "-", "-o", "c.fec", "--set-size", "1G"], b"x", 6);
    arena.refuses(["encode", "input", "-o", "c.fec", "--set-size", "1G", "--group-size", "1"], 6);
    arena.expect(["encode", "input", "-o", "whole.fec", "--set-size", "1G"], 0);
    arena.refuses(["encode", "input", "-o", "c.fec", "--set-size", "1G", "--max-memory", "100K"], 6);
    // Shards of a set have at least 4096 bytes.
    for output in ["c.fec", "s/", "-"] {
        arena.refuses(["encode", "input", "-o", output, "-k", "4", "-m", "2", "--set-size", "16128"], 6);
        arena.refuses(["encode", "input", "-o", output, "-k", "4", "-m", "2", "--set-size", "1K"], 6);
    }
    arena.expect(["encode", "input", "-o", "least.fec", "-k", "4", "-m", "2", "--set-size", "16129"], 0);
    arena.refuses(["encode", "input", "-o", "s/", "--set-size", "17179869183G"], 6);
    let said = arena.refuses(["encode", "input", "-o", "c.fec", "--backend", "nosuch"], 2);
    assert!(said.contains("scalar"), "the backends are listed");
    arena.refuses(["decode"], 3);
    arena.refuses(["nosuch"], 2);
}

#[test]
fn roots() {
    let (arena, bytes) = with_input(5000);
    let root = root(&arena.expect(["encode", "input", "-o", "c.fec", "--root-file", "root"], 0));
    assert_eq!(text(&arena.read("root")), format!("{root}\n"));
    arena.write("sum", format!("{root}  c.fec\n").as_bytes());
    for given in [&root, "@root", "@sum", &root.to_uppercase()] {
        let output = arena.expect(["decode", "c.fec", "-o", "out", "-f", "--root", given], 0);
        says(&output, &[&root, "asked for"]);
        assert!(arena.read("out") == bytes);
        arena.expect(["verify", "c.fec", "--root", given], 0);
    }
    says(&arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0), &[&root, "no --root given"]);
    let said = arena.refuses(["decode", "c.fec", "-o", "x", "--root", &"ab".repeat(32)], 5);
    assert!(said.contains(&root), "the root that is there is named");
    for bad in ["", "12", "@nosuch", "@input", &"zz".repeat(32)] {
        arena.refuses(["decode", "c.fec", "-o", "x", "--root", bad], 2);
    }
}

#[test]
fn one_json_object() {
    let (arena, _) = with_input(5000);
    let encoded = json(&arena.expect(["encode", "input", "-k", "3", "-m", "2", "--json"], 0).stdout);
    assert_eq!((&encoded["command"], &encoded["form"]), (&"encode".into(), &"shards".into()));
    let root = encoded["root"].as_str().unwrap();
    let output = arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "-", "--json"], 0);
    assert_eq!(json(&output.stderr)["form"], "container");
    arena.write("c.fec", &output.stdout);
    let decode = ["decode", "input.shards", "--json", "-f", "--root", root];
    let decoded = json(&arena.expect(decode, 0).stdout);
    assert_eq!((&decoded["whole"], &decoded["root_was_given"]), (&true.into(), &true.into()));
    assert_eq!((&decoded["payload_bytes"], &decoded["recorded_name"]), (&5000.into(), &"input".into()));
    let output = arena.expect(["decode", "c.fec", "-o", "-", "--json"], 0);
    assert_eq!((output.stdout.len(), &json(&output.stderr)["written"]), (5000, &true.into()));
    let verified = json(&arena.expect(["verify", "input.shards", "--json"], 0).stdout);
    assert_eq!((&verified["intact"], &verified["may_still_lose"]), (&5.into(), &2.into()));
    common::flip(&arena.path("input.shards/input.001.shard"), 1000);
    let verified = arena.run(["verify", "input.shards", "--json"]);
    expect(&verified, 1);
    let verified = json(&verified.stdout);
    assert_eq!((&verified["damaged"], &verified["restorable"]), (&1.into(), &true.into()));
    assert_eq!(verified["shards"][1]["state"], "damaged");
}

#[test]
fn quiet() {
    let (arena, _) = with_input(5000);
    let output = arena.expect(["encode", "input", "-o", "c.fec", "-q"], 0);
    assert_eq!((output.stdout.len(), text(&output.stderr).as_str()), (65, ""));
    for args in [&["decode", "c.fec", "-o", "out", "-q"][..], &["verify", "c.fec", "-q"]] {
        let output = arena.expect(args, 0);
        assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), ("", ""));
    }
    arena.write("c.fec", &arena.read("c.fec")[..1000]);
    arena.refuses(["decode", "c.fec", "-o", "x", "-q"], 3);
}

#[test]
fn progress_as_json_lines() {
    let (arena, _) = with_input(500_000);
    let encode = ["encode", "input", "-o", "-", "--progress", "json", "-k", "4", "-m", "2"];
    let encoded = arena.expect(encode.into_iter().chain(["-q"]), 0);
    arena.write("c.fec", &encoded.stdout);
    let decoded = arena.expect(["decode", "c.fec", "-o", "out", "--progress", "json", "-q"], 0);
    let verified = arena.expect(["verify", "c.fec", "--progress", "json", "-q"], 0);
    for (output, action) in [(&encoded, "encode"), (&decoded, "decode"), (&verified, "verify")] {
        let lines: Vec<Value> = text(&output.stderr)
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| serde_json::from_str(line).expect("a JSON object"))
            .collect();
        let last = lines.last().expect("there is a last line");
        assert_eq!((&last["event"], &last["action"]), (&"finished".into(), &action.into()));
        assert!(last["bytes"].as_u64().unwrap() >= 500_000);
    }
    let never = arena.expect(["encode", "input", "-o", "x.fec", "--progress", "never", "-q"], 0);
    assert_eq!(text(&never.stderr), "");
}

/// Each group leaves as soon as the byte after it is seen.
#[test]
fn a_pipe_is_encoded_and_decoded_as_it_comes() {
    let arena = Arena::new();
    // A group is 8 sets of 4 · 4096 bytes.
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let bytes = payload(2, 800_000);
    let group = 8 * 16_384;
    let mut encoder = arena.spawn(["encode", "-"].into_iter().chain(options));
    let mut decoder = arena.spawn(["decode", "-"]);
    let (mut input, mut coded) = (encoder.stdin.take().unwrap(), encoder.stdout.take().unwrap());
    let (mut feed, mut restored) = (decoder.stdin.take().unwrap(), decoder.stdout.take().unwrap());
    let copy = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match coded.read(&mut buffer).unwrap() {
                0 => break,
                n => feed.write_all(&buffer[..n]).unwrap(),
            }
        }
    });
    input.write_all(&bytes[..2 * group + 1]).unwrap();
    input.flush().unwrap();
    let mut first = vec![0; group];
    restored.read_exact(&mut first).unwrap();
    assert!(first == bytes[..group], "the first group is through before the input ends");
    let rest = bytes[2 * group + 1..].to_vec();
    let writer = std::thread::spawn(move || input.write_all(&rest).unwrap());
    let mut all = first;
    restored.read_to_end(&mut all).unwrap();
    assert!(all == bytes);
    writer.join().unwrap();
    copy.join().unwrap();
    expect(&finish(encoder, b"", LIMIT).unwrap(), 0);
    expect(&finish(decoder, b"", LIMIT).unwrap(), 0);
}

/// With --root, a pipe gives no bytes before the root is proved, except with --early.
#[test]
fn root_before_bytes() {
    let arena = Arena::new();
    let bytes = payload(3, 800_000);
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let boxed = arena.pipe(["encode", "-"].into_iter().chain(options), &bytes).stdout;
    let other = "ab".repeat(32);
    arena.refuses_pipe(["decode", "-", "--root", &other], &boxed, 5);
    let early = arena.pipe(["decode", "-", "--root", &other, "--early"], &boxed);
    assert_ne!(code(&early), 0);
    assert!(early.stdout.len() > 600_000 && bytes.starts_with(&early.stdout), "it was asked for early");
    // The stream is cut. Without --root the proved bytes have come out, and the exit code tells of the cut.
    let cut = arena.pipe(["decode", "-"], &boxed[..boxed.len() / 2]);
    expect(&cut, 3);
    assert!(!cut.stdout.is_empty() && bytes.starts_with(&cut.stdout));
}

/// The early bytes belong to another root, and the exit code tells so.
#[test]
fn another_root_after_early_bytes() {
    let arena = Arena::new();
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let boxed = arena.pipe(["encode", "-"].into_iter().chain(options), &payload(3, 800_000)).stdout;
    let early = arena.pipe(["decode", "-", "--root", &"ab".repeat(32), "--early"], &boxed);
    assert_eq!(code(&early), 5, "{}", text(&early.stderr));
}

/// The byte ranges in a field of a report: proved ones or lost ones.
fn ranges(report: &Value, field: &str) -> Vec<(usize, usize)> {
    let of = |range: &Value, end: &str| range[end].as_u64().unwrap() as usize;
    report[field].as_array().unwrap().iter().map(|r| (of(r, "start"), of(r, "end"))).collect()
}

#[track_caller]
fn is_partial(out: &[u8], bytes: &[u8], report: &Value) {
    let lost = ranges(report, "lost");
    assert!(!lost.is_empty() && !report["whole"].as_bool().unwrap());
    assert_eq!(out.len(), bytes.len());
    let mut expected = bytes.to_vec();
    lost.iter().for_each(|(start, end)| expected[*start..*end].fill(0));
    assert!(out == expected, "what is proved is there, zeros elsewhere");
    let by_path: usize = ranges(report, "proved_by_path_only").iter().map(|(s, e)| e - s).sum();
    let restored = report["restored_bytes"].as_u64().unwrap() as usize;
    let lost: usize = lost.iter().map(|(s, e)| e - s).sum();
    assert_eq!(report["lost_bytes"].as_u64(), Some(lost as u64));
    assert_eq!(report["proved_by_path_only_bytes"].as_u64(), Some(by_path as u64));
    assert_eq!(by_path + restored + lost, bytes.len(), "every byte is in one list");
}

#[test]
fn partial_shards() {
    let (arena, bytes) = with_input(80_000);
    arena.expect(["encode", "input", "-k", "4", "-m", "1", "--set-size", "16K"], 0);
    fs::remove_file(arena.path("input.shards/input.001.shard")).unwrap();
    // A second shard is damaged in one of the five sets.
    let body = 192 + 64 + 5 * 32 * (2 + 1 + 3);
    common::flip(&arena.path("input.shards/input.002.shard"), body + 2 * 4032 + 5);
    arena.refuses(["decode", "input.shards", "-o", "out"], 3);
    let output = arena.run(["decode", "input.shards", "-o", "out", "--partial", "--json"]);
    expect(&output, 3);
    is_partial(&arena.read("out"), &bytes, &json(&output.stdout));
    let output = arena.run(["decode", "input.shards", "-o", "-", "--partial"]);
    expect(&output, 3);
    assert!(output.stdout == arena.read("out"));
    says(&output, &["lost: bytes", "proved by its own path only"]);
    // If nothing is lost, --partial changes nothing.
    arena.expect(["encode", "input", "-k", "4", "-m", "1", "-f"], 0);
    arena.expect(["decode", "input.shards", "-o", "out", "-f", "--partial"], 0);
    assert!(arena.read("out") == bytes);
}

#[test]
fn partial_container() {
    let (arena, bytes) = with_input(240_000);
    let options = ["-k", "4", "-m", "1", "--set-size", "16K", "--group-size", "3"];
    let root = root(&arena.expect(["encode", "input", "-o", "c.fec"].into_iter().chain(options), 0));
    let whole = arena.read("c.fec");
    let hole = |range: std::ops::Range<usize>| {
        let mut damaged = whole.clone();
        damaged[range].fill(0x55);
        damaged
    };
    for damaged in [hole(120_000..200_000), hole(0..80_000), hole(50_000..68_000)] {
        arena.write("c.fec", &damaged);
        for given in [&[][..], &["--root", &root]] {
            let args = ["decode", "c.fec", "-o", "out", "--partial", "--json", "-f"];
            let output = arena.run([&args[..], given].concat());
            let report = json(&output.stdout);
            if code(&output) == 0 {
                assert!(arena.read("out") == bytes);
                continue;
            }
            expect(&output, 3);
            is_partial(&arena.read("out"), &bytes, &report);
            let piped = arena.pipe([&["decode", "-", "--partial"], given].concat(), &damaged);
            expect(&piped, 3);
            assert!(piped.stdout == arena.read("out"));
        }
    }
    // The container is cut and has no index: the end is unknown, but the bytes before the cut come out.
    arena.write("c.fec", &whole[..whole.len() / 2]);
    let output = arena.run(["decode", "c.fec", "-o", "cut", "--partial"]);
    expect(&output, 3);
    says(&output, &["cut"]);
    let cut = arena.read("cut");
    assert!(cut.len() > 80_000 && cut.len() < bytes.len());
    let right = cut.iter().zip(&bytes).filter(|(a, b)| a == b).count();
    assert!(right > cut.len() / 2);
}

#[test]
fn no_root_given() {
    let arena = Arena::new();
    let mut roots = Vec::new();
    for name in ["one", "two"] {
        arena.write(name, &payload(name.len() as u64 + u64::from(name.as_bytes()[0]), 3000));
        roots.push(root(
            &arena.expect(["encode", name, "-k", "3", "-m", "2", "-o", &format!("s-{name}/")], 0),
        ));
    }
    arena.nothing_temporary();
    let said = arena.refuses(["decode", "s-one", "s-two", "-o", "out"], 2);
    assert!(said.contains(&roots[0]) && said.contains(&roots[1]), "both are listed");
    // Verify needs no choice: it looks at both.
    says(&arena.expect(["verify", "s-one", "s-two"], 0), &["2 encodings: 2 intact"]);
    // The second encoding has only two shards left, so exactly one can be restored.
    (0..3).for_each(|i| fs::remove_file(arena.path(format!("s-two/two.00{i}.shard"))).unwrap());
    let output = arena.expect(["decode", "s-one", "s-two", "-o", "out"], 0);
    assert!(arena.read("out") == arena.read("one"));
    says(&output, &[&format!("root {}", roots[0]), &format!("shards of root {} are here too", roots[1])]);
    // Neither can be restored from the shards of both.
    (0..3).for_each(|i| fs::remove_file(arena.path(format!("s-one/one.00{i}.shard"))).unwrap());
    let said = arena.refuses(["decode", "s-one", "s-two", "-o", "out2"], 3);
    assert!(said.contains(&roots[0]) && said.contains(&roots[1]));
}

#[test]
fn help_and_version() {
    let arena = Arena::new();
    for command in ["encode", "decode", "verify"] {
        let help = arena.expect([command, "--help"], 0);
        says(&help, &["--json", "--backend", "Usage"]);
    }
    says(&arena.expect(["--help"], 0), &["Exit codes", "130"]);
    says(&arena.expect(["--version"], 0), &["fec"]);
    let none = arena.run([] as [&str; 0]);
    expect(&none, 2);
}

/// Binary data does not go to a terminal.
#[test]
fn standard_output_is_a_terminal() {
    let (arena, _) = with_input(5000);
    arena.expect(["encode", "input", "-o", "c.fec", "-q"], 0);
    let Ok(mut script) = std::process::Command::new("script")
        .args([
            "-qec",
            &format!("{} decode c.fec -o - ; echo code $?", env!("CARGO_BIN_EXE_fec")),
            "/dev/null",
        ])
        .current_dir(&arena.work)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        println!("skipped: there is no command to make a terminal");
        return;
    };
    wait_until(|| script.try_wait().unwrap().is_some());
    let output = script.wait_with_output().unwrap();
    says(&output, &["terminal", "code 2"]);
}

/// The last original shard is all zeros. Its file is cut so that zeros stand where the shard would be, counted from the
/// end. With the proof at its place counted from the start, the shard looks whole.
#[test]
fn verify_promises_only_what_decode_can_restore() {
    let arena = Arena::new();
    // A single set has shards of 70,016 bytes, and 3776 zeros stand between proofs and body.
    let bytes = [payload(7, 70_016), vec![0; 70_016]].concat();
    arena.write("in", &bytes);
    arena.expect(["encode", "in", "-k", "2", "-m", "1"], 0);
    fs::remove_file(arena.path("in.shards/in.002.shard")).unwrap();
    arena.expect(["verify", "in.shards"], 1);
    let last = arena.path("in.shards/in.001.shard");
    assert_eq!(fs::metadata(&last).unwrap().len(), 4096 + 70_016 + 64 + 64 + 192);
    for cut in [100, 1000, 2000] {
        let len = fs::metadata(&last).unwrap().len();
        fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(len - cut).unwrap();
        let verified = arena.run(["verify", "in.shards"]);
        let decoded = arena.run(["decode", "in.shards", "-o", "out", "-f"]);
        if cut == 100 {
            // The damage hits only the last header.
            expect(&verified, 1);
        }
        match code(&verified) {
            1 => assert!(code(&decoded) == 0 && arena.read("out") == bytes),
            other => assert_eq!((other, code(&decoded)), (3, 3)),
        }
    }
}

/// Growing a table of descriptors that threads share costs 7 to 14 ms each time.
#[test]
#[cfg(target_os = "linux")]
fn there_is_room_for_many_files_before_threads_begin() {
    let arena = Arena::new();
    let mut child = arena.spawn(["encode", "-", "-o", "out.fec", "-q"]);
    let status = || fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let field = |name: &str| {
        let status = status();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |value| value.trim().parse::<u64>().unwrap())
    };
    wait_until(|| field("Threads:") > 1);
    assert!(field("FDSize:") >= 1024, "{}", status());
    child.kill().unwrap();
    child.wait().unwrap();
}
