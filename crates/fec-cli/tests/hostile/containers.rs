//! Containers in, behind and beside containers, and payloads that imitate them.

use super::*;

/// A container inside a container. Every record of the outer one can be damaged.
struct Nested {
    inner: Vec<u8>,
    inner_root: String,
    outer: Vec<u8>,
    outer_root: String,
    /// Offsets of the outer records, in order.
    records: Vec<usize>,
    /// Offset of the outer index.
    index: usize,
}

fn nested(arena: &Arena, inner_payload: usize, outer: &[&str]) -> Nested {
    arena.write("payload", &payload(15, inner_payload));
    let inner = ["encode", "payload", "-o", "inner.fec", "-k", "2", "-m", "2", "--set-size", "8K"];
    let inner_root = common::root(&arena.run(inner));
    let encode = [&["encode", "inner.fec", "-o", "outer.fec"], outer].concat();
    let outer_root = common::root(&arena.run(&encode));
    let (inner, outer) = (arena.read("inner.fec"), arena.read("outer.fec"));
    fs::remove_file(arena.path("payload")).unwrap();
    fs::remove_file(arena.path("inner.fec")).unwrap();
    // Pg and GR of the outer stream tell its records from the inner ones.
    let starts: Vec<usize> =
        (0..outer.len() - 128).filter(|at| outer[*at..].starts_with(b"\x89fecR\r\n\x1a")).collect();
    let is_own = |at: &usize| outer[at + 36..at + 40] == outer[36..40];
    let own: Vec<usize> = starts.iter().copied().filter(is_own).collect();
    let index = (0..outer.len() - 128)
        .filter(|at| outer[*at..].starts_with(b"\x89fecX\r\n\x1a"))
        .find(is_own)
        .expect("an index");
    Nested { inner, inner_root, outer, outer_root, records: own, index }
}

#[test]
fn container_inside_a_container() {
    let arena = Arena::new();
    let nest = nested(&arena, 30_000, &["-k", "4", "-m", "3", "--set-size", "16K"]);
    arena.write("outer.fec", &nest.outer);
    arena.expect(["decode", "outer.fec", "-o", "out"], 0);
    assert!(arena.read("out") == nest.inner);
    let piped = arena.pipe(["decode", "-"], &nest.outer);
    expect(&piped, 0);
    assert!(piped.stdout == nest.inner);
    // With the inner root nothing hides the inner records, but too few of them are not cut by outer headers.
    arena.refuses(["decode", "outer.fec", "-o", "out2", "--root", &nest.inner_root], 3);
}

/// The headers of outer records are damaged, so the scanner looks inside them and finds records of the inner container.
/// The outer one must be restored all the same.
#[test]
fn inner_records_surface_from_damaged_outer_ones() {
    // The first shape has one set in one group, the second many sets in several groups.
    let shapes = [
        &["-k", "4", "-m", "4", "--set-size", "1M"][..],
        &["-k", "4", "-m", "4", "--set-size", "16K", "--group-size", "3"],
    ];
    for shape in shapes {
        let arena = Arena::new();
        let nest = nested(&arena, 60_000, shape);
        let mut random = Random::new(16);
        for round in 0..24 {
            let mut damaged = nest.outer.clone();
            // The first record is always damaged, the others at random by shard index: at most 4 of 8.
            for (nth, at) in nest.records.iter().enumerate() {
                let index = nest.outer[at + 20];
                let hit = nth == 0 || (round > 0 && index < 4 && random.chance(20 * (round % 6)));
                if hit {
                    damaged[at + 40] ^= 1;
                }
            }
            // Odd rounds damage the index too.
            if round % 2 == 1 {
                damaged.truncate(nest.index + if round % 4 == 1 { 0 } else { 100 });
            }
            arena.write("outer.fec", &damaged);
            // If enough of the inner container surfaces to restore it too, the root must choose.
            let output = arena.run(["decode", "outer.fec", "-o", "out"]);
            let is_there = arena.path("out").exists();
            assert_eq!(common::code(&output), if is_there { 0 } else { 2 }, "{}", text(&output.stderr));
            assert!(!is_there || arena.read("out") == nest.inner, "round {round}");
            arena.expect(["decode", "outer.fec", "-o", "out", "-f", "--root", &nest.outer_root], 0);
            assert!(arena.read("out") == nest.inner, "round {round}");
            let piped = arena.pipe(["decode", "-", "--root", &nest.outer_root], &damaged);
            expect(&piped, 0);
            assert!(piped.stdout == nest.inner, "round {round}");
            // A pipe cannot be rewound. The inner payload is never taken for the answer.
            let piped = arena.pipe(["decode", "-", "-o", "piped", "-f"], &damaged);
            let restored = arena.path("piped").exists();
            assert_eq!(restored, piped.status.code() == Some(0));
            assert!([0, 2, 3].contains(&common::code(&piped)), "{}", text(&piped.stderr));
            assert!(!restored || arena.read("piped") == nest.inner, "round {round}");
            fs::remove_file(arena.path("piped")).ok();
            fs::remove_file(arena.path("out")).unwrap();
        }
    }
}

