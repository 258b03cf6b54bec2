//! Mistakes of people who are new to the command line, and the messages for them.

mod common;

use common::{Arena, payload, text};

fn arena() -> Arena {
    let arena = Arena::new();
    for (seed, name) in ["a", "b"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 100_000));
    }
    arena
}

/// Messages call `-` standard input or standard output.
#[test]
fn standard_input_and_output_are_called_so() {
    let arena = arena();
    let container = arena.pipe(["encode"], &arena.read("a"));
    assert!(text(&container.stderr).starts_with("standard input: 97.6 KiB -> "));
    let decoded = arena.pipe(["decode"], &container.stdout);
    assert!(text(&decoded.stderr).starts_with("standard output: 97.6 KiB restored"), "{decoded:?}");
    let lost = arena.pipe(["decode"], &container.stdout[..50_000]);
    assert!(text(&lost.stderr).starts_with("fec: decode standard input: "), "{lost:?}");
    // Programs get the name as it was written.
    let decoded = arena.pipe(["decode", "--json"], &container.stdout);
    assert!(text(&decoded.stderr).contains("\"output\":\"-\""));
}

/// A command can be copied in one piece from a terminal of 80 columns.
#[test]
fn commands_stand_on_lines_of_their_own() {
    let arena = arena();
    arena.write("d/photo", b"a photo");
    arena.expect(["protect", "d"], 0);
    arena.write("d/photo", b"another photo");
    arena.write("d/new", b"a new one");
    let report = text(&arena.expect(["verify", "d.fecp"], 1).stdout);
    for command in ["  fec protect --update d", "  fec repair --revert --undo FILE d.fecp"] {
        assert!(report.lines().any(|line| line == command), "{command}: {report}");
    }
    let said = arena.refuses(["encode", "d"], 2);
    assert!(said.lines().any(|line| line.trim() == "tar c d | fec encode - -o d.tar.fec"), "{said}");
}

