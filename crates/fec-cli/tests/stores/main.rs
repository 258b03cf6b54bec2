//! Shards in stores as users meet them. The stores here are folders, which fail separately like others.
//! `scripts/campaigns/stores.py` does the same with servers.

mod audit;
#[path = "../common/mod.rs"]
mod common;
mod copies;
mod folders;
mod held;
mod mirrors;
mod private;
mod rekey;
mod said;
mod servers;
mod slow;

use common::{Arena, expect, listing, payload, text};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

const PLACES: [&str; 5] = ["p0", "p1", "p2", "p3", "p4"];
const LEN: usize = 1_000_000;

/// A payload whose shards were sent to five folders.
struct Sent {
    arena: Arena,
    bytes: Vec<u8>,
    root: String,
}

impl Sent {
    fn new(options: &[&str]) -> Sent {
        let arena = Arena::new();
        let bytes = payload(7, LEN);
        arena.write("in", &bytes);
        let output = encode(&arena, options);
        let root = common::root(&output);
        Sent { arena, bytes, root }
    }

    /// Runs a command on all places.
    fn fec(&self, command: &str, options: &[&str]) -> Output {
        self.fec_at(command, &PLACES, options)
    }

    fn fec_at(&self, command: &str, places: &[&str], options: &[&str]) -> Output {
        let from = places.iter().flat_map(|place| ["--from", place]);
        let args = [command, "--root", &self.root].into_iter().chain(from).chain(options.iter().copied());
        self.arena.fec(args).output().expect("fec starts")
    }

    /// Decodes, and compares with the payload that was sent.
    #[track_caller]
    fn comes_back(&self) -> String {
        let output = self.fec("decode", &["-o", "out", "-f"]);
        expect(&output, 0);
        assert!(self.arena.read("out") == self.bytes, "other bytes at exit code 0");
        let piped = self.fec("decode", &["-o", "-"]);
        expect(&piped, 0);
        assert!(piped.stdout == self.bytes, "other bytes at exit code 0");
        text(&output.stderr)
    }

    /// Asserts that decode fails with this code and leaves nothing.
    #[track_caller]
    fn is_refused(&self, exit: i32) {
        let before = listing(&self.arena.path("."));
        let output = self.fec("decode", &["-o", "nothing"]);
        expect(&output, exit);
        assert_eq!(listing(&self.arena.path(".")), before);
        let piped = self.fec("decode", &["-o", "-"]);
        expect(&piped, exit);
        assert!(piped.stdout.is_empty() || self.bytes.starts_with(&piped.stdout), "other bytes went out");
    }

    fn manifest(&self, place: &str) -> PathBuf {
        self.arena.path(format!("{place}/{}/manifest", self.root))
    }

    /// All shard files of a place, in order.
    fn shards(&self, place: &str) -> Vec<PathBuf> {
        let place = self.arena.path(place);
        let mut files: Vec<PathBuf> = listing(&place)
            .iter()
            .flat_map(|root| listing(&place.join(root)).into_iter().map(move |name| (root.clone(), name)))
            .filter(|(_, name)| name.ends_with(".shard"))
            .map(|(root, name)| place.join(root).join(name))
            .collect();
        files.sort();
        files
    }

    fn json(&self, command: &str, options: &[&str], exit: i32) -> Value {
        let output = self.fec(command, &[options, &["--json"]].concat());
        expect(&output, exit);
        serde_json::from_slice(&output.stdout).expect("a report")
    }
}

fn encode(arena: &Arena, options: &[&str]) -> Output {
    let to = PLACES.iter().flat_map(|place| ["--to", place]);
    let shape = ["encode", "in", "-k", "6", "-m", "4"];
    let segments = ["--segment-size", "300K"];
    let segments = if options.contains(&"--segment-size") { &[][..] } else { &segments };
    let shape = shape.into_iter().chain(segments.iter().copied());
    arena.fec(shape.chain(to).chain(options.iter().copied())).output().expect("fec starts")
}

fn flip(path: &PathBuf, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}
