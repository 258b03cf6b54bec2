//! Signatures over roots as users meet them: `--sign`, `--signer`, minisign keys, and attacks on all of these.

mod common;

use common::{Arena, expect, payload, root, text};
use fec_core::format::annex;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Keys made by minisign 0.11: with `-G -W`, and with the passphrase "correct horse" under little memory.
const PUBLIC: &str = "RWQUKmQkwEBZPqn1ZuG2dCqEgdnOqUWhBFyTYcydInRQrjuKD21hLwRu";
const SECRET: &str = "untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFCpkJMBAWT4JETyjqcOO9jZGhOCWxlTtobfMmYp/z6YH/+3bbp99+an1ZuG2dCqEgdnOqUWhBFyTYcydInRQrjuKD21hLwRuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
";
const OTHER_PUBLIC: &str = "RWRkW622s4hOZyeTlQVvRwZbGOm01AVhrJuli3YBI+VsrhCpJsX6bP9R";
const OTHER: &str = "untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAZFuttrOITmcrl+A5QvxcMSvMB41WOzGv4K+pRyKdjQFGMK+ad/7LVyeTlQVvRwZbGOm01AVhrJuli3YBI+VsrhCpJsX6bP9RAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
";
const ENCRYPTED_PUBLIC: &str = "RWRx2WskSq615TrKWgN7Rq+ELL2fQQy5y170oO0mmny+TtEd4iupEw8f";
const ENCRYPTED: &str = "untrusted comment: minisign encrypted secret key
RWRTY0Iykk0+3gB0cA/XtzS60An8j0pwzq138ljzuTyfa3Zjt6IAAEAAAAAAAAAAAAgAAAAAa+OcaNb4gEmbR5O9M8rbMYkAIF0VL0yuvCnpxxW8xdI6Ki+qrShNDkIwzI2StyohdftfsZ587kCEdCcfMaXv75TtpzmuH9stDYj/uoHj3Ci5r660sbXJqHbiLLybbsdW2FxgjmsvOCc=
";

const SHAPE: [&str; 8] = ["-k", "3", "-m", "2", "--set-size", "12K", "-q", "--no-sync"];

/// A folder with keys, a payload `in`, and encodings of it that the first key signed: shard files `s` and a container
/// `c.fec`.
fn arena() -> Arena {
    let arena = Arena::new();
    for (name, key) in [("key", SECRET), ("other", OTHER), ("encrypted", ENCRYPTED)] {
        arena.write(name, key.as_bytes());
    }
    arena.write("key.pub", format!("untrusted comment: minisign public key\n{PUBLIC}\n").as_bytes());
    arena.write("in", &payload(7, 40_000));
    encode(&arena, &["in", "-o", "s/", "--sign", "key"]);
    encode(&arena, &["in", "-o", "c.fec", "--sign", "key"]);
    arena
}

#[track_caller]
fn encode(arena: &Arena, args: &[&str]) -> String {
    root(&arena.run([&["encode"], args, &SHAPE[..]].concat()))
}

/// Decodes an input and returns the output.
#[track_caller]
fn decoded(arena: &Arena, input: &str, more: &[&str]) -> Vec<u8> {
    arena.expect([&["decode", input, "-o", "out", "-f", "-q"], more].concat(), 0);
    arena.read("out")
}

#[track_caller]
fn refused(arena: &Arena, input: &str, more: &[&str]) -> String {
    arena.refuses([&["decode", input, "-o", "none"], more].concat(), 5)
}

/// The signatures behind an encoding.
fn signatures(signed: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut end = signed.len();
    while let Some(tail) = signed[..end].last_chunk::<{ annex::HEADER_LEN }>() {
        let Some(header) = annex::AnnexHeader::read(tail) else { break };
        let start = end - header.annex_len();
        found.push(annex::data(&signed[start..end]).to_vec());
        end = start;
    }
    found
}