/// The parser's own words for wrong use are replaced.
#[test]
fn wrong_use_is_told_in_plain_words() {
    let arena = arena();
    for (args, says) in [
        (&["repair"][..], "fec: fec repair: PATH is missing"),
        (&["protect"], "fec: fec protect: PATH is missing"),
        (&["--root", "x", "decode"], "put it behind a command, as in: fec decode --root"),
        (&["encode", "a", "--recovery=60%"], "it is a number of shards; for per cent there is -r"),
    ] {
        let said = arena.refuses(args, 2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
}

/// A pipe in which the first command failed.
#[test]
fn nothing_from_a_pipe_is_told() {
    let arena = arena();
    let warning = "warning: nothing came from standard input";
    assert!(text(&arena.pipe(["encode", "-", "-o", "none.fec"], b"").stderr).starts_with(warning));
    arena.write("empty", b"");
    let file = arena.expect(["encode", "empty", "-o", "empty.fec"], 0);
    assert!(!text(&file.stderr).contains("warning"));
}

/// A root or an output in the wrong place.
#[test]
fn what_stands_in_a_wrong_place_is_recognised() {
    let arena = arena();
    let root = text(&arena.expect(["encode", "a", "--root-file", "root.txt"], 0).stdout);
    let root = root.trim();
    for command in ["decode", "verify", "repair"] {
        let said = arena.refuses([command, "a.shards", root], 4);
        assert!(said.lines().any(|line| line.trim() == format!("--root {root}")), "{said}");
        let said = arena.refuses([command, "a.shards", "--root", "root.txt"], 2);
        assert!(said.contains("--root @root.txt"), "{said}");
    }
    assert!(arena.refuses(["verify", "a.shards", "--root", "none.txt"], 2).contains("64 hexadecimal digits"));
    let said = arena.refuses(["decode", "a.shards", "out"], 4);
    assert!(said.lines().any(|line| line.trim() == "fec decode a.shards -o out"), "{said}");
    let said = text(&arena.expect(["encode", "b", "my output.fec"], 4).stderr);
    assert!(said.lines().any(|line| line.trim() == "fec encode b -o 'my output.fec'"), "{said}");
    // A missing file is not taken for an output if one is named, or if the file stands in a list.
    assert!(!arena.refuses(["decode", "a.shards", "none", "-o", "out"], 4).contains("-o"));
    arena.write("list", b"b\nnone\n");
    assert!(!text(&arena.expect(["encode", "--files-from", "list", "-f"], 4).stderr).contains("-o"));
}

/// Containers or a sidecar stand where shard files are looked for.
#[test]
fn containers_and_sidecars_are_named_with_the_command_for_them() {
    let arena = arena();
    for name in ["safe/a.fec", "safe/b.fec", "safe/c.fec", "safe/d.fec"] {
        std::fs::create_dir_all(arena.path("safe")).unwrap();
        arena.expect(["encode", "a", "-o", name], 0);
    }
    let said = arena.refuses(["decode", "safe"], 3);
    let all = "4 containers are here, and no shard files: safe/a.fec, safe/b.fec, safe/c.fec and 1 more";
    assert!(said.contains(all), "{said}");
    assert!(said.lines().any(|line| line.trim() == "fec decode safe/a.fec"), "{said}");
    let said = arena.refuses(["decode", "safe/a.fec", "safe/b.fec"], 2);
    assert!(said.contains("2 containers are here"), "{said}");
    arena.write("photos/one", b"a photo");
    arena.expect(["protect", "photos"], 0);
    arena.expect(["protect", "a", "b", "-o", "two.fecp"], 0);
    let said = arena.refuses(["decode", "photos.fecp"], 2);
    assert!(said.contains("it is a sidecar") && said.contains("\n       fec repair photos.fecp"), "{said}");
    let said = arena.refuses(["decode", "photos"], 2);
    assert!(said.contains("\n       fec repair photos.fecp"), "{said}");
    for (sidecar, command) in
        [("photos.fecp", "fec protect --update photos"), ("two.fecp", "fec protect --update a b -o two.fecp")]
    {
        let said = arena.refuses(["protect", "--update", sidecar], 2);
        assert!(said.lines().any(|line| line.trim() == command), "{said}");
        arena.expect(command.split(' ').skip(1), 0);
    }
}

/// A report names the files of another encoding in a folder.
#[test]
fn strays_are_named() {
    let arena = arena();
    arena.expect(["encode", "a"], 0);
    arena.expect(["encode", "b"], 0);
    for nth in 10..15 {
        let name = format!("b.0{nth}.shard");
        std::fs::copy(arena.path(format!("b.shards/{name}")), arena.path(format!("a.shards/{name}")))
            .unwrap();
    }
    let named = ": a.shards/b.010.shard, a.shards/b.011.shard, a.shards/b.012.shard and 2 more";
    assert!(text(&arena.expect(["verify", "a.shards"], 0).stdout).contains(named));
    assert!(text(&arena.expect(["decode", "a.shards", "-o", "out"], 0).stderr).contains(named));
}

/// However great the damage, the first line is the verdict and few lines follow. -v lists all.
#[test]
fn the_verdict_stands_first_and_what_follows_is_short() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    arena.expect(["encode", "a"], 0);
    let len = arena.read("a.fec").len();
    (0..50).for_each(|nth| common::flip(&arena.path("a.fec"), nth * len / 100 * 2 + 1000));
    (0..50).for_each(|nth| common::flip(&arena.path(format!("a.shards/a.0{nth:02}.shard")), 2000));
    for nth in 0..100 {
        arena.write(format!("d/{nth}"), format!("number {nth}").as_bytes());
    }
    arena.expect(["protect", "d", "-r", "100%"], 0);
    (10..60).for_each(|nth| std::fs::remove_file(arena.path(format!("d/{nth}"))).unwrap());
    for (name, verdict, damage) in [
        ("a.fec", "50 of 100 shards intact, 0 damaged, 50 missing", "  damaged: bytes "),
        ("a.shards", "50 of 100 shards intact, 50 damaged, 0 missing", "  damaged: shard "),
        ("d.fecp", "100 files, 1 folder: 50 missing", "  missing    d/"),
    ] {
        let report = |args: &[&str]| text(&arena.expect([&["verify", name], args].concat(), 1).stdout);
        let told = |report: &str| report.lines().filter(|line| line.starts_with(damage)).count();
        let short = report(&[]);
        assert_eq!(short.lines().next(), Some(verdict));
        assert!(short.lines().count() <= 20 && short.ends_with(" more; -v lists all\n"), "{short}");
        assert!((1..=10).contains(&told(&short)), "{short}");
        let all = report(&["-v"]);
        assert!(all.starts_with(verdict) && !all.contains("lists all"), "{all}");
        assert_eq!(told(&all), 50, "{all}");
    }
}

/// With -q, nothing is printed while all is well, and otherwise a line on standard error. Standard output gets nothing.
#[test]
fn damage_is_told_in_a_line_where_quiet_was_asked_for() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    arena.expect(["encode", "b", "-o", "b.fec"], 0);
    arena.write("d/one", b"one");
    arena.expect(["protect", "d"], 0);
    let quiet = |args: &[&str], exit: i32| {
        let output = arena.expect([&["verify", "-q"], args].concat(), exit);
        assert!(output.stdout.is_empty(), "{output:?}");
        text(&output.stderr)
    };
    for args in [&["a.fec"][..], &["a.fec", "b.fec"], &["d.fecp"], &["a.fec", "--need", "100"]] {
        assert_eq!(quiet(args, 0), "", "{args:?}");
    }
    common::flip(&arena.path("a.fec"), 2000);
    std::fs::remove_file(arena.path("d/one")).unwrap();
    let damaged = "fec: verify a.fec: damaged: 99 of 100 shards intact, 1 missing; any 66 more may be lost\n";
    assert_eq!(quiet(&["a.fec"], 1), damaged);
    assert_eq!(quiet(&["a.fec", "b.fec"], 1), damaged);
    assert_eq!(quiet(&["d.fecp"], 1), "fec: verify d.fecp: 1 file, 1 folder: 1 missing\n");
    assert_eq!(quiet(&["a.fec", "--need", "99"], 0), "");
    assert!(
        quiet(&["a.fec", "--need", "100"], 3).starts_with("fec: verify a.fec: not enough: 100 of each set")
    );
    let repaired = arena.expect(["repair", "-q", "d.fecp"], 0);
    assert!(repaired.stdout.is_empty() && repaired.stderr.is_empty(), "{repaired:?}");
    let json = arena.expect(["verify", "-q", "--json", "a.fec"], 1);
    assert!(json.stderr.is_empty() && json.stdout.starts_with(b"{"));
}

