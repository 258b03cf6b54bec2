//! Inputs that ask for more work, memory or trust than they are worth, and bytes that may stand beside an encoding.

use super::*;

/// The most processor time and memory for a worthless input.
const TIME: Duration = Duration::from_secs(5);
const MEMORY: u64 = 160 << 20;

/// Runs `fec` within [`TIME`] and [`MEMORY`], and expects an exit code.
#[track_caller]
fn modestly(arena: &Arena, args: &[&str], input: &[u8], exit: i32) -> Output {
    let (output, usage) = measured(arena, args, input);
    expect(&output, exit);
    assert!(usage.time < TIME && usage.memory < MEMORY, "{args:?}: {usage:?}");
    output
}

/// [`modestly`] for decode, decode --partial and verify of a worthless file.
#[track_caller]
fn refused_modestly(arena: &Arena, input: &str, exit: i32) {
    let before = common::listing(&arena.work);
    for args in [
        &["decode", input, "-o", "out"][..],
        &["decode", input, "-o", "out", "--partial"],
        &["decode", input, "-o", "out", "--root", &"07".repeat(32)],
        &["verify", input],
        &["verify", input, "--deep"],
    ] {
        let exit = if args.contains(&"--root") && exit == 3 { common::code(&arena.run(args)) } else { exit };
        assert!([2, 3, 5, 6].contains(&exit), "{args:?}: {exit}");
        modestly(arena, args, b"", exit);
        assert_eq!(common::listing(&arena.work), before, "{args:?}");
    }
}

/// Decodes `bytes` as a file and through a pipe, with the root and without.
#[track_caller]
fn restores_everywhere(arena: &Arena, bytes: &[u8], root: &str, payload: &[u8]) {
    arena.write("x", bytes);
    for proofs in [&[][..], &["--root", root], &["--deep"]] {
        let args = [&["decode", "x", "-o", "out"][..], proofs].concat();
        modestly(arena, &args, b"", 0);
        assert!(arena.read("out") == payload, "{args:?}");
        fs::remove_file(arena.path("out")).unwrap();
        for output in [&[][..], &["-o", "out"]] {
            let args = [&["decode", "-"][..], proofs, output].concat();
            let piped = modestly(arena, &args, bytes, 0);
            let restored = if output.is_empty() { piped.stdout } else { arena.read("out") };
            assert!(restored == payload, "{args:?}");
            fs::remove_file(arena.path("out")).ok();
        }
    }
}

/// Record headers with valid checksums each claim a body of 1 MiB, in front of an intact container.
#[test]
fn prefix_of_false_record_headers() {
    let arena = Arena::new();
    let pg = Block { form: 2, k: 1, m: 0, shard_len: 1 << 20, sets: 1, payload: 1 << 20, ..SMALL };
    let header = forge::record(&pg, &[7; 32], &[0; 32], 0, 0, b"", b"");
    // The first container is a few blocks long. The second is longer than the reach of the false headers.
    for len in [60_000, 3_000_000] {
        let (root, boxed) = encoded(&arena, 50, len, &["-k", "4", "-m", "2", "--set-size", "64K"]);
        for count in [10, 400] {
            let bytes = [header.repeat(count), boxed.clone()].concat();
            restores_everywhere(&arena, &bytes, &root, &payload(50, len));
            let said = text(&modestly(&arena, &["verify", "x"], b"", 1).stdout);
            assert!(said.contains(&root), "{said}");
            modestly(&arena, &["verify", "x", "--deep", "--root", &root], b"", 1);
            modestly(&arena, &["verify", "-", "--root", &root], &bytes, 1);
        }
    }
}

/// Different false headers, of records, meta frames and indexes, stand in front of an intact container.
#[test]
fn prefix_of_mixed_false_headers() {
    let arena = Arena::new();
    let (root, boxed) = encoded(&arena, 51, 200_000, &["-k", "4", "-m", "2", "--set-size", "64K"]);
    let mut bytes = Vec::new();
    for i in 0..300u32 {
        let shard_len = 64 * (1 + i * 30);
        let pg = Block { form: 2, k: 1, m: 0, shard_len, sets: 1, payload: shard_len.into(), ..SMALL };
        bytes.extend(forge::record(&pg, &[i as u8; 32], &[0; 32], 0, 0, b"", b""));
        let groups = 1 + u64::from(i);
        let p = Block { tail: groups, payload: groups * 24_576, shard_len: 4096, ..SMALL_P };
        let body = (32 * groups).next_multiple_of(64);
        if groups > 1 {
            bytes.extend(forge::index_header(&p, &[i as u8; 32], b"", body));
        }
        bytes.extend(forge::meta_frame(&SMALL_P, &forge::meta(format!("false{i}").as_bytes())));
    }
    restores_everywhere(&arena, &[bytes, boxed].concat(), &root, &payload(51, 200_000));
}

