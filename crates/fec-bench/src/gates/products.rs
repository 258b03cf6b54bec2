//! Every product of two bytes, as a kernel computes it.

use fec_core::block::{Code, Engine, Plan};
use fec_core::gf256::kernel::Backend;

pub(crate) const ALL: u64 = 256 * 256;

/// The product by its definition: carry-less multiplication bit by bit, then reduction by x^8 + x^4 + x^3 + x^2 + 1.
fn product(a: u8, b: u8) -> u8 {
    let mut wide = (0..8).filter(|bit| b >> bit & 1 == 1).fold(0u16, |wide, bit| wide ^ u16::from(a) << bit);
    for bit in (8..15).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11D << (bit - 8);
        }
    }
    wide as u8
}

/// Number of right products. The line through the values f(0) = 0 and f(1) = b has at y the value y·b: one matrix with
/// all 256 coefficients, over a row with all 256 bytes.
pub(crate) fn right(backend: Backend) -> u64 {
    let all: Vec<u8> = (0..=255).collect();
    let none = vec![0; 256];
    let code = Code::new(2, 254).expect("256 shards");
    let plan =
        Plan::with_engine(code, backend, &[0, 1], &all, Engine::Matrix).expect("a matrix serves any shards");
    let mut out = vec![[0u8; 256]; 256];
    plan.run(&[&none, &all], &mut out.iter_mut().map(|row| &mut row[..]).collect::<Vec<_>>());
    let right = |(y, row): (&u8, &[u8; 256])| {
        all.iter().zip(row).filter(|(b, out)| product(*y, **b) == **out).count() as u64
    };
    all.iter().zip(&out).map(right).sum()
}
