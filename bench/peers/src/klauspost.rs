//! klauspost/reedsolomon, as a process that encodes once for each request.

use fec_core::block::ShardBuf;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The program, if `scripts/bench/peers.sh` could build it.
pub(crate) fn program() -> Option<OsString> {
    std::env::var_os("FEC_PEERS_KLAUSPOST")
}

/// A coder with its shards in memory.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
}

impl Process {
    /// Starts `program` and overwrites `recovery` with the shards that it makes from `originals`.
    pub(crate) fn start(program: &OsString, originals: &ShardBuf, recovery: &mut ShardBuf) -> Process {
        let numbers = [originals.rows(), recovery.rows(), originals.row_len()];
        let mut child = Command::new(program)
            .args(numbers.map(|number| number.to_string()))
            // The coder takes as many threads as there are cores to run on, and turns its best kernels off for a single
            // core.
            .env("GOMAXPROCS", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("klauspost starts");
        let mut input = child.stdin.take().expect("it is piped");
        let mut output = child.stdout.take().expect("it is piped");
        originals.iter().for_each(|row| input.write_all(row).expect("klauspost reads"));
        recovery.iter_mut().for_each(|row| output.read_exact(row).expect("klauspost encodes"));
        Process { child, input: Some(input), output }
    }

    /// Lets the process encode once; the process measures its own time.
    pub(crate) fn encode(&mut self) -> Duration {
        self.input.as_mut().expect("it is open until the end").write_all(b"!").expect("klauspost reads");
        let mut nanoseconds = [0; 8];
        self.output.read_exact(&mut nanoseconds).expect("klauspost answers");
        Duration::from_nanos(u64::from_le_bytes(nanoseconds))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends at the end of its input.
        self.input = None;
        self.child.wait().expect("klauspost ends");
    }
}
