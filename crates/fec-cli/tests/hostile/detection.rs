//! The kind of an input, and the choice among several encodings (docs/FORMAT.md, sections 9.2 and 9.3). Nothing in, in
//! front of, behind or around an input makes `fec` hand out another payload.

use super::*;

/// The bytes of a framed live stream of `text`.
fn stream_of(arena: &Arena, text: &[u8]) -> Vec<u8> {
    arena.write("text", text);
    arena.expect(["encode", "--stream", "text", "-o", "text.stream"], 0);
    let bytes = arena.read("text.stream");
    fs::remove_file(arena.path("text")).unwrap();
    fs::remove_file(arena.path("text.stream")).unwrap();
    bytes
}

/// Decodes `input` as a file and through a pipe. With the root, the result must be exactly `payload`.
#[track_caller]
fn restores(arena: &Arena, name: &str, input: &[u8], root: &str, payload: &[u8]) {
    arena.write(name, input);
    arena.expect(["decode", name, "--root", root, "-o", "out", "-f"], 0);
    assert!(arena.read("out") == payload, "{name}: as a file, with the root");
    let piped = arena.pipe(["decode", "-", "--root", root], input);
    expect(&piped, 0);
    assert!(piped.stdout == payload, "{name}: through a pipe, with the root");
    fs::remove_file(arena.path("out")).unwrap();
}

#[test]
fn live_stream_under_a_containers_name() {
    let arena = Arena::new();
    let evil = stream_of(&arena, b"what the attacker wants");
    let (root, _) = encoded(&arena, 40, 5000, &["-k", "3", "-m", "2"]);
    arena.write("x.fec", &evil);
    for proofs in [&["--root", &root][..], &["--partial"], &["--root", &root, "--early"]] {
        let said = arena.refuses([&["decode", "x.fec", "-o", "out"], proofs].concat(), 2);
        assert!(said.contains("live stream"), "{said}");
        let said = arena.refuses_pipe([&["decode", "-", "-o", "out"], proofs].concat(), &evil, 2);
        assert!(said.contains("live stream"), "{said}");
        arena.refuses_pipe([&["decode", "-"], proofs].concat(), &evil, 2);
    }
    for verify in [&["verify", "x.fec"][..], &["verify", "x.fec", "--root", &root]] {
        assert!(arena.refuses(verify, 2).contains("live stream"));
    }
    assert!(arena.refuses_pipe(["verify", "-"], &evil, 2).contains("live stream"));
    // Without a root, the input is the live stream that it starts with.
    arena.expect(["decode", "x.fec", "-o", "out"], 0);
    assert_eq!(arena.read("out"), b"what the attacker wants");
}

/// Containers or shard files whose payload is a saved live stream, a container, a shard file, or all of them joined. A
/// damaged start makes the payload look like the input.
#[test]
fn payloads_that_are_encodings_and_starts_that_are_damaged() {
    let arena = Arena::new();
    let live = stream_of(&arena, &payload(41, 150_000));
    let (_, boxed) = encoded(&arena, 42, 3000, &["-k", "2", "-m", "1"]);
    let (_, files) = shard_files(&SMALL, &small_rows(43), &forge::meta(b"name"));
    let all = [&boxed[..], &live, &files[0], &boxed].concat();
    let payloads = [("live", &live), ("container", &boxed), ("shard", &files[0]), ("all", &all)];
    for (name, inner) in payloads {
        for shape in [
            &["-k", "10", "-m", "4"][..],
            &["-k", "1", "-m", "1"],
            &["-k", "2", "-m", "3", "--set-size", "16K"],
        ] {
            arena.write("p", inner);
            let root = common::root(
                &arena.run([&["encode", "p", "-o", "p.fec", "-f", "--no-sync"], shape].concat()),
            );
            let whole = arena.read("p.fec");
            let mut starts: Vec<(String, Vec<u8>)> = (0..16)
                .map(|bit| {
                    let mut damaged = whole.clone();
                    damaged[bit / 8 * 4] ^= 1 << (bit % 8);
                    (format!("bit {bit}"), damaged)
                })
                .collect();
            // As many zeros as one shard of a small container survives.
            let zeros = if whole.len() > 100_000 { 4096 } else { 200 };
            starts.push(("zeros".into(), [&vec![0; zeros][..], &whole[zeros..]].concat()));
            starts.push(("delimiter".into(), [&[0xFE, 0xFD], &whole[2..]].concat()));
            starts.push(("100 bytes cut".into(), whole[100..].to_vec()));
            starts.push(("a shard's magic".into(), [&b"\x89fecS\r\n\x1a"[..], &whole].concat()));
            starts.push(("a shard's header".into(), [&files[0][..HEADER], &whole].concat()));
            starts.push(("a packet".into(), [&live[..2000], &whole].concat()));
            starts.push(("a stream".into(), [&live[..], &whole].concat()));
            for (what, damaged) in starts {
                let context = format!("{name}, {shape:?}, {what}");
                restores(&arena, "p.fec", &damaged, &root, inner);
                // Without the root, the result is the payload or nothing.
                let output = arena.run(["decode", "p.fec", "-o", "out", "--no-sync"]);
                let is_there = arena.path("out").exists();
                assert!([0, 2].contains(&common::code(&output)), "{context}: {}", text(&output.stderr));
                assert_eq!(common::code(&output) == 0, is_there, "{context}");
                assert!(!is_there || arena.read("out") == *inner, "{context}");
                fs::remove_file(arena.path("out")).ok();
            }
        }
    }
}

