//! Sealed payloads: the holder of the shards learns nothing. The holder of the key gets the payload back, and nothing
//! else in its place.

mod common;

use common::{Arena, expect, fec, flip, payload, pipe, root, shard_files, text};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The variable with the passphrase.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// Small sets, several of them.
const SHAPE: [&str; 6] = ["-k", "5", "-m", "4", "--set-size", "20K"];

/// An arena with two keys, `key` and `other`, and an input. Also returns the recipients of the keys.
fn arena(len: usize) -> (Arena, [String; 2]) {
    let arena = Arena::new();
    arena.write("secret-name.txt", &payload(16, len));
    let recipients = ["key", "other"].map(|name| {
        let output = arena.run(["keygen", "-o", name]);
        expect(&output, 0);
        text(&output.stdout).trim().to_owned()
    });
    (arena, recipients)
}

fn encode(arena: &Arena, more: &[&str]) -> Output {
    arena.run([&["encode", "secret-name.txt", "-q"], &SHAPE[..], more].concat())
}

fn with_passphrase(arena: &Arena, passphrase: &str, args: &[&str]) -> Output {
    fec().env(VARIABLE, passphrase).current_dir(arena.path("")).args(args).output().unwrap()
}

/// The bytes of a file, or of all files directly in a folder.
fn bytes_of(path: &Path) -> Vec<u8> {
    if path.is_dir() {
        shard_files(path).iter().flat_map(|path| fs::read(path).unwrap()).collect()
    } else {
        fs::read(path).unwrap()
    }
}

fn holds(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|part| part == what)
}

#[test]
fn every_form_is_opened_by_its_keys_and_tells_nothing() {
    for len in [0, 1, 65_535, 65_536, 65_537, 200_000] {
        let (arena, [mine, other]) = arena(len);
        let plain = payload(16, len);
        arena.write("recipients", format!("# who may\n\n{mine}\n").as_bytes());
        let outputs = [
            ("s/", vec!["--recipient", &mine]),
            ("c.fec", vec!["-R", "recipients"]),
            ("g.fec", vec!["--recipient", &other, "--recipient", &mine, "--group-size", "1"]),
            ("a.fec", vec!["--recipient", &mine, "--cipher", "chacha20-poly1305"]),
        ];
        for (output, options) in &outputs {
            let root = root(&encode(&arena, &[&["-o", output], &options[..]].concat()));
            let bytes = bytes_of(&arena.path(output));
            assert!(!holds(&bytes, b"secret-name"), "{output}: the name is there");
            for part in plain.chunks_exact(32).step_by(97) {
                assert!(!holds(&bytes, part), "{output}: plaintext is there");
            }
            let input = output.trim_end_matches('/');
            expect(&arena.run(["decode", input, "-i", "key", "-o", "out"]), 0);
            assert!(fs::read(arena.path("out")).unwrap() == plain, "{output}, {len}");
            fs::remove_file(arena.path("out")).unwrap();
            let output = arena.run(["decode", input, "-i", "key", "-o", "-", "--root", &root]);
            expect(&output, 0);
            assert!(output.stdout == plain);
            // Without the key or with another one, nothing comes out, but everything can be verified.
            for (more, exit) in [(&[][..], 2), (&["-i", "unknown"], 5)] {
                if !arena.path("unknown").exists() {
                    expect(&arena.run(["keygen", "--pq", "-o", "unknown"]), 0);
                }
                for out in ["out", "-"] {
                    let output = arena.run([&["decode", input, "-o", out], more].concat());
                    expect(&output, exit);
                    assert!(output.stdout.is_empty() && !arena.path("out").exists());
                }
            }
            let output = arena.run(["verify", input, "--json", "--deep"]);
            expect(&output, 0);
            let told: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(told["sealed"], true);
        }
        // The sealed name comes back with the file.
        fs::create_dir(arena.path("back")).unwrap();
        expect(&arena.run(["decode", "s", "-i", "key", "-o", "back/"]), 0);
        assert!(fs::read(arena.path("back/secret-name.txt")).unwrap() == plain);
        assert!(arena.path("s/payload.000.shard").exists());
    }
}

