//! The claims that an encoding makes of itself: versions, flags, meta, recorded names and digests, annexes.

use super::limits::restores_everywhere;
use super::*;

/// Containers with the meta intact, with one copy left, with none, and with the first group lost.
#[test]
fn meta_of_containers() {
    let arena = Arena::new();
    let bytes = payload(55, TWO_P.payload as usize);
    let meta = forge::meta(b"name");
    let boxed = container(&TWO_P, &two_groups(&bytes), &meta);
    let root = hex(&boxed.root);
    let records = boxed.records.concat();
    let without_group_0 = boxed.records[12..].concat();
    let name = |output: &Output| json(output)["recorded_name"].clone();
    let whole = boxed.bytes();
    let front = boxed.front.clone();
    let no_front = [records.clone(), boxed.index.clone()].concat();
    let no_index = [front.clone(), records.clone()].concat();
    let mut false_meta = forge::meta_frame(&TWO_P, &forge::meta(b"else"));
    false_meta.extend(&records);
    let mut rotten = no_index.clone();
    rotten[130] ^= 1;
    for (what, stream, named) in [
        ("intact", &whole, true),
        ("frame lost", &no_front, true),
        ("index lost", &no_index, true),
        ("frame behind", &[records.clone(), front.clone()].concat(), true),
        ("both lost", &records, false),
        ("rotten frame", &rotten, false),
        ("another frame", &false_meta, false),
    ] {
        arena.write("x", stream);
        for proofs in [&[][..], &["--root", &root]] {
            for deep in [&[][..], &["--deep"]] {
                let args = [&["decode", "x", "-o", "out", "--json"][..], proofs, deep].concat();
                let output = arena.expect(&args, 0);
                assert!(arena.read("out") == bytes, "{what}");
                fs::remove_file(arena.path("out")).unwrap();
                let expected = if named { "name".into() } else { Value::Null };
                assert_eq!(name(&output), expected, "{what}, {args:?}");
                assert_eq!(json(&output)["meta_lost"], !named, "{what}, {args:?}");
                assert_eq!(json(&output)["root"], root.as_str());
                let args = [&["decode", "-", "-o", "out", "--json"][..], proofs, deep].concat();
                let piped = arena.pipe(&args, stream);
                expect(&piped, 0);
                assert!(arena.read("out") == bytes, "{what}");
                fs::remove_file(arena.path("out")).unwrap();
                assert_eq!(name(&piped), expected, "{what}, {args:?}");
            }
        }
        let is_whole = what == "intact";
        expect(&arena.run(["verify", "x", "--root", &root]), i32::from(!is_whole));
        expect(&arena.pipe(["verify", "-", "--root", &root], stream), i32::from(!is_whole));
    }
    // The first group is lost: the rest is proved but not whole.
    for stream in [[without_group_0.clone(), boxed.index.clone()].concat(), without_group_0] {
        arena.write("x", &stream);
        arena.refuses(["decode", "x", "-o", "out"], 3);
        arena.refuses(["decode", "x", "-o", "out", "--root", &root], 3);
        arena.refuses_pipe(["decode", "-", "--root", &root], &stream, 3);
    }
}

/// Recorded digests of the payload are compared when asked for.
#[test]
fn recorded_digests() {
    let arena = Arena::new();
    let options = ["-k", "3", "-m", "2", "--payload-digest"];
    let (root, boxed) = encoded(&arena, 56, 50_000, &options);
    arena.write("x", &boxed);
    let report = json(&arena.expect(["decode", "x", "-o", "out", "--json", "--deep"], 0));
    let bytes = payload(56, 50_000);
    let sum: String = sha2::Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(report["recorded_sha256"], sum.as_str());
    assert_eq!(report["recorded_blake3"].as_str().map(str::len), Some(64));
    assert!(arena.read("out") == bytes);
    // The frame is gone, but the index has the meta too.
    let frame = 128 + (3 + 32 + 3 + 32usize).next_multiple_of(64);
    assert!(boxed[frame..].starts_with(b"\x89fecR\r\n\x1a"));
    arena.write("x", &boxed[frame..]);
    let report = json(&arena.expect(["decode", "x", "-o", "out", "-f", "--json", "--root", &root], 0));
    assert_eq!(report["recorded_sha256"], sum.as_str());
}

