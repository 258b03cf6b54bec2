use super::*;
use base64ct::{Base64, Encoding};
use std::num::NonZeroUsize;
use zeroize::Zeroizing;

mod published;
mod vectors;

fn bytes(base64: &str) -> Vec<u8> {
    Base64::decode_vec(base64).expect("it is base64")
}

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned())).expect("it is not empty")
}

fn never() -> Option<Passphrase> {
    panic!("nobody asks for a passphrase")
}

fn identities(text: &str) -> Keys {
    Keys::Identities(identities_of(text.as_bytes(), &mut never).expect("they are identities"))
}

fn recipient(text: &str) -> Recipient {
    text.parse().expect("it is a recipient")
}

/// Each kind of key, with its recipient if it has one, and a file of Go's age.
fn all_kinds() -> [(Keys, Option<Recipient>, Vec<u8>); 4] {
    [
        (
            identities(vectors::X25519_KEY),
            Some(recipient(vectors::X25519_RECIPIENT)),
            bytes(vectors::X25519_FILE),
        ),
        (
            identities(vectors::HYBRID_KEY),
            Some(recipient(vectors::HYBRID_RECIPIENT)),
            bytes(vectors::HYBRID_FILE),
        ),
        (identities(vectors::SSH_KEY), Some(recipient(vectors::SSH_RECIPIENT)), bytes(vectors::SSH_FILE)),
        (Keys::Passphrase(passphrase("correct horse")), None, bytes(vectors::PASSPHRASE_FILE)),
    ]
}

#[test]
fn files_of_gos_age_are_opened() {
    let kinds = [StanzaKind::X25519, StanzaKind::Hybrid, StanzaKind::SshEd25519, StanzaKind::Passphrase];
    for ((keys, _, file), kind) in all_kinds().iter().zip(kinds) {
        assert_eq!(open(file, keys).expect("it is opened").as_slice(), vectors::PLAINTEXT);
        assert_eq!(recipients_in(file).expect("it has a header"), [kind]);
    }
}

#[test]
fn keys_and_recipients_have_the_texts_that_go_gives_them() {
    for (keys, recipient, _) in all_kinds() {
        let (Keys::Identities(identities), Some(recipient)) = (keys, recipient) else { continue };
        assert_eq!(identities[0].recipient(), recipient);
        let text = recipient.to_string();
        match identities[0].to_text() {
            Some(secret) if recipient.is_post_quantum() => {
                assert_eq!(
                    (secret.as_str(), text.as_str()),
                    (vectors::HYBRID_KEY, vectors::HYBRID_RECIPIENT)
                );
            }
            Some(secret) => {
                assert_eq!((secret.as_str(), text.as_str()), (vectors::X25519_KEY, vectors::X25519_RECIPIENT))
            }
            None => assert_eq!(format!("{text} a comment"), vectors::SSH_RECIPIENT),
        }
    }
}

#[test]
fn what_is_sealed_is_opened_by_those_it_is_for_alone() {
    let all = all_kinds();
    for (keys, recipient, _) in &all {
        for len in [0, 1, 32, 65_535, 65_536, 65_537, 131_072] {
            let plaintext = vec![7; len];
            let file = match (keys, recipient) {
                (Keys::Passphrase(passphrase), _) => seal_with_passphrase(passphrase, 2, &plaintext),
                (_, recipient) => seal(recipient.as_slice(), &plaintext),
            };
            let file = file.expect("it is sealed");
            assert_eq!(open(&file, keys).expect("it is opened").as_slice(), plaintext);
            for (others, other, _) in all.iter().filter(|(_, other, _)| other != recipient) {
                let error = open(&file, others).expect_err("it is for somebody else");
                match (recipient, other) {
                    (None, _) => assert!(matches!(error, AgeError::NeedsPassphrase), "{error}"),
                    (_, None) => assert!(matches!(error, AgeError::NeedsIdentity), "{error}"),
                    _ => assert!(matches!(error, AgeError::NoMatch), "{error}"),
                }
            }
        }
    }
    let file = seal_with_passphrase(&passphrase("one"), 2, b"").expect("it is sealed");
    assert!(matches!(open(&file, &Keys::Passphrase(passphrase("two"))), Err(AgeError::NoMatch)));
}