#[test]
fn through_pipes() {
    let (arena, [mine, _]) = arena(300_000);
    let plain = payload(16, 300_000);
    for sizes in [&[][..], &["--group-size", "1", "-k", "3", "-m", "2", "--set-size", "50K"]] {
        let sealed = pipe(
            &arena.path(""),
            [&["encode", "-", "-o", "-", "--recipient", &mine], sizes].concat(),
            &plain,
        );
        expect(&sealed, 0);
        let opened = pipe(&arena.path(""), ["decode", "-", "-i", "key"], &sealed.stdout);
        expect(&opened, 0);
        assert!(opened.stdout == plain);
        let opened = pipe(&arena.path(""), ["decode", "-", "-i", "key", "-o", "out", "-f"], &sealed.stdout);
        expect(&opened, 0);
        assert!(fs::read(arena.path("out")).unwrap() == plain);
        for (args, exit) in [(&["decode", "-", "-i", "other"][..], 5), (&["decode", "-"], 2)] {
            let output = pipe(&arena.path(""), args, &sealed.stdout);
            expect(&output, exit);
            assert!(output.stdout.is_empty());
        }
        // A cut stream is reported, and the bytes before the cut are right.
        let cut =
            pipe(&arena.path(""), ["decode", "-", "-i", "key"], &sealed.stdout[..sealed.stdout.len() / 4]);
        expect(&cut, 3);
        assert!(plain.starts_with(&cut.stdout));
    }
}

#[test]
fn ranges_open_the_chunks_that_they_need() {
    let (arena, [mine, _]) = arena(300_000);
    let plain = payload(16, 300_000);
    encode(&arena, &["-o", "s/", "--recipient", &mine]);
    encode(&arena, &["-o", "c.fec", "--recipient", &mine]);
    // A chunk outside the range may be missing.
    for index in 0..3 {
        fs::remove_file(arena.path(format!("s/payload.{index:03}.shard"))).unwrap();
    }
    for input in ["s", "c.fec"] {
        for (start, end) in
            [(0, 0), (0, 1), (65_530, 65_540), (65_536, 131_072), (131_072, 131_072), (1, 300_000)]
        {
            let range = format!("{start}..{end}");
            let output = arena.run(["decode", input, "-i", "key", "--range", &range, "-o", "-"]);
            expect(&output, 0);
            assert!(output.stdout == plain[start..end], "{input} {range}");
            expect(&arena.run(["decode", input, "-i", "key", "--range", &range, "-o", "out", "-f"]), 0);
            assert!(fs::read(arena.path("out")).unwrap() == plain[start..end], "{input} {range}");
        }
        expect(&arena.run(["decode", input, "-i", "key", "--range", "299999..+2", "-o", "-"]), 2);
        expect(&arena.run(["decode", input, "-i", "key", "--range", "300000..", "-o", "-"]), 0);
    }
}

#[test]
fn an_empty_range_behind_a_full_last_chunk_is_empty() {
    let (arena, [mine, _]) = arena(131_072);
    encode(&arena, &["-o", "s/", "--recipient", &mine]);
    encode(&arena, &["-o", "c.fec", "--recipient", &mine]);
    for input in ["s", "c.fec"] {
        for range in ["131072..", "131072..+0"] {
            let output = arena.run(["decode", input, "-i", "key", "--range", range, "-o", "-"]);
            expect(&output, 0);
            assert!(output.stdout.is_empty());
            expect(&arena.run(["decode", input, "-i", "key", "--range", range, "-o", "out", "-f"]), 0);
            assert!(fs::read(arena.path("out")).unwrap().is_empty());
        }
    }
}