/// A proved record of a group, and an index with 2^20 groups that does not list this group.
#[test]
fn one_record_and_an_index_of_a_million_groups() {
    let arena = Arena::new();
    let groups: u64 = 1 << 20;
    let p = Block { k: 1, m: 0, sets: 1, shard_len: 4096, payload: groups << 12, tail: groups, ..SMALL_P };
    let hash = fec_core::digest::HashKind::Blake3;
    let trees: Vec<u8> = (0..groups).flat_map(|i| hash.digest(&i.to_le_bytes())).collect();
    // The root that these trees lead to, group by group.
    let mut root = hash.digest(b"");
    for (number, tree) in (0..groups).zip(trees.as_chunks::<32>().0) {
        let is_last = number == groups - 1;
        let pg = Block { flags: u8::from(is_last), tail: number, payload: 4096, ..p };
        let link = hash.node(fec_core::digest::Tag::Link, &pg.bytes(), &root);
        root = hash.node(fec_core::digest::Tag::Group, tree, &link);
    }
    let header = forge::index_header(&p, &root, b"", trees.len() as u64);
    let pg = Block { form: 2, k: 1, m: 0, sets: 1, shard_len: 64, payload: 10, ..SMALL };
    let bytes = payload(52, 10);
    let one = as_container(&pg, &honest_rows(&bytes, 1, 0, 64, 1));
    let stream = [&one.records.concat()[..], &header, &trees, &header].concat();
    arena.write("x", &stream);
    // The index belongs to another payload, of which nothing is left. Only the record can be restored.
    modestly(&arena, &["decode", "x", "-o", "out"], b"", 0);
    assert!(arena.read("out") == bytes);
    let piped = modestly(&arena, &["decode", "-"], &stream, 0);
    assert!(piped.stdout == bytes);
    fs::remove_file(arena.path("out")).unwrap();
    // The index alone claims 4 GiB of payload, which are lost.
    for root in [&["--root", &hex(&root)][..], &[]] {
        arena.write("x", &[&header[..], &trees, &header].concat());
        for decode in [&["decode", "x", "-o", "out"][..], &["decode", "x", "-o", "out", "--json"]] {
            let output = modestly(&arena, &[decode, root].concat(), b"", 3);
            assert!(output.stdout.len() + output.stderr.len() < 10_000, "the report stays short");
        }
        modestly(&arena, &[&["verify", "x"], root].concat(), b"", 3);
    }
    // The runs above have written nothing.
    assert_eq!(common::listing(&arena.work), ["x"]);
}

/// A record of group 0, and an index that claims 60 groups of 128 + 0 shards.
#[test]
fn one_record_and_an_index_of_sixty_wide_groups() {
    let arena = Arena::new();
    let c = 128 * 4096;
    let p = Block { k: 128, m: 0, sets: 1, shard_len: 4096, payload: 60 * c - 100, tail: 60, ..SMALL_P };
    let first = Block { flags: 0, payload: c, tail: 0, ..p };
    let bytes = payload(53, c as usize);
    let rows = honest_rows(&bytes, 128, 0, 4096, 1);
    let groups: Vec<(Block, Rows)> = (0..60)
        .map(|number| match number {
            59 => (Block { flags: 1, tail: 59, payload: c - 100, ..p }, {
                honest_rows(&bytes[..c as usize - 100], 128, 0, 4096, 1)
            }),
            _ => (Block { tail: number, ..first }, rows.clone()),
        })
        .collect();
    let boxed = container(&p, &groups, b"");
    let stream = [boxed.records[5].clone(), boxed.index.clone()].concat();
    arena.write("x", &stream);
    refused_modestly_partly(&arena, "x");
    modestly(&arena, &["decode", "-"], &stream, 3);
    // Nobody ever wrote this record: its root does not match its body.
    let pg = Block { form: 2, ..first };
    let forged = forge::record(&pg, &[7; 32], &[0; 32], 0, 0, &vec![0; pg.proof_len()], &bytes[..4096]);
    let header = forge::index_header(&p, &[7; 32], b"", 60 * 32);
    let stream = [&forged[..], &header, &vec![9; 60 * 32], &header].concat();
    arena.write("x", &stream);
    refused_modestly(&arena, "x", 3);
    modestly(&arena, &["decode", "-"], &stream, 3);
}

