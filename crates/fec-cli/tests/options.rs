//! Every option of every command is tried with everything that the command works on: it acts, or is refused. The tests
//! walk the table that the command refuses by (`src/plan/options.rs`). A test beside the table checks that it has a row
//! for each option.

mod common;
#[path = "../src/plan/options.rs"]
mod table;

use common::{Arena, code, listing, payload, text};
use std::fs;
use table::{
    AUDIT, COMMANDS, CONTAINER, COPIES, GATES, GENERATIONS, KEYS, LINK, LIST, MIRRORS, Mode, NETWORK, NEW,
    PART, PIPE, ROOTS, SEVERAL, SHARDS,
};
use table::{SIDECAR, SIDECARS, STORES, STREAM, TEXT, UPDATE};

/// A value for each option that takes one.
const VALUES: [(&str, &str); 76] = [
    ("base", "."),
    ("block", "240"),
    ("budget", "30d"),
    ("budget-bytes", "1M"),
    ("check", "statement"),
    ("cipher", "aes-256-gcm"),
    ("compare", "saved"),
    ("confidence", "95%"),
    ("data", "33"),
    ("deadline-packets", "100"),
    ("dir", "."),
    ("endpoint", "x"),
    ("exclude", "none"),
    ("files-from", "list"),
    ("flush-ms", "20"),
    ("format", "text"),
    ("from", "places"),
    ("gap", "zero"),
    ("gate", "5%"),
    ("group-size", "4"),
    ("hash", "sha256"),
    ("identity", "key"),
    ("idle-ms", "1000"),
    ("impair", "dup:0.1"),
    ("interface", "lo"),
    ("key-file", "stream-key"),
    ("latency", "none"),
    ("limit", "1G"),
    ("loss", "random:0.1"),
    ("max-age", "any"),
    ("mbps", "1000"),
    ("metrics", "metrics.prom"),
    ("model", "cortex-a53"),
    ("need", "1"),
    ("older-than", "30d"),
    ("output", "out"),
    ("packet", "auto"),
    ("policy", "none"),
    ("profile", "bounded"),
    ("range", "0..1"),
    ("rate", "1/6"),
    ("recipient", "@recipient"),
    ("recipients-file", "recipients"),
    ("recovery", "67"),
    ("redundancy", "17%"),
    ("require-backend", "scalar"),
    ("retired", "."),
    ("retries", "1"),
    ("root", "@root"),
    ("root-file", "new-root"),
    ("roots", "roots"),
    ("rot", "10%"),
    ("rounds", "1"),
    ("sample", "50%"),
    ("ignore", "edited"),
    ("save", "saved"),
    ("seed", "7"),
    ("segment-size", "1M"),
    ("set-size", "1M"),
    ("sign", "sk"),
    ("sign-passphrase-file", "passphrase"),
    ("signature", "signature"),
    ("signer", "sk.pub"),
    ("spool", "."),
    ("state", "state"),
    ("stats", "text"),
    ("stream-id", "12"),
    ("timeout", "5s"),
    ("to", "places"),
    ("ttl", "1"),
    ("undo", "undo.tar"),
    ("owner", "0"),
    ("uploads", "1"),
    ("wait-ms", "1000"),
    ("window", "6000"),
    ("verbose", ""),
];

/// Options that the parser requires together with these.
const TOGETHER: [(&str, &str, &[&str]); 13] = [
    ("verify", "older-than", &["--state", "state"]),
    ("verify", "budget", &["--sample", "50%"]),
    ("*", "signature", &["--signer", "sk.pub"]),
    ("encode", "signature", &["--sign", "sk"]),
    ("protect", "signature", &["--sign", "sk"]),
    ("encode", "sign-passphrase-file", &["--sign", "sk"]),
    ("protect", "sign-passphrase-file", &["--sign", "sk"]),
    ("keygen", "sign-passphrase-file", &["--sign"]),
    ("encode", "cipher", &["--recipients-file", "recipients"]),
    ("protect", "cipher", &["--recipients-file", "recipients"]),
    ("decode", "early", &["--root", "@root"]),
    ("encode", "null", &["--files-from", "list"]),
    ("bench", "gate", &["--compare", "saved"]),
];

fn is_choosing(command: &str, option: &str) -> bool {
    CHOOSING.contains(&(command, option))
}

