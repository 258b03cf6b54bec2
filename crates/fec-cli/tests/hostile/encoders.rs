//! Encoders that sign untrue content, and shards in the wrong place.

use super::*;

/// All subsets of six shards with at least `least` of them.
fn subsets(least: u32) -> impl Iterator<Item = Vec<usize>> {
    (0..64u32)
        .filter(move |bits| bits.count_ones() >= least)
        .map(|bits| (0..6).filter(|i| bits >> i & 1 == 1).collect())
}

/// Decodes every subset of at least k shards, in both forms and in every way. Subsets that satisfy `can` give
/// `payload`. The others give exit code 5, and with `--deep` all subsets do.
#[track_caller]
fn every_subset_gives(p: &Block, rows: &Rows, payload: &[u8], can: impl Fn(&[usize]) -> bool) {
    let arena = Arena::new();
    let (root, files) = shard_files(p, rows, &forge::meta(b"name"));
    let boxed = as_container(p, rows);
    let (root, boxed_root) = (hex(&root), hex(&boxed.root));
    let sets = rows.len();
    arena.write_all("s", &files);
    for subset in subsets(3) {
        let named: Vec<String> = subset.iter().map(|i| format!("s/{i}")).collect();
        let kept = subset.iter().flat_map(|i| &boxed.records[sets * i..sets * (i + 1)]).cloned();
        let stream = [kept.collect::<Vec<_>>().concat(), boxed.index.clone()].concat();
        arena.write("c.fec", &stream);
        for extra in [&[][..], &["--partial"], &["-j", "1"], &["--deep"], &["--deep", "--partial"]] {
            let shards = [&["decode", "-o", "out"][..], extra].concat();
            let shards = [shards, named.iter().map(String::as_str).collect()].concat();
            let file = [&["decode", "c.fec", "-o", "out"][..], extra].concat();
            let pipe = [&["decode", "-", "-o", "out"][..], extra].concat();
            let piped = [&["decode", "-"][..], extra].concat();
            let ways = [(shards, &root, false), (file, &boxed_root, false)];
            let ways = ways.into_iter().chain([(pipe, &boxed_root, true), (piped, &boxed_root, true)]);
            for (args, root, is_pipe) in ways {
                for args in [args.clone(), [&args[..], &["--root", root]].concat()] {
                    let input: &[u8] = if is_pipe { &stream } else { b"" };
                    // A pipe that is decoded as it comes keeps only the first k shards of each set.
                    let as_it_comes = is_pipe && args.iter().all(|a| !["--root", "--partial"].contains(a));
                    let kept = if as_it_comes { &subset[..3] } else { &subset };
                    if !can(kept) || extra.contains(&"--deep") {
                        arena.refuses_pipe(args, input, 5);
                        continue;
                    }
                    let output = arena.pipe(&args, input);
                    expect(&output, 0);
                    let bytes = if args.contains(&"out") { arena.read("out") } else { output.stdout };
                    assert!(bytes == payload, "{subset:?}, {args:?}");
                    fs::remove_file(arena.path("out")).ok();
                }
            }
        }
    }
    // Verify reports only what it examined: all parts are intact, and only decoding can tell.
    arena.write("c.fec", &boxed.bytes());
    expect(&arena.run(["verify", "--deep", "s"]), 5);
    expect(&arena.run(["verify", "--deep", "c.fec"]), 5);
}

/// The originals match the root, but the recovery shards belong to another payload.
#[test]
fn valid_tree_over_a_false_original() {
    let mut rows = small_rows(1);
    rows[1][1][7] ^= 0x40;
    let mut bytes = payload(1, LEN);
    bytes[3 * SHARD + 7] ^= 0x40;
    every_subset_gives(&SMALL, &rows, &bytes, |subset| subset.starts_with(&[0, 1, 2]));
}

