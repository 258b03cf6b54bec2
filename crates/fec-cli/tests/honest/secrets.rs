//! No secret is repeated, wherever it stands on a command line.

use crate::common::{Arena, fec, payload, text};

const PASSPHRASE: &str = "correct horse battery staple";
const AGE: &str = "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SKCALHU";

fn arena() -> Arena {
    let arena = Arena::new();
    arena.write("a", &payload(1, 5000));
    arena.write("d/one", b"one");
    arena.expect(["encode", "a", "-o", "a.fec", "-q"], 0);
    arena.expect(["protect", "d", "-q"], 0);
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

#[track_caller]
fn is_not_repeated(arena: &Arena, args: &[&str], secret: &str) {
    let mut command = arena.fec(args);
    command.env("FEC_PASSPHRASE", PASSPHRASE);
    let output = command.output().expect("fec starts");
    let said = [text(&output.stdout), text(&output.stderr)].concat();
    for part in parts(secret) {
        assert!(!said.contains(&part), "{args:?}: {said}");
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
        ("keygen", ""),
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
    for command in ["encode", "decode", "verify", "repair", "protect", "manifest"] {
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
        for command in ["encode", "decode", "verify", "repair", "protect", "manifest"] {
            is_not_repeated(&arena, &[command, &address], secret);
            is_not_repeated(&arena, &[command, "a.fec", &address, "--json"], secret);
        }
        is_not_repeated(&arena, &["encode", "--stream", "a", "-o", &address, "-f", "--no-such"], secret);
        is_not_repeated(&arena, &["verify", "a.fec", "--root", &address], secret);
        is_not_repeated(&arena, &["verify", "a.fec", "--signer", &address], secret);
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
        (&["verify", "a.fec", "--signer", "keys/mine.pub"], "keys/mine.pub"),
        (&["verify", "a.fec", "--max-memory", "1 lot"], "1 lot"),
        (&["verify", "a.fec", "--recieve"], "--recieve"),
        (&["decode", "a.fec", "--passphrase", "none"], "what stands behind --passphrase"),
    ] {
        let output = arena.run(args);
        assert!(text(&output.stderr).contains(says), "{args:?}: {output:?}");
    }
}