#[test]
fn repair_needs_no_key_and_gives_the_same_bytes() {
    let (arena, [mine, _]) = arena(200_000);
    let root = root(&encode(&arena, &["-o", "s/", "--recipient", &mine]));
    encode(&arena, &["-o", "c.fec", "--recipient", &mine]);
    let before = [bytes_of(&arena.path("s")), bytes_of(&arena.path("c.fec"))];
    for index in [0, 3, 8] {
        fs::remove_file(arena.path(format!("s/payload.{index:03}.shard"))).unwrap();
    }
    flip(&arena.path("s/payload.001.shard"), 20_000);
    flip(&arena.path("c.fec"), 70_000);
    for input in ["s", "c.fec"] {
        expect(&arena.run(["verify", input]), 1);
        expect(&arena.run(["decode", input, "-i", "key", "-o", "out", "-f"]), 0);
        assert!(fs::read(arena.path("out")).unwrap() == payload(16, 200_000));
        expect(&arena.run(["repair", input]), 0);
        expect(&arena.run(["verify", input]), 0);
    }
    expect(&arena.run(["verify", "s", "--root", &root]), 0);
    assert!([bytes_of(&arena.path("s")), bytes_of(&arena.path("c.fec"))] == before);
}

#[test]
fn what_is_lost_of_a_payload_is_zeros_on_request() {
    let (arena, [mine, _]) = arena(400_000);
    encode(&arena, &["-o", "s/", "--recipient", &mine]);
    for index in [1, 4, 5, 6, 7] {
        fs::remove_file(arena.path(format!("s/payload.{index:03}.shard"))).unwrap();
    }
    let output = arena.run(["decode", "s", "-i", "key", "-o", "out"]);
    expect(&output, 3);
    assert!(!text(&output.stderr).contains("ciphertext"), "nothing was restored");
    assert!(!arena.path("out").exists());
    for out in ["-", "out"] {
        let output = arena.run(["decode", "s", "-i", "key", "-o", out, "--partial"]);
        expect(&output, 3);
        let bytes = if out == "-" { output.stdout } else { fs::read(arena.path("out")).unwrap() };
        let plain = payload(16, 400_000);
        assert_eq!(bytes.len(), plain.len());
        let chunks = bytes.chunks(65_536).zip(plain.chunks(65_536));
        let right = chunks.filter(|(is, was)| is == was || is.iter().all(|byte| *byte == 0));
        assert_eq!(right.count(), 7, "every chunk is right, or zeros");
        assert!(bytes[..65_536] == plain[..65_536]);
    }
    // The lost chunks are holes, if the file system supports holes.
    let meta = fs::metadata(arena.path("out")).unwrap();
    let bytes = fs::read(arena.path("out")).unwrap();
    let zeros = bytes.chunks(65_536).filter(|chunk| chunk.iter().all(|byte| *byte == 0)).count() as u64;
    assert!(zeros > 0 && meta.blocks() * 512 <= meta.len() + 65_536 - zeros * 65_536, "{zeros} {meta:?}");
}

/// Shard files that were copied into a store without a manifest are sealed like any others.
#[cfg(feature = "stores")]
#[test]
fn shard_files_in_a_store_are_sealed() {
    let (arena, [mine, _]) = arena(100_000);
    let root = root(&encode(&arena, &["-o", "s/", "--recipient", &mine]));
    let place = arena.path("store").join(&root);
    fs::create_dir_all(&place).unwrap();
    for index in 0..9 {
        let name = format!("{index:03}.shard");
        fs::copy(arena.path(format!("s/payload.{name}")), place.join(name)).unwrap();
    }
    let decode = ["decode", "--from", "store", "--root", &root, "-o", "out"];
    for (more, exit) in [(&[][..], 2), (&["-i", "other"], 5)] {
        expect(&arena.run([&decode[..], more].concat()), exit);
        assert!(!arena.path("out").exists());
    }
    expect(&arena.run([&decode[..], &["-i", "key"]].concat()), 0);
    assert!(fs::read(arena.path("out")).unwrap() == payload(16, 100_000));
}

