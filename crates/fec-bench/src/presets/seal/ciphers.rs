//! The ciphers on chunks, with a ready key and with a key made for each chunk; and whole age files.

use crate::counters;
use crate::error::{Error, Result};
use crate::lab::{Lab, Measured};
use crate::random::Mmix;
use crate::table::{Cell, ESTIMATED_CYCLES, FigureTable, estimated_cycles, figure, key};
use fec_keys::age::{self, Identity, KeyKind, Keys, Recipient};
use fec_keys::cipher::{AeadKey, Cipher, ENGINE, KEY, NONCE, TAG};
use fecfile::seal::SealError;
use std::hint::black_box;
use std::num::NonZeroUsize;

/// Bytes of chunks: the formats' length, and a shorter one.
pub(super) const CHUNKS: [usize; 2] = [64 << 10, 16 << 10];

/// Bytes of plaintext of an age file: enough that its single recipient hardly counts.
pub(super) const FILE: usize = 4 << 20;

/// Number of figures.
pub(super) const FIGURES: usize = 2 * CHUNKS.len();

/// The associated data of each chunk: a digest.
const ASSOCIATED: [u8; 32] = [0x5a; 32];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Seal,
    Open,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Seal => "seal",
            Operation::Open => "open",
        }
    }
}

/// A row.
struct Row {
    cipher: &'static str,
    operation: Operation,
    chunk: usize,
    key: &'static str,
    /// Bytes of a call.
    bytes: usize,
}

pub(super) fn table(lab: &mut Lab) -> Result<FigureTable> {
    let columns = [
        key("cipher", "cipher"),
        key("operation", "operation"),
        key("chunk", "chunk"),
        key("key", "key"),
        figure("time_us", "median µs a chunk", 2),
        figure("megabytes_per_second", "MB/s", 0),
        estimated_cycles(),
        figure("ratio", "against the first", 3),
    ];
    let mut table = FigureTable::new(
        "ciphers",
        format!("Chunks, one thread, by {ENGINE}: MB/s are plaintext"),
        columns.into_iter().chain(counters::columns()),
    );
    for chunk in CHUNKS {
        for operation in [Operation::Seal, Operation::Open] {
            rows(lab, &mut table, operation, chunk)?;
        }
    }
    Ok(table)
}

/// All ways of an operation on chunks of one length, in turn.
fn rows(lab: &mut Lab, table: &mut FigureTable, operation: Operation, chunk: usize) -> Result<()> {
    let ways = Cipher::ALL.map(|cipher| [false, true].map(|fresh| (cipher, fresh)));
    let mut works: Vec<ChunkWork> =
        ways.as_flattened().iter().map(|(cipher, fresh)| ChunkWork::new(*cipher, chunk, *fresh)).collect();
    let mut of_rows: Vec<Row> = works.iter().map(|work| work.row(operation)).collect();
    let mut file = if chunk == CHUNKS[0] { Some(AgeWork::new()?) } else { None };
    of_rows.extend(file.as_ref().map(|_| Row {
        cipher: "age file",
        operation,
        chunk,
        key: "made for each file",
        bytes: FILE,
    }));
    let name = format!("{} chunks of {} KiB", operation.name(), chunk >> 10);
    let measured = {
        let mut chunks: Vec<_> = works.iter_mut().map(|work| move || work.run(operation)).collect();
        let mut files: Vec<_> = file.iter_mut().map(|file| move || file.run(operation)).collect();
        let chunks = chunks.iter_mut().map(|run| run as &mut dyn FnMut());
        let files = files.iter_mut().map(|run| run as &mut dyn FnMut());
        lab.race(&name, false, &mut chunks.chain(files).collect::<Vec<_>>())
    };
    works.iter().try_for_each(ChunkWork::check)?;
    file.as_ref().map_or(Ok(()), AgeWork::check)?;
    let Some(measured) = measured else { return Ok(()) };
    let first = measured[0].time.median / chunk as f64;
    for (row, measured) in of_rows.iter().zip(&measured) {
        table.row(cells(lab, row, measured, first));
    }
    Ok(())
}

fn cells(lab: &Lab, row: &Row, measured: &Measured, first: f64) -> Vec<(&'static str, Cell)> {
    let (bytes, seconds) = (row.bytes as u64, measured.time.median);
    let cells = [
        ("cipher", row.cipher.into()),
        ("operation", row.operation.name().into()),
        ("chunk", format!("{} KiB", row.chunk >> 10).into()),
        ("key", row.key.into()),
        ("time_us", measured.time.scaled(1e6 * row.chunk as f64 / bytes as f64).into()),
        ("megabytes_per_second", (bytes as f64 / 1e6 / seconds).into()),
        (ESTIMATED_CYCLES, lab.estimated_cycles(bytes, seconds).into()),
        ("ratio", (first / (seconds / bytes as f64)).into()),
    ];
    cells.into_iter().chain(counters::cells(&measured.counts, bytes)).collect()
}

/// A chunk that is sealed or opened again and again in place.
pub(super) struct ChunkWork {
    cipher: Cipher,
    /// True if each call makes a new key.
    fresh: bool,
    secret: [u8; KEY],
    key: AeadKey,
    /// The chunk, and space for its tag.
    bytes: Vec<u8>,
    /// The tags of both states of the chunk: opening swaps ciphertext and plaintext, whose difference is the keystream.
    tags: [[u8; TAG]; 2],
    calls: u64,
    is_wrong: bool,
}