/// A folder with an encoding of every kind.
fn furnished() -> Arena {
    let arena = Arena::new();
    arena.write("a", &payload(1, 50_000));
    arena.write("b", &payload(2, 50_000));
    arena.write("list", b"a\nb\n");
    arena.write("d/one", b"one");
    arena.write("d/two", b"two");
    arena.write("e/two", b"two");
    arena.write("passphrase", b"\n");
    let root = text(&arena.expect(["encode", "a", "-q"], 0).stdout);
    arena.write("root", root.as_bytes());
    arena.write("statement", &arena.expect(["attest", "root"], 0).stdout);
    let container = text(&arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0).stdout);
    arena.write("container-root", container.as_bytes());
    arena.write("roots", format!("{}  a.fec\n", container.trim()).as_bytes());
    arena.expect(["encode", "b", "-o", "b.fec", "-q"], 0);
    let sidecar = text(&arena.expect(["protect", "d", "-q"], 0).stdout);
    arena.write("sidecar-root", sidecar.as_bytes());
    arena.expect(["protect", "e", "-q"], 0);
    arena.expect(["encode", "a", "--stream", "-o", "s.stream", "-q"], 0);
    let stored = text(&arena.expect(["encode", "a", "--to", "p1", "--crowded", "-q"], 0).stdout);
    arena.write("stored-root", stored.as_bytes());
    arena.expect(["keygen", "-o", "key", "-q"], 0);
    arena.expect(["keygen", "--stream", "-o", "stream-key", "-q"], 0);
    arena.expect(["keygen", "--sign", "-o", "sk", "-q", "--sign-passphrase-file", "passphrase"], 0);
    arena.expect(["encode", "a", "-o", "signed.fec", "-q", "--sign", "sk", "--signature", "signature"], 0);
    let key = text(&arena.read("key"));
    let recipient = key.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap().to_owned();
    arena.write("recipients", recipient.as_bytes());
    let sealed = ["encode", "b", "--to", "p1", "--crowded", "-R", "recipients", "-q"];
    arena.write("sealed-root", text(&arena.expect(sealed, 0).stdout).as_bytes());
    arena
}

/// A command line for this mode, and its standard input.
fn line(command: &str, mode: Mode, arena: &Arena) -> (Vec<&'static str>, Vec<u8>) {
    let none = Vec::new();
    let words: &[&str] = match (command, mode) {
        ("encode", SHARDS) => &["a", "-o", "new/"],
        ("encode", CONTAINER) => &["a", "-o", "new.fec"],
        ("encode", PIPE) => return (vec!["-", "-o", "new.fec"], arena.read("a")),
        ("encode", STREAM) => &["a", "--stream", "-o", "new.stream"],
        ("encode", NETWORK) => &["a", "--stream", "-o", "udp://127.0.0.1:9"],
        ("encode", STORES) => &["a", "--to", "p2", "--crowded"],
        ("encode", SEVERAL) => &["a", "b", "-o", "new-{/}.fec"],
        ("decode", SHARDS) => &["a.shards", "-o", "out"],
        ("decode", CONTAINER) => &["a.fec", "-o", "out"],
        ("decode", PIPE) => return (vec!["-", "-o", "out"], arena.read("a.fec")),
        ("decode", STREAM) => &["s.stream", "-o", "out"],
        ("decode", NETWORK) => &["udp://127.0.0.1:0", "-o", "out", "--wait-ms", "1"],
        ("decode", STORES) => &["--from", "p1", "--root", "@stored-root", "-o", "out"],
        ("verify", SHARDS) => &["a.shards"],
        ("verify", CONTAINER) => &["a.fec"],
        ("verify", PIPE) => return (vec!["-"], arena.read("a.fec")),
        ("verify", SIDECAR) => &["d.fecp"],
        ("verify", PART) => &["d.fecp", "d/one"],
        ("verify", SEVERAL) => &["a.fec", "b.fec", "d.fecp"],
        ("verify", SIDECARS) => &["d.fecp", "e.fecp"],
        ("verify", LIST) => &["--roots", "roots"],
        ("verify", AUDIT) => &["--audit", "--from", "p1", "--root", "@stored-root"],
        ("verify", STORES) => &["--from", "p1", "--root", "@stored-root"],
        ("repair", SHARDS) => &["a.shards"],
        ("repair", CONTAINER) => &["a.fec"],
        ("repair", SIDECAR) => &["d.fecp"],
        ("repair", MIRRORS) => &["d.fecp", "--from", "."],
        ("repair", COPIES) => &["a.shards", "--from", "."],
        ("repair", SEVERAL) => &["a.fec", "b.fec"],
        ("repair", SIDECARS) => &["d.fecp", "e.fecp"],
        ("repair", STORES) => &["--from", "p1", "--root", "@stored-root"],
        ("protect", NEW) => &["a", "-o", "new.fecp"],
        ("protect", GENERATIONS) => &["d", "--list"],
        ("protect", UPDATE) => &["d", "--update"],
        ("manifest", SIDECAR) => &["d.fecp"],
        ("list", STORES) => &["p1"],
        ("forget", STORES) => &["--from", "p1", "--root", "@stored-root"],
        ("rekey", STORES) => {
            &["--from", "p1", "--root", "@sealed-root", "-i", "key", "--recipients-file", "recipients"]
        }
        ("attest", ROOTS) => &["root"],
        ("keygen", KEYS) => &["-o", "new-key"],
        ("bench", GATES) => &["--gates"],
        ("bench", LINK) => &["link", "--listen", "127.0.0.1:0", "--wait-ms", "1"],
        ("bench", preset) => return (vec![preset, "--quick"], none),
        ("completions", TEXT) => &["bash"],
        ("man", TEXT) => &[],
        other => panic!("no command line for {other:?}"),
    };
    (words.to_vec(), none)
}

