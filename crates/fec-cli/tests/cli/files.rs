//! Inputs, outputs and default names.

use super::*;

#[test]
fn encode_file_makes_a_folder_of_shards() {
    let (arena, bytes) = with_input(10_000);
    let encoded = arena.expect(["encode", "input"], 0);
    assert_eq!(text(&encoded.stdout).len(), 65, "the root and a newline, nothing else");
    let names = listing(&arena.path("input.shards"));
    assert_eq!(names.len(), 100);
    assert_eq!((names[0].as_str(), names[99].as_str()), ("input.000.shard", "input.099.shard"));
    fs::remove_file(arena.path("input")).unwrap();
    arena.expect(["decode", "input.shards"], 0);
    assert!(arena.read("input") == bytes, "the recorded name in the current folder");
    let said = arena.refuses(["encode", "input"], 2);
    assert!(said.contains("not empty") && said.contains("-f"));
}

#[test]
fn encode_output_tells_the_form() {
    let (arena, bytes) = with_input(5000);
    let options = ["-k", "3", "-m", "2"];
    arena.expect(["encode", "input", "-o", "new/"].into_iter().chain(options), 0);
    fs::create_dir(arena.path("there")).unwrap();
    arena.expect(["encode", "input", "-o", "there"].into_iter().chain(options), 0);
    for folder in ["new", "there"] {
        assert_eq!(listing(&arena.path(folder)).len(), 5);
    }
    arena.expect(["encode", "input", "-o", "box"].into_iter().chain(options), 0);
    assert!(arena.read("box").starts_with(b"\x89fecR\r\n\x1a"));
    let streamed = arena.expect(["encode", "input", "-o", "-"].into_iter().chain(options), 0);
    assert!(streamed.stdout == arena.read("box"), "a file and a stream are the same bytes");
    assert_eq!(text(&streamed.stderr).lines().last().unwrap().len(), 64, "the root goes to standard error");
    let piped = arena.pipe(["encode", "-"].into_iter().chain(options), &bytes);
    expect(&piped, 0);
    assert!(piped.stdout == arena.read("box"));
    let piped = arena.pipe(["encode", "-", "-o", "piped.fec"].into_iter().chain(options), &bytes);
    assert_eq!(root(&piped).len(), 64);
    assert!(arena.read("piped.fec") == arena.read("box"));
    let said = arena.refuses_pipe(["encode", "-", "-o", "dir/"], &bytes, 2);
    assert!(said.contains("length") && said.contains("container"));
}

#[test]
fn encode_standard_input_that_is_a_file() {
    let (arena, bytes) = with_input(5000);
    let output = arena.fec(["encode", "-"]).stdin(File::open(arena.path("input")).unwrap()).output().unwrap();
    expect(&output, 0);
    let back = arena.pipe(["decode", "-"], &output.stdout);
    expect(&back, 0);
    assert!(back.stdout == bytes);
    arena.write("c.fec", &output.stdout);
    let back = arena.fec(["decode", "-"]).stdin(File::open(arena.path("c.fec")).unwrap()).output().unwrap();
    expect(&back, 0);
    assert!(back.stdout == bytes);
    let shard = {
        arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
        File::open(arena.path("input.shards/input.000.shard")).unwrap()
    };
    expect(&arena.fec(["decode", "-"]).stdin(shard).output().unwrap(), 2);
    let folder = File::open(&arena.work).unwrap();
    expect(&arena.fec(["decode", "-"]).stdin(folder).output().unwrap(), 2);
}

/// A file that claims to be empty and is not, as files in /proc do.
#[test]
fn encode_a_file_of_the_system() {
    let arena = Arena::new();
    let path = "/proc/self/limits";
    if !fs::read(path).is_ok_and(|b| !b.is_empty()) {
        println!("skipped: there is no such file");
        return;
    }
    let encoded = arena.expect(["encode", path], 0);
    let back = arena.pipe(["decode", "-"], &encoded.stdout);
    expect(&back, 0);
    assert!(text(&back.stdout).contains("Max open files"));
    assert!(arena.refuses(["encode", path, "-o", "s/"], 2).contains("length"));
}

