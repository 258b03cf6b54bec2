//! Age files: published ones are opened or refused as they say, and new ones go there and back for each kind of
//! recipient.

use crate::random::Mmix;
use fec_base::names::hex;
use fec_core::digest::HashKind;
use fec_keys::age::{self, AgeError, Identity, KeyKind, Keys, Part, Passphrase, Recipient};

/// Files of the test vectors of C2SP (CCTV, `age/testdata`): lines with the expected result, an empty line, and the
/// file.
const FILES: [&[u8]; 12] = [
    include_bytes!("age/x25519"),
    include_bytes!("age/x25519_multiple_recipients"),
    include_bytes!("age/hybrid"),
    include_bytes!("age/scrypt"),
    include_bytes!("age/hmac_bad"),
    include_bytes!("age/x25519_bad_tag"),
    include_bytes!("age/x25519_low_order"),
    include_bytes!("age/hybrid_bad_tag"),
    include_bytes!("age/hybrid_low_order"),
    include_bytes!("age/hybrid_no_match"),
    include_bytes!("age/scrypt_bad_tag"),
    include_bytes!("age/stream_bad_tag"),
];

/// Those vectors have none for keys of SSH. These are a key of OpenSSH for this test, a file that age made for it, and
/// the file's text.
const SSH_KEY: &[u8] = include_bytes!("age/ssh.key");
const SSH_FILE: &[u8] = include_bytes!("age/ssh.age");
const SSH_TEXT: &[u8] = b"the content key of thirty-two by";

/// The cost of a passphrase's key: low, since the cost is not under test.
const LOG_N: u8 = 8;

/// Right ones, and their total.
pub(super) fn of_others() -> (u64, u64) {
    let ssh = || Some(age::open(SSH_FILE, &ssh_keys()?).ok()?[..] == *SSH_TEXT);
    let right = FILES.iter().filter(|file| is_as_it_says(file) == Some(true)).count();
    (right as u64 + u64::from(ssh() == Some(true)), FILES.len() as u64 + 1)
}

fn ssh_keys() -> Option<Keys> {
    age::identities_of(SSH_KEY, &mut || None).ok().map(Keys::Identities)
}

/// Tells whether opening a file gives the result that it names; `None` if it names no known result.
fn is_as_it_says(bytes: &[u8]) -> Option<bool> {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
    let (said, file) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]);
    let line = |name: &str| {
        said.lines()
            .find_map(|line| line.split_once(": ").filter(|(what, _)| *what == name))
            .map(|(_, value)| value)
    };
    let keys = match (line("identity"), line("passphrase")) {
        (Some(identity), None) => {
            Keys::Identities(age::identities_of(identity.as_bytes(), &mut || None).ok()?)
        }
        (None, Some(passphrase)) => Keys::Passphrase(Passphrase::new(passphrase.to_owned().into()).ok()?),
        _ => return None,
    };
    let opened = age::open(file, &keys);
    Some(match line("expect")? {
        "success" => line("payload") == Some(&hex(&HashKind::Sha256.digest(&opened.ok()?))),
        "no match" => matches!(opened, Err(AgeError::NoMatch)),
        "header failure" => matches!(opened, Err(AgeError::Header(_))),
        "HMAC failure" => matches!(opened, Err(AgeError::Damaged(Part::Header))),
        "payload failure" => matches!(opened, Err(AgeError::Damaged(Part::Payload))),
        _ => return None,
    })
}

/// A kind of recipient.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    X25519,
    Hybrid,
    Ssh,
    Passphrase,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::X25519, Kind::Hybrid, Kind::Ssh, Kind::Passphrase];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::X25519 => "X25519",
            Kind::Hybrid => "ML-KEM-768 and X25519",
            Kind::Ssh => "ssh-ed25519",
            Kind::Passphrase => "passphrase",
        }
    }

    /// A person of this kind: the recipient of a file, unless it is for a passphrase, and the keys that open it.
    fn somebody(self, random: &mut Mmix) -> Option<(Option<Recipient>, Keys)> {
        let identity = match self {
            Kind::X25519 => Identity::generate(KeyKind::X25519).ok()?,
            Kind::Hybrid => Identity::generate(KeyKind::Hybrid).ok()?,
            Kind::Ssh => match ssh_keys()? {
                Keys::Identities(mut identities) => identities.pop()?,
                Keys::Passphrase(_) => return None,
            },
            Kind::Passphrase => {
                let text = format!("passphrase {}", random.below(usize::from(u16::MAX)));
                return Some((None, Keys::Passphrase(Passphrase::new(text.into()).ok()?)));
            }
        };
        Some((Some(identity.recipient()), Keys::Identities(vec![identity])))
    }
}

/// Files of a kind.
const TRIPS: u64 = 100;

/// Files with random texts for some recipients. Counts those that each key opens, no other key opens, and that no key
/// opens once a bit was changed; and their total.
pub(super) fn trips(kind: Kind) -> (u64, u64) {
    ((0..TRIPS).filter(|seed| trip(kind, *seed).is_some()).count() as u64, TRIPS)
}

fn trip(kind: Kind, seed: u64) -> Option<()> {
    let mut random = Mmix(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x61_6765);
    // There is a single key of SSH, and a passphrase has a file for itself.
    let most = if matches!(kind, Kind::X25519 | Kind::Hybrid) { 10 } else { 1 };
    let count = 1 + random.below(most);
    let (recipients, keys): (Vec<Option<Recipient>>, Vec<Keys>) =
        (0..count).map(|_| kind.somebody(&mut random)).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let longest = 2 << random.below(17);
    let mut text = vec![0; random.below(longest)];
    random.fill(&mut text);
    let mut file = match (&keys[..], recipients.into_iter().collect::<Option<Vec<_>>>()) {
        (_, Some(recipients)) => age::seal(&recipients, &text).ok()?,
        ([Keys::Passphrase(passphrase)], None) => age::seal_with_passphrase(passphrase, LOG_N, &text).ok()?,
        _ => return None,
    };
    for keys in &keys {
        (age::open(&file, keys).ok()?[..] == text).then_some(())?;
    }
    let stranger = match kind {
        Kind::Passphrase => Keys::Passphrase(Passphrase::new("another".to_owned().into()).ok()?),
        Kind::Hybrid => Keys::Identities(vec![Identity::generate(KeyKind::Hybrid).ok()?]),
        Kind::X25519 | Kind::Ssh => Keys::Identities(vec![Identity::generate(KeyKind::X25519).ok()?]),
    };
    matches!(age::open(&file, &stranger), Err(AgeError::NoMatch)).then_some(())?;
    let bit = random.below(8 * file.len());
    file[bit / 8] ^= 1 << (bit % 8);
    keys.iter().all(|keys| age::open(&file, keys).is_err()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_as_it_says_is_seen() {
        assert_eq!(is_as_it_says(FILES[0]), Some(true));
        let mut changed = FILES[0].to_vec();
        *changed.last_mut().expect("there are bytes") ^= 1;
        assert_ne!(is_as_it_says(&changed), Some(true));
        let of_another = String::from_utf8_lossy(FILES[0]).replacen("success", "no match", 1);
        assert_ne!(is_as_it_says(of_another.as_bytes()), Some(true));
        assert_eq!(is_as_it_says(b"nothing"), None);
    }
}
