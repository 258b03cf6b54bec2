//! The published test vectors of age (C2SP CCTV, `age/testdata`), if a copy of them is there.

use super::*;
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A vector: a file, and the expected result of opening it.
struct Vector {
    fields: Vec<(String, String)>,
    file: Vec<u8>,
}

impl Vector {
    fn read(path: &Path) -> Vector {
        let bytes = std::fs::read(path).expect("it is readable");
        let end = bytes.windows(2).position(|two| two == b"\n\n").expect("its fields have an end");
        let fields = std::str::from_utf8(&bytes[..end]).expect("they are text");
        let fields = fields.lines().map(|line| line.split_once(": ").expect("a field"));
        let fields: Vec<(String, String)> =
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let file = bytes[end + 2..].to_vec();
        let mut vector = Vector { fields, file };
        if vector.one("compressed") == Some("zlib") {
            vector.file = decompressed(&vector.file);
        }
        vector
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    fn one<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// The result of opening it with all the keys that it names, in the words of the vectors.
    fn outcome(&self) -> Result<Zeroizing<Vec<u8>>, &'static str> {
        let mut keys: Vec<Keys> =
            self.all("passphrase").map(|text| Keys::Passphrase(passphrase(text))).collect();
        let identities: String = self.all("identity").map(|key| format!("{key}\n")).collect();
        if !identities.is_empty() {
            keys.push(super::identities(&identities));
        } else if keys.is_empty() {
            keys.push(Keys::Identities(Vec::new()));
        }
        let mut outcome = Err("no key");
        for keys in keys {
            outcome = open(&self.file, &keys).map_err(|error| match error {
                AgeError::Header(_) | AgeError::MuchWork(_) => "header failure",
                AgeError::NoMatch | AgeError::NeedsIdentity | AgeError::NeedsPassphrase => "no match",
                AgeError::Damaged(Part::Header) => "HMAC failure",
                AgeError::Damaged(Part::Payload) => "payload failure",
                _ => "something else",
            });
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let script = "import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))";
    let (stdin, stdout) = (Stdio::piped(), Stdio::piped());
    let python = Command::new("python3").args(["-c", script]).stdin(stdin).stdout(stdout).spawn();
    let mut python = python.expect("python3 is there");
    python.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success());
    output.stdout
}

#[test]
fn published_vectors() {
    let Some(folder) = std::env::var_os("FEC_AGE_VECTORS") else {
        eprintln!("skipped: FEC_AGE_VECTORS names no folder with age/testdata of C2SP's CCTV");
        return;
    };
    let (mut count, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it is readable").path();
        let vector = Vector::read(&path);
        let expected = vector.one("expect").expect("every vector has it");
        // Armor is not read, whatever its content.
        let expected = if vector.one("armored") == Some("yes") { "header failure" } else { expected };
        let is_right = match vector.outcome() {
            Ok(plaintext) => {
                let digest: String =
                    Sha256::digest(&plaintext).iter().map(|byte| format!("{byte:02x}")).collect();
                expected == "success" && vector.one("payload") == Some(&digest)
            }
            Err(outcome) => outcome == expected,
        };
        if !is_right {
            let outcome = vector.outcome().map(|plaintext| plaintext.len());
            wrong.push(format!("{}: {expected}, and it was {outcome:?}", path.display()));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 100, "{count} vectors");
    eprintln!("{count} published vectors");
}