/// A name that begins with a dash stands behind `--`, or has its folder in front.
#[test]
fn names_may_begin_with_a_dash() {
    let arena = Arena::new();
    arena.write("-rf", b"payload");
    arena.refuses(["encode", "-rf", "-o", "x.fec"], 2);
    arena.expect(["encode", "-o", "x.fec", "-q", "--", "-rf"], 0);
    arena.expect(["encode", "-o", "y.fec", "-q", "./-rf"], 0);
    assert!(arena.read("x.fec") == arena.read("y.fec"));
    arena.expect(["decode", "x.fec", "-o", "out", "-q"], 0);
    assert_eq!(arena.read("out"), b"payload");
}

/// A screen with the options that most people need; all of them stand in --help.
#[test]
fn the_short_help_of_every_command_is_a_screen() {
    let arena = arena();
    let commands = [
        "",
        "encode",
        "decode",
        "verify",
        "repair",
        "protect",
        "list",
        "forget",
        "rekey",
        "manifest",
        "attest",
        "keygen",
        "bench",
        "bench link",
        "man",
    ];
    for command in commands {
        let help = |option: &str| {
            let words: Vec<&str> =
                command.split(' ').chain([option]).filter(|word| !word.is_empty()).collect();
            text(&arena.expect(words, 0).stdout)
        };
        let (short, long) = (help("-h"), help("--help"));
        assert!(short.lines().count() <= 22, "{command}: {short}");
        assert!(short.contains(&format!("Usage: fec {command}")) && short.contains("--help"), "{short}");
        assert!(long.lines().count() > 2 * short.lines().count(), "{command}: --help has all");
    }
    let long = text(&arena.expect(["help", "encode"], 0).stdout);
    assert!(long.contains("--set-size") && long == text(&arena.expect(["encode", "--help"], 0).stdout));
}

