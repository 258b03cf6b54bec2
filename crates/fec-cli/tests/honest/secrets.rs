//! No secret is repeated, wherever it stands on a command line.

use super::furnished;
use crate::common::{Arena, fec, text};

const PASSPHRASE: &str = "correct horse battery staple";
const AGE: &str = "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SKCALHU";

fn arena() -> Arena {
    let arena = furnished();
    let mut keygen = arena.fec(["keygen", "--sign", "-o", "sk", "-q"]);
    keygen.env("FEC_SIGN_PASSPHRASE", "");
    assert!(keygen.output().unwrap().status.success());
    arena
}

/// The options of a command that take a value, as its help lists them.
fn options(arena: &Arena, command: &str) -> Vec<String> {
    let help = text(&arena.expect([command, "--help"], 0).stdout);
    let lines = help.lines().filter_map(|line| line.trim().split_once("--"));
    let options =
        lines.filter(|(before, _)| before.is_empty() || (before.len() == 4 && before.starts_with('-')));
    let options = options.filter_map(|(_, option)| option.split_once(" <"));
    options.map(|(name, _)| format!("--{name}")).filter(|name| !name.contains(' ')).collect()
}

/// Parts of a secret that no output may contain.
fn parts(secret: &str) -> [String; 2] {
    let secret = secret.trim_end_matches("\n-----END OPENSSH PRIVATE KEY-----");
    let half = secret.len() / 2;
    [secret[half - 6..half + 6].to_owned(), secret[secret.len() - 10..].to_owned()]
}

/// Asserts that no output repeats a secret, whether a variable holds a passphrase or none does.
#[track_caller]
fn is_not_repeated(arena: &Arena, args: &[&str], secret: &str) {
    for passphrase in ["", PASSPHRASE] {
        // The variable tells that these are the components of a path.
        if passphrase.is_empty() && args.contains(&format!("x/{PASSPHRASE}").as_str()) {
            continue;
        }
        let mut command = arena.fec(args);
        command.env("FEC_PASSPHRASE", passphrase);
        let output = command.output().expect("fec starts");
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        for part in parts(secret) {
            assert!(!said.contains(&part), "{args:?}: {said}");
        }
    }
}

/// Each option of each command gets each kind of secret, with `=` and as a separate word.
#[test]
fn no_option_repeats_a_secret() {
    let arena = arena();
    let sk = text(&arena.read("sk"));
    let key = sk.lines().nth(1).expect("a key").to_owned();
    let openssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\nQyNTUxOQAAACDxqwertyuiopasdfghjkl\n-----END OPENSSH PRIVATE KEY-----";
    let secrets = [AGE, key.as_str(), sk.trim(), openssh, PASSPHRASE];
    for (command, input) in [
        ("encode", "a"),
        ("decode", "a.fec"),
        ("verify", "a.fec"),
        ("verify", "d.fecp"),
        ("repair", "a.fec"),
        ("protect", "d"),
        ("manifest", "d.fecp"),
        ("attest", "a"),
        ("list", "d"),
        ("keygen", ""),
        ("bench", ""),
    ] {
        let options = options(&arena, command);
        assert!(options.len() > 3, "{command}: {options:?}");
        for option in options {
            // An option that writes a file of that name reports the name. Other options refuse the secret, or do not
            // find it.
            let writes =
                ["--output", "--root-file", "--undo", "--state", "--spool", "--dir", "--exclude", "--to"];
            if writes.contains(&option.as_str()) {
                continue;
            }
            for secret in secrets {
                let input: &[&str] = if input.is_empty() { &[] } else { &[input] };
                is_not_repeated(&arena, &[&[command], input, &[&option, secret]].concat(), secret);
                let joined = format!("{option}={secret}");
                is_not_repeated(&arena, &[&[command], input, &[&joined, "--json"]].concat(), secret);
            }
        }
    }
}

/// Secrets as paths, behind an option without a value, and as commands.
#[test]
fn no_path_repeats_a_secret() {
    let arena = arena();
    let sk = text(&arena.read("sk"));
    let key = sk.lines().nth(1).expect("a key").to_owned();
    for command in ["encode", "decode", "verify", "repair", "protect", "list", "manifest", "attest"] {
        for secret in [AGE, &AGE.to_ascii_lowercase(), key.as_str(), PASSPHRASE] {
            is_not_repeated(&arena, &[command, secret], secret);
            is_not_repeated(&arena, &[command, "a.fec", secret, "--json"], secret);
            is_not_repeated(&arena, &[command, "-vv", secret], secret);
            is_not_repeated(&arena, &[command, "a.fec", &format!("--passphrase={secret}")], secret);
            is_not_repeated(&arena, &[command, &format!("x/{secret}")], secret);
        }
        is_not_repeated(&arena, &[command, "--passphrase", "hunter2hunter2"], "hunter2hunter2");
        is_not_repeated(
            &arena,
            &[command, "--sign-passphrase-file", "hunter2hunter2", "a"],
            "hunter2hunter2",
        );
    }
    for secret in [AGE, key.as_str(), PASSPHRASE] {
        is_not_repeated(&arena, &[secret], secret);
        is_not_repeated(&arena, &["keygen", "-o", "k", secret], secret);
        is_not_repeated(&arena, &["bench", secret], secret);
        is_not_repeated(&arena, &["completions", secret], secret);
        is_not_repeated(&arena, &["man", secret], secret);
    }
    let output = fec().args([AGE, "--json"]).output().unwrap();
    assert!(!text(&output.stdout).contains("QQQSYQ"), "{output:?}");
}

