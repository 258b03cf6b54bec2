//! Encoders that sign what is not true, and shards in the wrong place.

use super::*;

/// All subsets of six shards with at least `least` of them.
fn subsets(least: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..64u32)
        .filter(move |bits| bits.count_ones() >= least)
        .map(|bits| (0..6).filter(|i| bits >> i & 1 == 1).collect())
}

/// Decodes every subset of at least k shards, in both forms and in every way; all must give `exit`.
#[track_caller]
fn every_subset_gives(p: &Block, rows: &Rows, exit: i32) {
    let arena = Arena::new();
    let (root, files) = shard_files(p, rows, &forge::meta(b"name"));
    let boxed = as_container(p, rows);
    let (root, boxed_root) = (hex(&root), hex(&boxed.root));
    arena.write_all("s", &files);
    for subset in subsets(3) {
        let named: Vec<String> = subset.iter().map(|i| format!("s/{i}")).collect();
        let kept = subset.iter().flat_map(|i| &boxed.records[2 * i..2 * i + 2]).cloned();
        let stream = [kept.collect::<Vec<_>>().concat(), boxed.index.clone()].concat();
        arena.write("c.fec", &stream);
        for extra in [&[][..], &["--partial"], &["-j", "1"]] {
            let shards = [&["decode", "-o", "out"], extra];
            let shards = shards.concat().into_iter().chain(named.iter().map(String::as_str));
            arena.refuses(shards.clone().chain(["--root", &root]), exit);
            arena.refuses(shards, exit);
            let file = [&["decode", "c.fec", "-o", "out"], extra].concat();
            arena.refuses(file.iter().copied().chain(["--root", &boxed_root]), exit);
            arena.refuses(&file, exit);
            let pipe = [&["decode", "-"], extra].concat();
            arena.refuses_pipe(&pipe, &stream, exit);
            arena.refuses_pipe(pipe.iter().copied().chain(["--root", &boxed_root]), &stream, exit);
            arena.refuses_pipe(pipe.iter().copied().chain(["-o", "out"]), &stream, exit);
        }
    }
    // Verify says what it looked at: everything is intact, and only decoding can tell.
    arena.write("c.fec", &boxed.bytes());
    expect(&arena.run(["verify", "--deep", "s"]), exit);
    expect(&arena.run(["verify", "--deep", "c.fec"]), exit);
}

#[test]
fn valid_tree_over_a_false_original() {
    let mut rows = small_rows(1);
    rows[1][1][7] ^= 0x40;
    every_subset_gives(&SMALL, &rows, 5);
}

#[test]
fn valid_tree_over_a_false_recovery_shard() {
    let mut rows = small_rows(2);
    rows[0][4][63] ^= 1;
    every_subset_gives(&Block { hash: 2, ..SMALL }, &rows, 5);
}

#[test]
fn non_zero_padding() {
    let mut rows = honest_rows(&payload(3, 3 * 2 * 64), 3, 3, 64, 2);
    every_subset_gives(&SMALL, &rows, 5);
    rows = honest_rows(&[payload(3, 374), vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1]].concat(), 3, 3, 64, 2);
    every_subset_gives(&SMALL, &rows, 5);
}

#[test]
fn non_canonical_width() {
    let p = Block { shard_len: 128, ..SMALL };
    every_subset_gives(&p, &honest_rows(&payload(4, 374), 3, 3, 128, 2), 5);
    let p = Block { sets: 3, ..SMALL };
    every_subset_gives(&p, &honest_rows(&payload(4, 374), 3, 3, 64, 3), 5);
}

/// To standard output groups leave one by one; the second is false, so the exit code says so and not
/// one byte of it comes out.
#[test]
fn false_codeword_in_a_later_group() {
    let p = Block { form: 2, payload: 384 + 100, tail: 2, ..SMALL };
    let first = Block { flags: 0, tail: 0, payload: 384, ..p };
    let last = Block { flags: 1, tail: 1, payload: 100, sets: 1, ..p };
    let bytes = payload(5, 484);
    let mut rows = honest_rows(&bytes[384..], 3, 3, 64, 1);
    rows[0][5][0] ^= 1;
    let forged = container(&p, &[(first, honest_rows(&bytes[..384], 3, 3, 64, 2)), (last, rows)], b"");
    let arena = Arena::new();
    arena.write("c.fec", &forged.bytes());
    arena.refuses(["decode", "c.fec", "-o", "out"], 5);
    arena.refuses(["decode", "c.fec", "-o", "out", "--partial"], 5);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &forged.bytes(), 5);
    for output in [arena.run(["decode", "c.fec", "-o", "-"]), arena.pipe(["decode", "-"], &forged.bytes())] {
        expect(&output, 5);
        assert!(output.stdout == bytes[..384], "the first group, and nothing of the second");
    }
    arena.nothing_temporary();
}

