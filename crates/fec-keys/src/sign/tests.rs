//! Keys and signatures of minisign 0.11 itself, and attacks on them.

use super::*;
use fec_base::error::{Cause, Class};
use fec_core::digest::Digest;

mod hybrid;

/// Output of `minisign -G -W`, and of the same with the passphrase "correct horse" where memory was short, so that the
/// key takes 128 MiB.
const PUBLIC: &str = "RWQUKmQkwEBZPqn1ZuG2dCqEgdnOqUWhBFyTYcydInRQrjuKD21hLwRu";
const SECRET: &str = "untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFCpkJMBAWT4JETyjqcOO9jZGhOCWxlTtobfMmYp/z6YH/+3bbp99+an1ZuG2dCqEgdnOqUWhBFyTYcydInRQrjuKD21hLwRuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
";
const ENCRYPTED_PUBLIC: &str = "RWRx2WskSq615TrKWgN7Rq+ELL2fQQy5y170oO0mmny+TtEd4iupEw8f";
const ENCRYPTED: &str = "untrusted comment: minisign encrypted secret key
RWRTY0Iykk0+3gB0cA/XtzS60An8j0pwzq138ljzuTyfa3Zjt6IAAEAAAAAAAAAAAAgAAAAAa+OcaNb4gEmbR5O9M8rbMYkAIF0VL0yuvCnpxxW8xdI6Ki+qrShNDkIwzI2StyohdftfsZ587kCEdCcfMaXv75TtpzmuH9stDYj/uoHj3Ci5r660sbXJqHbiLLybbsdW2FxgjmsvOCc=
";
const OTHER_PUBLIC: &str = "RWRkW622s4hOZyeTlQVvRwZbGOm01AVhrJuli3YBI+VsrhCpJsX6bP9R";
/// Output of `minisign -Sm LINE -t 'timestamp:1700000000⇥fec root'`, over the line of the root 00…07.
const SIGNATURE: &str = "untrusted comment: signature from minisign secret key
RUQUKmQkwEBZPtL3p2MlVGs2NxeuJE5jPecp9uSIxa6B4c4/SK/D6IRVZEyx4V5GyHtnH3DBbe0NjMehqqaamB1SmN4vUJZOiAw=
trusted comment: timestamp:1700000000\tfec root
VSsbOctts67Wa22OCC5eNoNC/rl8kzzBMiPQpXXOnAUgCjPs/v5mYvU9RRL5eYCwHjaBY3/R2bdY496fRPntAQ==
";
/// The signature over the same line by the key with a passphrase.
const BY_ENCRYPTED: &str = "untrusted comment: signature from minisign secret key
RURx2WskSq615fgIcMwly33ZRNuxdMZO76J19D7XAIhskiqAz0S2HdDg0rOvL9k9rogre9JUrAKP0CluiMVUMNWp4R6FzrxpTwA=
trusted comment: timestamp:1795507869\tfile:msg\thashed
hr5EnbC2be4W6xxfLrBHDri4zEXoxKSS1nFh9gEt7Qz96oigD1HcMJbfBcSDaK+g67fbuC9f3cOliuttLF4lBQ==
";
/// The signature over the same line with `-l`.
const OLD: &str = "untrusted comment: signature from minisign secret key
RWQUKmQkwEBZPrQaJ6nxmHC4vyss6xyZ3P2jrGAyklmeJ1tmYOXgWwZmzO0aWWRHY5n8Ugrf60+skLVFO0oW/uAbgBzjyOn57QA=
trusted comment: timestamp:1795507869\tfile:msg
7FpK45yCPWiDjomlWMRJwBpREaav+06DS1FpVY14IooyY4D04N8ICidD2WhjbX+QRYsW4PJ1BsP1Sa6FnoPiAQ==
";

fn root() -> Digest {
    let mut root = [0; 32];
    root[31] = 7;
    root
}

fn signer(text: &str) -> Signer {
    text.parse().expect("a public key")
}

fn signature(text: &str) -> Signature {
    Signature::parse(text.as_bytes()).expect("a signature")
}

fn secret(text: &str, passphrase: Option<&str>) -> SecretKey {
    StoredKey::parse(text).expect("a secret key").open(passphrase).expect("it opens")
}

/// A key with the number of another.
fn with_number(key: &SecretKey, id: KeyId) -> SecretKey {
    let text = key.to_text(None).expect("its file");
    let mut bytes = text::decoded::<158>(text.lines().nth(1).expect("lines")).expect("158 bytes");
    bytes[54..62].copy_from_slice(&id.0);
    secret(&text::commented("a key", &bytes[..]), None)
}

