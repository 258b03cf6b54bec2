//! The output streams of `verify`, and reports on several files and encodings.

mod common;

use common::{Arena, expect, flip, payload, root, text};
use serde_json::Value;
use std::fs::{self, File};
use std::process::Output;

const SHAPE: [&str; 4] = ["-k", "3", "-m", "2"];

/// Files a, b and c.
fn arena() -> Arena {
    let arena = Arena::new();
    for (seed, name) in ["a", "b", "c"].into_iter().enumerate() {
        arena.write(name, &payload(seed as u64, 5000));
    }
    arena
}

fn encode(arena: &Arena, args: &[&str]) -> Output {
    let output = arena.run([&["encode", "-q"], args, &SHAPE[..]].concat());
    expect(&output, 0);
    output
}

fn said(output: &Output) -> String {
    text(&output.stdout)
}

#[test]
fn verify_reports_on_standard_output_alone() {
    let arena = arena();
    encode(&arena, &["a", "-o", "a.fec"]);
    let output = arena.expect(["verify", "a.fec"], 0);
    assert!(said(&output).contains("5 of 5 shards intact") && output.stderr.is_empty());
    flip(&arena.path("a.fec"), 2000);
    let output = arena.expect(["verify", "a.fec"], 1);
    assert!(said(&output).contains("4 of 5 shards intact") && output.stderr.is_empty());
    let output = arena.expect(["verify", "a.fec", "-q"], 1);
    let line = "fec: verify a.fec: damaged: 4 of 5 shards intact, 1 missing; any 1 more may be lost\n";
    assert!(output.stdout.is_empty() && text(&output.stderr) == line, "{output:?}");
    let output = arena.expect(["verify", "a.fec", "--json"], 1);
    assert!(output.stdout.starts_with(b"{") && output.stderr.is_empty());
    // A command that cannot be carried out reports an error on standard error.
    let output = arena.expect(["verify", "none.fec"], 4);
    assert!(output.stdout.is_empty() && text(&output.stderr).starts_with("fec: "));
}

#[test]
fn several_files_are_listed_as_verify_checks_them() {
    let arena = arena();
    let output = encode(&arena, &["a", "b", "c"]);
    let lines = said(&output);
    let expected: Vec<&str> = lines.lines().map(|line| line.split_at(64).1).collect();
    assert_eq!(expected, ["  a.shards", "  b.shards", "  c.shards"]);
    arena.write("roots", lines.as_bytes());
    let checked = arena.expect(["verify", "--roots", "roots"], 0);
    assert_eq!(
        said(&checked),
        "a.shards: intact: 5 of 5 shards intact\nb.shards: intact: 5 of 5 shards intact\n\
         c.shards: intact: 5 of 5 shards intact\n3 encodings: 3 intact\n"
    );
    expect(&arena.pipe(["verify", "--roots", "-"], lines.as_bytes()), 0);
    // The second encoding is damaged, the third is replaced by another.
    flip(&arena.path("b.shards/b.001.shard"), 1000);
    assert!(said(&arena.expect(["verify", "--roots", "roots"], 1)).contains("b.shards: damaged: 4 of 5"));
    encode(&arena, &["a", "-o", "c.shards/", "-f"]);
    let checked = arena.expect(["verify", "--roots", "roots"], 5);
    assert!(said(&checked).contains("c.shards: failed: nothing of root"), "{}", said(&checked));
    fs::remove_dir_all(arena.path("c.shards")).unwrap();
    let checked = arena.expect(["verify", "--roots", "roots"], 4);
    assert!(said(&checked).contains("3 encodings: 1 intact, 1 damaged, 1 failed"));
    // A rotten line does not keep the other lines from being checked, and is reported.
    let rotten = lines.replacen("a.shards", "a.shards\nx", 1);
    arena.write("roots", rotten.as_bytes());
    let checked = arena.expect(["verify", "--roots", "roots"], 4);
    assert!(text(&checked.stderr).contains("line 2") && said(&checked).contains("a.shards: intact"));
    // It hides no loss, and is wrong use where all else is intact.
    let first = lines.lines().next().unwrap();
    arena.write("roots", format!("x\n{first}\n").as_bytes());
    arena.expect(["verify", "--roots", "roots"], 2);
    for nth in 0..3 {
        fs::remove_file(arena.path(format!("a.shards/a.00{nth}.shard"))).unwrap();
    }
    arena.expect(["verify", "--roots", "roots"], 3);
    arena.refuses(["verify", "--roots", "roots", "a.shards"], 2);
    // A file that is no list at all is not reported line by line.
    for noise in [payload(7, 200_000), vec![b'\n'; 9], vec![0; 1 << 20]] {
        arena.write("noise", &noise);
        let said = arena.refuses(["verify", "--roots", "noise"], 2);
        assert!(said.lines().count() <= 13 && said.contains("fec encode FILE... -o"), "{said}");
    }
    arena.refuses(["encode", "a", "b", "-o", "both.fec"], 2);
    arena.refuses(["encode", "a", "-"], 2);
}

