//! Inputs that change, disks that fill up, readers that go away, signals.

use super::*;

/// Makes a sparse file of zeros: large, and quick to make.
fn sparse(arena: &Arena, name: &str, len: u64) {
    File::create(arena.path(name)).unwrap().set_len(len).unwrap();
}

/// Starts an encoder, changes its input in the middle of the work, and expects exit code 4.
fn input_changes(options: &[&str], change: &(dyn Fn(&Path) + Sync)) {
    // The output is a FIFO that is read slowly, so the encoder cannot be ahead of the change.
    let arena = Arena::new();
    sparse(&arena, "input", 64 << 20);
    make_fifo(&arena.path("fifo"));
    let before = common::listing(&arena.work);
    let encode =
        ["encode", "input", "-o", "fifo", "-k", "4", "-m", "1", "--set-size", "256K", "--group-size", "4"];
    let child = arena.spawn([&encode[..], options].concat());
    let mut fifo = File::open(arena.path("fifo")).unwrap();
    fifo.read_exact(&mut vec![0; 1 << 20]).unwrap();
    // Opening the input for writing waits until the encoder has read on, up to 45 seconds if it cannot.
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| change(&arena.path("input")));
        while !changing.is_finished() {
            let _ = fifo.read(&mut [0; 1 << 16]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    std::io::copy(&mut fifo, &mut std::io::sink()).unwrap();
    let output = finish(child, b"", LIMIT).expect("it ends");
    assert_ne!(output.status.signal(), Some(SIGBUS));
    expect(&output, 4);
    assert!(text(&output.stderr).contains("changed") || text(&output.stderr).contains("shrank"));
    assert_eq!(common::listing(&arena.work), before);
    for output in ["out/", "out.fec"] {
        changes_while_files_are_written(output, options, change);
    }
}

/// The change comes once the temporary output exists. If the encoder is ready by then, it gets a larger input.
fn changes_while_files_are_written(output: &str, options: &[&str], change: &dyn Fn(&Path)) {
    for mebibytes in [16, 64, 256, 1024] {
        let arena = Arena::new();
        sparse(&arena, "input", mebibytes << 20);
        let encode = ["encode", "input", "-o", output, "-k", "4", "-m", "1", "-j", "1", "--hash", "sha256"];
        let child = arena.spawn([&encode[..], &["--no-sync"], options].concat());
        common::wait_until(|| common::listing(&arena.work).len() > 1);
        change(&arena.path("input"));
        let ended = finish(child, b"", LIMIT).expect("it ends");
        if ended.status.success() {
            continue;
        }
        expect(&ended, 4);
        assert_eq!(common::listing(&arena.work), ["input"]);
        arena.nothing_temporary();
        return;
    }
    panic!("no change was noticed");
}

#[test]
fn input_that_shrinks() {
    let shrink = |path: &Path| OpenOptions::new().write(true).open(path).unwrap().set_len(100_000).unwrap();
    input_changes(&[], &shrink);
    input_changes(&["--no-mmap"], &shrink);
}

#[test]
fn input_that_becomes_empty() {
    let shrink = |path: &Path| OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
    input_changes(&[], &shrink);
    input_changes(&["--no-mmap"], &shrink);
}

#[test]
fn input_that_grows() {
    let grow = |path: &Path| OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
    input_changes(&[], &grow);
    input_changes(&["--no-mmap"], &grow);
}

#[test]
fn input_that_changes_in_place() {
    use std::os::unix::fs::FileExt;
    // The change is behind the reader: only the time stamps tell.
    let touch =
        |path: &Path| OpenOptions::new().write(true).open(path).unwrap().write_all_at(b"x", 0).unwrap();
    input_changes(&[], &touch);
    input_changes(&["--no-mmap"], &touch);
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).expect("the process is there");
}