impl ChunkWork {
    pub(super) fn new(cipher: Cipher, chunk: usize, fresh: bool) -> ChunkWork {
        let secret = [7; KEY];
        let key = AeadKey::new(cipher, &secret);
        let mut bytes = vec![0; chunk + TAG];
        Mmix(1).fill(&mut bytes[..chunk]);
        // The tag of a text is made when its keystream is added to the other text; added twice, the keystream is gone.
        let second = key.seal(&[0; NONCE], &ASSOCIATED, &mut bytes[..chunk]);
        let first = key.seal(&[0; NONCE], &ASSOCIATED, &mut bytes[..chunk]);
        ChunkWork { cipher, fresh, secret, key, bytes, tags: [first, second], calls: 0, is_wrong: false }
    }

    fn row(&self, operation: Operation) -> Row {
        let key = if self.fresh { "made for each" } else { "ready" };
        let chunk = self.bytes.len() - TAG;
        Row { cipher: self.cipher.name(), operation, chunk, key, bytes: chunk }
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Seal => self.seal(),
            Operation::Open => self.open(),
        }
    }

    pub(super) fn seal(&mut self) {
        let nonce = self.next();
        let made;
        let key = if self.fresh {
            made = AeadKey::new(self.cipher, black_box(&self.secret));
            &made
        } else {
            &self.key
        };
        let (text, tag) = self.bytes.split_last_chunk_mut().expect("there is room for the tag");
        *tag = key.seal(&nonce, &ASSOCIATED, text);
    }

    fn open(&mut self) {
        let nonce = [0; NONCE];
        let tag = self.tags[(self.next()[0] & 1 ^ 1) as usize];
        let made;
        let key = if self.fresh {
            made = AeadKey::new(self.cipher, black_box(&self.secret));
            &made
        } else {
            &self.key
        };
        let at = self.bytes.len() - TAG;
        self.bytes[at..].copy_from_slice(&tag);
        self.is_wrong |= black_box(key.open(&nonce, &ASSOCIATED, &mut self.bytes)).is_err();
    }

    /// The nonce of the next call: its number, from 1.
    fn next(&mut self) -> [u8; NONCE] {
        self.calls += 1;
        let mut nonce = [0; NONCE];
        nonce[..8].copy_from_slice(&self.calls.to_le_bytes());
        nonce
    }

    /// Checks that all opened chunks were authentic, and that the last sealed one can be opened.
    ///
    /// # Errors
    /// [`Error::NotAuthentic`].
    pub(super) fn check(&self) -> Result<()> {
        let mut sealed = vec![3; 1000];
        let tag = self.key.seal(&[1; NONCE], &ASSOCIATED, &mut sealed);
        sealed.extend_from_slice(&tag);
        let opened = self.key.open(&[1; NONCE], &ASSOCIATED, &mut sealed);
        match opened {
            Ok(text) if !self.is_wrong && text == [3; 1000] => Ok(()),
            _ => Err(Error::NotAuthentic(self.cipher.name())),
        }
    }
}

/// An age file that is made or opened again and again.
struct AgeWork {
    plaintext: Vec<u8>,
    recipients: [Recipient; 1],
    keys: Keys,
    file: Vec<u8>,
    is_wrong: bool,
}

impl AgeWork {
    fn new() -> Result<AgeWork> {
        let identity = Identity::generate(KeyKind::X25519).map_err(random)?;
        let recipients = [identity.recipient()];
        let mut plaintext = vec![0; FILE];
        Mmix(2).fill(&mut plaintext);
        let file = age::seal(&recipients, &plaintext).map_err(SealError::from)?;
        let keys = Keys::Identities(vec![identity]);
        Ok(AgeWork { plaintext, recipients, keys, file, is_wrong: false })
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Seal => match age::seal_on(NonZeroUsize::MIN, &self.recipients, &self.plaintext) {
                Ok(file) => drop(black_box(file)),
                Err(_) => self.is_wrong = true,
            },
            Operation::Open => match age::open(&self.file, &self.keys) {
                Ok(text) => drop(black_box(text)),
                Err(_) => self.is_wrong = true,
            },
        }
    }

    fn check(&self) -> Result<()> {
        let opened = age::open(&self.file, &self.keys).map_err(SealError::from)?;
        if self.is_wrong || opened[..] != self.plaintext {
            return Err(Error::NotAuthentic("age file"));
        }
        Ok(())
    }
}

/// The error of the system's source of randomness.
pub(super) fn random(error: std::io::Error) -> SealError {
    age::AgeError::Random(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_opened_in_turn_is_authentic_each_time() {
        for cipher in Cipher::ALL {
            for fresh in [false, true] {
                let mut work = ChunkWork::new(cipher, 1000, fresh);
                let before = work.bytes.clone();
                work.open();
                assert!(work.bytes[..1000] != before[..1000] && !work.is_wrong);
                work.open();
                assert!(work.bytes[..1000] == before[..1000] && !work.is_wrong);
                work.check().expect("all was authentic");
                work.bytes[5] ^= 1;
                work.open();
                assert!(work.check().is_err());
            }
        }
    }
}