/// A recorded digest does not match the payload: only a strict reader compares (docs/FORMAT.md, sections 7 and 10).
#[test]
fn recorded_digests_that_are_not_the_payload_s() {
    let arena = Arena::new();
    for kind in [3u8, 5] {
        let meta = [&[kind, 32, 0][..], &[7; 32]].concat();
        let rows = small_rows(57);
        let (_, files) = shard_files(&SMALL, &rows, &meta);
        let boxed = container(&SMALL_P, &[(only_group(&SMALL_P), rows)], &meta);
        arena.write_all("s", &files);
        arena.write("x", &boxed.bytes());
        for input in ["s", "x"] {
            arena.expect(["decode", input, "-o", "out", "-f"], 0);
            assert!(arena.read("out") == payload(57, LEN));
            fs::remove_file(arena.path("out")).unwrap();
            arena.refuses(["decode", input, "-o", "out", "--deep"], 5);
            expect(&arena.run(["verify", input]), 0);
        }
        arena.refuses_pipe(["decode", "-", "--deep"], &boxed.bytes(), 5);
    }
}

/// Annexes may be added and removed. Any other addition is noticed.
#[test]
fn annexes_and_other_appendices() {
    let arena = Arena::new();
    let (root, boxed) = encoded(&arena, 58, 50_000, &["-k", "3", "-m", "2"]);
    let (shards_root, files) = shard_files(&SMALL, &small_rows(59), &forge::meta(b"name"));
    let shards_root = hex(&shards_root);
    let annex = fec_core::format::annex::write;
    let signature = annex(1, b"signed");
    let many = [annex(1, b""), annex(2, &payload(60, 1000)), annex(7, &[0; 1 << 20]), annex(u32::MAX, b"x")];
    // An annex may contain a whole record, a shard file or another annex.
    let nested = annex(9, &[&files[0][..], &boxed[..2000], &signature].concat());
    let mut cut = signature.clone();
    cut.pop();
    let mut rotten = signature.clone();
    rotten[35] ^= 1;
    let cases = [
        ("signature", signature.clone(), 0),
        ("many", many.concat(), 0),
        ("200 bytes", payload(61, 200), 1),
        ("200 zeros", vec![0; 200], 1),
        ("one byte", vec![7], 1),
        ("cut annex", cut, 1),
        ("rotten annex", rotten.clone(), 1),
        ("annex behind junk", [payload(61, 200), signature.clone()].concat(), 1),
        ("junk behind annex", [signature, payload(61, 200)].concat(), 1),
    ];
    for (what, behind, exit) in &cases {
        println!("{what}");
        let stream = [&boxed[..], behind].concat();
        arena.write("x", &stream);
        expect(&arena.run(["verify", "x"]), *exit);
        expect(&arena.run(["verify", "x", "--deep", "--root", &root]), *exit);
        expect(&arena.pipe(["verify", "-"], &stream), *exit);
        restores_everywhere(&arena, &stream, &root, &payload(58, 50_000));
        // The bytes stand behind one shard file, or behind all.
        let all: Vec<Vec<u8>> = files.iter().map(|file| [&file[..], behind].concat()).collect();
        let one = [&files[..2], &all[2..3], &files[3..]].concat();
        for files in [&one, &all] {
            arena.write_all("s", files);
            expect(&arena.run(["verify", "s"]), *exit);
            for proofs in [&[][..], &["--root", &shards_root]] {
                arena.expect([&["decode", "s", "-o", "out", "-f", "--deep"], proofs].concat(), 0);
                assert!(arena.read("out") == payload(59, LEN), "{what}");
                fs::remove_file(arena.path("out")).unwrap();
            }
        }
        let alone = if *exit == 0 { 0 } else { 5 };
        expect(&arena.run(["verify", "s/2", "--root", &shards_root]), alone);
    }
    arena.write_all("s", &files.iter().map(|file| [&file[..], &nested].concat()).collect::<Vec<_>>());
    expect(&arena.run(["verify", "s"]), 0);
    arena.expect(["decode", "s", "-o", "out"], 0);
    assert!(arena.read("out") == payload(59, LEN));
}