#[test]
fn signatures_of_minisign_count() {
    assert_eq!(message(&root()), format!("fec root 1 {:064}\n", 7));
    let made = signature(SIGNATURE);
    assert!(signer(PUBLIC).has_signed(&root(), &made));
    assert!(!signer(OTHER_PUBLIC).has_signed(&root(), &made));
    assert!(!signer(PUBLIC).has_signed(&[0; 32], &made), "it is of another root");
    assert!(signer(ENCRYPTED_PUBLIC).has_signed(&root(), &signature(BY_ENCRYPTED)));
    assert_eq!(made.trusted_comment(), "timestamp:1700000000\tfec root");
    assert_eq!(made.id().to_string(), "3E5940C024642A14");
    assert!(matches!(Signature::parse(OLD.as_bytes()), Err(SignError::Legacy)));
}

/// Ed25519 has no randomness: this crate makes the same bytes as minisign.
#[test]
fn what_is_signed_here_is_what_minisign_makes_of_it() {
    let made = secret(SECRET, None).sign_root_at(&root(), 1_700_000_000);
    let behind_comment = |text: &str| text.split_once('\n').expect("lines").1.to_owned();
    assert_eq!(behind_comment(made.text()), behind_comment(SIGNATURE));
}

/// Editors on Windows, and checkouts there, end lines so.
#[test]
fn files_with_other_line_ends_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let save = |text: &str| std::fs::write(&path, text.replace('\n', "\r\n")).expect("a file");
    save(&format!("untrusted comment: a key\n{PUBLIC}\n"));
    assert_eq!(Signer::read(&path).expect("a public key"), signer(PUBLIC));
    save(SECRET);
    assert_eq!(
        StoredKey::read(&path).expect("a secret key").open(None).expect("open").signer(),
        signer(PUBLIC)
    );
    save(SIGNATURE);
    let read = Signature::read(&path).expect("a signature");
    assert_eq!(read.text(), SIGNATURE);
    assert!(signer(PUBLIC).has_signed(&root(), &read));
}

#[test]
fn secret_keys_of_minisign_open() {
    assert_eq!(secret(SECRET, None).signer(), signer(PUBLIC));
    let stored = StoredKey::parse(ENCRYPTED).expect("a secret key");
    assert!(stored.is_encrypted());
    assert_eq!(stored.open(Some("correct horse")).expect("it opens").signer(), signer(ENCRYPTED_PUBLIC));
    assert!(matches!(stored.open(Some("correct house")), Err(SignError::Passphrase)));
    assert!(matches!(stored.open(None), Err(SignError::PassphraseNeeded)));
    assert_eq!(
        format!("{stored:?}, {:?}", secret(SECRET, None)),
        "StoredKey(…), SecretKey(3E5940C024642A14, …)"
    );
}

#[test]
fn new_keys_come_back_from_their_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, passphrase) in [("plain", None), ("encrypted", Some("elf letters ü"))] {
        let (key, path) = (SecretKey::generate().expect("a key"), folder.path().join(name));
        key.write(&path, passphrase).expect("it is written");
        assert!(key.write(&path, passphrase).is_err(), "no key is overwritten");
        // Windows has no modes; fec-base tests whom it lets read there.
        let mode = fec_base::io::system::mode(&std::fs::metadata(&path).expect("it is there"));
        assert!(cfg!(windows) || mode & 0o777 == 0o600, "{mode:o}");
        let stored = StoredKey::read(&path).expect("it is read");
        assert_eq!(stored.is_encrypted(), passphrase.is_some());
        let again = stored.open(passphrase).expect("it opens");
        assert!(key.signer().has_signed(&root(), &again.sign_root(&root())));
        let public = folder.path().join(format!("{name}.pub"));
        std::fs::write(&public, key.signer().to_text()).expect("it is written");
        assert_eq!(Signer::read(&public).expect("it is read"), key.signer());
        assert_eq!(signer(&key.signer().to_string()), key.signer());
    }
}

#[test]
fn no_bit_of_a_signature_can_be_changed() {
    let start = SIGNATURE.find('\n').expect("lines") + 1;
    let mut parsed = 0;
    for at in start..SIGNATURE.len() - 1 {
        for bit in 0..8 {
            let mut text = SIGNATURE.as_bytes().to_vec();
            text[at] ^= 1 << bit;
            if let Ok(changed) = Signature::parse(&text) {
                parsed += 1;
                assert!(!signer(PUBLIC).has_signed(&root(), &changed), "bit {bit} of byte {at}");
            }
        }
    }
    assert!(parsed > 500, "most of it is base64 after a change too: {parsed}");
}