fn without_annexes(signed: &[u8]) -> Vec<u8> {
    let annexes: usize = signatures(signed).iter().map(|data| data.len() + 2 * annex::HEADER_LEN).sum();
    signed[..signed.len() - annexes].to_vec()
}

fn shards(arena: &Arena, folder: &str) -> Vec<std::path::PathBuf> {
    common::shard_files(&arena.path(folder))
}

#[test]
fn what_a_key_signed_is_accepted_and_nothing_else() {
    let arena = arena();
    let original = arena.read("in");
    for input in ["s", "c.fec"] {
        for signer in [PUBLIC, "key.pub"] {
            assert!(decoded(&arena, input, &["--signer", signer]) == original);
            assert!(decoded(&arena, input, &["--signer", OTHER_PUBLIC, "--signer", signer]) == original);
            assert_eq!(
                decoded(&arena, input, &["--signer", signer, "--range", "100..200"]),
                original[100..200]
            );
        }
        let said = refused(&arena, input, &["--signer", OTHER_PUBLIC]);
        assert!(said.contains("674E88B3B6AD5B64") && said.contains("3E5940C024642A14"), "{said}");
        arena.refuses(["verify", input, "--signer", OTHER_PUBLIC], 5);
        let said = text(&arena.expect(["verify", input, "--signer", PUBLIC], 0).stdout);
        assert!(said.contains("signed by key 3E5940C024642A14 (timestamp:"), "{said}");
        let said = text(&arena.expect(["verify", input], 0).stdout);
        assert!(said.contains("3E5940C024642A14 are here, not checked"), "{said}");
        let report = arena.expect(["verify", input, "--json", "--signer", PUBLIC], 0);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["signed_by"]["key"], "3E5940C024642A14");
        assert_eq!(report["signatures"], serde_json::json!(["3E5940C024642A14"]));
        // Both the root and the signer have to match.
        let root = report["root"].as_str().unwrap();
        assert!(decoded(&arena, input, &["--signer", PUBLIC, "--root", root]) == original);
        refused(&arena, input, &["--signer", PUBLIC, "--root", &"ab".repeat(32)]);
        refused(&arena, input, &["--signer", OTHER_PUBLIC, "--root", root]);
        arena.expect(["repair", input, "-n", "--signer", PUBLIC], 0);
        arena.refuses(["repair", input, "--signer", OTHER_PUBLIC], 5);
    }
}

#[test]
fn pipes_are_signed_at_their_end_and_nothing_goes_out_before() {
    let arena = arena();
    let original = arena.read("in");
    let group = [&["encode", "-", "--sign", "key", "--group-size", "2"], &SHAPE[..]].concat();
    let piped = arena.pipe(group, &original);
    expect(&piped, 0);
    let signed = piped.stdout;
    assert_eq!(signatures(&signed).len(), 1);
    let out = arena.pipe(["decode", "-", "-q", "--signer", PUBLIC], &signed);
    expect(&out, 0);
    assert!(out.stdout == original);
    expect(&arena.pipe(["verify", "-", "--signer", PUBLIC], &signed), 0);
    for (signer, bytes) in [(OTHER_PUBLIC, signed.clone()), (PUBLIC, without_annexes(&signed))] {
        arena.refuses_pipe(["decode", "-", "--signer", signer], &bytes, 5);
        arena.refuses_pipe(["verify", "-", "--signer", signer], &bytes, 5);
        expect(&arena.pipe(["decode", "-", "-q"], &bytes), 0);
    }
    arena.refuses_pipe(["decode", "-", "--signer", PUBLIC, "--early"], &signed, 2);
}