/// All records of one outer shard index are damaged, and they hold the whole inner container. Both containers can be
/// restored, and only the root can choose.
#[test]
fn whole_inner_container_surfaces() {
    let arena = Arena::new();
    let nest = nested(&arena, 3_000, &["-k", "1", "-m", "2", "--set-size", "64K"]);
    for hit in [&[0][..], &[1], &[0, 1], &[2], &[0, 2]] {
        let mut damaged = nest.outer.clone();
        hit.iter().for_each(|i| damaged[nest.records[*i] + 40] ^= 1);
        arena.write("outer.fec", &damaged);
        let said = arena.refuses(["decode", "outer.fec", "-o", "out"], 2);
        assert!(said.contains(&nest.outer_root) && said.contains(&nest.inner_root), "{hit:?}: {said}");
        let said = arena.refuses_pipe(["decode", "-", "-o", "out"], &damaged, 2);
        assert!(said.contains(&nest.outer_root) && said.contains(&nest.inner_root), "{hit:?}: {said}");
        arena.expect(["decode", "outer.fec", "-o", "out", "--root", &nest.outer_root], 0);
        assert!(arena.read("out") == nest.inner, "{hit:?}");
        arena.expect(["decode", "outer.fec", "-o", "out", "-f", "--root", &nest.inner_root], 0);
        assert!(arena.read("out") == payload(15, 3_000), "{hit:?}");
        fs::remove_file(arena.path("out")).unwrap();
        let piped = arena.pipe(["decode", "-", "--root", &nest.outer_root], &damaged);
        expect(&piped, 0);
        assert!(piped.stdout == nest.inner, "{hit:?}");
    }
}

/// A Pg that makes every false record as long as possible.
fn long_pg(shard_len: u32) -> Block {
    Block { form: 2, k: 1, m: 0, shard_len, sets: 1, payload: shard_len.into(), ..SMALL }
}

#[test]
fn false_record_headers() {
    let arena = Arena::new();
    for shard_len in [1 << 20, 8 << 20, 24 << 20] {
        let header = forge::record(&long_pg(shard_len), &[7; 32], &[0; 32], 0, 0, b"", b"");
        let bytes = header.repeat((32 << 20) / header.len());
        arena.write("false.fec", &bytes);
        quickly(|| arena.refuses(["decode", "false.fec", "-o", "out"], 3));
        quickly(|| arena.refuses(["verify", "false.fec"], 3));
        quickly(|| arena.refuses_pipe(["decode", "-"], &bytes, 3));
    }
}

/// 40 MiB of headers of indexes with 2^20 groups. Checking one costs a tree of as many nodes.
fn false_indexes(hash: u8) -> Vec<u8> {
    let p = Block { hash, k: 1, m: 0, shard_len: 4096, sets: 1, payload: 1 << 32, tail: 1 << 20, ..SMALL_P };
    let header = forge::index_header(&p, &[7; 32], b"", 32 << 20);
    header.repeat((40 << 20) / header.len())
}

/// The cost of false index headers must not be quadratic.
#[test]
fn false_index_headers_in_a_pipe() {
    let arena = Arena::new();
    for hash in [1, 2] {
        quickly(|| arena.refuses_pipe(["decode", "-"], &false_indexes(hash), 3));
    }
}

#[test]
fn false_index_headers() {
    let arena = Arena::new();
    for hash in [1, 2] {
        arena.write("false.fec", &false_indexes(hash));
        quickly(|| arena.refuses(["decode", "false.fec", "-o", "out"], 3));
    }
}