/// A false shard costs as much as a lost one, as long as others serve.
#[test]
fn valid_tree_over_a_false_recovery_shard() {
    let mut rows = small_rows(2);
    rows[0][4][63] ^= 1;
    let can = |subset: &[usize]| subset.iter().filter(|i| **i != 4).count() >= 3;
    every_subset_gives(&Block { hash: 2, ..SMALL }, &rows, &payload(2, LEN), can);
}

#[test]
fn non_zero_padding() {
    let mut rows = honest_rows(&payload(3, 3 * 2 * SHARD), 3, 3, SHARD, 2);
    every_subset_gives(&SMALL, &rows, b"", |_| false);
    rows = honest_rows(&[payload(3, LEN), vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 1]].concat(), 3, 3, SHARD, 2);
    every_subset_gives(&SMALL, &rows, b"", |_| false);
}

#[test]
fn non_canonical_width() {
    for (shard_len, sets) in [(SHARD + 64, 2), (SHARD, 3), (1408, 3), (4224, 2), (64, 66)] {
        let p = Block { shard_len: shard_len as u32, sets: sets as u32, ..SMALL };
        let rows = honest_rows(&payload(4, LEN), 3, 3, shard_len, sets);
        let arena = Arena::new();
        let (root, files) = shard_files(&p, &rows, &forge::meta(b"name"));
        let boxed = as_container(&p, &rows);
        arena.write_all("s", &files);
        arena.write("c.fec", &boxed.bytes());
        for extra in [&[][..], &["--partial"], &["--deep"]] {
            for (input, root) in [("s", root), ("c.fec", boxed.root)] {
                let args = [&["decode", input, "-o", "out"][..], extra].concat();
                arena.refuses(&args, 5);
                arena.refuses([&args[..], &["--root", &hex(&root)]].concat(), 5);
            }
            let args = [&["decode", "-"][..], extra].concat();
            arena.refuses_pipe(&args, &boxed.bytes(), 5);
            arena.refuses_pipe([&args[..], &["--root", &hex(&boxed.root)]].concat(), &boxed.bytes(), 5);
        }
        expect(&arena.run(["verify", "s"]), 5);
        expect(&arena.run(["verify", "c.fec"]), 5);
    }
}

/// Groups go to standard output one by one. The second is false, so the exit code tells so and no byte of it comes out.
#[test]
fn false_codeword_in_a_later_group() {
    let bytes = payload(5, TWO_P.payload as usize);
    let mut groups = two_groups(&bytes);
    groups[1].1[0][5][0] ^= 1;
    let forged = container(&TWO_P, &groups, b"");
    let arena = Arena::new();
    // The last group has lost originals 0 and 1 and recovery shard 3: the false shard is needed.
    let kept = [&forged.records[..12], &forged.records[14..15], &forged.records[16..18]].concat().concat();
    for stream in [[kept.clone(), forged.index.clone()].concat(), kept] {
        arena.write("c.fec", &stream);
        arena.refuses(["decode", "c.fec", "-o", "out"], 5);
        arena.refuses(["decode", "c.fec", "-o", "out", "--partial"], 5);
        arena.refuses_pipe(["decode", "-", "-o", "out"], &stream, 5);
        for output in [arena.run(["decode", "c.fec", "-o", "-"]), arena.pipe(["decode", "-"], &stream)] {
            expect(&output, 5);
            assert!(output.stdout == bytes[..24_576], "the first group, and nothing of the second");
        }
    }
    // All originals are here, and only a strict reader examines the recovery shard.
    arena.write("c.fec", &forged.bytes());
    arena.expect(["decode", "c.fec", "-o", "-"], 0);
    let output = arena.run(["decode", "c.fec", "-o", "-", "--deep"]);
    expect(&output, 5);
    assert!(output.stdout == bytes[..24_576], "the first group, and nothing of the second");
    expect(&arena.pipe(["verify", "--deep", "-"], &forged.bytes()), 5);
    arena.nothing_temporary();
}

