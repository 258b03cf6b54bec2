//! Helpers for tests of the binary: runs, payloads, scratch folders.
#![allow(dead_code)] // Each test file uses its own part.

pub(crate) mod forge;

use fec_core::random::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

/// The words that start the binary under test, as a shell takes them: the one that cargo built, or FEC_UNDER_TEST, such
/// as an emulator with a binary for another architecture. Nothing else names the binary that cargo built: while these
/// tests run, a build with other features may replace it.
pub(crate) fn fec_words() -> String {
    std::env::var("FEC_UNDER_TEST").unwrap_or_else(|_| env!("CARGO_BIN_EXE_fec").to_owned())
}

/// The binary under test.
pub(crate) fn fec() -> Command {
    heed_signals();
    let words = fec_words();
    let mut words = words.split_ascii_whitespace();
    let mut command = Command::new(words.next().expect("FEC_UNDER_TEST has a word"));
    command.args(words);
    command.stdin(Stdio::null()).env_remove("RUST_BACKTRACE");
    command
}

/// Runs `fec` with these arguments in `folder`.
pub(crate) fn run<S: AsRef<OsStr>>(folder: &Path, args: impl IntoIterator<Item = S>) -> Output {
    fec().current_dir(folder).args(portable(args)).output().expect("fec starts")
}

/// The arguments of a run, so that sidecars take for rot what tests do to files: they write to a file and put its time
/// back, which a recorded time of change would tell from rot.
fn portable<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
    let has = |option: &[&str]| args.iter().any(|arg| option.iter().any(|option| arg == option));
    if args.first().is_some_and(|first| first == "protect")
        && !has(&["--update", "-u", "--portable", "--list"])
    {
        args.insert(1, "--portable".into());
    }
    args
}

/// The signals that end `fec`.
pub(crate) fn signals() -> [Signal; 10] {
    [
        Signal::INT,
        Signal::TERM,
        Signal::HUP,
        Signal::QUIT,
        Signal::ABORT,
        Signal::ALARM,
        Signal::USR1,
        Signal::USR2,
        Signal::VTALARM,
        Signal::XCPU,
    ]
}

/// Installs handlers for ignored signals. `fec` keeps ignoring signals that its parent ignored, and a test may have
/// such a parent: a shell without job control ignores SIGINT and SIGQUIT for commands before a `&`, and `nohup` ignores
/// SIGHUP. A handler that does nothing here resets to the default action in child processes.
fn heed_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // If /proc cannot be read, tests have to be started in the foreground.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        let ignored = u64::from_str_radix(mask.trim(), 16).expect("a mask");
        for signal in signals().map(Signal::as_raw) {
            if ignored >> (signal - 1) & 1 == 1 {
                signal_hook::flag::register(signal, std::sync::Arc::default()).expect("a handler");
            }
        }
    });
}

/// Sends a signal to a process that was started here.
pub(crate) fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("the process is there");
}

/// Runs `fec` with `input` on standard input.
pub(crate) fn pipe<S: AsRef<OsStr>>(
    folder: &Path,
    args: impl IntoIterator<Item = S>,
    input: &[u8],
) -> Output {
    let mut child = fec()
        .current_dir(folder)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("fec starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The test judges whether a reader may stop early.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("fec ends")
    })
}

/// The exit code. If a signal ended the run, panics with its output.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {output:?}"))
}

/// Asserts an exit code, and shows the output otherwise.
#[track_caller]
pub(crate) fn expect(output: &Output, exit: i32) {
    assert_eq!(code(output), exit, "{}\n{}", text(&output.stdout), text(&output.stderr));
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The root that `encode` printed.
#[track_caller]
pub(crate) fn root(output: &Output) -> String {
    expect(output, 0);
    text(&output.stdout).trim().to_owned()
}

/// The payload of the golden vectors: a generator with 64 bits of state (Knuth's MMIX constants).
pub(crate) fn payload(seed: u64, len: usize) -> Vec<u8> {
    let mut x = seed;
    (0..len)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 56) as u8
        })
        .collect()
}

/// A scratch folder with one file in it.
pub(crate) fn scratch(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("a scratch file");
    (folder, path)
}

/// The names of all entries of a folder, sorted.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The shard files of a folder, in order of their names.
pub(crate) fn shard_files(folder: &Path) -> Vec<PathBuf> {
    listing(folder).into_iter().map(|name| folder.join(name)).collect()
}

/// Flips one bit of a file in place.
pub(crate) fn flip(path: &Path, at: usize) {
    let file = std::fs::File::options().read(true).write(true).open(path).expect("the file is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).expect("the byte is there");
    file.write_all_at(&[byte[0] ^ 1], at as u64).expect("the file can be written");
}

/// Feeds `input` to `child` and waits for it. After `limit`, kills it and returns `None`.
pub(crate) fn finish(mut child: Child, input: &[u8], limit: Duration) -> Option<Output> {
    let deadline = Instant::now() + limit;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        if let Some(mut stdin) = stdin {
            scope.spawn(move || {
                // The test judges whether a reader may stop early.
                let _ = stdin.write_all(input);
            });
        }
        let out = scope.spawn(|| all_of(stdout));
        let err = scope.spawn(|| all_of(stderr));
        let mut pause = Duration::from_micros(200);
        let status = loop {
            if let Some(status) = child.try_wait().expect("the child can be waited for") {
                break Some(status);
            }
            if Instant::now() > deadline {
                child.kill().expect("the child can be killed");
                child.wait().expect("the child ends");
                break None;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(4));
        };
        let (stdout, stderr) = (out.join().expect("a reader"), err.join().expect("a reader"));
        status.map(|status| Output { status, stdout, stderr })
    })
}

