//! `protect --update --retired`: what has left is taken out of the recovery data.

use super::*;

/// A folder of which a file has left, with its sidecar; `seal` seals that.
fn left(seal: &[&str]) -> Arena {
    let arena = Arena::new();
    for (nth, len) in [(1, 1_000_000), (2, 700_000), (3, 400_000), (4, 777)] {
        arena.write(format!("d/{nth}"), &payload(nth, len));
    }
    arena.expect([&["protect", "d"], seal].concat(), 0);
    fs::create_dir_all(arena.path("old/d")).unwrap();
    fs::rename(arena.path("d/2"), arena.path("old/d/2")).unwrap();
    arena
}

const UPDATE: [&str; 6] = ["protect", "-u", "--pruned", "d", "--retired", "old"];

#[test]
fn it_is_told_and_the_rest_has_all_of_it() {
    let arena = left(&[]);
    let said = text(&arena.expect(UPDATE, 0).stderr);
    assert!(
        said.contains("was updated and written again") && said.contains("taken out of the recovery data: 68"),
        "{said}"
    );
    let said = text(&arena.expect(["verify", "--deep", "d.fecp"], 0).stdout);
    assert!(said.contains("it can mend any 24.3 % of the blocks"), "{said}");
    // A second time nothing has left, and a folder that is not there is an error.
    let again: serde_json::Value =
        serde_json::from_slice(&arena.expect([&UPDATE[..], &["--json"]].concat(), 0).stdout).unwrap();
    assert_eq!(again["update"]["retired_bytes"], 0);
    arena.expect(["protect", "-u", "d", "--retired", "nowhere"], 4);
    arena.expect(["protect", "d", "-f", "--retired", "old"], 2);
}

#[test]
fn other_bytes_are_told_and_not_believed() {
    let arena = left(&[]);
    flip(&arena.path("old/d/2"), 5000);
    let said = text(&arena.expect(UPDATE, 0).stderr);
    assert!(
        said.contains("nothing was taken out of the recovery data: d/2 is not what was protected"),
        "{said}"
    );
    arena.expect(["verify", "--deep", "d.fecp"], 0);
}

#[test]
fn a_sealed_sidecar_stays_one() {
    let arena = Arena::new();
    let recipient = text(&arena.expect(["keygen", "-o", "key"], 0).stdout).trim().to_owned();
    let seal = ["--recipient", &recipient];
    let sealed = left(&seal);
    fs::copy(arena.path("key"), sealed.path("key")).unwrap();
    let said = text(&sealed.expect([&UPDATE[..], &seal, &["-i", "key"]].concat(), 0).stderr);
    assert!(said.contains("taken out of the recovery data: 68"), "{said}");
    flip(&sealed.path("d/1"), 300_000);
    sealed.expect(["repair", "d.fecp", "-i", "key", "--revert"], 0);
    assert_eq!(sealed.read("d/1"), payload(1, 1_000_000));
    sealed.expect(["verify", "--deep", "-i", "key", "d.fecp"], 0);
}
