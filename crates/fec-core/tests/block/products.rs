//! Every product of two bytes, by every backend.

use fec_core::block::{Code, Plan};
use fec_core::gf256::{self, kernel::Backend};

/// The product by its definition: carry-less multiplication bit by bit, then reduction.
fn product(a: u8, b: u8) -> u8 {
    let mut wide = 0u16;
    for bit in 0..8 {
        if b >> bit & 1 == 1 {
            wide ^= u16::from(a) << bit;
        }
    }
    for bit in (8..15).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11D << (bit - 8);
        }
    }
    wide as u8
}

#[test]
fn field_operations_follow_the_definition() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(gf256::mul(a, b), product(a, b), "{a} · {b}");
            if b != 0 {
                assert_eq!(product(gf256::div(a, b), b), a, "{a} / {b}");
            }
        }
        if a != 0 {
            assert_eq!(product(a, gf256::inv(a)), 1, "1 / {a}");
        }
    }
}

#[test]
#[should_panic(expected = "0 has no inverse")]
fn zero_has_no_inverse() {
    gf256::inv(0);
}

/// The line through the values f(0) and f(1) has at y the value (y + 1)·f(0) + y·f(1), for all 256 points y. If one of
/// the values is 0 and the other every byte in turn, the rows at y are all products with y + 1, and with y.
#[test]
fn all_65536_products_of_every_backend() {
    let code = Code::new(2, 254).unwrap();
    let all: Vec<u8> = (0..=255).collect();
    let none = vec![0; 256];
    for backend in Backend::available() {
        let plan = Plan::new(code, backend, &[0, 1], &all).unwrap();
        for (src, change) in [([&all[..], &none], 1), ([&none[..], &all], 0)] {
            let mut out = vec![[0; 256]; 256];
            plan.run(&src, &mut out.iter_mut().map(|row| &mut row[..]).collect::<Vec<_>>());
            let mut right = 0;
            for (y, row) in all.iter().zip(&out) {
                right += all.iter().zip(row).filter(|(b, out)| product(y ^ change, **b) == **out).count();
            }
            assert_eq!(right, 65536, "right products of {backend:?}");
        }
    }
}