#[test]
fn generated_keys_open_what_is_for_them_and_are_read_back() {
    for kind in [KeyKind::X25519, KeyKind::Hybrid] {
        let (one, two) = (Identity::generate(kind).expect("a key"), Identity::generate(kind).expect("a key"));
        assert_ne!(one.recipient(), two.recipient());
        assert_eq!(one.recipient().is_post_quantum(), kind == KeyKind::Hybrid);
        let file = seal(&[one.recipient()], b"secret").expect("it is sealed");
        let text = one.to_text().expect("it has one");
        assert!(matches!(open(&file, &Keys::Identities(vec![two])), Err(AgeError::NoMatch)));
        assert_eq!(
            open(&file, &identities(&format!("# mine\r\n\n{}\r\n", *text))).expect("it is opened").as_slice(),
            b"secret"
        );
        assert_eq!(recipient(&one.recipient().to_string()), one.recipient());
    }
}

#[test]
fn stanzas_stand_in_the_order_of_recipients_on_any_number_of_threads() {
    for kind in [KeyKind::X25519, KeyKind::Hybrid] {
        let identities: Vec<Identity> = (0..21).map(|_| Identity::generate(kind).expect("a key")).collect();
        let mut recipients: Vec<Recipient> = identities.iter().map(Identity::recipient).collect();
        recipients.push(recipients[3].clone());
        let files = [1, 2, 3, 100]
            .map(|threads| seal_on(NonZeroUsize::new(threads).expect("not zero"), &recipients, b"x"));
        for file in files.into_iter().chain([seal(&recipients, b"x")]) {
            let file = file.expect("it is sealed");
            let header = header::Header::read(&file).expect("it has a header");
            assert_eq!(header.stanzas.len(), 21, "the one that comes twice counts once");
            for (stanza, identity) in header.stanzas.iter().zip(&identities) {
                assert!(identity.open(stanza).expect("it is well-formed").is_some());
            }
        }
    }
}

#[test]
fn recipients_that_would_spoil_a_file_are_refused() {
    assert!(matches!(seal(&[], b""), Err(AgeError::NoRecipients)));
    let [x25519, hybrid, ssh] =
        [vectors::X25519_RECIPIENT, vectors::HYBRID_RECIPIENT, vectors::SSH_RECIPIENT].map(recipient);
    for mixed in [[hybrid.clone(), x25519.clone()], [x25519.clone(), hybrid.clone()], [ssh.clone(), hybrid]] {
        assert!(matches!(seal(&mixed, b""), Err(AgeError::Mixed)));
    }
    assert_eq!(
        recipients_in(&seal(&[ssh, x25519], b"").expect("they go together")).expect("a header").len(),
        2
    );
    for log_n in [0, 23, 255] {
        let error =
            seal_with_passphrase(&passphrase("x"), log_n, b"").expect_err("it is too little or too much");
        assert!(matches!(error, AgeError::WorkFactor(n) if n == log_n));
    }
    assert!(matches!(Passphrase::new(Zeroizing::default()), Err(AgeError::EmptyPassphrase)));
    // Points of order 1, 2, 4 and 8, and a point that is zero only after reduction (RFC 7748's prime).
    let mut prime = [0xff; 32];
    (prime[0], prime[31]) = (0xed, 0x7f);
    let order_8 = bytes("4Ot6fDtBuK4WVuP68Z/EatoJjeucMrH9hmIFFl9JuAA=").try_into().expect("32 bytes");
    let mut one = [0; 32];
    one[0] = 1;
    for point in [[0; 32], one, prime, order_8] {
        let text = bech32::encode("age", &point);
        assert!(matches!(text.parse::<Recipient>(), Err(AgeError::Recipient(_))), "{}", *text);
    }
    let mut key = bech32::decode("age1pq", vectors::HYBRID_RECIPIENT).expect("it is valid");
    let last = key.len() - 32;
    key[last..].fill(0);
    assert!(bech32::encode("age1pq", &key).parse::<Recipient>().is_err(), "a point of low order");
    let mut key = bech32::decode("age1pq", vectors::HYBRID_RECIPIENT).expect("it is valid");
    key[..2].fill(0xff);
    assert!(
        bech32::encode("age1pq", &key).parse::<Recipient>().is_err(),
        "a coefficient above the modulus of ML-KEM"
    );
}