/// A payload of false headers is restored from a container, where they stand and come to light.
#[test]
fn payload_that_imitates_headers() {
    let arena = Arena::new();
    let record = forge::record(&long_pg(64 << 10), &[7; 32], &[0; 32], 0, 0, b"", b"");
    let p = Block { k: 1, m: 0, shard_len: 4096, sets: 1, payload: 1 << 22, tail: 1 << 10, ..SMALL_P };
    let index = forge::index_header(&p, &[7; 32], b"", 32 << 10);
    let bytes: Vec<u8> = [record, index].concat().repeat(4096);
    arena.write("payload", &bytes);
    for shape in [&["-k", "4", "-m", "2", "--set-size", "64K"][..], &["-k", "2", "-m", "4"]] {
        let encode = [&["encode", "payload", "-o", "c.fec", "-f"], shape].concat();
        let root = common::root(&arena.run(&encode));
        let whole = arena.read("c.fec");
        quickly(|| arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0));
        assert!(arena.read("out") == bytes);
        // The damage opens the first record of every group, and some others.
        let mut damaged = whole.clone();
        let mut random = Random::new(17);
        let geometry = whole[32..64].to_vec();
        let mut at = 0;
        while at + 128 < whole.len() {
            if whole[at..].starts_with(b"\x89fecR\r\n\x1a") && whole[at + 36..at + 40] == geometry[4..8] {
                let index = u32::from_le_bytes(whole[at + 20..at + 24].try_into().unwrap());
                if index < 2 && random.chance(60) || at == 0 {
                    damaged[at + 41] ^= 1;
                }
            }
            at += 64;
        }
        arena.write("c.fec", &damaged);
        let output = quickly(|| arena.run(["decode", "c.fec", "-o", "out", "-f", "--root", &root]));
        // A costly payload is never refused.
        expect(&output, 0);
        assert!(arena.read("out") == bytes);
        quickly(|| arena.pipe(["decode", "-"], &damaged));
    }
}