/// Passwords and tokens in addresses.
#[test]
fn no_address_repeats_a_password() {
    let arena = arena();
    let secret = "hunter2hunter2";
    let root = "ab".repeat(32);
    for address in [
        "s3://user:SECRET@bucket/x",
        "s3://SECRET@bucket/x",
        "https://host/x?token=SECRET",
        "https://host/x#SECRET",
        "s3://bucket,endpoint=http://user:SECRET@host",
        "s3://bucket,secret=SECRET",
        "s3://bucket,SECRET",
        "user:SECRET@host:/x",
        "ftp://user:SECRET@host",
        "s3:user:SECRET@b",
        "udp://user:SECRET@host:99",
        "AWS_SESSION_TOKEN=SECRET",
        "s3://AKIA:hunter2/SECRET@bucket",
    ] {
        let address = address.replace("SECRET", secret);
        let list = arena.write("list", format!("{address}\n").as_bytes());
        let list = format!("@{}", list.display());
        for place in [address.as_str(), &list] {
            is_not_repeated(&arena, &["encode", "a", "--to", place, "-n"], secret);
            is_not_repeated(
                &arena,
                &["decode", "--from", place, "--root", &root, "-o", "out", "--retries", "0"],
                secret,
            );
        }
        for command in ["encode", "decode", "verify", "repair", "protect", "list", "manifest", "attest"] {
            is_not_repeated(&arena, &[command, &address], secret);
            is_not_repeated(&arena, &[command, "a.fec", &address, "--json"], secret);
        }
        is_not_repeated(&arena, &["encode", "--stream", "a", "-o", &address, "-f", "--no-such"], secret);
        is_not_repeated(&arena, &["verify", "a.fec", "--root", &address], secret);
        is_not_repeated(&arena, &["verify", "a.fec", "--signer", &address], secret);
    }
}

