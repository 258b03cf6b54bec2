//! Sealed payloads in parts: the bytes are those of the whole, and no chunk is sealed more often than it must be.

use super::*;
use fec_base::error::{Action, Error};
use fec_core::format::seal::SealedKind;
use fec_keys::cipher::Cipher;
use std::sync::atomic::{AtomicU64, Ordering};

/// A payload that counts the bytes that are read from it.
struct Counted {
    bytes: Vec<u8>,
    read: AtomicU64,
}

impl Counted {
    fn new(len: usize) -> Counted {
        Counted { bytes: (0..len).map(|i| (i % 251) as u8).collect(), read: AtomicU64::new(0) }
    }
}

impl Payload for Counted {
    fn size(&self) -> u64 {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read.fetch_add(out.len() as u64, Ordering::Relaxed);
        self.bytes.read_at(offset, out)
    }
}

fn sealer() -> Sealer {
    Sealer::with(&[7; 32], Cipher::ChaCha20Poly1305, SealedKind::Payload, b"no age file", None)
        .expect("a seal")
}

/// The whole sealed payload from a reader, which has no parts.
fn whole(payload: &Counted, sealer: &Sealer) -> Vec<u8> {
    let mut all = Vec::new();
    SealedReader::new(&payload.bytes[..], sealer).read_to_end(&mut all).expect("it is in memory");
    all
}

#[test]
fn parts_of_one_read_seal_each_chunk_once() {
    let sealer = sealer();
    let payload = Counted::new(10 * CHUNK + 1234);
    let expected = whole(&payload, &sealer);
    for row_len in [1000, 48_832, CHUNK, SEALED_CHUNK, 127_104, 3 * SEALED_CHUNK] {
        payload.read.store(0, Ordering::Relaxed);
        let sealed = SealedPayload::new(&payload, &sealer);
        let mut out = vec![0; expected.len()];
        let mut parts: Vec<&mut [u8]> = out.chunks_mut(row_len).collect();
        sealed.read_parts(0, &mut parts).expect("it is in memory");
        assert!(out == expected, "rows of {row_len}");
        assert_eq!(payload.read.load(Ordering::Relaxed), payload.size(), "rows of {row_len}");
        assert!(lock(&sealed.spare).len() <= 1, "rows of {row_len}");
    }
}

#[test]
fn parts_in_any_order_and_on_many_threads_are_those_of_the_whole() {
    let sealer = sealer();
    let payload = Counted::new(40 * CHUNK);
    let expected = whole(&payload, &sealer);
    let sealed = SealedPayload::new(&payload, &sealer);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (sealed, expected) = (&sealed, &expected);
            scope.spawn(move || {
                let mut at = thread * 1_000_003;
                for _ in 0..200 {
                    at = (at * 31 + 7_654_321) % expected.len();
                    let len = (at % 150_000).min(expected.len() - at);
                    let mut out = vec![0; len];
                    let (first, second) = out.split_at_mut(len / 3);
                    sealed.read_parts(at as u64, &mut [first, &mut [], second]).expect("it is in memory");
                    assert!(out == expected[at..at + len], "{len} bytes at {at}");
                }
            });
        }
    });
    assert!((1..=4).contains(&lock(&sealed.spare).len()), "a room for each thread at most");
}

#[test]
fn a_chunk_that_cannot_be_read_is_not_kept() {
    struct Failing(AtomicU64);
    impl Payload for Failing {
        fn size(&self) -> u64 {
            CHUNK as u64
        }

        fn read_at(&self, _offset: u64, out: &mut [u8]) -> Result<()> {
            out.fill(9);
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Err(Error::io(Action::Read, Place::Nowhere, io::ErrorKind::Other.into())),
                _ => Ok(()),
            }
        }
    }
    let sealer = sealer();
    let failing = Failing(AtomicU64::new(0));
    let sealed = SealedPayload::new(&failing, &sealer);
    let mut out = [0; 100];
    assert!(sealed.read_at(0, &mut out).is_err());
    assert!(lock(&sealed.spare).is_empty() && out == [0; 100]);
    sealed.read_at(0, &mut out).expect("the second time it can be read");
    let mut all = Vec::new();
    SealedReader::new(&[9; CHUNK][..], &sealer).read_to_end(&mut all).expect("it is in memory");
    assert_eq!(out, all[..100]);
}