#[test]
fn two_containers_joined() {
    let arena = Arena::new();
    let (a_root, a) =
        encoded(&arena, 18, 50_000, &["-k", "3", "-m", "2", "--set-size", "12K", "--group-size", "2"]);
    let (b_root, b) = encoded(&arena, 19, 30_000, &["-k", "2", "-m", "2", "--set-size", "8K"]);
    let joined = [a.clone(), b.clone()].concat();
    arena.write("ab.fec", &joined);
    let said = arena.refuses(["decode", "ab.fec", "-o", "out"], 2);
    assert!(said.contains(&a_root) && said.contains(&b_root), "both roots are listed: {said}");
    let said = arena.refuses_pipe(["decode", "-", "-o", "out"], &joined, 2);
    assert!(said.contains(&a_root) && said.contains(&b_root), "both roots are listed: {said}");
    let said = text(&arena.pipe(["verify", "-"], &joined).stderr);
    assert!(said.contains(&a_root) && said.contains(&b_root), "both roots are listed: {said}");
    for (root, bytes) in [(&a_root, payload(18, 50_000)), (&b_root, payload(19, 30_000))] {
        arena.expect(["decode", "ab.fec", "-o", "out", "-f", "--root", root], 0);
        assert!(arena.read("out") == bytes);
        let piped = arena.pipe(["decode", "-", "--root", root], &joined);
        expect(&piped, 0);
        assert!(piped.stdout == bytes);
    }
    // The same container twice counts as one.
    arena.write("aa.fec", &a.repeat(2));
    arena.expect(["decode", "aa.fec", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == payload(18, 50_000));
    let piped = arena.pipe(["decode", "-"], &a.repeat(2));
    expect(&piped, 0);
    assert!(piped.stdout == payload(18, 50_000));
    expect(&arena.run(["verify", "aa.fec"]), 1);
}

/// Whoever can append to a container must not be able to hide it: the root finds it among many.
#[test]
fn a_hundred_containers_joined() {
    let arena = Arena::new();
    let all: Vec<(String, Vec<u8>)> =
        (0..100).map(|i| encoded(&arena, 100 + i, 200, &["-k", "2", "-m", "1", "--no-sync"])).collect();
    let joined: Vec<u8> = all.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    arena.write("all.fec", &joined);
    for i in [0, 50, 99] {
        arena.expect(["decode", "all.fec", "-o", "out", "-f", "--root", &all[i].0], 0);
        assert!(arena.read("out") == payload(100 + i as u64, 200));
    }
    fs::remove_file(arena.path("out")).unwrap();
    arena.refuses(["decode", "all.fec", "-o", "out"], 2);
}

/// The image of a disk: containers at odd offsets between other bytes. Each is found by its root.
#[test]
fn containers_in_the_image_of_a_disk() {
    let arena = Arena::new();
    let all: Vec<(String, Vec<u8>)> =
        (0..3).map(|i| encoded(&arena, 200 + i, 3000, &["-k", "2", "-m", "1", "--no-sync"])).collect();
    let mut image = payload(1, 10_240);
    for ((_, bytes), len) in all.iter().zip([128, 512, 641]) {
        image.extend(bytes);
        image.extend(payload(2, len));
    }
    arena.write("image", &image);
    for (seed, (root, _)) in (200..).zip(&all) {
        arena.expect(["decode", "image", "-o", "out", "-f", "--root", root], 0);
        assert!(arena.read("out") == payload(seed, 3000));
    }
    fs::remove_file(arena.path("out")).unwrap();
    arena.refuses(["decode", "image", "-o", "out"], 2);
}

/// Copies of one container have each lost too much, but together they hold enough.
#[test]
fn damaged_copies_of_a_container_joined() {
    let arena = Arena::new();
    let (root, whole) = encoded(&arena, 203, 20_000, &["-k", "2", "-m", "4"]);
    let is_record = |at: &usize| whole[*at..].starts_with(b"\x89fecR\r\n\x1a");
    let records: Vec<usize> = (0..whole.len()).filter(is_record).collect();
    assert_eq!(records.len(), 6, "one set");
    let len = records[1] - records[0];
    let with_only = |kept: usize| {
        let mut copy = whole.clone();
        let lost = records.iter().enumerate().filter(|(nth, _)| *nth != kept);
        lost.for_each(|(_, at)| copy[*at..*at + len].fill(0));
        copy
    };
    for kept in [0, 3] {
        arena.write("c.fec", &with_only(kept));
        arena.refuses(["decode", "c.fec", "-o", "out"], 3);
    }
    arena.write("c.fec", &[with_only(0), with_only(3)].concat());
    for given in [&[][..], &["--root", &root]] {
        arena.expect([&["decode", "c.fec", "-o", "out", "-f"], given].concat(), 0);
        assert!(arena.read("out") == payload(203, 20_000));
    }
    expect(&arena.run(["verify", "c.fec"]), 1);
    arena.expect(["repair", "c.fec", "--no-sync"], 0);
    assert!(arena.read("c.fec") == whole);
}

/// A container stays a container, whatever somebody appends, even the end of a shard file.
#[test]
fn shard_file_appended_to_a_container() {
    let arena = Arena::new();
    let (root, bytes) = encoded(&arena, 20, 5000, &["-k", "3", "-m", "2"]);
    let (_, files) = shard_files(&SMALL, &small_rows(20), &forge::meta(b"name"));
    for appended in [&files[0][..], &files[0][files[0].len() - HEADER..]] {
        arena.write("c.fec", &[&bytes, appended].concat());
        arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
        assert!(arena.read("out") == payload(20, 5000));
        arena.expect(["decode", "c.fec", "-o", "out", "-f", "--root", &root], 0);
        expect(&arena.run(["verify", "c.fec"]), 1);
    }
}

/// Standard input that another program has read in part starts at its current offset.
#[test]
fn standard_input_in_the_middle_of_a_file() {
    use std::io::Seek;
    let arena = Arena::new();
    let (root, boxed) = encoded(&arena, 37, 50_000, &["-k", "3", "-m", "2", "--set-size", "12K"]);
    arena.write("file", &[&b"#!/bin/sh\nself-extracting\n"[..], &boxed].concat());
    for args in [&["decode", "-"][..], &["decode", "-", "--root", &root], &["decode", "-", "--partial"]] {
        let mut file = File::open(arena.path("file")).unwrap();
        file.seek(std::io::SeekFrom::Start(26)).unwrap();
        let output = arena.fec(args).stdin(file).output().unwrap();
        expect(&output, 0);
        assert!(output.stdout == payload(37, 50_000), "{args:?}");
    }
    let mut file = File::open(arena.path("file")).unwrap();
    file.seek(std::io::SeekFrom::Start(26)).unwrap();
    expect(&arena.fec(["verify", "-", "--deep"]).stdin(file).output().unwrap(), 0);
}

/// Records in another order are all intact, yet the file differs from the written one.
#[test]
fn records_in_another_order() {
    let arena = Arena::new();
    let boxed = as_container(&SMALL, &small_rows(38));
    let mut records = boxed.records.clone();
    records.swap(2, 3);
    arena.write("c.fec", &[records.concat(), boxed.index.clone()].concat());
    arena.expect(["decode", "c.fec", "-o", "out"], 0);
    expect(&arena.run(["verify", "c.fec"]), 1);
    expect(&arena.pipe(["verify", "-"], &arena.read("c.fec")), 1);
    arena.write("c.fec", &[boxed.index.clone(), boxed.records.concat()].concat());
    arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
    expect(&arena.run(["verify", "c.fec"]), 1);
    // A head that does not follow from the group before it proves nothing. The record is lost, and the others serve.
    let bytes = payload(38, TWO_P.payload as usize);
    let two = container(&TWO_P, &two_groups(&bytes), b"");
    let mut records = two.records.clone();
    resign_record(&mut records[12], |head| head[96] ^= 1);
    arena.write("c.fec", &[records.concat(), two.index.clone()].concat());
    arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == bytes);
    expect(&arena.run(["verify", "c.fec"]), 1);
}

