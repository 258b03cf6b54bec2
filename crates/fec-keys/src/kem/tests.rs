//! The engine that is built in against RustCrypto, against published values, and with keys that are to be refused.

use super::rust_crypto as oracle;
use super::*;
use zeroize::Zeroizing;

fn hex(text: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("hexadecimal digits"))
}

/// RFC 7748, section 6.1.
#[test]
fn published_agreement() {
    let sides = [
        (
            "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        ),
        (
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
            "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
        ),
    ];
    let shared = hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
    for ((secret, public), (_, other)) in [(sides[0], sides[1]), (sides[1], sides[0])] {
        let key = X25519Key::new(&Zeroizing::new(hex(secret)));
        assert_eq!(key.public(), hex(public));
        assert_eq!(key.agree(&hex(other)).as_deref(), Some(&shared));
    }
}

/// Any 32 bytes are a secret and a point. Points of low order give zero, whoever multiplies them (RFC 7748,
/// section 6.1).
#[test]
fn both_engines_agree_on_any_point() {
    for nth in 0..200u8 {
        let secret = random().expect("randomness");
        let mut point: [u8; 32] = *random().expect("randomness");
        match nth {
            // Zero and one, then p - 1, p and p + 1, and the same with the bit that does not count.
            0..2 => point = std::array::from_fn(|i| if i == 0 { nth } else { 0 }),
            2..5 => {
                point = [0xFF; 32];
                (point[0], point[31]) = (0xEA + nth, 0x7F);
            }
            5..8 => (point[0], point[31]) = (0xE7 + nth, 0xFF),
            _ => {}
        }
        let (mine, other) = (X25519Key::new(&secret), oracle::X25519Key::new(&secret));
        assert_eq!(mine.public(), other.public());
        assert_eq!(mine.agree(&point), other.agree(&point), "{point:?}");
        assert!(nth >= 5 || mine.agree(&point).is_none(), "{nth}: a point of low order");
    }
}

#[test]
fn both_engines_open_what_either_encapsulates() {
    for (seed, key) in generate(8).expect("randomness") {
        let other = oracle::DecapsulationKey::from_seed(&seed);
        let (public, other_public) = (key.encapsulation_key(), other.encapsulation_key());
        assert_eq!(public.to_bytes(), other_public.to_bytes());
        let read = EncapsulationKey::from_bytes(&public.to_bytes()).expect("a key");
        for (mut ciphertext, secret) in
            [read.encapsulate().expect("randomness"), other_public.encapsulate().expect("randomness")]
        {
            assert_eq!(key.decapsulate(&ciphertext), secret);
            assert_eq!(other.decapsulate(&ciphertext), secret);
            // Another ciphertext gives a secret that follows from it and the seed (FIPS 203, algorithm 18).
            ciphertext[usize::from(secret[0])] ^= 1 << (secret[1] % 8);
            assert_ne!(key.decapsulate(&ciphertext), secret);
            assert_eq!(key.decapsulate(&ciphertext), other.decapsulate(&ciphertext));
        }
    }
}

/// A coefficient of q, or of 4095, anywhere (FIPS 203, section 7.2); any seed of the matrix is one.
#[test]
fn coefficients_that_are_not_reduced_are_refused() {
    let key = generate(1).expect("randomness").remove(0).1.encapsulation_key().to_bytes();
    for nth in 0..768 {
        for (value, is_reduced) in [(3328u16, true), (3329, false), (4095, false)] {
            let mut bytes = key;
            let [low, high] = value.to_le_bytes();
            match (nth % 2, &mut bytes[nth / 2 * 3..]) {
                (0, [first, middle, ..]) => (*first, *middle) = (low, *middle & 0xF0 | high),
                (_, [_, middle, last, ..]) => {
                    (*middle, *last) = (*middle & 0x0F | low << 4, (value >> 4) as u8);
                }
                _ => unreachable!("768 coefficients"),
            }
            assert_eq!(EncapsulationKey::from_bytes(&bytes).is_some(), is_reduced, "{value} at {nth}");
            assert_eq!(oracle::EncapsulationKey::from_bytes(&bytes).is_some(), is_reduced);
        }
    }
    let mut bytes = key;
    bytes[PUBLIC_LEN - 32..].fill(0xFF);
    assert!(EncapsulationKey::from_bytes(&bytes).is_some());
}