#[track_caller]
fn interrupted(arena: &Arena, child: Child, before: &[String]) {
    let output = finish(child, b"", LIMIT).expect("it ends");
    expect(&output, 130);
    assert_eq!(common::listing(&arena.work), before);
    arena.nothing_temporary();
}

/// `nohup fec …`, and background commands of a shell without job control.
#[test]
fn signals_that_were_ignored_when_it_was_started_end_nothing() {
    use rustix::process::Signal;
    let arena = Arena::new();
    let with = [("HUP", Signal::HUP), ("INT", Signal::INT), ("QUIT", Signal::QUIT), ("TERM", Signal::TERM)];
    for (name, ignored) in with {
        let fec =
            arena.fec(["encode", "-", "-o", "out.fec", "-f", "-k", "4", "-m", "4", "--set-size", "64K"]);
        let mut command = Command::new("sh");
        command.args(["-c", &format!("trap '' {name}; exec \"$@\""), "sh"]);
        command.arg(fec.get_program()).args(fec.get_args()).current_dir(&arena.work);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell starts");
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&payload(33, 1 << 20)).unwrap();
        arena.wait_for_temporary();
        signal(&child, ignored);
        // A caught signal would have ended the run long before.
        std::thread::sleep(Duration::from_millis(500));
        stdin.write_all(b"more").expect("it still reads");
        drop(stdin);
        expect(&finish(child, b"", LIMIT).expect("it ends"), 0);
        arena.expect(["decode", "out.fec", "-o", "back", "-f"], 0);
        assert_eq!(arena.read("back").len(), (1 << 20) + 4, "{name}");
    }
}

#[test]
fn interrupted_while_encoding_to_shards() {
    let arena = Arena::new();
    sparse(&arena, "input", 128 << 20);
    for (round, with) in common::signals().iter().cycle().take(24).enumerate() {
        let child = arena.spawn(["encode", "input", "-k", "100", "-m", "100", "--set-size", "1M"]);
        arena.wait_for_temporary();
        // Early rounds interrupt while files are created, later ones while they are written.
        std::thread::sleep(Duration::from_micros(40 * (round * round) as u64));
        signal(&child, *with);
        interrupted(&arena, child, &["input".to_owned()]);
    }
}

#[test]
fn interrupted_while_encoding_to_a_container() {
    for with in common::signals() {
        let arena = Arena::new();
        let mut child =
            arena.spawn(["encode", "-", "-o", "out.fec", "-k", "4", "-m", "4", "--set-size", "64K"]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&payload(32, 1 << 20)).unwrap();
        arena.wait_for_temporary();
        signal(&child, with);
        interrupted(&arena, child, &[]);
    }
}

#[test]
fn interrupted_while_decoding() {
    let arena = Arena::new();
    sparse(&arena, "input", 96 << 20);
    let encode = ["encode", "input", "--no-sync", "-k", "8", "-m", "2", "--hash", "sha256"];
    arena.expect(encode.into_iter().chain(["-o", "c.fec"]), 0);
    arena.expect(encode.into_iter().chain(["-o", "s/"]), 0);
    fs::remove_file(arena.path("input")).unwrap();
    let signals = common::signals();
    for path in ["c.fec", "s"] {
        let before = common::listing(&arena.work);
        let child = arena.spawn(["decode", path, "-o", "out", "-j", "1"]);
        arena.wait_for_temporary();
        signal(&child, signals[0]);
        interrupted(&arena, child, &before);
    }
    // The input is a pipe that stands still, the output a file or another pipe.
    let head = arena.read("c.fec")[..30 << 20].to_vec();
    for target in ["out", "-"] {
        let before = common::listing(&arena.work);
        for root in [&[][..], &["--root", &"ab".repeat(32)]] {
            let mut child = arena.spawn([&["decode", "-", "-o", target], root].concat());
            let mut stdin = child.stdin.take().unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| stdin.write_all(&head[..100_000]).unwrap()).join().unwrap();
            });
            // With a root the pipe is first read to its end.
            if target == "out" && root.is_empty() {
                arena.wait_for_temporary();
            } else {
                std::thread::sleep(Duration::from_millis(50));
            }
            signal(&child, *signals.last().unwrap());
            interrupted(&arena, child, &before);
        }
    }
}

