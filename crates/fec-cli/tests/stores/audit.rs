//! `fec verify --audit`: words, exit codes, and the commands that messages advise.

use crate::common::{expect, text};
use crate::{PLACES, Sent};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn audit(sent: &Sent, options: &[&str]) -> Output {
    sent.fec("verify", &[&["--audit"], options].concat())
}

fn report(sent: &Sent, options: &[&str]) -> Value {
    serde_json::from_slice(&audit(sent, &[options, &["--json"]].concat()).stdout).expect("a report")
}

/// Changes the middle of each shard file of a place.
fn rot(sent: &Sent, place: &str) {
    for path in sent.shards(place) {
        let mut object = fs::read(&path).expect("a shard");
        let (len, middle) = (object.len() / 4, object.len() / 2);
        object[middle - len..middle].fill(0x55);
        fs::write(&path, object).expect("it is written");
    }
}

#[test]
fn an_audit_says_what_it_shows() {
    let sent = Sent::new(&[]);
    let output = audit(&sent, &[]);
    expect(&output, 0);
    let said = text(&output.stdout);
    assert_eq!(said.matches("459 looks right: 99 %: no more than 1 % of ").count(), 5, "{said}");
    assert!(said.contains("\n99 %: no place has lost more than 1 % of what it should hold\n"), "{said}");
    assert!(said.contains(" the same again: --seed "), "{said}");
    let found = report(&sent, &["--confidence", "95%", "--rot", "10%"]);
    assert_eq!((found["places"][0]["looks"].as_u64(), found["state"].as_str()), (Some(29), Some("intact")));
    assert!(found["shown"].as_f64().is_some_and(|shown| (0.95..0.96).contains(&shown)), "{found}");
    expect(&audit(&sent, &["-q"]), 0);
    assert_eq!(text(&audit(&sent, &["-q"]).stdout), "");
    let few = audit(&sent, &["--budget-bytes", "300K"]);
    expect(&few, 0);
    assert!(text(&few.stdout).contains("a larger --budget-bytes, or --deep for every byte\n"), "{few:?}");
}

/// The command that is printed makes it good, and a seed looks at the same bytes again.
#[test]
fn rot_is_told_and_the_advice_mends_it() {
    let sent = Sent::new(&[]);
    rot(&sent, "p3");
    fs::remove_file(sent.shards("p1").remove(0)).expect("it was there");
    let output = audit(&sent, &["--seed", "7"]);
    expect(&output, 1);
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[1].starts_with("  p1: 1 object missing"), "{said}");
    assert!(lines[2].starts_with("  p3: ") && lines[2].contains(" of 459 looks wrong: about "), "{said}");
    assert!(lines[3].starts_with("    segment "), "{said}");
    assert!(
        said.contains("\n99 %: 3 of 5 places have lost no more than 1 % of what they should hold\n"),
        "{said}"
    );
    let found = report(&sent, &["--seed", "7"]);
    let again = report(&sent, &["--seed", "7"]);
    assert_eq!(found["places"], again["places"]);
    assert_eq!((found["shown"].as_f64(), found["state"].as_str()), (None, Some("damaged")));
    assert!(report(&sent, &["--seed", "8"])["places"][1]["wrong"] != found["places"][1]["wrong"]);
    let quiet = audit(&sent, &["-q"]);
    expect(&quiet, 1);
    assert!(text(&quiet.stderr).starts_with("fec: verify 99 %: 3 of 5 places have "), "{quiet:?}");
    let command = lines.iter().find(|line| line.trim().starts_with("fec repair")).expect("a command");
    sent.arena.expect(command.split_whitespace().skip(1), 0);
    expect(&audit(&sent, &[]), 0);
    expect(&sent.fec("verify", &["--deep"]), 0);
}

#[test]
fn too_few_shards_are_lost_and_a_place_that_is_gone_shows_nothing() {
    let sent = Sent::new(&[]);
    fs::rename(sent.arena.path("p0"), sent.arena.path("away")).expect("it was there");
    let output = audit(&sent, &[]);
    expect(&output, 4);
    let said = text(&output.stdout);
    assert!(said.contains("  p0: nothing is shown: the place is not there\n"), "{said}");
    assert!(said.contains("99 %: 4 of 5 places have lost no more"), "{said}");
    fs::create_dir(sent.arena.path("p0")).expect("a folder");
    for place in &PLACES[1..3] {
        fs::remove_dir_all(sent.arena.path(place)).expect("it was there");
        fs::create_dir(sent.arena.path(place)).expect("a folder");
    }
    let output = audit(&sent, &[]);
    expect(&output, 3);
    assert!(
        text(&output.stdout).contains("it cannot be restored from these places: 2 shards too few\n"),
        "{output:?}"
    );
}

/// With --state a place that was found well is left out while that is recent, and one that was not is looked at again.
#[test]
fn a_state_leaves_out_what_was_found_well_lately() {
    let sent = Sent::new(&[]);
    rot(&sent, "p3");
    expect(&audit(&sent, &["--state", "seen"]), 1);
    let lately = ["--state", "seen", "--older-than", "1d"];
    let found = report(&sent, &lately);
    assert_eq!(found["recent"], serde_json::json!(["p0", "p1", "p2", "p4"]));
    assert_eq!((found["places"].as_array().map(Vec::len), found["exit_code"].as_u64()), (Some(1), Some(1)));
    expect(&sent.fec("repair", &["--deep", "--now", "-q"]), 0);
    expect(&audit(&sent, &lately), 0);
    let output = audit(&sent, &lately);
    expect(&output, 0);
    let said = text(&output.stdout);
    assert!(said.contains("  p4: it was found well lately, and is left out\n"), "{said}");
    assert!(said.contains("\nno place was due\n"), "{said}");
    // Whoever asks for more has it shown.
    let found = report(&sent, &[&lately[..], &["--confidence", "99.9%"]].concat());
    assert_eq!((found["recent"].as_array().map(Vec::len), found["exit_code"].as_u64()), (Some(0), Some(0)));
    // The state of another encoding, and another file.
    let other = Sent::new(&["--segment-size", "200K"]);
    expect(&audit(&other, &["--state", "seen"]), 0);
    fs::copy(other.arena.path("seen"), sent.arena.path("seen")).expect("a state");
    let refused = audit(&sent, &lately);
    expect(&refused, 2);
    assert!(text(&refused.stderr).contains("each root needs a --state of its own"), "{refused:?}");
    sent.arena.write("seen", b"photos\n");
    let refused = audit(&sent, &lately);
    expect(&refused, 2);
    assert!(text(&refused.stderr).contains("choose another name with --state"), "{refused:?}");
    assert_eq!(sent.arena.read("seen"), b"photos\n");
}

#[test]
fn options_that_an_audit_does_not_have_are_refused() {
    let sent = Sent::new(&[]);
    for options in [
        &["--deep"][..],
        &["--spool", "."],
        &["--budget", "2h"],
        &["--need", "3"],
        &["--rot", "100%"],
        &["--confidence", "1"],
    ] {
        expect(&audit(&sent, options), 2);
    }
    expect(&sent.fec("verify", &["--rot", "1%"]), 2);
    sent.arena.refuses(["verify", "--audit", "p0"], 2);
}
