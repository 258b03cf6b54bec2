//! The settings of the guide for telemetry, video and bulk, and the losses that they survive: figures of
//! docs/guide/field.md, which has the same words.

use super::network::{Listening, send_to};
use super::*;

/// The rows of the table: the words in front of `survives`, and the losses.
fn row(of: &str) -> (Vec<String>, Vec<String>) {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/field.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let row = guide.lines().find(|line| line.starts_with(&format!("| {of}:"))).expect("a row").to_owned();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let quoted =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let options = quoted(cells[2])[0].split(' ').map(str::to_owned).collect();
    (options, quoted(cells[4]))
}

/// Sends through a pipe with these losses, and checks that all came out.
fn survives(options: &[String], loss: &str, bytes: &[u8]) {
    let arena = Arena::new();
    let impair = format!("{loss},seed:1");
    let options: Vec<&str> = options.iter().map(String::as_str).chain(["--impair", &impair]).collect();
    let stream = send(&arena, &options, bytes);
    let output = receive(&arena, &["--latency", "none"], &stream);
    assert_eq!(code(&output), 0, "{loss}: {}", text(&output.stderr));
    assert!(output.stdout == bytes, "{loss}");
    assert!(report(&receive(&arena, &["--json"], &stream))["rebuilt"].as_u64() > Some(0));
}

#[test]
fn telemetry_survives_what_the_guide_says() {
    let (options, losses) = row("telemetry");
    assert_eq!(losses.len(), 2);
    losses.iter().for_each(|loss| {
        survives(&options, &loss.replace("burst:24", "burst:24,1000"), &payload(1, 800_000))
    });
}

#[test]
fn bulk_survives_what_the_guide_says() {
    let (options, losses) = row("bulk");
    assert_eq!(losses.len(), 2);
    let options: Vec<String> = options.into_iter().take_while(|word| word != "--mbps").collect();
    losses.iter().for_each(|loss| survives(&options, loss, &payload(2, 60_000_000)));
}

/// A viewer waits 0.9 s, and no longer: this takes a network and a clock.
#[test]
fn video_survives_what_the_guide_says() {
    let (options, losses) = row("video");
    assert_eq!(losses.len(), 2);
    let arena = Arena::new();
    let bytes = payload(3, 7_500_000);
    let mut options: Vec<String> = options;
    *options.last_mut().expect("a rate") = "20".to_owned();
    for loss in losses {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--json", "--stats", "json"]);
        let impair = format!("{loss},seed:1");
        let options: Vec<&str> = options.iter().map(String::as_str).chain(["--impair", &impair]).collect();
        send_to(&arena, &receiver.address, &options, &bytes);
        let output = receiver.end();
        assert_eq!(code(&output), 0, "{loss}: {}", text(&output.stderr));
        assert!(output.stdout == bytes, "{loss}");
    }
}
