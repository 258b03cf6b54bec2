//! Payloads restored from pipes, with roots and without, and in part.

use super::*;

/// Each group leaves as soon as the byte after it is seen.
#[test]
fn a_pipe_is_encoded_and_decoded_as_it_comes() {
    let arena = Arena::new();
    // A group is 8 sets of 4 · 4096 bytes.
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let bytes = payload(2, 800_000);
    let group = 8 * 16_384;
    let mut encoder = arena.spawn(["encode", "-"].into_iter().chain(options));
    let mut decoder = arena.spawn(["decode", "-"]);
    let (mut input, mut coded) = (encoder.stdin.take().unwrap(), encoder.stdout.take().unwrap());
    let (mut feed, mut restored) = (decoder.stdin.take().unwrap(), decoder.stdout.take().unwrap());
    let copy = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match coded.read(&mut buffer).unwrap() {
                0 => break,
                n => feed.write_all(&buffer[..n]).unwrap(),
            }
        }
    });
    input.write_all(&bytes[..2 * group + 1]).unwrap();
    input.flush().unwrap();
    let mut first = vec![0; group];
    restored.read_exact(&mut first).unwrap();
    assert!(first == bytes[..group], "the first group is through before the input ends");
    let rest = bytes[2 * group + 1..].to_vec();
    let writer = std::thread::spawn(move || input.write_all(&rest).unwrap());
    let mut all = first;
    restored.read_to_end(&mut all).unwrap();
    assert!(all == bytes);
    writer.join().unwrap();
    copy.join().unwrap();
    expect(&finish(encoder, b"", LIMIT).unwrap(), 0);
    expect(&finish(decoder, b"", LIMIT).unwrap(), 0);
}

/// With --root, a pipe gives no bytes before the root is proved, except with --early.
#[test]
fn root_before_bytes() {
    let arena = Arena::new();
    let bytes = payload(3, 800_000);
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let boxed = arena.pipe(["encode", "-"].into_iter().chain(options), &bytes).stdout;
    let other = "ab".repeat(32);
    arena.refuses_pipe(["decode", "-", "--root", &other], &boxed, 5);
    let early = arena.pipe(["decode", "-", "--root", &other, "--early"], &boxed);
    assert_ne!(code(&early), 0);
    assert!(early.stdout.len() > 600_000 && bytes.starts_with(&early.stdout), "it was asked for early");
    // The stream is cut. Without --root the proved bytes have come out, and the exit code tells of the cut.
    let cut = arena.pipe(["decode", "-"], &boxed[..boxed.len() / 2]);
    expect(&cut, 3);
    assert!(!cut.stdout.is_empty() && bytes.starts_with(&cut.stdout));
}

/// The early bytes belong to another root, and the exit code tells so.
#[test]
fn another_root_after_early_bytes() {
    let arena = Arena::new();
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "8"];
    let boxed = arena.pipe(["encode", "-"].into_iter().chain(options), &payload(3, 800_000)).stdout;
    let early = arena.pipe(["decode", "-", "--root", &"ab".repeat(32), "--early"], &boxed);
    assert_eq!(code(&early), 5, "{}", text(&early.stderr));
}

/// The byte ranges in a field of a report: proved ones or lost ones.
fn ranges(report: &Value, field: &str) -> Vec<(usize, usize)> {
    let of = |range: &Value, end: &str| range[end].as_u64().unwrap() as usize;
    report[field].as_array().unwrap().iter().map(|r| (of(r, "start"), of(r, "end"))).collect()
}

#[track_caller]
fn is_partial(out: &[u8], bytes: &[u8], report: &Value) {
    let lost = ranges(report, "lost");
    assert!(!lost.is_empty() && !report["whole"].as_bool().unwrap());
    assert_eq!(out.len(), bytes.len());
    let mut expected = bytes.to_vec();
    lost.iter().for_each(|(start, end)| expected[*start..*end].fill(0));
    assert!(out == expected, "what is proved is there, zeros elsewhere");
    let by_path: usize = ranges(report, "proved_by_path_only").iter().map(|(s, e)| e - s).sum();
    let restored = report["restored_bytes"].as_u64().unwrap() as usize;
    let lost: usize = lost.iter().map(|(s, e)| e - s).sum();
    assert_eq!(report["lost_bytes"].as_u64(), Some(lost as u64));
    assert_eq!(report["proved_by_path_only_bytes"].as_u64(), Some(by_path as u64));
    assert_eq!(by_path + restored + lost, bytes.len(), "every byte is in one list");
}

#[test]
fn partial_shards() {
    let (arena, bytes) = with_input(80_000);
    arena.expect(["encode", "input", "-k", "4", "-m", "1", "--set-size", "16K"], 0);
    fs::remove_file(arena.path("input.shards/input.001.shard")).unwrap();
    // A second shard is damaged in one of the five sets.
    let body = 192 + 64 + 5 * 32 * (2 + 1 + 3);
    common::flip(&arena.path("input.shards/input.002.shard"), body + 2 * 4032 + 5);
    arena.refuses(["decode", "input.shards", "-o", "out"], 3);
    let output = arena.run(["decode", "input.shards", "-o", "out", "--partial", "--json"]);
    expect(&output, 3);
    is_partial(&arena.read("out"), &bytes, &json(&output.stdout));
    let output = arena.run(["decode", "input.shards", "-o", "-", "--partial"]);
    expect(&output, 3);
    assert!(output.stdout == arena.read("out"));
    says(&output, &["lost: bytes", "proved by its own path only"]);
    // If nothing is lost, --partial changes nothing.
    arena.expect(["encode", "input", "-k", "4", "-m", "1", "-f"], 0);
    arena.expect(["decode", "input.shards", "-o", "out", "-f", "--partial"], 0);
    assert!(arena.read("out") == bytes);
}