/// Parts that are whole, or were made whole again, are never called intact if their content or place is wrong.
#[test]
fn parts_in_another_order() {
    let arena = Arena::new();
    let name = forge::meta(b"name");
    let one = container(&SMALL_P, &[(only_group(&SMALL_P), small_rows(72))], &name);
    let records = one.records.concat();
    let (header, rest) = one.index.split_at(128);
    let body = &rest[..(rest.len() - 256) / 2];
    let index = |parts: &[&[u8]]| [&one.front[..], &records, &parts.concat()].concat();
    let with_front = |front: Vec<u8>| [&front[..], &records, &one.index].concat();
    let flagged = Block { flags: 0x10, ..SMALL_P };
    for (what, bytes, exit) in [
        ("as it was written", one.bytes(), 0),
        ("bodies and headers", index(&[header, body, header, header, body]), 1),
        ("headers first", index(&[header, header, body, header, body]), 1),
        ("meta of another", with_front(forge::meta_frame(&SMALL_P, &forge::meta(b"eman"))), 1),
        ("flags of another", with_front(forge::meta_frame(&flagged, &name)), 1),
        ("meta behind", [&records[..], &one.front, &one.index].concat(), 1),
    ] {
        arena.write("c.fec", &bytes);
        arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
        assert!(arena.read("out") == payload(72, LEN));
        for args in [&["verify", "c.fec"][..], &["verify", "c.fec", "--root", &hex(&one.root)]] {
            let output = arena.run(args);
            assert_eq!(common::code(&output), exit, "{what}: {}", text(&output.stdout));
        }
        let piped = arena.pipe(["verify", "-"], &bytes);
        assert_eq!(common::code(&piped), exit, "{what}: {}", text(&piped.stdout));
    }
}