#[test]
fn what_is_no_signature_is_refused() {
    for len in 0..SIGNATURE.len() - 1 {
        assert!(Signature::parse(&SIGNATURE.as_bytes()[..len]).is_err(), "{len} bytes");
    }
    assert!(Signature::parse(SIGNATURE.trim_end().as_bytes()).is_ok(), "without the last line feed");
    let long = SIGNATURE.replacen("signature", &"x".repeat(LONGEST_SIGNATURE), 1);
    let cases = [
        format!("{SIGNATURE}\n"),
        format!("{SIGNATURE}more\n"),
        SIGNATURE.replace('\n', "\r\n"),
        SIGNATURE.replacen("untrusted", "", 1),
        SIGNATURE.replacen("\ntrusted comment: ", "\ntrusted: ", 1),
        SIGNATURE.replace("fec root", "fec\u{1b}[2Jroot"),
        SIGNATURE.replace("iAw=", "iAx="),
        SIGNATURE.replace("iAw=", "iAw"),
        SIGNATURE.replace("RUQU", "RUXU"),
        long,
    ];
    for text in cases {
        let refused = Signature::parse(text.as_bytes()).expect_err("it is none");
        assert_eq!(refused.class(), Class::Untrue, "{text}");
    }
    let fits = LONGEST_SIGNATURE - SIGNATURE.len();
    let longest = SIGNATURE.replacen("signature", &format!("signature{}", "x".repeat(fits)), 1);
    assert_eq!(signature(&longest).text().len(), LONGEST_SIGNATURE);
    assert!(Signature::parse(&[0xff; 100]).is_err());
}

#[test]
fn what_is_no_key_is_refused() {
    for len in 0..PUBLIC.len() {
        assert!(PUBLIC[..len].parse::<Signer>().is_err(), "{len} characters");
    }
    assert!(PUBLIC.replacen("RWQ", "RUQ", 1).parse::<Signer>().is_err(), "another algorithm");
    let swapped = SECRET.replacen("4JET", "4JEU", 1);
    let stored = StoredKey::parse(&swapped).expect("it looks like a key");
    assert!(
        matches!(stored.open(None), Err(SignError::NotASecretKey(_))),
        "its halves do not belong together"
    );
    for text in [
        &SECRET[..60],
        PUBLIC,
        "",
        &SECRET.replacen("AEIy", "AEIz", 1),
        &SECRET.replacen("QAAEI", "QAAUI", 1),
    ] {
        let refused = StoredKey::parse(text).expect_err("it is none");
        assert!(!refused.to_string().contains("FCpk"), "what is in it is not told");
    }
}

/// A key that asks for more than 1 GiB, by any of the limits, is refused before memory is taken.
#[test]
fn passphrases_that_take_all_memory_are_refused() {
    let at_limits = |work: u64, memory: u64| {
        let line = ENCRYPTED.lines().nth(1).expect("lines");
        let mut bytes = text::decoded::<158>(line).expect("158 bytes");
        bytes[38..46].copy_from_slice(&work.to_le_bytes());
        bytes[46..54].copy_from_slice(&memory.to_le_bytes());
        StoredKey::parse(&text::commented("a key", &bytes[..]))
    };
    assert!(at_limits(1 << 25, 1 << 30).is_ok(), "minisign's own");
    assert!(
        at_limits(1 << 25, u64::MAX).is_ok() && at_limits(0, u64::MAX).is_ok(),
        "the work keeps the memory down"
    );
    let costly =
        [(1 << 27, 1 << 32), (u64::MAX, u64::MAX), (u64::MAX, 0), (1 << 40, 1 << 30), (1 << 50, u64::MAX)];
    for (work, memory) in costly {
        let refused = at_limits(work, memory).expect_err("it takes too much");
        assert!(matches!(refused, SignError::Costly { .. }), "{work} {memory}: {refused}");
        assert_eq!(refused.class(), Class::Refused);
    }
}

fn found(texts: &[&str]) -> Signatures {
    let mut found = Signatures::default();
    texts.iter().for_each(|text| found.add(text.as_bytes()));
    found
}

#[test]
fn a_root_is_signed_when_one_of_the_signers_signed_it() {
    let roots = [[1; 32], root(), [2; 32]];
    let trust = |signers: &[&str]| Trust {
        signers: signers.iter().map(|text| signer(text)).collect(),
        detached: Vec::new(),
    };
    let there = found(&["junk", OLD, SIGNATURE, SIGNATURE]);
    let signed = trust(&[OTHER_PUBLIC, PUBLIC]).check(&roots, &there).expect("it is signed");
    assert_eq!(signed.len(), 1);
    assert_eq!((signed[0].root, signed[0].key), (root(), signer(PUBLIC).id()));
    let detached = Trust { detached: vec![signature(SIGNATURE)], ..trust(&[PUBLIC]) };
    assert!(detached.check(&roots, &Signatures::default()).is_ok());

    let unsigned = |signers: &[&str], roots: &[Digest], there: &Signatures| {
        let refused = trust(signers).check(roots, there).expect_err("nobody signed it");
        assert_eq!(refused.class(), Class::Untrue);
        let SignError::Unsigned(unsigned) = refused else { panic!("{refused}") };
        unsigned
    };
    let of_others = unsigned(&[OTHER_PUBLIC], &roots, &there);
    assert_eq!((of_others.others, of_others.legacy, of_others.malformed), (vec![signer(PUBLIC).id()], 1, 1));
    let moved = unsigned(&[PUBLIC], &[[9; 32]], &there);
    assert_eq!((moved.wrong, moved.others), (vec![signer(PUBLIC).id()], vec![]));
    assert!(unsigned(&[PUBLIC], &roots, &Signatures::default()).to_string().contains("no signature at all"));
}

