//! Framed streams that were damaged on the way: the code mends what it can, and the rest is named.

use super::*;

/// A stream of 700 packets of 200 bytes, with one repair packet for four.
fn sample(arena: &Arena) -> (Vec<u8>, Vec<u8>) {
    let bytes = payload(9, 140_000);
    let stream = send(arena, &["--packet", "200", "--rate", "1/4", "--window", "400"], &bytes);
    (bytes, stream)
}

#[track_caller]
fn mended(arena: &Arena, stream: &[u8], bytes: &[u8], what: &str) {
    let output = receive(arena, &[], stream);
    assert_eq!(code(&output), 0, "{what}: {}", text(&output.stderr));
    assert!(output.stdout == bytes, "{what}");
}

#[test]
fn flips_holes_insertions_and_deletions_are_mended() {
    let arena = Arena::new();
    let (bytes, stream) = sample(&arena);
    let mut random = Random::new(4);
    for round in 0..12 {
        let mut changed = stream.clone();
        for _ in 0..40 {
            let at = random.below(changed.len());
            let len = random.below(600);
            let end = (at + len).min(changed.len());
            match random.below(5) {
                0 => changed[at] ^= 1 << random.below(8),
                1 => changed[at..end].fill(0),
                2 => drop(changed.drain(at..end)),
                3 => drop(changed.splice(at..at, payload(random.next(), len))),
                _ => drop(changed.splice(at..at, DELIMITER)),
            }
        }
        // The end marks may be hit, but this test is not about them.
        changed.extend(DELIMITER);
        changed.extend_from_slice(frames(&stream).last().unwrap());
        mended(&arena, &changed, &bytes, &format!("round {round}"));
    }
}

/// Each byte of the first frames is changed, one at a time, without loss in the end.
#[test]
fn any_byte_may_be_wrong() {
    let arena = Arena::new();
    let (bytes, stream) = sample(&arena);
    for at in (0..600).step_by(7) {
        let mut changed = stream.clone();
        changed[at] ^= 0xFF;
        mended(&arena, &changed, &bytes, &format!("byte {at}"));
    }
}

#[test]
fn a_stream_that_was_cut_says_so() {
    let arena = Arena::new();
    let (bytes, stream) = sample(&arena);
    for cut in [1, 2, 100, stream.len() / 2, stream.len() - 700] {
        let output = receive(&arena, &[], &stream[..stream.len() - cut]);
        assert!(bytes.starts_with(&output.stdout), "{cut}");
        // A single lost mark of three is no loss.
        expect(&output, if cut < 40 { 0 } else { 3 });
        if cut > 200 {
            assert!(text(&output.stderr).contains("its end did not come"), "{}", text(&output.stderr));
            assert!(output.stdout.len() + 2 * cut > bytes.len(), "nearly all that is there comes out");
        }
    }
}

/// A stream without its beginning never gives exit code 0, however little is left. Without the key, nobody can cut it
/// by moving its end to the front.
#[test]
fn a_stream_without_its_beginning_is_never_whole() {
    let arena = Arena::new();
    let bytes = payload(9, 200_000);
    expect(&arena.run(["keygen", "--stream", "-o", "key"]), 0);
    for key in [&[][..], &["--key-file", "key"]] {
        let options = [&["--packet", "200", "--rate", "1/4", "--window", "400"], key].concat();
        let stream = send(&arena, &options, &bytes);
        let all = frames(&stream);
        let end = all.len() - 3;
        let of_file = |stream: &[u8], more: &[&str], exit: i32| {
            arena.write("s", stream);
            let args = ["decode", "--stream", "s", "-o", "out", "-f"].iter().chain(key).chain(more);
            let output = arena.run(args);
            expect(&output, exit);
            let piped = receive(&arena, &[key, more].concat(), stream);
            expect(&piped, exit);
            let out = std::fs::read(arena.path("out")).unwrap_or_default();
            let _ = std::fs::remove_file(arena.path("out"));
            assert!(out == piped.stdout);
            out
        };
        // The cuts are anywhere, and exactly before a frame. After the last cut, only the end marks are left.
        let at = |frame: usize| 2 + all[..frame].iter().map(Vec::len).sum::<usize>();
        for cut in [at(400), stream.len() / 2, at(end - 40), at(end - 5), at(end), at(end) + 1, at(end + 2)] {
            let out = of_file(&stream[cut..], &[], 3);
            assert!(bytes.ends_with(&out) && out.len() < bytes.len());
            let output = arena.pipe(["decode", "--stream", "--json"].iter().chain(key), &stream[cut..]);
            assert_eq!((&report(&output)["whole"], &report(&output)["ended"]), (&false.into(), &true.into()));
            assert!(of_file(&stream[cut..], &["--gap", "fail"], 3).is_empty());
            of_file(&stream[cut..], &["--gap", "zero"], 3);
            let said = receive(&arena, &[key, &["--gap", "fail"]].concat(), &stream[cut..]);
            assert!(text(&said.stderr).contains("lost for good: packets 0 to"), "{}", text(&said.stderr));
        }
        for times in 1..=3 {
            let first = joined(all[end..end + times].iter().chain(&all[..end]));
            assert!(of_file(&first, &[], 0) == bytes);
            assert!(of_file(&first, &["--gap", "fail"], 0) == bytes);
        }
        let backwards: Vec<Vec<u8>> = all.iter().rev().cloned().collect();
        of_file(&joined(&backwards), &[], 3);
    }
    // The end mark of an empty stream is 0.
    let empty = send(&arena, &[], b"");
    expect(&receive(&arena, &["--gap", "fail"], &empty), 0);
}