/// If every header claims version 2, the input is refused. A single such header among headers of version 1 is damage.
#[test]
fn versions() {
    let arena = Arena::new();
    let of_version = |version: u8| {
        let pg = Block { version, ..SMALL };
        let boxed = as_container(&pg, &small_rows(62));
        (shard_files(&pg, &small_rows(62), &forge::meta(b"name")).1, boxed)
    };
    for version in [0, 2, 255] {
        let (files, boxed) = of_version(version);
        arena.write_all("s", &files);
        arena.write("x", &boxed.bytes());
        for input in ["s", "s/0", "x"] {
            arena.refuses(["decode", input, "-o", "out"], 6);
            arena.refuses(["verify", input], 6);
        }
        arena.refuses_pipe(["decode", "-"], &boxed.bytes(), 6);
        arena.refuses_pipe(["decode", "-", "-o", "out", "--root", &hex(&boxed.root)], &boxed.bytes(), 6);
        arena.refuses_pipe(["verify", "-"], &boxed.bytes(), 6);
    }
    // A byte of one header rots.
    let (files, boxed) = of_version(1);
    let mut rotten = files.clone();
    rotten[0][32] ^= 2;
    arena.write_all("s", &rotten);
    arena.expect(["decode", "s", "-o", "out", "--deep"], 0);
    arena.expect(["verify", "s"], 1);
    arena.expect(["decode", "s/0", "s/1", "s/2", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == payload(62, LEN));
    fs::remove_file(arena.path("out")).unwrap();
    // Both headers of the shard rot: it is lost, and not of a future version.
    let last = files[0].len() - HEADER;
    rotten[0][last + 32] ^= 2;
    arena.write_all("s", &rotten);
    arena.refuses(["decode", "s/0", "s/1", "s/2", "-o", "out"], 3);
    arena.expect(["decode", "s", "-o", "out"], 0);
    fs::remove_file(arena.path("out")).unwrap();
    // Records: three of six shards of each set may be damaged. A fourth one loses the set.
    let record = boxed.records[0].len();
    for (records, exit) in [(6, 0), (7, 3), (8, 3)] {
        let mut stream = boxed.records.concat();
        (0..records).for_each(|i| stream[i * record + 32] ^= 2);
        for index in [&boxed.index[..], b""] {
            let stream = [&stream[..], index].concat();
            arena.write("x", &stream);
            for root in [&[][..], &["--root", &hex(&boxed.root)]] {
                let file = arena.run([&["decode", "x", "-o", "out", "-f"], root].concat());
                expect(&file, exit);
                expect(&arena.pipe([&["decode", "-", "-o", "out", "-f"], root].concat(), &stream), exit);
            }
        }
    }
}

/// Recorded names that are not plain are refused without -o, whatever the name, and -f does not help.
#[test]
fn recorded_names_that_are_not_plain() {
    let names: [&[u8]; 7] = [b"-rf", b"--help", b"a\\b", b"..\\..\\x", b"a\nb", b"\x7f", b"\x1b[2J"];
    for name in names {
        let arena = Arena::new();
        let (root, files) = shard_files(&SMALL, &small_rows(63), &forge::meta(name));
        arena.write_all("s", &files);
        fs::create_dir(arena.path("to")).unwrap();
        for args in [
            &["decode", "s"][..],
            &["decode", "s", "-f"],
            &["decode", "s", "-o", "to"],
            &["decode", "s", "-o", "to/"],
            &["decode", "s", "--root", &hex(&root)],
        ] {
            assert!(arena.refuses(args, 2).contains("-o"), "{args:?}");
        }
        arena.expect(["decode", "s", "-o", "to/out"], 0);
        assert!(arena.read("to/out") == payload(63, LEN));
    }
}

/// Ignorable flags are ignored, and the others are refused. The root binds both.
#[test]
fn flags() {
    let arena = Arena::new();
    for (flags, exit) in [(0x10, 0), (0x20, 0), (0x80, 0), (0xf0, 0), (0x02, 6), (0x04, 6), (0x08, 6)] {
        let pg = Block { flags: 1 | flags, ..SMALL };
        let (root, files) = shard_files(&pg, &small_rows(68), &forge::meta(b"name"));
        let boxed = as_container(&pg, &small_rows(68));
        arena.write_all("s", &files);
        arena.write("x", &boxed.bytes());
        let plain = as_container(&SMALL, &small_rows(68));
        assert_ne!(boxed.root, plain.root);
        for (input, root) in [("s", root), ("x", boxed.root)] {
            let args = ["decode", input, "-o", "out", "--root", &hex(&root)];
            if exit == 0 {
                let report = json(&arena.expect(args.into_iter().chain(["--json"]), 0));
                assert_eq!(report["sealed"], flags & 0x10 != 0);
                assert!(arena.read("out") == payload(68, LEN));
                fs::remove_file(arena.path("out")).unwrap();
                expect(&arena.run(["verify", input, "--deep"]), 0);
            } else {
                arena.refuses(args, 6);
                arena.refuses(["verify", input], 6);
            }
        }
        let piped = arena.pipe(["decode", "-"], &boxed.bytes());
        expect(&piped, exit);
    }
}