/// Reads a little of standard output and closes it.
#[track_caller]
fn stdout_closed_early(arena: &Arena, args: &[&str], input: &[u8], read: usize) {
    let mut child = arena.spawn(args);
    let mut stdout = child.stdout.take().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = stdin.write_all(input);
        });
        if read > 0 {
            stdout.read_exact(&mut vec![0; read]).unwrap();
        }
        drop(stdout);
        finish(child, b"", LIMIT).expect("it ends")
    });
    assert_eq!(output.status.signal(), Some(SIGPIPE), "{args:?}: {:?}", output.status);
    assert_eq!(text(&output.stderr), "", "{args:?}: a broken pipe ends quietly");
    arena.nothing_temporary();
}

#[test]
fn stdout_closed() {
    let arena = Arena::new();
    let bytes = payload(33, 4 << 20);
    arena.write("input", &bytes);
    let options = ["-k", "4", "-m", "2", "--set-size", "64K", "--group-size", "4"];
    arena.expect(["encode", "input", "-o", "c.fec"].into_iter().chain(options), 0);
    arena.expect(["encode", "input", "-o", "s/", "-k", "4", "-m", "2"], 0);
    let boxed = arena.read("c.fec");
    stdout_closed_early(&arena, &[&["encode", "-"], &options[..]].concat(), &bytes, 1);
    stdout_closed_early(&arena, &[&["encode", "input", "-o", "-"], &options[..]].concat(), b"", 1);
    stdout_closed_early(&arena, &["decode", "c.fec", "-o", "-"], b"", 1);
    stdout_closed_early(&arena, &["decode", "s", "-o", "-"], b"", 1);
    stdout_closed_early(&arena, &["decode", "-"], &boxed, 1);
}

/// An unwritable standard error changes neither the exit code nor the result.
#[test]
fn stderr_full() {
    let arena = Arena::new();
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    arena.write("input", &payload(34, 5000));
    let status = |args: &[&str]| {
        let mut command = arena.fec(args);
        command.stderr(full()).stdout(Stdio::null());
        command.status().unwrap().code()
    };
    assert_eq!(status(&["encode", "input", "-o", "-"]), Some(0));
    assert_eq!(status(&["encode", "input", "-o", "-", "--json"]), Some(0));
    assert_eq!(status(&["encode", "input", "-o", "c.fec", "--progress", "json", "-vv"]), Some(0));
    assert_eq!(status(&["decode", "c.fec", "-o", "out"]), Some(0));
    assert_eq!(status(&["decode", "c.fec", "-o", "out"]), Some(2));
    assert_eq!(status(&["decode", "nosuch", "-o", "out"]), Some(4));
    assert_eq!(status(&["verify", "c.fec"]), Some(0));
    arena.write("cut.fec", &arena.read("c.fec")[..2000]);
    assert_eq!(status(&["decode", "cut.fec", "-o", "cut"]), Some(3));
    assert_eq!(status(&["decode", "cut.fec", "-o", "cut", "-q"]), Some(3));
    assert_eq!(status(&["decode", "cut.fec", "-o", "cut", "--json"]), Some(3));
}

