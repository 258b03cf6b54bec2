//! The golden vectors of framed live streams, written by `scripts/oracle` from the specification: what is sent has the
//! other implementation's frames, and what it framed is received, or reported as the vectors say.

#[path = "../../fecfile/tests/vectors/mod.rs"]
mod vectors;

use fec_base::context::{Context, Silent};
use fec_base::error::Place;
use fec_base::io::output::{FileOut, Policy};
use fec_base::names::hex;
use fec_core::digest::HashKind;
use fec_core::format::packet::Profile;
use fec_core::window::Ratio;
use fec_live::Output;
use fec_live::key::StreamKey;
use fec_live::receive::{MAX_AGE, Opening, PacketSource, ReceiveOptions, receive};
use fec_live::send::{PacketDestination, SendOptions, send};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Cursor;
use vectors::{exit_of, golden, read, str_of};

fn number(vector: &Value, field: &str) -> u64 {
    vector[field].as_u64().unwrap_or_else(|| panic!("{vector} has no number {field}"))
}

fn sha256(bytes: &[u8]) -> String {
    hex(&HashKind::Sha256.digest(bytes))
}

/// A pipe gives only vectors of full payloads, of which the empty stream is one.
#[test]
fn frames_are_those_of_the_other_implementation() {
    let vectors = read("stream.json");
    let mut all = vectors.as_array().expect("a list").iter();
    let vector = all.find(|vector| number(vector, "packets") == 0).expect("an empty stream");
    let profile = Profile::ALL.into_iter().find(|profile| profile.name() == str_of(vector, "profile"));
    let options = SendOptions {
        stream_id: Some(u64::from_str_radix(str_of(vector, "stream_id"), 16).expect("digits")),
        window: number(vector, "window") as u32,
        block: number(vector, "block") as u16,
        payload: number(vector, "packet") as u16,
        profile: profile.expect("a profile"),
        ratio: Ratio::new(number(vector, "repair") as u16, number(vector, "source") as u16).expect("a ratio"),
        ..SendOptions::default()
    };
    let mut framed = Vec::new();
    let destination = PacketDestination::Bytes(Output::stream(Place::Nowhere, &mut framed));
    let input = Cursor::new(Vec::new());
    let sent = send(input, Place::Nowhere, destination, &options, &Context::default()).expect("it is sent");
    assert_eq!(sent.source_packets, 0);
    assert_eq!(sha256(&framed), str_of(vector, "framed_sha256"));
}

#[test]
fn framed_streams_of_the_other_implementation_are_restored() {
    let vectors = read("stream-files.json");
    let vectors = vectors.as_array().expect("a list");
    assert!(vectors.len() >= 25);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    for vector in vectors {
        let path = golden().join(str_of(vector, "path"));
        let key = vector["key"].as_str().map(|key| StreamKey::read(&golden().join(key)).expect("a key"));
        let opening = key.map(|key| Opening { key, max_age: Some(MAX_AGE) });
        let options = ReceiveOptions { opening, ..ReceiveOptions::default() };
        let source = PacketSource::Bytes {
            place: Place::Nowhere,
            head: Vec::new(),
            input: Box::new(File::open(path).expect("a vector")),
        };
        let file = FileOut::create(&out, Policy::new().with_sync(false)).expect("an output");
        let received = receive(source, Output::file(file), &options, &mut Silent, &Context::default());
        let exit = match &received {
            Ok(received) => received.class().map_or(0, exit_of),
            Err(error) => exit_of(error.class()),
        };
        let restored = fs::read(&out).unwrap_or_default();
        let _ = fs::remove_file(&out);
        let found = (exit as u64, restored.len() as u64, sha256(&restored));
        let expected = (
            number(vector, "exit"),
            number(vector, "payload_len"),
            str_of(vector, "payload_sha256").to_owned(),
        );
        assert_eq!(found, expected, "{vector}: {received:?}");
    }
}