/// The lengths in a report of encode are those of the files.
#[test]
fn lengths_are_told_as_they_are() {
    for (len, k, m) in [(0, "3", "2"), (1, "1", "255"), (4095, "128", "1"), (200_000, "10", "4")] {
        let arena = Arena::new();
        arena.write("p", &payload(7, len));
        let lengths = |output: &str| -> (Value, Value) {
            let encoded = arena.expect(["encode", "p", "-k", k, "-m", m, "-o", output, "--json"], 0);
            let report: Value = serde_json::from_slice(&encoded.stdout).unwrap();
            (report["payload_bytes"].clone(), report["output_bytes"].clone())
        };
        assert_eq!(lengths("p.fec"), (len.into(), arena.read("p.fec").len().into()), "{k} + {m}");
        let told = lengths("s/");
        let files = common::shard_files(&arena.path("s"));
        let sum: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
        assert_eq!(told, (len.into(), sum.into()), "{k} + {m}");
    }
}

/// Names whose end a line could not show.
#[test]
fn odd_names_are_listed_and_found_again() {
    let arena = Arena::new();
    for name in ["two\nlines", "back\\slash", "  spaces"] {
        arena.write(name, b"payload");
    }
    let output = encode(&arena, &["two\nlines", "back\\slash", "  spaces", "-o", "{}.fec"]);
    expect(&arena.pipe(["verify", "--roots", "-"], &output.stdout), 0);
}