#[test]
fn partial_container() {
    let (arena, bytes) = with_input(240_000);
    let options = ["-k", "4", "-m", "1", "--set-size", "16K", "--group-size", "3"];
    let root = root(&arena.expect(["encode", "input", "-o", "c.fec"].into_iter().chain(options), 0));
    let whole = arena.read("c.fec");
    let hole = |range: std::ops::Range<usize>| {
        let mut damaged = whole.clone();
        damaged[range].fill(0x55);
        damaged
    };
    for damaged in [hole(120_000..200_000), hole(0..80_000), hole(50_000..68_000)] {
        arena.write("c.fec", &damaged);
        for given in [&[][..], &["--root", &root]] {
            let args = ["decode", "c.fec", "-o", "out", "--partial", "--json", "-f"];
            let output = arena.run([&args[..], given].concat());
            let report = json(&output.stdout);
            if code(&output) == 0 {
                assert!(arena.read("out") == bytes);
                continue;
            }
            expect(&output, 3);
            is_partial(&arena.read("out"), &bytes, &report);
            let piped = arena.pipe([&["decode", "-", "--partial"], given].concat(), &damaged);
            expect(&piped, 3);
            assert!(piped.stdout == arena.read("out"));
        }
    }
    // The container is cut and has no index: the end is unknown, but the bytes before the cut come out.
    arena.write("c.fec", &whole[..whole.len() / 2]);
    let output = arena.run(["decode", "c.fec", "-o", "cut", "--partial"]);
    expect(&output, 3);
    says(&output, &["cut"]);
    let cut = arena.read("cut");
    assert!(cut.len() > 80_000 && cut.len() < bytes.len());
    let right = cut.iter().zip(&bytes).filter(|(a, b)| a == b).count();
    assert!(right > cut.len() / 2);
}

#[test]
fn no_root_given() {
    let arena = Arena::new();
    let mut roots = Vec::new();
    for name in ["one", "two"] {
        arena.write(name, &payload(name.len() as u64 + u64::from(name.as_bytes()[0]), 3000));
        roots.push(root(
            &arena.expect(["encode", name, "-k", "3", "-m", "2", "-o", &format!("s-{name}/")], 0),
        ));
    }
    arena.nothing_temporary();
    let said = arena.refuses(["decode", "s-one", "s-two", "-o", "out"], 2);
    assert!(said.contains(&roots[0]) && said.contains(&roots[1]), "both are listed");
    // Verify needs no choice: it looks at both.
    says(&arena.expect(["verify", "s-one", "s-two"], 0), &["2 encodings: 2 intact"]);
    // The second encoding has only two shards left, so exactly one can be restored.
    (0..3).for_each(|i| fs::remove_file(arena.path(format!("s-two/two.00{i}.shard"))).unwrap());
    let output = arena.expect(["decode", "s-one", "s-two", "-o", "out"], 0);
    assert!(arena.read("out") == arena.read("one"));
    says(&output, &[&format!("root {}", roots[0]), &format!("shards of root {} are here too", roots[1])]);
    // Neither can be restored from the shards of both.
    (0..3).for_each(|i| fs::remove_file(arena.path(format!("s-one/one.00{i}.shard"))).unwrap());
    let said = arena.refuses(["decode", "s-one", "s-two", "-o", "out2"], 3);
    assert!(said.contains(&roots[0]) && said.contains(&roots[1]));
}

/// The last original shard is all zeros. Its file is cut so that zeros stand where the shard would be, counted from the
/// end. With the proof at its place counted from the start, the shard looks whole.
#[test]
fn verify_promises_only_what_decode_can_restore() {
    let arena = Arena::new();
    // A single set has shards of 70,016 bytes, and 3776 zeros stand between proofs and body.
    let bytes = [payload(7, 70_016), vec![0; 70_016]].concat();
    arena.write("in", &bytes);
    arena.expect(["encode", "in", "-k", "2", "-m", "1"], 0);
    fs::remove_file(arena.path("in.shards/in.002.shard")).unwrap();
    arena.expect(["verify", "in.shards"], 1);
    let last = arena.path("in.shards/in.001.shard");
    assert_eq!(fs::metadata(&last).unwrap().len(), 4096 + 70_016 + 64 + 64 + 192);
    for cut in [100, 1000, 2000] {
        let len = fs::metadata(&last).unwrap().len();
        fs::OpenOptions::new().write(true).open(&last).unwrap().set_len(len - cut).unwrap();
        let verified = arena.run(["verify", "in.shards"]);
        let decoded = arena.run(["decode", "in.shards", "-o", "out", "-f"]);
        if cut == 100 {
            // The damage hits only the last header.
            expect(&verified, 1);
        }
        match code(&verified) {
            1 => assert!(code(&decoded) == 0 && arena.read("out") == bytes),
            other => assert_eq!((other, code(&decoded)), (3, 3)),
        }
    }
}