/// Proved records that lead to groups with too few other records stand anywhere in an intact container. A pipe restores
/// it like a file.
#[test]
fn rival_groups_in_a_pipe() {
    let arena = Arena::new();
    let p = Block { payload: 2 * 24_576 + 100, tail: 3, ..TWO_P };
    let groups = |bytes: &[u8]| {
        let [first, last] = [Block { tail: 0, payload: 24_576, ..TWO_P }, two_groups(&bytes[24_576..])[1].0];
        let rows = |range: Range<usize>| honest_rows(&bytes[range], 3, 3, 4096, 2);
        let end = honest_rows(&bytes[2 * 24_576..], 3, 3, 64, 1);
        let second = Block { tail: 1, ..first };
        [(first, rows(0..24_576)), (second, rows(24_576..49_152)), (Block { tail: 2, ..last }, end)]
    };
    let bytes = payload(70, p.payload as usize);
    let honest = container(&p, &groups(&bytes), b"");
    let other = container(&p, &groups(&payload(71, p.payload as usize)), b"");
    let root_of = |record: &[u8]| <[u8; 32]>::try_from(&record[64..96]).unwrap();
    let [first, second] = groups(&bytes).map(|(pg, _)| pg)[..2].try_into().unwrap();
    let empty = fec_core::digest::HashKind::Blake3.digest(b"");
    let lone = forge::lone_record(&first, &empty);
    let lone_behind = forge::lone_record(&second, &root_of(&lone));
    let rival = forge::lone_record(&second, &root_of(&honest.records[0]));
    let behind_rival = forge::lone_record(&Block { tail: 2, ..second }, &root_of(&rival));
    let huge = |k, m, shard_len, sets: u32| {
        let len = u64::from(k) * u64::from(shard_len) * u64::from(sets);
        forge::lone_record(&Block { k, m, shard_len, sets, payload: len, ..first }, &empty)
    };
    // A recovery shard of another original than the one in the tree.
    let tiny = Block { k: 1, m: 1, shard_len: 4096, sets: 1, payload: 4096, ..first };
    let untrue = container(&tiny, &[(tiny, vec![vec![vec![1; 4096], vec![2; 4096]]])], b"").records.remove(1);
    let rivals = [
        ("sets of 384 MiB", vec![huge(4, 2, 1 << 26, 1)]),
        ("2^53 bytes", vec![huge(2, 1, 1 << 20, u32::MAX)]),
        ("2^57 bytes", vec![huge(128, 128, 1 << 18, u32::MAX)]),
        ("one of another container", vec![other.records[0].clone()]),
        ("a pair", vec![lone.clone(), lone_behind.clone()]),
        ("three", vec![other.records[0].clone(), other.records[12].clone(), other.records[24].clone()]),
        ("a second group", vec![rival.clone()]),
        ("a second group, and one behind it", vec![rival.clone(), behind_rival]),
        ("many", vec![lone, lone_behind, rival, other.records[13].clone(), other.records[1].clone()]),
        ("a set that is untrue", vec![untrue]),
    ];
    for (what, rivals) in rivals {
        for at in [0, 1, 3, 11, 12, 13, 20, 24, 25, honest.records.len()] {
            let mut records = honest.records.clone();
            records.splice(at..at, rivals.clone());
            let stream = [records.concat(), honest.index.clone()].concat();
            let piped = quickly(|| arena.pipe(["decode", "-"], &stream));
            assert_eq!(common::code(&piped), 0, "{what}, at {at}: {}", text(&piped.stderr));
            assert!(piped.stdout == bytes, "{what}, at {at}");
            if at == 0 {
                arena.write("x", &stream);
                arena.expect(["decode", "x", "-o", "out", "-f"], 0);
                assert!(arena.read("out") == bytes, "{what}");
                // Alone, these records are no payload: nothing comes out, for any reason.
                let alone = quickly(|| arena.pipe(["decode", "-"], &rivals.concat()));
                let code = common::code(&alone);
                assert!(code > 1 && alone.stdout.is_empty(), "{what}: {alone:?}");
                match what {
                    "sets of 384 MiB" => assert_eq!(code, 6),
                    "a pair" => {
                        assert!(text(&alone.stderr).contains("(20 KiB)"), "{}", text(&alone.stderr))
                    }
                    "a set that is untrue" => assert_eq!(code, 5),
                    _ => {}
                }
            }
        }
    }
    arena.nothing_temporary();
}

/// The only group of a file is far larger than a pipe's group. Through a pipe it waits in a temporary file, not in
/// memory.
#[test]
fn a_pipe_of_one_large_group() {
    let arena = Arena::new();
    let (root, boxed) =
        encoded(&arena, 1, 120_000_000, &["-k", "12", "-m", "1", "--set-size", "48K", "--no-sync"]);
    arena.write("c.fec", &boxed);
    for (args, input) in [
        (&["decode", "-", "-o", "out", "--no-sync", "-j", "1"][..], &boxed),
        (&["decode", "-", "-o", "out", "--no-sync", "-j", "1", "--root", &root], &boxed),
    ] {
        let mut damaged = input.clone();
        damaged[5_000_000..5_010_000].fill(0);
        let (output, usage) = measured(&arena, args, &damaged);
        expect(&output, 0);
        assert!(arena.read("out") == payload(1, 120_000_000));
        assert!(usage.memory < 100 << 20, "{args:?}: {usage:?}");
        fs::remove_file(arena.path("out")).unwrap();
    }
    arena.nothing_temporary();
}