#[test]
fn folders_are_walked_and_each_encoding_is_told() {
    let arena = arena();
    fs::create_dir(arena.path("safe")).unwrap();
    encode(&arena, &["a", "b", "-o", "safe/{}.fec"]);
    encode(&arena, &["c", "-o", "safe/c.shards/"]);
    arena.write("safe/letter.txt", b"of no encoding");
    let output = arena.expect(["verify", "safe"], 0);
    assert_eq!(
        said(&output),
        "safe/a.fec: intact: 5 of 5 shards intact\nsafe/b.fec: intact: 5 of 5 shards intact\n\
         safe/c.shards: intact: 5 of 5 shards intact\n3 encodings: 3 intact\n"
    );
    flip(&arena.path("safe/a.fec"), 2000);
    (0..3).for_each(|i| fs::remove_file(arena.path(format!("safe/c.shards/c.00{i}.shard"))).unwrap());
    let output = arena.expect(["verify", "safe/a.fec", "safe/b.fec", "safe/c.shards"], 3);
    assert!(
        said(&output)
            .contains("safe/a.fec: damaged: 4 of 5 shards intact, 1 missing; any 1 more may be lost")
    );
    assert!(said(&output).contains("safe/c.shards: lost: 2 of 5 shards intact, 3 missing; 3 are needed"));
    assert!(said(&output).ends_with("3 encodings: 1 intact, 1 damaged, 1 lost\n"));
    let output = arena.expect(["verify", "safe", "--json"], 3);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["intact"], &report["damaged"], &report["lost"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!(report["encodings"][2]["exit_code"], 3);
    // A folder with a single container is reported like that container.
    fs::create_dir(arena.path("one")).unwrap();
    fs::copy(arena.path("safe/b.fec"), arena.path("one/b.fec")).unwrap();
    let output = arena.expect(["verify", "one"], 0);
    assert_eq!(said(&output), said(&arena.expect(["verify", "one/b.fec"], 0)));
    arena.expect(["verify", "safe/b.fec", "safe/letter.txt", "one/b.fec"], 2);
}

/// Shards as stores hold them: each place has some shards of every file.
#[test]
fn shards_of_several_encodings_that_lie_together() {
    let arena = arena();
    encode(&arena, &["a", "b"]);
    for (nth, place) in ["disk1", "disk2", "disk1", "disk2", "disk1"].into_iter().enumerate() {
        for name in ["a", "b"] {
            let file = format!("{name}.00{nth}.shard");
            fs::create_dir_all(arena.path(place)).unwrap();
            fs::rename(arena.path(format!("{name}.shards/{file}")), arena.path(format!("{place}/{file}")))
                .unwrap();
        }
    }
    let output = arena.expect(["verify", "disk1", "disk2"], 0);
    assert!(said(&output).ends_with("2 encodings: 2 intact\n"), "{}", said(&output));
    assert!(said(&arena.expect(["verify", "disk2"], 3)).contains("2 encodings: 2 lost"));
    // A single shard of each encoding is intact, but its payload is lost.
    fs::create_dir(arena.path("disk3")).unwrap();
    for name in ["a.000.shard", "b.000.shard"] {
        fs::copy(arena.path("disk1").join(name), arena.path("disk3").join(name)).unwrap();
    }
    for deep in [&[][..], &["--deep"]] {
        let output = arena.expect([&["verify", "disk3"], deep].concat(), 3);
        assert!(said(&output).contains("2 encodings: 2 lost"), "{}", said(&output));
    }
    arena.expect(["decode", "disk3", "-o", "back"], 3);
    // A stray shard is no second encoding beside one that can be restored.
    encode(&arena, &["c"]);
    fs::copy(arena.path("disk1/a.000.shard"), arena.path("c.shards/stray")).unwrap();
    let output = arena.expect(["verify", "c.shards"], 0);
    assert!(said(&output).contains("foreign: shards of root"));
    // The warning that nobody chose an encoding comes first. With --root there is none.
    let warning = "warning: shards of 2 encodings are here; only those of root ";
    let told = text(&arena.expect(["decode", "c.shards", "-o", "back"], 0).stderr);
    assert!(told.starts_with(warning), "{told}");
    let root = told[warning.len()..].split(' ').next().unwrap().to_owned();
    let told = text(&arena.expect(["decode", "c.shards", "-o", "back", "-f", "--root", &root], 0).stderr);
    assert!(!told.contains("warning"), "{told}");
}

#[test]
fn named_shards_are_asked_about_by_themselves() {
    let arena = arena();
    let root = root(&arena.run([&["encode", "a"], &SHAPE[..]].concat()));
    let shard = |i: usize| format!("a.shards/a.00{i}.shard");
    let (one, two) = (shard(0), shard(4));
    let output = arena.expect(["verify", &one, &two, "--root", &root], 0);
    assert!(said(&output).contains("2 of 5 shards given, both intact; 3 are needed to restore"));
    assert!(!said(&output).contains("missing"));
    // For a folder, the question is whether the payload can be restored. Without a root, no file is right by itself.
    fs::create_dir(arena.path("few")).unwrap();
    for shard in [&one, &two] {
        fs::copy(arena.path(shard), arena.path("few").join(shard.replace('/', "-"))).unwrap();
    }
    arena.expect(["verify", "few", "--root", &root], 3);
    arena.expect(["verify", &one, &two], 3);
    let output = arena.expect(["verify", &one, &two, &shard(1), &shard(2), "--root", &root], 0);
    assert!(said(&output).contains("4 of 5 shards given, all intact; 1 more than are needed to restore"));
    // The number of shards that are needed is a separate question.
    let output = arena.expect(["verify", &one, &two, "--root", &root, "--need", "3"], 3);
    assert!(said(&output).contains("not enough: 3 of each set are asked for, and only 2 are intact"));
    arena.expect(["verify", &one, &two, "--root", &root, "--need", "2"], 0);
    fs::remove_file(arena.path(shard(1))).unwrap();
    arena.expect(["verify", "a.shards"], 1);
    arena.expect(["verify", "a.shards", "--need", "4"], 0);
    arena.expect(["verify", "a.shards", "--need", "5"], 3);
    // Two shard files are right, and the third is damaged or belongs to another encoding.
    flip(&arena.path(shard(2)), 1000);
    let output = arena.expect(["verify", &one, &shard(2), "--root", &root], 5);
    assert!(said(&output).contains("2 of 5 shards given, 1 intact, 1 damaged"));
    encode(&arena, &["b"]);
    arena.expect(["verify", &one, "b.shards/b.000.shard", "--root", &root], 5);
}

#[test]
fn one_shard_through_a_pipe() {
    let arena = arena();
    let root = root(&arena.run([&["encode", "a"], &SHAPE[..]].concat()));
    let path = arena.path("a.shards/a.001.shard");
    let mut shard = fs::read(&path).unwrap();
    let piped = arena.pipe(["verify", "-", "--root", &root], &shard);
    expect(&piped, 0);
    assert!(said(&piped).starts_with("standard input: intact: shard 1 of 3 + 2"));
    let redirected =
        arena.fec(["verify", "--root", &root]).stdin(File::open(&path).unwrap()).output().unwrap();
    expect(&redirected, 0);
    assert!(arena.refuses_pipe(["verify"], &shard, 2).contains("--root"));
    let middle = shard.len() / 2;
    shard[middle] ^= 1;
    expect(&arena.pipe(["verify", "--root", &root], &shard), 5);
    expect(&arena.pipe(["verify", "--root", &"ab".repeat(32)], &shard), 5);
}

#[test]
fn a_table_for_the_summary_of_a_job() {
    let arena = arena();
    let lines = encode(&arena, &["a", "b", "-o", "{}|.fec"]);
    let roots: Vec<String> = said(&lines).lines().map(|line| line[..64].to_owned()).collect();
    flip(&arena.path("b|.fec"), 2000);
    let output = arena.expect(["verify", "a|.fec", "b|.fec", "none.fec", "--format", "markdown"], 4);
    assert!(said(&output).contains("| **failed**: read none.fec: No such file"), "{output:?}");
    let output = arena.expect(["verify", "a|.fec", "b|.fec", "--format", "markdown"], 1);
    let expected = format!(
        "| encoding | state | intact | damaged | missing | may still be lost | proved by | root |\n|---|---|--:|--:|--:|--:|---|---|\n\
         | a\\|.fec | intact | 5 of 5 | 0 | 0 | 2 | nothing | `{}` |\n\
         | b\\|.fec | **damaged**, can be restored | 4 of 5 | 0 | 1 | 1 | nothing | `{}` |\n\n2 encodings: 1 intact, 1 damaged\n",
        roots[0], roots[1]
    );
    assert_eq!(said(&output), expected);
    let output = arena.expect(["verify", "a|.fec", "--format", "markdown"], 0);
    assert!(said(&output).ends_with("1 encoding: 1 intact\n"));
    // A summary says what was proved.
    let args = ["verify", "a|.fec", "--format", "markdown", "--root", &roots[0]];
    assert!(said(&arena.expect(args, 0)).contains("| 2 | root | `"));
}

/// A named path that holds nothing counts, whatever the others hold, unless it lies among the shard files of one.
#[test]
fn a_named_file_that_is_no_encoding_is_told_beside_others() {
    let arena = arena();
    for name in ["one", "two"] {
        arena.write(name, &payload(5, 3000));
        arena.expect(["encode", name, "-o", &format!("{name}.shards/"), "-k", "3", "-m", "2", "-q"], 0);
    }
    arena.write("junk.shards", &payload(6, 100));
    arena.write("one.shards/note", b"not a shard");
    let all = |folder: &str| -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(arena.path(folder))
            .unwrap()
            .map(|file| file.unwrap().path().display().to_string())
            .collect();
        names.sort();
        names
    };
    arena.expect(["verify", "one.shards", "junk.shards"], 2);
    arena.expect(["verify", "one.shards", "two.shards", "junk.shards"], 2);
    arena.expect([vec!["verify".to_owned()], all("one.shards")].concat(), 0);
    // Beside something damaged, too; what is lost or another one is graver.
    fs::remove_file(&all("two.shards")[0]).unwrap();
    arena.expect(["verify", "one.shards", "two.shards"], 1);
    arena.expect(["verify", "one.shards", "two.shards", "junk.shards"], 2);
    all("two.shards")[..2].iter().for_each(|file| fs::remove_file(file).unwrap());
    arena.expect(["verify", "one.shards", "two.shards", "junk.shards"], 3);
    // Fewer than restore it are never enough.
    let output = arena.expect(["verify", "two.shards", "--need", "1"], 3);
    assert!(said(&output).contains("not enough: 3 of each set are needed to restore, and only 2 are intact"));
}

