//! Sealed streams: an attacker who can send packets but has no key can do nothing to them.

use super::network::{Listening, send_to};
use super::*;
use std::net::{SocketAddr, UdpSocket};
use std::thread::{scope, sleep};

const MS: Duration = Duration::from_millis(1);
/// The variable with the passphrase.
const VARIABLE: &str = "FEC_PASSPHRASE";

/// Makes the key file `name`.
fn keygen(arena: &Arena, name: &str) {
    expect(&arena.run(["keygen", "--stream", "-o", name]), 0);
}

/// A socket outside of any stream.
fn stranger() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(500 * MS)).unwrap();
    socket
}

fn address_of(receiver: &Listening) -> SocketAddr {
    receiver.address.strip_prefix("udp://").unwrap().parse().unwrap()
}

/// All packets that a sender sends.
fn recorded(arena: &Arena, options: &[&str], bytes: &[u8]) -> Vec<Vec<u8>> {
    let socket = stranger();
    let to = format!("udp://{}", socket.local_addr().unwrap());
    let (mut packets, mut buffer) = (Vec::new(), vec![0; 70_000]);
    scope(|scope| {
        let sender = scope.spawn(|| send_to(arena, &to, options, bytes));
        loop {
            let is_over = sender.is_finished();
            match socket.recv(&mut buffer) {
                Ok(len) => packets.push(buffer[..len].to_vec()),
                Err(_) if is_over => break,
                Err(_) => {}
            }
        }
        sender.join().unwrap();
    });
    packets
}

fn play(packets: &[Vec<u8>], to: SocketAddr) {
    let socket = stranger();
    for packet in packets {
        let _ = socket.send_to(packet, to);
        sleep(MS / 10);
    }
}

#[test]
fn a_key_or_passphrase_on_both_sides() {
    let arena = Arena::new();
    keygen(&arena, "key");
    let bytes = payload(1, 1_000_000);
    let impair = ["--mbps", "100", "--impair", "random:0.05,reorder:9,dup:0.05,seed:1"];
    for cipher in ["aes-256-gcm", "chacha20-poly1305"] {
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &["--key-file", "key"]);
        let options = [&impair[..], &["--key-file", "key", "--cipher", cipher, "--json"]].concat();
        let sent = send_to(&arena, &receiver.address, &options, &bytes);
        let told: Value = serde_json::from_slice(&sent.stdout).unwrap();
        assert_eq!((&told["cipher"], &told["packet"]), (&cipher.into(), &1150.into()));
        let output = receiver.end();
        expect(&output, 0);
        assert!(output.stdout == bytes, "{cipher}");
    }
    // The stream passes through a pipe, sealed by a passphrase. A file may be opened at any age.
    let with_passphrase = |passphrase: &str, args: &[&str]| {
        common::fec().env(VARIABLE, passphrase).current_dir(arena.path("")).args(args).output().unwrap()
    };
    std::fs::write(arena.path("in"), &bytes).unwrap();
    let good = "twelve or more characters";
    expect(&with_passphrase(good, &["encode", "--stream", "--passphrase", "in", "-o", "sealed"]), 0);
    expect(&with_passphrase(good, &["decode", "--passphrase", "sealed", "-o", "out"]), 0);
    assert!(std::fs::read(arena.path("out")).unwrap() == bytes);
    let sealed = std::fs::read(arena.path("sealed")).unwrap();
    assert!(!sealed.windows(16).any(|piece| piece == &bytes[5000..5016]), "nothing of it can be read");
    let output = with_passphrase("twelve other characters", &["decode", "--passphrase", "sealed", "-o", "-"]);
    expect(&output, 5);
    assert!(
        output.stdout.is_empty() && text(&output.stderr).contains("same key"),
        "{}",
        text(&output.stderr)
    );
    // A new passphrase must not be short, but decode tries any.
    let short = "nineteen characters";
    let output = with_passphrase(short, &["encode", "--stream", "--passphrase", "in", "-o", "short"]);
    expect(&output, 2);
    let said = text(&output.stderr);
    assert!(said.contains("20 characters") && said.contains("can guess it"), "{said}");
    // The advice leads to a key.
    assert!(said.contains("fec keygen --stream -o FILE") && said.contains("--key-file FILE"), "{said}");
    expect(&arena.run(["keygen", "--stream", "-o", "advised"]), 0);
    arena.expect(["encode", "--stream", "--key-file", "advised", "in", "-o", "by-key"], 0);
    assert!(!arena.path("short").exists());
    expect(&with_passphrase("eleven char", &["decode", "--passphrase", "sealed", "-o", "-"]), 5);
    let latin = std::os::unix::ffi::OsStringExt::from_vec(b"na\xEFve passphrase".to_vec());
    let with_latin = |passphrase: std::ffi::OsString, args: &[&str]| {
        common::fec().env(VARIABLE, passphrase).current_dir(arena.path("")).args(args).output().unwrap()
    };
    let output = with_latin(latin, &["decode", "--passphrase", "sealed", "-o", "-"]);
    expect(&output, 2);
    assert!(text(&output.stderr).contains("FEC_PASSPHRASE is not UTF-8"), "{}", text(&output.stderr));
}

