//! `fec verify --state`, `--older-than`, `--budget` and `--sample`: a part at a time.

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

/// As if everything had been looked at some seconds after 2017.
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
    // In pieces, as small budgets cut it: each byte is looked at once, whatever is cut.
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
    // Without looking.
    let told = scrub(&arena, &["--state", "state", "--older-than", "30d", "--budget", "0s"], 1);
    assert_eq!((told["files"].as_array().unwrap().len(), &told["scrub"]["damaged_before"]), (0, &1.into()));
    expect(&arena.run(["repair", "-q", "d.fecp"]), 0);
    let mended = scrub(&arena, &["--state", "state", "--older-than", "30d"], 0);
    assert_eq!(mended["scrub"]["looked_at_bytes"], 5000);
    assert!(lines(&arena).iter().all(|line| line.contains(" ok ")));
}

/// In the last chunk of a file whose first ones were looked at by another run: block by block, and what is behind the blocks.
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
    // In the future, of another content, or no line at all.
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
    // All of it, and all of what it found.
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

/// A tree that was copied without its times is looked at all the same.
#[test]
fn what_has_another_time_is_looked_at() {
    let arena = furnished();
    age(&arena.path("d/large"), 5);
    let found = scrub(&arena, &["--state", "state"], 1);
    assert_eq!(found["files"][0]["state"], "edited");
    assert_eq!(found["scrub"]["looked_at_files"], 2);
}
