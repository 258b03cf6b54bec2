//! Inputs that ask for more work, memory or trust than they are worth.

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
pub(super) fn restores_everywhere(arena: &Arena, bytes: &[u8], root: &str, payload: &[u8]) {
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
        arena.write("x.fec", &bytes);
        // The bytes at the place of the version are no known version.
        let exit = if kind == b'A' { 3 } else { 6 };
        modestly(&arena, &["decode", "x.fec", "-o", "out"], b"", exit);
        modestly(&arena, &["verify", "x.fec"], b"", exit);
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
