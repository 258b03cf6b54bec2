//! Bytes that no sender wrote: reading them ends in bounded time and memory, without a panic.

use super::*;

/// Asserts that the receiver ends within [`LIMIT`], whatever it reads.
#[track_caller]
fn survives(arena: &Arena, stream: &[u8], options: &[&str]) -> Output {
    let output = receive(arena, options, stream);
    assert!([0, 3, 6].contains(&code(&output)), "{}", text(&output.stderr));
    output
}

#[test]
fn noise_of_all_kinds() {
    let arena = Arena::new();
    let delimiters = DELIMITER.repeat(2_000_000);
    let magics = b"\xFE\xFD\x64\x89fep".repeat(600_000);
    for (noise, what) in [
        (Vec::new(), "nothing"),
        (vec![0; 4_000_000], "zeros"),
        (vec![0xFE; 4_000_000], "halves of delimiters"),
        (delimiters, "delimiters"),
        (magics, "beginnings of frames"),
        (payload(1, 4_000_000), "random bytes"),
    ] {
        let output = survives(&arena, &noise, &[]);
        assert_eq!(code(&output), 3, "{what}");
        assert!(output.stdout.is_empty(), "{what}");
        assert!(
            text(&output.stderr).contains("no packet of a stream came"),
            "{what}: {}",
            text(&output.stderr)
        );
    }
}

/// Packets with valid checksums and false contents.
pub(super) struct Forger {
    pub(super) profile: u8,
    pub(super) window: u32,
    pub(super) payload: u16,
    pub(super) block: u16,
}

impl Forger {
    fn packet(&self, kind: u8, number: u64, body: &[u8]) -> Vec<u8> {
        let mut packet = b"\x89fep\x01".to_vec();
        packet.extend([kind, 0, self.profile]);
        packet.extend(7u64.to_le_bytes());
        packet.extend(number.to_le_bytes());
        packet.extend(self.window.to_le_bytes());
        packet.extend(self.payload.to_le_bytes());
        packet.extend(self.block.to_le_bytes());
        let summed = [&packet[..], &[0; 4], if kind == 0 { &[] } else { body }].concat();
        packet.extend(crc32c::crc32c(&summed).to_le_bytes());
        packet.extend_from_slice(body);
        packet
    }

    pub(super) fn source(&self, seq: u64, bytes: &[u8]) -> Vec<u8> {
        let sized = [&(bytes.len() as u16).to_le_bytes(), bytes].concat();
        let summed = [&7u64.to_le_bytes()[..], &seq.to_le_bytes(), &sized].concat();
        self.packet(0, seq, &[&crc32c::crc32c(&summed).to_le_bytes(), &sized[..]].concat())
    }

    fn repair(&self, row: u64, first: u64, count: u32, part: u32, random: &mut Random) -> Vec<u8> {
        let mut body = first.to_le_bytes().to_vec();
        body.extend(count.to_le_bytes());
        body.extend(part.to_le_bytes());
        let cut = random.below(4) * random.below(usize::from(self.payload) / 3);
        body.extend(payload(random.next(), usize::from(self.payload) + 6 - cut));
        self.packet(1, row, &body)
    }

    pub(super) fn mark(&self, sent: u64, end: bool) -> Vec<u8> {
        self.packet(2, sent, &u32::from(end).to_le_bytes())
    }
}

/// A frame by the specification: runs up to each delimiter, with at most 252 bytes in the first and 64,008 in later
/// ones.
pub(super) fn frame(packet: &[u8]) -> Vec<u8> {
    let (mut out, mut most) = (Vec::new(), 252);
    let mut rest = [packet, &DELIMITER].concat();
    while !rest.is_empty() {
        let found = rest.windows(2).position(|w| w == DELIMITER).unwrap_or(rest.len());
        let run = found.min(most);
        out.push((run % 253) as u8);
        if most > 252 {
            out.push((run / 253) as u8);
        }
        out.extend(&rest[..run]);
        rest.drain(..if run < most { run + 2 } else { run });
        most = 64_008;
    }
    out.extend(DELIMITER);
    out
}

