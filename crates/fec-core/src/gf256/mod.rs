//! The field GF(2^8) with the reduction polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11D).
//!
//! Addition is exclusive or. 2 generates the multiplicative group, so products are sums of logarithms modulo 255; the
//! tables are built at compile time from this alone. Set-up code computes here, an element at a time. Bytes in bulk go
//! through a [`kernel`], which holds one file for each instruction set.
//!
//! The field knows nothing of codes, shards or points.

pub mod kernel;

use std::sync::LazyLock;

/// The reduction polynomial, with its term x^8.
pub const POLYNOMIAL: u16 = 0x11D;

/// `EXP[i]` is 2^i. It runs over two periods, so that the sum of two logarithms needs no reduction.
pub(crate) const EXP: [u8; 510] = {
    let mut exp = [0; 510];
    let mut power = 1u16;
    let mut i = 0;
    while i < 255 {
        exp[i] = power as u8;
        exp[i + 255] = power as u8;
        power <<= 1;
        if power & 0x100 != 0 {
            power ^= POLYNOMIAL;
        }
        i += 1;
    }
    exp
};

/// `LOG[a]` is the i below 255 with 2^i = a. `LOG[0]` means nothing and is never used.
const LOG: [u8; 256] = {
    let mut log = [0; 256];
    let mut i = 0;
    while i < 255 {
        log[EXP[i] as usize] = i as u8;
        i += 1;
    }
    log
};

/// All products of a factor: `products_of(a)[b]` is a·b. The first call computes the 64 KiB of all factors: only the
/// portable kernel and the ends of rows need them.
#[inline]
pub(crate) fn products_of(factor: u8) -> &'static [u8; 256] {
    static PRODUCTS: LazyLock<Box<[[u8; 256]]>> =
        LazyLock::new(|| (0..=255).map(|a| std::array::from_fn(|b| mul(a, b as u8))).collect());
    &PRODUCTS[usize::from(factor)]
}

/// The product a·b.
#[inline]
pub const fn mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// The inverse of `a`: `mul(a, inv(a))` is 1.
///
/// # Panics
///
/// When `a` is 0, which has no inverse.
#[inline]
pub const fn inv(a: u8) -> u8 {
    assert!(a != 0, "0 has no inverse");
    EXP[255 - LOG[a as usize] as usize]
}

/// The quotient a/b.
///
/// # Panics
///
/// When `b` is 0.
#[inline]
pub const fn div(a: u8, b: u8) -> u8 {
    mul(a, inv(b))
}

/// A product of many nonzero factors, held as the sum of their logarithms.
///
/// Multiplying costs one lookup and one addition; the reduction modulo 255 is paid once, at the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogProduct(u32);

impl LogProduct {
    /// Multiplies by `factor`, which must not be 0. The sum holds more than 2^23 factors.
    #[inline]
    pub(crate) fn times(self, factor: u8) -> LogProduct {
        debug_assert_ne!(factor, 0);
        LogProduct(self.0 + u32::from(LOG[usize::from(factor)]))
    }

    /// Divides by `divisor`, which must not be 0.
    #[inline]
    pub(crate) fn over(self, divisor: u8) -> LogProduct {
        debug_assert_ne!(divisor, 0);
        LogProduct(self.0 + 255 - u32::from(LOG[usize::from(divisor)]))
    }

    /// Multiplies by another product.
    #[inline]
    pub(crate) fn and(self, other: LogProduct) -> LogProduct {
        LogProduct(self.0 + other.0)
    }

    /// The field element.
    #[inline]
    pub(crate) fn value(self) -> u8 {
        EXP[(self.0 % 255) as usize]
    }

    /// The inverse of the product.
    #[inline]
    pub(crate) fn inverse(self) -> LogProduct {
        LogProduct(255 - self.0 % 255)
    }
}