/// Anybody can make a key with the number of another key.
#[test]
fn a_key_with_the_number_of_another_is_not_that_key() {
    let forged = with_number(&SecretKey::generate().expect("a key"), signer(PUBLIC).id()).sign_root(&root());
    assert_eq!(forged.id(), signer(PUBLIC).id());
    assert!(!signer(PUBLIC).has_signed(&root(), &forged));
    let trust = Trust { signers: vec![signer(PUBLIC)], detached: vec![forged] };
    assert!(trust.check(&[root()], &Signatures::default()).is_err());
    assert!(trust.check(&[root()], &found(&[SIGNATURE])).is_ok(), "a forged one hides nothing");
}

#[test]
fn many_signatures_and_many_roots_are_not_all_tried() {
    let key = secret(SECRET, None);
    let mut there = Signatures::default();
    (0..300).for_each(|time| there.add(key.sign_root_at(&[3; 32], time).text().as_bytes()));
    let trust = Trust { signers: vec![signer(PUBLIC)], detached: Vec::new() };
    let roots: Vec<Digest> = (0..1000u32)
        .map(|n| {
            let mut root = [0; 32];
            root[..4].copy_from_slice(&n.to_le_bytes());
            root
        })
        .collect();
    let refused = trust.check(&roots, &there).expect_err("too many");
    assert!(matches!(refused, SignError::TooMany { signatures: 300, roots: 1000 }), "{refused}");
    (300..6000).for_each(|time| there.add(SIGNATURE.replace("from", &format!("from {time}")).as_bytes()));
    assert_eq!(there.iter().count(), MOST_IN_ALL);
}

/// A signature of a sidecar names E in a field of its own. Any other form of that field names nothing, and a signature
/// without the field binds only the root.
#[test]
fn e_is_named_in_one_form_alone() {
    let key = secret(SECRET, None);
    let (e, other) = ([0xab; 32], [0xcd; 32]);
    let digits = "ab".repeat(32);
    let made = key.sign_sidecar(&root(), &e);
    assert!(made.trusted_comment().ends_with(&format!("\tfec root\tfec sidecar 1 {digits}")));
    let signed = |signatures: &[Signature], root: &Digest| {
        let trust = Trust { signers: vec![key.signer()], detached: signatures.to_vec() };
        trust.check(&[*root], &Signatures::default()).map(|signed| signed[0].metadata.clone())
    };
    assert_eq!(signed(std::slice::from_ref(&made), &root()).unwrap(), [e]);
    assert_eq!(signed(&[key.sign_root(&root())], &root()).unwrap(), [[0; 32]; 0]);
    // All signatures over the root count, and none over another root.
    let both = [key.sign_root(&root()), made.clone(), key.sign_sidecar(&[0; 32], &other)];
    assert_eq!(signed(&both, &root()).unwrap(), [e]);
    assert_eq!(signed(&both, &[0; 32]).unwrap(), [other]);
    let forms = [
        format!("fec sidecar 1 {}", digits.to_uppercase()),
        format!("fec sidecar 1 {digits} "),
        format!("fec sidecar 2 {digits}"),
        format!("fec sidecar 1  {digits}"),
        format!("Fec sidecar 1 {digits}"),
        format!("x fec sidecar 1 {digits}"),
        format!("fec sidecar 1 {}", &digits[..62]),
        "fec sidecar 1 ".to_owned(),
    ];
    for form in forms {
        let signature = key.sign(&root(), &format!("timestamp:1\t{form}\tfec root"));
        assert_eq!(signed(&[signature], &root()).unwrap(), [[0; 32]; 0], "{form}");
    }
    let first = key.sign(&root(), &format!("fec sidecar 1 {digits}\tby hand"));
    assert_eq!(signed(&[first], &root()).unwrap(), [e]);
    // A changed E breaks the key's signature over the comment.
    let forged = Signature::parse(made.text().replace(&digits, &"cd".repeat(32)).as_bytes()).unwrap();
    assert!(signed(&[forged], &root()).is_err());
}