#[test]
fn no_bit_of_a_signature_counts_when_it_is_flipped() {
    let arena = arena();
    let signed = arena.read("c.fec");
    let bare = without_annexes(&signed);
    let data = signatures(&signed).remove(0);
    let line = data.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in [line + 1, line + 5, line + 40, line + 120, line + 160, data.len() - 20, data.len() - 3] {
        let mut wrong = data.clone();
        wrong[at] = if wrong[at] == b'A' { b'B' } else { b'A' };
        // The frame is whole: this is no damage, but the signature does not count.
        arena.write("c.fec", &[bare.clone(), annex::write(1, &wrong)].concat());
        arena.expect(["verify", "c.fec", "-q"], 0);
        refused(&arena, "c.fec", &["--signer", PUBLIC]);
        // The frame itself is damaged: its bytes count as ordinary junk.
        let mut broken = signed.clone();
        broken[bare.len() + 32 + at] ^= 1;
        arena.write("c.fec", &broken);
        refused(&arena, "c.fec", &["--signer", PUBLIC]);
    }
}

#[test]
fn a_signature_that_was_moved_counts_for_nothing() {
    let arena = arena();
    arena.write("evil", &payload(8, 40_000));
    encode(&arena, &["evil", "-o", "evil.fec"]);
    encode(&arena, &["evil", "-o", "e/"]);
    let annex = annex::write(1, &signatures(&arena.read("c.fec"))[0]);
    arena.write("evil.fec", &[arena.read("evil.fec"), annex.clone()].concat());
    for shard in shards(&arena, "e") {
        fs::write(&shard, [fs::read(&shard).unwrap(), annex.clone()].concat()).unwrap();
    }
    for input in ["evil.fec", "e"] {
        let said = refused(&arena, input, &["--signer", PUBLIC]);
        assert!(said.contains("a signature of key 3E5940C024642A14 is not of this root"), "{said}");
        arena.expect(["verify", input, "-q"], 0);
    }
}

/// Among several encodings, --signer chooses the signed one.
#[test]
fn of_two_encodings_the_signed_one_is_meant() {
    let arena = arena();
    let original = arena.read("in");
    arena.write("evil", &payload(8, 40_000));
    encode(&arena, &["evil", "-o", "evil.fec", "--sign", "other"]);
    let (signed, evil) = (arena.read("c.fec"), arena.read("evil.fec"));
    for joined in [[&signed[..], &evil].concat(), [&evil[..], &signed].concat()] {
        arena.write("two.fec", &joined);
        arena.refuses(["decode", "two.fec", "-o", "none"], 2);
        assert!(decoded(&arena, "two.fec", &["--signer", PUBLIC]) == original);
        assert!(decoded(&arena, "two.fec", &["--signer", OTHER_PUBLIC]) == arena.read("evil"));
        // Each encoding is signed by a key that counts.
        arena.refuses(["decode", "two.fec", "-o", "none", "--signer", PUBLIC, "--signer", OTHER_PUBLIC], 2);
        let out = arena.pipe(["decode", "-", "-q", "--signer", PUBLIC], &joined);
        assert!(out.stdout == original);
    }
    encode(&arena, &["evil", "-o", "e/"]);
    for shard in shards(&arena, "e") {
        fs::rename(&shard, arena.path("s").join(shard.file_name().unwrap())).unwrap();
    }
    arena.refuses(["decode", "s", "-o", "none"], 2);
    assert!(decoded(&arena, "s", &["--signer", PUBLIC]) == original);
}

#[test]
fn without_its_annex_nothing_is_signed() {
    let arena = arena();
    arena.write("c.fec", &without_annexes(&arena.read("c.fec")));
    let files = shards(&arena, "s");
    for shard in &files {
        fs::write(shard, without_annexes(&fs::read(shard).unwrap())).unwrap();
    }
    for input in ["c.fec", "s"] {
        let said = refused(&arena, input, &["--signer", PUBLIC]);
        assert!(said.contains("there is no signature at all"), "{said}");
        arena.expect(["verify", input, "-q"], 0);
    }
}