#[test]
fn no_bit_can_be_flipped_nothing_cut_off_and_nothing_added() {
    for (keys, _, file) in all_kinds() {
        // A new file with less work for each try.
        let file = match &keys {
            Keys::Passphrase(passphrase) => {
                seal_with_passphrase(passphrase, 2, b"secret").expect("it is sealed")
            }
            Keys::Identities(_) => file,
        };
        let refused =
            |file: &[u8], what: std::fmt::Arguments<'_>| assert!(open(file, &keys).is_err(), "{what}");
        for at in 0..file.len() {
            let mut other = file.clone();
            for bit in 0..8 {
                other[at] = file[at] ^ 1 << bit;
                refused(&other, format_args!("bit {bit} of byte {at}"));
            }
            refused(&file[..at], format_args!("{at} bytes"));
        }
        refused(&[&file[..], b"\0"].concat(), format_args!("a byte too many"));
        refused(&[&file[..], &file].concat(), format_args!("twice"));
    }
}

#[test]
fn a_stanza_that_was_put_in_is_noticed() {
    let (keys, _, file) = &all_kinds()[0];
    let text = String::from_utf8_lossy(file);
    let at = text.find("---").expect("the header has an end");
    let with = |stanza: &str| [&file[..at], stanza.as_bytes(), &file[at..]].concat();
    assert!(matches!(open(&with("-> x y\n\n"), keys), Err(AgeError::Damaged(Part::Header))));
    assert!(matches!(open(&with("-> x y\n"), keys), Err(AgeError::Header(_))));
    let other =
        seal(&[Identity::generate(KeyKind::X25519).expect("a key").recipient()], b"").expect("it is sealed");
    let other = &String::from_utf8_lossy(&other)[22..];
    assert!(matches!(
        open(&with(&other[..other.find("---").expect("an end")]), keys),
        Err(AgeError::Damaged(Part::Header))
    ));
}

/// The pieces of well-formed headers.
const SHARE: &str = "TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc";
const BODY: &str = "EmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U";
const SALT: &str = "rF0/NwblUHHTpgQgRpe5CQ";
const MAC: &str = "--- 4sYEMl3QwNkxHYDEcf1e/o0ZbSDqwTjVHwnyTXEBFRk\n";

/// A well-formed stanza.
fn good_stanza() -> String {
    format!("-> X25519 {SHARE}\n{BODY}\n")
}

/// Reads a header of these stanzas.
fn read_stanzas(stanzas: &str) -> Result<Vec<StanzaKind>, AgeError> {
    recipients_in(format!("age-encryption.org/v1\n{stanzas}{MAC}").as_bytes())
}

