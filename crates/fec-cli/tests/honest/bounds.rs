//! Reads are bounded, writes stay below their folder, and -j is obeyed.

use super::furnished;
use crate::common::{Arena, finish, listing, make_fifo, payload, text};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Kilobytes of address space: enough for bounded reads, too few for an unbounded one.
const ROOM: &str = "1500000";
const SOON: Duration = Duration::from_secs(20);

fn arena() -> Arena {
    let arena = furnished();
    make_fifo(&arena.path("fifo"));
    arena.write("root", "ab".repeat(32).as_bytes());
    arena
}

/// Runs `fec` with little memory, and with the output of an `sh` command on standard input.
fn little(arena: &Arena, input: &str, args: &[&str]) -> Child {
    let fec = arena.fec(args);
    let words: Vec<String> = [fec.get_program()]
        .into_iter()
        .chain(fec.get_args())
        .map(|word| format!("'{}'", word.to_str().expect("UTF-8").replace('\'', "'\\''")))
        .collect();
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{input} (ulimit -v {ROOM}; exec {})", words.join(" "))]);
    command.current_dir(&arena.work).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("a shell")
}

/// Endless input is an error wherever a file with a list, keys or a root is named: soon, and in bounded memory.
#[test]
fn what_never_ends_is_refused() {
    let arena = arena();
    let root = "ab".repeat(32);
    let lines: [&[&str]; 27] = [
        &["encode", "-o", "{}.x", "--files-from", "@"],
        &["protect", "-o", "x.fecp", "--files-from", "@"],
        &["encode", "a", "--to", "@@"],
        &["decode", "-o", "out", "--root", &root, "--from", "@@"],
        &["verify", "--root", &root, "--from", "@@"],
        &["repair", "--root", &root, "--from", "@@"],
        &["repair", "--root", &root, "--from", "d", "--to", "@@"],
        &["list", "@@"],
        &["list", "--from", "@@"],
        &["forget", "--root", &root, "--from", "@@", "--yes"],
        &[
            "rekey",
            "--root",
            &root,
            "--from",
            "@@",
            "-i",
            "key",
            "--recipient",
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
        ],
        &[
            "rekey",
            "--root",
            &root,
            "--from",
            "d",
            "-i",
            "@",
            "--recipient",
            "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
        ],
        &["rekey", "--root", &root, "--from", "d", "-i", "key", "-R", "@"],
        &["encode", "a", "-o", "out", "-R", "@"],
        &["decode", "a.fec", "-o", "out", "-i", "@"],
        &["manifest", "d.fecp", "-i", "@"],
        &["decode", "s.stream", "-o", "out", "--key-file", "@"],
        &["verify", "a.fec", "--root", "@@"],
        &["verify", "--roots", "@"],
        &["verify", "a.fec", "--signer", "@"],
        &["encode", "a", "-o", "out", "--sign", "@"],
        &["keygen", "-o", "k", "--sign", "--sign-passphrase-file", "@"],
        &["encode", "a", "--stream", "-o", "out", "--impair", "trace:@"],
        &["bench", "link", "127.0.0.1:9", "--loss", "trace:@"],
        &["attest", "@"],
        &["attest", "root", "--check", "@"],
        &["bench", "--compare", "@"],
    ];
    let before = listing(&arena.work);
    let of = |line: &[&str], name: &str| -> Vec<String> {
        let word = |word: &&str| match word.strip_suffix('@') {
            Some("@") => format!("@{name}"),
            Some("") => name.to_owned(),
            Some("trace:") => format!("trace:{name}"),
            _ => (*word).to_owned(),
        };
        line.iter().map(word).collect()
    };
    for (name, input) in
        [("/dev/zero", ""), ("fifo", ""), ("/dev/stdin", "yes '' |"), ("/dev/stdin", "yes a |")]
    {
        let begin = |line: &&[&str]| {
            let args = of(line, name);
            let child = little(&arena, input, &args.iter().map(String::as_str).collect::<Vec<_>>());
            (args, child)
        };
        let begun: Vec<(Vec<String>, Child)> = lines.iter().map(begin).collect();
        for (args, child) in begun {
            let output = finish(child, b"", SOON);
            let output = output.unwrap_or_else(|| panic!("{args:?} {input}: it goes on"));
            let said = text(&output.stderr);
            assert!(matches!(output.status.code(), Some(2 | 4 | 6)), "{args:?} {input}: {output:?}");
            assert!(
                said.starts_with("fec: ") && !said.contains("memory allocation"),
                "{args:?} {input}: {said}"
            );
        }
        assert_eq!(listing(&arena.work), before, "{name} {input}");
    }
}

