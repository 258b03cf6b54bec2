//! BLAKE3's compression over many inputs at once. This crate is the one door to `blake3::platform`, which is public but
//! not documented and may change in any version; `Cargo.toml` names the only version that it was written for.

use blake3::IncrementCounter;
use blake3::platform::Platform;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The counters of inputs that are hashed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// All have the first one.
    Same,
    /// Each has the next one: successive chunks of a message.
    Next,
}

/// Lanes of the vectors that load inputs without a byte behind them. For a rest of 2 to 7 inputs, `blake3`'s code for
/// AVX2 and AVX-512 loads up to 48 bytes behind the first one, which may end where memory does.
const WHOLE: usize = 8;

/// Lanes of the widest vectors.
const WIDEST: usize = 16;

/// The vectors of one kind of processor.
#[derive(Clone, Copy, Debug)]
pub struct Lanes(Platform);

impl Lanes {
    /// The widest vectors of this processor.
    pub fn detect() -> Lanes {
        Lanes(Platform::detect())
    }

    /// Every kind of vectors that this processor has, the widest first, and code without vectors.
    pub fn all() -> Vec<Lanes> {
        #[cfg(target_arch = "x86_64")]
        let others = [Platform::avx2(), Platform::sse41(), Platform::sse2()];
        #[cfg(not(target_arch = "x86_64"))]
        let others: [Option<Platform>; 0] = [];
        let all = [Platform::detect(), Platform::portable()].into_iter().chain(others.into_iter().flatten());
        all.map(Lanes).collect()
    }

    /// Inputs that fill all lanes: 1 to 16.
    pub fn count(self) -> usize {
        self.0.simd_degree()
    }

    /// Hashes inputs of `LEN` bytes each, a multiple of 64 up to 1024, to 32 bytes each of `out`. `first` is the
    /// counter of the first input; the flags are those of every block, of the first and of the last (BLAKE3
    /// specification, sections 2.1 and 2.2). Another `LEN` does not compile.
    ///
    /// # Panics
    /// If `out` is shorter than 32 bytes for each input.
    pub fn hash_many<const LEN: usize>(
        self,
        inputs: &[&[u8; LEN]],
        key: &[u32; 8],
        (first, then): (u64, Counter),
        (flags, start, end): (u8, u8, u8),
        out: &mut [u8],
    ) {
        const { assert!(LEN > 0 && LEN.is_multiple_of(64) && LEN <= 1024, "whole blocks of one chunk") };
        // `blake3` checks it in debug builds alone.
        assert!(out.len() / 32 >= inputs.len(), "32 bytes for each input");
        let hash = |inputs: &[&[u8; LEN]], first: u64, out: &mut [u8]| {
            let increment = match then {
                Counter::Same => IncrementCounter::No,
                Counter::Next => IncrementCounter::Yes,
            };
            self.0.hash_many(inputs, key, first, increment, flags, start, end, out);
        };
        let rest = match inputs.len() % self.count() {
            rest if self.count() < WHOLE || rest % WHOLE < 2 => return hash(inputs, first, out),
            rest if rest > WHOLE => rest,
            rest => rest % WHOLE,
        };
        let (inputs, last) = inputs.split_at(inputs.len() - rest);
        let (out, out_last) = out.split_at_mut(32 * inputs.len());
        hash(inputs, first, out);
        let next = match then {
            Counter::Same => first,
            Counter::Next => first + inputs.len() as u64,
        };
        if let [one, other] = last {
            let second = next + u64::from(then == Counter::Next);
            hash(&[*one], next, out_last);
            return hash(&[*other], second, &mut out_last[32..]);
        }
        // All lanes are used: it takes no longer than a few would.
        let width = if rest > WHOLE { WIDEST } else { WHOLE };
        let (mut filled, mut values) = ([last[0]; WIDEST], [0; 32 * WIDEST]);
        filled[..rest].copy_from_slice(last);
        hash(&filled[..width], next, &mut values);
        out_last[..32 * rest].copy_from_slice(&values[..32 * rest]);
    }
}

#[doc(hidden)]
/// The steps to take when the version of `blake3` moves; the tests here and in `fec-core` print them.
pub const WHAT_TO_DO: &str = "the interface that fec-blake3-lanes uses may have changed:
  1. compare src/platform.rs, and IncrementCounter in src/lib.rs, of both versions of blake3;
  2. adapt crates/fec-blake3-lanes until `cargo test -p fec-core --features blake3-lanes digest` passes, also on ARM
     (scripts/checks/test-arm.sh);
  3. compare speed with scripts/bench/peers.sh: checking and encoding must not be slower than before;
  4. set `blake3` in crates/fec-blake3-lanes/Cargo.toml, and WRITTEN_FOR in its tests, to the new version.
Until that is done, the feature blake3-lanes of fec-core can be left out: the digests are the same";

#[cfg(test)]
mod tests {
    use super::*;

    /// The version of `blake3` whose interface this crate uses.
    const WRITTEN_FOR: &str = "1.8.7";

    #[test]
    fn blake3_is_of_the_version_that_this_was_written_for() {
        let manifest = include_str!("../Cargo.toml");
        let pin = format!("blake3 = \"={WRITTEN_FOR}\"");
        assert!(manifest.lines().any(|line| line == pin), "no line `{pin}` in Cargo.toml: {WHAT_TO_DO}");
    }

    /// Whole messages of one chunk, by all lanes; `fec-core` covers chunks, trees and the bytes behind an input.
    #[test]
    fn messages_have_the_digests_of_the_documented_interface() {
        const IV: [u32; 8] = [
            0x6a09_e667,
            0xbb67_ae85,
            0x3c6e_f372,
            0xa54f_f53a,
            0x510e_527f,
            0x9b05_688c,
            0x1f83_d9ab,
            0x5be0_cd19,
        ];
        let messages: Vec<[u8; 192]> =
            (0..40).map(|nth| std::array::from_fn(|at| (at * 7 + nth) as u8)).collect();
        for lanes in Lanes::all() {
            for count in 0..=messages.len() {
                let inputs: Vec<&[u8; 192]> = messages[..count].iter().collect();
                let mut out = vec![0; 32 * count];
                lanes.hash_many(&inputs, &IV, (0, Counter::Same), (0, 1, 2 | 8), &mut out);
                for (message, digest) in inputs.iter().zip(out.chunks(32)) {
                    assert!(
                        blake3::hash(&message[..]).as_bytes() == digest,
                        "{count}, {lanes:?}: {WHAT_TO_DO}"
                    );
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "32 bytes for each input")]
    fn an_output_that_is_too_short_is_not_written_to() {
        Lanes::detect().hash_many(
            &[&[0; 64], &[1; 64]],
            &[0; 8],
            (0, Counter::Next),
            (0, 0, 0),
            &mut [0; 63],
        );
    }
}