#[test]
fn fifo_as_input() {
    let (arena, bytes) = with_input(50_000);
    make_fifo(&arena.path("fifo"));
    let feed = |bytes: Vec<u8>| {
        let path = arena.path("fifo");
        std::thread::spawn(move || File::options().write(true).open(path).unwrap().write_all(&bytes))
    };
    let feeder = feed(bytes.clone());
    let encoded = arena.expect(["encode", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    let feeder = feed(encoded.stdout.clone());
    let decoded = arena.expect(["decode", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    assert!(decoded.stdout == bytes);
    let feeder = feed(encoded.stdout.clone());
    arena.expect(["verify", "fifo"], 0);
    feeder.join().unwrap().unwrap();
    // FIFOs serve as outputs too.
    let reader = {
        let path = arena.path("fifo");
        std::thread::spawn(move || fs::read(path))
    };
    arena.expect(["encode", "input", "-o", "fifo"], 0);
    assert!(reader.join().unwrap().unwrap() == encoded.stdout);
}

#[test]
fn dev_null_as_output() {
    let (arena, _) = with_input(5000);
    arena.expect(["encode", "input", "-o", "/dev/null"], 0);
    arena.expect(["encode", "input", "-o", "c.fec", "--root-file", "/dev/null"], 0);
    arena.expect(["decode", "c.fec", "-o", "/dev/null"], 0);
    let empty = arena.pipe(["encode", "/dev/null"], b"");
    expect(&empty, 0);
    let back = arena.pipe(["decode", "-"], &empty.stdout);
    expect(&back, 0);
    assert!(back.stdout.is_empty());
    arena.nothing_temporary();
}

#[test]
fn folder_as_input() {
    let (arena, _) = with_input(10);
    fs::create_dir(arena.path("photos")).unwrap();
    for name in ["photos", "photos/", "."] {
        assert!(arena.refuses(["encode", name], 2).contains("tar c"));
    }
    arena.refuses(["decode", "photos", "-o", "out"], 3);
    arena.refuses(["verify", "photos"], 3);
}

#[test]
fn empty_file() {
    let (arena, _) = with_input(0);
    let shards = root(&arena.expect(["encode", "input", "-k", "3", "-m", "2"], 0));
    let boxed = root(&arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "c.fec"], 0));
    let piped = arena.pipe(["encode", "-", "-k", "3", "-m", "2"], b"");
    assert!(piped.stdout == arena.read("c.fec"));
    for (input, root) in [("input.shards", shards), ("c.fec", boxed)] {
        arena.expect(["decode", input, "-o", "out", "-f", "--root", &root], 0);
        assert!(arena.read("out").is_empty());
        arena.expect(["verify", input, "--deep"], 0);
    }
}

/// An empty payload has no bytes to lose, but too few shards prove nothing: no output, and not exit 0.
#[test]
fn empty_file_with_too_few_shards() {
    let (arena, _) = with_input(0);
    arena.expect(["encode", "input", "-k", "3", "-m", "2"], 0);
    arena.expect(["encode", "input", "-k", "3", "-m", "2", "-o", "c.fec"], 0);
    for index in 0..3 {
        fs::remove_file(arena.path(format!("input.shards/input.{index:03}.shard"))).unwrap();
    }
    let boxed = arena.read("c.fec");
    let record = 128 + 128 + 64;
    arena.write("c.fec", &boxed[3 * record..]);
    arena.refuses(["decode", "input.shards", "-o", "out"], 3);
    arena.refuses(["decode", "c.fec", "-o", "out"], 3);
    arena.refuses_pipe(["decode", "-", "-o", "out"], &boxed[3 * record..], 3);
    for input in ["input.shards", "c.fec"] {
        expect(&arena.run(["verify", input]), 3);
    }
}

#[test]
fn file_names_that_are_not_text() {
    let arena = Arena::new();
    let name = OsStr::from_bytes(b"caf\xe9 \n\xff");
    arena.write(name, b"payload");
    let encode = ["encode", "-k", "2", "-m", "1"].map(OsStr::new).into_iter().chain([name]);
    let output = arena.expect(encode, 0);
    assert!(text(&output.stderr).contains("caf\\xe9 \\n\\xff"));
    let mut folder = name.to_owned();
    folder.push(".shards");
    fs::remove_file(arena.path(name)).unwrap();
    // A name with a control character is escaped when shown, and never used unasked.
    let said = arena.refuses([OsStr::new("decode"), &folder], 2);
    assert!(said.contains("caf\\xe9 \\n\\xff") && said.contains("-o"), "{said}");
    let output = arena.run([OsStr::new("decode"), &folder, OsStr::new("--json"), OsStr::new("-o"), name]);
    expect(&output, 0);
    assert_eq!(json(&output.stdout)["recorded_name"], "caf\\xe9 \\n\\xff");
    assert_eq!(arena.read(name), b"payload");
    // A name that is merely not UTF-8 is used.
    let name = OsStr::from_bytes(b"caf\xe9\xff");
    arena.write(name, b"another");
    let options = ["-k", "2", "-m", "1", "-o", "s/"].map(OsStr::new);
    arena.expect([OsStr::new("encode"), name].into_iter().chain(options), 0);
    fs::remove_file(arena.path(name)).unwrap();
    arena.expect(["decode", "s"], 0);
    assert_eq!(arena.read(name), b"another");
}

#[test]
fn file_names_of_255_bytes() {
    let arena = Arena::new();
    for name in ["n".repeat(255), "é".repeat(127) + "e"] {
        arena.write(&name, b"payload");
        // FILE.shards would be too long a name. The names of shards are shortened.
        arena.refuses(["encode", &name], 4);
        arena.expect(["encode", &name, "-o", "s/", "-k", "2", "-m", "1", "-f"], 0);
        assert!(listing(&arena.path("s")).iter().all(|n| n.len() <= 255 && n.ends_with(".shard")));
        fs::remove_file(arena.path(&name)).unwrap();
        arena.expect(["decode", "s"], 0);
        assert_eq!(arena.read(&name), b"payload");
        fs::remove_file(arena.path(&name)).unwrap();
    }
    let long = OsString::from_vec(vec![b'n'; 256]);
    arena.refuses([OsStr::new("encode"), &long], 4);
}

#[test]
fn decode_targets() {
    let (arena, bytes) = with_input(5000);
    arena.expect(["encode", "input", "-k", "2", "-m", "1"], 0);
    fs::create_dir(arena.path("boxes")).unwrap();
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "boxes/photo.tar.fec"], 0);
    fs::create_dir(arena.path("out")).unwrap();
    for (args, made) in [
        (&["decode", "input.shards", "-o", "out"][..], "out/input"),
        (&["decode", "input.shards", "-o", "out/", "-f"], "out/input"),
        (&["decode", "input.shards", "-o", "out/other"], "out/other"),
        (&["decode", "boxes/photo.tar.fec"], "boxes/photo.tar"),
        (&["decode", "boxes/photo.tar.fec", "-o", "out"], "out/photo.tar"),
    ] {
        arena.expect(args, 0);
        assert!(arena.read(made) == bytes, "{args:?}");
        fs::remove_file(arena.path(made)).unwrap();
    }
    fs::rename(arena.path("boxes/photo.tar.fec"), arena.path("noname")).unwrap();
    assert!(arena.refuses(["decode", "noname"], 2).contains("-o"));
    let noname = arena.read("noname");
    fs::write(arena.path(".fec"), &noname).unwrap();
    assert!(arena.refuses(["decode", ".fec"], 2).contains("-o"));
    assert!(arena.refuses_pipe(["decode", "-", "-o", "out/"], &noname, 2).contains("-o"));
    let out = arena.expect(["decode", "noname", "-o", "-"], 0);
    assert!(out.stdout == bytes);
    let out = arena.expect(["decode", "input.shards", "-o", "-"], 0);
    assert!(out.stdout == bytes);
    arena.refuses(["decode", "noname", "-o", "no/such/folder"], 4);
    arena.refuses(["decode", "nosuch", "-o", "x"], 4);
    arena.refuses(["decode", "noname", "-o", ""], 2);
}