/// The largest numbers, jumps, and empty and contradicting rows in all profiles, after a few honest packets.
#[test]
fn forged_packets_with_right_checksums() {
    let arena = Arena::new();
    let mut random = Random::new(11);
    for (profile, window, block) in [
        (1, 6000, 240),
        (1, 65_536, 240),
        (1, 1, 1),
        (2, 6000, 240),
        (3, 240, 240),
        (4, 65_536, 1),
        (4, 6000, 255),
        (4, 1, 1),
    ] {
        let forger = Forger { profile, window, payload: 64, block };
        let size = if profile == 4 { u64::from(window) } else { u64::from(block) };
        let mut packets: Vec<Vec<u8>> = (0..20).map(|seq| forger.source(seq, b"honest")).collect();
        for _ in 0..3000 {
            let near = random.next() % 20_000;
            let number = match random.below(6) {
                0 => random.next() >> 1,
                1 => (1 << 63) - 1 - random.next() % 3,
                2 => near + (1 << 40),
                _ => near,
            };
            let count = 1 + random.next() as u32 % window;
            packets.push(match random.below(8) {
                0 => forger.mark(number, false),
                1 if random.below(50) == 0 => forger.mark(number, true),
                2..=4 => forger.source(number, &payload(random.next(), random.below(65))),
                _ => {
                    let part = if profile == 4 { random.below(300) as u32 } else { 0 };
                    let row = random.next() >> random.below(64) >> 1;
                    let count = if profile == 3 { count.min(block.into()) } else { count };
                    forger.repair(row, number / size * size, count, part, &mut random)
                }
            });
        }
        let frames: Vec<Vec<u8>> = packets.iter().map(|packet| frame(packet)).collect();
        let output = survives(&arena, &joined(&frames), &["--json"]);
        assert!(output.stdout.starts_with(b"honest"), "profile {profile}");
        survives(&arena, &joined(&frames), &["--deadline-packets", "10"]);
    }
}

/// A single packet cannot make the receiver write endless zeros.
#[test]
fn a_jump_is_not_filled_with_zeros_without_limit() {
    let arena = Arena::new();
    let forger = Forger { profile: 1, window: 100, payload: 64, block: 25 };
    let far = (0..40).map(|i| (1 << 40) + i);
    let packets: Vec<Vec<u8>> = (0..20).chain(far).map(|seq| frame(&forger.source(seq, b"x"))).collect();
    let output = receive(&arena, &["--gap", "zero"], &joined(&packets));
    expect(&output, 6);
    assert!(output.stdout.len() <= 20, "{}", output.stdout.len());
    let output = receive(&arena, &["--json"], &joined(&packets));
    expect(&output, 3);
    assert_eq!(output.stdout.len(), 60, "both sides of the jump come out");
    assert_eq!(report(&output)["lost"], (1u64 << 40) - 20);
}

/// A packet of a future version, type or authentication is refused by name.
#[test]
fn what_is_not_known_is_refused() {
    let arena = Arena::new();
    for (at, value, word) in [(4, 2, "version 2"), (5, 3, "type 3"), (6, 1, "sealed"), (6, 9, "sealed")] {
        let mut packet = Forger { profile: 1, window: 100, payload: 64, block: 25 }.source(0, b"x");
        packet[at] = value;
        let output = receive(&arena, &[], &joined(&[frame(&packet)]));
        expect(&output, 6);
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    }
    // Only the checksum tells that the unknown number of the profile is not damage.
    let forger = Forger { profile: 9, window: 100, payload: 64, block: 25 };
    let output = receive(&arena, &[], &joined(&[frame(&forger.source(0, b"x"))]));
    expect(&output, 6);
    assert!(text(&output.stderr).contains("profile 9"));
}

/// Honest streams, cut up and joined again at random.
#[test]
fn mutations_of_honest_streams() {
    let arena = Arena::new();
    let bytes = payload(3, 60_000);
    let mut random = Random::new(5);
    for profile in ["bounded", "classic", "classic-blocks", "blocks"] {
        let honest = send(&arena, &["--packet", "100", "--window", "200", "--profile", profile], &bytes);
        for _ in 0..12 {
            let mut stream = honest.clone();
            for _ in 0..1 + random.below(30) {
                let (from, to) = (random.below(stream.len()), random.below(stream.len()));
                let end = (from + random.below(3000)).min(stream.len());
                let piece = stream[from..end].to_vec();
                match random.below(3) {
                    0 => drop(stream.splice(to..to, piece)),
                    1 => drop(stream.drain(from..end)),
                    _ => stream[to] = random.next() as u8,
                }
                if stream.is_empty() {
                    stream.push(0);
                }
            }
            let output = survives(&arena, &stream, &["--json"]);
            assert!(code(&output) != 0 || output.stdout == bytes, "exit code 0 over less than all");
            // The output consists of pieces of the payload, in order.
            let mut rest = &bytes[..];
            let mut out = &output.stdout[..];
            while !out.is_empty() {
                let piece = &out[..out.len().min(100)];
                let at = rest.chunks(100).position(|chunk| chunk == piece);
                let at = at.expect("no wrong byte is delivered");
                rest = &rest[(at * 100 + 100).min(rest.len())..];
                out = &out[piece.len()..];
            }
        }
    }
}