/// Flips every bit of the first record's header and of both ends of a shard file, one at a time, for each way of naming
/// the input. FEC_EVERY_BIT=1 tries all bits; otherwise every bit of a magic, and one in seven of the rest.
#[test]
fn every_single_bit_of_a_magic_or_header() {
    let arena = Arena::new();
    let bytes = payload(44, 30_000);
    arena.write("p", &bytes);
    let shape = ["-k", "3", "-m", "2", "--set-size", "12K", "--no-sync"];
    let root = common::root(&arena.run([&["encode", "p", "-o", "p.fec"], &shape[..]].concat()));
    let shards_root = common::root(&arena.run([&["encode", "p", "-o", "s/"], &shape[..]].concat()));
    let whole = arena.read("p.fec");
    let bits = |range: std::ops::Range<usize>| {
        let all = std::env::var_os("FEC_EVERY_BIT").is_some();
        let start = range.start;
        range
            .flat_map(|at| (0..8).map(move |bit| (at, bit)))
            .enumerate()
            .filter_map(move |(nth, (at, bit))| (all || at < start + 8 || nth % 7 == 3).then_some((at, bit)))
    };
    let index = whole.windows(8).position(|w| w == b"\x89fecX\r\n\x1a").unwrap();
    for (at, bit) in bits(0..128).chain(bits(index..index + 128)) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << bit;
        let context = format!("container, byte {at}, bit {bit}");
        restores(&arena, "d.fec", &damaged, &root, &bytes);
        arena.expect(["decode", "d.fec", "-o", "out", "--no-sync"], 0);
        assert!(arena.read("out") == bytes, "{context}");
        fs::remove_file(arena.path("out")).unwrap();
        let piped = arena.pipe(["decode", "-"], &damaged);
        expect(&piped, 0);
        assert!(piped.stdout == bytes, "{context}");
        expect(&arena.run(["verify", "d.fec"]), 1);
    }
    let first = common::shard_files(&arena.path("s"))[0].clone();
    let names: Vec<String> =
        common::listing(&arena.path("s")).iter().map(|name| format!("s/{name}")).collect();
    let honest = fs::read(&first).unwrap();
    let last = honest.len() - HEADER;
    for (at, bit) in bits(0..HEADER).chain(bits(last..last + HEADER)) {
        let mut damaged = honest.clone();
        damaged[at] ^= 1 << bit;
        fs::write(&first, &damaged).unwrap();
        let context = format!("shard file, byte {at}, bit {bit}");
        let named: Vec<&str> = names.iter().map(String::as_str).collect();
        for inputs in [&["s"][..], &named] {
            for proofs in [&[][..], &["--root", &shards_root]] {
                arena.expect([&["decode", "-o", "out", "--no-sync"], inputs, proofs].concat(), 0);
                assert!(arena.read("out") == bytes, "{context}");
                fs::remove_file(arena.path("out")).unwrap();
            }
        }
        // A single header identifies the shard file, even alone, but the file differs from the written one.
        expect(&arena.run(["verify", names[0].as_str(), "--root", &shards_root]), 5);
    }
}