/// The words for an option: its value, and the options it requires.
fn words(command: &str, option: &str, mode: Mode, arena: &Arena) -> Vec<String> {
    let mut words = vec![format!("--{option}")];
    let is_flag = (command, option) == ("keygen", "sign");
    let root = match mode {
        CONTAINER | PIPE => "@container-root",
        SIDECAR | MIRRORS | PART | UPDATE => "@sidecar-root",
        STORES | AUDIT => "@stored-root",
        _ => "@root",
    };
    let value = VALUES.iter().find(|(name, _)| *name == option).map(|(_, value)| *value);
    match value.filter(|_| !is_flag) {
        Some("@recipient") => words.push(text(&arena.read("recipients"))),
        Some("@root") => words.push(root.to_owned()),
        Some("text") if command == "bench" => words.push("table".to_owned()),
        Some("30d") if command == "bench" => words.push("30".to_owned()),
        Some("places") if command == "repair" => words.push("p1".to_owned()),
        Some("places") => words.push("p3".to_owned()),
        Some("12") | None => words.extend(value.map(str::to_owned)),
        Some(value) => words.push(value.to_owned()),
    }
    let more = TOGETHER.iter().filter(|(of, name, _)| *name == option && (*of == command || *of == "*"));
    let own = |of: &str| of != "*" || !["encode", "protect"].contains(&command);
    // The line for stores has a root.
    let more = more
        .filter(|(of, .., more)| own(of) && !([STORES, AUDIT].contains(&mode) && more.contains(&"--root")));
    let more = more.flat_map(|(.., more)| more.iter());
    words.extend(more.map(|word| if *word == "@root" { root.to_owned() } else { (*word).to_owned() }));
    words
}

/// Options that choose the mode of a command.
const CHOOSING: [(&str, &str); 13] = [
    ("protect", "list"),
    ("encode", "stream"),
    ("encode", "to"),
    ("encode", "files-from"),
    ("encode", "null"),
    ("decode", "stream"),
    ("decode", "key-file"),
    ("decode", "from"),
    ("verify", "audit"),
    ("verify", "from"),
    ("verify", "roots"),
    ("repair", "from"),
    ("protect", "update"),
];

/// An option without effect is refused before any output is made.
#[test]
fn an_option_that_does_nothing_is_refused() {
    let arena = furnished();
    let before = arena.state();
    for command in &COMMANDS {
        for (options, acts_on) in command.options {
            for option in options.iter().filter(|option| !is_choosing(command.name, option)) {
                for mode in command.modes.iter().filter(|mode| !acts_on.contains(mode)) {
                    let (line, input) = line(command.name, mode, &arena);
                    let mut args = vec![command.name.to_owned()];
                    args.extend(line.iter().map(|word| (*word).to_owned()));
                    args.extend(words(command.name, option, mode, &arena));
                    let output = arena.pipe(&args, &input);
                    let said = text(&output.stderr);
                    assert_eq!(code(&output), 2, "{args:?} ({mode}): {said}");
                    assert!(said.starts_with("fec: "), "{args:?}: {said}");
                    names_why(command, option, mode, (&args, &said));
                    arena.unchanged(&before);
                }
            }
        }
    }
}