/// A missing encoding hides none that is lost, or is another payload: a job may try again after exit code 4.
#[test]
fn of_a_list_of_roots_the_gravest_code_counts() {
    let arena = arena();
    let list: String = ["right", "other", "lost", "absent"]
        .map(|name| {
            arena.write(name, name.as_bytes());
            let made = arena.expect(["encode", name, "-o", &format!("{name}.fec")], 0);
            format!("{}  {name}.fec\n", text(&made.stdout).trim())
        })
        .concat();
    fs::copy(arena.path("right.fec"), arena.path("other.fec")).unwrap();
    let bytes = arena.read("lost.fec");
    arena.write("lost.fec", &bytes[..bytes.len() / 8]);
    fs::remove_file(arena.path("absent.fec")).unwrap();
    let of = |names: &[&str]| -> String {
        list.lines()
            .filter(|line| names.iter().any(|name| line.contains(&format!(" {name}."))))
            .fold(String::new(), |all, line| all + line + "\n")
    };
    for (names, exit) in [
        (&["right"][..], 0),
        (&["right", "absent"], 4),
        (&["lost", "absent"], 3),
        (&["other", "absent"], 5),
        (&["other", "lost", "absent", "right"], 5),
    ] {
        let output = arena.pipe(["verify", "--roots", "-"], of(names).as_bytes());
        assert_eq!(output.status.code(), Some(exit), "{names:?}: {output:?}");
    }
    // A summary in Markdown says what failed as well.
    let output = arena.run(["verify", "right.fec", "--root", &"1".repeat(64), "--format", "markdown"]);
    expect(&output, 5);
    assert!(text(&output.stdout).contains("| right.fec | **failed**: nothing of root 1111"), "{output:?}");
}
