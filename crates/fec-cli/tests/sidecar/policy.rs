//! Words and exit codes of policies, the commands that they name, and the script that runs a backup between two looks.

use super::*;
use std::process::{Command, Stdio};

/// A folder that looks like a repository of restic, with packs of random bytes.
fn repository(arena: &Arena) {
    arena.write("r/config", &payload(1, 155));
    for nth in 0..40 {
        arena.write(format!("r/data/{:02x}/{nth:064x}", nth % 5), &payload(10 + nth, 30_000));
    }
    for (nth, name) in ["index", "keys", "snapshots"].iter().enumerate() {
        arena.write(format!("r/{name}/{:064x}", nth + 1), &payload(50 + nth as u64, 300));
    }
    arena.write("r/locks/1", b"locked");
}

fn pack(nth: u64) -> String {
    format!("r/data/{:02x}/{nth:064x}", nth % 5)
}

fn cut(arena: &Arena, name: &str, len: u64) {
    File::options().write(true).open(arena.path(name)).and_then(|file| file.set_len(len)).expect("it is cut");
}

/// The words of a run, with its lines joined.
#[track_caller]
fn said(arena: &Arena, args: &[&str], exit: i32) -> String {
    let output = arena.run(args);
    expect(&output, exit);
    let said = text(&output.stderr) + &text(&output.stdout);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(said: &str, words: &str) {
    assert!(said.contains(words), "{words}: {said}");
}

#[test]
fn a_repository_is_recognised_told_and_shown() {
    let arena = Arena::new();
    repository(&arena);
    let made = said(&arena, &["protect", "r"], 0);
    says(&made, "a repository of restic: protected by its policy; --policy none does without");
    says(&made, "left out by the policy: 1 path");
    let shown = said(&arena, &["verify", "-v", "r.fecp"], 0);
    says(&shown, "policy restic: once stays: /config once stays: /data/");
    says(&shown, "left out by the policy, as the sidecar remembers: 1 path");
    assert!(!said(&arena, &["verify", "r.fecp"], 0).contains("policy restic"));
    let report = json(&arena.expect(["verify", "r.fecp", "--json"], 0));
    assert_eq!(report["policy"]["name"], "restic", "{report}");
    assert_eq!(report["policy"]["used"], true);
    let none = said(&arena, &["protect", "-f", "--policy", "none", "r"], 0);
    assert!(!none.contains("policy"), "{none}");
    assert!(json(&arena.expect(["verify", "r.fecp", "--json"], 0))["policy"].is_null());
    // An update changes nothing that the user did not ask for.
    assert!(!said(&arena, &["protect", "-u", "r"], 0).contains("policy"));
    says(&said(&arena, &["protect", "-u", "--policy", "restic", "r"], 0), "policy restic");
}

#[test]
fn an_update_names_what_it_holds_and_the_commands_that_it_names_work() {
    let arena = Arena::new();
    repository(&arena);
    arena.expect(["protect", "r"], 0);
    let before = tree(&arena.path("r"));
    cut(&arena, &pack(3), 100);
    fs::remove_file(arena.path(pack(7))).unwrap();
    arena.write("r/snapshots/new", &payload(90, 300));
    let held = said(&arena, &["protect", "-u", "r"], 1);
    says(&held, "files: 42 as they were, 1 new, 2 held");
    says(&held, "held, because the policy says that it is written once, or stays: 2 files");
    says(&held, &format!("rotten {}", pack(3)));
    says(&held, &format!("missing {} to mend it: fec repair r.fecp if", pack(7)));
    says(
        &held,
        "on purpose, update again with --pruned if what is rotten was changed on purpose, update again with -f",
    );
    let report = json(&arena.expect(["protect", "-u", "r", "--json"], 1));
    assert_eq!(report["update"]["held"][0]["path"], pack(7), "{report}");
    assert_eq!(report["update"]["held"][1]["state"], "rotten");
    assert_eq!(text(&arena.expect(["protect", "-u", "r", "-q"], 1).stderr).lines().count(), 1);
    let found = said(&arena, &["verify", "r.fecp"], 1);
    says(&found, "1 rotten, 1 missing");
    says(&found, "it is written once");
    says(
        &found,
        "if you deleted what is missing, when the rest is mended, to give it up: fec protect --update r --pruned",
    );
    arena.expect(["repair", "r.fecp"], 0);
    let mut after = tree(&arena.path("r"));
    after.remove(Path::new("snapshots/new"));
    assert!(after == before);
    said(&arena, &["protect", "-u", "r"], 0);
    // The other two ways out.
    fs::remove_file(arena.path(pack(7))).unwrap();
    cut(&arena, &pack(3), 100);
    let pruned = said(&arena, &["protect", "-u", "--pruned", "r"], 1);
    assert!(pruned.contains("held") && !pruned.contains("missing"), "{pruned}");
    says(&said(&arena, &["protect", "-u", "-f", "r"], 0), "1 changed");
    arena.expect(["verify", "r.fecp"], 0);
}

#[test]
fn a_prune_that_is_announced_is_no_damage_and_nothing_comes_back_unasked() {
    let arena = Arena::new();
    repository(&arena);
    arena.expect(["protect", "r"], 0);
    says(&said(&arena, &["protect", "-u", "--pruning", "r"], 0), "a prune is announced");
    for nth in 0..7 {
        fs::remove_file(arena.path(pack(nth))).unwrap();
    }
    let found = said(&arena, &["verify", "r.fecp"], 1);
    says(&found, "7 gone");
    says(&found, "a prune was announced");
    says(
        &found,
        "7 entries are gone, as the policy allows; to take note of that: fec protect --update r to bring one back",
    );
    arena.expect(["verify", "--ignore", "gone", "r.fecp"], 0);
    arena.expect(["repair", "-n", "r.fecp"], 0);
    let left = said(&arena, &["repair", "r.fecp"], 0);
    says(
        &left,
        "what is gone, as the policy allows, was left so; to bring one back, name it: fec repair r.fecp PATH",
    );
    assert!(!arena.path(pack(0)).exists());
    // More is gone than can be brought back; of two packs both can.
    arena.expect(["protect", "-u", "r"], 0);
    arena.expect(["verify", "r.fecp"], 0);
    arena.expect(["protect", "-u", "--pruning", "r"], 0);
    fs::remove_file(arena.path(pack(8))).unwrap();
    arena.expect(["repair", "r.fecp", &pack(8)], 0);
    assert!(arena.path(pack(8)).exists());
    arena.expect(["protect", "-u", "--pruning", "--pruned", "r"], 2);
    arena.expect(["protect", "-f", "--policy", "none", "r"], 0);
    says(
        &said(&arena, &["protect", "-u", "--pruning", "r"], 2),
        "it has no policy give it one with --policy",
    );
}

#[test]
fn refusals_tell_their_kind_and_numbers() {
    let arena = Arena::new();
    for nth in 0..12 {
        arena.write(format!("d/{nth}"), &payload(nth, 20_000));
    }
    arena.expect(["protect", "d"], 0);
    (0..3).for_each(|nth| fs::remove_file(arena.path(format!("d/{nth}"))).unwrap());
    let report = json(&arena.expect(["protect", "-u", "d", "--json"], 2));
    let numbers = ["gone", "of", "gone_bytes", "of_bytes"].map(|name| report[name].as_u64());
    assert_eq!(
        (report["kind"].as_str(), numbers),
        (Some("many_gone"), [3, 12, 60_000, 240_000].map(Some)),
        "{report}"
    );
    says(&said(&arena, &["protect", "-u", "d"], 2), "if they were deleted on purpose, go on with --pruned");
    arena.expect(["protect", "-u", "--pruned", "d"], 0);
    // Everything is held.
    let arena = Arena::new();
    arena.write("policy", b"once stays: *\n");
    arena.write("d/one", &payload(1, 9000));
    arena.expect(["protect", "--policy", "policy", "d"], 0);
    fs::write(arena.path("d/one"), payload(2, 9000)).unwrap();
    let report = json(&arena.expect(["protect", "-u", "d", "--json"], 1));
    assert_eq!(
        (report["kind"].as_str(), report["held"][0].as_str()),
        (Some("held"), Some("d/one")),
        "{report}"
    );
}

#[test]
fn policies_that_cannot_be_used_are_refused_and_nothing_is_written() {
    let arena = Arena::new();
    arena.write("d/a", b"a");
    arena.write("e/a", b"a");
    arena.write("wrong", b"once: a\nnever: b\n");
    arena.write("binary", b"once: \xff\n");
    arena.write("long", &vec![b'#'; 1 << 17]);
    let before = arena.state();
    for (args, why) in [
        (&["d", "--policy", "wrong"][..], "read wrong: line 2 of the policy: never: no word of a policy"),
        (&["d", "--policy", "binary"], "read binary: it is no text"),
        (&["d", "--policy", "long"], "read long: it is too long for a policy"),
        (&["d", "--policy", "."], "read .: it is no file"),
        (&["d", "--policy", "git"], "protect d: it holds no repository of git"),
        (&["d", "e", "-o", "x.fecp", "--policy", "photos"], "a policy is for one folder"),
        (&["d/a", "--policy", "photos"], "a policy is for one folder"),
    ] {
        let refused = said(&arena, &[&["protect"], args].concat(), 2);
        says(&refused, why);
        arena.unchanged(&before);
    }
    let absent = said(&arena, &["protect", "d", "--policy", "resttic"], 4);
    says(&absent, "the policies that have a name are restic, rustic, borg");
    arena.unchanged(&before);
}

/// Under a root of another user nothing proves the policy.
#[test]
fn a_policy_that_no_proof_binds_is_told_and_asked_for_again() {
    let arena = Arena::new();
    repository(&arena);
    let root = text(&arena.expect(["protect", "r"], 0).stdout).trim().to_owned();
    let elsewhere = arena.path("nobody");
    let run = |args: &[&str], exit: i32| {
        let output = arena.fec(args).env("XDG_STATE_HOME", &elsewhere).output().expect("it runs");
        expect(&output, exit);
        (text(&output.stderr) + &text(&output.stdout)).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    says(
        &run(&["verify", "r.fecp", "--root", &root], 0),
        "not used: its policy restic, which nothing that was given proves",
    );
    let refused = run(&["protect", "-u", "r", "--root", &root], 2);
    says(&refused, "it has a policy, and nothing that was given proves it give it again with --policy");
    run(&["protect", "-u", "r", "--root", &root, "--policy", "restic"], 0);
}

#[test]
fn while_a_program_is_at_work_nothing_is_protected_or_mended() {
    let arena = Arena::new();
    arena.write("b/README", b"This is a Borg Backup repository.\n");
    arena.write("b/config", b"[repository]\nversion = 1\n");
    (0..8).for_each(|nth| drop(arena.write(format!("b/data/0/{nth}"), &payload(nth, 20_000))));
    says(&said(&arena, &["protect", "b"], 0), "a repository of borg");
    fs::create_dir(arena.path("b/lock.exclusive")).unwrap();
    cut(&arena, "b/data/0/3", 10);
    for args in [&["protect", "-u", "b"][..], &["repair", "b.fecp"]] {
        let refused = said(&arena, args, 4);
        says(
            &refused,
            "b/lock.exclusive: a program is at work here, as its policy says run it again when that has ended",
        );
    }
    arena.expect(["verify", "b.fecp"], 1);
    fs::remove_dir(arena.path("b/lock.exclusive")).unwrap();
    arena.expect(["repair", "b.fecp"], 0);
}

/// A run of the script, with a line of shell in place of a backup.
fn night(arena: &Arena, options: &[&str], backup: &str) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/release/fec-night.sh");
    let fec = arena.fec(["--version"]).get_program().to_owned();
    let mut command = Command::new(script);
    command.args(options).args(["r", "--", "sh", "-c", backup]).current_dir(arena.path(""));
    command.env("FEC", fec).env("XDG_STATE_HOME", arena.path("state")).stdin(Stdio::null());
    command.output().expect("it runs")
}

#[test]
fn a_night_mends_runs_and_protects() {
    let arena = Arena::new();
    repository(&arena);
    let silent = |output: &Output| assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let first = night(&arena, &[], "true");
    expect(&first, 0);
    silent(&first);
    assert!(arena.path("r.fecp").exists());
    let second = night(&arena, &[], "head -c 20000 /dev/urandom > r/data/00/ff; echo said");
    expect(&second, 0);
    silent(&second);
    assert_eq!(text(&second.stdout), "said\n", "the words of the backup, and no others");
    arena.expect(["verify", "r.fecp"], 0);
    // Damage is mended before the backup runs.
    let before = tree(&arena.path("r"));
    cut(&arena, &pack(3), 100);
    fs::remove_file(arena.path(pack(7))).unwrap();
    let third = night(&arena, &[], &format!("test -e {}", pack(7)));
    expect(&third, 0);
    says(&text(&third.stderr), "mended r/data/03");
    assert!(tree(&arena.path("r")) == before);
    // The exit code is that of the backup, and what it left is protected all the same.
    let failed = night(&arena, &[], "head -c 9000 /dev/urandom > r/data/00/fe; exit 7");
    expect(&failed, 7);
    arena.expect(["verify", "r.fecp"], 0);
    // Rot that only a full look finds, before a prune.
    flip(&arena.path(pack(8)), 5000);
    let pruned = night(&arena, &["--prunes"], &format!("rm {} {} && test -e {}", pack(1), pack(2), pack(8)));
    expect(&pruned, 0);
    says(&text(&pruned.stderr), "mended r/data/03");
    arena.expect(["verify", "r.fecp"], 0);
    assert!(!arena.path(pack(1)).exists());
}

#[test]
fn a_night_that_was_killed_is_taken_up_and_no_prune_runs_over_what_is_lost() {
    let arena = Arena::new();
    repository(&arena);
    expect(&night(&arena, &[], "true"), 0);
    // The prune takes the script with it.
    let killed = night(&arena, &["--prunes"], &format!("rm {} {} && kill -9 $PPID", pack(1), pack(2)));
    assert!(!killed.status.success());
    arena.expect(["verify", "--ignore", "gone", "r.fecp"], 0);
    expect(&night(&arena, &[], "true"), 0);
    arena.expect(["verify", "r.fecp"], 0);
    assert!(!arena.path(pack(1)).exists());
    // More is lost than can be mended: no prune runs, a backup does, and the exit code tells.
    (4..20).for_each(|nth| fs::remove_file(arena.path(pack(nth))).unwrap());
    let refused = night(&arena, &["--prunes"], "touch ran");
    expect(&refused, 3);
    assert!(!arena.path("ran").exists());
    let backup = night(&arena, &[], "touch ran");
    assert_eq!(backup.status.code(), Some(1), "the update tells what it holds: {}", text(&backup.stderr));
    assert!(arena.path("ran").exists());
    for wrong in [&["--never"][..], &["-o"]] {
        expect(&night(&arena, wrong, "touch ran twice"), 2);
    }
}

/// Two nights of one repository come one after the other.
#[test]
fn a_second_night_waits_for_the_first() {
    let arena = Arena::new();
    repository(&arena);
    expect(&night(&arena, &[], "true"), 0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let alone = "test ! -e one && touch one && sleep 0.2 && rm one";
                expect(&night(&arena, &[], alone), 0);
            });
        }
    });
}