/// Words of other programs lead to the one for it.
#[test]
fn words_that_are_typed_from_habit_lead_to_the_right_ones() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    arena.write("d/one", b"one");
    for command in ["check", "info"] {
        assert_eq!(arena.expect([command, "a.fec"], 0).stdout, arena.expect(["verify", "a.fec"], 0).stdout);
    }
    for (line, advice) in [
        ("list a.fec", "fec verify a.fec"),
        ("ls a.fec", "fec verify PATH"),
        ("rm a.fec", "fec forget --root ROOT --from PLACE"),
        ("x a.fec", "fec decode PATH"),
        ("-d a.fec", "fec decode PATH"),
        ("-c a", "fec encode FILE"),
        ("update d", "fec protect --update PATH"),
        ("a", "fec encode a"),
        ("a.fec", "fec decode a.fec"),
        ("d", "fec protect d"),
        ("decode a.fec --stdout", "to standard output: -o -"),
        ("decode a.fec -c", "to standard output: -o -"),
        ("decode -C d a.fec", "into a folder: -o FOLDER/"),
        ("encode a --out b", "the output: -o PATH"),
        ("encode a --encrypt", "--recipient KEY, or --passphrase"),
        ("decode a.fec --decrypt", "-i KEYFILE, or --passphrase"),
        ("keygen", "add --output FILE"),
        ("decode --from d", "add --root HEX|@FILE"),
        ("bench link", "fec bench link --help"),
        ("encode a --group-size 8M", "a number of sets, not a size"),
        ("encode a -r 5", "write it with %, as in 5%"),
        ("protect d -r 5", "write it with %, as in 5%"),
    ] {
        let said = arena.refuses(line.split(' ').collect::<Vec<_>>(), 2);
        assert!(said.contains(advice) && said.lines().count() <= 4, "{line}: {said}");
    }
    // A secret in the wrong place is not repeated.
    let key = "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SKCALHU";
    arena.write(key, b"a file with the name of a secret");
    assert!(!arena.refuses([key], 2).contains(key));
}

/// The first line says what it costs.
#[test]
fn encode_says_how_much_larger_it_makes_a_file() {
    let arena = arena();
    for (options, cost) in
        [(&["-r", "17%"][..], "1.19 x: "), (&["-k", "10"], "7.7 x: "), (&["-m", "0"], "1.00 x: ")]
    {
        let args = [&["encode", "big", "-f", "-o", "big.fec"], options].concat();
        arena.write("big", &payload(3, 4_000_000));
        let said = text(&arena.expect(args, 0).stderr);
        let first = said.lines().next().unwrap();
        assert!(first.starts_with("big: 3.8 MiB -> ") && first.contains(cost), "{said}");
    }
    let said = text(&arena.expect(["encode", "a", "-o", "one.fec", "-r", "1%"], 0).stderr);
    assert!(said.contains("mends no gap, only the loss of any 1 of 100 shards"), "{said}");
    arena.write("empty", b"");
    assert!(!text(&arena.expect(["encode", "empty"], 0).stderr).contains(" x: "));
}

/// A place that was hit is one line.
#[test]
fn damage_at_one_place_of_a_container_is_a_line() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    let mut bytes = arena.read("a.fec");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 6000].fill(7);
    arena.write("a.fec", &bytes);
    let said = text(&arena.expect(["verify", "a.fec"], 1).stdout);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].starts_with("  damaged: bytes ") && lines[0].contains("KiB), of shards "), "{said}");
}