#[test]
fn joining_late_delivers_what_comes() {
    let arena = Arena::new();
    let (bytes, stream) = sample(&arena);
    let output = receive(&arena, &["--json"], &stream[stream.len() / 2..]);
    expect(&output, 3);
    assert!(output.stdout.len() > bytes.len() / 3 && bytes.ends_with(&output.stdout));
    let joined = report(&output)["joined_at"].as_u64().unwrap();
    assert_eq!(joined as usize * 200 + output.stdout.len(), bytes.len());
}

#[test]
fn streams_that_were_joined_are_told_apart() {
    let arena = Arena::new();
    let (one, two) = (payload(1, 30_000), payload(2, 20_000));
    let a = send(&arena, &["--stream-id", "a"], &one);
    let b = send(&arena, &["--stream-id", "b"], &two);
    let both = [a.clone(), b.clone()].concat();
    let output = receive(&arena, &[], &both);
    expect(&output, 3);
    assert!(output.stdout == one);
    assert!(text(&output.stderr).contains("--stream-id"), "{}", text(&output.stderr));
    for (id, bytes) in [("a", &one), ("b", &two)] {
        let output = receive(&arena, &["--stream-id", id], &both);
        expect(&output, 0);
        assert!(output.stdout == *bytes);
    }
    let output = receive(&arena, &["--stream-id", "c"], &both);
    expect(&output, 3);
    assert!(output.stdout.is_empty() && text(&output.stderr).contains("other streams"));
    // The packets of both streams alternate.
    let (a, b) = (frames(&a), frames(&b));
    let mixed: Vec<Vec<u8>> =
        (0..a.len().max(b.len())).flat_map(|i| [a.get(i), b.get(i)]).flatten().cloned().collect();
    let output = receive(&arena, &["--stream-id", "b"], &joined(&mixed));
    expect(&output, 0);
    assert!(output.stdout == two);
    let output = receive(&arena, &[], &joined(&mixed));
    expect(&output, 3);
    assert!(output.stdout == one);
}

#[test]
fn a_stream_that_comes_twice_is_delivered_once() {
    let arena = Arena::new();
    let (bytes, stream) = sample(&arena);
    mended(&arena, &stream.repeat(2), &bytes, "twice");
}

/// The payload of a stream is a framed stream. It is delivered, and its frames never count as packets, even if the
/// frames around them are damaged.
#[test]
fn a_stream_inside_a_stream_is_payload() {
    let arena = Arena::new();
    let (_, inner) = sample(&arena);
    let outer = send(&arena, &["--window", "400", "--rate", "1/4"], &inner);
    mended(&arena, &outer, &inner, "nested");
    let mut damaged = outer;
    for at in (500..damaged.len()).step_by(15_000) {
        damaged[at] ^= 1;
    }
    let output = receive(&arena, &["--json"], &damaged);
    expect(&output, 0);
    assert!(output.stdout == inner);
    assert_eq!(report(&output)["foreign"], 0);
}

/// 2000 packets are missing, more than the repair packets can mend: the range is named and the stream goes on.
#[test]
fn an_outage_is_named_and_the_stream_goes_on() {
    let arena = Arena::new();
    let bytes = payload(2, 20_000 * 100);
    let stream = send(&arena, &["--packet", "100", "--impair", "burst:2000,8000"], &bytes);
    let output = receive(&arena, &["--json"], &stream);
    expect(&output, 3);
    let report = report(&output);
    let lost = report["lost"].as_u64().unwrap();
    assert!((1000..2000).contains(&lost), "{report}");
    let gaps = report["gaps"].as_array().unwrap();
    let is_lost = |i: usize| {
        let inside = |gap: &Value| {
            let first = gap["first"].as_u64().unwrap();
            (first..first + gap["count"].as_u64().unwrap()).contains(&(i as u64))
        };
        gaps.iter().any(inside)
    };
    assert!(output.stdout == without(&bytes, 100, is_lost), "what is named is missing, and nothing else");
    let last = gaps.last().map(|gap| gap["first"].as_u64().unwrap() + gap["count"].as_u64().unwrap());
    assert!(last < Some(8000 * 6 / 7 + 2000 + 6000), "{report}");
}