/// The last group is larger than those before it. A pipe without an index refuses it as a file does.
#[test]
fn last_group_that_does_not_fit() {
    let p = Block { form: 2, payload: 384 + 500, tail: 2, ..SMALL };
    let first = Block { flags: 0, tail: 0, payload: 384, ..p };
    let last = Block { flags: 1, tail: 1, payload: 500, sets: 3, ..p };
    let bytes = payload(6, 884);
    let groups =
        [(first, honest_rows(&bytes[..384], 3, 3, 64, 2)), (last, honest_rows(&bytes[384..], 3, 3, 64, 3))];
    let records = container(&p, &groups, b"").records.concat();
    let arena = Arena::new();
    arena.write("c.fec", &records);
    arena.refuses(["decode", "c.fec", "-o", "out"], 5);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &records, 5);
}

/// A shard of an encoding whose sets are larger than --max-memory costs the others nothing.
#[test]
fn large_sets_among_others() {
    let arena = Arena::new();
    arena.write("small", &payload(38, 1000));
    arena.write("large", &payload(39, 1 << 20));
    arena.expect(["encode", "small", "-k", "2", "-m", "1", "-o", "s/"], 0);
    arena.expect(["encode", "large", "-k", "2", "-m", "1", "-o", "t/"], 0);
    let limit = ["--max-memory", "1M", "-o", "out"];
    arena.refuses(["decode", "t", "t/large.000.shard"].into_iter().chain(limit), 6);
    fs::remove_file(arena.path("t/large.002.shard")).unwrap();
    fs::remove_file(arena.path("s/small.000.shard")).unwrap();
    arena.expect(["decode", "s", "t"].into_iter().chain(limit), 0);
    assert!(arena.read("out") == payload(38, 1000));
}

/// The reader recomputes a shard that it was given and did not need: its leaf in the tree is no proof.
#[test]
fn digest_reused_from_the_input() {
    let mut rows = small_rows(6);
    rows.iter_mut().for_each(|set| set[5].fill(0xee));
    let (_, files) = shard_files(&SMALL, &rows, &forge::meta(b"name"));
    let boxed = as_container(&SMALL, &rows);
    let arena = Arena::new();
    arena.write_all("s", &files);
    arena.write("c.fec", &boxed.bytes());
    arena.refuses(["decode", "s", "-o", "out"], 5);
    arena.refuses(["decode", "s/0", "s/1", "s/2", "s/5", "-o", "out"], 5);
    arena.refuses(["decode", "s/0", "s/1", "s/2", "-o", "out"], 5);
    arena.refuses(["decode", "c.fec", "-o", "out"], 5);
    arena.refuses_pipe(["decode", "-"], &boxed.bytes(), 5);
}

#[test]
fn extra_shard_that_the_root_does_not_cover() {
    let bytes = payload(7, 374);
    let (root, files) = shard_files(&SMALL, &small_rows(7), &forge::meta(b"name"));
    let arena = Arena::new();
    let root = hex(&root);
    // Number n of n.
    let mut beyond = files[5].clone();
    resign_shard(&mut beyond, |header| header[16] = 6);
    // A number that exists, with other bytes in the body.
    let mut inside = files[5].clone();
    inside[4096..4224].fill(1);
    for (extra, exit) in [(beyond, 5), (inside, 3)] {
        arena.write_all("s", &[files[0].clone(), files[1].clone(), extra.clone()]);
        arena.refuses(["decode", "s", "-o", "out"], exit);
        arena.refuses(["decode", "s", "-o", "out", "--root", &root], exit);
        arena.write("s/3", &files[4]);
        arena.expect(["decode", "s", "-o", "out", "-f", "--root", &root], 0);
        assert!(arena.read("out") == bytes);
        fs::remove_file(arena.path("out")).unwrap();
        fs::remove_dir_all(arena.path("s")).unwrap();
    }
    // In a container, records of shard n.
    let boxed = as_container(&SMALL, &small_rows(7));
    let mut records = boxed.records.clone();
    records[10..].iter_mut().for_each(|r| resign_record(r, |head| head[20] = 6));
    let stream = [records[..4].concat(), records[10..].concat(), boxed.index.clone()].concat();
    arena.write("c.fec", &stream);
    arena.refuses(["decode", "c.fec", "-o", "out"], 5);
    arena.refuses_pipe(["decode", "-"], &stream, 5);
    let stream = [records[10..].concat(), records[..6].concat(), boxed.index.clone()].concat();
    arena.write("c.fec", &stream);
    arena.expect(["decode", "c.fec", "-o", "out"], 0);
    assert!(arena.read("out") == bytes);
}

/// `spoil` makes a file useless; three of six may be, a fourth may not.
#[track_caller]
fn three_may_be_spoiled(seed: u64, spoil: impl Fn(&mut Vec<Vec<u8>>, usize)) {
    let bytes = payload(seed, 374);
    let (_, files) = shard_files(&SMALL, &small_rows(seed), &forge::meta(b"name"));
    for (count, exit) in [(3, 0), (4, 3)] {
        let arena = Arena::new();
        let mut files = files.clone();
        spoil(&mut files, count);
        arena.write_all("s", &files);
        if exit == 0 {
            arena.expect(["decode", "s", "-o", "out"], 0);
            assert!(arena.read("out") == bytes);
        } else {
            arena.refuses(["decode", "s", "-o", "out"], exit);
        }
    }
}

