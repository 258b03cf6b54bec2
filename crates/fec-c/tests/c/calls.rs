//! The other side of `programs/calls.c`: a process that makes calls for this one. Numbers are little-endian, and bytes
//! have their number in front, in 64 bits.

use std::env;
use std::ffi::OsStr;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The static library, which cargo makes with the library of this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let found = test.ancestors().skip(1).map(|folder| folder.join("libfec.a")).find(|path| path.is_file());
    found.expect("libfec.a stands beside the tests")
}

/// Compiles a program of this crate. A warning is an error.
pub(crate) fn compiled(source: &str, folder: &Path) -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(Path::new(source).file_stem().expect("a name"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-pthread", "-I"]);
    command.arg(place.join("include")).arg(place.join(source)).arg(library());
    // As fec.pc has it for programs that are linked without shared libraries.
    command.args(["-lgcc_s", "-lm", "-ldl", "-lrt", "-lutil", "-o"]).arg(&program);
    let done = command.output().unwrap_or_else(|e| panic!("{}: {e}", compiler.display()));
    assert!(done.status.success(), "{source}: {}", String::from_utf8_lossy(&done.stderr));
    program
}

/// A program whose leaks end it with a code of their own.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("ASAN_OPTIONS", "detect_leaks=1:exitcode=98:allocator_may_return_null=0");
    command.env("UBSAN_OPTIONS", "print_stacktrace=1");
    command
}

/// A status and its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) why: String,
}

/// The options of an encoding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) k: u32,
    pub(crate) m: u32,
    pub(crate) hash: u32,
    pub(crate) threads: u32,
    pub(crate) set_size: u64,
    pub(crate) group_sets: u32,
    pub(crate) name: Vec<u8>,
}

/// An encoding: the root, and objects with their names. A container has no name.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) ended: Ended,
    pub(crate) root: [u8; 32],
    pub(crate) objects: Vec<(String, Vec<u8>)>,
}

/// The findings about an encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) root: [u8; 32],
    pub(crate) k: u32,
    pub(crate) m: u32,
    pub(crate) intact: u32,
    pub(crate) damaged: u32,
    pub(crate) missing: u32,
    pub(crate) may_still_lose: i32,
    pub(crate) payload_len: u64,
}

/// The answers of all calls that take inputs.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) decoded: (Ended, Vec<u8>),
    pub(crate) verified: (Ended, Report),
    /// Each input as a shard alone, if a root was given, with its number.
    pub(crate) shards: Vec<(Ended, u32)>,
    /// An only input as a stream.
    pub(crate) stream: Option<(Ended, Vec<u8>)>,
}

/// A process that makes calls.
pub(crate) struct Calls {
    process: Child,
    to: Option<BufWriter<ChildStdin>>,
    from: BufReader<ChildStdout>,
    _place: tempfile::TempDir,
}

impl Calls {
    pub(crate) fn new() -> Calls {
        let place = tempfile::tempdir().expect("a scratch folder");
        let mut command = command(compiled("tests/programs/calls.c", place.path()));
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let to = process.stdin.take().map(BufWriter::new);
        let from = BufReader::new(process.stdout.take().expect("it is piped"));
        Calls { process, to, from, _place: place }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.to.as_mut().expect("it is open").write_all(bytes).expect("the process reads");
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(&(bytes.len() as u64).to_le_bytes());
        self.put(bytes);
    }

    fn send(&mut self) {
        self.to.as_mut().expect("it is open").flush().expect("the process reads");
    }

    fn get<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).expect("the process answers");
        bytes
    }

    fn number(&mut self) -> u32 {
        u32::from_le_bytes(self.get())
    }

    fn get_bytes(&mut self) -> Vec<u8> {
        let len = u64::from_le_bytes(self.get()) as usize;
        let mut bytes = vec![0; len];
        self.from.read_exact(&mut bytes).expect("the process answers");
        bytes
    }

    fn ended(&mut self) -> Ended {
        let status = i32::from_le_bytes(self.get());
        Ended { status, why: String::from_utf8(self.get_bytes()).expect("sentences are UTF-8") }
    }

    /// Encodes to shards, or to a container by callbacks.
    pub(crate) fn encode(&mut self, options: &Options, payload: &[u8], is_stream: bool) -> Encoded {
        self.put(if is_stream { b"S" } else { b"E" });
        for number in [options.k, options.m, options.hash, options.threads] {
            self.put(&number.to_le_bytes());
        }
        self.put(&options.set_size.to_le_bytes());
        self.put(&options.group_sets.to_le_bytes());
        self.put_bytes(&options.name);
        self.put_bytes(payload);
        self.send();
        let (ended, root) = (self.ended(), self.get());
        let objects = match is_stream {
            true => vec![(String::new(), self.get_bytes())],
            false => {
                let count = u64::from_le_bytes(self.get());
                let name = |calls: &mut Calls| String::from_utf8(calls.get_bytes()).expect("a name in UTF-8");
                (0..count).map(|_| (name(self), self.get_bytes())).collect()
            }
        };
        Encoded { ended, root, objects }
    }

    /// Decodes and verifies inputs in all ways.
    pub(crate) fn look(&mut self, inputs: &[Vec<u8>], root: Option<[u8; 32]>) -> Looked {
        self.put(&[b'L', u8::from(root.is_some())]);
        self.put(&root.unwrap_or_default());
        self.put(&(inputs.len() as u64).to_le_bytes());
        inputs.iter().for_each(|input| self.put_bytes(input));
        self.send();
        let decoded = (self.ended(), self.get_bytes());
        let verified = (self.ended(), self.report());
        let count = if root.is_some() { inputs.len() } else { 0 };
        let shards = (0..count).map(|_| (self.ended(), self.number())).collect();
        let stream = (inputs.len() == 1).then(|| (self.ended(), self.get_bytes()));
        Looked { decoded, verified, shards, stream }
    }

    fn report(&mut self) -> Report {
        Report {
            root: self.get(),
            k: self.number(),
            m: self.number(),
            intact: self.number(),
            damaged: self.number(),
            missing: self.number(),
            may_still_lose: i32::from_le_bytes(self.get()),
            payload_len: u64::from_le_bytes(self.get()),
        }
    }

    /// Ends the process, which tells what it leaked.
    pub(crate) fn end(mut self) {
        self.to = None;
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "the process ended with {status}: standard error has what it leaked");
    }
}