/// A file that holds very little of a large payload: nothing comes out unless asked for.
#[track_caller]
fn refused_modestly_partly(arena: &Arena, input: &str) {
    modestly(arena, &["decode", input, "-o", "out"], b"", 3);
    modestly(arena, &["verify", input], b"", 3);
    assert!(!arena.path("out").exists());
    modestly(arena, &["decode", input, "-o", "out", "--partial"], b"", 3);
    fs::remove_file(arena.path("out")).unwrap();
}

/// Writes a sparse shard file that claims 2^18 sets and holds only its two headers.
fn sparse_shard(arena: &Arena, name: &str, index: u32, m: u16) -> String {
    let (k, sets): (u16, u32) = (256 - m, 1 << 18);
    let payload = u64::from(k) * u64::from(sets) * 4096;
    let pg = Block { k, m, shard_len: 4096, sets, payload, ..SMALL };
    let hash = fec_core::digest::HashKind::Blake3;
    let meta = hash.digest(b"");
    let tree = [7; 32];
    let link = hash.node(fec_core::digest::Tag::Link, &pg.bytes(), &meta);
    let root = hash.node(fec_core::digest::Tag::Group, &tree, &link);
    let body = u64::from(sets) * 4096;
    let mut header = vec![0u8; HEADER];
    header[..8].copy_from_slice(b"\x89fecS\r\n\x1a");
    header[16..20].copy_from_slice(&index.to_le_bytes());
    header[24..32].copy_from_slice(&body.to_le_bytes());
    header[32..64].copy_from_slice(&pg.bytes());
    header[64..96].copy_from_slice(&root);
    header[96..128].copy_from_slice(&tree);
    header[128..160].copy_from_slice(&meta);
    let sum = crc32c::crc32c(&header[12..]);
    header[8..12].copy_from_slice(&sum.to_le_bytes());
    let proofs = pg.proof_len() as u64 * u64::from(sets);
    let start = (HEADER as u64 + proofs).next_multiple_of(4096);
    let len = start + body + proofs + HEADER as u64;
    fs::create_dir_all(arena.path(name).parent().unwrap()).unwrap();
    let mut file = File::create(arena.path(name)).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(len).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &header, len - HEADER as u64).unwrap();
    hex(&root)
}

/// A file of 1 GiB, or 16 such files, all holes: large claims without content.
#[test]
fn sparse_shard_files_of_a_quarter_of_a_million_sets() {
    for count in [1u32, 16] {
        for m in [255, 128] {
            let arena = Arena::new();
            let roots: Vec<String> =
                (0..count).map(|i| sparse_shard(&arena, &format!("s/{i}"), i, m)).collect();
            let root = roots[0].clone();
            for args in [
                &["decode", "s", "-o", "out"][..],
                &["decode", "s", "-o", "out", "--root", &root],
                &["verify", "s"],
                &["verify", "s", "--root", &root],
            ] {
                let exit = 3;
                modestly(&arena, args, b"", exit);
                assert_eq!(common::listing(&arena.work), ["s"]);
            }
        }
    }
}

#[test]
fn repeated_magics() {
    let arena = Arena::new();
    for kind in *b"RXMSA" {
        let magic = [&b"\x89fec"[..], &[kind], b"\r\n\x1a"].concat();
        let bytes = magic.repeat((64 << 20) / 8);
        arena.write("x", &bytes);
        // The bytes at the place of the version are no known version.
        let exit = if kind == b'A' { 3 } else { 6 };
        modestly(&arena, &["decode", "x", "-o", "out"], b"", exit);
        modestly(&arena, &["verify", "x"], b"", exit);
        // Shard files are not searched for in a pipe.
        modestly(&arena, &["decode", "-"], &bytes, if kind == b'S' { 3 } else { exit });
    }
    // In front of a container, these bytes cost only time.
    let (root, boxed) = encoded(&arena, 54, 100_000, &["-k", "4", "-m", "2"]);
    let bytes = [&b"\x89fecR\r\n\x1a".repeat((64 << 20) / 8)[..], &boxed].concat();
    arena.write("x", &bytes);
    for proofs in [&[][..], &["--root", &root]] {
        modestly(&arena, &[&["decode", "x", "-o", "out", "-f"], proofs].concat(), b"", 0);
        assert!(arena.read("out") == payload(54, 100_000));
    }
}

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