/// A signature on one shard file is enough for all, and repair adds it to files that are made anew.
#[test]
fn a_signature_on_one_shard_file_is_enough_and_is_not_lost() {
    let arena = arena();
    let files = shards(&arena, "s");
    let signed: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for shard in &files[1..] {
        fs::write(shard, without_annexes(&fs::read(shard).unwrap())).unwrap();
    }
    assert!(decoded(&arena, "s", &["--signer", PUBLIC]) == arena.read("in"));
    fs::remove_file(&files[3]).unwrap();
    common::flip(&files[4], 3000);
    arena.expect(["repair", "s", "-q", "--signer", PUBLIC], 0);
    for nth in [0, 3, 4] {
        assert!(fs::read(&files[nth]).unwrap() == signed[nth], "{nth}");
    }
    fs::remove_file(&files[0]).unwrap();
    assert!(decoded(&arena, "s", &["--signer", PUBLIC]) == arena.read("in"));
    // A single file is known by its signature as well as by its root.
    arena.expect(["verify", files[3].to_str().unwrap(), "--signer", PUBLIC, "-q"], 0);
    arena.refuses(["verify", files[3].to_str().unwrap(), "--signer", OTHER_PUBLIC], 5);
    // The container has gained bytes behind its annex.
    let whole = arena.read("c.fec");
    arena.write("c.fec", &[&whole[..], b"more"].concat());
    arena.expect(["repair", "c.fec", "-q", "--signer", PUBLIC], 0);
    assert!(arena.read("c.fec") == whole);
}

