//! Headers with absurd values, and names that try to be more than names.

use super::*;

/// Every field of the geometry gets every absurd value, signed again, in both forms.
#[test]
fn absurd_geometry() {
    type Change = fn(&mut Block);
    let table: [(&str, Change, i32); 26] = [
        ("k = 0", |b| b.k = 0, 6),
        ("k = 0, m = 0", |b| (b.k, b.m) = (0, 0), 6),
        ("n = 257", |b| b.m = 254, 6),
        ("k = 65535", |b| b.k = u16::MAX, 6),
        ("k = m = 65535", |b| (b.k, b.m) = (u16::MAX, u16::MAX), 6),
        ("k + m = 65536 + 6", |b| (b.k, b.m) = (3, u16::MAX), 6),
        ("L = 0", |b| b.shard_len = 0, 5),
        ("L = 63", |b| b.shard_len = 63, 5),
        ("L = 2^26 + 64", |b| b.shard_len = (1 << 26) + 64, 6),
        ("L = 2^32 - 64", |b| b.shard_len = u32::MAX - 63, 6),
        ("L = 2^32 - 1", |b| b.shard_len = u32::MAX, 6),
        ("G = 0", |b| b.sets = 0, 5),
        ("G = 3", |b| b.sets = 3, 5),
        ("G = 3, L that fits", |b| (b.sets, b.shard_len) = (3, 1408), 5),
        ("G = 2^20 + 1", |b| b.sets = (1 << 20) + 1, 5),
        ("G = 2^32 - 1", |b| b.sets = u32::MAX, 5),
        ("B = 2^63", |b| b.payload = 1 << 63, 6),
        ("B = 2^64 - 1", |b| b.payload = u64::MAX, 6),
        ("B = 2^63 - 1", |b| b.payload = (1 << 63) - 1, 5),
        ("all at their most", |b| (b.k, b.m, b.shard_len, b.sets) = (128, 128, u32::MAX, u32::MAX), 6),
        ("L·G overflows 32 bits", |b| (b.shard_len, b.sets, b.payload) = (1 << 26, 1 << 16, 3 << 42), 0),
        ("G = 2^20, L = 2^26", |b| (b.shard_len, b.sets, b.payload) = (1 << 26, 1 << 20, 3 << 46), 0),
        ("flag 1", |b| b.flags |= 2, 6),
        ("flag 3", |b| b.flags |= 8, 6),
        ("hash", |b| b.hash = 3, 6),
        ("version", |b| b.version = 255, 6),
    ];
    let arena = Arena::new();
    for (what, change, exit) in table {
        let mut p = SMALL;
        change(&mut p);
        let (root, mut files) = shard_files(&SMALL, &small_rows(21), &forge::meta(b"name"));
        for file in &mut files {
            resign_shard(file, |header| {
                header[32..64].copy_from_slice(&p.bytes());
                header[24..32].copy_from_slice(&(u64::from(p.sets) * u64::from(p.shard_len)).to_le_bytes());
                let hash = fec_core::digest::HashKind::Blake3;
                let m: Digest = header[128..160].try_into().unwrap();
                let t: Digest = header[96..128].try_into().unwrap();
                let link = hash.node(fec_core::digest::Tag::Link, &p.bytes(), &m);
                header[64..96].copy_from_slice(&hash.node(fec_core::digest::Tag::Group, &t, &link));
            });
        }
        arena.write_all("s", &files);
        // If every rule holds, the file merely counts as missing.
        let shards = if exit == 0 { 3 } else { exit };
        println!("{what}");
        quickly(|| arena.refuses(["decode", "s", "-o", "out"], shards));
        quickly(|| {
            // Valid headers lead to another root than the given one.
            let another = if exit == 0 { 5 } else { shards.max(3) };
            arena.refuses(["decode", "s", "-o", "out", "--partial", "--root", &hex(&root)], another)
        });
        quickly(|| expect(&arena.run(["verify", "s"]), shards));
        let pg = Block { form: 2, ..p };
        let boxed = as_container(&SMALL, &small_rows(21));
        let mut stream = Vec::new();
        for record in &boxed.records {
            let (set, index) = (u32::from(record[16]), u32::from(record[20]));
            let body = &record[record.len() - SHARD..];
            let proof = vec![0; pg.proof_len()];
            stream.extend(forge::record(&pg, &[1; 32], &[0; 32], set, index, &proof, body));
        }
        arena.write("c.fec", &stream);
        // If every rule holds, the records are merely cut short.
        let exit = if exit == 0 { 3 } else { exit };
        quickly(|| arena.refuses(["decode", "c.fec", "-o", "out"], exit));
        quickly(|| arena.refuses_pipe(["decode", "-"], &stream, exit));
        quickly(|| arena.refuses(["verify", "c.fec"], exit));
        // Only the index lies: it is set aside, and the records are enough.
        let p = Block { form: 2, flags: p.flags & !1, tail: 1, ..p };
        let header = forge::index_header(&p, &[1; 32], b"", 64);
        let index = [&header[..], &[0; 64], &header, &[0; 64], &header].concat();
        arena.write("c.fec", &[boxed.records.concat(), index].concat());
        quickly(|| arena.expect(["decode", "c.fec", "-o", "out"], 0));
        assert!(arena.read("out") == payload(21, LEN), "{what}");
        fs::remove_file(arena.path("out")).unwrap();
        for (number, name) in [1u64 << 32, u64::MAX, 0].into_iter().zip(["N = 2^32", "N = 2^64 - 1", "N = 0"])
        {
            let header = forge::index_header(&Block { tail: number, ..SMALL_P }, &[1; 32], b"", u64::MAX);
            arena.write("c.fec", &[boxed.records.concat(), header].concat());
            arena.expect(["decode", "c.fec", "-o", "out"], 0);
            fs::remove_file(arena.path("out")).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

/// Lengths that only a header states cause no allocation and no waiting for bytes.
#[test]
fn body_length_of_2_to_the_64() {
    let arena = Arena::new();
    let (_, files) = shard_files(&SMALL, &small_rows(22), &forge::meta(b"name"));
    for value in [0, 1, 127, 129, 1 << 32, u64::MAX, u64::MAX - 63] {
        let mut files = files.clone();
        files
            .iter_mut()
            .for_each(|f| resign_shard(f, |h| h[24..32].copy_from_slice(&u64::to_le_bytes(value))));
        arena.write_all("s", &files);
        arena.refuses(["decode", "s", "-o", "out"], 3);
        let header = forge::index_header(&SMALL_P, &[1; 32], b"", value);
        arena.write("c.fec", &header.repeat(3));
        arena.refuses(["decode", "c.fec", "-o", "out"], 3);
    }
}

/// A file that is cut at any length ends with an error at once, in both forms.
#[test]
fn truncation_at_every_length() {
    let arena = Arena::new();
    let boxed = as_container(&SMALL, &small_rows(23));
    let (_, files) = shard_files(&SMALL, &small_rows(23), &forge::meta(b"name"));
    let ends = [127, 128, 129, HEADER - 1, HEADER, PROOFS, BODY - 1, BODY, BODY + 1, BODY + SHARD, TAIL - 1];
    for len in (0..600).step_by(37).chain(ends) {
        arena.write("c.fec", &boxed.bytes()[..len.min(boxed.bytes().len() / 3)]);
        arena.refuses(["decode", "c.fec", "-o", "out"], 3);
        let cut: Vec<Vec<u8>> = files.iter().map(|f| f[..len.min(f.len())].to_vec()).collect();
        arena.write_all("s", &cut);
        let output = arena.run(["decode", "s", "-o", "out"]);
        assert_eq!(common::code(&output), 3, "{len}: {}", text(&output.stderr));
        assert!(!arena.path("out").exists());
    }
}

#[test]
fn path_traversal_in_the_recorded_name() {
    let arena = Arena::new();
    let names: [&[u8]; 9] =
        [b"../x", b"/etc/x", b"..", b".", b"", b"a/b", b"a\0b", b"/", b"x/../../../../../../tmp/x"];
    for name in names {
        let (root, files) = shard_files(&SMALL, &small_rows(24), &forge::meta(name));
        arena.write_all("deep/s", &files);
        arena.refuses(["decode", "deep/s"], 5);
        arena.refuses(["decode", "deep/s", "-o", "deep/", "--root", &hex(&root)], 5);
        arena.refuses(["verify", "deep/s"], 5);
    }
    assert!(!Path::new("/etc/x").exists());
    // Meta that breaks other rules.
    for meta in [&b"\x02\xff\xff"[..], b"\x02", b"\x03\x01\x00x\x02\x01\x00y", b"\x02\x01\x00a\x02\x01\x00b"]
    {
        let (_, files) = shard_files(&SMALL, &small_rows(24), meta);
        arena.write_all("deep/s", &files);
        arena.refuses(["decode", "deep/s"], 5);
    }
    let (_, files) = shard_files(&SMALL, &small_rows(24), b"\x04\x00\x00");
    arena.write_all("deep/s", &files);
    arena.refuses(["decode", "deep/s"], 6);
}

#[test]
fn terminal_escapes_in_names() {
    let names: [&[u8]; 5] = [
        b"\x1b[2J\x1b]0;owned\x07",
        b"a\r\nfec: all is well",
        "\u{9b}31m".as_bytes(),
        b"\xff\xfe\x1b",
        "abc\u{202e}cod.exe".as_bytes(),
    ];
    for name in names {
        let arena = Arena::new();
        let (_, files) = shard_files(&SMALL, &small_rows(25), &forge::meta(name));
        arena.write_all("s", &files);
        // A name does not decide what is printed. Such a name is used for a file only if the user says so.
        for json in [&[][..], &["--json"]] {
            let decode = [&["decode", "s", "-f", "-o", "out"], json].concat();
            for args in [&decode[..], &["verify", "s"], &["decode", "s/0", "-o", "x"]] {
                let output = arena.run(args);
                let said = [output.stdout.clone(), output.stderr.clone()].concat();
                assert_printable(&said);
            }
            for decode in [&["decode", "s"][..], &["decode", "s", "-f"], &["decode", "s", "-o", "./"]] {
                let before = arena.state();
                let output = arena.run([decode, json].concat());
                expect(&output, 2);
                let said = [output.stdout, output.stderr].concat();
                assert!(text(&said).contains("-o"), "{}", text(&said));
                assert_printable(&said);
                arena.unchanged(&before);
            }
        }
        assert!(arena.read("out") == payload(25, LEN));
        let out = std::ffi::OsStr::from_bytes(name);
        // File names on the command line and in folders are treated the same.
        arena.write(Path::new("s").join(out), b"junk");
        arena.write(Path::new("t").join(out), b"junk");
        for args in [
            vec![std::ffi::OsStr::new("verify"), std::ffi::OsStr::new("s")],
            vec![std::ffi::OsStr::new("verify"), std::ffi::OsStr::new("t")],
            vec![std::ffi::OsStr::new("decode"), out, std::ffi::OsStr::new("-o"), std::ffi::OsStr::new("o")],
            vec![std::ffi::OsStr::new("encode"), out],
            vec![std::ffi::OsStr::new("encode"), out],
        ] {
            let output = arena.run(args);
            assert_printable(&[output.stdout, output.stderr].concat());
        }
    }
}

#[track_caller]
fn assert_printable(said: &[u8]) {
    let said = std::str::from_utf8(said).expect("what is printed is UTF-8");
    let is_bidi =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let bad = said.chars().find(|c| (c.is_control() && *c != '\n') || is_bidi(*c));
    assert_eq!(bad, None, "{said:?}");
    assert!(!said.lines().any(|line| line.starts_with("fec: all is well")), "{said:?}");
}

#[test]
fn links_fifos_and_folders_among_shard_files() {
    let arena = Arena::new();
    let (root, files) = shard_files(&SMALL, &small_rows(26), &forge::meta(b"name"));
    arena.write_all("s", &files[..3]);
    make_fifo(&arena.path("s/fifo"));
    fs::create_dir(arena.path("s/folder")).unwrap();
    std::os::unix::fs::symlink("nowhere", arena.path("s/dangling")).unwrap();
    std::os::unix::fs::symlink("loop", arena.path("s/loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", arena.path("s/zero")).unwrap();
    std::os::unix::fs::symlink("/dev/full", arena.path("s/full")).unwrap();
    std::os::unix::fs::symlink(".", arena.path("s/self")).unwrap();
    std::os::unix::fs::symlink("fifo", arena.path("s/tofifo")).unwrap();
    quickly(|| arena.expect(["decode", "s", "-o", "out"], 0));
    assert!(arena.read("out") == payload(26, LEN));
    quickly(|| arena.expect(["verify", "s", "--root", &hex(&root)], 1));
    let named: Vec<String> = common::listing(&arena.path("s")).iter().map(|n| format!("s/{n}")).collect();
    let named = named.iter().map(String::as_str).filter(|n| !n.ends_with("dangling") && !n.ends_with("loop"));
    quickly(|| arena.expect(["decode", "-o", "out", "-f"].into_iter().chain(named), 0));
    // A link to a shard file counts as that shard file.
    fs::rename(arena.path("s/0"), arena.path("moved")).unwrap();
    std::os::unix::fs::symlink("../moved", arena.path("s/0")).unwrap();
    arena.expect(["decode", "s", "-o", "out", "-f"], 0);
}
