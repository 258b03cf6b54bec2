//! CRC32C: polynomial 0x1EDC6F41 (Castagnoli), reflected, all ones before and inverted after.
//!
//! x86-64 has a kernel that is fast on packets. Other processors, and those without its instructions, use the crate
//! `crc32c`, which knows ARM's instructions.

#[cfg(target_arch = "x86_64")]
mod x86;

/// CRC32C of some bytes, one slice after the other.
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(sum) = x86::crc32c(parts) {
        return sum;
    }
    by_crate(parts)
}

/// CRC32C on any machine.
fn by_crate(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The polynomial without x^32, reflected.
    const POLYNOMIAL: u32 = 0x82F6_3B78;

    /// Continues `sum` by a byte, bit by bit.
    fn by_bits(sum: u32, byte: u8) -> u32 {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ ((sum & 1) * POLYNOMIAL))
    }

    type Crc32c = fn(&[&[u8]]) -> u32;
    const IMPLEMENTATIONS: [(&str, Crc32c); 2] = [("this machine's", crc32c), ("the crate", by_crate)];

    #[test]
    fn the_check_value_of_the_catalogues() {
        assert_eq!(POLYNOMIAL, 0x1EDC_6F41_u32.reverse_bits());
        assert_eq!(!b"123456789".iter().fold(!0, |sum, byte| by_bits(sum, *byte)), 0xE306_9283);
        for (name, crc32c) in IMPLEMENTATIONS {
            assert_eq!(crc32c(&[b"123456789"]), 0xE306_9283, "{name}");
            assert_eq!(crc32c(&[]), 0, "{name}");
        }
    }

    /// Compares the whole and parts.
    fn check(bytes: &[u8], start: usize, sum: u32) {
        let cut = (bytes.len() * 7919 + start) % (bytes.len() + 1);
        let (first, second) = bytes.split_at(cut);
        for (name, crc32c) in IMPLEMENTATIONS {
            let case = || format!("{name}: {} bytes from {start}, cut at {cut}", bytes.len());
            assert_eq!(crc32c(&[bytes]), sum, "{}", case());
            assert_eq!(crc32c(&[first, second]), sum, "{}", case());
            assert_eq!(crc32c(&[&first[..cut / 2], &first[cut / 2..], &[], second]), sum, "{}", case());
        }
    }

    /// Starts have every alignment, and the kernel cuts some of the lengths more than once.
    #[test]
    fn any_length_from_any_start_in_any_parts() {
        let mut state = 1u64;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(10_000)
        .collect();
        for start in 0..8 {
            let bytes = &bytes[start..];
            let mut sum = !0;
            for len in 0..9500 {
                if len <= 4200 || len % 37 == 0 {
                    check(&bytes[..len], start, !sum);
                }
                sum = by_bits(sum, bytes[len]);
            }
        }
    }
}