/// The parser leaves out escape sequences and other characters that control a terminal.
#[test]
fn no_character_between_keeps_a_secret_from_being_hidden() {
    let arena = arena();
    for control in
        ["\u{1b}[31m", "\u{1b}", "\u{1b}]0;", "\u{7}", "\u{9b}31m", "\u{7f}", "\r", "\t", "\u{202e}", "'"]
    {
        for secret in [
            format!("correct{control} horse battery staple"),
            format!("correct horse battery{control} staple"),
            format!("{control}correct horse battery staple{control}"),
        ] {
            for option in ["--passphrase", "--root", "--range", "--max-memory", "--trim", "-t"] {
                is_not_repeated(&arena, &["decode", "a.fec", option, &secret], PASSPHRASE);
                is_not_repeated(
                    &arena,
                    &["decode", "a.fec", &format!("{option}={secret}"), "--json"],
                    PASSPHRASE,
                );
            }
            is_not_repeated(&arena, &["encode", "a", "--hash", &secret], PASSPHRASE);
            is_not_repeated(&arena, &["manifest", "d.fecp", "--passphrase", &secret], PASSPHRASE);
            is_not_repeated(&arena, &["manifest", "d.fecp", &secret], PASSPHRASE);
            is_not_repeated(&arena, &["decode", &format!("--{secret}")], PASSPHRASE);
            is_not_repeated(&arena, &["decode", "--", "a.fec", &secret], PASSPHRASE);
            is_not_repeated(&arena, &[&secret], PASSPHRASE);
        }
    }
    let secret = "correct\u{1b}[31m horse battery staple";
    for (args, says) in [
        (&["decode", "a.fec", "--root", secret][..], "invalid value '(hidden)' for '--root <HEX|@FILE>'"),
        (&["encode", "a", "--hash", secret], "invalid value '(hidden)' for '--hash <HASH>'"),
        (&[secret], "unrecognized subcommand '(hidden)'"),
    ] {
        let output = arena.run(args);
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}

/// Values that are no secrets are still named.
#[test]
fn names_that_are_wrong_are_told() {
    let arena = arena();
    for (args, says) in [
        (&["verify", "holiday-photos-2024"][..], "holiday-photos-2024"),
        (&["decode", "a.fec", "-i", "keys/mine.txt"], "keys/mine.txt"),
        (&["verify", "a.fec", "--root", "@roots/mine.txt"], "roots/mine.txt"),
        (
            &["verify", "a.fec", "--root", "@root"],
            "'@root' for '--root <HEX|@FILE>': read root: No such file",
        ),
        (&["verify", "a.fec", "--root", "@the-root-of-all"], "read the-root-of-all: No such file"),
        (&["verify", "a.fec", "--signer", "keys/mine.pub"], "keys/mine.pub"),
        (&["verify", "a.fec", "--max-memory", "1 lot"], "1 lot"),
        (&["verify", "a.fec", "--recieve"], "--recieve"),
        (&["decode", "a.fec", "--passphrase", "none"], "what stands behind --passphrase"),
    ] {
        let output = arena.run(args);
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}

/// A secret may consist of words of messages.
#[test]
fn a_message_stays_whole_around_what_is_hidden() {
    let arena = arena();
    let gone = "No such file or directory (os error 2)\n";
    let root = "ab".repeat(32);
    let not_there = "  (hidden): the place is not there\n";
    for (args, says) in [
        (&["decode", "--passphrase", "such"][..], format!("read (what stands behind --passphrase): {gone}")),
        (&["decode", "--passphrase", "file", "x"], format!("read (what stands behind --passphrase): {gone}")),
        (&["verify", "No such file or directory"], format!("read (hidden): {gone}")),
        (&["encode", "a", "-R", "Nosuchfileordirectory"], format!("read (what stands behind -R): {gone}")),
        (&["encode", "a", "-RNosuchfileordirectory"], format!("read (what stands behind -R): {gone}")),
        (&["decode", "a.fec", "-qi", "os-error-2-is-it"], format!("read (what stands behind -i): {gone}")),
        (
            &["verify", "a.fec", "--root", "e"],
            "invalid value '(hidden)' for '--root <HEX|@FILE>': a root".into(),
        ),
        (&["verify", "a.fec", "--root", "hexadecimal digits"], "invalid value '(hidden)' for '--root".into()),
        (&["verify", "a.fec", "--need", "e"], "invalid value 'e' for '--need <N>': invalid digit".into()),
        (&["decode", "--from", "the place is not", "--root", &root, "-o", "o"], not_there.into()),
        (
            &["manifest", "d.fecp", "--passphrase", "found"],
            "argument '(what stands behind --passphrase)' found".into(),
        ),
    ] {
        let output = arena.run(args);
        assert!(text(&output.stderr).contains(&says), "{args:?}: {output:?}");
    }
}

/// Advice is followed as it is printed, so that nothing in it is hidden.
#[test]
fn advice_hides_nothing() {
    let arena = arena();
    for (input, is_named) in
        [("photos of my holidays", false), ("me:hunter2@host", false), ("my photos.fec", true)]
    {
        let _ = std::fs::remove_dir_all(arena.path("a.shards"));
        let said = text(&arena.expect(["encode", "a", input], 4).stderr);
        let advice = format!("  fec encode a -o '{input}'\n");
        assert!(said.contains("an output is named with -o"), "{said}");
        assert_eq!(said.contains(&advice), is_named, "{said}");
        assert!(!said.contains("-o '(hidden)"), "{said}");
        arena.expect(["encode", "a", "-o", input, "-q"], 0);
        // The name of an output is told.
        let said = arena.refuses(["encode", "a", "-o", input], 2);
        assert_eq!(said.contains(input), input != "me:hunter2@host", "{said}");
    }
}

/// A passphrase that is the name of something else too can be neither told nor hidden.
#[test]
fn a_passphrase_that_is_a_word_of_the_line_is_refused() {
    let arena = arena();
    arena.write("holiday-photos", b"bytes");
    let before = arena.state();
    for variable in ["FEC_PASSPHRASE", "FEC_SIGN_PASSPHRASE"] {
        for args in [
            &["encode", "holiday-photos"][..],
            &["encode", "a", "-o", "holiday-photos"],
            &["encode", "a", "-oholiday-photos", "-f"],
            &["verify", "a.fec", "--base=holiday-photos", "--json"],
            &["verify", "a.fec", "--no-such", "holiday-photos"],
        ] {
            let mut command = arena.fec(args);
            let output = command.env(variable, "holiday-photos").output().expect("fec starts");
            let said = [text(&output.stdout), text(&output.stderr)].concat();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains(variable) && !said.contains("holiday-photos"), "{args:?}: {said}");
        }
        // Other names are told whole, and no message is searched for a passphrase.
        for (passphrase, args, says) in [
            ("directory (os", &["verify", "none"][..], "read none: No such file or directory (os error 2)"),
            (
                "day-photos.fec",
                &["encode", "holiday-photos", "-o", "holiday-photos.fec"],
                "holiday-photos.fec",
            ),
        ] {
            let output = arena.fec(args).env(variable, passphrase).output().expect("fec starts");
            assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
        }
        std::fs::remove_file(arena.path("holiday-photos.fec")).expect("it was made");
    }
    arena.unchanged(&before);
}