/// The last group is larger than the groups before it. A pipe without an index refuses it like a file.
#[test]
fn last_group_that_does_not_fit() {
    let p = Block { payload: 24_576 + 30_000, ..TWO_P };
    let first = Block { tail: 0, payload: 24_576, ..p };
    let last = Block { flags: 1, tail: 1, payload: 30_000, sets: 3, shard_len: 3392, ..p };
    let bytes = payload(6, 54_576);
    let (head, rest) = bytes.split_at(24_576);
    let groups = [(first, honest_rows(head, 3, 3, 4096, 2)), (last, honest_rows(rest, 3, 3, 3392, 3))];
    let records = container(&p, &groups, b"").records.concat();
    let arena = Arena::new();
    arena.write("c.fec", &records);
    arena.refuses(["decode", "c.fec", "-o", "out"], 5);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &records, 5);
}

/// A shard of an encoding with sets larger than --max-memory costs the other encodings nothing.
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

/// A reader must recompute a shard that it was given and did not need: its leaf in the tree is no proof.
#[test]
fn digest_reused_from_the_input() {
    let mut rows = small_rows(6);
    rows.iter_mut().for_each(|set| set[5].fill(0xee));
    let (_, files) = shard_files(&SMALL, &rows, &forge::meta(b"name"));
    let boxed = as_container(&SMALL, &rows);
    let arena = Arena::new();
    arena.write_all("s", &files);
    arena.write("c.fec", &boxed.bytes());
    arena.refuses(["decode", "s", "-o", "out", "--deep"], 5);
    arena.refuses(["decode", "s/0", "s/1", "s/2", "s/5", "-o", "out", "--deep"], 5);
    arena.refuses(["decode", "s/0", "s/1", "s/2", "-o", "out", "--deep"], 5);
    arena.refuses(["decode", "c.fec", "-o", "out", "--deep"], 5);
    arena.refuses_pipe(["decode", "-", "--deep"], &boxed.bytes(), 5);
    // Restoring with the false shard fails even without --deep. Restoring without it gives the root's payload.
    arena.refuses(["decode", "s/0", "s/1", "s/5", "-o", "out"], 5);
    arena.expect(["decode", "s/0", "s/1", "s/5", "s/4", "-o", "out"], 0);
    assert!(arena.read("out") == payload(6, LEN));
    arena.expect(["decode", "c.fec", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == payload(6, LEN));
}

#[test]
fn extra_shard_that_the_root_does_not_cover() {
    let bytes = payload(7, LEN);
    let (root, files) = shard_files(&SMALL, &small_rows(7), &forge::meta(b"name"));
    let arena = Arena::new();
    let root = hex(&root);
    // Shard number n of n.
    let mut beyond = files[5].clone();
    resign_shard(&mut beyond, |header| header[16] = 6);
    // An existing number, with other bytes in the body.
    let mut inside = files[5].clone();
    inside[BODY..TAIL].fill(1);
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
    // Container records of shard n.
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

/// `spoil` makes a file useless. Three of six may be spoiled, a fourth may not.
#[track_caller]
fn three_may_be_spoiled(seed: u64, spoil: impl Fn(&mut Vec<Vec<u8>>, usize)) {
    let bytes = payload(seed, LEN);
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
            let (first, second) = file[BODY..TAIL].split_at_mut(SHARD);
            first.swap_with_slice(second);
        }
    });
}

