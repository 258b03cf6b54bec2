//! Hybrid keys. The first four lines of the signature are minisign's own; the fifth, and the public key, are by two
//! independent implementations of ML-DSA in Python, which agree.

use super::*;

const HYBRID_PUBLIC: &str = include_str!("hybrid.pub");
const HYBRID_SIGNATURE: &str = include_str!("hybrid.minisig");

/// The secret key of the other tests as a hybrid one.
fn hybrid() -> SecretKey {
    secret(&SECRET.replacen("RWQ", "RU0", 1), None)
}

fn hybrid_signer() -> Signer {
    signer(HYBRID_PUBLIC.lines().nth(1).expect("two lines"))
}

/// The verdict of [`Trust`] on this text.
fn checked(key: &Signer, text: &str) -> std::result::Result<Vec<Signed>, SignError> {
    let trust = Trust { signers: vec![key.clone()], detached: vec![signature(text)] };
    trust.check(&[[1; 32], root()], &Signatures::default())
}

/// The keys that [`Trust`] says have signed with one half alone, and those whose signature is wrong.
fn refused(key: &Signer, text: &str) -> (Vec<KeyId>, Vec<KeyId>) {
    match checked(key, text).expect_err("it is not signed") {
        SignError::Unsigned(unsigned) => (unsigned.halved, unsigned.wrong),
        other => panic!("{other}"),
    }
}

#[test]
fn keys_and_signatures_are_those_of_the_format() {
    assert_eq!(hybrid().signer(), hybrid_signer());
    assert_eq!(hybrid().signer().to_text(), HYBRID_PUBLIC);
    assert_eq!(checked(&hybrid_signer(), HYBRID_SIGNATURE).expect("it is signed").len(), 1);
    let made = hybrid().sign_root_at(&root(), 1_700_000_000);
    let first_four = |text: &str| text.lines().skip(1).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first_four(made.text()), first_four(HYBRID_SIGNATURE));
    assert!(checked(&hybrid_signer(), made.text()).is_ok());
    if !cfg!(feature = "aws-lc") {
        // RustCrypto takes no randomness.
        assert_eq!(made.text().lines().nth(4), HYBRID_SIGNATURE.lines().nth(4));
    }
}

/// The key of minisign in a hybrid one: whoever has only that needs the first four lines alone, and all four hold.
#[test]
fn minisigns_part_counts_for_minisigns_key() {
    assert_eq!(hybrid_signer().classic(), signer(PUBLIC));
    assert!(checked(&signer(PUBLIC), HYBRID_SIGNATURE).is_ok());
    assert!(checked(&signer(PUBLIC), SIGNATURE).is_ok());
}

#[test]
fn one_half_of_a_signature_is_none() {
    let (key, id) = (hybrid_signer(), hybrid_signer().id());
    assert_eq!(refused(&key, SIGNATURE), (vec![id], vec![]));
    let error = checked(&key, SIGNATURE).expect_err("it is not signed");
    assert_eq!(error.class(), Class::Untrue);
    assert!(error.to_string().contains("with Ed25519 alone"), "{error}");
    // The other half, of the same key, over another root, and over another comment.
    let fifth = |text: &str| text.lines().nth(4).expect("five lines").to_owned();
    let with = |fifth: &str| format!("{SIGNATURE}{fifth}\n");
    assert!(checked(&key, &with(&fifth(HYBRID_SIGNATURE))).is_ok());
    for other in
        [hybrid().sign_root_at(&[1; 32], 1_700_000_000), hybrid().sign_root_at(&root(), 1_700_000_001)]
    {
        assert_eq!(refused(&key, &with(&fifth(other.text()))), (vec![id], vec![]));
    }
    // A forger who has the half of Ed25519.
    let forger = with_number(&SecretKey::generate_hybrid().expect("a key"), id);
    assert_eq!(
        refused(&key, &with(&fifth(forger.sign_root_at(&root(), 1_700_000_000).text()))),
        (vec![id], vec![])
    );
    // A forger who has that of ML-DSA-65.
    let mut text = HYBRID_SIGNATURE.to_owned();
    text.replace_range(
        SIGNATURE.find("tL3p2").expect("it is there")..SIGNATURE.find("MlVGs2").expect("it is there"),
        "tL3p3",
    );
    assert_eq!(refused(&key, &text), (vec![], vec![id]));
    // A signature over another root is wrong, and no half.
    assert_eq!(refused(&key, hybrid().sign_root(&[9; 32]).text()), (vec![], vec![id]));
}

#[test]
fn no_part_of_the_fifth_line_can_be_changed() {
    let start = SIGNATURE.len();
    let mut parsed = 0;
    for at in (start..HYBRID_SIGNATURE.len() - 1).step_by(7) {
        let mut text = HYBRID_SIGNATURE.as_bytes().to_vec();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        if let Ok(changed) = Signature::parse(&text) {
            parsed += 1;
            assert!(!hybrid_signer().has_signed(&root(), &changed), "byte {at}");
        }
    }
    assert!(parsed > 600, "{parsed}");
    for text in [
        HYBRID_SIGNATURE[..HYBRID_SIGNATURE.len() - 5].to_owned(),
        format!("{HYBRID_SIGNATURE}\n"),
        format!("{HYBRID_SIGNATURE}more\n"),
        format!("{SIGNATURE}\n"),
        format!("{SIGNATURE}{}\n", SIGNATURE.lines().nth(3).expect("lines")),
    ] {
        assert!(Signature::parse(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn hybrid_keys_come_back_from_their_files() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, passphrase) in [("plain", None), ("encrypted", Some("elf letters ü"))] {
        let (key, path) = (SecretKey::generate_hybrid().expect("a key"), folder.path().join(name));
        key.write(&path, passphrase).expect("it is written");
        let again = StoredKey::read(&path).expect("it is read").open(passphrase).expect("it opens");
        assert!(again.signer().is_hybrid());
        assert!(key.signer().has_signed(&root(), &again.sign_root(&root())));
        let public = folder.path().join(format!("{name}.pub"));
        std::fs::write(&public, key.signer().to_text()).expect("it is written");
        assert_eq!(Signer::read(&public).expect("it is read"), key.signer());
    }
    // With a passphrase, nobody makes a hybrid key one of minisign alone.
    let text = SecretKey::generate_hybrid().expect("a key").to_text(Some("words")).expect("its file");
    let changed = StoredKey::parse(&text.replacen("RU1", "RWR", 1)).expect("it looks like a key");
    assert!(matches!(changed.open(Some("words")), Err(SignError::Passphrase)));
}

/// Neither kind of public key is taken for the other, whatever its length.
#[test]
fn the_kind_of_a_public_key_is_bound_to_its_length() {
    let line = hybrid_signer().to_string();
    for len in (0..line.len()).filter(|len| *len != 56) {
        assert!(line[..len].parse::<Signer>().is_err(), "{len} characters");
    }
    assert!(line[..56].parse::<Signer>().is_err(), "it is cut off");
    assert!(line.replacen("RU0", "RWQ", 1).parse::<Signer>().is_err(), "a long one of minisign");
    assert!(PUBLIC.replacen("RWQ", "RU0", 1).parse::<Signer>().is_err(), "a short hybrid one");
}
