//! Every engine of this machine against published values and against the crate `sha2`.

use super::engine::Engine;
use super::rows::Rows;
use super::standard::{BLOCK, IV, State, to_bytes};
use crate::digest::Digest;
use sha2::{Digest as _, Sha256};

/// More rows than any kernel has lanes, so that every rest occurs.
const MOST_ROWS: usize = 40;

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digests of messages of one length, which may be any: this function pads them as FIPS 180-4, section 5.1.1, says.
fn digests(engine: Engine, messages: &[&[u8]]) -> Vec<Digest> {
    let padded = |message: &&[u8]| {
        let len = (message.len() + 9).next_multiple_of(BLOCK);
        let mut out = [*message, &[0x80]].concat();
        out.resize(len - 8, 0);
        out.extend((8 * message.len() as u64).to_be_bytes());
        out
    };
    let rows: Vec<Vec<u8>> = messages.iter().map(padded).collect();
    let mut states = vec![IV; rows.len()];
    engine.compress(&mut states, &rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
    states.iter().map(to_bytes).collect()
}

fn expected(messages: &[&[u8]]) -> Vec<Digest> {
    messages.iter().map(|message| Sha256::digest(message).into()).collect()
}

/// A message for each row.
fn messages(len: usize) -> Vec<Vec<u8>> {
    (0..MOST_ROWS).map(|row| bytes(len, row)).collect()
}

/// The examples of FIPS 180-4 (csrc.nist.gov, "SHA256.pdf" and the additional ones), and of CAVS 11.0, SHA256ShortMsg.
#[test]
fn published_examples() {
    let million = [b'a'; 1_000_000];
    let cavs = [
        0x5a, 0x86, 0xb7, 0x37, 0xea, 0xea, 0x8e, 0xe9, 0x76, 0xa0, 0xa2, 0x4d, 0xa6, 0x3e, 0x7e, 0xd7, 0xee,
        0xfa, 0xd1, 0x8a, 0x10, 0x1c, 0x12, 0x11, 0xe2, 0xb3, 0x65, 0x0c, 0x51, 0x87, 0xc2, 0xa8, 0xa6, 0x50,
        0x54, 0x72, 0x08, 0x25, 0x1f, 0x6d, 0x42, 0x37, 0xe6, 0x61, 0xc7, 0xbf, 0x4c, 0x77, 0xf3, 0x35, 0x39,
        0x03, 0x94, 0xc3, 0x7f, 0xa1, 0xa9, 0xf9, 0xbe, 0x83, 0x6a, 0xc2, 0x85, 0x09,
    ];
    let examples: [(&[u8], &str); 7] = [
        (b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (b"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        ),
        (
            b"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1",
        ),
        (&million, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"),
        (&[0xd3], "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"),
        (&cavs, "42e61e174fbb3897d6dd6cef3dd2802fe67b331953b06114a65c772859dfc1aa"),
    ];
    for engine in Engine::available() {
        for (message, digest) in examples {
            for count in [1, 2, 19] {
                let found = digests(engine, &vec![message; count]);
                assert!(found.iter().all(|found| hex(found) == digest), "{engine:?}: {count} x {digest}");
            }
        }
    }
}

/// The Monte Carlo test of CAVS (SHAVS, section 6.4): every digest depends on the three before, and every thousandth
/// begins anew.
#[test]
fn published_chain_of_digests() {
    let seed = *b"\x6d\x1e\x72\xad\x03\xdd\xeb\x5d\xe8\x91\xe5\x72\xe2\x39\x6f\x8d\xa0\x15\xd8\x99\xef\x0e\x79\x50\x31\x52\xd6\x01\x0a\x3f\xe6\x91";
    let checks = [
        (0, "e93c330ae5447738c8aa85d71a6c80f2a58381d05872d26bdd39f1fcd4f2b788"),
        (99, "6a912ba4188391a78e6f13d88ed2d14e13afce9db6f7dcbf4a48c24f3db02778"),
    ];
    // The whole test takes minutes without optimisation.
    let count = if cfg!(debug_assertions) { 1 } else { checks.len() };
    for engine in Engine::available() {
        // Some kernels fill their lanes, some do not.
        let mut last = [seed; 19];
        let mut done = 0;
        for (nth, digest) in &checks[..count] {
            while done <= *nth {
                let mut three = [last; 3];
                for _ in 0..1000 {
                    let all: [Vec<u8>; 19] =
                        std::array::from_fn(|row| three.map(|digests| digests[row]).concat());
                    let next = digests(engine, &all.each_ref().map(Vec::as_slice));
                    three = [three[1], three[2], next.try_into().expect("a digest of each")];
                }
                last = three[2];
                done += 1;
            }
            assert!(last.iter().all(|last| hex(last) == *digest), "{engine:?}: {nth}");
        }
    }
}

#[test]
fn every_length_and_every_number_of_rows() {
    let around_blocks =
        (4..20).flat_map(|blocks| [64 * blocks - 9, 64 * blocks - 8, 64 * blocks, 64 * blocks + 1]);
    for len in (0..=200).chain(around_blocks).chain([5000, 16_384]) {
        let messages = messages(len);
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let expected = expected(&messages);
        for engine in Engine::available() {
            let all = [0, 1, 55, 56, 64, 119, 128, 200, 1024].contains(&len);
            for count in 0..=MOST_ROWS {
                if all || [1, 2, 3, 8, 9, 15, 17, MOST_ROWS].contains(&count) {
                    let found = digests(engine, &messages[..count]);
                    assert!(found == expected[..count], "{engine:?}: {count} rows of {len} bytes");
                }
            }
        }
    }
}

/// The node function: blocks that begin at an unreadable page or end at one, from an initial value of their own.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn blocks_are_compressed_each_by_itself() {
    use crate::guarded::Guarded;
    let guarded = Guarded::new(&bytes(64 << 10, 3));
    let start: State = std::array::from_fn(|i| 0x0123_4567 << i);
    for engine in Engine::available() {
        for count in 0..=MOST_ROWS {
            for blocks in [guarded.start(BLOCK * count), guarded.end(BLOCK * count)] {
                let blocks: &[[u8; BLOCK]] = blocks.as_chunks().0;
                let mut found = vec![[0; 32]; count];
                engine.compress_each(&start, blocks, &mut found);
                let expected = blocks.iter().map(|block| {
                    let mut state = start;
                    sha2::block_api::compress256(&mut state, &[*block]);
                    to_bytes(&state)
                });
                assert!(found.into_iter().eq(expected), "{engine:?}: {count} blocks");
            }
        }
    }
}

/// Rows come in pieces of whole blocks, cut anywhere, some of them on other threads.
#[test]
fn pieces_of_rows_hash_like_the_rows() {
    const LEN: usize = 100 * BLOCK;
    let messages = messages(LEN);
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let expected = expected(&messages);
    for engine in Engine::available() {
        for (seed, count) in [1, 2, 5, 16, 18, 31, 40].into_iter().enumerate() {
            let mut rows = Rows { engine, states: vec![IV; count] };
            let (mut start, mut cuts) = (0, bytes(200, seed).into_iter());
            while start < LEN {
                // A piece may have no block.
                let end = LEN.min(start + usize::from(cuts.next().expect("enough") % 12) * BLOCK);
                let pieces: Vec<&[u8]> =
                    messages[..count].iter().map(|message| &message[start..end]).collect();
                match end % 128 {
                    0 => rows.hash(&pieces),
                    _ => rows.shares(7).zip(pieces.chunks(7)).for_each(|(share, pieces)| share.hash(pieces)),
                }
                start = end;
            }
            assert!(rows.finish(LEN) == expected[..count], "{engine:?}: {count} rows");
        }
    }
}

/// Rows border on an unreadable page, in front or behind: a load of one byte too many ends this process.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn nothing_is_loaded_from_beside_a_row() {
    use crate::guarded::Guarded;
    let rows: Vec<Guarded> = (0..MOST_ROWS).map(|row| Guarded::new(&bytes(64 << 10, row))).collect();
    for engine in Engine::available() {
        for count in 1..=MOST_ROWS {
            for len in [0, 64, 128, 192, 1024] {
                for is_behind in [false, true] {
                    let row = |row| if is_behind { Guarded::end(row, len) } else { Guarded::start(row, len) };
                    let rows: Vec<&[u8]> = rows[..count].iter().map(row).collect();
                    let mut states = vec![IV; count];
                    engine.compress(&mut states, &rows);
                    for (state, row) in states.iter().zip(&rows) {
                        let mut expected: State = IV;
                        sha2::block_api::compress256(&mut expected, row.as_chunks().0);
                        assert_eq!(*state, expected, "{engine:?}: {count} rows of {len} bytes");
                    }
                }
            }
        }
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "a panic ends it")]
fn rows_that_do_not_fit_together_are_refused() {
    let block = [0; BLOCK];
    let refused = |engine: Engine, states: usize, rows: &[&[u8]]| {
        let compress = || engine.compress(&mut vec![IV; states], rows);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(compress)).is_err()
    };
    for engine in Engine::available() {
        assert!(!refused(engine, 2, &[&block, &block]));
        assert!(refused(engine, 1, &[&block, &block]), "a row without a state");
        assert!(refused(engine, 3, &[&block, &block]), "a state without a row");
        assert!(refused(engine, 2, &[&block, &block[..0]]), "rows of two lengths");
        assert!(refused(engine, 1, &[&block[..63]]), "part of a block");
    }
}
