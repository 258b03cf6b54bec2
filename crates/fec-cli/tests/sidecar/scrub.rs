//! `fec verify --state`, `--older-than`, `--budget` and `--sample`: checks in parts.

use super::*;

/// A folder with two files, one of several chunks of 4 MiB, and its sidecar.
fn furnished() -> Arena {
    let arena = Arena::new();
    arena.write("d/large", &payload(1, 9_000_000));
    arena.write("d/small", &payload(2, 5000));
    age(&arena.path("d/large"), 0);
    age(&arena.path("d/small"), 0);
    protect(&arena, &["d"]);
    arena
}

#[track_caller]
fn scrub(arena: &Arena, args: &[&str], exit: i32) -> Value {
    let output = arena.run([&["verify", "d.fecp", "--json"], args].concat());
    expect(&output, exit);
    json(&output)
}

fn lines(arena: &Arena) -> Vec<String> {
    let state = fs::read_to_string(arena.path("state")).expect("a state");
    state.lines().skip(1).map(str::to_owned).collect()
}

/// Sets the times of the last checks to some seconds after a time in 2017.
fn long_ago(arena: &Arena, seconds: &[(&str, u64)]) {
    let aged = lines(arena).into_iter().map(|line| {
        let (_, rest) = line.split_once(' ').unwrap();
        let path = rest.splitn(4, ' ').nth(3).unwrap();
        let after = seconds.iter().find(|(of, _)| *of == path).map_or(0, |(_, after)| *after);
        format!("{} {rest}\n", 1_500_000_000 + after)
    });
    let state: String = ["fec scrub state 1\n".to_owned()].into_iter().chain(aged).collect();
    fs::write(arena.path("state"), state).unwrap();
}

/// The end of a large file was checked. A small file rots whose end shares the block.
#[test]
fn the_small_file_is_named_and_not_the_large_one_beside_it() {
    let arena = Arena::new();
    arena.write("d/large", &payload(1, (9 << 20) + 300));
    arena.write("d/small", &payload(2, 82_320));
    protect(&arena, &["d"]);
    flip(&arena.path("d/small"), 82_319);
    let mut found = 0;
    for _ in 0..20 {
        let output = arena.run(["verify", "d.fecp", "--json", "--sample", "40%"]);
        let files = json(&output)["files"].clone();
        match files.as_array().unwrap().as_slice() {
            [] => expect(&output, 0),
            [file] => {
                assert_eq!((&file["path"], &file["damage"][0][0]), (&"d/small".into(), &81_920.into()));
                expect(&output, 1);
                found += 1;
            }
            more => panic!("{more:?}"),
        }
    }
    assert!(found > 0);
}

#[test]
fn what_was_looked_at_is_left_out() {
    let arena = furnished();
    let first = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
    assert_eq!(first["scrub"]["looked_at_files"], 2);
    assert!(first["scrub"]["looked_at_bytes"].as_u64().unwrap() > 9_005_000, "the sidecar too");
    assert_eq!((&first["scrub"]["due_files"], first["scrub"]["oldest_seconds"].is_u64()), (&0.into(), true));
    let again = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
    assert_eq!(again["scrub"]["looked_at_bytes"], 0);
    long_ago(&arena, &[]);
    let later = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
    assert_eq!(later["scrub"]["looked_at_bytes"], first["scrub"]["looked_at_bytes"]);
}

#[test]
fn the_oldest_comes_first_and_the_next_run_goes_on() {
    let arena = furnished();
    scrub(&arena, &["--state", "state"], 0);
    long_ago(&arena, &[("", 7), ("d/small", 9), ("d/large", 8)]);
    let before = lines(&arena);
    let none = scrub(&arena, &["--state", "state", "--budget", "0s"], 0);
    assert_eq!((&none["scrub"]["looked_at_bytes"], &none["scrub"]["due_files"]), (&0.into(), &2.into()));
    assert_eq!(lines(&arena), before);
    // With small budgets the file is checked in pieces: each byte is read once, wherever the cuts are.
    let part = fs::read_to_string(arena.path("state")).unwrap().replace("1500000008 0 ok", "1500000008 2 ok");
    fs::write(arena.path("state"), part).unwrap();
    let rest = scrub(&arena, &["--state", "state"], 0);
    let sidecar = rest["recovery"].as_u64().unwrap() * 4096;
    assert_eq!(rest["scrub"]["looked_at_bytes"], sidecar + 5000 + (9_000_000 - (8 << 20)));
    assert_eq!(rest["scrub"]["due_files"], 0);
}