/// A pipe of a shell is as good as a file, however slow.
#[test]
fn lists_and_keys_come_through_pipes() {
    let arena = arena();
    let run = |line: &str| {
        let fec = arena.fec(&[] as &[&str]);
        let script = format!("fec() {{ {} \"$@\"; }}; {line}", fec.get_program().to_str().expect("UTF-8"));
        let output =
            Command::new("bash").args(["-c", &script]).current_dir(&arena.work).output().expect("bash");
        assert!(output.status.success(), "{line}: {output:?}");
    };
    run("fec keygen -o key -q > recipient");
    run("fec encode a -o sealed.fec -q -R <(sleep 1; cat recipient)");
    run("fec decode sealed.fec -o out -q -i <(sleep 0.2; cat key)");
    run("fec encode -o '{}.list.fec' -q --files-from <(sleep 0.2; echo a)");
    run("(sleep 0.5; echo a > fifo) & fec encode -o '{}.fifo.fec' -q --files-from fifo");
    run("fec encode a -o r.fec -q > root; fec verify r.fec -q --root @<(cat root)");
    run("(cat root | tr -d '\\n'; echo '  r.fec') | fec verify -q --roots -");
    run("fec encode a -q --crowded --to @<(sleep 0.2; echo p)");
}

/// No listed name leads out of the folder in front of `{}`.
#[test]
fn a_listed_name_does_not_leave_the_folder_of_outputs() {
    let arena = Arena::new();
    for name in ["evil", "in/good", "in/safe/x"] {
        arena.write(name, b"bytes");
    }
    arena.write(
        "in/list",
        format!("../evil\nsafe/../../evil\n{}\ngood\n", arena.path("evil").display()).as_bytes(),
    );
    let before = arena.state();
    std::fs::create_dir(arena.path("in/out")).unwrap();
    let output = arena
        .fec(["encode", "--files-from", "list", "-o", "out/{}.fec", "-q"])
        .current_dir(arena.path("in"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let said = text(&output.stderr);
    assert_eq!(said.matches("with .. in its path").count(), 2, "{said}");
    assert!(arena.path("in/out/good.fec").exists(), "{said}");
    std::fs::remove_dir_all(arena.path("in/out")).unwrap();
    arena.unchanged(&before);
    let output = arena
        .fec(["encode", "../evil", "good", "-o", "safe/{}.fec", "-q"])
        .current_dir(arena.path("in"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!arena.path("in/evil.fec").exists() && !arena.path("evil.fec").exists());
}

/// The most threads that a run has at the same time.
fn threads(arena: &Arena, args: &[&str]) -> usize {
    let mut child = arena.spawn(args);
    let tasks = format!("/proc/{}/task", child.id());
    let mut most = 0;
    while child.try_wait().expect("it can be waited for").is_none() {
        most = most.max(std::fs::read_dir(&tasks).map_or(0, Iterator::count));
    }
    let output = child.wait_with_output().expect("it ended");
    assert!(output.status.success(), "{args:?}: {output:?}");
    most
}

/// With -j 1 one thread computes, and another waits for signals.
#[test]
fn one_thread_is_one_thread() {
    let arena = Arena::new();
    arena.write("large", &payload(1, 20_000_000));
    let recipients: String = (0..600).map(|_| recipient()).collect();
    arena.write("recipients", recipients.as_bytes());
    for nth in 0..40 {
        arena.write(format!("d/{nth}"), &payload(nth, 400_000));
        arena.write(format!("small/{nth}"), &payload(nth, 100_000));
    }
    let list: String = (0..40).map(|nth| format!("small/{nth}\n")).collect();
    arena.write("list", list.as_bytes());
    for args in [
        &["encode", "large", "-o", "large.fec", "-q"][..],
        &["encode", "large", "-o", "large.shards/", "-q", "--no-sync"],
        &["encode", "large", "-o", "digests.fec", "-q", "--payload-digest=sha256,blake3"],
        &["encode", "large", "-o", "sealed.fec", "-q", "-R", "recipients"],
        &["encode", "--files-from", "list", "-o", "{}.fec", "-q"],
        &["verify", "large.fec", "-q", "--deep"],
        &["verify", "large.shards", "-q"],
        &["decode", "large.fec", "-o", "back", "-q", "--deep"],
        &["protect", "d", "-q", "--sha256"],
        &["verify", "d.fecp", "-q"],
        &["repair", "d.fecp", "-q"],
    ] {
        let most = threads(&arena, &[&["-j", "1"], args].concat());
        assert!(most <= 2, "{args:?}: {most} threads");
    }
}

/// A new recipient.
fn recipient() -> String {
    use fec_keys::age::{Identity, KeyKind};
    Identity::generate(KeyKind::X25519).expect("a key").recipient().to_string() + "\n"
}
