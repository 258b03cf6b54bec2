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

/// A night that read nothing does not call yesterday's loss mendable.
#[test]
fn a_loss_is_told_until_it_is_looked_at_again() {
    let arena = furnished();
    rot(&arena.path("d/large"), 4096, &vec![0xee; 4_000_000]);
    scrub(&arena, &["--state", "state"], 3);
    let nothing = ["--state", "state", "--budget", "0s"];
    assert_eq!(scrub(&arena, &nothing, 3)["scrub"]["lost_before"], 1);
    let said = text(&arena.expect([&["verify", "d.fecp"][..], &nothing].concat(), 3).stdout);
    assert!(
        said.contains("1 file was damaged at the last check, and not checked now; 1 of them could not"),
        "{said}"
    );
    let said = text(&arena.expect([&["verify", "d.fecp", "-q"][..], &nothing].concat(), 3).stderr);
    assert!(said.contains("damaged at the last check; not all of it can be mended"), "{said}");
}