#[test]
fn damage_is_told_until_it_is_mended() {
    let arena = furnished();
    scrub(&arena, &["--state", "state"], 0);
    long_ago(&arena, &[]);
    flip(&arena.path("d/small"), 4000);
    let found = scrub(&arena, &["--state", "state"], 1);
    assert_eq!(
        (&found["files"][0]["path"], &found["files"][0]["state"]),
        (&"d/small".into(), &"rotten".into())
    );
    // The report repeats known damage without reading.
    let told = scrub(&arena, &["--state", "state", "--older-than", "30d", "--budget", "0s"], 1);
    assert_eq!((told["files"].as_array().unwrap().len(), &told["scrub"]["damaged_before"]), (0, &1.into()));
    expect(&arena.run(["repair", "-q", "d.fecp"]), 0);
    let mended = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
    assert_eq!(mended["scrub"]["looked_at_bytes"], 5000);
    assert!(lines(&arena).iter().all(|line| line.contains(" ok ")));
}

/// Damage lies in the last chunk of a file whose first chunks an earlier run has checked: in its blocks, and behind
/// them.
#[test]
fn what_goes_on_within_a_file_finds_damage() {
    for at in [8_400_000, 8_999_999] {
        let arena = furnished();
        scrub(&arena, &["--state", "state"], 0);
        let part = fs::read_to_string(arena.path("state")).unwrap();
        let part = part.lines().map(|line| match line.ends_with("d/large") {
            true => format!("1500000000 2 {}\n", line.splitn(3, ' ').nth(2).unwrap()),
            false => format!("{line}\n"),
        });
        fs::write(arena.path("state"), part.collect::<String>()).unwrap();
        flip(&arena.path("d/large"), at);
        let found = scrub(&arena, &["--state", "state", "--older-than", "30d"], 1);
        assert_eq!(found["files"][0]["state"], "rotten", "{at}");
        assert_eq!(found["scrub"]["looked_at_bytes"], 9_000_000 - (8 << 20));
    }
}

#[test]
fn damage_of_the_sidecar_is_told_until_it_is_mended() {
    let arena = furnished();
    let len = fs::metadata(arena.path("d.fecp")).unwrap().len();
    rot(&arena.path("d.fecp"), len / 2, &[7; 20_000]);
    let found = scrub(&arena, &["--state", "state"], 1);
    assert!(found["recovery_damaged"].as_u64().unwrap() > 0);
    scrub(&arena, &["--state", "state", "--older-than", "30d", "--budget", "0s"], 1);
    expect(&arena.run(["repair", "-q", "d.fecp"]), 0);
    scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
}

#[test]
fn a_state_is_believed_for_what_it_was_written_of() {
    let arena = furnished();
    scrub(&arena, &["--state", "state"], 0);
    // The time lies in the future, the content is another, or the line is invalid.
    let state = fs::read_to_string(arena.path("state")).unwrap();
    let digest = state.lines().find(|line| line.ends_with("d/small")).unwrap().split(' ').nth(3).unwrap();
    for wrong in [
        state.replace(" ok ", " good "),
        state.replace(digest, "0123456789abcdef"),
        state
            .lines()
            .map(|l| if l.starts_with("fec") { format!("{l}\n") } else { format!("9{l}\n") })
            .collect(),
    ] {
        fs::write(arena.path("state"), wrong).unwrap();
        let again = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
        assert!(again["scrub"]["looked_at_bytes"].as_u64().unwrap() >= 5000);
    }
    arena.write("state", b"a letter to my aunt\n");
    let refused = changes_nothing(&arena, &["verify", "d.fecp", "--state", "state"], 2);
    assert!(refused.contains("something else than a list"), "{refused}");
}

#[test]
fn a_sample_finds_what_it_hits() {
    let arena = furnished();
    let some = scrub(&arena, &["--sample", "50%"], 0);
    assert!(
        some["scrub"]["looked_at_bytes"].as_u64().unwrap()
            <= 9_005_000 + fs::metadata(arena.path("d.fecp")).unwrap().len()
    );
    rot(&arena.path("d/large"), 0, &vec![1; 9_000_000]);
    flip(&arena.path("d/small"), 1);
    // A sample of 100 % reads everything and reports all damage.
    let all = scrub(&arena, &["--sample", "100%"], 3);
    assert_eq!(all["files"].as_array().unwrap().len(), 2);
    for wrong in [
        &["--sample", "0%"][..],
        &["--sample", "101%"],
        &["--sample", "5"],
        &["--budget", "1h"],
        &["--older-than", "1d"],
    ] {
        expect(&arena.run([&["verify", "d.fecp"], wrong].concat()), 2);
    }
}

/// A tree that was copied without its times is checked all the same.
#[test]
fn what_has_another_time_is_looked_at() {
    let arena = furnished();
    age(&arena.path("d/large"), 5);
    let found = scrub(&arena, &["--state", "state"], 1);
    assert_eq!(found["files"][0]["state"], "edited");
    assert_eq!(found["scrub"]["looked_at_files"], 2);
}