#[test]
fn output_device_full() {
    let arena = Arena::new();
    arena.write("input", &payload(35, 300_000));
    arena.expect(["encode", "input", "-o", "c.fec", "-k", "4", "-m", "2"], 0);
    arena.expect(["encode", "input", "-o", "s/", "-k", "4", "-m", "2"], 0);
    let boxed = arena.read("c.fec");
    arena.refuses(["encode", "input", "-o", "/dev/full"], 4);
    arena.refuses_pipe(["encode", "-", "-o", "/dev/full"], &boxed, 4);
    arena.refuses(["decode", "c.fec", "-o", "/dev/full"], 4);
    arena.refuses(["decode", "s", "-o", "/dev/full"], 4);
    arena.refuses_pipe(["decode", "-", "-o", "/dev/full"], &boxed, 4);
    for args in [
        &["encode", "input", "-o", "-"][..],
        &["decode", "s", "-o", "-"],
        &["verify", "s", "--json"],
        &["encode", "input", "-o", "x.fec", "-f"],
    ] {
        let mut command = arena.fec(args);
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        command.stdout(full).stderr(Stdio::piped());
        let output = finish(command.spawn().unwrap(), b"", LIMIT).unwrap();
        expect(&output, 4);
        assert!(!text(&output.stderr).contains("panicked"));
    }
    arena.nothing_temporary();
}

/// A file size limit sends a signal, which would end the process and leave the temporary file.
#[test]
fn file_size_limit() {
    let arena = Arena::new();
    arena.write("input", &payload(37, 300_000));
    for output in ["out.fec", "out/"] {
        let mut shell = Command::new("bash");
        let limited = format!("ulimit -f 8; exec {} encode input -k 2 -m 2 -o {output}", common::fec_words());
        shell.args(["-c", &limited]).current_dir(&arena.work).stdin(Stdio::null());
        expect(&shell.output().unwrap(), 4);
        assert_eq!(common::listing(&arena.work), ["input"]);
    }
}

/// A file system of one mebibyte, unmounted when dropped.
struct Tiny<'a>(&'a Path);

impl Drop for Tiny<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

#[test]
fn file_system_full() {
    let arena = Arena::new();
    let tiny = arena.path("tiny");
    fs::create_dir(&tiny).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&tiny).stderr(Stdio::null());
    if !mount.status().is_ok_and(|s| s.success()) {
        println!("skipped: file systems cannot be mounted here");
        return;
    }
    let _unmount = Tiny(&tiny);
    arena.write("input", &payload(36, 900_000));
    let options = ["-k", "4", "-m", "4", "--set-size", "64K"];
    arena.expect(["encode", "input", "-o", "c.fec"].into_iter().chain(options), 0);
    arena.expect(["encode", "input", "-o", "s/"].into_iter().chain(options), 0);
    let boxed = arena.read("c.fec");
    let empty = || assert_eq!(common::listing(&tiny), Vec::<String>::new());
    // A full disk is noticed before the work if the size is known, and otherwise during it.
    arena.refuses(["encode", "input", "-o", "tiny/s/"].into_iter().chain(options), 4);
    empty();
    arena.refuses(["encode", "input", "-o", "tiny/c.fec"].into_iter().chain(options), 4);
    empty();
    arena.refuses_pipe(["encode", "-", "-o", "tiny/c.fec"].into_iter().chain(options), &boxed, 4);
    empty();
    fs::write(tiny.join("filler"), vec![0; 600_000]).unwrap();
    for input in ["c.fec", "s"] {
        arena.refuses(["decode", input, "-o", "tiny/out"], 4);
        arena.refuses(["decode", input, "-o", "tiny/out", "--partial"], 4);
    }
    arena.refuses_pipe(["decode", "-", "-o", "tiny/out"], &boxed, 4);
    assert_eq!(common::listing(&tiny), ["filler"]);
}

#[test]
fn a_sigbus_that_somebody_sends_ends_the_process() {
    let arena = Arena::new();
    sparse(&arena, "input", 64 << 20);
    make_fifo(&arena.path("fifo"));
    let child = arena.spawn(["encode", "input", "-o", "fifo", "-k", "4", "-m", "1"]);
    // The process now waits for a reader.
    let fifo = File::open(arena.path("fifo")).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::BUS)
        .unwrap();
    let output = finish(child, b"", LIMIT).expect("it ends");
    drop(fifo);
    assert_eq!(output.status.signal(), Some(SIGBUS), "{output:?}");
}