#[test]
fn signatures_stand_in_files_of_their_own_too() {
    let arena = arena();
    let root = encode(&arena, &["in", "-o", "d.fec", "--sign", "other", "--signature", "d.minisig"]);
    assert!(signatures(&arena.read("d.fec")).is_empty());
    refused(&arena, "d.fec", &["--signer", OTHER_PUBLIC]);
    let with = ["--signer", OTHER_PUBLIC, "--signature", "d.minisig"];
    assert!(decoded(&arena, "d.fec", &with) == arena.read("in"));
    arena.expect([&["verify", "d.fec", "-q"], &with[..]].concat(), 0);
    // A pipe gives the signature once, however many encodings it is for.
    fs::copy(arena.path("d.fec"), arena.path("copy.fec")).unwrap();
    let signature = arena.read("d.minisig");
    let piped = ["--signer", OTHER_PUBLIC, "--signature", "/dev/stdin"];
    expect(&arena.pipe([&["verify", "d.fec", "copy.fec"], &piped[..]].concat(), &signature), 0);
    fs::create_dir(arena.path("one")).unwrap();
    fs::copy(arena.path("d.fec"), arena.path("one/d.fec")).unwrap();
    expect(&arena.pipe([&["verify", "one", "--root", &root], &piped[..]].concat(), &signature), 0);
    // The first key signed an encoding with the same root.
    assert!(decoded(&arena, "c.fec", &with) == arena.read("in"));
    let again =
        [&["encode", "in", "-o", "n.fec", "--sign", "key", "--signature", "d.minisig"], &SHAPE[..]].concat();
    arena.refuses(again.clone(), 2);
    for path in ["in", "n.fec"] {
        let over = [&["encode", "in", "-o", "n.fec", "--sign", "key", "-f", "--signature", path], &SHAPE[..]]
            .concat();
        arena.refuses(over, 2);
    }
    arena.expect([again, vec!["-f"]].concat(), 0);
    refused(&arena, "d.fec", &with);
    arena.write("d.minisig", b"junk");
    refused(&arena, "d.fec", &with);
    // minisign makes and checks the same signatures, if it is installed.
    if Command::new("minisign").arg("-v").stdout(Stdio::null()).status().is_err() {
        return;
    }
    arena.write("line", format!("fec root 1 {root}\n").as_bytes());
    arena.write("line.minisig", &signatures(&arena.read("c.fec"))[0]);
    let minisign = |args: &[&str]| {
        let done = Command::new("minisign").current_dir(&arena.work).args(args).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    minisign(&["-Vm", "line", "-P", PUBLIC]);
    minisign(&["-Sm", "line", "-s", "other", "-x", "by-hand.minisig"]);
    let by_hand = ["--signer", OTHER_PUBLIC, "--signature", "by-hand.minisig"];
    assert!(decoded(&arena, "d.fec", &by_hand) == arena.read("in"));
    minisign(&["-Sm", "line", "-s", "other", "-l", "-x", "old.minisig"]);
    let said = refused(&arena, "d.fec", &["--signer", OTHER_PUBLIC, "--signature", "old.minisig"]);
    assert!(said.contains("old kind"), "{said}");
}

/// Junk in place of signatures costs little, and hides no signature that stands where it was written.
#[test]
fn ten_thousand_annexes_and_large_ones() {
    let arena = arena();
    let key = signatures(&arena.read("c.fec")).remove(0);
    let other = {
        encode(&arena, &["in", "-o", "o.fec", "--sign", "other"]);
        signatures(&arena.read("o.fec")).remove(0)
    };
    let numbered = |n: usize| text(&other).replace("signature of", &format!("signature {n} of")).into_bytes();
    let cases = [
        ("10,000 empty", annex::write(1, b"").repeat(10_000)),
        ("10,000 of another key", (0..10_000).flat_map(|n| annex::write(1, &numbered(n))).collect()),
        ("large", annex::write(1, &[b'x'; 1 << 20]).repeat(20)),
        ("too long", annex::write(1, &[&key[..], &[b' '; 4096]].concat())),
        ("cut", annex::write(1, &key[..key.len() - 9])),
        ("another type", annex::write(2, &key)),
    ];
    let bare = without_annexes(&arena.read("c.fec"));
    let files = shards(&arena, "s");
    let bare_shards: Vec<Vec<u8>> =
        files.iter().map(|file| without_annexes(&fs::read(file).unwrap())).collect();
    let own = annex::write(1, &key);
    let own_of_shards = annex::write(1, &signatures(&fs::read(&files[4]).unwrap())[0]);
    for (what, junk) in cases {
        for (annexes, exit) in [(junk.clone(), 5), ([&own[..], &junk].concat(), 0)] {
            arena.write("c.fec", &[&bare[..], &annexes].concat());
            let verified = arena.run(["verify", "c.fec", "-q", "--signer", PUBLIC]);
            assert_eq!(common::code(&verified), exit, "{what}: {}", text(&verified.stderr));
            expect(&arena.run(["verify", "c.fec", "-q"]), 0);
        }
        // Four hostile files hide nothing in the fifth.
        for (nth, (file, bare)) in files.iter().zip(&bare_shards).enumerate() {
            fs::write(file, [&bare[..], if nth == 4 { &own_of_shards } else { &junk }].concat()).unwrap();
        }
        arena.expect(["verify", "s", "-q", "--signer", PUBLIC], 0);
        fs::write(&files[4], [&bare_shards[4][..], &junk].concat()).unwrap();
        arena.refuses(["verify", "s", "-q", "--signer", PUBLIC], 5);
    }
}

#[test]
fn passphrases_open_secret_keys() {
    let arena = arena();
    arena.write("passphrase", b"correct horse\n");
    let sign = [&["encode", "in", "-o", "p.fec", "-f", "--sign", "encrypted"], &SHAPE[..]].concat();
    let by_file = [&sign[..], &["--sign-passphrase-file", "passphrase"]].concat();
    arena.expect(by_file.clone(), 0);
    assert!(decoded(&arena, "p.fec", &["--signer", ENCRYPTED_PUBLIC]) == arena.read("in"));
    let with = |passphrase: &str| arena.fec(&sign).env("FEC_SIGN_PASSPHRASE", passphrase).output().unwrap();
    expect(&with("correct horse"), 0);
    let before = arena.state();
    let wrong = with("battery staple");
    expect(&wrong, 2);
    assert!(!text(&wrong.stderr).contains("battery"), "{}", text(&wrong.stderr));
    arena.write("passphrase", b"two\nlines\n");
    arena.refuses(by_file, 2);
    arena.write("passphrase", b"correct horse\n");
    arena.unchanged(&before);
}

#[test]
fn new_keys_sign_and_minisign_reads_them() {
    let arena = arena();
    let keygen = |name: &str, passphrase: &str| {
        let args = ["keygen", "--sign", "-o", name, "--json"];
        arena.fec(args).env("FEC_SIGN_PASSPHRASE", passphrase).output().unwrap()
    };
    for (name, passphrase) in [("plain", ""), ("locked", "correct horse")] {
        let made = keygen(name, passphrase);
        expect(&made, 0);
        let report: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
        assert_eq!(report["encrypted"], !passphrase.is_empty());
        let before = arena.state();
        expect(&keygen(name, passphrase), 2);
        arena.unchanged(&before);
        let args = [&["encode", "in", "-o", "k.fec", "-f", "--sign", name], &SHAPE[..]].concat();
        expect(&arena.fec(args).env("FEC_SIGN_PASSPHRASE", passphrase).output().unwrap(), 0);
        let public = format!("{name}.pub");
        assert!(decoded(&arena, "k.fec", &["--signer", &public]) == arena.read("in"));
        assert!(
            decoded(&arena, "k.fec", &["--signer", report["public_key"].as_str().unwrap()])
                == arena.read("in")
        );
        let minisign = |args: &[&str]| {
            let mut command = Command::new("minisign");
            let mut child = command
                .current_dir(&arena.work)
                .args(args)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .ok()?;
            // Checking a signature asks for no passphrase, so the process may have ended before it arrives.
            let _ = std::io::Write::write_all(child.stdin.as_mut()?, format!("{passphrase}\n").as_bytes());
            Some(child.wait().unwrap().success())
        };
        let signed = minisign(&["-Sm", "in", "-s", name, "-x", "in.minisig"]);
        assert_ne!(signed, Some(false), "minisign takes the secret key");
        if signed.is_some() {
            assert_eq!(minisign(&["-Vm", "in", "-p", &public]), Some(true));
        }
    }
    arena.refuses(["keygen", "--sign", "--stream", "-o", "nothing"], 2);
}

/// A post-quantum key signs with Ed25519 and ML-DSA-65. Its public key wants both, in all forms, and minisign's part of
/// it the first alone, as minisign itself does.
#[test]
fn post_quantum_keys_sign_twice_and_one_half_is_nothing() {
    let arena = arena();
    let made = arena
        .fec(["keygen", "--sign", "--pq", "-o", "pq", "--json"])
        .env("FEC_SIGN_PASSPHRASE", "")
        .output()
        .unwrap();
    expect(&made, 0);
    let report: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let (hybrid, classic) =
        (report["public_key"].as_str().unwrap(), report["minisign_key"].as_str().unwrap());
    assert_eq!((report["kind"].as_str(), hybrid.len(), classic.len()), (Some("sign-post-quantum"), 2660, 56));
    encode(&arena, &["in", "-o", "s/", "-f", "--sign", "pq"]);
    encode(&arena, &["in", "-o", "c.fec", "-f", "--sign", "pq", "--signature", "c.minisig"]);
    arena.write("data/a", &arena.read("in"));
    arena.expect(protect(&["--sign", "pq"]), 0);
    let piped = [&["encode", "--sign", "pq"], &SHAPE[..]].concat();
    let piped = arena.pipe(&piped, &arena.read("in"));
    expect(&piped, 0);
    arena.write("p.fec", &piped.stdout);
    let detached = ["--signature", "c.minisig"];
    for key in ["pq.pub", hybrid, classic] {
        for (input, more) in [("s/", &[][..]), ("p.fec", &[]), ("c.fec", &detached)] {
            let args = [&["--signer", key], more].concat();
            assert!(decoded(&arena, input, &args) == arena.read("in"), "{input}");
        }
        arena.expect(["verify", "data.fecp", "-q", "--signer", key], 0);
    }
    // Without its last line it is a signature of minisign, and nothing to who asks for both halves.
    for file in ["c.minisig", "data.fecp.minisig"] {
        let both = text(&arena.read(file));
        let (four, fifth) = both.trim_end().rsplit_once('\n').unwrap();
        assert_eq!((four.lines().count(), fifth.len()), (4, 4412));
        arena.write(file, format!("{four}\n").as_bytes());
    }
    let said = refused(&arena, "c.fec", &[&["--signer", "pq.pub"], &detached[..]].concat());
    assert!(said.contains("with Ed25519 alone"), "{said}");
    arena.refuses(["verify", "data.fecp", "--signer", "pq.pub"], 5);
    arena.expect(["verify", "data.fecp", "-q", "--signer", classic], 0);
    // An update signs only what both halves had signed.
    arena.write("data/b", b"new");
    arena.refuses(protect(&["--update", "--sign", "pq"]), 5);
}

/// Ends the input at a terminal, repeatedly until it is read. Needs `script`, and tests nothing without it.
#[test]
fn whoever_breaks_off_at_the_passphrase_gets_no_key() {
    let arena = arena();
    let keygen = format!("{} keygen --sign -o new", common::fec_words());
    let mut script = Command::new("script");
    script.args(["-qec", &keygen, "/dev/null"]).current_dir(&arena.work).env_remove("FEC_SIGN_PASSPHRASE");
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = script.spawn() else { return };
    let mut keyboard = child.stdin.take().unwrap();
    while child.try_wait().unwrap().is_none() {
        // Keys typed before the prompt may be dropped.
        let _ = std::io::Write::write_all(&mut keyboard, b"\x04");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let ended = child.wait_with_output().unwrap();
    assert!(text(&ended.stdout).contains("passphrase"), "{}", text(&ended.stdout));
    assert_eq!(ended.status.code(), Some(2), "{}", text(&ended.stdout));
    assert!(!arena.path("new").exists() && !arena.path("new.pub").exists());
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let arena = arena();
    arena.write("not-a-key", b"secret stuff");
    let said = arena.refuses(["encode", "in", "-o", "n.fec", "--sign", "not-a-key"], 2);
    assert!(!said.contains("stuff"), "{said}");
    for more in [&["--keep"][..], &["--stream"], &["--to", "places"]] {
        let output: &[&str] = if more[0] == "--to" { &[] } else { &["-o", "n.fec"] };
        arena.refuses([&["encode", "in", "--sign", "key"], output, more].concat(), 2);
    }
    let root = "ab".repeat(32);
    for command in ["decode", "verify", "repair"] {
        arena.refuses([command, "--root", &root, "--from", "places", "--signer", PUBLIC], 2);
    }
    arena.refuses(["decode", "c.fec", "--signer", "nobody"], 2);
    arena.refuses(["decode", "c.fec", "--signer", "key"], 2);
    arena.refuses(["decode", "c.fec", "--signature", "key.pub"], 2);
    arena.refuses(["decode", "--stream", "c.fec", "-o", "n", "--signer", PUBLIC], 2);
}

/// A stream key marks the input as a stream, like --stream: other options are not ignored.
#[test]
fn a_stream_is_not_taken_for_what_is_signed_or_has_a_root() {
    let arena = arena();
    arena.expect(["keygen", "--stream", "-o", "stream-key", "-q"], 0);
    arena.expect(["encode", "--stream", "in", "-o", "live", "--key-file", "stream-key", "-q"], 0);
    let decode = ["decode", "live", "-o", "n", "--key-file", "stream-key"];
    let root = "ab".repeat(32);
    for more in [&["--signer", PUBLIC][..], &["--root", &root], &["--range", "0..5"], &["--partial"]] {
        arena.refuses([&decode[..], more].concat(), 2);
    }
    assert!(!arena.path("n").exists());
    arena.expect(decode, 0);
}

fn protect<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["protect", "data", "-q", "--no-sync"], more].concat()
}