/// Sets the state of an entry: where the next check continues, and the finding.
fn find(arena: &Arena, of: &str, next: u64, finding: &str) {
    let lines: Vec<String> = lines(arena)
        .into_iter()
        .map(|line| {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            if words[4] == of { format!("{} {next} {finding} {} {of}", words[0], words[3]) } else { line }
        })
        .collect();
    fs::write(arena.path("state"), format!("fec scrub state 1\n{}\n", lines.join("\n"))).unwrap();
}

/// Damage stays known until a full pass over the file has found none, in however many runs.
#[test]
fn a_pass_over_several_runs_forgets_nothing() {
    let arena = furnished();
    scrub(&arena, &["--state", "state"], 0);
    for (of, next) in [("d/large", 1), ("", 3)] {
        let damaged_before = |report: &Value| match of {
            "" => report["scrub"]["sidecar_was_damaged"].as_bool().unwrap(),
            _ => report["scrub"]["damaged_before"] == 1,
        };
        // Damage was found in the first part of this pass: the end of the pass reads only the rest.
        find(&arena, of, next, "damaged");
        assert!(damaged_before(&scrub(&arena, &["--state", "state", "--older-than", "1d"], 1)));
        // The next pass reads the whole file and finds nothing.
        assert!(!damaged_before(&scrub(&arena, &["--state", "state", "--older-than", "1d"], 0)));
        // Damage was found in the previous pass, and none in the first part of this one.
        find(&arena, of, next, "recheck");
        assert!(!damaged_before(&scrub(&arena, &["--state", "state", "--older-than", "1d"], 0)));
        // The pass has not begun.
        find(&arena, of, 0, "damaged");
        assert!(damaged_before(&scrub(&arena, &["--state", "state", "--budget", "0s"], 1)));
        assert!(damaged_before(&scrub(&arena, &["--state", "state", "--budget", "0s"], 1)));
        assert!(!damaged_before(&scrub(&arena, &["--state", "state"], 0)));
    }
}

/// A file that is checked in two parts, because many small files come before it, hides no later damage.
#[test]
fn damage_in_a_file_of_two_goes_hides_nothing() {
    let arena = Arena::new();
    (0..1023).for_each(|nth| drop(arena.write(format!("d/a/{nth:04}"), &[nth as u8; 10])));
    arena.write("d/b", &payload(1, 8 << 20));
    arena.write("d/c", &payload(2, 5000));
    seen(&arena.path("d")).into_iter().for_each(|(path, _)| age(&arena.path("d").join(path), 7));
    protect(&arena, &["d", "--no-sync"]);
    flip(&arena.path("d/b"), 1 << 20);
    flip(&arena.path("d/b"), 5 << 20);
    flip(&arena.path("d/c"), 7);
    let found = scrub(&arena, &["--state", "state"], 1);
    let rotten: Vec<&str> =
        found["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(rotten, ["d/b", "d/c"]);
    assert_eq!(found["files"][0]["damage"].as_array().unwrap().len(), 2);
    let told = |line: &&String| line.contains(" damaged ");
    assert_eq!(lines(&arena).iter().filter(told).count(), 2);
    arena.expect(["repair", "d.fecp", "--no-sync"], 0);
    scrub(&arena, &["--state", "state"], 0);
}

#[test]
fn a_state_is_a_file_of_this_sidecar() {
    let arena = furnished();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        arena.path("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert!(changes_nothing(&arena, &["verify", "d.fecp", "--state", "fifo"], 2).contains("--state"));
    arena.write("e/other", &payload(3, 5000));
    protect(&arena, &["e"]);
    arena.expect(["verify", "e.fecp", "--state", "state"], 0);
    let said = changes_nothing(&arena, &["verify", "d.fecp", "--state", "state"], 2);
    assert!(said.contains("none of the files of this sidecar"), "{said}");
}

/// An edited neighbour in the same block is no damage of a file that is checked in parts.
#[test]
fn an_edited_neighbour_is_no_damage() {
    let arena = Arena::new();
    age(&arena.write("d/a", &payload(1, 1000)), 1);
    age(&arena.write("d/large", &payload(2, 9_000_100)), 2);
    protect(&arena, &["d"]);
    edit(&arena.path("d/a"), b"edited");
    for (next, exit) in [(0, 1), (1, 1), (2, 1)] {
        scrub(&arena, &["--state", "state"], 1);
        find(&arena, "d/large", next, "ok");
        let found = scrub(&arena, &["--state", "state"], exit);
        assert_eq!(found["files"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["files"][0]["path"], "d/a");
        assert!(lines(&arena).iter().all(|line| line.contains(" ok ")), "{next}");
    }
}
