//! Live streams through the binary: pipes, files and loopback UDP, with loss, damage and hostile bytes.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod ends;
mod field;
mod hostile;
mod network;
mod pipes;
mod sealed;
mod settings;

use common::{Arena, LIMIT, Random, code, expect, finish, payload, text};
use serde_json::Value;
use std::process::Output;
use std::time::{Duration, Instant};

/// The bytes between frames.
const DELIMITER: [u8; 2] = [0xFE, 0xFD];

/// Runs `encode --stream` with these options and `input` in a pipe.
#[track_caller]
fn send(arena: &Arena, options: &[&str], input: &[u8]) -> Vec<u8> {
    let args = ["encode", "--stream", "-q"].iter().chain(options);
    let output = arena.pipe(args, input);
    expect(&output, 0);
    output.stdout
}

/// Runs `decode --stream` with these options and `stream` in a pipe.
#[track_caller]
fn receive(arena: &Arena, options: &[&str], stream: &[u8]) -> Output {
    arena.pipe(["decode", "--stream"].iter().chain(options), stream)
}

/// The object of --json, which goes to standard error if standard output carries the payload.
#[track_caller]
fn report(output: &Output) -> Value {
    let said = text(&output.stderr);
    let line =
        said.lines().find(|line| line.starts_with("{\"schema_version\"")).unwrap_or_else(|| panic!("{said}"));
    serde_json::from_str(line).expect("it is JSON")
}

/// The frames of a stream, each with the delimiter behind it.
fn frames(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let mut rest = &stream[2..];
    while let Some(at) = rest.windows(2).position(|w| w == DELIMITER) {
        frames.push(rest[..at + 2].to_vec());
        rest = &rest[at + 2..];
    }
    frames
}

/// The packet in a frame (see `hostile::frame`).
fn unframed(frame: &[u8]) -> Vec<u8> {
    let (mut packet, mut rest, mut most) = (Vec::new(), &frame[..frame.len() - 2], 252);
    while let Some((&low, behind)) = rest.split_first() {
        let (high, behind) = if most == 252 { (0, behind) } else { (behind[0], &behind[1..]) };
        let run = usize::from(low) + 253 * usize::from(high);
        packet.extend_from_slice(&behind[..run]);
        if run < most {
            packet.extend(DELIMITER);
        }
        (rest, most) = (&behind[run..], 64_008);
    }
    packet.truncate(packet.len() - 2);
    packet
}

/// The type of a packet in its frame: 0 source, 1 repair, 2 mark. Valid for packets without a delimiter in their first
/// bytes.
fn kind(frame: &[u8]) -> u8 {
    frame[1 + 5]
}

/// A stream of these frames.
fn joined<'a>(frames: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut stream = DELIMITER.to_vec();
    frames.into_iter().for_each(|frame| stream.extend_from_slice(frame));
    stream
}

/// The payload without some of its packets of `len` bytes.
fn without(payload: &[u8], len: usize, lost: impl Fn(usize) -> bool) -> Vec<u8> {
    payload.chunks(len).enumerate().filter(|(i, _)| !lost(*i)).flat_map(|(_, chunk)| chunk).copied().collect()
}