#[test]
fn sidecars_are_signed_beside_themselves() {
    let arena = arena();
    let later = |name: &str, bytes: &[u8]| arena.write(Path::new("data").join(name), bytes);
    later("a", &payload(9, 600_000));
    arena.expect(protect(&["--sign", "key"]), 0);
    let first = (arena.read("data.fecp"), arena.read("data.fecp.minisig"));
    arena.expect(["verify", "data.fecp", "-q", "--signer", PUBLIC], 0);
    arena.expect(["repair", "data.fecp", "-q", "--signer", "key.pub"], 0);
    arena.refuses(["verify", "data.fecp", "--signer", OTHER_PUBLIC], 5);
    arena.refuses(protect(&["--sign", "key"]), 2);

    // An update would leave the signature behind, and only what was signed before is signed again.
    later("b", &payload(10, 30_000));
    arena.refuses(protect(&["--update"]), 2);
    arena.refuses(protect(&["--update", "--sign", "other"]), 5);
    arena.refuses(protect(&["--update", "--sign", "key", "--signer", OTHER_PUBLIC]), 5);
    arena.expect(protect(&["--update", "--sign", "key"]), 0);
    arena.expect(["verify", "data.fecp", "-q", "--signer", PUBLIC], 0);
    assert!(arena.read("data.fecp.minisig") != first.1);

    // Somebody else adds a generation: it does not count, and is not signed.
    later("c", &payload(11, 30_000));
    let ours = arena.read("data.fecp.minisig");
    arena.expect(protect(&["--update", "-f"]), 0);
    assert!(arena.read("data.fecp.minisig") == ours);
    let report = arena.run(["verify", "data.fecp", "--json", "--signer", PUBLIC]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["generation"], 2, "{report}");
    arena.refuses(protect(&["--update", "--sign", "key"]), 5);

    // If its root is known from elsewhere, the generation is signed.
    let newest = text(&arena.run(["verify", "data.fecp", "--json"]).stdout);
    let newest: serde_json::Value = serde_json::from_str(&newest).unwrap();
    arena.expect(protect(&["--update", "--sign", "other", "--root", newest["root"].as_str().unwrap()]), 0);
    arena.expect(["verify", "data.fecp", "-q", "--signer", OTHER_PUBLIC], 0);
    fs::rename(arena.path("data.fecp.minisig"), arena.path("elsewhere")).unwrap();
    let said = arena.refuses(["verify", "data.fecp", "--signer", OTHER_PUBLIC], 5);
    assert!(said.contains("no signature at all"), "{said}");
    arena.expect(["verify", "data.fecp", "-q", "--signer", OTHER_PUBLIC, "--signature", "elsewhere"], 0);

    // An endless file is not read.
    let fifo = Command::new("mkfifo").arg(arena.path("data.fecp.minisig")).status().unwrap();
    assert!(fifo.success());
    for args in
        [&["verify", "data.fecp", "--signer", PUBLIC][..], &["repair", "data.fecp", "--signer", PUBLIC]]
    {
        assert!(arena.refuses(args, 2).contains("not a regular file"));
    }
    arena.refuses(protect(&["--update", "--sign", "other"]), 2);
    fs::remove_file(arena.path("data.fecp.minisig")).unwrap();

    // A file that is no signature is not overwritten. A signature among the files is not protected as one of them.
    arena.write("elsewhere", b"precious");
    let root = newest["root"].as_str().unwrap();
    arena.refuses(protect(&["--update", "--sign", "key", "--root", root, "--signature", "elsewhere"]), 5);
    arena.refuses(protect(&["--update", "--sign", "key", "--root", root, "--signature", "data.fecp"]), 2);
    let inside = ["protect", "data", "-o", "data/own.fecp", "-q", "--sign", "key"];
    arena.expect(inside, 0);
    arena.expect([&inside[..], &["--update"]].concat(), 0);
    let report = arena.expect(["verify", "data/own.fecp", "--json", "--signer", PUBLIC], 0);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["unprotected"], &report["intact"]), (&0.into(), &true.into()), "{report}");
}