#[test]
fn shards_swapped_between_sets() {
    three_may_be_spoiled(8, |files, count| {
        for file in &mut files[..count] {
            let (first, second) = file[4096..4224].split_at_mut(64);
            first.swap_with_slice(second);
        }
    });
}

#[test]
fn shards_and_proofs_swapped_between_sets() {
    three_may_be_spoiled(8, |files, count| {
        for file in &mut files[..count] {
            // 32 · (3 + 1) bytes of proof for each set.
            for (at, len) in [(4096, 64), (512, 128), (4224, 128)] {
                let (first, second) = file[at..at + 2 * len].split_at_mut(len);
                first.swap_with_slice(second);
            }
        }
    });
}

#[test]
fn shards_swapped_between_files() {
    three_may_be_spoiled(9, |files, count| {
        let numbers: Vec<u8> = (0..count as u8).map(|i| (i + 1) % count as u8).collect();
        for (file, number) in files.iter_mut().zip(numbers) {
            resign_shard(file, |header| header[16] = number);
        }
    });
}

#[test]
fn shards_swapped_between_runs() {
    three_may_be_spoiled(10, |files, count| {
        let (_, others) = shard_files(&SMALL, &small_rows(11), &forge::meta(b"name"));
        for (file, other) in files.iter_mut().zip(&others).take(count) {
            file[512..4480].copy_from_slice(&other[512..4480]);
        }
    });
}

#[test]
fn records_swapped_between_sets_shards_and_runs() {
    let bytes = payload(12, 374);
    let boxed = as_container(&SMALL, &small_rows(12));
    let other = as_container(&SMALL, &small_rows(13));
    type Spoil<'a> = (&'a str, Box<dyn Fn(&mut Vec<Vec<u8>>, usize) + 'a>);
    let spoils: [Spoil; 3] = [
        ("sets", Box::new(|r, i| resign_record(&mut r[i], |head| head[16] ^= 1))),
        ("shards", Box::new(|r, i| resign_record(&mut r[i], |head| head[20] = (head[20] + 1) % 6))),
        (
            "runs",
            Box::new(|r, i| {
                let body = r[i].len() - 64;
                let from = &other.records[i][body..];
                r[i][body..].copy_from_slice(from);
            }),
        ),
    ];
    for (what, spoil) in spoils {
        for (count, exit) in [(6, 0), (7, 3)] {
            let arena = Arena::new();
            let mut records = boxed.records.clone();
            (0..count).for_each(|i| spoil(&mut records, i));
            let stream = [records.concat(), boxed.index.clone()].concat();
            arena.write("c.fec", &stream);
            if exit == 0 {
                arena.expect(["decode", "c.fec", "-o", "out"], 0);
                assert!(arena.read("out") == bytes, "{what}");
                let piped = arena.pipe(["decode", "-"], &stream);
                expect(&piped, 0);
                assert!(piped.stdout == bytes, "{what}");
            } else {
                arena.refuses(["decode", "c.fec", "-o", "out"], exit);
                arena.refuses_pipe(["decode", "-"], &stream, exit);
            }
        }
    }
}

#[test]
fn conflicting_copies_of_a_shard() {
    let bytes = payload(14, 374);
    let (_, files) = shard_files(&SMALL, &small_rows(14), &forge::meta(b"name"));
    for bad_first in [true, false] {
        let arena = Arena::new();
        for (i, file) in files.iter().enumerate().take(3) {
            let mut bad = file.clone();
            bad[4096..4224].fill(9);
            let (a, b) = if bad_first { (&bad, file) } else { (file, &bad) };
            arena.write(format!("s/{i}a"), a);
            arena.write(format!("s/{i}b"), b);
        }
        arena.expect(["decode", "s", "-o", "out"], 0);
        assert!(arena.read("out") == bytes);
        for order in [
            ["s/0a", "s/0b", "s/1a", "s/1b", "s/2a", "s/2b"],
            ["s/2b", "s/2a", "s/1b", "s/1a", "s/0b", "s/0a"],
        ] {
            arena.expect(["decode", "-o", "out", "-f"].into_iter().chain(order), 0);
            assert!(arena.read("out") == bytes);
            expect(&arena.run(["verify"].into_iter().chain(order)), 1);
        }
    }
    // The same among the records of a container.
    let boxed = as_container(&SMALL, &small_rows(14));
    for bad_first in [true, false] {
        let arena = Arena::new();
        let pair = |record: &Vec<u8>| {
            let mut bad = record.clone();
            *bad.last_mut().unwrap() ^= 1;
            if bad_first { [bad, record.clone()].concat() } else { [record.clone(), bad].concat() }
        };
        let stream: Vec<u8> = boxed.records[..6].iter().flat_map(pair).chain(boxed.index.clone()).collect();
        arena.write("c.fec", &stream);
        arena.expect(["decode", "c.fec", "-o", "out"], 0);
        assert!(arena.read("out") == bytes);
        let piped = arena.pipe(["decode", "-"], &stream);
        expect(&piped, 0);
        assert!(piped.stdout == bytes);
        expect(&arena.run(["verify", "c.fec"]), 1);
    }
}