/// The bytes of a file tell its kind, never its name.
#[test]
fn names_say_nothing() {
    let (arena, bytes) = with_input(5000);
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "s/"], 0);
    arena.expect(["encode", "input", "-k", "2", "-m", "1", "-o", "a.shard"], 0);
    fs::rename(arena.path("s/input.001.shard"), arena.path("s/x.fec")).unwrap();
    fs::rename(arena.path("s/input.002.shard"), arena.path("y.txt")).unwrap();
    arena.expect(["decode", "y.txt", "s/x.fec", "-o", "out"], 0);
    assert!(arena.read("out") == bytes);
    arena.expect(["decode", "a.shard", "-o", "out", "-f"], 0);
    assert!(arena.read("out") == bytes);
    assert!(
        arena.refuses(["decode", "y.txt", "a.shard", "-o", "out2"], 3).contains("no shard file: a.shard")
    );
    assert!(arena.refuses(["decode", "y.txt", "-", "-o", "out2"], 2).contains("alone"));
}

/// Growing a table of descriptors that threads share costs 7 to 14 ms each time.
#[test]
#[cfg(target_os = "linux")]
fn there_is_room_for_many_files_before_threads_begin() {
    let arena = Arena::new();
    let mut child = arena.spawn(["encode", "-", "-o", "out.fec", "-q"]);
    let status = || fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let field = |name: &str| {
        let status = status();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0, |value| value.trim().parse::<u64>().unwrap())
    };
    wait_until(|| field("Threads:") > 1);
    assert!(field("FDSize:") >= 1024, "{}", status());
    child.kill().unwrap();
    child.wait().unwrap();
}