/// Asserts that a refusal names the option, and the one that chose the mode, and gives the advice of the table.
fn names_why(command: &table::Command, option: &str, mode: Mode, (args, said): (&[String], &str)) {
    // A root chooses among several inputs, or none of them has it.
    if matches!(command.name, "verify" | "repair") && option == "root" {
        return;
    }
    let is_together = |with: &&str| with.starts_with("--") && said.contains(*with);
    let together =
        TOGETHER.iter().filter(|(of, name, _)| *name == option && (*of == command.name || *of == "*"));
    let is_named = said.contains(&format!("--{option}"));
    assert!(is_named || together.flat_map(|(.., with)| with.iter()).any(is_together), "{args:?}: {said}");
    let of_option = command.options.iter().find(|(options, _)| options.contains(&option));
    let of_option = of_option.map_or(&[][..], |(_, modes)| modes);
    let mut choosers = command.chosen.iter().filter(|(_, modes)| modes.contains(&mode));
    if let Some((chooser, modes)) = choosers.next() {
        let chooser = format!("--{chooser}");
        let is_another = of_option.iter().all(|mode| !modes.contains(mode));
        assert!(!(is_another && args.contains(&chooser)) || said.contains(&chooser), "{args:?}: {said}");
    }
    let mut advice = command.advice.iter().filter(|(names, ..)| names.contains(&option));
    if let Some((.., advice)) = advice.find(|(_, modes, _)| modes.contains(&mode))
        && said.contains(&format!("it does nothing with {mode}"))
    {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(said).contains(&words(advice)), "{args:?}: {said}");
    }
}

/// Wrong use is told before any work, and by the option that is missing or that stands in the way.
#[test]
fn a_refusal_comes_before_work_and_names_both_options() {
    let arena = furnished();
    for (args, says) in [
        (&["encode", "none", "--rate", "1/6"][..], "encode --rate: --stream is missing"),
        (&["encode", "none", "--spool", "."], "encode --spool: --to is missing"),
        (
            &["encode", "a", "--to", "p2", "--keep"],
            "encode --keep: it does nothing with stores, and cannot be used with --to",
        ),
        (&["encode", "--files-from", "none", "--to", "p2"], "and cannot be used with --files-from"),
        (
            &["encode", "a", "--stream", "-o", "x", "--ttl", "2"],
            "pipe; it is for a live stream over the network",
        ),
        (&["decode", "none", "--timeout", "1s"], "decode --timeout: --from is missing"),
        (&["decode", "none", "--interface", "lo"], "udp://ADDRESS:PORT"),
        (&["decode", "--stream", "none", "--root", "@root"], "and cannot be used with --stream"),
        (&["verify", "none", "--limit", "1M"], "verify --limit: --from is missing"),
        (&["verify", "--roots", "none", "--quick"], "and cannot be used with --roots"),
        (
            &["verify", "--from", "none", "--root", "@root", "--roots", "x"],
            "and cannot be used with --from\n",
        ),
        (&["repair", "none", "--now"], "repair --now: --from is missing"),
        (&["protect", "none", "--signer", "sk.pub"], "protect --signer: --update is missing"),
        (&["bench", "--gates", "--require-backend", "scalar"], "and cannot be used with --gates"),
        (
            &["bench", "kernels", "--gates"],
            "bench --gates: it does nothing with kernels; it is for reference, seal\n",
        ),
    ] {
        let said = arena.refuses(args, 2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

/// Every option is accepted in the modes that the table gives for it.
#[test]
fn an_option_that_acts_is_taken() {
    let arena = furnished();
    let furniture = listing(&arena.work);
    for command in COMMANDS.iter().filter(|command| !["bench", "keygen"].contains(&command.name)) {
        for (options, acts_on) in command.options {
            // --passphrase would ask for one, and --follow does not end.
            for option in options.iter().filter(|option| !["passphrase", "follow"].contains(*option)) {
                for mode in acts_on.iter() {
                    let (line, input) = line(command.name, mode, &arena);
                    let mut args: Vec<String> = vec![command.name.to_owned()];
                    let extra = words(command.name, option, mode, &arena);
                    let is_there = line.contains(&extra[0].as_str());
                    args.extend(line.iter().map(|word| (*word).to_owned()));
                    if !is_there && *option != "output" {
                        args.extend(extra);
                    }
                    let output = arena.pipe(&args, &input);
                    let said = text(&output.stderr);
                    let told = [": it does nothing with", ": --"].map(|why| format!(" --{option}{why}"));
                    let is_idle = told.iter().any(|told| said.contains(told));
                    assert!(!is_idle, "{args:?} ({mode}): {said}");
                    for made in listing(&arena.work).iter().filter(|name| !furniture.contains(name)) {
                        let path = arena.path(made);
                        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
                    }
                }
            }
        }
    }
}