/// More last groups than the reader tells apart, all intact: without the root nobody knows which is meant.
#[test]
fn more_payloads_than_are_told_apart() {
    let arena = Arena::new();
    let pg = Block { form: 2, k: 1, m: 0, sets: 1, shard_len: 64, payload: 8, ..SMALL };
    let one = |i: u64| as_container(&pg, &honest_rows(&i.to_le_bytes(), 1, 0, 64, 1));
    let stream: Vec<u8> = (0..65_540).flat_map(|i| one(i).records.concat()).collect();
    arena.write("x", &stream);
    let before = arena.state();
    for (args, input) in [
        (&["decode", "x", "-o", "out"][..], &b""[..]),
        (&["verify", "x"], b""),
        (&["decode", "-", "-o", "out"], &stream),
    ] {
        let output = modestly(&arena, args, input, 2);
        assert!(output.stderr.len() < 200_000, "the report stays short: {} bytes", output.stderr.len());
        arena.unchanged(&before);
    }
    for i in [0, 65_539] {
        modestly(&arena, &["decode", "x", "-o", "out", "-f", "--root", &hex(&one(i).root)], b"", 0);
        assert_eq!(arena.read("out"), i.to_le_bytes());
        let piped = modestly(&arena, &["decode", "-", "--root", &hex(&one(i).root)], &stream, 0);
        assert_eq!(piped.stdout, i.to_le_bytes());
    }
}

/// A record of a nearly endless payload is refused. For a shorter one, --partial writes zeros in front of what is left.
#[test]
fn zeros_without_end() {
    let arena = Arena::new();
    let shape = Block { k: 4, m: 2, shard_len: 4096, sets: 1, payload: 16_384, ..SMALL_P };
    let far = Block { tail: u64::from(u32::MAX) - 1, ..shape };
    let near = Block { tail: 50_000, ..shape };
    for (block, exit, len) in [(far, 6, 0), (near, 3, 50_001 * 16_384)] {
        arena.write("x", &forge::lone_record(&block, &[7; 32]));
        let output = quickly(|| arena.run(["decode", "x", "-o", "-", "--partial"]));
        assert_eq!(common::code(&output), exit, "{}", text(&output.stderr));
        assert_eq!(output.stdout.len(), len);
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

/// A pipe with a given root is read like a file: the same verdict in any order of parts.
#[test]
fn pipes_with_a_root_are_files() {
    let arena = Arena::new();
    let options = ["-k", "4", "-m", "2", "--set-size", "16K", "--group-size", "2"];
    let (root, boxed) = encoded(&arena, 64, 300_000, &options);
    let (other, behind) = encoded(&arena, 65, 20_000, &["-k", "2", "-m", "1"]);
    let index = boxed.windows(8).position(|w| w == b"\x89fecX\r\n\x1a").unwrap();
    let half = index / 2;
    let mut random = Random::new(66);
    let mut damaged = boxed.clone();
    (0..40).for_each(|_| damaged[random.below(boxed.len())] ^= 1);
    for (what, stream) in [
        ("intact", boxed.clone()),
        ("halves swapped", [&boxed[half..index], &boxed[..half], &boxed[index..]].concat()),
        ("index in front", [&boxed[index..], &boxed[..index]].concat()),
        ("no index", boxed[..index].to_vec()),
        ("cut", boxed[..half].to_vec()),
        ("cut in front", boxed[half..].to_vec()),
        ("another in front", [behind.clone(), boxed.clone()].concat()),
        ("another in the middle", [&boxed[..half], &behind, &boxed[half..]].concat()),
        ("another alone", behind.clone()),
        ("damaged", damaged),
        ("nothing", Vec::new()),
        ("junk", payload(67, 100_000)),
    ] {
        arena.write("x", &stream);
        for root in [&root, &other, &"ab".repeat(32)] {
            for extra in [&[][..], &["--partial"], &["--deep"]] {
                let file = [&["decode", "x", "-o", "out", "--root", root][..], extra].concat();
                let pipe = [&["decode", "-", "-o", "out", "--root", root][..], extra].concat();
                let file = arena.run(&file);
                let out = fs::read(arena.path("out")).ok();
                fs::remove_file(arena.path("out")).ok();
                let pipe = arena.pipe(&pipe, &stream);
                let piped = fs::read(arena.path("out")).ok();
                fs::remove_file(arena.path("out")).ok();
                let said = [text(&file.stderr), text(&pipe.stderr)].concat();
                assert_eq!(common::code(&file), common::code(&pipe), "{what}, {extra:?}: {said}");
                assert!(out == piped, "{what}, {extra:?}: {said}");
                let streamed = arena.pipe([&["decode", "-", "--root", root][..], extra].concat(), &stream);
                assert_eq!(common::code(&file), common::code(&streamed), "{what}, {extra:?}");
                assert!(out.unwrap_or_default() == streamed.stdout, "{what}, {extra:?}");
            }
        }
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