/// The seal stands in the manifest of the whole payload. A segment alone gives only ciphertext, and the report says so.
#[cfg(feature = "stores")]
#[test]
fn a_segment_of_a_sealed_payload_is_told_to_be_ciphertext() {
    let (arena, [mine, _]) = arena(700_000);
    let shape = ["-k", "2", "-m", "1", "--segment-size", "300K", "--recipient", &mine];
    let to = ["--to", "p0", "--to", "p1", "--to", "p2"];
    let whole = root(&arena.run([&["encode", "secret-name.txt", "-q"], &shape[..], &to].concat()));
    let roots = fs::read_dir(arena.path("p0")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut roots: Vec<String> = roots.map(|name| name.into_string().unwrap()).collect();
    roots.retain(|root| *root != whole);
    assert_eq!(roots.len(), 3, "{roots:?}");
    let from = ["--from", "p0", "--from", "p1", "--from", "p2"];
    let decode = |root: &str, more: &[&str]| {
        arena.run([&["decode", "--root", root, "-o", "out", "-f"], &from[..], more].concat())
    };
    let told = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).unwrap();
    for root in &roots {
        let output = decode(root, &[]);
        expect(&output, 0);
        assert!(text(&output.stderr).contains("ciphertext"), "{}", text(&output.stderr));
        let output = decode(root, &["--json"]);
        assert_eq!((&told(&output)["sealed"], &told(&output)["opened_bytes"]), (&true.into(), &Value::Null));
        expect(&decode(root, &["-i", "key"]), 5);
    }
    let output = decode(&whole, &["-i", "key", "--json"]);
    assert_eq!((&told(&output)["sealed"], &told(&output)["opened_bytes"]), (&true.into(), &700_000.into()));
}

