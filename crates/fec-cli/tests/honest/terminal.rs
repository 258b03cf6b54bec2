//! Control characters are escaped on a terminal, wherever they come from: names in sidecars, lists, options. Programs
//! get them unchanged.

use crate::common::{Arena, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Output, Stdio};

/// A name with ESC, BEL, CSI as a single C1 character, DEL, and a change of text direction.
const NAME: &str = "a\x1b[2J\x1b]0;evil\x07\u{9b}31m\x7f\u{202e}gpj.exe";

/// Runs `fec` with all three streams on a terminal. Returns what the terminal got.
fn on_terminal(arena: &Arena, args: &[&OsStr]) -> Output {
    let mut fec = arena.fec(args);
    fec.args(["--progress", "never"]);
    let words = [fec.get_program()].into_iter().chain(fec.get_args());
    let words: Vec<String> =
        words.map(|word| format!("'{}'", word.to_str().expect("UTF-8").replace('\'', "'\\''"))).collect();
    let mut script = Command::new("script");
    script.args(["-qefc", &words.join(" "), "/dev/null"]).current_dir(&arena.work);
    script.stdin(Stdio::null()).env("COLUMNS", "500").output().expect("script, of util-linux")
}

/// Asserts that no control character is in the output. The terminal itself adds carriage returns.
#[track_caller]
fn is_harmless(output: &[u8]) {
    let said = text(output);
    let tricks: Vec<char> = said
        .chars()
        .filter(|c| {
            (c.is_control() && !['\n', '\r', '\t'].contains(c)) || ('\u{202a}'..='\u{202e}').contains(c)
        })
        .collect();
    assert!(tricks.is_empty(), "{tricks:?} in {said:?}");
}

fn arena() -> Arena {
    let arena = Arena::new();
    arena.write(format!("d/{NAME}"), b"a picture");
    arena.write("d/two\nlines\\", b"another one");
    arena.write("d/plain", b"a third");
    arena.expect(["protect", "d", "--sha256", "-q"], 0);
    arena
}

/// `b3sum --check` and `sha256sum --check` read a manifest from a pipe. People read it on a terminal.
#[test]
fn a_manifest_is_raw_in_a_pipe_and_shown_on_a_terminal() {
    let arena = arena();
    for option in ["--b3", "--sha256"] {
        let piped = arena.expect(["manifest", "d.fecp", option], 0).stdout;
        assert!(piped.windows(NAME.len()).any(|part| part == NAME.as_bytes()), "{}", text(&piped));
        let shown = on_terminal(&arena, &["manifest", "d.fecp", option].map(OsStr::new));
        assert!(shown.status.success(), "{shown:?}");
        is_harmless(&shown.stdout);
        let lines = text(&shown.stdout);
        let (first, digest) =
            (lines.lines().find(|line| line.contains("evil")).expect("a line"), &piped[..64]);
        assert!(
            first.contains("d/a\\u{1b}[2J\\u{1b}]0;evil\\u{7}\\u{9b}31m\\u{7f}\\u{202e}gpj.exe"),
            "{lines}"
        );
        assert!(lines.contains("d/plain") && lines.contains("two\\nlines"), "{lines}");
        assert!(digest.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'\\'));
    }
    let check = arena.expect(["manifest", "d.fecp", "--sha256"], 0).stdout;
    arena.write("sums", &check);
    let checked =
        Command::new("sha256sum").args(["--check", "--quiet", "sums"]).current_dir(&arena.work).output();
    assert!(checked.expect("sha256sum").status.success());
}

/// With --json the output is an object, not lines.
#[test]
fn a_manifest_is_an_object_with_json() {
    let arena = arena();
    let json = arena.expect(["manifest", "d.fecp", "--json"], 0).stdout;
    is_harmless(&json);
    let report: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!((&report["command"], &report["hash"]), (&"manifest".into(), &"blake3".into()));
    let files = report["files"].as_array().expect("files");
    let plain = files.iter().find(|file| file["path"] == "d/plain").expect("the file");
    assert_eq!(plain["digest"], blake3::hash(b"a third").to_hex().to_string());
    assert_eq!(files.len(), 3);
    let sha256 = arena.expect(["manifest", "d.fecp", "--json", "--sha256"], 0).stdout;
    assert_eq!(serde_json::from_slice::<Value>(&sha256).expect("JSON")["hash"], "sha256");
    let failed = arena.run(["manifest", "none", "--json"]);
    assert_eq!(serde_json::from_slice::<Value>(&failed.stdout).expect("JSON")["exit_code"], 4);
}

/// Reports, errors, and messages that repeat options and lists contain no control characters.
#[test]
fn nothing_that_is_said_is_obeyed() {
    let arena = arena();
    arena.write("places", format!("ftp://{NAME}\n").as_bytes());
    arena.write("long-list", &[NAME.as_bytes(), &[b'x'; 5000], b"\n"].concat());
    arena.write(NAME, b"a payload");
    arena.write("names", format!("{NAME}\n{NAME}.none\n").as_bytes());
    std::fs::write(arena.path(OsStr::from_bytes(format!("d/{NAME}").as_bytes())), b"edited").unwrap();
    let root = "ab".repeat(32);
    for args in [
        &["verify", "d.fecp", "-v"][..],
        &["verify", "d", "d.fecp", "-v"],
        &["repair", "d.fecp", "-n"],
        &["verify", NAME],
        &["decode", NAME],
        &["repair", NAME],
        &["manifest", NAME],
        &["attest", NAME],
        &["protect", "--update", NAME],
        &["encode", &format!("{NAME}.none")],
        &["encode", "--files-from", "names", "-o", "{}.fec"],
        &["encode", "--files-from", "names", "-o", "{}.fec2", "--json"],
        &["encode", "--files-from", "long-list", "-o", "{}.fec"],
        &["encode", "a", "--to", "@places"],
        &["encode", "a", "--to", NAME],
        &["decode", "--from", "@places", "--root", &root],
        &["verify", "--roots", NAME],
        &["verify", &format!("--{NAME}")],
        &["verify", "--need", NAME],
        &["verify", "--root", NAME],
        &["verify", "--root", &format!("@{NAME}")],
        &["verify", "--signer", NAME],
        &["verify", "--tuning", NAME],
        &["verify", "--backend", NAME],
        &["decode", "-i", NAME],
        &["encode", "--recipient", NAME],
        &["encode", "--stream", "-o", &format!("udp://{NAME}")],
        &["encode", "--stream", "-o", &format!("tcp://{NAME}")],
        &["bench", "--model", NAME],
        &["bench", "--compare", NAME],
        &["bench", "--require-backend", NAME],
        &["man", NAME],
        &[NAME],
    ] {
        let output = on_terminal(&arena, &args.iter().map(OsStr::new).collect::<Vec<_>>());
        is_harmless(&output.stdout);
        let piped = arena.run(args);
        is_harmless(&piped.stderr);
        assert!(!args.contains(&"--json") || piped.stdout.iter().all(|byte| *byte != 0x1b), "{args:?}");
    }
}