#[test]
fn shards_and_proofs_swapped_between_sets() {
    three_may_be_spoiled(8, |files, count| {
        for file in &mut files[..count] {
            // Each set has 32 · (2 + 1 + 1) bytes of proof.
            for (at, len) in [(BODY, SHARD), (PROOFS, 128), (TAIL, 128)] {
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
            file[PROOFS..TAIL + 256].copy_from_slice(&other[PROOFS..TAIL + 256]);
        }
    });
}

#[test]
fn records_swapped_between_sets_shards_and_runs() {
    let bytes = payload(12, LEN);
    let boxed = as_container(&SMALL, &small_rows(12));
    let other = as_container(&SMALL, &small_rows(13));
    type Spoil<'a> = (&'a str, Box<dyn Fn(&mut Vec<Vec<u8>>, usize) + 'a>);
    let spoils: [Spoil; 3] = [
        ("sets", Box::new(|r, i| resign_record(&mut r[i], |head| head[16] ^= 1))),
        ("shards", Box::new(|r, i| resign_record(&mut r[i], |head| head[20] = (head[20] + 1) % 6))),
        (
            "runs",
            Box::new(|r, i| {
                let body = r[i].len() - SHARD;
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
    let bytes = payload(14, LEN);
    let (_, files) = shard_files(&SMALL, &small_rows(14), &forge::meta(b"name"));
    for bad_first in [true, false] {
        let arena = Arena::new();
        for (i, file) in files.iter().enumerate().take(3) {
            let mut bad = file.clone();
            bad[BODY..TAIL].fill(9);
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
    // Duplicates among the records of a container behave the same.
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

/// Repair never writes anything that the root does not bind, never follows a link, and never takes a name that plays
/// tricks.
#[test]
fn repair_of_hostile_encodings() {
    let arena = Arena::new();
    // The root binds a recovery shard that does not match its originals: nobody can make it anew.
    let mut rows = small_rows(82);
    rows[1][4] = vec![7; SHARD];
    let (_, files) = shard_files(&SMALL, &rows, &forge::meta(b"name"));
    arena.write_all("s", &files[..5]);
    let before = arena.state();
    arena.refuses(["repair", "s"], 5);
    arena.unchanged(&before);
    let boxed = as_container(&SMALL, &rows);
    arena.write("c.fec", &boxed.records[1..].concat());
    let before = arena.state();
    arena.refuses(["repair", "c.fec", "--root", &hex(&boxed.root)], 5);
    arena.unchanged(&before);
    fs::remove_dir_all(arena.path("s")).unwrap();
    for name in [&b"-rf"[..], b"a\\b", b"\x1b[2J"] {
        let (_, files) = shard_files(&SMALL, &small_rows(83), &forge::meta(name));
        arena.write_all("s", &files[1..]);
        let before = arena.state();
        arena.refuses(["repair", "s"], 2);
        arena.unchanged(&before);
        fs::remove_dir_all(arena.path("s")).unwrap();
    }
    // A damaged shard is reached by a link, and a folder has the name of a missing shard.
    let (_, files) = shard_files(&SMALL, &small_rows(84), &forge::meta(b"name"));
    arena.write_all("s", &files);
    let place = |index: usize| arena.path(format!("s/name.{index:03}.shard"));
    let names: Vec<_> = fs::read_dir(arena.path("s")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names.len(), files.len());
    names.iter().for_each(|path| fs::remove_file(path).unwrap());
    (0..files.len()).for_each(|i| fs::write(place(i), &files[i]).unwrap());
    let mut flipped = files[2].clone();
    flipped[BODY + 5] ^= 1;
    fs::remove_file(place(2)).unwrap();
    arena.write("elsewhere", &flipped);
    std::os::unix::fs::symlink(arena.path("elsewhere"), place(2)).unwrap();
    arena.refuses(["repair", "s"], 2);
    assert!(arena.read("elsewhere") == flipped);
    fs::remove_file(place(2)).unwrap();
    fs::create_dir(place(2)).unwrap();
    arena.refuses(["repair", "s", "-f"], 2);
    fs::remove_dir(place(2)).unwrap();
    arena.expect(["repair", "s"], 0);
    assert!(fs::read(place(2)).unwrap() == files[2]);
    // A file that claims a shard of two encodings is not taken from the other.
    let (_, others) = shard_files(&SMALL, &small_rows(85), &forge::meta(b"name"));
    let two = [&flipped[..flipped.len() - HEADER], &others[2][others[2].len() - HEADER..]].concat();
    fs::write(place(2), &two).unwrap();
    arena.refuses(["repair", "s"], 2);
    assert!(fs::read(place(2)).unwrap() == two);
    arena.expect(["repair", "s", "-o", "new"], 0);
    assert!(arena.read("new/name.002.shard") == files[2]);
    arena.nothing_temporary();
}
