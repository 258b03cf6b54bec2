//! Codewords, by the definition.

use crate::{encode, encoded, noise, scalar};
use fec_core::area::AreaCode;
use fec_core::executor::Inline;
use fec_core::gf256::kernel::Backend;
use fec_core::gf65536::{mul, point};

/// Column `t` of all blocks.
fn column(all: &[Vec<u8>], t: usize) -> Vec<u16> {
    let at = t / 64 * 128 + t % 64;
    all.iter().map(|block| u16::from_le_bytes([block[at], block[at + 64]])).collect()
}

/// Fails unless Σ x_p^i · v_p is zero for each i below m. (That of m is not, or the test would say nothing.)
fn assert_codeword(code: AreaCode, all: &[Vec<u8>], t: usize) {
    let mut terms = column(all, t);
    for power in 0..=code.m() {
        let sum = terms.iter().fold(0, |sum, term| sum ^ term);
        assert_eq!(sum == 0, power < code.m(), "{code:?}, column {t}, power {power}");
        for (p, term) in terms.iter_mut().enumerate() {
            *term = mul(*term, point(p as u16));
        }
    }
}

#[test]
fn all_small_areas_are_codewords() {
    for m in 1..=33 {
        for k in (1..=40).step_by(3) {
            let code = AreaCode::new(k, m).unwrap();
            let all = encoded(code, 128, scalar(), 7);
            [0, 63].into_iter().for_each(|t| assert_codeword(code, &all, t));
        }
    }
}

#[test]
fn larger_areas_are_codewords() {
    for (k, m) in [
        (1, 64),
        (64, 1),
        (100, 63),
        (65, 64),
        (63, 65),
        (300, 97),
        (777, 128),
        (500, 130),
        (900, 511),
        (40, 512),
        (700, 513),
        (1500, 1000),
        (5, 3000),
        (2000, 2049),
        (3000, 4096),
        (60_000, 3),
    ] {
        let code = AreaCode::new(k, m).unwrap();
        let all = encoded(code, 128, Backend::best(), 11);
        assert_codeword(code, &all, 17);
    }
}

/// Shapes of all kinds of passes: every number of layers, bytes and symbols as skews, whole cosets and a rest.
#[test]
fn kernels_agree_with_the_scalar_one() {
    for (k, m, block_len) in [
        (9, 2, 128),
        (300, 5, 384),
        (130, 31, 128),
        (900, 60, 128),
        (260, 64, 2048 + 128),
        (1000, 100, 256),
        (1000, 256, 128),
        (500, 400, 128),
        (3000, 1000, 128),
        (1100, 2048, 128),
        (4500, 3900, 128),
        (17_000, 700, 128),
        (34_000, 1500, 128),
        (9000, 8192, 128),
        (1000, 16_000, 128),
    ] {
        let code = AreaCode::new(k, m).unwrap();
        let expected = encoded(code, block_len, scalar(), 3);
        for backend in Backend::available() {
            let all = encoded(code, block_len, backend, 3);
            let wrong = (0..code.n()).find(|&p| all[p] != expected[p]);
            assert_eq!(wrong, None, "{code:?} x {block_len} on {}", backend.name());
        }
    }
}

#[test]
fn the_longest_area() {
    let code = AreaCode::new(32_768, 32_768).unwrap();
    assert_codeword_of_some_powers(code, &encoded(code, 128, Backend::best(), 5));
}

/// The first powers, a few others by repeated squares, and the one that is not zero.
fn assert_codeword_of_some_powers(code: AreaCode, all: &[Vec<u8>]) {
    let values = column(all, 31);
    for power in [0, 1, 2, 3, 1000, 20_001, code.m() - 1, code.m()] {
        let sum = values.iter().enumerate().fold(0, |sum, (p, &value)| {
            let (mut term, mut square, mut left) = (value, point(p as u16), power);
            while left > 0 {
                if left & 1 == 1 {
                    term = mul(term, square);
                }
                (square, left) = (mul(square, square), left >> 1);
            }
            sum ^ term
        });
        assert_eq!(sum == 0, power < code.m(), "power {power}");
    }
}

#[test]
fn one_recovery_block_is_the_parity() {
    let code = AreaCode::new(500, 1).unwrap();
    for backend in Backend::available() {
        let all = encoded(code, 256, backend, 1);
        let parity = all[1..]
            .iter()
            .fold(vec![0; 256], |sum, block| sum.iter().zip(block).map(|(a, b)| a ^ b).collect());
        assert!(all[0] == parity);
    }
}

#[test]
fn check_values_of_the_specification() {
    for (originals, recovery) in [
        (vec![0x1234, 0xABCD], vec![0x7604, 0xC066, 0x0F9B]),
        ((1..12).map(|i| 0x1111 * i).collect(), vec![0xCCCC, 0xDDDD, 0xEEEE, 0xFFFF, 0x0000]),
    ] {
        let block = |symbol: &u16| {
            let mut block = noise(128, 0);
            [block[5], block[69]] = symbol.to_le_bytes();
            block
        };
        let code = AreaCode::new(originals.len(), recovery.len()).unwrap();
        for backend in Backend::available() {
            let all = encode(code, originals.iter().map(block).collect(), backend, 2, &Inline);
            assert_eq!(column(&all, 5)[..recovery.len()], recovery, "{}", backend.name());
        }
    }
}
