//! Bech32 (BIP 173), the text of age's keys, without its limit of 90 characters, as in age.

use zeroize::Zeroizing;

const CHARSET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
const CHECKSUM_LEN: usize = 6;

/// The text of `data` under a prefix in lower case; the text is in lower case too.
pub(super) fn encode(prefix: &str, data: &[u8]) -> Zeroizing<String> {
    let len = data.len() * 8;
    let digits = len.div_ceil(5);
    let mut values = Zeroizing::new(Vec::with_capacity(digits + CHECKSUM_LEN));
    values.extend((0..digits).map(|digit| {
        let bit = |at: usize| data.get(at / 8).map_or(0, |byte| byte >> (7 - at % 8) & 1);
        (0..5).fold(0, |value, i| value << 1 | bit(digit * 5 + i))
    }));
    let zeros = [0; CHECKSUM_LEN];
    let sum = polymod(expanded(prefix).chain(values.iter().copied()).chain(zeros)) ^ 1;
    values.extend((0..CHECKSUM_LEN).rev().map(|i| (sum >> (5 * i) & 31) as u8));
    let mut text = Zeroizing::new(String::with_capacity(prefix.len() + 1 + values.len()));
    text.push_str(prefix);
    text.push('1');
    text.extend(values.iter().map(|&value| CHARSET[usize::from(value)] as char));
    text
}

/// The data of a text under this prefix, which is in lower case. The text is all in upper or all in lower case, and
/// otherwise one that [`encode`] makes; `None` for any other text.
pub(super) fn decode(prefix: &str, text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mixed = text.bytes().any(|c| c.is_ascii_uppercase()) && text.bytes().any(|c| c.is_ascii_lowercase());
    let (head, digits) = text.rsplit_once('1')?;
    if mixed || !head.eq_ignore_ascii_case(prefix) || digits.len() < CHECKSUM_LEN {
        return None;
    }
    let mut values = Zeroizing::new(Vec::with_capacity(digits.len()));
    for digit in digits.bytes() {
        let value = CHARSET.iter().position(|&c| c == digit.to_ascii_lowercase())?;
        values.push(value as u8);
    }
    if polymod(expanded(prefix).chain(values.iter().copied())) != 1 {
        return None;
    }
    let values = &values[..values.len() - CHECKSUM_LEN];
    let mut data = Zeroizing::new(Vec::with_capacity(values.len() * 5 / 8));
    let (mut bits, mut held) = (0_u32, 0);
    for &value in values {
        bits = bits << 5 | u32::from(value);
        held += 5;
        if held >= 8 {
            held -= 8;
            data.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // Bits that are left only fill the last digit: they are fewer than a digit's bits, and all zero.
    (held < 5 && bits == 0).then_some(data)
}

fn expanded(prefix: &str) -> impl Iterator<Item = u8> {
    prefix.bytes().map(|c| c >> 5).chain([0]).chain(prefix.bytes().map(|c| c & 31))
}

fn polymod(values: impl Iterator<Item = u8>) -> u32 {
    values.fold(1, |sum, value| {
        let top = sum >> 25;
        let next = (sum & 0x01ff_ffff) << 5 ^ u32::from(value);
        GENERATOR
            .iter()
            .enumerate()
            .fold(next, |next, (i, term)| if top >> i & 1 == 1 { next ^ term } else { next })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// BIP 173's test vectors with a prefix and no or some data, and the examples of the specification of age.
    #[test]
    fn published_strings() {
        assert_eq!(decode("a", "A12UEL5L").expect("it is valid").as_slice(), b"");
        let split = "split1checkupstagehandshakeupstreamerranterredcaperred2y9e3w";
        let data = decode("split", split).expect("it is valid");
        assert_eq!(data.len(), 30);
        assert_eq!(encode("split", &data).as_str(), split);
        let secret = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";
        assert_eq!(decode("age-secret-key-", secret).expect("it is valid").as_slice(), [0x42; 32]);
        assert_eq!(encode("age-secret-key-", &[0x42; 32]).to_uppercase(), secret);
    }

    #[test]
    fn everything_else_is_refused() {
        let text = "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
        assert_eq!(decode("age", text).expect("it is valid").len(), 32);
        assert!(decode("age", &text.to_uppercase()).is_some());
        assert!(decode("ag", text).is_none());
        assert!(decode("age", &text.replacen("age1z", "age1Z", 1)).is_none(), "two cases");
        assert!(decode("age", "").is_none());
        assert!(decode("age", "age1").is_none());
        for at in 0..text.len() {
            for byte in [b'1', b'b', b'q', b'l', b' ', b'\n', b'Q', b'~', b'\0'] {
                let mut other = text.as_bytes().to_vec();
                other[at] = byte;
                let other = String::from_utf8(other).expect("it is ASCII");
                assert_eq!(decode("age", &other).is_some(), other == text, "{other}");
            }
            assert!(decode("age", &text[..at]).is_none());
        }
        // Digits that hold 8 bits too many, and a last digit that is not zero in its unused bits.
        for values in [&[0_u8; 49][..], &[0; 51], &[[0; 51].as_slice(), &[1]].concat()] {
            let sum = polymod(expanded("age").chain(values.iter().copied()).chain([0; CHECKSUM_LEN])) ^ 1;
            let sum = (0..CHECKSUM_LEN).rev().map(|i| (sum >> (5 * i) & 31) as u8);
            let digits = values.iter().copied().chain(sum).map(|value| CHARSET[usize::from(value)] as char);
            assert!(decode("age", &format!("age1{}", digits.collect::<String>())).is_none(), "{values:?}");
        }
    }
}