#[test]
fn who_has_not_the_key_is_told() {
    let arena = Arena::new();
    keygen(&arena, "key");
    keygen(&arena, "other");
    let bytes = payload(2, 100_000);
    // (the sender's options, the receiver's, its exit code, what it says)
    for (sends, receives, exit, words) in [
        (&["--key-file", "key"][..], &["--key-file", "other"][..], 5, "same key"),
        (&["--key-file", "key"], &[], 6, "--key-file"),
        (&[], &["--key-file", "key"], 5, "not sealed"),
    ] {
        let options = [receives, &["--wait-ms", "1200"]].concat();
        let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
        receiver.while_stopped(|| {
            send_to(&arena, &receiver.address, &[sends, &["--mbps", "50"]].concat(), &bytes);
        });
        let output = receiver.end();
        expect(&output, exit);
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(words), "{}", text(&output.stderr));
        // The same holds for a file.
        let sealed = arena.pipe(["encode", "--stream"].iter().chain(sends), &bytes).stdout;
        let output = arena.pipe(["decode", "--stream"].iter().chain(receives), &sealed);
        expect(&output, exit);
        assert!(output.stdout.is_empty() && text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

/// Without a key and --stream, the message can only say what the file looks like.
#[test]
fn a_sealed_stream_in_a_file_is_told() {
    let arena = Arena::new();
    keygen(&arena, "key");
    let bytes = payload(6, 50_000);
    for cipher in ["aes-256-gcm", "chacha20-poly1305"] {
        let sealed = send(&arena, &["--key-file", "key", "--cipher", cipher], &bytes);
        arena.write("sealed", &sealed);
        let root = "0".repeat(64);
        for command in [&["decode"][..], &["decode", "--partial"], &["decode", "--root", &root], &["verify"]]
        {
            let said = arena.refuses(command.iter().chain(&["sealed"]), 2);
            let piped = arena.pipe(command.iter().chain(&["-"]), &sealed);
            expect(&piped, 2);
            for said in [said, text(&piped.stderr)] {
                assert!(said.contains("a sealed live stream"), "{command:?}: {said}");
                assert!(said.contains("--key-file") && said.contains("--passphrase"), "{command:?}: {said}");
            }
        }
        let output = arena.run(["decode", "--stream", "sealed", "-o", "-"]);
        expect(&output, 6);
        assert!(text(&output.stderr).contains("a sealed live stream"), "{}", text(&output.stderr));
    }
}

#[test]
fn wrong_use_is_refused() {
    let arena = Arena::new();
    keygen(&arena, "key");
    let key = std::fs::read(arena.path("key")).unwrap();
    assert_eq!(key.len(), 32);
    arena.refuses(["keygen", "--stream", "-o", "key"], 2);
    assert!(std::fs::read(arena.path("key")).unwrap() == key, "no key is overwritten");
    arena.refuses(["encode", "--stream", "--key-file", "key", "--stream-id", "7"], 2);
    arena.refuses(["encode", "--key-file", "key", "key"], 2);
    arena.refuses(["encode", "--stream", "--cipher", "aes-256-gcm", "key", "-o", "clear"], 2);
    arena.refuses(["keygen", "--stream", "-o", "-"], 2);
    arena.refuses(["decode", "udp://127.0.0.1:0", "--max-age", "9"], 2);
    std::fs::write(arena.path("short"), &key[1..]).unwrap();
    let said = arena.refuses(["decode", "udp://127.0.0.1:0", "--key-file", "short"], 6);
    assert!(said.contains("32 bytes") && said.contains("fec keygen"), "{said}");
    arena.refuses(["decode", "udp://127.0.0.1:0", "--key-file", "none"], 4);
}

/// A recorded stream is refused later, both by a receiver that has had it and by a new one.
#[test]
fn recordings_are_refused() {
    let arena = Arena::new();
    keygen(&arena, "key");
    // A pipe holds a payload of this size until it is read.
    let bytes = payload(3, 40_000);
    let key = ["--key-file", "key", "--mbps", "50"];
    let recording = recorded(&arena, &key, &bytes);
    assert!(recording.len() > 40);
    let options = ["--key-file", "key", "--max-age", "2", "--wait-ms", "1500"];
    sleep(4000 * MS);
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    receiver.while_stopped(|| play(&recording, address_of(&receiver)));
    let output = receiver.end();
    expect(&output, 6);
    let said = text(&output.stderr);
    assert!(output.stdout.is_empty() && said.contains("seconds ago") && said.contains("--max-age"), "{said}");
    // --max-age any accepts the recording.
    let receiver =
        Listening::start(&arena, "udp://127.0.0.1:0", &[&options[..2], &["--max-age", "any"]].concat());
    receiver.while_stopped(|| play(&recording, address_of(&receiver)));
    let output = receiver.end();
    expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
    assert!(output.stdout == bytes);
    // A receiver that follows never accepts a stream twice, however young the recording is.
    let (first, second) = (recorded(&arena, &key, &bytes), recorded(&arena, &key, &bytes[..9000]));
    let options = ["--key-file", "key", "--follow", "--idle-ms", "1000", "--max-age", "60"];
    let mut receiver =
        Listening::start(&arena, "udp://127.0.0.1:0", &[&options[..], &["--stats", "json"]].concat());
    for recordings in [[&first, &first], [&second, &first]] {
        receiver.while_stopped(|| recordings.map(|recording| play(recording, address_of(&receiver))));
        receiver.says(r#""event":"over""#);
    }
    receiver.while_stopped(|| play(&second, address_of(&receiver)));
    sleep(700 * MS);
    common::signal(&receiver.child, rustix::process::Signal::INT);
    let output = receiver.end();
    expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
    assert_eq!(output.stdout.len(), bytes.len() + 9000);
    assert!(output.stdout == [&bytes[..], &bytes[..9000]].concat());
}

/// A stream that is refused from some moment on is reported at that moment, not only at the end.
#[test]
fn a_stream_that_is_refused_later_is_told() {
    let arena = Arena::new();
    keygen(&arena, "key");
    let recording = recorded(&arena, &["--key-file", "key", "--mbps", "50"], &payload(7, 60_000));
    let options = ["--key-file", "key", "--max-age", "3", "--idle-ms", "10000", "--json"];
    let receiver = Listening::start(
        &arena,
        "udp://127.0.0.1:0",
        &[&options[..], &["--stats", "json", "-o", "out"]].concat(),
    );
    let to = address_of(&receiver);
    play(&recording[..20], to);
    sleep(4200 * MS);
    for packet in &recording[20..60] {
        play(std::slice::from_ref(packet), to);
        sleep(60 * MS);
    }
    let output = receiver.end();
    expect(&output, 3);
    let said = text(&output.stderr);
    let notice = said.find("nothing is accepted any more: the packets that came were sealed").expect(&said);
    assert!(said[notice..].contains("still waiting") && said[notice..].contains("--max-age"), "{said}");
    assert!(said[notice..].contains("\"event\":\"statistics\""), "before the end: {said}");
    assert_eq!(said.matches("still waiting").count(), 1, "{said}");
}

/// An attacker in the middle sees all packets, and sends many for each one, through a pipe that loses none.
#[test]
fn forged_replayed_mixed_and_cut_packets_change_nothing() {
    let arena = Arena::new();
    keygen(&arena, "key");
    keygen(&arena, "other");
    let bytes = payload(4, 3_000_000);
    let packets = |options: &[&str], bytes: &[u8]| {
        let stream = send(&arena, &[options, &["--packet", "1000"]].concat(), bytes);
        frames(&stream).iter().map(|frame| unframed(frame)).collect::<Vec<_>>()
    };
    let honest = packets(&["--key-file", "key"], &bytes);
    // Packets that the attacker can make with another key, and without any.
    let mut others = packets(&["--key-file", "other"], &bytes[..30_000]);
    others.extend(packets(&[], &bytes[..30_000]));
    others.extend(packets(&["--stream-id", "7"], &bytes[..30_000]));
    let (mut stream, mut forged) = (DELIMITER.to_vec(), 0);
    let mut random = Random::new(5);
    // The attacker's packets come first, but do not decide which stream is received.
    others.iter().for_each(|packet| stream.extend(hostile::frame(packet)));
    for (nth, packet) in honest.iter().enumerate() {
        for turn in 0..40 {
            if turn == 20 {
                stream.extend(hostile::frame(packet));
            }
            let other = &honest[random.below(nth + 1)];
            let mut made = packet.clone();
            match random.below(9) {
                0 => made = other.clone(),
                1 => made.truncate(random.below(made.len())),
                2 => made.extend_from_slice(&other[..random.below(30)]),
                3 => made = [&packet[..44], &other[44..]].concat(),
                4 => made = [&other[..16], &packet[16..]].concat(),
                // The packet gets another type, above all an end.
                5 => made[5] ^= 2,
                // The packet gets a number far ahead, or any number.
                6 => made[16..24].copy_from_slice(&(random.next() >> (1 + random.below(60))).to_le_bytes()),
                7 => made = others[random.below(others.len())].clone(),
                _ => {
                    let at = random.below(made.len());
                    made[at] ^= 1 << random.below(8);
                }
            }
            // The packet itself may only be sent again.
            if made != *packet || turn > 20 {
                stream.extend(hostile::frame(&made));
                forged += 1;
            }
        }
    }
    assert!(forged > 100_000, "{forged}");
    let output = receive(&arena, &["--key-file", "key", "--json"], &stream);
    expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
    let said = report(&output);
    assert!(output.stdout == bytes, "{said}");
    assert!(said["forged"].as_u64() > Some(20_000) && said["duplicates"].as_u64() > Some(5000), "{said}");
    assert!(said["conflicts"] == 0 && said["mismatched"] == 0 && said["disbelieved"] == 0, "{said}");
}

/// In a network without the flood, a forged end, forged numbers and another sender change nothing, and the end is
/// known.
#[test]
fn strangers_in_a_network_change_nothing() {
    let arena = Arena::new();
    keygen(&arena, "key");
    let bytes = payload(5, 400_000);
    let options = ["--key-file", "key", "--json", "--stats", "json", "--idle-ms", "0"];
    let receiver = Listening::start(&arena, "udp://127.0.0.1:0", &options);
    let to = address_of(&receiver);
    let unsealed = recorded(&arena, &["--mbps", "100"], &bytes[..50_000]);
    play(&unsealed, to);
    scope(|scope| {
        let sender =
            scope.spawn(|| send_to(&arena, &receiver.address, &["--key-file", "key", "--mbps", "4"], &bytes));
        for _ in 0..4 {
            play(&unsealed[unsealed.len() - 20..], to);
            sleep(100 * MS);
        }
        sender.join().unwrap();
    });
    let output = receiver.end();
    expect(&Output { stdout: Vec::new(), ..output.clone() }, 0);
    assert!(output.stdout == bytes);
    assert!(report(&output)["unsealed"].as_u64() >= Some(unsealed.len() as u64));
}