#[test]
fn malformed_stanzas_are_refused() {
    let (good, share, body, salt) = (good_stanza(), SHARE, BODY, SALT);
    assert_eq!(read_stanzas(&good).expect("it is well-formed"), [StanzaKind::X25519]);
    let many = good.repeat(MOST_STANZAS);
    assert_eq!(read_stanzas(&many).expect("they are not too many").len(), MOST_STANZAS);
    let arguments = format!("-> x{}\n\n", " y".repeat(129));
    for (stanzas, why) in [
        ("", "no stanza"),
        (&format!("{many}{good}"), "too many stanzas"),
        (&good.replace("-> ", "->"), "no space"),
        (&good.replace("-> ", "->  "), "an empty argument"),
        (&good.replace("5519 ", "5519  "), "an empty argument within"),
        (&good.replacen('\n', " \n", 1), "an empty argument at the end"),
        (&good.replacen('\n', " x\n", 1), "one argument too many"),
        (&good.replacen(share, "", 1), "one too few"),
        (&good.replacen(share, &share[1..], 1), "a short share"),
        (&good.replacen(share, &format!("{share}AA"), 1), "a long share"),
        (&good.replacen("Cc", "Cd", 1), "a share that is not canonical"),
        (&good.replacen("Cc", "Cc=", 1), "padding"),
        (&good.replacen("w7U", "w7V", 1), "a body that is not canonical"),
        (&good.replacen(body, &body[1..], 1), "a short body"),
        (&good.replacen(body, &format!("{body}AA"), 1), "a long body"),
        (&good.replacen(body, "", 1), "no body"),
        (&good.replace('\n', "\r\n"), "other ends of lines"),
        (&format!("-> x\n{}\n", "A".repeat(65)), "a line that is too long"),
        (&format!("-> x\n{}\n", "A".repeat(64)), "a body without its end"),
        (&format!("-> \u{e4}\n\n{good}"), "no ASCII"),
        (&format!("-> x\ty\n\n{good}"), "a tab"),
        (&arguments, "too many arguments"),
        (&format!("-> scrypt {salt} 10\n{body}\n{good}"), "a passphrase and a key"),
        (&format!("-> scrypt {salt} 10\n{body}\n-> x\n\n"), "a passphrase and something else"),
        (&format!("-> scrypt {salt} 0\n{body}\n"), "no work"),
        (&format!("-> scrypt {salt} 010\n{body}\n"), "a zero in front"),
        (&format!("-> scrypt {salt} +10\n{body}\n"), "a sign"),
        (&format!("-> scrypt {salt} 1A\n{body}\n"), "no decimal digit"),
        (&format!("-> scrypt {salt}A 10\n{body}\n"), "a salt that is not canonical"),
        (&format!("-> ssh-ed25519 AAAAAAA {share}\n{body}\n"), "a long tag"),
        (&format!("-> mlkem768x25519 {share}\n{body}\n"), "a share of the other kind"),
    ] {
        assert!(matches!(read_stanzas(stanzas), Err(AgeError::Header(_))), "{why}");
    }
}

#[test]
fn too_much_work_is_told() {
    for (work, log_n) in
        [("23", 23), ("64", 64), ("255", 255), ("256", 255), ("99999999999999999999999999", 255)]
    {
        let error = read_stanzas(&format!("-> scrypt {SALT} {work}\n{BODY}\n")).expect_err("it is too much");
        assert!(matches!(error, AgeError::MuchWork(n) if n == log_n), "{error}");
    }
}

#[test]
fn other_stanzas_are_stepped_over() {
    let others = "-> ssh-rsa AAAA\nAAAA\n-> ! \"#$%&'()*+,-./ 0-~\n\n-> X25519- a\n\n";
    let kinds = read_stanzas(others).expect("they are stepped over");
    assert_eq!(
        kinds,
        [StanzaKind::SshRsa, StanzaKind::Other("!".into()), StanzaKind::Other("X25519-".into())]
    );
    let many_arguments = format!("-> x{}\n\n", " y".repeat(128));
    assert!(read_stanzas(&many_arguments).is_ok());
}

#[test]
fn malformed_ends_of_headers_are_refused() {
    let good = good_stanza();
    for bad in [
        MAC.replace("--- ", "---"),
        MAC.replace("--- ", "---  "),
        MAC.replace("Rk", "Rl"),
        MAC.replace("Rk\n", "Rk \n"),
    ] {
        let file = format!("age-encryption.org/v1\n{good}{bad}");
        assert!(matches!(recipients_in(file.as_bytes()), Err(AgeError::Header(_))), "{bad:?}");
    }
}