/// A record of another encoding restores alone, and its geometry claims many more. It stands in front of, behind,
/// inside and around an intact container. Without a root both are named, and neither comes out.
#[test]
fn one_record_that_can_be_restored_beside_a_container() {
    let arena = Arena::new();
    let (root, victim) = encoded(&arena, 45, 300_000, &["-k", "10", "-m", "4", "--set-size", "64K"]);
    let p = Block { k: 1, m: 255, shard_len: 12_800, sets: 1, payload: 12_800, ..SMALL_P };
    let evil = payload(46, 12_800);
    let boxed = container(&p, &[(only_group(&p), honest_rows(&evil, 1, 255, 12_800, 1))], b"");
    let (evil_root, record) = (hex(&boxed.root), boxed.records[255].as_slice());
    let middle = victim.len() / 2;
    let placed: [(&str, Vec<u8>); 5] = [
        ("behind", [&victim, record].concat()),
        ("in front", [record, &victim].concat()),
        ("around", [record, &victim, record, &boxed.index].concat()),
        ("around, index first", [&boxed.index, record, &victim, &boxed.index].concat()),
        ("inside", [&victim[..middle], record, &victim[middle..]].concat()),
    ];
    for (place, bytes) in placed {
        arena.write("x.fec", &bytes);
        let said = arena.refuses(["decode", "x.fec", "-o", "out"], 2);
        assert!(said.contains(&root) && said.contains(&evil_root), "{place}: {said}");
        let said = arena.refuses(["verify", "x.fec"], 2);
        assert!(said.contains(&root) && said.contains(&evil_root), "{place}: {said}");
        let said = arena.refuses_pipe(["decode", "-", "-o", "out"], &bytes, 2);
        assert!(said.contains(&root) && said.contains(&evil_root), "{place}, pipe: {said}");
        expect(&arena.pipe(["verify", "-"], &bytes), 2);
        expect(&arena.pipe(["decode", "-"], &bytes), 2);
        restores(&arena, "x.fec", &bytes, &root, &payload(45, 300_000));
        restores(&arena, "x.fec", &bytes, &evil_root, &evil);
    }
}

/// A shard file that restores alone, and a container, in both orders.
#[test]
fn shard_file_that_can_be_restored_beside_a_container() {
    let arena = Arena::new();
    let (root, boxed) = encoded(&arena, 47, 5000, &["-k", "3", "-m", "2"]);
    arena.write("p", b"another");
    let shard_root = common::root(&arena.run(["encode", "p", "-o", "s/", "-k", "1", "-m", "0"]));
    let shard = fs::read(&common::shard_files(&arena.path("s"))[0]).unwrap();
    for (place, bytes) in
        [("in front", [&shard[..], &boxed].concat()), ("behind", [&boxed[..], &shard].concat())]
    {
        arena.write("x", &bytes);
        let said = arena.refuses(["decode", "x", "-o", "out"], 2);
        assert!(said.contains(&root) && said.contains(&shard_root), "{place}: {said}");
        arena.refuses(["verify", "x"], 2);
        for (root, payload) in [(&root, payload(47, 5000)), (&shard_root, b"another".to_vec())] {
            arena.expect(["decode", "x", "-o", "out", "-f", "--root", root], 0);
            assert!(arena.read("out") == payload, "{place}");
        }
        fs::remove_file(arena.path("out")).unwrap();
    }
}

/// A file starts with a whole live stream and goes on with a container: neither hides the other.
#[test]
fn live_stream_in_front_of_a_container() {
    let arena = Arena::new();
    let live = stream_of(&arena, b"in front");
    let (root, boxed) = encoded(&arena, 48, 5000, &["-k", "3", "-m", "2"]);
    let bytes = [&live[..], &boxed].concat();
    arena.write("x", &bytes);
    let said = arena.refuses(["decode", "x", "-o", "out"], 2);
    assert!(said.contains(&root) && said.contains("--stream"), "{said}");
    restores(&arena, "x", &bytes, &root, &payload(48, 5000));
    arena.expect(["decode", "--stream", "x", "-o", "out"], 0);
    assert_eq!(arena.read("out"), b"in front");
}