#[test]
fn what_another_program_compressed_is_named_so() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    for (head, name) in [(&b"\x1f\x8b\x08"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\0", "xz")]
    {
        // Incompressible bytes are stored as they are: pieces of records stand among them.
        let packed = [head, &arena.read("a.fec")[500..3000], &payload(5, 3000)].concat();
        arena.write("a.fec.packed", &packed);
        for command in ["verify", "decode", "repair"] {
            let said = arena.refuses([command, "a.fec.packed"], 2);
            assert!(said.contains(&format!("compressed ({name})")) && said.contains(" -d"), "{said}");
        }
        assert!(arena.refuses_pipe(["decode"], &packed, 2).contains("compressed"));
    }
}

#[test]
fn a_repair_of_too_few_shards_says_how_many_more_it_takes() {
    let arena = arena();
    arena.expect(["encode", "a"], 0);
    (10..100).for_each(|nth| std::fs::remove_file(arena.path(format!("a.shards/a.0{nth}.shard"))).unwrap());
    let said = arena.refuses(["repair", "a.shards"], 3);
    assert!(said.contains("10 of 100 shards found; 33 are needed: find 23 more"), "{said}");
}

/// An unencrypted key is made only where it was asked for.
#[test]
fn a_key_without_a_passphrase_is_not_made_by_accident() {
    let arena = arena();
    let said = arena.refuses(["keygen", "--sign", "-o", "k"], 2);
    assert!(said.contains("no terminal") && !arena.path("k").exists(), "{said}");
    let made = arena.fec(["keygen", "--sign", "-o", "k"]).env("FEC_SIGN_PASSPHRASE", "").output().unwrap();
    common::expect(&made, 0);
}

#[test]
fn a_folder_for_temporary_files_that_is_not_there_is_named() {
    let arena = arena();
    arena.expect(["encode", "a", "-o", "a.fec"], 0);
    let mut decode = std::process::Command::new("sh");
    let line = format!("cat a.fec | {} decode --deep -o - | cat", common::fec_words());
    let said = decode.args(["-c", &line]).current_dir(&arena.work).env("TMPDIR", "/none").output().unwrap();
    let said = text(&said.stderr);
    assert!(said.contains("folder /none") && said.contains("TMPDIR"), "{said}");
}

/// Updates make a sidecar longer, until one writes it again, with what it keeps.
#[test]
fn a_sidecar_that_is_written_again_says_so() {
    let arena = arena();
    for nth in 0..10 {
        arena.write(format!("d/{nth}"), &payload(nth, 400_000));
    }
    arena.expect(["protect", "d"], 0);
    let new = arena.read("d.fecp").len();
    let said = (0..12).map(|_| {
        let longer = [&arena.read("d/3")[..], &payload(9, 40_000)].concat();
        arena.write("d/3", &longer);
        let said = text(&arena.expect(["protect", "--update", "d"], 0).stderr);
        assert!(arena.read("d.fecp").len() < new * 3 / 2);
        said
    });
    let said: Vec<String> = said.collect();
    assert!(said.iter().any(|said| said.contains("was updated and written again: ")), "{said:?}");
    assert!(said.iter().all(|said| !said.contains("anew")), "{said:?}");
}

/// A disk that is mounted at a folder cannot be replaced, and is filled. Needs namespaces, and tests nothing without.
#[test]
fn an_empty_mounted_disk_is_an_output() {
    let arena = arena();
    std::fs::create_dir(arena.path("usb")).unwrap();
    let fec = common::fec_words();
    let line = format!(
        "mount -t tmpfs none usb || exit 77; {fec} encode a -q -o usb/ >root && {fec} verify usb --root @root -q && \
         test $(ls -A usb | wc -l) = 100 && {{ {fec} encode b -q -o usb/; test $? = 2; }} && test $(ls -A usb | wc -l) = 100 && \
         {fec} encode b -q -k 2 -m 1 -f -o usb/ >root && {fec} verify usb --root @root -q && test $(ls -A usb | wc -l) = 3"
    );
    let mut shell = std::process::Command::new("unshare");
    let Ok(output) = shell.args(["-rm", "sh", "-c", &line]).current_dir(&arena.work).output() else { return };
    if output.status.code() == Some(77) || text(&output.stderr).contains("unshare") {
        return;
    }
    common::expect(&output, 0);
}
