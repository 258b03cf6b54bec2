//! Commands that reports print work in the situation that prints them: with the same proof, keys and base.

use super::*;

/// A way to name a sidecar: the options to make it with, and those to verify it with.
type Situation = (&'static str, Vec<String>, Vec<String>);

fn run(arena: &Arena, args: &[String]) -> Output {
    let mut command = arena.fec(args);
    command.env("FEC_SIGN_PASSPHRASE", "").env("FEC_PASSPHRASE", "twelve or more letters");
    command.output().expect("fec starts")
}

/// Runs the command that stands below some words of a report, and returns its own report.
#[track_caller]
pub(super) fn run_printed(arena: &Arena, said: &str, above: &str, recipient: &str, exit: i32) -> String {
    let mut lines = said.lines().map(str::trim).skip_while(|line| !line.contains(above));
    let line = lines.find(|line| line.starts_with("fec ")).unwrap_or_else(|| panic!("{above}: {said}"));
    fs::remove_file(arena.path("undo.tar")).ok();
    let word = |word: &str| match word {
        "FILE" => "undo.tar".to_owned(),
        "KEY" => recipient.to_owned(),
        "KEYFILE" => "signing".to_owned(),
        word => word.to_owned(),
    };
    let output = run(arena, &line.split(' ').skip(1).map(word).collect::<Vec<_>>());
    assert_eq!(common::code(&output), exit, "{line}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stderr) + &text(&output.stdout)
}

fn situations(recipient: &str) -> Vec<Situation> {
    let words = |words: &str| words.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
    vec![
        ("plain", vec![], vec![]),
        ("root", vec![], words("--root @root")),
        ("base", vec![], words("--base copy")),
        ("identity", words(&format!("--recipient {recipient}")), words("-i key")),
        ("passphrase", words("--passphrase"), words("--passphrase")),
        ("signer", words("--sign signing"), words("--signer signing.pub")),
    ]
}

#[test]
fn each_printed_command_works_where_it_is_printed() {
    for nth in 0..6 {
        let arena = Arena::new();
        let recipient = text(&arena.expect(["keygen", "-o", "key"], 0).stdout).trim().to_owned();
        let keygen = ["keygen", "--sign", "-o", "signing", "-q"].map(str::to_owned);
        expect(&run(&arena, &keygen), 0);
        let (name, make, options) = situations(&recipient).swap_remove(nth);
        age(&arena.write("d/a", &payload(1, 20_000)), 1);
        age(&arena.write("d/b", &payload(2, 20_000)), 2);
        fs::create_dir(arena.path("d/void")).unwrap();
        let protect = ["protect", "d", "-q", "-r", "60%"].map(str::to_owned);
        arena.write("root", &run(&arena, &[&protect[..], &make].concat()).stdout);
        let top = if name == "base" { "copy/d" } else { "d" };
        if name == "base" {
            for (file, seconds) in [("a", 1), ("b", 2)] {
                age(&arena.write(format!("copy/d/{file}"), &arena.read(format!("d/{file}"))), seconds);
                // A command without --base would mend this one.
                flip(&arena.path(format!("d/{file}")), 700);
            }
            fs::create_dir(arena.path("copy/d/void")).unwrap();
        }
        let (a, b) = (arena.path(top).join("a"), arena.path(top).join("b"));
        let beside = seen(&arena.path("d"));
        let verify = [&["verify".to_owned(), "d.fecp".to_owned()][..], &options].concat();
        let verify = |exit: i32| {
            let output = run(&arena, &verify);
            assert_eq!(
                common::code(&output),
                exit,
                "{name}: {}{}",
                text(&output.stdout),
                text(&output.stderr)
            );
            text(&output.stdout)
        };
        flip(&a, 5000);
        make_younger(&arena, "d.fecp", top);
        edit(&b, b"edited");
        let said = verify(1);
        let left = run_printed(&arena, &said, "what is damaged can be mended", &recipient, 1);
        assert!(fs::read(&a).unwrap() == payload(1, 20_000), "{name}");
        assert_eq!(fs::read(&b).unwrap(), b"edited", "{name}");
        run_printed(&arena, &left, "to make it what it was", &recipient, 0);
        assert!(fs::read(&b).unwrap() == payload(2, 20_000), "{name}");
        verify(0);
        edit(&b, b"edited again");
        run_printed(&arena, &verify(1), "to make it what it was", &recipient, 0);
        // Everything is lost but a folder, which can be mended; then nothing can.
        let kept = [&a, &b].map(|path| fs::read(path).unwrap());
        [&a, &b].into_iter().for_each(|path| fs::remove_file(path).unwrap());
        let repair = [&["repair".to_owned(), "d.fecp".to_owned()][..], &options].concat();
        for said in [verify(3), text(&run(&arena, &repair).stderr)] {
            assert!(!said.contains("--partial") && said.contains("fec repair --from URL "), "{name}: {said}");
        }
        let void = arena.path(top).join("void");
        fs::remove_dir(&void).unwrap();
        let said = run_printed(&arena, &verify(3), "to mend what can be", &recipient, 3);
        assert!(!said.contains("nothing to repair") && void.is_dir(), "{name}: {said}");
        fs::remove_dir(&void).unwrap();
        let refused = text(&run(&arena, &repair).stderr);
        run_printed(&arena, &refused, "to see what is lost", &recipient, 3);
        run_printed(&arena, &refused, "to mend what can be", &recipient, 3);
        [&a, &b].iter().zip(kept).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        age(&a, 1);
        edit(&b, b"edited once more");
        fs::write(arena.path(top).join("new"), b"a new one").unwrap();
        assert!(name != "base" || seen(&arena.path("d")) == beside, "another tree was written to");
        let said = verify(1);
        let root = run_printed(&arena, &said, "to add what is new", &recipient, 0);
        arena.write("root", root.lines().last().unwrap().as_bytes());
        verify(0);
    }
}

/// A protected path that is missing is named in no update, which would give up its protection; it is mended first.
#[test]
fn an_update_is_not_advised_without_what_is_missing() {
    let arena = Arena::new();
    let recipient = String::new();
    for name in ["a/1", "a/2", "c"] {
        arena.write(name, &payload(3, 9_000));
    }
    arena.expect(["protect", "a", "c", "-o", "s.fecp", "-q", "-r", "60%"], 0);
    fs::remove_file(arena.path("c")).unwrap();
    edit(&arena.path("a/1"), &[b"edited", &payload(3, 9_000)[6..]].concat());
    let said = text(&arena.expect(["verify", "s.fecp"], 1).stdout);
    assert!(said.contains("fec protect --update PATH -o s.fecp\n"), "{said}");
    run_printed(&arena, &said, "what is damaged can be mended", &recipient, 1);
    let said = text(&arena.expect(["verify", "s.fecp"], 1).stdout);
    run_printed(&arena, &said, "to protect it as it is now", &recipient, 0);
    let said = text(&arena.expect(["verify", "s.fecp"], 0).stdout);
    assert!(said.contains("3 files, 1 folder: all intact"), "{said}");
}

/// A repair into another folder, or one that only shows what it would do, is advised as such. Where not all can be
/// mended, the repair that is advised writes.
#[test]
fn advice_keeps_where_a_repair_writes() {
    let arena = Arena::new();
    arena.write("d/a", &payload(1, 20_000));
    arena.expect(["protect", "d", "-q", "-r", "10%"], 0);
    arena.write("d/a", &payload(2, 20_000));
    for (options, kept) in [
        (&["-o", "out"][..], "fec repair --partial -o out d.fecp"),
        (&["-o", "out", "--dry-run"], "fec repair --partial -o out d.fecp"),
        (&["--revert"], "fec repair --partial --revert d.fecp"),
    ] {
        let said = text(&arena.expect([&["repair", "d.fecp"][..], options].concat(), 3).stderr);
        assert!(said.contains(&format!("  {kept}\n")), "{said}");
        let said = text(&arena.expect([&["repair", "d"][..], options].concat(), 3).stderr);
        assert!(said.contains(&format!("  {kept}\n")), "{said}");
    }
}

/// Names that look like options, and bytes that are not shown, come back from a shell as they are.
#[test]
fn printed_names_are_what_a_shell_makes_of_them() {
    use std::os::unix::ffi::OsStrExt;
    for name in
        [&b"-d"[..], b"-d e", b"it's", b"n\xff", b"a\tb\x1b[31m", "\u{202e}x\\y'".as_bytes(), "é".as_bytes()]
    {
        let arena = Arena::new();
        let folder = std::ffi::OsStr::from_bytes(name);
        let file = arena.path(folder).join("a");
        fs::create_dir(arena.path(folder)).unwrap();
        fs::write(&file, payload(1, 9_000)).unwrap();
        let mut protect = arena.fec(["protect", "-q", "--"]);
        expect(&protect.arg(folder).output().unwrap(), 0);
        edit(&file, &[b"edited", &payload(1, 9_000)[6..]].concat());
        let mut verify = arena.fec(["verify", "--"]);
        let mut sidecar = folder.to_owned();
        sidecar.push(".fecp");
        let said = text(&verify.arg(&sidecar).output().unwrap().stdout);
        let line = said.lines().map(str::trim).find(|line| line.starts_with("fec protect --update"));
        let line = line.unwrap_or_else(|| panic!("{said}")).strip_prefix("fec ").unwrap();
        let fec = common::fec();
        let words = [fec.get_program()].into_iter().chain(fec.get_args());
        let words: Vec<String> = words.map(|word| word.to_str().unwrap().to_owned()).collect();
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", &format!("$FEC {line}")]).env("FEC", words.join(" ")).current_dir(&arena.work);
        expect(&shell.output().unwrap(), 0);
        let mut verify = arena.fec(["verify", "--"]);
        expect(&verify.arg(&sidecar).output().unwrap(), 0);
    }
}
