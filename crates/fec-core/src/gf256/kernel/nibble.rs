//! Multiplication by two shuffles, for instruction sets that can look up sixteen bytes at once.
//!
//! c·(16h + l) = c·16h + c·l, and each half has sixteen values: two tables of sixteen bytes for each
//! coefficient (Plank, Greenan, Miller: Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions,
//! FAST 2013).

use crate::gf256::mul;

/// Bytes of the two tables of one coefficient.
pub(super) const TABLE_LEN: usize = 32;

/// For each coefficient the products with 0..16, then those with 0, 16, 32, …, 240.
static TABLES: [[u8; TABLE_LEN]; 256] = {
    let mut tables = [[0; TABLE_LEN]; 256];
    let mut c = 0;
    while c < 256 {
        let mut nibble = 0;
        while nibble < 16 {
            tables[c][nibble] = mul(c as u8, nibble as u8);
            tables[c][16 + nibble] = mul(c as u8, (nibble << 4) as u8);
            nibble += 1;
        }
        c += 1;
    }
    tables
};

/// Writes the two tables of `coefficient`.
pub(super) fn pack(coefficient: u8, table: &mut [u8]) {
    table.copy_from_slice(self::table(coefficient));
}

/// The two tables of `coefficient`.
pub(super) fn table(coefficient: u8) -> &'static [u8; TABLE_LEN] {
    &TABLES[usize::from(coefficient)]
}