/// A container has lost its end: every remaining chunk comes back, and the cut is not reported as forgery.
#[test]
fn what_is_left_of_a_cut_payload_is_opened_on_request() {
    let (arena, [mine, _]) = arena(400_000);
    let plain = payload(16, 400_000);
    let grouped = ["--group-size", "1", "-k", "3", "-m", "2", "--set-size", "60K", "--recipient", &mine];
    let whole = pipe(&arena.path(""), [&["encode", "-", "-o", "-"], &grouped[..]].concat(), &plain).stdout;
    for (left, chunks) in [(480_000, 4), (380_000, 3), (180_000, 1)] {
        arena.write("cut.fec", &whole[..left]);
        let decode = ["decode", "cut.fec", "-i", "key"];
        for out in ["out", "-"] {
            let output = arena.run([&decode[..], &["-o", out, "--partial", "-f"]].concat());
            expect(&output, 3);
            let bytes = if out == "-" { output.stdout } else { fs::read(arena.path("out")).unwrap() };
            let (known, rest) = bytes.split_at(chunks * 65_536);
            assert!(known == &plain[..known.len()], "{left}, {out}");
            assert!(rest.iter().all(|byte| *byte == 0), "{left}, {out}");
        }
        let known = format!("1..{}", chunks * 65_536);
        let output = arena.run([&decode[..], &["-o", "-", "--range", &known]].concat());
        expect(&output, 3);
        assert!(output.stdout == plain[1..chunks * 65_536]);
        let beyond = format!("0..{}", chunks * 65_536 + 1);
        let output = arena.run([&decode[..], &["-o", "-", "--range", &beyond]].concat());
        expect(&output, 3);
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_passphrase_opens_what_it_sealed() {
    let (arena, _) = arena(70_000);
    let encode = ["encode", "secret-name.txt", "-o", "p.fec", "--passphrase"];
    expect(&with_passphrase(&arena, "correct horse", &encode), 0);
    let decode = ["decode", "p.fec", "--passphrase", "-o", "-"];
    let output = with_passphrase(&arena, "correct horse", &decode);
    expect(&output, 0);
    assert!(output.stdout == payload(16, 70_000));
    let output = with_passphrase(&arena, "wrong horse", &decode);
    expect(&output, 5);
    assert!(output.stdout.is_empty());
    // Short and empty passphrases, and another kind of key.
    for short in ["", "abc", "eleven char"] {
        let encode = ["encode", "secret-name.txt", "-o", "e.fec", "--passphrase"];
        let output = with_passphrase(&arena, short, &encode);
        expect(&output, 2);
        assert!(text(&output.stderr).contains("12 characters"), "{}", text(&output.stderr));
        assert!(!arena.path("e.fec").exists());
    }
    // Decode tries a passphrase of any length.
    expect(&with_passphrase(&arena, "abc", &decode), 5);
    expect(&arena.run(["decode", "p.fec", "-i", "key", "-o", "-"]), 2);
    // Without a terminal nobody can be asked.
    expect(&arena.run(["decode", "p.fec", "--passphrase", "-o", "-"]), 2);
}

/// Needs `script` for a terminal. A short passphrase is refused before it is asked for again.
#[test]
fn a_short_passphrase_is_not_asked_for_twice() {
    let (arena, _) = arena(1000);
    let encode = format!("{} encode secret-name.txt -o e.fec --passphrase", common::fec_words());
    let mut script = Command::new("script");
    script.args(["-qec", &encode, "/dev/null"]).current_dir(arena.path("")).env_remove(VARIABLE);
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else { return };
    let mut keyboard = child.stdin.take().unwrap();
    while child.try_wait().unwrap().is_none() {
        // Keys typed before the prompt may be dropped.
        let _ = keyboard.write_all(b"\n");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let ended = child.wait_with_output().unwrap();
    let said = text(&ended.stdout);
    assert!(said.contains("12 characters") && !said.contains("once more"), "{said}");
    assert_eq!(ended.status.code(), Some(2), "{said}");
}

/// Too little memory for a passphrase is reported, without a backtrace.
#[cfg(target_os = "linux")]
#[test]
fn memory_that_is_not_there_is_told() {
    let (arena, _) = arena(1000);
    let encode = ["encode", "secret-name.txt", "-o", "p.fec", "--passphrase"];
    expect(&with_passphrase(&arena, "correct horse", &encode), 0);
    let limited = |args: &[&str]| {
        let mut shell = Command::new("sh");
        let limited = format!("ulimit -v 250000; exec {} \"$@\"", common::fec_words());
        shell.args(["-c", &limited, "sh"]).args(args);
        shell.env(VARIABLE, "correct horse").env("FEC_SIGN_PASSPHRASE", "correct horse");
        let output = shell.current_dir(arena.path("")).output().unwrap();
        expect(&output, 6);
        let said = text(&output.stderr);
        assert!(said.contains("256 MiB of memory") && !said.contains("panic"), "{said}");
        said
    };
    assert!(limited(&["decode", "p.fec", "--passphrase", "-o", "out"]).contains("open p.fec"));
    limited(&["encode", "secret-name.txt", "-o", "q.fec", "--passphrase"]);
    limited(&["keygen", "--sign", "-o", "signer"]);
    for name in ["out", "q.fec", "signer", "signer.pub"] {
        assert!(!arena.path(name).exists(), "{name}");
    }
}

#[test]
fn what_is_sealed_is_named() {
    let (arena, [mine, _]) = arena(70_000);
    encode(&arena, &["-o", "c.fec", "--recipient", &mine]);
    encode(&arena, &["-o", "s/", "--recipient", &mine]);
    for input in ["c.fec", "s"] {
        let told = arena.refuses(["decode", input, "-o", "out"], 2);
        assert!(
            told.starts_with(&format!("fec: open {input}: it is sealed, and no key was given")),
            "{told}"
        );
        let told = arena.refuses(["decode", input, "-i", "other", "-o", "out"], 5);
        assert!(told.starts_with(&format!("fec: open {input}: no key")), "{told}");
    }
}

#[test]
fn what_is_not_sealed_is_refused_when_a_key_is_given() {
    let (arena, _) = arena(70_000);
    encode(&arena, &["-o", "c.fec"]);
    encode(&arena, &["-o", "s/"]);
    expect(&arena.run(["encode", "--stream", "secret-name.txt", "-o", "live"]), 0);
    let container = fs::read(arena.path("c.fec")).unwrap();
    for input in ["c.fec", "s", "live"] {
        let output = arena.run(["decode", input, "-i", "key", "-o", "out"]);
        expect(&output, if input == "live" { 2 } else { 5 });
        assert!(!arena.path("out").exists(), "{input}");
    }
    let output = pipe(&arena.path(""), ["decode", "-", "-i", "key"], &container);
    expect(&output, 5);
    assert!(output.stdout.is_empty());
    let live = fs::read(arena.path("live")).unwrap();
    for more in [&[][..], &["--stream"]] {
        let output = pipe(&arena.path(""), [&["decode", "-", "-i", "key"], more].concat(), &live);
        expect(&output, 2);
        assert!(output.stdout.is_empty());
    }
    expect(&arena.run(["decode", "live", "--stream", "-i", "key", "-o", "out"]), 2);
    expect(&arena.run(["decode", "udp://127.0.0.1:0", "-i", "key", "-o", "out"]), 2);
    assert!(!arena.path("out").exists());
}

#[test]
fn post_quantum_keys_stand_alone() {
    let (arena, [mine, _]) = arena(70_000);
    let output = arena.run(["keygen", "--pq", "-o", "pq"]);
    expect(&output, 0);
    let hybrid = text(&output.stdout).trim().to_owned();
    assert!(hybrid.starts_with("age1pq1"));
    expect(&encode(&arena, &["-o", "c.fec", "--recipient", &hybrid]), 0);
    let output = arena.run(["decode", "c.fec", "-i", "key", "-i", "pq", "-o", "-"]);
    expect(&output, 0);
    assert!(output.stdout == payload(16, 70_000));
    expect(&encode(&arena, &["-o", "d.fec", "--recipient", &hybrid, "--recipient", &mine]), 2);
    assert!(!arena.path("d.fec").exists());
}

#[test]
fn a_hundred_recipients_open_it_and_too_many_are_told() {
    let (arena, _) = arena(10_000);
    let mut recipients = String::new();
    for nth in 0..100 {
        let output = arena.run(["keygen", "-q", "-o", &format!("k{nth}")]);
        recipients += text(&output.stdout).trim();
        recipients.push('\n');
    }
    arena.write("recipients", recipients.as_bytes());
    expect(&encode(&arena, &["-o", "c.fec", "-R", "recipients"]), 0);
    for nth in 0..100 {
        let output = arena.run(["decode", "c.fec", "-i", &format!("k{nth}"), "-o", "-", "-q"]);
        expect(&output, 0);
        assert!(output.stdout == payload(16, 10_000), "recipient {nth}");
    }
    // Each recipient takes room in the meta, which has 64 KiB. Repeated recipients count once.
    let output = arena.run(["keygen", "--pq", "-o", "pq"]);
    arena.write("many", text(&output.stdout).repeat(100).as_bytes());
    expect(&encode(&arena, &["-o", "d.fec", "-R", "many"]), 0);
    arena.write("many", text(&arena.run(["keygen", "-o", "one"]).stdout).repeat(1025).as_bytes());
    expect(&encode(&arena, &["-o", "o.fec", "-R", "many"]), 0);
    let mut many = String::new();
    for nth in 0..41 {
        many += &text(&arena.run(["keygen", "-q", "--pq", "-o", &format!("q{nth}")]).stdout);
    }
    arena.write("many", many.as_bytes());
    expect(&encode(&arena, &["-o", "e.fec", "-R", "many"]), 0);
    arena.write("many", (many + &text(&output.stdout)).as_bytes());
    let told = arena.refuses(["encode", "secret-name.txt", "-o", "f.fec", "-R", "many"], 6);
    assert!(told.contains("41 post-quantum"), "{told}");
    assert!(!arena.path("f.fec").exists());
}

#[test]
fn wrong_use_is_told_and_secrets_are_not() {
    let (arena, [mine, _]) = arena(1000);
    let secret = fs::read_to_string(arena.path("key")).unwrap();
    let secret = secret.lines().last().unwrap();
    let refused: &[&[&str]] = &[
        &["encode", "secret-name.txt", "-o", "x", "--recipient", "age1nobody"],
        &["encode", "secret-name.txt", "-o", "x", "--recipient", secret],
        &["encode", "secret-name.txt", "-o", "x", "-R", "key"],
        &["encode", "secret-name.txt", "-o", "x", "-R", "nothing"],
        &["encode", "secret-name.txt", "-o", "x", "-R", "empty"],
        &["encode", "secret-name.txt", "-o", "x", "--cipher", "aes-256-gcm"],
        &["encode", "secret-name.txt", "-o", "x", "--recipient", &mine, "--payload-digest"],
        &["encode", "secret-name.txt", "-o", "x", "--recipient", &mine, "--keep"],
        &["encode", "--stream", "secret-name.txt", "-o", "x", "--recipient", &mine],
        &["decode", "c.fec", "-o", "x", "-i", "recipients"],
        &["decode", "c.fec", "-o", "x", "-i", "empty"],
        &["decode", "c.fec", "-o", "x", "-i", "c.fec"],
        &["decode", "c.fec", "-o", "x", "-i", "damaged"],
        &["keygen", "-o", "key"],
        &["keygen", "-o", "-"],
        &["keygen", "--pq", "--stream", "-o", "y"],
    ];
    arena.write("recipients", mine.as_bytes());
    arena.write("empty", b"# nobody\n");
    let (whole, last) = secret.split_at(secret.len() - 1);
    arena.write("damaged", format!("{whole}{}", if last == "Q" { "P" } else { "Q" }).as_bytes());
    expect(&encode(&arena, &["-o", "c.fec", "--recipient", &mine]), 0);
    let key = fs::read(arena.path("key")).unwrap();
    for args in refused {
        let output = arena.run([&["-vv"], *args].concat());
        let told = text(&output.stderr) + &text(&output.stdout);
        assert!(matches!(output.status.code(), Some(2 | 4)), "{args:?}: {told}");
        assert!(!arena.path("x").exists(), "{args:?}");
        for part in [secret, &secret[20..40]] {
            assert!(!told.contains(part), "{args:?}: {told}");
        }
    }
    assert!(fs::read(arena.path("key")).unwrap() == key, "no key is overwritten");
    // A successful run leaks no key either.
    let output = arena.run(["decode", "c.fec", "-i", "key", "-o", "out", "-vv", "--json"]);
    expect(&output, 0);
    assert!(!(text(&output.stderr) + &text(&output.stdout)).contains(&secret[20..40]));
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(arena.path("key")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn two_encodings_of_one_payload_have_nothing_in_common() {
    let (arena, [mine, _]) = arena(200_000);
    let roots = ["a.fec", "b.fec"].map(|output| root(&encode(&arena, &["-o", output, "--recipient", &mine])));
    assert_ne!(roots[0], roots[1]);
    let [a, b] = ["a.fec", "b.fec"].map(|name| fs::read(arena.path(name)).unwrap());
    let same = a.chunks_exact(16).zip(b.chunks_exact(16)).filter(|(a, b)| a == b);
    // Magics, geometry and padding may be equal.
    assert!(same.count() < a.len() / 16 / 10);
}
