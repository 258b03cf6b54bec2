//! Keys and signatures as text: of minisign, of age and of OpenSSH. An accepted one that has a text is read again as
//! the same.
#![no_main]

use fec_keys::age::{Recipient, identities_of, recipients_of};
use fec_keys::sign::{Signature, Signer, StoredKey};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Signature::parse(bytes) {
        Ok(signature) => {
            assert_eq!(signature.text().as_bytes(), bytes, "it is kept as it was read");
            assert_eq!(Signature::parse(signature.text().as_bytes()).ok(), Some(signature.clone()));
            assert!(!signature.trusted_comment().chars().any(char::is_control));
        }
        Err(error) => drop(error.to_string()),
    }
    let _ = identities_of(bytes, &mut || None).map(|identities| {
        for identity in identities {
            if let Some(text) = identity.to_text() {
                let again = identities_of(text.as_bytes(), &mut || None).expect("its own text");
                assert_eq!(again.len(), 1);
                assert_eq!(again[0].recipient().to_string(), identity.recipient().to_string());
            }
        }
    });
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(signer) = text.parse::<Signer>() {
        assert_eq!(signer.to_string(), text, "there is one text of a key");
    }
    if let Ok(recipients) = recipients_of(text) {
        for recipient in recipients {
            let again: Recipient = recipient.to_string().parse().expect("its own text");
            assert_eq!(again.to_string(), recipient.to_string());
        }
    }
    // A key without a passphrase opens at once; scrypt would take all the time of others.
    if let Ok(stored) = StoredKey::parse(text)
        && !stored.is_encrypted()
        && let Ok(key) = stored.open(None)
    {
        let root = [7; 32];
        assert!(
            key.signer().has_signed(&root, &key.sign_root_at(&root, 0)),
            "what it signs, its public key verifies"
        );
    }
});