/// Headers of random pieces: none makes the parser panic, and none opens.
#[test]
fn random_headers() {
    let share = "TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc";
    let body = "EmECAEcKN+n/Vs9SbWiV+Hu0r+E8R77DdWYyd83nw7U\n";
    let (line, grease, end) = (format!("-> X25519 {share}\n"), "-> grease a b\n\n", format!("--- {share}\n"));
    let (whole, full) = (format!("{line}{body}"), "A".repeat(64));
    let locked = format!("-> scrypt rF0/NwblUHHTpgQgRpe5CQ 1\n{body}");
    let tagged = format!("-> ssh-ed25519 ZADDLA {share}\n{body}");
    let words = [
        "-> ",
        "X25519",
        "scrypt",
        "ssh-ed25519",
        "mlkem768x25519",
        "x",
        " ",
        "\n",
        "---",
        "10",
        "=",
        "\r",
        "\u{e4}",
    ];
    let pieces: [&str; 12] = [
        share,
        body,
        &line,
        grease,
        &end,
        &whole,
        &full,
        &locked,
        &tagged,
        &end,
        "rF0/NwblUHHTpgQgRpe5CQ",
        "ZADDLA",
    ];
    let pieces = [&words[..], &pieces].concat();
    let all = all_kinds();
    let (mut state, mut well_formed) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for _ in 0..20_000 {
        let mut file = b"age-encryption.org/v1\n".to_vec();
        for _ in 0..state >> 60 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            file.extend_from_slice(pieces[(state >> 33) as usize % pieces.len()].as_bytes());
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        well_formed += usize::from(recipients_in(&file).is_ok());
        for (keys, _, _) in &all {
            assert!(open(&file, keys).is_err());
        }
    }
    assert!(well_formed > 100, "{well_formed}");
}

#[test]
fn lists_of_recipients() {
    let text = format!("# us\n{}\n\n{}\r\n", vectors::X25519_RECIPIENT, vectors::SSH_RECIPIENT);
    assert_eq!(recipients_of(&text).expect("there are two").len(), 2);
    assert!(matches!(recipients_of("# nobody\n\n"), Err(AgeError::NoRecipients)));
    let begin = "-----BEGIN OPENSSH PRIVATE KEY-----";
    for (line, word) in [
        (vectors::X25519_KEY, "secret key"),
        (&vectors::X25519_KEY.to_lowercase(), "secret key"),
        (vectors::HYBRID_KEY, "secret key"),
        (begin, "private key"),
        ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC me", "RSA"),
        ("ecdsa-sha2-nistp256 AAAA", "Ed25519"),
        ("sk-ssh-ed25519@openssh.com AAAA", "Ed25519"),
        ("age1yubikey1q2w7u3vpya839jxxuq8g0sedh3d740d4xvn639sqhr95ejj8vu3hyfumptt", "plugins"),
        ("hunter2-my-password", "none of age1"),
        (&vectors::X25519_RECIPIENT[..60], "malformed"),
        (&vectors::HYBRID_RECIPIENT[..1900], "malformed"),
        (&vectors::SSH_RECIPIENT[..70], "malformed"),
        (&vectors::SSH_RECIPIENT.replace("AAAAC3", "AAAAD3"), "malformed"),
        (&"a".repeat(9000), "too long"),
        (" ", "none of age1"),
    ] {
        let error = recipients_of(&format!("# us\n{}\n{line}\n", vectors::X25519_RECIPIENT)).expect_err(line);
        assert!(matches!(error, AgeError::RecipientLine { line: 3, .. }));
        let said = error.to_string();
        assert!(said.contains(word) && said.starts_with("line 3 "), "{line}: {said}");
        assert!(line.len() < 20 || !said.contains(&line[14..]), "{said}");
        assert!(line.parse::<Recipient>().is_err());
    }
}