fn all_of(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes).expect("a pipe can be read");
    }
    bytes
}

/// A working folder for one test, with a separate folder for temporary files.
pub(crate) struct Arena {
    /// The folder in which `fec` runs.
    pub(crate) work: PathBuf,
    tmp: PathBuf,
    _root: tempfile::TempDir,
}

/// No run may take longer.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

impl Arena {
    pub(crate) fn new() -> Arena {
        let root = tempfile::tempdir().expect("a scratch folder");
        let (work, tmp) = (root.path().join("work"), root.path().join("tmp"));
        std::fs::create_dir(&work).expect("a folder");
        std::fs::create_dir(&tmp).expect("a folder");
        Arena { work, tmp, _root: root }
    }

    /// The folder of the user's state.
    pub(crate) fn user_state(&self) -> PathBuf {
        self.work.with_file_name("state")
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.work.join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in the work folder")).expect("a folder");
        std::fs::write(&path, bytes).expect("a scratch file");
        path
    }

    /// Writes files `0`, `1`, … into the folder `name`.
    pub(crate) fn write_all(&self, name: &str, files: &[Vec<u8>]) {
        for (i, bytes) in files.iter().enumerate() {
            self.write(Path::new(name).join(i.to_string()), bytes);
        }
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    pub(crate) fn fec<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = fec();
        command
            .current_dir(&self.work)
            .env("TMPDIR", &self.tmp)
            .env("XDG_STATE_HOME", self.user_state())
            .args(portable(args));
        command
    }

    /// Starts `fec` with all three streams piped.
    pub(crate) fn spawn<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Child {
        let mut command = self.fec(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("fec starts")
    }

    /// Runs `fec` with `input` in a pipe. A panic in the process or a hang fails the test.
    #[track_caller]
    pub(crate) fn pipe<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, input: &[u8]) -> Output {
        let output = finish(self.spawn(args), input, LIMIT).expect("fec ends in time");
        assert!(!text(&output.stderr).contains("panicked"), "{}", text(&output.stderr));
        output
    }

    /// Runs `fec` with nothing to read.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Output {
        self.pipe(args, b"")
    }

    /// Runs `fec` and asserts its exit code.
    #[track_caller]
    pub(crate) fn expect<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, exit: i32) -> Output {
        let output = self.run(args);
        expect(&output, exit);
        output
    }

    /// Runs `fec`, which must end with this code, give a reason, and change nothing in the folder.
    #[track_caller]
    pub(crate) fn refuses<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>, exit: i32) -> String {
        self.refuses_pipe(args, b"", exit)
    }

    /// Like [`Arena::refuses`], with a pipe.
    #[track_caller]
    pub(crate) fn refuses_pipe<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
        exit: i32,
    ) -> String {
        let before = self.state();
        let output = self.pipe(args, input);
        expect(&output, exit);
        let said = text(&output.stderr);
        assert!(!said.trim().is_empty(), "it says why");
        assert!(output.stdout.is_empty(), "nothing comes out: {}", text(&output.stdout));
        self.unchanged(&before);
        said
    }

    /// All files below the work folder, with their bytes.
    pub(crate) fn state(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut out = Vec::new();
        collect(&self.work, &mut out);
        out.sort();
        out
    }

    /// Asserts that the folder is unchanged and that no temporary file was left.
    #[track_caller]
    pub(crate) fn unchanged(&self, before: &[(PathBuf, Vec<u8>)]) {
        let after = self.state();
        let names = |state: &[(PathBuf, Vec<u8>)]| state.iter().map(|(p, _)| p.clone()).collect::<Vec<_>>();
        assert_eq!(names(&after), names(before), "something was left behind");
        assert!(after == before, "a file was changed");
        self.nothing_temporary();
    }

    /// Asserts that no temporary file is left.
    #[track_caller]
    pub(crate) fn nothing_temporary(&self) {
        assert_eq!(listing(&self.tmp), Vec::<String>::new(), "temporary files are left");
        let left: Vec<String> = listing(&self.work).into_iter().filter(|n| n.starts_with(".fec-")).collect();
        assert_eq!(left, Vec::<String>::new(), "temporary files are left");
    }

    /// Waits until a temporary output exists.
    pub(crate) fn wait_for_temporary(&self) {
        wait_until(|| listing(&self.work).iter().any(|n| n.starts_with(".fec-")));
    }
}

/// Waits until a condition holds, at most [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_true() {
        assert!(Instant::now() < deadline, "waited too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn collect(folder: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let kind = std::fs::symlink_metadata(&path).expect("it is there").file_type();
        if kind.is_dir() {
            out.push((path.clone(), b"folder".to_vec()));
            collect(&path, out);
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            out.push((path, bytes));
        } else {
            out.push((path, b"special".to_vec()));
        }
    }
}

/// Tells whether processes may be traced here.
pub(crate) fn can_trace() -> bool {
    let traced = Command::new("strace").args(["-f", "-e", "trace=none", "true"]).output();
    let can = traced.is_ok_and(|output| output.status.success());
    if !can {
        println!("skipped: strace cannot be used here");
    }
    can
}

/// A run of `fec` under strace, with these options of strace.
pub(crate) fn traced(arena: &Arena, options: &[&str], args: &[&str]) -> Command {
    let fec = fec();
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "signal=none"]).args(options);
    command.arg(fec.get_program()).args(fec.get_args()).args(args).current_dir(&arena.work);
    command
}

/// Makes a FIFO.
pub(crate) fn make_fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO can be made");
}

/// Numbers from a seed.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// 0 … `bound` - 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0.index(bound.max(1))
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
