//! CRC32C, by whichever crate is fast on the machine at hand.
//!
//! With carry-less multiplication `crc-fast` is four times as fast on packets as the CRC instruction that `crc32c`
//! uses. But the cores of many ARM boards have that instruction and no carry-less multiplication.

/// CRC32C of some bytes, one slice after the other.
#[cfg(target_arch = "x86_64")]
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    // Pieces cost: the crate combines their checksums.
    if let [bytes] = parts {
        return crc_fast::crc32_iscsi(bytes);
    }
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}

/// CRC32C of some bytes, one slice after the other.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    parts.iter().fold(0, |sum, part| crc32c::crc32c_append(sum, part))
}

#[cfg(test)]
mod tests {
    /// Bit by bit, from the polynomial (Castagnoli), reflected.
    fn by_bits(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |sum: u32, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ ((sum & 1) * 0x82F6_3B78))
        })
    }

    #[test]
    fn parts_of_any_length() {
        let bytes: Vec<u8> = (0..4000u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
        assert_eq!(by_bits(b"123456789"), 0xE306_9283, "the check value of the catalogues");
        for len in (0..600).chain([1350, 1356, 1374, 4000]) {
            let bytes = &bytes[4000 - len..];
            for cut in [0, len / 3, len.min(18), len.min(36), len] {
                let (first, second) = bytes.split_at(cut);
                assert_eq!(super::crc32c(&[first, second]), by_bits(bytes), "{len} bytes cut at {cut}");
            }
        }
    }
}