#[test]
fn files_of_identities() {
    let two = format!("# mine\n{}\n\n{}\n", vectors::X25519_KEY, vectors::HYBRID_KEY);
    let Keys::Identities(both) = identities(&two) else { unreachable!() };
    assert_eq!(both.iter().map(Identity::recipient).collect::<Vec<_>>().len(), 2);
    for (_, _, file) in &all_kinds()[..2] {
        assert!(open(file, &identities(&two)).is_ok());
    }
    let armored = "\n-----BEGIN AGE ENCRYPTED FILE-----\nYWdl\n";
    let plugin = "AGE-PLUGIN-YUBIKEY-1QQPQYT2GDF";
    for (text, word) in [
        ("", "empty"),
        ("# nothing\n", "empty"),
        ("age-encryption.org/v1\n-> scrypt", "encrypted itself"),
        (armored, "encrypted itself"),
        ("-----BEGIN RSA PRIVATE KEY-----\n", "OpenSSH's own"),
        ("\n\nhunter2-my-password", "line 3"),
        (vectors::X25519_RECIPIENT, "recipient"),
        (vectors::SSH_RECIPIENT, "recipient"),
        (plugin, "plugins"),
        (&vectors::X25519_KEY[..70], "malformed"),
        (&vectors::X25519_KEY.replace("KEY-1", "KEY-PQ-1"), "malformed"),
        (&vectors::HYBRID_KEY.replace("KEY-PQ-1", "KEY-1"), "malformed"),
    ] {
        let error = identities_of(text.as_bytes(), &mut never).expect_err(text);
        assert!(matches!(error, AgeError::Identity(_) | AgeError::IdentityLine { .. }));
        let said = error.to_string();
        assert!(said.contains(word), "{text}: {said}");
        assert!(text.len() < 40 || !said.contains(&text[20..]), "{said}");
    }
    assert!(matches!(identities_of(b"\xff", &mut never), Err(AgeError::Identity(_))));
}

#[test]
fn ssh_keys_behind_a_passphrase() {
    let read = |answer: Option<&str>| {
        let mut asked = 0;
        let result = identities_of(vectors::LOCKED_SSH_KEY.as_bytes(), &mut || {
            asked += 1;
            answer.map(passphrase)
        });
        assert_eq!(asked, 1);
        result
    };
    let keys = Keys::Identities(read(Some("elf letters")).expect("it is the passphrase"));
    assert_eq!(
        open(&bytes(vectors::LOCKED_SSH_FILE), &keys).expect("it is opened").as_slice(),
        vectors::PLAINTEXT
    );
    assert!(matches!(read(Some("ten letters")), Err(AgeError::WrongPassphrase)));
    assert!(matches!(read(None), Err(AgeError::KeyNeedsPassphrase)));
}

/// Each byte of a private key is changed, and each part of it cut off: nothing panics, and no other key comes out.
#[test]
fn damaged_ssh_keys() {
    let expected = recipient(vectors::SSH_RECIPIENT);
    let armor = |data: &[u8]| {
        let base64 = Base64::encode_string(data);
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{base64}\n-----END OPENSSH PRIVATE KEY-----\n")
    };
    let inner: String = vectors::SSH_KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let data = bytes(&inner);
    assert_eq!(
        identities_of(armor(&data).as_bytes(), &mut never).expect("it is whole")[0].recipient(),
        expected
    );
    for at in 0..data.len() {
        for mask in [1, 0x80, 0xff] {
            let mut other = data.clone();
            other[at] ^= mask;
            if let Ok(identities) = identities_of(armor(&other).as_bytes(), &mut || None) {
                assert_eq!(identities[0].recipient(), expected, "byte {at}");
            }
        }
        assert!(identities_of(armor(&data[..at]).as_bytes(), &mut || None).is_err(), "{at} bytes");
    }
    for text in [
        vectors::SSH_KEY.replace("-----END", "----END"),
        vectors::SSH_KEY.replacen('b', "!", 1),
        "# no\n".repeat(9),
    ] {
        assert!(identities_of(text.as_bytes(), &mut never).is_err());
    }
}

#[test]
fn nothing_secret_is_shown() {
    let (keys, _, _) = &all_kinds()[0];
    assert_eq!(format!("{keys:?}"), "Identities([Identity(…)])");
    assert_eq!(format!("{:?}", Keys::Passphrase(passphrase("hunter2"))), "Passphrase(Passphrase(…))");
}
