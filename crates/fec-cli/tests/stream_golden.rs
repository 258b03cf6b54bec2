//! The golden vectors of live streams, written by `scripts/oracle` from the specification. `fec` must produce
//! the same packets, every rule must reject its violations, and framed streams must restore.

mod common;

use common::{Arena, code, payload, text};
use fec_core::format::packet::Profile;
use fec_core::gf256::kernel::Backend;
use fec_core::window::{Encoder, Ratio, StreamSettings, WINDOW_LIMIT};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn vectors(file: &str) -> Vec<Value> {
    let bytes = std::fs::read(golden().join(file)).expect("the golden vectors are there");
    serde_json::from_slice(&bytes).expect("they are JSON")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn str_of<'a>(vector: &'a Value, field: &str) -> &'a str {
    vector[field].as_str().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

fn number(vector: &Value, field: &str) -> u64 {
    vector[field].as_u64().unwrap_or_else(|| panic!("{vector} has no {field}"))
}

/// The payloads of a vector: mostly full, some short, some empty.
fn payloads(vector: &Value) -> Vec<Vec<u8>> {
    let (most, seed) = (number(vector, "packet") as usize, number(vector, "seed"));
    let lens = payload(seed, number(vector, "packets") as usize);
    let lens: Vec<usize> = lens
        .iter()
        .map(|&x| match x {
            0..160 => most,
            160..=170 => 0,
            _ => usize::from(x) * most / 255,
        })
        .collect();
    let bytes = payload(seed + 1, lens.iter().sum());
    let mut rest = &bytes[..];
    lens.iter()
        .map(|&len| {
            let (piece, behind) = rest.split_at(len);
            rest = behind;
            piece.to_vec()
        })
        .collect()
}

/// Every packet of a stream sent without pause, in order.
fn send(vector: &Value, backend: Backend) -> Vec<Vec<u8>> {
    let profile =
        Profile::ALL.into_iter().find(|p| p.name() == str_of(vector, "profile")).expect("a profile");
    let settings = StreamSettings {
        stream_id: u64::from_str_radix(str_of(vector, "stream_id"), 16).unwrap(),
        window: number(vector, "window") as u32,
        block: number(vector, "block") as u16,
        payload: number(vector, "packet") as u16,
        profile,
        ratio: Ratio::new(number(vector, "repair") as u16, number(vector, "source") as u16).unwrap(),
        limit: WINDOW_LIMIT,
    };
    let mut encoder = Encoder::new(&settings, backend).expect("the settings are good");
    assert_eq!(u64::from(encoder.parameters().block), number(vector, "block"), "{vector}");
    let mut packets = Vec::new();
    let mut emit = |packet: &[u8]| packets.push(packet.to_vec());
    for payload in payloads(vector) {
        encoder.push(&payload, &mut emit).unwrap();
    }
    encoder.finish(&mut emit);
    packets
}

#[test]
fn every_packet_comes_out_byte_for_byte_on_every_backend() {
    let vectors = vectors("stream.json");
    assert!(vectors.len() >= 30);
    for vector in &vectors {
        let name = str_of(vector, "name");
        for backend in Backend::available() {
            let packets = send(vector, backend);
            let repairs: Vec<String> = packets
                .iter()
                .filter(|packet| packet[5] == 1)
                .map(|packet| sha256(packet)[..16].to_owned())
                .collect();
            let expected: Vec<&str> =
                vector["repairs"].as_array().unwrap().iter().map(|d| d.as_str().unwrap()).collect();
            let first = repairs.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(first, None, "{name}, {}: the first repair packet that differs", backend.name());
            assert_eq!(repairs.len(), expected.len(), "{name}");
            assert_eq!(hex(packets.last().unwrap()), str_of(vector, "end"), "{name}");
            let mut all = Sha256::new();
            for packet in &packets {
                all.update((packet.len() as u32).to_le_bytes());
                all.update(packet);
            }
            assert_eq!(hex(&all.finalize()), str_of(vector, "sha256"), "{name}, {}", backend.name());
        }
    }
}

/// The whole way through the binary: payloads, packets, frames. A pipe gives only vectors of full payloads, so this
/// test makes its own, and compares the other implementation's frames by digest.
#[test]
fn frames_are_those_of_the_other_implementation() {
    let arena = Arena::new();
    let vector =
        vectors("stream.json").into_iter().find(|v| number(v, "packets") == 0).expect("an empty stream");
    let numbers = ["window", "block", "packet"].map(|field| number(&vector, field).to_string());
    let rate = format!("{}/{}", number(&vector, "repair"), number(&vector, "source"));
    let [window, block, packet] = &numbers;
    let output = arena.run([
        "encode",
        "--stream",
        "--window",
        window,
        "--block",
        block,
        "--packet",
        packet,
        "--rate",
        &rate,
        "--profile",
        str_of(&vector, "profile"),
        "--stream-id",
        str_of(&vector, "stream_id"),
    ]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    assert_eq!(sha256(&output.stdout), str_of(&vector, "framed_sha256"));
}

#[test]
fn framed_streams_of_the_other_implementation_are_restored() {
    let vectors = vectors("stream-files.json");
    assert!(vectors.len() >= 25);
    let mut wrong = Vec::new();
    for vector in &vectors {
        let path = golden().join(str_of(vector, "path"));
        let key = vector["key"].as_str().map(|key| golden().join(key));
        let key = key.iter().flat_map(|key| [Path::new("--key-file"), key]);
        for stdin in [false, true] {
            let arena = Arena::new();
            let output = if stdin {
                let args = ["decode", "--stream", "-", "-o", "out", "--no-sync"].map(Path::new);
                arena.pipe(args.into_iter().chain(key.clone()), &std::fs::read(&path).unwrap())
            } else {
                let args = ["decode", "--stream", "-o", "out", "--no-sync"].map(Path::new);
                arena.run(args.into_iter().chain([&*path]).chain(key.clone()))
            };
            let restored = std::fs::read(arena.path("out")).unwrap_or_default();
            let as_expected = code(&output) == number(vector, "exit") as i32
                && restored.len() as u64 == number(vector, "payload_len")
                && sha256(&restored) == str_of(vector, "payload_sha256");
            if !as_expected {
                let said = text(&output.stderr);
                wrong.push(format!("{vector}\n  got {}, {} bytes: {said}", code(&output), restored.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
